"""The whole of `ceph-tuner tune`: baseline, trials, the best again beside the baseline, choice, write-back, check."""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, Dict, List, Mapping, Optional, Sequence

from ceph_tuner.core.errors import LabFailed, Locked, RetryLater
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.ranking import Candidate
from ceph_tuner.core.goals.trial import (
    NOT_MEASURED,
    Run,
    Trial,
    best_built_in,
    choice_among,
    finalist_labels,
    repeat_runs,
    standing,
)
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.core.knobs.settings import settings_key
from ceph_tuner.core.measure.forecast_record import ForecastRecord
from ceph_tuner.optimise.contract import SearchVerdict
from ceph_tuner.search.optimiser import Failed, SettingsProposal
from ceph_tuner.tune import Search
from ceph_tuner.tune.measurement import TrialRunner
from ceph_tuner.tune.outcome import TuneOutcome, TuneTask
from ceph_tuner.tune.past import Lesson, PastTrials, written_out

Lessons = Callable[[Mapping[str, float]], Sequence[Lesson]]
"""Gives what earlier runs measured, once the baseline's means are known."""

Foretell = Callable[[Settings, float], Optional[ForecastRecord]]
"""What the twin says at that time of settings, all values written out; None where there is no twin."""


def tune(
    task: TuneTask,
    runner: TrialRunner,
    search: Search,
    record: Callable[[Trial], None],
    past: Sequence[Trial] = (),
    lessons: Lessons = lambda baseline: (),
    foretell: Foretell = lambda settings, at: None,
) -> TuneOutcome:
    """Tune. Every trial is undone before the next one; only the winner stays, and only where it is better.

    `record` keeps each trial's outcome; `past` is what an interrupted run has kept, and is not measured again.
    `foretell` says what the twin expects of settings before they are written: it is kept with the trial.
    Raises RetryLater where the baseline itself cannot be measured.
    """
    return _Tuning(task, runner, search, record, PastTrials(past), foretell).run(lessons)


class _Tuning:
    """A run under way: its trials so far, the search that proposes, and the past that it goes on from."""

    def __init__(
        self,
        task: TuneTask,
        runner: TrialRunner,
        search: Search,
        record: Callable[[Trial], None],
        past: PastTrials,
        foretell: Foretell,
    ) -> None:
        self._task, self._runner, self._search = task, runner, search
        self._record, self._past, self._foretell = record, past, foretell
        self._began = runner.clock.now()
        self._trials: List[Trial] = []
        self._judge = Judge(task.slo)
        self._known: Dict[str, Run] = {}

    def run(self, lessons: Lessons) -> TuneOutcome:
        task, search = self._task, self._search
        first_runs = task.opening
        first = self._carry_out(first_runs[0])
        absent_metrics = [o.metric for o in task.slo.objectives if o.metric not in first.means]
        if absent_metrics:
            raise RetryLater(
                f"the baseline's window shows no {', '.join(absent_metrics)}",
                "start that work, or leave its objectives out of the SLO",
            )
        # the baseline's means get better with each repeat; the bounds relative to it were stated on the first
        self._judge = Judge(task.slo, first.means)
        self._tell(self._written_out(first.run.settings), first)
        for run in first_runs[1:]:
            self._tell(self._written_out(run.settings), self._carry_out(run))
        learnt = list(lessons(first.means))
        for settings, measures in learnt:
            search.tell(settings, measures, old=True)
        verdict = self._search_on()
        favourite = self._recommendation()
        self._try_simpler(favourite)
        trust = search.trust()
        for run in repeat_runs(self._judge, self._trials, task.budget, favourite):
            self._carry_out(run)
        choice = choice_among(self._judge, self._trials, task.in_force)
        if choice is None:
            raise RetryLater("a repeat of the settings in force was ended early", "run it again with --resume")
        built_in = best_built_in(self._judge, self._trials)
        settings = next((t.run.settings for t in self._trials if t.run.label == choice.winner.label), {})
        outcome = TuneOutcome(
            task.slo,
            self._trials,
            first.means,
            choice,
            settings,
            task.moves(settings),
            built_in,
            False,
            verdict,
            trust,
            len(learnt),
        )
        return self._written_back(outcome) if choice.better and task.write_back else outcome

    def _search_on(self) -> SearchVerdict:
        """Try settings until the search, the trials or the time are at an end; say which."""
        budget = self._task.budget
        for number in range(1, budget.trials + 1):
            before = self._past.of_search()
            if before is not None:
                self._tell(self._written_out(before.run.settings), self._carry_out(before.run, before))
                continue
            verdict = self._search.verdict()
            if verdict.go_on and budget.hours is not None and self._time_is_over(budget.hours):
                return SearchVerdict("budget", f"the {budget.hours:g} hours are over after {number - 1} trials")
            proposal = self._search.ask() if verdict.go_on else None
            if proposal is None:
                return self._search.verdict() if verdict.go_on else verdict
            self._try(proposal, number)
        verdict = self._search.verdict()
        return SearchVerdict("budget", f"all {budget.trials} trials are made") if verdict.go_on else verdict

    def _try(self, proposal: SettingsProposal, number: int) -> None:
        """Measure a proposal; where its settings were measured before, under the same label."""
        stands_for = self._search.nearest(proposal.settings) or proposal.settings
        earlier_run = self._known.get(settings_key(stands_for))
        run = Run(
            "trial",
            f"trial {number}" if earlier_run is None else earlier_run.label,
            proposal.settings if earlier_run is None else earlier_run.settings,
            proposal.why,
            proposal.expected,
        )
        self._tell(proposal.settings, self._carry_out(run))

    def _try_simpler(self, favourite: Optional[str]) -> None:
        """Measure the best with fewer changes, where the models think that as good and time is left for it."""
        budget = self._task.budget
        label = next(iter(finalist_labels(self._judge, self._trials, budget, favourite)), None)
        best = next((trial.run for trial in self._trials if trial.run.label == label), None)
        if best is None or (budget.hours is not None and self._time_is_over(budget.hours, 0)):
            return
        proposal = self._search.simpler(best.settings, self._task.profile_in_force is not None)
        before = [trial.run.settings for trial in self._trials if trial.run.fewer_changes]
        if proposal is not None and proposal.settings not in before:
            self._try(proposal, 1 + sum(trial.run.kind == "trial" for trial in self._trials))

    def _written_back(self, outcome: TuneOutcome) -> TuneOutcome:
        choice = outcome.choice
        check = self._carry_out(Run("check", choice.winner.label, outcome.settings, "written back"), keep=True)
        withdrawn = _withdrawn(self._judge, check, choice.in_force)
        if not withdrawn:
            self._runner.keep()
        elif check.failed is None:
            self._runner.take_back(check.run, len(self._trials), len(self._trials))
        return replace(outcome, written=not withdrawn, check=check, withdrawn=withdrawn)

    def _carry_out(self, run: Run, before: Optional[Trial] = None, keep: bool = False) -> Trial:
        number, total = len(self._trials) + 1, max(len(self._trials) + 1, self._task.most_runs)
        before = before or (None if keep else self._past.of(run))
        if before is not None:
            self._runner.measured_before(before, number, total)
            trial = before
        else:
            forecast = self._foretell(self._written_out(run.settings), self._runner.clock.now())
            trial = self._measurement(replace(run, forecast=forecast), number, total, keep)
            self._record(trial)
        self._trials.append(trial)
        return trial

    def _measurement(self, run: Run, number: int, total: int, keep: bool) -> Trial:
        """Measure, a second time where the load did not come up: that says nothing about the settings."""
        finalists = self._task.budget.finalists
        to_beat = standing(self._judge, self._trials, finalists) if run.kind == "trial" else None
        try:
            return self._runner.run(run, number, total, self._judge.reference, keep, to_beat)
        except Locked:
            raise
        except (RetryLater, LabFailed):
            pass
        try:
            return self._runner.run(run, number, total, self._judge.reference, keep, to_beat)
        except Locked:
            raise
        except (RetryLater, LabFailed) as error:
            # twice in a row, and for the second run, is no chance
            if run.kind == "baseline" or self._trials[-1].unmeasured:
                raise
            return Trial(run, self._runner.clock.now(), 0.0, {}, f"{NOT_MEASURED}{error}")

    def _written_out(self, settings: Settings) -> Settings:
        return written_out(settings, self._task.release.profiles, self._task.in_force)

    def _tell(self, settings: Settings, trial: Trial) -> None:
        """Tell the search, and remember what stands for these settings."""
        stands_for = self._search.nearest(settings)
        if stands_for is None:
            # differs in what is not searched: measured for comparison alone
            return
        if trial.unmeasured:
            self._search.forget_pending()
            return
        self._known.setdefault(settings_key(stands_for), trial.run)
        # of a hopeless one everything that was seen counts as well; its error says how short it was
        went_well = trial.failed is None or trial.hopeless
        result = trial.measures if went_well else Failed(trial.failed or "", trial.means)
        self._search.tell(stands_for, result, expected=trial.run.expected)

    def _recommendation(self) -> Optional[str]:
        """Label of what the models think best of all that was tried."""
        run = self._known.get(settings_key(self._search.best()))
        return None if run is None else run.label

    def _time_is_over(self, hours: float, trials: int = 1) -> bool:
        """Whether so many trials, the finalists and the check would take longer than that."""
        budget, took = self._task.budget, [trial.seconds for trial in self._trials if trial.seconds > 0]
        # the best with fewer changes is one trial more
        trials += not any(trial.run.fewer_changes for trial in self._trials)
        again = budget.most_finalists + 1 + self._task.compare
        after = trials + again * budget.repeats + self._task.write_back
        seconds = self._runner.clock.now() - self._began
        return bool(seconds + after * sum(took) / max(1, len(took)) > hours * 3600)


def _withdrawn(judge: Judge, check: Trial, in_force: Candidate) -> str:
    """Say why the winner is not kept: it failed its check, or does worse than what was there before."""
    if check.failed is not None:
        return check.failed
    if judge.rank(check.means) > judge.rank(in_force.means):
        return "measured again after the write-back it was worse than the settings in force"
    return ""
