"""`ceph-tuner slo`: SLO files and what they can be about."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, Sequence

import typer

from ceph_tuner.cluster.sampler import ClusterSampler, observe
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.errors import RetryLater
from ceph_tuner.core.goals.goal import objective_metrics
from ceph_tuner.core.goals.judge import Verdict, all_met
from ceph_tuner.core.goals.slo import Objective, Slo, units_of
from ceph_tuner.core.goals.slo_calendar import boosts_in_words
from ceph_tuner.core.goals.stored_slo import stored_judge
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.core.measure.quantity import amount
from ceph_tuner.files import slo_file
from ceph_tuner_cli.cluster_option import ClusterOption, at_work
from ceph_tuner_cli.render import Format, FormatOption, emit, show_lines
from ceph_tuner_cli.slo_week import week
from ceph_tuner_cli.tables import Columns, columns

app = typer.Typer(help="Service-level objectives: check a file, or hold a cluster against it.", no_args_is_help=True)
app.command()(week)


@app.command()
def check(files: List[Path] = typer.Argument(help="SLO files."), form: Format = FormatOption) -> None:
    """Check files: structure, metrics, units, bounds."""
    slo_files = {str(path): slo_file.read(path) for path in files}
    documents = [
        {
            "file": name,
            **(entry.calendar or entry.slo).to_dict(),
            "scenario": entry.scenario,
            "options": dict(entry.options),
        }
        for name, entry in slo_files.items()
    ]
    if form is not Format.table:
        emit(documents, form)
        return
    for name, entry in slo_files.items():
        base = entry.slo if entry.calendar is None else entry.calendar.base
        count = len(base.objectives)
        show_lines([f"{name}: {base.name}, {count} objective{'s' * (count != 1)}", *_lines(base.objectives, "  ")])
        for policy in entry.calendar.policies if entry.calendar is not None else ():
            show_lines([f"  policy {policy.name}: {policy.text} ({policy.hours.zone})"])
            show_lines(_lines(policy.objectives, "    "))
            show_lines([f"    without {metric}" for metric in policy.without])
            show_lines(
                [f"    {words}" for words in [boosts_in_words(policy.boosts or ())] if policy.boosts is not None]
            )


def _lines(objectives: Sequence[Objective], indent: str) -> List[str]:
    return [
        f"{indent}{each.text}  ({'hard' if each.hard else 'soft'}, priority {each.priority:g})" for each in objectives
    ]


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

    def table() -> Columns:
        table_rows = columns("metric", "bound", "units", "meaning")
        for row in rows:
            table_rows.add_row(str(row["metric"]), str(row["comparison"]), ", ".join(row["units"]), str(row["meaning"]))
        return table_rows

    emit(rows, form, table)


@app.command()
def measure(
    file: Path = typer.Argument(help="The SLO file."),
    cluster: str = ClusterOption,
    seconds: float = typer.Option(30.0, "--seconds", min=5, max=3600, help="How long to measure."),
    form: Format = FormatOption,
) -> int:
    """Measure a cluster as it is, under whatever runs there, and hold it against the objectives.

    Exit code 1 where a hard objective is missed or was not seen. One about the rate of work that is not there now is
    idle: it is neither.
    """
    clock = SystemClock()
    entry = slo_file.read(file, clock.now)
    slo = entry.slo
    with at_work(cluster, f"measuring for {seconds:g} s") as connection:
        window, _ = observe(ClusterSampler(connection.commander, clock, slo.scopes), clock, seconds)
        judge = stored_judge(connection.store, slo)
    if window is None:
        raise RetryLater(f"{cluster} gave no sample within {seconds:g} s", "try again with more --seconds")
    verdicts = judge.verdicts_at_work(window.means)
    document: Dict[str, Any] = {
        "cluster": cluster,
        "slo": slo.name,
        "policy": entry.policy,
        "window": window.to_dict(),
        "verdicts": [verdict.to_dict() for verdict in verdicts],
        "idle": [verdict.objective.text for verdict in verdicts if verdict.idle],
    }
    emit(document, form, lambda: _table(slo, verdicts, entry.policy))
    return 0 if all_met([verdict for verdict in verdicts if not verdict.idle], hard_only=True) else 1


def _table(slo: Slo, verdicts: List[Verdict], policy: str = "") -> Columns:
    table = columns("objective", "seen", ">margin", "", keep=("objective",))
    table.title = f"policy {policy}, which held as the measurement began" if policy else ""
    for verdict in verdicts:
        margin = "" if verdict.margin is None else f"{100 * verdict.margin:+.0f}%"
        verdict_word = {True: "met", False: "missed", None: "unknown"}[verdict.met]
        verdict_word = "idle" if verdict.idle else verdict_word
        table.add_row(verdict.objective.text, amount(verdict.objective.metric, verdict.seen)[0], margin, verdict_word)
    if slo.needs_baseline:
        table.caption = "the baseline is what the plugin measured; without it relative bounds are unknown"
    return table
