"""`ceph-tuner fleet history`: the past of clusters, from the Prometheus servers that scrape them."""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import asdict
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

import typer

from ceph_tuner.cluster.prometheus import Span
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.core.measure.quantity import scale_of
from ceph_tuner.core.moments import duration_s, moment
from ceph_tuner.fleet import fleet_file
from ceph_tuner.fleet.member_answers import MemberAnswer
from ceph_tuner.fleet.past import LOAD_METRICS, Course, PastMetrics, past_of
from ceph_tuner.fleet.past_series import SOURCES
from ceph_tuner_cli.fleet import FleetOption, LabelOption, NamesArgument, WithinOption, app, asked
from ceph_tuner_cli.render import Format, FormatOption, emit, say
from ceph_tuner_cli.tables import Columns, columns

_SHOWN = (*LOAD_METRICS, "client.mean_ms", "client.p95_ms", "recovery.bytes_s", "scrub.bytes_s", "ops.slow")
_STEPS_S = (15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)
_ENOUGH, _MOST = 2016, 1_000_000
"""Points of a metric: a week in steps of 5 min, and what nobody can want."""


@app.command()
def history(
    names: Optional[List[str]] = NamesArgument,
    fleet: Path = FleetOption,
    labels: List[str] = LabelOption,
    since: str = typer.Option("7d", "--since", help="So long ago (90s, 30min, 12h, 7d, 2w), or a time in UTC."),
    until: str = typer.Option("now", "--until", help="The same; or now."),
    step: Optional[str] = typer.Option(None, "--step", help="Time from point to point; else by how long it is."),
    metrics: List[str] = typer.Option(
        [],
        "--metric",
        "-m",
        help="A metric such as client.iops, or 'client.*'; repeatable.",
        autocompletion=lambda: [(metric.name, metric.meaning) for metric in METRICS.values()],
    ),
    within: float = WithinOption,
    form: Format = FormatOption,
) -> None:
    """Show the past of clusters by the Prometheus servers in fleet.yaml. Exit code 1 where one does not answer.

    Points are means of the step before them, of troubles the worst. JSON and YAML have the points.
    """
    members = fleet_file.read(fleet).chosen(names or (), labels)
    span, metric_names = _span(since, until, step), _metrics(metrics)
    with_prometheus = [member for member in members if member.prometheus is not None]
    if not with_prometheus:
        raise InputError(str(fleet), "no `prometheus` of any of these clusters", "the server that scrapes them")
    answers = asked(with_prometheus, lambda member: past_of(member, metric_names, span, within), within)
    emit([_document(answer) for answer in answers], form, lambda: _table(answers))
    if form is Format.table:
        say([line for answer in answers for line in _remarks(answer)])
    say([f"{member.name}: no `prometheus` in {fleet}" for member in members if member.prometheus is None])
    if any(answer.found is None for answer in answers):
        raise typer.Exit(1)


def _span(since: str, until: str, step: Optional[str]) -> Span:
    now = time.time()
    start, end = moment(since, now, "--since"), moment(until, now, "--until")
    if not start < end:
        raise InputError("--since", f"{since!r}, which is not before --until {until!r}", "an earlier time")
    length = end - start
    step_s = duration_s(step, "--step") if step else next((s for s in _STEPS_S if length / s <= _ENOUGH), _STEPS_S[-1])
    if not 1 <= step_s <= length or length / step_s > _MOST:
        raise InputError("--step", f"{step_s:g} s for {length:g} s", f"1s or more, with at most {_MOST} points")
    # on whole steps, so that hours are made of whole ones and a second call asks for the same points
    return Span.of(math.ceil(start / step_s) * step_s, math.floor(end / step_s) * step_s, step_s)


def _metrics(patterns: Sequence[str]) -> List[str]:
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in METRICS):
            raise InputError("--metric", repr(pattern), f"one of {', '.join(METRICS)}, or a pattern such as 'client.*'")
    return [name for name in METRICS if any(fnmatchcase(name, pattern) for pattern in patterns or _SHOWN)]


def _document(answer: MemberAnswer[PastMetrics]) -> Dict[str, Any]:
    past = answer.found
    head = {"cluster": answer.member.name, "labels": dict(answer.member.labels)}
    head_of_answer = {"answer": answer.kind, "problem": answer.problem or None, "seconds": round(answer.seconds, 3)}
    if past is None:
        return {**head, **head_of_answer, "past": None}
    load = past.busy_load()
    return {
        **head,
        **head_of_answer,
        "past": {
            "from": past.span.start / 1000,
            "to": past.span.end / 1000,
            "step": past.span.step / 1000,
            "busy_load": None if load is None else asdict(load),
            "metrics": [course.to_dict() for course in past.courses.values()],
            "unknown": dict(past.unknown),
            "warnings": list(past.warnings),
        },
    }


def _table(answers: Sequence[MemberAnswer[PastMetrics]]) -> Columns:
    headings = ("cluster", "metric", ">min", ">median", ">p95", ">max", "unit", "busiest", ">gaps")
    table = columns(*headings, keep=("min", "median", "p95", "max", "busiest"))
    for answer in answers:
        if answer.found is None:
            table.add_row(answer.member.name, answer.word, *["-"] * 7, style="red")
            continue
        for course in answer.found.courses.values():
            table.add_row(answer.member.name, course.metric, *_cells(course))
    return table


def _cells(course: Course) -> Iterator[str]:
    values = course.values
    # one unit for a row, by its largest value
    scale, unit = scale_of(course.metric, max(values))
    for value in (min(values), statistics.median(values), course.quantile(0.95), max(values)):
        yield f"{value / scale:.3g}"
    yield unit
    yield time.strftime("%m-%d %Hh", time.gmtime(course.busiest_hour()))
    yield f"{course.gaps:.0%}" if course.gaps == 0 or course.gaps >= 0.005 else "<1%"


def _remarks(answer: MemberAnswer[PastMetrics]) -> List[str]:
    name, past = answer.member.name, answer.found
    if past is None:
        return [f"{name}: {answer.reason}"]
    by_source = _groups((course.metric, SOURCES[course.source]) for course in past.courses.values())
    lines = [f"{', '.join(metrics)}: by {source}" for source, metrics in by_source.items()]
    lines += [f"no {', '.join(metrics)}: {why}" for why, metrics in _groups(past.unknown.items()).items()]
    load = past.busy_load()
    if load is not None:
        lines.append(
            f"its busiest hour: {load.iops:.0f} operations/s, {load.read_share:.0%} reads, "
            f"{load.operation_bytes / 1024:.3g} KiB each"
        )
    return [f"{name}: {line}" for line in [*lines, *(f"the server warns: {words}" for words in past.warnings)]]


def _groups(pairs: Iterable[Tuple[str, str]]) -> Dict[str, List[str]]:
    groups: Dict[str, List[str]] = {}
    for metric, key in pairs:
        groups.setdefault(key, []).append(metric)
    return groups
