"""Regimes that know the calendar: the book has other settings under another policy of the objectives."""

from __future__ import annotations

import json
import time
from typing import Any, Dict, List, Optional

import pytest
from automatic_on_twin import closed_windows
from test_books import HARMFUL, WithBook, kept, page, recovering
from test_books_of_classes import OBJECTIVES, OfClasses

from ceph_tuner.core.autopilot.events import Look
from ceph_tuner.core.book.book import PAGES_KEY, StoredBook
from ceph_tuner.core.book.page import STRUCK, UNVALIDATED, VALIDATED, Page
from ceph_tuner.core.book.state import HOLDING, RESTING, WATCHING
from ceph_tuner.core.changes.journal import UNDONE
from ceph_tuner.core.errors import ClusterTimeout, InputError
from ceph_tuner.core.measure.timeline import timeline
from ceph_tuner.core.regimes.bounds import BOUNDS_KEY, Marker, PolicyMarker, RegimeBounds
from ceph_tuner.core.regimes.telling import UNSEEN_S
from tuner import render, render_automatic, render_book
from tuner.exposition import exposition
from twin_cluster.cluster import TwinCluster

BOUNDS = RegimeBounds(
    (PolicyMarker("office", "office"), Marker("recovering", "recovery.objects_left", 1.0, 0.0, 10.0)), 20.0
)
BY_DAY, BY_NIGHT = "office+recovering", "recovering"


class UnderCalendar(WithBook):
    """A cluster that recovers, and whose policy `office` begins some minutes from now and holds for five."""

    def __init__(self, *pages: Page, twin: Optional[TwinCluster] = None, calendar: bool = True, **options: Any) -> None:
        super().__init__(twin or recovering(1_000_000), *pages, **options)
        self.service.store.set(BOUNDS_KEY, json.dumps(BOUNDS.to_dict()))
        self.begin, self.end = 0.0, 0.0
        if calendar:
            self.set_calendar(240.0)

    def set_calendar(self, begins_s: float, *objectives: str, base: str = "client.p95_ms <= 60 s") -> None:
        self.begin = (self.now() + begins_s) // 60.0 * 60.0
        self.end = self.begin + 300.0
        hours = "-".join(time.strftime("%H:%M", time.gmtime(at)) for at in (self.begin, self.end))
        office = {"name": "office", "hours": f"mon-sun {hours}", "objectives": list(objectives)}
        document = {"objectives": [base], "calendar": {"policies": [office]}}
        self.service.slo_commands.set("", False, 1.0, json.dumps(document), True)

    def now(self) -> float:
        return float(self.twin.clock.now())

    def before(self, at: float) -> None:
        """Samples up to the last one before that moment."""
        while self.now() + 5.0 < at:
            self.sample()


def two_pages() -> List[Page]:
    return [page(1, BY_DAY), page(2, BY_NIGHT), page(3, "office"), page(4, "idle")]


def held(mgr: WithBook) -> Dict[str, str]:
    return {row["scope"]: row["regime"] for row in mgr.modes.regimes.held()}


def on_the_night_page(**options: Any) -> UnderCalendar:
    mgr = UnderCalendar(*two_pages(), **options)
    mgr.sample(14)
    mgr.on()
    mgr.until_phase(HOLDING)
    assert (mgr.regime(), mgr.state.page) == (BY_NIGHT, 2)
    return mgr


def test_each_policy_has_its_page_from_the_first_sample_under_it_on() -> None:
    mgr = UnderCalendar(*two_pages())
    before = mgr.table()
    mgr.sample(14)
    mgr.on()
    while mgr.now() < mgr.end + 60.0:
        mgr.sample()
        by_day = mgr.begin <= mgr.now() < mgr.end
        assert mgr.regime() == (BY_DAY if by_day else BY_NIGHT)
        assert (mgr.state.page, mgr.state.phase in (WATCHING, HOLDING)) == (1 if by_day else 2, True)
        assert mgr.table()["osd", "osd_max_scrubs"] == str(mgr.state.page)
    assert len(mgr.state.switches) == 3
    assert mgr.in_force() == [1]
    mgr.until_phase(HOLDING)
    mgr.off()
    assert mgr.table() == before
    assert [entry.state for entry in mgr.entries()] == [UNDONE]
    assert mgr.modes.health() == {}


def test_limits_of_the_book_hold_as_for_any_regime() -> None:
    mgr = on_the_night_page(book_switches=1)
    mgr.before(mgr.begin)
    mgr.sample()
    assert (mgr.regime(), mgr.state.phase) == (BY_DAY, RESTING)
    mgr = on_the_night_page(book_dead_time=3600.0)
    mgr.before(mgr.begin)
    mgr.sample(3)
    assert (mgr.regime(), mgr.state.page) == (BY_DAY, 2)
    assert any("book_dead_time" in words for words in mgr.books.words())


def test_a_new_mgr_at_the_turn_tells_what_the_one_before_would() -> None:
    mgr = on_the_night_page()
    mgr.before(mgr.begin - 5.0)
    other = UnderCalendar(twin=mgr.twin, calendar=False)
    # rates take two readings
    other.sample()
    assert (other.regime(), other.now()) == ("", mgr.begin - 5.0)
    other.sample()
    assert (other.regime(), other.now()) == (BY_DAY, mgr.begin)
    # it has not heard of all OSDs yet: what is in force stays until the regime is settled
    assert (other.state.phase, other.state.page) == (HOLDING, 2)
    other.sample(int(BOUNDS.dwell_s / 5.0))
    assert (other.regime(), other.state.page) == (BY_DAY, 1)


def test_a_turn_in_the_first_samples_of_a_new_mgr_settles_nothing() -> None:
    mgr = on_the_night_page()
    mgr.before(mgr.begin - 10.0)
    other = UnderCalendar(twin=mgr.twin, calendar=False)
    other.sample(2)
    assert other.regime() == BY_NIGHT
    other.sample()
    assert (other.regime(), other.state.page) == (BY_DAY, 2)
    other.sample(int(BOUNDS.dwell_s / 5.0))
    assert other.state.page == 1


def test_monitors_that_do_not_answer_hold_up_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    mgr = on_the_night_page()

    def silent() -> Any:
        raise ClusterTimeout("config-key get", 5.0)

    mgr.before(mgr.begin)
    monkeypatch.setattr(mgr.service.slos, "calendar", silent)
    mgr.sample()
    assert mgr.regime() == BY_DAY


def test_objectives_that_nobody_can_read_leave_the_regime_for_a_while() -> None:
    mgr = UnderCalendar()
    mgr.before(mgr.begin)
    mgr.sample(2)
    assert mgr.regime() == BY_DAY
    text = mgr.service.store.get("slo")
    mgr.service.store.set("slo", "{")
    mgr.sample(4)
    assert mgr.regime() == BY_DAY
    assert not any("is never on" in note for note in mgr.books.document()["notes"])
    mgr.sample(int(UNSEEN_S / 5.0))
    assert mgr.regime() == BY_NIGHT
    assert "by the calendar, as nobody can read it; recovery.objects_left" in in_words(mgr)
    mgr.service.store.set("slo", text or "")
    mgr.set_calendar(0.0)
    mgr.sample(2)
    assert mgr.regime() == BY_DAY


def test_a_calendar_that_is_removed_ends_its_regime() -> None:
    mgr = UnderCalendar()
    mgr.before(mgr.begin)
    mgr.sample(2)
    mgr.service.slo_commands.remove("all")
    mgr.sample()
    assert mgr.regime() == BY_NIGHT
    assert "by the calendar, as none holds any more; recovery.objects_left" in in_words(mgr)


def in_words(mgr: WithBook) -> str:
    """As the lines are folded."""
    return " ".join(render_book.book(mgr.books.document()).split())


def test_it_is_said_that_the_calendar_turned_the_regime_and_when_it_will_again() -> None:
    mgr = on_the_night_page()
    begin, end = (time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at)) for at in (mgr.begin, mgr.end))
    shown = " ".join(render_automatic.modes(mgr.modes.document()).split())
    assert f"the calendar turns it at {begin}" in shown
    assert f"{BY_DAY} (page 1) would switch it, once office is on: as the policy office begins ({begin})" in shown
    assert "by the calendar, as" not in shown
    mgr.before(mgr.begin)
    mgr.sample()
    for shown in (in_words(mgr), " ".join(render_automatic.modes(mgr.modes.document()).split())):
        assert f"cluster: {BY_DAY} since {begin} by the calendar, as the policy office began; recovery" in shown
        assert f"the calendar turns it at {end}" in shown
        assert f"{BY_NIGHT} (page 2) would switch it, once office is off: as the policy office ends ({end})" in shown
    assert "office policy office its begin its end" in in_words(mgr)
    assert "told after 20 s at the earliest, by the calendar at once, by:" in in_words(mgr)
    (row,) = mgr.books.document()["regimes"]
    assert (row["by_policy"], row["turns_at"]) == ("office", mgr.end)


def test_markers_without_a_policy_in_the_calendar_are_said() -> None:
    named = "the marker office is never on: the calendar has no policy office"
    mgr = UnderCalendar(*two_pages(), calendar=False)
    mgr.sample(14)
    assert named in mgr.books.document()["notes"]
    mgr.on()
    mgr.sample(2)
    words = "office is on: as the policy office begins (the calendar has no such policy)"
    assert any(words in line for line in mgr.books.words())
    assert mgr.modes.regimes.held()[0]["turns_at"] is None
    mgr.set_calendar(240.0)
    assert not any("is never on" in note for note in mgr.books.document()["notes"])


def test_a_policy_that_is_renamed_while_a_marker_names_it_is_said_before_and_after_and_by_a_health_check() -> None:
    mgr = on_the_night_page()
    office = json.loads(mgr.service.store.get("slo") or "")
    renamed = json.dumps(office).replace('"office"', '"day"')
    line = "the marker office is never on: the calendar has no policy office"
    waiting = f"{line}; pages of the book that wait for it: 1, 3"

    def notes() -> Any:
        return mgr.service.status()["notes"]

    assert (mgr.service.slo_commands.set("", False, 1.0, json.dumps(office)) or {})["notes"] == []
    assert (mgr.modes.health(), notes()) == ({}, [])
    # before it is accepted
    week = mgr.service.slo_commands.set("", False, 1.0, renamed)
    assert f"note: {waiting}" in " ".join(render.slo(week).split())
    assert mgr.modes.health() == {}
    for shown in (mgr.service.slo_commands.set("", False, 1.0, renamed, True), mgr.service.slo_commands.document()):
        assert f"note: {waiting}" in " ".join(render.slo(shown).split())
    assert mgr.modes.health() == {"TUNER_POLICY_MISSING": [line]}
    assert waiting in notes()
    mgr.sample()
    assert mgr.modes.health() == {"TUNER_POLICY_MISSING": [line]}
    removed = mgr.service.slo_commands.remove("all")
    assert render.slo(removed).startswith("no SLO is set\nnote: ")
    # the controller takes it for no objectives
    assert mgr.service.slo_commands.document() is None
    mgr.off()
    assert mgr.modes.health() == {}
    # an operator may mean it so
    assert waiting in notes()
    mgr.service.slo_commands.set("", False, 1.0, json.dumps(office), True)
    mgr.on()
    assert (mgr.modes.health(), notes()) == ({}, [])


def test_what_nobody_can_read_of_regimes_and_book_hides_no_objectives() -> None:
    mgr = UnderCalendar(*two_pages(), calendar=False)
    mgr.service.store.set(PAGES_KEY, "{")
    (note,) = (mgr.service.slo_commands.set("client.p95_ms <= 60 s", False, 1.0, "") or {})["notes"]
    assert note == "the marker office is never on: the calendar has no policy office"
    mgr.service.store.set(BOUNDS_KEY, "{")
    document = mgr.service.slo_commands.document()
    assert document is not None
    assert (document["notes"], len(document["objectives"])) == ([], 1)


def test_pages_of_a_policy_that_no_marker_names_are_kept_and_said() -> None:
    mgr = UnderCalendar()
    mgr.sample(14)
    pages = [page(1, "weekend+recovering").to_dict(), page(2, BY_DAY).to_dict()]
    document = mgr.books.take(json.dumps({"pages": pages}))
    assert [each["regime"] for each in document["pages"]] == ["weekend+recovering", BY_DAY]
    (note,) = [note for note in document["notes"] if "no regime of these bounds" in note]
    assert "1 (weekend+recovering)" in note
    assert [each["regime"] for each in mgr.books.export()["pages"]] == ["weekend+recovering", BY_DAY]


def test_pages_that_name_no_policy_are_said_to_be_unused_where_each_policy_has_a_marker() -> None:
    mgr = UnderCalendar(*two_pages())
    every = RegimeBounds((PolicyMarker("office", "office"), PolicyMarker("else", "base"), *BOUNDS.of_metrics), 20.0)
    mgr.during(lambda: mgr.books.set_bounds(json.dumps(every.to_dict()), False))
    mgr.sample(14)
    mgr.on()
    mgr.sample(2)
    assert mgr.regime() == "else+recovering"
    (note,) = [note for note in mgr.books.document()["notes"] if "no regime of these bounds" in note]
    assert "are never used: 2, 4 (idle, recovering). Each policy of the calendar has a marker" in note
    words = mgr.books.words()
    assert f"page 2 is for {BY_NIGHT}, and the present bounds tell no such regime" in words
    assert any(line.startswith(f"{BY_DAY} (page 1) would switch it") for line in words)
    # the base has no marker
    mgr.during(lambda: mgr.books.set_bounds(json.dumps(BOUNDS.to_dict()), False))
    assert not [note for note in mgr.books.document()["notes"] if "no regime of these bounds" in note]


def test_a_trial_under_a_policy_is_a_page_of_it_and_one_across_a_turn_is_none() -> None:
    mgr = UnderCalendar()
    mgr.before(mgr.begin)
    mgr.sample(4)
    aim = mgr.modes.whole.aim
    mgr.books.validated(aim, kept({"osd_max_scrubs": 4}), mgr.now(), mgr.begin + 1.0)
    mgr.books.validated(aim, kept({"osd_max_scrubs": 5}), mgr.now(), mgr.begin - 1.0)
    (own,) = StoredBook(mgr.service.store).read().pages
    assert (own.regime, own.state, own.settings) == (BY_DAY, VALIDATED, {"osd_max_scrubs": 4})


def test_a_trial_that_a_turn_interrupts_is_taken_back_and_makes_no_page() -> None:
    mgr = UnderCalendar(calendar=False)
    # a trial begins where its policy lasts for long enough
    mgr.set_calendar(1800.0, "client.p95_ms <= 0.01", base="client.p95_ms <= 0.01")
    mgr.on_trial("recovery.finish_s<=40 weeks", osd_max_scrubs=3)
    mgr.set_calendar(60.0, "client.p95_ms <= 0.02", base="client.p95_ms <= 0.01")
    while mgr.now() < mgr.begin:
        assert mgr.driver.state.phase == "trying"
        mgr.sample()
    assert mgr.regime() == BY_DAY
    mgr.sample()
    assert mgr.driver.state.phase == "observing"
    assert mgr.driver.state.failures == 0
    look = mgr.driver.newest_look
    assert isinstance(look, Look)
    assert look.policy == "office"
    assert StoredBook(mgr.service.store).read().pages == ()


@pytest.mark.parametrize("later", [0, 1])
def test_no_window_of_before_a_turn_is_held_against_a_page_by_the_objectives_after_it(
    later: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mgr = UnderCalendar(page(1, BY_DAY, {"osd_max_scrubs": 4}), page(2, BY_NIGHT, {"osd_max_scrubs": 4}))
    mgr.set_calendar(240.0, "client.p95_ms <= 30 s")
    mgr.sample(14 + later)
    mgr.on()
    mgr.until_phase(HOLDING)
    windows = closed_windows(monkeypatch)
    mgr.before(mgr.begin + 60.0)
    assert (mgr.state.phase, mgr.state.page) == (HOLDING, 1)
    assert windows
    assert not [window for window in windows if window.start < mgr.begin < window.end]
    assert max(window.end for window in windows) > mgr.begin


def test_a_device_class_follows_the_calendar_by_its_own_pages() -> None:
    mgr = OfClasses(
        page(1, BY_DAY, {"osd_max_scrubs": 1}, target="osd/class:hdd"),
        page(2, BY_NIGHT, {"osd_max_scrubs": 2}, target="osd/class:hdd"),
        twin=recovering(1_000_000),
    )
    mgr.service.store.set(BOUNDS_KEY, json.dumps(BOUNDS.to_dict()))
    begin = (mgr.twin.clock.now() + 240.0) // 60.0 * 60.0
    hours = "-".join(time.strftime("%H:%M", time.gmtime(at)) for at in (begin, begin + 300.0))
    calendar = {"policies": [{"name": "office", "hours": f"mon-sun {hours}"}]}
    document = {"objectives": [each.replace("<=", " <= ") for each in OBJECTIVES], "calendar": calendar}
    mgr.service.slo_commands.set("", False, 1.0, json.dumps(document), True)
    mgr.sample(14)
    mgr.on()
    while mgr.twin.clock.now() < begin + 60.0:
        mgr.sample()
        day = mgr.twin.clock.now() >= begin
        assert set(held(mgr).values()) == {BY_DAY if day else BY_NIGHT}
        assert mgr.of("hdd").driver.state.page == (1 if day else 2)
    assert held(mgr).keys() == {"", "class=hdd", "class=nvme"}


def test_prometheus_is_told_which_policy_holds_and_nothing_without_a_calendar() -> None:
    def exported() -> List[str]:
        return [line for line in exposition(mgr.modes._metrics()).splitlines() if line.startswith("ceph_tuner_policy")]

    mgr = UnderCalendar()
    mgr.sample(2)
    assert exported() == ['ceph_tuner_policy{policy="base"} 1.0', 'ceph_tuner_policy{policy="office"} 0.0']
    mgr.before(mgr.begin)
    mgr.sample()
    assert exported() == ['ceph_tuner_policy{policy="base"} 0.0', 'ceph_tuner_policy{policy="office"} 1.0']
    mgr.service.store.set("slo", "{")
    mgr.sample(3)
    assert exported() == []
    mgr.service.slo_commands.remove("all")
    mgr.service.slo_commands.set("client.p95_ms <= 60 s", False, 1.0, "")
    mgr.sample(2)
    assert exported() == []


def test_the_history_has_each_turn_of_the_calendar() -> None:
    mgr = UnderCalendar()
    mgr.before(mgr.begin)
    mgr.sample(3)
    entries = [(entry.kind, entry.name) for entry in timeline(mgr.service.history()) if entry.at >= mgr.begin]
    assert sorted(entries) == [("policy", "office"), ("regime", BY_DAY)]


class BesidePolicies(UnderCalendar):
    """No marker names a policy: regimes are the same by day and by night, and the objectives are others."""

    def __init__(self, *pages: Page, **options: Any) -> None:
        super().__init__(*pages, calendar=False, **options)
        without = RegimeBounds(BOUNDS.of_metrics, BOUNDS.dwell_s)
        self.service.store.set(BOUNDS_KEY, json.dumps(without.to_dict()))
        self.sample(14)
        self.on()
        self.until_phase(HOLDING)
        window = self.sampler.window(30.0)
        assert window is not None
        # with settings that do harm it is missed, by no more than whole windows show
        self.objective = f"client.p95_ms <= {0.7 * window.means['client.p95_ms']:.3f} ms"
        self.set_calendar(240.0, self.objective)

    def own(self, number: int = 1) -> Page:
        return StoredBook(self.service.store).read().page(number)

    def until_next_day(self) -> None:
        """The policy begins once more."""
        self.before(self.end + 120.0)
        assert (self.state.phase in (WATCHING, HOLDING), self.state.page) == (True, 1)
        self.set_calendar(120.0, self.objective)
        self.before(self.begin + 5.0)


@pytest.mark.parametrize("policy", ["base", ""])
def test_a_page_that_misses_under_another_policy_than_its_own_is_left_out_while_that_holds(policy: str) -> None:
    mgr = BesidePolicies(page(1, BY_NIGHT, HARMFUL, policy=policy))
    held_by_page = mgr.table()
    mgr.before(mgr.end)
    assert (mgr.regime(), mgr.state.phase, mgr.state.on) == (BY_NIGHT, RESTING, True)
    assert mgr.own().state == VALIDATED
    assert list(mgr.own().left_out) == ["office"]
    assert "client.p95_ms" in mgr.own().left_out["office"]
    assert mgr.table() != held_by_page
    left_out = f"no page to use for the regime {BY_NIGHT} (left out while the policy office holds: 1): what was there"
    assert any(left_out in line for line in mgr.books.words())
    assert "left out under office: slo: client.p95_ms" in " ".join(in_words(mgr).split())
    # it comes again as the policy ends, and goes as the next day's begins, before anything is missed
    mgr.before(mgr.end + 60.0)
    assert (mgr.state.page, mgr.table()) == (1, held_by_page)
    mgr.until_next_day()
    assert mgr.state.phase == RESTING
    assert mgr.own().state == VALIDATED


def test_a_page_that_misses_under_its_own_policy_is_struck() -> None:
    mgr = BesidePolicies(page(1, BY_NIGHT, HARMFUL, policy="office"))
    mgr.before(mgr.end)
    assert mgr.own().state == STRUCK
    mgr.before(mgr.end + 120.0)
    assert mgr.state.phase == RESTING


def test_the_next_best_page_holds_while_one_is_left_out() -> None:
    mgr = BesidePolicies(page(1, BY_NIGHT, policy="base", at=2000.0))
    spare = page(2, BY_NIGHT, policy="base", left_out={"office": "slo: missed"})
    StoredBook(mgr.service.store).change(lambda book: book.blamed(1, "slo: missed", "office").added(spare))
    StoredBook(mgr.service.store).change(lambda book: book.added(page(3, BY_NIGHT, policy="night", at=1500.0)))
    assert mgr.state.page == 1
    mgr.before(mgr.begin + 5.0)
    assert (mgr.state.phase, mgr.state.page) == (WATCHING, 3)


def test_a_boost_takes_no_page_that_is_left_out_under_the_policy() -> None:
    mgr = BesidePolicies(page(1, BY_NIGHT, policy="base", left_out={"office": "slo: missed"}))
    settings = mgr.modes.boosts._settings
    targets, aim = {"osd"}, mgr.service.aim()
    assert [each.number for each in settings._pages(targets, aim, mgr.now())] == [1]
    mgr.before(mgr.begin + 10.0)
    assert settings._pages(targets, aim, mgr.now()) == []


def test_a_trial_says_which_policy_its_page_is_of() -> None:
    mgr = UnderCalendar(calendar=False)
    mgr.sample(14)
    aim, begun = mgr.modes.whole.aim, mgr.now() - 10.0
    mgr.books.validated(aim, kept({"osd_max_scrubs": 4}), mgr.now(), begun)
    without = RegimeBounds(BOUNDS.of_metrics, BOUNDS.dwell_s)
    mgr.service.store.set(BOUNDS_KEY, json.dumps(without.to_dict()))
    mgr.set_calendar(120.0)
    mgr.before(mgr.begin + 30.0)
    mgr.books.validated(aim, kept({"osd_max_scrubs": 5}), mgr.now(), mgr.begin + 1.0)
    # across the policy's begin, in a regime that does not name it
    mgr.books.validated(aim, kept({"osd_max_scrubs": 6}), mgr.now(), mgr.begin - 1.0)
    pages = StoredBook(mgr.service.store).read().pages
    assert [(each.settings["osd_max_scrubs"], each.policy) for each in pages] == [(4, "base"), (5, "office")]


def test_a_strike_is_undone_by_a_word_that_the_trail_keeps() -> None:
    mgr = UnderCalendar(page(1, BY_NIGHT), page(2, BY_NIGHT, left_out={"office": "slo: missed"}), calendar=False)
    mgr.sample(14)
    mgr.during(lambda: mgr.books.strike(1, "the disks are others now"))
    document = mgr.during(lambda: mgr.books.restore(1, "they are the old ones"))
    assert [each["state"] for each in document["pages"]] == [UNVALIDATED, VALIDATED]
    mgr.during(lambda: mgr.books.restore(2))
    assert StoredBook(mgr.service.store).read().page(2).left_out == {}
    words = [record["why"] for record in mgr.modes.past(100) if "restored" in record["why"]]
    assert any("page 1 is restored" in why and "they are the old ones" in why for why in words)
    assert any("page 2 is restored" in why for why in words)
    with pytest.raises(InputError, match="page 2, which is validated"):
        mgr.books.restore(2)
