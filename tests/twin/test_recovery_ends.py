"""How a PG's recovery ends: one more turn, which holds the reservations, and whose class no object's copy decides.

PrimaryLogPG::on_global_recover publishes statistics before PG::finish_recovery_op queues the PG again, so that the
priority of that turn is that of a PG without degraded objects: best effort where priorities make classes (17.2.7 on).
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional

import pytest

from ceph_tuner.core.knobs.releases import QUINCY_EARLY, REEF
from ceph_tuner.twin.kernel import background, degraded, loop, records, recovery
from ceph_tuner.twin.kernel.state import SimulationState, over_objects
from ceph_tuner.twin.model import MCLOCK, MIB, WPQ, ClusterModel, Device, OsdModel, Pool, RecoveryWork
from ceph_tuner.twin.simulation import Simulation

RECOVERY, BEST_EFFORT = 1, records.BEST_EFFORT
LIMIT = "osd_mclock_scheduler_background_best_effort_lim"
SHARD_BYTES_S = 9.375e6 / 8
OSD = OsdModel(
    Device(325.0, 9.375e6, 3360.0, 16.7e6, shared=False, latency_s=7.7e-4, read_latency_s=2e-2),
    capacity_iops=307.0,
    bandwidth_bytes_s=9.375e6,
    shards=8,
    threads_per_shard=2,
    throttle_bytes=256.0 * 1024,
)
"""The lab's emulated NVMe drive, six times slower."""
BACK = 2
"""The OSD that came back."""
ONE, CODED = Pool("rbd", 1), Pool("rbd", 1, 3, k=2)


def model(objects: int, pool: Pool = ONE, **given: Any) -> ClusterModel:
    of_work = {name: given.pop(name) for name in ("degraded", "target", "rounds") if name in given}
    work = RecoveryWork("rbd", objects, MIB, **{"target": BACK, **of_work})
    return ClusterModel(3, OSD, (pool,), recovery=(work,), **given)


def leading(simulated: ClusterModel, leads: bool) -> int:
    """A seed with which the OSD that came back leads the one PG, or does not."""
    return next(
        seed for seed in range(50) if (Simulation(simulated, {}, seed, False).acting("rbd")[0][0] == BACK) == leads
    )


def running(simulated: ClusterModel, seed: int, limit: float = 0.9) -> SimulationState:
    """Its objects, for the kernel in plain Python."""
    chosen = {"osd_mclock_profile": "custom", "osd_mclock_scheduler_background_recovery_lim": 0.0, LIMIT: limit}
    return over_objects(Simulation(simulated, chosen, seed, compiled=False)._tables)


def ended_s(state: SimulationState) -> float:
    """How long reservations are held after the last object has its copy."""
    last_s = 0.0
    for step in range(1, 20_000):
        loop.run(state, 1000.0 + 0.002 * step)
        held = sum(own.local_backfills + own.remote_backfills for own in state.osds)
        if not last_s and not any(task.left for task in state.tasks):
            last_s = state.progress.now_s
        if last_s and not held:
            return state.progress.now_s - last_s
    raise AssertionError("recovery never ended")


@pytest.mark.parametrize("limit", [0.9, 0.7, 0.3])
def test_a_primary_that_pulls_ends_one_object_s_cost_under_the_limit_of_best_effort_later(limit: float) -> None:
    """Two items of that class follow each other in one shard: what follows the last pull, and the turn that ends it."""
    simulated = model(3)
    waited = ended_s(running(simulated, leading(simulated, True), limit))
    assert waited == pytest.approx(MIB / (limit * SHARD_BYTES_S), rel=0.02)


@pytest.mark.parametrize(
    ("leads", "limit", "given"),
    [
        (False, 0.9, {}),
        (True, 0.0, {}),
        (True, 0.9, {"scheduler": WPQ}),
        (True, 0.9, {"release": QUINCY_EARLY}),
        # an erasure-coded primary pulls nothing: it writes its own part as the others do
        (True, 0.9, {"pool": CODED}),
    ],
    ids=["pushes", "no limit", "wpq", "one class for all", "erasure code"],
)
def test_elsewhere_a_pg_s_recovery_ends_with_its_last_object(leads: bool, limit: float, given: Dict[str, Any]) -> None:
    simulated = model(3, **given)
    assert ended_s(running(simulated, leading(simulated, leads), limit)) < 0.05


class Queued(NamedTuple):
    """What an item is queued with."""

    role: int
    lane: int
    cost: float


def closing(state: SimulationState, number: int) -> int:
    """The last object of a PG has its copy: the item that follows."""
    task = state.tasks[number]
    task.state, task.left, task.not_begun = records.RUNNING, 1, 1
    op = degraded.begin_object(state, number, task.lane, 1000.0)
    own = state.osds[state.slots[task.pg * state.parameters.width].osd]
    own.local_backfills = own.recovering = 1
    for place in range(1, task.copies):
        state.osds[state.slots[task.pg * state.parameters.width + place].osd].remote_backfills += 1
    recovery.recovered(state, op, 1000.0)
    (i,) = state.entering[: state.progress.entering]
    return int(i)


@pytest.mark.parametrize(
    ("given", "lane", "cost"),
    [
        ({}, BEST_EFFORT, MIB),
        ({"release": REEF}, BEST_EFFORT, MIB),
        ({"degraded": False}, BEST_EFFORT, MIB),
        # without the OSD that is lost a PG is undersized, and of recovery's class, until its last object has arrived
        ({"target": None}, RECOVERY, MIB),
        ({"release": QUINCY_EARLY}, RECOVERY, 231),
        ({"pool": Pool("rbd", 8, 3, k=2)}, BEST_EFFORT, MIB),
        # of recovery's priority by its work, as all of it is; its role makes that osd_recovery_priority
        ({"scheduler": WPQ}, RECOVERY, 20 * MIB),
    ],
)
def test_the_last_turn_is_of_a_pg_without_degraded_objects(given: Dict[str, Any], lane: int, cost: float) -> None:
    state = running(model(40, **{"pool": Pool("rbd", 8), **given}), 1)
    item = state.items[closing(state, 0)]
    assert Queued(item.role, item.lane, item.cost_bytes) == Queued(records.RECOVER, lane, cost)
    assert item.size_bytes == 0.0, "there is nothing to read"


def test_reservations_are_held_until_the_last_turn() -> None:
    state = running(model(40, Pool("rbd", 8)), 1)
    task = state.tasks[0]
    own = state.osds[state.slots[task.pg * state.parameters.width].osd]
    i = closing(state, 0)
    assert (task.state, task.left) == (records.RUNNING, 0)
    assert own.local_backfills == own.recovering == 1
    assert sum(each.remote_backfills for each in state.osds) == 2
    background.background_item_ends(state, i, 0, 1000.0)
    assert task.state == records.FINISHED
    assert own.local_backfills == own.recovering == 0
    assert not any(each.remote_backfills for each in state.osds)
    assert [state.events[place].kind for place in range(state.progress.heap_size)].count(records.RECOVERY_FREE) == 1


def after_own_part(left: int, pool: Pool) -> Queued:
    """What follows an object's last part at the primary that lacked it, with so many objects to go."""
    state = running(model(40, pool), 1)
    number = next(place for place, task in enumerate(state.tasks) if task.target == 0)
    task = state.tasks[number]
    task.left = left
    op = degraded.begin_object(state, number, task.lane, 1000.0)
    i = recovery.new_item(state, records.PUSH, task.lane, task.pg * state.parameters.width, op, 0.0, 0.0, 0.0)
    recovery.part_durable(state, i, op, 1000.0)
    item = state.items[i]
    return Queued(item.role, item.lane, item.cost_bytes)


def test_what_follows_the_last_pull_is_of_that_class_as_well() -> None:
    """PrimaryLogPG::on_local_recover publishes statistics before the transaction that it waits for is queued."""
    assert after_own_part(1, Pool("rbd", 8)) == (records.PULLED, BEST_EFFORT, MIB)
    assert after_own_part(2, Pool("rbd", 8)) == (records.PULLED, RECOVERY, MIB)


def test_an_erasure_coded_primary_answers_itself_as_others_do() -> None:
    """ECBackend::dispatch_recovery_messages: pushes and their answers are messages, to its own OSD as well."""
    least = 9.375e6 // 307
    assert after_own_part(1, Pool("rbd", 8, 3, k=2)) == (records.PUSHED, RECOVERY, least)


def recovered_s(scheduler: str, limit: float, objects: int = 270, pgs: int = 32, rounds: int = 1) -> float:
    """Seconds in which all PGs of a pool recover onto the OSD that came back."""
    state = running(model(objects, Pool("rbd", pgs), rounds=rounds, scheduler=scheduler), 1, limit)
    step = 0
    while any(task.state != records.FINISHED for task in state.tasks):
        step += 1
        loop.run(state, 1000.0 + 0.1 * step)
    return 0.1 * step


def test_the_older_queue_recovers_many_small_pgs_faster_and_few_large_ones_alike() -> None:
    """Measured with 8.4 objects in each of 32 PGs, a third of them led by the OSD that came back: 18%."""
    wpq = recovered_s(WPQ, 0.9)
    assert 1.12 < recovered_s(MCLOCK, 0.9) / wpq < 1.24
    assert recovered_s(MCLOCK, 0.0) / wpq == pytest.approx(1.0, abs=0.02)
    few = [recovered_s(scheduler, 0.9, pgs=3) for scheduler in (MCLOCK, WPQ)]
    assert few[0] / few[1] < 1.04


def test_work_that_is_made_to_last_keeps_what_the_ends_of_pgs_cost() -> None:
    """A description of work that is nearly done takes it for a minute's (`background_work.py`)."""
    seconds = recovered_s(MCLOCK, 0.9)
    assert recovered_s(MCLOCK, 0.9, 3 * 270, rounds=3) == pytest.approx(3 * seconds, rel=0.03)
    assert recovered_s(MCLOCK, 0.9, 3 * 270) < 2.85 * seconds


def test_the_tighter_best_effort_is_limited_the_longer_recovery_takes() -> None:
    """As high_recovery_ops, balanced and high_client_ops do: no limit, 0.9 and 0.7."""
    seconds = [recovered_s(MCLOCK, limit) for limit in (0.0, 0.9, 0.7)]
    assert seconds == sorted(seconds)
    assert seconds[-1] > 1.1 * seconds[0]


def primaries(seed: int) -> List[int]:
    """Of the PGs in the order in which they begin, all at one time apart from the last ones."""
    state = running(model(96, Pool("rbd", 32)), seed)
    order: List[int] = []
    before: Optional[int] = None
    for step in range(1, 4000):
        loop.run(state, 1000.0 + 0.01 * step)
        active = [number for number, task in enumerate(state.tasks) if task.state == records.RUNNING]
        assert len(active) <= 1, "three copies on three OSDs leave room for one PG"
        if active and active[0] != before:
            before = active[0]
            order.append(state.slots[state.tasks[before].pg * state.parameters.width].osd)
    return order


@pytest.mark.parametrize("seed", range(3))
def test_osds_lead_the_next_recovery_in_turn(seed: int) -> None:
    """So windows have PGs that pull and PGs that push, and not all of one OSD's before those of the next."""
    first = primaries(seed)[:9]
    assert all(set(first[place : place + 3]) == {0, 1, 2} for place in (0, 3, 6)), first
