"""Objectives that work at the clients' pace is held to."""

from __future__ import annotations

from ceph_tuner.core.goals.slo import Slo, parse_objective
from ceph_tuner.core.goals.slo_calendar import SloCalendar, parse_slo_calendar
from ceph_tuner.pacing.wanted import WantedObjectives


def keeping(*texts: str) -> WantedObjectives:
    """These, at all times; an empty text is none."""
    objectives = tuple(parse_objective(text) for text in texts if text)
    return WantedObjectives.of(Slo("keep", objectives) if objectives else None)


def by_day_and_night(bound: str, night: str = "22:00-06:00") -> SloCalendar:
    """A bound by day, and none at night."""
    document = {
        "name": "by-day",
        "objectives": [f"client.p95_ms <= {bound}", "recovery.finish_s <= 12 h"],
        "calendar": {"policies": [{"name": "night", "hours": night, "without": ["client.p95_ms"]}]},
    }
    return parse_slo_calendar(document)
