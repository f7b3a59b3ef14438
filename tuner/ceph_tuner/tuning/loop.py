"""The whole of `ceph-tuner tune`: baseline, built-in profiles, trials, the best again, choice, write-back, check."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional

from ceph_tuner.errors import LabFailed, Locked, RetryLater
from ceph_tuner.releases import Settings
from ceph_tuner.search.optimiser import Failed, Optimiser
from ceph_tuner.slo import Slo, evaluate
from ceph_tuner.trial import (
    IN_FORCE,
    Budget,
    Run,
    Trial,
    best_built_in,
    candidates_of,
    opening_runs,
    repeat_runs,
)
from ceph_tuner.tuning.measuring import Measuring
from ceph_tuner.winner import Candidate, Choice, choose, rank

OptimiserFor = Callable[[Mapping[str, float]], Optimiser]
"""Makes the optimiser once the baseline's means are known: relative bounds need them."""


NOT_MEASURED = "not measured: "


@dataclass(frozen=True)
class Task:
    """What is to be tuned, and within which means."""

    slo: Slo
    profiles: Mapping[str, Settings]
    in_force: Settings
    profile_in_force: Optional[str]
    """Name of the built-in profile in force; None for a custom one."""
    budget: Budget = field(default_factory=Budget)
    write_back: bool = True


@dataclass(frozen=True)
class Outcome:
    """What a tuning run came to."""

    slo: Slo
    trials: List[Trial]
    baseline: Mapping[str, float]
    choice: Choice
    settings: Settings
    """Of the winner; empty where the settings in force won."""
    best_built_in: Optional[Candidate]
    written: bool
    check: Optional[Trial] = None
    """The window measured after the winner was written back."""
    withdrawn: str = ""
    """Why a winner that was written back was taken back again."""

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for programs."""
        built_in = self.best_built_in
        return {
            "slo": self.slo.to_dict(),
            "winner": {
                **self.choice.to_dict(),
                "settings": dict(self.settings),
                "means": dict(self.choice.winner.means),
            },
            "best_built_in": None
            if built_in is None
            else {
                "label": built_in.label,
                "means": dict(built_in.means),
                "repeats": built_in.repeats,
                "verdicts": [v.to_dict() for v in evaluate(self.slo, built_in.means, self.baseline)],
            },
            "baseline": dict(self.baseline),
            "written": self.written,
            "withdrawn": self.withdrawn,
            "check": None if self.check is None else self.check.to_dict(),
            "trials": [trial.to_dict() for trial in self.trials],
        }


def tune(task: Task, measuring: Measuring, optimiser_for: OptimiserFor, record: Callable[[Trial], None]) -> Outcome:
    """Tune. Every trial is undone before the next one; only the winner stays, and only where it is better.

    `record` keeps each trial's outcome. Raises RetryLater where the baseline itself cannot be measured.
    """
    opening = opening_runs(task.profiles, task.profile_in_force)
    repeats = (task.budget.finalists + 1) * task.budget.repeats
    total = len(opening) + task.budget.trials + repeats + (1 if task.write_back else 0)
    trials: List[Trial] = []

    def again(run: Run, number: int, baseline: Mapping[str, float], keep: bool) -> Trial:
        try:
            return measuring.run(run, number, total, baseline, keep)
        except Locked:
            raise
        except (RetryLater, LabFailed) as error:
            if run.kind == "baseline" or (trials and _not_measured(trials[-1])):
                raise
            return Trial(run, trials[-1].at + trials[-1].seconds, 0.0, {}, f"{NOT_MEASURED}{error}")

    def carry_out(run: Run, baseline: Mapping[str, float], keep: bool = False) -> Trial:
        number = len(trials) + 1
        try:
            trial = measuring.run(run, number, total, baseline, keep)
        except Locked:
            raise
        except (RetryLater, LabFailed):
            # a load that did not come up says nothing about the settings; twice in a row is no chance
            trial = again(run, number, baseline, keep)
        trials.append(trial)
        record(trial)
        return trial

    first = carry_out(opening[0], {})
    baseline = first.means
    missing = [o.metric for o in task.slo.objectives if o.metric not in baseline]
    if missing:
        raise RetryLater(f"the baseline's window shows no {', '.join(missing)}: is that work running?")
    optimiser = optimiser_for(baseline)
    optimiser.tell(task.in_force, first.measures)
    for run in opening[1:]:
        _tell(optimiser, task.profiles[run.label], carry_out(run, baseline))
    for number in range(1, task.budget.trials + 1):
        proposal = optimiser.ask()
        trial = carry_out(Run("trial", f"trial {number}", proposal.settings, proposal.why), baseline)
        _tell(optimiser, proposal.settings, trial)
    for run in repeat_runs(task.slo, baseline, trials, task.budget):
        carry_out(run, baseline)
    in_force = _in_force(trials)
    # the baseline's means get better with each repeat; the bounds relative to it were stated on the first
    choice = choose(task.slo, baseline, in_force, [c for c in candidates_of(trials) if c.label != IN_FORCE])
    built_in = best_built_in(task.slo, baseline, trials)
    settings = _settings_of(choice, trials)
    if not choice.better or not task.write_back:
        return Outcome(task.slo, trials, baseline, choice, settings, built_in, written=False)
    check = carry_out(Run("check", choice.winner.label, settings, "written back"), baseline, keep=True)
    withdrawn = _withdrawn(task.slo, baseline, check, in_force)
    if not withdrawn:
        measuring.keep()
    elif check.failed is None:
        measuring.take_back(check.run, total, total)
    return Outcome(task.slo, trials, baseline, choice, settings, built_in, not withdrawn, check, withdrawn)


def _tell(optimiser: Optimiser, settings: Settings, trial: Trial) -> None:
    if trial.failed is None:
        optimiser.tell(settings, trial.measures)
    elif not _not_measured(trial):
        optimiser.tell(settings, Failed(trial.failed, trial.means))


def _not_measured(trial: Trial) -> bool:
    """Whether a run failed for reasons that say nothing about its settings."""
    return trial.failed is not None and trial.failed.startswith(NOT_MEASURED)


def _in_force(trials: List[Trial]) -> Candidate:
    return next(entry for entry in candidates_of(trials, ("baseline",)) if entry.label == IN_FORCE)


def _settings_of(choice: Choice, trials: List[Trial]) -> Settings:
    return next((trial.run.settings for trial in trials if trial.run.label == choice.winner.label), {})


def _withdrawn(slo: Slo, baseline: Mapping[str, float], check: Trial, in_force: Candidate) -> str:
    """Say why the winner is not kept: it failed its check, or does worse than what was there before."""
    if check.failed is not None:
        return check.failed
    if rank(evaluate(slo, check.means, baseline)) > rank(evaluate(slo, in_force.means, baseline)):
        return "measured again after the write-back it was worse than the settings in force"
    return ""
