"""A plan beyond live knobs: the restarts and moves of data that are worth their cost, in the order to make them.

Restarts come first, being cheaper; each next change is tried on the cluster as the ones before it leave it. Of each
kind, all are simulated on the seeds of the search, with the live settings that are recommended; the best is run again
on the fresh seeds, and is part of the plan where it wins there by more than chance and by enough to be worth it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Dict, List, Mapping, Optional, Tuple

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.ranking import LEAST_GAIN, finalists
from ceph_tuner.recommend import Prediction, SearchListener
from ceph_tuner.recommend.paired_effect import PairedEffect, mean_and_reach, paired_effects
from ceph_tuner.recommend.rebuild import MOVES_DATA, RESTART, RebuildChange, changes
from ceph_tuner.recommend.rebuild_cost import Cost, cost_of
from ceph_tuner.recommend.runs import Processes, Runs
from ceph_tuner.recommend.search import SearchedSettings, fresh_seeds
from ceph_tuner.twin.model import ClusterModel

WORTH = {RESTART: 1.0, MOVES_DATA: 2.0}
"""Times the gain for which a live knob is written: data that moves is felt for hours."""

COST_SEEDS = 4


@dataclass(frozen=True)
class Planned:
    """One change, tried on fresh seeds. `before` and `after` are of the same seeds."""

    change: RebuildChange
    model: ClusterModel
    """The cluster before it."""
    before: Prediction
    after: Prediction
    effects: Tuple[PairedEffect, ...]
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
    search_result: SearchedSettings,
    stored_bytes: Mapping[str, float],
    report: SearchListener,
    processes: Processes = None,
) -> Plan:
    """Look for them. `search_result` must be confirmed on fresh seeds; `stored_bytes`: by pool, where known."""
    with Runs(search_result.question, search_result.effort, search_result.run_s, processes) as runs:
        planner = _Planner(search_result, report, runs)
        model, before = search_result.question.model, search_result.winner
        worth: List[Planned] = []
        rejects: List[Planned] = []
        for kind in (RESTART, MOVES_DATA):
            best = planner.best(kind, model, before)
            if best is None:
                continue
            if best.worth:
                seeds = range(
                    search_result.effort.seed, search_result.effort.seed + min(COST_SEEDS, search_result.effort.fresh)
                )
                # with what moves beside all that is described, there may be more than the twin has room for
                with suppress(InputError):
                    means = before.means
                    best = replace(
                        best, cost=cost_of(best.change, model, before.settings, means, stored_bytes, runs, seeds)
                    )
                worth.append(best)
                model, before = best.change.model, best.after
            else:
                rejects.append(best)
        return Plan(tuple(worth), tuple(rejects), planner.tried, runs.done)


class _Planner:
    """Simulates changes of one kind, and judges the best."""

    def __init__(self, search_result: SearchedSettings, report: SearchListener, runs: Runs) -> None:
        self._search_result, self._report, self._runs = search_result, report, runs
        self.tried = 0

    def best(self, kind: str, model: ClusterModel, before: Prediction) -> Optional[Planned]:
        """The best of a kind; None where there is none that can be simulated."""
        effort, settings = self._search_result.effort, before.settings
        seeds = range(effort.seed, effort.seed + effort.seeds)
        candidates = changes(model, kind)
        runs_by_change = [(change, self._runs.start(change.model, settings, seeds)) for change in candidates]
        predictions: Dict[str, Tuple[RebuildChange, Prediction]] = {}
        for number, (change, runs) in enumerate(runs_by_change):
            self._report.phase(f"beyond live knobs: {change.label}", number, len(runs_by_change))
            try:
                predictions[change.label] = change, Prediction(change.label, settings, runs.collect())
            except InputError:
                # more PGs at work than the twin has room for
                continue
        self.tried += len(predictions)
        if not predictions:
            return None
        entries = [prediction.candidate for _, prediction in predictions.values()]
        label = finalists(self._search_result.judge, entries, 1)[0].label
        change = predictions[label][0]
        errors = self._search_result.question.errors
        fresh = self._runs.start(change.model, settings, fresh_seeds(effort)).collect()
        after = Prediction(label, settings, fresh, errors=errors)
        return judged(change, model, before, after, self._search_result.judge)


def judged(change: RebuildChange, model: ClusterModel, before: Prediction, after: Prediction, judge: Judge) -> Planned:
    """Hold the two against each other, seed by seed."""
    falls = [judge.loss(old) - judge.loss(new) for old, new in zip(before.runs, after.runs)]
    gain, reach = mean_and_reach(falls, 0.95)
    misses_before, misses_after = (not judge.keeps_hard(entry.means) for entry in (before, after))
    enough = misses_after < misses_before or (
        misses_after == misses_before and gain > WORTH[change.kind] * LEAST_GAIN[misses_after]
    )
    effects = paired_effects((objective.metric for objective in judge.objectives), before, after)
    return Planned(change, model, before, after, effects, (gain, gain - reach), enough and gain > reach)
