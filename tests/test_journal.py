from __future__ import annotations

from dataclasses import replace
from typing import Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.errors import JournalDamaged
from ceph_tuner.journal import APPLIED, UNDONE, Entry, Journal
from ceph_tuner.knobs import KNOBS
from ceph_tuner.plan import Restore, Step
from monitors import MemoryStore


def entry(number: int, state: str = APPLIED, old: Optional[str] = "1", new: str = "2", **more: object) -> Entry:
    step = Step("osd", "osd_max_scrubs", old, new)
    restore = Restore("osd", "osd_max_scrubs", old, frozenset({new}))
    return Entry(number, state, 1.0, 2.0, "alice", "why", "tentacle", "osd", (step,), (restore,), **more)  # type: ignore[arg-type]


values = st.none() | st.text(max_size=5)


@given(st.lists(st.tuples(st.sampled_from(sorted(KNOBS)), values, values, st.frozensets(values, max_size=3))))
def test_an_entry_is_read_as_it_was_written(rows: list) -> None:  # type: ignore[type-arg]
    steps = tuple(Step(name, name, old, new) for name, old, new, _ in rows)
    restores = tuple(Restore(name, name, old, ours) for name, old, _, ours in rows)
    written = Entry(3, APPLIED, 1.5, 2.5, "a", "b", "reef", "osd", steps, restores, True, "note")
    assert Entry.from_text("x", written.to_text()) == written


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"steps": 1}', "nonsense", entry(1).to_text().replace("applied", "x")]
)
def test_a_damaged_entry_stops_everything_and_names_itself(text: str) -> None:
    store = MemoryStore()
    store.set("journal/00000001", text)
    with pytest.raises(JournalDamaged, match="journal/00000001"):
        Journal(store).entries()


def test_an_entry_that_would_set_what_no_change_of_ours_sets_is_refused() -> None:
    store = MemoryStore()
    store.set("journal/00000001", entry(1).to_text().replace("osd_max_scrubs", "auth_cluster_required"))
    with pytest.raises(JournalDamaged, match="auth_cluster_required"):
        Journal(store).entries()


def test_numbers_go_on_after_the_highest() -> None:
    journal = Journal(MemoryStore())
    assert journal.next_number() == 1
    journal.write(entry(1))
    journal.write(entry(9))
    assert journal.next_number() == 10
    assert [found.number for found in journal.entries()] == [1, 9]


def test_only_so_many_finished_entries_are_kept_the_newest() -> None:
    journal = Journal(MemoryStore(), keep=3)
    for number in range(1, 7):
        journal.write(entry(number, UNDONE if number != 1 else APPLIED))
        journal.trim()
    assert [found.number for found in journal.entries()] == [1, 5, 6]


def test_entries_in_force_are_joined_so_that_all_can_still_be_taken_back() -> None:
    journal = Journal(MemoryStore(), keep=2)
    for number in range(1, 6):
        journal.write(entry(number, old=str(number), new=str(number + 1)))
        journal.trim()
    oldest, newest = journal.entries()
    assert (oldest.number, newest.number) == (4, 5)
    assert oldest.restores == (Restore("osd", "osd_max_scrubs", "1", frozenset({"5"})),)
    assert oldest.steps == (Step("osd", "osd_max_scrubs", "1", "5"),)


def test_unfinished_entries_and_trials_are_never_joined_or_forgotten() -> None:
    journal = Journal(MemoryStore(), keep=2)
    for number, state in enumerate(("applying", "undoing", "applied", "applied"), 1):
        journal.write(entry(number, state, trial=number == 3))
    journal.trim()
    assert [found.number for found in journal.entries()] == [1, 2, 3, 4]


def test_an_undo_that_holds_thousands_of_profiles_stays_under_the_monitors_limit() -> None:
    ours = frozenset({"custom"})
    held = tuple(Restore(f"osd.{osd}", "osd_mclock_profile", "balanced", ours) for osd in range(10_000))
    some = tuple(restore for restore in held if restore.who != "osd.17")
    others = tuple(Restore(who, "osd_max_scrubs", None, ours) for who in ("osd.5", "osd/host:h-1"))
    for restores in (held, some, (*others, *some), tuple(reversed(held[:100])), (held[3], held[3])):
        written = replace(entry(1), restores=restores)
        assert len(written.to_text()) < 65536
        assert Entry.from_text("x", written.to_text()) == written


def test_no_entry_fills_the_memory() -> None:
    text = entry(1).to_text()
    assert '"who":"osd"}]' in text
    with pytest.raises(JournalDamaged, match="an OSD above"):
        Entry.from_text("x", text.replace('"who":"osd"}]', '"who":"osd.0-9999999999"}]'))


def test_a_long_list_of_steps_stays_under_the_monitors_limit() -> None:
    steps = tuple(Step("osd/host:a-rather-long-name", f"osd_mclock_scheduler_{n}", "0.5", "0.6") for n in range(100))
    restores = tuple(Restore(step.who, step.name, "0.5", frozenset({"0.6", "custom"})) for step in steps)
    assert len(Entry(1, APPLIED, 1, 1, "a", "b", "reef", "osd", steps, restores).to_text()) < 65536
