"""A twin's work to measure under: each run gets the same work from its beginning, as a lab's scenario does."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.errors import RetryLater
from ceph_tuner.core.measure.sample import Measure, Sample, window_within
from ceph_tuner.twin.model import ClusterModel
from ceph_tuner.twin.samples import CounterSnapshot, look, ran_out, sample_between
from ceph_tuner.twin.simulation import Simulation
from twin_cluster.cluster import TwinCluster

LIVE_S = 5.0
"""What `observe` tells is the mean of so many seconds."""

LEAST_SHARE = 0.4
"""When the work runs out before this share of a window, what is left says too little."""

_INSTANT_S = 1e-3


class TwinWork:
    """`tune.MeasuredWork` on a twin: the work of a model, which begins anew with each run, each with another seed."""

    def __init__(self, cluster: TwinCluster, model: ClusterModel, seed: int = 0) -> None:
        self._cluster, self._model, self._seed = cluster, model, seed
        self._runs = 0
        self._last: Optional[CounterSnapshot] = None
        self._samples: List[Sample] = []
        self._idle: Dict[str, float] = {}
        self._remarks: List[str] = []

    def prepare(self) -> None:
        """Let nothing run: settings are written to a cluster that is quiet."""
        self.stop()

    def start(self) -> None:
        """Begin the work: everything that there is to recover, to scrub and to trim is there again."""
        self._runs += 1
        self._begin(self._model)
        self._samples, self._idle, self._remarks = [], {}, []
        self._last = look(self._cluster.twin.simulation)

    def observe(self) -> Mapping[str, float]:
        """Look at the counters; give what the last seconds were like."""
        before, now = self._last, self._cluster.clock.now()
        if before is None:
            return {}
        after = look(self._cluster.twin.simulation)
        if after.counters.at - before.counters.at > _INSTANT_S:
            self._samples.append(sample_between(before, after, self._model, now))
            self._last = after
            self._idle.update(dict.fromkeys(ran_out(before.counters, after.counters), now))
        return {name: measure.mean for name, measure in self._between(now - LIVE_S, now).items()}

    def measure(self, start: float, end: float) -> Mapping[str, Measure]:
        """Metrics of that stretch of time, for as long as there was work of every kind.

        Raises RetryLater where some ran out too early for a measurement.
        """
        self.observe()
        kind, until = min(self._idle.items(), key=_when, default=("", end))
        self._remarks = []
        if until < end:
            self._remarks = [f"{kind} ran out of work after {max(0.0, until - start):.0f} s of {end - start:.0f} s"]
            if until - start < LEAST_SHARE * (end - start):
                raise RetryLater(f"{self._remarks[0]}: give the twin more of it", "")
        return self._between(start, min(until, end))

    def remarks(self) -> Sequence[str]:
        """What ran out during the last measurement."""
        return self._remarks

    def stop(self) -> None:
        """Let clients and background work end at once."""
        if self._last is not None or self._runs == 0:
            self._begin(replace(self._model, clients=(), recovery=(), scrub=(), snaptrim=(), deletion=()))
        self._last = None

    def _begin(self, model: ClusterModel) -> None:
        # the settings are the cluster's own: it hands them to whatever simulation begins
        self._cluster.twin.begin(Simulation(model, {}, self._seed * 1_000_003 + self._runs))

    def _between(self, start: float, end: float) -> Mapping[str, Measure]:
        window = window_within(self._samples, start, end, _INSTANT_S)
        return {} if window is None else window.measures


def _when(entry: Tuple[str, float]) -> float:
    return entry[1]
