"""Whether a set of constraints can be met, which of them are in each other's way, and what could be met instead.

Symbols
    goal, mean, deviation   of one constraint's metric at n points, in the model's unit, shape (n,)
    z                       (goal - mean) / deviation, signed so that more is safer: met with probability Phi(z)

Everything is looked for over the whole cube, also where no trial would be safe: what could be met is asked here, not
what may be tried.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Callable, Dict, FrozenSet, Iterable, List, Sequence, Tuple

import numpy as np
from scipy.special import log_ndtr

from ceph_tuner.optimise.candidates import Region, candidates, refined
from ceph_tuner.optimise.contract import Array, Constraint, Settings, Space
from ceph_tuner.optimise.model import Model, ModelView

Score = Callable[[ModelView], Array]
"""Worth of points, shape (n,): larger is better."""

_ANYWHERE, _ROUNDS, _ROUNDED = 2000, 8, 50
_SCATTERED = 400
"""Points that a search begins with beside fresh ones: the best of those that were looked at before."""

_DRAWS, _LIKELY, _CLEAR = 128, 200, 0.01
"""Functions drawn, points at which they are looked at, and a probability too small to draw for."""

_DEVIATIONS = np.linspace(-8.0, 8.0, 1601)
_LOG_SLOPE = -0.5 * _DEVIATIONS**2 - 0.5 * math.log(2 * math.pi) - log_ndtr(_DEVIATIONS)
"""Logarithm of d log Phi(z) / dz at _DEVIATIONS; it falls throughout."""

_HALVINGS, _FAILING, _FREE = 40, 1e6, 1e-9


@dataclass(frozen=True)
class Reach:
    """How likely it is that a set of constraints can be met."""

    settings: Settings
    """The most likely to meet all."""
    probability: float
    """With which they do."""
    exists: float
    """Probability that some settings do, these or others."""


@dataclass(frozen=True)
class Relaxed:
    """A constraint with the bound that could be held instead."""

    constraint: Constraint
    bound: float
    share: float
    """How far it gives way, as a share of the bound; 0: it stays as it is. Of metrics that are modelled by their
    logarithm that of the factor, which is much the same while it is small."""


@dataclass(frozen=True)
class Nearest:
    """The set of bounds that is nearest to what was asked for and can be met, and settings that do."""

    relaxed: Tuple[Relaxed, ...]
    """One for each constraint, in their order."""
    settings: Settings
    probability: float
    """With which the settings meet all of the relaxed bounds."""
    total: float
    """Sum of the shares."""


@dataclass(frozen=True)
class Limiting:
    """What stands in the way of a set of constraints."""

    together: float
    """Largest probability, anywhere, of meeting all."""
    alone: Dict[Constraint, float]
    """Largest probability of meeting one of them, the rest left aside."""
    without: Dict[Constraint, float]
    """Largest probability of meeting all the others: the higher, the more this one is what limits."""
    conflicts: Tuple[FrozenSet[Constraint], ...]
    """Smallest sets that probably cannot be met together, though every smaller part of them can."""


def reach(model: Model, space: Space, generator: np.random.Generator) -> Reach:
    """Say how likely it is that the constraints can be met at all.

    That no single point is likely to meet them does not say so: among many of little hope each, one may. So whole
    functions are drawn from what is known, and it is counted in how many some point meets everything.
    """
    pool = _PointPool(model, space, generator)
    point, log_probability = pool.climb(ModelView.log_feasible)
    settings, probability = space.decode(list(point)), math.exp(log_probability)
    view = model.at(np.vstack([point, pool.best(ModelView.log_feasible, _LIKELY)]))
    most = min(1.0, float(np.sum(np.exp(view.log_feasible()))))
    if most - probability < _CLEAR:
        return Reach(settings, probability, most)
    feasible = generator.random((_DRAWS, len(view.points))) < np.exp(model.log_no_failure(view.points))
    # bounds of one metric are about the same functions
    draws = {name: view.draws(name, _DRAWS, generator) for name in sorted({bounds.name for bounds in model.bounds})}
    for bounds in model.bounds:
        feasible &= bounds.sign * (draws[bounds.name] - bounds.goal) <= 0
    return Reach(settings, probability, max(probability, float(np.mean(feasible.any(axis=1)))))


def limiting(
    model: Model,
    space: Space,
    constraints: Sequence[Constraint],
    generator: np.random.Generator,
    attainable: float = 0.5,
) -> Limiting:
    """Find the constraints in each other's way; a set can be met where some settings do with `attainable` probability.

    `constraints` are the model's, in its order. Raises ValueError where there are none.
    """
    if not constraints or len(constraints) != len(model.bounds):
        raise ValueError(f"constraints (={len(constraints)}) must be the model's {len(model.bounds)}, and at least 1")
    pool = _PointPool(model, space, generator)
    everything = range(len(constraints))
    attained: Dict[FrozenSet[int], float] = {}

    def chance(rows: Iterable[int]) -> float:
        part = frozenset(rows)
        if part not in attained:
            attained[part] = math.exp(pool.climb(lambda view: _all_of(model, view, sorted(part)))[1])
        return attained[part]

    together = chance(everything)
    alone = {constraint: chance([row]) for row, constraint in enumerate(constraints)}
    without = {
        constraint: chance(other for other in everything if other != row) for row, constraint in enumerate(constraints)
    }
    conflicts: List[FrozenSet[int]] = []
    if together < attainable:
        for size in range(1, len(constraints) + 1):
            for rows in itertools.combinations(everything, size):
                part = frozenset(rows)
                # what can be met together can be met in part, and what conflicts does so in company
                attainable_in_company = any(part <= whole and value >= attainable for whole, value in attained.items())
                if (
                    not attainable_in_company
                    and not any(conflict <= part for conflict in conflicts)
                    and chance(part) < attainable
                ):
                    conflicts.append(part)
    named_conflicts = tuple(frozenset(constraints[row] for row in conflict) for conflict in conflicts)
    return Limiting(together, alone, without, named_conflicts)


def nearest_feasible(
    model: Model,
    space: Space,
    constraints: Sequence[Constraint],
    generator: np.random.Generator,
    probability: float = 0.9,
) -> Nearest:
    """Relax the bounds by the least sum of shares with which some settings meet all of them with this probability.

    Nothing is relaxed where that is so already. `constraints` are the model's, in its order.
    """
    if not 0 < probability < 1:
        raise ValueError(f"probability (={probability}) must be above 0 and below 1")
    pool = _PointPool(model, space, generator)

    def score(view: ModelView) -> Array:
        price = _price(model, view, constraints, probability)[0]
        # among those that need no relaxation, the surest
        return np.where(price > _FREE, -price, np.exp(view.log_feasible()))

    point, _ = pool.climb(score)
    view = model.at(point[None, :])
    steps = _price(model, view, constraints, probability)[1][:, 0]
    relaxed, log_met = [], float(model.log_no_failure(view.points)[0])
    for constraint, bounds, unit, step in zip(constraints, model.bounds, _units(model, constraints), steps):
        limit = bounds.goal + bounds.sign * step
        mean, deviation = (float(values[0]) for values in view.metric(bounds.name))
        log_met += float(log_ndtr(bounds.sign * (limit - mean) / deviation))
        bound = float(model.plain(bounds.name, np.array(limit))) if step > _FREE * unit else constraint.bound
        relaxed.append(Relaxed(constraint, bound, float(step / unit)))
    return Nearest(tuple(relaxed), space.decode(list(point)), math.exp(log_met), sum(entry.share for entry in relaxed))


class _PointPool:
    """Points of the cube that were looked at so far, whatever for: one search begins where another ended."""

    def __init__(self, model: Model, space: Space, generator: np.random.Generator) -> None:
        self._model, self._space, self._generator = model, space, generator
        self._whole = Region.around(np.full(space.size, 0.5), 0.5)
        self._views = [model.at_trials, model.at(generator.random((_ANYWHERE, space.size)))]

    def climb(self, score: Score) -> Tuple[Array, float]:
        """Give the best point, moved to where its settings are, and its score."""
        model, generator = self._model, self._generator
        scores = score(model.at_trials)
        whole, centre = self._whole, model.points[int(np.argmax(scores))]
        region = Region(whole.low, whole.high, centre, getattr(self._space, "categories", ()))
        points = np.vstack([self.best(score, _SCATTERED), candidates(region, model.points, generator)])
        for number in range(_ROUNDS):
            values = score(model.at(points))
            points = refined(region, points, values, number, generator)
        last = np.argsort(-score(model.at(points)), kind="stable")[:_ROUNDED]
        self._views.append(model.at(self._space.rounded(points[last])))
        # settings that are no point between what settings can be
        exact = [self._views[0], *self._views[2:]]
        values = np.concatenate([score(view) for view in exact])
        best = int(np.argmax(values))
        point: Array = np.vstack([view.points for view in exact])[best]
        return point, float(values[best])

    def best(self, score: Score, count: int) -> Array:
        """Give the best of the points that were looked at, shape (count, size)."""
        values = np.concatenate([score(view) for view in self._views])
        points = np.vstack([view.points for view in self._views])
        return points[np.argsort(-values, kind="stable")[:count]]


def _all_of(model: Model, view: ModelView, rows: Sequence[int]) -> Array:
    """Logarithm of the probability that these constraints are met, shape (n,)."""
    total: Array = model.log_no_failure(view.points) + view.log_meets()[list(rows)].sum(axis=0)
    return total


def _units(model: Model, constraints: Sequence[Constraint]) -> List[float]:
    """What counts as a relaxation by all of a bound, in the models' units."""
    units = []
    for constraint in constraints:
        own = abs(constraint.bound) or model.surrogates[constraint.name].scale
        units.append(1.0 if model.is_log(constraint.name) else own)
    return units


def _price(model: Model, view: ModelView, constraints: Sequence[Constraint], probability: float) -> Tuple[Array, Array]:
    """Give the least total relaxation with which points meet all, and each bound's step, shapes (n,), (constraints, n).

    Least sum of steps / units with sum log Phi(z + step / deviation) >= log probability: where a bound gives way at
    all, d log Phi / dz is the same multiple of deviation / unit (Lagrange), and the multiple is found by halving.
    """
    predictions = [view.metric(bounds.name) for bounds in model.bounds]
    signs = np.array([[bounds.sign] for bounds in model.bounds])
    goals = np.array([[bounds.goal] for bounds in model.bounds])
    deviations = np.array([deviation for _, deviation in predictions])
    z = signs * (goals - np.array([mean for mean, _ in predictions])) / deviations
    units = np.array(_units(model, constraints))[:, None]
    log_slopes = np.log(deviations / units)
    healthy = model.log_no_failure(view.points)

    def safer(log_multiple: Array) -> Array:
        # the table falls, np.interp wants it to rise
        safer_z: Array = np.maximum(z, np.interp(log_multiple - log_slopes, -_LOG_SLOPE, _DEVIATIONS))
        return safer_z

    low, high = np.full(len(healthy), -60.0), np.full(len(healthy), 60.0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = log_ndtr(safer(middle)).sum(axis=0) + healthy >= math.log(probability)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    steps = (safer(high) - z) * deviations
    hopeless = np.maximum(0.0, math.log(probability) - healthy)
    return np.sum(steps / units, axis=0) + _FAILING * hopeless, steps
