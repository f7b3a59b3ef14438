"""Tables that fit: whole words at any width, and where not even these fit side by side, one under the other."""

from __future__ import annotations

from typing import List, Optional, Sequence, Union

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from ceph_tuner.core.columns import GAP, fitting
from ceph_tuner.core.printable import printable

Cell = Union[str, Text]
"""A string is shown as it is: what comes from a cluster is no markup."""


class Columns:
    """Rows under headings. A heading that begins with `>` is of numbers, which are set to the right."""

    def __init__(self, headings: Sequence[str], title: str = "", caption: str = "", keep: Sequence[str] = ()) -> None:
        """Take the names of columns in `keep` that are wrapped only when all the others are."""
        self._right = [heading.startswith(">") for heading in headings]
        self._headings = [heading.lstrip(">") for heading in headings]
        self._keep = [heading in keep for heading in self._headings]
        self._rows: List[List[Text]] = []
        self.title, self.caption = title, caption

    def add_row(self, *cells: Cell, style: Optional[str] = None) -> None:
        """Add a row; cells that are not given are empty."""
        row = [cell.copy() if isinstance(cell, Text) else Text(printable(cell)) for cell in cells]
        for cell in row:
            cell.stylize_before(style or "")
        self._rows.append(row + [Text("")] * (len(self._headings) - len(row)))

    @property
    def row_count(self) -> int:
        """So many rows there are."""
        return len(self._rows)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.title:
            yield Text(self.title, "italic")
        rows = [self._headings, *([cell.plain for cell in row] for row in self._rows)]
        widths = fitting(list(zip(*rows)), options.max_width, self._keep)
        if widths is None:
            yield from self._stacked()
        else:
            yield self._table(widths)
        if self.caption:
            yield Text(self.caption, "dim italic")

    def _table(self, widths: Sequence[int]) -> Table:
        table = Table(
            box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold", show_header=any(self._headings)
        )
        for heading, width, right in zip(self._headings, widths, self._right):
            # rich takes a width of 0 for none
            table.add_column(Text(heading), width=max(width, 1), justify="right" if right else "left", overflow="fold")
        for row in self._rows:
            table.add_row(*row)
        return table

    def _stacked(self) -> RenderResult:
        """One line a cell, under the row's first one."""
        headings = [" ".join(heading.split()) for heading in self._headings]
        names = max(map(len, headings[1:]), default=0)
        for first, *rest in self._rows:
            if first.plain:
                yield Text.assemble(f"{headings[0]} ".lstrip(), (first.plain, "bold"), overflow="fold")
            grid = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), show_header=False)
            grid.add_column(width=names + GAP)
            grid.add_column(overflow="fold")
            for heading, cell in zip(headings[1:], rest):
                if cell.plain:
                    grid.add_row(f"  {heading}", cell)
            yield grid


def columns(*headings: str, title: str = "", caption: str = "", keep: Sequence[str] = ()) -> Columns:
    """Begin a table."""
    return Columns(headings, title, caption, keep)
