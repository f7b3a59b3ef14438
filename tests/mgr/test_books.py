"""The book inside a mgr on a twin: real code but for the mgr, the clock and the driver's thread."""

from __future__ import annotations

import contextlib
import json
from typing import Any, Dict, List, Optional

import pytest
from automatic_on_twin import OnTwin

from ceph_tuner.core.autopilot.audit_log import APPLY, BOOK, BOOK_BACK, KEPT, TAKEN_BACK
from ceph_tuner.core.autopilot.contract import BETTER, Effect
from ceph_tuner.core.autopilot.events import Learn, Note
from ceph_tuner.core.book.book import PAGES_KEY, StoredBook
from ceph_tuner.core.book.page import STRUCK, TRIAL, UNVALIDATED, VALIDATED, Page
from ceph_tuner.core.book.state import HOLDING, RESTING, WATCHING
from ceph_tuner.core.changes.journal import APPLIED, UNDONE
from ceph_tuner.core.errors import InputError, RetryLater
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import nine
from ceph_tuner.core.moments import utc
from ceph_tuner.twin.model import RecoveryWork
from tuner import health, render_automatic, render_book
from tuner.book_switching import NOTHING_TO_USE
from tuner.exposition import exposition
from tuner.logbook import MgrLogbook
from twin_cluster.cluster import TwinCluster
from twins import small_twin

BEFORE: Dict[str, Any] = {PROFILE: "custom", **nine((0.6, 2, 0), (0.1, 1, 0.2), (0.05, 1, 0.2))}


def recovering(objects: int = 6_000) -> TwinCluster:
    return small_twin(BEFORE, recovery=(RecoveryWork("rbd", objects, 1 << 20),))


def page(number: int, regime: str, settings: Optional[Dict[str, Any]] = None, **more: Any) -> Page:
    usual: Dict[str, Any] = {"state": VALIDATED, "origin": TRIAL, "at": 1000.0}
    return Page(number, regime, settings or {"osd_max_scrubs": number}, **{**usual, **more})


class WithBook(OnTwin):
    def __init__(self, twin: Optional[TwinCluster] = None, *pages: Page, **options: Any) -> None:
        super().__init__(twin, **{"book_watch": 30.0, "book_dead_time": 0.0, **options})
        for each in pages:
            StoredBook(self.service.store).change(lambda book, each=each: book.added(each))  # type: ignore[misc]

    @property
    def books(self) -> Any:
        return self.modes.books

    @property
    def state(self) -> Any:
        return self.books.whole.driver.state

    def on(self) -> Any:
        return self.during(lambda: self.books.switch("on"))

    def off(self) -> Any:
        return self.during(lambda: self.books.switch("off"))

    def regime(self) -> str:
        return str(next(iter(self.modes.regimes.held()), {"regime": ""})["regime"])

    def in_force(self) -> List[int]:
        return [entry.number for entry in self.entries() if entry.state == APPLIED]

    def until_phase(self, phase: str, most: int = 200) -> None:
        for _ in range(most):
            if self.state.phase == phase:
                return
            self.sample()
        raise AssertionError(f"{self.state}: {self.books.whole.driver.problem}")


def regimes_of_twin() -> List[str]:
    mgr = WithBook(recovering())
    names: List[str] = []
    for _ in range(200):
        mgr.sample()
        if mgr.regime() and mgr.regime() not in names:
            names.append(mgr.regime())
        if len(names) == 2:
            break
    return names


@pytest.fixture(scope="module")
def regimes() -> List[str]:
    """The regimes that the twin goes through: with recovery, and after it."""
    names = regimes_of_twin()
    assert len(names) == 2
    assert "recovering" in names[0]
    return names


def with_pages(regimes: List[str], **options: Any) -> WithBook:
    mgr = WithBook(
        recovering(),
        page(1, regimes[0], {PROFILE: "high_recovery_ops", "osd_max_scrubs": 1}),
        page(2, regimes[1], {"osd_max_scrubs": 2}),
        **options,
    )
    mgr.sample(14)
    return mgr


def test_each_regime_has_its_page_within_a_sample_and_off_is_as_before(regimes: List[str]) -> None:
    mgr = with_pages(regimes)
    before = mgr.table()
    mgr.on()
    mgr.sample()
    assert (mgr.regime(), mgr.state.phase, mgr.state.page) == (regimes[0], WATCHING, 1)
    assert mgr.table()["osd", PROFILE] == "high_recovery_ops"
    mgr.until_phase(HOLDING)
    assert mgr.in_force() == [1]
    for _ in range(300):
        mgr.sample()
        # by the very sample that told it
        assert mgr.state.page == regimes.index(mgr.regime()) + 1
        if mgr.regime() == regimes[1]:
            break
    assert (mgr.state.phase, mgr.state.page) == (WATCHING, 2)
    # one change stands, and what the page does not name is as it was before the book
    assert mgr.in_force() == [1]
    assert mgr.table() == {**before, ("osd", "osd_max_scrubs"): "2"}
    mgr.until_phase(HOLDING)
    mgr.off()
    assert mgr.table() == before
    assert [entry.state for entry in mgr.entries()] == [UNDONE]
    assert mgr.trail() == ["book mode", BOOK, BOOK, BOOK_BACK]
    assert mgr.modes.health() == {}


def test_a_regime_without_a_page_has_what_was_there_before(regimes: List[str]) -> None:
    mgr = WithBook(recovering(), page(1, regimes[0]))
    mgr.sample(14)
    before = mgr.table()
    mgr.on()
    mgr.sample(2)
    assert mgr.table() != before
    for _ in range(300):
        mgr.sample()
        if mgr.regime() == regimes[1]:
            break
    assert (mgr.state.phase, mgr.state.on) == (RESTING, True)
    assert mgr.table() == before
    assert any("no page to use" in words for words in mgr.books.words())


def test_it_is_off_by_default_and_uses_no_page_that_nothing_validated(regimes: List[str]) -> None:
    mgr = with_pages(regimes)
    mgr.sample(5)
    assert mgr.entries() == []
    mgr = WithBook(recovering(), page(1, regimes[0], state=UNVALIDATED))
    mgr.sample(14)
    mgr.on()
    mgr.sample(3)
    assert mgr.entries() == []
    mgr.options["book_unvalidated"] = "all"
    mgr.sample(1)
    assert mgr.state.page == 1


HARMFUL: Dict[str, Any] = {PROFILE: "custom", **nine((0.02, 1, 0.05), (0.6, 8, 0), (0.2, 8, 0))}


def test_a_page_that_breaks_an_objective_is_struck_and_the_next_best_holds(regimes: List[str]) -> None:
    mgr = WithBook(
        recovering(400_000),
        page(1, regimes[0], {"osd_max_scrubs": 1}),
        page(2, regimes[0], HARMFUL, at=2000.0),
    )
    mgr.sample(14)
    before = mgr.table()
    now = mgr.sampler.window(60.0).means["client.p95_ms"]  # type: ignore[union-attr]
    mgr.service.slo_commands.set(f"client.p95_ms<={now * 1.3:.3f}", False, 1.0, "")
    mgr.on()
    mgr.sample(1)
    assert mgr.state.page == 2
    for _ in range(60):
        if mgr.state.page != 2:
            break
        mgr.sample()
    struck = StoredBook(mgr.service.store).read().page(2)
    assert struck.state == STRUCK
    assert "client.p95_ms" in struck.reason
    assert mgr.table() == before
    mgr.sample(1)
    assert (mgr.state.phase, mgr.state.page) == (WATCHING, 1)
    assert BOOK_BACK in mgr.trail()


@pytest.mark.parametrize(("found", "holds"), [(1e6, True), (1.0, False)])
def test_a_page_that_misses_less_than_going_back_would_holds(regimes: List[str], found: float, holds: bool) -> None:
    known = {"load": {"client.p95_ms": found}, "effects": {"client.p95_ms": -0.5}}
    mgr = WithBook(recovering(400_000), page(1, regimes[0], HARMFUL, **known))
    mgr.sample(14)
    now = mgr.sampler.window(60.0).means["client.p95_ms"]  # type: ignore[union-attr]
    mgr.service.slo_commands.set(f"client.p95_ms<={now * 1.3:.3f}", False, 1.0, "")
    mgr.on()
    mgr.sample(1)
    assert mgr.state.page == 1
    mgr.sample(60)
    assert mgr.sampler.window(60.0).means["client.p95_ms"] > 1.3 * now or not holds  # type: ignore[union-attr]
    assert (mgr.state.page == 1) == holds
    assert (BOOK_BACK in mgr.trail()) != holds


def test_somebody_elses_value_stops_it_and_stays(regimes: List[str]) -> None:
    mgr = with_pages(regimes)
    before = mgr.table()
    mgr.on()
    mgr.sample()
    mgr.until_phase(HOLDING)
    mgr.service.config.set("osd", "osd_max_scrubs", "7")
    mgr.sample(2)
    assert (mgr.state.phase, mgr.state.on) == (RESTING, False)
    assert mgr.table() == {**before, ("osd", "osd_max_scrubs"): "7"}
    assert "osd_max_scrubs" in mgr.modes.health()["TUNER_BOOK_STOPPED"][0]
    assert health.raised(mgr.modes.health())["TUNER_BOOK_STOPPED"]["count"] == 1
    mgr.during(lambda: mgr.books.switch("off"))
    assert mgr.modes.health() == {}


def test_the_programs_rollback_is_left_alone(regimes: List[str]) -> None:
    mgr = with_pages(regimes)
    before = mgr.table()
    mgr.on()
    mgr.sample()
    mgr.until_phase(HOLDING)
    mgr.twin.applier().undo()
    assert mgr.table() == before
    mgr.sample(3)
    assert (mgr.state.phase, mgr.state.on) == (RESTING, False)
    assert mgr.table() == before


def test_an_operators_own_work_goes_first(regimes: List[str]) -> None:
    mgr = with_pages(regimes)
    before = mgr.table()
    mgr.on()
    mgr.sample()
    mgr.during(lambda: mgr.modes.by_hand(True, "a profile", lambda: None))
    assert (mgr.table(), mgr.state.on) == (before, False)
    mgr.on()
    mgr.sample()
    assert mgr.state.phase == WATCHING
    undone = mgr.during(lambda: mgr.modes.rollback(True, None, False))["undone"]
    assert [item["change"] for item in undone] == [2]
    assert mgr.table() == before
    mgr.on()
    mgr.sample()
    mgr.until_phase(HOLDING)
    undone = mgr.during(lambda: mgr.modes.rollback(True, None, False))["undone"]
    assert [item["change"] for item in undone] == [3]
    mgr.sample(3)
    assert (mgr.table(), mgr.state.on) == (before, False)


def test_a_boost_waits_for_the_watch_and_the_book_for_the_boost(regimes: List[str]) -> None:
    mgr = WithBook(recovering(100_000), page(1, regimes[0], {"osd_max_scrubs": 1}), page(2, regimes[1]))
    mgr.sample(14)
    mgr.on()
    mgr.sample()
    with pytest.raises(RetryLater, match="a switch of the book"):
        mgr.modes.boosts.begin("recovery")
    mgr.until_phase(HOLDING)
    held = mgr.table()
    mgr.during(lambda: mgr.modes.boosts.begin("recovery"))
    StoredBook(mgr.service.store).change(lambda book: book.added(page(1, regimes[0], {"osd_max_scrubs": 3}, at=9e9)))
    mgr.sample(20)
    assert (mgr.state.phase, mgr.state.page) == (HOLDING, 1)
    assert any("and waits: a boost of recovery is on" in words for words in mgr.books.words())
    mgr.during(lambda: mgr.modes.boosts.cancel())
    assert mgr.table() == held
    mgr.sample(2)
    assert mgr.state.page == 3


def test_a_book_that_is_switched_off_beside_a_boost_waits_for_its_end_and_raises_no_alarm(regimes: List[str]) -> None:
    mgr = WithBook(recovering(100_000), page(1, regimes[0], {"osd_max_scrubs": 1}))
    mgr.sample(14)
    before = mgr.table()
    mgr.on()
    mgr.until_phase(HOLDING)
    mgr.during(lambda: mgr.modes.boosts.begin("recovery"))
    boosted = mgr.table()
    mgr.off()
    mgr.sample(3)
    first, *others = mgr.books.words()
    assert first.startswith("the book is off, returning since ")
    assert any(words.startswith("that waits, and is done with the first sample after it: ") for words in others)
    assert not any("failed" in words for words in others)
    assert (mgr.table(), mgr.books.health()) == (boosted, {})
    mgr.during(lambda: mgr.modes.boosts.cancel())
    # nothing of the book is watched, and it is off already
    with pytest.raises(RetryLater, match="the book's settings are not taken back yet"):
        mgr.modes.boosts.begin("recovery")
    mgr.sample(2)
    assert (mgr.table(), mgr.state.phase, mgr.state.waits) == (before, RESTING, False)
    assert mgr.books.words() == ["the book is off"]


def test_a_book_that_is_switched_on_beside_a_boost_says_from_when_it_rests_and_that_it_waits() -> None:
    mgr = WithBook(recovering(100_000))
    mgr.sample(14)
    mgr.during(lambda: mgr.modes.boosts.begin("recovery"))
    mgr.sample(2)
    began = mgr.twin.clock.now()
    mgr.on()
    # before any look, and after some; without a page for the regime too
    for _ in range(3):
        first, *others = mgr.books.words()
        assert first.startswith(f"the book is on, resting since {utc(began)}")
        assert "the book waits: a boost of recovery is on (`ceph tuner boost status`)" in others
        mgr.sample()
    mgr.during(lambda: mgr.modes.boosts.cancel())
    assert not any("waits" in words for words in mgr.books.words())


def test_the_automatic_mode_tries_nothing_while_a_page_is_in_force(regimes: List[str]) -> None:
    mgr = WithBook(recovering(100_000), page(1, regimes[0], {"osd_max_scrubs": 1}))
    mgr.sample(14)
    mgr.on()
    mgr.sample()
    mgr.service.slo_commands.set("client.p95_ms<=0.01", True, 1.0, "")
    mgr.during(lambda: mgr.modes.switch("auto"))
    mgr.sample(6)
    assert "a page of the book is in force" in mgr.driver.document()["waits_for"]
    assert mgr.driver.state.phase == "observing"


def test_it_does_not_switch_beside_a_trial() -> None:
    mgr = WithBook(small_twin())
    mgr.on_trial(osd_max_scrubs=2)
    StoredBook(mgr.service.store).change(lambda book: book.added(page(1, mgr.regime(), {"osd_max_scrubs": 5})))
    mgr.on()
    mgr.sample(2)
    assert mgr.driver.state.on_cluster
    assert mgr.state.phase == RESTING
    assert any("has settings on trial" in words for words in mgr.books.words())


def kept(settings: Dict[str, Any]) -> Learn:
    effect = Effect("client.p95_ms", -0.2, -0.3, -0.1, 8, BETTER)
    return Learn(settings, {"client.p95_ms": effect}, {"client.iops": 900.0, "client.p95_ms": 30.0}, 1)


def test_a_trial_that_was_kept_is_a_page_of_the_regime_that_held_all_the_time() -> None:
    mgr = WithBook(small_twin())
    mgr.sample(30)
    now = mgr.twin.clock.now()
    mgr.books.validated(mgr.modes.whole.aim, kept({"osd_max_scrubs": 4}), now, now - 60.0)
    (one,) = StoredBook(mgr.service.store).read().pages
    assert (one.regime, one.state, one.origin, one.at) == (mgr.regime(), VALIDATED, TRIAL, now)
    assert one.effects == {"client.p95_ms": -0.2}
    assert one.load["client.iops"] == 900.0
    assert "client.p95_ms" in one.verdict
    # another regime held when it began
    mgr.books.validated(mgr.modes.whole.aim, kept({"osd_max_scrubs": 5}), now, now - 9999.0)
    assert len(StoredBook(mgr.service.store).read().pages) == 1


def test_the_logbook_tells_when_the_first_write_of_a_kept_trial_was() -> None:
    mgr = OnTwin(small_twin())
    log: MgrLogbook = mgr.modes.whole.logbook
    told: List[Any] = []
    log.on_kept = lambda result, at, begun: told.append((at, begun))
    for at, what in [(10.0, APPLY), (20.0, TAKEN_BACK), (30.0, APPLY), (40.0, APPLY), (50.0, KEPT)]:
        log.note(Note(what, "a test"), at)
    log.learn(Learn({"osd_max_scrubs": 2}, {}, {}, 1), 51.0)
    assert told == [(51.0, 30.0)]
    log.learn(Learn({"osd_max_scrubs": 2}, {}, {}, 1, "harm"), 52.0)
    log.note(Note(TAKEN_BACK, "a test"), 60.0)
    log.learn(Learn({"osd_max_scrubs": 2}, {}, {}, 1), 61.0)
    assert len(told) == 1


def test_the_next_mgr_goes_on_with_the_page_in_force(regimes: List[str]) -> None:
    twin = recovering(100_000)
    mgr = WithBook(twin, page(1, regimes[0], {"osd_max_scrubs": 1}))
    mgr.sample(14)
    before = mgr.table()
    mgr.on()
    mgr.sample()
    mgr.until_phase(HOLDING)
    held = mgr.table()
    other = WithBook(twin)
    other.sample(3)
    assert (other.state.phase, other.state.page, other.state.on) == (HOLDING, 1, True)
    assert other.table() == held
    other.off()
    assert other.table() == before


def test_the_next_mgr_takes_a_switch_back_that_nobody_watched_to_its_end(regimes: List[str]) -> None:
    twin = recovering(100_000)
    mgr = WithBook(twin, page(1, regimes[0], {"osd_max_scrubs": 1}))
    mgr.sample(14)
    before = mgr.table()
    mgr.on()
    mgr.sample()
    assert mgr.state.phase == WATCHING
    for key in list(mgr.service.store.keys("lock/")):
        mgr.service.store.remove(key)
    other = WithBook(twin)
    other.books.whole.driver.attempt()
    assert other.table() == before
    assert (other.state.phase, other.state.on, other.state.deaths) == (RESTING, True, 1)


def test_a_damaged_book_is_a_warning_and_is_never_used(regimes: List[str]) -> None:
    mgr = with_pages(regimes)
    before = mgr.table()
    mgr.on()
    mgr.sample()
    mgr.until_phase(HOLDING)
    mgr.service.store.set(PAGES_KEY, "[1")
    mgr.sample(2)
    assert mgr.state.phase == RESTING
    assert mgr.table() == before
    assert list(mgr.modes.health()) == ["TUNER_BOOK_DAMAGED"]
    assert "config-key" in render_book.book(mgr.books.document())
    mgr.off()
    assert mgr.modes.health() == {}
    with pytest.raises(InputError, match="config-key"):
        mgr.books.switch("on")


def test_hours_and_switches_bound_it(regimes: List[str]) -> None:
    mgr = with_pages(regimes, book_hours="mon 00:00-00:01 UTC")
    mgr.on()
    mgr.sample(2)
    assert mgr.entries() == []
    assert any("outside of the hours" in words for words in mgr.books.words())
    mgr.options["book_hours"] = "tea"
    mgr.sample(1)
    assert any("book_hours" in note for note in mgr.books.document()["notes"])
    assert "book_hours" in mgr.modes.health()["TUNER_OPTION_WRONG"][0]
    mgr.options["book_hours"] = ""
    mgr.sample(1)
    assert mgr.state.page == 1
    assert mgr.modes.health() == {}


def test_commands_show_pin_strike_export_and_import(regimes: List[str]) -> None:
    mgr = with_pages(regimes)
    shown = render_book.book(mgr.books.document())
    assert "the book is off" in shown
    assert regimes[0] in shown
    assert "high_recovery_ops" in shown
    assert [each["pin"] for each in mgr.books.pin(2)["pages"]] == [False, True]
    assert [each["pin"] for each in mgr.books.unpin(2)["pages"]] == [False, False]
    assert mgr.books.strike(1, "old")["pages"][0]["reason"] == "by an operator: old"
    with pytest.raises(InputError, match="no page 9"):
        mgr.books.pin(9)
    document = mgr.books.export()
    assert len(document["pages"]) == 2
    other = WithBook(small_twin())
    taken = other.books.take(json.dumps(document))["pages"]
    assert [(each["state"], each["origin"]) for each in taken] == [(UNVALIDATED, "import")]
    assert other.books.take(json.dumps(document))["notes"][0].startswith("1 of 2 pages are imported: the others")
    assert document["ceph"] == other.service.release_version()
    older = other.books.take(json.dumps({**document, "ceph": "18.2.7"}))["notes"]
    assert older[1].startswith("the pages are of Reef: this is Tentacle")
    wrong = {**document, "pages": [{**document["pages"][1], "settings": {"osd_max_scrubs": -5}}]}
    for text, words in [
        ("", "-i FILE"),
        ("tea", "JSON"),
        (json.dumps(wrong), "page 2, settings.osd_max_scrubs|page 2"),
    ]:
        with pytest.raises(InputError, match=words):
            other.books.take(text)
    for settings in ({"osd_op_queue": "wpq"}, {"target_max_misplaced_ratio": 0.5}):
        restart = {**document, "pages": [{**document["pages"][1], "settings": settings}]}
        with pytest.raises(InputError, match="needs no restart"):
            other.books.take(json.dumps(restart))
    assert len(other.books.document()["pages"]) == 1
    assert "book" in [record["what"].split()[0] for record in mgr.modes.past(10)]


def test_a_book_that_is_off_says_what_it_would_do_and_does_that(regimes: List[str]) -> None:
    mgr = with_pages(regimes)
    mgr.books.copy(1, "trimming")
    before = mgr.table(), mgr.trail()
    document = mgr.books.document()
    assert document["switching"]["preview"] == [
        f"`book on` would put page 1 (validated by trial) in force, for the regime {regimes[0]}",
        f"it would switch in {regimes[1]} (page 2)",
        "`book off` brings back what is there now",
        "no trial here validated pages 3: for their use see `book pin` and book_unvalidated",
    ]
    assert "would put page 1" in render_book.book(document)
    assert (mgr.table(), mgr.trail()) == before
    mgr.on()
    mgr.sample()
    assert mgr.state.page == 1
    assert mgr.books.document()["switching"]["preview"] == []
    assert NOTHING_TO_USE not in mgr.books.document()["notes"]


def test_a_book_without_a_page_to_use_says_so_before_and_as_it_is_switched_on(regimes: List[str]) -> None:
    mgr = WithBook(recovering(), page(1, regimes[0], state=UNVALIDATED))
    assert mgr.books.document()["switching"]["preview"][0] == "`book on` would wait until samples tell the regime"
    mgr.sample(14)
    assert mgr.books.document()["switching"]["preview"] == [
        f"`book on` would change nothing now: the book has no page to use for the regime {regimes[0]}",
        "no trial here validated pages 1: for their use see `book pin` and book_unvalidated",
    ]
    assert NOTHING_TO_USE in mgr.on()["notes"]
    mgr.options["book_unvalidated"] = "all"
    assert NOTHING_TO_USE not in mgr.books.document()["notes"]


def test_what_the_book_would_wait_for_is_said_before(regimes: List[str]) -> None:
    mgr = with_pages(regimes, book_hours="03:00-03:01")
    first, *_ = mgr.books.document()["switching"]["preview"]
    assert first.startswith("`book on` would put page 1 (validated by trial) in force")
    assert "and wait with it: outside" in first


def test_a_page_is_copied_for_another_regime_by_its_name_in_any_order(regimes: List[str]) -> None:
    mgr = with_pages(regimes)
    document = mgr.books.copy(1, "recovering+busy")
    assert document["notes"][0] == "page 3 is unvalidated"
    assert [each["regime"] for each in document["pages"]] == [*regimes, "busy+recovering"]
    with pytest.raises(InputError, match="regime: found 'tea'"):
        mgr.books.copy(1, "tea")


def test_a_page_that_is_imported_again_stays_left_out_as_long(regimes: List[str]) -> None:
    mgr = WithBook(recovering(100_000), page(1, regimes[0], state=UNVALIDATED), book_unvalidated="all")
    mgr.sample(14)
    mgr.on()
    mgr.sample()
    assert mgr.state.page == 1
    mgr.mgr.checks["POOL_NEAR_FULL"] = {"severity": "HEALTH_WARN", "summary": {"message": "1 pool(s) nearfull"}}
    mgr.sample(2)
    del mgr.mgr.checks["POOL_NEAR_FULL"]
    assert (mgr.state.phase, list(mgr.state.rests)) == (RESTING, [1])
    mgr.during(lambda: mgr.books.take(json.dumps(mgr.books.export())))
    mgr.sample(4)
    assert (mgr.state.phase, mgr.state.page) == (RESTING, 0)


def test_auto_explain_says_what_the_book_does(regimes: List[str]) -> None:
    mgr = with_pages(regimes)
    mgr.on()
    mgr.sample()
    with contextlib.suppress(InputError):
        mgr.sample()
    shown = render_automatic.modes(mgr.modes.document())
    assert f"cluster: {regimes[0]} since" in shown
    assert "page 1 is in force" in shown
    # as the lines are folded
    words = " ".join(shown.split())
    assert f"{regimes[1]} (page " in words
    assert "recovering is off: recovery.objects_left at 0 or less for 15 s (" in words


def test_it_is_exported(regimes: List[str]) -> None:
    mgr = with_pages(regimes)
    (own,) = mgr.books.exported()
    assert own == {"device_class": "", "regime": regimes[0], "on": False, "page": 0, "switches": 0}
    mgr.on()
    mgr.sample()
    text = exposition(mgr.modes._metrics())
    assert f'ceph_tuner_regime{{regime="{regimes[0]}"}} 1.0' in text
    assert "ceph_tuner_book_page 1.0" in text
    assert "ceph_tuner_book_on 1.0" in text
    assert "ceph_tuner_book_switches 1.0" in text
