"""What would switch the book, in words."""

from __future__ import annotations

from typing import Any, Callable, List, Optional

from books import LIMITS, look, page

from ceph_tuner.core.book.book import Book
from ceph_tuner.core.book.choice import others
from ceph_tuner.core.book.explanation import explain
from ceph_tuner.core.book.page import TWIN, UNVALIDATED, Page
from ceph_tuner.core.book.state import HOLDING, BookState
from ceph_tuner.core.regimes.bounds import DEFAULT
from ceph_tuner.core.regimes.telling import MarkerTurn

NOW = 2000.0
BUSY = MarkerTurn("busy", "client.iops", True, 500.0, 1234.0, 60.0, None)
RECOVERING = MarkerTurn("recovering", "recovery.objects_left", False, 1.0, 0.0, 15.0, None)


def told(
    held: Optional[Page],
    *others: Page,
    turns: Any = (BUSY, RECOVERING),
    tells: Callable[[str], bool] = DEFAULT.tells,
    **more: Any,
) -> List[str]:
    state = BookState(True, since=1000.0)
    if held is not None:
        own = {"target": held.target, "settings": held.settings, "changes": (3,)}
        state = BookState(True, HOLDING, 1000.0, regime="busy", page=held.number, **own)
    return explain(state, look(NOW, held, others=others, **more), LIMITS, NOW, turns, tells=tells)


def test_each_other_regime_with_a_page_is_named_with_the_markers_that_would_have_to_turn() -> None:
    lines = told(page(1), page(2, "busy+recovering"), page(3, "idle"), page(4, "recovering"))
    on = "recovering is on: recovery.objects_left at 1 or more for 15 s (0 now)"
    off = "busy is off: client.iops at 500/s or less for 60 s (1234/s now)"
    assert f"busy+recovering (page 2) would switch it, once {on}" in lines
    assert f"idle (page 3) would switch it, once {off}" in lines
    assert f"recovering (page 4) would switch it, once {off} and {on}" in lines
    assert "a regime without a page would bring back what was there before the book" in lines


def test_a_moment_that_an_older_version_did_not_keep_is_left_out() -> None:
    first, *_ = explain(BookState(True), None, LIMITS, NOW)
    assert first == "the book is on, resting: what was there before the book is in force"


def test_what_the_book_waits_for_is_said_once_also_where_no_page_would_come() -> None:
    boost = "a boost of scrub is on (`ceph tuner boost status`)"
    assert f"the book waits: {boost}" in explain(BookState(True), None, LIMITS, NOW, (), boost)
    waiting = explain(BookState(True), look(NOW, page(2), wait=boost), LIMITS, NOW, (), boost)
    assert [line for line in waiting if boost in line] == [f"page 2 is for the regime busy, and waits: {boost}"]


def test_a_page_of_the_same_settings_switches_nothing() -> None:
    lines = told(page(1), page(2, "idle", settings={"osd_max_scrubs": 1}))
    assert any(line.startswith("idle (page 2) would have the same settings, once busy is off") for line in lines)


def test_what_the_samples_speak_for_now_is_said_with_its_time() -> None:
    ending = BUSY._replace(against=NOW - 40.0, value=300.0)
    words = "the samples of the last 40 s speak for busy is off: client.iops at 500/s or less for 60 s (300/s now)"
    assert words in told(page(1), turns=(ending, RECOVERING))
    assert not any("speak" in line for line in told(page(1)))


def test_a_bound_and_a_value_that_nobody_knows_are_said_to_be_so() -> None:
    unknown = BUSY._replace(bound=None, value=None)
    assert any(
        "client.iops at an unknown value or less for 60 s (an unknown value now)" in line
        for line in told(page(1), page(2, "idle"), turns=(unknown,))
    )


def test_a_page_of_a_regime_that_nobody_tells_any_more_waits_for_nothing() -> None:
    lines = told(page(1), page(2, "busy+backup"), page(3, "recovering+busy"))
    assert "page 2 is for busy+backup, and the present bounds tell no such regime" in lines
    assert "page 3 is for recovering+busy, and the present bounds tell no such regime" in lines


def test_without_other_pages_it_says_so() -> None:
    words = "no other regime has a page to use: another one would bring back what was there before the book"
    assert words in told(page(1))
    assert any(line.startswith("idle (page 2) would switch it") for line in told(None, page(2, "idle")))


def test_the_other_regimes_pages_are_those_that_would_be_used() -> None:
    predicted = page(4, "idle", UNVALIDATED, origin=TWIN)
    book = Book((page(1), page(2, "recovering"), page(3, "recovering"), predicted), 4)
    assert [each.number for each in others(book, "busy")] == [3]
    assert [each.number for each in others(book, "busy", "twin")] == [4, 3]
    assert [each.number for each in others(book, "busy", "twin", (3, 4))] == [2]


def test_pages_that_are_left_out_under_the_policy_are_said() -> None:
    out = {"policy": "office", "left_out": (page(3),)}
    assert "pages of the regime that are left out while the policy office holds: 3" in told(page(1), **out)
    none = "the book has no page to use for the regime busy (left out while the policy office holds: 3)"
    assert f"{none}: what was there before it holds" in told(None, **out)
    assert not any("left out" in line for line in told(page(1), policy="office"))
