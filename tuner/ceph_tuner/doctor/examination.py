"""All checks, one after the other: facts in, findings by their cost out."""

from __future__ import annotations

from typing import Callable, Dict, List

from ceph_tuner.doctor import capacity, health, host, masks, operator, placement, settings, shards, twin_drift
from ceph_tuner.doctor import compression as compressing
from ceph_tuner.doctor import encryption as encrypting
from ceph_tuner.doctor import queue as queueing
from ceph_tuner.doctor import recovery as recovering
from ceph_tuner.doctor import scrub as scrubbing
from ceph_tuner.doctor.facts import Facts, HostFacts
from ceph_tuner.doctor.finding import Finding, by_cost

CHECKS: Dict[str, Callable[[Facts], List[Finding]]] = {
    "other queue": queueing.other_queue,
    "capacity": capacity.capacity,
    "bandwidth": capacity.bandwidth,
    "capacity masks": masks.capacity_masks,
    "throttle": queueing.throttle,
    "ignored knobs": settings.ignored,
    "leftovers": settings.leftovers,
    "nine values": settings.asleep,
    "reservations": settings.overbooked,
    "shards": shards.stale,
    "placement": placement.placement,
    "flags": scrubbing.flagged,
    "scrub interval": scrubbing.interval,
    "recovery chunk": recovering.chunk,
    "compression": compressing.compression,
    "laggy PGs": health.laggy,
    "metadata servers": health.metadata,
    "versions": health.versions,
    "encryption": encrypting.encryption,
    "twin drift": twin_drift.twin_drift,
    "Rook": operator.undone_by_rook,
}
"""Every check of a cluster, by what it looks at."""

HOST_CHECKS: Dict[str, Callable[[HostFacts], List[Finding]]] = {
    "idle states": host.idle_states,
    "IOMMU": host.iommu,
    "CPU clock": host.governor,
    "allocator": host.allocator,
}
"""Every check of a host."""


def examine(facts: Facts) -> List[Finding]:
    """Everything that speaks against tuning this cluster as it is, the dearest first."""
    return by_cost(finding for check in CHECKS.values() for finding in check(facts))


def examine_host(facts: HostFacts) -> List[Finding]:
    """Everything that this host takes away, the dearest first."""
    return by_cost(finding for check in HOST_CHECKS.values() for finding in check(facts))
