"""The names of everything that is measured: one vocabulary for samples, SLOs, trials and reports.

Units are SI: seconds, bytes, per second; only latencies are in milliseconds, as operators state them.
"""

from __future__ import annotations

from typing import Dict, NamedTuple


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
    Metric("recovery.copies_s", "1/s", False, "decrease of degraded object copies"),
    Metric(
        "recovery.bytes_s",
        "B/s",
        False,
        "bytes of copies pushed; of erasure-coded objects their size, once for all shards",
    ),
    Metric("recovery.objects_left", "1", True, "degraded object copies still to recover"),
    Metric("recovery.finish_s", "s", True, "time to recover the degraded copies at the present rate"),
    Metric("backfill.objects_s", "1/s", False, "decrease of misplaced object copies"),
    Metric("backfill.objects_left", "1", True, "misplaced object copies still to move"),
    Metric("backfill.finish_s", "s", True, "time to move the misplaced copies at the present rate"),
    Metric("scrub.objects_s", "1/s", False, "objects scrubbed"),
    Metric("scrub.bytes_s", "B/s", False, "bytes read by deep scrub"),
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

METRICS: Dict[str, Metric] = {metric.name: metric for metric in _ALL}
"""Every metric by its name, in the order in which people read them."""
