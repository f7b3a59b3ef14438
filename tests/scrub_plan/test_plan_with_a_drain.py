"""The whole plan: what a drain's pace costs at its beginning is part of the date."""

from __future__ import annotations

from typing import Mapping, Optional, Tuple

import pytest

from ceph_tuner.pacing.pace import Pace
from ceph_tuner.scrub_plan import ScrubView
from ceph_tuner.scrub_plan.plan import plan
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
    assert Pace().ramp_s(1.0, 30.0) == 0.0
    assert Pace().ramp_s(2.0, 30.0) == 15.0
    assert Pace(at_once=2).ramp_s(2.0, 30.0) == 0.0
