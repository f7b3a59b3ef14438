"""What was told, in the order it was told: the whole state of a search, and all that it needs to go on elsewhere."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional, Tuple

from ceph_tuner.optimise.contract import Expected, Measured, Settings, Values


@dataclass(frozen=True)
class ToldTrial:
    """Settings with what they gave: complete, or stopped with a reason and what was seen until then.

    `old` trials come from an earlier search: they teach, but do not count as this one's.
    """

    settings: Settings
    values: Mapping[str, Measured]
    failed: Optional[str] = None
    old: bool = False
    expected: Expected = field(default_factory=dict)
    """What was said of it beforehand; empty where nothing was."""

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form; an unknown error is null."""
        return {
            "settings": dict(self.settings),
            "values": {
                name: [value.mean, None if math.isnan(value.error) else value.error]
                for name, value in self.values.items()
            },
            "failed": self.failed,
            "old": self.old,
            "expected": intervals(self.expected),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> ToldTrial:
        """Inverse of `to_dict`. Raises KeyError, TypeError or ValueError for what is none."""
        values = {
            str(name): Measured(float(mean), math.nan if error is None else float(error))
            for name, (mean, error) in document["values"].items()
        }
        failed = document.get("failed")
        return cls(
            dict(document["settings"]),
            values,
            None if failed is None else str(failed),
            bool(document.get("old", False)),
            intervals_from(document.get("expected", {})),
        )


def intervals(expected: Expected) -> Dict[str, Any]:
    """Give the plain form of what is expected."""
    return {name: list(interval) for name, interval in expected.items()}


def intervals_from(document: Mapping[str, Any]) -> Expected:
    """Inverse of `intervals`. Raises TypeError or ValueError for what is none."""
    return {str(name): (float(middle), float(low), float(high)) for name, (middle, low, high) in document.items()}


def measured(values: Values) -> Dict[str, Measured]:
    """Give finite measurements; what is no number was not seen. A negative error counts as unknown."""
    by_metric: Dict[str, Measured] = {}
    for name, value in values.items():
        entry = value if isinstance(value, Measured) else Measured(float(value))
        if math.isfinite(entry.mean):
            has_error = math.isfinite(entry.error) and entry.error >= 0
            by_metric[name] = Measured(float(entry.mean), float(entry.error) if has_error else math.nan)
    return by_metric


def logarithms(value: Measured) -> Optional[Tuple[float, float]]:
    """Give a positive measurement's logarithm and the error of that; None where it is not positive."""
    if not value.mean > 0:
        return None
    return math.log(value.mean), value.error / value.mean
