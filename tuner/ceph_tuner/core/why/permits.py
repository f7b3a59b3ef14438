"""Work that may not begin: an operator's flags, permitted hours, recovery before scrub."""

from __future__ import annotations

import shlex
from datetime import datetime, timezone, tzinfo
from typing import Callable, Dict, FrozenSet, List, Tuple

from ceph_tuner.core.knobs.scrub_hours import bounding_options, bounds_of, may_begin
from ceph_tuner.core.knobs.scrub_slots import RECOVERING
from ceph_tuner.core.why.cause import Cause, Evidence
from ceph_tuner.core.why.facts import BACKFILL, CLIENT, RECOVERY, SCRUB, SNAPTRIM, PgNow, WhyFacts
from ceph_tuner.core.why.pg_cause import pg_cause
from ceph_tuner.core.why.work import judged, led, left, some_pgs, waiting

_FLAG_HOLDS: Dict[str, Tuple[Tuple[str, Callable[[PgNow], bool]], ...]] = {
    # norecover holds backfill as well
    "norecover": ((RECOVERY, lambda pg: True), (BACKFILL, lambda pg: True)),
    "nobackfill": ((BACKFILL, lambda pg: True),),
    # of PGs that are whole but not where they should be
    "norebalance": ((BACKFILL, lambda pg: pg.degraded == 0),),
    "nodeep-scrub": ((SCRUB, lambda pg: pg.deep_late),),
    "noscrub": ((SCRUB, lambda pg: pg.scrub_late and not pg.deep_late),),
    "nosnaptrim": ((SNAPTRIM, lambda pg: True),),
}
_PAUSED = frozenset(("pauserd", "pausewr"))


def paused(facts: WhyFacts) -> List[Cause]:
    """`ceph osd pause`: clients wait outside, so no counter of an OSD shows them."""
    flags = sorted(facts.flags & _PAUSED)
    if not flags:
        return []
    names = tuple(sorted(pool.name for pool in facts.pools.values()))
    return [
        Cause(
            "flag-pause",
            CLIENT,
            names,
            "The cluster is paused: clients' operations do not begin",
            1.0,
            float(len(facts.pgs)),
            "PGs",
            (Evidence(f"flags of the OSD map: {', '.join(flags)}", "ceph osd dump"),),
            "Unpause it when the reason is gone.",
            ("ceph osd unpause",),
        )
    ]


def flags(facts: WhyFacts) -> List[Cause]:
    """Flags of all, each with the work that it keeps from beginning."""
    causes = []
    for flag, holds in _FLAG_HOLDS.items():
        if flag in facts.flags:
            causes += [_flag_cause(facts, flag, work, which) for work, which in holds]
    return [cause for cause in causes if cause.waiting > 0]


def _flag_cause(facts: WhyFacts, flag: str, work: str, which: Callable[[PgNow], bool]) -> Cause:
    whole = left(facts, work)
    own = [pg for pg in whole if which(pg) and "scrubbing" not in pg.states]
    words = f"{len(own)} of {len(whole)} PGs with {work} to do wait: {some_pgs(own)}"
    return pg_cause(
        facts,
        f"flag-{flag}",
        work,
        own,
        whole,
        f"The flag {flag} is set: {work} does not begin",
        (Evidence(f"flags of the OSD map: {flag}", "ceph osd dump"), Evidence(words, "ceph pg ls")),
        "Unset the flag when the reason for it is gone.",
        (f"ceph osd unset {flag}",),
    )


def pool_flags(facts: WhyFacts) -> List[Cause]:
    """Scrub flags of single pools."""
    causes = []
    whole = left(facts, SCRUB)
    for number, pool in facts.pools.items():
        for flag in sorted(pool.flags & {"noscrub", "nodeep-scrub"} - facts.flags):
            which = _FLAG_HOLDS[flag][0][1]
            own = [pg for pg in whole if pg.pool == number and which(pg) and "scrubbing" not in pg.states]
            if own:
                evidence = Evidence(f"{len(own)} PGs of it are late: {some_pgs(own)}", "ceph pg ls")
                causes.append(
                    pg_cause(
                        facts,
                        f"flag-{flag}",
                        SCRUB,
                        own,
                        whole,
                        f"The pool {pool.name} has the flag {flag}: its scrubs do not begin",
                        (Evidence(f"flag of pool {pool.name}: {flag}", "ceph osd pool ls detail"), evidence),
                        "Unset the flag when the reason for it is gone.",
                        (f"ceph osd pool set {shlex.quote(pool.name)} {flag} 0",),
                    )
                )
    return causes


def scrub_hours(facts: WhyFacts, zone: tzinfo = timezone.utc) -> List[Cause]:
    """Late PGs on OSDs whose permitted hours or days are not now."""
    bounds_by_osd = {osd.id: bounds_of(osd.options) for osd in facts.osds if osd.options}
    bounds_by_osd = {osd: bounds for osd, bounds in bounds_by_osd.items() if not may_begin(*bounds, facts.at, zone)}
    late = waiting(facts, SCRUB)
    own = [pg for pg in late if pg.acting and pg.acting[0] in bounds_by_osd]
    if not own:
        return []
    osd = own[0].acting[0]
    days, hours = bounds_by_osd[osd]
    words = f"hours {hours[0]} to {hours[1]}, days {days[0]} to {days[1]} (0 is Sunday), by the OSD's host; it is "
    words += f"{datetime.fromtimestamp(facts.at, zone):%H:%M} {zone} by the clock here"
    return [
        pg_cause(
            facts,
            "scrub-hours",
            SCRUB,
            own,
            led(facts, left(facts, SCRUB)),
            "It is not the hour of scrubs: none begins now",
            (
                Evidence(f"osd.{osd}: {words}", f"ceph config show osd.{osd} osd_scrub_begin_hour"),
                Evidence(f"{len(own)} late PGs wait: {some_pgs(own)}", "ceph pg ls"),
            ),
            "Permit more hours, or wait for them. The same begin and end is always.",
            tuple(f"ceph config rm osd {name}" for name in bounding_options(days, hours)),
            tuple(sorted({pg.acting[0] for pg in own})),
        )
    ]


def recovery_first(facts: WhyFacts) -> List[Cause]:
    """Late PGs on OSDs that recover: no scrub begins there."""
    recovery_osds: FrozenSet[int] = frozenset(
        osd for pg in facts.pgs if pg.states & pg.lasting & RECOVERING for osd in pg.osds
    )
    barred_osds = {
        osd.id for osd in facts.osds if osd.options.get("osd_scrub_during_recovery") == "false"
    } & recovery_osds
    own = [pg for pg in waiting(facts, SCRUB) if barred_osds & pg.osds]
    if not own:
        return []
    return [
        pg_cause(
            facts,
            "scrub-behind-recovery",
            SCRUB,
            own,
            judged(facts, left(facts, SCRUB)),
            "Scrubs wait for recovery: none begins on an OSD that recovers",
            (
                Evidence(
                    f"{len(barred_osds)} OSDs recover, osd_scrub_during_recovery is false there",
                    "ceph pg ls recovering",
                ),
                Evidence(f"{len(own)} late PGs lie on them: {some_pgs(own)}", "ceph pg ls"),
            ),
            "Wait for recovery or speed it up; its own causes are named beside this one.",
            ("ceph config set osd osd_scrub_during_recovery true",),
            tuple(sorted(barred_osds)),
        )
    ]
