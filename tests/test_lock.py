from __future__ import annotations

import random
import threading
import time
from typing import Callable, Iterator, List, Optional

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.changes.lock import GENERATION, LEASE_S, PREFIX, Claim, Holder, Lock, break_lock, claims
from ceph_tuner.core.errors import ClusterTimeout, Locked
from monitors import ManualClock, MemoryStore

ALICE, BOB = Holder("alice", "host-a", "1:1"), Holder("bob", "host-b", "2:2")


def lock(store: MemoryStore, clock: ManualClock, holder: Holder, seed: int = 0, **more: object) -> Lock:
    return Lock(store, clock, holder, randomness=random.Random(f"{holder}{seed}"), heartbeat=False, **more)  # type: ignore[arg-type]


def test_the_second_is_refused_and_told_who_holds_it_where_and_since_when() -> None:
    store, clock = MemoryStore(), ManualClock(0)
    with lock(store, clock, ALICE), pytest.raises(Locked, match="alice on host-a, since 1970-01-01 00:00:00 UTC"):
        lock(store, clock, BOB).__enter__()
    with lock(store, clock, BOB):
        pass
    assert store.keys(PREFIX) == []


def test_it_can_be_entered_again_inside() -> None:
    store, clock = MemoryStore(), ManualClock()
    held = lock(store, clock, ALICE)
    with held:
        with held:
            held.check()
        held.check()
        assert len(store.keys(PREFIX)) == 1
    assert store.keys(PREFIX) == []


def test_a_claim_whose_time_is_over_is_removed() -> None:
    store, clock = MemoryStore(), ManualClock()
    lock(store, clock, ALICE).__enter__()
    clock.sleep(LEASE_S + 1)
    with lock(store, clock, BOB):
        assert len(store.keys(PREFIX)) == 1


def test_a_claim_of_a_process_that_is_known_to_be_dead_is_removed_at_once() -> None:
    store, clock = MemoryStore(), ManualClock()
    lock(store, clock, ALICE).__enter__()
    with lock(store, clock, BOB, alive=lambda holder: holder != ALICE):
        pass


def test_a_claim_that_could_not_be_withdrawn_is_in_the_way_of_others_alone() -> None:
    store, clock = MemoryStore(), ManualClock()
    held = lock(store, clock, ALICE).__enter__()

    def fail() -> None:
        raise ClusterTimeout("no answer")

    store.before_write = fail
    with pytest.raises(ClusterTimeout):
        held.__exit__()
    store.before_write = lambda: None
    assert len(store.keys(PREFIX)) == 1
    with pytest.raises(Locked):
        lock(store, clock, BOB).__enter__()
    with lock(store, clock, ALICE, seed=1):
        assert len(store.keys(PREFIX)) == 1
    assert store.keys(PREFIX) == []


def test_a_claim_whose_answer_was_lost_is_withdrawn() -> None:
    store, clock = MemoryStore(), ManualClock()

    def lost() -> None:
        store.after_write = lambda: None
        raise ClusterTimeout("no answer")

    store.after_write = lost
    with pytest.raises(ClusterTimeout):
        lock(store, clock, ALICE).__enter__()
    assert store.keys(PREFIX) == []


def test_a_process_is_the_same_whatever_it_calls_itself() -> None:
    store, clock = MemoryStore(), ManualClock()
    held = lock(store, clock, ALICE).__enter__()
    store.remove = lambda key: None  # type: ignore[method-assign]
    held.__exit__()
    del store.remove  # type: ignore[method-assign]
    with lock(store, clock, Holder("alice, automatic mode", ALICE.host, ALICE.process)):
        pass
    unknown = lock(store, clock, Holder("alice")).__enter__()
    with pytest.raises(Locked):
        lock(store, clock, Holder("bob")).__enter__()
    unknown.__exit__()


def test_checking_renews_a_claim_that_is_still_held() -> None:
    store, clock = MemoryStore(), ManualClock()
    with lock(store, clock, ALICE) as held:
        for _ in range(10):
            clock.sleep(LEASE_S * 0.8)
            held.check()
        with pytest.raises(Locked):
            lock(store, clock, BOB).__enter__()


def test_a_holder_that_slept_past_its_lease_may_not_write() -> None:
    store, clock = MemoryStore(), ManualClock()
    sleeper = lock(store, clock, ALICE)
    sleeper.__enter__()
    clock.sleep(LEASE_S + 1)
    with lock(store, clock, BOB), pytest.raises(Locked, match="lost"):
        sleeper.check()
    sleeper.renew()
    assert store.keys(PREFIX) == []


def test_what_is_no_claim_does_not_lock_the_cluster_for_ever() -> None:
    store = MemoryStore()
    store.values[PREFIX + "zz"] = "not a claim"
    with lock(store, ManualClock(), ALICE):
        pass


@pytest.mark.parametrize("expires", [float("inf"), float("nan"), 1e18, 365 * 86400.0, -1e9])
def test_a_claim_that_says_it_stands_for_a_year_blocks_nobody_for_longer_than_a_lease(expires: float) -> None:
    store, clock = MemoryStore(), ManualClock()
    store.values[PREFIX + "1"] = Claim(PREFIX + "1", ALICE, 0.0, clock.now() + expires, True).to_text()
    began = clock.monotonic()
    with lock(store, clock, BOB):
        # one of no number is no claim
        assert (LEASE_S if abs(expires) < 1e300 else -1) < clock.monotonic() - began < LEASE_S + 5
        assert len(store.keys(PREFIX)) == 1


def test_a_claim_that_is_renewed_by_a_clock_that_is_an_hour_behind_stands() -> None:
    store, clock, behind = MemoryStore(), ManualClock(), ManualClock()
    behind.jumped = -3600.0
    with lock(store, behind, ALICE) as held:

        class Meanwhile(ManualClock):
            def sleep(self, seconds: float) -> None:
                clock.time += seconds
                behind.time += seconds
                held.check()

            def monotonic(self) -> float:
                return clock.time

        with pytest.raises(Locked, match="alice"):
            lock(store, Meanwhile(), BOB).__enter__()
        held.check()


def test_a_claim_that_is_removed_while_it_is_renewed_does_not_come_back_to_life() -> None:
    store, clock = MemoryStore(), ManualClock()
    held = lock(store, clock, ALICE).__enter__()
    clock.sleep(LEASE_S / 2)

    def meanwhile() -> None:
        store.before_write = lambda: None
        # alice has looked, and is about to write
        break_lock(store)

    store.before_write = meanwhile
    held.renew()
    with pytest.raises(Locked, match="lost"):
        held.check()
    assert store.keys(PREFIX) == []


def test_each_holder_has_a_generation_of_its_own_and_the_one_before_finds_out() -> None:
    store, clock = MemoryStore(), ManualClock()
    first = lock(store, clock, ALICE)
    with first:
        assert (first.generation, [claim.generation for claim in claims(store)]) == (1, [1])
        (first_key,) = store.keys(PREFIX)
        claim = store.values.pop(first_key)
        with lock(store, clock, BOB) as second:
            assert second.generation == 2
            # as if alice's had never been away
            store.values[first_key] = claim
            with pytest.raises(Locked, match="lost"):
                first.check()
            second.check()


BEYOND = [f'{{"number": {number}, "claim": "x"}}' for number in ("1e300", "-1", "true", 2**53, 2**53 - 1, 2**60, "1.5")]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"number": "x", "claim": 1}', "9" * 5000, "[" * 100_000, *BEYOND],
    ids=range(6 + len(BEYOND)),
)
def test_a_generation_that_is_none_stops_nobody(text: str) -> None:
    store, clock = MemoryStore(), ManualClock()
    store.values[GENERATION] = text
    with lock(store, clock, ALICE) as held:
        held.check()


def test_a_broken_lock_is_lost_by_its_holder_and_free_for_the_next() -> None:
    store, clock = MemoryStore(), ManualClock()
    held = lock(store, clock, ALICE).__enter__()
    assert [claim.holder for claim in break_lock(store)] == [ALICE]
    with lock(store, clock, BOB):
        pass
    with pytest.raises(Locked, match="lost"):
        held.check()


def test_a_heartbeat_keeps_the_claim_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ceph_tuner.core.changes.lock.LEASE_S", lease := 0.03)
    store, clock = MemoryStore(), ManualClock()
    beats, earlier = threading.Semaphore(0), set(threading.enumerate())
    store.after_write = lambda: beats.release() if threading.current_thread().name == "lock" else None
    with Lock(store, clock, ALICE) as held:
        (key,) = store.keys(PREFIX)
        # those of locks that other tests left to themselves are none of this one's
        beating = [thread for thread in threading.enumerate() if thread.name == "lock" and thread not in earlier]
        for _ in range(5):
            # most of a lease: without the beat in between, the next one would be over before the second of them
            clock.sleep(0.7 * lease)
            while beats.acquire(blocking=False):
                pass
            # a beat that was under way may have read the clock before
            assert beats.acquire(timeout=5)
            assert beats.acquire(timeout=5)
            claim = Claim.from_text(key, store.values[key])
            assert claim is not None
            assert claim.expires == pytest.approx(clock.now() + lease, abs=1e-6)
        # whoever looks finds it alive, and need not watch it
        began = clock.monotonic()
        with pytest.raises(Locked, match="alice"):
            lock(store, clock, BOB).__enter__()
        assert clock.monotonic() == began
        assert held._age() < 0.1 * lease
    # released: nobody is left that would renew it
    for thread in beating:
        thread.join(5)
    assert [thread.is_alive() for thread in beating] == [False]
    assert store.keys(PREFIX) == []


class ReleasedAtOnce(threading.Event):
    """Notes how long a beat waits before it looks whether the lock was given back."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: List[Optional[float]] = []

    def wait(self, timeout: Optional[float] = None) -> bool:
        self.waits.append(timeout)
        return True


def test_two_beats_may_fail_before_the_lease_is_over() -> None:
    release = ReleasedAtOnce()
    Lock(MemoryStore(), ManualClock(), ALICE)._beat(release)
    assert release.waits == [pytest.approx(LEASE_S / 3)]


class Interleaved:
    """Runs two lockers in an order that is given, one store operation at a time."""

    def __init__(self, store: MemoryStore, order: Iterator[bool]) -> None:
        self.store, self.order = store, order
        self.turn = threading.Condition()
        self.now: Optional[int] = None
        self.inside = 0
        self.most = 0

    def run(self) -> None:
        workers = [threading.Thread(target=self._contend, args=(number,)) for number in (0, 1)]
        self.live = {0, 1}
        self.now = 0
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(10)
        assert not self.live

    def step(self, number: int, action: Callable[[], object]) -> object:
        with self.turn:
            self.turn.wait_for(lambda: self.now == number, 10)
            done = action()
            self._next()
        return done

    def _next(self) -> None:
        wanted = int(next(self.order, False))
        self.now = wanted if wanted in self.live else next(iter(self.live), None)
        self.turn.notify_all()

    def _contend(self, number: int) -> None:
        outer = self

        class Stepping:
            def get(self, key: str) -> Optional[str]:
                return outer.step(number, lambda: outer.store.get(key))  # type: ignore[return-value]

            def set(self, key: str, value: str) -> None:
                outer.step(number, lambda: outer.store.set(key, value))

            def remove(self, key: str) -> None:
                outer.step(number, lambda: outer.store.remove(key))

            def keys(self, prefix: str) -> List[str]:
                return outer.step(number, lambda: outer.store.keys(prefix))  # type: ignore[return-value]

        holder = Holder(str(number))
        held = Lock(Stepping(), ManualClock(), holder, randomness=random.Random(number), heartbeat=False)
        try:
            with held:
                self.step(number, lambda: self._enter(1))
                self.step(number, lambda: self._enter(-1))
        except Locked:
            pass
        finally:
            with self.turn:
                self.live.discard(number)
                self._next()

    def _enter(self, change: int) -> None:
        self.inside += change
        self.most = max(self.most, self.inside)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.booleans(), max_size=40))
def test_two_never_hold_it_at_once_in_whatever_order_their_commands_arrive(order: List[bool]) -> None:
    contest = Interleaved(MemoryStore(), iter(order))
    contest.run()
    assert contest.most <= 1


def test_who_only_watches_knows_a_claim_to_be_dead_once_it_was_not_renewed_for_a_lease_and_writes_nothing() -> None:
    store, clock = MemoryStore(), ManualClock()
    held = lock(store, clock, ALICE).__enter__()
    watching, before = lock(store, clock, BOB), dict(store.values)
    for _ in range(20):
        assert [claim.holder for claim in watching.watch()] == [ALICE]
        clock.sleep(LEASE_S * 0.8)
        held.renew()
    before = dict(store.values)
    assert watching.watch()
    clock.sleep(LEASE_S)
    assert watching.watch()
    clock.sleep(1)
    assert watching.watch() == []
    assert store.values == before
    # what was watched before needs no second lease
    since = clock.monotonic()
    with watching:
        assert clock.monotonic() - since < 1
    with pytest.raises(Locked):
        held.check()


@pytest.mark.parametrize("jump", [-1e6, 1e6])
def test_a_watched_claim_that_is_renewed_lives_whatever_its_date_says(jump: float) -> None:
    store, clock = MemoryStore(), ManualClock()
    other = ManualClock(clock.now() + jump)
    held = lock(store, other, ALICE).__enter__()
    watching = lock(store, clock, BOB)
    for _ in range(20):
        assert watching.watch()
        clock.sleep(9)
        other.sleep(9)
        held.renew()


def test_a_heartbeat_rests_while_its_owner_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ceph_tuner.core.changes.lock.LEASE_S", 0.03)
    store, hangs, renewed = MemoryStore(), threading.Event(), threading.Event()
    held = Lock(store, SystemClock(), ALICE)
    held.at_work = lambda: not hangs.is_set()
    with held:
        store.after_write = renewed.set
        assert renewed.wait(10)
        hangs.set()
        # one that was on its way
        time.sleep(0.1)
        renewed.clear()
        assert not renewed.wait(0.3)
        hangs.clear()
        assert renewed.wait(10)
