"""Records lie in memory as their fields say, and are the same as objects."""

from __future__ import annotations

from typing import Annotated, List

import numpy as np

from ceph_tuner.twin.kernel.layout import Record, as_objects, dtype_of, new, write_back


class Inner(Record):
    count: int
    at_s: float


class Outer(Record):
    number: int
    pair: Annotated[List[float], 2]
    table: Annotated[List[List[int]], (2, 3)]
    inner: Inner
    several: Annotated[List[Inner], 2]
    grid: Annotated[List[List[Inner]], (2, 2)]


def counted(length: int) -> np.ndarray:
    """Every field has another value."""
    table = np.zeros(length, dtype_of(Outer))
    whole = table.view("i8")
    whole[:] = np.arange(1, len(whole) + 1)
    return table


def test_fields_are_eight_bytes_each_and_follow_one_another() -> None:
    assert dtype_of(Inner) == np.dtype([("count", "i8"), ("at_s", "f8")])
    assert dtype_of(Outer).itemsize == 8 * (1 + 2 + 6 + 2 + 4 + 8)
    assert dtype_of(Outer)["table"].shape == (2, 3)


def test_objects_have_the_values_of_the_table() -> None:
    table = counted(3)
    for one, row in zip(as_objects(Outer, table), table):
        assert one.number == row["number"]
        assert one.pair == row["pair"].tolist()
        assert one.table == row["table"].tolist()
        assert one.inner.count == row["inner"]["count"]
        assert [inner.count for inner in one.several] == row["several"]["count"].tolist()
        assert [[inner.at_s for inner in line] for line in one.grid] == row["grid"]["at_s"].tolist()


def test_what_changed_in_objects_is_brought_back_and_nothing_else() -> None:
    table = counted(2)
    objects = as_objects(Outer, table)
    expected = table.copy()
    objects[1].table[1][2] = expected["table"][1, 1, 2] = -1
    objects[0].grid[1][0].at_s = expected["grid"]["at_s"][0, 1, 0] = 0.5
    objects[0].inner.count = expected["inner"]["count"][0] = -3
    write_back(Outer, objects, table)
    assert table.tobytes() == expected.tobytes()


def test_objects_share_nothing() -> None:
    one, other = as_objects(Outer, np.zeros(2, dtype_of(Outer)))
    one.several[0].count = 1
    one.pair[0] = 1.0
    assert other == new(Outer)
    assert one != other
