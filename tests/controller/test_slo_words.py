"""What a CephSLO's status says of an SLO."""

from __future__ import annotations

from typing import Any

from ceph_tuner.controller.slos import KEY, SloPart
from ceph_tuner.core.goals.slo_calendar import parse_slo_calendar
from monitors import ManualClock


def words(document: Any) -> str:
    commander: Any = None
    return SloPart(commander, ManualClock()).words(KEY, document and parse_slo_calendar(document).to_dict())


def test_a_status_names_the_policies_and_their_hours() -> None:
    policies = [
        {"name": "office", "hours": "mon-fri 08:00-20:00", "objectives": ["client.p95_ms <= 8 ms"]},
        {
            "name": "night",
            "hours": "mon-thu 22:00-06:00",
            "without": ["client.p95_ms"],
            "objectives": ["ops.slow <= 0"],
        },
    ]
    calendar = {"zone": "Europe/Berlin", "policies": policies}
    said = words({"name": "x", "objectives": ["client.p95_ms <= 20 ms"], "calendar": calendar})
    assert said == "the SLO x (office mon-fri 08:00-20:00; night mon-thu 22:00-06:00; else base; Europe/Berlin)"


def test_a_status_has_room_for_some_policies() -> None:
    policies = [
        {"name": f"p{day}", "hours": f"{name} 08:00-09:00", "objectives": ["client.p95_ms <= 8 ms"]}
        for day, name in enumerate(("mon", "tue", "wed", "thu", "fri", "sat", "sun"))
    ]
    said = words({"name": "x", "objectives": ["ops.slow <= 0"], "calendar": {"policies": policies}})
    assert "p4 fri 08:00-09:00 and 2 more; else base" in said


def test_one_without_a_calendar_is_its_name() -> None:
    assert words({"name": "x", "objectives": ["ops.slow <= 0"]}) == "the SLO x"
    assert words(None) == "no objectives"
