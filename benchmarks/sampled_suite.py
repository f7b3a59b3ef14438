"""Problems that are drawn: smooth functions of drawn dimension, curvature, noise, number and activity of constraints.

A function is a sample path of a Gaussian process with a squared exponential kernel, by random Fourier features (Rahimi
and Recht, 2007). Constraints partly rise where the objective falls, so that some of them are active at the optimum.
`disturbed` has integers, logarithms and categories, and measurements with heavy tails, outliers or drift. `bent` has
sums and maxima of power laws, as loads and volumes of a construction are: flat at one end and steep at the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Sequence

import numpy as np
from search_problem import Problem
from skopt.space import Categorical, Dimension, Integer, Real

from ceph_tuner.optimise.contract import Array, Constraint, Measured, Settings
from ceph_tuner.optimise.space import MixedSpace

FEATURES = 256
"""Waves that a path is the sum of."""
POINTS = 2000
"""Random points from which deviations are taken, and a start is chosen."""
BUDGET = 40
NOISE = (0.01, 0.02, 0.05, 0.1)
"""Of a metric's deviation over random points; one of them for each problem."""
OUTLIERS = 0.05
"""Share of the measurements that are wrong by OUTLIER deviations of the noise."""
OUTLIER = 10.0
TAIL = 3.0
"""Degrees of freedom of the t distribution of heavy tails."""


@dataclass(frozen=True)
class Path:
    """A function on the unit cube, of mean 0 and about unit deviation."""

    waves: Array
    """Shape (FEATURES, size)."""
    shifts: Array
    weights: Array

    def __call__(self, points: Array) -> Array:
        """Shape (n, size) -> (n,)."""
        values: Array = math.sqrt(2 / FEATURES) * np.cos(points @ self.waves.T + self.shifts) @ self.weights
        return values


def path(size: int, random: np.random.Generator) -> Path:
    """Length scales grow with the root of the dimension, as distances in the cube do."""
    lengths = math.sqrt(size) * random.uniform(0.25, 1.0) * random.lognormal(0.0, 0.4, size)
    return Path(
        random.standard_normal((FEATURES, size)) / lengths,
        random.uniform(0, 2 * np.pi, FEATURES),
        random.standard_normal(FEATURES),
    )


@dataclass(frozen=True)
class PowerLaws:
    """Products of powers of sides that are logarithms, shifted and scaled to mean 0 and unit deviation."""

    exponents: Array
    """Shape (terms, size)."""
    largest: bool
    """Whether the largest term counts instead of their sum: it bends where another takes over."""
    middle: float = 0.0
    deviation: float = 1.0

    def __call__(self, points: Array) -> Array:
        """Shape (n, size) -> (n,)."""
        terms = np.exp((points - 0.5) @ self.exponents.T)
        values: Array = ((terms.max(axis=1) if self.largest else terms.sum(axis=1)) - self.middle) / self.deviation
        return values


def power_laws(size: int, random: np.random.Generator) -> PowerLaws:
    """Exponents shrink with the root of the dimension, as length scales grow with it; some sides do nothing."""
    terms = int(random.integers(1, 4))
    matters = random.random((terms, size)) < 0.7
    steepness = random.uniform(1.0, 4.0) * math.sqrt(3 / size)
    laws = PowerLaws(steepness * random.standard_normal((terms, size)) * matters, bool(random.random() < 0.3))
    table = laws(random.random((POINTS, size)))
    return replace(laws, middle=float(table.mean()), deviation=max(float(table.std()), 1e-6))


def sampled(seeds: Iterable[int]) -> Iterator[Problem]:
    """Real sides, and noise as the models believe it to be."""
    for seed in seeds:
        random = np.random.default_rng([seed, 1])
        space = [Real(0.0, 1.0, name=f"x{side}") for side in range(random.integers(2, 13))]
        yield _problem(f"sampled {seed}", space, random, tails="normal", drifts=False)


def disturbed(seeds: Iterable[int]) -> Iterator[Problem]:
    """Sides of every kind, and noise as no model believes it to be."""
    for seed in seeds:
        random = np.random.default_rng([seed, 2])
        space = [_side(f"x{side}", random) for side in range(random.integers(2, 9))]
        tails = ("heavy", "outliers", "normal")[seed % 3]
        yield _problem(f"disturbed {seed}", space, random, tails, drifts=tails == "normal")


def bent(seeds: Iterable[int]) -> Iterator[Problem]:
    """Metrics that bend sharply, of real sides."""
    for seed in seeds:
        random = np.random.default_rng([seed, 3])
        space = [Real(0.0, 1.0, name=f"x{side}") for side in range(random.integers(2, 9))]
        yield _problem(f"bent {seed}", space, random, tails="normal", drifts=False, function=power_laws)


def _side(name: str, random: np.random.Generator) -> Dimension:
    kind = random.integers(4)
    if kind == 0:
        return Categorical([f"c{number}" for number in range(random.integers(2, 5))], name=name)
    if kind == 1:
        return Integer(1, int(random.integers(3, 21)), name=name)
    if kind == 2:
        return Real(1e-3, 1e2, prior="log-uniform", name=name)
    return Real(0.0, 1.0, name=name)


def _problem(
    name: str,
    space: Sequence[Dimension],
    random: np.random.Generator,
    tails: str,
    drifts: bool,
    function: Callable[[int, np.random.Generator], Callable[[Array], Array]] = path,
) -> Problem:
    cube = MixedSpace(space)
    objective = function(cube.size, random)
    others = [function(cube.size, random) for _ in range(random.integers(1, 7))]
    shares = [float(random.uniform(0.0, 0.8)) for _ in others]
    metrics = ["f", *(f"g{number}" for number in range(len(others)))]

    def values(points: Array) -> Array:
        """Shape (n, size) -> (n, metrics), bounds not yet taken off."""
        f = objective(points)
        return np.column_stack(
            [f, *(math.sqrt(1 - share**2) * g(points) - share * f for g, share in zip(others, shares))]
        )

    drawn = cube.rounded(random.random((POINTS, cube.size)))
    table = values(drawn)
    scale = dict(zip(metrics, map(float, np.maximum(table.std(axis=0), 1e-6))))
    # a start that is no optimum: there are better ones, and worse
    middle = np.argsort(table[:, 0])[int(random.uniform(0.3, 0.7) * POINTS)]
    start = cube.decode(drawn[middle])
    margins = random.uniform(0.05, 0.6, len(others)) * table[:, 1:].std(axis=0)
    bounds = np.concatenate([[0.0], table[middle, 1:] + margins])
    noise = float(random.choice(NOISE))
    states_error = bool(random.random() < 0.5)
    period, phase = random.uniform(10, 40), random.uniform(0, 2 * np.pi)

    def truth(settings: Settings) -> Dict[str, float]:
        return dict(zip(metrics, map(float, values(np.array([cube.encode(settings)]))[0] - bounds)))

    def measure(settings: Settings, rng: np.random.Generator) -> Mapping[str, Measured]:
        errors = _errors(tails, len(metrics), rng)
        return {
            metric: Measured(value + noise * scale[metric] * error, noise * scale[metric] if states_error else math.nan)
            for (metric, value), error in zip(truth(settings).items(), errors)
        }

    def drift(trial: int) -> float:
        return 1.5 * noise * math.sin(2 * math.pi * trial / period + phase) if drifts else 0.0

    constraints = tuple(Constraint(metric, "<=", 0.0) for metric in metrics[1:])
    return Problem(name, space, start, "f", constraints, measure, truth, scale, BUDGET, drift=drift)


def _errors(tails: str, count: int, rng: np.random.Generator) -> List[Any]:
    """In deviations of the noise, one for each metric."""
    errors = rng.standard_normal(count)
    if tails == "heavy":
        errors = rng.standard_t(TAIL, count) * math.sqrt((TAIL - 2) / TAIL)
    if tails == "outliers" and rng.random() < OUTLIERS:
        # something else happened meanwhile: all metrics of the window are wrong
        errors = OUTLIER * rng.choice([-1.0, 1.0]) * np.abs(errors)
    return list(errors)
