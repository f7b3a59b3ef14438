"""What a collector saw at one moment of OSDs, PGs and pools. `osd_documents.py` and `pg_documents.py` parse it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Collection, Dict, FrozenSet, Iterable, Mapping, NamedTuple, Optional, Sequence, Tuple

from ceph_tuner.core.measure.counters import DaemonReport
from ceph_tuner.core.measure.histogram import Histogram


@dataclass(frozen=True)
class PgDetail:
    """Progress of one PG. `scrubbed` and `trimmed` begin again at 0 with each scrub and each trim."""

    scrubbed: int
    trimmed: int
    objects: int
    raw_bytes: float
    """Of all copies, or of all shards of an erasure code: what a deep scrub reads."""
    state: str
    snaptrim_queue: int = 0
    scrub_ended: str = ""
    """Stamp of the last scrub's end, as Ceph writes it."""
    deep_scrubbed: str = ""
    """Stamp of the last deep scrub, as Ceph writes it."""
    scrub_lasted_s: float = 0.0
    """The last scrub, from its beginning to its end."""

    @property
    def deep(self) -> bool:
        """Whether the scrub that runs, or else the last one, is a deep one."""
        return "deep" in self.state if "scrubbing" in self.state else self.deep_scrubbed == self.scrub_ended


class ServedOperations(NamedTuple):
    """What the OSDs did for clients of a pool since a query of theirs began, all of them together."""

    reads: int
    read_s: float
    writes: int
    write_s: float


@dataclass(frozen=True)
class PoolReading:
    """One pool at one moment."""

    sums: Mapping[str, float]
    """Over its PGs, by the names of Ceph's `stat_sum`."""
    raw_bytes: float
    """What the OSDs hold of it, all copies and shards together."""
    coded: bool = False
    states: Optional[Mapping[str, int]] = None
    """Of its PGs."""
    snaptrim_queue: Optional[float] = None
    pgs_late: Optional[float] = None
    served: Optional[ServedOperations] = None


@dataclass(frozen=True)
class Turn:
    """Which OSDs' counters a reading has: where there are many, those whose id modulo `count` is `part`."""

    part: int = 0
    count: int = 1
    seconds: float = 0.0
    """About how long it takes until the same OSDs are read again."""
    always: FrozenSet[int] = frozenset()
    """OSDs that every reading has, whosever turn it is."""


@dataclass(frozen=True)
class Reading:
    """A cluster at one moment. What a collector could not see is None or left out."""

    at: float
    osds: Mapping[int, DaemonReport] = field(default_factory=dict)
    turn: Turn = Turn()
    up: Optional[Collection[int]] = None
    """All OSDs that run; None: those in `osds`. Another object when it changes."""
    latency: Mapping[int, Mapping[str, Histogram]] = field(default_factory=dict)
    queues: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    totals: Mapping[str, float] = field(default_factory=dict)
    """Sums over all PGs, by the names of Ceph's `stat_sum`."""
    raw_bytes: Optional[float] = None
    """What the OSDs hold of all PGs, all copies and shards together."""
    copies_per_object: Optional[float] = None
    """Copies or shards of an object, in the pool where it has most."""
    coded_recovered: Optional[float] = None
    """Bytes recovered so far of erasure-coded pools: an OSD's own counter leaves those out."""
    pg_states: Mapping[str, int] = field(default_factory=dict)
    pgs: Mapping[str, PgDetail] = field(default_factory=dict)
    """Details of some PGs, or of all."""
    pools: Mapping[int, PoolReading] = field(default_factory=dict)
    """Each pool by itself, where somebody asks for device classes or pools."""
    slow_of: Optional[Mapping[int, float]] = None
    """OSD -> operations that Ceph calls slow; None: only their sum is known."""
    down: Optional[FrozenSet[int]] = None
    """OSDs that are in and down; None: only their number is known."""
    longest_scrub_s: Optional[float] = None
    """Of the last scrubs of the PGs whose details are known, where `pgs` are some of them only."""
    snaptrim_queue: Optional[float] = None
    slow_ops: Optional[float] = None
    osds_down: Optional[float] = None
    pgs_late: Optional[float] = None
    notes: Tuple[str, ...] = ()

    def only(self, osds: Iterable[int]) -> Reading:
        """What was seen of these OSDs, without anything that is known of the whole cluster alone."""
        # of many OSDs only those that are in every reading: an OSD that comes by in its turn says what was minutes ago
        ids = set(osds) if self.turn.count == 1 else self.turn.always.intersection(osds)
        return Reading(
            at=self.at,
            osds={osd: self.osds[osd] for osd in sorted(ids) if osd in self.osds},
            latency={osd: self.latency[osd] for osd in sorted(ids) if osd in self.latency},
            queues={osd: self.queues[osd] for osd in sorted(ids) if osd in self.queues},
        )

    @property
    def running(self) -> Collection[int]:
        """All OSDs that run. Another object when it changes, where the collector keeps to that."""
        return self.osds if self.up is None else self.up

    def part(self, osds: Collection[int], pools: Collection[int], up: Optional[Collection[int]] = None) -> Reading:
        """What was seen of these OSDs and pools. What is only known of the whole cluster stays as it is.

        `up` has those of them that run, where the caller keeps them.
        """
        own = [self.pools[pool] for pool in pools if pool in self.pools]
        sums: Dict[str, float] = {}
        for pool in own:
            for name, value in pool.sums.items():
                sums[name] = sums.get(name, 0.0) + value
        slow, down = self.slow_of, self.down
        return replace(
            self,
            osds={osd: report for osd, report in self.osds.items() if osd in osds},
            up=[osd for osd in self.running if osd in osds] if up is None else up,
            latency={osd: counters for osd, counters in self.latency.items() if osd in osds},
            queues={osd: counters for osd, counters in self.queues.items() if osd in osds},
            totals=sums,
            pools={number: self.pools[number] for number in pools if number in self.pools},
            raw_bytes=sum(pool.raw_bytes for pool in own),
            copies_per_object=copies_per_object(pool.sums for pool in own),
            coded_recovered=sum(pool.sums.get("num_bytes_recovered", 0.0) for pool in own if pool.coded),
            pg_states=_sum([pool.states for pool in own], self.pg_states),
            pgs={pgid: pg for pgid, pg in self.pgs.items() if pool_of(pgid) in pools},
            snaptrim_queue=_sum_of([pool.snaptrim_queue for pool in own]),
            pgs_late=_sum_of([pool.pgs_late for pool in own]),
            slow_ops=self.slow_ops if slow is None else sum(slow.get(osd, 0.0) for osd in osds),
            osds_down=self.osds_down if down is None else float(len(down.intersection(osds))),
            notes=(),
        )


def _sum_of(numbers: Sequence[Optional[float]]) -> Optional[float]:
    """None where one of them is not known."""
    present = [number for number in numbers if number is not None]
    return math.fsum(present) if len(present) == len(numbers) else None


def _sum(states: Sequence[Optional[Mapping[str, int]]], whole: Mapping[str, int]) -> Mapping[str, int]:
    """PGs by state of some pools; those of the whole cluster where the pools' own are not known."""
    counts: Dict[str, int] = {}
    for own in states:
        if own is None:
            return whole
        for state, count in own.items():
            counts[state] = counts.get(state, 0) + count
    return counts


def copies_per_object(sums: Iterable[Mapping[str, float]]) -> Optional[float]:
    """Copies or shards of an object where it has most, out of the `stat_sum` of pools or PGs; None without objects."""
    counts = (each["num_object_copies"] / each["num_objects"] for each in sums if each.get("num_objects"))
    return max(counts, default=None)


def pool_of(pgid: str) -> int:
    """Number of a PG's pool."""
    return int(pgid.partition(".")[0])
