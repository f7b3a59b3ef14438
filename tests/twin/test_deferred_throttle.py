"""Hard disks with RocksDB on flash under more small writes than they take: what they owe is bounded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from audit import check

from ceph_tuner.twin.knobs_in_force import limits_of
from ceph_tuner.twin.model import MIB, ClientStream, ClusterModel, Device, OsdModel, Pool
from ceph_tuner.twin.simulation import Simulation

DISK = Device(250.0, 115e6, latency_s=12.7e-3, read_latency_s=12.7e-3)
FLASH = Device(50_000.0, 1e9, latency_s=2e-5)
OSD = OsdModel(DISK, 340.0, 150.0 * MIB, 5, 1, "hdd", db=FLASH, throttle_bytes=40.0 * MIB)


def full(disk: Device = DISK) -> ClusterModel:
    return ClusterModel(4, replace(OSD, device=disk), (Pool("rbd", 64),), clients=(ClientStream("rbd", depth=64),))


def run(model: ClusterModel, seconds: float = 60.0, **chosen: Any) -> Simulation:
    simulation = Simulation(model, {"bluestore_throttle_deferred_bytes": 40 * MIB, **chosen}, 2)
    for _ in range(12):
        simulation.advance(seconds / 12)
        check(simulation)
    return simulation


def iops(simulation: Simulation) -> float:
    return simulation.clients()[0].operations / simulation.now


def test_so_many_deferred_writes_are_under_way_as_their_throttle_holds() -> None:
    # each costs 670 000 and its own bytes
    assert limits_of({"bluestore_throttle_deferred_bytes": 40 * MIB}, full()).deferred_most == 62
    assert limits_of({}, full()).deferred_most == 199
    held = run(full())._tables["osds"]["deferred_held"]
    assert 0 < held.max() <= 62


@pytest.mark.parametrize("caches_writes", [False, True])
def test_clients_get_what_the_disks_can_write_and_not_what_the_log_can(caches_writes: bool) -> None:
    disk = replace(DISK, caches_writes=caches_writes)
    found = iops(run(full(disk)))
    # of four disks at 250 a second, three write each; the fullest of them holds up all
    assert 0.7 * 4 * 250 / 3 < found < 1.15 * 4 * 250 / 3
    assert iops(run(full(replace(disk, iops=125.0)))) == pytest.approx(found / 2, rel=0.2)


def waiting(caches_writes: bool) -> float:
    """Items in the shards' queues, by looks."""
    simulation = Simulation(full(replace(DISK, caches_writes=caches_writes)), {}, 2)
    looks = []
    for _ in range(100):
        simulation.advance(0.5)
        looks.append(int(simulation._tables["shards"]["queued"].sum()))
    return sum(looks) / len(looks)


def test_behind_a_flush_operations_wait_for_their_commit_and_not_in_the_queues() -> None:
    """BlueStore's commit thread flushes the disk; who waits for it holds no thread."""
    assert waiting(caches_writes=True) < 0.25 * waiting(caches_writes=False)


def test_few_writes_wait_for_no_flush_unless_a_batch_went_before() -> None:
    few = replace(full(replace(DISK, caches_writes=True)), clients=(ClientStream("rbd", rate=5.0),))
    simulation = run(few, 120.0, bluestore_max_defer_interval=0.0, bluestore_deferred_batch_ops_hdd=1000)
    client = simulation.clients()[0]
    assert client.seconds / client.operations < 0.05
