"""Calls spread over processes: predictions, runs of a fit, published tables. One pool for all that simulate.

with Workers() as workers:
    waiting = [workers.start(predict, job) for job in jobs]     # under way
    windows = [wait() for wait in waiting]
    windows = list(workers.map(predict, jobs))                  # the same, in their order
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Callable, Iterator, Optional, Sequence, TypeVar

from ceph_tuner.core.ceph.interpreter import isolate_multiprocessing
from ceph_tuner.core.ceph.uninterrupted import uninterrupted
from ceph_tuner.twin.model import ClusterModel, Device, OsdModel, Pool
from ceph_tuner.twin.simulation import Simulation

Given = TypeVar("Given")
Result = TypeVar("Result")

PIECES = 8
"""Into so many pieces a map is cut for each process: some calls take longer than others."""


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Workers(AbstractContextManager["Workers"]):
    """A pool of `processes`; None: one for each core; 1: this process alone, which calls when a result is asked for.

    It begins when there is something to do. The workers leave Ctrl-C to this process, which ends them.
    """

    def __init__(self, processes: Optional[int] = None, niceness: int = 0) -> None:
        self.count = processes or cores()
        self._niceness = niceness
        self._pool: Optional[ProcessPoolExecutor] = None

    def __exit__(self, *_: object) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)

    def start(self, function: Callable[[Given], Result], given: Given) -> Callable[[], Result]:
        """Begin a call; gives what waits for its result."""
        if self.count == 1:
            return partial(function, given)
        # a worker whose start is cut short would be waited for to the end of days
        with uninterrupted():
            return self._running().submit(function, given).result

    def map(self, function: Callable[[Given], Result], given: Sequence[Given]) -> Iterator[Result]:
        """Results in the order of what is given, as they come."""
        if min(self.count, len(given)) <= 1:
            return map(function, given)
        pieces = max(1, len(given) // (PIECES * self.count))
        with uninterrupted():
            return self._running().map(function, given, chunksize=pieces)

    def _running(self) -> ProcessPoolExecutor:
        if self._pool is None:
            warm()
            context = process_context([__name__])
            initialise, niceness = begin_as_worker, self._niceness
            self._pool = ProcessPoolExecutor(self.count, context, initializer=initialise, initargs=(niceness,))
        return self._pool


def warm() -> None:
    """Run the kernel for a moment: here it is compiled where that is to be done, and workers find it in the cache."""
    Simulation(ClusterModel(1, OsdModel(Device(100.0, 1e6)), (Pool("a", 1, 1),)), {}).advance(0.001)


def process_context(preload: Sequence[str] = ()) -> Any:
    """How workers are started; modules of `preload` are imported once for all of them."""
    isolate_multiprocessing()
    # no fork of this process: it may have threads
    context = multiprocessing.get_context("forkserver" if os.name == "posix" else "spawn")
    if os.name == "posix":
        context.set_forkserver_preload(["__main__", *preload])
    return context


def begin_as_worker(niceness: int) -> None:
    """What a worker does first."""
    # Ctrl-C reaches every process of the terminal
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if niceness:
        os.nice(niceness)
