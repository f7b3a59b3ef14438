"""What the kernel's small parts promise: the event heap, the drive's budgets, histograms, and queues that forget."""

from __future__ import annotations

import math
import random
from typing import List, Tuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ceph_tuner.twin.kernel import clients, dmclock, drive, events, records
from ceph_tuner.twin.kernel.layout import as_objects, new, write_back
from ceph_tuner.twin.kernel.state import SimulationState, over_objects
from ceph_tuner.twin.kernel_tables import START_S
from ceph_tuner.twin.model import ClusterModel, Device, OsdModel, Pool
from ceph_tuner.twin.queue import CHECK_TIME_S, DmClockQueue, ServedRequest
from ceph_tuner.twin.simulation import Simulation

DEVICE = Device(1000.0, 1e6)


def bare(device: Device = DEVICE, compiled: bool = False) -> Simulation:
    """One OSD with one shard, and nothing to do."""
    osd = OsdModel(device, shards=1)
    return Simulation(ClusterModel(1, osd, (Pool("rbd", 1, 1),)), {}, compiled=compiled)


def bare_state(device: Device = DEVICE) -> SimulationState:
    """The same as plain Python has it."""
    return over_objects(bare(device)._tables)


@given(st.lists(st.floats(0, 100), max_size=200))
def test_events_come_in_the_order_of_their_times(times: List[float]) -> None:
    state = bare_state()
    state.progress.heap_size = 0
    for number, time in enumerate(times):
        events.schedule(state, time, records.QUEUE_WAKES, number)
    came = []
    while state.progress.heap_size:
        first = state.events[0]
        assert first.kind == records.QUEUE_WAKES
        assert times[first.index] == first.time_s
        came.append(first.index)
        events.drop_first_event(state)
    assert sorted(came) == list(range(len(times)))
    assert [times[number] for number in came] == sorted(times)


@given(st.lists(st.floats(0, 10), min_size=1, max_size=60))
def test_messages_keep_the_order_of_arrival_and_among_equals_that_of_sending(times: List[float]) -> None:
    state = bare_state()
    for item, time in enumerate(times):
        events.arrives(state, item, time)
    order = [state.messages[place].number for place in range(state.progress.message_head, state.progress.message_tail)]
    assert order == sorted(range(len(times)), key=lambda item: times[item])


REQUESTS = st.lists(st.tuples(st.floats(0, 0.3), st.integers(1, 3), st.integers(1, 100_000)), min_size=2, max_size=25)


@settings(deadline=None, max_examples=60)
@given(REQUESTS, st.sampled_from((0.0, 0.1)), st.sampled_from((0, 1)))
def test_no_stretch_of_time_lets_more_through_than_the_drive_s_budgets(
    requests: List[Tuple[float, int, int]], slice_s: float, channel: int
) -> None:
    iops, bandwidth = 100.0, 1e6
    device = Device(iops, bandwidth, slice_s=slice_s, shared=False)
    state = bare_state(device)
    now, last, through = START_S, 0.0, []
    for gap, ios, size in requests:
        now += gap
        at = drive.transfer(state, 0, channel, now, float(ios), float(size))
        assert at >= max(now, last)
        last = at
        through.append((now, at, ios, size))
    # a slice's budget may be used at its beginning, and that of the slice before if nothing used it
    burst_s = 2 * slice_s
    for first in range(len(through)):
        ios = size = 0
        for arrived, at, more, longer in through[first:]:
            ios, size = ios + more, size + longer
            seconds = at - through[first][0] + burst_s
            assert arrived <= at
            assert ios <= iops * seconds + (3 if slice_s else 1e-6)
            assert size <= bandwidth * seconds + (100_000 if slice_s else 1e-3)


def test_a_busy_drive_uses_its_whole_budget() -> None:
    for slice_s in (0.0, 0.1):
        state = bare_state(Device(100.0, 1e9, slice_s=slice_s, shared=False))
        for _ in range(1000):
            at = drive.transfer(state, 0, records.WRITES, START_S, 1.0, 4096.0)
        assert at - START_S == pytest.approx(10.0, abs=0.2)


def test_requests_and_bytes_stand_in_one_line() -> None:
    """As in the emulated drive: a small write behind a large one waits for it, and the next for both."""
    state = bare_state(Device(100.0, 1e8))
    waits = [
        drive.transfer(state, 0, use, START_S, 1.0, size) - START_S
        for use, size in ((records.WRITES, 4096.0), (records.READS, 5e6), (records.WRITES, 4096.0))
    ]
    assert waits == pytest.approx([0.01, 0.06, 0.07])


def disk() -> SimulationState:
    """A hard disk of 80 requests a second one by one, and of 210 with a full queue."""
    osd = OsdModel(Device(210.0, 200e6, latency_s=12.5e-3), shards=1, device_class="hdd")
    return over_objects(Simulation(ClusterModel(1, osd, (Pool("rbd", 1, 1),)), {}, compiled=False)._tables)


def test_a_disk_alone_takes_a_way_and_a_transfer() -> None:
    state, waits = disk(), []
    for number in range(4000):
        now = START_S + number
        waits.append(drive.transfer(state, 0, records.WRITES, now, 1.0, 2e6) - now)
    assert np.mean(waits) == pytest.approx(12.5e-3 + 2e6 / 200e6, rel=0.02)
    assert min(waits) > 2e6 / 200e6


def test_a_disk_with_a_full_queue_does_what_is_said_of_it() -> None:
    state = disk()
    for _ in range(2000):
        at = drive.transfer(state, 0, records.WRITES, START_S, 1.0, 0.0)
    assert 2000 / (at - START_S) == pytest.approx(210.0, rel=0.05)


def test_commits_one_after_another_stay_at_the_log() -> None:
    state, waits, chance = disk(), [], random.Random(1)
    for number in range(4000):
        now = START_S + number + chance.uniform(0, 0.1)
        waits.append(drive.transfer(state, 0, records.COMMITS, now, 1.0, 0.0) - now)
        if number >= 2000:
            drive.transfer(state, 0, records.READS, now + 0.5, 1.0, 0.0)
    assert np.mean(waits[1:2000]) == pytest.approx(60 / 7200 / 2, rel=0.05)
    assert max(waits[1:2000]) <= 60 / 7200
    assert np.mean(waits[2001:]) == pytest.approx(12.5e-3, rel=0.05)


def deferred(state: SimulationState, writes: int) -> float:
    """A batch of deferred writes; how long it takes when nothing comes between."""
    state.osds[0].deferred_writes = writes
    now = max(START_S, state.osds[0].budgets[0].free_at_s, state.osds[0].budgets[0].deferred_until_s) + 1.0
    drive.write_deferred(state, 0, now)
    assert state.osds[0].deferred_writes == 0
    state.progress.now_s = now
    return state.osds[0].budgets[0].deferred_until_s - now


def test_a_batch_of_deferred_writes_takes_the_shorter_ways_of_many() -> None:
    state = disk()
    assert deferred(state, 1) == pytest.approx(12.5e-3)
    assert deferred(state, 64) == pytest.approx(32 / 210 + 0.21, rel=0.1)
    assert deferred(state, 64) < 64 * 12.5e-3 / 2


def test_who_comes_meanwhile_waits_for_any_part_of_a_batch_and_its_work_is_not_lost() -> None:
    state, waits = disk(), []
    for _ in range(2000):
        whole = deferred(state, 32)
        now, own = state.progress.now_s, state.osds[0].budgets[0]
        at = drive.transfer(state, 0, records.COMMITS, now, 1.0, 0.0)
        taken = own.deferred_until_s - now - whole
        assert now + taken <= at <= own.deferred_until_s + 1e-9
        waits.append((at - now - taken) / whole)
    # any place in the drive's queue is as likely as another
    assert np.mean(waits) == pytest.approx(0.5, abs=0.03)
    assert np.std(waits) == pytest.approx(math.sqrt(1 / 12), rel=0.05)


def test_a_batch_larger_than_the_drive_s_queue_keeps_others_out_of_it() -> None:
    state = disk()
    for _ in range(200):
        whole = deferred(state, 160)
        queue_s = sum(state.parameters.way_s[1 : records.ORDERED])
        now = state.progress.now_s
        assert drive.transfer(state, 0, records.READS, now, 1.0, 0.0) - now > whole - queue_s - 1e-9


@given(st.floats(1.001e-6, 1e3))
def test_a_latency_falls_into_the_bucket_around_it(latency: float) -> None:
    octave, part = divmod(clients.bucket(latency), records.PER_OCTAVE)
    low = 1e-6 * 2.0 ** (octave - 1) * (1 + part / records.PER_OCTAVE)
    high = 1e-6 * 2.0 ** (octave - 1) * (1 + (part + 1) / records.PER_OCTAVE)
    assert low * (1 - 1e-9) <= latency <= high * (1 + 1e-9)


def test_latencies_beyond_the_histogram_fall_to_its_ends() -> None:
    assert clients.bucket(0.0) == 0
    assert clients.bucket(1e-9) == 0
    assert clients.bucket(1e30) == records.STREAM_BUCKETS - 1


def test_a_spread_latency_keeps_its_mean_and_its_floor() -> None:
    state = bare_state(Device(1000.0, 1e6, spread=0.3))
    drawn = [events.spread(state, 2.0) for _ in range(records.VARIATES)]
    assert np.mean(drawn) == pytest.approx(2.0, rel=0.01)
    assert min(drawn) >= 2.0 * 0.7
    # 30% of it is exponential
    assert np.std(drawn) == pytest.approx(0.3 * 2.0, rel=0.02)


@pytest.mark.usefixtures("kernel_compiled")
@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.lists(st.integers(0, 3), min_size=12, max_size=40))
def test_a_simulation_s_queues_forget_at_the_age_at_which_the_queue_does(seed: int, minutes: List[int]) -> None:
    """The marks that `run` keeps in a ring of ticks are those of DmClockQueue.clean."""
    source = random.Random(seed)
    simulation, queue = bare(compiled=True), DmClockQueue()
    table = simulation._tables["shards"]["queue"]
    # the simulation has no requests of its own: its shard's queue is moved by hand
    for c, parameters in enumerate(((5e5, 2, 0), (1e5, 1, 2e6), (0, 3, 1e6))):
        queue.set_class(c, *parameters)
        for name, value in zip(("reservation_s_per_byte", "weight_inverse", "limit_s_per_byte"), parameters):
            table["classes"][name][0, c] = 1.0 / value if value else 0.0
    waiting: List[List[Tuple[float, float]]] = [[], [], []]
    quiet = set()
    now = START_S
    for minute, busy in enumerate(minutes):
        # some classes fall silent for a while, so that they become idle, then forgotten, and come back
        if source.random() < 0.2:
            quiet = {c for c in range(3) if source.random() < 0.6}
        (own,) = as_objects(dmclock.Queue, table)
        for _ in range(busy):
            now += source.random() * 10.0
            c = source.randrange(3)
            if c not in quiet:
                cost = float(source.randrange(1, 10**6))
                queue.add(now, 0, c, cost)
                dmclock.add(own, c, now, cost)
                waiting[c].append((now, cost))
            kind, served, _ = dmclock.choose(own, now)
            answer = queue.pull(now)
            assert isinstance(answer, ServedRequest) == (kind < dmclock.FUTURE)
            if isinstance(answer, ServedRequest):
                assert answer.class_id == served
                _, cost = waiting[served].pop(0)
                arrived, price = waiting[served][0] if waiting[served] else (0.0, 0.0)
                dmclock.take(own, kind, served, cost, arrived, price)
        write_back(dmclock.Queue, [own], table)
        now = START_S + (minute + 1) * CHECK_TIME_S
        queue.clean(now)
        simulation.advance(now - START_S - simulation.now)
        assert as_objects(dmclock.Queue, table) == [queue._queue]


def test_a_class_becomes_idle_after_five_minutes_and_is_forgotten_after_ten() -> None:
    simulation = bare()
    table = simulation._tables["shards"]["queue"]
    (own,) = as_objects(dmclock.Queue, table)
    dmclock.add(own, 0, START_S, 1.0)
    dmclock.take(own, dmclock.BY_WEIGHT, 0, 1.0, 0.0, 0.0)
    write_back(dmclock.Queue, [own], table)
    client = table["classes"][0, 0]
    states = []
    for _ in range(13):
        simulation.advance(60.0)
        states.append((int(client["in_heaps"]), int(client["idle"])))
    # the first mark is set after a minute; what was before it is as old as that mark
    assert states == [(1, 0)] * 5 + [(1, 1)] * 5 + [(0, 1)] * 3


def test_a_new_queue_has_nothing_to_serve() -> None:
    assert dmclock.choose(new(dmclock.Queue), 1.0) == (dmclock.NONE, -1, math.inf)
