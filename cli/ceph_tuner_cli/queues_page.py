"""What `ceph-tuner compare-queues` shows: both queues beside each other, and a trial on one host."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Dict, List

from rich.console import RenderableType
from rich.text import Text

from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.measure.quantity import amount
from ceph_tuner.core.wording import rounded
from ceph_tuner.recommend import COVERAGE, IN_FORCE, Prediction
from ceph_tuner.recommend.queue_stretch import Comparison, MeasuredTrial
from ceph_tuner.recommend.queue_trial import SURE, TELL_TALE, WAIT, QueueTrial, TrialStep
from ceph_tuner.recommend.queues import (
    BETTER_MCLOCK,
    BETTER_WPQ,
    LEAST,
    NOT_TOLD,
    UNDECIDED,
    QueueComparison,
    QueueOrder,
)
from ceph_tuner.report.words import percent_change
from ceph_tuner_cli.recommend_page import cell, runs_told
from ceph_tuner_cli.recommend_rebuild import cost_document, restart_cost, step_document, step_lines
from ceph_tuner_cli.tables import Columns, columns

_VERDICTS = {
    BETTER_WPQ: "By the twin, wpq would do better than any mClock settings that were tried",
    BETTER_MCLOCK: "By the twin, mClock with the best settings does better than wpq",
    UNDECIDED: "By the twin it is undecided whether wpq or the best mClock settings do better",
    NOT_TOLD: "By the twin it cannot be told which queue does better, as wpq sleeps between items of work",
}


def page(comparison: QueueComparison) -> List[RenderableType]:
    """Lay out a comparison."""
    parts: List[RenderableType] = [
        Text(_headline(comparison)),
        Text(""),
        _both(comparison),
        Text(_interval_note(comparison)),
    ]
    parts += [Text(""), _orders(comparison), Text("")]
    parts.append(Text("wpq has the same knobs there as those settings, but for the scheduler's values."))
    parts.append(Text(f"undecided: less than {LEAST - 1:.0%}, or chance or the twin's known error may turn it round."))
    parts.append(Text("orders told: published orders in such a metric that the twin has as they were measured."))
    if any(order.better == NOT_TOLD for entry in comparison.against for order in entry.orders):
        parts.append(
            Text("not told: wpq sleeps between items of that work, or of work beside the clients (see below).")
        )
    if any(order.weak for entry in comparison.against for order in entry.orders):
        parts.append(Text("weak: those are half of them, or fewer."))
    parts += [Text(""), *(Text(line) for line in _cost(comparison)), Text("")]
    return [*parts, *(Text(f"Note: {note}.") for note in comparison.caveats)]


def document(comparison: QueueComparison, cluster: str = "ceph") -> Dict[str, Any]:
    """The document of `compare-queues --format json`."""
    judge = comparison.searched.judge
    return {
        "release": comparison.searched.question.model.release.name,
        "slo": comparison.searched.question.slo.to_dict(),
        "better": comparison.best.better,
        "confirmed": comparison.searched.confirmed,
        "interrupted": comparison.searched.interrupted,
        "wpq": _prediction(comparison.wpq, comparison),
        "mclock": [
            {
                **_prediction(entry.mclock, comparison),
                "wpq": _prediction(entry.wpq, comparison),
                "better": entry.better,
                "orders": [_order(order) for order in entry.orders],
            }
            for entry in comparison.against
        ],
        "baseline": {name: rounded(value) for name, value in judge.reference.items()},
        "cost": None if comparison.cost is None else cost_document(comparison.cost),
        "steps": [step_document(step) for step in comparison.steps(cluster)],
        "undo": [step_document(step) for step in comparison.undo(cluster)],
        "sleeps_under_wpq": dict(comparison.sleeps),
        "caveats": list(comparison.caveats),
    }


def change_steps(comparison: QueueComparison, cluster: str = "ceph") -> List[str]:
    """Lines to be printed unwrapped: how all OSDs come to wpq, and back."""
    way, way_back = step_lines(comparison.steps(cluster)), step_lines(comparison.undo(cluster))
    return ["", "All OSDs to wpq:", *way, "", "The way back, at the same cost:", *way_back]


def trial_page(trial: QueueTrial) -> List[RenderableType]:
    """Lay out what a trial is about; its steps are lines of their own."""
    table = columns("host", "role", "OSDs")
    table.add_row(trial.host, f"tries {trial.tried}", _osd_list(trial.osds))
    for host, osds in trial.controls.items():
        table.add_row(host, f"control, stays under {trial.before}", _osd_list(osds))
    measures = columns("measure of each OSD", "from")
    for what, where in TELL_TALE:
        measures.add_row(what, where)
    noise = "the cluster's own last minutes" if trial.measured else "experience, as the cluster keeps no past"
    return [
        Text(f"A trial of {trial.tried} on one host:"),
        table,
        Text(""),
        measures,
        Text(""),
        Text(
            f"Three stretches of {trial.minutes} minutes tell a difference of 10% from chance: a minute's difference "
            f"between hosts deviates by {trial.deviation:.0%}, by {noise}. --measure holds the host's change against "
            "that of its controls, from each stretch to the next."
        ),
        *(Text(f"Note: {note}.") for note in trial.notes),
    ]


def trial_steps(trial: QueueTrial) -> List[str]:
    """Lines to be printed unwrapped: commands are copied."""
    return ["", "The trial:", *map(_line, trial.way), "", "The way back:", *map(_line, trial.way_back)]


def measured_page(measured: MeasuredTrial) -> List[RenderableType]:
    """Lay out what was measured of a trial so far."""
    table = columns("stretch", "queue", "metric", "host", "controls", "change beside them")
    for number, (stretch, rows) in enumerate(zip(measured.stretches, measured.comparisons()), 1):
        for row in rows:
            host, controls = (f"{value:.3g}" for value in (row.host, row.controls))
            table.add_row(str(number), stretch.queue, row.metric, host, controls, _change(row))
    return [
        Text(f"The trial on {measured.host}, beside {', '.join(measured.controls)}:"),
        table,
        Text(""),
        Text(
            f"Change beside them: of the host over its controls, since the stretch before, and where it lies in "
            f"{SURE:.0%} of the cases. Rates are those of one OSD."
        ),
    ]


def measured_document(measured: MeasuredTrial) -> Dict[str, Any]:
    """The document of `compare-queues --measure --format json`."""
    return {
        "host": measured.host,
        "osds": list(measured.osds),
        "controls": {host: list(osds) for host, osds in measured.controls.items()},
        "stretches": [
            {"queue": stretch.queue, "minutes": len(stretch.looks) - 1, "metrics": [asdict(row) for row in rows]}
            for stretch, rows in zip(measured.stretches, measured.comparisons())
        ],
    }


def _change(row: Comparison) -> str:
    if row.change is None:
        return ""
    mean, low, high = map(percent_change, row.change)
    return f"{mean} ({low} to {high})"


def _line(step: TrialStep) -> str:
    return f"  # wait: {step.text}" if step.kind == WAIT else f"  {step.text}"


def _osd_list(osds: Any) -> str:
    return ", ".join(f"osd.{osd}" for osd in osds)


def _headline(comparison: QueueComparison) -> str:
    lead = "Interrupted; not yet run on fresh seeds. " if not comparison.searched.confirmed else ""
    return f"{lead}{_VERDICTS[comparison.best.better]}, all objectives together."


def _both(comparison: QueueComparison) -> Columns:
    judge = comparison.searched.judge
    headings = [entry.text.replace(" ", "\n", 1) + ("" if entry.hard else "\n(soft)") for entry in judge.objectives]
    table = columns("settings", *headings)
    predictions = {
        "wpq": comparison.wpq,
        **{_broken(entry.wpq.label): entry.wpq for entry in comparison.against},
        **{_heading(entry.mclock, comparison): entry.mclock for entry in comparison.against},
    }
    for name, entry in predictions.items():
        verdicts = judge.verdicts(entry.means)
        table.add_row(Text(name), *(cell(verdict, entry) for verdict in verdicts))
    return table


def _broken(label: str) -> str:
    return label.replace(", ", "\n(", 1) + ")" if ", " in label else label


def _heading(entry: Prediction, comparison: QueueComparison) -> str:
    marks = []
    if entry.label == comparison.best.mclock.label:
        marks.append("best")
    if entry.label == comparison.searched.before.label and entry.label != IN_FORCE:
        marks.append("in force")
    return f"{entry.label}\n({', '.join(marks)})" if marks else entry.label


def _interval_note(comparison: QueueComparison) -> str:
    runs = runs_told([comparison.wpq, *(entry.mclock for entry in comparison.against)])
    return f"Below each value: where {COVERAGE:.0%} of clusters like this fall, by {runs} on the same seeds."


def _orders(comparison: QueueComparison) -> Columns:
    table = columns("mClock settings", "metric", "wpq beside them", "better", "orders told")
    for entry in comparison.against:
        for order in entry.orders:
            right, of = order.told
            share = f"{right} of {of}" if of else "none"
            named = order.better in (BETTER_WPQ, BETTER_MCLOCK)
            better = f"{order.better} (weak)" if order.weak and named else order.better
            table.add_row(entry.mclock.label, order.metric, _ratio(order), better, share)
    return table


def _ratio(order: QueueOrder) -> str:
    if order.ratio is None:
        return f"{amount(order.metric, order.wpq)[0]}, not {amount(order.metric, order.mclock)[0]}"
    mean, low, high = map(percent_change, order.ratio)
    return f"{mean} ({low} to {high})"


def _cost(comparison: QueueComparison) -> List[str]:
    model = comparison.searched.question.model
    if comparison.cost is None:
        return [f"A change costs a restart of all {model.osds} OSDs; more of it is more than the twin can simulate."]
    return [f"A change costs: {restart_cost(comparison.cost, model)}. osd_op_queue is read when an OSD starts."]


def _prediction(entry: Prediction, comparison: QueueComparison) -> Dict[str, Any]:
    means = entry.means
    verdicts = comparison.searched.judge.verdicts(means)
    return {
        "label": entry.label,
        "settings": dict(entry.settings),
        "profile": entry.settings.get(PROFILE),
        "runs": len(entry.runs),
        "means": {name: rounded(value) for name, value in means.items()},
        "intervals": {name: entry.interval(name) for name in means},
        "verdicts": [verdict.to_dict() for verdict in verdicts],
    }


def _order(order: QueueOrder) -> Dict[str, Any]:
    right, of = order.told
    ratio = None if order.ratio is None else [rounded(part) for part in order.ratio]
    return {
        "metric": order.metric,
        "mclock": rounded(order.mclock),
        "wpq": rounded(order.wpq),
        "ratio": None if ratio is None else ratio[0],
        "interval": None if ratio is None else ratio[1:],
        "better": order.better,
        "weak": order.weak,
        "published_orders": {"told": right, "of": of},
    }
