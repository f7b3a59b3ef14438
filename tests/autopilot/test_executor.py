from __future__ import annotations

import json
from typing import Any, List, Optional

import pytest
from flights import ALTERNATING, P95, ROLLOUT, SETTINGS, Field, answer, effect, seen

from appliers import CUSTOM, Killed, kill_at, survive
from ceph_tuner.core.autopilot.contract import BETTER, Rollout
from ceph_tuner.core.autopilot.events import Answered, Kept, Look, Note, OperatorCommand, TookBack, Wrote
from ceph_tuner.core.autopilot.executor import KEY, Executor
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.autopilot.state import (
    APPROVE,
    ASKING,
    AUTO,
    COMPARING,
    HOLDING,
    OBSERVING,
    OFF,
    TRYING,
    WAITING,
    WRITING,
    AutopilotState,
)
from ceph_tuner.core.changes.journal import APPLIED, UNDONE, Entry, Journal
from ceph_tuner.core.changes.lock import LEASE_S, PREFIX
from ceph_tuner.core.errors import ClusterTimeout, Locked, TunerError
from ceph_tuner.core.goals.guard import Breach
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.core.knobs.settings import format_settings
from monitors import TENTACLE

CANARY = {("osd.0", "osd_max_scrubs"): "2"}
ALL = {("osd", "osd_max_scrubs"): "2"}
BREACH = Breach("slow ops", "3 slow operations")


def told(field: Field, mode: str) -> Executor:
    executor = field.executor()
    executor.start()
    executor.handle(OperatorCommand(field.clock.now(), mode, "alice"))
    return executor


def fly(
    field: Field,
    to: str,
    executor: Optional[Executor] = None,
    rollout: Rollout = ROLLOUT,
    settings: Settings = SETTINGS,
) -> Executor:
    """Go on with good windows until the phase is reached."""
    executor = executor or told(field, AUTO)
    for _ in range(12):
        if executor.state.phase == to:
            return executor
        if executor.state.phase == ASKING:
            executor.handle(answer(field.clock.now(), rollout, **settings))
        else:
            executor.handle(good(field))
    raise AssertionError(f"it stays at {executor.state.phase}")


def good(field: Field, **facts: Any) -> Look:
    field.clock.sleep(30)
    for lock in field.locks.values():
        lock.renew()
    return seen(field.clock.now(), **{"windows": 5, "effects": {P95: effect(P95, BETTER)}, **facts})


def claims(field: Field) -> List[str]:
    return field.store.keys(PREFIX)


def stored(field: Field) -> AutopilotState:
    return AutopilotState.from_dict(json.loads(field.store.values[KEY]))


def test_a_good_trial_goes_from_the_canary_over_all_stages_to_the_whole_target_and_is_kept() -> None:
    field = Field()
    executor = fly(field, TRYING)
    assert field.monitors.table == CANARY
    executor.handle(good(field))
    assert set(field.monitors.table) == {(f"osd.{osd}", "osd_max_scrubs") for osd in (0, 1, 2)}
    executor.handle(good(field))
    assert (executor.state.phase, field.monitors.table) == (HOLDING, ALL)
    executor.handle(good(field))
    assert (executor.state.phase, field.monitors.table) == (OBSERVING, ALL)
    (kept,) = [entry for entry in field.entries() if entry.state == APPLIED]
    assert (kept.number, kept.trial) == (executor.state.kept, False)
    assert claims(field) == []
    assert field.recorder.guarded == [True, False]
    assert isinstance(field.recorder.outcomes[-1], Kept)


def test_a_breach_is_off_the_cluster_when_the_call_returns() -> None:
    field = Field()
    executor = fly(field, HOLDING)
    executor.handle(good(field, breach=BREACH))
    assert (executor.state.phase, field.monitors.table, claims(field)) == (OBSERVING, {}, [])
    assert [note.what for note in field.recorder.notes][-1] == "taken back"
    assert isinstance(field.recorder.outcomes[-1], TookBack)


def test_alternating_settings_come_and_go_and_are_kept_in_the_end() -> None:
    field = Field()
    executor = fly(field, TRYING, rollout=ALTERNATING)
    for table in (ALL, {}, ALL):
        assert field.monitors.table == table
        assert len(claims(field)) == 1
        executor.handle(good(field, effects={}))
    assert fly(field, OBSERVING, executor).state.kept is not None
    assert field.monitors.table == ALL


def test_the_state_is_in_the_store_before_anything_is_written() -> None:
    field = Field()
    executor = fly(field, COMPARING)
    phases = []
    field.monitors.before_write = lambda: phases.append(stored(field).phase)
    executor.handle(good(field))
    # the state itself and the note come first
    assert phases[0] == COMPARING
    assert set(phases[1:-1]) == {WRITING}


def test_another_tuner_that_holds_the_lock_keeps_the_trial_away_and_is_no_failure_of_it() -> None:
    field = Field()
    executor = fly(field, COMPARING)
    with field.hands("other")[1]:
        executor.handle(good(field))
        assert (executor.state.phase, field.monitors.table) == (OBSERVING, {})
        assert (executor.state.failures, executor.state.tried, field.recorder.learned) == (0, 0, [])
        assert "another tuner is at work on this cluster: other" in field.recorder.notes[-1].why


def die_in_force(field: Field) -> None:
    if field.monitors.table:
        raise Killed


def test_what_a_dead_tuner_left_half_done_is_no_failure_of_the_trial() -> None:
    field = Field()
    executor = fly(field, COMPARING)
    other, _ = field.hands("other")
    # dies once it has written what the trial is to write over
    field.monitors.after_write = lambda: die_in_force(field)
    with pytest.raises(Killed):
        other.apply(other.plan("osd.0", {"osd_max_scrubs": 3}))
    survive(field.monitors)
    field.alive.discard("other")
    executor.handle(good(field))
    assert (executor.state.phase, field.monitors.table) == (TRYING, CANARY)
    assert executor.state.failures == 0


def test_a_lock_that_was_lost_delays_no_taking_back() -> None:
    field = Field()
    executor = fly(field, TRYING)
    field.clock.sleep(LEASE_S + 1)
    with field.hands("other")[1]:
        assert field.monitors.table == CANARY
    executor.handle(seen(field.clock.now(), breach=BREACH))
    assert (executor.state.phase, field.monitors.table, claims(field)) == (OBSERVING, {}, [])


def test_a_write_whose_number_was_never_known_is_taken_back_all_the_same() -> None:
    field = Field()
    journal = Journal(field.store)
    for number in range(1, 51):
        journal.write(Entry(number, UNDONE, 0, 0, "admin", "", TENTACLE.name, "osd", (), ()))
    executor = fly(field, COMPARING)
    forget = field.store.remove

    def refuse(key: str) -> None:
        if key.startswith("journal/"):
            raise ClusterTimeout("no answer")
        forget(key)

    # the change is in force when the oldest entries are to be forgotten
    field.store.remove = refuse
    executor.handle(good(field))
    assert (executor.state.phase, field.monitors.table, field.on_trial()) == (OBSERVING, {}, [])


def test_what_somebody_else_changed_meanwhile_is_left_and_reported() -> None:
    field = Field()
    executor = fly(field, TRYING)
    field.monitors.someone_sets("osd.0", "osd_max_scrubs", "7")
    executor.handle(good(field, breach=BREACH))
    assert field.monitors.table == {("osd.0", "osd_max_scrubs"): "7"}
    assert field.recorder.notes[-1].what == "drift"
    assert "found 7" in field.recorder.notes[-1].why


@pytest.mark.parametrize("settings", [{"osd_max_scrubs": -5}, {"no_such_option": 1}, {"osd_max_scrubs": 10**400}])
def test_settings_that_the_release_refuses_are_never_written(settings: Any) -> None:
    field = Field()
    executor = fly(field, ASKING)
    executor.handle(Answered(field.clock.now(), settings, "wild", ROLLOUT))
    executor.handle(good(field))
    assert (executor.state.phase, executor.state.failures) == (OBSERVING, 1)
    assert (field.monitors.writes, field.entries()) == ([], [])


class Silent:
    """An audit trail that takes nothing while it is `broken`."""

    def __init__(self, field: Field) -> None:
        self.broken, self.real = False, field.recorder.note
        field.recorder.note = self.note

    def note(self, note: Note, at: float) -> None:
        if self.broken:
            raise ClusterTimeout("no answer")
        self.real(note, at)


def test_an_audit_trail_that_cannot_be_written_stops_forward_writes_but_no_taking_back() -> None:
    field = Field()
    trail = Silent(field)
    executor = fly(field, TRYING)
    trail.broken = True
    executor.handle(good(field, breach=BREACH))
    assert (executor.state.phase, field.monitors.table) == (OBSERVING, {})
    writes = len(field.monitors.writes)
    executor.handle(OperatorCommand(field.clock.now(), "retry", "alice"))
    fly(field, COMPARING, executor)
    executor.handle(good(field))
    assert len(field.monitors.writes) == writes
    trail.broken = False
    executor.handle(good(field))
    told = [note.what for note in field.recorder.notes]
    # all of it is told afterwards, in order
    assert told.index("taken back") < told.index("resumed") < len(told) - 1


def test_an_optimiser_that_cannot_be_asked_is_asked_again_later() -> None:
    field = Field()
    executor = field.executor()
    executor.start()
    executor.handle(OperatorCommand(field.clock.now(), AUTO, "alice"))

    def fail(state: AutopilotState, policy: Policy) -> None:
        raise ClusterTimeout("no worker")

    field.recorder.start = fail
    executor.handle(good(field))
    assert (executor.state.phase, executor.state.worker_failures) == (OBSERVING, 1)
    assert "no worker" in field.recorder.notes[-1].why


def killed(field: Field, executor: Executor, at: int, landed: bool) -> bool:
    """Whether the next good window was cut off at its n-th write."""
    event = good(field)
    kill_at(field.monitors, at, landed)
    try:
        executor.handle(event)
    except Killed:
        return True
    finally:
        survive(field.monitors)
    return False


@pytest.mark.parametrize("landed", [False, True])
@pytest.mark.parametrize("phase", [COMPARING, TRYING, HOLDING])
def test_killed_at_every_single_write_the_next_mgr_leaves_it_as_before_or_as_planned(phase: str, landed: bool) -> None:
    outcomes = set()
    for at in range(1, 100):
        field = Field()
        executor = fly(field, phase)
        if not killed(field, executor, at, landed):
            break
        field.alive.clear()
        heir = field.executor("mgr.b")
        heir.start()
        assert heir.state.phase == OBSERVING
        assert field.on_trial() == []
        with field.hands("next")[1]:
            assert len(claims(field)) == 1
        kept = heir.state.kept is not None
        assert field.monitors.table == (ALL if kept else {})
        outcomes.add(kept)
    else:
        raise AssertionError("it never got through")
    assert outcomes == ({True, False} if phase == HOLDING else {False})


def test_killed_before_a_pause_was_carried_out_the_next_mgr_pauses() -> None:
    field = Field()
    executor = fly(field, TRYING)
    # the state, the note: then it dies
    kill_at(field.monitors, 3)
    with pytest.raises(Killed):
        executor.handle(OperatorCommand(field.clock.now(), "pause", "alice"))
    survive(field.monitors)
    field.alive.clear()
    heir = field.executor("mgr.b")
    heir.start()
    assert (heir.state.paused, heir.state.phase, field.monitors.table) == ("paused by alice", OBSERVING, {})


def test_while_another_mgr_may_live_its_trial_is_left_alone() -> None:
    field = Field()
    fly(field, TRYING)
    heir = field.executor("mgr.b")
    with pytest.raises(Locked):
        heir.start()
    field.alive.discard("mgr.a")
    heir.start()
    assert (heir.state.phase, heir.state.mode, field.monitors.table) == (OBSERVING, AUTO, {})


def test_a_profile_that_the_canary_got_of_its_own_before_the_first_write_ends_the_trial_when_it_is_widened() -> None:
    """Under the canary's own entry nobody sees it; for all, it would be a built-in profile that goes by our values."""
    field = Field()
    before = field.monitors.schedulers()
    executor = fly(field, WAITING, told(field, APPROVE), settings=CUSTOM)
    field.monitors.someone_sets("osd.0", PROFILE, "high_client_ops")
    executor.handle(OperatorCommand(field.clock.now(), "accept", "alice"))
    for _ in range(6):
        if executor.state.phase in (COMPARING, TRYING):
            executor.handle(good(field))
    assert (field.on_trial(), field.monitors.table) == ([], {("osd.0", PROFILE): "high_client_ops"})
    chosen = format_settings(TENTACLE.profiles["high_client_ops"], TENTACLE)
    assert field.monitors.schedulers() == [chosen, *before[1:]]
    assert "osd.0" in str(field.recorder.outcomes)


@pytest.mark.parametrize("text", ["", "[]", "5", "{", '{"mode": "sideways"}', '{"mode": "auto", "tried": "often"}'])
def test_a_damaged_state_switches_it_off_says_so_once_and_leaves_no_trial(text: str) -> None:
    field = Field()
    fly(field, TRYING)
    field.alive.clear()
    field.store.values[KEY] = text
    for name in ("mgr.b", "mgr.c"):
        heir = field.executor(name)
        heir.start()
        assert (heir.state.mode, heir.state.phase, field.monitors.table) == (OFF, OBSERVING, {})
    assert len([note for note in field.recorder.notes if "cannot be read" in note.why]) == 1


def test_off_it_leaves_what_another_tuner_left_to_that_tuner() -> None:
    field = Field()
    other = field.hands("admin")[0]
    other.apply(other.plan("osd", SETTINGS), trial=True)
    field.alive.clear()
    field.executor().start()
    assert field.monitors.table == ALL


def test_a_store_that_fails_leaves_the_pilot_as_it_was() -> None:
    field = Field()
    executor = fly(field, OBSERVING)
    before = executor.state

    def fail() -> None:
        raise ClusterTimeout("no answer")

    field.monitors.before_write = fail
    with pytest.raises(TunerError):
        executor.handle(good(field))
    assert executor.state == before
    survive(field.monitors)
    assert isinstance(fly(field, TRYING, executor).state.changes[0], int)
    assert isinstance(field.recorder.outcomes[-1], Wrote)
