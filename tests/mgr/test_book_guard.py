"""What the guard makes of a page in force: by what it is measured, when it is struck, and when it may not stay."""

from __future__ import annotations

import json
from typing import Any, Dict, List

import pytest
from test_books import WithBook, page, recovering

from ceph_tuner.core.autopilot.watchdog import Watchdog
from ceph_tuner.core.book.book import StoredBook
from ceph_tuner.core.book.page import STRUCK, VALIDATED
from ceph_tuner.core.book.state import HOLDING, RESTING, WATCHING
from ceph_tuner.core.goals.guard import Breach
from ceph_tuner.core.goals.stored_slo import SLO_KEY
from ceph_tuner.core.regimes.telling import UNSEEN_S


@pytest.fixture
def held() -> WithBook:
    """A page that holds in a regime that lasts."""
    mgr = WithBook(recovering(100_000))
    mgr.sample(14)
    StoredBook(mgr.service.store).change(lambda book: book.added(page(1, mgr.regime(), {"osd_max_scrubs": 2})))
    mgr.on()
    mgr.sample()
    mgr.until_phase(HOLDING)
    return mgr


def newer(mgr: WithBook, scrubs: int) -> None:
    another = page(1, mgr.regime(), {"osd_max_scrubs": scrubs}, at=9e9)
    StoredBook(mgr.service.store).change(lambda book: book.added(another))


def pages(mgr: WithBook) -> Dict[int, str]:
    return {each.number: each.state for each in StoredBook(mgr.service.store).read().pages}


def test_a_switch_is_not_to_blame_for_what_became_so_while_the_page_before_held(held: WithBook) -> None:
    held.mgr.checks["OSD_NEARFULL"] = {"severity": "HEALTH_WARN", "summary": {"message": "1 nearfull osd(s)"}}
    held.sample(2)
    assert held.state.phase == HOLDING
    newer(held, 3)
    held.sample(4)
    assert (held.state.phase, held.state.page) == (WATCHING, 2)
    # what comes after the switch is
    held.mgr.checks["POOL_NEAR_FULL"] = held.mgr.checks["OSD_NEARFULL"]
    held.sample(1)
    assert (held.state.phase, list(held.state.rests)) == (RESTING, [2])


def test_a_page_that_holds_does_not_go_for_degraded_objects(held: WithBook, monkeypatch: Any) -> None:
    monkeypatch.setattr(Watchdog, "close", lambda *_: Breach("recovery", "more of them"))
    held.sample(4)
    assert (held.state.phase, held.state.page) == (HOLDING, 1)


@pytest.mark.parametrize(("method", "state"), [("look", VALIDATED), ("close", STRUCK)])
def test_a_page_that_held_is_struck_by_windows_alone(held: WithBook, monkeypatch: Any, method: str, state: str) -> None:
    monkeypatch.setattr(Watchdog, method, lambda *_: Breach("slo", "client.p95_ms is broken"))
    held.sample(4)
    assert held.state.phase == RESTING
    assert pages(held) == {1: state}


def test_a_page_is_not_struck_while_samples_speak_against_its_regime(held: WithBook, monkeypatch: Any) -> None:
    # for a minute it is the old regime still, by its hold
    held.modes.regimes._capacities[""] = 1.0
    held.sample(1)
    assert held.modes.regimes.state_of().turning  # type: ignore[union-attr]
    monkeypatch.setattr(Watchdog, "close", lambda *_: Breach("slo", "client.p95_ms is broken"))
    held.sample(3)
    assert held.state.phase == RESTING
    assert pages(held) == {1: VALIDATED}


def test_a_page_that_is_struck_goes_at_once_whatever_the_dead_time(held: WithBook) -> None:
    held.options["book_dead_time"] = 3600.0
    newer(held, 3)
    held.sample(1)
    assert held.state.page == 1
    held.during(lambda: held.books.strike(1))
    held.sample(1)
    assert held.state.phase == RESTING
    assert ("osd", "osd_max_scrubs") not in held.table()


def test_no_page_is_blamed_for_objectives_that_cannot_be_read(held: WithBook) -> None:
    held.service.store.set(SLO_KEY, json.dumps({"objectives": ["client.p95_ms <= 80 ms"], "calendar": {"later": 1}}))
    newer(held, 3)
    held.sample(4)
    assert (held.state.phase, held.state.page, held.state.rests) == (HOLDING, 1, {})
    assert any("the stored SLO.calendar" in words for words in held.books.words())
    held.service.store.remove(SLO_KEY)
    held.sample(4)
    assert held.state.page == 2


def test_without_samples_no_page_stays_for_long(held: WithBook) -> None:
    held.blind = True
    held.sample(int(UNSEEN_S / 5.0) - 10)
    assert held.state.phase == HOLDING
    held.sample(20)
    assert (held.state.phase, held.state.on) == (RESTING, True)
    assert ("osd", "osd_max_scrubs") not in held.table()
    trail: List[str] = [record["why"] for record in held.modes.past(100) if not record["refers"]]
    assert any("no sample came" in why for why in trail)
    held.blind = False
    held.sample(4)
    assert held.state.page == 1


def test_options_that_make_no_sense_permit_nothing_in_a_new_mgr(held: WithBook) -> None:
    before = held.table()
    held.options["book_hours"] = "tea"
    held.sample(1)
    assert held.state.phase == HOLDING
    other = WithBook(held.twin, book_hours="tea")
    other.sample(3)
    assert (other.state.phase, other.state.on) == (RESTING, True)
    assert other.table() != before
    # more than its first sample has to tell the regime
    other.sample(14)
    assert any("book_hours" in words for words in other.books.words())
    other.options["book_hours"] = ""
    other.sample(2)
    assert other.state.page == 1
