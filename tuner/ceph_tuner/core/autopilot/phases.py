"""What a look at the cluster decides, by the phase that the automatic mode is in."""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, Dict, List

from ceph_tuner.core.autopilot import judgement as judging
from ceph_tuner.core.autopilot.condition import lighter
from ceph_tuner.core.autopilot.events import Act, Ask, Keep, Look, Note, TakeBack
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.autopilot.state import (
    ASKING,
    COMPARING,
    HOLDING,
    OBSERVING,
    OFF,
    RETURNING,
    TRYING,
    WAITING,
    WRITING,
    AutopilotState,
)
from ceph_tuner.core.autopilot.transitions import (
    AutopilotDecision,
    asks_again,
    effects_detail,
    going_on,
    idle_state,
    pause_lasts,
    proposal_of,
    take_back,
    write_stage,
)
from ceph_tuner.core.hours import DAY_S

BY_HAND = ("drift", "manual")
"""Rules of the guard that an operator breaks, not the cluster."""


def on_look(state: AutopilotState, look: Look, policy: Policy) -> AutopilotDecision:
    """What any look decides; where nothing of that is the case, what its phase does."""
    # a clock that was ahead leaves times behind that are far in the future: they bind nobody
    state = replace(state, moves=tuple(at for at in state.moves if abs(look.at - at) < DAY_S))
    until = state.paused_until
    if state.paused and until is not None and not pause_lasts(look.at, until, policy.back_off):
        state = going_on(state)
    if state.phase == RETURNING:
        # the last attempt failed
        return AutopilotDecision(state, (TakeBack(state.changes, state.problem or "tried again"),))
    if state.phase in (TRYING, HOLDING):
        if look.breach is not None:
            by_hand = look.breach.rule in BY_HAND
            # who changes settings by hand does not want to race a machine
            then = f"somebody intervened: {look.breach.reason}" if by_hand else ""
            return take_back(state, look, look.breach.reason, failure=not by_hand, rule=look.breach.rule, then=then)
        if look.policy != state.policy:
            # neither the settings nor what they are judged by are of what is wanted now
            return take_back(state, look, _policy_change(state, look), failure=False)
        if look.upset:
            return take_back(state, look, f"cannot be compared any more: {look.upset}", failure=False)
        if look.outside:
            return take_back(state, look, f"outside of the permitted hours: {look.wait}", failure=False)
    return _LOOKS[state.phase](state, look, policy)


def _observing(state: AutopilotState, look: Look, policy: Policy) -> AutopilotDecision:
    if state.mode == OFF or state.paused:
        return AutopilotDecision(state)
    acts: List[Act] = []
    if not state.condition:
        state = replace(state, condition=dict(look.condition), begun=look.at)
    elif look.changed:
        words = "; ".join(look.changed)
        acts.append(Note("condition changed", words, detail={"changed": list(look.changed)}))
        state = replace(state, condition=dict(look.condition), begun=look.at, tried=0, gave_up="")
    if look.policy != state.policy:
        acts.append(Note("policy", _policy_change(state, look), detail={"policy": look.policy}))
        state = replace(state, policy=look.policy, tried=0, gave_up="")
    if not look.missed or state.gave_up or look.wait:
        return AutopilotDecision(state, tuple(acts))
    if state.tried >= policy.trials:
        words = f"{state.tried} proposals were tried, and still missed: {'; '.join(look.missed)}"
        return AutopilotDecision(replace(state, gave_up=words), (*acts, Note("gave up", words)))
    if pause_lasts(look.at, asks_again(state, policy), asks_again(state, policy) - state.asked_at):
        return AutopilotDecision(state, tuple(acts))
    successor = replace(
        state,
        phase=ASKING,
        since=look.at,
        asked_at=look.at,
        aims=look.metrics_missed,
        baseline=dict(look.means),
    )
    return AutopilotDecision(successor, (*acts, Ask()))


def _policy_change(state: AutopilotState, look: Look) -> str:
    before, now = (f"the policy {name}" if name else "no policy" for name in (state.policy, look.policy))
    return f"other objectives are wanted by the calendar: {now} after {before}"


def _why_out_of_date(state: AutopilotState, look: Look) -> str:
    """Why a proposal that is not written yet is out of date; empty where it is not."""
    if look.policy != state.policy:
        return _policy_change(state, look)
    return "; ".join(look.changed) if look.changed else "the objectives are met again" if look.met else ""


def _waiting(state: AutopilotState, look: Look, policy: Policy) -> AutopilotDecision:
    reason = _why_out_of_date(state, look)
    if not reason:
        return AutopilotDecision(state)
    return AutopilotDecision(idle_state(state, look.at), (Note("proposal", f"dropped: {reason}"),))


def _comparing(state: AutopilotState, look: Look, policy: Policy) -> AutopilotDecision:
    reason = _why_out_of_date(state, look)
    if reason:
        return AutopilotDecision(idle_state(state, look.at), (Note("proposal", f"dropped: {reason}"),))
    if look.wait:
        # what was compared meanwhile is no baseline
        return AutopilotDecision(replace(state, since=look.at) if look.windows else state)
    if look.pairs < policy.windows_before(proposal_of(state).rollout.alternating):
        if look.windows < policy.baseline_windows + policy.most_windows:
            return AutopilotDecision(state)
        words = f"dropped: canary and control were seen together in {look.pairs} of {look.windows} windows only"
        return AutopilotDecision(idle_state(state, look.at, failed=True), (Note("proposal", words),))
    return write_stage(replace(state, baseline=dict(look.means) or state.baseline), look.at)


def _trying(state: AutopilotState, look: Look, policy: Policy) -> AutopilotDecision:
    proposed = proposal_of(state)
    if proposed.rollout.alternating:
        return _alternating(state, look, policy)
    judgement = _judge(state, look, policy, look.windows)
    if judgement.verdict != judging.PASSED:
        return _unless_over(state, look, policy, judgement)
    if look.wait:
        # forward moves wait; what is on the canary is well
        return AutopilotDecision(state)
    successor = replace(state, stage=state.stage + 1, gain=state.gain or _gain(judgement), effects=look.effects)
    return write_stage(successor, look.at, judgement.words)


def _alternating(state: AutopilotState, look: Look, policy: Policy) -> AutopilotDecision:
    """Old and new settings take turns of one window each; the judge speaks at the end of a turn of the old ones.

    A turn that has not shown all that a verdict needs goes on, for as long as the guard would bear it.
    """
    if not look.windows or (look.unseen and look.windows < policy.guard_windows):
        return AutopilotDecision(state)
    if state.leg:
        turn = replace(state, phase=WRITING, since=look.at, leg=False)
        return AutopilotDecision(turn, (TakeBack(state.changes, "the old settings' turn"),))
    judgement = _judge(state, look, policy, state.turns)
    if judgement.verdict in (judging.HARMFUL, judging.INCONCLUSIVE):
        return _unless_over(state, look, policy, judgement)
    if look.wait:
        # a turn is a forward move like any other, and what waits has nothing on the cluster
        return AutopilotDecision(state)
    if judgement.verdict == judging.PASSED:
        successor = replace(state, passed=True, gain=_gain(judgement), effects=look.effects)
        return write_stage(successor, look.at, judgement.words)
    return write_stage(state, look.at, "next turn", turn=True)


def _unless_over(state: AutopilotState, look: Look, policy: Policy, judgement: judging.Judgement) -> AutopilotDecision:
    if judgement.verdict == judging.HARMFUL:
        return take_back(state, look, f"harm: {judgement.words}", failure=True, rule="harm")
    if judgement.verdict == judging.INCONCLUSIVE:
        # it is not passed: people may look, and after a while it goes on with other settings
        then = f"the last trial was inconclusive: {judgement.words}"
        successor = replace(state, paused_until=look.at + policy.back_off)
        return take_back(successor, look, f"inconclusive: {judgement.words}", failure=False, then=then)
    return AutopilotDecision(state)


def _interrupted(state: AutopilotState, look: Look, policy: Policy) -> AutopilotDecision:
    """Still writing at the next look: what was to be done before the write failed, the audit trail for one."""
    return take_back(state, look, "a write was interrupted before it began", failure=False)


def _holding(state: AutopilotState, look: Look, policy: Policy) -> AutopilotDecision:
    if look.windows < policy.hold_windows:
        return AutopilotDecision(state)
    judgement = _judge(state, look, policy, look.windows)
    if judgement.verdict == judging.HARMFUL:
        return _unless_over(state, look, policy, judgement)
    if look.broken:
        # no window by itself was bad enough for the guard: scrub comes in bursts
        if look.windows < min(2 * policy.hold_windows, policy.most_windows):
            return AutopilotDecision(state)
        words = f"{look.windows} windows on all OSDs break {'; '.join(look.broken)}"
        return _unless_over(state, look, policy, judging.Judgement(judging.HARMFUL, words))
    if look.unsure and look.windows < policy.most_windows:
        return AutopilotDecision(state)
    # the canary's gain was seen beside a control; what all OSDs show may be the load's doing
    less = "" if state.gain else lighter(state.baseline, look.means, look.idle_iops)
    gains = [] if less else judging.gained(look.effects, state.aims)
    success = bool(state.aims) and not less and not set(state.aims) & set(look.metrics_missed)
    # what is not seen is not met
    success = success and all(metric in look.means for metric in state.aims)
    if look.unseen or not (state.gain or gains or success):
        if look.windows < policy.most_windows:
            return AutopilotDecision(state)
        blind = f"{' and '.join(look.unseen)} not seen" if look.unseen else ""
        words = f"{look.windows} windows on all OSDs; {blind or less or 'no gain seen'}"
        return _unless_over(state, look, policy, judging.Judgement(judging.INCONCLUSIVE, words))
    number = state.changes[-1]
    words = state.gain or "; ".join(map(judging.in_words, gains)) or f"{' and '.join(state.aims)} met"
    return AutopilotDecision(
        replace(state, phase=WRITING, since=look.at, effects=state.effects or look.effects),
        (Note("kept", words, detail={**effects_detail(look), "change": number}), Keep(number)),
    )


def _judge(state: AutopilotState, look: Look, policy: Policy, windows: int) -> judging.Judgement:
    return judging.judge(look.effects, look.allowed, state.aims, windows, policy, look.unseen)


def _gain(judgement: judging.Judgement) -> str:
    return judgement.words if judgement.gain else ""


def _stay(state: AutopilotState, look: Look, policy: Policy) -> AutopilotDecision:
    return AutopilotDecision(state)


_LOOKS: Dict[str, Callable[[AutopilotState, Look, Policy], AutopilotDecision]] = {
    OBSERVING: _observing,
    ASKING: _stay,
    WAITING: _waiting,
    COMPARING: _comparing,
    WRITING: _interrupted,
    TRYING: _trying,
    HOLDING: _holding,
}
