"""Model checking of the automatic mode: no sequence of events leaves settings without a journalled inverse.

The real executor, state machine, applier, journal and lock run on the fake monitors, and everything goes wrong around
them. `CEPH_TUNER_EXAMPLES` sets how many sequences are tried.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

import pytest
from flights import P95, RECOVERY, Field, effect, seen
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from appliers import Killed, kill_at, survive
from ceph_tuner.core.autopilot.contract import ALIKE, BETTER, UNKNOWN, WORSE, Rollout, Stage
from ceph_tuner.core.autopilot.events import Answered, Event, Look, OperatorCommand
from ceph_tuner.core.autopilot.executor import KEY, Executor
from ceph_tuner.core.autopilot.state import (
    APPROVE,
    ASKING,
    AUTO,
    COMPARING,
    DRY_RUN,
    HOLDING,
    MODES,
    OBSERVING,
    OFF,
    TRYING,
    WAITING,
    WRITING,
    AutopilotState,
)
from ceph_tuner.core.changes.applier import Applier
from ceph_tuner.core.changes.journal import APPLIED, UNDONE, Entry, Journal
from ceph_tuner.core.changes.lock import LEASE_S, PREFIX, Lock
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed, TunerError
from ceph_tuner.core.goals.guard import Breach
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import nine
from ceph_tuner.core.knobs.settings import format_settings
from monitors import TENTACLE, Monitors, Table
from test_applier_laws import some_settings

pytestmark = pytest.mark.slow

EXAMPLES = int(os.environ.get("CEPH_TUNER_EXAMPLES", "25"))

_NINE = format_settings(nine((0.3, 1, 0), (0.2, 2, 0.5), (0.1, 3, 0.4)), TENTACLE)
_TABLES: List[Table] = [
    {},
    {("osd", PROFILE): "high_client_ops", ("osd", "osd_max_scrubs"): "3"},
    {("osd", PROFILE): "custom", **{("osd", name): text for name, text in _NINE.items()}},
    {("osd/host:h2", "osd_max_scrubs"): "4", ("osd.1", PROFILE): "balanced"},
    {("osd/class:hdd", PROFILE): "custom", **{("osd/class:hdd", name): text for name, text in _NINE.items()}},
]
_BAD = [
    {"osd_max_scrubs": -5},
    {"osd_max_scrubs": "many"},
    {"osd_max_scrubs": None},
    {"osd_max_scrubs": [1]},
    {"osd_max_scrubs": float("nan")},
    {"osd_max_scrubs": 10**40},
    {PROFILE: "custom"},
    {PROFILE: {"custom": 1}},
    {"no_such_option": 1},
    {"pg_num": 64},
]
_DAMAGE = ["", "[]", "5", "{", '"off"', '{"mode": "sideways"}', '{"mode": null, "phase": "trying"}']
_SECTIONS = ["osd", "osd.0", "osd/host:h1", "osd/class:ssd"]
_DRIFTS = [
    ("osd_max_scrubs", "7"),
    ("osd_max_scrubs", None),
    ("osd_pg_max_concurrent_snap_trims", "9"),
    ("osd_max_backfills", "6"),
    ("osd_mclock_scheduler_client_wgt", "77"),
    ("osd_mclock_scheduler_client_wgt", None),
    (PROFILE, "high_recovery_ops"),
    (PROFILE, None),
]
_SITES = (("osd.0",), ("osd/host:h1",), ("osd.2", "osd.3"))


def _rollout(stages: int, alternating: bool = False) -> Rollout:
    everyone = (0, 1, 2, 3)
    narrow = [Stage(_SITES[number], everyone[: number + 1], everyone[number + 1 :]) for number in range(stages - 1)]
    return Rollout("osd", (*narrow, Stage(("osd",), everyone)), alternating)


_ROLLOUTS = {
    **{f"{stages} stages": _rollout(stages) for stages in (1, 2, 3, 4)},
    "alternating": _rollout(1, alternating=True),
    "covers nothing": Rollout("osd", (Stage(("osd.1", "osd.9"), (1,), (0,)), Stage(("osd",), (0, 1, 2, 3)))),
    "the same again": Rollout("osd.1", (Stage(("osd.1",), (1,), (0,)), Stage(("osd.1",), (1,)))),
}
_EFFECTS = {
    f"latency {latency}, recovery {recovery}": {
        metric: effect(metric, UNKNOWN if verdict == "unseen" else verdict, None if verdict == "unseen" else -0.2)
        for metric, verdict in ((P95, latency), (RECOVERY, recovery))
        if verdict != "absent"
    }
    for latency in (BETTER, ALIKE, UNKNOWN, WORSE, "unseen", "absent")
    for recovery in (BETTER, ALIKE, UNKNOWN, WORSE, "unseen", "absent")
}
rollouts = st.sampled_from(sorted(_ROLLOUTS))


class Trouble:
    """Some accesses fail, one after the other: before they happen, or (`landed`) after."""

    def __init__(self, at: int, length: int, landed: bool, error: TunerError, reads: bool) -> None:
        self.at, self.length, self.landed, self.error, self.reads = at, length, landed, error, reads
        self.count, self.fired = 0, False

    def before(self) -> None:
        self.count += 1
        if not self.landed:
            self._fail()

    def after(self) -> None:
        if self.landed:
            self._fail()

    def read(self) -> None:
        if self.reads:
            self.before()

    def _fail(self) -> None:
        if self.at <= self.count < self.at + self.length:
            self.fired = True
            raise self.error


class Flight(RuleBasedStateMachine):
    """One cluster with the automatic mode, operators, another tuner, and bad luck."""

    @initialize(
        table=st.sampled_from(_TABLES),
        batch=st.integers(1, 4),
        full=st.booleans(),
        mode=st.sampled_from([AUTO, AUTO, AUTO, APPROVE]),
    )
    def begin(self, table: Table, batch: int, full: bool, mode: str) -> None:
        self.field = Field(Monitors(osds=4, table=table))
        self.monitors, self.clock = self.field.monitors, self.field.clock
        self.monitors.batch = batch
        self.others: Table = dict(table)
        """What the database would hold without any change of the journal."""
        self.drifted: Dict[Tuple[str, str], int] = {}
        """Keys that somebody else wrote -> number of the newest change then."""
        self.disturbed = False
        """Whether somebody else wrote what mClock's schedulers depend on."""
        self.other: Optional[Tuple[Applier, Lock]] = None
        self.trouble: Optional[Trouble] = None
        self.lock_lost = False
        self.approved: Set[int] = set()
        self.policy = ""
        """That of the objectives' calendar."""
        self.event: Optional[Event] = None
        self.born = self.others_born = 0
        self.executor: Optional[Executor] = None
        if full:
            # as many old entries as are kept: each change forgets one
            journal = Journal(self.field.store)
            for number in range(1, 51):
                journal.write(Entry(number, UNDONE, 0, 0, "admin", "", TENTACLE.name, "osd", (), ()))
        self.field.store.on_set = self.about_to_store
        self.start()
        self.handle(OperatorCommand(self.clock.now(), mode, "alice"))

    # what goes on

    def handle(self, event: Event) -> None:
        assert self.executor is not None
        self.event = event
        try:
            self.executor.handle(event)
        except Killed:
            self.die()
        except TunerError:
            assert self.troubled
        finally:
            self.event = None

    def start(self) -> None:
        self.field.alive.discard(f"mgr.{self.born}")
        self.born += 1
        executor = self.field.executor(f"mgr.{self.born}")
        try:
            executor.start()
        except Killed:
            self.die()
        except TunerError:
            # whoever drives it calls it again
            assert self.troubled or self.other is not None
        else:
            self.executor = executor

    def die(self) -> None:
        self.field.alive.discard(f"mgr.{self.born}")
        survive(self.monitors)
        self.executor = None
        self.lock_lost = False

    def another(self) -> Tuple[Applier, Lock]:
        """Another tuner: a process of its own each time."""
        self.field.alive.discard(f"other.{self.others_born}")
        self.others_born += 1
        return self.field.hands(f"other.{self.others_born}")

    @property
    def troubled(self) -> bool:
        return self.trouble is not None and self.trouble.fired

    def about_to_store(self, key: str, value: str) -> None:
        """No forward write without a mode and a moment for it, and none before it is remembered."""
        if not key.startswith("journal/") or key in self.field.store.values:
            return
        entry = Entry.from_text(key, value)
        if not entry.who.startswith("mgr"):
            return
        stored = AutopilotState.from_dict(json.loads(self.field.store.values[KEY]))
        assert self.executor is not None
        assert stored.phase == WRITING
        assert stored.mode in (AUTO, APPROVE)
        assert stored.paused == ""
        assert stored.then == ""
        assert stored.proposed is not None
        if stored.mode == APPROVE:
            assert stored.proposed.number in self.approved
        assert isinstance(self.event, Look)
        assert not self.event.wait
        assert not self.event.outside
        # what was asked for under one policy is not written under another
        assert self.event.policy == stored.policy
        assert self.event.breach is None

    @property
    def phase(self) -> str:
        return self.executor.state.phase if self.executor is not None else ""

    # rules

    flying = precondition(lambda self: self.executor is not None)

    @flying
    @rule(windows=st.integers(2, 8), gain=st.booleans())
    def a_good_window(self, windows: int, gain: bool) -> None:
        found = {P95: effect(P95, BETTER if gain else ALIKE, windows=windows)}
        self.see(windows=windows, effects=found)

    @flying
    @rule(
        windows=st.integers(0, 8),
        found=st.sampled_from(sorted(_EFFECTS)),
        missed=st.booleans(),
        wait=st.sampled_from(["", "", "quiet hours"]),
        changed=st.sampled_from([(), (), (), ("6 OSDs instead of 4",)]),
        upset=st.sampled_from(["", "", "", "osd.4 is new"]),
        outside=st.integers(0, 5),
    )
    def any_window(
        self,
        windows: int,
        found: str,
        missed: bool,
        wait: str,
        changed: Tuple[str, ...],
        upset: str,
        outside: int,
    ) -> None:
        facts: Dict[str, Any] = {"windows": windows, "effects": _EFFECTS[found], "changed": changed, "upset": upset}
        if not missed:
            facts.update(missed=(), metrics_missed=(), met=True)
        self.see(**facts, wait="outside of the hours" if outside == 0 else wait, outside=outside == 0)

    @flying
    @rule(words=st.sampled_from(["client.p95_ms", "slow ops", "drift", "manual"]))
    def a_breach(self, words: str) -> None:
        was = self.phase
        held = not self.lock_lost and self.other is None
        self.see(breach=Breach(words, f"{words} broken"))
        if was in (TRYING, HOLDING) and self.executor is not None and held and not self.troubled:
            assert self.phase == OBSERVING
            assert self.ours_on_trial() == []

    @flying
    @rule(policy=st.sampled_from(["", "office", "night"]), windows=st.integers(0, 8))
    def another_policy_takes_over(self, policy: str, windows: int) -> None:
        was, before = self.phase, self.policy
        held = not self.lock_lost and self.other is None
        self.policy = policy
        self.see(windows=windows, effects=_EFFECTS[f"latency {BETTER}, recovery {BETTER}"])
        if was in (TRYING, HOLDING) and policy != before and self.executor is not None and held and not self.troubled:
            assert self.phase == OBSERVING
            assert self.ours_on_trial() == []

    @precondition(lambda self: self.phase == ASKING)
    @rule(wanted=some_settings(), rollout=rollouts)
    def answers(self, wanted: Dict[str, Any], rollout: str) -> None:
        self.handle(Answered(self.clock.now(), wanted, "to see", _ROLLOUTS[rollout]))

    @precondition(lambda self: self.phase == ASKING)
    @rule(
        wanted=st.sampled_from([{}, *_BAD]),
        refused=st.sampled_from(["", "the optimiser hangs"]),
        rollout=rollouts,
    )
    def answers_badly(self, wanted: Dict[str, Any], refused: str, rollout: str) -> None:
        self.handle(Answered(self.clock.now(), wanted, "to see", _ROLLOUTS[rollout], refused))

    @precondition(lambda self: self.phase == WAITING)
    @rule()
    def approves(self) -> None:
        assert self.executor is not None
        assert self.executor.state.proposed is not None
        self.approved.add(self.executor.state.proposed.number)
        self.handle(OperatorCommand(self.clock.now(), "accept", "alice"))

    @flying
    @rule(what=st.sampled_from([*MODES, "pause", "resume", "reject", "retry", AUTO, "resume"]))
    def told(self, what: str) -> None:
        self.handle(OperatorCommand(self.clock.now(), what, "alice"))
        if self.executor is not None and not self.troubled:
            if what in (OFF, DRY_RUN):
                assert self.executor.state.mode == what
            if what == "pause" and self.executor.state.mode != OFF:
                assert self.executor.state.paused or self.executor.state.then

    @flying
    @rule(rollout=rollouts, wanted=some_settings(), looks=st.integers(0, 8))
    def a_trial_goes_well(self, rollout: str, wanted: Dict[str, Any], looks: int) -> None:
        """Far into a trial, where chance alone seldom comes."""
        self.told("retry")
        if self.phase == OBSERVING:
            self.see()
        if self.phase == ASKING:
            self.answers(wanted, rollout)
        if self.phase == WAITING:
            self.approves()
        for _ in range(looks):
            if self.phase not in (COMPARING, TRYING, HOLDING):
                break
            self.a_good_window(windows=6, gain=True)

    @precondition(lambda self: self.executor is None)
    @rule()
    def another_mgr_becomes_active(self) -> None:
        self.start()

    @rule(at=st.integers(1, 30), landed=st.booleans())
    def will_be_killed(self, at: int, landed: bool) -> None:
        self.heal()
        kill_at(self.monitors, at, landed)

    @rule(
        at=st.integers(1, 25),
        length=st.integers(1, 12),
        landed=st.booleans(),
        refused=st.booleans(),
        reads=st.booleans(),
    )
    def will_fail(self, at: int, length: int, landed: bool, refused: bool, reads: bool) -> None:
        self.heal()
        error: TunerError = CommandFailed("config set", -1, "no") if refused else ClusterTimeout("no answer")
        trouble = self.trouble = Trouble(at, length, landed, error, reads and not landed)
        self.monitors.before_write, self.monitors.after_write = trouble.before, trouble.after
        self.field.store.before_read = trouble.read

    @rule()
    def all_is_well_again(self) -> None:
        self.heal()

    @rule(who=st.sampled_from(_SECTIONS), drift=st.sampled_from(_DRIFTS))
    def somebody_else_writes(self, who: str, drift: Tuple[str, Optional[str]]) -> None:
        name, value = drift
        standing = [entry for entry in self.entries() if entry.state != UNDONE]
        ours = [restore for entry in standing for restore in entry.restores if restore.key == (who, name)]
        # who writes what we wrote cannot be told from us
        assume(all(value not in restore.ours and value != restore.value for restore in ours))
        self.monitors.deliver()
        before = dict(self.monitors.table)
        self.monitors.someone_sets(who, name, value)
        self.monitors.deliver()
        number = max([entry.number for entry in self.entries()], default=0)
        for key in {*before, *self.monitors.table}:
            if before.get(key) != self.monitors.table.get(key):
                self.drifted[key] = number
                self.others.pop(key, None)
                if key in self.monitors.table:
                    self.others[key] = self.monitors.table[key]
        self.disturbed |= name == PROFILE or name in MCLOCK_NINE

    @rule(osd=st.integers(0, 3))
    def an_osd_goes_down_or_comes_back(self, osd: int) -> None:
        self.monitors.deliver()
        fake = self.monitors.osd[osd]
        fake.place = replace(fake.place, up=not fake.place.up)
        if fake.place.up:
            self.monitors.start(osd)

    @precondition(lambda self: self.other is None)
    @rule(leaves_trial=st.booleans(), changes=st.booleans())
    def another_tuner_comes(self, leaves_trial: bool, changes: bool) -> None:
        other = self.another()
        with self.healthy():
            try:
                other[1].__enter__()
            except TunerError:
                return
            self.other = other
            if changes:
                with suppress(TunerError):
                    other[0].apply(other[0].plan("osd", {"osd_max_scrubs": 5}), "by hand", trial=leaves_trial)

    @precondition(lambda self: self.other is not None)
    @rule(dies=st.booleans())
    def the_other_tuner_goes(self, dies: bool) -> None:
        assert self.other is not None
        with self.healthy():
            if dies:
                self.field.alive.discard(f"other.{self.others_born}")
            else:
                with suppress(TunerError):
                    self.other[1].__exit__()
        self.other = None

    @flying
    @rule(recovers=st.booleans())
    def the_mgr_oversleeps_and_another_takes_its_lock(self, recovers: bool) -> None:
        self.clock.sleep(LEASE_S + 1)
        if self.other is None:
            other = self.another()
            with self.healthy(), suppress(TunerError), other[1]:
                self.lock_lost = self.lock_lost or (self.pilot_claims() == [] and self.executor is not None)
                if recovers:
                    other[0].recover()

    @rule(by=st.sampled_from([1.0, 45.0, 4000.0, 90000.0, -5.0, -4000.0, -1e7, 1e7]))
    def the_clock_is_set(self, by: float) -> None:
        self.clock.time += by

    @precondition(lambda self: self.executor is None)
    @rule(text=st.sampled_from(_DAMAGE))
    def the_stored_state_is_damaged(self, text: str) -> None:
        self.field.store.values[KEY] = text

    @precondition(lambda self: self.executor is None and self.field.store.values.get(KEY) not in (None, *_DAMAGE))
    @rule(name=st.sampled_from(["since", "changes", "paused_until", "tried", "then", "proposed"]))
    def a_value_of_the_stored_state_is_damaged(self, name: str) -> None:
        stored = json.loads(self.field.store.values[KEY])
        self.field.store.values[KEY] = json.dumps({**stored, name: {"what": 1}})

    # what always holds

    @invariant()
    def laws(self) -> None:
        self.what_differs_can_be_taken_back()
        self.nothing_is_in_force_that_the_state_does_not_know()
        self.there_is_one_trial_at_most()
        self.the_lock_is_held_exactly_while_something_is_on_trial()
        self.the_schedulers_agree_with_the_database()

    def what_differs_can_be_taken_back(self) -> None:
        """Whoever took all changes of the journal back now would have the cluster as others want it."""
        copy = Field(Monitors(osds=4, table=dict(self.monitors.table)))
        copy.store.values = {key: text for key, text in self.field.store.values.items() if not key.startswith(PREFIX)}
        applier, _ = copy.hands("checker")
        applier.recover()
        with suppress(TunerError):
            applier.undo(everything=True)
        copy.monitors.deliver()
        assert copy.monitors.table == self.others

    def nothing_is_in_force_that_the_state_does_not_know(self) -> None:
        state = self.state()
        if state is not None and not state.on_cluster:
            assert self.ours_on_trial() == []
            assert [entry for entry in self.entries() if entry.unfinished and entry.who.startswith("mgr")] == []
            if not any(entry.unfinished for entry in self.entries()):
                assert self.monitors.table == self.planned()

    def there_is_one_trial_at_most(self) -> None:
        assert len({entry.why for entry in self.ours_on_trial()}) <= 1

    def the_lock_is_held_exactly_while_something_is_on_trial(self) -> None:
        state = self.state()
        if state is None or self.lock_lost or self.other is not None or self.troubled:
            return
        if state.phase in (TRYING, HOLDING):
            assert len(self.pilot_claims()) == 1
        if not state.on_cluster:
            assert self.pilot_claims() == []

    def the_schedulers_agree_with_the_database(self) -> None:
        state = self.state()
        if self.disturbed or state is None or any(entry.unfinished for entry in self.entries()):
            return
        for osd, scheduler in zip(self.monitors.osd, self.monitors.schedulers()):
            if osd.place.up:
                shown = osd.effective()
                profile = shown[PROFILE]
                wanted = {name: shown[name] for name in MCLOCK_NINE}
                if profile != "custom":
                    wanted = format_settings(TENTACLE.profiles[profile], TENTACLE)
                assert scheduler == wanted

    def teardown(self) -> None:
        """However it went: the next mgr leaves it as before or as planned, and it flies."""
        if not hasattr(self, "field"):
            return
        self.heal()
        if self.other is not None:
            self.the_other_tuner_goes(dies=True)
        self.clock.sleep(2 * LEASE_S)
        if self.executor is None:
            self.start()
        assert self.executor is not None
        self.see()
        assert not self.executor.state.on_cluster or self.phase in (TRYING, HOLDING)
        self.handle(OperatorCommand(self.clock.now(), OFF, "alice"))
        assert not self.executor.state.on_cluster
        self.nothing_is_in_force_that_the_state_does_not_know()
        self.what_differs_can_be_taken_back()
        with self.field.hands("next")[1]:
            # nobody holds the lock: this would raise
            pass

    # what is looked at

    def see(self, **facts: Any) -> None:
        if self.executor is None:
            return
        self.clock.sleep(10.0)
        self.handle(seen(self.clock.now(), policy=self.policy, **facts))

    def heal(self) -> None:
        self.trouble = None
        survive(self.monitors)
        self.field.store.before_read = lambda: None

    @contextmanager
    def healthy(self) -> Iterator[None]:
        """Others have no part in the trouble."""
        hooks = self.monitors.before_write, self.monitors.after_write, self.field.store.before_read
        survive(self.monitors)
        self.field.store.before_read = lambda: None
        try:
            yield
        finally:
            self.monitors.before_write, self.monitors.after_write, self.field.store.before_read = hooks

    def state(self) -> Optional[AutopilotState]:
        return self.executor.state if self.executor is not None else None

    def entries(self) -> List[Entry]:
        with self.healthy():
            return self.field.entries()

    def ours_on_trial(self) -> List[Entry]:
        return [e for e in self.entries() if e.trial and e.state == APPLIED and e.who.startswith("mgr")]

    def pilot_claims(self) -> List[str]:
        stored = self.field.store.values
        claims = [key for key in stored if key.startswith(PREFIX) and f'"mgr.{self.born}"' in stored[key]]
        return [key for key in claims if key not in self.field.store.stranded]

    def planned(self) -> Table:
        """What others want, with what is in force, except where others wrote since."""
        table = dict(self.others)
        for entry in self.entries():
            if entry.state != APPLIED:
                continue
            for step in entry.steps:
                if self.drifted.get(step.key, 0) < entry.number:
                    table.pop(step.key, None)
                    if step.new is not None:
                        table[step.key] = step.new
        return table


Flight.TestCase.settings = settings(
    max_examples=EXAMPLES,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
TestFlight = Flight.TestCase
