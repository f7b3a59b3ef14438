from __future__ import annotations

import ast
import contextlib
import json
import threading
from pathlib import Path
from typing import Any, Dict, List

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliers import Kill, Killed
from ceph_tuner.core.autopilot import audit_log as audit
from ceph_tuner.core.autopilot.audit_log import (
    ACTS,
    APPLY,
    BLOCKS,
    BREACH,
    FAILOVER,
    KINDS,
    LARGEST_RECORD,
    PER_BLOCK,
    PREFIX,
    PROPOSAL,
    TAKEN_BACK,
    Audit,
    AuditRecord,
    without_outcome,
)
from monitors import MemoryStore

LARGEST_VALUE = 65536

plain: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=50),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)
details: Any = st.dictionaries(st.text(min_size=1, max_size=20), plain, max_size=5)
records: Any = st.builds(
    AuditRecord,
    number=st.integers(1, 10**9),
    at=st.floats(0, 1e11),
    who=st.text(max_size=30),
    what=st.sampled_from(sorted(KINDS)),
    why=st.text(max_size=200),
    detail=details,
    outcome=st.text(max_size=50),
    refers=st.integers(0, 10**9),
)


def numbers(found: List[AuditRecord]) -> List[int]:
    return [record.number for record in found]


def filled(count: int, store: MemoryStore) -> Audit:
    """A trail that another process wrote: nothing but the store carries it over."""
    writer = Audit(store)
    for at in range(1, count + 1):
        writer.append(float(at), "alice", PROPOSAL, f"why {at}")
    return Audit(store)


@given(records)
def test_a_record_is_the_same_after_its_plain_form(record: AuditRecord) -> None:
    assert AuditRecord.from_dict(json.loads(json.dumps(record.to_dict()))) == record


@pytest.mark.parametrize(
    "change", [{"number": 0}, {"at": float("nan")}, {"at": float("inf")}, {"what": ""}, {"refers": -1}]
)
def test_a_record_that_could_not_be_found_again_is_refused(change: Dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="a record has"):
        AuditRecord(**{"number": 1, "at": 0.0, "who": "alice", "what": APPLY, "why": "", **change})


@settings(max_examples=60)
@given(st.integers(0, 40), st.integers(0, 45))
def test_the_newest_come_in_order_and_their_numbers_have_no_gap(count: int, wanted: int) -> None:
    trail = filled(count, MemoryStore())
    assert numbers(trail.newest(wanted)) == list(range(1, count + 1))[max(0, count - wanted) :]


def test_the_trail_is_bounded_and_keeps_the_newest_of_a_year() -> None:
    store = MemoryStore()
    most = BLOCKS * PER_BLOCK
    trail = filled(most + 3 * PER_BLOCK + 1, store)
    kept = trail.newest()
    assert len(kept) >= most - PER_BLOCK >= 500
    assert numbers(kept) == list(range(kept[0].number, most + 3 * PER_BLOCK + 2))
    assert len(store.values) == BLOCKS
    # two records a day
    assert most - PER_BLOCK >= 365 * 2


def test_values_stay_below_the_limit_of_the_monitors_however_large_the_records_are() -> None:
    store = MemoryStore()
    trail = Audit(store)
    for at in range(3 * PER_BLOCK):
        trail.append(float(at), "\U0001f600" * 5000, APPLY, "ü" * 5000, {"osds": list(range(10000))}, "\n" * 5000)
    assert max(len(value.encode()) for value in store.values.values()) < LARGEST_VALUE
    assert numbers(trail.newest()) == list(range(1, 3 * PER_BLOCK + 1))


@given(details, st.text(max_size=6000))
def test_a_record_that_is_too_long_keeps_its_number_time_and_kind(detail: Dict[str, Any], why: str) -> None:
    store = MemoryStore()
    trail = Audit(store)
    written = trail.append(7.0, "alice", TAKEN_BACK, why, {**detail, "huge": "x" * 5000}, refers=3)
    assert (written.number, written.at, written.what, written.refers) == (1, 7.0, TAKEN_BACK, 3)
    assert why.startswith(written.why)
    assert len(store.values[PREFIX + "000000"]) <= LARGEST_RECORD
    assert trail.newest() == [written]


def test_details_that_json_does_not_know_do_not_cost_the_record() -> None:
    store = MemoryStore()
    written = Audit(store).append(0.0, "alice", APPLY, "x", {"osds": {1}, "pairs": {(0, 1): 2}, "nan": float("inf")})
    assert written.detail == {"osds": "{1}", "pairs": {}, "nan": "inf"}
    assert Audit(store).newest() == [written]


def test_the_largest_details_are_the_first_to_go() -> None:
    written = Audit(MemoryStore()).append(
        0.0, "alice", APPLY, "wider", {"osds": "x" * 5000, "targets": ["osd/host:h0"], "text": "y" * 3000}
    )
    assert written.detail == {"targets": ["osd/host:h0"], "text": "y" * 3000, "left_out": 1}


@given(details)
def test_what_is_returned_is_what_is_read(detail: Dict[str, Any]) -> None:
    store = MemoryStore()
    written = Audit(store).append(1.0, "alice", APPLY, "on the canary", {**detail, "targets": ("osd.1",)})
    assert Audit(store).newest() == [written]
    assert written.detail["targets"] == ["osd.1"]


@settings(max_examples=150)
@given(st.integers(0, 3 * PER_BLOCK), st.integers(1, 12), st.booleans(), st.integers(1, 6))
def test_a_death_at_any_write_leaves_the_trail_whole_and_the_next_mgr_goes_on(
    before: int, at: int, landed: bool, after: int
) -> None:
    store = MemoryStore()
    trail = filled(before, store)
    kill = Kill(at, landed)
    store.before_write, store.after_write = kill.before, kill.after
    committed: List[AuditRecord] = []
    with contextlib.suppress(Killed):
        for count in range(10):
            committed.append(trail.append(float(count), "mgr.a", APPLY, "a trial"))  # noqa: PERF401, the death cuts it off
    store.before_write = store.after_write = lambda: None
    found = Audit(store).newest()
    # everything that was reported as written, and at most the one that was under way
    assert found[before : before + len(committed)] == committed
    assert len(found) - before - len(committed) == (1 if landed and kill.dead else 0)
    taken_over = Audit(store)
    for count in range(after):
        taken_over.append(float(count), "mgr.b", FAILOVER, "took over")
    assert numbers(taken_over.newest()) == list(range(1, len(found) + after + 1))


@pytest.mark.parametrize("landed", [False, True])
@pytest.mark.parametrize("write", [1, 2])
def test_a_death_while_room_is_made_costs_no_more_than_the_oldest_block(write: int, landed: bool) -> None:
    store = MemoryStore()
    most = BLOCKS * PER_BLOCK
    trail = filled(most, store)
    kill = Kill(write, landed)
    store.before_write, store.after_write = kill.before, kill.after
    with pytest.raises(Killed):
        trail.append(0.0, "mgr.a", APPLY, "a trial")
    store.before_write = store.after_write = lambda: None
    last = Audit(store).append(1.0, "mgr.b", FAILOVER, "took over").number
    assert last == most + (2 if write == 2 and landed else 1)
    found = numbers(Audit(store).newest())
    assert found[-1] == last
    assert found == list(range(found[0], last + 1))
    assert found[0] <= PER_BLOCK + 1
    assert len(store.values) <= BLOCKS


@settings(max_examples=100)
@given(st.integers(1, 2 * PER_BLOCK), st.data())
def test_a_torn_or_foreign_line_costs_only_itself(count: int, data: st.DataObject) -> None:
    store = MemoryStore()
    filled(count, store)
    victim = data.draw(st.integers(1, count))
    key = f"{PREFIX}{(victim - 1) // PER_BLOCK:06d}"
    lines = store.values[key].split("\n")
    foreign = st.sampled_from(
        [
            "",
            "[]",
            "null",
            '{"number": 1}',
            "[" * 3000,
            '{"number": 1e999}',
            lines[0].replace('"number":', '"number":9'),
        ]
    )
    torn = st.integers(0, len(lines[(victim - 1) % PER_BLOCK]) - 1).map(
        lambda cut: lines[(victim - 1) % PER_BLOCK][:cut]
    )
    lines[(victim - 1) % PER_BLOCK] = data.draw(foreign | torn)
    store.values[key] = "\n".join(lines)
    trail = Audit(store)
    left = [number for number in range(1, count + 1) if number != victim]
    assert numbers(trail.newest()) == left
    assert trail.append(0.0, "alice", PROPOSAL, "next").number == count + 1
    assert numbers(trail.newest()) == [*left, count + 1]


def test_a_record_that_lies_at_the_place_of_another_is_passed_over() -> None:
    store = MemoryStore()
    filled(3, store)
    first, _, third = store.values[PREFIX + "000000"].split("\n")
    store.values[PREFIX + "000000"] = "\n".join([first, first, third])
    assert numbers(Audit(store).newest()) == [1, 3]


@pytest.mark.parametrize("text", ["", "\x00", "x" * 65500, "ä" * 32700, "\n" * 400, "{}\n" * 20])
def test_a_block_of_something_else_costs_itself_and_numbers_go_on(text: str) -> None:
    store = MemoryStore()
    filled(2 * PER_BLOCK, store)
    store.values[PREFIX + "000001"] = text
    store.values[PREFIX + "notes"] = store.values[PREFIX + "7"] = "of somebody else"
    trail = Audit(store)
    written = trail.append(0.0, "alice", PROPOSAL, "next")
    assert written.number > PER_BLOCK
    assert trail.newest() == [*trail.newest(PER_BLOCK + 1)[:PER_BLOCK], written]
    assert numbers(trail.newest())[:PER_BLOCK] == list(range(1, PER_BLOCK + 1))
    assert all(len(value.encode()) < LARGEST_VALUE for value in store.values.values())
    assert store.values[PREFIX + "notes"] == "of somebody else"


def test_threads_that_append_at_once_lose_no_record() -> None:
    class SlowStore(MemoryStore):
        """Lets others run between reading a block and writing it."""

        def get(self, key: str) -> Any:
            found = super().get(key)
            switch.wait(0.001)
            return found

    switch = threading.Event()
    store = SlowStore()
    trail = Audit(store)
    threads = [
        threading.Thread(target=lambda who: [trail.append(0.0, who, APPLY, "") for _ in range(5)], args=(f"t{who}",))
        for who in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert numbers(trail.newest()) == list(range(1, 21))


def test_an_act_is_open_until_a_record_tells_what_came_of_it() -> None:
    trail = Audit(MemoryStore())
    first = trail.append(1.0, "mgr.a", APPLY, "on the canary", {"targets": ["osd/host:h0"]})
    assert without_outcome(trail.newest()) == [first]
    told = trail.tell(first, 2.0, "done", detail={"changes": [4]})
    assert (told.refers, told.what, told.outcome) == (first.number, APPLY, "done")
    assert without_outcome(trail.newest()) == []
    trail.append(3.0, "mgr.a", BREACH, "p95 91 ms")
    back = trail.append(4.0, "mgr.a", TAKEN_BACK, "breach")
    assert without_outcome(trail.newest()) == [back]
    # the next mgr's record tells what it found, whatever its own kind
    trail.append(5.0, "mgr.b", FAILOVER, "found it taken back", refers=back.number)
    assert without_outcome(trail.newest()) == []


def test_all_trails_are_told_apart_by_name_and_are_in_the_order_of_time() -> None:
    store = MemoryStore()
    suffixes = ["", "hdd/", "=boost/", "=book/", "=book/hdd/"]
    for at, suffix in enumerate(suffixes):
        Audit(store, f"{audit.PREFIX}{suffix}").append(float(at), "mgr.a", audit.MODE, "on")
    assert [each.trail for each in audit.every_trail(store)] == ["auto", "auto hdd", "boost", "book", "book hdd"]
    assert {each.record.number for each in audit.every_trail(store)} == {1}


def test_acts_are_kinds() -> None:
    assert set(ACTS) <= set(KINDS)


def test_the_automatic_mode_notes_nothing_of_a_kind_that_is_not_described() -> None:
    noted = set()
    for path in Path(audit.__file__).parent.glob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Note":
                kind = call.args[0]
                assert isinstance(kind, ast.Constant), f"{path.name}:{call.lineno}"
                noted.add(kind.value)
    assert APPLY in noted
    assert noted <= set(KINDS)
