"""What the automatic mode does and why, in short sentences for whoever was woken by it."""

from __future__ import annotations

from typing import Callable, Dict, List, Optional

from ceph_tuner.core.autopilot.contract import ALIKE, BETTER, UNKNOWN, WORSE
from ceph_tuner.core.autopilot.events import Look
from ceph_tuner.core.autopilot.judgement import in_words
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.autopilot.state import (
    APPROVE,
    ASKING,
    AUTO,
    COMPARING,
    DRY_RUN,
    HOLDING,
    OBSERVING,
    OFF,
    RETURNING,
    TRYING,
    WAITING,
    WRITING,
    AutopilotState,
)
from ceph_tuner.core.autopilot.transitions import asks_again, proposal_of
from ceph_tuner.core.moments import duration, utc_minute
from ceph_tuner.core.wording import first_of

_MODES = {
    OFF: "The automatic mode is off: it changes nothing. `ceph tuner auto on` starts it.",
    AUTO: "The automatic mode is on.",
    APPROVE: "The automatic mode is on; each proposal waits for approval, taking back never does.",
    DRY_RUN: "The automatic mode is in dry run: it says what it would try, and writes nothing.",
}
_VERDICTS = {BETTER: "better", WORSE: "worse", ALIKE: "no harm", UNKNOWN: "not known yet"}


_STOPS = (
    "Taken back at once: harm, a hard objective broken, slow operations, an OSD down, HEALTH_ERR, missing samples, "
    "settings changed by hand, the end of its hours, `ceph tuner auto pause` or `off`."
)


def explain(state: AutopilotState, newest: Optional[Look], policy: Policy, now: float) -> List[str]:
    """Say what it does and why, what it waits for and until when, what comes next, and what would make it stop.

    `newest` is the newest look at the cluster, None where there was none; `now` in seconds since the epoch.
    """
    look = newest or Look(now)
    lines = [_MODES[state.mode]]
    if state.paused:
        until = (
            "with `ceph tuner auto resume`" if state.paused_until is None else f"at {utc_minute(state.paused_until)}"
        )
        lines.append(f"It is paused: {state.paused}. It resumes {until}.")
    if state.phase == OBSERVING and (state.paused or state.mode == OFF):
        return lines
    lines += _PHASES[state.phase](state, look, policy, now)
    return lines if newest else [*lines, "The cluster was not looked at yet: objectives and effects are missing here."]


def _observing(state: AutopilotState, look: Look, policy: Policy, now: float) -> List[str]:
    lines = ["It watches the objectives; nothing is on trial."]
    if state.kept is not None:
        lines.append(f"It kept change {state.kept} last; `ceph tuner rollback --yes` takes that back.")
    if not look.wanted:
        return [*lines, "No objective is set, so there is nothing to do: `ceph tuner slo set 'client.p95_ms<=80'`."]
    lines += _misses(look)
    if state.gave_up:
        return [
            *lines,
            f"It gave up: {state.gave_up}.",
            "Loosen an objective or add hardware; `ceph tuner auto retry` lets it try again.",
            "It starts again by itself once load, hardware, OSDs or release change.",
        ]
    if state.failures:
        last = "The last trial was" if state.failures == 1 else f"The last {state.failures} trials were"
        lines.append(f"{last} taken back; the pause doubles with each in a row.")
    lines += _waits(look)
    if state.worker_failures:
        again = asks_again(state, policy)
        when = f"at {utc_minute(again)}" if now < again else "as soon as it may"
        lines.append(f"The optimiser failed {_times(state.worker_failures)}; it is asked again {when}.")
    if not look.missed:
        return [*lines, "Next: once an objective is missed, it asks the optimiser for settings."]
    if state.tried >= policy.trials:
        return [*lines, f"Next: it gives up, as {state.tried} of {policy.trials} proposals were tried."]
    return [*lines, f"Next: it asks the optimiser; {state.tried} of {policy.trials} proposals were tried."]


def _asking(state: AutopilotState, look: Look, policy: Policy, now: float) -> List[str]:
    next_step = {
        APPROVE: "the proposal waits for approval",
        DRY_RUN: "it reports what it would try, and tries nothing",
    }.get(state.mode, "canary and control are compared, then the canary gets the settings")
    request = f"It asked the optimiser for settings {duration(now - state.since)} ago."
    return [request, *_misses(look), f"Next: {next_step}."]


def _waiting(state: AutopilotState, look: Look, policy: Policy, now: float) -> List[str]:
    return [
        f"A proposal waits for approval since {utc_minute(state.since)}; nothing is written.",
        *_why(state),
        *_misses(look),
        *_waits(look),
        "Next: `ceph tuner approve` starts its trial, `ceph tuner reject` drops it.",
        "It is dropped by itself once the objectives are met or the cluster changes.",
    ]


def _comparing(state: AutopilotState, look: Look, policy: Policy, now: float) -> List[str]:
    rollout = proposal_of(state).rollout
    enough = policy.windows_before(rollout.alternating)
    canary = rollout.stages[0]
    who = "all OSDs" if rollout.alternating else f"{_osds(len(canary.osds))} with {_others(len(canary.control))}"
    verb = "watches" if rollout.alternating else "compares"
    return [
        f"It {verb} {who} before anything is written: {min(look.pairs, enough)} of {enough} windows.",
        *_why(state),
        *_misses(look),
        *_waits(look),
        f"Next: it writes the settings to {first_of(canary.targets, 3)}.",
        "Dropped at once: the cluster changes, `ceph tuner auto pause` or `off`.",
    ]


def _writing(state: AutopilotState, look: Look, policy: Policy, now: float) -> List[str]:
    return [f"It is writing since {utc_minute(state.since)}.", *_why(state), _STOPS]


def _trying(state: AutopilotState, look: Look, policy: Policy, now: float) -> List[str]:
    rollout = proposal_of(state).rollout
    stage, everyone = rollout.stages[state.stage], len(rollout.stages[-1].osds)
    if rollout.alternating:
        turn = "the new ones have" if state.leg else "the old ones have"
        where = f"Old and new settings take turns on all {everyone} OSDs, as there is no control; {turn} theirs now."
        windows, unit = state.turns, "turn"
        next_step = "once the turns show a gain and no harm, the new settings stay and are held"
    else:
        where = (
            f"The settings are on {len(stage.osds)} of {everyone} OSDs, compared with {_others(len(stage.control))}."
        )
        where += f" Stage {state.stage + 1} of {len(rollout.stages)}."
        windows, unit = look.windows, "window"
        wider = rollout.stages[state.stage + 1 :][:1]
        next_step = f"if all is well, they go to {len(wider[0].osds) if wider else everyone} of {everyone} OSDs"
    so_far = f"{windows} {unit}{'s' * (windows != 1)} so far"
    return [
        where,
        *_why(state),
        f"{so_far}; a verdict takes {policy.least_windows} to {policy.most_windows}.",
        *_effects(look),
        *_misses(look),
        *_waits(look),
        f"Next: {next_step}.",
        f"Without a verdict by then they are taken back, and it pauses for {duration(policy.back_off)}.",
        _STOPS,
    ]


def _holding(state: AutopilotState, look: Look, policy: Policy, now: float) -> List[str]:
    everyone = len(proposal_of(state).rollout.stages[-1].osds)
    windows = f"{min(look.windows, policy.hold_windows)} of {policy.hold_windows} windows"
    gain = [f"The trial showed: {state.gain}."] if state.gain else []
    return [
        f"The settings are on all {everyone} OSDs, on probation: {windows}.",
        *_why(state),
        *gain,
        *(["Windows count once the scrubs have ended that began under the old settings."] if look.outlived else []),
        *(f"Broken by these windows on the whole: {objective}." for objective in look.broken),
        *(f"Kept by some of these windows, and more are waited for: {objective}." for objective in look.unsure),
        *_misses(look),
        "Next: they are kept if all stays well and they gained something, else taken back.",
        _STOPS,
    ]


def _returning(state: AutopilotState, look: Look, policy: Policy, now: float) -> List[str]:
    lines = ["It takes a trial back. This waits for nobody, and is tried again at each sample until it is done."]
    if state.problem:
        lines.append(f"The last attempt failed: {state.problem}.")
        lines.append("`ceph tuner rollback --yes` does it by hand.")
    if state.then:
        return [*lines, f"Next: it pauses ({state.then})."]
    if state.mode == OFF:
        return [*lines, "Next: it stays off."]
    return [*lines, f"Next: it watches the objectives{', and pauses before the next trial' if state.back_off else ''}."]


_PHASES: Dict[str, Callable[[AutopilotState, Look, Policy, float], List[str]]] = {
    OBSERVING: _observing,
    ASKING: _asking,
    WAITING: _waiting,
    COMPARING: _comparing,
    WRITING: _writing,
    TRYING: _trying,
    HOLDING: _holding,
    RETURNING: _returning,
}


def _why(state: AutopilotState) -> List[str]:
    proposed = proposal_of(state)
    where = [f"Where: {proposed.rollout.why}."] if proposed.rollout.why else []
    return [f"Proposal {proposed.number}: {proposed.why}.", *where]


def _misses(look: Look) -> List[str]:
    return [f"Missed: {objective}." for objective in look.missed]


def _waits(look: Look) -> List[str]:
    return [f"It waits: {look.wait}."] if look.wait else []


def _effects(look: Look) -> List[str]:
    estimates = [effect for effect in look.effects.values() if effect.change is not None]
    return [f"So far {in_words(effect)}: {_VERDICTS[effect.verdict]}." for effect in estimates] or [
        "No effect seen yet."
    ]


def _osds(count: int) -> str:
    return "one OSD" if count == 1 else f"{count} OSDs"


def _others(count: int) -> str:
    return "another one" if count == 1 else f"{count} others"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times in a row"
