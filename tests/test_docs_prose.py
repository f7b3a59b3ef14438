"""Pages read like an operator's: short sentences, each with one fact."""

from __future__ import annotations

from pathlib import Path

import pytest

from documented import DOCS, ROOT
from prose import sentences

FOLDERS = ("", "decisions", "knobs", "upstream")
PAGES = [ROOT / "README.md", *(page for folder in FOLDERS for page in sorted((DOCS / folder).glob("*.md")))]
RESULTS = sorted((ROOT / "benchmarks" / "results").glob("*.md"))
"""Their tables are data: some cells are lists of what was measured."""
MEAN, LONGEST, LONGEST_IN_TABLE = 15, 35, 40
"""Words of a sentence: the mean of a page's text, and at most. A cell of a table may be a list."""


@pytest.mark.parametrize("page", [*PAGES, *RESULTS], ids=lambda page: page.stem)
def test_the_sentences_of_a_page_are_short_in_the_mean(page: Path) -> None:
    lengths = [sentence.words for sentence in sentences(page) if not sentence.in_table]
    assert sum(lengths) <= MEAN * len(lengths), f"{sum(lengths) / len(lengths):.1f} words in the mean"


@pytest.mark.parametrize("page", [*PAGES, *RESULTS], ids=lambda page: page.stem)
def test_no_sentence_of_a_page_is_long(page: Path) -> None:
    long = [
        f"{page.name}:{each.line} {each.words} words: {each.text}"
        for each in sentences(page)
        if not (each.in_table and page in RESULTS)
        if each.words > (LONGEST_IN_TABLE if each.in_table else LONGEST)
    ]
    assert long == []


def test_sentences_are_told_apart(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A heading. It is none.\n\nOne, of `a.b` and 1.5. `two` (three words)!\nFour [with a link](x.md)? Five\n\n"
        "| a | b |\n| --- | --- |\n| Six. Seven | |\n\n```console\n$ eight\n```\n"
    )
    assert [(each.words, each.in_table) for each in sentences(page)] == [
        (5, False), (3, False), (4, False), (1, False), (1, True), (1, True),
    ]  # fmt: skip
