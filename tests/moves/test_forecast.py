from __future__ import annotations

import math
import random
from typing import List, Tuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.hours import Hours, parse_hours
from ceph_tuner.core.measure.sample import Measure, Window
from ceph_tuner.moves import LAST_STEPS
from ceph_tuner.moves.forecast import LONGEST_S, FinishTime, MoveForecast, open_s, rough_by_moves, rough_time
from ceph_tuner.pacing.objectives import held_bounds
from keeping import keeping

ALWAYS = Hours(())
MIDNIGHT = 1_795_219_200.0
"""A Saturday, in UTC."""


def test_before_a_step_has_ended_nothing_is_known() -> None:
    assert MoveForecast().finish(0.0, 0.0, 1, 100.0, ALWAYS) is None
    done = MoveForecast().finish(5.0, 0.0, 0, 0.0, ALWAYS)
    assert done is not None
    assert (done.mean, done.low, done.high) == (5.0, 5.0, 5.0)


def test_the_pace_of_the_last_steps_tells_the_end() -> None:
    forecast = MoveForecast().after(1, 1e9, 10.0).after(1, 1e9, 10.0)
    found = forecast.finish(1000.0, 1000.0, 5, 5e9, ALWAYS)
    assert found is not None
    assert found.mean == pytest.approx(1050.0, abs=0.5)
    assert found.low is not None
    assert found.high is not None
    # two steps that took as long as each other say little of how far the next ones may differ
    assert found.low < 1040.0
    assert found.high > 1060.0


def test_small_pgs_say_how_long_a_pg_takes_and_nothing_of_the_large_ones() -> None:
    forecast = MoveForecast()
    for _ in range(10):
        forecast = forecast.after(1, 8e3, 6.0)
    small, large = (forecast.finish(0.0, 0.0, 26, size, ALWAYS) for size in (26 * 8e3, 26 * 40e9))
    assert small is not None
    assert large is not None
    assert small.mean == pytest.approx(26 * 6.0, rel=0.02)
    assert small.high is not None
    assert small.high < 1.3 * 26 * 6.0
    # nothing was seen of the data: 40 GB at 50 MB/s each, give or take a factor of ten
    assert large.mean == pytest.approx(26 * (6.0 + 800.0), rel=0.02)
    assert large.high is not None
    assert large.high > 10 * 26 * 800.0
    for _ in range(5):
        forecast = forecast.after(1, 40e9, 2000.0)
    found = forecast.finish(0.0, 0.0, 26, 26 * 40e9, ALWAYS)
    assert found is not None
    assert found.mean == pytest.approx(26 * 2000.0, rel=0.02)
    again = forecast.finish(0.0, 0.0, 26, 26 * 8e3, ALWAYS)
    assert again is not None
    assert again.mean == pytest.approx(26 * 6.0, rel=0.1)


@given(
    st.lists(st.tuples(st.integers(1, 64), st.floats(0, 1e13), st.floats(0.1, 1e6)), min_size=1, max_size=25),
    st.integers(1, 10_000),
    st.floats(0, 1e15),
)
def test_whatever_the_steps_were_the_mean_is_within_its_interval(
    steps: List[Tuple[int, float, float]], pgs: int, size: float
) -> None:
    forecast = MoveForecast()
    for step in steps:
        forecast = forecast.after(*step)
    found = forecast.finish(0.0, 0.0, pgs, size, ALWAYS)
    assert found is not None
    ends = [math.inf if end is None else end for end in (found.low, found.mean, found.high)]
    assert 0 <= ends[0] <= ends[1] <= ends[2]


def test_the_interval_holds_about_as_often_as_promised() -> None:
    chance, inside = random.Random(7), 0
    for _ in range(300):
        forecast = MoveForecast()
        for _ in range(12):
            forecast = forecast.after(1, 1e9, chance.gauss(50.0, 15.0))
        found = forecast.finish(0.0, 0.0, 1000, 1e12, ALWAYS)
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        inside += found.low <= 50_000.0 <= found.high
    assert 0.84 <= inside / 300 <= 0.96


def test_closed_hours_are_added() -> None:
    forecast = MoveForecast().after(1, 180e9, 3600.0).after(1, 180e9, 3600.0)
    found = forecast.finish(MIDNIGHT, MIDNIGHT, 3, 540e9, parse_hours("00:00-02:00"))
    assert found is not None
    assert found.mean == pytest.approx(MIDNIGHT + 25 * 3600, abs=60)


def test_an_end_is_never_past() -> None:
    forecast = MoveForecast().after(1, 100.0, 10.0)
    found = forecast.finish(1000.0, 0.0, 1, 100.0, ALWAYS)
    assert found is not None
    assert found.mean == 1000.0


@pytest.mark.parametrize("hours", [ALWAYS, parse_hours("sun 00:00-00:01")])
def test_beyond_a_year_there_is_no_date(hours: Hours) -> None:
    found = MoveForecast().after(1, 1.0, 10.0).finish(0.0, 0.0, 1, 100 * LONGEST_S * 1e6, hours)
    assert found is not None
    assert found.mean is None


@pytest.mark.parametrize(
    ("start", "end", "seconds"), [(-1800, 1800, 1800), (1800, 86400 + 1800, 7200), (9000, 9100, 0), (100, 50, 0)]
)
def test_open_seconds_between_two_moments(start: float, end: float, seconds: float) -> None:
    assert open_s(MIDNIGHT + start, MIDNIGHT + end, parse_hours("00:00-02:00")) == seconds
    assert open_s(start, end, ALWAYS) == max(0, end - start)


def seen(**means: float) -> Window:
    """A minute of a cluster."""
    named = {"client.p95_ms": 10.0, "client.iops": 100.0, "backfill.objects_s": 1.0, "recovery.bytes_s": 1e6}
    values = {**named, **{name.replace("__", "."): value for name, value in means.items()}}
    return Window(0.0, 60.0, {name: Measure(value, 0.0, 5) for name, value in values.items()})


BOUNDS = held_bounds(keeping("client.p95_ms <= 20").at(0.0).slo, {})


def test_windows_without_backfill_or_with_recovery_tell_nothing_of_a_move() -> None:
    others = [seen(backfill__objects_s=0.0), seen(recovery__copies_s=3.0, recovery__bytes_s=9e6)]
    assert rough_time(others, BOUNDS, 0.0, 1e6, ALWAYS) is None
    found = rough_time([*others, seen()], BOUNDS, 100.0, 60e6, ALWAYS)
    assert found is not None
    assert (found.seconds, found.finish) == (60.0, FinishTime(160.0, None, None))
    assert found.by.startswith("1 kept window with backfill: for the bytes alone")


def test_windows_that_missed_an_objective_count_with_their_time_alone() -> None:
    found = rough_time([seen(), seen(client__p95_ms=30.0, recovery__bytes_s=9e6)], BOUNDS, 0.0, 60e6, ALWAYS)
    assert found is not None
    assert found.seconds == 120.0
    assert rough_time([seen(client__p95_ms=30.0)], BOUNDS, 0.0, 60e6, ALWAYS) is None


def test_a_rough_time_counts_open_hours_alone() -> None:
    found = rough_time([seen()], {}, MIDNIGHT, 3 * 3600e6, parse_hours("02:00-04:00"))
    assert found is not None
    assert (found.seconds, found.finish.mean) == (3 * 3600.0, MIDNIGHT + 86400 + 3 * 3600)
    never = rough_time([seen()], {}, MIDNIGHT, 2 * LONGEST_S * 1e6, ALWAYS)
    assert never is not None
    assert never.finish.mean is None


def test_the_last_steps_of_earlier_moves_tell_small_pgs_seconds() -> None:
    steps = ((1, 8e3, 90.0), *[(2, 16e3, 12.0)] * LAST_STEPS)
    found = rough_by_moves(steps, MIDNIGHT, 26, 26 * 8e3, ALWAYS)
    assert found is not None
    assert found.seconds == pytest.approx(26 * 6.0, rel=0.02)
    assert found.finish.mean == pytest.approx(MIDNIGHT + found.seconds)
    assert found.finish.low is not None
    assert found.finish.high is not None
    assert found.finish.low < found.finish.mean < found.finish.high
    assert found.by == f"the last {2 * LAST_STEPS} PGs of earlier moves"
    assert rough_by_moves((), MIDNIGHT, 26, 1e6, ALWAYS) is None
    assert rough_by_moves(steps, MIDNIGHT, 0, 0.0, ALWAYS) is None
