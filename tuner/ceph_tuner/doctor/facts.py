"""The document of facts that the checks judge. Plain values; what was not seen is empty or None."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, FrozenSet, List, Mapping, Optional, Tuple

from ceph_tuner.cluster.balancer import MAX_DEVIATION
from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.ceph.target import Place
from ceph_tuner.core.changes.config_database import winner
from ceph_tuner.core.changes.forecast_pairs import ForecastPair
from ceph_tuner.core.knobs.catalogue import KNOBS
from ceph_tuner.core.knobs.releases import Release, Version
from ceph_tuner.core.measure.queue_dump import ServedClass

# parts of the facts, in the words of the notes about them
CHANGES = "the changes in force"
DEVICES = "what the OSDs say of their devices"
ENTRIES = "the configuration database"
FORECASTS = "what the twin said"
HEALTH = "health"
JOURNAL = "the journal"
PG_STATES = "the state of the PGs"
POOL_USE = "use by pool"
SOURCES = "the sources of the OSDs' options"
USE = "use by OSD"
VERSIONS = "the OSDs' versions"
CPUS, OSD_PROCESSES = "the CPUs", "a process of an OSD"
"""Parts of a host."""

OWN_SOURCES = ("override", "cmdline", "env", "file")
"""Where an OSD may have a value from that outranks the monitors', the strongest first."""


@dataclass(frozen=True)
class OsdFacts:
    """One running OSD."""

    place: Place
    kind: str = "ssd"
    """`ssd` or `hdd`, as Ceph chooses between options; an NVMe is an ssd."""
    options: Mapping[str, str] = field(default_factory=dict)
    """What it uses, defaults included; empty where that was not seen."""
    sources: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Of options that are not at their default: source -> value."""
    mclock_queues: bool = False
    """Whether it counts items of mClock queues: these are there only when mClock runs."""
    compressed: float = 0.0
    """Blobs that compression made smaller since the OSD's start."""
    rejected: float = 0.0
    """Blobs that were compressed in vain."""
    chunks_stopped: float = 0.0
    """Chunks of scrubs that it led and that a client's write stopped, since its start; Reef counts none."""
    copies_scrubbed: float = 0.0
    """Copies of objects, and chunks of an erasure code's, that scrubs have looked at on it since its start."""
    used_bytes: float = 0.0
    served: Tuple[ServedClass, ...] = ()
    whole: bool = True
    """Whether its counters, and where its options are from, were seen beside them."""

    @property
    def queue(self) -> str:
        """The queue that runs; the option may have changed since the start."""
        return "mclock_scheduler" if self.mclock_queues else self.options.get("osd_op_queue", "mclock_scheduler")

    def number(self, name: str, default: float = 0.0) -> float:
        """An option as a number."""
        return float(self.options.get(name, default))


@dataclass(frozen=True)
class PoolFacts:
    """One pool."""

    number: int
    name: str
    pg_num: int
    size: int
    raw_bytes: float = 0.0
    """On all OSDs together, before compression."""
    operations: float = 0.0
    """Reads and writes since the pool's beginning."""
    compression: str = ""
    """The pool's own mode; empty where the OSDs' counts."""
    compressed_from: float = 0.0
    compressed_to: float = 0.0
    erasure: bool = False
    """Whether `size` counts shards, each of which has its own place."""
    autoscaled: bool = False
    """Whether Ceph itself sets pg_num (`pg_autoscale_mode` on)."""
    flags: Tuple[str, ...] = ()
    deep_scrub_interval: float = 0.0
    """The pool's own, in seconds; 0 where the OSDs' counts."""


@dataclass(frozen=True)
class PgFacts:
    """One PG."""

    pool: int
    acting: Tuple[int, ...]
    nbytes: float = 0.0
    """Of its objects as clients see them: once, however many copies or shards there are."""
    objects: float = 0.0
    deep_scrub_s: Optional[float] = None
    """How long its last scrub took, where that was a deep one."""
    deep_scrubbed_at: float = 0.0
    """When its last deep scrub ended, in seconds since the epoch."""
    pgid: str = ""
    states: FrozenSet[str] = frozenset()
    deep_late: bool = False
    """Whether its deep scrub is past its date by a tenth of the interval."""
    scrub_late: bool = False

    @property
    def late(self) -> bool:
        """Whether a scrub of either kind is."""
        return self.deep_late or self.scrub_late


@dataclass(frozen=True)
class Facts:
    """A cluster."""

    release: Release
    version: Version
    """Of the oldest OSD."""
    at: float = 0.0
    """When the PGs were listed, in seconds since the epoch."""
    osds: Tuple[OsdFacts, ...] = ()
    entries: Tuple[ConfigEntry, ...] = ()
    places: Tuple[Place, ...] = ()
    """Of every OSD of the CRUSH tree, also of those that are down."""
    pools: Tuple[PoolFacts, ...] = ()
    pgs: Tuple[PgFacts, ...] = ()
    weights: Mapping[int, float] = field(default_factory=dict)
    """CRUSH weights of the OSDs that take part."""
    pg_copies: Mapping[int, int] = field(default_factory=dict)
    """PGs of all pools on each OSD."""
    pg_states: Mapping[str, int] = field(default_factory=dict)
    health: Mapping[str, Tuple[str, ...]] = field(default_factory=dict)
    """Health check -> its summary and its details."""
    flags: Tuple[str, ...] = ()
    on_trial: FrozenSet[Tuple[str, str]] = frozenset()
    """(section, option) that ceph-tuner itself has on the cluster and will take back."""
    benches: Mapping[int, float] = field(default_factory=dict)
    """IOPS that an OSD's own bench gave and that it did not believe, out of the cluster's log."""
    target_pgs: float = 100.0
    """PGs per OSD that Ceph's autoscaler aims at (`mon_target_pg_per_osd`)."""
    most_pgs: float = 250.0
    """PGs per OSD, in the mean, beyond which the monitors refuse a larger pg_num (`mon_max_pg_per_osd`)."""
    versions: Mapping[str, int] = field(default_factory=dict)
    """Version, such as `20.2.4` -> OSDs that run it."""
    balancer: str = ""
    """Its mode, or `off`; empty where it was not seen."""
    deviation: float = MAX_DEVIATION.default
    """PGs by which the balancer lets OSDs differ (`upmap_max_deviation`)."""
    forecasts: Tuple[ForecastPair, ...] = ()
    """What the twin said before writes, beside what was measured after, oldest first."""
    rook: str = ""
    """The namespace of Rook's pods that OSDs run in; empty where they run in none."""
    kept: Mapping[Tuple[str, str], FrozenSet[Optional[str]]] = field(default_factory=dict)
    """(section, option) -> values of ceph-tuner's changes in force."""
    scrub_round_s: Optional[float] = None
    """A deep scrub of all data at the newest window's rate; None where none of the last minutes has one."""
    notes: Tuple[str, ...] = ()
    """What could not be seen."""
    unseen: FrozenSet[str] = frozenset()
    """Parts of which nothing was seen; a part that some OSDs lack is in the notes alone."""

    def default(self, name: str) -> float:
        """A knob's default in its release, as a number; 0 where it has none."""
        return float(KNOBS[name].default(self.release, self.version) or 0)

    @property
    def looked_at(self) -> List[OsdFacts]:
        """OSDs that answered all that they were asked for about themselves."""
        return [osd for osd in self.osds if osd.options and osd.whole]

    @property
    def with_options(self) -> List[OsdFacts]:
        """OSDs whose options are known, whatever else is."""
        return [osd for osd in self.osds if osd.options]


@dataclass(frozen=True)
class HostFacts:
    """One host of OSDs, as /sys and /proc tell it."""

    cpus: int = 0
    idle_states: Mapping[str, float] = field(default_factory=dict)
    """Enabled idle state of any CPU -> the longest time to leave it, in microseconds."""
    wake_within_us: Optional[float] = None
    """What somebody holds all CPUs to (/dev/cpu_dma_latency); None: nobody."""
    governors: Mapping[str, int] = field(default_factory=dict)
    """Governor, with its preference where it has one -> CPUs."""
    iommu_groups: Mapping[str, int] = field(default_factory=dict)
    """Type of translation (`identity`, `DMA`, `DMA-FQ`) -> groups of devices."""
    allocators: Mapping[int, str] = field(default_factory=dict)
    """Process of an OSD -> `tcmalloc`, `jemalloc` or `libc`."""
    thread_caches: Mapping[int, Optional[int]] = field(default_factory=dict)
    """Process of an OSD -> TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES; None where it is not set."""
    notes: Tuple[str, ...] = ()

    @property
    def unseen(self) -> FrozenSet[str]:
        """Parts of which nothing was seen."""
        seen = {CPUS: self.cpus > 0, OSD_PROCESSES: bool(self.allocators)}
        return frozenset(part for part, there in seen.items() if not there)


def decider(facts: Facts, osd: OsdFacts, name: str) -> str:
    """Who decides an option for an OSD: a source of its own, else a section of the database, else `default`."""
    own = next((source for source in OWN_SOURCES if source in osd.sources.get(name, {})), None)
    decides = winner(facts.entries, name, osd.place)
    return own or ("default" if decides is None else decides.who)


def grouped(pairs: List[Tuple[str, int]]) -> Dict[str, List[int]]:
    """OSDs by what is said of them, in the order in which it was said."""
    groups: Dict[str, List[int]] = {}
    for words, osd in pairs:
        groups.setdefault(words, []).append(osd)
    return groups
