"""What the guardian does about a mgr that is gone, on the twin."""

from __future__ import annotations

from typing import Tuple

import pytest

from ceph_tuner.core.ceph.commands import CommandConfig, CommandStore
from ceph_tuner.core.changes.applier import Applier
from ceph_tuner.core.changes.guardian import NoRadosError, RadosCommander, take_back, withdraw
from ceph_tuner.core.changes.lock import PREFIX, Holder, Lock, generation_of
from ceph_tuner.core.changes.lock_owner import may_live
from ceph_tuner.core.errors import Locked
from ceph_tuner.core.knobs.releases import TENTACLE
from twin_cluster.cluster import TwinClock, TwinCluster
from twins import small_twin

MGR = Holder("the mgr", "its host", "7:1234")
GONE = (MGR.host, MGR.process)


def trial_of(twin: TwinCluster, holder: Holder) -> Tuple[Applier, Lock]:
    """A trial that is in force, its owner's lock held as by a process that was killed."""
    config, store = CommandConfig(twin.commander), CommandStore(twin.commander)
    lock = Lock(store, twin.clock, holder, may_live, heartbeat=False)
    applier = Applier(config, store, twin.clock, lock, TENTACLE, holder.name)
    lock.__enter__()
    assert applier.apply(applier.plan("osd/host:h0", {"osd_max_scrubs": 2}), "a trial", trial=True)
    return applier, lock


def test_what_a_mgr_left_is_taken_back_and_its_claim_withdrawn() -> None:
    twin = small_twin()
    before = twin.commander.mon("config dump", {})
    trial_of(twin, MGR)
    assert twin.commander.mon("config dump", {}) != before
    done = take_back(twin.commander, twin.clock, GONE, generation_of(CommandStore(twin.commander)), "the guardian")
    assert [undone.entry.number for undone in done] == [1]
    assert twin.commander.mon("config dump", {}) == before
    assert CommandStore(twin.commander).keys(PREFIX) == []
    assert (
        take_back(twin.commander, twin.clock, GONE, generation_of(CommandStore(twin.commander)), "the guardian") == []
    )


@pytest.mark.parametrize("jump", [-1e6, -3600.0, 3600.0, 1e6])
def test_a_clock_that_was_set_meanwhile_keeps_it_from_nothing(jump: float) -> None:
    twin = small_twin()
    before = twin.commander.mon("config dump", {})
    trial_of(twin, MGR)

    class Set(TwinClock):
        def now(self) -> float:
            return super().now() + jump

    assert take_back(twin.commander, Set(twin.twin), GONE, generation_of(CommandStore(twin.commander)), "the guardian")
    assert twin.commander.mon("config dump", {}) == before


def test_a_mgr_that_lives_after_all_writes_nothing_more() -> None:
    twin = small_twin()
    applier, _ = trial_of(twin, MGR)
    plan = applier.plan("osd/host:h1", {"osd_max_scrubs": 2})
    take_back(twin.commander, twin.clock, GONE, generation_of(CommandStore(twin.commander)), "the guardian")
    before = twin.commander.mon("config dump", {})
    with pytest.raises(Locked):
        applier.apply(plan, "goes on", trial=True)
    assert twin.commander.mon("config dump", {}) == before


def test_a_trial_that_another_mgr_has_begun_since_is_left_alone() -> None:
    twin = small_twin()
    left = generation_of(CommandStore(twin.commander))
    twin.clock.sleep(40)
    trial_of(twin, Holder("another mgr", "another host", "8:99"))
    during = twin.commander.mon("config dump", {})
    assert take_back(twin.commander, twin.clock, GONE, left, "the guardian") == []
    assert twin.commander.mon("config dump", {}) == during


def test_what_is_left_waits_while_another_tuner_is_at_work() -> None:
    twin = small_twin()
    _, left = trial_of(twin, MGR)
    withdraw(CommandStore(twin.commander), GONE, 1)
    store = CommandStore(twin.commander)
    with Lock(store, twin.clock, Holder("somebody", "elsewhere", "1:1"), heartbeat=False), pytest.raises(Locked):
        take_back(twin.commander, twin.clock, GONE, generation_of(CommandStore(twin.commander)), "the guardian")
    assert take_back(twin.commander, twin.clock, GONE, generation_of(CommandStore(twin.commander)), "the guardian")
    with pytest.raises(Locked):
        left.check()


def test_only_claims_of_that_process_from_before_are_withdrawn() -> None:
    twin = small_twin()
    store = CommandStore(twin.commander)
    with Lock(store, twin.clock, MGR, heartbeat=False) as lock:
        withdraw(store, (MGR.host, "7:9999"), 1)
        withdraw(store, GONE, 0)
        lock.check()
        withdraw(store, GONE, 1)
        with pytest.raises(Locked):
            lock.check()


def test_where_there_is_no_way_to_the_cluster_it_says_so() -> None:
    with pytest.raises(NoRadosError):
        RadosCommander({"name": "mgr.nobody", "conf": "/no/such/file", "mon_host": "127.0.0.1:1", "key": "none"})
