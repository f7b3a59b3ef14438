from __future__ import annotations

import pytest

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.cluster.lock_holder import holder_of
from ceph_tuner.core.changes.lock import Claim, Holder, Lock
from ceph_tuner.core.changes.lock_owner import this_process
from ceph_tuner.core.knobs.releases import TENTACLE
from monitors import ManualClock, Monitors

BOB = Holder("bob", "host-b", "1:1")
HERE = this_process()
DEAD = Holder("alice", HERE.host, "1:0")
"""No process began before this machine did."""


@pytest.fixture
def cluster() -> Cluster:
    monitors = Monitors()
    return Cluster("a", object(), monitors, monitors.store, TENTACLE, "20.2.4", clock=ManualClock())  # type: ignore[arg-type]


def test_the_holder_is_whoever_has_the_lock(cluster: Cluster) -> None:
    assert holder_of(cluster) is None
    with Lock(cluster.store, cluster.clock, BOB, heartbeat=False):
        found = holder_of(cluster)
        assert found is not None
        assert found.holder == BOB
    assert holder_of(cluster) is None


@pytest.mark.parametrize(
    ("holder", "expires", "held"),
    [(BOB, 30.0, False), (BOB, -1.0, True), (DEAD, 30.0, True)],
    ids=["only wants it", "expired", "dead"],
)
def test_other_claims_are_passed_over_and_stay(cluster: Cluster, holder: Holder, expires: float, held: bool) -> None:
    now = cluster.clock.now()
    cluster.store.set("lock/1", Claim("lock/1", holder, now, now + expires, held).to_text())
    cluster.store.set("lock/2", "no claim")
    assert holder_of(cluster) is None
    assert cluster.store.keys("lock/") == ["lock/1", "lock/2"]
