"""What is known of the work that waits now: two looks at a cluster, some seconds apart. Plain values."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import FrozenSet, Iterable, List, Mapping, Optional, Tuple

from ceph_tuner.core.ceph.target import Place
from ceph_tuner.core.measure.queue_dump import QueuedClass, ServedClass

# parts of the facts
SLOTS = "the OSDs' recovery reservations"

CLIENT, RECOVERY, BACKFILL, SCRUB, SNAPTRIM = "client", "recovery", "backfill", "scrub", "snaptrim"
WORKS = (CLIENT, RECOVERY, BACKFILL, SCRUB, SNAPTRIM)

SERVICE_CLASS = {
    CLIENT: "client",
    RECOVERY: "background_recovery",
    BACKFILL: "background_best_effort",
    SCRUB: "background_best_effort",
    SNAPTRIM: "background_best_effort",
}
"""Which of mClock's classes serves a kind of work, from 17.2.7 on."""


@dataclass(frozen=True)
class Slots:
    """One of an OSD's two lists of recovery reservations (`dump_recovery_reservations`)."""

    most: int = 0
    """`osd_max_backfills`."""
    holders: Tuple[str, ...] = ()
    """PGs that have one."""
    waiting: Tuple[str, ...] = ()


@dataclass(frozen=True)
class OsdNow:
    """One running OSD, between the two looks."""

    place: Place
    kind: str = "ssd"
    major: int = 0
    """Of its version, 20 for Tentacle; 0 where it is not known."""
    options: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    """Between its two dumps of counters; 0 where they are not known."""
    rises: Mapping[str, float] = field(default_factory=dict)
    """How much each counter rose meanwhile: `osd.op`, `bluestore.txc_throttle_lat.sum` (seconds), `….count`."""
    queues: Tuple[Tuple[QueuedClass, ...], ...] = ()
    """What waited in its shards, dump by dump."""
    strict: Tuple[int, ...] = ()
    """Items in the strict queue, dump by dump."""
    served: Tuple[ServedClass, ...] = ()
    removing: int = 0
    """PGs that it deletes, in the best-effort class."""
    local: Slots = Slots()
    remote: Slots = Slots()

    @property
    def id(self) -> int:
        """Its number."""
        return self.place.osd

    def number(self, option: str, otherwise: float = 0.0) -> float:
        """An option's value; `otherwise` where it is not known or no number: the monitors take a limit of `nan`."""
        try:
            value = float(self.options.get(option, otherwise))
        except ValueError:
            return otherwise
        return value if math.isfinite(value) else otherwise

    def rate(self, counter: str) -> float:
        """Rise of a counter per second."""
        return self.rises.get(counter, 0.0) / self.seconds if self.seconds > 0 else 0.0

    def mean_s(self, timer: str) -> Optional[float]:
        """Mean of a counter of times (`bluestore.kv_commit_lat`) over what it counted meanwhile; None: nothing."""
        count = self.rises.get(f"{timer}.count", 0.0)
        return self.rises.get(f"{timer}.sum", 0.0) / count if count > 0 else None

    @property
    def capacity(self) -> float:
        """IOPS that mClock reckons with; 0 where it is not known."""
        return self.number(f"osd_mclock_max_capacity_iops_{self.kind}")

    def waiting(self, service_class: str) -> List[int]:
        """Requests of a class in its queues, dump by dump."""
        return [sum(item.waiting for item in dump if item.service_class == service_class) for dump in self.queues]


@dataclass(frozen=True)
class PgNow:
    """One PG at the second look."""

    pgid: str
    pool: int
    acting: Tuple[int, ...]
    up: Tuple[int, ...]
    states: FrozenSet[str]
    lasting: FrozenSet[str] = frozenset()
    """States that it had at the first look as well."""
    degraded: int = 0
    misplaced: int = 0
    snaptrim_queue: int = 0
    recovered: int = 0
    """Objects between the looks."""
    deep_late: bool = False
    scrub_late: bool = False

    @property
    def osds(self) -> FrozenSet[int]:
        """Those that have it, or are to have it."""
        return frozenset((*self.acting, *self.up))


@dataclass(frozen=True)
class PoolNow:
    """One pool."""

    name: str
    device_class: str = ""
    """Where its PGs lie, if on one class alone."""
    flags: FrozenSet[str] = frozenset()


@dataclass(frozen=True)
class WhyFacts:
    """A cluster."""

    at: float
    """Of the second look, in seconds since the epoch."""
    osds: Tuple[OsdNow, ...] = ()
    pgs: Tuple[PgNow, ...] = ()
    pools: Mapping[int, PoolNow] = field(default_factory=dict)
    flags: FrozenSet[str] = frozenset()
    notes: Tuple[str, ...] = ()
    """What could not be seen."""
    unseen: FrozenSet[str] = frozenset()
    """Parts of which nothing was seen; a part that some OSDs lack is in the notes alone."""

    def osd(self, number: int) -> Optional[OsdNow]:
        """The one of this number, where it was asked."""
        return next((osd for osd in self.osds if osd.id == number), None)

    def pool_names(self, pgs: List[PgNow]) -> Tuple[str, ...]:
        """Names of the pools of these PGs."""
        return tuple(sorted({self.pools[pg.pool].name for pg in pgs if pg.pool in self.pools}))

    def only(self, pool: str = "", device_class: str = "") -> WhyFacts:
        """What is about one pool, or one device class."""
        numbers = {number for number, own in self.pools.items() if not pool or own.name == pool}
        classes = {osd.id: osd.place.device_class for osd in self.osds}
        pgs = tuple(
            pg
            for pg in self.pgs
            if pg.pool in numbers and (not device_class or any(classes.get(osd) == device_class for osd in pg.osds))
        )
        members = {osd for pg in pgs for osd in pg.osds}
        osds = tuple(
            osd
            for osd in self.osds
            if (not device_class or osd.place.device_class == device_class) and (not pool or osd.id in members)
        )
        pools = {number: self.pools[number] for number in numbers if not device_class or _has(pgs, number)}
        return replace(self, osds=osds, pgs=pgs, pools=pools)


def _has(pgs: Iterable[PgNow], pool: int) -> bool:
    return any(pg.pool == pool for pg in pgs)
