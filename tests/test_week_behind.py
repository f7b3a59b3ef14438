"""Kept hours, held against a calendar."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import List

from ceph_tuner.core.goals.slo_calendar import SloCalendar, parse_slo_calendar
from ceph_tuner.core.goals.week_behind import HourAhead, hours_ahead, week_behind
from ceph_tuner.core.measure.sample import Measure, Window

MONDAY = datetime(2027, 3, 1, tzinfo=timezone.utc).timestamp()
HOUR_S = 3600.0


def calendar(zone: str = "UTC") -> SloCalendar:
    return parse_slo_calendar(
        {
            "name": "x",
            "objectives": ["client.p95_ms <= 20 ms", "recovery.bytes_s >= 8 MB/s"],
            "calendar": {
                "zone": zone,
                "policies": [
                    {"name": "office", "hours": "mon-fri 08:00-20:00", "objectives": ["client.p95_ms <= 8 ms"]}
                ],
            },
        }
    )


def hour(number: int, p95_ms: float, iops: float = 100.0, **others: float) -> Window:
    means = {"client.p95_ms": p95_ms, "client.iops": iops, **others}
    measures = {name: Measure(value, 0.0, 60) for name, value in means.items()}
    return Window(MONDAY + number * HOUR_S, MONDAY + (number + 1) * HOUR_S, measures)


def test_an_hour_is_held_against_the_policy_of_its_time() -> None:
    windows = [hour(7, 12.0), hour(8, 12.0), hour(19, 7.0), hour(21, 25.0)]
    past = week_behind(calendar(), windows)
    assert (past["windows"], past["from"], past["until"]) == (4, windows[0].start, windows[-1].end)
    assert [(each["start"], each["policy"]) for each in past["missed"]] == [
        (windows[1].start, "office"),
        (windows[3].start, "base"),
    ]
    (missed,) = past["missed"][0]["objectives"]
    assert missed == {"objective": "client.p95_ms <= 8 ms", "hard": True, "seen": 12.0}


def test_the_clock_is_that_of_the_calendar() -> None:
    # 07:00 UTC is 08:00 in Berlin
    assert [each["policy"] for each in week_behind(calendar("Europe/Berlin"), [hour(7, 12.0)])["missed"]] == ["office"]


def test_work_that_was_absent_is_no_miss_and_too_slow_work_is() -> None:
    absent = {"recovery.bytes_s": 0.0, "recovery.objects_left": 0.0}
    slow = {"recovery.bytes_s": 1e6, "recovery.objects_left": 9.0}
    assert week_behind(calendar(), [hour(1, 5.0, **absent)])["missed"] == []
    (missed,) = week_behind(calendar(), [hour(1, 5.0, **slow)])["missed"]
    assert missed["objectives"][0]["objective"].startswith("recovery.bytes_s")


def test_relative_bounds_refer_to_the_baseline() -> None:
    wanted = parse_slo_calendar({"name": "x", "objectives": ["client.p95_ms <= 1.5 * baseline"]})
    windows = [hour(1, 10.0)]
    assert week_behind(wanted, windows)["missed"] == []
    assert week_behind(wanted, windows, {"client.p95_ms": 8.0})["missed"] == []
    assert len(week_behind(wanted, windows, {"client.p95_ms": 5.0})["missed"]) == 1


def rows(windows: List[Window], days: int = 7) -> List[HourAhead]:
    return hours_ahead(calendar(), MONDAY, MONDAY + days * 24 * HOUR_S, windows)


def test_each_hour_has_each_policy_that_will_hold_in_it() -> None:
    named = [(each.hour, each.policy) for each in rows([])]
    assert len(named) == 24 + 12
    assert named[7:11] == [(7, "base"), (8, "base"), (8, "office"), (9, "base")]
    # Monday alone has no base at 9
    assert [(each.hour, each.policy) for each in rows([], 1)][8:10] == [(8, "office"), (9, "office")]


def test_clients_are_the_most_of_that_hour_under_that_policy() -> None:
    saturday = 5 * 24
    windows = [hour(9, 5.0, 300.0), hour(24 + 9, 5.0, 500.0), hour(saturday + 9, 5.0, 90.0), hour(3, 5.0, 40.0)]
    seen = {(each.hour, each.policy): each.client_iops for each in rows(windows)}
    assert seen[9, "office"] == 500.0
    assert seen[9, "base"] == 90.0
    assert seen[3, "base"] == 40.0
    assert seen[4, "base"] is None
    # nothing of a Saturday is kept: what the hour has
    assert {each.policy: each.client_iops for each in rows(windows[:2]) if each.hour == 9} == {
        "base": 500.0,
        "office": 500.0,
    }
