"""`ceph-tuner slo`: SLO files and what they can be about."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any, Dict, List

import typer
from rich.table import Table

from ceph_tuner.clusters import open_cluster
from ceph_tuner.clusters.machine import SystemClock
from ceph_tuner.clusters.sampler import ClusterSampler, observe
from ceph_tuner.errors import RetryLater
from ceph_tuner.files import slo_file
from ceph_tuner.metrics import METRICS
from ceph_tuner.slo import Slo, Verdict, all_met, evaluate, objective_metrics, units_of
from ceph_tuner_cli.render import Format, FormatOption, console, emit, messages
from ceph_tuner_cli.tune_page import quantity

app = typer.Typer(help="Service-level objectives: check a file, or hold a cluster against it.", no_args_is_help=True)


@app.command()
def check(files: List[Path] = typer.Argument(help="SLO files."), form: Format = FormatOption) -> None:
    """Check files: structure, metrics, units, bounds."""
    found = {str(path): slo_file.read(path) for path in files}
    documents = [
        {"file": name, **entry.slo.to_dict(), "scenario": entry.scenario, "options": dict(entry.options)}
        for name, entry in found.items()
    ]
    if form is not Format.table:
        emit(documents, form)
        return
    for name, entry in found.items():
        count = len(entry.slo.objectives)
        console.print(f"{name}: {entry.slo.name}, {count} objective{'s' * (count != 1)}", markup=False)
        for objective in entry.slo.objectives:
            kind = "hard" if objective.hard else "soft"
            console.print(f"  {objective.text}  ({kind}, priority {objective.priority:g})", markup=False)


@app.command()
def metrics(form: Format = FormatOption) -> None:
    """List what objectives can be about, and the units that bounds take."""
    rows = [
        {
            "metric": name,
            "comparison": "<=" if METRICS[name].lower_is_better else ">=",
            "units": units_of(name),
            "meaning": METRICS[name].meaning,
        }
        for name in objective_metrics()
    ]

    def table() -> Table:
        made = Table(box=None, pad_edge=False, header_style="bold")
        for heading in ("metric", "bound", "units", "meaning"):
            made.add_column(heading, no_wrap=heading != "meaning")
        for row in rows:
            made.add_row(str(row["metric"]), str(row["comparison"]), ", ".join(row["units"]), str(row["meaning"]))
        return made

    emit(rows, form, table)


@app.command()
def measure(
    file: Path = typer.Argument(help="The SLO file."),
    cluster: str = typer.Option(..., "--cluster", "-c", help="A lab, a path of a ceph.conf, or `ceph`."),
    seconds: float = typer.Option(30.0, "--seconds", min=5, max=3600, help="How long to measure."),
    form: Format = FormatOption,
) -> int:
    """Measure a cluster as it is, under whatever runs there, and hold it against the objectives."""
    slo = slo_file.read(file).slo
    with ExitStack() as stack:
        opened = open_cluster(cluster)
        stack.callback(opened.close)
        clock = SystemClock()
        messages.print(f"measuring for {seconds:g} s", markup=False)
        window, _ = observe(ClusterSampler(opened.commander, clock.now), clock, seconds)
    if window is None:
        raise RetryLater(f"{cluster} gave no sample within {seconds:g} s")
    means = {name: found.mean for name, found in window.measures.items()}
    verdicts = evaluate(slo, means)
    document: Dict[str, Any] = {
        "cluster": cluster,
        "slo": slo.name,
        "window": window.to_dict(),
        "verdicts": [verdict.to_dict() for verdict in verdicts],
    }
    emit(document, form, lambda: _table(slo, verdicts))
    return 0 if all_met(verdicts, hard_only=True) else 1


def _table(slo: Slo, verdicts: List[Verdict]) -> Table:
    made = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("objective", "seen", "margin", ""):
        made.add_column(heading, no_wrap=True)
    for verdict in verdicts:
        margin = "" if verdict.margin is None else f"{100 * verdict.margin:+.0f}%"
        met = {True: "met", False: "missed", None: "unknown"}[verdict.met]
        made.add_row(verdict.objective.text, quantity(verdict.objective.metric, verdict.seen), margin, met)
    if slo.needs_baseline:
        made.caption = "bounds relative to a baseline are known only while tuning"
        made.caption_justify = "left"
    return made
