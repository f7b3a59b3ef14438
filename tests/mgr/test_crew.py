from __future__ import annotations

import enum
import logging
import threading
from typing import Any, Callable, List, Optional, Tuple

import pytest
from flights import P95, QUICK, SETTINGS, Field, answer, effect, seen

from ceph_tuner.autopilot.audit import APPLY, Audit, Record
from ceph_tuner.autopilot.contract import BETTER
from ceph_tuner.autopilot.events import (
    Answered,
    Event,
    Kept,
    Learn,
    Note,
    TakeBackFailed,
    Told,
    TookBack,
    WriteFailed,
    Wrote,
)
from ceph_tuner.autopilot.pilot import Pilot
from ceph_tuner.autopilot.policy import Policy
from ceph_tuner.autopilot.state import State
from ceph_tuner.errors import CommandFailed, TunerError
from ceph_tuner.history import History
from ceph_tuner.trial import Trial
from monitors import MemoryStore
from tuner.announce import Announcer
from tuner.crew import RECENT, MgrCrew

WHO = "ceph tuner in mgr.a"
APPLIED = Note(APPLY, "why", detail={"stage": "canary", "targets": ["osd.0"]})


class Mgr:
    """The cluster's log, and whether it works."""

    class ClusterLogPrio(enum.Enum):
        INFO = 1
        WARN = 2

    def __init__(self, before: Callable[[], None]) -> None:
        self.lines: List[str] = []
        self._before = before

    def cluster_log(self, channel: str, priority: Any, message: str) -> None:
        self._before()
        self.lines.append(message)

    def remote(self, *arguments: Any, **named: Any) -> None:
        raise ImportError("no progress module")


class Optimiser:
    def __init__(self) -> None:
        self.asked: List[Tuple[str, State]] = []
        self.go_on = threading.Event()

    def ask(self, state: State, policy: Policy) -> Answered:
        self.go_on.wait(30.0)
        self.asked.append((threading.current_thread().name, state))
        return Answered(1.0, refused="it has no idea")


class Aboard:
    """A crew with a store of its own."""

    def __init__(self, store: Optional[MemoryStore] = None) -> None:
        self.store = store or MemoryStore()
        self.trail = Audit(self.store)
        self.mgr = Mgr(lambda: self.at_the_log.append(len(self.trail.newest())))
        self.at_the_log: List[int] = []
        self.optimiser, self.answers = Optimiser(), threading.Semaphore(0)
        self.heard: List[Answered] = []
        self.told: List[bool] = []
        self.crew = MgrCrew(
            self.trail,
            Announcer(self.mgr, logging.getLogger("test")),
            lambda: History(self.store),
            self.optimiser,
            lambda: QUICK,
            self._answered,
            [lambda state: self.told.append(state.on_cluster), lambda state: self.told.append(state.on_cluster)],
            WHO,
            logging.getLogger("test"),
        )

    def _answered(self, found: Answered) -> None:
        self.heard.append(found)
        self.answers.release()

    def records(self) -> List[Record]:
        return self.trail.newest()

    def failing(self) -> None:
        def fail() -> None:
            raise CommandFailed("config-key set", -5, "no quorum")

        self.store.before_write = fail

    def well(self) -> None:
        self.store.before_write = lambda: None


def learnt(number: int = 1) -> Learn:
    return Learn(SETTINGS, {P95: effect(P95, BETTER)}, {P95: 50.0}, number)


# the trail


def test_a_note_is_in_the_trail_before_anybody_hears_of_it() -> None:
    aboard = Aboard()
    aboard.crew.note(APPLIED, 10.0)
    (record,) = aboard.records()
    assert (record.what, record.who, record.at, record.detail["targets"]) == (APPLY, WHO, 10.0, ["osd.0"])
    assert aboard.at_the_log == [1]
    assert "osd.0" in aboard.mgr.lines[0]


def test_an_operators_note_bears_the_operators_name() -> None:
    aboard = Aboard()
    aboard.crew.note(Note("mode", "off to auto", "client.admin"), 10.0)
    assert aboard.records()[0].who == "client.admin"


def test_what_is_not_in_the_trail_is_neither_announced_nor_taken_for_told() -> None:
    aboard = Aboard()
    aboard.failing()
    with pytest.raises(TunerError):
        aboard.crew.note(APPLIED, 10.0)
    assert (aboard.mgr.lines, aboard.crew.recent) == ([], [])
    aboard.well()
    aboard.crew.note(APPLIED, 11.0)
    assert [record.at for record in aboard.records()] == [11.0]


def test_a_trial_is_in_the_trail_before_the_cluster_has_it() -> None:
    """The whole way: pilot, crew, trail and monitors."""
    field = Field()
    aboard = Aboard(field.store)
    pilot = Pilot(field.store, lambda: field.hands("mgr.a"), aboard.crew, field.clock, lambda: QUICK, "mgr")
    before: List[List[str]] = []

    def writing() -> None:
        # the store and the database share this hook: only a write of a setting shows in `writes`
        before.append([record.what for record in aboard.records()])

    for event in (Told(0.0, "auto", "me"), seen(1.0), answer(2.0)):
        pilot.handle(event)
    original = field.monitors.set

    def spied(who: str, name: str, value: str) -> None:
        writing()
        original(who, name, value)

    field.monitors.set = spied  # type: ignore[method-assign]
    pilot.handle(seen(3.0, windows=9))
    assert before
    assert all(kinds[-1] == APPLY for kinds in before)
    assert [(record.what, record.outcome) for record in aboard.records()][-2:] == [(APPLY, ""), (APPLY, "written")]


@pytest.mark.parametrize(
    ("outcome", "words", "detail"),
    [
        (Wrote(12.0, (3, 4)), "written", {"changes": [3, 4]}),
        (WriteFailed(12.0, "no quorum"), "failed: no quorum", {}),
        (TookBack(12.0), "taken back", {}),
        (TookBack(12.0, ("osd.1 x: 3",)), "taken back", {"drift": ["osd.1 x: 3"]}),
        (TakeBackFailed(12.0, "no quorum"), "failed: no quorum", {}),
        (Kept(12.0, 9), "kept", {"change": 9}),
    ],
)
def test_what_came_of_an_act_is_told_once_and_refers_to_it(outcome: Event, words: str, detail: dict) -> None:
    aboard = Aboard()
    aboard.crew.note(APPLIED, 10.0)
    aboard.crew.came_of(outcome)
    aboard.crew.came_of(outcome)
    act, told = aboard.records()
    assert (told.refers, told.outcome, told.detail, told.at) == (act.number, words, detail, 12.0)


def test_what_is_no_act_has_no_outcome() -> None:
    aboard = Aboard()
    aboard.crew.note(Note("proposal", "why"), 10.0)
    aboard.crew.came_of(Wrote(12.0, (1,)))
    aboard.crew.note(APPLIED, 13.0)
    aboard.crew.came_of(Answered(14.0, refused="x"))
    assert [record.outcome for record in aboard.records()] == ["", ""]


def test_an_outcome_that_cannot_be_stored_stops_nothing() -> None:
    aboard = Aboard()
    aboard.crew.note(APPLIED, 10.0)
    aboard.failing()
    aboard.crew.came_of(Wrote(12.0, (1,)))
    aboard.well()
    assert len(aboard.records()) == 1


# another mgr


def failover(aboard: Aboard) -> Aboard:
    following = Aboard(aboard.store)
    following.crew.remember()
    return following


FAILOVER = Note("failover", "took back changes 3")


def test_a_failover_is_the_outcome_of_the_act_on_which_its_mgr_died() -> None:
    aboard = Aboard()
    aboard.crew.note(APPLIED, 10.0)
    following = failover(aboard)
    following.crew.note(FAILOVER, 20.0)
    act, found = aboard.records()
    assert found.refers == act.number
    # it is told now: one more failover has nothing to refer to
    again = failover(following)
    again.crew.note(FAILOVER, 30.0)
    assert again.records()[-1].refers == 0


def test_a_failover_refers_to_nothing_where_every_act_has_its_outcome() -> None:
    aboard = Aboard()
    aboard.crew.note(APPLIED, 10.0)
    aboard.crew.came_of(Wrote(11.0, (3,)))
    following = failover(aboard)
    following.crew.note(FAILOVER, 20.0)
    assert following.records()[-1].refers == 0


def test_a_failover_does_not_answer_for_an_old_act_whose_outcome_was_lost() -> None:
    aboard = Aboard()
    aboard.crew.note(APPLIED, 10.0)
    aboard.failing()
    aboard.crew.came_of(Wrote(11.0, (3,)))
    aboard.well()
    aboard.crew.note(Note("taken back", "harm"), 12.0)
    aboard.crew.came_of(TookBack(13.0))
    following = failover(aboard)
    following.crew.note(FAILOVER, 20.0)
    assert following.records()[-1].refers == 0


def test_the_whole_way_over_a_failover_leaves_no_act_without_an_end() -> None:
    field = Field()
    aboard = Aboard(field.store)
    pilot = Pilot(field.store, lambda: field.hands("mgr.a"), aboard.crew, field.clock, lambda: QUICK, "mgr")
    for event in (Told(0.0, "auto", "me"), seen(1.0), answer(2.0)):
        pilot.handle(event)

    class Dies(BaseException):
        pass

    def die(who: str, name: str, value: str) -> None:
        raise Dies

    original, field.monitors.set = field.monitors.set, die  # type: ignore[method-assign]
    with pytest.raises(Dies):
        pilot.handle(seen(3.0, windows=9))
    field.monitors.set = original  # type: ignore[method-assign]
    field.alive.clear()
    following = failover(aboard)
    Pilot(field.store, lambda: field.hands("mgr.b"), following.crew, field.clock, lambda: QUICK, "mgr").start()
    apply, found = following.records()[-2:]
    assert (apply.what, found.what, found.refers) == (APPLY, "failover", apply.number)
    assert field.on_trial() == []


@pytest.mark.parametrize("count", [3, RECENT, 2 * RECENT])
def test_a_new_mgr_knows_the_newest_records_and_forgets_older_ones(count: int) -> None:
    aboard = Aboard()
    for number in range(count):
        aboard.crew.note(Note("resumed", f"{number}"), float(number))
    assert failover(aboard).crew.recent == aboard.crew.recent == aboard.records()[-RECENT:]


# the history


def test_a_trials_result_is_in_the_history_with_the_time_that_it_took() -> None:
    aboard = Aboard()
    aboard.crew.note(APPLIED, 100.0)
    aboard.crew.learn(learnt(7), 700.0)
    (found,) = [Trial.from_dict(entry) for entry in History(aboard.store).trials()]
    assert (found.run.label, found.at, found.seconds) == ("trial 7", 700.0, 600.0)
    assert found.means[P95] == pytest.approx(40.0)


def test_a_trial_that_ends_under_another_mgr_took_no_half_a_century() -> None:
    aboard = Aboard()
    aboard.crew.note(APPLIED, 1_700_000_000.0)
    following = failover(aboard)
    following.crew.learn(learnt(), 1_700_000_600.0)
    assert History(aboard.store).trials()[0]["seconds"] == 600.0


@pytest.mark.parametrize("fault", ["store", "size"])
def test_a_history_that_cannot_be_written_costs_a_warning_only(fault: str, caplog: pytest.LogCaptureFixture) -> None:
    aboard = Aboard()
    result = learnt()
    if fault == "store":
        aboard.failing()
    else:
        result = Learn({"x": "y" * 100_000}, {}, {}, 1)
    with caplog.at_level(logging.WARNING):
        aboard.crew.learn(result, 10.0)
    assert "lost" in caplog.text
    assert History(aboard.store).trials() == []


# the optimiser, and who watches


def test_the_optimiser_thinks_in_a_thread_of_its_own() -> None:
    aboard = Aboard()
    aboard.crew.ask(State())
    # it comes back at once: the guard goes on
    assert aboard.heard == []
    aboard.optimiser.go_on.set()
    assert aboard.answers.acquire(timeout=30.0)
    assert aboard.heard[0].refused == "it has no idea"
    assert aboard.optimiser.asked[0][0] != threading.current_thread().name


def test_all_who_watch_are_told_what_is_on_trial() -> None:
    aboard = Aboard()
    aboard.crew.on_trial(State(changes=(1,)))
    aboard.crew.on_trial(State())
    assert aboard.told == [True, True, False, False]
