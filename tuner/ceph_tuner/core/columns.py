"""How wide the columns of a table are, so that it fits without cutting a word or a value."""

from __future__ import annotations

import re
from typing import List, Optional, Sequence

WIDTH = 80
"""Columns of a terminal that every page fits."""

GAP = 2
"""Blanks between two columns."""

_UNIT = r"(?:[kKMGTP]i?B(?:/s)?|B(?:/s)?|[kM]?IOPS|[kM]?/s|[mu]?s|min|h|d|days?|hours?|minutes?|UTC|PGs?|OSDs?)"
_WITHIN_VALUE = re.compile(rf"(?<=[\d)]) (?={_UNIT}(?![\w/]))|(?<=[<>]=) (?=\d)")
_BLANK = "\ue000"
"""Of the private use area: no text that is shown has it, and nothing takes it for a blank."""


def glued(text: str) -> str:
    """The text with each value as one word: a number with its unit, and a bound with its comparison."""
    return _WITHIN_VALUE.sub(_BLANK, text)


def unglued(text: str) -> str:
    """The text as it was before `glued`."""
    return text.replace(_BLANK, " ")


def fitting(columns: Sequence[Sequence[str]], room: int = WIDTH, keep: Sequence[bool] = ()) -> Optional[List[int]]:
    """Give each column's width: of its longest line, else less, as far as words and values allow; else None.

    The widest gives way first, and columns of `keep` only when the others have given all.
    """
    lines = [max((len(line) for cell in column for line in cell.splitlines()), default=0) for column in columns]
    words = [max((_words(line) for cell in column for line in cell.splitlines()), default=0) for column in columns]
    room -= GAP * (len(columns) - 1)
    widths = list(lines)
    kept = [line if kept else word for line, word, kept in zip(lines, words, keep)] if keep else words
    for least in (kept, words):
        while sum(widths) > room:
            loose = [at for at, width in enumerate(widths) if width > least[at]]
            if not loose:
                break
            widths[max(loose, key=widths.__getitem__)] -= 1
    return widths if sum(widths) <= room else None


def _words(line: str) -> int:
    """Length of the longest word or value, behind what the line is indented by."""
    return len(line) - len(line.lstrip()) + max(map(len, glued(line).split()), default=0)
