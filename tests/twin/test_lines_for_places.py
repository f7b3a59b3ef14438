"""PGs stand in line for the places of recovery and backfill (osd_max_backfills), and keep what they have meanwhile.

Sources of 20.2: PeeringState::WaitLocalRecoveryReserved, WaitRemoteRecoveryReserved and those of backfill ask one OSD
after the other, in the order of a std::set; AsyncReserver serves who asked first.
"""

from __future__ import annotations

from collections import Counter
from typing import List, Sequence, Tuple

import pytest

from ceph_tuner.twin.kernel import records, recovery
from ceph_tuner.twin.kernel.state import SimulationState, over_objects
from ceph_tuner.twin.model import MIB, ClusterModel, Device, OsdModel, Pool, RecoveryWork
from ceph_tuner.twin.simulation import Simulation

Acting = Tuple[int, ...]
OSD = OsdModel(Device(1000.0, 1e8), shards=1)
LAB: Sequence[Acting] = ((0, 1), (1, 2), (2, 0), (0, 2), (1, 0), (2, 1))
"""Of the lab's backfill: a third of six PGs is led by each OSD, and a third moves to each."""


def state_of(acting: Sequence[Acting], kind: int = records.DEGRADED, osds: int = 3) -> SimulationState:
    """PGs that wait at their primaries; the last of each one's OSDs takes objects in."""
    pool = Pool("rbd", len(acting), len(acting[0]), acting=tuple(acting))
    degraded = kind == records.DEGRADED
    return waiting(ClusterModel(osds, OSD, (pool,), recovery=(RecoveryWork("rbd", 6000, MIB, degraded=degraded),)))


def waiting(model: ClusterModel) -> SimulationState:
    state = over_objects(Simulation(model, {}, compiled=False)._tables)
    for task in state.tasks:
        task.state, task.target = records.WAITING, task.copies - 1
    return state


def states(state: SimulationState) -> List[int]:
    return [task.state for task in sorted(state.tasks, key=lambda task: task.pg)]


def begin(state: SimulationState, *pgs: int) -> None:
    """They ask for their places, in this order."""
    others = [task for task in state.tasks if task.state == records.WAITING]
    for task in others:
        task.state = records.DISABLED
    for pg in pgs:
        (task,) = (each for each in others if each.pg == pg)
        task.state = records.WAITING
        recovery.start_recoveries(state, task.kind, state.slots[pg * state.parameters.width].osd)
    for task in others:
        task.state = records.WAITING if task.state == records.DISABLED else task.state


def end(state: SimulationState, pg: int) -> None:
    (number,) = (number for number, task in enumerate(state.tasks) if task.pg == pg)
    state.osds[state.slots[pg * state.parameters.width].osd].recovering += 1
    recovery._finish(state, number, 1000.0)
    recovery.recovery_places_free(state)


def test_a_pg_that_waits_for_its_target_keeps_others_of_its_primary_from_theirs() -> None:
    """PG 4 waits for osd.0, where PG 2 goes; so PG 1, whose osd.2 is free, does not begin."""
    state = state_of(LAB, records.MISPLACED)
    begin(state, 0, 2, 4)
    recovery.start_recoveries(state, records.MISPLACED, 1)
    assert states(state) == [
        records.RUNNING, records.WAITING, records.RUNNING, records.WAITING, records.RESERVING, records.WAITING
    ]  # fmt: skip
    assert [osd.local_backfills for osd in state.osds] == [1, 1, 1]
    assert [osd.remote_backfills for osd in state.osds] == [1, 1, 0]


def test_who_asked_first_goes_first_and_the_next_of_the_primary_last() -> None:
    """PG 3 would go to osd.2 as PG 1 does; osd.0 leads PG 0 and 3."""
    state = state_of([(0, 2), (1, 2), (3, 2), (0, 2)], osds=4)
    begin(state, 0, 1, 2)
    assert states(state) == [records.RUNNING, records.RESERVING, records.RESERVING, records.WAITING]
    end(state, 0)
    assert states(state) == [records.FINISHED, records.RUNNING, records.RESERVING, records.RESERVING]
    end(state, 1)
    assert states(state)[2:] == [records.RUNNING, records.RESERVING]


def test_replicas_are_asked_by_their_numbers_and_what_is_had_is_kept() -> None:
    """PG 1 has osd.1, for which PG 2 waits in vain, and waits for osd.2 itself."""
    state = state_of([(0, 2), (3, 2), (4, 1)], osds=5)
    state.osds[1].remote_backfills = 1
    begin(state, 0, 1, 2)
    assert states(state) == [records.RUNNING, records.RESERVING, records.RESERVING]
    whole = state_of([(0, 3, 2), (4, 2, 1), (5, 1, 3)], osds=6)
    begin(whole, 0, 1, 2)
    tasks = sorted(whole.tasks, key=lambda task: task.pg)
    assert states(whole) == [records.RUNNING, records.RESERVING, records.RESERVING]
    assert [task.asked_osd for task in tasks[1:]] == [2, 1]
    assert [osd.remote_backfills for osd in whole.osds] == [0, 1, 1, 1, 0, 0]


def test_recovery_goes_before_backfill() -> None:
    """PG 2 is backfilled, and asks for osd.2 before PG 1 does."""
    pools = (Pool("rbd", 2, 2, acting=((0, 2), (3, 2))), Pool("other", 1, 2, acting=((1, 2),)))
    recoveries = (RecoveryWork("rbd", 600, MIB), RecoveryWork("other", 600, MIB, degraded=False))
    state = waiting(ClusterModel(4, OSD, pools, recovery=recoveries))
    begin(state, 0, 2, 1)
    assert states(state) == [records.RUNNING, records.RESERVING, records.RESERVING]
    end(state, 0)
    assert states(state) == [records.FINISHED, records.RUNNING, records.RESERVING]


@pytest.mark.usefixtures("kernel_compiled")
def test_of_six_pgs_two_are_backfilled_at_a_time_and_sometimes_three() -> None:
    """By their rates two were in 20 windows of `repeatability-six-pgs.jsonl`, on three drives, and three in 7."""
    model = ClusterModel(
        3,
        OSD,
        (Pool("rbd", 6, 2, acting=tuple(LAB)),),
        recovery=(RecoveryWork("rbd", 60_000, MIB, degraded=False),),
    )
    at_once: Counter[int] = Counter()
    for seed in range(40):
        simulation = Simulation(model, {}, seed)
        simulation.advance(1.0)
        at_once[int(sum(simulation._tables["tasks"]["state"] == records.RUNNING))] += 1
    assert set(at_once) == {2, 3}
    # by the six PGs' first choices it is one in four
    assert 4 <= at_once[3] <= 17
