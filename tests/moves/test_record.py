from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.moves.record import HELD, RECORDS, UNDOS, MoveRecord, MoveStore
from twins import small_twin

RECORD = MoveRecord("drain osd.3", 1.0, 2.0, balancer=True, autoscale=("rbd",))


def test_a_record_comes_back_as_it_was() -> None:
    store = MoveStore(small_twin().store)
    assert store.save(RECORD, 3.0) == store.record("drain osd.3")
    assert store.records() == [RECORD.changed(touched=3.0)]


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


@given(st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=20))
def test_names_of_anybody_are_keys_of_their_own(first: str, second: str) -> None:
    store = MoveStore(small_twin().store)
    store.save(MoveRecord(first, 1.0, 1.0), 1.0)
    store.save(MoveRecord(second, 1.0, 1.0), 1.0)
    assert {record.name for record in store.records()} == {first, second}
