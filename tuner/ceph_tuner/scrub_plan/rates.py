"""How fast deep scrub may go, hour by hour of the day, for objectives to be kept.

A window in which objectives were kept and PGs were scrubbed says how fast that can be. One in which they were kept and
nothing was scrubbed says that the hour has room, at the pace of the others. One in which they were missed has none: a
drain waits there. So an hour's rate is the mean over its windows. It is what scrubs came to, not what they could come
to: where Ceph had little to scrub, it is too low, and the forecast too late.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from datetime import datetime, timezone, tzinfo
from typing import List, Mapping, Optional, Sequence, Tuple

from scipy.special import stdtrit

from ceph_tuner.core.goals.slo import Objective
from ceph_tuner.core.measure.sample import Window
from ceph_tuner.pacing.objectives import missed, unseen
from ceph_tuner.scrub_plan import HOURS, MEASURED, OTHER_HOURS, PAST_SCRUBS, RateRange, ScrubPg

SURE = 0.95
"""Of each end of an interval."""
FEWEST = 3
"""Windows of an hour of the day below which those of other hours stand for it."""

SCRUBBED = "scrub.bytes_s"

HANDOVER_S = 8.0
"""From the end of a PG's scrub until the next one reads in its place: the mgr hears of the end with the OSD's report,
a drain looks, and an OSD begins at one of its ticks. 5 to 10 s on a lab (benchmarks/results/scrub-backlog.md)."""


def measured_rates(
    windows: Sequence[Window],
    bounds: Mapping[Objective, float],
    pace: Optional[RateRange] = None,
    zone: tzinfo = timezone.utc,
) -> Optional[Tuple[RateRange, ...]]:
    """The rates of the day's hours out of windows of any length; None where these do not tell.

    `pace` is that of scrubs in hours with room, where it is known otherwise (the twin's); without one, only windows in
    which PGs were scrubbed tell it. Windows that do not show an objective's metric tell nothing.
    """
    windows = [window for window in windows if not unseen(bounds, window.means)]
    good_windows = [window for window in windows if not missed(bounds, window.means)]
    paces = [window.means[SCRUBBED] for window in good_windows if window.means.get(SCRUBBED, 0.0) > 0]
    if not windows or (pace is None and not paces):
        return None
    usual = statistics.fmean(paces) if pace is None else pace.mean
    by_hour: List[List[float]] = [[] for _ in range(HOURS)]
    for window in windows:
        scrub_rate = window.means.get(SCRUBBED, 0.0)
        room = 0.0 if missed(bounds, window.means) else scrub_rate if scrub_rate > 0 and pace is None else usual
        by_hour[datetime.fromtimestamp((window.start + window.end) / 2, zone).hour].append(room)
    together = [room for rooms in by_hour for room in rooms]
    # of a pace that is known otherwise, windows tell which hours have room, and not how fast scrubs are
    source, source_elsewhere = (MEASURED, OTHER_HOURS) if pace is None else (pace.source, pace.source)
    # how far the pace itself is believed
    reach = 0.0 if pace is None or not pace.mean else max(pace.mean - pace.low, pace.high - pace.mean) / pace.mean
    overall = _range(together, together, reach, source if len(windows) < FEWEST else source_elsewhere)
    return tuple(_range(own, together, reach, source) if len(own) >= FEWEST else overall for own in by_hour)


def flat_rates(pace: RateRange) -> Tuple[RateRange, ...]:
    """The same rate at all hours."""
    return (pace,) * HOURS


def pace_of_past_scrubs(pgs: Sequence[ScrubPg], at_once: int) -> Optional[RateRange]:
    """Bytes a second of `at_once` scrubs side by side, each as fast as the PGs' last deep ones; None where none tells.

    Scrubs share drives, so `at_once` of them are slower than this where drives are what holds them up.
    """
    paces = [pg.raw_bytes / pg.scrub_s for pg in pgs if pg.scrub_s and pg.raw_bytes > 0]
    return _range([at_once * pace for pace in paces], [], 0.0, PAST_SCRUBS) if paces else None


def usual_pace(pgs: Sequence[ScrubPg]) -> float:
    """Bytes a second of one PG's deep scrub, the median of their last ones; infinite where none tells."""
    paces = [pg.raw_bytes / pg.scrub_s for pg in pgs if pg.scrub_s and pg.raw_bytes > 0]
    return statistics.median(paces) if paces else math.inf


def with_handovers(pace: RateRange, pgs: Sequence[ScrubPg], places: float) -> RateRange:
    """The rate of scrubs that never pause, less the time between them. `places`: how many there are side by side."""
    sizes = [pg.raw_bytes for pg in pgs if pg.raw_bytes > 0]
    if not sizes or places <= 0:
        return pace
    at_once_bytes = places * statistics.fmean(sizes)

    def paused(rate: float) -> float:
        return rate / (1 + HANDOVER_S * rate / at_once_bytes)

    return replace(pace, mean=paused(pace.mean), low=paused(pace.low), high=paused(pace.high))


def lasts_s(pg: ScrubPg, pace: float) -> float:
    """Seconds of a PG's deep scrub: as its last one took, else by that pace; 0 where that is not known either."""
    return pg.scrub_s or (pg.raw_bytes / pace if math.isfinite(pace) and pace > 0 else 0.0)


def rate_range(values: Sequence[float], source: str) -> RateRange:
    """Mean of independent values, and where the true mean is (Student)."""
    return _range(values, values, 0.0, source)


def _range(values: Sequence[float], others: Sequence[float], reach: float, source: str) -> RateRange:
    """Mean and interval; of a single value the spread is that of `others`. `reach` is a share on top."""
    mean = statistics.fmean(values)
    spread = statistics.stdev(values) if len(values) > 1 else statistics.stdev(others) if len(others) > 1 else mean / 2
    count = max(len(values), 1)
    wide = float(stdtrit(max(count - 1, 1), SURE)) * spread / math.sqrt(count) + reach * mean
    return RateRange(mean, max(0.0, mean - wide), mean + wide, source, len(values))
