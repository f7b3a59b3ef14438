"""When a move will be done, by how long its own steps took: with an interval, and corrected after each.

A step is the time in which as many PGs arrived as move at a time. It takes so long for each PG, and so long for each
byte: PGs of a metadata pool say nothing of how fast data moves.

    seconds = a * PGs + b * bytes,  a, b >= 0

Both are told by least squares over the last steps. A step's variance grows with its expected length: a large one tells
more of the mean. What the steps do not tell is as a weak prior has it (`PG_S`, `BYTE_S`), with an interval to match.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Mapping, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.special import stdtrit

from ceph_tuner.core.goals.slo import Objective
from ceph_tuner.core.hours import Hours
from ceph_tuner.core.measure.sample import Window
from ceph_tuner.moves import LAST_STEPS, Steps
from ceph_tuner.pacing.objectives import missed, unseen

SURE = 0.95
"""Of each end."""
PG_S, BYTE_S = 5.0, 1.0 / 50e6
"""Before a step has told: an entry is written and its PG peers twice; the data comes at 50 MB/s."""
PRIOR_DEVIATION = 10.0
"""As a share of both: they may be wrong by such a factor."""
NOISE, NOISE_STEPS = 0.3, 2
"""Deviation of a step's length, as a share, and the steps that this experience counts for."""
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
    """Steps so far."""

    steps: Steps = ()

    def after(self, moved_pgs: int, moved_bytes: float, seconds: float) -> MoveForecast:
        """One more step, of a PG at least."""
        return replace(self, steps=(*self.steps, (moved_pgs, moved_bytes, max(seconds, 0.1)))[-LAST_STEPS:])

    def finish(
        self, now: float, since: float, pgs_to_do: int, bytes_to_do: float, hours: Hours
    ) -> Optional[FinishTime]:
        """When so much is moved that was left at `since`, the step under way included; None before a step has ended."""
        if pgs_to_do <= 0:
            return FinishTime(now, now, now)
        if not self.steps:
            return None
        mean, wide = self.seconds(pgs_to_do, bytes_to_do)
        ends = [_end(since, seconds, hours) for seconds in (mean, max(0.0, mean - wide), mean + wide)]
        return FinishTime(*(None if end is None else max(now, end) for end in ends))

    def seconds(self, pgs: int, nbytes: float) -> Tuple[float, float]:
        """Mean and half the interval of what so much takes, a step at least having ended."""
        work: NDArray[np.float64] = np.array([pgs * PG_S, nbytes * BYTE_S])
        steps = np.array(self.steps, dtype=float)
        # in the prior's seconds
        done, seconds = steps[:, :2] * (PG_S, BYTE_S), steps[:, 2]
        prior = np.eye(2) / PRIOR_DEVIATION
        factors = np.full(2, seconds.sum() / done.sum())
        for _ in range(3):
            expected = done @ factors
            weights = 1.0 / np.sqrt(expected * expected.mean())
            rows = done * weights[:, None]
            scaled = np.concatenate([seconds * weights / NOISE, prior.sum(axis=1)])
            factors, _ = nnls(np.vstack([rows / NOISE, prior]), scaled)
        squares = float(np.sum(((seconds - done @ factors) * weights) ** 2))
        variance = (squares + NOISE_STEPS * NOISE**2) / len(seconds)
        known = rows.T @ rows / variance + prior.T @ prior
        error = math.sqrt(float(work @ np.linalg.solve(known, work)))
        return float(work @ factors), float(stdtrit(len(seconds), SURE)) * error


@dataclass(frozen=True)
class RoughTime:
    """How long a move takes, before its first step tells it."""

    seconds: float
    """Of open hours."""
    finish: FinishTime
    """Where it begins now."""
    by: str
    """What tells it, for people."""


def rough_by_moves(steps: Steps, now: float, pgs_to_do: int, bytes_to_do: float, hours: Hours) -> Optional[RoughTime]:
    """By the last steps of earlier moves, the oldest first; None where there is none, or nothing to do."""
    forecast = MoveForecast(steps[-LAST_STEPS:])
    finish = forecast.finish(now, now, pgs_to_do, bytes_to_do, hours)
    if finish is None or pgs_to_do <= 0:
        return None
    pgs = sum(step[0] for step in forecast.steps)
    by = "the last PG of earlier moves" if pgs == 1 else f"the last {pgs} PGs of earlier moves"
    return RoughTime(forecast.seconds(pgs_to_do, bytes_to_do)[0], finish, by)


def rough_time(
    windows: Sequence[Window], bounds: Mapping[Objective, float], now: float, bytes_to_do: float, hours: Hours
) -> Optional[RoughTime]:
    """By what backfill came to in windows that the cluster keeps, so by bytes alone; None where no window tells.

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
    by = "1 kept window" if len(told) == 1 else f"{len(told)} kept windows"
    words = f"{by} with backfill: for the bytes alone, and small PGs take seconds each"
    return RoughTime(seconds, FinishTime(_end(now, seconds, hours), None, None), words)


def open_s(start: float, end: float, hours: Hours) -> float:
    """Seconds of open hours between two moments."""
    if not hours or end <= start:
        return max(0.0, end - start)
    return sum(min(last, end) - max(first, start) for first, last in hours.stretches(start, end))


def _end(now: float, seconds: float, hours: Hours) -> Optional[float]:
    """When so many seconds of open hours are over."""
    if not hours:
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
