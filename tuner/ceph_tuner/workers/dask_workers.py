"""Calls carried out by the workers of a Dask cluster. Nothing else imports Dask, and this only who asks for it.

The scheduler gives what a lost worker was at to another one, and fails it once that has happened too often
(`distributed.scheduler.allowed-failures`): also what merely lay at the worker that another call brought down. So each
that failed that way runs again when nothing else does, and what brings a worker down all alone is given up.

A worker that comes late with another ceph-tuner answers at once, and so would get one call after the other. From the
first of these answers on, calls are handed over one for each thread, to the workers that have been asked what they are.
"""

from __future__ import annotations

import logging
import queue
import time
import uuid
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Deque, Dict, Iterator, List, Mapping, Sequence, Set, Tuple

import distributed
from distributed import get_worker
from distributed.scheduler import KilledWorker

from ceph_tuner.core.errors import InputError
from ceph_tuner.workers import (
    Argument,
    Call,
    CallFailure,
    CallMessage,
    CallResult,
    CallStart,
    Event,
    WorkerLoss,
    WorkersGone,
    plain,
)
from ceph_tuner.workers.worker_call import EDITION, Refusal, WorkerCondition, call_outcome, condition

CONNECT_S = 10.0
NO_WORKERS_S = 120.0
"""How long a cluster may be without any worker before nothing more is expected of it."""

_SECURE = ("tls://", "wss://")
_LOOK_S = 2.0
_SETTLE_S = 3.0
"""How long after a loss what may be to blame waits: a worker that is brought down before its nanny takes it for started
is not started again (distributed's `Nanny._on_worker_exit`)."""


@dataclass(frozen=True)
class _Strange:
    """In place of an answer: the worker has another ceph-tuner."""

    address: str
    what: str


@dataclass
class _DaskWork:
    key: str
    call: Any
    argument: Any
    where: str = ""
    alone: bool = False
    workers: Sequence[str] = ()
    """Addresses of those that may have it; nothing: any."""
    future: Any = None


class DaskWorkers:
    """`Workers` over the workers behind a scheduler's address; TLS as Dask's own configuration says (`tls://…`).

    Raises InputError where no scheduler answers, or it or a worker has another ceph-tuner.
    """

    def __init__(
        self,
        address: str,
        connect_s: float = CONNECT_S,
        no_workers_s: float = NO_WORKERS_S,
        security: Any = None,
        insecure: bool = False,
    ) -> None:
        """`insecure`: also without TLS, where everybody who reaches the scheduler can run code here."""
        if not (insecure or address.startswith(_SECURE)):
            expected = "tls:// with Dask's TLS settings, or --insecure on a network of their own"
            raise InputError(f"--dask {address}", "an address without TLS", expected)
        # what it would log is told in the command's own words
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        self._address, self._no_workers_s = address, no_workers_s
        self._name = f"ceph-tuner-{uuid.uuid4().hex[:12]}"
        self._happened: queue.SimpleQueue[Tuple[str, Any]] = queue.SimpleQueue()
        self._waiting: Deque[_DaskWork] = deque()
        self._suspects: Deque[_DaskWork] = deque()
        self._lost_at = 0.0
        self._under_way: Dict[str, _DaskWork] = {}
        self._alike: Set[str] = set()
        """Addresses of workers that have this ceph-tuner."""
        self._strange: Dict[str, str] = {}
        """Addresses of those that came late with another one -> which."""
        self._named: Set[str] = set()
        """Those of them that were told of."""
        try:
            self._client: Any = distributed.Client(
                address,
                timeout=connect_s,
                set_as_default=False,
                name=self._name,
                security=security,
            )
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            words = " ".join(str(error).split())[:160] or type(error).__name__
            expected = "the address of a running Dask scheduler (tcp://HOST:8786, or tls:// and Dask's TLS settings)"
            raise InputError(f"--dask {address}", f"no scheduler ({words})", expected) from None
        try:
            self.notes: Sequence[str] = self._checked()
            self._client.subscribe_topic(self._name, lambda event: self._happened.put(("told", event[1])))
        except BaseException:
            self.__exit__()
            raise

    @property
    def place(self) -> str:
        """Where that is, in words."""
        count = len(self._threads())
        return f"Dask at {self._address} ({count} worker{'' if count == 1 else 's'})"

    def __enter__(self) -> DaskWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        futures = [work.future for work in self._under_way.values()]
        self._under_way.clear()
        with suppress(Exception):
            # calls see it when they tell something the next time, and stop
            self._client.cancel(futures, force=True)
        with suppress(Exception):
            self._client.close(timeout=CONNECT_S)

    def start(self, key: str, call: Call[Argument], argument: Argument) -> None:
        """Begin a call as soon as there is a place."""
        self._waiting.append(_DaskWork(key, call, argument))

    def events(self) -> Iterator[Event]:
        """What happens, until every call that was started has ended or is given up. Raises WorkersGone."""
        last_sign = time.monotonic()
        while self._waiting or self._suspects or self._under_way:
            yield from self._withdrawn()
            self._submit()
            try:
                kind, content = self._happened.get(timeout=_LOOK_S)
            except queue.Empty:
                if self._good() if self._strange else self._threads():
                    last_sign = time.monotonic()
                elif time.monotonic() > last_sign + self._no_workers_s:
                    which = f" with ceph-tuner {EDITION}" if self._strange else ""
                    raise WorkersGone(f"no worker{which} at {self._address} for {self._no_workers_s:g} s") from None
                continue
            last_sign = time.monotonic()
            work = self._under_way.get(content["name"])
            # a call may still tell something after it was taken from there
            if work is not None:
                yield from self._on_message(work, content) if kind == "told" else self._on_end(content["name"], work)

    def _withdrawn(self) -> Iterator[Event]:
        """Take back what waits for workers that are gone."""
        chosen = {name: work for name, work in self._under_way.items() if work.workers}
        there = self._threads() if chosen else {}
        for name, work in chosen.items():
            if work.future.status == "pending" and not any(worker in there for worker in work.workers):
                del self._under_way[name]
                work.future.cancel()
                self._waiting.append(work)
                if work.where:
                    yield WorkerLoss(work.key, f"{work.where} is gone")

    def _submit(self) -> None:
        good = self._good() if self._strange and (self._waiting or self._suspects) else {}
        room = len(self._waiting)
        if self._strange:
            room = min(room, sum(good.values()) - sum(1 for work in self._under_way.values() if work.workers))
        for _ in range(room):
            self._hand_over(self._waiting.popleft(), list(good))
        is_settled = not self._under_way and time.monotonic() > self._lost_at + _SETTLE_S
        if self._suspects and is_settled and (good or not self._strange):
            work = self._suspects.popleft()
            work.alone = True
            self._hand_over(work, list(good))

    def _hand_over(self, work: _DaskWork, workers: Sequence[str]) -> None:
        name = f"{self._name}-{work.key}-{uuid.uuid4().hex[:8]}"
        arguments = (work.call, work.argument, name, self._name, EDITION)
        work.workers, work.where = workers, ""
        work.future = self._client.submit(
            _outcome_as_text, *arguments, key=name, pure=False, workers=list(workers) or None
        )
        self._under_way[name] = work
        work.future.add_done_callback(lambda _: self._happened.put(("done", {"name": name})))

    def _on_message(self, work: _DaskWork, content: Mapping[str, Any]) -> Iterator[Event]:
        if "began" not in content:
            yield CallMessage(work.key, content["message"])
            return
        if work.where:
            yield WorkerLoss(work.key, f"{work.where} is gone")
        work.where = content["began"]
        yield CallStart(work.key, work.where)

    def _on_end(self, name: str, work: _DaskWork) -> Iterator[Event]:
        try:
            text = work.future.result(timeout=None if work.future.status == "finished" else CONNECT_S)
            # another edition may answer so
            result = text if isinstance(text, _Strange) else plain.from_text(text)
        except KilledWorker:
            del self._under_way[name]
            if work.alone:
                yield CallFailure(work.key, "it brought down every worker that it was given to (out of memory?)")
            else:
                self._suspects.append(work)
                self._lost_at = time.monotonic()
                yield WorkerLoss(work.key, "its workers are gone: it is tried again when nothing else runs")
            return
        except (distributed.CancelledError, OSError, TimeoutError):
            raise WorkersGone(f"the scheduler {self._address} is gone, and with it what was under way") from None
        except Exception as error:  # what could not be handed over or given back concerns this call alone
            result = Refusal(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
        del self._under_way[name]
        if isinstance(result, _Strange):
            yield from self._take_back(result, work)
        else:
            yield CallFailure(work.key, result.reason) if isinstance(result, Refusal) else CallResult(work.key, result)

    def _take_back(self, strange: _Strange, work: _DaskWork) -> Iterator[Event]:
        self._waiting.append(work)
        self._strange.setdefault(strange.address, strange.what)
        if strange.address not in self._named:
            self._named.add(strange.address)
            yield WorkerLoss(
                work.key, f"worker {strange.address} has {strange.what}, not {EDITION} as here: it gets no more"
            )

    def _good(self) -> Mapping[str, int]:
        """Of the workers that are there, those with this ceph-tuner -> threads. Raises WorkersGone."""
        there = self._threads()
        new = [worker for worker in there if worker not in self._alike and worker not in self._strange]
        try:
            answers: Mapping[str, Any] = self._client.run(condition, workers=new, on_error="return") if new else {}
        except Exception:  # as for `_threads`
            raise WorkersGone(f"the scheduler {self._address} is gone, and with it what was under way") from None
        for worker, answer in answers.items():
            if isinstance(answer, OSError):
                continue  # it is gone, or will be asked again
            if fault := _fault(answer):
                self._strange[worker] = fault
            else:
                self._alike.add(worker)
        return {worker: threads for worker, threads in there.items() if worker in self._alike}

    def _threads(self) -> Mapping[str, int]:
        """Worker -> its threads. Raises WorkersGone."""
        try:
            return dict(self._client.nthreads())
        except Exception:  # what it raises without a scheduler differs from release to release
            raise WorkersGone(f"the scheduler {self._address} is gone, and with it what was under way") from None

    def _checked(self) -> List[str]:
        """Ask what they are all like; notes on the workers. Raises InputError where one has another ceph-tuner."""
        answers: Mapping[str, Any] = self._client.run(condition, on_error="return")
        try:
            # calls pass through its hands, and it looks at them
            scheduler: Any = self._client.run_on_scheduler(condition)
        except Exception as error:  # whatever it is, that is what it has to say
            scheduler = error
        for who, answer in {
            **{f"worker {worker}": answer for worker, answer in answers.items()},
            "scheduler": scheduler,
        }.items():
            if fault := _fault(answer):
                raise InputError(f"--dask {self._address}: {who}", fault, f"ceph-tuner {EDITION}, as here")
        self._alike.update(answers)
        slow = [worker for worker, answer in answers.items() if not answer.compiled]
        anew = [worker for worker, answer in answers.items() if answer.compiled and not answer.cached]
        wide = [worker for worker, threads in self._threads().items() if threads > 1]
        return [
            *_note(slow, "without numba: simulations take many times as long"),
            *_note(anew, "cannot keep what numba compiles: 10 s more at every start (NUMBA_CACHE_DIR names a place)"),
            *_note(wide, "has several threads, of which one works at a time: `dask worker --nthreads 1 --nworkers N`"),
        ]


def _fault(answer: Any) -> str:
    """What else is there than the ceph-tuner of here."""
    if not isinstance(answer, WorkerCondition):
        return f"no ceph-tuner that works ({type(answer).__name__}: {answer})"
    return f"ceph-tuner {answer.edition}" if answer.edition != EDITION else ""


def _note(workers: Sequence[str], what: str) -> List[str]:
    more = f" and {len(workers) - 1} more" if len(workers) > 1 else ""
    return [f"{workers[0]}{more}: {what}"] if workers else []


def _outcome_as_text(call: Call[Argument], argument: Argument, name: str, topic: str, edition: str) -> str:
    """What a worker runs: the call, in its edition of ceph-tuner; messages go to the topic."""
    worker: Any = get_worker()
    if edition != EDITION:
        # it came after the others were asked
        return plain.to_text(_Strange(worker.address, f"ceph-tuner {EDITION}"))
    worker.log_event(topic, {"name": name, "began": f"worker {worker.name}"})

    def tell(message: Any) -> None:
        task = worker.state.tasks.get(name)
        if task is None or task.state in ("cancelled", "released"):
            raise _NobodyWaits
        worker.log_event(topic, {"name": name, "message": message})

    try:
        return plain.to_text(call_outcome(call, argument, tell))
    except TypeError as error:
        return plain.to_text(Refusal(f"it answers what is no result: {error}"))


class _NobodyWaits(Exception):
    """Who asked for it has left."""
