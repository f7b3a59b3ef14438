"""Clusters drawn at random: drives from hard disks to NVMe, 4 to 40 OSDs, what clients and background work ask of them.

Few OSDs are simulated, with their share of the load and of the PGs, so that a run takes some tens of milliseconds.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Dict, Sequence, Tuple

import numpy as np

from ceph_tuner.core.knobs.releases import REEF, SQUID, TENTACLE
from ceph_tuner.describe.osds import DRIVE_IOPS
from ceph_tuner.twin.model import (
    KIB,
    MIB,
    ClientStream,
    ClusterModel,
    Device,
    OsdModel,
    Pool,
    RecoveryWork,
    ScrubWork,
    SnaptrimWork,
)
from ceph_tuner.twin.parameters import PARAMETERS, value_of, with_values
from ceph_tuner.twin.samples import look, sample_between
from ceph_tuner.twin.simulation import Simulation

RELEASES = (REEF, SQUID, TENTACLE)
WORKS = (("recovery", 0.6), ("scrub", 0.4), ("snaptrim", 0.4))
"""Kind of background work -> how often there is some."""

PLENTY = 10_000_000
"""Objects: work outlasts every run."""

PGS_PER_OSD, COPIES = 100, 3

MISTAKE = 0.1
"""Deviation of the logarithm of what a fit says."""

PROBE_S = {"hdd": 8.0, "ssd": 1.0, "nvme": 0.3}
"""How long clients are alone, to see what they get at most."""


def log_uniform(random: np.random.Generator, low: float, high: float) -> float:
    return float(math.exp(random.uniform(math.log(low), math.log(high))))


def pick(random: np.random.Generator, values: Sequence[Any]) -> Any:
    return values[int(random.integers(len(values)))]


def drawn_osd(random: np.random.Generator) -> Tuple[str, OsdModel]:
    """Kind of drive, and an OSD on it; what mClock believes of the drive is off by a fifth or so."""
    kind = pick(random, ("hdd", "ssd", "nvme"))
    osd: Dict[str, Any] = {"device_class": "ssd", "shards": 8, "threads_per_shard": 2}
    if kind == "hdd":
        # with a full queue, and one by one: a seek and half a turn
        iops, bandwidth = log_uniform(random, 150, 250), log_uniform(random, 120e6, 260e6)
        latency = log_uniform(random, 9e-3, 14e-3)
        device = Device(iops, bandwidth, latency_s=latency, read_latency_s=latency, spread=0.6)
        shards, threads = pick(random, ((1, 5), (5, 1)))
        osd = {"device_class": "hdd", "shards": shards, "threads_per_shard": threads}
        osd["kv_latency_s"] = log_uniform(random, 1e-4, 1e-3)
        if random.random() < 0.5:
            osd["db"] = Device(log_uniform(random, 5e3, 2e4), 3e8, latency_s=log_uniform(random, 5e-5, 2e-4))
    elif kind == "ssd":
        iops, bandwidth = log_uniform(random, 4e3, 3e4), log_uniform(random, 250e6, 550e6)
        device = Device(
            iops, bandwidth, read_iops=iops * log_uniform(random, 1.2, 3), latency_s=log_uniform(random, 5e-5, 2e-4),
            read_latency_s=log_uniform(random, 8e-5, 2e-4), spread=0.4, request_bytes=pick(random, (64, 256)) * KIB,
        )  # fmt: skip
        osd["kv_latency_s"] = log_uniform(random, 1e-4, 5e-4)
    else:
        iops, bandwidth = log_uniform(random, 3e4, 1e5), log_uniform(random, 7e8, 2.5e9)
        device = Device(
            iops, bandwidth, read_iops=iops * log_uniform(random, 1.5, 4), latency_s=log_uniform(random, 2e-5, 6e-5),
            read_bandwidth_bytes_s=bandwidth * log_uniform(random, 1, 2),
            read_latency_s=log_uniform(random, 7e-5, 1.2e-4), request_bytes=pick(random, (64, 256)) * KIB,
        )  # fmt: skip
        osd["kv_latency_s"] = log_uniform(random, 3e-5, 1.5e-4)
        # one commit thread, as in the published measurements, is what bounds small writes on such drives
        osd["kv_cpu_s"] = log_uniform(random, 1e-5, 3e-5)
    believed = min(iops, log_uniform(random, 2e4, 6e4)) * float(random.lognormal(0, 0.2))
    throttle_bytes = pick(random, (256 * KIB, MIB, 4 * MIB))
    if kind == "hdd":
        # Ceph's bench ends before its deferred writes have gone to their places; its throttle counts 670 000 bytes each
        believed, throttle_bytes = believed / DRIVE_IOPS[kind], 64 * MIB
    return kind, OsdModel(
        device, capacity_iops=believed, bandwidth_bytes_s=bandwidth * float(random.lognormal(0, 0.2)),
        throttle_bytes=throttle_bytes, cpu_s_per_byte=3e-10, **osd,
    )  # fmt: skip


def drawn_cluster(random: np.random.Generator) -> Tuple[str, ClusterModel]:
    """Kind of drive, and a cluster with clients and at least one kind of background work."""
    kind, osd = drawn_osd(random)
    osds = round(log_uniform(random, 4, 40))
    simulated = min(osds, 4 if kind == "nvme" else pick(random, (4, 5, 6)))
    pool = Pool("rbd", PGS_PER_OSD * osds // COPIES, COPIES)
    works: Dict[str, Any] = {}
    while not works:
        works = {work: True for work, share in WORKS if random.random() < share}
    size = pick(random, (1, 4)) * MIB
    if "recovery" in works:
        works["recovery"] = (RecoveryWork(pool.name, PLENTY, size),)
    if "scrub" in works:
        works["scrub"] = (ScrubWork(pool.name, PLENTY, size),)
    if "snaptrim" in works:
        works["snaptrim"] = (SnaptrimWork(pool.name, PLENTY, size),)
    clients = ClientStream(
        pool.name,
        depth=16 * osds,
        read_share=pick(random, (0.0, 0.3, 0.7)),
        block_bytes=pick(random, (4, 16, 64)) * KIB,
    )
    model = ClusterModel(
        osds, osd, (pool,), (clients,), release=pick(random, RELEASES), simulated_osds=simulated, **works
    )
    if random.random() < 0.65:
        share = random.uniform(0.2, 0.55)
        clients = replace(clients, rate=share * _most_iops(model, PROBE_S[kind]), depth=64 * osds)
    else:
        clients = replace(clients, depth=pick(random, (2, 4, 8)) * osds)
    return kind, replace(model, clients=(clients,))


def mistaken(model: ClusterModel, random: np.random.Generator, capacity: float = 1.0) -> ClusterModel:
    """The cluster as a fit may see it: every parameter off by a tenth or so, the drives by a factor beside that."""
    known = {
        parameter.name: value_of(model, parameter.name)
        for parameter in PARAMETERS
        if parameter.works_in(model) and value_of(model, parameter.name) > 0
    }
    seen = with_values(model, {name: value * float(random.lognormal(0, MISTAKE)) for name, value in known.items()})
    device = seen.osd.device
    factors = {
        name: getattr(device, name) * capacity
        for name in ("iops", "bandwidth_bytes_s", "read_iops", "read_bandwidth_bytes_s")
        if getattr(device, name) is not None
    }
    return replace(seen, osd=replace(seen.osd, device=replace(device, **factors)))


def _most_iops(model: ClusterModel, seconds: float) -> float:
    """What clients get when they always wait for the cluster and nothing else goes on."""
    alone = replace(model, recovery=(), scrub=(), snaptrim=())
    simulation = Simulation(alone, {}, 1)
    simulation.advance(0.2 * seconds)
    before = look(simulation)
    simulation.advance(seconds)
    return sample_between(before, look(simulation), alone, simulation.now).values["client.iops"]
