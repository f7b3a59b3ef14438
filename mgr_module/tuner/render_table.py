"""Tables in the manner of Ceph's own, that fit a terminal."""

from __future__ import annotations

from itertools import zip_longest
from textwrap import wrap
from typing import List, Sequence

from ceph_tuner.core.columns import GAP, WIDTH, fitting, glued, unglued


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they must be; long cells go on below, and where not even words fit, so do columns."""
    widths = fitting(list(zip(head, *rows)))
    if widths is None:
        return "\n".join(line for row in rows for line in _stack(head, row))
    return "\n".join(line for row in (head, *rows) for line in _side_by_side(row, widths))


def folded(line: str, indent: str = "") -> List[str]:
    """A sentence as lines of a terminal; words and values stay whole."""
    lines = wrap(glued(line), WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return list(map(unglued, lines)) or [""]


def _side_by_side(row: Sequence[str], widths: Sequence[int]) -> List[str]:
    cells = [_lines(cell, max(width, 1)) if len(cell) > width else [cell] for cell, width in zip(row, widths)]
    return [
        (" " * GAP).join(part.ljust(width) for part, width in zip(parts, widths)).rstrip()
        for parts in zip_longest(*cells, fillvalue="")
    ]


def _lines(cell: str, width: int) -> List[str]:
    return list(map(unglued, wrap(glued(cell), width, break_on_hyphens=False)))


def _stack(head: Sequence[str], row: Sequence[str]) -> List[str]:
    names = max(map(len, head[1:]), default=0)
    lines = folded(f"{head[0]} {row[0]}".strip(), " " * GAP)
    for name, cell in zip(head[1:], row[1:]):
        if cell:
            lines += folded(f"{' ' * GAP}{name.ljust(names)}{' ' * GAP}{cell}", " " * (names + 2 * GAP))
    return lines
