"""All causes, one after the other: facts in, causes by what they hold out."""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, Dict, List, Mapping, Sequence

from ceph_tuner.why import drive_causes, limit_causes, permits, queue_causes, slots
from ceph_tuner.why.cause import LEAST_HELD, Cause
from ceph_tuner.why.facts import WhyFacts

CAUSES: Mapping[str, Callable[[WhyFacts], List[Cause]]] = {
    "paused": permits.paused,
    "flags": permits.flags,
    "flags of pools": permits.pool_flags,
    "scrub hours": permits.scrub_hours,
    "scrubs behind recovery": permits.recovery_first,
    "stale shards": queue_causes.stale_shards,
    "capacity": limit_causes.wrong_capacity,
    "limit": limit_causes.limit,
    "throttle": drive_causes.throttle,
    "slow drive": drive_causes.slow_drive,
    "saturated drives": drive_causes.saturated_drives,
    "strict queue": queue_causes.strict_queue,
    "threads": queue_causes.op_threads,
    "share": queue_causes.share,
    "no room": slots.too_full,
    "reservation slots": slots.reservations,
    "scrub slots": slots.scrub_slots,
    "snaptrim slots": slots.snaptrim_slots,
}
"""Every cause, by what it looks at; of causes that hold the same, the earlier comes first."""

_LINES = frozenset(("reservation-slots", "scrub-slots", "snaptrim-slots", "strict-queue"))
"""Who is held by one of these waits for others, and for what holds these."""


def examine(facts: WhyFacts) -> List[Cause]:
    """What holds work now, what holds most of its work first."""
    causes = [cause for look in CAUSES.values() for cause in look(facts)]
    causes = [cause for cause in behind(causes) if cause.held >= LEAST_HELD]
    order = {id(cause): place for place, cause in enumerate(causes)}
    return sorted(causes, key=lambda cause: (-round(cause.held, 2), order[id(cause)]))


def behind(causes: Sequence[Cause]) -> List[Cause]:
    """Who waits for a slot, or in a line, waits for who has it: where these are held, more slots would not help."""
    most: Dict[str, float] = {}
    for cause in causes:
        if cause.name not in _LINES:
            most[cause.work] = max(most.get(cause.work, 0.0), cause.held)
    return [
        replace(cause, held=cause.held * (1 - most.get(cause.work, 0.0))) if cause.name in _LINES else cause
        for cause in causes
    ]
