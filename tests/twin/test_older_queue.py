"""The older queue (wpq) as Ceph's sources state it: priorities by kind of item, the lottery, and what items cost.

WeightedPriorityQueue.h: a priority is drawn with its share of all priorities that have items, and runs where a coin
falls below what its head leaves of the dearest cost that the queue has seen:
p(i) ~ priority x (1 - 0.9 cost / dearest).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, List, Tuple

import pytest
from scipy.stats import chisquare

from ceph_tuner.core.knobs.releases import RELEASES, TENTACLE, TENTACLE_EARLY
from ceph_tuner.twin.kernel import degraded, deletion, events, records, recovery, threads
from ceph_tuner.twin.kernel.state import SimulationState, over_objects
from ceph_tuner.twin.model import KIB, MIB, WPQ, ClusterModel, DeleteWork, Device, OsdModel, Pool, RecoveryWork
from ceph_tuner.twin.simulation import Simulation

CODED = Pool("archive", 16, 6, k=4)
OSD = OsdModel(Device(2000.0, 200.0 * MIB), shards=2, threads_per_shard=1)
LANES = {63: 0, 3: 1, 5: records.BEST_EFFORT, 127: records.REPLICAS}
"""Priority -> lane."""


def model(**work: object) -> ClusterModel:
    return ClusterModel(6, OSD, (CODED,), scheduler=WPQ, **work)  # type: ignore[arg-type]


def state() -> SimulationState:
    return over_objects(Simulation(model(), {}, compiled=False)._tables)


def entered(found: SimulationState, role: int, lane: int, cost: float = 1000.0, shard: int = 0) -> int:
    """The lane that an item is put into. Slots of one OSD take its shards in turn."""
    slot = next(place for place, placed in enumerate(found.slots) if placed.shard == shard)
    own = found.shards[shard]
    before = [(own.head[number], own.tail[number]) for number in range(records.LANES)]
    i = events.new_item(found, role, lane, slot, 0, cost, 4096.0, 0.0)
    threads.enqueue(found, i, found.progress.now_s)
    (changed,) = [number for number in range(records.LANES) if (own.head[number], own.tail[number]) != before[number]]
    return changed


@pytest.mark.parametrize(
    ("role", "lane", "priority"),
    [
        # osd_client_op_priority; a message without a priority has CEPH_MSG_PRIO_DEFAULT; osd_recovery_op_priority
        # for what recovery sends; osd_recovery_priority, 5, for what it queues at its own OSD
        (records.WRITE, 0, 63),
        (records.READ, 0, 63),
        (records.SUBWRITE, records.HIGH, 127),
        (records.TRIM_REPLICA, records.HIGH, 127),
        (records.SUBREAD, records.HIGH, 127),
        (records.SUBREAD, 1, 3),
        (records.PUSH, 1, 3),
        (records.PULL, 1, 3),
        (records.RECOVER, 1, 5),
        (records.PULLED, 1, 5),
        (records.SCRUB_CHUNK, records.BEST_EFFORT, 5),
        (records.TRIM, records.BEST_EFFORT, 5),
        (records.DELETE, records.BEST_EFFORT, 5),
    ],
)
def test_an_item_has_the_priority_of_its_kind(role: int, lane: int, priority: int) -> None:
    found = state()
    assert entered(found, role, lane) == LANES[priority]
    assert found.parameters.priorities[LANES[priority]] == priority


def drawn(found: SimulationState, draws: int) -> Dict[int, int]:
    shard, counts = found.shards[0], dict.fromkeys(LANES.values(), 0)
    for _ in range(draws):
        counts[threads.choose_wpq(found, shard)] += 1
    return counts


@pytest.mark.parametrize(
    "costs",
    [(4096.0, 1 * MIB, 50 * MIB, 4096.0), (8 * MIB, 20 * MIB, 1.0, 64 * KIB), (1.0, 1.0, 1.0, 1.0)],
)
def test_the_lottery_is_that_of_the_source(costs: Tuple[float, ...]) -> None:
    found = state()
    heads = dict(zip(LANES, costs))
    for priority, cost in heads.items():
        role = {63: records.WRITE, 3: records.PUSH, 5: records.TRIM, 127: records.SUBWRITE}[priority]
        entered(found, role, {63: 0, 3: 1, 5: 2, 127: records.HIGH}[priority], cost)
    dearest = max(costs)
    chances = {LANES[priority]: priority * (1 - 0.9 * cost / dearest) for priority, cost in heads.items()}
    # fewer than repeat the numbers of the table
    draws = 3_000
    counts = drawn(found, draws)
    expected: List[float] = [draws * chances[lane] / sum(chances.values()) for lane in counts]
    assert chisquare(list(counts.values()), expected).pvalue > 0.001


def test_a_queue_knows_the_dearest_item_of_its_own_shard_alone() -> None:
    found = state()
    entered(found, records.WRITE, 0, 4096.0)
    entered(found, records.PUSH, 1, 1.0 * MIB)
    entered(found, records.TRIM, 2, 50.0 * MIB, shard=1)
    assert [found.shards[place].dearest_cost_bytes for place in (0, 1)] == [MIB, 50 * MIB]


def test_what_is_strict_says_nothing_of_the_dearest() -> None:
    found = state()
    entered(found, records.REPLY, records.HIGH, 9.0 * MIB)
    assert found.shards[0].dearest_cost_bytes == 0


def read_cost(scheduler_model: ClusterModel, lane: int) -> float:
    found = over_objects(Simulation(scheduler_model, {}, compiled=False)._tables)
    op = events.new_operation(found, 0, 0, records.EC_RECOVERY, 3, found.progress.now_s)
    recovery.read_shards(found, op, -1, lane, 1.0 * MIB, found.progress.now_s)
    sent = found.messages[found.progress.message_head].number
    return found.items[sent].cost_bytes


def test_a_read_of_an_erasure_code_costs_its_bytes_under_mclock_and_nothing_here() -> None:
    # ECSubRead::cost: 0 where osd_op_queue is not mclock_scheduler
    assert read_cost(model(), 1) == 1.0
    assert read_cost(replace(model(), scheduler="mclock_scheduler"), 1) == MIB


@pytest.mark.parametrize(("scheduler", "cost"), [(WPQ, 8 * MIB + 1000), ("mclock_scheduler", 0.0)])
def test_the_answer_to_a_push_costs_a_whole_chunk_here(scheduler: str, cost: float) -> None:
    """PushReplyOp::cost: osd_push_per_object_cost and osd_recovery_max_chunk, however small the object was."""
    own = replace(model(recovery=(RecoveryWork("archive", 200, MIB),)), scheduler=scheduler)
    found = over_objects(Simulation(own, {}, compiled=False)._tables)
    number = next(place for place, task in enumerate(found.tasks) if task.target > 0)
    op = degraded.begin_object(found, number, 1, found.progress.now_s)
    i = events.new_item(found, records.PUSH, 1, 0, op, 0.0, 0.0, 0.0)
    recovery.part_durable(found, i, op, found.progress.now_s)
    assert found.items[i].cost_bytes == (cost or found.parameters.least_cost_bytes)


def lane_of_reads(is_degraded: bool, release: str, scheduler: str) -> int:
    work = RecoveryWork("archive", 200, MIB, is_degraded)
    own = replace(model(recovery=(work,)), scheduler=scheduler, release=RELEASES[release])
    tasks = Simulation(own, {}, compiled=False)._of_tasks()
    (lane,) = set(tasks["read_lane"].tolist())
    return int(lane)


@pytest.mark.parametrize(
    ("release", "degraded", "lane"),
    [
        # priority_to_scheduler_class: from DEGRADED (10) on recovery, below it best effort; before, all were immediate
        (TENTACLE.name, True, 1),
        (TENTACLE.name, False, 2),
        (TENTACLE_EARLY.name, True, records.HIGH),
        (TENTACLE_EARLY.name, False, records.HIGH),
        ("reef", False, records.HIGH),
    ],
)
def test_reads_that_rebuild_a_code_are_of_their_pg_s_class_from_20_2_3_on(
    release: str, degraded: bool, lane: int
) -> None:
    assert lane_of_reads(degraded, release, "mclock_scheduler") == lane
    # there the priority is recovery's in all releases
    assert lane_of_reads(degraded, release, WPQ) == 1


def deletion_cost(scheduler: str, **chosen: int) -> float:
    """Of one turn of 30 objects."""
    own = replace(model(deletion=(DeleteWork("archive", 5000),)), scheduler=scheduler)
    simulation = Simulation(own, chosen, compiled=False)
    found = over_objects(simulation._tables)
    number = next(place for place, task in enumerate(found.tasks) if task.kind == records.DELETION)
    found.tasks[number].state = records.WAITING
    deletion.start_deletions(found, found.slots[found.tasks[number].pg * found.parameters.width].osd)
    return found.items[found.entering[0]].cost_bytes


def test_a_turn_of_deletion_costs_each_object_under_mclock_and_once_here() -> None:
    # OSDService::queue_for_pg_delete: osd_pg_delete_cost, under mClock times the objects of the turn
    assert deletion_cost("mclock_scheduler") == 30 * MIB
    assert deletion_cost("mclock_scheduler", osd_pg_delete_cost=4 * MIB) == 120 * MIB
    assert deletion_cost(WPQ) == MIB
    assert deletion_cost(WPQ, osd_pg_delete_cost=4 * MIB) == 4 * MIB
