"""Whatever happens: the way back is that of before the book, and nothing is in force that no page names."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any, Dict, Optional

import pytest
from books import LIMITS, executor, look, page
from flights import Field
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from mortal_mgrs import MortalMgrs, field_on

from appliers import TABLES, Killed, applier, kill_at, survive
from ceph_tuner.core.autopilot.events import OperatorCommand
from ceph_tuner.core.book.book import PAGES_KEY, Book, StoredBook
from ceph_tuner.core.book.choice import choose
from ceph_tuner.core.book.events import OFF, ON
from ceph_tuner.core.book.executor import BY, KEY, BookExecutor
from ceph_tuner.core.book.state import HOLDING, RESTING, WATCHING, BookState
from ceph_tuner.core.changes.journal import APPLIED, Entry, Journal
from ceph_tuner.core.errors import ClusterTimeout, TunerError
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import nine
from monitors import Monitors, Table

EXAMPLES = int(os.environ.get("CEPH_TUNER_EXAMPLES", "25"))

_PAGES = (
    page(1, "busy", settings=nine((0.6, 4, 0), (0.1, 1, 0.3), (0.1, 1, 0.3))),
    page(2, "busy", settings={PROFILE: "high_client_ops"}),
    page(3, "recovering", settings={PROFILE: "high_recovery_ops", "osd_max_scrubs": 1}),
    page(4, "scrub-late", settings={"osd_max_scrubs": 6}),
    page(5, "trimming", settings={"osd_max_scrubs": -5}),
)
_REGIMES = ("busy", "recovering", "scrub-late", "trimming", "idle")


_HELD: Dict[str, Table] = {}


def held_by(table: str, settings: Any) -> Table:
    """What the database has where these settings alone were applied."""
    known = f"{table} {sorted(settings.items())}"
    if known not in _HELD:
        _HELD[known] = _applied(table, settings)
    return _HELD[known]


def _applied(table: str, settings: Any) -> Table:
    monitors = Monitors(osds=4, table=dict(TABLES[table]))
    one = applier(monitors)
    one.apply(one.plan("osd", settings))
    return monitors.table


def field_of(table: str, osds: int = 4) -> Field:
    field = field_on(table, osds)
    StoredBook(field.store).change(lambda _: Book(_PAGES, len(_PAGES)))
    return field


def seen(one: BookExecutor, field: Field, regime: str, breach: str = "") -> Any:
    book = StoredBook(field.store).read()
    return look(field.clock.now(), choose(book, regime, resting=one.state.rests), regime, breach)


class Switched(MortalMgrs):
    """One cluster with a book, mgrs that die at any write, monitors that fail, and other tuners."""

    @initialize(table=st.sampled_from(sorted(TABLES)), batch=st.integers(1, 4))
    def start(self, table: str, batch: int) -> None:
        self.name = table
        self.open(field_of(table), batch)
        self.handle(OperatorCommand(self.clock.now(), ON, "alice"))

    def new_executor(self, name: str) -> BookExecutor:
        return executor(self.field, name)

    def about_to_store(self, key: str, value: str) -> None:
        """Nothing is written but for a page that the store knows of."""
        if key.startswith("journal/") and key not in self.field.store.values:
            entry = Entry.from_text(key, value)
            assert entry.who.endswith(BY)
            assert entry.trial
            stored = BookState.from_dict(json.loads(self.field.store.values[KEY]))
            assert stored.on
            assert stored.next_page in [each.number for each in StoredBook(self.field.store).read().pages]

    @rule(regime=st.sampled_from(_REGIMES), seconds=st.sampled_from([5.0, 65.0, 700.0]))
    def looks(self, regime: str, seconds: float) -> None:
        self.clock.sleep(seconds)
        if self.executor is not None:
            self.handle(seen(self.executor, self.field, regime))

    @rule(rule=st.sampled_from(["slo", "blind", "osds.down"]))
    def a_breach(self, rule: str) -> None:
        if self.executor is not None:
            self.handle(seen(self.executor, self.field, self.executor.state.regime or "busy", rule))

    @rule(what=st.sampled_from([ON, ON, OFF]))
    def is_told(self, what: str) -> None:
        self.handle(OperatorCommand(self.clock.now(), what, "alice"))

    @precondition(lambda self: self.executor is None and not self.troubled)
    @rule()
    def the_guardian_takes_back(self) -> None:
        """As the process beside the mgr does: a plain applier that knows no book."""
        survive(self.monitors)
        self.field.alive.add("guardian")
        other, _ = self.field.hands("guardian")
        other.recover()
        assert [each for each in self.field.entries() if each.trial or each.unfinished] == []

    @invariant()
    def one_change_takes_all_of_it_back(self) -> None:
        in_force = [entry for entry in self.field.entries() if entry.unfinished or entry.state == APPLIED]
        assert len(in_force) <= 1
        restores = {item.key: item.value for entry in in_force for item in entry.restores}
        for key in {*self.table, *self.monitors.table}:
            if self.table.get(key) != self.monitors.table.get(key):
                assert restores[key] == self.table.get(key)

    @invariant()
    def what_is_in_force_is_a_page_or_what_was_before(self) -> None:
        if self.executor is None or self.troubled:
            return
        state = self.executor.state
        if state.phase == RESTING:
            assert self.monitors.table == self.table
        elif state.phase in (WATCHING, HOLDING):
            assert self.monitors.table == held_by(self.name, state.settings)
            (named,) = [each for each in StoredBook(self.field.store).read().pages if each.number == state.page]
            assert named.regime == state.regime
            assert dict(named.settings) == dict(state.settings)

    def teardown(self) -> None:
        """A mgr lives and the monitors answer: off is as before, byte for byte."""
        if not hasattr(self, "field"):
            return
        self.revive()
        self.handle(OperatorCommand(self.clock.now(), OFF, "alice"))
        for _ in range(3):
            self.clock.sleep(65.0)
            self.handle(seen(self.executor, self.field, "busy"))
        assert (self.executor.state.phase, self.executor.state.on) == (RESTING, False)
        self.assert_untouched()
        assert [each for each in self.field.entries() if each.state == APPLIED] == []


TestSwitched = Switched.TestCase
TestSwitched.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)


def _fly(field: Field, name: str) -> BookExecutor:
    """On where it is not, through regimes with pages, until a page holds."""
    one = executor(field, name)
    one.start()
    if not one.state.on:
        one.handle(OperatorCommand(field.clock.now(), ON, "alice"))
    for regime in ("scrub-late", "scrub-late", "busy", "recovering", "recovering"):
        field.clock.sleep(65.0)
        one.handle(seen(one, field, regime))
    return one


@pytest.mark.slow
@pytest.mark.parametrize("landed", [False, True])
@pytest.mark.parametrize("table", sorted(TABLES))
def test_it_survives_a_kill_at_every_boundary(table: str, landed: bool) -> None:
    boundary, killed = 0, True
    while killed:
        boundary += 1
        field = field_of(table, 2)
        before = field.monitors.schedulers()
        kill = kill_at(field.monitors, boundary, landed)
        with suppress(Killed):
            _fly(field, "mgr.a")
        killed = kill.dead
        survive(field.monitors)
        field.alive.clear()
        last = _fly(field, "mgr.b")
        assert last.state.phase in (WATCHING, HOLDING), boundary
        assert field.monitors.table == held_by(table, dict(_PAGES[2].settings)), boundary
        last.handle(OperatorCommand(field.clock.now(), OFF, "alice"))
        assert field.monitors.table == TABLES[table], boundary
        assert field.monitors.schedulers() == before, boundary
        assert [each for each in field.entries() if each.state == APPLIED] == []
    assert boundary > 40, "state, claim, trail, journal and steps of three switches"


def holding(field: Field) -> BookExecutor:
    """On, with the page of `scrub-late` watched to its end."""
    one = executor(field)
    one.handle(OperatorCommand(field.clock.now(), ON, "alice"))
    for _ in range(2):
        one.handle(seen(one, field, "scrub-late"))
        field.clock.sleep(65.0)
    return one


def test_the_lock_is_free_while_a_page_holds_and_not_while_it_is_watched() -> None:
    field = field_of("nothing")
    one = executor(field)
    one.handle(OperatorCommand(field.clock.now(), ON, "alice"))
    one.handle(seen(one, field, "scrub-late"))
    assert one.state.phase == WATCHING
    other, _ = field.hands("other")
    with pytest.raises(TunerError, match="another tuner is at work"):
        other.apply(other.plan("osd", {"osd_max_trimming_pgs": 2}))
    field.clock.sleep(LIMITS.watch)
    one.handle(seen(one, field, "scrub-late"))
    assert one.state.phase == HOLDING
    assert field.recorder.guarded == [True, False]
    assert other.apply(other.plan("osd", {"osd_max_trimming_pgs": 2})) is not None
    # a switch leaves what others changed meanwhile
    field.clock.sleep(65.0)
    one.handle(seen(one, field, "recovering"))
    assert field.monitors.table["osd", "osd_max_trimming_pgs"] == "2"
    one.handle(OperatorCommand(field.clock.now(), OFF, "alice"))
    assert field.monitors.table == {("osd", "osd_max_trimming_pgs"): "2"}


def test_a_page_that_was_struck_is_never_used_again_and_the_next_best_holds() -> None:
    field = field_of("nothing")
    one = executor(field)
    one.handle(OperatorCommand(field.clock.now(), ON, "alice"))
    one.handle(seen(one, field, "busy"))
    assert one.state.page == 2
    one.handle(seen(one, field, "busy", "slo"))
    assert field.monitors.table == {}
    assert StoredBook(field.store).read().page(2).reason == "slo: slo broken"
    field.clock.sleep(65.0)
    one.handle(seen(one, field, "busy"))
    assert one.state.page == 1
    one.handle(seen(one, field, "busy", "slo"))
    field.clock.sleep(65.0)
    one.handle(seen(one, field, "busy"))
    assert (one.state.phase, field.monitors.table) == (RESTING, {})


def test_a_strike_that_cannot_be_stored_is_stored_before_anything_is_written() -> None:
    field = field_of("nothing")
    one = executor(field)
    one.handle(OperatorCommand(field.clock.now(), ON, "alice"))
    one.handle(seen(one, field, "busy"))

    def refuse(key: str, value: str) -> None:
        if key == PAGES_KEY:
            raise ClusterTimeout("no answer")

    field.store.on_set = refuse
    one.handle(seen(one, field, "busy", "slo"))
    assert field.monitors.table == {}
    field.clock.sleep(65.0)
    one.handle(seen(one, field, "scrub-late"))
    assert field.monitors.table == {}
    field.store.on_set = lambda key, value: None
    field.clock.sleep(65.0)
    one.handle(seen(one, field, "recovering"))
    assert StoredBook(field.store).read().page(2).state == "struck"
    assert one.state.page == 3


def test_an_operators_rollback_of_the_change_is_not_undone() -> None:
    field = field_of("nothing")
    one = holding(field)
    assert one.state.phase == HOLDING
    other, _ = field.hands("the program")
    other.undo()
    # the lookout sees the values and says so
    one.handle(seen(one, field, "scrub-late", "drift"))
    assert (one.state.phase, one.state.on, field.monitors.table) == (RESTING, False, {})
    assert [note.what for note in field.recorder.notes][-1] == "book back"


def test_a_value_that_is_changed_between_two_mgrs_is_left_alone_and_the_book_goes_off() -> None:
    field = field_of("nothing")
    one = executor(field)
    one.handle(OperatorCommand(field.clock.now(), ON, "alice"))
    one.handle(seen(one, field, "scrub-late"))
    assert one.state.phase == WATCHING
    field.alive.clear()
    field.monitors.table["osd", "osd_max_scrubs"] = "9"
    two = executor(field, "mgr.2")
    two.start()
    assert (two.state.phase, two.state.on) == (RESTING, False)
    assert "osd_max_scrubs" in two.state.stopped
    assert field.monitors.table == {("osd", "osd_max_scrubs"): "9"}


def test_its_change_is_joined_with_no_other() -> None:
    field = field_of("nothing")
    one = holding(field)
    other, lock = field.hands("other")
    for value in range(1, 9):
        other.apply(other.plan("osd", {"osd_max_trimming_pgs": value}))
    with lock:
        Journal(field.store, 4).trim()
    assert 1 in [entry.number for entry in field.entries()]
    assert len(field.entries()) < 9
    one.handle(OperatorCommand(field.clock.now(), OFF, "alice"))
    assert field.monitors.table == {("osd", "osd_max_trimming_pgs"): "8"}


@pytest.mark.parametrize("text", [None, "[1", '{"phase": "tea"}'])
def test_a_change_that_a_lost_state_knows_no_more_is_taken_back(text: Optional[str]) -> None:
    field = field_of("nothing")
    one = holding(field)
    assert one.state.phase == HOLDING
    if text is None:
        del field.store.values[KEY]
    else:
        field.store.values[KEY] = text
    other = executor(field, "mgr.b")
    other.start()
    other.handle(seen(other, field, "scrub-late"))
    assert (other.state.phase, other.state.on, field.monitors.table) == (RESTING, False, {})
    assert "state is lost" in other.state.stopped
