"""What `ceph-tuner recommend` shows: progress while it searches, and the recommendation as a page."""

from __future__ import annotations

from typing import Iterator, List, Optional, Sequence

from rich.console import Group, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from ceph_tuner.core.goals.front import Front
from ceph_tuner.core.goals.judge import Verdict
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.knobs.catalogue import KNOBS, PROFILE
from ceph_tuner.core.measure.quantity import amount as amount
from ceph_tuner.recommend import COVERAGE, IN_FORCE, Prediction
from ceph_tuner.recommend.accounts import Account
from ceph_tuner.recommend.answer import Instructions
from ceph_tuner.recommend.limits import Missed, kind_of
from ceph_tuner.recommend.measured import measured_in_force
from ceph_tuner.recommend.recommendation import Recommendation
from ceph_tuner.recommend.search import SearchedSettings
from ceph_tuner.report.words import shown
from ceph_tuner.twin.knobs_in_force import completed
from ceph_tuner_cli.elsewhere import said_of
from ceph_tuner_cli.explain_page import capacity, learnt
from ceph_tuner_cli.front_page import front_table
from ceph_tuner_cli.knob_worth_page import knob_worths
from ceph_tuner_cli.render import Moving, say
from ceph_tuner_cli.tables import Columns, cell_lines, columns


class RecommendProgress:
    """`recommend.SearchListener` on the terminal: one moving line, and a line whenever something better is found."""

    def __init__(self, slo: Slo) -> None:
        self._slo, self._headed = slo, False
        self._progress = Moving(
            SpinnerColumn(),
            BarColumn(bar_width=16),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
        )
        self._task = self._progress.add_task("", total=None)

    def __enter__(self) -> RecommendProgress:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def phase(self, text: str, done: int, total: int) -> None:
        """Show what is being done."""
        self._progress.update(self._task, completed=done, total=total, description=text)

    def best(self, prediction: Prediction) -> None:
        """Leave a line behind."""
        means = prediction.means
        metrics = self._slo.metrics
        widths = [max(len(metric), 10) for metric in metrics]
        if not self._headed:
            self._headed = True
            heading = "  ".join(metric.ljust(width) for metric, width in zip(metrics, widths))
            say([f"{'best so far':17}  {heading}".rstrip()])
        cells = [amount(metric, means.get(metric))[0].ljust(width) for metric, width in zip(metrics, widths)]
        say([f"{prediction.label:17}  {'  '.join(cells)}".rstrip()])

    def interrupted(self) -> None:
        """Answer Ctrl-C at once."""
        say(["interrupted: here is the best so far"])


def page(recommendation: Recommendation, whole: bool = False) -> RenderableType:
    """Lay out a recommendation; `whole`: with everything that the search has learnt."""
    search_result, classes = recommendation.searched, recommendation.accounts
    parts: List[RenderableType] = [
        Text(_headline(search_result)),
        Text(""),
        _objectives(search_result),
        Text(_interval_note(search_result)),
        *map(Text, _measured(search_result)),
    ]
    if search_result.choice.better:
        parts += [Text(""), _settings(search_result), *knob_worths(recommendation.worths)]
    if search_result.front is not None:
        parts += [Text(""), *_front(search_result.front, search_result)]
    parts += capacity(classes)
    if recommendation.missed:
        parts += [Text(""), *(Text(_reason_line(entry)) for entry in recommendation.missed)]
        parts += _too_much(classes)
    parts += learnt(recommendation.explanation, lambda metric, value: amount(metric, value)[0], whole)
    parts += [Text(f"Note: {note}.") for note in recommendation.instructions.notes]
    parts += [Text(""), Text(_evidence(search_result)), *(Text(line) for line in said_of(recommendation.elsewhere))]
    return Group(*parts)


def what_to_do(instructions: Instructions, path: Optional[str]) -> List[str]:
    """Give lines with commands, to be printed unwrapped: they are copied."""
    if not instructions.commands:
        return []
    target = instructions.target
    lines = ["", "To apply it, in this order:", *(f"  {command}" for command in instructions.commands)]
    lines += ["To take it back, in this order:", *(f"  {command}" for command in instructions.undo)]
    if path:
        lines += [
            f"Saved as {path}. With checks and a way back:",
            f"  ceph-tuner apply {path} --cluster ceph" + (f" --target {target}" if target != "osd" else ""),
        ]
    else:
        lines.append("--output FILE keeps it as a profile for `ceph-tuner apply`.")
    return lines


def _headline(search_result: SearchedSettings) -> str:
    choice = search_result.choice
    lead = "Interrupted; not yet run on fresh seeds. " if not search_result.confirmed else ""
    if not choice.better:
        return f"{lead}Nothing better found: {choice.reason}. What is in force stays ({search_result.before.label})."
    if not search_result.judge.keeps_hard(search_result.winner.means):
        label = search_result.winner.label
        return f"{lead}No settings meet every hard objective. The least bad, {label}: {choice.reason}."
    return f"{lead}Recommended, {search_result.winner.label}: {choice.reason}."


def _shown(search_result: SearchedSettings) -> List[Prediction]:
    """Those that the table is about."""
    predictions = list(search_result.built_in)
    if search_result.before.label == IN_FORCE:
        predictions.insert(0, search_result.before)
    if search_result.closest not in predictions:
        predictions.append(search_result.closest)
    return predictions


def runs_told(predictions: Sequence[Prediction]) -> str:
    """How many runs each had: what is soon beaten runs on the first seeds alone."""
    counts = sorted({len(entry.runs) for entry in predictions})
    return f"{' to '.join(map(str, dict.fromkeys((counts[0], counts[-1]))))} runs"


def _objectives(search_result: SearchedSettings) -> Columns:
    predictions, headings = _shown(search_result), []
    for entry in predictions:
        heading = entry.label
        if entry is search_result.winner and search_result.choice.better:
            heading = (
                f"{heading}\n(recommended)" if entry in search_result.built_in else f"recommended\n({entry.label})"
            )
        elif entry is search_result.before and entry.label != IN_FORCE:
            heading += "\n(in force)"
        headings.append(heading)
    table = columns("objective", *headings, keep=headings, comparisons=headings)
    verdicts = [search_result.judge.verdicts(entry.means) for entry in predictions]
    for index, objective in enumerate(search_result.question.slo.objectives):
        kind = () if objective.hard else ("(soft)",)
        cells = [cell(own[index], entry) for own, entry in zip(verdicts, predictions)]
        table.add_row(cell_lines(objective.text, *kind), *cells)
    goal = search_result.question.slo.goal
    if goal is not None:
        own = [(entry.means.get(goal.metric), entry.interval(goal.metric)) for entry in predictions]
        values = [amount(goal.metric, value, *((ends or ()) if value is not None else ())) for value, ends in own]
        cells = [cell_lines(f"  {value}", *([f"  {ends}"] if ends else [])) for value, ends in values]
        table.add_row(cell_lines(goal.text, "(goal)"), *cells)
    return table


def _front(front: Front[Prediction], search_result: SearchedSettings) -> List[RenderableType]:
    known_by = f"{search_result.effort.seeds} seeds each"
    return front_table(front, lambda entry, metric: entry.interval(metric) or (), known_by)


def cell(verdict: Verdict, entry: Prediction) -> Text:
    """Say whether an objective is met, by what, and within which interval."""
    metric = verdict.objective.metric
    interval = entry.interval(metric) if verdict.seen is not None else None
    value, ends = amount(metric, verdict.seen, *(interval or ()))
    style = "green" if verdict.met else "red"
    return Text.assemble((f"{'✓' if verdict.met else '✗'} {value}", style), (f"\n  {ends}" if ends else "", "dim"))


def _interval_note(search_result: SearchedSettings) -> str:
    if len(search_result.winner.runs) < 2:
        return ""
    runs = runs_told(_shown(search_result))
    error = "is in it as the fit found it" if search_result.question.errors else "is not in it"
    if all(pool.acting for pool in search_result.question.model.pools):
        fall = f"such windows fall, by {runs} with this cluster's PG placement"
    else:
        fall = f"clusters like this fall, by {runs} with other PG placements"
    return f"Below each value: where {COVERAGE:.0%} of {fall}. How far the model itself is off {error}."


def _measured(search_result: SearchedSettings) -> Iterator[str]:
    """What was measured with what is in force, and where the model is off there."""
    entries = measured_in_force(search_result)
    if entries:
        values = ", ".join(f"{entry.metric} {amount(entry.metric, entry.measured)[0]}" for entry in entries)
        yield f"Measured with what is in force: {values}."
    wrong = [entry for entry in entries if entry.outside]
    if wrong:
        parts = [(entry.metric, *amount(entry.metric, entry.predicted, *(entry.interval or ()))) for entry in wrong]
        words = ", ".join(f"{metric} {value} ({ends})" for metric, value, ends in parts)
        yield (
            f"The model is off there: it says {words}. `ceph-tuner twin fit` brings it closer to this cluster. "
            "Until then trust the order of the settings more than the numbers, and begin with one host."
        )


def _settings(search_result: SearchedSettings) -> Columns:
    table = columns("knob", ">in force", ">recommended")
    release = search_result.question.model.release
    before = search_result.question.before
    after = completed(search_result.winner.settings, release)
    old, new = (
        search_result.question.profile_in_force or "custom",
        str(search_result.winner.settings.get(PROFILE, "custom")),
    )
    if old != new:
        table.add_row(PROFILE, old, new)
    for name in KNOBS:
        value = before.get(name, KNOBS[name].default(release))
        if name in after and value is not None and value != after[name]:
            table.add_row(name, shown(KNOBS[name], value), shown(KNOBS[name], after[name]))
    return table


def _reason_line(entry: Missed) -> str:
    """Say why an objective is missed."""
    objective, metric = entry.verdict.objective, entry.verdict.objective.metric
    parts = [f"Missed: {objective.text}, predicted {amount(metric, entry.verdict.seen)[0]}."]
    kind = kind_of(entry.verdict)
    alone = amount(metric, entry.alone)[0]
    if entry.alone is None:
        parts.append(f"Nothing was seen of it with no other work either: {kind} does not get on under these settings.")
    elif entry.alone_met:
        parts.append(f"With no other work it would be {alone}: it is a matter of sharing.")
    else:
        parts.append(f"With no other work it would be {alone}: these settings themselves or the hardware hold it.")
    if entry.best is not None:
        best = f"The best of all settings tried, {entry.best_label}, gave {amount(metric, entry.best)[0]}"
        others = f", and missed {' and '.join(entry.best_misses)}." if entry.best_misses else "."
        parts.append(best + others)
    return " ".join(parts)


def _too_much(classes: Sequence[Account]) -> List[RenderableType]:
    total = sum(entry.needed for entry in classes)
    if total <= 1:
        return []
    return [
        Text(f"At the bounds the work needs {total:.0%} of the capacity that mClock believes: no settings keep all.")
    ]


def _evidence(search_result: SearchedSettings) -> str:
    model = search_result.question.model
    osds = f"{model.simulated_osds} OSDs for all {model.osds}" if model.simulated_osds else f"{model.osds} OSDs"
    count = len(search_result.tried)
    return (
        f"Evidence: {search_result.runs} simulations of {search_result.run_s:g} s with {osds}, {count} settings of "
        f"{len(search_result.space)} knobs, seed {search_result.effort.seed}. "
        "Predicted by the twin, not measured on a cluster."
    )
