"""Pages and the book: what they refuse, how they are stored, and which page holds."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Dict

import pytest
from books import page

from ceph_tuner.core.book.book import LARGEST_DOCUMENT, MOST_PAGES, PAGES_KEY, Book, StoredBook, parse_book
from ceph_tuner.core.book.choice import ALL, NONE, OF_THE_TWIN, borne, choose, left_out
from ceph_tuner.core.book.page import IMPORT, MOST_LEFT_OUT, STRUCK, TWIN, UNVALIDATED, VALIDATED, Page
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo import Slo, parse_objective
from monitors import MemoryStore


def book(*pages: Page) -> Book:
    return Book(tuple(pages), max((each.number for each in pages), default=0))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"number": 0}, "number"),
        ({"at": float("nan")}, "finite"),
        ({"regime": "Busy"}, "regime"),
        ({"regime": "busy+"}, "regime"),
        ({"state": "good"}, "state"),
        ({"origin": "hearsay"}, "origin"),
        ({"state": STRUCK, "reason": ""}, "reason"),
        ({"reason": "bad"}, "reason"),
        ({"state": STRUCK, "reason": "bad", "pin": True}, "pinned"),
        ({"settings": {}}, "settings"),
        ({"settings": {f"knob{n}": n for n in range(99)}}, "settings"),
        ({"verdict": "x" * 601}, "verdict"),
        ({"target": "mon"}, "mon"),
        ({"load": {f"m{n}": 1.0 for n in range(99)}}, "metrics"),
        ({"policy": "In the office"}, "policies"),
        ({"left_out": {"": "slo"}}, "policies"),
        ({"left_out": {f"p{n}": "slo" for n in range(MOST_LEFT_OUT + 1)}}, "policies"),
        ({"left_out": {"office": "x" * 201}}, "characters"),
    ],
)
def test_what_is_no_page_is_refused(wrong: Dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        replace(page(), **wrong)


def test_what_is_borne_is_half_way_to_what_the_page_found_and_nothing_beside_another_page() -> None:
    slo = Slo("slo", (parse_objective("client.p95_ms<=25"), parse_objective("scrub.objects_s>=8")))
    known = {"client.p95_ms": 100.0, "scrub.objects_s": 1.0}
    one = page(1, load=known, effects={"client.p95_ms": -0.75, "scrub.objects_s": 3.0})
    assert borne(book(one), 1, slo) == {"client.p95_ms": 50.0, "scrub.objects_s": 2.0}
    # half way keeps the bound
    assert borne(book(replace(one, effects={"client.p95_ms": -0.96})), 1, slo) == {}
    # it was kept, or the page is no better, or does not know
    assert borne(book(replace(one, load={"client.p95_ms": 20.0})), 1, slo) == {}
    assert borne(book(replace(one, effects={"client.p95_ms": 0.1})), 1, slo) == {}
    assert borne(book(replace(one, load={})), 1, slo) == {}
    assert borne(book(one, page(2)), 1, slo) == {}
    assert borne(book(one, page(2)), 1, slo, resting=[2]) != {}
    assert borne(book(one, page(2, state=UNVALIDATED)), 1, slo) != {}
    assert borne(book(one, page(2, state=UNVALIDATED, origin=TWIN)), 1, slo, OF_THE_TWIN) == {}
    assert borne(book(one), 7, slo) == borne(book(one), 1, None) == {}


def test_a_page_is_stored_and_read() -> None:
    more = {"verdict": "better", "policy": "night", "left_out": {"office": "slo: missed"}}
    one = page(3, "busy+recovering", load={"client.iops": 900.0}, effects={"client.p95_ms": -0.2}, **more)
    assert Page.from_dict(json.loads(json.dumps(one.to_dict()))) == one
    plain = {key: value for key, value in one.to_dict().items() if key in ("number", "regime", "settings", "at")}
    # as versions before the policies gave it, and as one to come may
    earlier = Page.from_dict({**plain, "state": VALIDATED, "origin": TWIN, "later": 1})
    assert (earlier.target, earlier.policy, earlier.left_out) == ("osd", "", {})


@pytest.mark.parametrize(
    "wrong",
    [{"number": True}, {"pin": 1}, {"at": "now"}, {"settings": {"a": [1]}}, {"regime": 7}, {"left_out": {"a": 1}}],
)
def test_a_page_of_other_types_is_not_read(wrong: Dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        Page.from_dict({**page().to_dict(), **wrong})


def test_settings_that_are_there_replace_their_page_and_keep_its_pin() -> None:
    first = book(page(1), page(2)).pinned(1)
    again = first.added(replace(page(1), at=5000.0))
    # pins and rests are about the number
    assert [(each.number, each.pin, each.at) for each in again.pages] == [(1, True, 5000.0), (2, False, 1002.0)]
    assert again.newest == 2
    # what is not validated takes no page away that is, or that was struck
    assert again.added(replace(page(1), state=UNVALIDATED)) == again
    struck = again.struck(1, "bad")
    assert struck.added(replace(page(1), state=UNVALIDATED)) == struck
    # nor does a trial: what it keeps is in force without the book
    assert struck.added(page(1)) == struck


def test_the_oldest_of_the_least_worth_makes_room() -> None:
    pages = [page(number, state=VALIDATED) for number in range(1, MOST_PAGES + 1)]
    pages[0] = replace(pages[0], pin=True)
    full = book(*pages)
    assert [each.number for each in full.added(page(99)).pages][:2] == [1, 3]
    with_unvalidated = Book((*pages[:7], replace(pages[7], state=UNVALIDATED), *pages[8:]), MOST_PAGES)
    assert 8 not in [each.number for each in with_unvalidated.added(page(99)).pages]
    assert 9 not in [each.number for each in full.struck(9, "bad").added(page(99)).pages]
    assert 9 in [each.number for each in with_unvalidated.struck(9, "bad").added(page(99)).pages]
    # a page that another trial kept is no longer the oldest
    renewed = full.added(replace(page(2), at=5000.0)).added(page(99))
    assert [each.number for each in renewed.pages][:3] == [1, 2, 4]


def test_an_import_takes_no_page_away_that_this_cluster_showed() -> None:
    shown = book(*(page(number) for number in range(1, MOST_PAGES))).struck(1, "bad")
    full = shown.imported([page(99, "idle"), page(98, "idle")], 9000.0)
    assert [each.number for each in full.pages] == [*range(1, MOST_PAGES), MOST_PAGES + 1]
    with pytest.raises(InputError, match="beside pages 1"):
        shown.added(page(99)).imported([page(1, "idle")], 9000.0)


def test_what_is_stored_stays_below_the_monitors_limit() -> None:
    full = Book()
    for number in range(1, MOST_PAGES + 1):
        full = full.added(page(number, verdict="x" * 600, settings={f"knob_{n:040d}": number for n in range(30)}))
    assert len(json.dumps(full.to_dict())) < LARGEST_DOCUMENT + 100
    assert 10 < len(full.pages) < MOST_PAGES


def test_strikes_of_a_full_book_stay_below_the_monitors_limit() -> None:
    rich = {"load": {f"metric.{n}": 123.456789 for n in range(20)}, "verdict": "x" * 300}
    full = book()
    for number in range(MOST_PAGES):
        full = full.added(page(number + 1, **rich))
    store = MemoryStore()
    stored = StoredBook(store)
    stored.change(lambda _: full)
    for number in [each.number for each in full.pages]:
        if any(each.number == number for each in stored.read().pages):
            stored.change(lambda held, number=number: held.struck(number, "slo: client.p95_ms is missed; " * 9))
            assert stored.read().page(number).state == STRUCK
    assert len(stored.read().pages) > len(full.pages) / 2


def test_a_page_of_a_book_that_is_full_of_pins_is_struck_all_the_same() -> None:
    rich = {"load": {f"metric.{n}": 123.456789 for n in range(20)}, "verdict": "x" * 300}
    more = [page(number, target=f"osd/host:h{number}", pin=True, **rich) for number in range(1, MOST_PAGES + 1)]
    full = book()
    while len(json.dumps(full.added(more[0]).to_dict())) < LARGEST_DOCUMENT - 1000:
        full = full.added(more.pop(0))
    full = full.added(more.pop(0))
    with pytest.raises(InputError, match="all pinned"):
        full.added(more[0])
    numbers = [each.number for each in full.pages]
    harmed = full.struck(numbers[0], "slo: p95 \u00b5s; " * 50)
    assert [each.number for each in harmed.pages] == numbers
    assert harmed.page(numbers[0]).state == STRUCK
    StoredBook(MemoryStore()).change(lambda _: harmed)
    # the one that is not pinned makes room for the next
    twice = harmed.struck(numbers[1], "slo: p95 \u00b5s; " * 50)
    assert twice.page(numbers[1]).state == STRUCK
    StoredBook(MemoryStore()).change(lambda _: twice)


def test_pins_and_strikes() -> None:
    one = book(page(1), page(2), page(3, "idle")).pinned(1).pinned(3).pinned(2)
    assert [each.number for each in one.pages if each.pin] == [2, 3]
    assert [each.number for each in one.unpinned(3).pages if each.pin] == [2]
    struck = one.struck(2, "")
    assert (struck.page(2).state, struck.page(2).reason, struck.page(2).pin) == (STRUCK, "by an operator", False)
    for wrong in (lambda: struck.pinned(2), lambda: struck.struck(2, "again"), lambda: struck.unpinned(1)):
        with pytest.raises(InputError):
            wrong()
    with pytest.raises(InputError, match="no page 9"):
        struck.pinned(9)


def test_a_page_is_struck_for_its_own_policy_and_left_out_under_another() -> None:
    one = book(page(1, policy="base"), page(2))
    for number in (1, 2):
        missed = one.blamed(number, "slo: missed", "office").page(number)
        assert (missed.state, missed.left_out) == (VALIDATED, {"office": "slo: missed"})
    # of its own policy, or where no policy is beside the regime
    for policy in ("base", ""):
        assert one.blamed(1, "slo: missed", policy).page(1).state == STRUCK
    # nobody knows which one page 2 is of
    assert one.blamed(2, "slo: missed", "base").page(2).state == VALIDATED
    many = book(page(2))
    for number in range(30):
        many = many.blamed(2, "x" * 900, f"p{number}")
    assert list(many.page(2).left_out) == [f"p{number}" for number in range(30 - MOST_LEFT_OUT, 30)]
    with pytest.raises(InputError, match="struck already"):
        one.struck(1, "bad").blamed(1, "slo: missed", "office")


def test_a_page_is_not_used_while_the_policy_holds_under_which_it_is_left_out() -> None:
    one = book(page(1), page(2, policy="base", left_out={"office": "slo: missed"}))

    def number(policy: str, *resting: int) -> Any:
        chosen = choose(one.pinned(2), "busy", resting=resting, policy=policy)
        return chosen and chosen.number

    assert (number("base"), number(""), number("night"), number("office"), number("office", 1)) == (2, 2, 2, 1, None)
    assert [each.number for each in left_out(one, "busy", "office")] == [2]
    assert left_out(one, "idle", "office") == left_out(one, "busy", "base") == left_out(one, "busy", "") == ()
    # so nothing of the page that holds is borne where another one may follow
    slo = Slo("slo", (parse_objective("client.p95_ms<=25"),))
    known = book(page(1, load={"client.p95_ms": 100.0}, effects={"client.p95_ms": -0.75}), one.page(2))
    assert borne(known, 1, slo, policy="base") == {}
    assert borne(known, 1, slo, policy="office") == {"client.p95_ms": 50.0}


def test_the_page_of_the_policy_goes_before_a_newer_one_of_another() -> None:
    one = book(page(1, policy="office"), page(2, policy="base"), page(3, "idle", policy="office"))
    chosen = [choose(one, "busy", policy=policy) for policy in ("office", "base", "night", "")]
    assert [each and each.number for each in chosen] == [1, 2, 2, 2]
    assert choose(one.pinned(2), "busy", policy="office") == one.pinned(2).page(2)


def test_settings_that_come_again_stay_left_out_but_for_a_trial_under_that_policy() -> None:
    one = book(page(1, policy="base", left_out={"office": "slo: missed", "night": "slo: missed"}))
    again = one.added(page(1, policy="office", at=5000.0)).page(1)
    assert (again.policy, again.left_out) == ("office", {"night": "slo: missed"})
    predicted = replace(one.page(1), state=UNVALIDATED, origin=TWIN)
    came = book(predicted).imported([replace(predicted, left_out={"weekend": "slo: missed"})], 9000.0).page(1)
    assert (came.policy, came.left_out) == ("base", {"office": "slo: missed", "night": "slo: missed"})


def test_a_strike_and_what_is_left_out_are_undone() -> None:
    one = book(page(1, state=STRUCK), page(2, left_out={"office": "slo: missed"}), page(3))
    restored = one.restored(1).restored(2)
    first, second, _ = restored.pages
    # what a trial showed of it once was contradicted
    assert (first.state, first.reason, first.at) == (UNVALIDATED, "", 1001.0)
    assert (second.state, second.left_out) == (VALIDATED, {})
    assert restored.added(page(1)).page(1).state == VALIDATED
    for wrong in (1, 2, 3):
        with pytest.raises(InputError, match="expected one that is struck or left out"):
            restored.restored(wrong)
    with pytest.raises(InputError, match="no page 9"):
        one.restored(9)


def test_a_copy_for_another_regime_has_no_evidence_there() -> None:
    shown = page(3, "recovering", pin=True, policy="night", load={"client.iops": 9.0}, verdict="p95 -20%")
    book = Book((shown, page(5, "idle", STRUCK)), 5)
    copy = book.copied(3, "busy+recovering", 7.0).page(6)
    assert copy == Page(
        6, "busy+recovering", shown.settings, UNVALIDATED, IMPORT, 7.0, verdict="copy of page 3, recovering: p95 -20%"
    )
    # predicted for the other regime alone
    assert Book((page(1, origin=TWIN, state=UNVALIDATED),), 1).copied(1, "idle", 7.0).page(2).origin == IMPORT


def test_nothing_is_copied_of_a_page_that_is_struck_or_onto_one_that_is_there() -> None:
    same = {"settings": {"osd_max_scrubs": 1}}
    book = Book((page(1, "recovering"), page(2, "busy", STRUCK, **same), page(3, "idle", **same)), 3)
    for number, regime, words in [
        (2, "idle", "page 2, which is struck"),
        (1, "busy", "page 2 for busy, which is struck, with the same settings"),
        (1, "recovering", "page 1 for recovering, which is validated"),
        (9, "busy", "no page 9"),
    ]:
        with pytest.raises(InputError, match=words):
            book.copied(number, regime, 7.0)


def test_a_copy_takes_no_page_away_that_this_cluster_showed() -> None:
    full = Book(tuple(page(number, f"m{number}") for number in range(1, MOST_PAGES + 1)), MOST_PAGES)
    with pytest.raises(InputError, match="more pages than there is room for"):
        full.copied(1, "idle", 7.0)


def test_an_imported_page_is_unvalidated_here() -> None:
    of_policy = {"policy": "night", "left_out": {"office": "slo: missed"}}
    came = [
        page(1, pin=True, **of_policy),
        page(2, state=STRUCK),
        page(3, origin=TWIN, state=UNVALIDATED, **of_policy),
    ]
    taken = book(page(1, "idle")).imported(came, 9000.0)
    assert [(each.number, each.regime, each.state, each.origin, each.pin, each.at) for each in taken.pages] == [
        (1, "idle", VALIDATED, "trial", False, 1001.0),
        (2, "busy", UNVALIDATED, IMPORT, False, 9000.0),
        (3, "busy", UNVALIDATED, TWIN, False, 9000.0),
    ]
    # a calendar elsewhere is another one
    assert [(each.policy, each.left_out) for each in taken.pages] == [("", {}), ("", {}), ("night", {})]


def test_the_store_keeps_it_with_what_another_version_put_beside() -> None:
    store = MemoryStore()
    stored = StoredBook(store)
    assert stored.read() == Book()
    stored.change(lambda one: one.added(page()))
    store.set(PAGES_KEY, json.dumps({**json.loads(store.values[PAGES_KEY]), "later": [1]}))
    stored.change(lambda one: one.added(page(2)))
    assert json.loads(store.values[PAGES_KEY])["later"] == [1]
    assert [each.number for each in stored.read().pages] == [1, 2]


@pytest.mark.parametrize(
    "text",
    [
        "no JSON",
        "[]",
        '{"pages": 7}',
        '{"version": 2, "pages": []}',
        '{"pages": [{"number": 1}]}',
        '{"pages": [], "newest": "x"}',
        json.dumps({"pages": [page(1).to_dict(), page(1).to_dict()], "newest": 1}),
        json.dumps({"pages": [page(2).to_dict()], "newest": 1}),
        json.dumps({"pages": [{**page(n).to_dict(), "pin": True} for n in (1, 2)], "newest": 2}),
        json.dumps({"pages": [page(n).to_dict() for n in range(1, MOST_PAGES + 2)]}),
    ],
)
def test_one_that_is_damaged_is_neither_used_nor_written_over(text: str) -> None:
    store = MemoryStore()
    store.set(PAGES_KEY, text)
    for work in (lambda: StoredBook(store).read(), lambda: StoredBook(store).change(lambda one: one.added(page()))):
        with pytest.raises(InputError, match="config-key"):
            work()
    assert store.values[PAGES_KEY] == text


def test_a_file_of_pages_needs_no_newest() -> None:
    assert parse_book({"pages": [page(4).to_dict()]}, "book.json").newest == 4


def test_the_page_that_holds() -> None:
    one = book(
        page(1),
        page(2),
        page(3, state=STRUCK),
        page(4, "idle", UNVALIDATED, origin=IMPORT),
        page(5, "idle", UNVALIDATED, origin=TWIN),
    )
    numbers = [choose(one, "busy"), choose(one, "busy", resting=[2]), choose(one, "busy", resting=[1, 2])]
    assert [each and each.number for each in numbers] == [2, 1, None]
    allowed = [choose(one, "idle", unvalidated) for unvalidated in (NONE, OF_THE_TWIN, ALL)]
    assert [each and each.number for each in allowed] == [None, 5, 5]
    pinned = choose(one.pinned(1).pinned(4), "busy"), choose(one.pinned(4), "idle")
    assert [each and each.number for each in pinned] == [1, 4]
    assert choose(one, "recovering", ALL) is None
    with pytest.raises(InputError, match="book_unvalidated"):
        choose(one, "busy", "some")
