"""What a profile would do on a cluster, by that cluster's own twin: before anything is written there.

What is in force and the profile run on the same seeds, so that what differs is theirs. Where a window under just this
work is known, both are scaled to it: the twin says by how much things change, the cluster where they stand.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ceph_tuner.core.errors import InputError, RetryLater
from ceph_tuner.core.goals.judge import Judge, Verdict, all_met, loss
from ceph_tuner.core.goals.ranking import LEAST_GAIN
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.core.measure.forecast_record import ForecastInterval, ForecastRecord
from ceph_tuner.core.measure.metrics import work_of
from ceph_tuner.core.measure.quantity import amount, scale_of
from ceph_tuner.core.measure.sample import NEVER_S
from ceph_tuner.core.profiles.translation import from_release_units
from ceph_tuner.recommend import COVERAGE, IN_FORCE, Prediction, Question, SearchEffort
from ceph_tuner.recommend.paired_effect import mean_and_reach
from ceph_tuner.recommend.question import question_of
from ceph_tuner.recommend.runs import Means, means_of, run_length_s
from ceph_tuner.recommend.search import profiles_of
from ceph_tuner.recommend.turns import told as told_turns
from ceph_tuner.twin.described_cluster import DescribedCluster
from ceph_tuner.twin.prediction import PredictionRun
from ceph_tuner.workers import CallFailure, CallMessage, CallResult, Tell, WorkerLoss, Workers, WorkersGone

EFFORT = SearchEffort(fresh=8, events=5e5, longest_s=30.0)
"""Of a prediction: seeds, and how long a run is. Some seconds for each cluster."""
SURE = 0.95
"""Confidence with which something is worse, to be more than chance."""
LEAST_FALL = 0.02
"""Of a hard objective's margin, as a share of its bound: who keeps it by less than that may miss it the next day."""
FAR, ELSEWHERE = 2.0, 10.0
"""A twin that is off by more than the first factor is told of; with clients by more than the second, it is no twin."""

Report = Callable[[str, int, int], None]
"""Which cluster's runs are waited for, how many are done, of how many."""


@dataclass(frozen=True)
class ForecastCluster:
    """A cluster that settings are to be brought to."""

    name: str
    described: DescribedCluster
    slo: Slo
    settings: Settings
    """What would be written, in Ceph's own units."""
    baseline: Mapping[str, float] = field(default_factory=dict)
    """What relative bounds refer to by what the cluster keeps, as it was measured; else what is in force now."""


@dataclass(frozen=True)
class Foreseen:
    """What is in force against what would be, on one cluster."""

    name: str
    slo: Slo
    """Objectives that the twin says something about."""
    before: Prediction
    after: Prediction
    refusal: str = ""
    """Why the settings must not come there; empty where they may."""
    notes: Tuple[str, ...] = ()
    baseline: Mapping[str, float] = field(default_factory=dict)
    """What relative bounds refer to, in the scale of the predictions; else what is in force."""
    target: str = "osd"
    """The OSDs that the twin is of."""

    @property
    def verdicts(self) -> List[Tuple[Verdict, Verdict]]:
        """Each objective under what is in force, and under the profile."""
        judge = _judge(self.slo, self.before, self.baseline)
        return list(zip(*(judge.verdicts(entry.means) for entry in (self.before, self.after))))

    def record(self, at: float) -> ForecastRecord:
        """What is said of the profile in the objectives' metrics, as it is kept with the write (`at`: epoch, s)."""
        means = self.after.means
        metric_names = dict.fromkeys(objective.metric for objective in self.slo.objectives)
        metrics = {}
        for name in metric_names:
            ends = self.after.interval(name)
            if ends is not None and 0 < means.get(name, 0.0) < NEVER_S:
                metrics[name] = ForecastInterval(means[name], *ends)
        return ForecastRecord(at, f"twin of {self.name}", COVERAGE, metrics)

    def to_dict(self) -> Dict[str, Any]:
        """Plain values, for programs."""
        return {
            "refused": self.refusal or None,
            "seeds": len(self.after.runs),
            "objectives": [
                {
                    "objective": after.objective.text,
                    "hard": after.objective.hard,
                    "in_force": {**_verdict_fields(before), "interval": self.before.interval(before.objective.metric)},
                    "profile": {**_verdict_fields(after), "interval": self.after.interval(after.objective.metric)},
                }
                for before, after in self.verdicts
            ],
            "notes": list(self.notes),
        }


def foresee(
    targets: Sequence[ForecastCluster],
    report: Optional[Report] = None,
    workers: Optional[Workers] = None,
    effort: SearchEffort = EFFORT,
) -> List[Foreseen]:
    """Predict on each, in their order: side by side where `workers` carries it out, else in this process.

    Raises InputError for a target that its twin can say nothing about, before any run where that is known by then;
    RetryLater where workers are lost again and again.
    """
    tasks = {target.name: _Task(target, _forecast_question(target), effort) for target in targets}
    done, total = dict.fromkeys(tasks, 0), 2 * effort.fresh * len(tasks)

    def tell(name: str, own: int) -> None:
        done[name] = own
        if report is not None:
            report(name, sum(done.values()), total)

    forecasts: Dict[str, Foreseen] = {}
    if workers is None:
        for name, task in tasks.items():
            forecasts[name] = _forecast_or_raise(foreseen_by(task, partial(tell, name)))
        return list(forecasts.values())
    for name, task in tasks.items():
        workers.start(name, foreseen_by, task)
    try:
        for event in workers.events():
            if isinstance(event, CallMessage):
                tell(event.key, event.message)
            elif isinstance(event, WorkerLoss):
                tell(event.key, 0)
            elif isinstance(event, CallFailure):
                raise RetryLater(f"the twin of {event.key}: {event.reason}", _WITHOUT)
            elif isinstance(event, CallResult):
                forecasts[event.key] = _forecast_or_raise(event.result)
    except WorkersGone as failure:
        # nothing is kept of what was done
        raise RetryLater(str(failure), _WITHOUT) from failure
    return [forecasts[name] for name in tasks]


_WITHOUT = "try again; --unpredicted goes without the twins"


@dataclass(frozen=True)
class _Task:
    """One cluster's prediction, to be carried out anywhere."""

    target: ForecastCluster
    question: Question
    effort: SearchEffort


@dataclass(frozen=True)
class _Fault:
    """An InputError in its parts, as it comes from elsewhere."""

    place: str
    found: str
    expected: str


def foreseen_by(task: _Task, tell: Tell) -> Union[Foreseen, _Fault]:
    """Predict on one, in this process alone; tells how many runs are done."""
    question, effort = task.question, task.effort
    runs: Tuple[List[Means], List[Means]] = ([], [])
    tell(0)
    try:
        seconds = run_length_s(question.model, question.in_force, effort)
        settle = seconds * effort.settle_share
        for settings, own in zip(_both(task.target, question), runs):
            for seed in range(effort.seed, effort.seed + effort.fresh):
                own.append(means_of(PredictionRun(question.model, settings, seconds - settle, settle, seed)))
                tell(len(runs[0]) + len(runs[1]))
    except InputError as fault:
        return _Fault(f"the twin of {task.target.name}", fault.found, fault.expected)
    try:
        return _forecast_of_runs(task.target, question, *runs)
    except InputError as fault:
        return _Fault(fault.place, fault.found, fault.expected)


def _forecast_or_raise(answer: Union[Foreseen, _Fault]) -> Foreseen:
    if isinstance(answer, _Fault):
        raise InputError(answer.place, answer.found, answer.expected)
    return answer


def _forecast_question(target: ForecastCluster) -> Question:
    """Raises InputError where no objective is about what the twin simulates."""
    question = question_of(target.described, target.slo)
    objectives = [objective for objective in target.slo.objectives if work_of(objective.metric) in question.work]
    objectives = [objective for objective in objectives if objective.metric != "scrub.pgs_late"]
    if not objectives:
        raise InputError(
            f"cluster {target.name}",
            f"no objective about the work that its twin knows of ({', '.join(question.work) or 'none'})",
            "one about it, or work of the kinds in `description:`",
        )
    goal = target.slo.goal if target.slo.goal is not None and work_of(target.slo.goal.metric) in question.work else None
    return replace(question, slo=replace(target.slo, objectives=tuple(objectives), goal=goal))


def _both(target: ForecastCluster, question: Question) -> Tuple[Settings, Settings]:
    """What is in force, and the profile over what stays beside it."""
    before = next(iter(profiles_of(question).values()))
    model = question.model
    profile = target.settings.get(PROFILE)
    own = {name: value for name, value in target.settings.items() if name != PROFILE}
    if MCLOCK_NINE[0] in own:
        own = from_release_units(own, model.release, model.osd.hardware)
    if profile in model.release.profiles:
        return before, {**question.kept, **own, PROFILE: str(profile)}
    scheduler = {name: value for name, value in before.items() if name == PROFILE or name in MCLOCK_NINE}
    return before, {**({} if MCLOCK_NINE[0] in own else scheduler), **question.kept, **own}


def _forecast_of_runs(
    target: ForecastCluster, question: Question, before: Sequence[Means], after: Sequence[Means]
) -> Foreseen:
    slo, notes = _objectives_in_runs(target, question, [*before, *after])
    scale, off = _scale(target, before, [objective.metric for objective in slo.objectives])
    label = question.profile_in_force or IN_FORCE
    one, other = (
        Prediction(name, own, tuple(_scale_run(run, scale) for run in runs), errors=question.errors)
        for name, own, runs in zip((label, "profile"), _both(target, question), (before, after))
    )
    # what was measured then says nothing of a twin that is not brought to what is measured
    baseline = {name: value for name, value in target.baseline.items() if name in scale}
    notes = [*target.described.notes, *told_turns(question.model), *off, *notes]
    for objective in slo.objectives:
        if objective.bound.relative and objective.metric in target.baseline and objective.metric not in scale:
            notes.append(f"{objective.text}: of what is in force now, as {objective.metric} was not measured")
    return Foreseen(
        target.name,
        slo,
        one,
        other,
        refusal(slo, one, other, baseline),
        tuple(notes),
        baseline,
        target.described.target,
    )


def _objectives_in_runs(target: ForecastCluster, question: Question, runs: Sequence[Means]) -> Tuple[Slo, List[str]]:
    """Objectives that the runs say something about, and a note of each other one. Raises InputError where all are."""
    objectives = [o for o in question.slo.objectives if any(o.metric in run for run in runs)]
    notes = [f"not predicted: {o.text}" for o in target.slo.objectives if o not in question.slo.objectives]
    notes += [
        f"not predicted: {objective.text}, as no {work_of(objective.metric)} got on in the runs"
        for objective in question.slo.objectives
        if objective not in objectives
    ]
    if not objectives:
        raise InputError(
            f"the twin of {target.name}", notes[0], "work in `description:` that gets on, other objectives"
        )
    return replace(question.slo, objectives=tuple(objectives)), notes


def refusal(
    slo: Slo, before: Prediction, after: Prediction, baseline: Mapping[str, float] = MappingProxyType({})
) -> str:
    """Why settings must not replace what is in force; nothing where they may. Both are of the same seeds.

    A hard objective that is kept would be missed, or the loss is larger, each by more than chance and by enough to
    matter. Relative bounds refer to `baseline`, and to what is in force where it has nothing.
    """
    judge = _judge(slo, before, baseline)
    now, then = (judge.verdicts(entry.means) for entry in (before, after))
    seeds = [(judge.verdicts(one), judge.verdicts(other)) for one, other in zip(before.runs, after.runs)]
    rises = [loss(other) - loss(one) for one, other in seeds]
    for place, (old, new) in enumerate(zip(now, then)):
        if not new.objective.hard or old.margin is None or new.margin is None or not old.met or new.met:
            continue
        if old.margin - new.margin > LEAST_FALL:
            margins = [(one[place].margin, other[place].margin) for one, other in seeds]
            falls = [one - other for one, other in margins if one is not None and other is not None]
            if _beyond_chance(falls) or _beyond_chance(rises):
                bound_text = f" ({_words(new, new.bound)})" if new.objective.bound.relative else ""
                return (
                    f"{new.objective.text}{bound_text}, kept now ({written(old)}) and missed with it ({written(new)})"
                )
    if _beyond_chance(rises, LEAST_GAIN[not all_met(then, hard_only=True)]):
        old, new = max(zip(now, then), key=lambda pair: loss([pair[1]]) - loss([pair[0]]))
        return (
            f"worse than what is in force, most of all {new.objective.metric}: {written(new)} instead of {written(old)}"
        )
    return ""


def _judge(slo: Slo, before: Prediction, baseline: Mapping[str, float]) -> Judge:
    """Relative bounds refer to `baseline`, and to what is in force where it has nothing."""
    return Judge(slo, {**before.means, **baseline})


def _beyond_chance(values: Sequence[float], least: float = 0.0) -> bool:
    if not values:
        return False
    mean, reach = mean_and_reach(values, SURE)
    return mean > max(least, reach)


def _scale(
    target: ForecastCluster, before: Sequence[Means], metrics: Sequence[str]
) -> Tuple[Dict[str, float], List[str]]:
    """Factors that bring the twin to what was measured under what is in force, and a word where they are large.

    Raises InputError where they are so large that the twin is of another cluster.
    """
    scale, notes = {}, []
    for name in dict.fromkeys(metrics):
        values = [run.get(name, 0.0) for run in before]
        measurement, mean = target.described.seen.get(name, 0.0), sum(values) / len(values)
        if not (0 < measurement < NEVER_S and 0 < mean < NEVER_S):
            continue
        scale[name] = measurement / mean
        off = max(scale[name], 1 / scale[name])
        contrast = f"{name} of {amount(name, mean)[0]} where {amount(name, measurement)[0]} was measured"
        # rates of background work are low in windows of which it fills only a part
        if off > ELSEWHERE and work_of(name) == "client":
            raise InputError(
                f"the twin of {target.name}", contrast, "a fit (`ceph-tuner twin fit`) as its `calibration:`"
            )
        if off > FAR:
            notes.append(f"its twin by itself says {contrast}, and is scaled to it; a fit does better")
    return scale, notes


def _scale_run(run: Means, scale: Mapping[str, float]) -> Means:
    return {name: value * scale.get(name, 1.0) for name, value in run.items()}


def _verdict_fields(verdict: Verdict) -> Dict[str, Any]:
    return {"value": verdict.seen, "met": verdict.met}


def written(verdict: Verdict) -> str:
    """What is seen, in as many digits as tell it from its bound."""
    return _words(verdict, verdict.seen)


def _words(verdict: Verdict, value: Optional[float]) -> str:
    metric, bound = verdict.objective.metric, verdict.bound
    if value is None or bound is None or value == bound:
        return amount(metric, value)[0]
    scale, unit = scale_of(metric, value)
    digits = next(
        count for count in range(3, 18) if _significant(value / scale, count) != _significant(bound / scale, count)
    )
    return f"{_significant(value / scale, digits):.15g} {unit}".rstrip()


def _significant(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")
