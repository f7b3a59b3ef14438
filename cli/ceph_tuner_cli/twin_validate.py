"""`ceph-tuner twin validate`: the twin beside measurements that others published."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from ceph_tuner.core.errors import InputError
from ceph_tuner.twin.published import TABLES
from ceph_tuner.twin.published_models import ASSUMPTIONS
from ceph_tuner.twin.validation import (
    TARGET_ERROR,
    FittedNode,
    ValidationReport,
    Values,
    compare,
    fit_baseline,
    measure_all,
    nodes_of,
    runs_of,
)
from ceph_tuner_cli.render import Format, FormatOption, emit, working
from ceph_tuner_cli.tables import columns


def validate(
    table: Optional[List[str]] = typer.Option(
        None, "--table", "-t", help="A1, A2, B1, B2, B3, C1, F1 or F2; all if not given."
    ),
    seeds: int = typer.Option(8, "--seeds", min=1, help="Placements of the PGs that results are averaged over."),
    first_seed: int = typer.Option(0, "--first-seed", min=0, help="The first of them; same seeds, same results."),
    quick: bool = typer.Option(False, "--quick", help="Simulate less: for a look, and for tests."),
    processes: Optional[int] = typer.Option(
        None, "--processes", min=1, help="Runs side by side; all cores if not given."
    ),
    form: Format = FormatOption,
) -> None:
    """Hold the twin against published tables: its device is fitted to their baseline rows alone.

    Exit code 1 where an ordering between profiles is not as published, or the median error is above 15%.
    """
    tables = _tables(table)
    report = _run(tables, range(first_seed, first_seed + seeds), quick, processes)
    emit(_document(report), form, lambda: _page(report))
    if not report.met:
        raise typer.Exit(1)


def _tables(table: Optional[List[str]]) -> List[str]:
    unknown = [name for name in table or () if name.upper() not in TABLES]
    if unknown:
        raise InputError("--table", ", ".join(unknown), f"some of {', '.join(TABLES)}")
    return [name for name in TABLES if not table or name in {text.upper() for text in table}]


def _run(tables: List[str], seeds: range, quick: bool, processes: Optional[int]) -> ValidationReport:
    with working("compiling the model") as tell:
        node_by_name: Dict[str, FittedNode] = {}
        nodes = nodes_of(tables)
        for number, name in enumerate(nodes):
            tell(f"fitting the baseline of {name}", number, len(nodes))
            node_by_name[name] = fit_baseline(name, seeds)
        runs = runs_of(tables, node_by_name, seeds, quick)
        values: List[Values] = []
        tell("running", 0, len(runs))
        for own in measure_all(runs, processes):
            values.append(own)
            tell(f"{len(values)} of {len(runs)} runs", len(values), len(runs))
    return compare(tables, runs, values, node_by_name)


def _document(report: ValidationReport) -> Dict[str, Any]:
    return {
        "met": report.met,
        "median_error": report.median_error,
        "target_error": TARGET_ERROR,
        "fitted": {
            name: {
                "commit_s_per_transaction": row.osd.kv_cpu_s,
                "constant": row.constant,
                "seconds": row.constant_s,
                "iops": row.baseline.iops,
                "mean_ms": row.baseline.mean_ms,
            }
            for name, row in report.fitted.items()
        },
        "figures": [
            {
                "table": row.figure.table,
                "case": row.figure.case,
                "metric": row.figure.metric,
                "published": row.figure.value,
                "derived": row.figure.derived,
                "predicted": row.predicted,
                "deviation": row.deviation,
                "error": row.error,
            }
            for row in report.comparisons
        ],
        "orderings": [
            {
                "table": check.ordering.table,
                "metric": check.ordering.metric,
                "between": "profiles" if check.ordering.between_profiles else "schedulers",
                "falling": list(check.ordering.falling),
                "predicted": list(check.predicted),
                "holds": check.holds,
                "contradicted": check.contradicted,
            }
            for check in report.checks
        ],
        "assumptions": [vars(assumption) for assumption in ASSUMPTIONS],
    }


def _page(report: ValidationReport) -> RenderableType:
    figures = columns(
        "table", "case", "metric", ">published", ">predicted", ">±", ">error", title="Published and predicted"
    )
    for row in report.comparisons:
        figure = row.figure
        figures.add_row(
            figure.table,
            figure.case,
            figure.metric,
            _number(figure.value),
            _number(row.predicted),
            _number(row.deviation),
            f"{row.error:+.0%}",
        )
    orderings = columns("table", "metric", "from highest to lowest, as published", "holds", title="\nOrderings")
    for check in report.checks:
        ran = zip(check.ordering.falling, check.predicted)
        ranking = " > ".join(f"{case} ({_number(value)})" for case, value in ran)
        answer = "yes" if check.holds else ("no" if check.contradicted else "no, within chance")
        orderings.add_row(check.ordering.table, check.ordering.metric, ranking, answer)
    return Group(figures, orderings, Text(f"\n{_verdict(report)}"))


def _number(value: float) -> str:
    return f"{value:,.0f}".replace(",", " ") if abs(value) >= 1000 else f"{value:.3g}"


def _verdict(report: ValidationReport) -> str:
    between = [check for check in report.checks if check.ordering.between_profiles]
    schedulers = [check for check in report.checks if not check.ordering.between_profiles]
    return (
        f"Median absolute error of {len(report.comparisons)} figures: {report.median_error:.1%} "
        f"(target {TARGET_ERROR:.0%}). "
        f"Orderings between profiles: {sum(check.holds for check in between)} of {len(between)} hold; "
        f"with WPQ: {sum(check.holds for check in schedulers)} of {len(schedulers)}."
    )
