"""Short calls side by side in processes of this machine: predictions, runs of a fit, problems of a benchmark.

with ProcessPool() as pool:
    waiting = [pool.start(predict, job) for job in jobs]     # under way
    windows = [wait() for wait in waiting]
    windows = list(pool.map(predict, jobs))                  # the same, in their order

A process that is lost ends the pool with an error. Calls of minutes, which outlive a lost process, are `workers/`.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Callable, Iterator, Optional, Sequence, TypeVar

from ceph_tuner.core.ceph.uninterrupted import uninterrupted
from ceph_tuner.processes.worker_process import begin_as_worker, cores, process_context

Argument = TypeVar("Argument")
Result = TypeVar("Result")

PIECES = 8
"""Into so many pieces a map is cut for each process: some calls take longer than others."""


def import_ahead(preload: Sequence[str]) -> None:
    """Begin the process that workers are forked from: it imports these modules while this one goes on.

    For a pool of the same modules that is made later.
    """
    _context(preload)


def _context(preload: Sequence[str]) -> Any:
    return process_context([__name__, *preload])


class ProcessPool(AbstractContextManager["ProcessPool"]):
    """A pool of `processes`; None: one for each core; 1: this process alone, which calls when a result is collected.

    It begins when there is something to do. `prepare` is called once before: what it leaves on disk the workers find.
    Modules of `preload` are imported once for all. The workers leave Ctrl-C to this process, which ends them.
    """

    def __init__(
        self,
        processes: Optional[int] = None,
        niceness: int = 0,
        prepare: Callable[[], None] = lambda: None,
        preload: Sequence[str] = (),
    ) -> None:
        self.count = processes or cores()
        self._niceness = niceness
        self._prepare, self._preload = prepare, preload
        self._executor: Optional[ProcessPoolExecutor] = None

    def __exit__(self, *_: object) -> None:
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=True, cancel_futures=True)

    def start(self, function: Callable[[Argument], Result], argument: Argument) -> Callable[[], Result]:
        """Begin a call; gives what waits for its result."""
        if self.count == 1:
            return partial(function, argument)
        # a worker whose start is cut short would be waited for to the end of days
        with uninterrupted():
            return self._running().submit(function, argument).result

    def map(self, function: Callable[[Argument], Result], arguments: Sequence[Argument]) -> Iterator[Result]:
        """Results in the order of the arguments, as they come."""
        if min(self.count, len(arguments)) <= 1:
            return map(function, arguments)
        pieces = max(1, len(arguments) // (PIECES * self.count))
        with uninterrupted():
            return self._running().map(function, arguments, chunksize=pieces)

    def _running(self) -> ProcessPoolExecutor:
        if self._executor is None:
            self._prepare()
            context = _context(self._preload)
            self._executor = ProcessPoolExecutor(
                self.count, context, initializer=begin_as_worker, initargs=(self._niceness,)
            )
        return self._executor
