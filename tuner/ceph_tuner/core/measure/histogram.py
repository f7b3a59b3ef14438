"""Latency histograms: what an OSD counted per bucket, and percentiles out of them.

An OSD counts each operation in one of 32 buckets whose width doubles (100 us, 200 us, 400 us, ...). A percentile is
interpolated inside its bucket as if the operations in it were spread evenly. The true value lies somewhere in the same
bucket, so it can be up to half as low or twice as high; `Histogram.bracket` gives the bucket's edges.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

NS_PER_MS = 1e6


@dataclass(frozen=True)
class Histogram:
    """Counts of operations per latency bucket; `upper_ms[i]` is where bucket i ends and bucket i+1 begins.

    The last bucket is open above: its operations count as at its lower edge, so percentiles in it are lower bounds.
    """

    upper_ms: Tuple[float, ...]
    counts: Tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.counts) != len(self.upper_ms) + 1:
            raise ValueError(f"counts must be one more than the {len(self.upper_ms)} edges, got {len(self.counts)}")
        # the plugin makes hundreds of these at each sample
        if min(self.counts) < 0:
            raise ValueError(f"counts must be >= 0, got {min(self.counts)}")
        if not _ascends(self.upper_ms):
            raise ValueError("edges must rise from above 0, and be finite")

    @property
    def total(self) -> int:
        """Operations in all buckets."""
        return sum(self.counts)

    def bracket(self, fraction: float) -> Optional[Tuple[float, float]]:
        """Edges in ms of the bucket that holds this quantile; None when nothing was counted."""
        place = self._place(fraction)
        return None if place is None else self._edges(place[0])

    def quantile(self, fraction: float) -> Optional[float]:
        """Quantile in ms, interpolated inside its bucket; None when nothing was counted."""
        place = self._place(fraction)
        if place is None:
            return None
        low, high = self._edges(place[0])
        return low + (high - low) * place[1]

    def since(self, earlier: Histogram) -> Optional[Histogram]:
        """Operations counted after `earlier`; None when the counts started again or the buckets differ."""
        if self.upper_ms != earlier.upper_ms:
            return None
        counts = tuple(now - before for now, before in zip(self.counts, earlier.counts))
        return None if min(counts) < 0 else Histogram(self.upper_ms, counts)

    def slowest(self, share: float) -> Histogram:
        """Its slowest operations, this share of them all: no part of it that is as large has higher percentiles."""
        remainder = round(min(max(share, 0.0), 1.0) * self.total)
        counts = []
        for count in reversed(self.counts):
            counts.append(min(count, remainder))
            remainder -= counts[-1]
        return Histogram(self.upper_ms, tuple(reversed(counts)))

    def to_dict(self) -> Dict[str, Any]:
        """Plain numbers; buckets above the highest used one are cut off."""
        length = max((place for place, count in enumerate(self.counts) if count), default=-1) + 1
        return {"upper_ms": list(self.upper_ms), "counts": list(self.counts[:length])}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Histogram:
        """Inverse of `to_dict`."""
        upper = tuple(float(edge) for edge in document["upper_ms"])
        counts = [int(count) for count in document["counts"]]
        return cls(upper, tuple(counts + [0] * (len(upper) + 1 - len(counts))))

    def _edges(self, bucket: int) -> Tuple[float, float]:
        low = self.upper_ms[bucket - 1] if bucket else 0.0
        return low, self.upper_ms[bucket] if bucket < len(self.upper_ms) else low

    def _place(self, fraction: float) -> Optional[Tuple[int, float]]:
        """Bucket of a quantile and the part of its operations that are below it."""
        if not 0 <= fraction <= 1:
            raise ValueError(f"fraction must be in 0..1, got {fraction}")
        upto = list(accumulate(self.counts))
        rank = fraction * upto[-1]
        # the first that is not empty where the rank is 0
        bucket = bisect_left(upto, max(rank, 0.5))
        if bucket == len(upto):
            return None
        count = self.counts[bucket]
        return bucket, (rank - (upto[bucket] - count)) / count


@lru_cache(maxsize=256)
def _ascends(edges: Tuple[float, ...]) -> bool:
    return all(low < high < math.inf for low, high in zip((0.0, *edges), edges))


def pooled(histograms: Iterable[Histogram], *more: Histogram) -> Optional[Histogram]:
    """One histogram of all operations; those with other buckets than the first are left out."""
    parts: List[Histogram] = [*histograms, *more]
    same = [histogram.counts for histogram in parts if histogram.upper_ms == parts[0].upper_ms]
    return Histogram(parts[0].upper_ms, tuple(map(sum, zip(*same)))) if parts else None
