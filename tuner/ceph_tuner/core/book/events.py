"""What happens to the book beside what happens to any trial (`autopilot/events.py`), and what it wants done beside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Optional, Tuple

from ceph_tuner.core.autopilot.events import Look
from ceph_tuner.core.book.page import Page

ON, OFF = "on", "off"
"""Words of an operator."""


@dataclass(frozen=True)
class BookLook(Look):
    """A look with the regime that holds and its page. `wait`: who else is at work; `means`: of the last minute."""

    regime: str = ""
    """Empty before one is told."""
    page: Optional[Page] = None
    """What is to hold; None: what was there before the book."""
    others: Tuple[Page, ...] = ()
    """What would hold in each other regime that has a page to use."""
    hours: str = ""
    """Why no page may be in force now, by the operator's hours; empty where one may."""
    policy: str = ""
    """Of the calendar, which holds and which the regime's name lacks; empty where there is none."""
    left_out: Tuple[Page, ...] = ()
    """Pages of the regime that are not used while that policy holds."""
    gone: str = ""
    """Why what is in force may not stay, whatever the regime; empty where it may."""
    doubtful: bool = False
    """Whether a breach may be no fault of the page: the regime seems to end, or moments are all there is."""


@dataclass(frozen=True)
class Replace:
    """Put other settings in place of those of a change in force. Answered by `Wrote` or `WriteFailed`."""

    number: int
    target: str
    settings: Mapping[str, Any]
    why: str


@dataclass(frozen=True)
class Strike:
    """Strike a page from the book. It has no outcome: it is tried until it is done, and nothing is written before.

    `policy`: that which holds and which the regime's name lacks. Under another one the page may do well: see
    `Book.blamed`.
    """

    number: int
    reason: str
    policy: str = ""
