from __future__ import annotations

import json
import struct
from typing import Any, Dict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.moves import LAST_STEPS, Command, MovePool
from ceph_tuner.moves.pgs_plan import _set
from ceph_tuner.moves.placement import upmap_command
from ceph_tuner.moves.record import HELD, RECORDS, UNDOS, MoveRecord, MoveStore
from ceph_tuner.moves.weights import weight_command
from twins import small_twin

RECORD = MoveRecord("drain osd.3", 1.0, 2.0, balancer=True, autoscale=("rbd",))


def test_a_record_comes_back_as_it_was() -> None:
    store = MoveStore(small_twin().store)
    assert store.save(RECORD, 3.0) == store.record("drain osd.3")
    assert store.records() == [RECORD.changed(touched=3.0)]


def test_steps_are_those_of_moves_of_the_kind_the_last_ones_last() -> None:
    store = MoveStore(small_twin().store)
    for name, at, steps in (
        ("drain osd.3", 9.0, ((2, 2e6, 12.0),) * 3),
        ("reweight osd.3 1", 5.0, ((1, 1e6, 6.0),) * LAST_STEPS),
        ("pgs rbd 64", 7.0, ((8, 8e6, 30.0),)),
    ):
        store.save(MoveRecord(name, 1.0, at, steps=steps), at)
    assert store.steps_like("drain osd.4") == ((1, 1e6, 6.0),) * (LAST_STEPS - 3) + ((2, 2e6, 12.0),) * 3
    assert store.steps_like("pgs other 16") == ((8, 8e6, 30.0),)


@pytest.mark.parametrize("steps", [None, 5, "x", [[1, 2]], [[0, 1, 1]], [[1, -1, 1]], [[1, 1, 0]], [["x", 1, 1]]])
def test_a_record_counts_whatever_its_steps_say(steps: Any) -> None:
    twin = small_twin()
    store = MoveStore(twin.store)
    store.save(RECORD, 1.0)
    (key,) = twin.store.keys(RECORDS)
    document = json.loads(twin.store.get(key) or "")
    twin.store.set(key, json.dumps({**document, "steps": steps}))
    assert store.record("drain osd.3") == RECORD.changed(touched=1.0)
    # as versions without them wrote it
    del document["steps"]
    twin.store.set(key, json.dumps(document))
    assert store.record("drain osd.3") == RECORD.changed(touched=1.0)


def test_the_first_inverse_of_a_key_stays() -> None:
    store = MoveStore(small_twin().store)
    for number in (1, 2):
        store.remember_undo(RECORD, "1.0", ("osd pg-upmap-items", {"pgid": "1.0", "id": f"{number} 3"}))
    assert store.undos(RECORD) == [("osd pg-upmap-items", {"pgid": "1.0", "id": "1 3"})]


def test_what_is_forgotten_leaves_nothing_and_another_s_stays() -> None:
    twin = small_twin()
    store, other = MoveStore(twin.store), MoveRecord("drain osd.33", 1.0, 1.0)
    for record in (RECORD, other):
        store.save(record, 1.0)
        store.remember_undo(record, "1.0", ("osd rm-pg-upmap-items", {"pgid": "1.0"}))
        store.remember_held(record, "1.0", ((1, 2),))
    store.remove(RECORD)
    assert store.records() == [other]
    assert store.held(other) == {"1.0": ((1, 2),)}
    assert (store.held(RECORD), store.undos(RECORD)) == ({}, [])


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name": 1}', "nonsense", "[[1]]", '["osd", 5]', "NaN"])
def test_what_is_no_record_stops_nothing(text: str) -> None:
    twin = small_twin()
    store = MoveStore(twin.store)
    store.save(RECORD, 1.0)
    twin.store.set(RECORDS + "other", text or " ")
    twin.store.set(f"{UNDOS}drain%20osd.3/1.1", text or " ")
    twin.store.set(f"{HELD}drain%20osd.3/1.1", text or " ")
    assert [record.name for record in store.records()] == ["drain osd.3"]
    assert (store.undos(RECORD), store.held(RECORD)) in (([], {}), ([], {"1.1": ()}))


@pytest.mark.parametrize(
    "command",
    [
        ["osd pool delete", {"pool": "rbd", "pool2": "rbd", "sure": "--yes-i-really-really-mean-it"}],
        ["osd pool set", {"pool": "rbd", "var": "size", "val": "1"}],
        ["osd pool set", {"pool": "--out-file=/etc/shadow", "var": "pg_num", "val": "1"}],
        ["osd pool set", {"pool": "rbd", "var": "pg_num", "val": "1", "yes": "--yes-i-really-mean-it"}],
        ["osd crush reweight", {"name": "osd.1", "weight": "1e300"}],
        ["osd crush reweight", {"name": "default", "weight": "0.000000"}],
        ["osd pg-upmap-items", {"pgid": "1.0", "id": "1 2 3"}],
        ["osd rm-pg-upmap-items", {"pgid": "--force"}],
        ["osd rm-pg-upmap-items", {"pgid": 1.0}],
        ["osd rm-pg-upmap-items", ["1.0"]],
        [["osd"], {}],
        [{}, {}],
    ],
)
def test_a_stored_way_back_that_no_move_writes_is_not_shown(command: Any) -> None:
    twin = small_twin()
    store = MoveStore(twin.store)
    store.save(RECORD, 1.0)
    twin.store.set(f"{UNDOS}drain%20osd.3/1.1", json.dumps(command))
    assert store.undos(RECORD) == []


@pytest.mark.parametrize(
    "command",
    [
        upmap_command("12.1f", ()),
        upmap_command("1.0", ((1, 2), (3, 4))),
        weight_command(3, 7.27739),
        _set(MovePool(1, "a pool: \xe9", False, 0, 8, 8, 8, 8, "off"), "pgp_num", 64),
    ],
)
def test_every_way_back_of_a_move_is_shown(command: Command) -> None:
    store = MoveStore(small_twin().store)
    store.remember_undo(RECORD, "1.0", command)
    assert store.undos(RECORD) == [command]


@given(st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=20))
def test_names_of_anybody_are_keys_of_their_own(first: str, second: str) -> None:
    store = MoveStore(small_twin().store)
    store.save(MoveRecord(first, 1.0, 1.0), 1.0)
    store.save(MoveRecord(second, 1.0, 1.0), 1.0)
    assert {record.name for record in store.records()} == {first, second}


@pytest.mark.parametrize("changes", [{"autoscale": "rbd"}, {"balancer": "false"}, {"weighed": 1}, {"name": "other"}])
def test_a_record_that_says_something_else_than_records_do_is_none(changes: Dict[str, Any]) -> None:
    twin = small_twin()
    store = MoveStore(twin.store)
    store.save(RECORD, 1.0)
    place = next(iter(twin.store.keys(RECORDS)))
    twin.store.set(place, json.dumps({**json.loads(twin.store.get(place) or ""), **changes}))
    assert store.records() == []
    assert store.record(RECORD.name) is None


def test_names_that_are_no_ascii_have_keys_of_their_own() -> None:
    store = MoveStore(small_twin().store)
    for name in ("\xe9a", "\u0e9a", "\x01" + "2", "\x12"):
        store.save(MoveRecord(name, 1.0, 1.0), 1.0)
    assert len(store.records()) == 4


def test_a_stored_moment_that_no_calendar_has_is_shown() -> None:
    twin = small_twin()
    MoveStore(twin.store).save(RECORD.changed(began=1e300), 1e300)
    assert [record.began for record in MoveStore(twin.store).records()] == [1e300]


@given(st.integers(0, 1 << 24))
def test_a_weight_that_crush_keeps_comes_back_as_it_was(units: int) -> None:
    _, arguments = weight_command(3, units / 65536)
    # as CrushWrapper::adjust_item_weightf, which takes a float of 32 bits
    (weight,) = struct.unpack("f", struct.pack("f", float(arguments["weight"])))
    assert int(weight * 65536) == units
