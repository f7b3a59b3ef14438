r"""The state machine of the book: (state, event, limits) to the next state and what is to be done.

    resting -> switching -> watching -> holding
       ^           ^____________|__________|
       |______ returning _______|__________|

It shares events, acts and executor with the automatic mode: the state goes to the store before what it wants is done.
A page is a trial in the journal while it is written and watched. Should this process die then, the guardian or the next
active mgr takes all of the book's settings back. A page that was watched to the end stands as any change does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

from ceph_tuner.core.autopilot.audit_log import BOOK, BOOK_BACK, BOOK_MODE, DRIFT, FAILOVER, STOPPED
from ceph_tuner.core.autopilot.events import (
    Keep,
    Kept,
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
from ceph_tuner.core.autopilot.phases import BY_HAND
from ceph_tuner.core.book.events import OFF, ON, BookLook, Replace, Strike
from ceph_tuner.core.book.limits import BookLimits
from ceph_tuner.core.book.page import Page, same_settings
from ceph_tuner.core.book.state import HOLDING, HOUR_S, RESTING, RETURNING, SWITCHING, WATCHING, BookState
from ceph_tuner.core.goals.guard import Breach

AGAIN_S = 60.0
"""After so long it tries to write again where another tuner was at work: each attempt is a record in the trail."""
MOST_DEATHS = 3
"""Mgrs that end while a switch is made or watched, after which the book is off: it may be why they die."""
OBJECTIVE = "slo"
"""The guard's rule for which a page is struck."""


@dataclass(frozen=True)
class BookDecision:
    """What comes next: the state, and what is to be done, of which the last act alone has an outcome."""

    state: BookState
    acts: Tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if any(not isinstance(act, (Note, Strike)) for act in self.acts[:-1]):
            raise ValueError(f"acts (={self.acts}) must be notes and strikes but for the last one")


def decide(state: BookState, event: Any, limits: BookLimits) -> BookDecision:
    """Take an event. Pure: the same arguments give the same decision."""
    return _HANDLERS[type(event)](state, event, limits)


def refusal(state: BookState, what: str) -> Optional[str]:
    """Why an operator's command makes no sense now; None where it does."""
    if what == ON and state.on and not state.then:
        return "it is on already"
    if what == OFF and not (state.on or state.stands or state.stopped):
        return "it is off already"
    return None


def no_page(look: BookLook) -> str:
    """That the regime has no page to use, and which of its pages another policy may use."""
    pages = ", ".join(str(page.number) for page in look.left_out)
    but = f" (left out while the policy {look.policy} holds: {pages})" if pages else ""
    return f"the book has no page to use for the regime {look.regime}{but}"


def why_not_now(state: BookState, look: BookLook, limits: BookLimits) -> str:
    """Why no other page may be written now; empty where one may."""
    if look.hours or look.wait:
        return look.hours or look.wait
    if _spent(state, limits):
        return f"{limits.switches} switches in an hour (book_switches)"
    if state.switches and 0 <= look.at - state.switches[-1] < limits.dead_time:
        return f"the last switch is less than {limits.dead_time:g} s ago (book_dead_time)"
    if state.problem and 0 <= look.at - state.since < AGAIN_S:
        return state.problem
    return ""


def _looked(state: BookState, look: BookLook, limits: BookLimits) -> BookDecision:
    # after a clock that was ahead, what is watched is watched from now on, and not until that time comes
    state = replace(_forgetting(state, look.at, limits), since=min(state.since, look.at))
    state = _without_doubts(state, look)
    if state.phase == RETURNING:
        return BookDecision(state, (TakeBack(state.changes, state.then or "tried again"),))
    if state.phase == SWITCHING:
        return _back(state, look.at, "a write was interrupted before it began")
    if state.stands and look.breach is not None:
        return _broken(state, look, limits)
    if state.stands and look.gone:
        return _back(state, look.at, look.gone)
    if state.stands and look.hours and not look.wait:
        # whatever the regime, which may not be told yet
        return _back(state, look.at, look.hours)
    if not state.on or not look.regime:
        return BookDecision(state)
    return _in_force(state, look, limits) if state.stands else _resting(state, look, limits)


def _resting(state: BookState, look: BookLook, limits: BookLimits) -> BookDecision:
    page = look.page
    if page is None or (state.page and not same_settings(page, state.target, state.settings)):
        state = replace(state, page=0, target="", settings={})
    state = replace(state, regime=look.regime, policy=look.policy)
    if page is None or state.page or why_not_now(state, look, limits):
        return BookDecision(replace(state, page=page.number) if page is not None and state.page else state)
    return _switch(state, look, page)


def _in_force(state: BookState, look: BookLook, limits: BookLimits) -> BookDecision:
    page = look.page
    same = page is not None and same_settings(page, state.target, state.settings)
    if look.wait and not (same and state.phase == WATCHING):
        # somebody's trial may lie over it: neither another page nor the way back now
        return BookDecision(state)
    if look.hours:
        return _back(state, look.at, look.hours)
    if page is None:
        return _back(state, look.at, no_page(look))
    if same:
        state = replace(state, page=page.number, regime=look.regime, policy=look.policy)
        watched = state.phase == WATCHING and look.at - state.since >= limits.watch
        return BookDecision(state, (Keep(state.changes[-1]),) if watched else ())
    if _spent(state, limits):
        return _back(state, look.at, why_not_now(state, look, limits))
    if why_not_now(state, look, limits):
        return BookDecision(state)
    return _switch(state, look, page)


def _switch(state: BookState, look: BookLook, page: Page) -> BookDecision:
    why = f"page {page.number} for the regime {look.regime} ({page.state}, {page.origin})"
    detail: Dict[str, Any] = {
        "page": page.number,
        "regime": look.regime,
        "targets": [page.target],
        "settings": dict(page.settings),
        "instead of": state.page,
    }
    switching = replace(
        state,
        phase=SWITCHING,
        since=look.at,
        regime=look.regime,
        policy=look.policy,
        next_page=page.number,
        next_target=page.target,
        next_settings=dict(page.settings),
        baseline=dict(look.means),
        problem="",
    )
    act: Any = Write((page.target,), page.settings, why)
    if state.changes:
        act = Replace(state.changes[-1], page.target, page.settings, why)
    return BookDecision(switching, (Note(BOOK, why, detail=detail), act))


def _broken(state: BookState, look: BookLook, limits: BookLimits) -> BookDecision:
    """What the guard saw ends the page: struck where it broke an objective in its regime, else left out for a while.

    A strike is about the policy that holds, where another one may find no fault with the page.
    """
    breach = look.breach
    if breach is None:
        return BookDecision(state)
    if breach.rule in BY_HAND:
        # who changes settings by hand does not want to race a machine
        return _back(state, look.at, breach.reason, breach.rule, then=f"somebody intervened: {breach.reason}")
    in_regime = look.regime == state.regime and not look.doubtful
    strikes = _strikes(state.page, breach, look.policy) if in_regime else ()
    # what is left out under a policy comes again as that ends
    rested = state if strikes and look.policy else _rested(state, state.page, look.at, limits)
    if breach.rule == OBJECTIVE and not in_regime:
        policy = look.policy if look.regime else state.policy
        rested = replace(rested, doubts={**rested.doubts, state.page: _under(state.regime, policy)})
    return _back(rested, look.at, breach.reason, breach.rule, strikes=strikes)


def _strikes(page: int, breach: Breach, policy: str) -> Tuple[Strike, ...]:
    return (Strike(page, f"{breach.rule}: {breach.reason}", policy),) if page and breach.rule == OBJECTIVE else ()


def _told(state: BookState, event: OperatorCommand, limits: BookLimits) -> BookDecision:
    if refusal(state, event.what) is not None:
        return BookDecision(state)
    why = event.why or f"by {event.by}"
    note = Note(BOOK_MODE, f"switched {event.what}: {why}", event.by)
    if event.what == ON:
        # what is in force by a page is so for longer
        since = state.since if state.stands else event.at
        on = replace(state, on=True, since=since, then="", stopped="", rests={}, doubts={}, deaths=0, problem="")
        return BookDecision(on, (note,))
    state = replace(state, on=False, then="", stopped="")
    if not state.stands:
        return BookDecision(replace(state, page=0, target="", settings={}, regime="", policy=""), (note,))
    return _back(state, event.at, f"switched off: {why}", by=event.by)


def _wrote(state: BookState, event: Wrote, limits: BookLimits) -> BookDecision:
    if state.phase != SWITCHING:
        return BookDecision(state)
    wrote = replace(
        state,
        phase=WATCHING if event.numbers else RESTING,
        since=event.at,
        page=state.next_page,
        target=state.next_target,
        settings=state.next_settings,
        changes=event.numbers,
        switches=(*state.switches, event.at),
    )
    return BookDecision(_nothing_next(wrote))


def _write_failed(state: BookState, event: WriteFailed, limits: BookLimits) -> BookDecision:
    if state.phase == WATCHING and event.busy:
        # who lost the lock cannot keep it, and others take it for a dead one's trial
        return _back(state, event.at, f"it cannot be made permanent: {event.words}", "write failed")
    if state.phase == WATCHING:
        # it could not be made permanent: the next look tries again
        return BookDecision(replace(state, problem=event.words))
    if state.phase != SWITCHING:
        return BookDecision(state)
    if event.busy and not state.changes and not event.numbers:
        return BookDecision(_nothing_next(replace(state, phase=RESTING, since=event.at, page=0, problem=event.words)))
    why = event.words if event.rule else f"page {state.next_page} cannot be written: {event.words}"
    strikes = _strikes(state.next_page, Breach(event.rule, event.words), state.policy)
    failed = state if event.busy or (strikes and state.policy) else _rested(state, state.next_page, event.at, limits)
    changes = tuple(dict.fromkeys((*state.changes, *event.numbers)))
    return _back(replace(failed, changes=changes), event.at, why, event.rule or "write failed", strikes=strikes)


def _kept(state: BookState, event: Kept, limits: BookLimits) -> BookDecision:
    if state.phase != WATCHING:
        return BookDecision(state)
    return BookDecision(replace(state, phase=HOLDING, since=event.at, deaths=0, problem=""))


def _took_back(state: BookState, event: TookBack, limits: BookLimits) -> BookDecision:
    acts = (Note(DRIFT, "; ".join(event.drift)),) if event.drift else ()
    if event.drift and state.on and not state.then:
        # else the next page would be written over what somebody wants there
        state = replace(state, then=f"somebody intervened: {event.drift[0]}")
    return BookDecision(_at_rest(state, event.at), acts)


def _take_back_failed(state: BookState, event: TakeBackFailed, limits: BookLimits) -> BookDecision:
    # what an operator switched off broke nothing: it holds until whoever has the lock is done
    waits = event.busy and (state.waits or not state.on)
    acts = () if waits or event.words == state.problem else (Note(STOPPED, event.words),)
    return BookDecision(replace(state, phase=RETURNING, problem=event.words, waits=waits), acts)


def _started(state: BookState, event: Started, limits: BookLimits) -> BookDecision:
    detail = {"taken_back": list(event.taken_back), "phase": state.phase}
    if event.problem:
        stuck = replace(state, phase=RETURNING, since=event.at, problem=event.problem)
        return BookDecision(stuck, (Note(STOPPED, event.problem, detail=detail),))
    numbers = ", ".join(map(str, event.taken_back))
    done = f"took back changes {numbers}" if numbers else "nothing to undo"
    note = Note(FAILOVER, f"another mgr became active while {state.phase}: {done}", detail=detail)
    if state.phase == RETURNING:
        return BookDecision(state, (note, TakeBack(state.changes, state.then or "another mgr had begun to")))
    if event.kept is not None and state.stands:
        # the change stands: nothing was written yet, or it had been watched to its end
        return BookDecision(_nothing_next(replace(state, phase=HOLDING, since=event.at, problem="")), (note,))
    if state.phase == RESTING:
        return BookDecision(state, (note,) if event.taken_back else ())
    if state.phase == HOLDING and not event.taken_back:
        then = "somebody took back the change of the book"
        return BookDecision(_at_rest(replace(state, then=then), event.at), (note, Note(STOPPED, then)))
    deaths = state.deaths + 1
    then = f"{deaths} mgrs ended while a switch was made or watched" if deaths >= MOST_DEATHS else ""
    if event.drift:
        # else the next page would be written over what somebody wants there
        then = f"somebody intervened: {event.drift[0]}"
    acts = (note, Note(STOPPED, then)) if then else (note,)
    return BookDecision(_at_rest(replace(state, deaths=deaths, then=then), event.at), acts)


def _back(
    state: BookState,
    at: float,
    why: str,
    rule: str = "",
    then: str = "",
    by: str = "automatic mode",
    strikes: Tuple[Strike, ...] = (),
) -> BookDecision:
    """Take it back: to what was there before the book."""
    note = Note(BOOK_BACK, why, by, {"rule": rule, "page": state.page or state.next_page, "regime": state.regime})
    back = replace(state, phase=RETURNING, since=at, then=then or state.then)
    return BookDecision(back, (note, *strikes, TakeBack(state.changes, why)))


def _at_rest(state: BookState, at: float) -> BookState:
    """With nothing of the book on the cluster."""
    rest = _nothing_next(replace(state, phase=RESTING, since=at, page=0, target="", settings={}, changes=()))
    off = bool(state.then)
    return replace(
        rest,
        on=state.on and not off,
        stopped=state.then or state.stopped,
        then="",
        problem="",
        waits=False,
        baseline={},
        regime="",
        policy="",
    )


def _nothing_next(state: BookState) -> BookState:
    return replace(state, next_page=0, next_target="", next_settings={})


def _rested(state: BookState, page: int, at: float, limits: BookLimits) -> BookState:
    if not page:
        return state
    doubts = {other: regime for other, regime in state.doubts.items() if other != page}
    return replace(state, rests={**state.rests, page: at + limits.rest}, doubts=doubts)


def _without_doubts(state: BookState, look: BookLook) -> BookState:
    """Without rests of pages that broke as their regime ended: another one, or another policy, holds since."""
    if not look.regime or not state.doubts:
        return state
    now = _under(look.regime, look.policy)
    over = {page for page, doubted in state.doubts.items() if doubted != now}
    rests = {page: until for page, until in state.rests.items() if page not in over}
    doubts = {page: doubted for page, doubted in state.doubts.items() if page in rests}
    return replace(state, rests=rests, doubts=doubts)


def _under(regime: str, policy: str) -> str:
    return f"{regime} under {policy}" if policy else regime


def _forgetting(state: BookState, at: float, limits: BookLimits) -> BookState:
    """Without switches and rests that are over."""
    rests: Mapping[int, float] = {
        page: until for page, until in state.rests.items() if at < until <= at + limits.rest + HOUR_S
    }
    return replace(state, rests=rests, switches=state.switches_within_an_hour(at))


def _spent(state: BookState, limits: BookLimits) -> bool:
    return len(state.switches) >= limits.switches


def _blind(state: BookState, look: Look, limits: BookLimits) -> BookDecision:
    return _looked(state, BookLook(look.at, look.means, breach=look.breach), limits)


_HANDLERS: Dict[type, Callable[[BookState, Any, BookLimits], BookDecision]] = {
    BookLook: _looked,
    Look: _blind,
    OperatorCommand: _told,
    Wrote: _wrote,
    WriteFailed: _write_failed,
    Kept: _kept,
    TookBack: _took_back,
    TakeBackFailed: _take_back_failed,
    Started: _started,
}
