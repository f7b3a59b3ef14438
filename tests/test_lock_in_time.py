"""The lock's law with time in it: monitors that take their time between any two steps, and clocks that jump."""

from __future__ import annotations

import heapq
import itertools
import random
import threading
from typing import Callable, Dict, Iterator, List, Optional, Sequence, Tuple, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ceph_tuner.core.changes.lock import Holder, Lock
from ceph_tuner.core.errors import ClusterTimeout, Locked
from monitors import MemoryStore

pytestmark = pytest.mark.slow

Result = TypeVar("Result")

STEP_S = 1.0
STEPS = 4
"""Writes that everybody makes who gets in, each after a look at the lock."""


class Time:
    """One thread at a time, the one that is due first; nothing happens but by somebody's waiting."""

    def __init__(self) -> None:
        self.now = 0.0
        self._serial = itertools.count()
        self._due: List[Tuple[float, int, threading.Event]] = []
        self._changing = threading.Lock()

    def wait(self, seconds: float) -> None:
        mine = self._enqueued(seconds)
        self._go_on()
        assert mine.wait(20), "nobody's turn"

    def _enqueued(self, seconds: float) -> threading.Event:
        mine = threading.Event()
        with self._changing:
            heapq.heappush(self._due, (self.now + seconds, next(self._serial), mine))
        return mine

    def _go_on(self) -> None:
        with self._changing:
            if self._due:
                self.now, _, due = heapq.heappop(self._due)
                due.set()

    def run(self, actors: Sequence[Callable[[], None]]) -> None:
        failures: List[BaseException] = []

        def live(actor: Callable[[], None], turn: threading.Event) -> None:
            turn.wait(20)
            try:
                actor()
            except BaseException as failure:
                failures.append(failure)
            self._go_on()

        threads = [threading.Thread(target=live, args=(actor, self._enqueued(0.0)), daemon=True) for actor in actors]
        for thread in threads:
            thread.start()
        self._go_on()
        for thread in threads:
            thread.join(30)
        if failures:
            raise failures[0]
        assert not any(thread.is_alive() for thread in threads)


class SlowStore:
    """A store that takes a command after a while, and answers after another."""

    def __init__(self, store: MemoryStore, time: Time, delays: Iterator[float]) -> None:
        self._store, self._time, self._delays = store, time, delays

    def _slowly(self, action: Callable[[], Result]) -> Result:
        self._time.wait(next(self._delays))
        done = action()
        self._time.wait(next(self._delays))
        return done

    def get(self, key: str) -> Optional[str]:
        return self._slowly(lambda: self._store.get(key))

    def set(self, key: str, value: str) -> None:
        self._slowly(lambda: self._store.set(key, value))

    def remove(self, key: str) -> None:
        self._slowly(lambda: self._store.remove(key))

    def keys(self, prefix: str) -> List[str]:
        return self._slowly(lambda: self._store.keys(prefix))

    def items(self, prefix: str) -> Dict[str, str]:
        return self._slowly(lambda: {key: self._store.values[key] for key in self._store.keys(prefix)})


class JumpingClock:
    """Goes as time does, and is set by somebody at every second look or so."""

    def __init__(self, time: Time, jumps: Iterator[float]) -> None:
        self._time, self._jumps, self._set = time, jumps, 1e9

    def now(self) -> float:
        self._set += next(self._jumps)
        return self._set + self._time.now

    def monotonic(self) -> float:
        return self._time.now

    def sleep(self, seconds: float) -> None:
        self._time.wait(seconds)


class Contest:
    """Tuners that want the same lock. Who looked and found it held begins a write while nobody else got in since."""

    def __init__(self, delays: Sequence[Sequence[float]], jumps: Sequence[Sequence[float]], rounds: int = 2) -> None:
        self.time, self.store = Time(), MemoryStore()
        self.owner: Optional[int] = None
        self.inside, self.broken = 0, []  # type: Tuple[int, List[str]]
        self._delays, self._jumps, self._rounds = delays, jumps, rounds

    def run(self) -> None:
        self.time.run([lambda number=number: self._contend(number) for number in range(len(self._delays))])  # type: ignore[misc]

    def _contend(self, number: int) -> None:
        delays = itertools.chain(self._delays[number], itertools.repeat(0.01))
        jumps = itertools.chain(self._jumps[number], itertools.repeat(0.0))
        store = SlowStore(self.store, self.time, delays)
        clock = JumpingClock(self.time, jumps)
        lock = Lock(store, clock, Holder(str(number)), randomness=random.Random(number), heartbeat=False)
        for _ in range(self._rounds):
            try:
                with lock:
                    # from here on, whoever was inside before must find itself out
                    self.owner, self.inside = number, self.inside + 1
                    for _ in range(STEPS):
                        lock.check()
                        if self.owner != number:
                            self.broken.append(f"{number} begins a write inside the lock of {self.owner}")
                        self.time.wait(STEP_S)
            except (Locked, ClusterTimeout):
                pass
            self.time.wait(STEP_S)


# a command takes a moment, some seconds, or as long as a lease and more
LATENCY = st.sampled_from([0.01, 0.01, 0.01, 2.0, 9.0, 31.0, 64.0])
JUMP = st.sampled_from([0.0, 0.0, 0.0, 0.0, 45.0, -45.0, 3600.0, -3600.0, 1e8])


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.lists(LATENCY, max_size=60), min_size=2, max_size=3),
    st.lists(st.lists(JUMP, max_size=30), min_size=3, max_size=3),
)
def test_nobody_writes_inside_anothers_lock_however_slow_the_monitors_and_whatever_the_clocks_say(
    delays: List[List[float]], jumps: List[List[float]]
) -> None:
    contest = Contest(delays, jumps)
    contest.run()
    assert contest.broken == []


def test_everybody_gets_in_one_after_the_other_where_nothing_is_slow() -> None:
    contest = Contest([[], [0.01, 9.0, 0.01], []], [[], [], []], rounds=30)
    contest.run()
    assert contest.inside >= 3
    assert contest.store.keys("lock/") == []


def test_a_holder_whose_held_comes_late_does_not_get_in_beside_the_one_that_took_over() -> None:
    # one's claim is written, then nothing comes through for 64 s; the other watches it die
    contest = Contest([[0.01, 0.01, 0.01, 0.01, 64.0], [0.5]], [[], []], rounds=60)
    contest.run()
    assert contest.broken == []
