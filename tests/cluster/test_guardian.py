"""What the guardian does about a tuner that is gone, on the twin."""

from __future__ import annotations

import pytest

from ceph_tuner.core.ceph.commands import CommandStore
from ceph_tuner.core.changes.guardian import KEY, SIGN_S, Guardian, unguarded
from ceph_tuner.core.changes.lock import LEASE_S, PREFIX, Holder, Lock
from ceph_tuner.core.changes.lock_owner import may_live, this_process
from ceph_tuner.core.errors import Locked
from twin_cluster.cluster import TwinClock, TwinCluster
from twins import small_twin, trial_of

ELSEWHERE = Holder("mgr.x", "another host", "7:1234")
DEAD_HERE = Holder("mgr.x", this_process().host, "999999999:1")


def dump(twin: TwinCluster) -> str:
    return twin.commander.mon("config dump", {})


def seconds_until_taken_back(twin: TwinCluster, guardian: Guardian, every: float = 5.0) -> float:
    for looks in range(100):
        if guardian.look():
            return looks * every
        twin.clock.sleep(every)
    raise AssertionError("it was never taken back")


def test_what_a_process_of_this_host_left_is_taken_back_at_the_first_look() -> None:
    twin = small_twin()
    before = dump(twin)
    trial_of(twin, DEAD_HERE)
    assert dump(twin) != before
    guardian = Guardian(twin.commander, twin.clock)
    (undone,) = guardian.look()
    assert undone.entry.number == 1
    assert dump(twin) == before
    assert CommandStore(twin.commander).keys(PREFIX) == []
    assert guardian.look() == []


@pytest.mark.parametrize("jump", [-1e6, -3600.0, 0.0, 3600.0, 1e6])
def test_a_claim_from_elsewhere_ends_a_lease_after_it_was_renewed_last_whatever_the_clocks_say(jump: float) -> None:
    twin = small_twin()
    before = dump(twin)

    class Set(TwinClock):
        def now(self) -> float:
            return super().now() + jump

    guardian = Guardian(twin.commander, Set(twin.twin))
    trial_of(twin, ELSEWHERE)
    assert LEASE_S < seconds_until_taken_back(twin, guardian) <= LEASE_S + 10
    assert dump(twin) == before


def test_the_trial_of_a_process_that_renews_its_claim_is_left_alone() -> None:
    twin = small_twin()
    _, lock = trial_of(twin, ELSEWHERE)
    during, guardian = dump(twin), Guardian(twin.commander, twin.clock)
    for _ in range(60):
        assert guardian.look() == []
        twin.clock.sleep(9)
        lock.renew()
    assert dump(twin) == during
    lock.check()


def test_a_tuner_that_lives_after_all_writes_nothing_more() -> None:
    twin = small_twin()
    applier, _ = trial_of(twin, ELSEWHERE)
    plan = applier.plan("osd/host:h1", {"osd_max_scrubs": 2})
    seconds_until_taken_back(twin, Guardian(twin.commander, twin.clock))
    before = dump(twin)
    with pytest.raises(Locked):
        applier.apply(plan, "goes on", trial=True)
    assert dump(twin) == before


def test_what_is_left_waits_while_another_tuner_is_at_work() -> None:
    twin = small_twin()
    trial_of(twin, DEAD_HERE)
    store, guardian = CommandStore(twin.commander), Guardian(twin.commander, twin.clock)
    with Lock(store, twin.clock, Holder("somebody", "elsewhere", "1:1"), may_live, heartbeat=False):
        assert guardian.look() == []
    assert guardian.look()


def test_a_change_that_was_made_permanent_stays() -> None:
    twin = small_twin()
    applier, lock = trial_of(twin, DEAD_HERE)
    (entry,) = applier.history()
    applier.keep(entry)
    kept = dump(twin)
    lock.__exit__()
    assert Guardian(twin.commander, twin.clock).look() == []
    assert dump(twin) == kept


def test_a_note_says_that_nobody_watches_where_nobody_does() -> None:
    twin = small_twin()
    store = CommandStore(twin.commander)
    assert "ceph-tuner guardian" in unguarded(store, twin.clock.now())
    guardian = Guardian(twin.commander, twin.clock)
    guardian.look()
    assert unguarded(store, twin.clock.now()) == ""
    for _ in range(20):
        twin.clock.sleep(SIGN_S / 2)
        guardian.look()
        assert unguarded(store, twin.clock.now()) == ""
    twin.clock.sleep(4 * SIGN_S)
    assert unguarded(store, twin.clock.now())
    guardian.look()
    guardian.leave()
    assert unguarded(store, twin.clock.now())
    for hostile in ("", "[]", '{"at": "soon"}', '{"at": null}', '{"at": 1e400}', "\x00"):
        store.set(KEY, hostile)
        assert unguarded(store, twin.clock.now())
