"""The book's switching in words, for people."""

from __future__ import annotations

from typing import List, Optional

from ceph_tuner.core.book.events import BookLook
from ceph_tuner.core.book.limits import BookLimits
from ceph_tuner.core.book.page import same_settings
from ceph_tuner.core.book.state import HOLDING, PHASES, RESTING, WATCHING, BookState
from ceph_tuner.core.book.state_machine import why_not_now
from ceph_tuner.core.moments import duration, utc

BOOK_OFF = "the book is off"


def explain(state: BookState, look: Optional[BookLook], limits: BookLimits, now: float) -> List[str]:
    """Say what is in force, for which regime, what comes next, and what stands against it."""
    if not state.on and not state.stands:
        why = f": {state.stopped}" if state.stopped else ""
        return [f"{BOOK_OFF}{why}"]
    lines = [f"the book is on, {state.phase} since {utc(state.since)}: {PHASES[state.phase]}"]
    if state.page:
        words = "has what is in force anyway" if state.phase == RESTING else "is in force"
        lines.append(f"page {state.page} {words}, for the regime {state.regime}")
    if state.phase == WATCHING:
        lines.append(f"the guard watches it as a trial for {duration(max(state.since + limits.watch - now, 0.0))} more")
    if state.phase in (WATCHING, HOLDING):
        lines.append("it goes where a hard objective is broken, where somebody changes its values, or by `book off`")
    if state.problem:
        lines.append(f"that failed, and is tried again: {state.problem}")
    if look is not None and look.regime:
        lines += _next(state, look, limits)
    if state.rests:
        pages = ", ".join(f"{page} until {utc(until)}" for page, until in sorted(state.rests.items()))
        lines.append(f"pages that are left out for a while: {pages}")
    used = len(state.switches_within_an_hour(now))
    lines.append(f"{used} of {limits.switches} switches of this hour were made")
    return lines


def _next(state: BookState, look: BookLook, limits: BookLimits) -> List[str]:
    page = look.page
    if page is None:
        return [f"the book has no page to use for the regime {look.regime}: what was there before it holds"]
    if state.page and same_settings(page, state.target, state.settings):
        return ["another regime that has a page of other settings, or none, would switch it"]
    why = why_not_now(state, look, limits)
    return [f"page {page.number} is for the regime {look.regime}{f', and waits: {why}' if why else ''}"]
