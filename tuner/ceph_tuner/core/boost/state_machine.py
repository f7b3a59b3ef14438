r"""The state machine of a boost: (state, event, policy) to the next state and what is to be done.

    off -> starting -> on -> ending -> off
                 \-----------/

It shares events, acts and executor with the automatic mode: the state goes to the store before what it wants is done,
and what is on the cluster is a trial in the journal. Should this process die, the guardian or the next active mgr takes
the settings back; the latter then begins again, within the same deadline.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, Optional, Tuple

from ceph_tuner.core.autopilot.audit_log import BOOST, BOOST_ENDED, DRIFT, FAILOVER, STOPPED
from ceph_tuner.core.autopilot.events import (
    Act,
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
from ceph_tuner.core.boost.events import Begin, Event, Request
from ceph_tuner.core.boost.kinds import KINDS
from ceph_tuner.core.boost.outcome import in_words, outcome_of
from ceph_tuner.core.boost.state import ENDING, OFF, ON, STARTING, BoostState
from ceph_tuner.core.moments import duration

CLEAN_S = 60.0
"""How long nothing must be left: peering and scrubs that end show no work for seconds."""
AGAIN_S = 60.0
"""After so long it tries to write again, where another tuner was at work: each attempt is a record in the trail."""
MOST_RESUMED = 3
"""Mgrs that go on with a boost: it may be why they die."""

CANCEL = "cancel"
CLEAN, TIME, CALENDAR, BY_OPERATOR, WRITE_FAILED, MGRS = "clean", "time", "calendar", "operator", "write failed", "mgrs"
"""Rules that end a boost, beside those of the guard."""
AS_WANTED = (CLEAN, CALENDAR, BY_OPERATOR)
"""Those whose end nobody has to look at: it is done, or people had said so before."""


@dataclass(frozen=True)
class BoostDecision:
    """What comes next: the state, and what is to be done, of which the last act alone has an outcome."""

    state: BoostState
    acts: Tuple[Act, ...] = ()

    def __post_init__(self) -> None:
        if any(not isinstance(act, Note) for act in self.acts[:-1]):
            raise ValueError(f"acts (={self.acts}) must be notes but for the last one")


def decide(state: BoostState, event: Event, policy: Policy) -> BoostDecision:
    """Take an event. Pure: the same arguments give the same decision."""
    return _HANDLERS[type(event)](state, event)


def refusal(state: BoostState, what: str) -> Optional[str]:
    """Why an operator's command makes no sense now; None where it does."""
    if what == CANCEL and state.phase == OFF:
        return "nothing is boosted"
    if what != CANCEL and state.request is not None:
        return f"a boost of {state.request.kind} is {state.phase} already"
    if what != CANCEL and state.phase != OFF:
        return "what another mgr left is being taken back"
    return None


def _on_begin(state: BoostState, event: Begin) -> BoostDecision:
    if state.phase != OFF:
        return BoostDecision(state)
    successor = BoostState(
        STARTING,
        event.at,
        event.request,
        dict(event.settings),
        event.grounds,
        begun=event.at,
        baseline=dict(event.baseline),
        rate_before=event.rate_before,
        forecast=dict(event.forecast),
        last=state.last,
    )
    return _write(successor, event.at)


def _on_command(state: BoostState, event: OperatorCommand) -> BoostDecision:
    if event.what != CANCEL or state.phase not in (STARTING, ON):
        return BoostDecision(state)
    why = event.why or f"cancelled by {event.by}"
    return _end(state, Look(event.at, event.means, mended=event.mended), why, BY_OPERATOR, event.by)


def _on_look(state: BoostState, look: Look) -> BoostDecision:
    if state.phase == OFF:
        return BoostDecision(state)
    if state.phase == ENDING:
        return BoostDecision(state, (TakeBack(state.changes, state.why),))
    if state.writing:
        return _end(state, look, "a write was interrupted before it began", WRITE_FAILED)
    if look.breach is not None:
        return _end(state, look, look.breach.reason, look.breach.rule)
    remainder = _remainder(state, look)
    if state.time_is_up(look.at):
        over = f"{duration(_request(state).at_most_s)} are over"
        if remainder == 0 and state.clean_since is not None:
            # one look alone may be of PGs that peer
            return _end(state, look, f"no {KINDS[_request(state).kind].what} are left, and {over}", CLEAN)
        return _end(state, look, over, TIME)
    if remainder == 0:
        return _clean(state, look)
    state = replace(state, clean_since=None)
    waits = bool(state.problem) and 0 <= look.at - state.since < AGAIN_S
    if state.phase == STARTING and look.means and not waits:
        # another mgr's: only once something is seen, as the guard compares with what was before
        return _write(state, look.at)
    return BoostDecision(state)


def _clean(state: BoostState, look: Look) -> BoostDecision:
    # a clock that was set back begins to count anew
    if state.clean_since is None or look.at < state.clean_since:
        return BoostDecision(replace(state, clean_since=look.at))
    if look.at - state.clean_since < CLEAN_S:
        return BoostDecision(state)
    return _end(state, look, f"no {KINDS[_request(state).kind].what} are left for {duration(CLEAN_S)}", CLEAN)


def _on_write(state: BoostState, event: Wrote) -> BoostDecision:
    if state.phase != STARTING:
        return BoostDecision(state)
    if not event.numbers:
        return _end(state, Look(event.at), "its settings are in force already", CLEAN)
    return BoostDecision(replace(state, phase=ON, since=event.at, writing=False, changes=event.numbers))


def _on_write_failure(state: BoostState, event: WriteFailed) -> BoostDecision:
    if state.phase != STARTING:
        return BoostDecision(state)
    if event.busy and state.resumed and not event.numbers:
        # it waits for the lock, until time is up
        return BoostDecision(replace(state, writing=False, problem=event.words))
    if event.busy and event.untouched:
        # as if it had been refused: another tuner came between the look for one and the write
        return BoostDecision(BoostState(since=event.at, last=state.last, problem=event.words))
    state = replace(state, changes=event.numbers)
    why = event.words if event.rule else f"its settings cannot be written: {event.words}"
    return _end(state, Look(event.at), why, event.rule or WRITE_FAILED)


def _on_take_back(state: BoostState, event: TookBack) -> BoostDecision:
    acts: Tuple[Act, ...] = (Note(DRIFT, "; ".join(event.drift)),) if event.drift else ()
    return BoostDecision(BoostState(since=event.at, last=state.last), acts)


def _on_take_back_failure(state: BoostState, event: TakeBackFailed) -> BoostDecision:
    acts: Tuple[Act, ...] = () if event.words == state.problem else (Note(STOPPED, event.words),)
    return BoostDecision(replace(state, phase=ENDING, problem=event.words), acts)


def _on_start(state: BoostState, event: Started) -> BoostDecision:
    detail = {"taken_back": list(event.taken_back), "phase": state.phase}
    if event.problem:
        note_of_stop = Note(STOPPED, event.problem, detail=detail)
        if state.phase in (STARTING, ON):
            # it does not go on, which people and the rules are to know; the next look takes it back
            end = _end(state, Look(event.at), event.problem, WRITE_FAILED)
            return BoostDecision(replace(end.state, problem=event.problem), (note_of_stop, end.acts[0]))
        stuck = replace(state, phase=ENDING, since=event.at, problem=event.problem, writing=False)
        return BoostDecision(stuck, (note_of_stop,))
    numbers = ", ".join(map(str, event.taken_back))
    words = f"another mgr became active: {f'took back changes {numbers}' if numbers else 'nothing to undo'}"
    note = Note(FAILOVER, words, detail=detail)
    if state.phase == OFF:
        return BoostDecision(state, (note,) if event.taken_back else ())
    if state.phase == ENDING:
        return BoostDecision(state, (note, TakeBack(state.changes, state.why)))
    successor = replace(state, phase=STARTING, since=event.at, writing=False, changes=(), resumed=state.resumed + 1)
    if state.resumed >= MOST_RESUMED:
        end = _end(successor, Look(event.at), f"{state.resumed + 1} mgrs ended while it was on", MGRS)
        return BoostDecision(end.state, (note, *end.acts))
    return BoostDecision(successor, (note,))


def _write(state: BoostState, at: float) -> BoostDecision:
    request = _request(state)
    detail: Dict[str, Any] = {
        "targets": [request.target],
        "settings": dict(state.settings),
        "left": KINDS[request.kind].left_in(state.baseline),
        "at_most_s": request.at_most_s,
        "keep": list(request.keep),
    }
    why = f"boost of {request.kind}: {state.grounds}"
    note = Note(BOOST, why, request.by, detail)
    write = Write((request.target,), state.settings, why, forecast=state.forecast)
    return BoostDecision(replace(state, phase=STARTING, since=at, writing=True, problem=""), (note, write))


def _end(state: BoostState, look: Look, why: str, rule: str, by: str = "automatic mode") -> BoostDecision:
    """Take it back: never waits for anybody."""
    last = outcome_of(state, look.at, look.means, why, rule, state.clean_since, look.mended)
    successor = replace(state, phase=ENDING, since=look.at, writing=False, why=why, rule=rule, last=last)
    note = Note(BOOST_ENDED, f"boost of {_request(state).kind}: {why}; {in_words(last)}", by, last)
    return BoostDecision(successor, (note, TakeBack(state.changes, why)))


def _remainder(state: BoostState, look: Look) -> Optional[float]:
    return KINDS[_request(state).kind].left_in(look.means)


def _request(state: BoostState) -> Request:
    if state.request is None:
        raise ValueError(f"phase {state.phase} needs a request")
    return state.request


_HANDLERS: Dict[type, Callable[[BoostState, Any], BoostDecision]] = {
    Begin: _on_begin,
    OperatorCommand: _on_command,
    Look: _on_look,
    Wrote: _on_write,
    WriteFailed: _on_write_failure,
    TookBack: _on_take_back,
    TakeBackFailed: _on_take_back_failure,
    Started: _on_start,
}
