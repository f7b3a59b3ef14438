from __future__ import annotations

import pytest

from ceph_tuner.errors import InputError
from ceph_tuner.slo import parse_objective
from monitors import MemoryStore
from tuner.slos import SloBook


def test_an_objective_replaces_the_one_about_its_metric() -> None:
    book = SloBook(MemoryStore())
    book.set(parse_objective("client.p95_ms <= 80"))
    book.set(parse_objective("scrub.bytes_s >= 5 MB/s"))
    book.set(parse_objective("client.p95_ms <= 60"))
    found = book.read()
    assert found is not None
    assert [objective.text for objective in found.objectives] == ["scrub.bytes_s >= 5 MB/s", "client.p95_ms <= 60 ms"]


def test_removing_the_last_objective_removes_the_slo() -> None:
    store = MemoryStore()
    book = SloBook(store)
    book.set(parse_objective("client.p95_ms <= 80"))
    with pytest.raises(InputError, match=r"client\.p95_ms"):
        book.remove("client.iops")
    assert book.remove("client.p95_ms") is None
    assert store.values == {}
    assert book.remove("all") is None


def test_a_whole_slo_can_be_taken_and_a_wrong_one_changes_nothing() -> None:
    store = MemoryStore()
    book = SloBook(store)
    book.replace({"name": "night", "objectives": ["client.p95_ms <= 80"]})
    with pytest.raises(InputError):
        book.replace({"name": "day", "objectives": ["no.such <= 80"]})
    found = book.read()
    assert found is not None
    assert found.name == "night"


def test_a_damaged_slo_is_named_with_the_way_out() -> None:
    store = MemoryStore()
    store.set("slo", "{")
    with pytest.raises(InputError, match="slo rm all"):
        SloBook(store).read()
    SloBook(store).remove("all")
    assert SloBook(store).read() is None
