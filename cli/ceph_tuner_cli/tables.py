"""Tables that fit: whole words and values at any width, and a comparison stays one."""

from __future__ import annotations

from string import ascii_lowercase
from typing import Iterator, List, Optional, Sequence, Union

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from ceph_tuner.core.columns import GAP, fitting, glued, unglued
from ceph_tuner.core.printable import printable

Cell = Union[str, Text]
"""A string is shown as it is: what comes from a cluster is no markup."""


class Columns:
    """Rows under headings. A heading that begins with `>` is of numbers, which are set to the right.

    Where it does not fit, columns of `spare` are left out, and named below. Then headings of `compared` become letters,
    and are told above. Where even that does not fit, a row's cells stand one under the other.
    """

    def __init__(
        self,
        headings: Sequence[str],
        title: str = "",
        caption: str = "",
        keep: Sequence[str] = (),
        comparisons: Sequence[str] = (),
        spare: Sequence[str] = (),
    ) -> None:
        """Take the names of columns in `keep` that are wrapped only when all the others are."""
        self._right = [heading.startswith(">") for heading in headings]
        self._headings = [heading.lstrip(">") for heading in headings]
        self._keep, self._compared, self._spare = keep, comparisons, spare
        self._rows: List[List[Text]] = []
        self.title, self.caption = title, caption

    def add_row(self, *cells: Cell, style: Optional[str] = None) -> None:
        """Add a row; cells that are not given are empty."""
        row = [cell.copy() if isinstance(cell, Text) else Text(printable(cell)) for cell in cells]
        for cell in row:
            cell.stylize_before(style or "")
        self._rows.append(row + [Text("")] * (len(self._headings) - len(row)))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.title:
            yield Text(self.title, "italic")
        yield from self._body(console, options)
        if self.caption:
            yield Text(self.caption, "dim italic")

    def _body(self, console: Console, options: ConsoleOptions) -> RenderResult:
        every = range(len(self._headings))
        indispensable = [at for at in every if self._headings[at] not in self._spare]
        for selection in (every, indispensable):
            widths = self._widths(selection, self._headings, options.max_width)
            if widths is not None:
                yield self._table(console, selection, self._headings, widths)
                left_out = [self._headings[at] for at in every if at not in selection]
                if left_out:
                    yield Text(f"on a wider terminal also: {', '.join(left_out)}", "dim italic")
                return
        letters = dict(zip(self._compared, ascii_lowercase))
        headings = [letters.get(heading, heading) for heading in self._headings]
        widths = self._widths(every, headings, options.max_width) if letters else None
        if widths is None:
            yield from self._stack(console, options.max_width)
            return
        for heading, letter in letters.items():
            yield Text(f"{letter}: {' '.join(heading.split())}", "bold")
        yield self._table(console, every, headings, widths)

    def _widths(self, selection: Sequence[int], headings: Sequence[str], room: int) -> Optional[List[int]]:
        columns = [[headings[at], *(row[at].plain for row in self._rows)] for at in selection]
        return fitting(columns, room, [self._headings[at] in self._keep for at in selection])

    def _table(
        self, console: Console, selection: Sequence[int], headings: Sequence[str], widths: Sequence[int]
    ) -> Table:
        table = _grid(show_header=any(headings))
        for at, width in zip(selection, widths):
            # rich takes a width of 0 for none
            justify = "right" if self._right[at] else "left"
            table.add_column(Text(headings[at]), width=max(width, 1), justify=justify, overflow="fold")  # type: ignore[arg-type]
        for row in self._rows:
            table.add_row(*(_wrap(row[at], console, max(width, 1)) for at, width in zip(selection, widths)))
        return table

    def _stack(self, console: Console, room: int) -> Iterator[Union[Text, Table]]:
        """One line a cell, under the row's first one."""
        headings = [" ".join(heading.split()) for heading in self._headings]
        names = max(map(len, headings[1:]), default=0) + GAP
        for first, *rest in self._rows:
            if first.plain:
                name = " ".join(first.plain.split())
                yield Text.assemble(f"{headings[0]} ".lstrip(), (name, "bold"), overflow="fold")
            grid = _grid(show_header=False)
            grid.add_column(width=names)
            grid.add_column(overflow="fold")
            for heading, cell in zip(headings[1:], rest):
                if cell.plain:
                    line = cell.copy()
                    line.plain = cell.plain.replace("\n", " ")
                    grid.add_row(f"  {heading}", _wrap(line, console, room - names - GAP))
            yield grid


def _grid(show_header: bool) -> Table:
    return Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold", show_header=show_header)


def _wrap(cell: Text, console: Console, width: int) -> Text:
    """The cell in lines of the width at most, each value on one."""
    whole = cell.copy()
    whole.plain = glued(cell.plain)
    lines = Text("\n").join(whole.wrap(console, max(width, 1), overflow="fold"))
    lines.plain = unglued(lines.plain)
    return lines


def cell_lines(*texts: str) -> Text:
    """Give a cell of so many lines."""
    return Text("\n".join(map(printable, texts)))


def columns(
    *headings: str,
    title: str = "",
    caption: str = "",
    keep: Sequence[str] = (),
    comparisons: Sequence[str] = (),
    spare: Sequence[str] = (),
) -> Columns:
    """Begin a table; `Columns` says which of its columns give way where 80 are too few."""
    return Columns(headings, title, caption, keep, comparisons, spare)
