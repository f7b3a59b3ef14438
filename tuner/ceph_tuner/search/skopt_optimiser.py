"""Ask and tell on scikit-optimize's `Optimizer`: informed designs first, then a Gaussian process.

Traps of skopt that this file steps around (each was seen; 0.10.2):
    - its `ask` looks for the best of uniformly random points: with a dozen dimensions and as many trials these are all
      far from everything known, and a live cluster gets wild settings. So its `Optimizer` is told and fits the model,
      and the point is chosen here, near the best one known (a trust region);
    - it replaces repeated proposals by uniformly random points: `avoid_duplicates=False`, repeats are our business;
    - expected improvement is measured from the luckiest observation: a lower confidence bound needs no incumbent,
      and repeats of the same settings are told as their mean;
    - NaN and points outside the bounds raise: losses are finite and points inside by construction;
    - told the same history again, it gives another point: each proposal has a seed of its own, and is made by a new
      `Optimizer` that is told the whole history at once.
"""

from __future__ import annotations

import warnings
from typing import Any, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ceph_tuner.releases import Settings
from ceph_tuner.search.objective import Score
from ceph_tuner.search.optimiser import Proposal, Result
from ceph_tuner.search.space import Point, Space

EXPLORATION = 1.2
"""Standard deviations that a proposal may be better than predicted; small, because trials are few."""

MODEL_FROM = 3
"""Told settings from which a model is fitted."""

CANDIDATES, PARENTS, MOVED_VALUES, RADIUS = 2000, 4, 3.0, 0.2

_JITTER, _JITTER_TRIES = 0.06, 40


class SkoptOptimiser:
    """An `Optimiser`. Losses of what was told are made anew at each ask: a failure counts worse than all the rest."""

    def __init__(self, space: Space, score: Score, designs: Sequence[Proposal], seed: int) -> None:
        """Designs are asked in their order before the model is."""
        self._space, self._score, self._seed = space, score, seed
        self._designs = list(designs)
        self._told: List[Tuple[Settings, Result]] = []
        self._pending: Optional[Proposal] = None

    def ask(self) -> Proposal:
        """Give the next untold design, or the model's proposal."""
        if self._pending is None:
            self._pending = self._next_design() or self._next_of_model()
        return self._pending

    def tell(self, settings: Settings, result: Result) -> None:
        """Take a result, of any settings: also of profiles and of what others tried."""
        self._told.append((dict(settings), result))
        self._pending = None

    def _next_design(self) -> Optional[Proposal]:
        known = [self._space.nearest(settings) for settings, _ in self._told]
        for design in self._designs:
            if self._space.nearest(design.settings) not in known:
                return design
        return None

    def _next_of_model(self) -> Proposal:
        generator = np.random.default_rng([self._seed, len(self._told)])
        points, losses = self._history()
        if len(points) < MODEL_FROM:
            return Proposal(self._space.decode(_uniform(generator, self._space.size)), "random: too little is known")
        point = _best_candidate(points, losses, generator)
        tried = [self._space.decode(known) for known in points]
        for _ in range(_JITTER_TRIES):
            # rounding to whole weights and hundredths can lead back to what was tried; a neighbour teaches more
            if self._space.decode(point) not in tried:
                break
            point = [min(max(float(u + _JITTER * generator.standard_normal()), 0.0), 1.0) for u in point]
        return Proposal(self._space.decode(point), "proposed by the model")

    def _history(self) -> Tuple[List[Point], List[float]]:
        """Give points and mean losses, one for each different settings."""
        losses = self._score.all([result for _, result in self._told])
        points: List[Point] = []
        gathered: List[List[float]] = []
        for (settings, _), value in zip(self._told, losses):
            point = self._space.encode(settings)
            if point in points:
                gathered[points.index(point)].append(value)
            else:
                points.append(point)
                gathered.append([value])
        return points, [sum(values) / len(values) for values in gathered]


def replayed(
    space: Space,
    score: Score,
    designs: Sequence[Proposal],
    seed: int,
    told: Sequence[Tuple[Mapping[str, Any], Result]],
) -> SkoptOptimiser:
    """Build an optimiser that knows a history already."""
    optimiser = SkoptOptimiser(space, score, designs, seed)
    for settings, result in told:
        optimiser.tell(dict(settings), result)
    return optimiser


def _best_candidate(points: List[Point], losses: List[float], generator: np.random.Generator) -> Point:
    """Give the candidate with the lowest confidence bound of its loss."""
    # 2 s to import: only when a model is needed
    from skopt import Optimizer
    from skopt.space import Real

    with warnings.catch_warnings():
        # a kernel's length scale at its bound is expected with so few points
        warnings.simplefilter("ignore")
        optimizer = Optimizer(
            [Real(0.0, 1.0, name=f"u{index}") for index in range(len(points[0]))],
            base_estimator="GP",
            n_initial_points=0,
            acq_func="LCB",
            acq_func_kwargs={"kappa": EXPLORATION, "n_points": 100},
            acq_optimizer="sampling",
            avoid_duplicates=False,
            random_state=int(generator.integers(2**31)),
        )
        optimizer.tell(points, losses)
        candidates = _candidates(points, losses, generator)
        expected, deviation = optimizer.models[-1].predict(optimizer.space.transform(candidates.tolist()), True)
    return [float(u) for u in candidates[int(np.argmin(expected - EXPLORATION * deviation))]]


def _candidates(points: List[Point], losses: List[float], generator: np.random.Generator) -> np.ndarray[Any, Any]:
    """Give points near the best ones known, shape (CANDIDATES, dimensions).

    Each starts somewhere between two of the best points and moves a few of its values: the values that matter are
    few and unknown, and a point that moves in all dimensions at once is far away from all that was measured.
    """
    known = np.asarray(points)[np.argsort(losses, kind="stable")[:PARENTS]]
    dimensions = known.shape[1]
    # the best is a parent of most, the others of few
    first = known[np.minimum(generator.geometric(0.6, CANDIDATES) - 1, len(known) - 1)]
    second = known[generator.integers(len(known), size=CANDIDATES)]
    share = np.where(generator.random((CANDIDATES, 1)) < 0.5, 0.0, generator.random((CANDIDATES, 1)) / 2)
    moved = generator.random((CANDIDATES, dimensions)) < min(1.0, MOVED_VALUES / dimensions)
    steps = np.where(moved, generator.normal(0.0, RADIUS, (CANDIDATES, dimensions)), 0.0)
    candidates: np.ndarray[Any, Any] = np.clip(first + share * (second - first) + steps, 0.0, 1.0)
    return candidates


def _uniform(generator: np.random.Generator, size: int) -> Point:
    return [float(u) for u in generator.random(size)]
