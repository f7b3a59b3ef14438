"""`ceph-tuner guardian` as it runs for days: what it takes back, what it says, and how it ends."""

from __future__ import annotations

import threading
from typing import Any, Callable, List

import pytest

from ceph_tuner.core.ceph.commands import CommandStore
from ceph_tuner.core.changes.guardian import KEY
from ceph_tuner.core.changes.lock import Holder
from ceph_tuner.core.changes.lock_owner import this_process
from ceph_tuner.core.errors import ClusterTimeout
from ceph_tuner_cli import guardian
from running_program import Run
from twin_cluster.cluster import TwinCluster
from twins import small_twin, trial_of


class Looks(threading.Event):
    """Ends after some looks; time passes on the twin between two."""

    def __init__(self, twin: TwinCluster, between: List[Callable[[], Any]]) -> None:
        super().__init__()
        self.twin, self.between, self.waits = twin, between, []  # type: ignore[var-annotated]

    def wait(self, timeout: Any = None) -> bool:
        self.waits.append(timeout)
        self.twin.clock.sleep(timeout)
        if not self.between:
            self.set()
        else:
            self.between.pop(0)()
        return self.is_set()


DEAD_HERE = Holder("mgr.x", this_process().host, "999999999:1")


def watching(monkeypatch: pytest.MonkeyPatch, twin: TwinCluster, *between: Callable[[], Any]) -> Looks:
    looks = Looks(twin, list(between))
    monkeypatch.setattr(guardian, "open_cluster", lambda name: twin)
    monkeypatch.setattr(guardian, "stopped_by_signals", lambda: looks)
    return looks


def test_it_takes_back_what_is_left_says_so_and_leaves_no_sign(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    twin = small_twin()
    before = twin.commander.mon("config dump", {})
    looks = watching(monkeypatch, twin, lambda: trial_of(twin, DEAD_HERE), lambda: None)
    code, out, err = run("guardian", "--cluster", "twin", "--every", "7")
    assert (code, out) == (0, "")
    assert "twin: watching, a look every 7 s" in err
    assert "change 1 (osd/host:h0, a trial) is taken back" in err
    assert looks.waits == [7.0, 7.0, 7.0]
    assert twin.commander.mon("config dump", {}) == before
    assert CommandStore(twin.commander).get(KEY) is None


def test_a_cluster_that_does_not_answer_is_asked_less_often_and_told_of_once(
    monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    twin = small_twin()
    mon, silent = twin.commander.mon, [True]

    def at_times(*words: Any, **more: Any) -> str:
        if silent[0]:
            raise ClusterTimeout("no quorum")
        return mon(*words, **more)

    monkeypatch.setattr(twin.commander, "mon", at_times)

    def answers() -> None:
        silent[0] = False

    nothing = lambda: None  # noqa: E731
    looks = watching(monkeypatch, twin, nothing, nothing, nothing, nothing, answers, nothing)
    code, _, err = run("guardian", "--cluster", "twin")
    assert code == 0
    assert err.count("no quorum") == 1
    assert err.count("it answers again") == 1
    assert looks.waits == [10.0, 20.0, 40.0, 60.0, 60.0, 5.0, 5.0]
