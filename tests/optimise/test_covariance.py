from __future__ import annotations

from typing import Tuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sklearn.base import clone

from ceph_tuner.optimise.contract import Array
from ceph_tuner.optimise.gp_kernel import CONSTANT, CURVE, NOISE, SLOPE, VARIANCES, PlaneAndCurve

unhurried = hypothesis_settings(deadline=None, max_examples=60)
unit = st.floats(-1.0, 1.0)
logarithm = st.floats(-4.0, 3.0)


@st.composite
def kernels(draw: st.DrawFn) -> Tuple[PlaneAndCurve, Array]:
    """A kernel and points of it, some of them twice."""
    size, priors, count = draw(st.integers(1, 4)), draw(st.integers(0, 2)), draw(st.integers(1, 6))
    variances = np.exp(draw(st.lists(logarithm, min_size=VARIANCES + priors, max_size=VARIANCES + priors)))
    lengths = np.exp(draw(st.lists(st.floats(-1.5, 2.0), min_size=size, max_size=size)))
    row = st.lists(unit, min_size=size + priors, max_size=size + priors)
    points = np.array(draw(st.lists(row, min_size=count, max_size=count)))
    return PlaneAndCurve(variances, lengths), np.vstack([points, points[:1]])


@unhurried
@given(kernels())
def test_the_gradient_is_that_of_finite_differences(drawn: Tuple[PlaneAndCurve, Array]) -> None:
    kernel, points = drawn
    covariance, gradient = kernel(points, eval_gradient=True)
    assert np.array_equal(covariance, kernel(points))
    theta, step = kernel.theta.copy(), 1e-5
    for index in range(len(theta)):
        ends = []
        for sign in (1.0, -1.0):
            moved = theta.copy()
            moved[index] += sign * step
            ends.append(kernel.clone_with_theta(moved)(points))
        slope = (ends[0] - ends[1]) / (2 * step)
        assert gradient[:, :, index] == pytest.approx(slope, rel=1e-4, abs=1e-6 * (1 + np.abs(covariance).max()))


@unhurried
@given(kernels())
def test_it_is_symmetric_and_positive_semidefinite(drawn: Tuple[PlaneAndCurve, Array]) -> None:
    kernel, points = drawn
    covariance = kernel(points)
    assert covariance == pytest.approx(covariance.T, rel=1e-12)
    # of the metric itself, where no noise on the diagonal helps
    exact = kernel(points, points)
    assert np.linalg.eigvalsh((exact + exact.T) / 2).min() >= -1e-7 * np.trace(exact)


@unhurried
@given(kernels())
def test_the_variances_are_the_diagonal_without_the_noise(drawn: Tuple[PlaneAndCurve, Array]) -> None:
    kernel, points = drawn
    diagonal = np.diag(kernel(points)) - kernel.variances[NOISE]
    assert kernel.diag(points) == pytest.approx(diagonal, rel=1e-6, abs=1e-6)
    assert kernel.diag(points) == pytest.approx(np.diag(kernel(points, points)), rel=1e-6, abs=1e-6)


@unhurried
@given(kernels())
def test_logarithms_of_the_hyperparameters_read_back(drawn: Tuple[PlaneAndCurve, Array]) -> None:
    kernel, points = drawn
    again = clone(kernel).clone_with_theta(kernel.theta)
    assert again(points) == pytest.approx(kernel(points))
    assert len(kernel.theta) == len(kernel.bounds) == len(kernel.lengths) + len(kernel.variances)


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (CONSTANT, [1.0, 1.0]),
        (SLOPE, [0.2**2 + 0.4**2, -0.2 * 0.4 + 0.4 * 0.1]),
        # Matern 5/2 of the distance 3 by its formula
        (CURVE, [1.0, (1 + 5**0.5 * 3 + 5 * 3**2 / 3) * np.exp(-(5**0.5) * 3)]),
        (VARIANCES, [0.5**2, 0.5 * -2.0]),
    ],
)
def test_each_part_is_its_formula(part: int, expected: list) -> None:
    variances = np.zeros(VARIANCES + 1)
    variances[part] = 1.0
    offset = np.array([0.6, 0.3])
    kernel = PlaneAndCurve(variances, offset / np.sqrt(4.5))
    point, other = np.array([[0.2, 0.4, 0.5]]), np.array([[-0.4, 0.1, -2.0]])
    assert [kernel(point, point)[0, 0], kernel(point, other)[0, 0]] == pytest.approx(expected)
