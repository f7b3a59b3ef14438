"""Groups of OSDs side by side: what the canary and the control did in the same stretch of time."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Deque, Dict, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.measure.reading import Reading
from ceph_tuner.core.measure.sample import Sample, Window, window_of
from ceph_tuner.core.measure.sampling import SampleCoverage, Sampling

KEPT_S = 1800.0
LATE = 1 / 3
"""Share of the answers that may be late."""
LEAST_HISTOGRAMS = 4
"""OSDs of a group, where it has as many, whose latency histograms make its percentiles: fewer are a part of it."""


@dataclass(frozen=True)
class GroupWindow:
    """A group's window: latencies in ms, rates per OSD and second, and how much of the group was seen."""

    window: Window
    osds: int
    """OSDs of the group."""
    with_rates: float
    """OSDs whose counters were seen, mean over the samples."""
    with_histograms: float

    @property
    def means(self) -> Dict[str, float]:
        """Metric -> mean."""
        return self.window.means

    @property
    def partial(self) -> bool:
        """Whether too few of the OSDs are in the percentiles."""
        return self.with_histograms < min(self.osds, LEAST_HISTOGRAMS) * (1 - LATE)

    @property
    def notes(self) -> Tuple[str, ...]:
        """What an operator should know of it."""
        if not self.partial:
            return ()
        return (f"percentiles of {self.with_histograms:.3g} of {self.osds} OSDs",)


@dataclass
class _Group:
    osds: Tuple[int, ...]
    sampling: Sampling = field(default_factory=lambda: Sampling(per_osd=True))
    samples: Deque[Tuple[Sample, SampleCoverage]] = field(default_factory=deque)


class GroupSampler:
    """Samples each group by itself. `take` is called by the sampling thread, the rest by any."""

    def __init__(self, kept_s: float = KEPT_S) -> None:
        self._kept_s = kept_s
        self._lock = threading.Lock()
        self._groups: Dict[Tuple[str, str], _Group] = {}

    def watch(self, groups: Mapping[str, Sequence[int]], of: str = "") -> None:
        """Watch these groups from now on; one whose OSDs change starts afresh, so no window mixes the two.

        `of` tells whose they are: each has its own, under names of its own.
        """
        members = {(of, name): tuple(sorted(set(osds))) for name, osds in groups.items() if osds}
        with self._lock:
            before = self._groups
            others = {key: group for key, group in before.items() if key[0] != of}
            self._groups = others
            for key, osds in members.items():
                self._groups[key] = before[key] if key in before and before[key].osds == osds else _Group(osds)

    def members(self) -> Tuple[Tuple[int, ...], ...]:
        """OSDs of each group."""
        with self._lock:
            return tuple(group.osds for group in self._groups.values())

    def take(self, reading: Reading) -> None:
        """Take what a reading says of the groups."""
        with self._lock:
            groups = list(self._groups.values())
        for group in groups:
            # outside of the lock: only the sampling thread uses `sampling`
            sample = group.sampling.take(reading.only(group.osds))
            if sample is not None:
                with self._lock:
                    keep(group.samples, (sample, group.sampling.coverage), self._kept_s)

    def start_again(self) -> None:
        """Compare with nothing from before: the clock was set."""
        with self._lock:
            self._groups = {name: _Group(group.osds) for name, group in self._groups.items()}

    def window_of_group(self, name: str, start: float, end: float, of: str = "") -> Optional[GroupWindow]:
        """The samples of a group that ended after `start` and not after `end`; None where there are none."""
        with self._lock:
            group = self._groups.get((of, name))
            entries = [entry for entry in group.samples if start < entry[0].at <= end] if group else []
        window = window_of(sample for sample, _ in entries)
        if group is None or window is None:
            return None
        rates = sum(coverage.rates for _, coverage in entries) / len(entries)
        histograms = sum(coverage.histograms for _, coverage in entries) / len(entries)
        return GroupWindow(window, len(group.osds), rates, histograms)

    def samples(self, name: str) -> List[Sample]:
        """All samples of a group that are kept, the oldest first."""
        with self._lock:
            group = self._groups.get(("", name))
            return [sample for sample, _ in group.samples] if group else []


def keep(samples: Deque[Tuple[Sample, SampleCoverage]], entry: Tuple[Sample, SampleCoverage], seconds: float) -> None:
    """Add a sample, drop those that are older than `seconds`, and those of a clock that was ahead."""
    at = entry[0].at
    while samples and samples[-1][0].at >= at:
        samples.pop()
    samples.append(entry)
    while samples[0][0].at < at - seconds:
        samples.popleft()
