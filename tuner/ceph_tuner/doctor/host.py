"""What a host takes away before any setting counts: sleep states, IOMMU, CPU clock, memory allocator.

Published of a cluster of 630 NVMe OSDs: C-states cost 10 to 20%; the IOMMU much (time went into its spin lock).
"""

from __future__ import annotations

from typing import List

from ceph_tuner.core.wording import some
from ceph_tuner.doctor.facts import HostFacts
from ceph_tuner.doctor.finding import COSTLY, RESTARTING, Finding

DEEP_US = 10.0
"""Time to leave an idle state from which it is felt beside an NVMe's 50 to 100 µs."""
IDLE_LOST = 0.15
"""Middle of the published 10 to 20%."""
THREAD_CACHE = 134_217_728
"""Bytes; what Ceph's packages set (/etc/default/ceph)."""


def idle_states(host: HostFacts) -> List[Finding]:
    """Idle states that CPUs are slow to leave, and that nobody forbids."""
    bound_us = float("inf") if host.wake_within_us is None else host.wake_within_us
    deep = {name: latency for name, latency in host.idle_states.items() if DEEP_US < latency <= bound_us}
    if not deep:
        return []
    return [
        Finding(
            "c-states",
            COSTLY,
            "CPUs fall into sleep states that take long to leave",
            some(f"{name}: {latency:g} µs to wake up, enabled" for name, latency in deep.items()),
            "10 to 20% of the throughput on an NVMe cluster (published), more of its latency",
            f"Forbid idle states above {DEEP_US:g} µs, for good by a tuned profile.",
            share=IDLE_LOST,
            commands=("tuned-adm profile latency-performance", f"cpupower idle-set -D {DEEP_US:g}"),
        )
    ]


def iommu(host: HostFacts) -> List[Finding]:
    """An IOMMU that translates each transfer of a device."""
    groups = {kind: count for kind, count in host.iommu_groups.items() if kind.startswith("DMA")}
    if not groups:
        return []
    return [
        Finding(
            "iommu",
            COSTLY,
            "The IOMMU translates each transfer of a device",
            some(f"{count} groups of devices are of type {kind}" for kind, count in groups.items()),
            "large on hosts with many NVMe drives (published: the time went into its spin lock); not measured here",
            "Pass transfers through: `iommu=pt` on the kernel's command line, then restart the host.",
        )
    ]


def governor(host: HostFacts) -> List[Finding]:
    """CPUs that do not run at their full clock."""
    slow = {name: count for name, count in host.governors.items() if "performance" not in name.split("/")}
    if not slow:
        return []
    cpus = sum(slow.values())
    return [
        Finding(
            "cpu-governor",
            COSTLY,
            "CPUs run below their full clock until they have been busy for a while",
            some(f"{count} CPUs: governor {name}" for name, count in slow.items()),
            f"latency of light loads on {cpus} of {max(cpus, host.cpus)} CPUs; not measured here",
            "Use the governor performance.",
            commands=("cpupower frequency-set -g performance",),
        )
    ]


def allocator(host: HostFacts) -> List[Finding]:
    """OSDs without tcmalloc, or with too small a cache of it."""
    findings = []
    other = {pid: name for pid, name in host.allocators.items() if name != "tcmalloc"}
    if other:
        findings.append(
            Finding(
                "allocator",
                COSTLY,
                "OSDs run without tcmalloc: their caches cannot follow osd_memory_target",
                some(f"process {pid}: {name}" for pid, name in other.items()),
                "memory use that nobody bounds, and time in the allocator; not measured here",
                "Use a build of Ceph with tcmalloc (all official packages have it).",
                share=None,
            )
        )
    small = {
        pid: cache
        for pid, cache in host.thread_caches.items()
        if host.allocators.get(pid) == "tcmalloc" and (cache is None or cache < THREAD_CACHE)
    }
    if small:
        words = [f"process {pid}: {'not set' if cache is None else cache}" for pid, cache in small.items()]
        findings.append(
            Finding(
                "thread-cache",
                COSTLY,
                "tcmalloc's thread cache is smaller than what Ceph's packages set",
                some(words),
                "CPU time of small operations on hosts with many threads; not measured here",
                f"Set TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES={THREAD_CACHE} in /etc/default/ceph, then restart the OSDs "
                f"one by one: {RESTARTING}.",
            )
        )
    return findings
