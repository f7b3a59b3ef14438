"""Whatever happens: a boost ends in time, and the cluster is byte for byte as before it, each shard of each OSD too."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any, Dict, Optional, Tuple

import pytest
from boosts import HOUR, begin, executor, request, seen
from flights import Field
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule
from mortal_mgrs import MortalMgrs, field_on

from appliers import TABLES, Killed, kill_at, survive
from ceph_tuner.core.autopilot.events import OperatorCommand
from ceph_tuner.core.boost.executor import BY, KEY, BoostExecutor
from ceph_tuner.core.boost.state import OFF, ON, BoostState
from ceph_tuner.core.changes.journal import APPLIED, Entry
from ceph_tuner.core.errors import TunerError
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import nine

EXAMPLES = int(os.environ.get("CEPH_TUNER_EXAMPLES", "25"))

_SETTINGS: Dict[str, Dict[str, Any]] = {
    "a profile": {PROFILE: "high_recovery_ops"},
    "more at once": {
        PROFILE: "high_recovery_ops",
        "osd_mclock_override_recovery_settings": True,
        "osd_max_backfills": 4,
    },
    "custom values": nine((0.1, 1, 0), (0.6, 4, 0), (0.1, 1, 0)),
    "a knob": {"osd_max_scrubs": 6},
    "in force already": {PROFILE: "balanced"},
    "nonsense": {"osd_max_scrubs": -5},
}
assert set(MCLOCK_NINE) <= _SETTINGS["custom values"].keys()


class Boosted(MortalMgrs):
    """One cluster with boosts, mgrs that die at any write, and monitors that fail."""

    @initialize(table=st.sampled_from(sorted(TABLES)), batch=st.integers(1, 4))
    def start(self, table: str, batch: int) -> None:
        self.open(field_on(table), batch)

    def new_executor(self, name: str) -> BoostExecutor:
        return executor(self.field, name)

    # what goes on

    def about_to_store(self, key: str, value: str) -> None:
        """Nothing is written but for a boost that the store knows of."""
        if key.startswith("journal/") and key not in self.field.store.values:
            assert Entry.from_text(key, value).who.endswith(BY)
            stored = BoostState.from_dict(json.loads(self.field.store.values[KEY]))
            assert stored.writing
            assert self.clock.now() < stored.ends_at

    # rules

    @rule(wanted=st.sampled_from(sorted(_SETTINGS)), at_most=st.sampled_from([60.0, HOUR]))
    def begins(self, wanted: str, at_most: float) -> None:
        if self.executor is not None and self.executor.state.phase == OFF:
            self.handle(begin(self.clock.now(), request(at_most_s=at_most), **_SETTINGS[wanted]))

    @rule(left=st.sampled_from([0.0, 500.0, None]), seconds=st.sampled_from([5.0, 30.0, 90.0]))
    def looks(self, left: Optional[float], seconds: float) -> None:
        self.clock.sleep(seconds)
        self.handle(seen(self.clock.now(), left))

    @rule(rule=st.sampled_from(["slo", "blind", "drift"]))
    def a_breach(self, rule: str) -> None:
        self.handle(seen(self.clock.now(), 500.0, rule))

    @rule()
    def cancels(self) -> None:
        self.handle(OperatorCommand(self.clock.now(), "cancel", "alice"))

    # laws

    @invariant()
    def what_is_changed_is_in_the_journal(self) -> None:
        changed = {key for key in {*self.table, *self.monitors.table} if self.differs(key)}
        entries = [entry for entry in self.field.entries() if entry.unfinished or entry.state == APPLIED]
        # a shard that is made to read again holds a bandwidth for a moment: it is in the entry's steps or restores
        known = {item.key for entry in entries for item in (*entry.steps, *entry.restores)}
        assert changed <= known
        assert all(entry.trial or entry.unfinished for entry in entries)

    @invariant()
    def off_is_off(self) -> None:
        if self.executor is not None and self.executor.state.phase == OFF and not self.troubled:
            assert self.monitors.table == self.table

    def differs(self, key: Tuple[str, str]) -> bool:
        return self.table.get(key) != self.monitors.table.get(key)

    def teardown(self) -> None:
        """A mgr lives, the monitors answer and time goes on: then all is as before, whatever was."""
        if not hasattr(self, "field"):
            return
        self.revive()
        # 8 hours of samples, of a cluster that never becomes clean
        for _ in range(8):
            self.clock.sleep(HOUR)
            self.handle(seen(self.clock.now(), 500.0))
        assert self.executor is not None
        assert self.executor.state.phase == OFF
        self.assert_untouched()
        assert self.field.on_trial() == []


TestBoosted = Boosted.TestCase
TestBoosted.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)


@pytest.mark.parametrize("at", range(28, 40))
def test_a_mgr_that_is_killed_while_it_lets_the_lock_go_leaves_nothing(at: int) -> None:
    boosted = Boosted()
    boosted.start(table="a built-in profile", batch=1)
    boosted.monitors_fail(passed=7)
    boosted.begins(at_most=60.0, wanted="a profile")
    boosted.a_breach(rule="slo")
    boosted.monitors_answer()
    boosted.will_be_killed(at=at, landed=False)
    boosted.looks(left=0.0, seconds=5.0)
    boosted.begins(at_most=60.0, wanted="a knob")
    boosted.cancels()
    boosted.teardown()


def _fly(field: Field, name: str) -> None:
    """Begin where none has begun, and go on to the end."""
    one = executor(field, name)
    one.start()
    if one.state.phase == OFF and not field.recorder.notes:
        one.handle(begin(field.clock.now(), **_SETTINGS["more at once"]))
    for left in (800.0, 400.0, 0.0, 0.0, 0.0):
        field.clock.sleep(35.0)
        one.handle(seen(field.clock.now(), left))


@pytest.mark.slow
@pytest.mark.parametrize("landed", [False, True])
@pytest.mark.parametrize("table", sorted(TABLES))
def test_it_survives_a_kill_at_every_boundary(table: str, landed: bool) -> None:
    boundary, killed = 0, True
    while killed:
        boundary += 1
        field = field_on(table, 2)
        before = field.monitors.schedulers()
        kill = kill_at(field.monitors, boundary, landed)
        with suppress(Killed):
            _fly(field, "mgr.a")
        killed = kill.dead
        survive(field.monitors)
        field.alive.clear()
        if killed:
            _fly(field, "mgr.b")
        assert field.monitors.table == TABLES[table], boundary
        assert field.monitors.schedulers() == before, boundary
        assert field.on_trial() == []
        assert BoostState.from_dict(json.loads(field.store.values[KEY])).phase == OFF
    # state, claim, audit, journal and steps, there and back
    assert boundary > 20


def test_it_has_the_lock_while_it_is_on() -> None:
    field = Field()
    one = executor(field)
    one.handle(begin(field.clock.now()))
    assert one.state.phase == ON
    assert field.monitors.table["osd", PROFILE] == "high_recovery_ops"
    assert field.recorder.guarded == [True]
    other, _ = field.hands("other")
    with pytest.raises(TunerError, match="another tuner is at work"):
        other.apply(other.plan("osd", {"osd_max_scrubs": 2}))
    one.handle(OperatorCommand(field.clock.now(), "cancel", "alice"))
    assert one.state.phase == OFF
    assert field.recorder.guarded == [True, False]
    assert other.apply(other.plan("osd", {"osd_max_scrubs": 2})) is not None
