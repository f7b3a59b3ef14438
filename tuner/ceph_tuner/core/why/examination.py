"""All causes, one after the other: facts in, causes by what they hold out."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, List, Mapping, Sequence

from ceph_tuner.core.checks import COUNTERS, OPTIONS, OSD_MAP, PGS, QUEUES, STEADY, Check
from ceph_tuner.core.why import drive_causes, limit_causes, permits, queue_causes, slots
from ceph_tuner.core.why.cause import LEAST_HELD, Cause
from ceph_tuner.core.why.facts import SLOTS, WhyFacts
from ceph_tuner.core.why.stopped_scrubs import stopped_scrubs

CAUSES: Mapping[str, Check[WhyFacts, Cause]] = {
    "paused": Check(permits.paused, (OSD_MAP,)),
    "flags": Check(permits.flags, (OSD_MAP, PGS)),
    "flags of pools": Check(permits.pool_flags, (OSD_MAP, PGS)),
    "scrub hours": Check(permits.scrub_hours, (OPTIONS, PGS)),
    "scrubs behind recovery": Check(permits.recovery_first, (OPTIONS, PGS)),
    "stale shards": Check(queue_causes.stale_shards, (OPTIONS, QUEUES, PGS, STEADY)),
    "capacity": Check(limit_causes.wrong_capacity, (OPTIONS, QUEUES, PGS)),
    "limit": Check(limit_causes.limit, (OPTIONS, QUEUES, PGS)),
    "throttle": Check(drive_causes.throttle, (OPTIONS, COUNTERS)),
    "slow drive": Check(drive_causes.slow_drive, (COUNTERS, PGS)),
    "saturated drives": Check(drive_causes.saturated_drives, (OPTIONS, COUNTERS)),
    "strict queue": Check(queue_causes.strict_queue, (QUEUES, COUNTERS)),
    "threads": Check(queue_causes.op_threads, (OPTIONS, QUEUES, COUNTERS)),
    "share": Check(queue_causes.share, (QUEUES, COUNTERS, PGS)),
    "no room": Check(slots.too_full, (PGS,)),
    "reservation slots": Check(slots.reservations, (SLOTS, PGS)),
    "scrub slots": Check(slots.scrub_slots, (OPTIONS, PGS)),
    "stopped scrubs": Check(stopped_scrubs, (OPTIONS, COUNTERS, PGS)),
    "snaptrim slots": Check(slots.snaptrim_slots, (OPTIONS, PGS)),
}
"""Every cause, by what it looks at, with the parts of the facts that it needs; of causes that hold the same, the
earlier comes first."""

_LINES = frozenset(("reservation-slots", "scrub-slots", "snaptrim-slots", "strict-queue"))
"""Who is held by one of these waits for others, and for what holds these."""


def examine(facts: WhyFacts) -> List[Cause]:
    """What holds work now, what holds most of its work first."""
    causes = [cause for check in CAUSES.values() for cause in check.look(facts)]
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
