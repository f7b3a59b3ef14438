from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from scipy.stats import norm
from scipy.stats import t as student

from ceph_tuner.optimise.acquisition import log_expected_improvement, log_feasibility

unhurried = hypothesis_settings(deadline=None)

FAR = np.concatenate([-np.logspace(6, -3, 4000), np.logspace(-3, 3, 400)])
"""Deviations that the mean is below the incumbent."""


@unhurried
@given(st.floats(-6, 30), st.floats(-5, 5), st.floats(-3, 3))
def test_expected_improvement_is_the_textbooks(z: float, incumbent: float, log_deviation: float) -> None:
    deviation = np.exp(log_deviation)
    mean = incumbent - z * deviation
    z = (incumbent - mean) / deviation
    textbook = deviation * (z * norm.cdf(z) + norm.pdf(z))
    found = log_expected_improvement(np.array([mean]), np.array([deviation]), incumbent)
    # the textbook's own sum cancels for z below 0
    assert found == pytest.approx([np.log(textbook)], abs=1e-10 * np.exp(z**2 / 2 if z < 0 else 0.0) + 1e-9)


def test_far_above_the_incumbent_it_is_finite_and_still_tells_better_from_worse() -> None:
    found = log_expected_improvement(-FAR, np.ones_like(FAR), 0.0)
    assert np.isfinite(found).all()
    near = FAR > -9e3
    assert (np.diff(found[near]) > 0).all()
    assert (np.diff(found) >= 0).all()


def test_far_above_the_incumbent_it_is_the_series() -> None:
    # phi(z) / z^2 (1 - 3 / z^2 + ...): the asymptotic expansion of the same expectation
    z = np.array([-50.0, -200.0, -1000.0])
    series = norm.logpdf(z) - 2 * np.log(-z) + np.log1p(-3 / z**2)
    assert log_expected_improvement(-z, np.ones(3), 0.0) == pytest.approx(series, abs=1e-4)


def test_both_branches_meet() -> None:
    z = np.array([-1 - 1e-9, -1 + 1e-9])
    found = log_expected_improvement(-z, np.ones(2), 0.0)
    assert found[0] == pytest.approx(found[1], abs=1e-7)


@unhurried
@given(st.floats(0, 3), st.floats(-2, 1), st.floats(0.01, 2))
def test_of_what_looks_no_better_the_less_known_promises_more(mean: float, log_deviation: float, more: float) -> None:
    deviations = np.exp(log_deviation) * np.array([1.0, 1.0 + more])
    one, other = log_expected_improvement(np.array([mean, mean]), deviations, 0.0)
    assert other > one


@unhurried
@given(st.floats(-30, 5), st.floats(-3, 3))
def test_feasibility_is_the_probability_of_no_excess(z: float, log_deviation: float) -> None:
    deviation = np.exp(log_deviation)
    found = log_feasibility(np.array([-z * deviation]), np.array([deviation]))
    assert found == pytest.approx([norm.logcdf(z)], rel=1e-9)


def test_feasibility_is_finite_and_falls_with_the_excess() -> None:
    found = log_feasibility(np.logspace(-3, 6, 200), np.ones(200))
    assert np.isfinite(found).all()
    assert (np.diff(found) < 0).all()


@unhurried
@given(st.floats(-1e6, 30), st.floats(1.0, 30.0))
def test_with_longer_tails_it_is_students_and_finite_however_far(z: float, freedom: float) -> None:
    found = log_feasibility(np.array([-z]), np.ones(1), freedom)
    assert found == pytest.approx([student.logcdf(z, freedom)], rel=1e-6, abs=1e-9)
    assert np.isfinite(found).all()
