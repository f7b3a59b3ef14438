"""A date for every deep scrub: what is late first, what comes spread over the hours before it is due.

Each hour has a share, the bytes that the objectives leave for scrub then, and each OSD has `max_scrubs` scrubs at a
time. No hour gets more than its share. Late PGs take the first room, the longest late first (earliest deadline first).
A PG that comes is put into the emptiest hour between the middle of its interval and its end, so that scrubs are spread;
where these hours are full it comes as soon as there is room, late.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from ceph_tuner.scrub_plan import HOUR_S, ScrubPg, ScrubRules
from ceph_tuner.scrub_plan.obstacles import open_at
from ceph_tuner.scrub_plan.rates import lasts_s, usual_pace
from ceph_tuner.scrub_plan.rates_ahead import RatesAhead

Array = NDArray[Any]

EARLIEST = 0.5
"""Share of its interval that a PG waits at least, before it is scrubbed ahead of its time."""
_FULL = 1e-9
"""Rest of an hour's share that counts as none."""


@dataclass(frozen=True)
class PlannedScrub:
    """One deep scrub to come. Moments are seconds since the epoch."""

    pgid: str
    pool: str
    due_at: float
    start: float
    end: float
    raw_bytes: float

    @property
    def late_s(self) -> float:
        """How long past its date it ends; 0 where it does not."""
        return max(0.0, self.end - self.due_at)


@dataclass(frozen=True)
class PlannedHour:
    """An hour and its share."""

    start: float
    seconds: float
    share_bytes: float
    planned_bytes: float
    source: str


@dataclass(frozen=True)
class Schedule:
    """What comes when."""

    scrubs: Tuple[PlannedScrub, ...]
    hours: Tuple[PlannedHour, ...]
    unplaced: Tuple[str, ...]
    """PGs that are due before the last hour ends and find no room."""
    held: Tuple[str, ...]
    """PGs that wait for what nobody knows the end of."""
    gone_at: Optional[float]
    """When no PG is late any more; None where that is not within the hours."""

    @property
    def to_be_late(self) -> List[PlannedScrub]:
        """Scrubs that end past their date."""
        return [scrub for scrub in self.scrubs if scrub.late_s > 0]


def needed_bytes_s(pgs: Sequence[ScrubPg]) -> float:
    """Bytes a second that keep every PG within its interval for ever."""
    return sum(pg.raw_bytes / pg.interval_s for pg in pgs if pg.interval_s > 0)


def hours_ahead(now: float, days: float) -> Iterator[Tuple[float, float]]:
    """(start, seconds) of the hours from now on: the first is what is left of this one."""
    at, end = now, now + days * 24 * HOUR_S
    while at < end - 1e-6:
        until = min((math.floor(at / HOUR_S) + 1) * HOUR_S, end)
        yield at, until - at
        at = until


def share(start: float, seconds: float, rates: RatesAhead, rules: ScrubRules, end: str = "mean") -> float:
    """Bytes that an hour has for scrub, by its policy's rate; none where Ceph's own hours allow none."""
    return rates.bytes_in(start, seconds, end) if open_at(rules, start, rates.zone) else 0.0


def shares(
    hours: Sequence[Tuple[float, float]], rates: RatesAhead, rules: ScrubRules, end: str = "mean"
) -> List[float]:
    """That of each hour."""
    return [share(start, seconds, rates, rules, end) for start, seconds in hours]


def schedule(
    pgs: Sequence[ScrubPg],
    now: float,
    hours: Sequence[Tuple[float, float]],
    share_bytes: Sequence[float],
    max_scrubs: int,
    ready_from: Optional[Mapping[str, Optional[float]]] = None,
    sources: Sequence[str] = (),
) -> Schedule:
    """Place every deep scrub that is due within the hours. `ready_from`: PG -> when; None: unknown."""
    ready_from = ready_from or {}
    room = _Room(pgs, hours, share_bytes, max_scrubs)
    horizon = hours[-1][0] + hours[-1][1] if hours else now
    by_id = {pg.pgid: pg for pg in pgs}
    without_date = [pgid for pgid in by_id if pgid in ready_from and ready_from[pgid] is None]
    queue = [(pg.due_at, pg.pgid, pg.deep_scrubbed_at) for pg in pgs if pg.pgid not in set(without_date)]
    heapq.heapify(queue)
    scrubs: List[PlannedScrub] = []
    leftover: List[str] = []
    while queue and queue[0][0] < horizon:
        due, pgid, last = heapq.heappop(queue)
        pg = by_id[pgid]
        ready = max(now, ready_from.get(pgid) or now)
        if due <= now:
            first = room.from_moment(ready)
        else:
            first = room.emptiest(pg, max(ready, last + EARLIEST * pg.interval_s), due)
        span = room.take(pg, first, max(ready, now)) if first is not None else None
        if span is None:
            leftover.append(pgid)
            continue
        start, end = span
        scrubs.append(PlannedScrub(pgid, pg.pool, due, start, end, pg.raw_bytes))
        # an interval of nothing would never end
        again = end + max(pg.interval_s, HOUR_S)
        if again < horizon:
            heapq.heappush(queue, (again, pgid, end))
    names = list(sources) or [""] * len(hours)
    planned_hours = tuple(
        PlannedHour(start, seconds, share, share - float(free_bytes), source)
        for (start, seconds), share, free_bytes, source in zip(hours, share_bytes, room.left, names)
    )
    last_late = None if leftover else _gone_at(scrubs, now)
    return Schedule(
        tuple(scrubs), planned_hours, tuple(dict.fromkeys(leftover)), tuple(sorted(without_date)), last_late
    )


def _gone_at(scrubs: Sequence[PlannedScrub], now: float) -> float:
    """The first moment at which no PG is late: lateness that begins before it ends goes on."""
    at = now
    for scrub in sorted(scrubs, key=lambda each: each.due_at):
        if scrub.due_at > at:
            break
        at = max(at, scrub.end)
    return at


class _Room:
    """What the hours have left, for all OSDs together (bytes) and for each one (seconds of scrubs)."""

    def __init__(
        self,
        pgs: Sequence[ScrubPg],
        hours: Sequence[Tuple[float, float]],
        share_bytes: Sequence[float],
        max_scrubs: int,
    ) -> None:
        self._starts = np.array([start for start, _ in hours])
        self._seconds = np.array([seconds for _, seconds in hours])
        self._share = np.array(share_bytes, dtype=float)
        self.left = self._share.copy()
        self._begin = 0
        """No hour before it has any room."""
        open_s = np.where(self._share > 0, self._seconds, 0.0)
        self._osds: Dict[int, Array] = {osd: max_scrubs * open_s for pg in pgs for osd in pg.acting}
        # without any scrub that is known, OSDs are no limit of their own
        self._pace = usual_pace(pgs)

    def from_moment(self, moment: float) -> Optional[int]:
        """The hour that a moment is in, else the next one."""
        after = np.flatnonzero(self._starts + self._seconds > moment)
        return int(after[0]) if len(after) else None

    def emptiest(self, pg: ScrubPg, earliest: float, due: float) -> Optional[int]:
        """The hour with the least of its share planned in which all of the PG fits; else the earliest."""
        first = self.from_moment(earliest)
        last = self.from_moment(due)
        if first is None:
            return None
        # it is to end before the date
        until = last if last is not None else len(self._starts)
        candidates = np.arange(first, max(first, until))
        if len(candidates):
            fits = (self.left[candidates] >= pg.raw_bytes) & (self._share[candidates] > 0)
            seconds = lasts_s(pg, self._pace)
            for osd in pg.acting:
                fits &= self._osds[osd][candidates] >= np.minimum(seconds, self._seconds[candidates])
            if fits.any():
                shares_used = 1 - self.left[candidates[fits]] / self._share[candidates[fits]]
                return int(candidates[fits][int(np.argmin(shares_used))])
        return first

    def take(self, pg: ScrubPg, first: int, ready: float) -> Optional[Tuple[float, float]]:
        """Room for a PG from an hour on; (start, end), or None where there is not enough, and then none is taken."""
        seconds, done = lasts_s(pg, self._pace), 0.0
        parts: List[Tuple[int, float]] = []
        start = end = 0.0
        while self._begin < len(self._starts) and self._full(self._begin):
            self._begin += 1
        for hour in range(max(first, self._begin), len(self._starts)):
            if self._full(hour):
                continue
            share = float(self._share[hour])
            part = 1 - done
            if pg.raw_bytes > 0:
                part = min(part, float(self.left[hour]) / pg.raw_bytes)
            if seconds > 0:
                limits = [float(self._osds[osd][hour]) for osd in pg.acting]
                part = min(part, min([float(self._seconds[hour]), *limits]) / seconds)
            if part <= _FULL:
                continue
            share_used = 1 - float(self.left[hour]) / share
            begins = max(ready, float(self._starts[hour] + share_used * self._seconds[hour]))
            if not parts:
                start = begins
            parts.append((hour, part))
            done += part
            lasts = max(part * seconds, part * pg.raw_bytes / share * float(self._seconds[hour]))
            end = min(begins + lasts, float(self._starts[hour] + self._seconds[hour]))
            if done >= 1 - _FULL:
                break
        if done < 1 - _FULL:
            return None
        for hour, part in parts:
            self.left[hour] = max(0.0, self.left[hour] - part * pg.raw_bytes)
            for osd in pg.acting:
                self._osds[osd][hour] -= part * seconds
        return start, max(start, end)

    def _full(self, hour: int) -> bool:
        return bool(self.left[hour] <= _FULL * self._share[hour])
