"""When a move will be done, by how long its own steps took: with an interval, and corrected after each."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace
from typing import Mapping, Optional, Sequence, Tuple

from scipy.special import stdtrit

from ceph_tuner.core.goals.slo import Objective
from ceph_tuner.core.hours import Hours
from ceph_tuner.core.measure.sample import Window
from ceph_tuner.pacing.objectives import missed, unseen

LAST_STEPS = 20
"""So many of the last steps tell the rate: clients and drives of hours ago say little."""
SURE = 0.95
"""Of each end."""
BACKFILLED = "recovery.bytes_s"
"""Copies that are pushed, of whatever kind."""
LONGEST_S = 365 * 86400.0


@dataclass(frozen=True)
class FinishTime:
    """Moments in seconds since the epoch; those beyond a year are none."""

    mean: Optional[float]
    low: Optional[float]
    high: Optional[float]


@dataclass(frozen=True)
class MoveForecast:
    """Steps so far: each with what it moved and how long it took, waits for clients included."""

    steps: Tuple[Tuple[float, float], ...] = ()

    def after(self, moved_bytes: float, seconds: float) -> MoveForecast:
        """One more step."""
        return replace(self, steps=(*self.steps, (max(moved_bytes, 1.0), max(seconds, 0.1)))[-LAST_STEPS:])

    def finish(self, now: float, since: float, bytes_to_do: float, hours: Hours) -> Optional[FinishTime]:
        """When so much is moved that was left at `since`, the step under way included; None before a step has ended."""
        if bytes_to_do <= 0:
            return FinishTime(now, now, now)
        if not self.steps:
            return None
        each = [seconds / step_bytes for step_bytes, seconds in self.steps]
        # large steps tell more of the mean
        mean = sum(seconds for _, seconds in self.steps) / sum(step_bytes for step_bytes, _ in self.steps)
        count = len(each)
        spread = statistics.stdev(each) if count > 1 else mean
        wide = float(stdtrit(max(count - 1, 1), SURE)) * spread / math.sqrt(count)
        paces = (mean, max(0.0, mean - wide), mean + wide)
        ends = [_end(since, bytes_to_do * pace, hours) for pace in paces]
        return FinishTime(*(None if end is None else max(now, end) for end in ends))


@dataclass(frozen=True)
class RoughTime:
    """How long a move takes by what backfill came to in windows that the cluster keeps."""

    seconds: float
    """Of open hours."""
    finish_at: Optional[float]
    """Where it begins now; None beyond a year."""
    windows: int


def rough_time(
    windows: Sequence[Window], bounds: Mapping[Objective, float], now: float, bytes_to_do: float, hours: Hours
) -> Optional[RoughTime]:
    """None where no window tells.

    Windows tell in which misplaced copies were moved, none was recovered, and the objectives were seen. One that missed
    an objective counts with its time alone: a move waits there.
    """
    told = [
        window
        for window in windows
        if window.means.get("backfill.objects_s", 0.0) > 0
        and not window.means.get("recovery.copies_s", 0.0) > 0
        and BACKFILLED in window.means
        and not unseen(bounds, window.means)
    ]
    moved_bytes = sum(
        window.means[BACKFILLED] * (window.end - window.start) for window in told if not missed(bounds, window.means)
    )
    if not moved_bytes > 0:
        return None
    seconds = bytes_to_do * sum(window.end - window.start for window in told) / moved_bytes
    return RoughTime(seconds, _end(now, seconds, hours), len(told))


def open_s(start: float, end: float, hours: Hours) -> float:
    """Seconds of open hours between two moments."""
    if not hours or end <= start:
        return max(0.0, end - start)
    return sum(min(last, end) - max(first, start) for first, last in hours.stretches(start, end))


def _end(now: float, seconds: float, hours: Hours) -> Optional[float]:
    """When so many seconds of open hours are over."""
    if not (hours.spans or hours.dated):
        return now + seconds if seconds < LONGEST_S else None
    at = now
    while at < now + LONGEST_S:
        begins = hours.begins(at)
        if begins is None:
            return None
        ends = hours.ends(begins)
        if ends is None or begins + seconds <= ends:
            return begins + seconds
        seconds -= ends - begins
        at = ends
    return None
