"""Latencies of clients: what fio printed, what happened between two prints, and the metrics of such a stretch."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional, Sequence

from ceph_tuner.core.measure.metrics import PERCENTILES

NANOSECONDS_PER_MS = 1e6


@dataclass(frozen=True)
class Latencies:
    """Operations: how many, their latencies' sum, and how many at each latency in nanoseconds."""

    count: int = 0
    sum_ms: float = 0.0
    bins: Mapping[int, int] = field(default_factory=dict)

    def since(self, before: Latencies) -> Latencies:
        """What was added after `before`."""
        growth = Counter(self.bins)
        growth.subtract(Counter(before.bins))
        bins = {latency: count for latency, count in sorted(growth.items()) if count > 0}
        return Latencies(self.count - before.count, self.sum_ms - before.sum_ms, bins)

    def plus(self, other: Latencies) -> Latencies:
        """Both together."""
        bins = Counter(self.bins)
        bins.update(other.bins)
        return Latencies(self.count + other.count, self.sum_ms + other.sum_ms, dict(sorted(bins.items())))

    def stepped(self) -> Latencies:
        """The same in logarithmic steps, each of them 64 equal ones: to 1.6%, as fio keeps them."""
        bins: Counter[int] = Counter()
        for latency, count in self.bins.items():
            width = 1 << max(0, latency.bit_length() - 7)
            bins[latency // width * width + width // 2] += count
        return Latencies(self.count, self.sum_ms, dict(sorted(bins.items())))

    def quantile_ms(self, fraction: float) -> Optional[float]:
        """The smallest latency that this fraction of the operations does not exceed; None without operations."""
        rank = math.ceil(fraction * sum(self.bins.values()))
        so_far = 0
        for latency, count in sorted(self.bins.items()):
            so_far += count
            if so_far >= rank:
                return latency / NANOSECONDS_PER_MS
        return None


@dataclass(frozen=True)
class Snapshot:
    """Everything since the start, at seconds since the epoch."""

    at: float
    read: Latencies
    write: Latencies

    @classmethod
    def empty(cls, at: float = 0.0) -> Snapshot:
        """Before the first operation."""
        return cls(at, Latencies(), Latencies())

    def to_dict(self) -> Dict[str, Any]:
        """For the record: counts and bins."""
        kinds = {"read": self.read, "write": self.write}
        return {
            "at": self.at,
            **{
                kind: {"count": entry.count, "sum_ms": entry.sum_ms, "bins_ns": dict(entry.bins)}
                for kind, entry in kinds.items()
                if entry.count
            },
        }


def snapshot_of(document: Mapping[str, Any]) -> Snapshot:
    """Read one of fio's `json+` documents (one job, or jobs reported as a group)."""
    job = document["jobs"][0]
    return Snapshot(document["timestamp_ms"] / 1000, _latencies(job["read"]), _latencies(job["write"]))


@dataclass(frozen=True)
class LatencyInterval:
    """What was answered in so many seconds."""

    seconds: float
    read: Latencies
    write: Latencies
    untimed_reads: int = 0
    """Answered as well, while this machine's processors were slow: they count, and are in no latency."""
    untimed_writes: int = 0

    @property
    def untimed(self) -> int:
        """Reads and writes."""
        return self.untimed_reads + self.untimed_writes

    def metrics(self, block_bytes: int) -> Dict[str, float]:
        """Metrics `client.…`: rates, and latencies where there were operations."""
        values: Dict[str, float] = {}
        kinds = (
            ("", self.read.plus(self.write), self.untimed),
            ("read_", self.read, self.untimed_reads),
            ("write_", self.write, self.untimed_writes),
        )
        for kind, entry, untimed in kinds:
            values[f"client.{kind}iops"] = (entry.count + untimed) / self.seconds
            values[f"client.{kind}bytes_s"] = (entry.count + untimed) * block_bytes / self.seconds
            if entry.count > 0:
                values[f"client.{kind}mean_ms"] = entry.sum_ms / entry.count
                for name, fraction in PERCENTILES.items():
                    value = entry.quantile_ms(fraction)
                    if value is not None:
                        values[f"client.{kind}{name}"] = value
        return values


def interval_between(snapshots: Sequence[Snapshot], start: float, end: float) -> Optional[LatencyInterval]:
    """Between the prints nearest to start and end; None where there is nothing between them."""
    if not snapshots:
        return None
    first = min(snapshots, key=lambda snapshot: abs(snapshot.at - start))
    last = min(snapshots, key=lambda snapshot: abs(snapshot.at - end))
    # prints come once a second: without one near both borders this is another stretch of time
    if last.at <= first.at or abs(first.at - start) > 2 or abs(last.at - end) > 2:
        return None
    return LatencyInterval(last.at - first.at, last.read.since(first.read), last.write.since(first.write))


def _latencies(section: Mapping[str, Any]) -> Latencies:
    entry = section["lat_ns"]
    count = int(entry["N"])
    bins = {int(latency): int(number) for latency, number in entry.get("bins", {}).items()}
    return Latencies(count, float(entry["mean"]) * count / NANOSECONDS_PER_MS, bins)
