"""What a model said of settings before they were written: kept with the write, so that the model can be judged by it.

The program asks a twin. The automatic mode has what the search's own model expects of a trial.

Plain values, and the standard library alone: the mgr keeps and shows them, and only the program makes them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Dict, Mapping, Optional

from ceph_tuner.core.bounded import MISREAD
from ceph_tuner.core.measure.metrics import METRICS, Scope, parted, scoped

VERSION = 1
SEARCH_MODEL = "the search's model"
"""The name of what has learnt from this cluster's trials alone; every other name is a twin's."""

SEARCH_LEVEL = 0.95
MOST_METRICS = 50


@dataclass(frozen=True)
class ForecastInterval:
    """A metric's prediction in its own unit, and the interval for one measured window."""

    value: float
    low: float
    high: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.value) and math.isfinite(self.high) and 0 <= self.low <= self.high):
            raise ValueError(
                f"an interval from {self.low} to {self.high} must be finite, not below 0, and not reversed"
            )

    def holds(self, value: float) -> bool:
        """Whether a measurement lies inside; its ends do."""
        return self.low <= value <= self.high


@dataclass(frozen=True)
class ForecastRecord:
    """What was said before a write: made at `at` (seconds since the epoch) by `model`, each interval at `level`."""

    at: float
    model: str
    level: float
    metrics: Mapping[str, ForecastInterval]
    unknown: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What a newer version stored beside it: kept as it is."""

    def __post_init__(self) -> None:
        if not 0 < self.level < 1 or not math.isfinite(self.at):
            raise ValueError(f"level (={self.level}) must be above 0 and below 1, at (={self.at}) finite")

    def within(self, scope: Optional[Scope]) -> ForecastRecord:
        """The same, said of a scope: metrics that have none of their own get its name. Without one nothing changes."""
        names = {name: scoped(name, scope) if parted(name)[1] is None else name for name in self.metrics}
        return replace(self, metrics={names[name]: interval for name, interval in self.metrics.items()})

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, as it is stored."""
        return {
            **self.unknown,
            "version": self.unknown.get("version", VERSION),
            "at": self.at,
            "model": self.model,
            "level": self.level,
            "metrics": {name: [entry.value, entry.low, entry.high] for name, entry in self.metrics.items()},
        }

    @classmethod
    def from_dict(cls, document: Any) -> Optional[ForecastRecord]:
        """Inverse of `to_dict`; None for what is none. A forecast that cannot be read must not cost the way back."""
        try:
            metrics = {
                str(name): ForecastInterval(*map(float, values))
                for name, values in dict(document["metrics"]).items()
                if name in METRICS
            }
            keys = {"at", "model", "level", "metrics"}
            unknown = {str(name): value for name, value in document.items() if name not in keys}
            if unknown.get("version") == VERSION:
                del unknown["version"]
            if not metrics or len(metrics) > MOST_METRICS:
                return None
            return cls(float(document["at"]), str(document["model"]), float(document["level"]), metrics, unknown)
        except MISREAD:
            return None
