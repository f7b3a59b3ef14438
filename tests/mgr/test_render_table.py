from __future__ import annotations

from typing import List, Tuple

from hypothesis import given
from hypothesis import strategies as st

from tuner.render_table import folded, table

WORD = st.text("abcdefgh-_./", min_size=1, max_size=45).filter(lambda word: word.strip("-_./"))
CELL = st.lists(WORD, max_size=8).map(" ".join)
HEADING = st.text("ABCDEFGH", min_size=1, max_size=20)
TABLES = st.integers(1, 7).flatmap(
    lambda width: st.tuples(
        st.lists(HEADING, min_size=width, max_size=width),
        st.lists(st.lists(CELL, min_size=width, max_size=width), min_size=1, max_size=5),
    )
)


@given(TABLES)
def test_no_line_is_longer_than_a_terminal_and_no_word_is_lost_or_cut(
    drawn: Tuple[List[str], List[List[str]]],
) -> None:
    head, rows = drawn
    text = table(head, rows)
    assert all(len(line) <= 80 for line in text.splitlines())
    shown = text.split()
    for cell in (cell for row in rows for cell in row):
        for word in cell.split():
            shown.remove(word)


def test_columns_line_up() -> None:
    assert table(["A", "B"], [["long", "x"], ["s", "y"]]) == "A     B\nlong  x\ns     y"


def test_a_long_cell_goes_on_below_in_its_own_column() -> None:
    lines = table(["NAME", "WORDS"], [["a", "so many words " * 10], ["b", "few"]]).splitlines()
    assert all(line.startswith("      so many") or line[6:].strip() for line in lines)
    assert lines[-1] == "b     few"
    assert len(lines) > 3


def test_what_fits_side_by_side_in_no_way_is_one_under_the_other() -> None:
    host = "storage-node-with-a-name-of-40-characters"
    assert table(["A", "HOST", "OTHER"], [["1", host, host]]).splitlines() == [
        "A 1",
        f"  HOST   {host}",
        f"  OTHER  {host}",
    ]


@given(st.lists(WORD, min_size=1).map(" ".join))
def test_a_sentence_is_folded_at_its_blanks(words: str) -> None:
    lines = folded(words, "  ")
    assert " ".join(" ".join(lines).split()) == words
    assert all(len(line) <= 80 for line in lines)
