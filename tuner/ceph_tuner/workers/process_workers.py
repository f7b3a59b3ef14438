"""Calls carried out by processes of this machine, each with a pipe of its own: one that dies takes nothing along."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from dataclasses import dataclass, field
from multiprocessing import connection, parent_process
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Callable, Deque, Dict, Iterator, List, Optional, Sequence

from ceph_tuner.core.ceph.uninterrupted import uninterrupted
from ceph_tuner.processes.worker_process import begin_as_worker, cores, process_context
from ceph_tuner.workers import (
    ATTEMPTS,
    Argument,
    Call,
    CallFailure,
    CallMessage,
    CallResult,
    CallStart,
    Event,
    WorkerLoss,
)
from ceph_tuner.workers.worker_call import Refusal, call_outcome, condition

_TELLS, _ANSWERS = "tells", "answers"
_PATIENCE_S = 5.0
"""How long a process has to end when it is told to."""


@dataclass
class _ProcessWork:
    key: str
    call: Any
    argument: Any
    lost: List[str] = field(default_factory=list)
    """How the workers ended that it has lost."""


@dataclass
class _Worker:
    process: BaseProcess
    pipe: Connection
    work: Optional[_ProcessWork] = None


class ProcessWorkers:
    """`Workers` over `count` processes; None: one for each core.

    `prepare` is called once before the first of them begins: what it leaves on disk they all find. Modules of
    `preload` are imported once for all.
    """

    def __init__(
        self,
        count: Optional[int] = None,
        prepare: Callable[[], None] = lambda: None,
        preload: Sequence[str] = (),
    ) -> None:
        self._count = count or cores()
        self._prepare: Optional[Callable[[], None]] = prepare
        self._context = process_context(preload)
        self._workers: List[_Worker] = []
        self._waiting: Deque[_ProcessWork] = deque()

    @property
    def place(self) -> str:
        """Where that is, in words."""
        return f"{self._count} process{'es' if self._count > 1 else ''} here"

    @property
    def notes(self) -> Sequence[str]:
        """What makes it slower than it could be."""
        own = condition()
        if not own.compiled:
            return ["without numba the model runs uncompiled, many times slower"]
        anew = "what numba compiles cannot be kept: 10 s more in every process (NUMBA_CACHE_DIR names a place)"
        return [] if own.cached else [anew]

    def __enter__(self) -> ProcessWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        self._waiting.clear()
        with uninterrupted():
            for worker in self._workers:
                worker.process.terminate()
            for worker in self._workers:
                _ended(worker)
            self._workers.clear()

    def start(self, key: str, call: Call[Argument], argument: Argument) -> None:
        """Begin a call as soon as there is a place."""
        self._waiting.append(_ProcessWork(key, call, argument))

    def events(self) -> Iterator[Event]:
        """What happens, until every call that was started has ended or is given up."""
        while self._waiting or any(worker.work for worker in self._workers):
            for worker in self._free():
                work = self._waiting.popleft()
                worker.work = work
                try:
                    worker.pipe.send((work.call, work.argument))
                except OSError:
                    yield self._loss_of(worker)
                    break
                except Exception as error:  # what cannot be sent concerns this call alone
                    worker.work = None
                    yield CallFailure(work.key, f"cannot be handed over: {error}")
                    break
                yield CallStart(work.key, f"process {worker.process.pid}")
            busy: Dict[Any, _Worker] = {worker.pipe: worker for worker in self._workers if worker.work}
            for pipe in connection.wait(list(busy)) if busy else ():
                yield self._event_of(busy[pipe])

    def _free(self) -> Iterator[_Worker]:
        """Workers for those that wait."""
        for worker in [worker for worker in self._workers if not worker.work]:
            if not self._waiting:
                return
            if worker.process.is_alive():
                yield worker
            else:
                self._dismiss(worker)
        while self._waiting and len(self._workers) < self._count:
            if self._prepare is not None:
                self._prepare()
                self._prepare = None
            # a process whose start is cut short would be left over
            with uninterrupted():
                own_end, other_end = self._context.Pipe()
                process = self._context.Process(target=_work, args=(other_end,), name="ceph-tuner worker")
                process.start()
                other_end.close()
                worker = _Worker(process, own_end)
                self._workers.append(worker)
            yield worker

    def _event_of(self, worker: _Worker) -> Event:
        work = worker.work
        assert work is not None  # noqa: S101 - only those that have some are listened to
        try:
            kind, content = worker.pipe.recv()
        except (EOFError, OSError):
            return self._loss_of(worker)
        except Exception as error:  # an answer that cannot be read concerns this call alone
            kind, content = _ANSWERS, Refusal(f"answered what cannot be read ({type(error).__name__}: {error})")
        if kind == _TELLS:
            return CallMessage(work.key, content)
        worker.work = None
        return CallFailure(work.key, content.reason) if isinstance(content, Refusal) else CallResult(work.key, content)

    def _loss_of(self, worker: _Worker) -> Event:
        work = worker.work
        assert work is not None  # noqa: S101
        work.lost.append(self._dismiss(worker))
        if len(work.lost) < ATTEMPTS:
            # those that never had a chance go first
            self._waiting.append(work)
            return WorkerLoss(work.key, work.lost[-1])
        return CallFailure(work.key, f"it lost {len(work.lost)} processes: {work.lost[-1]}")

    def _dismiss(self, worker: _Worker) -> str:
        self._workers.remove(worker)
        return _ended(worker)


def _ended(worker: _Worker) -> str:
    """Wait for its end; how it ended, in words."""
    worker.pipe.close()
    worker.process.join(_PATIENCE_S)
    if worker.process.is_alive():
        worker.process.kill()
        worker.process.join()
    code = worker.process.exitcode or 0
    if code >= 0:
        return f"its process ended with {code}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
    return f"its process was killed by {name}{' (out of memory?)' if name == 'SIGKILL' else ''}"


def _work(pipe: Connection) -> None:
    """What a process runs: calls from the pipe, one after the other, until the pipe is closed."""
    begin_as_worker()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            call, argument = pipe.recv()
        except EOFError:
            return
        except Exception as error:  # a call that is not known here
            answer: Any = Refusal(f"{type(error).__name__}: {error}")
        else:
            answer = call_outcome(call, argument, lambda message: pipe.send((_TELLS, message)))
        try:
            pipe.send((_ANSWERS, answer))
        except OSError:
            return
        except Exception as error:  # an answer that cannot be sent
            pipe.send((_ANSWERS, Refusal(f"answered what cannot be sent ({type(error).__name__}: {error})")))


def _end_with_parent() -> None:
    """A worker whose parent was killed works for nobody."""
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
