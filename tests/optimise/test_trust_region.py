from __future__ import annotations

import math
from typing import List, Tuple

import numpy as np
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from small_problems import BOWL

from ceph_tuner.optimise import Options
from ceph_tuner.optimise.contract import Expected
from ceph_tuner.optimise.history import ToldTrial, measured
from ceph_tuner.optimise.model import Model
from ceph_tuner.optimise.proposal import _expected_to_gain, _successes, _Worth
from ceph_tuner.optimise.trust_region import SMALLEST, half_side

unhurried = hypothesis_settings(deadline=None)
outcomes = st.lists(st.booleans(), max_size=60)
limits = st.tuples(st.floats(SMALLEST, 1.0), st.floats(SMALLEST, 1.0)).map(sorted).map(tuple)


@unhurried
@given(outcomes, limits)
def test_it_stays_between_the_smallest_and_the_limit(successes: List[bool], limit: Tuple[float, float]) -> None:
    assert SMALLEST <= half_side(successes, *limit) <= limit[1]


@unhurried
@given(outcomes, limits)
def test_a_success_never_shrinks_it(successes: List[bool], limit: Tuple[float, float]) -> None:
    assert half_side([*successes, True], *limit) >= half_side(successes, *limit)


@unhurried
@given(outcomes, limits)
def test_a_failure_never_grows_it_but_where_it_starts_again(successes: List[bool], limit: Tuple[float, float]) -> None:
    before, after = (half_side(told, *limit) for told in (successes, [*successes, False]))
    assert after <= before or after == limit[0]


@unhurried
@given(limits)
def test_nothing_tried_is_the_first_step(limit: Tuple[float, float]) -> None:
    assert half_side([], *limit) == limit[0]


@unhurried
@given(limits)
def test_success_after_success_reaches_the_limit(limit: Tuple[float, float]) -> None:
    sides = [half_side([True] * count, *limit) for count in range(30)]
    assert sides == sorted(sides)
    assert sides[-1] == limit[1]


def test_failure_after_failure_shrinks_it_until_it_starts_again() -> None:
    sides = [half_side([False] * count, 0.2, 0.5) for count in range(60)]
    restarts = [now > before for before, now in zip(sides, sides[1:])]
    assert min(sides) < 0.05
    assert any(restarts)
    assert all(now == 0.2 for now, restart in zip(sides[1:], restarts) if restart)


def trial_at(a: float, expected_cost: float = math.nan) -> ToldTrial:
    settings = {"a": a, "b": 0.6}
    expected: Expected = {} if math.isnan(expected_cost) else {"cost": (expected_cost, expected_cost, expected_cost)}
    return ToldTrial(settings, measured(BOWL.truth(settings)), expected=expected)


def test_only_what_was_to_be_better_by_more_than_an_error_fails_by_not_being() -> None:
    start, here = BOWL.start["a"], BOWL.truth(BOWL.start)["cost"]
    lesson, attempt, repeat, small = (
        trial_at(0.2, here + 0.1),
        trial_at(0.25, here - 0.1),
        trial_at(start),
        trial_at(0.28, here - 1e-6),
    )
    trials = [trial_at(start), lesson, attempt, repeat, small, trial_at(0.4, here - 0.1), trial_at(0.35)]
    point = np.array(BOWL.space.encode(BOWL.start))
    model = Model(BOWL.space, ["cost", "heat"], BOWL.constraints, point, Options(), (), trials)
    means = model.at_trials.metric("cost")[0]
    worth = _Worth("cost", float(means.min()))
    # the attempt fails, the sixth trial succeeds, and of the last nobody said what was expected
    assert _successes(-means, _expected_to_gain(model, worth, -means)) == [False, True, False]
