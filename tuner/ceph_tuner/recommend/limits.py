"""Why objectives are missed: what the work would get without the other work, and the best that any settings gave."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import List, Mapping, Optional, Tuple

from ceph_tuner.core.goals.judge import Verdict
from ceph_tuner.core.measure.metrics import METRICS, work_of
from ceph_tuner.recommend import Prediction
from ceph_tuner.recommend.runs import Processes, Runs
from ceph_tuner.recommend.search import SearchedSettings
from ceph_tuner.twin.model import ClusterModel


@dataclass(frozen=True)
class Missed:
    """One objective that the recommended settings miss."""

    verdict: Verdict
    alone: Optional[float]
    """What it would be if the other kinds of work stood still, under the same settings."""
    alone_met: bool
    best: Optional[float]
    """The best that any settings gave."""
    best_label: str
    best_misses: Tuple[str, ...]
    """Hard objectives that those settings miss beside it."""


def missed_objectives(search_result: SearchedSettings, processes: Processes = None) -> List[Missed]:
    """Look into every objective that the winner misses; two more simulations for each kind of work."""
    misses = [verdict for verdict in search_result.judge.verdicts(search_result.winner.means) if not verdict.met]
    if not misses:
        return []
    question, effort = search_result.question, search_result.effort
    with Runs(question, effort, search_result.run_s, processes) as runs:
        seeds = range(effort.seed, effort.seed + effort.seeds)
        kinds = sorted({kind_of(verdict) for verdict in misses})
        runs_by_kind = {
            kind: runs.start(alone(question.model, kind), search_result.winner.settings, seeds) for kind in kinds
        }
        means_alone = {kind: Prediction(kind, {}, run.collect()).means for kind, run in runs_by_kind.items()}
    return [_look_into(verdict, search_result, means_alone[kind_of(verdict)]) for verdict in misses]


def _look_into(verdict: Verdict, search_result: SearchedSettings, means_alone: Mapping[str, float]) -> Missed:
    objective = verdict.objective
    value = means_alone.get(objective.metric)
    is_met = value is not None and verdict.bound is not None and objective.margin(value, verdict.bound) >= 0
    values = [
        (entry.means[objective.metric], entry)
        for entry in (*search_result.compared, *search_result.tried)
        if objective.metric in entry.means
    ]
    if not values:
        return Missed(verdict, value, is_met, None, "", ())
    sign = 1 if METRICS[objective.metric].lower_is_better else -1
    best, entry = min(values, key=lambda pair: sign * pair[0])
    others = [
        other.metric for other in search_result.judge.missed_hard(entry.means) if other.metric != objective.metric
    ]
    return Missed(verdict, value, is_met, best, entry.label, tuple(others))


def kind_of(verdict: Verdict) -> str:
    """The kind of work that an objective is about."""
    return work_of(verdict.objective.metric)


def alone(model: ClusterModel, kind: str) -> ClusterModel:
    """The same cluster with no other work than this."""
    return replace(
        model,
        clients=model.clients if kind == "client" else (),
        recovery=tuple(
            work
            for work in model.recovery
            if kind in ("recovery", "backfill") and work.degraded == (kind == "recovery")
        ),
        scrub=model.scrub if kind == "scrub" else (),
        snaptrim=model.snaptrim if kind == "snaptrim" else (),
        deletion=(),
    )
