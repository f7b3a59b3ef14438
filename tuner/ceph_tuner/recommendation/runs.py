"""Runs of the twin, side by side on all cores, and how long a run has to be."""

from __future__ import annotations

import os
import signal
from concurrent.futures import Future, ProcessPoolExecutor
from types import TracebackType
from typing import Dict, List, Optional, Sequence, Tuple, Type

from ceph_tuner.recommendation import Effort
from ceph_tuner.releases import Settings
from ceph_tuner.twin.model import ClusterModel
from ceph_tuner.twin.prediction import Job, predict
from ceph_tuner.twin.simulation import Simulation

Means = Dict[str, float]

_PROBE_S = 0.5


def means_of(job: Job) -> Means:
    """One run's metrics."""
    return {name: measure.mean for name, measure in predict(job).measures.items()}


def run_length_s(model: ClusterModel, settings: Settings, effort: Effort) -> float:
    """Simulated seconds in which about `effort.events` events happen; compiles the kernel where that is to be done."""
    simulation = Simulation(model, settings, effort.seed)
    simulation.advance(_PROBE_S)
    rate = max(1.0, simulation.events / _PROBE_S)
    return float(round(min(max(effort.events / rate, effort.shortest_s), effort.longest_s)))


class Runs:
    """A context manager: runs are started at once and collected later, in any order."""

    def __init__(self, effort: Effort, seconds: float, processes: Optional[int] = None) -> None:
        """`processes` of None: one for each core; 1: in this process, when a run is collected."""
        self._effort, self.seconds = effort, seconds
        workers = processes or len(os.sched_getaffinity(0))
        # workers leave Ctrl-C to this process, which ends them
        self._pool = ProcessPoolExecutor(workers, initializer=_deaf) if workers > 1 else None
        self.done = 0

    def __enter__(self) -> Runs:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def start(self, model: ClusterModel, settings: Settings, seeds: Sequence[int]) -> Started:
        """Run settings on these seeds."""
        settle = self.seconds * self._effort.settle_share
        jobs = [Job(model, settings, self.seconds - settle, settle, seed) for seed in seeds]
        if self._pool is None:
            return Started(self, jobs, [])
        return Started(self, jobs, [self._pool.submit(means_of, job) for job in jobs])


class Started:
    """Runs under way."""

    def __init__(self, runs: Runs, jobs: List[Job], futures: List[Future[Means]]) -> None:
        self._runs, self._jobs, self._futures = runs, jobs, futures

    def collect(self) -> Tuple[Means, ...]:
        """Wait for them."""
        found = tuple(future.result() for future in self._futures) or tuple(means_of(job) for job in self._jobs)
        self._runs.done += len(found)
        return found


def _deaf() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # the parent's handler came along with the fork
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
