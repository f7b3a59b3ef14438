"""What a collector saw at one moment, and how to read it out of Ceph's own documents.

Every parser takes what is there and leaves out what is not: counters differ between releases, and daemons restart.
"""

from __future__ import annotations

import json
import math
import re
import time
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import (
    Any,
    Callable,
    Collection,
    Dict,
    FrozenSet,
    Iterable,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Pattern,
    Sequence,
    Tuple,
)

from ceph_tuner.core.errors import RetryLater
from ceph_tuner.core.measure.counters import DaemonReport
from ceph_tuner.core.measure.histogram import NS_PER_MS, Histogram, pooled
from ceph_tuner.core.measure.sample import READ, WRITE

PLAIN_COUNTERS = (
    "op_r",
    "op_w",
    "op_rw",
    "op_r_out_bytes",
    "op_w_in_bytes",
    "op_rw_in_bytes",
    "op_rw_out_bytes",
    "recovery_ops",
    "recovery_bytes",
    # since Tentacle; every copy of an object counts
    "scrub_replicated_stats_cnt",
    "scrub_ec_stats_cnt",
    "scrub_replicated_read_bytes",
    "scrub_ec_read_bytes",
)
"""Cumulative counters of the OSD's section `osd`; an OSD that lacks one leaves it out."""

TIME_COUNTERS = ("op_r_latency", "op_w_latency", "op_rw_latency")
"""Counters with a sum of seconds and a count, in reports as NAME.sum and NAME.count."""

SCRUB_COUNTERS = ("scrub_replicated_stats_cnt", "scrub_ec_stats_cnt")
SCRUB_READS = ("scrub_replicated_read_bytes", "scrub_ec_read_bytes")

QUEUE_CLASSES = {
    "mclock_client_queue_len": "queue.client",
    "mclock_recovery_queue_len": "queue.background_recovery",
    "mclock_best_effort_queue_len": "queue.background_best_effort",
}
"""Counter of a section `mclock-shard-queue-N` -> metric. Added up over an OSD's shards."""


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
        chosen = set(osds) if self.turn.count == 1 else self.turn.always.intersection(osds)
        return Reading(
            at=self.at,
            osds={osd: self.osds[osd] for osd in sorted(chosen) if osd in self.osds},
            latency={osd: self.latency[osd] for osd in sorted(chosen) if osd in self.latency},
            queues={osd: self.queues[osd] for osd in sorted(chosen) if osd in self.queues},
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
            coded_recovered=sum(pool.sums.get("num_bytes_recovered", 0.0) for pool in own if pool.coded),
            pg_states=_added([pool.states for pool in own], self.pg_states),
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


def _added(states: Sequence[Optional[Mapping[str, int]]], whole: Mapping[str, int]) -> Mapping[str, int]:
    """PGs by state of some pools; those of the whole cluster where the pools' own are not known."""
    counts: Dict[str, int] = {}
    for own in states:
        if own is None:
            return whole
        for state, count in own.items():
            counts[state] = counts.get(state, 0) + count
    return counts


LATENCY_HISTOGRAMS = {
    "op_r_latency_out_bytes_histogram": READ,
    "op_w_latency_in_bytes_histogram": WRITE,
    # its twin by answer size counts the same operations
    "op_rw_latency_in_bytes_histogram": WRITE,
}

UNKNOWN = "unknown"
"""State of a PG of which the active mgr has heard nothing."""
UNHEARD = "the active mgr has not heard of the PGs yet"

ERASURE = 3
"""Type of an erasure-coded pool (`pg_pool_t::TYPE_ERASURE`)."""

_QUEUE_SECTION = "mclock-shard-queue-"
_QUEUES_IN_TEXT = re.compile(rf'"({_QUEUE_SECTION}[^"]*)"\s*:\s*')
_LATENCIES_IN_TEXT = re.compile(rf'"({"|".join(LATENCY_HISTOGRAMS)})"\s*:\s*')
_DECODER = json.JSONDecoder()
_STAMP = "%Y-%m-%dT%H:%M:%S"


def osd_values(section: Mapping[str, Any]) -> Dict[str, float]:
    """Counters for a `DaemonReport` out of the section `osd` of `perf dump`."""
    values = {name: float(section[name]) for name in PLAIN_COUNTERS if name in section}
    for name in TIME_COUNTERS:
        if name in section:
            values[f"{name}.sum"] = float(section[name]["sum"])
            values[f"{name}.count"] = float(section[name]["avgcount"])
    return values


def osd_queues(perf_dump: Mapping[str, Any]) -> Dict[str, float]:
    """Items waiting by metric, over all shards, out of `perf dump`; empty where mClock does not run."""
    queues: Dict[str, float] = {}
    for section, counters in perf_dump.items():
        if section.startswith(_QUEUE_SECTION):
            for counter, metric in QUEUE_CLASSES.items():
                queues[metric] = queues.get(metric, 0.0) + float(counters.get(counter, 0))
    return queues


def osd_queues_in(perf_dump: str) -> Dict[str, float]:
    """`osd_queues` of the text, without decoding the hundred kilobytes around the few that count. Raises ValueError."""
    return osd_queues(_sections(_QUEUES_IN_TEXT, perf_dump))


def osd_latency_in(histogram_dump: str) -> Dict[str, Histogram]:
    """`osd_latency` of the text, without decoding the other histograms. Raises ValueError."""
    return osd_latency({"osd": _sections(_LATENCIES_IN_TEXT, histogram_dump)})


def _sections(names: Pattern[str], text: str) -> Dict[str, Any]:
    """Documents behind these names."""
    return {section.group(1): _DECODER.raw_decode(text, section.end())[0] for section in names.finditer(text)}


def osd_latency(histogram_dump: Mapping[str, Any]) -> Dict[str, Histogram]:
    """Latency of reads and of writes out of `perf histogram dump`, over all request sizes."""
    histograms: Dict[str, Histogram] = {}
    section = histogram_dump.get("osd", {})
    for name, kind in LATENCY_HISTOGRAMS.items():
        if name in section:
            together = pooled([histograms[kind]] if kind in histograms else [], latency_axis(section[name]))
            if together is not None:
                histograms[kind] = together
    return histograms


def latency_axis(document: Mapping[str, Any]) -> Histogram:
    """One of Ceph's two-dimensional histograms, summed over its second axis.

    Ceph labels the first axis `Latency (usec)`; its ranges are in nanoseconds.
    """
    ranges = document["axes"][0]["ranges"]
    # bucket 0 is below the axis' minimum of 0 and stays empty; it joins bucket 1
    upper_ms = tuple((bucket["max"] + 1) / NS_PER_MS for bucket in ranges[1:-1])
    counts = [sum(row) for row in document["values"]]
    return Histogram(upper_ms, (counts[0] + counts[1], *counts[2:]))


def data_chunks(osd_map: Mapping[str, Any]) -> Dict[int, int]:
    """Erasure-coded pool -> its data chunks (k), out of `osd dump` or of the mgr's `osd_map`."""
    profiles = osd_map.get("erasure_code_profiles", {})
    return {
        int(pool["pool"]): int(profiles.get(pool["erasure_code_profile"], {}).get("k", 1))
        for pool in osd_map.get("pools", [])
        if int(pool.get("type", 1)) == ERASURE
    }


def raw_bytes(pool_stats: Iterable[Mapping[str, Any]], chunks: Mapping[int, int]) -> float:
    """What the OSDs hold of these pools, out of the rows of the mgr's `pool_stats`; `chunks` as of `data_chunks`."""
    return math.fsum(_raw_bytes(pool["stat_sum"], chunks.get(int(pool["poolid"]), 1)) for pool in pool_stats)


def _raw_bytes(sums: Mapping[str, Any], chunks: int) -> float:
    # Ceph counts the bytes that clients see, and every shard as a copy
    copies = sums["num_object_copies"] / sums["num_objects"] if sums["num_objects"] else 0.0
    return float(sums["num_bytes"] * copies / chunks)


def pool_readings(
    sums: Mapping[int, Mapping[str, Any]],
    chunks: Mapping[int, int],
    states: Optional[Mapping[int, Mapping[str, int]]],
    served: Mapping[int, ServedOperations],
) -> Dict[int, PoolReading]:
    """Each pool by its `stat_sum`; its queues and late PGs are for `with_progress`. `chunks` as of `data_chunks`."""
    return {
        number: PoolReading(
            dict(own),
            _raw_bytes(own, chunks.get(number, 1)),
            chunks.get(number, 1) > 1,
            None if states is None else states.get(number, {}),
            served=served.get(number),
        )
        for number, own in sums.items()
    }


def with_progress(
    pools: Mapping[int, PoolReading],
    snaptrim_queues: Mapping[str, int],
    deep_scrubbed: Mapping[str, str],
    late: Callable[[Mapping[str, str]], float],
) -> Dict[int, PoolReading]:
    """Add what all PGs say of each pool: PG -> its queue, and the stamp of its last deep scrub.

    `late` counts those of some PGs, by their stamps, that are past their date.
    """
    queues = dict.fromkeys(pools, 0)
    stamps: Dict[int, Dict[str, str]] = {number: {} for number in pools}
    for pgid, queue in snaptrim_queues.items():
        number = pool_of(pgid)
        if number in queues:
            queues[number] += queue
            stamps[number][pgid] = deep_scrubbed[pgid]
    return {
        number: replace(pool, snaptrim_queue=float(queues[number]), pgs_late=late(stamps[number]))
        for number, pool in pools.items()
    }


def coded_recovered(sums: Iterable[Tuple[int, Mapping[str, Any]]], chunks: Mapping[int, int]) -> float:
    """Bytes recovered so far of erasure-coded pools, out of (pool, `stat_sum`); `chunks` as of `data_chunks`.

    Ceph counts the whole object once for all its shards (`ECCommon.cc`, num_bytes_recovered).
    """
    return float(sum(total.get("num_bytes_recovered", 0) for pool, total in sums if chunks.get(pool, 1) > 1))


def pool_of(pgid: str) -> int:
    """Number of a PG's pool."""
    return int(pgid.partition(".")[0])


def pg_details(pg_stats: Iterable[Mapping[str, Any]], chunks: Mapping[int, int]) -> Dict[str, PgDetail]:
    """PGs by id out of the rows of `pg ls` or of the mgr's `pg_stats`; `chunks` as of `data_chunks`."""
    return {str(row["pgid"]): pg_detail(row, chunks) for row in pg_stats}


def pg_detail(row: Mapping[str, Any], chunks: Mapping[int, int]) -> PgDetail:
    """One PG out of its row of statistics."""
    total = row["stat_sum"]
    pool = pool_of(str(row["pgid"]))
    return PgDetail(
        scrubbed=int(row.get("objects_scrubbed", 0)),
        trimmed=int(row.get("objects_trimmed", 0)),
        objects=int(total["num_objects"]),
        # the bytes are those that clients see; a shard has 1/k of them
        raw_bytes=int(total["num_bytes"]) * len(row["acting"]) / chunks.get(pool, 1),
        state=str(row["state"]),
        snaptrim_queue=int(row.get("snaptrimq_len", 0)),
        scrub_ended=str(row["last_scrub_stamp"]),
        deep_scrubbed=str(row["last_deep_scrub_stamp"]),
        scrub_lasted_s=float(row.get("last_scrub_duration", 0)),
    )


def deep_scrub_intervals(osd_map: Mapping[str, Any]) -> Dict[int, float]:
    """Pool -> its own deep-scrub interval (s), which wins over the OSDs', where it has one (`PgScrubber`)."""
    own = {
        int(pool["pool"]): float(pool.get("options", {}).get("deep_scrub_interval", 0))
        for pool in osd_map.get("pools", [])
    }
    return {pool: interval for pool, interval in own.items() if interval > 0}


def late_pgs(deep_scrubbed: Mapping[str, str], now: float, interval_s: float, own: Mapping[int, float]) -> List[str]:
    """PGs whose last deep scrub is longer ago than their pool's `own` interval, else than that of the OSDs.

    `deep_scrubbed` has each PG's stamp of it, as Ceph writes it.
    """
    # Ceph writes stamps in UTC and in one form, so that they sort as text
    deadlines = {every: time.strftime(_STAMP, time.gmtime(now - every)) for every in {interval_s, *own.values()}}
    return [
        pgid for pgid, stamp in deep_scrubbed.items() if stamp and stamp < deadlines[own.get(pool_of(pgid), interval_s)]
    ]


def stamp_s(stamp: str) -> float:
    """Seconds since the epoch of a moment as Ceph writes it; 0 of one that never was."""
    return datetime.strptime(stamp, f"{_STAMP}.%f%z").timestamp() if "T" in stamp else 0.0


def check_heard(states: Mapping[str, int]) -> None:
    """Raises RetryLater where all PGs are unknown: a mgr that just became the active one says 0 of them."""
    if states and set(states) == {UNKNOWN}:
        raise RetryLater(UNHEARD)


def slow_ops(health: Mapping[str, Any]) -> float:
    """Operations that Ceph calls slow, out of the document of `ceph health`."""
    words = health.get("checks", {}).get("SLOW_OPS", {}).get("summary", {}).get("message", "0").split()
    return float(words[0]) if words and words[0].isdigit() else 0.0


def osds_down(health: Mapping[str, Any]) -> float:
    """OSDs that are in and down, out of the same document."""
    return float(health.get("checks", {}).get("OSD_DOWN", {}).get("summary", {}).get("count", 0))


def share_out(groups: Iterable[Iterable[int]], limit: int) -> Tuple[int, ...]:
    """At most `limit` OSDs of the groups, the same number of each; what a small group leaves goes to the larger.

    An OSD of several groups is taken for the smallest of them.
    """
    waiting = sorted((sorted(group) for group in groups), key=len)
    chosen: Dict[int, None] = {}
    for place, group in enumerate(waiting):
        share = (limit - len(chosen)) // (len(waiting) - place)
        chosen.update(dict.fromkeys(spread([osd for osd in group if osd not in chosen], share)))
    return tuple(chosen)


def spread(osds: Iterable[int], limit: int) -> Tuple[int, ...]:
    """At most `limit` OSDs, evenly over their ids, the same ones for the same OSDs."""
    ids = sorted(osds)
    if len(ids) <= limit:
        return tuple(ids)
    return tuple(ids[place * len(ids) // limit] for place in range(limit))
