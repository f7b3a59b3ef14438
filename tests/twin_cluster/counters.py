"""The simulation's counters as Ceph's documents: `perf dump` and `perf histogram dump` of one OSD.

The names, the axes and what they count are those of OSDs of 18.2.7 and 20.2.4.
"""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from ceph_tuner.core.knobs.releases import Version
from ceph_tuner.core.measure.osd_documents import QUEUE_CLASSES
from ceph_tuner.core.measure.sample import READ, WRITE
from ceph_tuner.twin.model import Pool, ScrubWork
from ceph_tuner.twin.simulation import SimulatedCounters

SCRUB_COUNTERS_SINCE: Version = (20, 2, 0)
"""Older OSDs count no scrubs."""

LATENCY_BUCKETS = SIZE_BUCKETS = 32
_LATENCY_QUANT_NS, _SIZE_QUANT = 100_000, 512

_STATES = ("at", "waiting", "degraded_left", "misplaced_left", "clones_left", "scrubbing_pgs")
"""What is as of now; all the rest adds up since the start."""

_HISTOGRAMS = {
    "op_r_latency_out_bytes_histogram": READ,
    "op_w_latency_in_bytes_histogram": WRITE,
}


def added(before: Optional[SimulatedCounters], since: SimulatedCounters) -> SimulatedCounters:
    """Counters that go on from those of an earlier simulation of the same OSDs."""
    if before is None:
        return since
    rising = [field.name for field in fields(since) if field.name not in _STATES]
    return replace(since, **{name: getattr(before, name) + getattr(since, name) for name in rising})


def perf_dump(
    counters: SimulatedCounters,
    place: int,
    shards: int,
    version: Version,
    mclock: bool,
    scrubbed: Optional[Tuple[ScrubWork, Pool]],
) -> Dict[str, Any]:
    """Sections `osd` and `mclock-shard-queue-N` of the OSD at that place of the arrays.

    `scrubbed` is the work and the pool that is scrubbed: OSDs count every copy, apart for erasure code.
    """
    reads, writes = int(counters.read_ops[place]), int(counters.write_ops[place])
    read_s, write_s = float(counters.read_seconds[place]), float(counters.write_seconds[place])
    section: Dict[str, Any] = {
        "op_wip": int(counters.waiting[place][0]),
        "op": reads + writes,
        "op_in_bytes": int(counters.write_bytes[place]),
        "op_out_bytes": int(counters.read_bytes[place]),
        "op_latency": _time(reads + writes, read_s + write_s),
        "op_r": reads,
        "op_r_out_bytes": int(counters.read_bytes[place]),
        "op_r_latency": _time(reads, read_s),
        "op_w": writes,
        "op_w_in_bytes": int(counters.write_bytes[place]),
        "op_w_latency": _time(writes, write_s),
        "op_rw": 0,
        "op_rw_in_bytes": 0,
        "op_rw_out_bytes": 0,
        "op_rw_latency": _time(0, 0.0),
        "recovery_ops": int(counters.recovery_ops[place]),
        "recovery_bytes": int(counters.recovery_bytes[place]),
    }
    if version >= SCRUB_COUNTERS_SINCE:
        for kind in ("replicated", "ec"):
            is_counted = scrubbed is not None and (kind == "ec") == bool(scrubbed[1].k)
            section[f"scrub_{kind}_stats_cnt"] = _copies(counters, place, *scrubbed) if scrubbed and is_counted else 0
            section[f"scrub_{kind}_io_intersects"] = int(counters.preempted_chunks[place]) if is_counted else 0
            section[f"scrub_{kind}_io_blocked"] = 0
            section[f"scrub_{kind}_read_bytes"] = int(counters.scrub_read_bytes[place]) if is_counted else 0
    document: Dict[str, Any] = {"osd": section}
    if mclock:
        for shard in range(shards):
            document[f"mclock-shard-queue-{shard}"] = _queue(counters, place, shard, shards)
    return document


def _copies(counters: SimulatedCounters, place: int, work: ScrubWork, pool: Pool) -> int:
    """Copies that were looked at, those of chunks that a write preempted among them."""
    if work.deep:
        return int(float(counters.scrub_read_bytes[place]) * (pool.k or 1) / work.object_bytes)
    # the simulation counts objects once, at their primary
    return pool.size * int(counters.scrub_objects[place])


def histogram_dump(counters: SimulatedCounters, place: int) -> Dict[str, Any]:
    """Latency by request size, in Ceph's two dimensions. An operation's size is the mean one of its OSD."""
    histograms = {}
    for name, kind in _HISTOGRAMS.items():
        row = 0 if kind == READ else 1
        operations, amount = (
            (counters.read_ops, counters.read_bytes) if row == 0 else (counters.write_ops, counters.write_bytes)
        )
        size = float(amount[place]) / max(1.0, float(operations[place]))
        histograms[name] = _histogram(_in_ceph_buckets(counters.latency[place][row]), size)
    histograms["op_rw_latency_in_bytes_histogram"] = _histogram([0] * LATENCY_BUCKETS, 0.0)
    return {"osd": histograms}


def _in_ceph_buckets(counts: Any) -> List[int]:
    """Bucket 0 of Ceph's lies below 0; its last one is open from where the simulation has two more."""
    buckets = [0, *(int(count) for count in counts)]
    return [*buckets[: LATENCY_BUCKETS - 1], int(np.sum(buckets[LATENCY_BUCKETS - 1 :]))]


def _histogram(counts: List[int], size: float) -> Dict[str, Any]:
    column = 1 if size < _SIZE_QUANT else min(SIZE_BUCKETS - 1, 2 + int(math.log2(size / _SIZE_QUANT)))
    # columns beyond the last used one are left out, which keeps the answer small
    rows = [[0] * column + [count] for count in counts]
    axes = [
        _axis("Latency (usec)", _LATENCY_QUANT_NS, LATENCY_BUCKETS),
        _axis("Request size (bytes)", _SIZE_QUANT, SIZE_BUCKETS),
    ]
    return {"axes": axes, "values": rows}


def _axis(name: str, quant: int, buckets: int) -> Dict[str, Any]:
    edges = [0, *(quant << bucket for bucket in range(buckets - 2))]
    ranges: List[Dict[str, int]] = [{"max": -1}]
    ranges += [{"min": low, "max": high - 1} for low, high in zip(edges, edges[1:])]
    ranges.append({"min": edges[-1]})
    return {
        "name": name,
        "min": 0,
        "quant_size": quant,
        "buckets": buckets,
        "scale_type": "log2",
        "ranges": ranges,
    }


def _time(count: int, seconds: float) -> Dict[str, Any]:
    return {"avgcount": count, "sum": seconds, "avgtime": seconds / count if count else 0.0}


def _queue(counters: SimulatedCounters, place: int, shard: int, shards: int) -> Dict[str, int]:
    """One shard's lengths. The simulation counts an OSD's; they are shared out evenly."""
    lengths = {}
    for name, waiting in zip(QUEUE_CLASSES, counters.waiting[place]):
        each, rest = divmod(int(waiting), shards)
        lengths[name] = each + (1 if shard < rest else 0)
    return {"mclock_immediate_queue_len": 0, **lengths, "mclock_all_type_queue_len": sum(lengths.values())}
