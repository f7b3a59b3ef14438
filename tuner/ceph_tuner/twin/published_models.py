"""The clusters and the work behind the published tables, in the twin's terms.

One constant of each node is fitted, to its baseline row alone: the commit thread's time for a transaction, or what a
hard disk takes for a write among many. The rest is what the articles, data sheets and the release's own defaults say,
or is listed in ASSUMPTIONS.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Callable, Dict, List, Mapping, Tuple

from ceph_tuner.core.knobs.catalogue import OVERRIDE
from ceph_tuner.core.knobs.cost import item_cost, snaptrim_item_bytes
from ceph_tuner.core.knobs.releases import QUINCY, QUINCY_EARLY, Settings, Value, nine
from ceph_tuner.twin import published as p
from ceph_tuner.twin.model import (
    KIB,
    MCLOCK,
    MIB,
    UPMAP_MAX_DEVIATION,
    WPQ,
    ClientStream,
    ClusterModel,
    Device,
    OsdModel,
    Pool,
    RecoveryWork,
    ScrubWork,
    SnaptrimWork,
)

DEPTH, BLOCK = 64, 4 * KIB
WRITE_CPU_S = 60e-6


@dataclass(frozen=True)
class Assumption:
    """What is neither fitted nor published."""

    what: str
    value: str
    why: str


ASSUMPTIONS: Tuple[Assumption, ...] = (
    Assumption(
        "what bounds small writes",
        "the OSD's one commit thread",
        "the drives are rated 90 000 and 134 500 random writes a second, the OSDs did 17 500 and 11 300",
    ),
    Assumption(
        "trimming a clone of 4 MiB",
        "12 small writes of commit thread, op thread and drive, on every copy",
        "osd_snap_trim_cost is 1 MiB, which that release's cost model counts as 12 small I/Os",
    ),
    Assumption(
        "capacity that mClock believes",
        "21 500 IOPS an OSD",
        "the release's default; the articles say `determined automatically` and give no number",
    ),
    Assumption(
        "write bandwidth of a drive",
        "1 400 MiB/s (P3700), 3 000 MB/s (P4510), 115 MB/s (ST91000640NS)",
        "of the P3700, F1 calls 1.4 GiB/s of recovery `close to the maximum OSD bandwidth`; else data sheets",
    ),
    Assumption("op thread's time for a small write", "60 us", "results move little between 30 and 200 us"),
    Assumption(
        "copies and checksums",
        "0.5 ns a byte",
        "two checksums of 0.1 ns and a copy of 0.3 on each side, a round number",
    ),
    Assumption("flush of a commit", "100 us", "the model's default; flash with power-loss protection"),
    Assumption(
        "looking at one object in a scrub",
        "300 us",
        "three cold look-ups in the key-value store (object, attributes, omap) of a flash read each: the metadata of "
        "10 million objects do not fit the cache",
    ),
    Assumption(
        "PGs of the pools of snaptrim and scrub, and of F's clients", "64", "as published for A's and B's clients"
    ),
    Assumption(
        "PGs of the pools of recovery",
        "32",
        "the release's default; nothing is published. The busiest shard ends last: its limit and the published seconds "
        "make 14% to 15% of A2's and F1's objects, as with three or four PGs of 24",
    ),
    Assumption(
        "PGs by which an OSD may differ from the mean",
        str(UPMAP_MAX_DEVIATION),
        "the balancer is on by default, and lets that many be",
    ),
    Assumption(
        "F2: a disk's way to a write that waits for no other",
        "12.7 ms",
        "data sheet: a seek of 8.5 ms and half a turn",
    ),
    Assumption(
        "F2: RocksDB and its log", "on the NVMe of F1", "published; its commit thread takes 50 us a transaction"
    ),
    Assumption("F: how long clients run", "as long as the recovery", "they begin with it; no end is published"),
    Assumption(
        "C1: commit thread 25 us a transaction, read 100 us, 64 clients' operations an OSD",
        "round numbers",
        "only the shape over the PG count is compared",
    ),
)

_A_PROFILES: Dict[str, Settings] = {
    p.CLIENT: nine((0.5, 2, 0), (0.25, 1, 1.0), (0.25, 1, 0.3)),
    p.BALANCED: nine((0.4, 1, 1.0), (0.4, 1, 1.5), (0.2, 1, 0.5)),
    p.RECOVERY: nine((0.3, 1, 0.8), (0.6, 2, 2.0), (0.1, 1, 0.4)),
}
"""The article's own, which differ from the release's in best effort."""

_A_RECOVERY: Settings = {
    OVERRIDE: True,
    "osd_max_backfills": 1000,
    "osd_recovery_max_active_ssd": 1000,
}
"""What profiles of that release set by themselves."""

_WPQ_RECOVERY: Settings = {"osd_max_backfills": 1, "osd_recovery_max_active_ssd": 10}
"""Ceph's defaults, which WPQ ran with."""


_F_PROFILES: Dict[str, Settings] = {
    p.CLIENT: nine((0.5, 2, 0), (0.25, 1, 1.0), (0.25, 1, 0)),
    p.BALANCED: nine((0.4, 1, 1.0), (0.4, 1, 1.5), (0.2, 1, 0)),
    p.RECOVERY: nine((0.3, 1, 0.8), (0.6, 2, 2.0), (0, 1, 0)),
}
"""The study's own, which differ from the release's in the weight of best effort."""

_F_BOOST: Settings = {
    OVERRIDE: True,
    "osd_max_backfills": 1000,
    "osd_recovery_max_active_ssd": 1000,
    "osd_recovery_max_active_hdd": 1000,
}

_F_DEFAULTS: Settings = {
    "osd_max_backfills": 1,
    "osd_recovery_max_active_ssd": 10,
    "osd_recovery_max_active_hdd": 3,
}

F2_SETTINGS: Settings = {"bluestore_throttle_deferred_bytes": 40 * MIB}
"""Published, beside the other throttle. Of F1 and A it matters nothing."""

_BEFORE_QUINCY = (17, 0, 0)


def trim_price() -> int:
    """Small I/Os that the release charges for trimming."""
    hardware = OsdModel(Device(1.0, 1.0)).hardware
    cost = item_cost(snaptrim_item_bytes(4.0 * MIB, {}, QUINCY_EARLY), hardware, QUINCY_EARLY)
    return round(cost / item_cost(BLOCK, hardware, QUINCY_EARLY))


_P3700 = Device(
    iops=90_000, bandwidth_bytes_s=1400.0 * MIB, read_iops=460_000, read_bandwidth_bytes_s=2_800e6, latency_s=20e-6,
    read_latency_s=100e-6,
)  # fmt: skip


def osd_a(kv_cpu_s: float) -> OsdModel:
    """Intel DC P3700, 800 GB, throttles of 256 KiB."""
    return _osd(_P3700, kv_cpu_s, 256 * KIB)


def osd_f2(write_s: float) -> OsdModel:
    """Seagate ST91000640NS with RocksDB on the P3700, throttles of 40 MiB; a write among many takes `write_s`."""
    disk = Device(
        iops=1.0 / write_s, bandwidth_bytes_s=115e6, latency_s=12.7e-3, read_latency_s=12.7e-3, caches_writes=True
    )
    flash = _osd(_P3700, 50e-6, 40 * MIB)
    return replace(
        flash, device=disk, db=_P3700, device_class="hdd", capacity_iops=340.0, shards=5, threads_per_shard=1
    )


def osd_b(kv_cpu_s: float) -> OsdModel:
    """Intel P4510, 8 TB, throttles of 2 MiB."""
    drive = Device(
        iops=134_500, bandwidth_bytes_s=3_000e6, read_iops=641_000, read_bandwidth_bytes_s=3_200e6,
        latency_s=18e-6, read_latency_s=77e-6,
    )  # fmt: skip
    return _osd(drive, kv_cpu_s, 2 * MIB)


def _osd(drive: Device, kv_cpu_s: float, throttle: int) -> OsdModel:
    price = trim_price()
    return OsdModel(
        drive,
        write_cpu_s=WRITE_CPU_S,
        cpu_s_per_byte=0.5e-9,
        scan_cpu_s=300e-6,
        kv_cpu_s=kv_cpu_s,
        trim_cpu_s=(price - 1) * WRITE_CPU_S,
        trim_kv_cpu_s=(price - 1) * kv_cpu_s,
        trim_ios=float(price),
        trim_bytes=float(price * BLOCK),
        throttle_bytes=float(throttle),
    )


@dataclass(frozen=True)
class NodeKind:
    """An OSD by the one constant that is fitted, and where that lies."""

    osd: Callable[[float], OsdModel]
    least_s: float = 1e-6
    most_s: float = 1e-3
    constant: str = "commit thread's time for a transaction"
    settings: Mapping[str, Value] = field(default_factory=dict)
    window_s: float = 1.0


NODES: Dict[str, NodeKind] = {
    "A": NodeKind(osd_a),
    "B": NodeKind(osd_b),
    "F1": NodeKind(osd_a),
    "F2": NodeKind(osd_f2, 1e-3, 12.7e-3, "disk's time for a write among many", F2_SETTINGS, 60.0),
}


def node(osd: OsdModel, scheduler: str = MCLOCK, pools: Tuple[str, ...] = ()) -> ClusterModel:
    """Four OSDs, size 3, fio on a pool of 64 PGs; background work goes to pools of its own."""
    return ClusterModel(
        osds=4,
        osd=osd,
        pools=tuple(Pool(name, 64, 3) for name in ("rbd", *pools)),
        clients=(ClientStream("rbd", depth=DEPTH, block_bytes=BLOCK),),
        release=QUINCY_EARLY,
        scheduler=scheduler,
    )


RECOVERY_POOL = Pool("recovery", 32, 3)


@dataclass(frozen=True)
class PublishedCase:
    """A row of a table: what runs, and how the article averaged it."""

    table: str
    name: str
    model: ClusterModel
    settings: Mapping[str, Value]
    clients_s: float = 0.0
    """How long fio ran (s); 0: as long as the background work."""
    before_s: float = 0.0
    """When background work began in it (s)."""
    scale: float = 1.0
    """The background work is this many times what is simulated: rates are the same, phases as much longer."""
    baseline: p.Baseline = field(default=p.Baseline(0.0, 0.0))
    """The twin's own clients without background work."""
    first_s: float = 0.0
    """What the article calls the first phase of the test (s)."""
    step_s: float = 0.05
    """How often the background work is looked at (s)."""


def cases(
    table: str, osds: Mapping[str, OsdModel], baselines: Mapping[str, p.Baseline], quick: bool
) -> List[PublishedCase]:
    """The rows of a table; `quick` simulates less of the same."""
    if table in ("A1", "A2"):
        return _qos(table, osds["A"], baselines["A"], 30.0 if quick else 10.0)
    if table == "C1":
        return _pg_counts(quick)
    if table in ("F1", "F2"):
        return _recoveries(table, osds[table], quick)
    return _scrubs(table, osds["B"], baselines["B"])


def _qos(table: str, osd: OsdModel, baseline: p.Baseline, scale: float) -> List[PublishedCase]:
    cases = []
    for name in (p.WPQ, *p.PROFILES):
        if table == "A1":
            model = node(osd, WPQ if name == p.WPQ else MCLOCK, ("snap",))
            model = replace(model, snaptrim=(SnaptrimWork("snap", round(80_000 / scale), start_s=1.0),))
        else:
            model = node(osd, WPQ if name == p.WPQ else MCLOCK, ("snap", "recovery"))
            model = replace(model, pools=(*model.pools[:-1], RECOVERY_POOL))
            backfill = RecoveryWork("recovery", round(18_000 / scale), degraded=False, target=3, start_s=1.0)
            trims = SnaptrimWork("snap", round(70_000 / scale), start_s=1.0)
            model = replace(model, snaptrim=(trims,), recovery=(backfill,))
        # WPQ heeds no profile
        wpq = {**_A_PROFILES[p.CLIENT], **_WPQ_RECOVERY}
        settings = wpq if name == p.WPQ else {**_A_PROFILES[name], **_A_RECOVERY}
        cases.append(PublishedCase(table, name, model, settings, 300.0, 30.0, scale, baseline))
    return cases


def _recoveries(table: str, osd: OsdModel, quick: bool) -> List[PublishedCase]:
    objects, first_s, scale, step_s, own = (
        (75_000, 150.0, 30.0 if quick else 10.0, 0.05, {})
        if table == "F1"
        else (4_000, 200.0, 4.0 if quick else 1.0, 1.0, F2_SETTINGS)
    )
    cases = []
    for name in (p.WPQ, p.BOOSTED, *p.PROFILES):
        model = node(osd, MCLOCK if name in p.PROFILES else WPQ)
        backfill = RecoveryWork("recovery", round(objects / scale), degraded=False, target=3, start_s=1.0)
        model = replace(model, pools=(*model.pools, RECOVERY_POOL), recovery=(backfill,), version=_BEFORE_QUINCY)
        settings = {
            **_F_PROFILES.get(name, _F_PROFILES[p.CLIENT]), **(_F_DEFAULTS if name == p.WPQ else _F_BOOST), **own
        }  # fmt: skip
        cases.append(PublishedCase(table, name, model, settings, 0.0, 0.0, scale, first_s=first_s, step_s=step_s))
    return cases


def _scrubs(table: str, osd: OsdModel, baseline: p.Baseline) -> List[PublishedCase]:
    rows: Dict[str, Tuple[str, Settings, float]] = {p.WPQ: (p.CLIENT, {}, 5.0)}
    if table != "B2":
        rows.update({name: (name, {}, 5.0) for name in p.PROFILES})
    if table == "B2":
        rows[p.CLIENT] = (p.CLIENT, {}, 5.0)
        rows[p.TEN_SCRUBS] = (p.CLIENT, {"osd_max_scrubs": 10}, 5.0)
    if table == "B3":
        del rows[p.WPQ]
        rows[p.REQUESTED] = (p.CLIENT, {}, 120.0)
        rows.update({p.CHEAP[name]: (name, {"osd_scrub_cost": 20 * MIB}, 5.0) for name in p.PROFILES})
    cases = []
    for name, (profile, own, priority) in rows.items():
        model = node(osd, WPQ if name.startswith(p.WPQ) else MCLOCK, ("scrub",))
        scrub = ScrubWork("scrub", 10_000_000, 32 * KIB)
        model = replace(model, scrub=(scrub,), scrub_priority=priority)
        settings = {**QUINCY_EARLY.profiles[profile], "osd_max_scrubs": 5, **own}
        cases.append(PublishedCase(table, name, model, settings, 840.0, 0.0, 1.0, baseline))
    return cases


def _pg_counts(quick: bool) -> List[PublishedCase]:
    """Six nodes of ten OSDs. The drive is a 15 TB NVMe of that year by its data sheet."""
    drive = Device(
        iops=180_000, bandwidth_bytes_s=4_100e6, read_iops=1_000_000, read_bandwidth_bytes_s=6_900e6, latency_s=20e-6,
        read_latency_s=90e-6,
    )  # fmt: skip
    osd = OsdModel(drive, kv_cpu_s=25e-6, read_cpu_s=100e-6, write_cpu_s=WRITE_CPU_S)
    cases = []
    for kind, share in ((p.READS, 1.0), (p.WRITES, 0.0)):
        for pgs in p.PG_COUNTS if not quick else (512, 2048, 16384):
            clients = ClientStream("rbd", depth=60 * DEPTH, read_share=share, block_bytes=BLOCK)
            model = ClusterModel(
                osds=60, hosts=6, osd=osd, pools=(Pool("rbd", pgs),), clients=(clients,), release=QUINCY
            )
            cases.append(PublishedCase("C1", p.with_pgs(kind, pgs), model, {}))
    return cases
