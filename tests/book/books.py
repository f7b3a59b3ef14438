"""What the tests of the book share: pages, looks, and its executor on the fake monitors."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from flights import Field

from ceph_tuner.core.book.book import StoredBook
from ceph_tuner.core.book.events import BookLook
from ceph_tuner.core.book.executor import BY, BookExecutor
from ceph_tuner.core.book.limits import BookLimits
from ceph_tuner.core.book.page import STRUCK, TRIAL, VALIDATED, Page
from ceph_tuner.core.changes.standing import StandingApplier
from ceph_tuner.core.goals.guard import Breach
from monitors import TENTACLE

PROFILE = "osd_mclock_profile"
LIMITS = BookLimits(watch=60.0)


def page(number: int = 1, regime: str = "busy", state: str = VALIDATED, **more: Any) -> Page:
    reason = "it was bad" if state == STRUCK else ""
    usual: Dict[str, Any] = {"settings": {"osd_max_scrubs": number}, "origin": TRIAL, "at": 1000.0 + number}
    return Page(number, regime, state=state, **{"reason": reason, **usual, **more})


def look(at: float, held: Optional[Page], regime: str = "busy", breach: str = "", **more: Any) -> BookLook:
    broken = Breach(breach, f"{breach} broken") if breach else None
    return BookLook(at, {"client.p95_ms": 20.0}, breach=broken, regime=regime, page=held, **more)


def executor(field: Field, name: str = "mgr.a", limits: Callable[[], BookLimits] = lambda: LIMITS) -> BookExecutor:
    def hands() -> Any:
        _, lock = field.hands(f"{name}{BY}")
        return StandingApplier(field.monitors, field.store, field.clock, lock, TENTACLE, f"{name}{BY}"), lock

    told = field.recorder
    return BookExecutor(field.store, hands, told, (told,), field.clock, limits, StoredBook(field.store))
