"""The names of everything that is measured: one vocabulary for samples, SLOs, trials and reports.

Units are SI: seconds, bytes, per second; only latencies are in milliseconds, as operators state them.

A name alone is about the whole cluster. With a scope it is about one device class or one pool:
`client.p95_ms{class=nvme}`, `client.mean_ms{pool=volumes}`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Dict, FrozenSet, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Tuple

CLASS, POOL = "class", "pool"
"""Kinds of scopes."""


class Scope(NamedTuple):
    """What a metric is about where that is not the whole cluster."""

    kind: str
    """CLASS or POOL."""
    name: str

    def __str__(self) -> str:
        """As it stands between a name's braces."""
        return f"{self.kind}={self.name}"

    @property
    def words(self) -> str:
        """As in `the OSDs of class ssd`, `the pool rbd`."""
        return f"{'the OSDs of class' if self.kind == CLASS else 'the pool'} {self.name}"


class Metric(NamedTuple):
    """What a number means, its unit, and whether less of it is better."""

    name: str
    unit: str
    lower_is_better: bool
    meaning: str


_ALL = [
    Metric("client.iops", "1/s", False, "client operations served"),
    Metric("client.read_iops", "1/s", False, "client reads served"),
    Metric("client.write_iops", "1/s", False, "client writes served"),
    Metric("client.bytes_s", "B/s", False, "client bandwidth"),
    Metric("client.read_bytes_s", "B/s", False, "client read bandwidth"),
    Metric("client.write_bytes_s", "B/s", False, "client write bandwidth"),
    Metric("client.mean_ms", "ms", True, "mean client latency, reads and writes"),
    Metric("client.p50_ms", "ms", True, "median client latency"),
    Metric("client.p95_ms", "ms", True, "95th percentile of client latency"),
    Metric("client.p99_ms", "ms", True, "99th percentile of client latency"),
    Metric("client.read_mean_ms", "ms", True, "mean client read latency"),
    Metric("client.read_p95_ms", "ms", True, "95th percentile of client read latency"),
    Metric("client.read_p99_ms", "ms", True, "99th percentile of client read latency"),
    Metric("client.write_mean_ms", "ms", True, "mean client write latency"),
    Metric("client.write_p95_ms", "ms", True, "95th percentile of client write latency"),
    Metric("client.write_p99_ms", "ms", True, "99th percentile of client write latency"),
    Metric("recovery.objects_s", "1/s", False, "objects whose recovery begins, degraded and misplaced together"),
    Metric("recovery.copies_s", "1/s", False, "degraded object copies that recovery mends"),
    Metric(
        "recovery.bytes_s",
        "B/s",
        False,
        "bytes of copies pushed; of erasure-coded objects their size, once for all shards",
    ),
    Metric("recovery.objects_left", "1", True, "degraded object copies still to recover"),
    Metric("recovery.finish_s", "s", True, "time to recover the degraded copies at the present rate"),
    Metric("backfill.objects_s", "1/s", False, "misplaced object copies that are moved"),
    Metric("backfill.objects_left", "1", True, "misplaced object copies still to move"),
    Metric("backfill.finish_s", "s", True, "time to move the misplaced copies at the present rate"),
    Metric("scrub.objects_s", "1/s", False, "objects scrubbed"),
    Metric("scrub.bytes_s", "B/s", False, "bytes deep-scrubbed, without those of chunks that are begun anew"),
    Metric("scrub.preemptions_s", "1/s", True, "chunks that clients' writes preempt, so that they are begun anew"),
    Metric("scrub.pgs_late", "1", True, "PGs past their deep-scrub date"),
    Metric("scrub.interval_s", "s", True, "time to deep-scrub the whole cluster at the present rate"),
    Metric("snaptrim.objects_s", "1/s", False, "clones trimmed"),
    Metric("snaptrim.queue", "1", True, "snapshots of PGs waiting to be trimmed"),
    Metric("snaptrim.drain_s", "s", True, "time to drain the snaptrim queue at the present rate"),
    Metric("queue.client", "1", True, "client items waiting in the mClock queues, mean per OSD"),
    Metric("queue.background_recovery", "1", True, "recovery items waiting in the mClock queues, mean per OSD"),
    Metric("queue.background_best_effort", "1", True, "best-effort items waiting in the mClock queues, mean per OSD"),
    Metric("ops.slow", "1", True, "operations that Ceph calls slow"),
    Metric("pgs.inactive", "1", True, "PGs that serve no I/O"),
    Metric("pgs.laggy", "1", True, "PGs waiting for a replica's lease"),
    Metric("osds.down", "1", True, "OSDs that are in and down"),
]


def work_of(metric: str) -> str:
    """The kind of work that a metric is about, `client` of `client.p95_ms`; of a scope's as well."""
    return metric.partition(".")[0]


_BY_NAME: Dict[str, Metric] = {metric.name: metric for metric in _ALL}

PERCENTILES = {"p50_ms": 0.50, "p95_ms": 0.95, "p99_ms": 0.99}
"""How metrics end that come from histograms, and the fraction that each is."""
OF_POOLS: FrozenSet[str] = frozenset(
    name
    for name in _BY_NAME
    if work_of(name) not in ("queue", "ops", "osds") and name not in ("recovery.objects_s", "scrub.preemptions_s")
)
"""Metrics that a pool has as well: OSDs count queues, slow operations, recoveries begun and chunks preempted without
their pool."""

# a pool may be called almost anything; what would end the name, the line or the label is left out
_SCOPED = re.compile(r"([a-z0-9_.]{1,60})\{(class|pool)=([^{}=,\s\"'<>]{1,100})\}")


def parted(name: str) -> Tuple[str, Optional[Scope]]:
    """A metric's name without its scope, and the scope; what is no scope stays in the name."""
    match = _SCOPED.fullmatch(name)
    return (match[1], Scope(match[2], match[3])) if match else (name, None)


def scoped(name: str, scope: Optional[Scope]) -> str:
    """The name of this metric in a scope; without one, the name itself."""
    return name if scope is None else f"{name}{{{scope}}}"


class _Metrics(Mapping[str, Metric]):
    """The metrics in the order in which people read them; a look-up takes names with a scope as well."""

    def __getitem__(self, name: str) -> Metric:
        return _BY_NAME.get(name) or _within_scope(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_BY_NAME)

    def __len__(self) -> int:
        return len(_BY_NAME)


@lru_cache(maxsize=1024)
def _within_scope(name: str) -> Metric:
    """Raises KeyError where there is no such metric."""
    plain, scope = parted(name)
    metric = _BY_NAME[plain]
    if scope is None or (scope.kind == POOL and plain not in OF_POOLS):
        raise KeyError(name)
    at_most = ", at most" if scope.kind == POOL and plain.endswith(tuple(PERCENTILES)) else ""
    return metric._replace(name=name, meaning=f"{metric.meaning}{at_most}: {scope.words}")


METRICS: Mapping[str, Metric] = _Metrics()
"""Every metric by its name, those of the whole cluster in the order in which people read them."""

_PLACE = {name: place for place, name in enumerate(_BY_NAME)}


def in_order(names: Iterable[str]) -> List[str]:
    """Those of these names that are metrics, as people read them: the whole cluster's, then scope by scope."""
    metrics = [(*parted(name), name) for name in names if name in METRICS]
    return [name for plain, scope, name in sorted(metrics, key=lambda each: (each[1] or ("", ""), _PLACE[each[0]]))]
