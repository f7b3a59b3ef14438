"""What the optimisers are compared on: a noisy black box with constraints, started from settings in force.

A suite is a function `(seeds) -> iterable of Problem`; see `constrained_suite.py` and `scenarios.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, FrozenSet, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
from skopt.space import Dimension, Real

from ceph_tuner.optimise.contract import Constraint, Measured, Prior, Settings, Space
from ceph_tuner.optimise.space import MixedSpace

Measure = Callable[[Settings, np.random.Generator], Mapping[str, Measured]]
"""One trial's measurement: noisy, and repeated exactly with the same generator."""


def noisy(truth: Callable[[Settings], Mapping[str, float]], scale: Mapping[str, float], noise: float) -> Measure:
    """Each metric with a normal error of so much of its scale, of which the measurement says nothing."""

    def measure(settings: Settings, rng: np.random.Generator) -> Mapping[str, Measured]:
        return {m: Measured(v + noise * scale[m] * rng.standard_normal()) for m, v in truth(settings).items()}

    return measure


def _no_drift(trial: int) -> float:
    return 0.0


@dataclass(frozen=True)
class Problem:
    """One search: the objective is minimised, every constraint is to hold; metrics go by their names."""

    name: str
    """Unique within its suite and the same on every machine: noise and seeds are drawn from it."""
    space: Union[Sequence[Dimension], Space]
    """Dimensions with names, which are the settings' names; or a map from the unit cube."""
    start: Settings
    objective: str
    constraints: Tuple[Constraint, ...]
    measure: Measure
    truth: Callable[[Settings], Mapping[str, float]]
    """The same metrics without noise; nobody but the judge asks for it."""
    scale: Mapping[str, float]
    """What is much in each metric, > 0: gains are counted in it, and penalties are."""
    budget: int
    """Trials, the start included."""
    priors: Tuple[Prior, ...] = ()
    """What is believed beforehand; no peer can use it."""
    designs: Mapping[str, Settings] = field(default_factory=dict)
    """Settings to hold the optimisers against, such as the built-in profiles."""
    feasible: Optional[bool] = None
    """Whether any settings meet every constraint; None: not known."""
    log_metrics: FrozenSet[str] = frozenset()
    """Metrics that are positive and vary by factors."""
    drift: Callable[[int], float] = _no_drift
    """Trial -> by how much all metrics are measured too high meanwhile, in their scales."""

    def violated(self, settings: Settings) -> bool:
        """Whether a constraint is truly missed, by more than rounding."""
        truth = self.truth(settings)
        return any(c.excess(truth[c.name]) > 1e-9 * self.scale[c.name] for c in self.constraints)

    def beyond(self, settings: Settings) -> float:
        """By how much the constraint that is missed most is truly missed, in its scale; 0 or less where all are kept.

        Where a suite knows better what is unsafe, by how much it is that.
        """
        truth = self.truth(settings)
        return max((c.excess(truth[c.name]) / self.scale[c.name] for c in self.constraints), default=0.0)

    def measured(self, settings: Settings, trial: int, seed: int) -> Mapping[str, Measured]:
        """What a trial measures: the same for every optimiser that tries these settings as its trial of that number."""
        values = self.measure(settings, np.random.default_rng([seed, trial]))
        drift = self.drift(trial)
        if not drift:
            return values
        return {name: Measured(value.mean + drift * self.scale[name], value.error) for name, value in values.items()}

    def unsafe(self, settings: Settings) -> bool:
        """Whether trying these settings does harm: a missed constraint, unless a suite knows better."""
        return self.violated(settings)

    @property
    def cube(self) -> Space:
        """The space for optimisers that search the unit cube."""
        return MixedSpace(self.space) if isinstance(self.space, Sequence) else self.space

    @property
    def dimensions(self) -> List[Dimension]:
        """The space for optimisers that have dimensions of their own."""
        if isinstance(self.space, Sequence):
            return list(self.space)
        return [Real(0.0, 1.0, name=f"x{place}") for place in range(self.space.size)]

    def settings(self, point: Sequence[Any]) -> Settings:
        """Of a point in `dimensions`."""
        if isinstance(self.space, Sequence):
            return {dimension.name: value for dimension, value in zip(self.space, point)}
        return dict(self.space.decode(point))

    def point(self, settings: Settings) -> List[Any]:
        """In `dimensions`, of settings."""
        if isinstance(self.space, Sequence):
            return [settings[dimension.name] for dimension in self.space]
        return list(self.space.encode(settings))
