r"""The automatic mode's state machine: (state, event, policy) to the next state and what is to be done.

    observing -> asking -> (waiting) -> comparing -> writing -> trying -> ... -> holding -> observing
                                                        \----------\------------> returning -> observing

The state goes to the store before what it wants is done, and each deed's outcome comes back as an event. Of the acts of
one decision at most one touches the cluster. Whatever is on trial is in the journal as a trial: should this process
die anywhere, the next active mgr takes it back and says so with `Started`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, Dict, Optional, Tuple

from ceph_tuner.core.autopilot.events import (
    Act,
    Answered,
    Event,
    Kept,
    Look,
    Note,
    OperatorCommand,
    Started,
    TakeBack,
    TakeBackFailed,
    TookBack,
    WriteFailed,
    Wrote,
)
from ceph_tuner.core.autopilot.phases import on_look
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
    AutopilotState,
    Proposed,
)
from ceph_tuner.core.autopilot.transitions import (
    AutopilotDecision,
    drop,
    going_on,
    idle_state,
    lesson,
    proposal_of,
    take_back,
)


def decide(state: AutopilotState, event: Event, policy: Policy) -> AutopilotDecision:
    """Take an event. Pure: the same arguments give the same decision."""
    return _HANDLERS[type(event)](state, event, policy)


def refusal(state: AutopilotState, what: str) -> Optional[str]:
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


def _on_start(state: AutopilotState, event: Started, policy: Policy) -> AutopilotDecision:
    detail: Dict[str, Any] = {"taken_back": list(event.taken_back), "phase": state.phase}
    if event.problem:
        stuck = replace(state, phase=RETURNING, since=event.at, back_off=True, problem=event.problem)
        return AutopilotDecision(stuck, (Note("stopped", event.problem, detail=detail),))
    if event.kept is not None and state.phase == WRITING:
        decision = _on_keep(state, Kept(event.at, event.kept), policy)
        return AutopilotDecision(
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
        return AutopilotDecision(state, (*acts, TakeBack(state.changes, "another mgr had begun to")))
    # the trial may be why the mgr died: the next one can wait, and not all mgrs are for dying of one
    trials = state.tried + 1 if state.on_cluster else state.tried
    return AutopilotDecision(replace(idle_state(state, event.at, failed=state.on_cluster), tried=trials), acts)


def _on_command(state: AutopilotState, event: OperatorCommand, policy: Policy) -> AutopilotDecision:
    if refusal(state, event.what) is not None:
        return AutopilotDecision(state)
    why = event.why or f"by {event.by}"
    if event.what in MODES:
        note = Note("mode", f"{state.mode} to {event.what}", event.by)
        successor = replace(going_on(state), mode=event.what, gave_up="", worker_failures=0)
        needs_approval = event.what == APPROVE and state.mode != APPROVE
        if event.what in (OFF, DRY_RUN) or (needs_approval and state.on_cluster):
            return drop(successor, event.at, f"switched {event.what} {why}", (note,))
        if needs_approval and state.phase == COMPARING:
            successor = replace(successor, phase=WAITING, since=event.at)
        if event.what == AUTO and state.phase == WAITING:
            successor = replace(successor, phase=COMPARING, since=event.at)
        return AutopilotDecision(successor, (note,))
    if event.what == "pause":
        state = replace(state, paused_until=None)
        return drop(state, event.at, f"paused {why}", (Note("paused", why, event.by),), then=f"paused {why}")
    if event.what == "resume":
        return AutopilotDecision(going_on(state), (Note("resumed", why, event.by),))
    if event.what == "retry":
        fresh = replace(going_on(state), gave_up="", tried=0, failures=0, declined_at=0.0, worker_failures=0)
        return AutopilotDecision(fresh, (Note("resumed", f"tries again {why}", event.by),))
    if event.what == "accept":
        return AutopilotDecision(
            replace(state, phase=COMPARING, since=event.at), (Note("approval", "approved", event.by),)
        )
    if event.what == "reject":
        idle = replace(idle_state(state, event.at), tried=state.tried + 1, declined_at=event.at)
        return AutopilotDecision(idle, (Note("approval", "rejected", event.by),))
    raise ValueError(f"what (={event.what!r}) is no command of the automatic mode")


def _on_answer(state: AutopilotState, event: Answered, policy: Policy) -> AutopilotDecision:
    if state.phase != ASKING:
        # it was switched off or paused meanwhile
        return AutopilotDecision(state)
    if event.refused:
        words = event.refused
        idle = replace(idle_state(state, event.at), worker_failures=state.worker_failures + 1)
        return AutopilotDecision(idle, (Note("refused", words),))
    if not event.settings or event.rollout is None:
        gave_up = replace(idle_state(state, event.at), gave_up=event.why, worker_failures=0)
        return AutopilotDecision(gave_up, (Note("gave up", event.why),))
    number = state.proposals + 1
    proposed = Proposed(number, dict(event.settings), event.why, event.rollout, event.forecast, event.unmoved)
    detail = {"settings": dict(event.settings), "canary": list(event.rollout.stages[0].targets)}
    state = replace(state, proposals=number, worker_failures=0)
    if state.mode == DRY_RUN:
        # the next one after a pause, not at the next window
        would = replace(idle_state(state, event.at), declined_at=event.at)
        return AutopilotDecision(would, (Note("would try", event.why, detail=detail),))
    phase = WAITING if state.mode == APPROVE else COMPARING
    successor = replace(state, phase=phase, since=event.at, proposed=proposed, stage=0, leg=False, gain="")
    return AutopilotDecision(successor, (Note("proposal", event.why, detail=detail),))


def _on_write(state: AutopilotState, event: Wrote, policy: Policy) -> AutopilotDecision:
    if not event.numbers and (state.last_stage or not state.changes):
        words = "the settings are in force already: there is nothing to try"
        return AutopilotDecision(replace(idle_state(state, event.at), tried=state.tried + 1), (Note("refused", words),))
    alternating = proposal_of(state).rollout.alternating
    changes = event.numbers if state.last_stage else (*state.changes, *event.numbers)
    phase = HOLDING if state.last_stage and (state.passed or not alternating) else TRYING
    turns = state.turns + 1 if alternating else 0
    return AutopilotDecision(replace(state, phase=phase, since=event.at, changes=changes, leg=alternating, turns=turns))


def _on_write_failure(state: AutopilotState, event: WriteFailed, policy: Policy) -> AutopilotDecision:
    successor = replace(state, changes=tuple(dict.fromkeys((*state.changes, *event.numbers))))
    if event.busy and not successor.changes:
        return AutopilotDecision(idle_state(state, event.at), (Note("proposal", f"dropped: {event.words}"),))
    why = event.words if event.rule else f"a write failed: {event.words}"
    return take_back(successor, Look(event.at), why, failure=True, rule=event.rule or "write failed")


def _on_take_back(state: AutopilotState, event: TookBack, policy: Policy) -> AutopilotDecision:
    acts: Tuple[Act, ...] = (Note("drift", "; ".join(event.drift)),) if event.drift else ()
    if state.phase == WRITING:
        # a turn of an alternating trial
        return AutopilotDecision(replace(state, phase=TRYING, since=event.at, changes=()), acts)
    idle = idle_state(state, event.at, failed=state.back_off)
    if state.then:
        until = state.paused_until
        acts = (*acts, Note("paused", state.then))
        idle = replace(idle, paused=state.then, paused_until=until)
    return AutopilotDecision(idle, acts)


def _on_take_back_failure(state: AutopilotState, event: TakeBackFailed, policy: Policy) -> AutopilotDecision:
    acts: Tuple[Act, ...] = () if event.words == state.problem else (Note("stopped", event.words),)
    return AutopilotDecision(replace(state, phase=RETURNING, problem=event.words), acts)


def _on_keep(state: AutopilotState, event: Kept, policy: Policy) -> AutopilotDecision:
    acts: Tuple[Act, ...] = ()
    if state.proposed is not None:
        acts = (lesson(state.proposed, state.effects, state.baseline),)
    successor = replace(idle_state(state, event.at), failures=0, tried=state.tried + 1, kept=event.number)
    return AutopilotDecision(successor, acts)


_HANDLERS: Dict[type, Callable[[AutopilotState, Any, Policy], AutopilotDecision]] = {
    Started: _on_start,
    OperatorCommand: _on_command,
    Look: on_look,
    Answered: _on_answer,
    Wrote: _on_write,
    WriteFailed: _on_write_failure,
    TookBack: _on_take_back,
    TakeBackFailed: _on_take_back_failure,
    Kept: _on_keep,
}
