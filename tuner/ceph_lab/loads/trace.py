"""Counters over time, and the rate of any stretch of it."""

from __future__ import annotations

import bisect
import statistics
from collections import deque
from typing import Deque, Dict, List, Optional

from ceph_tuner.core.measure.sample import Measure

BATCH_S = 5.0
"""A window's spread is the standard deviation over its stretches of this length."""


def batches(start: float, end: float) -> List[float]:
    """Borders that cut a window into equal stretches of about BATCH_S: at least one stretch."""
    count = max(1, int((end - start) / BATCH_S + 1e-9))
    return [start + (end - start) * number / count for number in range(count + 1)]


def measure_of(mean: float, parts: List[float]) -> Measure:
    """A measure whose spread comes from the parts of the window."""
    return Measure(mean, statistics.stdev(parts) if len(parts) > 1 else 0.0, max(1, len(parts)))


KEPT = 7200
"""Readings of a trace, at most."""


class Trace:
    """Readings of ever-growing counters. A counter that falls (an OSD started again) counts as standing still."""

    def __init__(self) -> None:
        self._times: Deque[float] = deque(maxlen=KEPT)
        self._values: Deque[Dict[str, float]] = deque(maxlen=KEPT)
        self._raw: Dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._times)

    def add(self, at: float, counters: Dict[str, float]) -> None:
        """A reading; times must not go backwards."""
        before = self._values[-1] if self._values else {}
        totals = dict(before)
        for name, value in counters.items():
            step = value - self._raw[name] if name in self._raw else 0.0
            totals[name] = before.get(name, 0.0) + max(0.0, step)
            self._raw[name] = value
        self._times.append(at)
        self._values.append(totals)

    def total(self, counter: str) -> float:
        """Growth since the first reading."""
        return self._values[-1].get(counter, 0.0) if self._values else 0.0

    def rate(self, counter: str, start: float, end: float) -> Optional[Measure]:
        """Growth per second from start to end; None where the readings do not cover half of it."""
        times = [time for time in self._times if start - 2 <= time <= end + 2]
        if len(times) < 2 or times[-1] - times[0] < (end - start) / 2 or end <= start:
            return None
        borders = batches(start, end)
        values = [self._at(counter, border) for border in borders]
        parts = [
            (value - before) / (border - earlier)
            for before, value, earlier, border in zip(values, values[1:], borders, borders[1:])
        ]
        return measure_of((values[-1] - values[0]) / (end - start), parts)

    def _at(self, counter: str, time: float) -> float:
        """Straight line between the readings around that time."""
        times = list(self._times)
        after = bisect.bisect_left(times, time)
        if after == 0:
            return self._values[0].get(counter, 0.0)
        if after == len(times):
            return self._values[-1].get(counter, 0.0)
        low, high = self._values[after - 1].get(counter, 0.0), self._values[after].get(counter, 0.0)
        return low + (high - low) * (time - times[after - 1]) / (times[after] - times[after - 1])
