"""Snaptrim: what a trim writes, and how threads get through to the one table of snapshots of an OSD."""

from __future__ import annotations

from dataclasses import replace
from typing import List, Tuple

import pytest
from audit import check

from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.twin.kernel import records
from ceph_tuner.twin.kernel.bluestore import submit
from ceph_tuner.twin.kernel.commits import commit_begins, trims_applied
from ceph_tuner.twin.kernel.events import new_item
from ceph_tuner.twin.kernel.snaptrim import ask_to_trim, clone_trimmed, trim_goes_on
from ceph_tuner.twin.kernel.state import SimulationState, over_objects
from ceph_tuner.twin.model import ClusterModel, Device, OsdModel, Pool, SnaptrimWork
from ceph_tuner.twin.simulation import Simulation

pytestmark = pytest.mark.usefixtures("kernel_compiled")

COMMIT_S = 4e-3
OSD = OsdModel(
    Device(50_000.0, 1e9, latency_s=0.0),
    shards=8,
    threads_per_shard=2,
    write_cpu_s=1.7e-4,
    trim_cpu_s=1.5e-4,
    reply_cpu_s=6e-5,
    kv_latency_s=COMMIT_S,
    trim_ios=0.0,
)
UNLIMITED: Settings = {"osd_mclock_scheduler_background_best_effort_lim": 0.0}


def trimming(osd: OsdModel = OSD, pgs: int = 16) -> ClusterModel:
    return ClusterModel(3, osd, (Pool("rbd", pgs),), snaptrim=(SnaptrimWork("rbd", 100_000),))


def trimmed(model: ClusterModel, seconds: float = 10.0, **chosen: int) -> float:
    """Clones a second; three OSDs have a copy each."""
    simulation = Simulation(model, {**UNLIMITED, **chosen}, 1)
    simulation.advance(seconds)
    check(simulation)
    return float(simulation.counters().trimmed.sum()) / seconds


def waiting_trims() -> Tuple[SimulationState, List[int]]:
    """A replica's trims, one of each PG, whose threads are about to read the table."""
    state = over_objects(Simulation(trimming(), {}, compiled=False)._tables)
    items = [new_item(state, records.TRIM_REPLICA, records.HIGH, 3 * pg + 1, 0, 0.0, 2819.0, 0.0) for pg in range(4)]
    for i in items:
        state.items[i].stage = records.PREPARES
    return state, items


def test_a_trim_s_transaction_has_no_data_and_is_one_request_in_the_throttle() -> None:
    """`_txc_calc_cost`: 1 I/O and 2 819 bytes."""
    state, items = waiting_trims()
    submit(state, items[0], 0, 1000.0)
    assert state.items[items[0]].throttle_bytes == 4000 + 2819
    slow = replace(OSD, device=Device(100.0, 1e9, latency_s=0.0), kv_ios=0.0, kv_bytes=0.0, trim_ios=1.0)
    assert trimmed(trimming(slow)) < 100
    assert trimmed(trimming(replace(slow, trim_ios=0.0))) > 4 * 100


def test_replicas_are_told_before_the_primary_reads() -> None:
    state, _ = waiting_trims()
    state.osds[0].snaps_writing = 1
    i = new_item(state, records.TRIM, records.BEST_EFFORT, 0, 0, 0.0, 0.0, 0.0)
    state.items[i].stage = records.PREPARES
    before = state.progress.message_tail
    assert trim_goes_on(state, i, 0, 1000.0) == records.WAITS
    assert state.progress.message_tail == before + state.tasks[0].copies - 1


def test_who_waits_to_read_keeps_out_who_wants_to_write() -> None:
    state, (first, second, third, _) = waiting_trims()
    assert trim_goes_on(state, first, 0, 1000.0) == records.GOES_ON
    assert state.osds[0].snaps_locked == 1
    # the first has read, and is about to write; nobody reads a table that is written to
    assert trim_goes_on(state, second, 0, 1000.0) == records.WAITS
    assert trim_goes_on(state, first, 0, 1000.0) == records.SUBMITS
    state.osds[0].snaps_writing = 0
    # one that has read as well finds a reader in its way
    state.items[third].stage = records.PREPARES
    assert trim_goes_on(state, third, 0, 1000.0) == records.WAITS
    assert state.osds[0].removing_head == third


def test_who_waits_to_read_goes_on_once_trims_are_applied_and_before_they_are_durable() -> None:
    """BlueStore::_kv_sync_thread: `_txc_apply_kv` of each transaction, then the drive."""
    state, (first, second, *_) = waiting_trims()
    state.parameters.trim_kv_cpu_s = 2e-3
    now = 1000.0
    for after in (records.GOES_ON, records.SUBMITS):
        assert trim_goes_on(state, first, 0, now) == after
    submit(state, first, 0, now)
    commit_begins(state, 0, now)
    assert trim_goes_on(state, second, 0, now) == records.WAITS
    when = {event.kind: event.time_s for event in state.events[: state.progress.heap_size]}
    assert when[records.TRIMS_APPLIED] == now + 2e-3 < when[records.COMMIT_ENDS]
    trims_applied(state, 0, now + 2e-3)
    assert state.items[second].stage == records.REMOVES


@pytest.mark.parametrize(("shards", "threads"), [(1, 5), (8, 2)])
def test_some_two_clones_go_with_a_commit_however_many_pgs_are_trimmed(shards: int, threads: int) -> None:
    """OSD logs: 1.9 of a commit on flash; on disks 2.0, with 2 to 10 PGs at a time."""
    osd = replace(OSD, shards=shards, threads_per_shard=threads)
    for pgs in (2, 4, 8):
        by_commit = trimmed(trimming(osd, 32), osd_max_trimming_pgs=pgs) * COMMIT_S
        assert 1.4 < by_commit < 3.0, (pgs, by_commit)


def test_a_trim_holds_its_pg_s_lock_while_it_waits() -> None:
    """Answers of replicas hold the second thread of the shard meanwhile (OSD::ShardedOpWQ::_process)."""
    simulation = Simulation(trimming(), {**UNLIMITED, "osd_pg_max_concurrent_snap_trims": 8}, 1)
    locked_out = 0
    for _ in range(500):
        simulation.advance(1e-3)
        slots = simulation._tables["slots"]
        locked_out += int((slots["waiting_head"] >= 0).any())
        assert (slots["held_by"][slots["waiting_head"] >= 0] >= 0).all()
    assert locked_out > 250


def lines(heads: int, clones: int) -> SimulationState:
    """One primary's three PGs, of which two may be trimmed at a time, begin in the order of their numbers."""
    acting = ((0, 1, 2),) * 3
    work = SnaptrimWork("rbd", clones, heads=heads)
    model = ClusterModel(3, OSD, (Pool("rbd", 3, acting=acting),), snaptrim=(work,))
    state = over_objects(Simulation(model, {}, compiled=False)._tables)
    for number in sorted(range(3), key=lambda number: state.tasks[number].pg):
        ask_to_trim(state, number)
    return state


def states(state: SimulationState) -> List[int]:
    return [task.state for task in sorted(state.tasks, key=lambda task: task.pg)]


def trim_snapshot(state: SimulationState, pg: int) -> None:
    """All clones of a PG's snapshot are trimmed, two by two, and then nothing is found."""
    (number,) = (number for number, task in enumerate(state.tasks) if task.pg == pg)
    task = state.tasks[number]
    while task.of_snapshot:
        for _ in range(task.pending):
            clone_trimmed(state, number, 1000.0)
    (i,) = (
        i for i in state.entering[: state.progress.entering] if state.items[i].owner == number
        and state.items[i].objects_left == 0
    )  # fmt: skip
    assert state.items[i].cost_bytes > 0
    assert trim_goes_on(state, i, 0, 1000.0) == records.FREE
    state.progress.entering = 0


def test_a_pg_gives_its_place_up_after_each_snapshot() -> None:
    """PrimaryLogPG::AwaitAsyncWork: what finds no clone left goes to NotTrimming, and asks for its place anew."""
    running, waiting = records.RUNNING, records.WAITING
    state = lines(heads=30, clones=60)
    assert states(state) == [running, running, waiting]
    trim_snapshot(state, 0)
    assert states(state) == [waiting, running, running]
    trim_snapshot(state, 1)
    assert states(state) == [running, waiting, running]
    trim_snapshot(state, 0)
    assert states(state) == [records.FINISHED, running, running]


def test_clones_of_one_snapshot_are_trimmed_without_a_break() -> None:
    state = lines(heads=60, clones=60)
    trim_snapshot(state, 0)
    assert states(state) == [records.FINISHED, records.RUNNING, records.RUNNING]


def test_pgs_with_many_snapshots_decline_alike() -> None:
    """Where each was trimmed to its end, those that are left last have no clones but large heads, and cost most."""
    work = SnaptrimWork("rbd", 16_000, 256 * 1024, clone_bytes=4096, heads=1600)
    acting = tuple((pg % 3, (pg + 1) % 3, (pg + 2) % 3) for pg in range(15))
    simulation = Simulation(ClusterModel(3, OSD, (Pool("rbd", 15, acting=acting),), snaptrim=(work,)), {}, 1)
    simulation.advance(20.0)
    left = simulation._tables["tasks"]["left"] / simulation._tables["tasks"]["total"]
    assert 0.2 < left.mean() < 0.8
    assert left.max() - left.min() < 0.35
