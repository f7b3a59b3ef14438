"""`ceph-tuner lock`: who is at work, and what breaking the lock does to them."""

from __future__ import annotations

import json

import pytest

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.changes.lock import Holder, Lock
from ceph_tuner.core.errors import Locked
from ceph_tuner.core.knobs.releases import TENTACLE
from ceph_tuner_cli import cluster_option
from monitors import ManualClock, Monitors
from running_program import Run

BOB = Holder("bob", "host-b", "1:1")


@pytest.fixture
def monitors(monkeypatch: pytest.MonkeyPatch) -> Monitors:
    found = Monitors()
    cluster = Cluster("a", object(), found, found.store, TENTACLE, "20.2.4", clock=ManualClock())  # type: ignore[arg-type]
    monkeypatch.setattr(cluster_option, "open_cluster", lambda name: cluster)
    return found


def test_it_names_the_holder_or_nobody(run: Run, monitors: Monitors) -> None:
    assert run("lock", "show", "--cluster", "a")[:2] == (0, "nobody holds the lock\n")
    with Lock(monitors.store, ManualClock(), BOB, heartbeat=False):
        code, out, _ = run("lock", "show", "--cluster", "a", "--format", "json")
        (row,) = json.loads(out)
    assert (code, row["who"], row["host"], row["state"], row["generation"]) == (0, "bob", "host-b", "held", 1)


def test_breaking_shows_first_and_with_yes_stops_the_holder_and_lets_the_next_one_in(
    run: Run, monitors: Monitors
) -> None:
    monitors.store.values["lock/year"] = json.dumps(
        {"holder": {"name": "x", "host": "", "process": ""}, "since": 0, "expires": 1e300, "held": True}
    )
    monitors.store.values["lock/garbage"] = "["
    assert run("lock", "show", "--cluster", "a")[0] == 0
    del monitors.store.values["lock/year"], monitors.store.values["lock/garbage"]
    held = Lock(monitors.store, ManualClock(), BOB, heartbeat=False).__enter__()
    code, out, err = run("lock", "break", "--cluster", "a")
    assert (code, "bob" in out, "nothing is changed: --yes does it" in err) == (0, True, True)
    held.check()
    code, out, err = run("lock", "break", "--cluster", "a", "--yes")
    assert (code, "bob" in out, "writes nothing more" in err) == (0, True, True)
    assert monitors.store.keys("lock/") == []
    with pytest.raises(Locked, match="lost"):
        held.check()
    with Lock(monitors.store, ManualClock(), Holder("alice"), heartbeat=False):
        pass
