"""The one place that turns results into text: tables for people, JSON and YAML for programs, and what is said beside.

Standard output has the result and nothing else. Standard error has three voices: what is being done (`working`, gone
at the end), what to know (`say`), and what went wrong (`warn`, `fail`). `--quiet` leaves the last one.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from enum import Enum
from typing import Any, Callable, Iterable, Iterator, List, Optional

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.segment import Segment
from rich.table import Column
from ruamel.yaml import YAML

from ceph_tuner.core.printable import escaped, printable


class Format(str, Enum):
    """How a result is printed."""

    table = "table"
    json = "json"
    yaml = "yaml"


FormatOption = typer.Option(Format.table, "--format", "-f", help="table for people, json or yaml for programs.")


class ReaderLeft(Exception):
    """Who reads the result (head, less) wants no more of it. As BrokenPipeError, click would take it for a failure."""


class _Printable(Console):
    """Shows what others wrote, and obeys none of it: rich's own styles are apart from the text."""

    def render(self, renderable: RenderableType, options: Optional[ConsoleOptions] = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text, lines=True), segment.style)


class _Console(_Printable):
    def on_broken_pipe(self) -> None:
        raise ReaderLeft


class _Aside(_Printable):
    """Says no more once nobody is there to hear it, as after a dropped ssh: what is under way must come to its end."""

    def _check_buffer(self) -> None:
        try:
            super()._check_buffer()
        except OSError:
            self.quiet = True

    def on_broken_pipe(self) -> None:
        self.quiet = True


console = _Console(highlight=False)
"""Results go here (standard output)."""

messages = _Aside(stderr=True, highlight=False)
"""Progress and notes go here (standard error), so that results can be piped. Silent with --quiet."""

errors = _Aside(stderr=True, highlight=False)
"""What went wrong, on standard error as well; never silent."""


def begin() -> None:
    """Speak as if no option had been given: a process may run more than one command."""
    messages.quiet = errors.quiet = False
    _colours()


def be_quiet(wanted: bool) -> None:
    """`--quiet`: results and errors alone."""
    messages.quiet = messages.quiet or wanted


def be_colourless(wanted: bool) -> None:
    """`--no-color`: also in help texts, and in what is started from here."""
    if wanted:
        os.environ["NO_COLOR"] = "1"
        _colours()


def _colours() -> None:
    for each in (console, messages, errors):
        each.no_color = bool(os.environ.get("NO_COLOR"))


def emit(document: Any, form: Format, table: Optional[Callable[[], RenderableType]] = None) -> None:
    """Print a result: the document itself for programs, or what `table` draws of it for people.

    Plain words of `table` are not wrapped: there are names and commands in them.
    """
    if form is Format.table and table is not None:
        content = table()
        if isinstance(content, str):
            show_lines(content.split("\n"))
        else:
            console.print(content)
        return
    try:
        if form is Format.json:
            sys.stdout.write(escaped(json.dumps(document, indent=2, ensure_ascii=False)) + "\n")
        else:
            yaml = YAML(typ="safe", pure=True)
            # commands stay on one line, each on its own
            yaml.width, yaml.default_flow_style = 1 << 16, False
            text = json.dumps(document, ensure_ascii=False)
            # what is not shown stands there as an escape
            yaml.allow_unicode = escaped(text) == text
            yaml.dump(document, sys.stdout)
        sys.stdout.flush()
    except BrokenPipeError:
        raise ReaderLeft from None


def show_lines(lines: Iterable[str]) -> None:
    """Print a part of the result that is copied or searched: each line stays one, however long."""
    for line in lines:
        console.print(printable(line), markup=False, soft_wrap=True)


def say(lines: Iterable[str]) -> None:
    """Tell what to know beside the result."""
    for line in lines:
        messages.print(printable(line), markup=False, soft_wrap=True)


def hint(line: str) -> None:
    """Tell what could be done another time; dim, as nothing is wrong."""
    messages.print(printable(line), markup=False, soft_wrap=True, style="dim")


def warn(lines: Iterable[str]) -> None:
    """Tell what ended otherwise than it should have, without an end to the command; heard with --quiet as well."""
    for line in lines:
        errors.print(f"warning: {printable(line)}", markup=False, soft_wrap=True)


def fail(line: str) -> None:
    """Tell what ended the command."""
    errors.print(f"error: {printable(line)}", markup=False, soft_wrap=True)


Tell = Callable[..., None]
"""Called with what is done now, and `done`, `total` where they are known."""


@contextmanager
def working(text: str) -> Iterator[Tell]:
    """Show that something goes on, and since when; gone at the end. Nothing of it without a terminal.

    Inside of another one it speaks on that one's line.
    """
    line = _lines[-1] if _lines else _line()
    task = line.tasks[0]
    before = task.description, task.completed, task.total

    def tell(text: str, done: float = 0, total: Optional[float] = None) -> None:
        # of another total, or of none, it is another piece of work under the same clock
        task.total, task.finished_time = total, None
        line.update(task.id, description=text, completed=done)

    tell(text)
    if _lines:
        try:
            yield tell
        finally:
            tell(*before)
        return
    _lines.append(line)
    try:
        with line:
            yield tell
    finally:
        _lines.remove(line)


class Moving(Progress):
    """Lines that move at the end of standard error, and are gone when it stops; nothing of them without a terminal."""

    def __init__(self, *columns: ProgressColumn, expand: bool = False) -> None:
        # results go past it: they may be on their way into a file
        super().__init__(*columns, console=messages, transient=True, redirect_stdout=False, expand=expand)

    def start(self) -> None:
        """Draw the lines on a terminal; elsewhere nothing moves."""
        # elsewhere rich would print an empty line at the end
        if messages.is_interactive:
            super().start()

    def stop(self) -> None:
        """Take the lines off the terminal again."""
        if messages.is_interactive:
            super().stop()


_lines: List[Moving] = []
"""The one that is on the terminal."""


def _line() -> Moving:
    line = Moving(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
        _BarWhereKnown(bar_width=16),
        TimeElapsedColumn(),
    )
    line.add_task("", total=None)
    return line


class _BarWhereKnown(BarColumn):
    """A bar, where the end is known."""

    def render(self, task: Any) -> Any:
        return super().render(task) if task.total else ""
