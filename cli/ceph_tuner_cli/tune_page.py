"""What `ceph-tuner tune` shows: progress while it runs, and the result as a page."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence

from rich.console import Group, RenderableType
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from ceph_tuner.core.goals.judge import TOLERANCE, Verdict
from ceph_tuner.core.goals.ranking import RankingChoice
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.goals.trial import Run, Trial
from ceph_tuner.core.knobs.catalogue import KNOBS, MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.cost import allocation
from ceph_tuner.core.knobs.releases import Release
from ceph_tuner.core.knobs.settings import after_moves
from ceph_tuner.core.measure.quantity import amount, quantity
from ceph_tuner.core.profiles.in_force import InForce
from ceph_tuner.optimise import Options
from ceph_tuner.recommend.accounts import Account
from ceph_tuner.search.explanation import Explained
from ceph_tuner.search.space import KnobSpace
from ceph_tuner.search.transfer import Elsewhere
from ceph_tuner.tune.measurement import CANARY_S, Timing
from ceph_tuner.tune.outcome import TuneOutcome, TuneTask
from ceph_tuner_cli.elsewhere import said_of
from ceph_tuner_cli.explain_page import capacity, learnt
from ceph_tuner_cli.front_page import front_table
from ceph_tuner_cli.knobs import shown
from ceph_tuner_cli.render import Moving, say
from ceph_tuner_cli.tables import Columns, columns


class TuneProgress:
    """`tune.TuneListener` on the terminal: one moving line, and a line for each run that ended."""

    def __init__(self, slo: Slo) -> None:
        self._slo = slo
        self._progress = Moving(
            TextColumn("{task.fields[run]}"),
            BarColumn(bar_width=20),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[live]}"),
        )
        self._task = self._progress.add_task("", total=None, run="", live="")

    def __enter__(self) -> TuneProgress:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def working(self, text: str) -> None:
        """Show what is done between runs."""
        self._progress.update(self._task, description=text, run="", live="")

    def phase(self, run: Run, number: int, total: int, phase: str, seconds: float) -> None:
        """Show what is being done."""
        self._progress.reset(self._task, total=total, completed=number - 1)
        self._progress.update(self._task, description=phase, run=f"{number} of {total}: {run.label}", live="")

    def live(self, values: Mapping[str, float]) -> None:
        """Show the objectives' metrics as they are now."""
        cells = [
            f"{o.metric} {quantity(o.metric, values[o.metric])}" for o in self._slo.objectives if o.metric in values
        ]
        self._progress.update(self._task, live=", ".join(dict.fromkeys(cells)))

    def done(self, trial: Trial, number: int, total: int) -> None:
        """Leave a line behind."""
        what = trial.run.why if trial.run.kind == "trial" else trial.run.kind
        line = (
            f"{number} of {total}  {trial.run.label} ({what}): "
            if what
            else f"{number} of {total}  {trial.run.label}: "
        )
        if trial.failed is not None:
            line += f"{'ended early' if trial.hopeless else 'stopped'}: {trial.failed}"
        else:
            metrics = dict.fromkeys(objective.metric for objective in self._slo.objectives)
            line += ", ".join(f"{metric} {quantity(metric, trial.means.get(metric))}" for metric in metrics)
        notes = [*_expectations(trial), *trial.notes]
        say([line, *(f"        {note}" for note in notes)])

    def interrupted(self) -> None:
        """Answer Ctrl-C at once."""
        say(["interrupted: the trial is being taken back and the load stopped"])


def _expectations(trial: Trial) -> List[str]:
    if trial.run.kind != "trial" or not trial.run.expected:
        return []
    texts = {metric: amount(metric, *interval) for metric, interval in trial.run.expected.items()}
    return ["expected: " + ", ".join(f"{metric} {middle} ({ends})" for metric, (middle, ends) in texts.items())]


def announcement(
    cluster: str,
    task: TuneTask,
    timing: Timing,
    space: KnobSpace,
    options: Options,
    reached: str,
    canary: Optional[str] = None,
) -> str:
    """Say what would be done to a cluster, to how many OSDs, and what is promised."""
    budget, labels = task.budget, [run.label for run in task.opening[1:]]
    first_s = 0.0 if canary is None else CANARY_S
    minutes = task.most_runs * (first_s + timing.settle + timing.window + 5) / 60
    most = f"about {minutes:.0f} minutes at most" if budget.hours is None else f"at most {budget.hours:g} hours"
    end = "writes the winner" if task.write_back else "leaves nothing in place"
    return "\n".join(
        [
            f"{cluster} is no lab, so nothing was changed. With --yes this, under the cluster's own load,",
            f"- would write to {reached}"
            + (";" if canary is None else f", all settings for {CANARY_S:g} s to {canary} alone before the others;"),
            f"- measures {', '.join(['the settings in force', *labels])};",
            f"- tries up to {budget.trials} settings of {len(space.free)} knobs ({', '.join(space.free)}), one by one, "
            "each taken back before the next, and the best of them once more with fewer changes;",
            f"- measures the best again, in turns with the settings in force, and {end}: {most}.",
            "What is promised:",
            f"- nothing is tried that is not expected, with {100 * options.safe_probability:g}% probability, to keep "
            f"every hard objective that is kept now, and with {100 * options.improve_probability:g}% to make none of "
            f"the others worse by more than {100 * TOLERANCE:.0f}%;",
            *(
                [f"- no knob moves further than {100 * options.step_limit:g}% of its range from the best so far;"]
                if options.step_limit < 1
                else []
            ),
            f"- after more than {options.violation_budget} trials that broke a hard objective after all, none follows;",
            "- a trial ends at once where an OSD goes down, PGs become inactive, operations get slow or a client "
            "objective is grossly missed.",
        ]
    )


def page(
    outcome: TuneOutcome,
    release: Release,
    now: InForce,
    classes: Sequence[Account] = (),
    explanation: Optional[Explained] = None,
    whole: bool = False,
    transfer: Optional[Elsewhere] = None,
) -> RenderableType:
    """Lay out a tuning run's result; `whole`: with everything that the search has learnt."""
    parts: List[RenderableType] = [Text(_headline(outcome)), Text(""), _objectives(outcome)]
    parts += [Text(""), *(Text(line) for line in (*_search(outcome), *said_of(transfer)))]
    front = outcome.front
    if front is not None:
        known_by = "as measured, in one window where it was not measured again"
        parts += [Text(""), *front_table(front, lambda *_: (), known_by)]
    if outcome.choice.better:
        parts += [Text(""), _settings(outcome, release, now)]
        parts += [] if classes else _accounting(outcome, release, now)
    parts += [*capacity(classes), *learnt(explanation, quantity, whole)]
    return Group(*parts)


def what_to_do(outcome: TuneOutcome, cluster: str, commands: List[str], path: Optional[Any]) -> List[str]:
    """Give lines with commands, to be printed unwrapped: they are copied."""
    lines: List[str] = []
    misses: Dict[str, None] = {v.objective.metric: None for v in outcome.choice.verdicts if not v.met}
    if misses and outcome.choice.better:
        lines.append(f"Still missed: {', '.join(misses)}. More trials, other bounds or more hardware may help.")
    if outcome.written:
        lines.append(f"Written back. To take it back: ceph-tuner rollback --cluster {cluster}")
    elif commands:
        lines += ["Nothing was left in place. To write it:", *(f"  {command}" for command in commands)]
    if path:
        lines.append(f"Saved as {path}. For another cluster: ceph-tuner profile import {path} --cluster NAME")
    return lines


def _headline(outcome: TuneOutcome) -> str:
    choice = outcome.choice
    if not choice.better:
        return f"Nothing better found: {choice.reason}. The settings in force stay."
    times = "once" if choice.winner.repeats == 1 else f"{choice.winner.repeats} times"
    line = f"Winner: {choice.winner.label}, measured {times}: {choice.reason}."
    if outcome.withdrawn:
        return f"{line}\nTaken back again: {outcome.withdrawn}."
    return line


def _search(outcome: TuneOutcome) -> List[str]:
    """Say how the search went: why it ended, what it cost, what it was told beforehand."""
    lines = [f"The search ended ({outcome.verdict.state}): {outcome.verdict.reason}."]
    lines += [f"In the way: {words}." for words in outcome.at_fault]
    trials = [trial for trial in outcome.trials if trial.run.kind == "trial"]
    hopeless = sum(trial.hopeless for trial in trials)
    stops = sum(trial.failed is not None and not trial.hopeless for trial in trials)
    lines.append(
        f"{len(trials)} trials: {len(outcome.unsafe)} broke a hard objective that they had to hold, {stops} were "
        f"stopped or could not be measured, {hopeless} ended early as hopeless."
    )
    if outcome.trust:
        scales = (f"{metric} {', '.join(f'{scale:.2g}' for scale in own)}" for metric, own in outcome.trust.items())
        lines.append(
            f"The model that was asked first was trusted (1: as it predicted, 0: not at all): {'; '.join(scales)}."
        )
    if outcome.lessons:
        lines.append(f"{outcome.lessons} windows of earlier runs were taken into account.")
    return lines


def _objectives(outcome: TuneOutcome) -> Columns:
    built_in = outcome.best_built_in
    best_of = [f"best built-in ({built_in.label})"] if built_in else []
    table = columns("objective", "before", *best_of, "winner", keep=("objective",))
    before = outcome.judge.verdicts(outcome.choice.in_force.means)
    best = outcome.judge.verdicts(built_in.means) if built_in else []
    for index, verdict in enumerate(outcome.choice.verdicts):
        kind = "" if verdict.objective.hard else " (soft)"
        cells = [_verdict_text(cell) for cell in [before[index], *([best[index]] if built_in else []), verdict]]
        table.add_row(verdict.objective.text + kind, *cells[:-1], cells[-1] + _at_worst(outcome.choice, verdict))
    if outcome.check is not None and outcome.check.failed is None:
        means = outcome.check.means
        metrics = dict.fromkeys(objective.metric for objective in outcome.slo.objectives)
        table.caption = "checked after the write-back: " + ", ".join(
            f"{metric} {quantity(metric, means.get(metric))}" for metric in metrics
        )
    return table


def _verdict_text(verdict: Verdict) -> str:
    if verdict.margin is None:
        return quantity(verdict.objective.metric, verdict.seen)
    state = "met" if verdict.met else "missed"
    return f"{quantity(verdict.objective.metric, verdict.seen)}, {state} by {100 * abs(verdict.margin):.0f}%"


def _at_worst(choice: RankingChoice, verdict: Verdict) -> str:
    """The winner's mean, if chance was kind to it."""
    if not choice.better or verdict.objective.metric not in choice.bounds:
        return ""
    side = "at most" if verdict.objective.comparison == "<=" else "at least"
    return f" ({side} {quantity(verdict.objective.metric, choice.bounds[verdict.objective.metric])})"


def _settings(outcome: TuneOutcome, release: Release, now: InForce) -> Columns:
    table = columns("knob", "before", "winner")
    for name in KNOBS:
        if name not in outcome.moves:
            continue
        before = now.built_in or "custom" if name == PROFILE else now.settings.get(name, KNOBS[name].default(release))
        if before != outcome.moves[name]:
            old = "-" if before is None else shown(KNOBS[name], before)
            table.add_row(name, old, shown(KNOBS[name], outcome.moves[name]))
    return table


def _accounting(outcome: TuneOutcome, release: Release, now: InForce) -> List[RenderableType]:
    """Say what each class is sure of and cannot exceed, per OSD: why the winner does what it does."""
    settings = after_moves(outcome.moves, now.settings, release)
    if release.units != "fraction" or not all(name in settings for name in MCLOCK_NINE):
        return []
    table = columns("per OSD", "reserved", "limit", "share of the rest")
    for name, part in allocation(settings, now.hardware, release).items():
        limit = "none" if part.limit_bytes_s is None else _rate(part.limit_iops, part.limit_bytes_s)
        share = f"{100 * part.weight_share:.0f}%"
        table.add_row(name.replace("background_", ""), _rate(part.reserved_iops, part.reserved_bytes_s), limit, share)
    return [Text(""), table]


def _rate(iops: Optional[float], bytes_s: float) -> str:
    return f"{iops or 0:.0f} IOPS, {quantity('client.bytes_s', bytes_s)}"
