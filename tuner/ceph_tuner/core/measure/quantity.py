"""Values of metrics in the unit that people read them in."""

from __future__ import annotations

from typing import Optional, Tuple

from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.core.moments import DURATION_SCALES
from ceph_tuner.core.wording import digits

_SCALES = {
    "s": DURATION_SCALES,
    "ms": ((0.0, 1.0, "ms"),),
    "1/s": ((1e6, 1e6, "M/s"), (1e4, 1e3, "k/s"), (0.0, 1.0, "/s")),
    "B/s": ((1e9, 1e9, "GB/s"), (1e6, 1e6, "MB/s"), (1e3, 1e3, "kB/s"), (0.0, 1.0, "B/s")),
    "1": ((0.0, 1.0, ""),),
}
"""Unit -> (from, divided by, written as)."""


def scale_of(metric: str, value: float) -> Tuple[float, str]:
    """Give what a value of this size (at least 0) is divided by, and the unit that it is then in."""
    return next((scale, unit) for least, scale, unit in _SCALES[METRICS[metric].unit] if value >= least)


def amount(metric: str, value: Optional[float], *ends: float) -> Tuple[str, str]:
    """Write a value in the unit that people read it in, and an interval's ends in the same unit."""
    if value is None:
        return "not seen", ""
    scale, unit = scale_of(metric, value)
    return f"{digits(value / scale)} {unit}".rstrip(), "–".join(digits(end / scale) for end in ends)


def quantity(metric: str, value: Optional[float]) -> str:
    """Write a value in the unit that people read it in."""
    return amount(metric, value)[0]
