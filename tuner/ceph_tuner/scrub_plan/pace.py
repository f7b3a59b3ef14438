"""Which PGs are asked for next, how many at a time, and when all will be done."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import AbstractSet, Dict, List, Mapping, Optional, Set, Tuple

from ceph_tuner.scrub_plan import MEASURED, RateRange, ScrubPg, ScrubRules, ScrubView
from ceph_tuner.scrub_plan.beginning import Beginning, without_beginning
from ceph_tuner.scrub_plan.obstacles import TRIMMING, recovering_osds
from ceph_tuner.scrub_plan.rates_ahead import RatesAhead
from ceph_tuner.scrub_plan.schedule import hours_ahead, share

TRUSTED_PGS = 1.0
"""The forecast counts for as much as so many PGs that are scrubbed."""
HALF_S = 1800.0
"""What came so long ago counts for half as much as what comes now."""
LONGEST_DAYS = 60.0


@dataclass(frozen=True)
class ScrubLimits:
    """How many scrubs there may be at a time, primaries and replicas counted together, whoever asked for them."""

    per_osd: int
    per_host: int

    def __post_init__(self) -> None:
        if self.per_osd < 1 or self.per_host < 1:
            raise ValueError(f"per_osd (={self.per_osd}) and per_host (={self.per_host}) must be at least 1")


def due_until(view: ScrubView, until: float) -> Tuple[ScrubPg, ...]:
    """PGs that are late, or due until then; the longest late first, so that a second run takes the same order."""
    return tuple(sorted((pg for pg in view.pgs if pg.late or pg.due_at <= until), key=lambda pg: (pg.due_at, pg.pgid)))


def finished(goal: Mapping[str, float], view: ScrubView) -> Dict[str, bool]:
    """PG -> whether it was deep-scrubbed since its stamp in the `goal`; PGs that are gone are left out.

    A stamp that is older tells of a scrub as well, where the clock before was ahead. One that somebody set back makes
    the PG late.
    """
    return {
        pg.pgid: pg.deep_scrubbed_at > goal[pg.pgid] or (pg.deep_scrubbed_at < goal[pg.pgid] and not pg.late)
        for pg in view.pgs
        if pg.pgid in goal
    }


def ready(pg: ScrubPg, rules: ScrubRules, unready_osds: AbstractSet[int], despite_flags: bool = False) -> bool:
    """Whether Ceph would begin a deep scrub of it now: clean, not trimmed, on no OSD that recovers, not flagged."""
    if pg.scrubbing or not pg.clean or not pg.acting or pg.state & TRIMMING or unready_osds & set(pg.acting):
        return False
    return despite_flags or not rules.forbids_deep(pg.pool)


def held_osds(view: ScrubView) -> Set[int]:
    """OSDs that begin no scrub because they recover."""
    return set() if view.rules.during_recovery else set(recovering_osds(view.pgs))


def next_scrubs(
    goal: Mapping[str, float],
    view: ScrubView,
    requests: AbstractSet[str],
    limits: ScrubLimits,
    at_once: Optional[int],
    despite_flags: bool = False,
    passed_over: AbstractSet[str] = frozenset(),
) -> List[ScrubPg]:
    """PGs to ask for now, in the order of the `goal` (PG -> its stamp when the drain was planned).

    `requests`: asked for, and not seen to begin; they count as if they ran. `at_once` of None: only OSDs and hosts
    are limits. A PG that cannot begin now (trimmed, unclean, on an OSD that recovers, flagged) is passed over, and so
    are those of `passed_over`.
    """
    by_id = {pg.pgid: pg for pg in view.pgs}
    done = finished(goal, view)
    on_osd: Counter[int] = Counter()
    on_host: Counter[str] = Counter()
    under_way = 0

    def count(pg: ScrubPg) -> None:
        on_osd.update(pg.acting)
        on_host.update(_hosts_of(pg, view))

    for pg in view.pgs:
        waits = pg.pgid in requests and not done.get(pg.pgid, False)
        if pg.scrubbing or waits:
            count(pg)
            under_way += pg.pgid in goal
    unready_osds = held_osds(view)
    batch: List[ScrubPg] = []
    for pgid in goal:
        if at_once is not None and under_way + len(batch) >= at_once:
            break
        if pgid not in by_id or done[pgid] or pgid in requests or pgid in passed_over:
            continue
        pg = by_id[pgid]
        if not ready(pg, view.rules, unready_osds, despite_flags):
            continue
        if any(on_osd[osd] >= limits.per_osd for osd in pg.acting):
            continue
        if any(on_host[host] >= limits.per_host for host in _hosts_of(pg, view)):
            continue
        count(pg)
        batch.append(pg)
    return batch


@dataclass(frozen=True)
class Expectation:
    """The forecast's rates against what came, so that the date is corrected as the drain goes.

    Both fade: an hour ago counts for a quarter, and so does what the forecast counts for at the beginning.
    """

    rates: RatesAhead
    trusted_bytes: float
    """The forecast counts for as much as so much that is scrubbed."""
    expected_bytes: float = 0.0
    """What the forecast had for the time of the drain so far, faded."""
    came_bytes: float = 0.0
    """What was scrubbed in that time, faded alike."""
    unforeseen_bytes: float = 0.0
    """What was scrubbed in hours for which the forecast has nothing, faded."""
    unforeseen_s: float = 0.0
    """How long these were, faded."""
    scrubbed_bytes: float = 0.0
    """In all."""

    def after(
        self,
        at: float,
        seconds: float,
        scrubbed_bytes: float,
        beginning: Optional[Beginning] = None,
        is_open: bool = True,
    ) -> Expectation:
        """Some more time, and how much is scrubbed in all by then; a time below nothing is none.

        `is_open`: whether scrubs may begin; where they may not, time says nothing of the rate.
        """
        seconds = max(0.0, seconds) if is_open else 0.0
        rate, fade = self.rates.at(at).mean, 0.5 ** (seconds / HALF_S)
        new_bytes, is_foreseen = max(0.0, scrubbed_bytes - self.scrubbed_bytes), rate > 0
        lost_s = 0.0 if beginning is None else beginning.lost_s(at, at + seconds, rate)
        return replace(
            self,
            trusted_bytes=self.trusted_bytes * fade,
            expected_bytes=self.expected_bytes * fade + rate * (seconds - lost_s),
            came_bytes=self.came_bytes * fade + (new_bytes if is_foreseen else 0.0),
            unforeseen_bytes=self.unforeseen_bytes * fade + (0.0 if is_foreseen else new_bytes),
            unforeseen_s=self.unforeseen_s * fade + (0.0 if is_foreseen else seconds),
            scrubbed_bytes=scrubbed_bytes,
        )

    @property
    def factor(self) -> float:
        """What came as a multiple of the forecast; 1 at the beginning."""
        prior_bytes = self.expected_bytes + self.trusted_bytes
        return (self.came_bytes + self.trusted_bytes) / prior_bytes if prior_bytes > 0 else 1.0

    def finish_at(
        self, now: float, left_bytes: float, rules: ScrubRules, beginning: Optional[Beginning] = None
    ) -> Optional[float]:
        """When so many bytes are scrubbed; None where that takes longer than 60 days."""
        if left_bytes <= 0:
            return now
        corrected = self._corrected
        hours = (
            (start, seconds, share(start, seconds, corrected, rules))
            for start, seconds in hours_ahead(now, LONGEST_DAYS)
        )
        for start, seconds, room in without_beginning(hours, beginning):
            if room >= left_bytes:
                return start + seconds * left_bytes / room
            left_bytes -= room
        return None

    @property
    def _corrected(self) -> RatesAhead:
        """The forecast by what came; hours for which it has nothing get what such came to, once that is a PG or so."""
        is_known = self.unforeseen_s > 0 and self.unforeseen_bytes >= self.trusted_bytes
        unforeseen, factor = self.unforeseen_bytes / self.unforeseen_s if is_known else 0.0, self.factor
        by_policy: Dict[str, Tuple[RateRange, ...]] = {}
        for policy, hours in self.rates.by_policy.items():
            means = [hour.mean * factor if hour.mean > 0 else unforeseen for hour in hours]
            by_policy[policy] = tuple(RateRange(mean, mean, mean, MEASURED) for mean in means)
        return replace(self.rates, by_policy=by_policy)


def _hosts_of(pg: ScrubPg, view: ScrubView) -> Set[str]:
    return {view.hosts[osd] for osd in pg.acting if view.hosts.get(osd)}
