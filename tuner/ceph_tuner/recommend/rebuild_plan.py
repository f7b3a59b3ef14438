"""A plan beyond live knobs: the restarts and moves of data that are worth their cost, in the order to make them.

Restarts come first, being cheaper; each next change is tried on the cluster as the ones before it leave it. Of each
kind, all are simulated on the first seeds of the search, with the live settings that are recommended, and the better
half on the others; the best is run again on the fresh seeds, unless the first of these rule it out, and is part of the
plan where it wins there by more than chance and by enough to be worth it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.ranking import LEAST_GAIN, finalists
from ceph_tuner.recommend import Prediction, SearchListener
from ceph_tuner.recommend.paired_effect import PairedEffect, fall_of_loss, paired_effects
from ceph_tuner.recommend.rebuild import MOVES_DATA, RESTART, RebuildChange, changes
from ceph_tuner.recommend.rebuild_cost import Cost, cost_of
from ceph_tuner.recommend.runs import Processes, Runs
from ceph_tuner.recommend.search import SearchedSettings, fresh_seeds, in_rounds
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
    may_be_worth: bool = False
    """Whether more runs may tell that it is."""


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
        effort, settings, judge = self._search_result.effort, before.settings, self._search_result.judge
        candidates = {change.label: change for change in changes(model, kind)}
        predictions = {label: Prediction(label, settings, (), errors=before.errors) for label in candidates}
        seeds = range(effort.seed, effort.seed + effort.seeds)
        half = (effort.seeds + 1) // 2
        tried = 0
        # the better half goes on
        for some, share in ((seeds[:half], 2), (seeds[half:], 1)):
            predictions = self._further(candidates, predictions, some)
            if not predictions:
                return None
            tried = max(tried, len(predictions))
            best = finalists(judge, [entry.candidate for entry in predictions.values()], -(-len(predictions) // share))
            predictions = {entry.label: predictions[entry.label] for entry in best}
        self.tried += tried
        label = best[0].label
        change = candidates[label]
        after = Prediction(label, settings, (), errors=self._search_result.question.errors)
        for some in in_rounds(fresh_seeds(effort), effort):
            after = after.with_runs(self._runs.start(change.model, settings, some).collect())
            planned = judged(change, model, before, after, judge)
            if not planned.may_be_worth:
                break
        return planned

    def _further(
        self, candidates: Mapping[str, RebuildChange], predictions: Mapping[str, Prediction], seeds: Sequence[int]
    ) -> Dict[str, Prediction]:
        """More runs of each, without those for which the twin has no room: more PGs at work than it takes."""
        started = {
            label: self._runs.start(candidates[label].model, entry.settings, seeds)
            for label, entry in predictions.items()
        }
        further: Dict[str, Prediction] = {}
        for number, (label, runs) in enumerate(started.items()):
            self._report.phase(f"beyond live knobs: {label}", number, len(started))
            with suppress(InputError):
                further[label] = predictions[label].with_runs(runs.collect())
        return further


def judged(change: RebuildChange, model: ClusterModel, before: Prediction, after: Prediction, judge: Judge) -> Planned:
    """Hold the two against each other, seed by seed."""
    gain, surely = fall_of_loss(judge, before, after)
    misses_before, misses_after = (not judge.keeps_hard(entry.means) for entry in (before, after))
    fewer, wanted = misses_after < misses_before, WORTH[change.kind] * LEAST_GAIN[misses_after]
    enough = fewer or (misses_after == misses_before and gain > wanted)
    # as far above the mean as the least lies below
    may_be_worth = fewer or 2 * gain - surely > wanted
    effects = paired_effects((objective.metric for objective in judge.objectives), before, after)
    return Planned(
        change, model, before, after, effects, (gain, surely), enough and surely > 0, may_be_worth=may_be_worth
    )
