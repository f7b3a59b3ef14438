"""The nouns of a safe search, and the few interfaces that it asks for. Nothing here knows what is searched."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Protocol, Sequence, Tuple, Union

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

Settings = Dict[str, Any]
"""Name of a dimension -> value."""


@dataclass(frozen=True)
class Measured:
    """A metric's mean over a measurement, with the standard error of that mean; NaN where it is not known."""

    mean: float
    error: float = math.nan


Values = Mapping[str, Union[float, Measured]]
"""Metric -> what was measured."""


@dataclass(frozen=True)
class Constraint:
    """A metric, and the side of a bound that it shall stay on."""

    name: str
    comparison: str
    bound: float

    def __post_init__(self) -> None:
        if self.comparison not in ("<=", ">="):
            raise ValueError(f"{self.name}: comparison (={self.comparison!r}) must be <= or >=")
        if not math.isfinite(self.bound):
            raise ValueError(f"{self.name}: bound (={self.bound}) must be finite")

    def excess(self, value: float) -> float:
        """How far beyond the bound, in the metric's unit; 0 or less where it holds."""
        return value - self.bound if self.comparison == "<=" else self.bound - value


class Space(Protocol):
    """A mixed space as the unit cube.

    A space with categorical settings also has `categories`: for each of them the sides of the cube that stand for it.
    One with whole numbers may have `steps`: of a point those with the next smaller, and the next larger, of each.
    """

    @property
    def size(self) -> int:
        """Dimensions of the cube."""

    def decode(self, point: Sequence[float]) -> Settings:
        """Give the settings of a point; rounds to what the settings can be."""

    def encode(self, settings: Mapping[str, Any]) -> List[float]:
        """Give the point of settings; inverse of `decode` for whatever that gives."""

    def decode_all(self, points: Array) -> List[Settings]:
        """Give the settings of each point, shape (n, size)."""

    def encode_all(self, settings: Sequence[Mapping[str, Any]]) -> Array:
        """Give the point of each of settings, at least one, all with the same names, shape (n, size)."""

    def rounded(self, points: Array) -> Array:
        """Move points to where the settings are that they stand for, shape (n, size)."""


class Prior(Protocol):
    """What is believed before anything is measured: a model, or what was measured elsewhere."""

    def predict(self, points: Array) -> Mapping[str, Array]:
        """Give metrics at points of the cube, shape (n, size) -> metric -> shape (n,); metrics may be absent."""


@dataclass(frozen=True)
class Options:
    """How bold a search is."""

    safe_probability: float = 0.95
    """Least probability with which settings meet every constraint that the start keeps, for them to be tried; 0 where
    nothing is at risk."""
    improve_probability: float = 0.75
    """Least probability with which they make no constraint worse that the start breaks: it is broken already, and what
    mends it is seldom near."""
    step_limit: float = 1.0
    """Furthest that a trial may be from the best that was measured, in each dimension, as a share of its range."""
    first_step: float = 0.03
    """The same for the first trials without a prior, while nothing is known."""
    violation_budget: Optional[int] = None
    """Trials that may violate a constraint before the search freezes; None: any number."""
    trials: Optional[int] = None
    """Trials after which it is over, the start not counted; None: the caller decides."""
    confirm: int = 2
    """Of the `trials`, how many measure the best again at the end; at most a quarter."""
    tolerance: float = 0.05
    """Share by which a constraint that the start does not keep may get worse: of its value where that is modelled by
    its logarithm, otherwise of how much it varies over the cube."""
    least_gain: float = 0.01
    """Expected gain, as a share of the objective's spread, below which satisfied means done."""
    log_metrics: FrozenSet[str] = field(default_factory=frozenset)
    """Metrics that are positive and vary by factors: modelled by their logarithm."""

    def __post_init__(self) -> None:
        for name in ("safe_probability", "improve_probability"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} (={getattr(self, name)}) must be at least 0 and below 1")
        for name in ("step_limit", "first_step"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(f"{name} (={getattr(self, name)}) must be above 0 and at most 1")
        if self.violation_budget is not None and self.violation_budget < 0:
            raise ValueError(f"violation_budget (={self.violation_budget}) must be at least 0")


Expected = Mapping[str, Tuple[float, float, float]]
"""Metric -> the middle of what is expected of a trial, and the ends of its 95%."""


@dataclass(frozen=True)
class Proposal:
    """Settings to try, why, and with which probability they are safe."""

    settings: Settings
    why: str
    safe: float
    expected: Expected = field(default_factory=dict)


@dataclass(frozen=True)
class BestSettings:
    """The best settings that were tried, by the models and not by luck."""

    settings: Settings
    expected: Mapping[str, float]
    """Metric -> posterior mean."""
    deviation: Mapping[str, float]
    feasible: float
    """Probability that every constraint holds."""


STATES = ("searching", "satisfied", "nothing safe", "frozen", "infeasible", "budget")


@dataclass(frozen=True)
class SearchVerdict:
    """Whether to go on, in one word of STATES and one sentence."""

    state: str
    reason: str

    @property
    def go_on(self) -> bool:
        """Whether another trial is worth its cost."""
        return self.state == "searching"
