from __future__ import annotations

import logging
import threading
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Callable, Dict, List, Mapping, Optional

import pytest
from flights import P95, QUICK, SETTINGS, Field, answer

from ceph_tuner.core.autopilot.events import Answered, Look, OperatorCommand, TakeBackFailed
from ceph_tuner.core.autopilot.executor import KEY
from ceph_tuner.core.autopilot.phase_windows import Eyes, PhaseWindows
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.autopilot.state import ASKING, AUTO, COMPARING, OBSERVING, OFF, TRYING, AutopilotState
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed, InputError, RetryLater
from ceph_tuner.core.goals.guard import Breach
from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.core.measure.sample import Measure, Window
from tuner import turns as driver_module
from tuner.driver import Driver
from tuner.inbox import Inbox
from tuner.turns import BLIND_TURNS

SLO = parse_slo({"objectives": ["client.p95_ms<=20"]}, "cluster")
POLICY = replace(QUICK, window=10.0, settle=0.0, baseline_windows=8, most_windows=30)
INTERVAL_S = 5.0


class Lookout:
    """`lookout.Lookout`, as a test wants it: real windows, and everything else as it is told."""

    def __init__(self, field: Field, eyes: Eyes) -> None:
        self._field, self._windows = field, PhaseWindows(eyes)
        self.overdue_s = lambda: 3600.0
        self.wait = ""
        self.breach: Optional[Breach] = None
        self.of_window: Optional[Breach] = None
        self.looks = self.guarded = 0
        self.trouble: List[Exception] = []

    def look(self, state: AutopilotState, policy: Policy) -> Optional[Look]:
        if state.mode == OFF and not state.on_cluster:
            return None
        self.looks += 1
        if self.trouble:
            raise self.trouble.pop(0)
        now = self._field.clock.now()
        closed = self._windows.close(now, state, SLO, {}, policy)
        breach = self.breach or (self.of_window if closed else None)
        look = self._windows.see(now, state, SLO, policy)
        return replace(look, wait=self.wait, breach=breach, condition={"osds": 4})

    def guard(self, state: AutopilotState) -> Optional[Breach]:
        self.guarded += 1
        if self.trouble:
            raise self.trouble.pop(0)
        return self.breach


class Cabin:
    """A driver with a real executor on the fake monitors; an OSD that has the settings is quicker by a half."""

    def __init__(self, field: Optional[Field] = None, factor: float = 0.5, name: str = "mgr.a") -> None:
        self.field = field or Field()
        self.lookout, self.factor = Lookout(self.field, self), factor
        self.beats = 0
        self.executor = self.field.executor(name, POLICY)
        self.driver = Driver(
            self.executor,
            self.lookout,  # type: ignore[arg-type]
            SimpleNamespace(progress=lambda state: None),  # type: ignore[arg-type]
            self,  # type: ignore[arg-type]
            Inbox(),
            lambda: POLICY,
            logging.getLogger("test"),
            self.field.clock.now,
        )

    def beat(self) -> None:
        """The pulse's."""
        self.beats += 1

    scrubs_since = None

    def between(self, start: float, end: float) -> Window:
        return Window(start, end, {P95: Measure(self._latency(range(4)), 0.0, 2)})

    def group_between(self, name: str, start: float, end: float) -> Mapping[str, float]:
        proposed = self.executor.state.proposed
        assert proposed is not None
        side, _, number = name.partition(" ")
        stage = proposed.rollout.stages[int(number)]
        return {P95: self._latency(stage.osds if side == "tried" else stage.control)}

    def _latency(self, osds: Any) -> float:
        found = [self.field.monitors.effective(osd)["osd_max_scrubs"] for osd in osds]
        return sum(30.0 * (self.factor if value == "2" else 1.0) for value in found) / len(found)

    def tell(self, what: str, why: str = "") -> Dict[str, Any]:
        """As from another thread, while this one takes the turns."""
        done: List[Any] = []
        asking = threading.Thread(target=lambda: done.append(outcome(lambda: self.driver.tell(what, "me", why))))
        asking.start()
        while asking.is_alive():
            self.driver.attempt()
            asking.join(0.01)
        if isinstance(done[0], Exception):
            raise done[0]
        return dict(done[0])

    def sample(self, count: int = 1) -> None:
        for _ in range(count):
            self.field.clock.sleep(INTERVAL_S)
            self.driver.sampled()
            self.driver.attempt()

    def until(self, phase: str, most: int = 400) -> AutopilotState:
        for _ in range(most):
            self.sample()
            if self.driver.state.phase == phase:
                return self.driver.state
        raise AssertionError(f"{self.driver.state.phase}, not {phase}: {self.driver.problem}")

    def on_trial(self) -> Cabin:
        self.tell(AUTO)
        self.until(ASKING)
        self.driver.inbox.post(answer(self.field.clock.now()))
        self.until(TRYING)
        return self


def outcome(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Exception as error:
        return error


def test_a_missed_objective_ends_in_settings_that_are_kept_on_all_osds() -> None:
    cabin = Cabin().on_trial()
    assert [entry.target for entry in cabin.field.on_trial()] == ["osd.0"]
    cabin.until(OBSERVING)
    assert cabin.driver.state.kept is not None
    assert cabin.field.on_trial() == []
    assert {cabin.field.monitors.effective(osd)["osd_max_scrubs"] for osd in range(4)} == {"2"}
    assert [note.what for note in cabin.field.recorder.notes] == ["mode", "proposal", "apply", "apply", "apply", "kept"]


def test_what_does_harm_is_taken_back_from_the_canary() -> None:
    cabin = Cabin(factor=2.0).on_trial()
    cabin.until(OBSERVING)
    assert (cabin.driver.state.kept, cabin.driver.state.failures) == (None, 1)
    assert {cabin.field.monitors.effective(osd)["osd_max_scrubs"] for osd in range(4)} != {"2"}
    assert cabin.field.recorder.learned[0].failed.startswith("harm")


@pytest.mark.parametrize("of", ["sample", "window"])
def test_a_breach_in_a_sample_or_a_window_takes_the_trial_back_in_the_same_turn(of: str) -> None:
    cabin = Cabin().on_trial()
    breach = Breach("ops.slow", "3 slow operations, 0 before")
    if of == "sample":
        cabin.lookout.breach = breach
        cabin.sample()
    else:
        cabin.lookout.of_window = breach
        cabin.sample(2)
    assert cabin.field.on_trial() == []
    assert cabin.driver.state.phase == OBSERVING
    assert any(note.detail.get("rule") == "ops.slow" for note in cabin.field.recorder.notes)


def test_a_turn_without_a_new_sample_looks_at_nothing() -> None:
    cabin = Cabin()
    cabin.tell(AUTO)
    cabin.sample()
    looks = cabin.lookout.looks
    cabin.driver.attempt()
    assert cabin.lookout.looks == looks


def test_switched_off_it_looks_at_nothing_unless_something_is_on_the_cluster() -> None:
    cabin = Cabin()
    cabin.sample(3)
    assert (cabin.lookout.looks, cabin.driver.newest_look) == (0, None)
    cabin.on_trial()
    cabin.field.monitors.refuse = lambda who, name, value: True
    document = cabin.tell(OFF)
    assert (document["mode"], document["phase"]) == ("off", "returning")
    looks = cabin.lookout.looks
    cabin.field.monitors.refuse = lambda who, name, value: False
    cabin.sample()
    assert cabin.lookout.looks == looks + 1
    assert cabin.field.on_trial() == []
    assert cabin.driver.state.phase == OBSERVING


# commands


def test_a_command_is_answered_with_the_state_after_it() -> None:
    document = Cabin().tell(AUTO)
    assert document["mode"] == "auto"
    assert document["problem"] == ""
    assert document["words"]


def test_a_word_that_makes_no_sense_now_is_refused_at_once_and_never_heard() -> None:
    cabin = Cabin()
    for what in ("resume", "accept", "reject", "pause", "retry"):
        with pytest.raises(InputError, match=r"automatic mode: (it is|no proposal)"):
            cabin.driver.tell(what, "me")
    cabin.driver.attempt()
    assert cabin.field.recorder.notes == []


def test_a_command_waits_until_what_is_being_written_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    cabin = Cabin()
    writing, go_on, order = threading.Event(), threading.Event(), []

    def slow_write() -> None:
        if cabin.executor.state.phase == "writing" and not go_on.is_set():
            writing.set()
            go_on.wait()
            order.append("written")

    cabin.tell(AUTO)
    cabin.until(ASKING)
    cabin.driver.inbox.post(answer(cabin.field.clock.now()))
    cabin.until(COMPARING)
    cabin.field.monitors.before_write = slow_write
    flying = threading.Thread(target=cabin.until, args=(TRYING,))
    flying.start()
    assert writing.wait(60.0)
    # impatient, it is told that it waits; its word is not lost
    monkeypatch.setattr(driver_module, "PATIENCE_S", 0.05)
    with pytest.raises(RetryLater, match="pause"):
        cabin.driver.tell("pause", "me", "lunch")
    assert cabin.driver.state.paused == ""
    assert order == []
    go_on.set()
    flying.join()
    cabin.driver.attempt()
    assert order == ["written"]
    assert cabin.driver.state.paused == "paused lunch"
    assert cabin.field.on_trial() == []


class SlowWrite:
    """The stage that follows on the canary is written, or taken back, for as long as a test wants."""

    def __init__(self, cabin: Cabin, phase: str = "writing") -> None:
        self.writing, self.go_on = threading.Event(), threading.Event()
        self.cabin, self.phase = cabin, phase
        cabin.field.monitors.before_write = self.wait
        self.flying = threading.Thread(target=self._fly, daemon=True)
        self.flying.start()
        assert self.writing.wait(60.0)

    def wait(self) -> None:
        if self.cabin.executor.state.phase == self.phase and not self.go_on.is_set():
            self.writing.set()
            self.go_on.wait()

    def _fly(self) -> None:
        while not self.writing.is_set():
            self.cabin.sample()

    def samples(self, count: int) -> None:
        for _ in range(count):
            before = self.cabin.lookout.guarded
            self.cabin.driver.sampled()
            end = time.monotonic() + 10
            while self.cabin.lookout.guarded == before and time.monotonic() < end:
                time.sleep(0.01)

    def finish(self) -> None:
        self.go_on.set()
        self.flying.join()


def test_the_guard_looks_at_every_sample_while_a_stage_is_written() -> None:
    cabin = Cabin().on_trial()
    slow = SlowWrite(cabin)
    guarded, beats = cabin.lookout.guarded, cabin.beats
    slow.samples(5)
    assert cabin.lookout.guarded == guarded + 5
    assert cabin.beats == beats + 5
    # one that fails costs itself
    cabin.lookout.trouble = [ValueError("no sample"), ClusterTimeout("no answer")]
    slow.samples(3)
    assert cabin.lookout.guarded == guarded + 8
    slow.finish()
    cabin.until(OBSERVING)
    assert cabin.driver.state.kept is not None


def test_the_guard_looks_at_every_sample_while_a_trial_is_taken_back() -> None:
    cabin = Cabin().on_trial()
    cabin.lookout.breach = Breach("osds.down", "1 OSD more is down")
    slow = SlowWrite(cabin, "returning")
    guarded, beats = cabin.lookout.guarded, cabin.beats
    slow.samples(5)
    assert cabin.lookout.guarded == guarded + 5
    assert cabin.beats == beats + 5
    # what is on its way back is not ended by what it is for
    cabin.lookout.breach = None
    slow.finish()
    assert cabin.field.monitors.table == {}
    assert not cabin.driver.state.on_cluster


def test_a_breach_while_a_stage_is_written_ends_the_write_and_takes_everything_back() -> None:
    cabin = Cabin().on_trial()
    slow = SlowWrite(cabin)
    cabin.lookout.breach = Breach("osds.down", "1 OSD more is down")
    slow.samples(1)
    time.sleep(0.3)
    cabin.lookout.breach = None
    slow.finish()
    assert cabin.field.monitors.table == {}
    assert cabin.field.on_trial() == []
    assert not cabin.driver.state.on_cluster
    (note,) = [note for note in cabin.field.recorder.notes if note.what == "taken back"]
    assert note.detail["rule"] == "osds.down"
    assert "1 OSD more is down" in note.why
    assert "while it was written" in note.why


def test_a_breach_that_is_seen_when_all_is_written_takes_it_back_all_the_same() -> None:
    cabin = Cabin().on_trial()
    real = cabin.executor.end_write
    cabin.executor.end_write = lambda breach: None  # type: ignore[method-assign]
    slow = SlowWrite(cabin)
    cabin.lookout.breach = Breach("health", "the cluster went to HEALTH_ERR")
    slow.samples(1)
    time.sleep(0.3)
    cabin.lookout.breach, cabin.executor.end_write = None, real  # type: ignore[method-assign]
    slow.finish()
    assert cabin.field.monitors.table == {}
    assert not cabin.driver.state.on_cluster


def test_words_are_taken_in_the_order_in_which_they_were_said() -> None:
    cabin = Cabin()
    cabin.tell(AUTO)
    threads = []
    for what in ("pause", "resume", OFF):
        heard = threading.Event()
        cabin.driver.inbox.append((OperatorCommand(cabin.field.clock.now(), what, "me"), heard))
        threads.append(heard)
    cabin.driver.attempt()
    assert all(heard.is_set() for heard in threads)
    assert [note.what for note in cabin.field.recorder.notes] == ["mode", "paused", "resumed", "mode"]


# errors


def test_an_error_of_the_store_loses_no_command_and_says_why_it_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    cabin = Cabin()
    cabin.tell(AUTO)
    monkeypatch.setattr(driver_module, "PATIENCE_S", 0.05)
    failing = [True]

    def fail() -> None:
        if failing[0]:
            raise CommandFailed("config-key set", -5, "no quorum")

    cabin.field.monitors.before_write = fail
    with pytest.raises(RetryLater):
        cabin.tell("pause")
    assert "no quorum" in cabin.driver.problem
    assert cabin.driver.state.paused == ""
    failing[0] = False
    cabin.driver.attempt()
    assert cabin.driver.state.paused
    assert cabin.driver.problem == ""
    assert [note.what for note in cabin.field.recorder.notes].count("paused") == 1


@pytest.mark.parametrize("error", [CommandFailed("config-key dump", -5, "no quorum"), RuntimeError("a bug")])
def test_an_error_costs_one_turn(error: Exception) -> None:
    cabin = Cabin()
    cabin.tell(AUTO)
    cabin.lookout.trouble = [error]
    cabin.sample()
    assert str(error.args[-1]) in cabin.driver.problem or "no quorum" in cabin.driver.problem
    assert cabin.driver.document()["problem"] == cabin.driver.problem
    cabin.sample()
    assert cabin.driver.problem == ""
    assert cabin.lookout.looks == 2


def test_a_word_that_cannot_be_understood_does_not_stop_the_guard() -> None:
    cabin = Cabin().on_trial()
    heard = threading.Event()
    cabin.driver.inbox.append((OperatorCommand(0.0, "dance", "me"), heard))
    cabin.lookout.breach = Breach("osds.down", "1 OSDs down, 0 before")
    cabin.sample(2)
    assert heard.is_set()
    assert cabin.field.on_trial() == []


def test_it_starts_again_until_the_state_can_be_read() -> None:
    cabin = Cabin()
    cabin.field.recorder.unreadable = [CommandFailed("config-key dump", -5, "no quorum")]
    cabin.sample()
    assert "no quorum" in cabin.driver.problem
    cabin.sample()
    assert cabin.driver.problem == ""


def test_before_its_start_it_says_that_it_has_not_started() -> None:
    assert "not started" in Cabin().driver.document()["problem"]


def test_the_next_mgr_takes_a_trial_back_before_anything_else() -> None:
    left = Cabin().on_trial()
    left.field.alive.clear()
    cabin = Cabin(left.field, name="mgr.b")
    cabin.driver.attempt()
    assert left.field.on_trial() == []
    assert cabin.driver.state.mode == AUTO
    assert [note.what for note in left.field.recorder.notes][-1] == "failover"


def test_a_mgr_whose_start_fails_turn_after_turn_decides_nothing_meanwhile() -> None:
    """The store takes no state for so long that a started one would take the trial back unseen."""
    left = Cabin().on_trial()
    left.field.alive.clear()
    notes, refused = len(left.field.recorder.notes), []

    def refuse(key: str, value: str) -> None:
        if key == KEY:
            refused.append(key)
            raise CommandFailed("config-key set", -5, "no")

    left.field.store.on_set = refuse
    cabin = Cabin(left.field, name="mgr.b")
    cabin.sample(BLIND_TURNS + 2)
    # what the other one left is taken back by each attempt to start, and told once that has worked
    assert left.field.on_trial() == []
    assert (len(refused), len(left.field.recorder.notes)) == (BLIND_TURNS + 2, notes)
    left.field.store.on_set = lambda key, value: None
    cabin.sample()
    assert [note.what for note in left.field.recorder.notes[notes:]] == ["failover"]
    assert left.field.recorder.learned == []


def test_taking_back_that_fails_is_tried_again_with_every_sample() -> None:
    cabin = Cabin().on_trial()
    cabin.lookout.breach = Breach("osds.down", "1 OSDs down, 0 before")
    cabin.field.monitors.refuse = lambda who, name, value: True
    cabin.sample(3)
    assert [type(found) for found in cabin.field.recorder.outcomes].count(TakeBackFailed) == 3
    assert cabin.driver.state.problem
    cabin.field.monitors.refuse = lambda who, name, value: False
    cabin.sample()
    assert cabin.field.on_trial() == []
    assert cabin.driver.state.problem == ""


# the optimiser's answer


@pytest.mark.parametrize("word", ["pause", OFF])
def test_an_answer_that_comes_when_nobody_wants_it_any_more_is_dropped(word: str) -> None:
    cabin = Cabin()
    cabin.tell(AUTO)
    cabin.until(ASKING)
    cabin.tell(word)
    cabin.driver.inbox.post(answer(cabin.field.clock.now()))
    cabin.sample(20)
    assert cabin.driver.state.phase == OBSERVING
    assert cabin.driver.state.proposed is None
    assert cabin.field.entries() == []


def test_a_refused_answer_pauses_before_the_optimiser_is_asked_again() -> None:
    cabin = Cabin()
    cabin.tell(AUTO)
    cabin.until(ASKING)
    cabin.driver.inbox.post(Answered(cabin.field.clock.now(), refused="it died"))
    cabin.sample(10)
    assert (cabin.field.recorder.asked, cabin.driver.state.worker_failures) == (1, 1)
    cabin.sample(30)
    assert cabin.field.recorder.asked == 2
    assert cabin.field.entries() == []


# the thread


def test_the_thread_works_on_a_sample_and_a_word_and_ends_when_told() -> None:
    cabin, stop = Cabin(), threading.Event()
    thread = threading.Thread(target=cabin.driver.run, args=(stop,))
    thread.start()
    try:
        assert cabin.driver.tell(AUTO, "me")["mode"] == "auto"
        assert cabin.driver.tell("pause", "me")["paused"]
    finally:
        stop.set()
        thread.join(10.0)
    assert not thread.is_alive()


def test_what_is_on_trial_is_in_the_document_with_its_effects() -> None:
    cabin = Cabin().on_trial()
    cabin.sample(2)
    document = cabin.driver.document()
    assert document["proposed"]["settings"] == SETTINGS
    assert [row["metric"] for row in document["effects"]] == [P95]
    assert document["windows"] == 1
    assert document["missed"]


def test_turns_that_fail_one_after_the_other_take_a_trial_back_unseen() -> None:
    cabin = Cabin().on_trial()
    assert cabin.field.monitors.table
    cabin.lookout.trouble = [InputError("slo", "what a newer version wrote", "another")] * 20
    cabin.sample(BLIND_TURNS)
    assert (cabin.driver.state.phase, cabin.field.monitors.table) == (OBSERVING, {})


def test_a_sampling_thread_that_hangs_does_not_blind_the_guard() -> None:
    cabin = Cabin().on_trial()
    looks, cabin.lookout.overdue_s = cabin.lookout.looks, lambda: 0.0
    cabin.driver.attempt()
    assert cabin.lookout.looks == looks + 1


def test_a_sign_of_life_follows_only_a_look_that_worked() -> None:
    cabin = Cabin().on_trial()
    beats = cabin.beats
    cabin.sample()
    cabin.lookout.trouble = [ClusterTimeout("no answer")]
    cabin.sample()
    assert cabin.beats == beats + 1
