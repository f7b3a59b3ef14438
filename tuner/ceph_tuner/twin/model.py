"""What the twin is told: the hardware, the pools, and the work of a cluster. Values only; `simulation.py` runs them.

    ClusterModel(osds=4, osd=OsdModel(Device(...)), pools=(Pool("rbd"),), clients=(ClientStream("rbd", depth=64),))

Units are SI: seconds, bytes, per second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Optional, Tuple, Union

from ceph_tuner.core.knobs.cost import Hardware, kind_of_class
from ceph_tuner.core.knobs.releases import TENTACLE, Release, Version

KIB, MIB = 1 << 10, 1 << 20

MCLOCK, WPQ = "mclock_scheduler", "wpq"

SCRUB_BACKOFF_RATIO = 0.66
"""osd_scrub_backoff_ratio, where nobody set it."""

UPMAP_MAX_DEVIATION = 5
"""mgr/balancer/upmap_max_deviation, where nobody set it; the balancer is on where nobody turned it off."""


def _positive(**values: float) -> None:
    for name, value in values.items():
        if not 0 < value < float("inf"):
            raise ValueError(f"{name}(={value}) must be above 0 and finite")


def _not_negative(**values: float) -> None:
    for name, value in values.items():
        if not 0 <= value < float("inf"):
            raise ValueError(f"{name}(={value}) must be 0 or more and finite")


@dataclass(frozen=True)
class Device:
    """One OSD's drive: a line that requests pass one by one, and a latency that they spend side by side.

    Each holds the line for its share of `iops` or for its bytes, whichever is longer. In slices both are budgets.

    By Little's law a drive with `iops` and `latency` serves `iops x latency` requests at a time.

    A hard disk has one head instead: a small write takes `latency_s` where it is alone, 1 / `iops` where many wait, and
    larger ones take their transfer on top. Reads and writes share it.
    """

    iops: float
    bandwidth_bytes_s: float
    read_iops: Optional[float] = None
    read_bandwidth_bytes_s: Optional[float] = None
    """None: as for writes."""
    shared: bool = True
    """Reads and writes draw on the same budget, as in a drive; a block-layer throttle gives each its own."""
    slice_s: float = 0.0
    """Budgets are handed out in slices of this length (the kernel's blk-throttle: 0.1 s); 0: continuously."""
    latency_s: float = 100e-6
    read_latency_s: float = 100e-6
    spread: float = 0.3
    """Share of a latency that is exponentially distributed, 0 to 1; the mean stays."""
    request_bytes: int = 256 * KIB
    """Larger requests are split."""
    turn_s: float = 60 / 7200
    """Of a hard disk."""
    log_way_s: float = 0.0
    """Of a hard disk, its head's way between the data and RocksDB's log where that lies apart; 0: among the data."""
    caches_writes: bool = False
    """Of a hard disk beside a `db`: deferred writes are done once they are in its cache, and the next commit of the
    key-value store waits until they are at their places, since BlueStore flushes the disk before. False: no cache.
    """

    def __post_init__(self) -> None:
        _positive(iops=self.iops, bandwidth_bytes_s=self.bandwidth_bytes_s, request_bytes=self.request_bytes)
        if self.read_iops is not None:
            _positive(read_iops=self.read_iops)
        if self.read_bandwidth_bytes_s is not None:
            _positive(read_bandwidth_bytes_s=self.read_bandwidth_bytes_s)
        _not_negative(
            slice_s=self.slice_s, latency_s=self.latency_s, read_latency_s=self.read_latency_s, log_way_s=self.log_way_s
        )
        if not 0 <= self.spread <= 1:
            raise ValueError(f"spread(={self.spread}) must be within 0 and 1")


LATENCY_S = {"ssd": 1e-4, "hdd": 12e-3}
"""Of one request, on usual drives of the kind: of a hard disk a seek and half a turn."""

THROTTLE_COST_PER_IO = {"ssd": 4000.0, "hdd": 670_000.0}
"""bluestore_throttle_cost_per_io_*."""

DEFERRED_BELOW_BYTES = {"ssd": 0.0, "hdd": 64.0 * KIB}
"""bluestore_prefer_deferred_size_*."""


@dataclass(frozen=True)
class OsdModel:
    """One ceph-osd on its drive: op shards and threads, BlueStore's commit thread and throttle."""

    device: Device
    """That its data lie on."""
    capacity_iops: float = 21_500.0
    """What mClock believes (`osd_mclock_max_capacity_iops_*`)."""
    bandwidth_bytes_s: float = 1200.0 * MIB
    """What mClock believes (`osd_mclock_max_sequential_bandwidth_*`)."""
    shards: int = 8
    threads_per_shard: int = 2
    device_class: str = "ssd"
    write_cpu_s: float = 40e-6
    """Thread time of a write, on the primary and on each replica."""
    read_cpu_s: float = 30e-6
    reply_cpu_s: float = 5e-6
    """Thread time of a replica's answer at the primary."""
    cpu_s_per_byte: float = 0.0
    """Thread time of copying and checksums."""
    scan_cpu_s: float = 100e-6
    """Thread time of looking at one object in a scrub."""
    trim_cpu_s: float = 100e-6
    """Thread time of trimming one clone, beside that of a write."""
    kv_ios: float = 1.0
    """Device writes of one commit of the key-value store, however many transactions it holds."""
    kv_bytes: float = 2.0 * KIB
    """What one transaction adds to a commit."""
    kv_latency_s: float = 100e-6
    """Flushing a commit, beside its writes."""
    kv_cpu_s: float = 0.0
    """Time of the commit thread, of which an OSD has one, for a transaction."""
    trim_kv_cpu_s: float = 0.0
    """The same for a trimmed clone's transaction on each replica, beside that of a write."""
    trim_ios: float = 1.0
    """Device writes of trimming one clone, on each replica."""
    trim_bytes: float = 8.0 * KIB
    throttle_bytes: float = 64.0 * MIB
    """`bluestore_throttle_bytes`; 0: none."""
    message_cpu_s: float = 120e-6
    """Processor time of a message at each of its ends.

    It and the next two count where processors are described. They are fitted on what two processors
    of a lab did (benchmarks/twin_processors.py). With a write's thread time an OSD without copies does 2 300 a second
    on a processor, where Ceph's guidance is 1 000 to 3 000.
    """
    commit_cpu_s: float = 160e-6
    """Processor time of BlueStore's and RocksDB's own threads for a commit, beside `kv_cpu_s`."""
    moved_cpu_s_per_byte: float = 0.9e-9
    """Processor time of a byte that is read or written, beside a thread's: messengers and the kernel."""
    db: Optional[Device] = None
    """The drive of its key-value store and the store's log, where that is another one (`block.db`)."""

    def __post_init__(self) -> None:
        if self.shards < 1 or self.threads_per_shard < 1:
            raise ValueError(f"shards(={self.shards}) and threads(={self.threads_per_shard}) must be 1 or more")
        _positive(capacity_iops=self.capacity_iops, bandwidth_bytes_s=self.bandwidth_bytes_s)
        _not_negative(
            write_cpu_s=self.write_cpu_s,
            read_cpu_s=self.read_cpu_s,
            reply_cpu_s=self.reply_cpu_s,
            cpu_s_per_byte=self.cpu_s_per_byte,
            scan_cpu_s=self.scan_cpu_s,
            trim_cpu_s=self.trim_cpu_s,
            kv_ios=self.kv_ios,
            kv_bytes=self.kv_bytes,
            kv_latency_s=self.kv_latency_s,
            kv_cpu_s=self.kv_cpu_s,
            trim_kv_cpu_s=self.trim_kv_cpu_s,
            trim_ios=self.trim_ios,
            trim_bytes=self.trim_bytes,
            throttle_bytes=self.throttle_bytes,
            message_cpu_s=self.message_cpu_s,
            commit_cpu_s=self.commit_cpu_s,
            moved_cpu_s_per_byte=self.moved_cpu_s_per_byte,
        )

    @property
    def kind(self) -> str:
        """Of the drive that its data lie on: `hdd` or `ssd`."""
        return kind_of_class(self.device_class)

    @property
    def has_head(self) -> bool:
        """Whether its data lie on a hard disk."""
        return self.kind == "hdd"

    @property
    def deferred_below_bytes(self) -> float:
        """Smaller writes are committed with their data, and go to their places later, in batches; 0: none."""
        return DEFERRED_BELOW_BYTES[self.kind]

    @property
    def throttle_bytes_per_io(self) -> float:
        """What a write takes from the throttle beside its bytes."""
        return THROTTLE_COST_PER_IO[self.kind]

    @property
    def hardware(self) -> Hardware:
        """The OSD as mClock sees it."""
        return Hardware(self.capacity_iops, self.bandwidth_bytes_s, self.shards, self.device_class)


@dataclass(frozen=True)
class Pool:
    """Placement groups, each on `size` OSDs (k + m for erasure code)."""

    name: str
    pgs: int = 64
    size: int = 3
    k: int = 0
    """Data shards of an erasure code; 0: replicated. `size` is then k + m."""
    acting: Tuple[Tuple[int, ...], ...] = ()
    """Each PG's OSDs, the primary first; none: drawn as CRUSH does, and evened out by the balancer."""

    def __post_init__(self) -> None:
        if self.pgs < 1 or self.size < 1:
            raise ValueError(f"pool {self.name}: pgs(={self.pgs}) and size(={self.size}) must be 1 or more")
        # a document has lists
        object.__setattr__(self, "acting", tuple(tuple(osds) for osds in self.acting))
        if self.acting and (len(self.acting) != self.pgs or any(len(set(osds)) != self.size for osds in self.acting)):
            raise ValueError(f"pool {self.name}: acting must name {self.size} OSDs for each of {self.pgs} PGs")
        if self.k < 0 or (self.k and not 2 <= self.k < self.size):
            raise ValueError(f"pool {self.name}: k(={self.k}) must be 0, or 2 or more and below the size {self.size}")

    def with_pgs(self, pgs: int) -> Pool:
        """The same with another number of PGs, of which nobody says where they will be."""
        return self if pgs == self.pgs else replace(self, pgs=pgs, acting=())


@dataclass(frozen=True)
class ClientStream:
    """Clients of one pool: open loop (`rate`), with at most `depth` under way, or closed loop (`depth` alone)."""

    pool: str
    rate: Optional[float] = None
    depth: int = 256
    read_share: float = 0.0
    block_bytes: int = 4 * KIB
    latency_s: float = 0.0
    """What the client's own side adds to each operation."""
    drains: bool = False
    """With a rate: pauses begin only when nothing is under way, and what came due meanwhile follows at once, as fio
    does it (io_submit_mode inline). Such clients wait for the slowest of each burst, and then offer the next one."""
    partial_stripe: bool = True
    """Erasure code: a write is smaller than a stripe, so it reads first."""
    cpu_s: float = 0.0
    """Processor time that an operation takes of the OSDs' hosts at the client's side; 0: clients run elsewhere."""

    def __post_init__(self) -> None:
        if self.rate is not None:
            _positive(rate=self.rate)
        if self.depth < 1 or self.block_bytes < 1:
            raise ValueError(f"depth(={self.depth}) and block_bytes(={self.block_bytes}) must be 1 or more")
        if not 0 <= self.read_share <= 1:
            raise ValueError(f"read_share(={self.read_share}) must be within 0 and 1")
        _not_negative(latency_s=self.latency_s, cpu_s=self.cpu_s)


@dataclass(frozen=True)
class RecoveryWork:
    """Objects that lack a copy (`degraded`, class recovery) or lie on the wrong OSD (backfill, class best effort)."""

    pool: str
    objects: int
    object_bytes: int = 4 * MIB
    degraded: bool = True
    target: Optional[int] = None
    """The OSD that came back, which lacks a copy of every object; None: targets are spread over all OSDs, as where one
    is lost and its PGs are undersized."""
    start_s: float = 0.0
    rounds: int = 1
    """Recoveries of each PG, one after the other, that the objects are of: work that lasts without larger PGs."""
    among: int = 0
    """Objects of the pool that clients go to, all alike, where those that lack a copy are among them: a write to one of
    these waits until it is recovered. 0: clients go to none of these, or need not wait, as beside backfill."""
    times: float = 1.0
    """So many times what there is, that it outlasts a run. What is left, and when it ends, is told of what there is."""

    @property
    def there(self) -> float:
        """Objects that there are."""
        return self.objects / self.times


@dataclass(frozen=True)
class ScrubWork:
    """Objects of a pool, scrubbed PG by PG, over and over unless `once`."""

    pool: str
    objects: int
    object_bytes: int = 4 * MIB
    deep: bool = True
    once: bool = False
    start_s: float = 0.0
    in_turn: bool = False
    """Each primary's PGs come due in the order of their numbers, as a lab schedules them; else in a drawn one."""


@dataclass(frozen=True)
class SnaptrimWork:
    """Clones of a removed snapshot."""

    pool: str
    clones: int
    object_bytes: int = 4 * MIB
    start_s: float = 0.0
    clone_bytes: Optional[int] = None
    """What a clone has of its own, as much as was overwritten; None: all of the object.

    Trimming costs the PG's mean object, of heads and clones: less at first, where clones are many and small.
    """
    heads: Optional[int] = None
    """Objects that the clones are of; None: one for each clone."""
    times: float = 1.0
    """As `RecoveryWork.times`."""

    @property
    def there(self) -> float:
        """Clones that there are."""
        return self.clones / self.times


@dataclass(frozen=True)
class DeleteWork:
    """Objects of PGs that are removed from their OSDs."""

    pool: str
    objects: int
    start_s: float = 0.0


Work = Union[ClientStream, RecoveryWork, ScrubWork, SnaptrimWork, DeleteWork]


@dataclass(frozen=True)
class ClusterModel:
    """A whole cluster of alike OSDs."""

    osds: int
    osd: OsdModel
    pools: Tuple[Pool, ...]
    clients: Tuple[ClientStream, ...] = ()
    recovery: Tuple[RecoveryWork, ...] = ()
    scrub: Tuple[ScrubWork, ...] = ()
    snaptrim: Tuple[SnaptrimWork, ...] = ()
    deletion: Tuple[DeleteWork, ...] = ()
    release: Release = TENTACLE
    version: Optional[Version] = None
    """None: the release's newest."""
    network_s: float = 50e-6
    """One way between two daemons, or a client and a daemon."""
    hosts: int = 0
    """Failure domains; 0: every OSD is one."""
    processors: int = 0
    """Of each host (each OSD, where there are no `hosts`), for all of its OSDs; 0: not described, and nobody waits."""
    scheduler: str = MCLOCK
    scrub_backoff_ratio: float = SCRUB_BACKOFF_RATIO
    """`osd_scrub_backoff_ratio`: of the moments in which an OSD could begin a scrub, those that it passes over."""
    scrub_priority: float = 5.0
    """WPQ only: `osd_scrub_priority`; a scrub that was asked for has `osd_requested_scrub_priority`, 120."""
    upmap_max_deviation: int = UPMAP_MAX_DEVIATION
    """The balancer's: PGs of a pool by which an OSD may differ from the mean; 0: it is off, and CRUSH alone decides."""
    simulated_osds: int = 0
    """So many OSDs stand for all, with their share of the load and of the PGs; 0: all are simulated."""

    def __post_init__(self) -> None:
        counts = (self.hosts, self.upmap_max_deviation)
        if self.osds < 1 or not 0 <= self.simulated_osds <= self.osds or min(counts) < 0:
            raise ValueError(
                f"osds(={self.osds}) must be 1 or more, simulated_osds(={self.simulated_osds}) at most that many, "
                f"hosts(={self.hosts}) and upmap_max_deviation(={self.upmap_max_deviation}) 0 or more"
            )
        _not_negative(network_s=self.network_s, processors=self.processors)
        if not 0 <= self.scrub_backoff_ratio <= 1:
            raise ValueError(f"scrub_backoff_ratio(={self.scrub_backoff_ratio}) must be within 0 and 1")
        _positive(scrub_priority=self.scrub_priority)
        if self.scheduler not in (MCLOCK, WPQ):
            raise ValueError(f"scheduler(={self.scheduler!r}) must be {MCLOCK} or {WPQ}")
        names = [pool.name for pool in self.pools]
        if len(set(names)) != len(names):
            raise ValueError(f"two pools have the same name: {', '.join(names)}")
        for pool in self.pools:
            if pool.size > (self.simulated_osds or self.osds):
                raise ValueError(f"pool {pool.name}: {pool.size} copies need as many OSDs (={self.osds})")
            if pool.acting and (self.simulated_osds or not set().union(*pool.acting) <= set(range(self.osds))):
                raise ValueError(f"pool {pool.name}: acting must be of {self.osds} OSDs, all of them simulated")
        works: Tuple[Work, ...] = (*self.clients, *self.recovery, *self.scrub, *self.snaptrim, *self.deletion)
        for work in works:
            if work.pool not in names:
                raise ValueError(f"work on the pool {work.pool!r}, which is none of {', '.join(names)}")
        multiplied: Tuple[Union[RecoveryWork, SnaptrimWork], ...] = (*self.recovery, *self.snaptrim)
        for lasting in multiplied:
            if not 1 <= lasting.times < math.inf:
                raise ValueError(f"work on the pool {lasting.pool!r}: times(={lasting.times}) must be 1 or more")
        for work in self.recovery:
            if work.rounds < 1:
                raise ValueError(f"recovery in the pool {work.pool!r}: rounds(={work.rounds}) must be 1 or more")
            if work.among and not work.objects <= work.among * work.rounds:
                raise ValueError(
                    f"recovery in the pool {work.pool!r}: among(={work.among}) must be all objects that clients go to, "
                    f"those {math.ceil(work.objects / work.rounds)} included"
                )
            if work.among and not work.degraded:
                raise ValueError(f"backfill in the pool {work.pool!r}: among(={work.among}) is for degraded objects")
            if self.pool(work.pool).size < 2:
                raise ValueError(f"recovery in the pool {work.pool!r}, which has no second copy to recover from")
            if work.target is not None and not 0 <= work.target < (self.simulated_osds or self.osds):
                raise ValueError(f"recovery onto OSD {work.target}, which is not among those that are simulated")

    @property
    def simulated_hosts(self) -> int:
        """Hosts of those OSDs that are simulated."""
        return max(1, round(self._hosts * (self.simulated_osds or self.osds) / self.osds))

    @property
    def simulated_processors(self) -> float:
        """Of these hosts, all together: as many for an OSD as in the whole cluster."""
        return self.processors * self._hosts * (self.simulated_osds or self.osds) / self.osds

    @property
    def _hosts(self) -> int:
        return min(self.hosts or self.osds, self.osds)

    def pool(self, name: str) -> Pool:
        """The pool of that name."""
        return next(pool for pool in self.pools if pool.name == name)
