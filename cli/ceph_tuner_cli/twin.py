"""`ceph-tuner twin`: the model of Ceph's OSDs, and what it is held against."""

from __future__ import annotations

from pathlib import Path
from typing import List

import typer

from ceph_tuner.twin.replay import TraceReplay, replay
from ceph_tuner_cli import twin_describe, twin_fit, twin_predict, twin_validate
from ceph_tuner_cli.render import Format, FormatOption, emit, working
from ceph_tuner_cli.tables import Columns, cell_lines, columns

app = typer.Typer(help="The model of Ceph's OSDs, and what it is held against.", no_args_is_help=True)
app.command("describe")(twin_describe.described)
app.command("fit")(twin_fit.fit)
app.command("predict")(twin_predict.predict)
app.command("validate")(twin_validate.validate)


def _table(results: List[TraceReplay], most: int) -> Columns:
    table = columns("trace", ">events", ">pulls", ">mismatches", "first mismatches")
    for result in results:
        first = cell_lines(*(f"line {m.line}: Ceph {m.expected}, twin {m.found}" for m in result.mismatches[:most]))
        counts = (str(count) for count in (result.events, result.pulls, len(result.mismatches)))
        table.add_row(result.path, *counts, first if result.mismatches else "-")
    return table


@app.command("replay")
def replay_command(
    files: List[Path] = typer.Argument(..., metavar="FILE...", help="Traces of Ceph's queue, plain or gzip."),
    shown: int = typer.Option(3, "--show", min=0, help="Mismatches to show of each trace."),
    form: Format = FormatOption,
) -> None:
    """Feed traces of Ceph's own queue to the twin's scheduler. Exit code 1 where it answers any pull otherwise."""
    with working("replaying") as tell:
        results = []
        for number, path in enumerate(files):
            tell(f"replaying {path}", number, len(files))
            results.append(replay(path))
    documents = [
        {
            "trace": result.path,
            "events": result.events,
            "pulls": result.pulls,
            "mismatches": len(result.mismatches),
            "first": [mismatch._asdict() for mismatch in result.mismatches[:shown]],
        }
        for result in results
    ]
    emit(documents, form, lambda: _table(results, shown))
    if any(result.mismatches for result in results):
        raise typer.Exit(1)
