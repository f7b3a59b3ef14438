"""The whole plan: what a drain's pace costs at its beginning is part of the date."""

from __future__ import annotations

from dataclasses import replace
from typing import Mapping, Optional, Tuple

import pytest

from ceph_tuner.cluster.sampler import OSDS_MAX
from ceph_tuner.pacing.pace import Pace
from ceph_tuner.scrub_plan import ScrubView
from ceph_tuner.scrub_plan.beginning import Beginning, places_for
from ceph_tuner.scrub_plan.pace import Expectation
from ceph_tuner.scrub_plan.plan import plan
from ceph_tuner.scrub_plan.rates import usual_pace
from overdue import HOUR, MB, NOW, daily, pg, rate, view

KEPT = {"": ("client.p95_ms <= 20 ms",)}
LATE = [
    pg(f"1.{number}", 1, raw_bytes=60 * MB, scrub_s=60.0, acting=(2 * number, 2 * number + 1)) for number in range(4)
]


def gone_s(clusters_view: ScrubView, objectives: Optional[Mapping[str, Tuple[str, ...]]], window_s: float) -> float:
    found = plan(clusters_view, daily(rate(3 * MB)), objectives, days=1, window_s=window_s).schedule.gone_at
    assert found is not None
    return found - NOW


@pytest.mark.parametrize("window_s", [15.0, 30.0, 60.0])
def test_a_date_reckons_with_a_first_window_and_one_more_scrub_after_each(window_s: float) -> None:
    without = gone_s(view(LATE), None, window_s)
    # three scrubs at a time come to the rate: a window without any, one with one and one with two
    assert gone_s(view(LATE), KEPT, window_s) == pytest.approx(without + window_s * (1 + 2 / 3 + 1 / 3))


def test_osds_that_take_one_scrub_at_a_time_need_no_ramp() -> None:
    (one, *_) = LATE
    assert gone_s(view([one], max_scrubs=1), KEPT, 30.0) == pytest.approx(
        gone_s(view([one], max_scrubs=1), None, 30.0) + 30
    )


def test_the_ramp_lies_in_the_first_hour_that_is_open() -> None:
    open_later = view(LATE, hours=(2, 6))
    assert gone_s(open_later, None, 30.0) > 2 * HOUR
    assert gone_s(open_later, KEPT, 30.0) == pytest.approx(gone_s(open_later, None, 30.0) + 60)


def test_a_ramp_is_as_long_as_the_pace_itself_takes() -> None:
    assert Pace().ramp(1.0) == []
    assert Pace().ramp(2.0) == [0.5]
    assert Pace().ramp(11.0) == [number / 11 for number in (1, 2, 3, 4, 5, 6, 7, 8, 10)]
    assert Pace(at_once=2).ramp(2.0) == []


def test_a_ramp_that_is_longer_than_what_is_left_of_an_hour_goes_on_in_the_next() -> None:
    late = replace(view(LATE), at=NOW + HOUR - 20.0)
    dates = [plan(late, daily(rate(3 * MB)), kept, days=1, window_s=30.0).schedule.gone_at for kept in (None, KEPT)]
    assert dates[0] is not None
    assert dates[1] == pytest.approx(dates[0] + 60)


@pytest.mark.parametrize(("osds", "seconds"), [(OSDS_MAX, 30.0), (OSDS_MAX + 1, 60.0)])
def test_where_the_plugin_s_minutes_judge_a_drain_the_date_reckons_with_them(osds: int, seconds: float) -> None:
    large = replace(view(LATE), hosts={osd: f"h{osd}" for osd in range(osds)})
    assert gone_s(large, KEPT, 30.0) == pytest.approx(gone_s(large, None, 30.0) + 2 * seconds)


def test_a_drain_s_date_is_that_of_the_plan_and_stays_while_the_pace_grows_as_foreseen() -> None:
    seen = view(LATE)
    beginning = Beginning(30.0, places_for(seen.pgs, seen.rules.max_scrubs), usual_pace(seen.pgs))
    found, done = Expectation(daily(rate(3 * MB)), trusted_bytes=60 * MB), 0.0
    assert found.finish_at(NOW, 240 * MB, seen.rules, beginning=beginning) == pytest.approx(NOW + 80 + 60)
    assert found.finish_at(NOW, 240 * MB, seen.rules) == pytest.approx(NOW + 80)
    beginning, factors = replace(beginning, at=NOW), []
    for ten_s in range(12):
        done += 10.0 * MB * min(3, ten_s // 3)
        at = NOW + 10.0 * ten_s
        found = found.after(at, 10.0, done, beginning=beginning)
        left = 240 * MB - done
        assert found.finish_at(at + 10, left, seen.rules, beginning=beginning) == pytest.approx(NOW + 140, abs=0.1)
        factors.append(found.factor)
    assert factors == pytest.approx([1.0] * 12)
