"""When a boost will be done: from what is left, window after window, with an interval that is right at any time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Optional, Sequence, Tuple

from ceph_tuner.core.autopilot import sequential

CONFIDENCE = 0.95
MOST = 40
"""Windows that count: the last PGs go at another rate than the first ones."""
LEAST_FALL_S = 120.0
"""What became less in a shorter time says nothing of the rate."""
FLOOR = 0.05
"""Least deviation of a window's rate that is believed, as a share of the mean."""


@dataclass(frozen=True)
class Finish:
    """When nothing will be left, in seconds since the epoch. None: no end is in sight."""

    expected: Optional[float]
    earliest: Optional[float]
    latest: Optional[float]
    rate: float
    """What became less in a second, mean of the windows."""

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for programs."""
        return {"expected": self.expected, "earliest": self.earliest, "latest": self.latest, "rate": self.rate}


@dataclass(frozen=True)
class Progress:
    """What was left at the end of each window, oldest first."""

    points: Tuple[Tuple[float, float], ...] = ()

    def after(self, at: float, remainder: float, mended: Optional[float] = None) -> Progress:
        """Take a window's end; what comes from before the last one (the clock was set) begins anew.

        `mended`: what was worked off since the last one, where that is known. What became less beyond it is taken from
        the earlier points as well: copies that were found again on an OSD that returned say nothing of the rate.
        """
        before = self.points if self.points and self.points[-1][0] < at else ()
        if before and mended is not None:
            found = max(before[-1][1] - remainder - mended, 0.0)
            before = tuple((earlier, copies - found) for earlier, copies in before)
        return Progress((*before, (at, remainder))[-MOST - 1 :])

    def finish(self) -> Optional[Finish]:
        """The forecast; None before two windows ended, or where nothing is left."""
        if len(self.points) < 2 or self.points[-1][1] <= 0:
            return None
        pairs = zip(self.points, self.points[1:])
        rates = [(before - remainder) / (at - start) for (start, before), (at, remainder) in pairs]
        mean = sum(rates) / len(rates)
        floor = max(FLOOR * abs(mean), 1e-9)
        interval = sequential.mean(rates, CONFIDENCE, floor)
        at, remainder = self.points[-1]
        return Finish(
            _end(at, remainder, interval.estimate),
            _end(at, remainder, interval.high),
            _end(at, remainder, interval.low),
            mean,
        )


def fall(points: Sequence[Tuple[float, float]]) -> Optional[float]:
    """What became less in a second since it was most, by what was left at some moments, oldest first.

    None where it was not seen to fall: in two minutes or more, and by more than it ever rose between two of them.
    """
    most = max(range(len(points)), key=lambda number: (points[number][1], number), default=0)
    pairs = list(zip(points[most:], points[most + 1 :]))
    if not pairs:
        return None
    (start, highest), (at, remainder) = points[most], points[-1]
    largest_rise = max(later[1] - earlier[1] for earlier, later in pairs)
    if at - start < LEAST_FALL_S or highest - remainder <= max(largest_rise, 0.0):
        return None
    return (highest - remainder) / (at - start)


def _end(at: float, remainder: float, rate: float) -> Optional[float]:
    return at + remainder / rate if rate > 0 else None
