"""Markers of regimes that name a policy of the objectives' calendar, and the pages of the book that wait for them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import List, Optional, Sequence, Tuple

from ceph_tuner.core.book.book import Book, StoredBook
from ceph_tuner.core.book.page import STRUCK
from ceph_tuner.core.ceph.ports import Store
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo_calendar import SloCalendar
from ceph_tuner.core.regimes.bounds import DEFAULT, PolicyMarker, RegimeBounds, stored_bounds


@dataclass(frozen=True)
class PolicyMarkers:
    """The bounds of regimes, and the book."""

    bounds: RegimeBounds
    book: Book

    @classmethod
    def stored(cls, store: Store) -> PolicyMarkers:
        """Those of a cluster. What cannot be read is as if there were none: others say so."""
        bounds, book = DEFAULT, Book()
        with suppress(InputError):
            bounds = stored_bounds(store)
            book = StoredBook(store).read() if bounds.of_policies else book
        return cls(bounds, book)

    def never_on(self, calendar: Optional[SloCalendar]) -> List[str]:
        """A line for each marker whose policy a calendar does not have, with the pages that wait for it."""
        lines: List[str] = []
        for marker in without_policy(self.bounds, calendar.policy_names if calendar is not None else ()):
            pages = [
                str(page.number)
                for page in self.book.pages
                if page.state != STRUCK and self.bounds.policy_of(page.regime) == marker.policy
            ]
            wait = f"; pages of the book that wait for it: {', '.join(pages)}" if pages else ""
            lines.append(f"{never_on(marker)}{wait}")
        return lines


def without_policy(bounds: RegimeBounds, names: Sequence[str]) -> Tuple[PolicyMarker, ...]:
    """Markers whose policy is none of a calendar's."""
    return tuple(marker for marker in bounds.of_policies if marker.policy not in names)


def never_on(marker: PolicyMarker) -> str:
    """What a marker comes to whose policy the calendar does not have."""
    return f"the marker {marker.name} is never on: the calendar has no policy {marker.policy}"
