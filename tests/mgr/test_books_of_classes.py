"""The book on a cluster of two device classes: each has the page of its own regime, in a change of its own."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, List, Optional

import pytest
from test_books import WithBook, kept, page, recovering

from ceph_tuner.core.book.book import Book, StoredBook
from ceph_tuner.core.book.page import UNVALIDATED, Page
from ceph_tuner.core.book.state import HOLDING, RESTING, WATCHING
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.measure.metrics import CLASS, Scope
from ceph_tuner.core.regimes.bounds import BOUNDS_KEY, IDLE, Marker, RegimeBounds
from tuner import render_book
from tuner.book_switching import NOTHING_TO_USE
from tuner.exposition import exposition
from twin_cluster.cluster import TwinCluster

NVME, HDD = "osd/class:nvme", "osd/class:hdd"
REGIME = "recovering"
"""Of the cluster and of both classes."""
OBJECTIVES = ("client.p95_ms{class=nvme}<=5000", "client.p95_ms{class=hdd}<=5000")


class OfClasses(WithBook):
    """OSDs 0 and 1 are said to be `nvme`, 2 and 3 `hdd`; every pool lies on all of them."""

    def __init__(self, *pages: Page, twin: Optional[TwinCluster] = None, **options: Any) -> None:
        super().__init__(twin or recovering(100_000), *pages, **options)
        bounds = RegimeBounds((Marker(REGIME, "recovery.objects_left", 1.0, 0.0, 10.0),), 10.0)
        self.service.store.set(BOUNDS_KEY, json.dumps(bounds.to_dict()))
        for osd in self.twin.twin.osds:
            osd.place = replace(osd.place, device_class="nvme" if osd.place.osd < 2 else "hdd")

    def want(self, *objectives: str) -> None:
        for objective in objectives:
            self.service.slo_commands.set(objective, False, 1.0, "")

    def of(self, device_class: str) -> Any:
        return next(each for each in self.books.all if each.aim.device_class == device_class)

    def phases(self) -> List[str]:
        return [self.of(name).driver.state.phase for name in ("nvme", "hdd")]

    def in_words(self) -> str:
        return render_book.book(self.books.document())

    def until(self, *phases: str) -> None:
        for _ in range(100):
            if self.phases() == list(phases):
                return
            self.sample()
        raise AssertionError((self.phases(), self.books.document()["classes"]))


def pages() -> List[Page]:
    return [
        page(1, REGIME, {"osd_max_scrubs": 1}, target=NVME),
        page(2, REGIME, {"osd_max_scrubs": 2}, target=HDD),
        page(3, REGIME, {"osd_max_scrubs": 7}),
    ]


def begun(**options: Any) -> OfClasses:
    mgr = OfClasses(*pages(), **options)
    mgr.want(*OBJECTIVES)
    mgr.sample(14)
    return mgr


def test_each_class_has_its_own_page_by_turns_and_off_is_as_before() -> None:
    mgr = begun()
    before = mgr.table()
    mgr.on()
    mgr.sample()
    # a cluster has one switch under watch at a time
    assert sorted(mgr.phases()) == [RESTING, WATCHING]
    mgr.until(HOLDING, HOLDING)
    assert mgr.table() == {**before, (NVME, "osd_max_scrubs"): "1", (HDD, "osd_max_scrubs"): "2"}
    assert len(mgr.in_force()) == 2
    words = mgr.in_words()
    assert "class nvme: page 1 is in force" in words
    assert "class hdd: page 2 is in force" in words
    assert "the book is off" not in words
    # that of the cluster as a whole has nothing to say where classes have objectives
    assert not mgr.state.on
    mgr.off()
    assert mgr.table() == before
    assert mgr.in_force() == []
    assert mgr.modes.health() == {}


def test_one_class_goes_back_without_the_other() -> None:
    mgr = begun()
    before = mgr.table()
    mgr.on()
    mgr.until(HOLDING, HOLDING)
    mgr.during(lambda: mgr.books.switch("off", "for a while", "nvme"))
    assert mgr.table() == {**before, (HDD, "osd_max_scrubs"): "2"}
    mgr.sample(20)
    assert mgr.phases() == [RESTING, HOLDING]
    with pytest.raises(InputError, match="off already"):
        mgr.books.switch("off", "", "nvme")
    with pytest.raises(InputError, match="class with objectives of its own"):
        mgr.books.switch("on", "", "ssd")
    mgr.off()
    assert mgr.table() == before


def test_before_it_is_on_each_class_says_what_it_would_do_and_which_has_no_page() -> None:
    mgr = OfClasses(*pages()[:1], page(2, REGIME, {"osd_max_scrubs": 2}, state=UNVALIDATED, target=HDD))
    mgr.want(*OBJECTIVES)
    mgr.sample(14)
    document = mgr.books.document()
    assert document["classes"]["nvme"]["preview"][0].startswith("`book on` would put page 1 (validated by trial)")
    assert document["classes"]["hdd"]["preview"][0].startswith("`book on` would change nothing now")
    # the whole cluster's stands aside
    assert document["switching"]["preview"] == []
    assert "class nvme: `book on` would put page 1" in mgr.in_words()
    mgr.on()
    told = [note for note in mgr.books.document()["notes"] if NOTHING_TO_USE in note]
    assert told == [f"class hdd: {NOTHING_TO_USE}"]


def test_a_class_switches_by_its_own_regime() -> None:
    mgr = OfClasses(*pages(), page(4, IDLE, {"osd_max_scrubs": 4}, target=HDD))
    mgr.want(*OBJECTIVES)
    mgr.sample(14)
    mgr.on()
    mgr.until(HOLDING, HOLDING)
    hdd = str(Scope(CLASS, "hdd"))
    state = mgr.modes.regimes.state_of(hdd)
    assert state is not None
    told = mgr.modes.regimes.state_of
    # the disks are done first
    mgr.modes.regimes.state_of = lambda scope="": (  # type: ignore[method-assign]
        replace(state, name=IDLE, at=mgr.twin.clock.now()) if scope == hdd else told(scope)
    )
    mgr.sample()
    assert mgr.phases() == [HOLDING, WATCHING]
    assert (mgr.table()[HDD, "osd_max_scrubs"], mgr.table()[NVME, "osd_max_scrubs"]) == ("4", "1")
    mgr.until(HOLDING, HOLDING)
    assert len(mgr.in_force()) == 2


def test_the_next_mgr_goes_on_with_both() -> None:
    mgr = begun()
    before = mgr.table()
    mgr.on()
    mgr.until(HOLDING, HOLDING)
    held = mgr.table()
    other = OfClasses(twin=mgr.twin)
    other.sample(4)
    assert other.phases() == [HOLDING, HOLDING]
    assert other.table() == held
    # and where its state was lost, the change of that class goes, and no other
    mgr.service.store.remove("book/state/hdd")
    third = OfClasses(twin=mgr.twin)
    third.sample(4)
    assert third.table() == {key: value for key, value in held.items() if key[0] != HDD}
    assert third.phases() == [HOLDING, RESTING]
    third.off()
    assert third.table() == before


def test_objectives_of_a_class_end_the_page_of_the_whole_cluster() -> None:
    mgr = OfClasses(*pages()[2:])
    mgr.want("client.p95_ms<=5000")
    mgr.sample(14)
    before = mgr.table()
    mgr.on()
    mgr.sample()
    mgr.until_phase(HOLDING)
    assert mgr.table()["osd", "osd_max_scrubs"] == "7"
    mgr.want(*OBJECTIVES)
    mgr.until_phase(RESTING, 30)
    assert mgr.table() == before
    assert "device classes have pages of their own" in str(mgr.modes.past(100))


def test_a_kept_trial_of_a_class_is_a_page_for_that_class() -> None:
    mgr = begun()
    now = mgr.twin.clock.now()
    mgr.modes.of("hdd").logbook.on_kept(kept({"osd_max_scrubs": 5}), now, now - 1.0)
    newest = StoredBook(mgr.service.store).read().pages[-1]
    assert (newest.target, newest.regime, newest.settings) == (HDD, REGIME, {"osd_max_scrubs": 5})


def test_each_target_of_a_regime_has_a_pin_of_its_own() -> None:
    book = Book(tuple(pages()), 3).pinned(1).pinned(2)
    assert [each.pin for each in book.pages] == [True, True, False]
    again = book.added(page(9, REGIME, {"osd_max_scrubs": 3}, target=HDD)).pinned(4)
    assert [each.number for each in again.pages if each.pin] == [1, 4]


def test_what_is_exported_says_whose_it_is() -> None:
    mgr = begun()
    mgr.on()
    mgr.until(HOLDING, HOLDING)
    text = exposition(mgr.modes._metrics())
    lines = [line for line in text.splitlines() if line.startswith("ceph_tuner_book_page")]
    assert len(lines) == 3
    assert {line.rpartition(" ")[2] for line in lines} == {"0.0", "1.0", "2.0"}
    assert any("hdd" in line and line.endswith(" 2.0") for line in lines)


def test_settings_of_a_class_are_tried_beneath_no_page_of_its_own() -> None:
    mgr = begun()
    mgr.on()
    mgr.until(HOLDING, HOLDING)
    mgr.during(lambda: mgr.books.switch("off", "", "nvme"))
    mgr.during(lambda: mgr.modes.switch("dry-run"))
    mgr.sample(2)
    waits = {name: mgr.modes.of(name).driver.newest_look.wait for name in ("nvme", "hdd")}
    assert "a page of the book is in force" in waits["hdd"]
    assert "a page of the book" not in waits["nvme"]
