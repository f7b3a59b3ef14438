from __future__ import annotations

from typing import List, Tuple

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from ceph_tuner_cli.tables import Columns, columns

WORD = st.text("abcdefgh[]/=", min_size=1, max_size=45)
CELL = st.lists(WORD, max_size=6).map(" ".join)
TABLES = st.integers(1, 7).flatmap(
    lambda width: st.tuples(
        st.lists(st.text("ABCDEFGH", min_size=1, max_size=20), min_size=width, max_size=width),
        st.lists(st.lists(CELL, min_size=width, max_size=width), min_size=1, max_size=4),
    )
)


def drawn(table: Columns, width: int = 80) -> str:
    console = Console(width=width, highlight=False)
    with console.capture() as captured:
        console.print(table)
    return captured.get()


@given(TABLES)
def test_nothing_is_wider_than_the_terminal_and_no_word_is_cut_or_taken_for_markup(
    drawn_from: Tuple[List[str], List[List[str]]],
) -> None:
    head, rows = drawn_from
    table = columns(*head)
    for row in rows:
        table.add_row(*row)
    text = drawn(table)
    assert all(len(line) <= 80 for line in text.splitlines())
    shown = text.split()
    for word in (word for row in rows for cell in row for word in cell.split()):
        shown.remove(word)


def test_numbers_are_set_to_the_right() -> None:
    table = columns("name", ">count", caption="so many")
    table.add_row("a", "1")
    table.add_row("b", Text("1000", "red"))
    lines = [line.rstrip() for line in drawn(table).splitlines()]
    assert lines == ["name  count", "a         1", "b      1000", "so many"]


def test_a_cell_that_is_missing_is_empty_and_a_table_without_headings_has_no_first_line() -> None:
    table = columns("", "")
    table.add_row("key")
    table.add_row("other", "value")
    assert [line.rstrip() for line in drawn(table).splitlines()] == ["key", "other  value"]


def test_what_fits_in_no_way_side_by_side_is_one_under_the_other() -> None:
    table = columns("cluster", "host", "release")
    table.add_row("paris", "h" * 50, "20.2.4")
    lines = [line.rstrip() for line in drawn(table, 62).splitlines()]
    assert lines == ["cluster paris", f"  host     {'h' * 50}", "  release  20.2.4"]
