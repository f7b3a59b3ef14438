"""Which PGs have work of a kind, and which of them are at it."""

from __future__ import annotations

from statistics import fmean
from typing import Callable, Dict, List

from ceph_tuner.why.facts import BACKFILL, CLIENT, RECOVERY, SCRUB, SNAPTRIM, PgNow, WhyFacts

_WAITS = {
    RECOVERY: frozenset(("recovery_wait",)),
    BACKFILL: frozenset(("backfill_wait",)),
    SNAPTRIM: frozenset(("snaptrim_wait",)),
}
_RUNS = {
    RECOVERY: frozenset(("recovering", "forced_recovery")),
    BACKFILL: frozenset(("backfilling",)),
    SCRUB: frozenset(("scrubbing",)),
    SNAPTRIM: frozenset(("snaptrim",)),
}


def waiting(facts: WhyFacts, work: str) -> List[PgNow]:
    """PGs that wait to begin, at both looks."""
    if work == SCRUB:
        return [pg for pg in facts.pgs if (pg.deep_late or pg.scrub_late) and "scrubbing" not in pg.states]
    return [pg for pg in facts.pgs if pg.states & pg.lasting & _WAITS[work]]


def running(facts: WhyFacts, work: str) -> List[PgNow]:
    """PGs that are at it."""
    return [pg for pg in facts.pgs if pg.states & _RUNS[work]]


_LEFT: Dict[str, Callable[[PgNow], bool]] = {
    RECOVERY: lambda pg: pg.degraded > 0 or bool(pg.states & (_WAITS[RECOVERY] | _RUNS[RECOVERY])),
    BACKFILL: lambda pg: pg.misplaced > 0 or bool(pg.states & (_WAITS[BACKFILL] | _RUNS[BACKFILL])),
    SCRUB: lambda pg: pg.deep_late or pg.scrub_late or "scrubbing" in pg.states,
    SNAPTRIM: lambda pg: pg.snaptrim_queue > 0 or bool(pg.states & (_WAITS[SNAPTRIM] | _RUNS[SNAPTRIM])),
}


def left(facts: WhyFacts, work: str) -> List[PgNow]:
    """PGs that have such work at all."""
    return [pg for pg in facts.pgs if _LEFT[work](pg)]


def share(part: List[PgNow], whole: List[PgNow]) -> float:
    """How much of some PGs others are."""
    return min(1.0, len(part) / len(whole)) if whole else 0.0


def some_pgs(pgs: List[PgNow], most: int = 3) -> str:
    """`3.1, 3.7 and 5 more`."""
    ids = [pg.pgid for pg in pgs]
    more = f" and {len(ids) - most} more" if len(ids) > most else ""
    return ", ".join(ids[:most]) + more


def matters(facts: WhyFacts, work: str) -> bool:
    """Whether anybody waits for the work's end: scrubs in their time may take as long as they like."""
    return work == CLIENT or (
        any(pg.deep_late or pg.scrub_late for pg in facts.pgs) if work == SCRUB else bool(left(facts, work))
    )


def together(parts: List[List[bool]]) -> float:
    """Share of the looks at which any of these OSDs was held."""
    return fmean(any(looks) for looks in zip(*parts)) if parts else 0.0
