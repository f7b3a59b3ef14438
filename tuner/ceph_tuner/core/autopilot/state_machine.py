r"""The automatic mode's state machine: (state, event, policy) to the next state and what is to be done.

    observing -> asking -> (waiting) -> comparing -> writing -> trying -> ... -> holding -> observing
                                                        \----------\------------> returning -> observing

The state goes to the store before what it wants is done, and each deed's outcome comes back as an event. Of the acts of
one decision at most one touches the cluster. Whatever is on trial is in the journal as a trial: should this process
die anywhere, the next active mgr takes it back and says so with `Started`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, List, Optional, Tuple

from ceph_tuner.core.autopilot import judgement as judging
from ceph_tuner.core.autopilot.condition import lighter
from ceph_tuner.core.autopilot.events import (
    Act,
    Answered,
    Ask,
    Event,
    Keep,
    Kept,
    Learn,
    Look,
    Note,
    OperatorCommand,
    Started,
    TakeBack,
    TakeBackFailed,
    TookBack,
    Write,
    WriteFailed,
    Wrote,
)
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.autopilot.state import (
    APPROVE,
    ASKING,
    AUTO,
    COMPARING,
    DRY_RUN,
    HOLDING,
    MODES,
    OBSERVING,
    OFF,
    RETURNING,
    TRYING,
    WAITING,
    WRITING,
    Proposed,
    State,
)
from ceph_tuner.core.hours import DAY_S

ASK_AGAIN_S = 60.0
"""Pause after the optimiser failed; doubled each time in a row, up to the policy's back-off."""

BY_OPERATOR = "operator"
"""Rule of the note where an operator's command ends a trial."""
BY_HAND = ("drift", "manual")
"""Rules of the guard that an operator breaks, not the cluster."""


@dataclass(frozen=True)
class Decision:
    """What comes next: the state, and what is to be done, of which the last act alone has an outcome."""

    state: State
    acts: Tuple[Act, ...] = ()

    def __post_init__(self) -> None:
        if any(not isinstance(act, (Note, Learn)) for act in self.acts[:-1]):
            raise ValueError(f"acts (={self.acts}) must be notes and results but for the last one")


def decide(state: State, event: Event, policy: Policy) -> Decision:
    """Take an event. Pure: the same arguments give the same decision."""
    return _HANDLERS[type(event)](state, event, policy)


def asks_again(state: State, policy: Policy) -> float:
    """When it may ask the optimiser again, in seconds since the epoch: a pause follows each failure of it."""
    failures = state.worker_failures
    return state.asked_at + (min(ASK_AGAIN_S * 2.0 ** min(failures, 20), policy.back_off) if failures else 0.0)


def refusal(state: State, what: str) -> Optional[str]:
    """Why an operator's command makes no sense now; None where it does."""
    if what in ("accept", "reject") and state.phase != WAITING:
        return "no proposal waits for approval"
    if what == "resume" and not (state.paused or state.then):
        return "it is not paused"
    if what == "pause" and state.mode == OFF:
        return "it is off"
    if what in ("resume", "retry") and state.mode == OFF:
        return "it is off: `ceph tuner auto on`"
    return None


def _on_start(state: State, event: Started, policy: Policy) -> Decision:
    detail: Dict[str, Any] = {"taken_back": list(event.taken_back), "phase": state.phase}
    if event.problem:
        stuck = replace(state, phase=RETURNING, since=event.at, back_off=True, problem=event.problem)
        return Decision(stuck, (Note("stopped", event.problem, detail=detail),))
    if event.kept is not None and state.phase == WRITING:
        decision = _on_keep(state, Kept(event.at, event.kept), policy)
        return Decision(
            decision.state, (Note("failover", f"change {event.kept} had been kept", detail=detail), *decision.acts)
        )
    acts: Tuple[Act, ...] = ()
    if event.taken_back or state.phase != OBSERVING:
        outcome = (
            f"took back changes {', '.join(map(str, event.taken_back))}" if event.taken_back else "nothing to undo"
        )
        acts = (Note("failover", f"another mgr became active while {state.phase}: {outcome}", detail=detail),)
    if state.phase == RETURNING:
        # finish it, and then what was to follow: a pause that an operator asked for outlives the mgr
        return Decision(state, (*acts, TakeBack(state.changes, "another mgr had begun to")))
    # the trial may be why the mgr died: the next one can wait, and not all mgrs are for dying of one
    trials = state.tried + 1 if state.on_cluster else state.tried
    return Decision(replace(_idle(state, event.at, failed=state.on_cluster), tried=trials), acts)


def _on_command(state: State, event: OperatorCommand, policy: Policy) -> Decision:
    if refusal(state, event.what) is not None:
        return Decision(state)
    why = event.why or f"by {event.by}"
    if event.what in MODES:
        note = Note("mode", f"{state.mode} to {event.what}", event.by)
        successor = replace(_going_on(state), mode=event.what, gave_up="", worker_failures=0)
        needs_approval = event.what == APPROVE and state.mode != APPROVE
        if event.what in (OFF, DRY_RUN) or (needs_approval and state.on_cluster):
            return _drop(successor, event.at, f"switched {event.what} {why}", (note,))
        if needs_approval and state.phase == COMPARING:
            successor = replace(successor, phase=WAITING, since=event.at)
        if event.what == AUTO and state.phase == WAITING:
            successor = replace(successor, phase=COMPARING, since=event.at)
        return Decision(successor, (note,))
    if event.what == "pause":
        state = replace(state, paused_until=None)
        return _drop(state, event.at, f"paused {why}", (Note("paused", why, event.by),), then=f"paused {why}")
    if event.what == "resume":
        return Decision(_going_on(state), (Note("resumed", why, event.by),))
    if event.what == "retry":
        fresh = replace(_going_on(state), gave_up="", tried=0, failures=0, declined_at=0.0, worker_failures=0)
        return Decision(fresh, (Note("resumed", f"tries again {why}", event.by),))
    if event.what == "accept":
        return Decision(replace(state, phase=COMPARING, since=event.at), (Note("approval", "approved", event.by),))
    if event.what == "reject":
        idle = replace(_idle(state, event.at), tried=state.tried + 1, declined_at=event.at)
        return Decision(idle, (Note("approval", "rejected", event.by),))
    raise ValueError(f"what (={event.what!r}) is no command of the automatic mode")


def _on_look(state: State, look: Look, policy: Policy) -> Decision:
    # a clock that was ahead leaves times behind that are far in the future: they bind nobody
    state = replace(state, moves=tuple(at for at in state.moves if abs(look.at - at) < DAY_S))
    if state.paused and state.paused_until is not None and not _until(look.at, state.paused_until, policy.back_off):
        state = _going_on(state)
    if state.phase == RETURNING:
        # the last attempt failed
        return Decision(state, (TakeBack(state.changes, state.problem or "tried again"),))
    if state.phase in (TRYING, HOLDING):
        if look.breach is not None:
            by_hand = look.breach.rule in BY_HAND
            # who changes settings by hand does not want to race a machine
            then = f"somebody intervened: {look.breach.reason}" if by_hand else ""
            return _back(state, look, look.breach.reason, failure=not by_hand, rule=look.breach.rule, then=then)
        if look.policy != state.policy:
            # neither the settings nor what they are judged by are of what is wanted now
            return _back(state, look, _policy_change(state, look), failure=False)
        if look.upset:
            return _back(state, look, f"cannot be compared any more: {look.upset}", failure=False)
        if look.outside:
            return _back(state, look, f"outside of the permitted hours: {look.wait}", failure=False)
    return _LOOKS[state.phase](state, look, policy)


def _observing(state: State, look: Look, policy: Policy) -> Decision:
    if state.mode == OFF or state.paused:
        return Decision(state)
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
        return Decision(state, tuple(acts))
    if state.tried >= policy.trials:
        words = f"{state.tried} proposals were tried, and still missed: {'; '.join(look.missed)}"
        return Decision(replace(state, gave_up=words), (*acts, Note("gave up", words)))
    if _until(look.at, asks_again(state, policy), asks_again(state, policy) - state.asked_at):
        return Decision(state, tuple(acts))
    successor = replace(
        state,
        phase=ASKING,
        since=look.at,
        asked_at=look.at,
        aims=look.metrics_missed,
        baseline=dict(look.means),
    )
    return Decision(successor, (*acts, Ask()))


def _on_answer(state: State, event: Answered, policy: Policy) -> Decision:
    if state.phase != ASKING:
        # it was switched off or paused meanwhile
        return Decision(state)
    if event.refused:
        words = event.refused
        idle = replace(_idle(state, event.at), worker_failures=state.worker_failures + 1)
        return Decision(idle, (Note("refused", words),))
    if not event.settings or event.rollout is None:
        gave_up = replace(_idle(state, event.at), gave_up=event.why, worker_failures=0)
        return Decision(gave_up, (Note("gave up", event.why),))
    number = state.proposals + 1
    proposed = Proposed(number, dict(event.settings), event.why, event.rollout, event.forecast)
    detail = {"settings": dict(event.settings), "canary": list(event.rollout.stages[0].targets)}
    state = replace(state, proposals=number, worker_failures=0)
    if state.mode == DRY_RUN:
        # the next one after a pause, not at the next window
        would = replace(_idle(state, event.at), declined_at=event.at)
        return Decision(would, (Note("would try", event.why, detail=detail),))
    phase = WAITING if state.mode == APPROVE else COMPARING
    successor = replace(state, phase=phase, since=event.at, proposed=proposed, stage=0, leg=False, gain="")
    return Decision(successor, (Note("proposal", event.why, detail=detail),))


def _policy_change(state: State, look: Look) -> str:
    before, now = (f"the policy {name}" if name else "no policy" for name in (state.policy, look.policy))
    return f"other objectives are wanted by the calendar: {now} after {before}"


def _why_out_of_date(state: State, look: Look) -> str:
    """Why a proposal that is not written yet is out of date; empty where it is not."""
    if look.policy != state.policy:
        return _policy_change(state, look)
    return "; ".join(look.changed) if look.changed else "the objectives are met again" if look.met else ""


def _waiting(state: State, look: Look, policy: Policy) -> Decision:
    reason = _why_out_of_date(state, look)
    if not reason:
        return Decision(state)
    return Decision(_idle(state, look.at), (Note("proposal", f"dropped: {reason}"),))


def _comparing(state: State, look: Look, policy: Policy) -> Decision:
    reason = _why_out_of_date(state, look)
    if reason:
        return Decision(_idle(state, look.at), (Note("proposal", f"dropped: {reason}"),))
    if look.wait:
        # what was compared meanwhile is no baseline
        return Decision(replace(state, since=look.at) if look.windows else state)
    if look.pairs < policy.windows_before(_proposal(state).rollout.alternating):
        if look.windows < policy.baseline_windows + policy.most_windows:
            return Decision(state)
        words = f"dropped: canary and control were seen together in {look.pairs} of {look.windows} windows only"
        return Decision(_idle(state, look.at, failed=True), (Note("proposal", words),))
    return _write(replace(state, baseline=dict(look.means) or state.baseline), look.at)


def _trying(state: State, look: Look, policy: Policy) -> Decision:
    proposed = _proposal(state)
    if proposed.rollout.alternating:
        return _alternating(state, look, policy)
    judgement = _judge(state, look, policy, look.windows)
    if judgement.verdict != judging.PASSED:
        return _unless_over(state, look, policy, judgement)
    if look.wait:
        # forward moves wait; what is on the canary is well
        return Decision(state)
    successor = replace(state, stage=state.stage + 1, gain=state.gain or _gain(judgement), effects=look.effects)
    return _write(successor, look.at, judgement.words)


def _alternating(state: State, look: Look, policy: Policy) -> Decision:
    """Old and new settings take turns of one window each; the judge speaks at the end of a turn of the old ones.

    A turn that has not shown all that a verdict needs goes on, for as long as the guard would bear it.
    """
    if not look.windows or (look.unseen and look.windows < policy.guard_windows):
        return Decision(state)
    if state.leg:
        turn = replace(state, phase=WRITING, since=look.at, leg=False)
        return Decision(turn, (TakeBack(state.changes, "the old settings' turn"),))
    judgement = _judge(state, look, policy, state.turns)
    if judgement.verdict in (judging.HARMFUL, judging.INCONCLUSIVE):
        return _unless_over(state, look, policy, judgement)
    if look.wait:
        # a turn is a forward move like any other, and what waits has nothing on the cluster
        return Decision(state)
    if judgement.verdict == judging.PASSED:
        successor = replace(state, passed=True, gain=_gain(judgement), effects=look.effects)
        return _write(successor, look.at, judgement.words)
    return _write(state, look.at, "next turn", turn=True)


def _unless_over(state: State, look: Look, policy: Policy, judgement: judging.Judgement) -> Decision:
    if judgement.verdict == judging.HARMFUL:
        return _back(state, look, f"harm: {judgement.words}", failure=True, rule="harm")
    if judgement.verdict == judging.INCONCLUSIVE:
        # it is not passed: people may look, and after a while it goes on with other settings
        then = f"the last trial was inconclusive: {judgement.words}"
        successor = replace(state, paused_until=look.at + policy.back_off)
        return _back(successor, look, f"inconclusive: {judgement.words}", failure=False, then=then)
    return Decision(state)


def _interrupted(state: State, look: Look, policy: Policy) -> Decision:
    """Still writing at the next look: what was to be done before the write failed, the audit trail for one."""
    return _back(state, look, "a write was interrupted before it began", failure=False)


def _holding(state: State, look: Look, policy: Policy) -> Decision:
    if look.windows < policy.hold_windows:
        return Decision(state)
    judgement = _judge(state, look, policy, look.windows)
    if judgement.verdict == judging.HARMFUL:
        return _unless_over(state, look, policy, judgement)
    if look.broken:
        # no window by itself was bad enough for the guard: scrub comes in bursts
        if look.windows < min(2 * policy.hold_windows, policy.most_windows):
            return Decision(state)
        words = f"{look.windows} windows on all OSDs break {'; '.join(look.broken)}"
        return _unless_over(state, look, policy, judging.Judgement(judging.HARMFUL, words))
    # the canary's gain was seen beside a control; what all OSDs show may be the load's doing
    less = "" if state.gain else lighter(state.baseline, look.means, look.idle_iops)
    gains = [] if less else judging.gained(look.effects, state.aims)
    success = bool(state.aims) and not less and not set(state.aims) & set(look.metrics_missed)
    # what is not seen is not met
    success = success and all(metric in look.means for metric in state.aims)
    if look.unseen or not (state.gain or gains or success):
        if look.windows < policy.most_windows:
            return Decision(state)
        blind = f"{' and '.join(look.unseen)} not seen" if look.unseen else ""
        words = f"{look.windows} windows on all OSDs; {blind or less or 'no gain seen'}"
        return _unless_over(state, look, policy, judging.Judgement(judging.INCONCLUSIVE, words))
    number = state.changes[-1]
    words = state.gain or "; ".join(map(judging.in_words, gains)) or f"{' and '.join(state.aims)} met"
    return Decision(
        replace(state, phase=WRITING, since=look.at, effects=state.effects or look.effects),
        (Note("kept", words, detail={**_detail(look), "change": number}), Keep(number)),
    )


def _on_write(state: State, event: Wrote, policy: Policy) -> Decision:
    if not event.numbers and (state.last_stage or not state.changes):
        words = "the settings are in force already: there is nothing to try"
        return Decision(replace(_idle(state, event.at), tried=state.tried + 1), (Note("refused", words),))
    alternating = _proposal(state).rollout.alternating
    changes = event.numbers if state.last_stage else (*state.changes, *event.numbers)
    phase = HOLDING if state.last_stage and (state.passed or not alternating) else TRYING
    turns = state.turns + 1 if alternating else 0
    return Decision(replace(state, phase=phase, since=event.at, changes=changes, leg=alternating, turns=turns))


def _on_write_failure(state: State, event: WriteFailed, policy: Policy) -> Decision:
    successor = replace(state, changes=tuple(dict.fromkeys((*state.changes, *event.numbers))))
    if event.busy and not successor.changes:
        return Decision(_idle(state, event.at), (Note("proposal", f"dropped: {event.words}"),))
    why = event.words if event.rule else f"a write failed: {event.words}"
    return _back(successor, Look(event.at), why, failure=True, rule=event.rule or "write failed")


def _on_take_back(state: State, event: TookBack, policy: Policy) -> Decision:
    acts: Tuple[Act, ...] = (Note("drift", "; ".join(event.drift)),) if event.drift else ()
    if state.phase == WRITING:
        # a turn of an alternating trial
        return Decision(replace(state, phase=TRYING, since=event.at, changes=()), acts)
    idle = _idle(state, event.at, failed=state.back_off)
    if state.then:
        until = state.paused_until
        acts = (*acts, Note("paused", state.then))
        idle = replace(idle, paused=state.then, paused_until=until)
    return Decision(idle, acts)


def _on_take_back_failure(state: State, event: TakeBackFailed, policy: Policy) -> Decision:
    acts: Tuple[Act, ...] = () if event.words == state.problem else (Note("stopped", event.words),)
    return Decision(replace(state, phase=RETURNING, problem=event.words), acts)


def _on_keep(state: State, event: Kept, policy: Policy) -> Decision:
    acts: Tuple[Act, ...] = ()
    if state.proposed is not None:
        acts = (Learn(state.proposed.settings, state.effects, state.baseline, state.proposed.number),)
    successor = replace(_idle(state, event.at), failures=0, tried=state.tried + 1, kept=event.number)
    return Decision(successor, acts)


def _write(state: State, at: float, words: str = "", turn: bool = False) -> Decision:
    """Write the state's stage."""
    proposed = _proposal(state)
    stage = proposed.rollout.stages[state.stage]
    targets = (proposed.rollout.target,) if state.last_stage else stage.targets
    moves = state.moves if turn else (*state.moves, at)
    why = f"trial {proposed.number}: {proposed.why}"
    name = "all" if state.last_stage else "canary" if state.stage == 0 else f"stage {state.stage + 1}"
    note = Note("apply", words or proposed.why, detail={"stage": name, "targets": list(targets)})
    return Decision(
        replace(state, phase=WRITING, since=at, moves=moves),
        (
            *(() if turn else (note,)),
            # a canary's part shows in no window of the whole
            Write(targets, proposed.settings, why, state.changes, proposed.forecast)
            if state.last_stage
            else Write(targets, proposed.settings, why),
        ),
    )


def _back(state: State, look: Look, why: str, failure: bool, rule: str = "", then: str = "") -> Decision:
    """Take the trial back: never waits for anybody."""
    acts: List[Act] = [Note("taken back", why, detail={**_detail(look), "rule": rule or "trial"})]
    if state.proposed is not None:
        failure_words = why if failure else ""
        acts.append(
            Learn(state.proposed.settings, dict(look.effects), state.baseline, state.proposed.number, failure_words)
        )
    trials = state.tried + 1
    back = replace(state, phase=RETURNING, since=look.at, back_off=failure, then=then, tried=trials)
    return Decision(back, (*acts, TakeBack(state.changes, why)))


def _drop(state: State, at: float, why: str, acts: Tuple[Act, ...], then: str = "") -> Decision:
    """Leave what is under way because an operator says so."""
    if state.on_cluster:
        back = replace(state, phase=RETURNING, since=at, back_off=False, then=then)
        note = Note("taken back", why, acts[0].by if isinstance(acts[0], Note) else "", {"rule": BY_OPERATOR})
        return Decision(back, (*acts, note, TakeBack(state.changes, why)))
    return Decision(replace(_idle(state, at), paused=then), acts)


def _going_on(state: State) -> State:
    """Neither paused nor about to be."""
    return replace(state, paused="", paused_until=None, then="")


def _until(now: float, end: float, length: float) -> bool:
    """Whether a pause of that length lasts that ends then; one that has not begun yet is from a wrong clock."""
    return end - length <= now < end


def _idle(state: State, at: float, failed: bool = False) -> State:
    """Back to observing, with nothing on trial."""
    return replace(
        state,
        phase=OBSERVING,
        since=at,
        then="",
        back_off=False,
        proposed=None,
        stage=0,
        leg=False,
        turns=0,
        passed=False,
        changes=(),
        aims=(),
        gain="",
        effects={},
        problem="",
        failures=state.failures + 1 if failed else state.failures,
        failed_at=at if failed else state.failed_at,
    )


def _judge(state: State, look: Look, policy: Policy, windows: int) -> judging.Judgement:
    return judging.judge(look.effects, look.allowed, state.aims, windows, policy, look.unseen)


def _gain(judgement: judging.Judgement) -> str:
    return judgement.words if judgement.gain else ""


def _detail(look: Look) -> Dict[str, Any]:
    return {"effects": [effect.to_dict() for effect in look.effects.values()]}


def _proposal(state: State) -> Proposed:
    if state.proposed is None:
        raise ValueError(f"phase {state.phase} needs a proposal")
    return state.proposed


def _stay(state: State, look: Look, policy: Policy) -> Decision:
    return Decision(state)


_LOOKS: Dict[str, Callable[[State, Look, Policy], Decision]] = {
    OBSERVING: _observing,
    ASKING: _stay,
    WAITING: _waiting,
    COMPARING: _comparing,
    WRITING: _interrupted,
    TRYING: _trying,
    HOLDING: _holding,
}

_HANDLERS: Dict[type, Callable[[State, Any, Policy], Decision]] = {
    Started: _on_start,
    OperatorCommand: _on_command,
    Look: _on_look,
    Answered: _on_answer,
    Wrote: _on_write,
    WriteFailed: _on_write_failure,
    TookBack: _on_take_back,
    TakeBackFailed: _on_take_back_failure,
    Kept: _on_keep,
}
