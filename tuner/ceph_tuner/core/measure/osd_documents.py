"""What Ceph's documents say of OSDs: counters, queues, latencies, and what `ceph health` counts of them.

Every parser takes what is there and leaves out what is not: counters differ between releases, and daemons restart.
"""

from __future__ import annotations

import json
import re
from typing import Any, Dict, Mapping, Pattern

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
    "scrub_replicated_io_intersects",
    "scrub_ec_io_intersects",
    "scrub_replicated_io_blocked",
    "scrub_ec_io_blocked",
)
"""Cumulative counters of the OSD's section `osd`; an OSD that lacks one leaves it out."""

TIME_COUNTERS = ("op_r_latency", "op_w_latency", "op_rw_latency")
"""Counters with a sum of seconds and a count, in reports as NAME.sum and NAME.count."""

SCRUB_COUNTERS = ("scrub_replicated_stats_cnt", "scrub_ec_stats_cnt")

SCRUB_READS = ("scrub_replicated_read_bytes", "scrub_ec_read_bytes")

_WRITES_MET = ("scrub_replicated_io_intersects", "scrub_ec_io_intersects")
_WRITES_HELD = ("scrub_replicated_io_blocked", "scrub_ec_io_blocked")
SCRUB_WRITES = (*_WRITES_MET, *_WRITES_HELD)
"""Clients' writes to what was being scrubbed, and those of them that waited."""

QUEUE_CLASSES = {
    "mclock_client_queue_len": "queue.client",
    "mclock_recovery_queue_len": "queue.background_recovery",
    "mclock_best_effort_queue_len": "queue.background_best_effort",
}
"""Counter of a section `mclock-shard-queue-N` -> metric. Added up over an OSD's shards."""

LATENCY_HISTOGRAMS = {
    "op_r_latency_out_bytes_histogram": READ,
    "op_w_latency_in_bytes_histogram": WRITE,
    # its twin by answer size counts the same operations
    "op_rw_latency_in_bytes_histogram": WRITE,
}

_QUEUE_SECTION = "mclock-shard-queue-"

_QUEUES_IN_TEXT = re.compile(rf'"({_QUEUE_SECTION}[^"]*)"\s*:\s*')

_LATENCIES_IN_TEXT = re.compile(rf'"({"|".join(LATENCY_HISTOGRAMS)})"\s*:\s*')

_WRAPPED = 2.0**63
"""Counts are of 64 bits without a sign: one of so many or more has gone below zero."""


def osd_values(section: Mapping[str, Any]) -> Dict[str, float]:
    """Counters for a `DaemonReport` out of the section `osd` of `perf dump`."""
    values = {name: float(section[name]) for name in PLAIN_COUNTERS if name in section}
    for name in TIME_COUNTERS:
        if name in section:
            values[f"{name}.sum"] = float(section[name]["sum"])
            values[f"{name}.count"] = float(section[name]["avgcount"])
    return values


def scrubbed_copies(counters: Mapping[str, float]) -> float:
    """Copies of objects that scrubs looked at, those of chunks that were preempted among them."""
    return sum(counters.get(name, 0.0) for name in SCRUB_COUNTERS)


def preempted_chunks(counters: Mapping[str, float]) -> float:
    """Scrubs' chunks that clients' writes preempted; of writes to a chunk the others waited.

    A chunk that was preempted has no range any more, so each is counted once (`PgScrubber::write_blocked_by_scrub`).
    """
    met, held = (sum(counters.get(name, 0.0) for name in names) for names in (_WRITES_MET, _WRITES_HELD))
    return max(met - held, 0.0)


def osd_queues(perf_dump: Mapping[str, Any]) -> Dict[str, float]:
    """Items waiting by metric, over all shards, out of `perf dump`; empty where mClock does not run."""
    queues: Dict[str, float] = {}
    for section, counters in perf_dump.items():
        if section.startswith(_QUEUE_SECTION):
            for counter, metric in QUEUE_CLASSES.items():
                waiting = float(counters.get(counter, 0))
                queues[metric] = queues.get(metric, 0.0) + (waiting if 0 <= waiting < _WRAPPED else 0.0)
    return queues


def osd_queues_in(perf_dump: str) -> Dict[str, float]:
    """`osd_queues` of the text, without decoding the hundred kilobytes around the few that count. Raises ValueError."""
    return osd_queues(_sections(_QUEUES_IN_TEXT, perf_dump))


def osd_latency_in(histogram_dump: str) -> Dict[str, Histogram]:
    """`osd_latency` of the text, without decoding the other histograms. Raises ValueError."""
    return osd_latency({"osd": _sections(_LATENCIES_IN_TEXT, histogram_dump)})


def _sections(names: Pattern[str], text: str) -> Dict[str, Any]:
    """Documents behind these names. Raises ValueError."""
    try:
        return {section.group(1): _DECODER.raw_decode(text, section.end())[0] for section in names.finditer(text)}
    except RecursionError:
        raise ValueError("too many levels") from None


def _refused(text: str) -> float:
    raise ValueError(f"the number {text}")


_DECODER = json.JSONDecoder(parse_constant=_refused)


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
    if any(type(count) is not int or count >= _WRAPPED for count in counts):
        raise ValueError("counts that are no whole numbers of 64 bits")
    return Histogram(upper_ms, (counts[0] + counts[1], *counts[2:]))


def slow_ops(health: Mapping[str, Any]) -> float:
    """Operations that Ceph calls slow, out of the document of `ceph health`."""
    words = health.get("checks", {}).get("SLOW_OPS", {}).get("summary", {}).get("message", "0").split()
    return float(words[0]) if words and words[0].isdecimal() else 0.0


def osds_down(health: Mapping[str, Any]) -> float:
    """OSDs that are in and down, out of the same document."""
    return float(health.get("checks", {}).get("OSD_DOWN", {}).get("summary", {}).get("count", 0))
