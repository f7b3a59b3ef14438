"""`ceph-tuner twin`: the model of Ceph's OSDs, and what it is held against."""

from __future__ import annotations

from pathlib import Path
from typing import List

import typer
from rich.table import Table
from rich.text import Text

from ceph_tuner.twin.replay import Replay, replay
from ceph_tuner_cli import twin_fit, twin_predict, twin_validate
from ceph_tuner_cli.render import Format, FormatOption, emit

app = typer.Typer(help="The model of Ceph's OSDs, and what it is held against.", no_args_is_help=True)
app.command("fit")(twin_fit.fit)
app.command("predict")(twin_predict.predict)
app.command("validate")(twin_validate.validate)


def _table(results: List[Replay], shown: int) -> Table:
    table = Table("trace", "events", "pulls", "mismatches", "first mismatches")
    for result in results:
        first = "\n".join(f"line {m.line}: Ceph {m.expected}, twin {m.found}" for m in result.mismatches[:shown])
        table.add_row(
            Text(result.path), str(result.events), str(result.pulls), str(len(result.mismatches)), Text(first or "–")
        )
    return table


@app.command("replay")
def replay_command(
    files: List[Path] = typer.Argument(..., metavar="FILE...", help="Traces of Ceph's queue, plain or gzip."),
    shown: int = typer.Option(3, "--show", min=0, help="Mismatches to show of each trace."),
    form: Format = FormatOption,
) -> None:
    """Feed traces of Ceph's own queue to the twin's scheduler; exit 1 where it answers any pull otherwise."""
    results = [replay(path) for path in files]
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
