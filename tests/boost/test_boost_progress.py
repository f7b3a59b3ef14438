from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.boost.progress import MOST, Finish, Progress


def seen(rates: list[float], start: float = 100_000.0, step: float = 30.0) -> Progress:
    progress, left = Progress().after(0.0, start), start
    for number, rate in enumerate(rates, 1):
        left -= rate * step
        progress = progress.after(number * step, left)
    return progress


def forecast(progress: Progress) -> Finish:
    finish = progress.finish()
    assert finish is not None
    return finish


def test_nothing_is_told_of_one_window_or_of_none_left() -> None:
    assert Progress().finish() is None
    assert seen([]).finish() is None
    assert seen([10.0], start=300.0).finish() is None


def test_a_steady_rate_is_carried_on() -> None:
    finish = forecast(seen([50.0] * 10))
    # 85 000 are left at 300 s
    assert finish.expected == pytest.approx(300.0 + 1700.0)
    assert finish.earliest is not None
    assert finish.latest is not None
    assert finish.earliest < finish.expected < finish.latest
    assert finish.rate == pytest.approx(50.0)


def test_few_windows_have_no_interval_and_work_that_grows_no_end() -> None:
    finish = forecast(seen([50.0, 50.0]))
    assert (finish.latest, finish.rate) == (None, 50.0)
    assert forecast(seen([-5.0] * 8)).expected is None


def test_it_is_corrected_when_the_rate_changes() -> None:
    slow, fast = forecast(seen([20.0] * 5)), forecast(seen([20.0] * 5 + [60.0] * 5))
    assert slow.expected is not None
    assert fast.expected is not None
    assert fast.expected < slow.expected


def test_a_clock_that_was_set_back_begins_anew() -> None:
    progress = seen([50.0] * 5).after(10.0, 90_000.0)
    assert progress.points == ((10.0, 90_000.0),)


def test_copies_that_are_found_again_say_nothing_of_the_rate() -> None:
    progress = Progress()
    for number, (left, mended) in enumerate([(9000.0, 0.0), (8700.0, 300.0), (1400.0, 300.0), (1100.0, 300.0)]):
        progress = progress.after(30.0 * number, left, mended)
    finish = forecast(progress)
    assert finish.rate == pytest.approx(10.0)
    assert finish.expected == pytest.approx(90.0 + 110.0)
    # more of it than was mended: some was found, and nothing was worked on
    stopped = Progress().after(0.0, 1283.0, 0.0).after(30.0, 17.0, 0.0)
    assert forecast(stopped).expected is None


def test_only_the_newest_windows_count() -> None:
    progress = seen([900.0] * 5 + [5.0] * MOST, start=10_000_000.0)
    assert forecast(progress).rate == pytest.approx(5.0)


def test_the_interval_has_the_truth_in_nearly_all_windows_of_nearly_all_runs() -> None:
    """At any time: a run counts as wrong where one of its looks was."""
    wrong, runs = 0, 100
    for seed in range(runs):
        rng = random.Random(seed)
        rates = [max(0.0, rng.gauss(50.0, 10.0)) for _ in range(MOST)]
        progress, left, missed = Progress().after(0.0, 1e6), 1e6, False
        for number, rate in enumerate(rates, 1):
            left -= rate * 30.0
            progress = progress.after(number * 30.0, left)
            finish = progress.finish()
            truth = number * 30.0 + left / 50.0
            if finish is not None and finish.earliest is not None and finish.latest is not None:
                missed |= not finish.earliest <= truth <= finish.latest
        wrong += missed
    assert wrong <= 8


@given(st.lists(st.tuples(st.floats(0, 1e9), st.floats(0, 1e12)), max_size=60))
def test_any_points_give_an_end_after_the_last_one_or_none(points: list[tuple[float, float]]) -> None:
    progress = Progress()
    for at, left in points:
        progress = progress.after(at, left)
    finish = progress.finish()
    if finish is not None:
        last = progress.points[-1][0]
        ends = [end for end in (finish.earliest, finish.expected, finish.latest) if end is not None]
        assert ends == sorted(ends)
        assert all(end >= last and not math.isnan(end) for end in ends)
