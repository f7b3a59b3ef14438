"""The whole plan of a cluster: its dates, between which ends they are believed, and what stands in the way."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from ceph_tuner.pacing.client_watch import WINDOW_S
from ceph_tuner.pacing.judged_windows import judged_s
from ceph_tuner.scrub_plan import HOURS, ScrubPg, ScrubRules, ScrubView
from ceph_tuner.scrub_plan.beginning import beginning_of, without_beginning
from ceph_tuner.scrub_plan.obstacles import FLAG, Obstacle, held_pgs, obstacles
from ceph_tuner.scrub_plan.rates_ahead import ENDS, RatesAhead
from ceph_tuner.scrub_plan.schedule import Schedule, hours_ahead, needed_bytes_s, schedule, shares

LONGEST_DAYS = 28.0


@dataclass(frozen=True)
class ScrubPlan:
    """What `ceph-tuner scrub plan` says. Moments are seconds since the epoch."""

    view: ScrubView
    rates: RatesAhead
    hours_by_policy: Mapping[str, Tuple[int, ...]]
    """Policy -> hours of the day in which it holds at some time of the plan; without a calendar, all of them."""
    schedule: Schedule
    gone_between: Tuple[Optional[float], Optional[float]]
    """The end of the backlog at the highest rate that is believed, and at the lowest; None: not within the hours."""
    needed_bytes_s: float
    """What keeps every PG within its interval."""
    there_bytes_s: float
    """What the hours have, in the mean."""
    obstacles: Tuple[Obstacle, ...]
    objectives: Mapping[str, Tuple[str, ...]]
    """Policy -> what scrubs are held to while it holds."""
    notes: Tuple[str, ...] = ()

    @property
    def late(self) -> List[ScrubPg]:
        """PGs past their date, the longest late first."""
        return sorted((pg for pg in self.view.pgs if pg.late), key=lambda pg: (pg.due_at, pg.pgid))

    @property
    def shallow_late(self) -> List[ScrubPg]:
        """PGs whose last scrub of any kind is too long ago, the longest first."""
        return sorted((pg for pg in self.view.pgs if pg.shallow_late), key=lambda pg: (pg.shallow_due_at, pg.pgid))

    @property
    def shallow_to_be_late(self) -> List[ScrubPg]:
        """PGs that will be: their date comes while no scrub of them begins, and no planned deep one ends before.

        Ceph begins shallow scrubs by itself, long before the date, so that others are in time.
        """
        end = self.schedule.hours[-1].start + self.schedule.hours[-1].seconds if self.schedule.hours else self.view.at
        held, scrubbed = held_pgs(self.obstacles), {scrub.pgid: scrub.end for scrub in reversed(self.schedule.scrubs)}
        return [
            pg
            for pg in sorted(self.view.pgs, key=lambda pg: (pg.shallow_due_at or 0.0, pg.pgid))
            if pg.shallow_due_at is not None
            and not pg.shallow_late
            and pg.shallow_due_at < min(end, _ready_at(self.view.rules, pg, held), scrubbed.get(pg.pgid, math.inf))
        ]

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
            "shallow_late": [
                {"pgid": pg.pgid, "pool": pg.pool, "due_at": pg.shallow_due_at} for pg in self.shallow_late
            ],
            "shallow_to_be_late": [pg.pgid for pg in self.shallow_to_be_late],
            "gone_at": self.schedule.gone_at,
            "gone_between": list(self.gone_between),
            "needed_bytes_s": self.needed_bytes_s,
            "there_bytes_s": self.there_bytes_s,
            "rates": [
                {"hour": hour, "policy": policy or None, **asdict(self.rates.by_policy[policy][hour])}
                for policy, hours in self.hours_by_policy.items()
                for hour in hours
            ],
            "hours": [asdict(hour) for hour in self.schedule.hours],
            "scrubs": [asdict(scrub) for scrub in sorted(self.schedule.scrubs, key=lambda each: each.start)],
            "unplaced": list(self.schedule.unplaced),
            "held": list(self.schedule.held),
            "obstacles": [asdict(obstacle) for obstacle in self.obstacles],
            "objectives": list(self.objectives.get(self.rates.policy_at(self.view.at), ())),
            "policies": {policy: list(texts) for policy, texts in self.objectives.items() if policy},
            "notes": list(self.notes),
        }


def plan(
    view: ScrubView,
    rates: RatesAhead,
    objectives: Optional[Mapping[str, Tuple[str, ...]]] = None,
    means: Optional[Mapping[str, float]] = None,
    days: Optional[float] = None,
    notes: Sequence[str] = (),
    window_s: float = WINDOW_S,
) -> ScrubPlan:
    """Plan the scrubs of the coming days: by default as many as the longest interval has, 28 at most.

    `objectives`: policy -> what scrubs are held to while it holds. With some, a drain measures first and begins with
    one scrub at a time; `window_s` is the time that it judges each pace by, where its own windows are short enough.
    """
    longest = max((pg.interval_s for pg in view.pgs), default=0.0) / 86400
    hours = list(hours_ahead(view.at, days if days is not None else min(max(longest, 1.0), LONGEST_DAYS)))
    hindrances = obstacles(view, means)
    ready_from = held_pgs(hindrances)
    sources = [rates.at(start).source for start, _ in hours]
    beginning = beginning_of(view.pgs, view.rules.max_scrubs, judged_s(len(view.hosts), window_s))
    schedules = {}
    for end in ENDS:
        share = shares(hours, rates, view.rules, end) if view.rules.max_scrubs > 0 else [0.0] * len(hours)
        first = next((start for (start, _), each in zip(hours, share) if each > 0), None)
        has_objectives = first is not None and (objectives or {}).get(rates.policy_at(first))
        whole = ((start, seconds, each) for (start, seconds), each in zip(hours, share))
        paced = list(without_beginning(whole, beginning if has_objectives else None))
        spans, share = [(start, seconds) for start, seconds, _ in paced], [each for _, _, each in paced]
        schedules[end] = schedule(view.pgs, view.at, spans, share, view.rules.max_scrubs, ready_from, sources)
    there = sum(hour.share_bytes for hour in schedules["mean"].hours) / sum(seconds for _, seconds in hours)
    return ScrubPlan(
        view,
        rates,
        _hours_by_policy(rates, hours),
        schedules["mean"],
        (schedules["high"].gone_at, schedules["low"].gone_at),
        needed_bytes_s(view.pgs),
        there,
        tuple(hindrances),
        objectives or {},
        (*view.notes, *notes),
    )


def _ready_at(rules: ScrubRules, pg: ScrubPg, held: Mapping[str, Optional[float]]) -> float:
    """When Ceph itself may begin a PG's shallow scrub; infinite where nobody knows."""
    until = held.get(pg.pgid, 0.0)
    return math.inf if until is None or rules.forbids_shallow(pg.pool) or rules.max_scrubs < 1 else until


def _hours_by_policy(rates: RatesAhead, hours: Sequence[Tuple[float, float]]) -> Dict[str, Tuple[int, ...]]:
    if rates.calendar is None or not rates.calendar.policies:
        return {"": tuple(range(HOURS))}
    held: Dict[str, Set[int]] = {}
    end = hours[-1][0] + hours[-1][1] if hours else 0.0
    for spell in rates.calendar.spells(hours[0][0], end) if hours else ():
        own = held.setdefault(spell.policy, set())
        for start, seconds in hours:
            if start < spell.end and start + seconds > spell.start:
                own.add(rates.hour_at(start))
    return {policy: tuple(sorted(own)) for policy, own in held.items()}
