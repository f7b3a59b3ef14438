"""The whole plan of a cluster: its dates, between which ends they are believed, and what stands in the way."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime, timezone, tzinfo
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.scrub_plan import RateRange, ScrubPg, ScrubView
from ceph_tuner.scrub_plan.obstacles import FLAG, Obstacle, held_pgs, obstacles
from ceph_tuner.scrub_plan.schedule import ENDS, Schedule, hours_ahead, needed_bytes_s, schedule, shares

LONGEST_DAYS = 28.0


@dataclass(frozen=True)
class ScrubPlan:
    """What `ceph-tuner scrub plan` says. Moments are seconds since the epoch."""

    view: ScrubView
    rates: Tuple[RateRange, ...]
    """Of the day's 24 hours."""
    schedule: Schedule
    gone_between: Tuple[Optional[float], Optional[float]]
    """The end of the backlog at the highest rate that is believed, and at the lowest; None: not within the hours."""
    needed_bytes_s: float
    """What keeps every PG within its interval."""
    there_bytes_s: float
    """What the hours have, in the mean."""
    obstacles: Tuple[Obstacle, ...]
    objectives: Tuple[str, ...]
    notes: Tuple[str, ...] = ()

    @property
    def late(self) -> List[ScrubPg]:
        """PGs past their date, the longest late first."""
        return sorted((pg for pg in self.view.pgs if pg.late), key=lambda pg: (pg.due_at, pg.pgid))

    @property
    def flagged(self) -> bool:
        """Whether a flag keeps deep scrubs from beginning."""
        return any(obstacle.name == FLAG for obstacle in self.obstacles)

    def to_dict(self) -> Dict[str, Any]:
        """Plain values, for programs."""
        by_id = {pg.pgid: pg for pg in self.view.pgs}
        firsts = {scrub.pgid: scrub for scrub in reversed(self.schedule.scrubs)}
        return {
            "at": self.view.at,
            "pgs": len(self.view.pgs),
            "late": [
                {
                    "pgid": pg.pgid,
                    "pool": pg.pool,
                    "deep_scrubbed_at": pg.deep_scrubbed_at or None,
                    "due_at": pg.due_at,
                    "bytes": pg.raw_bytes,
                    "planned": firsts[pg.pgid].start if pg.pgid in firsts else None,
                }
                for pg in self.late
            ],
            "to_be_late": [scrub.pgid for scrub in self.schedule.to_be_late if not by_id[scrub.pgid].late],
            "gone_at": self.schedule.gone_at,
            "gone_between": list(self.gone_between),
            "needed_bytes_s": self.needed_bytes_s,
            "there_bytes_s": self.there_bytes_s,
            "rates": [{"hour": hour, **asdict(rate)} for hour, rate in enumerate(self.rates)],
            "hours": [asdict(hour) for hour in self.schedule.hours],
            "scrubs": [asdict(scrub) for scrub in sorted(self.schedule.scrubs, key=lambda each: each.start)],
            "unplaced": list(self.schedule.unplaced),
            "held": list(self.schedule.held),
            "obstacles": [asdict(obstacle) for obstacle in self.obstacles],
            "objectives": list(self.objectives),
            "notes": list(self.notes),
        }


def plan(
    view: ScrubView,
    rates: Sequence[RateRange],
    objectives: Sequence[str] = (),
    means: Optional[Mapping[str, float]] = None,
    days: Optional[float] = None,
    zone: tzinfo = timezone.utc,
    notes: Sequence[str] = (),
) -> ScrubPlan:
    """Plan the scrubs of the coming days: by default as many as the longest interval has, 28 at most."""
    longest = max((pg.interval_s for pg in view.pgs), default=0.0) / 86400
    hours = hours_ahead(view.at, days if days is not None else min(max(longest, 1.0), LONGEST_DAYS))
    hindrances = obstacles(view, means)
    ready_from = held_pgs(hindrances)
    sources = [rates[datetime.fromtimestamp(start, zone).hour].source for start, _ in hours]
    schedules = {}
    for end in ENDS:
        share = shares(hours, rates, view.rules, end, zone) if view.rules.max_scrubs > 0 else [0.0] * len(hours)
        schedules[end] = schedule(view.pgs, view.at, hours, share, view.rules.max_scrubs, ready_from, sources)
    there = sum(hour.share_bytes for hour in schedules["mean"].hours) / sum(seconds for _, seconds in hours)
    return ScrubPlan(
        view,
        tuple(rates),
        schedules["mean"],
        (schedules["high"].gone_at, schedules["low"].gone_at),
        needed_bytes_s(view.pgs),
        there,
        tuple(hindrances),
        tuple(objectives),
        (*view.notes, *notes),
    )
