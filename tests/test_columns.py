from __future__ import annotations

from typing import List

from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.columns import GAP, fitting

CELLS = st.lists(st.text("ab ", max_size=40), min_size=1, max_size=4)
COLUMNS = st.lists(CELLS, min_size=1, max_size=6)


def least(column: List[str]) -> int:
    return max((len(cell) - len(cell.lstrip()) + max(map(len, cell.split()), default=0) for cell in column), default=0)


@given(COLUMNS, st.integers(1, 200))
def test_columns_fit_and_hold_their_longest_word_or_nothing_fits(columns: List[List[str]], room: int) -> None:
    found = fitting(columns, room)
    gaps = GAP * (len(columns) - 1)
    if found is None:
        assert sum(map(least, columns)) + gaps > room
    else:
        assert sum(found) + gaps <= room
        assert all(width >= least(column) for width, column in zip(found, columns))


@given(COLUMNS)
def test_with_room_enough_nothing_is_wrapped(columns: List[List[str]]) -> None:
    assert fitting(columns, 1000) == [max(map(len, column)) for column in columns]


def test_a_column_to_be_kept_gives_way_last() -> None:
    columns = [["one two three"], ["four five six seven"]]
    assert fitting(columns, 26, [True, False]) == [13, 11]
    assert fitting(columns, 14, [True, False]) == [7, 5]
    assert fitting(columns, 26) == [12, 12]
