"""Clients' writes to the objects of a scrub's chunk: they preempt it so and so often, and then wait for its end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, List, Tuple

import pytest

from ceph_tuner.core.knobs.releases import REEF, TENTACLE, Release, Settings
from ceph_tuner.twin.kernel import background, events, records, scrub, threads
from ceph_tuner.twin.kernel.state import SimulationState, over_objects
from ceph_tuner.twin.model import KIB, MIB, ClientStream, ClusterModel, Device, OsdModel, Pool, ScrubWork
from ceph_tuner.twin.simulation import Simulation

OSD = OsdModel(
    Device(2000.0, 100 * MIB, latency_s=1e-4, read_latency_s=1e-4), 2000.0, 100 * MIB, shards=1, threads_per_shard=2
)
OBJECTS, CHUNK = 60, 15
START_S = 1000.0
NUMBER, PRIMARY = 0, 0


def model(pool: str = "rbd", objects: int = OBJECTS, read_share: float = 0.0, rate: float = 100.0) -> ClusterModel:
    pools = (Pool("rbd", 1, 3), Pool("other", 1, 3))
    client = ClientStream(pool, rate=rate, read_share=read_share)
    return ClusterModel(3, OSD, pools, (client,), scrub=(ScrubWork("rbd", objects, MIB // 4),), scrub_backoff_ratio=0.0)


def chosen(simulated: ClusterModel, **settings: Any) -> SimulationState:
    """A PG's scrub has chosen its first chunk."""
    state = over_objects(Simulation(simulated, settings, compiled=False)._tables)
    background.begin_task(state, NUMBER)
    scrub.start_scrub(state, state.slots[PRIMARY].osd)
    scrub.scrub_goes_on(state, NUMBER, START_S)
    return state


def write(state: SimulationState, phase: int = records.WRITING) -> int:
    """A client's operation in its thread: its item."""
    op = events.new_operation(state, 0, 0, phase, 3, START_S)
    state.operations[op].size_bytes = 4096.0
    role = records.READ if phase == records.READING else records.WRITE
    return events.new_item(state, role, 0, PRIMARY, op, 4096.0, 4096.0, 1.0)


def meets(state: SimulationState, phase: int = records.WRITING) -> int:
    """An operation on an object of the chunk: its item."""
    state.tasks[NUMBER].among = float(state.tasks[NUMBER].chunk)
    i = write(state, phase)
    threads.has_to_wait(state, i, START_S)
    return i


def chunk_items(state: SimulationState) -> List[Tuple[int, int]]:
    """The copies that a chunk is asked of, and how many objects."""
    free = set()
    place = state.progress.free_item
    while 0 <= place < len(state.items):
        free.add(place)
        place = state.items[place].next_item
    return sorted(
        (item.slot, item.objects_left)
        for place, item in enumerate(state.items)
        if place not in free and item.role == records.SCRUB_CHUNK
    )


def copies_answer(state: SimulationState) -> None:
    """All copies that were asked have their maps."""
    for _ in range(state.tasks[NUMBER].pending):
        scrub.copy_scrubbed(
            state, events.new_item(state, records.SCRUB_MAP, 3, PRIMARY, NUMBER, 0.0, 0.0, 0.0), START_S
        )


def test_a_write_to_the_chunk_preempts_it_and_goes_on() -> None:
    state = chosen(model())
    i = meets(state)
    assert state.items[i].role == records.WRITE
    assert state.tasks[NUMBER].preempted == 1


def test_writes_go_on_while_a_preempted_chunk_ends() -> None:
    """PgScrubber::write_blocked_by_scrub: the chunk's range is empty then (m_end = m_start)."""
    state = chosen(model(), osd_scrub_max_preemptions=1)
    for _ in range(3):
        assert state.items[meets(state)].role == records.WRITE


def test_a_read_preempts_nothing() -> None:
    state = chosen(model(read_share=0.5))
    assert state.items[meets(state, records.READING)].role == records.READ
    assert state.tasks[NUMBER].preempted == 0


def test_as_many_writes_meet_the_chunk_as_it_has_of_the_pg_s_objects() -> None:
    state = chosen(model(), osd_scrub_max_preemptions=0)
    count = sum(threads.has_to_wait(state, write(state), START_S) for _ in range(1000))
    assert count / 1000 == pytest.approx(CHUNK / OBJECTS, abs=0.04)


def test_nobody_meets_a_chunk_that_is_not_chosen_yet() -> None:
    state = chosen(model())
    state.slots[PRIMARY].scrubbed = -1
    assert not any(threads.has_to_wait(state, write(state), START_S) for _ in range(200))


@pytest.mark.parametrize(("pool", "read_share"), [("other", 0.0), ("rbd", 1.0)])
def test_a_pool_that_nobody_writes_to_holds_no_chunk(pool: str, read_share: float) -> None:
    assert chosen(model(pool, read_share=read_share)).slots[PRIMARY].scrubbed == -1


@pytest.mark.parametrize(("release", "least"), [(TENTACLE, 5), (REEF, 3)])
def test_a_preempted_chunk_is_begun_anew_with_half_its_objects_and_the_next_one_is_whole(
    release: Release, least: int
) -> None:
    """As the log of 20.2.4 has it: `select_range: Min: 5 Max: 15 Div: 1`, `Max: 7 Div: 2`, `Min: 5 Max: 5 Div: 4`.

    That of 18.2.8 has `Min: 3 Max: 7 Div: 2`, `Max: 3 Div: 4`. After a chunk that is scrubbed both have `Div: 1`.
    """
    state = chosen(replace(model(), release=release))
    task, sizes = state.tasks[NUMBER], []
    for preempts in (True, True, True, False, False):
        sizes.append(task.chunk)
        if preempts:
            meets(state)
        scrub.scrub_goes_on(state, NUMBER, START_S)
        copies_answer(state)
        if preempts:
            scrub.scrub_goes_on(state, NUMBER, START_S)
            continue
        assert state.slots[PRIMARY].scrubbed == -1
        while task.stage != 1:
            scrub.scrub_goes_on(state, NUMBER, START_S)
    assert sizes == [CHUNK, CHUNK // 2, least, least, CHUNK]
    assert task.left == OBJECTS - least - CHUNK, "what was preempted is not scrubbed"


def test_replicas_are_asked_for_no_objects_once_a_write_has_preempted_the_chunk() -> None:
    """And the primary reads none: `BuildMap preempted!!!`."""
    state = chosen(model())
    meets(state)
    scrub.scrub_goes_on(state, NUMBER, START_S)
    assert chunk_items(state) == [(1, 0), (2, 0)]
    whole = chosen(model())
    scrub.scrub_goes_on(whole, NUMBER, START_S)
    assert chunk_items(whole) == [(0, CHUNK), (1, CHUNK), (2, CHUNK)]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_no_copy_reads_on_once_a_write_has_preempted_the_chunk(place: int) -> None:
    """`rep_scrubmap(… PREEMPTED)`, in the logs of both releases."""
    state = chosen(model())
    scrub.scrub_goes_on(state, NUMBER, START_S)
    i = next(i for i, item in enumerate(state.items) if item.role == records.SCRUB_CHUNK and item.slot == place)
    meets(state)
    osd = state.slots[place].osd
    assert scrub.stride_read(state, i, osd, START_S) == records.FREE
    assert state.osds[osd].counters.scrubbed_bytes == 0.0
    # a replica's answer is on its way
    assert state.tasks[NUMBER].pending == (2 if place == 0 else 3)


def test_what_was_read_of_a_chunk_that_a_write_preempts_is_read_again_before_it_counts() -> None:
    state = chosen(model())
    scrub.scrub_goes_on(state, NUMBER, START_S)
    task, osds = state.tasks[NUMBER], state.osds

    def read(count: int) -> None:
        """So many strides on one replica."""
        i = next(i for i, item in enumerate(state.items) if item.role == records.SCRUB_CHUNK and item.slot == 1)
        for _ in range(count):
            state.items[i].strides_left, state.items[i].size_bytes, state.items[i].objects_left = 9, 100.0, 9
            scrub.stride_read(state, i, state.slots[1].osd, START_S)

    def counted() -> List[float]:
        names = ("scrubbed_bytes", "scrub_read_bytes")
        return [sum(getattr(own.counters, name) for own in osds) for name in names]

    read(5)
    assert counted() == [500.0, 500.0]
    meets(state)
    assert sum(own.counters.preempted_chunks for own in osds) == 1.0
    copies_answer(state)
    assert (task.chunk_bytes, task.reread_bytes) == (0.0, 500.0), "the chunk is begun anew"
    read(3)
    assert counted() == [500.0, 800.0]
    read(4)
    assert counted() == [700.0, 1200.0]


def test_a_write_waits_for_the_chunk_s_end_once_no_preemption_is_left() -> None:
    state = chosen(model(), osd_scrub_max_preemptions=0)
    scrub.scrub_goes_on(state, NUMBER, START_S)
    i = meets(state)
    assert state.items[i].role == records.BLOCKED
    assert background.background_item_ends(state, i, 0, START_S) == records.FREE
    assert state.tasks[NUMBER].waiting_head == i
    copies_answer(state)
    item = state.items[i]
    assert (item.role, item.lane, item.size_bytes) == (records.WRITE, records.REQUEUED, 4096.0)
    assert state.tasks[NUMBER].waiting_head == -1


def test_a_chunk_s_end_that_comes_before_the_write_s_thread_is_free_lets_it_go_on() -> None:
    state = chosen(model(), osd_scrub_max_preemptions=0)
    scrub.scrub_goes_on(state, NUMBER, START_S)
    i = meets(state)
    copies_answer(state)
    background.background_item_ends(state, i, 0, START_S)
    assert state.items[i].role == records.WRITE


LIMITED: Settings = {
    "osd_mclock_profile": "custom",
    "osd_mclock_scheduler_background_best_effort_lim": 0.2,
    "osd_mclock_scheduler_background_best_effort_wgt": 1,
}


def scrubbed(simulated: ClusterModel, **settings: Any) -> Tuple[float, float]:
    """Objects that are scrubbed in 60 s, and the clients' mean latency in seconds."""
    simulation = Simulation(simulated, {**LIMITED, **settings})
    simulation.advance(65.0)
    (client,) = simulation.clients()
    return float(simulation.counters().scrub_objects.sum()), client.seconds / client.operations


@pytest.mark.usefixtures("kernel_compiled")
def test_under_a_limit_a_pool_that_is_written_is_scrubbed_far_more_slowly() -> None:
    """A copy pays for a whole chunk each time, however small it has become. A lab had 16.0 objects/s for 36.1."""
    apart, _ = scrubbed(model("other", 200))
    together, _ = scrubbed(model("rbd", 200))
    assert 0.2 < together / apart < 0.75


@pytest.mark.usefixtures("kernel_compiled")
def test_bytes_that_are_scrubbed_are_those_of_whole_objects() -> None:
    simulation = Simulation(model("rbd", 200), LIMITED)
    simulation.advance(65.0)
    counters = simulation.counters()
    objects = float(counters.scrub_objects.sum())
    assert counters.preempted_chunks.sum() > 5
    # the chunk under way
    assert float(counters.scrub_bytes.sum()) / (3 * MIB // 4) == pytest.approx(objects, abs=15)
    assert counters.scrub_read_bytes.sum() > counters.scrub_bytes.sum() + 15 * 3 * MIB // 4


@pytest.mark.usefixtures("kernel_compiled")
def test_without_preemptions_scrub_is_as_fast_and_writes_wait() -> None:
    apart, alone_s = scrubbed(model("other", 200))
    waited, mean_s = scrubbed(model("rbd", 200), osd_scrub_max_preemptions=0)
    _, preempting_s = scrubbed(model("rbd", 200))
    assert waited == pytest.approx(apart, rel=0.15)
    assert mean_s > 2 * preempting_s
    assert preempting_s == pytest.approx(alone_s, rel=0.5)


def test_one_copy_alone_begins_anew_at_once() -> None:
    client = ClientStream("rbd", rate=100.0)
    single = ClusterModel(1, OSD, (Pool("rbd", 1, 1),), (client,), scrub=(ScrubWork("rbd", OBJECTS, 4 * KIB),))
    state = chosen(single)
    meets(state)
    scrub.scrub_goes_on(state, NUMBER, START_S)
    task = state.tasks[NUMBER]
    assert (task.stage, task.chunk, task.preempted) == (0, CHUNK // 2, 0)
    assert state.slots[PRIMARY].scrubbed == -1, "the smaller one is not chosen yet"
