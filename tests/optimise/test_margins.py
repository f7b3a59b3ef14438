from __future__ import annotations

from typing import List

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from ceph_tuner.optimise.margins import doubt, inflation, risk

unhurried = hypothesis_settings(deadline=None)
residuals = st.lists(st.floats(-50, 50), max_size=30).map(np.array)
outcomes = st.lists(st.booleans(), max_size=40)
shares = st.floats(0.001, 0.5)


@unhurried
@given(residuals)
def test_deviations_are_never_narrowed_nor_widened_without_bound(surprises: np.ndarray) -> None:
    assert 1.0 <= inflation(surprises) <= 4.0
    assert inflation(surprises) == inflation(-surprises)


@unhurried
@given(residuals, st.floats(1.0, 5.0))
def test_larger_surprises_widen_no_less(surprises: np.ndarray, factor: float) -> None:
    assert inflation(factor * surprises) >= inflation(surprises)


def test_a_model_that_is_twice_too_sure_is_widened_by_nearly_two_in_the_end() -> None:
    surprises = 2 * np.random.default_rng(1).standard_normal(400)
    assert 1.7 < inflation(surprises) < 2.1
    assert inflation(surprises[:4]) < inflation(surprises)


def test_a_model_that_keeps_its_word_is_left_alone() -> None:
    least = inflation(np.zeros(0))
    assert 1.0 < least < 1.5
    assert inflation(np.random.default_rng(1).standard_normal(400)) == least


@unhurried
@given(residuals, st.floats(1.0, 5.0))
def test_forecasts_that_were_further_off_call_for_no_less_doubt(errors: np.ndarray, factor: float) -> None:
    assert 1.0 <= doubt(errors) <= doubt(factor * errors) <= 4.0


def test_forecasts_that_came_true_call_for_none_and_those_that_were_twice_too_sure_for_nearly_two() -> None:
    errors = np.random.default_rng(1).standard_normal(400)
    assert doubt(np.zeros(0)) == 1.0
    assert doubt(errors) == pytest.approx(1.0, abs=0.05)
    assert 1.7 < doubt(2 * errors) < 2.1


@unhurried
@given(outcomes, shares)
def test_the_risk_is_never_above_what_was_asked_nor_nothing(violated: List[bool], asked: float) -> None:
    assert 0 < risk(violated, asked) <= asked


@unhurried
@given(outcomes, st.data(), shares)
def test_a_violation_more_never_raises_the_risk(violated: List[bool], data: st.DataObject, asked: float) -> None:
    worse = [before or data.draw(st.booleans()) for before in violated]
    assert risk(worse, asked) <= risk(violated, asked)


@unhurried
@given(outcomes, shares)
def test_a_violation_lowers_the_next_risk_and_success_does_not(violated: List[bool], asked: float) -> None:
    assert risk([*violated, True], asked) <= risk(violated, asked) <= risk([*violated, False], asked)


@unhurried
@given(outcomes, st.floats(0.05, 0.5))
def test_after_many_successes_the_risk_is_what_was_asked(violated: List[bool], asked: float) -> None:
    assert risk([*violated, *[False] * 500], asked) == asked


def test_nothing_seen_is_the_risk_asked_for() -> None:
    assert risk([], 0.05) == 0.05


@pytest.mark.parametrize("overconfident", [1.0, 2.0, 4.0])
def test_in_the_long_run_violations_are_as_rare_as_was_asked(overconfident: float) -> None:
    """Whoever takes a risk violates that many times as often as the models say."""
    random, asked = np.random.default_rng(7), 0.1
    violated: List[bool] = []
    for _ in range(1500):
        violated.append(bool(random.random() < overconfident * risk(violated, asked)))
    assert 0.5 * asked < np.mean(violated) < 1.25 * asked
