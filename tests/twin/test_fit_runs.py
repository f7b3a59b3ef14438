from __future__ import annotations

import numpy as np

from ceph_tuner.core.knobs.releases import TENTACLE
from ceph_tuner.twin.fit_runs import Runner
from ceph_tuner.twin.model import MIB, ClientStream, ClusterModel, Device, OsdModel, Pool
from ceph_tuner.twin.observations import SimulatedRun

MODEL = ClusterModel(3, OsdModel(Device(1000, 60 * MIB), shards=1), (Pool("a", 16),), (ClientStream("a", rate=100),))


def test_runs_give_the_same_on_several_cores_and_in_their_order() -> None:
    metrics = ("client.iops", "client.mean_ms")
    runs = [SimulatedRun(MODEL, dict(TENTACLE.profiles["balanced"]), 2.0, 0.5, seed, metrics) for seed in range(8)]
    with Runner(1) as alone, Runner(2) as together:
        one, two = alone(runs), together(runs)
        assert alone.runs == together.runs == len(runs)
    assert np.array_equal(np.asarray(one), np.asarray(two))
    assert len({float(row[1]) for row in one}) == len(runs)
