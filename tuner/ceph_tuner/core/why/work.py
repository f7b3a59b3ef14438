"""Which PGs have work of a kind, and which of them are at it."""

from __future__ import annotations

from statistics import fmean
from typing import Callable, Collection, Dict, List

from ceph_tuner.core.why.facts import BACKFILL, CLIENT, RECOVERY, SCRUB, SNAPTRIM, PgNow, WhyFacts
from ceph_tuner.core.wording import first_of

_WAITS = {
    RECOVERY: frozenset(("recovery_wait",)),
    BACKFILL: frozenset(("backfill_wait",)),
    SNAPTRIM: frozenset(("snaptrim_wait",)),
}
_RUNS = {
    RECOVERY: frozenset(("recovering",)),
    BACKFILL: frozenset(("backfilling",)),
    SCRUB: frozenset(("scrubbing",)),
    SNAPTRIM: frozenset(("snaptrim",)),
}

TOO_FULL = {RECOVERY: "recovery_toofull", BACKFILL: "backfill_toofull"}
"""States of a PG whose target has no room."""


def waiting(facts: WhyFacts, work: str) -> List[PgNow]:
    """PGs that wait to begin, at both looks."""
    if work == SCRUB:
        return [pg for pg in facts.pgs if (pg.deep_late or pg.scrub_late) and "scrubbing" not in pg.states]
    return [pg for pg in facts.pgs if pg.states & pg.lasting & _WAITS[work]]


def running(facts: WhyFacts, work: str) -> List[PgNow]:
    """PGs that are at it."""
    return [pg for pg in facts.pgs if pg.states & _RUNS[work]]


_URGENT = frozenset(("degraded", "undersized", "forced_recovery", "forced_backfill"))
"""States in which even backfill is recovery to mClock (`PeeringState::get_recovery_op_priority`)."""


def scheduled(facts: WhyFacts, work: str) -> List[PgNow]:
    """PGs that are at it, by the class that serves them: backfill of what lacks copies is in recovery's.

    Of OSDs that were asked: of the queues of the others nothing is known.
    """
    at_work = judged(facts, running(facts, work))
    if work == RECOVERY:
        return at_work + [pg for pg in judged(facts, running(facts, BACKFILL)) if pg.states & _URGENT]
    if work == BACKFILL:
        return [pg for pg in at_work if not pg.states & _URGENT]
    return at_work


def judged(facts: WhyFacts, pgs: List[PgNow]) -> List[PgNow]:
    """Those on OSDs that were asked: what holds the others cannot be seen, and is no share of anything."""
    osd_ids = {osd.id for osd in facts.osds}
    return [pg for pg in pgs if pg.osds & osd_ids]


def led(facts: WhyFacts, pgs: List[PgNow]) -> List[PgNow]:
    """The same for what a PG's primary alone decides."""
    osd_ids = {osd.id for osd in facts.osds}
    return [pg for pg in pgs if pg.acting and pg.acting[0] in osd_ids]


def part_on(facts: WhyFacts, osds: Collection[int]) -> float:
    """Share of the PGs that lie on any of these OSDs, by those that were asked; by the OSDs where no PG is listed."""
    pgs = judged(facts, list(facts.pgs))
    if not pgs:
        return len(osds) / len(facts.osds) if facts.osds else 0.0
    return len([pg for pg in pgs if pg.osds & set(osds)]) / len(pgs)


_LEFT: Dict[str, Callable[[PgNow], bool]] = {
    RECOVERY: lambda pg: (
        pg.degraded > 0 or bool(pg.states & (_WAITS[RECOVERY] | _RUNS[RECOVERY] | {TOO_FULL[RECOVERY]}))
    ),
    BACKFILL: lambda pg: (
        pg.misplaced > 0
        # after a loss objects are degraded, and none is misplaced
        or (pg.degraded > 0 and "remapped" in pg.states)
        or bool(pg.states & (_WAITS[BACKFILL] | _RUNS[BACKFILL] | {TOO_FULL[BACKFILL]}))
    ),
    SCRUB: lambda pg: pg.deep_late or pg.scrub_late or "scrubbing" in pg.states,
    SNAPTRIM: lambda pg: pg.snaptrim_queue > 0 or bool(pg.states & (_WAITS[SNAPTRIM] | _RUNS[SNAPTRIM])),
}


def left(facts: WhyFacts, work: str) -> List[PgNow]:
    """PGs that have such work at all."""
    return [pg for pg in facts.pgs if _LEFT[work](pg)]


def share(part: List[PgNow], whole: List[PgNow]) -> float:
    """How much of some PGs others are."""
    return min(1.0, len(part) / len(whole)) if whole else 0.0


def some_pgs(pgs: List[PgNow]) -> str:
    """`3.1, 3.7 and 5 more`."""
    return first_of((pg.pgid for pg in pgs), 3)


def matters(facts: WhyFacts, work: str) -> bool:
    """Whether anybody waits for the work's end: scrubs in their time may take as long as they like."""
    return work == CLIENT or (
        any(pg.deep_late or pg.scrub_late for pg in facts.pgs)
        if work == SCRUB
        else bool(left(facts, work) or scheduled(facts, work))
    )


def together(parts: List[List[bool]]) -> float:
    """Share of the looks at which any of these OSDs was held."""
    return fmean(any(looks) for looks in zip(*parts)) if parts else 0.0
