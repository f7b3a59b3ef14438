"""The book's switching in words, for people."""

from __future__ import annotations

from typing import Any, Callable, List, Mapping, Optional, Sequence

from ceph_tuner.core.book.events import BookLook
from ceph_tuner.core.book.limits import BookLimits
from ceph_tuner.core.book.page import Page, same_settings
from ceph_tuner.core.book.state import HOLDING, PHASES, RESTING, WATCHING, BookState
from ceph_tuner.core.book.state_machine import no_page, why_not_now
from ceph_tuner.core.goals.slo_calendar import BASE
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.core.moments import duration, utc, utc_minute
from ceph_tuner.core.regimes.bounds import IDLE
from ceph_tuner.core.regimes.telling import AnyTurn, MarkerTurn, PolicyTurn
from ceph_tuner.core.wording import digits, first_of

MOST_NAMED = 8
"""Regimes or pages that a line names."""
BOOK_OFF = "the book is off"


def explain(
    state: BookState,
    look: Optional[BookLook],
    limits: BookLimits,
    now: float,
    turns: Sequence[AnyTurn] = (),
    beside: str = "",
    tells: Callable[[str], bool] = lambda regime: True,
) -> List[str]:
    """Say what is in force, for which regime, what comes next, what would switch it, and what stands against it.

    `turns`: the markers of the regime that holds, and what would turn each. `beside`: which other work of the tuner
    the book waits for now, in words. `tells`: whether such a regime is ever told.
    """
    if not state.on and not state.stands:
        why = f": {state.stopped}" if state.stopped else ""
        return [f"{BOOK_OFF}{why}"]
    # states of older versions have no moment where no page was ever in force
    since = f" since {utc(state.since)}" if state.since else ""
    lines = [f"the book is {'on' if state.on else 'off'}, {state.phase}{since}: {PHASES[state.phase]}"]
    if state.page:
        words = "has what is in force anyway" if state.phase == RESTING else "is in force"
        lines.append(f"page {state.page} {words}, for the regime {state.regime}")
    if state.phase == WATCHING:
        lines.append(f"the guard watches it as a trial for {duration(max(state.since + limits.watch - now, 0.0))} more")
    if state.phase in (WATCHING, HOLDING):
        lines.append("it goes where a hard objective is broken, where somebody changes its values, or by `book off`")
    if state.waits:
        lines.append(f"that waits, and is done with the first sample after it: {state.problem}")
    elif state.problem:
        lines.append(f"that failed, and is tried again: {state.problem}")
    coming = _next(state, look, limits) if look is not None and look.regime else []
    lines += coming
    if beside and not state.waits and not any(beside in line for line in coming):
        lines.append(f"the book waits: {beside}")
    if look is not None and look.regime:
        lines += _switches(look, turns, now, tells)
    if look is not None and look.left_out and look.page is not None:
        left_out = ", ".join(str(page.number) for page in look.left_out)
        lines.append(f"pages of the regime that are left out while the policy {look.policy} holds: {left_out}")
    if state.rests:
        pages = ", ".join(f"{page} until {utc(until)}" for page, until in sorted(state.rests.items()))
        lines.append(f"pages that are left out for a while: {pages}")
    used = len(state.switches_within_an_hour(now))
    lines.append(f"{used} of {limits.switches} switches of this hour were made")
    return lines


def preview(look: BookLook, unused: Sequence[int]) -> List[str]:
    """Say what `book on` would do now, while the book is off.

    `unused`: numbers of pages that would not be used, as no trial validated them here.
    """
    page, why = look.page, look.hours or look.wait
    if not look.regime:
        lines = ["`book on` would wait until samples tell the regime"]
    elif page is None:
        lines = [f"`book on` would change nothing now: {no_page(look)}"]
    else:
        shown = f"{page.state} by {page_origin(page.to_dict())}"
        waits = f", and wait with it: {why}" if why else ""
        lines = [f"`book on` would put page {page.number} ({shown}) in force, for the regime {look.regime}{waits}"]
    if look.others:
        names = first_of((f"{each.regime} (page {each.number})" for each in look.others), MOST_NAMED)
        lines.append(f"it would switch in {names}")
    if page is not None or look.others:
        lines.append("`book off` brings back what is there now")
    if unused:
        numbers = first_of(map(str, unused), MOST_NAMED)
        lines.append(f"no trial here validated pages {numbers}: for their use see `book pin` and book_unvalidated")
    return lines


def page_words(page: Mapping[str, Any]) -> str:
    """What speaks for a page in its plain form, or against it. Plugins of earlier versions know of no policy in it."""
    against = [f"left out under {policy}: {why}" for policy, why in page.get("left_out", {}).items()]
    return str(page["reason"]) or "; ".join(against) or str(page["verdict"])


def page_origin(page: Mapping[str, Any]) -> str:
    """What the evidence of a page in its plain form is, and which policy it is about where that is not the base."""
    policy = page.get("policy", "")
    return f"{page['origin']} under {policy}" if policy not in ("", BASE) else str(page["origin"])


def _next(state: BookState, look: BookLook, limits: BookLimits) -> List[str]:
    page = look.page
    if page is None:
        return [f"{no_page(look)}: what was there before it holds"]
    if state.page and same_settings(page, state.target, state.settings):
        return []
    why = why_not_now(state, look, limits)
    return [f"page {page.number} is for the regime {look.regime}{f', and waits: {why}' if why else ''}"]


def _switches(look: BookLook, turns: Sequence[AnyTurn], now: float, tells: Callable[[str], bool]) -> List[str]:
    """Which other regimes would switch it and what would have to turn for that, and what seems to turn now."""
    lines = [
        _switch(page, look, turns)
        if tells(page.regime)
        else f"page {page.number} is for {page.regime}, and the present bounds tell no such regime"
        for page in look.others
    ]
    if not lines:
        lines.append("no other regime has a page to use: another one would bring back what was there before the book")
    elif look.page is not None:
        lines.append("a regime without a page would bring back what was there before the book")
    for turn in turns:
        if isinstance(turn, MarkerTurn) and turn.against is not None:
            seen = f"the samples of the last {duration(now - turn.against)} speak"
            lines.append(f"{seen} for {_turn(turn)}")
    return lines


def _switch(page: Page, look: BookLook, turns: Sequence[AnyTurn]) -> str:
    names = [] if page.regime == IDLE else page.regime.split("+")
    wanted = [turn for turn in turns if turn.name in names]
    needed = [_turn(turn) for turn in turns if turn.on != (turn in wanted)]
    same = look.page is not None and same_settings(page, look.page.target, look.page.settings)
    does = "would have the same settings" if same else "would switch it"
    return f"{page.regime} (page {page.number}) {does}, once {' and '.join(needed) or 'it is told'}"


def _turn(turn: AnyTurn) -> str:
    """`busy is on: client.iops at 5000/s or more for 60 s (1200/s now)`."""
    if isinstance(turn, PolicyTurn):
        side, way = ("off", "ends") if turn.on else ("on", "begins")
        never = "not within a year" if turn.in_calendar else "the calendar has no such policy"
        when = never if turn.at is None else utc_minute(turn.at)
        return f"{turn.name} is {side}: as the policy {turn.policy} {way} ({when})"
    unit = METRICS[turn.metric].unit if turn.metric in METRICS else "1"
    side, way = ("off", "less") if turn.on else ("on", "more")
    bound, value = (_amount(each, unit) for each in (turn.bound, turn.value))
    return f"{turn.name} is {side}: {turn.metric} at {bound} or {way} for {duration(turn.hold_s)} ({value} now)"


def _amount(value: Optional[float], unit: str) -> str:
    if value is None:
        return "an unknown value"
    return digits(value) if unit == "1" else f"{digits(value)}{unit[1:] if unit.startswith('1/') else f' {unit}'}"
