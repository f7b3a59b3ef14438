"""What `ceph-tuner recommend` shows: progress while it searches, and the recommendation as a page."""

from __future__ import annotations

from typing import List, Optional, Sequence

from rich.console import Group, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from ceph_tuner.core.goals.slo import Slo, Verdict, evaluate
from ceph_tuner.core.knobs.catalogue import KNOBS, PROFILE
from ceph_tuner.recommend import COVERAGE, IN_FORCE, Prediction
from ceph_tuner.recommend.accounts import Account
from ceph_tuner.recommend.answer import Instructions
from ceph_tuner.recommend.limits import Missed, kind_of
from ceph_tuner.recommend.search import SearchedSettings
from ceph_tuner.report.words import amount as amount
from ceph_tuner.report.words import shown
from ceph_tuner.search.explanation import Explained
from ceph_tuner.search.transfer import Elsewhere
from ceph_tuner.twin.knobs_in_force import completed
from ceph_tuner_cli.elsewhere import said_of
from ceph_tuner_cli.explain_page import capacity, learnt
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
        means = prediction.candidate.means
        metrics = list(dict.fromkeys(objective.metric for objective in self._slo.objectives))
        widths = [max(len(metric), 10) for metric in metrics]
        if not self._headed:
            self._headed = True
            heading = "  ".join(metric.ljust(width) for metric, width in zip(metrics, widths))
            say([f"{'best so far':17}  {heading}".rstrip()])
        seen = [amount(metric, means.get(metric))[0].ljust(width) for metric, width in zip(metrics, widths)]
        say([f"{prediction.label:17}  {'  '.join(seen)}".rstrip()])

    def interrupted(self) -> None:
        """Answer Ctrl-C at once."""
        say(["interrupted: here is the best so far"])


def page(
    found: SearchedSettings,
    chosen: Instructions,
    why: Sequence[Missed],
    classes: Sequence[Account] = (),
    told: Optional[Explained] = None,
    whole: bool = False,
    transfer: Optional[Elsewhere] = None,
) -> RenderableType:
    """Lay out a recommendation; `whole`: with everything that the search has learnt."""
    parts: List[RenderableType] = [Text(_headline(found)), Text(""), _objectives(found), Text(_interval_note(found))]
    if found.choice.better:
        parts += [Text(""), _settings(found)]
    parts += capacity(classes)
    if why:
        parts += [Text(""), *(Text(_explained(entry)) for entry in why)]
        parts += _too_much(classes)
    parts += learnt(told, lambda metric, value: amount(metric, value)[0], whole)
    parts += [Text(f"Note: {note}.") for note in chosen.notes]
    parts += [Text(""), Text(_evidence(found)), *(Text(line) for line in said_of(transfer))]
    return Group(*parts)


def what_to_do(found: SearchedSettings, chosen: Instructions, saved: Optional[str]) -> List[str]:
    """Give lines with commands, to be printed unwrapped: they are copied."""
    if not chosen.commands:
        return []
    lines = ["", "To apply it, in this order:", *(f"  {command}" for command in chosen.commands)]
    lines += [
        "To take it back, in this order, the last one some seconds after the others:",
        *(f"  {command}" for command in chosen.undo),
    ]
    if saved:
        lines += [
            f"Saved as {saved}. With checks and a way back:",
            f"  ceph-tuner apply {saved} --cluster ceph",
        ]
    else:
        lines.append("--output FILE keeps it as a profile for `ceph-tuner apply`.")
    return lines


def _headline(found: SearchedSettings) -> str:
    choice = found.choice
    lead = "Interrupted; not yet run on fresh seeds. " if not found.confirmed else ""
    if not choice.better:
        return f"{lead}Nothing better found: {choice.reason}. What is in force stays ({found.before.label})."
    verdicts = evaluate(found.question.slo, found.winner.candidate.means, found.baseline)
    if any(verdict.objective.hard and not verdict.met for verdict in verdicts):
        return f"{lead}No settings meet every hard objective. The least bad, {found.winner.label}: {choice.reason}."
    return f"{lead}Recommended, {found.winner.label}: {choice.reason}."


def _objectives(found: SearchedSettings) -> Columns:
    compared = list(found.built_in)
    if found.before.label == IN_FORCE:
        compared.insert(0, found.before)
    if found.closest not in compared:
        compared.append(found.closest)
    headings = []
    for entry in compared:
        heading = entry.label
        if entry is found.winner and found.choice.better:
            heading = f"{heading}\n(recommended)" if entry in found.built_in else f"recommended\n({entry.label})"
        elif entry is found.before and entry.label != IN_FORCE:
            heading += "\n(in force)"
        headings.append(heading)
    table = columns("objective", *headings, keep=headings, compared=headings)
    verdicts = [evaluate(found.question.slo, entry.candidate.means, found.baseline) for entry in compared]
    for index, objective in enumerate(found.question.slo.objectives):
        kind = () if objective.hard else ("(soft)",)
        cells = [_cell(own[index], entry) for own, entry in zip(verdicts, compared)]
        table.add_row(cell_lines(objective.text, *kind), *cells)
    return table


def _cell(verdict: Verdict, entry: Prediction) -> Text:
    metric = verdict.objective.metric
    interval = entry.interval(metric) if verdict.seen is not None else None
    value, ends = amount(metric, verdict.seen, *(interval or ()))
    style = "green" if verdict.met else "red"
    return Text.assemble((f"{'✓' if verdict.met else '✗'} {value}", style), (f"\n  {ends}" if ends else "", "dim"))


def _interval_note(found: SearchedSettings) -> str:
    runs = len(found.winner.runs)
    if runs < 2:
        return ""
    error = "is in it as the fit found it" if found.question.errors else "is not in it"
    return (
        f"Below each value: where {COVERAGE:.0%} of clusters like this fall, by {runs} runs with other PG placements. "
        f"How far the model itself is off {error}."
    )


def _settings(found: SearchedSettings) -> Columns:
    table = columns("knob", ">in force", ">recommended")
    release = found.question.model.release
    before = found.question.before
    after = completed(found.winner.settings, release)
    old, new = found.question.profile_in_force or "custom", str(found.winner.settings.get(PROFILE, "custom"))
    if old != new:
        table.add_row(PROFILE, old, new)
    for name in KNOBS:
        value = before.get(name, KNOBS[name].default(release))
        if name in after and value is not None and value != after[name]:
            table.add_row(name, shown(KNOBS[name], value), shown(KNOBS[name], after[name]))
    return table


def _explained(entry: Missed) -> str:
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


def _evidence(found: SearchedSettings) -> str:
    model = found.question.model
    osds = f"{model.simulated_osds} OSDs for all {model.osds}" if model.simulated_osds else f"{model.osds} OSDs"
    tried = len(found.tried)
    return (
        f"Evidence: {found.runs} simulations of {found.run_s:g} s with {osds}, {tried} settings of "
        f"{len(found.space)} knobs, seed {found.effort.seed}. Predicted by the twin, not measured on a cluster."
    )
