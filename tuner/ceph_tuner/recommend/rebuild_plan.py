"""A plan beyond live knobs: the restarts and moves of data that are worth their cost, in the order to make them.

Restarts come first, being cheaper; each next change is tried on the cluster as the ones before it leave it. Of each
kind, all are simulated on the seeds of the search, with the live settings that are recommended; the best is run again
on the fresh seeds, and is part of the plan where it wins there by more than chance and by enough to be worth it.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from scipy.special import stdtrit

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.ranking import LEAST_GAIN, finalists
from ceph_tuner.recommend import COVERAGE, Prediction, SearchListener
from ceph_tuner.recommend.rebuild import MOVES_DATA, RESTART, RebuildChange, changes
from ceph_tuner.recommend.rebuild_cost import Cost, cost_of
from ceph_tuner.recommend.runs import Runs
from ceph_tuner.recommend.search import SearchedSettings, fresh_seeds
from ceph_tuner.twin.model import ClusterModel

WORTH = {RESTART: 1.0, MOVES_DATA: 2.0}
"""Times the gain for which a live knob is written: data that moves is felt for hours."""

COST_SEEDS = 4


@dataclass(frozen=True)
class RebuildEffect:
    """What a change does to one metric: means before and after, and the ratio of the two with its interval.

    The interval holds the true mean ratio of clusters like the described one in COVERAGE of the cases.
    """

    metric: str
    before: float
    after: float
    ratio: Optional[Tuple[float, float, float]]
    """(mean, low, high); None where a run has nothing or 0 of it."""


@dataclass(frozen=True)
class Planned:
    """One change, tried on fresh seeds. `before` and `after` are of the same seeds."""

    change: RebuildChange
    model: ClusterModel
    """The cluster before it."""
    before: Prediction
    after: Prediction
    effects: Tuple[RebuildEffect, ...]
    gain: Tuple[float, float]
    """Fall of the loss, and where it lies at the least in 95% of the cases."""
    worth: bool
    cost: Optional[Cost] = None
    """Of what is worth it, where it can be simulated."""


@dataclass(frozen=True)
class Plan:
    """What is worth it, in its order, and the best of what is not."""

    changes: Tuple[Planned, ...]
    rejected: Tuple[Planned, ...]
    tried: int
    """Changes that were simulated."""
    runs: int


def plan_rebuild(
    searched: SearchedSettings, stored: Mapping[str, float], report: SearchListener, processes: Optional[int] = None
) -> Plan:
    """Look for them. `searched` must be confirmed on fresh seeds; `stored` holds bytes by pool, where known."""
    with Runs(searched.effort, searched.run_s, processes) as runs:
        planner = _Planner(searched, report, runs)
        model, before = searched.question.model, searched.winner
        worth: List[Planned] = []
        rejected: List[Planned] = []
        for kind in (RESTART, MOVES_DATA):
            best = planner.best(kind, model, before)
            if best is None:
                continue
            if best.worth:
                seeds = range(searched.effort.seed, searched.effort.seed + min(COST_SEEDS, searched.effort.fresh))
                # with what moves beside all that is described, there may be more than the twin has room for
                with suppress(InputError):
                    means = before.candidate.means
                    best = replace(best, cost=cost_of(best.change, model, before.settings, means, stored, runs, seeds))
                worth.append(best)
                model, before = best.change.model, best.after
            else:
                rejected.append(best)
        return Plan(tuple(worth), tuple(rejected), planner.tried, runs.done)


class _Planner:
    """Simulates changes of one kind, and judges the best."""

    def __init__(self, searched: SearchedSettings, report: SearchListener, runs: Runs) -> None:
        self._found, self._report, self._runs = searched, report, runs
        self.tried = 0

    def best(self, kind: str, model: ClusterModel, before: Prediction) -> Optional[Planned]:
        """The best of a kind; None where there is none that can be simulated."""
        effort, settings = self._found.effort, before.settings
        seeds = range(effort.seed, effort.seed + effort.seeds)
        candidates = changes(model, kind)
        started = [(change, self._runs.start(change.model, settings, seeds)) for change in candidates]
        predictions: Dict[str, Tuple[RebuildChange, Prediction]] = {}
        for number, (change, runs) in enumerate(started):
            self._report.phase(f"beyond live knobs: {change.label}", number, len(started))
            try:
                predictions[change.label] = change, Prediction(change.label, settings, runs.collect())
            except InputError:
                # more PGs at work than the twin has room for
                continue
        self.tried += len(predictions)
        if not predictions:
            return None
        tried = [prediction.candidate for _, prediction in predictions.values()]
        label = finalists(self._found.judge, tried, 1)[0].label
        change = predictions[label][0]
        errors = self._found.question.errors
        fresh = self._runs.start(change.model, settings, fresh_seeds(effort)).collect()
        after = Prediction(label, settings, fresh, errors=errors)
        return judged(change, model, before, after, self._found.judge)


def judged(change: RebuildChange, model: ClusterModel, before: Prediction, after: Prediction, judge: Judge) -> Planned:
    """Hold the two against each other, seed by seed."""
    falls = [judge.loss(old) - judge.loss(new) for old, new in zip(before.runs, after.runs)]
    gain, reach = mean_and_reach(falls, 0.95)
    missed_before, missed = (not judge.keeps_hard(entry.candidate.means) for entry in (before, after))
    enough = missed < missed_before or (missed == missed_before and gain > WORTH[change.kind] * LEAST_GAIN[missed])
    metrics = dict.fromkeys(objective.metric for objective in judge.objectives)
    effects = tuple(entry for entry in (_effect(metric, before, after) for metric in metrics) if entry is not None)
    return Planned(change, model, before, after, effects, (gain, gain - reach), enough and gain > reach)


def _effect(metric: str, before: Prediction, after: Prediction) -> Optional[RebuildEffect]:
    old, new = before.candidate.means.get(metric), after.candidate.means.get(metric)
    if old is None or new is None:
        return None
    pairs = [(one[metric], other[metric]) for one, other in zip(before.runs, after.runs)]
    if min(min(pair) for pair in pairs) <= 0 or len(pairs) < 2:
        return RebuildEffect(metric, old, new, None)
    logs = [math.log(other / one) for one, other in pairs]
    # both ends of the interval
    mean, reach = mean_and_reach(logs, (1 + COVERAGE) / 2)
    return RebuildEffect(metric, old, new, (math.exp(mean), math.exp(mean - reach), math.exp(mean + reach)))


def mean_and_reach(values: Sequence[float], quantile: float) -> Tuple[float, float]:
    """Mean, and how far below it the true mean lies at most with that probability (Student)."""
    count = len(values)
    mean = sum(values) / count
    if count < 2:
        return mean, math.inf
    variance = sum((value - mean) ** 2 for value in values) / (count - 1)
    return mean, float(stdtrit(count - 1, quantile)) * math.sqrt(variance / count)
