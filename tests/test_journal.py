from __future__ import annotations

import json
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliers import applier, apply
from ceph_tuner.core.changes import journal as journal_module
from ceph_tuner.core.changes.journal import APPLIED, APPLYING, LARGEST, STANDING, UNDOING, UNDONE, Entry, Journal
from ceph_tuner.core.changes.plan import Restore, Step
from ceph_tuner.core.errors import JournalDamaged
from ceph_tuner.core.knobs.catalogue import KNOBS, RETIRED
from monitors import MemoryStore, Monitors


def entry(number: int, state: str = APPLIED, old: Optional[str] = "1", new: str = "2", **more: object) -> Entry:
    step = Step("osd", "osd_max_scrubs", old, new)
    restore = Restore("osd", "osd_max_scrubs", old, frozenset({new}))
    return Entry(number, state, 1.0, 2.0, "alice", "why", "tentacle", "osd", (step,), (restore,), **more)  # type: ignore[arg-type]


values = st.none() | st.text(max_size=5)
PLAIN = {"bool": "true", "int": "3", "size": "64K", "float": "0.5", "fraction": "0.250000"}


@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(KNOBS)), st.booleans(), values, st.frozensets(values, max_size=3)),
    ),
    st.integers(0, 99),
)
def test_an_entry_is_read_as_it_was_written(rows: list, number: int) -> None:  # type: ignore[type-arg]
    def before(name: str, there: bool) -> Optional[str]:
        knob = KNOBS[name]
        return (PLAIN.get(knob.kind) or knob.choices[0]) if there else None

    steps = tuple(Step(name, name, before(name, there), new) for name, there, new, _ in rows)
    restores = tuple(Restore("osd/host:h-1", name, before(name, there), ours, number) for name, there, _, ours in rows)
    written = Entry(3, APPLIED, 1.5, 2.5, "a", "b", "reef", "osd", steps, restores, True, "note", 7)
    assert Entry.from_text("x", written.to_text()) == written


def test_an_entry_is_taken_apart_once_for_as_long_as_its_text_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    taken_apart: List[int] = []
    take_apart = journal_module._entry

    def counted(document: Dict[str, Any]) -> Entry:
        taken_apart.append(document["number"])
        return take_apart(document)

    monkeypatch.setattr(journal_module, "_entry", counted)
    # no other test has read their texts
    entries = [entry(number, note="taken apart once") for number in (1, 2, 3)]
    store = MemoryStore()
    for each in entries:
        Journal(store).write(each)
    for _ in range(5):
        assert Journal(store).entries() == entries
    assert sorted(taken_apart) == [1, 2, 3]
    undone = replace(entries[1], state=UNDONE)
    store.set("journal/00000002", undone.to_text())
    assert Journal(store).entries() == [entries[0], undone, entries[2]]
    assert taken_apart[3:] == [2]
    # the same text below another key is no entry
    store.set("journal/00000004", undone.to_text())
    assert [item.key for item in Journal(store).read().set_aside] == ["journal/00000004"]


def changed(**more: object) -> str:
    return json.dumps({**json.loads(entry(1).to_text()), **more})


def restoring(**more: object) -> str:
    (item,) = json.loads(entry(1).to_text())["restores"]
    return changed(restores=[{**item, **more}])


DAMAGED = {
    "nothing": "",
    "empty": "{}",
    "a list": "[]",
    "no steps": '{"steps": 1}',
    "words": "nonsense",
    "another state": entry(1).to_text().replace("applied", "x"),
    "deep": "[" * 50_000,
    "deep inside": changed(note="x").replace('"x"', "[" * 900 + "]" * 900),
    "400 digits": changed(at=1).replace('"at": 1', '"at": ' + "1" * 400),
    "endless": changed(at=1).replace('"at": 1', '"at": Infinity'),
    "half a character": changed(why="\ud800"),
    "a number of text": changed(at="x"),
    "a text of numbers": changed(who=1),
    "a trial by a text": changed(trial="no"),
    "a trial by a number": changed(trial=1),
    "another change's": changed(number=2),
    "an option of no knob": entry(1).to_text().replace("osd_max_scrubs", "auth_cluster_required"),
    "an option of the ceph program": restoring(value="--out-file=/etc/shadow"),
    "another section": restoring(who="mon"),
    "an option for a section": restoring(who="--id=admin"),
    "a value of another kind": restoring(value="much"),
    "over no number": restoring(over="1"),
    "over less than none": restoring(over=-1),
    "a long value": restoring(value="1" * 101),
    "a profile that is an option": restoring(name="osd_mclock_profile", value="-i"),
    "a mapping for a value": restoring(value={}),
    "spans that repeat": restoring(who="osd." + ",".join(["0-1000000"] * 6)),
    "spans without end": restoring(who="osd.0-9999999999"),
    "spans backwards": restoring(who="osd.7-3"),
    "thousands of options for thousands": changed(restores=json.loads(restoring(who="osd.0-99999"))["restores"] * 30),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_what_cannot_be_read_is_set_aside_and_named_at_once_and_stops_nothing_but_new_changes(name: str) -> None:
    store = MemoryStore()
    store.set("journal/00000001", DAMAGED[name])
    Journal(store).write(entry(2))
    began = time.process_time()
    found = Journal(store).read()
    assert time.process_time() - began < 1
    assert [item.number for item in found.entries] == [2]
    assert [item.number for item in found.set_aside] == [1]
    assert str(found.set_aside[0]).startswith("journal/00000001 cannot be read, and is left alone (")
    assert Journal(store).next_number() == 3
    with pytest.raises(JournalDamaged, match="journal/00000001"):
        found.check_whole()


@pytest.mark.parametrize("key", ["README", "1", "000000001x", "00000000", "99999999999999999999", "a/b", ""])
def test_a_foreign_key_stops_nothing_at_all(key: str) -> None:
    store = MemoryStore()
    store.values[f"journal/{key}"] = "hello"
    Journal(store).write(entry(4))
    found = Journal(store).read()
    found.check_whole()
    assert ([item.number for item in found.entries], [item.key for item in found.set_aside]) == (
        [4],
        [f"journal/{key}"],
    )
    assert Journal(store).next_number() == 5


@pytest.mark.slow
def test_entries_that_restore_more_than_a_cluster_has_do_not_push_the_others_out() -> None:
    ours = frozenset({"custom"})
    many = tuple(Restore(f"osd.{osd}", "osd_mclock_profile", "balanced", ours) for osd in range(45_000))
    text = replace(entry(2), restores=many).to_text()
    store = MemoryStore()
    store.set("journal/00000001", entry(1).to_text())
    for number in range(2, 10):
        store.set(f"journal/{number:08d}", text.replace('"number":2,', f'"number":{number},'))
    tracemalloc.start()
    for journal, most in ((Journal(store), 5), (Journal(store, osds=lambda: 3), 1)):
        found = journal.read()
        assert [item.number for item in found.entries] == list(range(1, most + 1))[: len(found.entries)]
        assert 1 <= len(found.entries) <= most
    assert tracemalloc.get_traced_memory()[1] < 128 << 20
    tracemalloc.stop()
    large = Journal(store, osds=lambda: 10_000).read()
    assert len(large.entries) > 5


def test_numbers_go_on_after_the_highest() -> None:
    journal = Journal(MemoryStore())
    assert journal.next_number() == 1
    journal.write(entry(1))
    journal.write(entry(9))
    assert journal.next_number() == 10
    assert [found.number for found in journal.entries()] == [1, 9]


def test_a_number_that_could_not_be_read_again_is_given_to_no_change() -> None:
    monitors = Monitors()
    last = entry(10**12 - 1, UNDONE)
    monitors.store.set(f"journal/{last.number}", last.to_text())
    with pytest.raises(JournalDamaged, match="no number is left"):
        apply(monitors, "osd", {"osd_max_scrubs": 1})
    assert monitors.table == {}


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


@pytest.mark.parametrize(("key_of_3", "numbers", "over"), [("osd_max_trimming_pgs", [1, 3, 4], 3), ("", [1, 2, 4], 2)])
def test_what_lay_over_a_joined_change_lies_over_the_one_that_it_was_joined_to(
    key_of_3: str, numbers: List[int], over: int
) -> None:
    # where the third change has the same key, the book lies between the two: they are not joined
    journal = Journal(MemoryStore(), keep=3)
    book, third = entry(1), entry(3)
    journal.write(replace(book, who=f"mgr.x{STANDING}", restores=(replace(book.restores[0], over=2),)))
    third = replace(third, restores=(replace(third.restores[0], name=key_of_3 or third.restores[0].name),))
    for each in (entry(2), third, entry(4)):
        journal.write(each)
    journal.trim()
    assert [found.number for found in journal.entries()] == numbers
    assert journal.entries()[0].restores[0].over == over


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


def apart(number: int, osds: range) -> Entry:
    """A change of so many OSDs that differ in what they had before."""
    restores = tuple(Restore(f"osd.{osd}", "osd_max_scrubs", str(osd % 9), frozenset({str(number)})) for osd in osds)
    return replace(entry(number), restores=restores)


def test_two_changes_that_are_too_large_together_are_not_joined_and_stop_nothing() -> None:
    store = MemoryStore()
    journal = Journal(store, keep=2)
    for each in (apart(1, range(500)), apart(2, range(500, 1000)), entry(3), entry(4)):
        journal.write(each)
    journal.trim()
    kept = journal.entries()
    assert [each.number for each in kept] == [1, 4]
    assert len(kept[0].restores) == 500
    assert len(kept[1].restores) == 501


def test_what_only_people_read_is_cut_short_before_an_entry_cannot_be_stored() -> None:
    store = MemoryStore()
    for state in (APPLYING, APPLIED, UNDOING, UNDONE):
        written = replace(
            apart(1, range(700)), state=state, why="w" * 9000, note="é" * 4000, forecast={"a": "b" * 9000}
        )
        assert len(written.to_text()) > LARGEST
        Journal(store).write(written)
        (kept,) = Journal(store).entries()
        assert (kept.restores, kept.state, kept.steps) == (written.restores, state, written.steps)
        assert "w" * len(kept.why) == kept.why


def test_a_long_list_of_steps_stays_under_the_monitors_limit() -> None:
    steps = tuple(Step("osd/host:a-rather-long-name", f"osd_mclock_scheduler_{n}", "0.5", "0.6") for n in range(100))
    restores = tuple(Restore(step.who, step.name, "0.5", frozenset({"0.6", "custom"})) for step in steps)
    assert len(Entry(1, APPLIED, 1, 1, "a", "b", "reef", "osd", steps, restores).to_text()) < 65536


def test_what_a_newer_version_stored_beside_an_entry_is_ignored_and_kept() -> None:
    text = entry(1).to_text()
    document = {**json.loads(text), "version": 9, "approved": {"by": "alice"}}
    document["steps"] = [{**step, "reason": "x"} for step in document["steps"]]
    read = Entry.from_text("journal/00000001", json.dumps(document))
    assert replace(read, unknown={}) == entry(1)
    again = json.loads(replace(read, state=UNDONE).to_text())
    assert (again["version"], again["approved"], again["state"]) == (9, {"by": "alice"}, UNDONE)
    assert "unknown" not in again


def test_a_knob_that_an_earlier_version_could_set_is_still_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monitors = Monitors()
    apply(monitors, "osd", {"osd_max_scrubs": 1})
    monkeypatch.setitem(RETIRED, "osd_max_scrubs", KNOBS["osd_max_scrubs"])
    monkeypatch.delitem(KNOBS, "osd_max_scrubs")
    applier(monitors).undo()
    assert monitors.table == {}


def test_no_knob_that_a_version_could_set_is_forgotten() -> None:
    """The list only grows: a knob that leaves the table goes to the retired ones."""
    listed = (Path(__file__).parent / "data" / "knobs-ever-set.txt").read_text(encoding="utf-8").split()
    assert sorted({*KNOBS, *RETIRED}) == listed
