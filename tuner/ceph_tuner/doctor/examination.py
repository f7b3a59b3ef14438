"""All checks, one after the other: facts in, findings by their cost out, and what could not be judged."""

from __future__ import annotations

from typing import Dict, List

from ceph_tuner.doctor import capacity, health, host, masks, operator, placement, settings, shards, twin_drift
from ceph_tuner.doctor import compression as compressing
from ceph_tuner.doctor import encryption as encrypting
from ceph_tuner.doctor import queue as queueing
from ceph_tuner.doctor import recovery as recovering
from ceph_tuner.doctor import scrub as scrubbing
from ceph_tuner.doctor.check import Check
from ceph_tuner.doctor.facts import (
    CHANGES,
    CPUS,
    DEVICES,
    ENTRIES,
    FORECASTS,
    HEALTH,
    OPTIONS,
    OSD_MAP,
    OSD_PROCESSES,
    PG_STATES,
    PGS,
    POOL_USE,
    QUEUES,
    USE,
    VERSIONS,
    Facts,
    HostFacts,
)
from ceph_tuner.doctor.finding import Finding, by_cost

CHECKS: Dict[str, Check[Facts, Finding]] = {
    "other queue": Check(queueing.other_queue, (OPTIONS,)),
    "capacity": Check(capacity.capacity, (OPTIONS, ENTRIES)),
    "bandwidth": Check(capacity.bandwidth, (OPTIONS,)),
    "capacity masks": Check(masks.capacity_masks, (ENTRIES,)),
    "throttle": Check(queueing.throttle, (OPTIONS,)),
    "ignored knobs": Check(settings.ignored, (OPTIONS, ENTRIES)),
    "leftovers": Check(settings.leftovers, (ENTRIES,)),
    "nine values": Check(settings.asleep, (ENTRIES,)),
    "reservations": Check(settings.overbooked, (OPTIONS,)),
    "shards": Check(shards.stale, (OPTIONS, QUEUES)),
    "placement": Check(placement.placement, (OSD_MAP, PGS, USE, POOL_USE)),
    "flags": Check(scrubbing.flagged, (OSD_MAP,)),
    "scrub interval": Check(scrubbing.interval, (OPTIONS, OSD_MAP, PGS)),
    "recovery chunk": Check(recovering.chunk, (OPTIONS,)),
    "compression": Check(compressing.compression, (OPTIONS, OSD_MAP, POOL_USE)),
    "laggy PGs": Check(health.laggy, (PG_STATES,)),
    "metadata servers": Check(health.metadata, (HEALTH,)),
    "versions": Check(health.versions, (VERSIONS,)),
    "encryption": Check(encrypting.encryption, (OPTIONS,)),
    "twin drift": Check(twin_drift.twin_drift, (FORECASTS,)),
    "Rook": Check(operator.undone_by_rook, (DEVICES, CHANGES)),
}
"""Every check of a cluster, by what it looks at, with the parts of the facts that it needs."""

DECISIVE = ("other queue", "capacity", "throttle", "leftovers")
"""Checks that may find what makes tuning pointless: where one is not judged, nobody can say that nothing does."""

HOST_CHECKS: Dict[str, Check[HostFacts, Finding]] = {
    "idle states": Check(host.idle_states, (CPUS,)),
    "IOMMU": Check(host.iommu, ()),
    "CPU clock": Check(host.governor, (CPUS,)),
    "allocator": Check(host.allocator, (OSD_PROCESSES,)),
}
"""Every check of a host."""


def examine(facts: Facts) -> List[Finding]:
    """Everything that speaks against tuning this cluster as it is, the dearest first."""
    return by_cost(finding for check in CHECKS.values() for finding in check.look(facts))


def examine_host(facts: HostFacts) -> List[Finding]:
    """Everything that this host takes away, the dearest first."""
    return by_cost(finding for check in HOST_CHECKS.values() for finding in check.look(facts))
