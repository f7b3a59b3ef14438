"""The sentences of the documentation, for tests of how it reads."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, List

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.deflist import deflist_plugin

_PARSER = MarkdownIt("commonmark").enable("table").use(deflist_plugin)
_END = re.compile(r"(?<=[.!?])\)?\s+")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|al|eq|etc|vs)\.$")


@dataclass(frozen=True)
class Sentence:
    """One sentence of a page's text."""

    line: int
    text: str
    in_table: bool

    @property
    def words(self) -> int:
        """Separated by blanks; those of commands in the text count as well."""
        return sum(any(character.isalnum() for character in word) for word in self.text.split())


def sentences(page: Path) -> Iterator[Sentence]:
    """Of paragraphs, lists, definitions and cells of tables; neither of headings nor of code blocks."""
    before = ""
    cell = False
    for token in _PARSER.parse(page.read_text(encoding="utf-8")):
        if token.type in ("td_open", "th_open"):
            cell = True
        elif token.type in ("td_close", "th_close"):
            cell = False
        if token.type == "inline" and not before.startswith(("heading", "dt", "th")):
            for text in _split(_plain(token)):
                yield Sentence((token.map or [0])[0] + 1, text, cell)
        before = token.type


def _plain(token: Token) -> str:
    """The text as it is read: links as their text, and code in its marks."""
    forms = {"text": "{}", "code_inline": "`{}`", "softbreak": " ", "hardbreak": " "}
    return "".join(forms.get(each.type, "").replace("{}", each.content) for each in token.children or [])


def _split(text: str) -> List[str]:
    pieces: List[str] = []
    for piece in _END.split(text):
        if pieces and _ABBREVIATION.search(pieces[-1]):
            pieces[-1] += f" {piece}"
        elif piece.strip():
            pieces.append(piece)
    return pieces
