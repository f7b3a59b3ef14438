"""Clients' operations on objects that lack a copy: which wait, how their objects are recovered, and how they go on."""

from __future__ import annotations

from typing import Any, Iterator, List, Optional, Tuple

import pytest
from audit import check

from ceph_tuner.core.knobs.releases import QUINCY_EARLY
from ceph_tuner.twin.kernel import background, degraded, events, loop, records, recovery, threads
from ceph_tuner.twin.kernel.state import SimulationState, over_objects
from ceph_tuner.twin.model import MIB, WPQ, ClientStream, ClusterModel, Device, OsdModel, Pool, RecoveryWork
from ceph_tuner.twin.samples import edges_ms
from ceph_tuner.twin.simulation import Simulation

OSD = OsdModel(
    Device(3000.0, 200.0 * MIB), capacity_iops=3000.0, bandwidth_bytes_s=200.0 * MIB, shards=2, threads_per_shard=2
)
LIMIT, RESERVATION = (f"osd_mclock_scheduler_background_recovery_{share}" for share in ("lim", "res"))
BEST_EFFORT_LIMIT = "osd_mclock_scheduler_background_best_effort_lim"
BACK = 2
"""The OSD that came back."""
ONE, CODED = Pool("rbd", 1), Pool("rbd", 1, 3, k=2)
START_S = 1000.0


def model(
    objects: int, among: int, pool: Pool = ONE, rate: float = 200.0, read_share: float = 0.0, **given: Any
) -> ClusterModel:
    client = ClientStream("rbd", rate=rate, read_share=read_share)
    work = RecoveryWork("rbd", objects, MIB, target=BACK, rounds=given.pop("rounds", 1), among=among)
    return ClusterModel(3, OSD, (pool,), (client,), (work,), **given)


def seed_where(simulated: ClusterModel, leads: bool) -> int:
    """A seed with which the OSD that came back leads the one PG, or does not."""
    return next(
        seed for seed in range(50) if (Simulation(simulated, {}, seed, False).acting("rbd")[0][0] == BACK) == leads
    )


def simulation(simulated: ClusterModel, leads: bool = False, limit: float = 0.0, **settings: Any) -> Simulation:
    chosen = {"osd_mclock_profile": "custom", LIMIT: limit, RESERVATION: 0.0, BEST_EFFORT_LIMIT: 0.0}
    return Simulation(simulated, {**chosen, **settings}, seed_where(simulated, leads), compiled=False)


def state_of(simulated: ClusterModel, leads: bool = False, **given: Any) -> SimulationState:
    return over_objects(simulation(simulated, leads, **given)._tables)


def begun(state: SimulationState) -> SimulationState:
    """Its PG's recovery has begun, before any turn."""
    background.begin_task(state, 0)
    return state


def operation(state: SimulationState, reads: bool = False) -> int:
    """A client's operation in its thread: its item."""
    op = events.new_operation(state, 0, 0, records.READING if reads else records.WRITING, 3, START_S)
    state.operations[op].size_bytes = 4096.0
    return events.new_item(state, records.READ if reads else records.WRITE, 0, 0, op, 4096.0, 4096.0, 1.0)


def slowest_ms(twin: Simulation, kind: int) -> float:
    """The longest that clients waited, reads (0) or writes (1)."""
    (counts,) = (client.latency[kind] for client in twin.clients())
    return edges_ms()[max(place for place, count in enumerate(counts) if count)]


def blocked(state: SimulationState) -> List[int]:
    return [
        i
        for task in state.tasks
        for op in in_recovery(state, task.objects_head)
        for i in waiting(state, state.operations[op].waiting_head)
    ]


def in_recovery(state: SimulationState, op: int) -> Iterator[int]:
    while op >= 0:
        yield op
        op = state.operations[op].next_object


def waiting(state: SimulationState, i: int) -> Iterator[int]:
    while i >= 0:
        yield i
        i = state.items[i].next_item


# which wait -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reads", "primary_lacks", "waits"),
    [(False, False, True), (False, True, True), (True, False, False), (True, True, True)],
)
def test_writes_wait_for_any_copy_and_reads_for_the_primary_s(reads: bool, primary_lacks: bool, waits: bool) -> None:
    state = begun(state_of(model(40, 40), primary_lacks))
    assert degraded.lacks_copy(state, operation(state, reads), START_S) == waits


def test_as_many_wait_as_objects_lack_a_copy() -> None:
    state = begun(state_of(model(30, 120)))
    waits = 0
    for _ in range(4000):
        task = state.tasks[0]
        waits += degraded.lacks_copy(state, operation(state), START_S)
        # as if nothing had happened
        state = state if task.objects_head < 0 else _forgotten(state)
    assert waits / 4000 == pytest.approx(30 / 120, abs=0.02)


def _forgotten(state: SimulationState) -> SimulationState:
    task = state.tasks[0]
    events.release_operation(state, task.objects_head)
    task.objects_head, task.not_begun = -1, task.not_begun + 1
    return state


@pytest.mark.parametrize(("objects", "among"), [(40, 0), (0, 0)])
def test_nobody_waits_where_clients_go_to_other_objects(objects: int, among: int) -> None:
    state = state_of(model(objects, among))
    if objects:
        begun(state)
    assert all(slot.lacking == -1 for slot in state.slots)


def test_before_the_objects_are_lost_and_after_they_are_back_nobody_waits() -> None:
    state = state_of(model(3, 3))
    assert state.slots[0].lacking == -1
    loop.run(state, START_S + 1e-6)
    assert state.slots[0].lacking == 0
    loop.run(state, START_S + 5.0)
    assert state.tasks[0].state == records.FINISHED
    assert state.slots[0].lacking == -1


def test_with_rounds_clients_meet_the_objects_of_one_round_at_a_time() -> None:
    state = begun(state_of(model(12, 6, rounds=3)))
    for number in (1, 2):
        background.begin_task(state, number)
    first = state.slots[0].lacking
    state.tasks[first].left = state.tasks[first].not_begun = 0
    state.tasks[first].state = records.FINISHED
    degraded.lacking_changes(state, first)
    second = state.slots[0].lacking
    assert second not in (-1, first)
    assert state.tasks[second].left == 4


@pytest.mark.parametrize(("given", "wrong"), [({"among": 39}, "among"), ({"among": 50, "degraded": False}, "backfill")])
def test_a_work_whose_numbers_contradict_each_other_is_refused(given: Any, wrong: str) -> None:
    work = RecoveryWork("rbd", 40, **given)
    with pytest.raises(ValueError, match=wrong):
        ClusterModel(3, OSD, (ONE,), recovery=(work,))


# how their objects are recovered --------------------------------------------------------------------------------------


def kicked(state: SimulationState) -> Tuple[int, int]:
    """A write finds its object degraded and not in recovery: its item, and the object's recovery."""
    i = operation(state)
    own = state.osds[state.slots[0].osd]
    before = own.recovering
    while not degraded.lacks_copy(state, i, START_S) or state.operations[state.items[i].owner].awaits < 0:
        pass
    assert own.recovering == before + 1
    recovery.blocked(state, i, START_S)
    return i, state.operations[state.items[i].owner].awaits


def sent(state: SimulationState) -> List[int]:
    progress, mask = state.progress, state.parameters.message_mask
    return [state.messages[place & mask].number for place in range(progress.message_head, progress.message_tail)]


@pytest.mark.parametrize(
    ("pool", "leads", "role"),
    [(ONE, False, records.PUSH), (ONE, True, records.PULL), (CODED, False, records.SUBREAD)],
)
def test_the_first_write_begins_its_object_s_recovery_in_the_strict_queue(pool: Pool, leads: bool, role: int) -> None:
    state = begun(state_of(model(40, 40, pool), leads))
    _, op = kicked(state)
    assert {state.items[i].role for i in sent(state)} == {role}
    assert {state.items[i].lane for i in sent(state)} == {records.HIGH}
    assert state.operations[op].lane == records.HIGH


def test_a_thread_reads_what_it_pushes_and_nothing_that_it_pulls() -> None:
    for leads, size in ((False, MIB), (True, 0.0)):
        state = begun(state_of(model(40, 40), leads))
        i = operation(state)
        assert degraded.lacks_copy(state, i, START_S)
        assert state.items[i].size_bytes == size


def test_neither_reservations_nor_places_hold_it_back() -> None:
    given = {"osd_mclock_override_recovery_settings": True, "osd_recovery_max_active_ssd": 1}
    state = state_of(model(40, 40), **given)
    for own in state.osds:
        own.local_backfills = own.remote_backfills = 1
    begun(state)
    assert state.tasks[0].state == records.WAITING
    for _ in range(3):
        kicked(state)
    assert state.osds[state.slots[0].osd].recovering == 3


def test_the_places_that_it_takes_are_missing_to_the_background() -> None:
    given = {"osd_mclock_override_recovery_settings": True, "osd_recovery_max_active_ssd": 1}
    state = state_of(model(40, 40), **given)
    state.tasks[0].state = records.WAITING
    degraded.lacking_changes(state, 0)
    _, op = kicked(state)
    recovery.start_recoveries(state, records.DEGRADED, state.slots[0].osd)
    assert (state.tasks[0].state, state.tasks[0].queued) == (records.RUNNING, records.DUE)
    recovery.recovered(state, op, START_S)
    assert state.tasks[0].queued == records.QUEUED


def test_a_pg_without_reservations_has_its_turn_for_nothing() -> None:
    state = state_of(model(40, 40))
    for own in state.osds:
        own.local_backfills = own.remote_backfills = 1
    begun(state)
    _, op = kicked(state)
    state.progress.entering = 0
    recovery.recovered(state, op, START_S)
    task = state.tasks[0]
    entered = state.entering[: state.progress.entering]
    (turn,) = (j for j in entered if state.items[j].role == records.RECOVER)
    assert state.items[turn].cost_bytes == task.cost_bytes
    assert not recovery.reads_object(task)
    assert background.background_item_ends(state, turn, 0, START_S) == records.FREE
    assert (task.left, task.not_begun, task.queued) == (39, 39, records.NOT_DUE)
    assert state.osds[state.slots[0].osd].recovering == 0


def test_each_object_that_clients_brought_about_lets_one_more_begin_beside_the_others() -> None:
    """PG::finish_recovery_op queues the PG after every object, whoever began it."""
    state = begun(state_of(model(40, 40)))
    own = state.osds[state.slots[0].osd]
    (turn,) = state.entering[: state.progress.entering]
    recovery.turn_ends(state, turn, 0, START_S)
    _, op = kicked(state)
    recovery.recovered(state, op, START_S)
    assert state.tasks[0].queued == records.QUEUED
    assert own.recovering == 2


def test_a_recovery_that_clients_end_still_takes_a_turn_with_its_reservations() -> None:
    state = state_of(model(1, 1))
    for own in state.osds:
        own.local_backfills = own.remote_backfills = 1
    begun(state)
    _, op = kicked(state)
    recovery.recovered(state, op, START_S)
    assert (state.tasks[0].left, state.tasks[0].state) == (0, records.WAITING)
    for own in state.osds:
        own.local_backfills = own.remote_backfills = 0
    recovery.start_recoveries(state, records.DEGRADED, state.slots[0].osd)
    (turn,) = (i for i in state.entering[: state.progress.entering] if state.items[i].role == records.RECOVER)
    recovery.turn_ends(state, turn, 0, START_S)
    assert state.tasks[0].state == records.FINISHED


def test_what_follows_a_pull_is_of_recovery_s_class_also_where_a_client_waits() -> None:
    """PrimaryLogPG::schedule_recovery_work takes the PG's priority, not that of the messages."""
    state = begun(state_of(model(40, 40), leads=True))
    _, op = kicked(state)
    part = sent(state)[0]
    state.items[part].role = records.PUSH
    recovery.part_durable(state, part, op, START_S)
    assert (state.items[part].role, state.items[part].lane) == (records.PULLED, 1)


# how they go on -------------------------------------------------------------------------------------------------------


def queued_again(state: SimulationState, i: int) -> bool:
    return i in state.entering[: state.progress.entering]


def test_a_write_goes_on_when_its_object_has_all_copies() -> None:
    state = begun(state_of(model(40, 40)))
    i, op = kicked(state)
    recovery.recovered(state, op, START_S)
    assert queued_again(state, i)
    item = state.items[i]
    assert (item.role, item.lane, item.size_bytes, item.ios) == (records.WRITE, records.REQUEUED, 4096.0, 1.0)


def test_a_read_goes_on_once_the_primary_has_the_last_part_and_a_write_does_not() -> None:
    state = begun(state_of(model(1, 1), leads=True))
    write, op = kicked(state)
    read = operation(state, reads=True)
    state.items[read].role = records.BLOCKED
    degraded.wait_for(state, read, op)
    part = sent(state)[0]
    state.items[part].role = records.PUSH
    recovery.push_arrived(state, part)
    assert queued_again(state, read)
    assert state.items[read].role == records.READ
    assert not queued_again(state, write)
    later = operation(state, reads=True)
    assert degraded.lacks_copy(state, later, START_S)
    recovery.blocked(state, later, START_S)
    assert queued_again(state, later)
    recovery.recovered(state, op, START_S)
    assert queued_again(state, write)


def test_whoever_comes_to_an_object_in_recovery_waits_with_the_others() -> None:
    state = begun(state_of(model(1, 1)))
    first, op = kicked(state)
    second = operation(state)
    assert degraded.lacks_copy(state, second, START_S)
    assert state.operations[state.items[second].owner].awaits == -1
    recovery.blocked(state, second, START_S)
    assert blocked(state) == [first, second]
    recovery.recovered(state, op, START_S)
    assert [i for i in state.entering[: state.progress.entering] if i in (first, second)] == [first, second]


def test_whoever_comes_as_the_recovery_ends_goes_on_at_once() -> None:
    state = begun(state_of(model(1, 1)))
    _, op = kicked(state)
    late = operation(state)
    assert degraded.lacks_copy(state, late, START_S)
    recovery.recovered(state, op, START_S)
    recovery.blocked(state, late, START_S)
    assert queued_again(state, late)


def test_an_erasure_coded_write_begins_anew_with_its_read() -> None:
    state = begun(state_of(model(40, 40, CODED)))
    op = events.new_operation(state, 0, 0, records.EC_FIRST, 3, START_S)
    i = events.new_item(state, records.EC_READ, 0, 0, op, 4096.0, 2048.0, 0.0)
    state.operations[op].size_bytes = 2048.0
    assert degraded.lacks_copy(state, i, START_S)
    recovery.blocked(state, i, START_S)
    recovery.recovered(state, state.operations[op].awaits, START_S)
    assert (state.items[i].role, state.items[i].lane) == (records.EC_READ, records.REQUEUED)


def order(scheduler: str, lanes: List[int]) -> List[int]:
    """Items of these lanes enter one shard with one idle thread: in which order they are taken, by their places."""
    state = state_of(model(0, 0, rate=1e-6, **({"scheduler": scheduler} if scheduler else {})))
    number = state.slots[0].shard
    shard = state.shards[number]
    items = [operation(state) for _ in lanes]
    for i, lane in zip(items, lanes):
        state.items[i].lane = lane
        threads.enqueue(state, i, START_S)
    taken: List[int] = []
    while shard.queued:
        before = {
            event.index for event in state.events[: state.progress.heap_size] if event.kind == records.THREAD_ENDS
        }
        shard.idle_threads = shard.looking = 1
        threads.dispatch(state, number, START_S)
        (now,) = {
            event.index for event in state.events[: state.progress.heap_size] if event.kind == records.THREAD_ENDS
        } - before
        taken.append(items.index(now))
    return taken


@pytest.mark.parametrize(
    ("scheduler", "expected"),
    [
        # behind all that is strict, in front of every class
        (None, [3, 1, 4, 0, 2]),
        # WeightedPriorityQueue::enqueue_front, of the clients' priority
        (WPQ, [3, 4, 1, 0, 2]),
    ],
)
def test_who_waited_stands_in_front_of_every_class(scheduler: Optional[str], expected: List[int]) -> None:
    lanes = [0, records.REQUEUED, 0, records.HIGH, records.REQUEUED]
    assert order(scheduler or "", lanes) == expected


# what comes of it -----------------------------------------------------------------------------------------------------

TIGHT = 0.005
"""Of 100 MB/s for a shard: an object of 1 MiB every two seconds."""


def test_under_a_tight_limit_clients_recover_what_they_write_and_hardly_wait() -> None:
    twin = simulation(model(200, 400, rate=100.0), limit=TIGHT)
    alone = simulation(model(200, 0, rate=100.0), limit=TIGHT)
    for each in (twin, alone):
        each.advance(10.0)
    left, left_alone = (each.counters().degraded_left for each in (twin, alone))
    # 1 000 writes to 400 objects leave out 8%
    assert left == pytest.approx(200 * 0.082, abs=8)
    assert left_alone > 190
    assert slowest_ms(alone, 1) < 50


def test_what_waits_behind_the_limit_is_a_write_to_an_object_in_recovery() -> None:
    """A pull that the background began, and what follows a pull that a client began, stay in recovery's class."""
    pushed, pulled = (simulation(model(200, 400, rate=100.0), leads, limit=TIGHT) for leads in (False, True))
    for each in (pushed, pulled):
        each.advance(10.0)
    assert slowest_ms(pulled, 1) > 1500
    assert slowest_ms(pulled, 1) > slowest_ms(pushed, 1)


def test_where_the_primary_pulls_under_a_limit_writes_pile_up_and_reads_go_on() -> None:
    twin = simulation(model(400, 800, rate=100.0, read_share=0.5), leads=True, limit=TIGHT)
    twin.advance(10.0)
    audit = check(twin)
    owners = audit.items["owner"][audit.items_by_place()["for an object"]]
    reads = int((audit.operations["phase"][owners] == records.READING).sum())
    assert len(owners) > 150
    assert reads < 5


def test_a_closed_loop_loses_rate_by_it() -> None:
    """Every operation of a client that has only one at a time waits until its object is there."""
    rates = []
    for among in (0, 300):
        client = ClientStream("rbd", depth=1)
        work = RecoveryWork("rbd", 300, 4 * MIB, target=BACK, among=among)
        simulated = ClusterModel(3, OSD, (ONE,), (client,), (work,))
        twin = simulation(simulated, limit=TIGHT)
        twin.advance(2.0)
        rates.append(float(twin.counters().write_ops.sum()))
    assert rates[1] < 0.5 * rates[0]


@pytest.mark.parametrize("leads", [False, True])
@pytest.mark.parametrize(
    "given", [{}, {"scheduler": WPQ}, {"release": QUINCY_EARLY}, {"pool": CODED}], ids=["mclock", "wpq", "early", "ec"]
)
def test_everything_is_in_one_place_meanwhile_and_nobody_waits_afterwards(leads: bool, given: Any) -> None:
    simulated = model(30, 45, rate=200.0, read_share=0.3, **given)
    twin = simulation(simulated, leads, limit=0.2)
    waited = 0
    for _ in range(20):
        twin.advance(0.02)
        audit = check(twin)
        waited += len(audit.items_by_place()["for an object"])
    # clients go on all the while, one event after the other in Python
    while twin.now < 40.0 and {task["state"] for task in twin._of_tasks()} != {records.FINISHED}:
        twin.advance(1.0)
    twin.advance(1.0)
    assert waited > 0
    assert twin.counters().degraded_left == 0
    assert not check(twin).items_by_place()["for an object"]
    assert {task["state"] for task in twin._of_tasks()} == {records.FINISHED}


def test_a_small_simulation_has_room_for_all_that_clients_wait_for() -> None:
    simulated = model(3000, 3000, rate=4000.0, read_share=1.0)
    twin = simulation(simulated, leads=True, limit=TIGHT)
    twin.advance(1.0)
    assert check(twin).in_recovery()[0]
