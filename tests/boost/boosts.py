"""What the tests of boosts share: boosts on the fake monitors."""

from __future__ import annotations

from typing import Any, Dict, Optional

from flights import QUICK, Field

from ceph_tuner.core.autopilot.events import Look
from ceph_tuner.core.boost.events import Begin, Request
from ceph_tuner.core.boost.executor import BY, BoostExecutor
from ceph_tuner.core.goals.guard import Breach
from ceph_tuner.core.measure.forecast_record import ForecastInterval, ForecastRecord

LEFT = "recovery.objects_left"
SETTINGS: Dict[str, Any] = {"osd_mclock_profile": "high_recovery_ops", "osd_max_scrubs": 6}
FORECAST = ForecastRecord(1.0, "a twin", 0.9, {"recovery.copies_s": ForecastInterval(9.0, 8.0, 10.0)}).to_dict()
HOUR = 3600.0


def request(kind: str = "recovery", at_most_s: float = HOUR, **more: Any) -> Request:
    return Request(kind, at_most_s, **more)


def begin(at: float, wanted: Optional[Request] = None, **settings: Any) -> Begin:
    means = {LEFT: 1000.0, "recovery.copies_s": 2.0}
    return Begin(at, wanted or request(), settings or SETTINGS, "a test", means, 2.0, FORECAST)


def seen(at: float, left: Optional[float] = 500.0, breach: str = "") -> Look:
    means = {} if left is None else {LEFT: left}
    return Look(at, means, breach=Breach(breach, f"{breach} broken") if breach else None)


def executor(field: Field, name: str = "mgr.a") -> BoostExecutor:
    told = field.recorder
    return BoostExecutor(field.store, lambda: field.hands(f"{name}{BY}"), told, (told,), field.clock, lambda: QUICK)
