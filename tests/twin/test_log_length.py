"""Reef's BlueFS writes down the length of RocksDB's log after each commit: two writes, one after the other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ceph_tuner.core.knobs.releases import REEF, TENTACLE, Release
from ceph_tuner.twin.model import ClientStream, ClusterModel, Device, OsdModel, Pool
from ceph_tuner.twin.simulation import Simulation

pytestmark = pytest.mark.usefixtures("kernel_compiled")

IOPS, FLUSH_S = 500.0, 3e-3
OSD = OsdModel(Device(IOPS, 1e9, latency_s=1e-3, spread=0.0), 500.0, 1e9, shards=1, kv_latency_s=FLUSH_S)
MODEL = ClusterModel(1, OSD, (Pool("rbd", 1, 1),), (ClientStream("rbd", rate=20.0),))


def ran(model: ClusterModel) -> Simulation:
    simulation = Simulation(model, {})
    simulation.advance(30.0)
    return simulation


def mean_s(release: Release) -> float:
    (client,) = ran(replace(MODEL, release=release)).clients()
    return client.seconds / client.operations


def test_a_write_waits_for_a_further_one() -> None:
    """A lab of 18.2.8 made 881 writes of BlueFS for 441 commits, one of 20.2.4 one each; 16.2 ms in the place of 12."""
    assert mean_s(REEF) - mean_s(TENTACLE) == pytest.approx(1 / IOPS + FLUSH_S, rel=0.2)


def test_what_comes_meanwhile_waits_for_the_second_write_as_well() -> None:
    """One commit at a time: with two writes each, fewer commits hold what a busy client offers."""
    busy = replace(MODEL, clients=(ClientStream("rbd", depth=8),))
    reef, tentacle = (ran(replace(busy, release=release)).clients()[0] for release in (REEF, TENTACLE))
    assert reef.operations < 0.75 * tentacle.operations
