"""Writing and taking back on a twin: the applier's laws, and what the simulated schedulers do, not what they say."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Callable, Dict, List, Mapping, Tuple

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from appliers import Kill, Killed
from ceph_tuner.core.ceph.commands import CommandConfig, CommandStore
from ceph_tuner.core.changes.applier import Applier
from ceph_tuner.core.changes.journal import APPLIED, UNDONE
from ceph_tuner.core.changes.lock import Holder, Lock
from ceph_tuner.core.changes.plan import ChangePlan
from ceph_tuner.core.errors import InputError, Locked
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import REEF, TENTACLE, Release, Settings, Value, nine
from ceph_tuner.twin.model import MIB, ClientStream, Pool, ScrubWork
from ceph_tuner.twin.simulation import Simulation
from monitors import Table
from test_applier_laws import databases, some_settings
from twin_cluster.cluster import TwinClock, TwinCluster, TwinCommander, twin_cluster
from twins import CLIENT, small_model, small_twin

CUSTOM: Dict[str, Value] = nine((0.3, 3, 0.8), (0.2, 1, 0.5), (0.05, 1, 0.4))
SLOW: Dict[str, Value] = nine((0.05, 1, 0.05), (0.5, 1, 0), (0, 1, 0))
LIMIT = "osd_mclock_scheduler_client_lim"
WRITES = ("config set", "config rm", "config-key set", "config-key rm")


def used(twin: TwinCommander) -> List[Settings]:
    """What each simulated OSD works by."""
    return [twin.simulation.settings_of(osd) for osd in range(twin.simulation.osds)]


def dump(twin: TwinCommander) -> str:
    return twin.mon("config dump", {})


def served(twin: TwinCluster, seconds: float = 10.0) -> float:
    """Client operations per second."""
    before = twin.twin.counters()
    twin.clock.sleep(seconds)
    after = twin.twin.counters()
    done = after.read_ops + after.write_ops - before.read_ops - before.write_ops
    return float(done.sum()) / (after.at - before.at)


@pytest.mark.parametrize("release", [REEF, TENTACLE], ids=str)
@pytest.mark.parametrize("lag_s", [0.0, 2.0])
@pytest.mark.parametrize("target", ["osd", "osd/host:h1", "osd/class:ssd", "osd.2"])
def test_what_is_applied_takes_effect_in_the_schedulers_and_is_undone_byte_for_byte(
    release: Release, lag_s: float, target: str
) -> None:
    twin = small_twin(release=release, lag_s=lag_s)
    for who, name, value in (("osd", "osd_max_scrubs", "4"), ("osd/host:elsewhere", LIMIT, "0.7")):
        twin.config.set(who, name, value)
    twin.clock.sleep(3)
    before, schedulers = dump(twin.twin), used(twin.twin)
    applier = twin.applier()
    assert applier.apply(applier.plan(target, {**CUSTOM, "osd_max_scrubs": 2})) is not None
    covered = twin.config.osds(target)
    for osd, found in enumerate(used(twin.twin)):
        assert found == ({**schedulers[osd], **CUSTOM, "osd_max_scrubs": 2} if osd in covered else schedulers[osd])
    applier.undo()
    assert dump(twin.twin) == before
    assert used(twin.twin) == schedulers


def test_a_limit_holds_clients_back_at_once_and_its_undoing_lets_them_go() -> None:
    twin = small_twin(clients=(ClientStream("rbd", depth=32),))
    free = served(twin)
    applier = twin.applier()
    applier.apply(applier.plan("osd", SLOW))
    twin.clock.sleep(2)
    assert served(twin) < free / 4
    applier.undo()
    twin.clock.sleep(2)
    assert served(twin) > 0.8 * free


def test_going_back_in_the_documented_order_leaves_the_schedulers_behind() -> None:
    """As measured on 18.2.7 and 20.2.4 (docs/safe-writes.md)."""
    twin = small_twin(clients=(ClientStream("rbd", depth=32),))
    before = served(twin)
    twin.config.set("osd", PROFILE, "custom")
    for name, value in SLOW.items():
        twin.config.set("osd", name, str(value))
    twin.clock.sleep(2)
    limited = served(twin)
    assert limited < before / 4
    twin.config.set("osd", PROFILE, "balanced")
    for name in MCLOCK_NINE:
        twin.config.remove("osd", name)
    twin.clock.sleep(2)
    shown = twin.config.effective(0)
    assert float(shown[LIMIT]) == 0
    assert shown[PROFILE] == "balanced"
    assert served(twin) == pytest.approx(limited, rel=0.2)
    twin.config.set("osd", PROFILE, "custom")
    twin.config.set("osd", PROFILE, "balanced")
    twin.clock.sleep(2)
    assert served(twin) > 0.8 * before


def test_a_rollback_repairs_what_the_documented_order_left() -> None:
    twin = small_twin()
    schedulers = used(twin.twin)
    applier = twin.applier()
    applier.apply(applier.plan("osd", CUSTOM))
    twin.config.set("osd", PROFILE, "balanced")
    for name in MCLOCK_NINE:
        twin.config.remove("osd", name)
    assert used(twin.twin) != schedulers
    applier.undo()
    assert used(twin.twin) == schedulers


def test_under_a_built_in_profile_the_osds_remove_a_changed_one_of_the_nine_but_not_under_a_mask() -> None:
    twin = small_twin()
    schedulers = used(twin.twin)
    twin.config.set("osd", LIMIT, "0.5")
    twin.config.set("osd.1", LIMIT, "0.5")
    assert not [entry for entry in twin.config.dump() if entry.name == LIMIT]
    twin.config.set("osd/host:h1", LIMIT, "0.5")
    assert [entry.who for entry in twin.config.dump() if entry.name == LIMIT] == ["osd/host:h1"]
    assert float(twin.config.effective(1)[LIMIT]) == 0.5
    assert used(twin.twin) == schedulers


def test_custom_by_itself_changes_nothing_until_a_restart_makes_it_0_1_0() -> None:
    twin = small_twin({PROFILE: "high_client_ops"})
    schedulers = used(twin.twin)
    twin.config.set("osd", PROFILE, "custom")
    assert used(twin.twin) == schedulers
    twin.twin.restart(0)
    assert {name: used(twin.twin)[0][name] for name in MCLOCK_NINE} == nine((0, 1, 0), (0, 1, 0), (0, 1, 0))
    assert used(twin.twin)[1] == schedulers[1]


def test_recovery_limits_are_removed_again_unless_they_are_overridden() -> None:
    twin = small_twin()
    before = dump(twin.twin)
    twin.config.set("osd", "osd_max_backfills", "7")
    twin.config.set("osd.2", "osd_recovery_max_active_ssd", "7")
    assert dump(twin.twin) == before
    assert used(twin.twin)[2]["osd_max_backfills"] == 1
    twin.config.set("osd", "osd_mclock_override_recovery_settings", "true")
    twin.config.set("osd", "osd_max_backfills", "7")
    assert used(twin.twin)[2]["osd_max_backfills"] == 7


def test_a_knob_of_scrub_acts_on_the_scrub() -> None:
    """As in the lab: the limit bounds its rate."""
    twin = small_twin(scrub=(ScrubWork("rbd", 4000, MIB),), pools=(Pool("rbd", 32, 2),))

    def scrubbed(seconds: float = 20.0) -> float:
        before = float(twin.twin.counters().scrub_bytes.sum())
        twin.clock.sleep(seconds)
        return (float(twin.twin.counters().scrub_bytes.sum()) - before) / seconds

    twin.clock.sleep(10)
    free = scrubbed()
    applier = twin.applier()
    applier.apply(applier.plan("osd", nine((0.5, 8, 0), (0.2, 1, 0.5), (0.05, 1, 0.1))))
    twin.clock.sleep(5)
    assert scrubbed() < 0.5 * free


class Wire:
    """Passes commands on to a twin, so that a test can cut it before or after any write."""

    def __init__(self, twin: TwinCommander) -> None:
        self.twin = twin
        self.before_write: Callable[[], None] = lambda: None
        self.after_write: Callable[[], None] = lambda: None

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        if prefix not in WRITES:
            return self.twin.mon(prefix, arguments, payload)
        self.before_write()
        answer = self.twin.mon(prefix, arguments, payload)
        self.after_write()
        return answer

    def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
        return self.twin.tell(daemon, prefix, arguments)

    def cut_at(self, number: int, landed: bool) -> Kill:
        kill = Kill(number, landed)
        self.before_write, self.after_write = kill.before, kill.after
        return kill

    def applier(self, name: str) -> Applier:
        config, store, clock = CommandConfig(self), CommandStore(self), TwinClock(self.twin)
        lock = Lock(store, clock, Holder(name), lambda holder: holder.name == name, heartbeat=False)
        return Applier(config, store, clock, lock, self.twin.release, name)


# no clients and no work: these laws are about settings, and an idle twin's time costs nothing
IDLE = small_model(clients=())
law = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)
targets = st.sampled_from(["osd", "osd/class:ssd", "osd/host:h0", "osd.1"])
lags = st.sampled_from([0.0, 1.5])


def wired(table: Table, lag_s: float) -> Wire:
    # OSDs that boot with such a database; what they remove from it at once is gone before the test begins
    return Wire(TwinCommander(Simulation(IDLE, {}), table, lag_s=lag_s))


def planned(applier: Applier, target: str, wanted: Mapping[str, object]) -> ChangePlan:
    try:
        plan = applier.plan(target, wanted)
    except InputError:
        assume(False)
        raise
    assume(not any("under custom without" in warning for warning in plan.warnings))
    return plan


def state(wire: Wire) -> Tuple[str, List[Settings]]:
    return dump(wire.twin), used(wire.twin)


@pytest.mark.slow
@law
@given(databases(), targets, some_settings(), lags)
def test_apply_then_undo_is_identity_of_database_and_schedulers(
    table: Table, target: str, wanted: Dict[str, Value], lag_s: float
) -> None:
    wire = wired(table, lag_s)
    before, schedulers = state(wire), used(wire.twin)
    plan = planned(wire.applier("one"), target, wanted)
    entry = wire.applier("one").apply(plan)
    config = CommandConfig(wire)
    for osd in plan.osds:
        shown, found = config.effective(osd), used(wire.twin)[osd]
        assert {name: shown[name] for name in plan.expected} == plan.expected
        # what is asleep under a built-in profile is shown, and not used
        source = shown if PROFILE in plan.expected else schedulers[osd]
        assert {name: float(found[name]) for name in MCLOCK_NINE} == {name: float(source[name]) for name in MCLOCK_NINE}
    if entry is not None:
        (undone,) = wire.applier("one").undo()
        assert undone.drift == ()
        assert undone.unseen == ()
    wire.twin.advance(5)
    assert state(wire) == before


@pytest.mark.slow
@law
@given(databases(), targets, some_settings(), st.data(), lags)
def test_killed_at_any_write_the_next_run_leaves_it_as_before_or_as_planned(
    table: Table, target: str, wanted: Dict[str, Value], data: st.DataObject, lag_s: float
) -> None:
    wire = wired(table, lag_s)
    before = state(wire)
    plan = planned(wire.applier("one"), target, wanted)
    assume(plan.steps)
    landed = data.draw(st.booleans(), "its last write landed")
    kill = wire.cut_at(data.draw(st.integers(1, len(plan.steps) + 12), "apply dies at"), landed)
    try:
        wire.applier("dead").apply(plan)
    except Killed:
        wire.cut_at(data.draw(st.integers(1, len(plan.steps) + 20), "recover dies at"), landed)
        with suppress(Killed):
            wire.applier("dead too").recover()
        wire.before_write = wire.after_write = lambda: None
        wire.applier("alive").recover()
        wire.twin.advance(5)
        entries = wire.applier("alive").history()
        if not entries or entries[-1].state == UNDONE:
            assert state(wire) == before
        else:
            assert entries[-1].state == APPLIED
            assert wire.applier("alive").plan(target, wanted).steps == ()
    else:
        assert not kill.dead


def test_two_tuners_do_not_write_at_the_same_time_and_a_dead_ones_claim_runs_out() -> None:
    twin = twin_cluster(small_model(clients=(CLIENT,)))
    other = Lock(twin.store, twin.clock, Holder("somebody", "elsewhere", "1:2"), heartbeat=False)
    applier = twin.applier()
    plan = applier.plan("osd", CUSTOM)
    with other:
        with pytest.raises(Locked, match="another tuner is at work"):
            applier.apply(plan)
        twin.clock.sleep(31)
        # it had not renewed its claim, so it counts as dead
        assert applier.apply(plan) is not None
    assert json.loads(dump(twin.twin))
