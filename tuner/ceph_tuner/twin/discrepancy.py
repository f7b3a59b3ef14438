"""What the twin does not explain: residuals against the measurements' noise, metric by metric.

The reduced chi-square is the mean of (residual / noise)^2: 1 where the twin is as good as a second measurement. A
metric is unexplained where that exceeds CHI_SQUARE and the median error exceeds what choosing settings can bear
(`observations.WANTED`): an error that is sure and too small to matter is not reported, nor one that noise makes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Dict, List, Mapping, Tuple

import numpy as np

from ceph_tuner.twin.observations import RATES, WANTED, Outputs
from ceph_tuner.twin.parameters import Array

CHI_SQUARE = 4.0
"""Residuals of twice the noise."""

PRIOR_WINDOWS = 2.0
"""As much as so many windows, a guess of the twin's error counts beside the residuals."""
GUESS_OF_RATES, GUESS_OF_LATENCIES = 0.08, 0.20


@dataclass(frozen=True)
class Unexplained:
    """How far a metric's windows are from the fitted model, beyond their own scatter."""

    windows: int
    chi_square: float
    """Reduced, of the fit."""
    median_error: float
    """Relative, of the fit."""
    bias: float
    """Mean of log(measured / predicted) where the window's setting was held out."""
    deviation: float
    """Standard deviation of what twin and noise do not explain, in logarithms, where the setting was held out."""
    freedom: float
    """Its degrees of freedom: windows of the same settings err alike, so settings count and not windows."""
    worst: str
    """The window of the largest error."""
    worst_error: float

    def exceeds(self, metric: str) -> bool:
        """Whether the twin does not explain this metric."""
        return self.chi_square > CHI_SQUARE and self.median_error > WANTED[metric]


@dataclass(frozen=True)
class Discrepancy:
    """By metric, what remains."""

    metrics: Mapping[str, Unexplained]
    chi_square: float
    """Reduced, over all outputs of the fit."""
    settings: int
    """Settings that were held out in turn; 1: none was."""

    @classmethod
    def of(cls, outputs: Outputs, predicted: Array, held_out: Array, variance: Array, settings: int) -> Discrepancy:
        """Out of outputs predicted by the fit (z), predicted with their setting held out, and the latter's variance."""
        unexplained = {}
        error = outputs.z - predicted
        relative = relative_errors(outputs, predicted)
        for name, places in by_metric(outputs).items():
            apart = outputs.z[places] - held_out[places]
            guess = GUESS_OF_RATES if name in RATES else GUESS_OF_LATENCIES
            # what the spread of predictions covers already is not the discrepancy's to cover again
            worst = int(places[np.argmax(relative[places])])
            window = outputs.observations[outputs.names[worst][0]]
            unexplained[name] = Unexplained(
                len(places),
                float(np.mean((error[places] / outputs.noise[places]) ** 2)),
                float(np.median(relative[places])),
                float(np.mean(apart)),
                _deviation(apart, variance[places], guess),
                float(settings + PRIOR_WINDOWS - 1.0),
                f"{window.scenario} {window.label}".strip(),
                float(relative[worst]),
            )
        return cls(unexplained, float(np.mean((error / outputs.noise) ** 2)), settings)

    def unexplained(self) -> List[str]:
        """Metrics that the twin does not explain."""
        return [name for name, entry in self.metrics.items() if entry.exceeds(name)]

    def sentences(self) -> List[str]:
        """For people: what the twin does not explain."""
        sentences = []
        for name in self.unexplained():
            entry = self.metrics[name]
            sentences.append(
                f"the twin does not explain the cluster: {name} is off by {entry.median_error:.0%} in the median "
                f"({math.sqrt(entry.chi_square):.1f} times the noise), by {entry.worst_error:.0%} in {entry.worst}"
            )
        return sentences

    def to_dict(self) -> Dict[str, Any]:
        """The form that a fit file keeps."""
        return {
            "chi_square": self.chi_square,
            "settings": self.settings,
            "metrics": {name: dict(vars(entry)) for name, entry in self.metrics.items()},
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Discrepancy:
        """Inverse of `to_dict`."""
        # earlier versions wrote more
        names = {field.name for field in fields(Unexplained)}
        metrics = {
            str(name): Unexplained(**{key: value for key, value in entry.items() if key in names})
            for name, entry in document["metrics"].items()
        }
        return cls(metrics, float(document["chi_square"]), int(document["settings"]))


def relative_errors(outputs: Outputs, z: Array) -> Array:
    """|predicted - measured| over measured; below what is negligible on the cluster, over that."""
    measured, predicted = outputs.values(outputs.z), outputs.values(z)
    return np.asarray(np.abs(predicted - measured) / np.maximum(np.maximum(measured, outputs.floors), 1e-9))


def by_metric(outputs: Outputs) -> Dict[str, Array]:
    """Metric -> its places in the row."""
    return {name: outputs.chosen(name) for name in dict.fromkeys(outputs.metrics)}


def _deviation(apart: Array, variance: Array, guess: float) -> float:
    """What the spread of predictions covers already is not the discrepancy's to cover again."""
    excess = float((apart**2 - variance).sum()) + PRIOR_WINDOWS * guess**2
    return math.sqrt(max(excess / (len(apart) + PRIOR_WINDOWS), (0.25 * guess) ** 2))


def spread_and_freedom(entry: Unexplained) -> Tuple[float, float]:
    """Scale and degrees of freedom of the t distribution of a prediction's error, in logarithms."""
    return entry.deviation, max(2.0, entry.freedom)
