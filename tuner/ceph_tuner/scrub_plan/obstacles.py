"""What stands in the way of deep scrubs, and for how long where that is known."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import timezone, tzinfo
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.knobs.scrub_hours import may_begin
from ceph_tuner.core.knobs.scrub_slots import RECOVERING
from ceph_tuner.core.measure.sample import NEVER_S
from ceph_tuner.scrub_plan import ScrubPg, ScrubRules, ScrubView
from ceph_tuner.scrub_plan.rates import lasts_s, usual_pace

FLAG = "nodeep-scrub"
TRIMMING = frozenset(("snaptrim", "snaptrim_wait"))
TRIM_WAITS = "scrub before snaptrim"
"""It holds no scrub up: a scrub is what trimming waits for."""
NOSNAPTRIM = "nosnaptrim"


@dataclass(frozen=True)
class Obstacle:
    """One reason why scrubs do not begin, or others do not because of them."""

    name: str
    words: str
    pgs: Tuple[str, ...] = ()
    """PGs that it holds up; none where it is about all work, or about hours."""
    until: Optional[float] = None
    """When it is over, in seconds since the epoch; None where that is not known."""
    command: str = ""
    """What takes it away."""


def obstacles(view: ScrubView, means: Optional[Mapping[str, float]] = None) -> List[Obstacle]:
    """All of them; `means` of a recent window say when recovery and snaptrim are done."""
    return [
        *_flags(view),
        *_unready(view, means or {}),
        *_snaptrim(view, means or {}),
        *_limits(view.rules),
    ]


def held_pgs(hindrances: Sequence[Obstacle]) -> Dict[str, Optional[float]]:
    """PG -> when it can be scrubbed; None where nobody knows.

    Flags are left out: the operator's hand ends them, and dates count from there.
    """
    ends: Dict[str, Optional[float]] = {}
    for obstacle in hindrances:
        if obstacle.name in (FLAG, TRIM_WAITS):
            continue
        for pgid in obstacle.pgs:
            before = ends.get(pgid, 0.0)
            ends[pgid] = None if before is None or obstacle.until is None else max(before, obstacle.until)
    return ends


def open_at(rules: ScrubRules, at: float, zone: tzinfo = timezone.utc) -> bool:
    """Whether Ceph's own hours and days let scrubs begin at a moment (`OsdScrub::scrub_time_permit`)."""
    return may_begin(rules.days, rules.hours, at, zone)


def next_opening(rules: ScrubRules, at: float, zone: tzinfo = timezone.utc) -> float:
    """The next moment at which they may begin, to the full hour; `at` itself where that is one."""
    moment = at
    # within a week and a day every hour of every weekday comes
    for _ in range(8 * 24):
        if open_at(rules, moment, zone):
            return moment
        moment = (moment // 3600 + 1) * 3600
    return moment


def recovering_osds(pgs: Sequence[ScrubPg]) -> Dict[int, str]:
    """OSD -> a PG that recovers or is backfilled on it, from it or onto it."""
    return {osd: pg.pgid for pg in pgs if pg.state & RECOVERING for osd in (*pg.acting, *pg.up)}


def _flags(view: ScrubView) -> List[Obstacle]:
    rules, entries = view.rules, []
    if FLAG in rules.flags:
        everything = tuple(pg.pgid for pg in view.pgs)
        words = "nodeep-scrub is set: no deep scrub begins by itself"
        entries.append(Obstacle(FLAG, words, everything, command="ceph osd unset nodeep-scrub"))
    else:
        for pool in sorted(rules.pool_flags):
            if rules.forbids_deep(pool):
                own = tuple(pg.pgid for pg in view.pgs if pg.pool == pool)
                command = shlex.join(["ceph", "osd", "pool", "set", pool, "nodeep-scrub", "0"])
                words = f"the pool {pool} has nodeep-scrub: no deep scrub of it begins by itself"
                entries.append(Obstacle(FLAG, words, own, command=command))
    if "noscrub" in rules.flags:
        words = "noscrub is set: shallow scrubs do not begin; deep ones do"
        entries.append(Obstacle("noscrub", words, command="ceph osd unset noscrub"))
        return entries
    for pool in sorted(rules.pool_flags):
        if rules.forbids_shallow(pool):
            words = f"the pool {pool} has noscrub: shallow scrubs of it do not begin; deep ones do"
            command = shlex.join(["ceph", "osd", "pool", "set", pool, "noscrub", "0"])
            entries.append(Obstacle("noscrub", words, command=command))
    return entries


def _unready(view: ScrubView, means: Mapping[str, float]) -> List[Obstacle]:
    entries = []
    unclean = tuple(pg.pgid for pg in view.pgs if not pg.clean)
    until = _ends(view.at, means, "recovery.finish_s", "backfill.finish_s")
    if until == view.at:
        # what is unclean and does not recover waits for somebody
        until = None
    if unclean:
        words = f"{_count(unclean)} not active and clean: Ceph scrubs none of them"
        entries.append(Obstacle("unclean", words, unclean, until))
    recovery_osds = recovering_osds(view.pgs)
    if recovery_osds and not view.rules.during_recovery:
        own = tuple(pg.pgid for pg in view.pgs if pg.clean and set(pg.acting) & set(recovery_osds))
        if own:
            words = f"{_count(own)} on OSDs that recover: osd_scrub_during_recovery is false, so no scrub begins there"
            command = "ceph config set osd osd_scrub_during_recovery true"
            entries.append(Obstacle("recovery", words, own, until, command))
    return entries


def _snaptrim(view: ScrubView, means: Mapping[str, float]) -> List[Obstacle]:
    entries = []
    pgids = tuple(pg.pgid for pg in view.pgs if pg.state & TRIMMING)
    if pgids:
        words = f"{_count(pgids)} trimmed of snapshots: Ceph scrubs none of them meanwhile"
        entries.append(Obstacle("snaptrim", words, pgids, _ends(view.at, means, "snaptrim.drain_s")))
    waiting = waiting_trims(view)
    if waiting:
        words = f"{_count(tuple(waiting))} scrubbed while snapshots wait: trimming goes on after the scrub"
        if NOSNAPTRIM in view.rules.flags:
            words = f"{words}, once nosnaptrim is unset"
        ends = [end for end in waiting.values() if end is not None]
        until = max(ends) if len(ends) == len(waiting) else None
        entries.append(Obstacle(TRIM_WAITS, words, tuple(waiting), until))
    return entries


def waiting_trims(view: ScrubView) -> Dict[str, Optional[float]]:
    """PGs whose trimming waits for their scrub -> when that ends, by how long deep ones take; None: nobody knows.

    A shallow scrub ends before that.
    """
    pace = usual_pace(view.pgs)
    ends: Dict[str, Optional[float]] = {}
    for pg in view.pgs:
        if pg.scrubbing and pg.snaptrim_queue:
            seconds = lasts_s(pg, pace)
            known = seconds > 0 and NOSNAPTRIM not in view.rules.flags
            ends[pg.pgid] = view.at + seconds * (1 - pg.progress) if known else None
    return ends


def trims_next(pg: ScrubPg, rules: ScrubRules) -> bool:
    """Whether trimming it begins by itself, now that no scrub runs: to ask for one would make that wait."""
    if not pg.snaptrim_queue or pg.scrubbing or not pg.clean:
        return False
    return NOSNAPTRIM not in rules.flags and not pg.state & (TRIMMING | {"snaptrim_error"})


def _limits(rules: ScrubRules) -> List[Obstacle]:
    entries = []
    if rules.hours[0] != rules.hours[1]:
        words = f"scrubs begin from {rules.hours[0]} to {rules.hours[1]} h alone (osd_scrub_begin_hour, …_end_hour)"
        entries.append(Obstacle("hours", words))
    if rules.days[0] != rules.days[1]:
        words = f"scrubs begin on days {rules.days[0]} to {rules.days[1]} alone (osd_scrub_begin_week_day; 0 is Sunday)"
        entries.append(Obstacle("days", words))
    words = "so many periodic scrubs at a time on an OSD" if rules.max_scrubs else "no periodic scrub begins"
    entries.append(Obstacle("osd_max_scrubs", f"osd_max_scrubs is {rules.max_scrubs}: {words}"))
    words = f"osd_scrub_load_threshold is {rules.load_threshold:g}: a host with more load for each CPU begins none"
    entries.append(Obstacle("osd_scrub_load_threshold", f"{words}; its load is not seen from here"))
    return entries


def _ends(at: float, means: Mapping[str, float], *metrics: str) -> Optional[float]:
    """When the longest of these is done; None where one never is, or none is seen."""
    times = [means[name] for name in metrics if name in means]
    return at + max(times) if times and max(times) < NEVER_S else None


def _count(pgs: Sequence[str]) -> str:
    return f"{len(pgs)} PG is" if len(pgs) == 1 else f"{len(pgs)} PGs are"
