"""All checks, one after the other: facts in, findings by their cost out, and what could not be judged."""

from __future__ import annotations

from typing import Dict, List

from ceph_tuner.core.checks import COUNTERS, OPTIONS, OSD_MAP, PGS, QUEUES, STEADY, Check
from ceph_tuner.doctor import (
    capacity,
    health,
    host,
    late_scrubs,
    masks,
    operator,
    placement,
    settings,
    shards,
    stopped_scrubs,
    twin_drift,
)
from ceph_tuner.doctor import compression as compressing
from ceph_tuner.doctor import encryption as encrypting
from ceph_tuner.doctor import queue as queueing
from ceph_tuner.doctor import recovery as recovering
from ceph_tuner.doctor import scrub as scrubbing
from ceph_tuner.doctor.facts import (
    CHANGES,
    CPUS,
    DEVICES,
    ENTRIES,
    FORECASTS,
    HEALTH,
    OSD_PROCESSES,
    PG_STATES,
    POOL_USE,
    SOURCES,
    USE,
    VERSIONS,
    Facts,
    HostFacts,
)
from ceph_tuner.doctor.finding import Finding, by_cost, with_reach

_OSDS = (OPTIONS, COUNTERS, SOURCES)
"""What an OSD says of itself."""

CHECKS: Dict[str, Check[Facts, Finding]] = {
    "other queue": Check(queueing.other_queue, _OSDS),
    "capacity": Check(capacity.capacity, (*_OSDS, ENTRIES)),
    "bandwidth": Check(capacity.bandwidth, _OSDS),
    "capacity masks": Check(masks.capacity_masks, (ENTRIES,)),
    "throttle": Check(queueing.throttle, _OSDS),
    "ignored knobs": Check(settings.ignored, (*_OSDS, ENTRIES)),
    "leftovers": Check(settings.leftovers, (ENTRIES,)),
    "nine values": Check(settings.asleep, (ENTRIES,)),
    "reservations": Check(settings.overbooked, _OSDS),
    "shards": Check(shards.stale, (OPTIONS, QUEUES, STEADY)),
    "placement": Check(placement.placement, (OSD_MAP, PGS, USE, POOL_USE)),
    "flags": Check(scrubbing.flagged, (OSD_MAP,)),
    "scrub interval": Check(scrubbing.interval, (*_OSDS, OSD_MAP, PGS)),
    "late scrubs": Check(late_scrubs.late_scrubs, (OPTIONS, OSD_MAP, PGS)),
    "stopped scrubs": Check(stopped_scrubs.stopped_scrubs, (*_OSDS, OSD_MAP)),
    "recovery chunk": Check(recovering.chunk, _OSDS),
    "recovery limit": Check(recovering.limit_on_shards, (*_OSDS, ENTRIES)),
    "compression": Check(compressing.compression, (*_OSDS, OSD_MAP, POOL_USE)),
    "laggy PGs": Check(health.laggy, (PG_STATES,)),
    "metadata servers": Check(health.metadata, (HEALTH,)),
    "versions": Check(health.versions, (VERSIONS,)),
    "encryption": Check(encrypting.encryption, _OSDS),
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
    findings = by_cost(finding for check in CHECKS.values() for finding in check.look(facts))
    return [with_reach(finding, facts.places) for finding in findings]


def examine_host(facts: HostFacts) -> List[Finding]:
    """Everything that this host takes away, the dearest first."""
    return by_cost(finding for check in HOST_CHECKS.values() for finding in check.look(facts))
