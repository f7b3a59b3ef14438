"""Whatever runs on a cluster as the work to measure under: nothing is started, the cluster is only sampled."""

from __future__ import annotations

from typing import List, Mapping, Sequence

from ceph_tuner.cluster.sampler import ClusterSampler
from ceph_tuner.core.ceph.ports import Clock
from ceph_tuner.core.errors import TunerError
from ceph_tuner.core.measure.sample import Measure, Sample, window_within

SAMPLE_S = 5.0


class LiveWork:
    """`tune.MeasuredWork` for real clusters."""

    def __init__(self, sampler: ClusterSampler, clock: Clock) -> None:
        self._sampler, self._clock = sampler, clock
        self._samples: List[Sample] = []
        self._failures = 0
        self._next = 0.0

    def prepare(self) -> None:
        """Forget the last run's samples, and look once, so that the first sample has something to compare with."""
        self._samples, self._failures = [], 0
        self._sampler.sample()
        self._next = self._clock.monotonic() + SAMPLE_S

    def start(self) -> None:
        """The work runs already."""

    def observe(self) -> Mapping[str, float]:
        """Sample every five seconds; give the last sample's values."""
        if self._clock.monotonic() >= self._next:
            self._next = self._clock.monotonic() + SAMPLE_S
            try:
                sample = self._sampler.sample()
            except TunerError:
                # the next sample covers this one's time; the guard notices a cluster that stays silent
                self._failures += 1
                sample = None
            if sample is not None:
                self._samples.append(sample)
        return self._samples[-1].values if self._samples else {}

    def measure(self, start: float, end: float) -> Mapping[str, Measure]:
        """Give the window of the samples that lie within that time, to half a sample."""
        if self._clock.now() - (self._samples[-1].at if self._samples else 0.0) > SAMPLE_S / 2:
            self._next = self._clock.monotonic()
            self.observe()
        window = window_within(self._samples, start, end, SAMPLE_S / 2)
        return window.measures if window is not None else {}

    def remarks(self) -> Sequence[str]:
        """Say how many samples failed."""
        return [f"{self._failures} samples failed"] if self._failures else []

    def stop(self) -> None:
        """There is nothing to stop."""
