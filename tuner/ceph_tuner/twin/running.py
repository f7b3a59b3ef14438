"""Runs simulations of windows, in this process or on several cores, and stops at once when interrupted."""

from __future__ import annotations

import multiprocessing
import os
import signal
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager
from typing import List, Optional, Sequence

from ceph_tuner.twin.observations import Run, simulated
from ceph_tuner.twin.parameters import Array

NICENESS = 5
"""Added in the workers: a fit may run beside the cluster that it is about."""


class Runner(AbstractContextManager["Runner"]):
    """Gives the values of runs, in their order. `processes`: None for all cores, 1 for this process alone."""

    def __init__(self, processes: Optional[int] = 1) -> None:
        self._workers = processes or os.cpu_count() or 1
        self._pool: Optional[ProcessPoolExecutor] = None
        self.runs = 0

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def __call__(self, runs: Sequence[Run]) -> List[Array]:
        """Values of each run's metrics."""
        self.runs += len(runs)
        if self._workers == 1 or len(runs) < 2 * self._workers:
            return [simulated(run) for run in runs]
        if self._pool is None:
            # this process compiles the kernel first, so that the others find it in the cache
            simulated(runs[0])
            context = multiprocessing.get_context("forkserver" if os.name == "posix" else "spawn")
            self._pool = ProcessPoolExecutor(self._workers, context, initializer=_begin)
        return list(self._pool.map(simulated, runs, chunksize=max(1, len(runs) // (8 * self._workers))))


def _begin() -> None:
    # Ctrl-C reaches every process of the terminal; the first one ends the others
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICENESS)
