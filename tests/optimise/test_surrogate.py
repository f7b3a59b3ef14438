from __future__ import annotations

from typing import Callable, Optional, Tuple

import numpy as np
import pytest
from skopt.space import Real

from ceph_tuner.optimise import Measured, MixedSpace, Options
from ceph_tuner.optimise.contract import Array
from ceph_tuner.optimise.history import ToldTrial
from ceph_tuner.optimise.model import Model
from ceph_tuner.optimise.surrogate import Data, Surrogate, robust_fit, scale_of

pytestmark = pytest.mark.slow

SIZE = 4
Metric = Callable[[Array], Array]


def plane(random: np.random.Generator) -> Metric:
    """A plane with deviation 1 over the cube."""
    slope = random.standard_normal(SIZE)
    slope *= np.sqrt(12) / np.linalg.norm(slope)
    return lambda points: points @ slope


def curve(random: np.random.Generator) -> Metric:
    """A few slow waves."""
    slopes, phases = random.standard_normal((4, SIZE)) * 2, random.uniform(0, 6, 4)
    return lambda points: np.sin(points @ slopes.T + phases).sum(axis=1)


def unstated(count: int) -> Array:
    """Errors of measurements that say nothing of them."""
    return np.full(count, np.nan)


def fitted(
    metric: Metric,
    count: int,
    noise: float,
    random: np.random.Generator,
    prior: Optional[Metric] = None,
    known_error: bool = False,
) -> Tuple[Surrogate, Callable[[Array], Array]]:
    """Measure at random points of the cube; gives the surrogate, and the way from points to its inputs."""
    points, start = random.random((count, SIZE)), np.full((1, SIZE), 0.5)

    def inputs(at: Array) -> Array:
        columns = [] if prior is None else [(prior(at) - prior(start))[:, None]]
        return np.hstack([at - start, *columns])

    means = metric(points) + noise * random.standard_normal(count)
    errors = np.full(count, noise if known_error else np.nan)
    scale = scale_of(points, means, errors, None) if prior is None else float(prior(random.random((256, SIZE))).std())
    return Surrogate(Data(inputs(points), SIZE, means, errors), scale), inputs


def error(metric: Metric, count: int, seed: int, prior: Optional[Metric] = None) -> float:
    """Root mean square over the cube."""
    random = np.random.default_rng(seed)
    surrogate, inputs = fitted(metric, count, 0.02, random, prior)
    points = random.random((300, SIZE))
    return float(np.sqrt(np.mean((surrogate.predict(inputs(points))[0] - metric(points)) ** 2)))


@pytest.mark.parametrize("seed", range(4))
def test_a_plane_is_known_from_few_points(seed: int) -> None:
    assert error(plane(np.random.default_rng(seed)), SIZE + 4, seed) < 0.1


@pytest.mark.parametrize(
    ("noise", "known_error", "share"),
    # noise that nobody told of has to be learnt from the same ten points
    [(0.02, False, 0.85), (0.05, True, 0.85), (0.05, False, 0.7)],
)
def test_intervals_hold_nearly_what_they_promise_and_say_something(
    noise: float, known_error: bool, share: float
) -> None:
    inside, widths = [], []
    for seed in range(25):
        random = np.random.default_rng(seed)
        metric = plane(random)
        surrogate, inputs = fitted(metric, 10, noise, random, known_error=known_error)
        points = random.random((100, SIZE))
        mean, deviation = surrogate.predict(inputs(points))
        inside.append(np.abs(metric(points) - mean) <= 1.645 * deviation)
        widths.append(deviation.mean())
    assert np.mean(inside) >= share
    assert np.mean(widths) < 0.3


def test_where_it_was_measured_it_is_surer_than_far_away() -> None:
    random = np.random.default_rng(3)
    metric = curve(random)
    surrogate, inputs = fitted(metric, 12, 0.02, random)
    corners = np.array([[0.0] * SIZE, [1.0] * SIZE])
    middle = np.full((1, SIZE), 0.5)
    assert surrogate.predict(inputs(corners))[1].min() > surrogate.predict(inputs(middle))[1][0]


@pytest.mark.parametrize(("factor", "trust"), [(1.0, 1.0), (2.0, 0.5), (0.5, 2.0)])
def test_a_priors_scale_is_learnt(factor: float, trust: float) -> None:
    for seed in range(4):
        random = np.random.default_rng(seed)
        metric = curve(random)
        surrogate, _ = fitted(metric, 14, 0.02, random, prior=lambda points, f=metric: factor * f(points))
        assert surrogate.trust == pytest.approx([trust], rel=0.15)


def test_a_useless_prior_is_hardly_trusted() -> None:
    learnt = []
    for seed in range(8):
        random = np.random.default_rng(seed)
        metric, prior = curve(random), curve(random)
        learnt.append(float(fitted(metric, 25, 0.02, random, prior)[0].trust[0]))
    assert abs(np.mean(learnt)) < 0.25
    assert np.max(np.abs(learnt)) < 0.7


def test_a_right_prior_saves_trials_and_a_wrong_one_costs_little() -> None:
    without, right, wrong = [], [], []
    for seed in range(10):
        random = np.random.default_rng(100 + seed)
        metric, other = curve(random), curve(random)
        without.append(error(metric, 12, seed))
        right.append(error(metric, 12, seed, lambda points, f=metric: 1.5 * f(points) + 3.0))
        wrong.append(error(metric, 12, seed, other))
    assert np.mean(right) < 0.3 * np.mean(without)
    assert np.mean(wrong) < 1.4 * np.mean(without)


def test_repeats_that_differ_are_noise() -> None:
    random = np.random.default_rng(5)
    metric = plane(random)
    points = np.repeat(random.random((6, SIZE)), 4, axis=0)
    found = []
    for noise in (0.01, 0.2):
        means = metric(points) + noise * random.standard_normal(len(points))
        data = Data(points - 0.5, SIZE, means, np.full(len(points), np.nan))
        found.append(Surrogate(data, scale_of(points, means, data.errors, None)).noise)
    assert found[0] < 0.05
    assert found[1] == pytest.approx(0.2, rel=0.4)


def test_what_a_measurement_says_of_its_error_is_believed() -> None:
    random = np.random.default_rng(6)
    metric = plane(random)
    points = random.random((10, SIZE))
    truth, outlier = metric(points), np.zeros(10)
    outlier[0] = 3.0
    moved = []
    for told in (0.01, 5.0):
        errors = np.full(10, 0.01)
        errors[0] = told
        surrogate = Surrogate(Data(points - 0.5, SIZE, truth + outlier, errors), 1.0)
        moved.append(float(np.mean(np.abs(surrogate.predict(points - 0.5)[0] - truth))))
    assert moved[1] < 0.05
    assert moved[0] > 4 * moved[1]


def test_surprises_of_a_good_model_are_of_size_one() -> None:
    squares = []
    for seed in range(15):
        random = np.random.default_rng(seed)
        squares.append(fitted(plane(random), 15, 0.1, random)[0].surprises ** 2)
    assert 0.5 < np.mean(squares) < 1.6


def test_the_scale_is_that_of_the_plane_seen_wherever_it_was_seen() -> None:
    random = np.random.default_rng(2)
    metric = plane(random)
    cube = random.random((2000, SIZE))
    for points in (cube[:200], 0.4 + 0.05 * cube[:200]):
        means = metric(points) + 0.005 * random.standard_normal(200)
        assert scale_of(points, means, unstated(200), None) == pytest.approx(1.0, rel=0.4)


def test_without_a_difference_seen_the_scale_is_what_was_known() -> None:
    points = np.array([[0.1] * SIZE, [0.6] * SIZE])
    assert scale_of(points[:1], np.array([3.0]), unstated(1), 7.0) == 7.0
    assert scale_of(points[:1], np.array([3.0]), unstated(1), None) == 1.0
    assert scale_of(points[[0, 0]], np.array([3.0, 3.1]), unstated(2), 7.0) == 7.0


def test_one_small_difference_takes_little_from_what_was_known_and_many_do() -> None:
    points = np.random.default_rng(3).random((12, SIZE))
    two = scale_of(points[:2], np.array([3.0, 3.01]), unstated(2), 7.0)
    assert 7.0 / 3.0 < two < 7.0
    assert scale_of(points, 3.0 + 0.01 * points[:, 0], unstated(12), 7.0) < two


@pytest.mark.parametrize("stated", [True, False])
def test_noise_over_a_short_distance_is_no_steep_slope(stated: bool) -> None:
    scales = []
    for seed in range(12):
        random = np.random.default_rng(seed)
        metric = plane(random)
        # a few steps, and the start several times
        points = 0.4 + 0.03 * random.uniform(-1, 1, (8, SIZE)) * (np.arange(8) % 2)[:, None]
        means = metric(points) + 0.1 * random.standard_normal(8)
        scales.append(scale_of(points, means, np.full(8, 0.1) if stated else unstated(8), 1.0))
    assert np.max(scales) < 3.5
    assert 0.5 < np.median(scales) < 2.0


def test_repeats_of_the_same_settings_have_no_scale_of_their_own() -> None:
    # the mean of seven is not quite the same as each of them
    points = np.tile([0.1, 0.7, 0.3, 0.9], (7, 1))
    means = np.array([3.0, 3.1, 2.9, 3.05, 2.95, 3.0, 3.1])
    assert scale_of(points, means, unstated(7), 0.8) == 0.8


def test_a_direction_that_was_never_tried_is_not_known() -> None:
    random = np.random.default_rng(1)
    along = np.linspace(0.3, 0.5, 6)
    # a metric of the sum, measured where the sum is the same
    points = np.column_stack([along, 0.9 - along])
    means = points.sum(axis=1) + 0.01 * random.standard_normal(6)
    surrogate = Surrogate(Data(points - points[0], 2, means, unstated(6)), scale_of(points, means, unstated(6), 0.8))
    aside = points[-1:] + 0.2
    mean, deviation = surrogate.predict(aside - points[0])
    assert abs(aside.sum() - mean[0]) < 3 * deviation[0]


def test_a_prior_that_moves_against_the_metric_is_left_out() -> None:
    for seed in range(4):
        random = np.random.default_rng(seed)
        metric = plane(random)
        surrogate, inputs = fitted(metric, 12, 0.02, random, lambda points, metric=metric: -metric(points))
        assert surrogate.trust == pytest.approx([0.0])
        points = random.random((100, SIZE))
        mean, deviation = surrogate.predict(inputs(points))
        assert float(np.sqrt(np.mean((mean - metric(points)) ** 2))) < 0.15
        assert surrogate.departures(inputs(points), 3, random).shape == (3, 100)
        assert deviation.min() > 0


@pytest.mark.parametrize("stated", [True, False])
def test_one_outlier_says_little(stated: bool) -> None:
    off, widths = [], []
    for seed in range(6):
        random = np.random.default_rng(seed)
        metric = plane(random)
        points, elsewhere = 0.4 + 0.2 * random.random((16, SIZE)), 0.4 + 0.2 * random.random((50, SIZE))
        means = metric(points) + 0.05 * random.standard_normal(16)
        errors = np.full(16, 0.05) if stated else unstated(16)
        data = Data(points - 0.5, SIZE, means + 1.0 * (np.arange(16) == 5), errors)
        outliers = Surrogate(data, 1.0).outliers()
        assert outliers is not None
        assert list(np.flatnonzero(~outliers[1])) == [5]
        surrogate = robust_fit(data, 1.0)
        assert surrogate.errors[5] > 5 * np.median(surrogate.errors)
        mean, deviation = surrogate.predict(elsewhere - 0.5)
        off.append(np.abs(mean - metric(elsewhere)).mean())
        widths.append(deviation.mean())
    assert np.mean(off) < 0.1
    assert np.mean(widths) < 0.15


def test_what_was_measured_twice_where_nobody_else_looked_is_no_outlier() -> None:
    random = np.random.default_rng(4)
    points = np.vstack([0.5 + 0.1 * random.uniform(-1, 1, (10, SIZE)), [[0.9] * SIZE] * 2])
    means = np.concatenate([0.02 * random.standard_normal(10), [2.0, 2.03]])
    surrogate = robust_fit(Data(points - 0.5, SIZE, means, np.full(12, 0.02)), 1.0)
    assert surrogate.errors.max() < 0.1
    assert surrogate.predict(points[-1:] - 0.5)[0][0] == pytest.approx(2.0, abs=0.1)


def test_covariances_are_those_of_functions_drawn_from_the_posterior() -> None:
    random = np.random.default_rng(7)
    surrogate, inputs = fitted(curve(random), 8, 0.05, random)
    points = inputs(np.vstack([random.random((3, SIZE)), np.full((1, SIZE), 0.4)]))
    deviation = surrogate.predict(points)[1]
    covariance = surrogate.covariance(points, points[-1:])
    assert covariance[-1] == pytest.approx(deviation[-1] ** 2, rel=1e-6)
    draws = surrogate.departures(points, 4000, random)
    assert covariance == pytest.approx((draws * draws[:, -1:]).mean(axis=0), abs=0.1 * float(deviation.max()) ** 2)


def test_an_outlier_is_no_reason_to_doubt_the_forecasts_of_all_else() -> None:
    space = MixedSpace([Real(0.0, 1.0, name="a")])
    inflations = []
    for jump in (0.0, 2.0):
        random, trials = np.random.default_rng(0), []
        for number, a in enumerate(np.linspace(0.3, 0.7, 16)):
            value = Measured(a + 0.05 * random.standard_normal() + jump * (number == 8), 0.05)
            trials.append(ToldTrial({"a": a}, {"cost": value}, expected={"cost": (a, a - 0.02, a + 0.02)}))
        model = Model(space, ["cost"], (), np.array([0.3]), Options(), (), trials)
        inflations.append(model._inflation["cost"])
    assert inflations[1] == pytest.approx(inflations[0], rel=0.05)
