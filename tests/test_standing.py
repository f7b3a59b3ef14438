"""A change whose settings are replaced: one entry, fewest writes, and the way back is that of before the first."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Dict, List, Tuple

import pytest
from hypothesis import example, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from appliers import OTHER, TABLES, Killed, applier, kill_at, survive
from ceph_tuner.core.changes.journal import APPLIED, STANDING, UNDONE, Entry, Journal
from ceph_tuner.core.changes.lock import Holder, Lock
from ceph_tuner.core.changes.standing import StandingApplier
from ceph_tuner.core.errors import EffectNotSeen, InputError, RetryLater, TunerError
from ceph_tuner.core.knobs.catalogue import PROFILE
from monitors import TENTACLE, ManualClock, Monitors

PAGES: Dict[str, Dict[str, Any]] = {
    "recovery": {PROFILE: "high_recovery_ops"},
    "backfills": {PROFILE: "high_recovery_ops", "osd_mclock_override_recovery_settings": True, "osd_max_backfills": 4},
    "clients": dict(OTHER),
    "clients, few scrubs": {**OTHER, "osd_max_scrubs": 1},
    "scrub": {"osd_max_scrubs": 6},
    "balanced": {PROFILE: "balanced"},
}


def standing_applier(monitors: Monitors, name: str = "one") -> StandingApplier:
    clock = ManualClock()
    lock = Lock(monitors.store, clock, Holder(name), lambda holder: holder.name == name, heartbeat=False)
    return StandingApplier(monitors, monitors.store, clock, lock, TENTACLE, name)


def as_by_hand(table: str, page: str) -> Monitors:
    """What the cluster is like where this page alone was applied."""
    monitors = Monitors(osds=2, table=dict(TABLES[table]))
    one = applier(monitors)
    one.apply(one.plan("osd", PAGES[page]))
    return monitors


@pytest.mark.parametrize("table", sorted(TABLES))
@examples(max_examples=30, deadline=None)
@given(pages=st.lists(st.sampled_from(sorted(PAGES)), min_size=1, max_size=4))
def test_each_page_is_in_force_as_if_it_were_alone_and_the_way_back_is_that_of_before(
    table: str, pages: List[str]
) -> None:
    monitors = Monitors(osds=2, table=dict(TABLES[table]))
    before = monitors.schedulers()
    one = standing_applier(monitors)
    entry = None
    for page in pages:
        if entry is None or entry.state == UNDONE:
            entry = one.apply(one.plan("osd", PAGES[page]), trial=True)
        else:
            entry = one.replace(entry, "osd", PAGES[page])
        alone = as_by_hand(table, page)
        assert monitors.table == alone.table
        assert monitors.schedulers() == alone.schedulers()
    in_force = [each for each in one.history() if each.state == APPLIED]
    assert len(in_force) == (monitors.table != TABLES[table])
    for each in in_force:
        one.undo_entry(each)
    assert monitors.table == TABLES[table]
    assert monitors.schedulers() == before


def test_only_keys_that_differ_are_written() -> None:
    monitors = Monitors(osds=2)
    one = standing_applier(monitors)
    entry = one.apply(one.plan("osd", PAGES["clients"]))
    assert entry is not None
    plan = one.plan_replacement(entry, "osd", PAGES["clients, few scrubs"]).plan
    assert [step.name for step in plan.steps] == ["osd_max_scrubs"]
    entry = one.replace(entry, "osd", PAGES["clients, few scrubs"])
    assert (entry.number, entry.trial) == (1, True)
    assert [step.name for step in one.plan_replacement(entry, "osd", PAGES["clients"]).plan.steps] == ["osd_max_scrubs"]
    assert not one.keep(entry).trial


@pytest.mark.slow
@pytest.mark.parametrize("landed", [False, True])
@pytest.mark.parametrize("table", sorted(TABLES))
@pytest.mark.parametrize(
    ("first", "second"),
    [("clients", "recovery"), ("backfills", "clients"), ("scrub", "clients, few scrubs"), ("recovery", "scrub")],
)
def test_a_kill_at_every_boundary_leaves_what_any_run_takes_back(
    table: str, first: str, second: str, landed: bool
) -> None:
    boundary, killed = 0, True
    while killed:
        boundary += 1
        monitors = Monitors(osds=2, table=dict(TABLES[table]))
        before = monitors.schedulers()
        one = standing_applier(monitors)
        entry = one.apply(one.plan("osd", PAGES[first]))
        assert entry is not None
        page = dict(monitors.table)
        one.keep(entry)
        kill = kill_at(monitors, boundary, landed)
        with suppress(Killed):
            one.replace(entry, "osd", PAGES[second])
        killed = kill.dead
        survive(monitors)
        # a plain applier, as that of the guardian, of the program or of an older version
        other = applier(monitors, "other")
        other.recover()
        (stored,) = other.history()
        if stored.state == APPLIED:
            assert killed
            assert monitors.table == page
            other.undo_entry(stored)
        assert monitors.table == TABLES[table], boundary
        assert monitors.schedulers() == before, boundary
    assert boundary > 4


def test_what_fails_on_the_way_takes_all_of_it_back() -> None:
    monitors = Monitors(osds=2)
    one = standing_applier(monitors)
    entry = one.apply(one.plan("osd", PAGES["clients"]))
    assert entry is not None
    count = iter(range(100))

    def check() -> None:
        if next(count) == 1:
            raise EffectNotSeen("no")

    with pytest.raises(TunerError):
        one.replace(entry, "osd", PAGES["recovery"], check=check)
    assert monitors.table == {}
    assert [each.state for each in one.history()] == [UNDONE]


def test_what_somebody_else_changed_is_not_replaced() -> None:
    monitors = Monitors(osds=2)
    one = standing_applier(monitors)
    entry = one.apply(one.plan("osd", {"osd_max_scrubs": 2, "osd_max_trimming_pgs": 4}))
    assert entry is not None
    monitors.set("osd", "osd_max_scrubs", "9")
    with pytest.raises(RetryLater, match="somebody changed"):
        one.replace(entry, "osd", {"osd_max_trimming_pgs": 8})
    assert monitors.table["osd", "osd_max_trimming_pgs"] == "4"


def test_what_is_not_in_force_is_not_replaced() -> None:
    monitors = Monitors(osds=2)
    one = standing_applier(monitors)
    entry = one.apply(one.plan("osd", PAGES["scrub"]))
    assert entry is not None
    one.undo()
    with pytest.raises(RetryLater, match="undone"):
        one.replace(entry, "osd", PAGES["recovery"])
    assert monitors.table == {}


def test_a_later_change_goes_back_to_what_was_before_it_all() -> None:
    monitors = Monitors(osds=2, table={("osd", "osd_max_scrubs"): "3"})
    one = standing_applier(monitors)
    entry = one.apply(one.plan("osd", {"osd_max_scrubs": 2, "osd_max_trimming_pgs": 4}))
    assert entry is not None
    other = applier(monitors, "other")
    other.apply(other.plan("osd", {"osd_max_scrubs": 7}))
    assert [item.found for item in standing_applier(monitors).undo_entry(entry).drift] == ["7"]
    assert monitors.table == {("osd", "osd_max_scrubs"): "7"}
    other.undo()
    assert monitors.table == {("osd", "osd_max_scrubs"): "3"}


BOOK = f"one{STANDING}"


def test_a_later_change_of_the_same_value_as_before_leaves_the_way_back_alone() -> None:
    monitors = Monitors(osds=2, table={("osd", PROFILE): "high_recovery_ops"})
    one, other = standing_applier(monitors, BOOK), applier(monitors, "other")
    book = one.apply(one.plan("osd", {PROFILE: "balanced"}))
    boost = other.apply(other.plan("osd", {PROFILE: "high_recovery_ops"}))
    assert book is not None
    assert boost is not None
    other.undo_entry(boost)
    assert monitors.table == {("osd", PROFILE): "balanced"}
    one.undo()
    assert monitors.table == {("osd", PROFILE): "high_recovery_ops"}


@pytest.mark.parametrize("first", ["the later change", "the replaced one"])
def test_a_key_that_a_replacement_adds_lies_over_a_later_change_whichever_goes_first(first: str) -> None:
    # the later change had found 6, which is the value that the replacement writes
    monitors = Monitors(osds=2, table={("osd", "osd_max_scrubs"): "6"})
    one, other = standing_applier(monitors, BOOK), applier(monitors, "other")
    book = one.apply(one.plan("osd", {"osd_max_trimming_pgs": 4}))
    later = other.apply(other.plan("osd", {"osd_max_scrubs": 2}))
    assert book is not None
    assert later is not None
    book = one.replace(book, "osd", {"osd_max_scrubs": 6})
    one.keep(book)
    undos = [lambda: other.undo_entry(later), lambda: standing_applier(monitors, BOOK).undo_entry(book)]
    for undo in undos if first == "the later change" else reversed(undos):
        undo()
    assert monitors.table == {("osd", "osd_max_scrubs"): "6"}


def test_a_page_that_came_and_went_over_a_later_change_is_not_what_that_goes_back_to() -> None:
    monitors = Monitors(osds=2, table={("osd", "osd_max_scrubs"): "1"})
    one, other = standing_applier(monitors, BOOK), applier(monitors, "other")
    book = one.apply(one.plan("osd", {"osd_max_scrubs": 3, "osd_max_trimming_pgs": 4}))
    other.apply(other.plan("osd", {"osd_max_scrubs": 1}))
    assert book is not None
    for page in ({"osd_max_scrubs": 3}, {"osd_max_trimming_pgs": 4}, {"osd_max_scrubs": 3}):
        book = one.replace(book, "osd", page)
        one.keep(book)
    other.undo()
    assert monitors.table == {("osd", "osd_max_scrubs"): "3"}
    one.undo_entry(book)
    assert monitors.table == {("osd", "osd_max_scrubs"): "1"}


def test_a_value_that_two_changes_wrote_is_that_of_the_upper_one() -> None:
    monitors = Monitors(osds=2, table={("osd", "osd_max_scrubs"): "1"})
    one = applier(monitors)
    entries = [one.apply(one.plan("osd", {"osd_max_scrubs": value})) for value in (2, 3, 2, 5)]
    assert entries[0] is not None
    one.undo_entry(entries[0])
    tables = []
    for _ in range(3):
        one.undo()
        tables.append(monitors.table["osd", "osd_max_scrubs"])
    assert tables == ["2", "3", "1"]


def test_a_later_change_of_our_own_value_keeps_it() -> None:
    monitors = Monitors(osds=2, table={("osd", "osd_max_scrubs"): "1"})
    one = applier(monitors)
    entries = [one.apply(one.plan("osd", {"osd_max_scrubs": value})) for value in (2, 3, 2)]
    assert entries[0] is not None
    assert one.preview_undo(entries[0])[0] == ()
    undone = one.undo_entry(entries[0])
    assert [str(item) for item in undone.drift] == [
        "osd osd_max_scrubs: 2 is by now that of another change, left as it is"
    ]
    tables = [monitors.table["osd", "osd_max_scrubs"]]
    for _ in range(2):
        one.undo()
        tables.append(monitors.table["osd", "osd_max_scrubs"])
    assert tables == ["2", "3", "1"]


@pytest.mark.parametrize("ends", ["fails", "killed"])
def test_a_replacement_that_is_taken_back_leaves_a_later_change_no_value_of_its_own(ends: str) -> None:
    monitors = Monitors(osds=2, table={("osd", "osd_max_scrubs"): "6"})
    one, other = standing_applier(monitors, BOOK), applier(monitors, "other")
    book = one.apply(one.plan("osd", {"osd_max_scrubs": 2}))
    assert book is not None
    # what was before the book: no drift, so its settings can still be replaced
    other.apply(other.plan("osd", {"osd_max_scrubs": 6}))

    def check() -> None:
        if ends == "fails":
            raise EffectNotSeen("no")

    if ends == "killed":
        # after the claim, the generation and the entry
        kill_at(monitors, 5)
    with pytest.raises((EffectNotSeen, Killed)):
        one.replace(book, "osd", {"osd_max_trimming_pgs": 4}, check=check)
    survive(monitors)
    applier(monitors, "third").recover()
    assert [each.state for each in other.history()] == [UNDONE, APPLIED]
    other.undo()
    assert monitors.table == {("osd", "osd_max_scrubs"): "6"}


@pytest.mark.parametrize("landed", [False, True])
def test_killed_while_a_change_below_another_goes_the_journal_says_what_is_in_force(landed: bool) -> None:
    boundary, killed, states = 0, True, set()
    while killed:
        boundary += 1
        monitors = Monitors(osds=2, table={("osd", "osd_max_scrubs"): "6"})
        one, other = standing_applier(monitors, BOOK), applier(monitors, "other")
        book = one.apply(one.plan("osd", {"osd_max_trimming_pgs": 4}))
        later = other.apply(other.plan("osd", {"osd_max_scrubs": 2}))
        assert book is not None
        assert later is not None
        book = one.keep(one.replace(book, "osd", {"osd_max_trimming_pgs": 4, "osd_max_scrubs": 5}))
        kill = kill_at(monitors, boundary, landed)
        with suppress(Killed):
            other.undo_entry(later)
        killed = kill.dead
        survive(monitors)
        third = applier(monitors, "third")
        third.recover()
        third.undo_entry(book)
        state = {each.number: each.state for each in third.history()}[later.number]
        states.add(state)
        assert monitors.table == {("osd", "osd_max_scrubs"): "2" if state == APPLIED else "6"}, boundary
        with suppress(InputError):
            third.undo(everything=True)
        assert monitors.table == {("osd", "osd_max_scrubs"): "6"}, boundary
    assert states == {APPLIED, UNDONE}


_DEEDS = st.one_of(
    st.tuples(st.just("replace"), st.sampled_from(sorted(PAGES))),
    st.tuples(st.just("apply"), st.sampled_from(sorted(PAGES))),
    st.tuples(st.just("undo"), st.integers(0, 3).map(str)),
)


@pytest.mark.parametrize("table", sorted(TABLES))
@examples(max_examples=25, deadline=None)
@example(
    # two joins, of which the second concerns what the first has moved
    deeds=[
        ("apply", "scrub"),
        ("apply", "backfills"),
        ("replace", "clients, few scrubs"),
        ("apply", "backfills"),
    ],
    book_first=False,
    joined=True,
)
@example(
    # it lies between two changes that would be joined
    deeds=[("apply", "balanced"), ("replace", "backfills"), ("apply", "balanced"), ("apply", "backfills")],
    book_first=True,
    joined=True,
)
@example(
    # it lies over the later change twice, and then has the key no more
    deeds=[
        ("apply", "clients, few scrubs"),
        ("replace", "scrub"),
        ("apply", "clients, few scrubs"),
        ("replace", "scrub"),
        ("replace", "backfills"),
    ],
    book_first=False,
    joined=False,
)
@given(deeds=st.lists(_DEEDS, max_size=8), book_first=st.booleans(), joined=st.booleans())
def test_whatever_lies_over_what_all_of_it_goes_back_to_what_was_before(
    table: str, deeds: List[Tuple[str, str]], book_first: bool, joined: bool
) -> None:
    monitors = Monitors(osds=2, table=dict(TABLES[table]))
    before = monitors.schedulers()
    one, other = standing_applier(monitors, BOOK), applier(monitors, "other")
    book = one.apply(one.plan("osd", {"osd_max_trimming_pgs": 4}))
    assert book is not None
    later: List[Entry] = []
    for what, which in deeds:
        if what == "replace":
            with suppress(RetryLater, InputError):
                # somebody changed what is to be replaced: the book goes off then
                book = one.keep(one.replace(book, "osd", {"osd_max_trimming_pgs": 4, **PAGES[which]}))
        elif what == "apply":
            with suppress(InputError):
                # to touch a profile over nine values that sleep is refused
                entry = other.apply(other.plan("osd", PAGES[which]))
                later += [entry] if entry is not None else []
        elif later:
            # not the newest alone: an automatic mode takes its own back
            other.undo_entry(later.pop(int(which) % len(later)))
    if joined:
        with one._lock:
            Journal(monitors.store, 2).trim()
    if book_first:
        one.undo_entry(book)
    with suppress(InputError):
        # nothing may be left
        other.undo(everything=True)
    assert monitors.table == TABLES[table]
    assert monitors.schedulers() == before
