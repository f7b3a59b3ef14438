"""A tuning scenario on the twin: a cluster, what is in force there, what is wanted, and what somebody believes of it.

Truth is the mean over TRUTH_SEEDS runs of the twin. A measurement is one run on a seed of its own, with noise on top.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Dict, List, Mapping, Optional, Sequence

import numpy as np
from scenario_clusters import drawn_cluster, mistaken, pick
from search_problem import Problem

from ceph_tuner.core.goals.judge import HARD_WEIGHT, HEADROOM_WEIGHT, LOSS_CEILING, Judge
from ceph_tuner.core.goals.slo import Bound, Objective, Slo
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.optimise.contract import Array, Constraint, Measured
from ceph_tuner.recommend import SearchEffort
from ceph_tuner.recommend.runs import run_length_s
from ceph_tuner.search.space import KnobSpace, space_for
from ceph_tuner.tune.twin_prior import TwinPrior
from ceph_tuner.twin.knobs_in_force import completed
from ceph_tuner.twin.model import ClusterModel
from ceph_tuner.twin.observations import SimulatedRun, negligible, simulated

BUDGET = 20
"""Trials, what is in force included."""

LOSS = "loss"
"""The objective's name: `winner.loss` of the means."""

RATES = {"recovery": "recovery.bytes_s", "scrub": "scrub.bytes_s", "snaptrim": "snaptrim.objects_s"}

TRUTH_SEEDS = 3
EVENTS, SHORTEST_S, SHORTEST_SCRUB_S, LONGEST_S = 5e5, 2.0, 5.0, 40.0
"""Of a run."""

DESIGNS = 192
"""Points that the prior simulates."""

NOISE = {"ms": (0.05, 0.10), "1/s": (0.03, 0.05), "B/s": (0.03, 0.05)}
"""By the metric's unit: deviation of a measurement's logarithm."""

HARMLESS = 0.05
"""Share by which a bound that is missed in force may be missed by more without harm."""


@dataclass(frozen=True)
class TuningProblem(Problem):
    """A scenario as the optimisers see it."""

    def unsafe(self, settings: Settings) -> bool:
        """Whether an objective is missed that is met in force, or one that is missed there is missed by more."""
        return self.beyond(settings) > 0

    def beyond(self, settings: Settings) -> float:
        """By how much the worst is beyond what makes a trial unsafe, in its metric's scale; 0 or less: it is safe.

        An objective that is missed in force has no bound that a trial could keep: what counts is by how much more it is
        missed.
        """
        now, then = self.truth(self.start), self.truth(settings)
        excesses = [
            self._harmless(constraint, now[constraint.name]).excess(then[constraint.name]) / self.scale[constraint.name]
            for constraint in self.constraints
        ]
        return max(excesses)

    def _harmless(self, constraint: Constraint, now: float) -> Constraint:
        """Give what a trial is to keep, where the settings in force have `now`."""
        if constraint.excess(now) <= 0:
            return constraint
        worse = now * (1 + HARMLESS if constraint.comparison == "<=" else 1 - HARMLESS)
        return Constraint(constraint.name, constraint.comparison, worse)


class Cluster:
    """What is true of a drawn cluster under any settings."""

    def __init__(self, seed: int, random: np.random.Generator) -> None:
        self.seed = seed
        self.kind, self.model = drawn_cluster(random)
        self.metrics = tuple(metrics_of(self.model, random))
        model = self.model
        shortest = SHORTEST_SCRUB_S if model.scrub else SHORTEST_S
        effort = SearchEffort(events=EVENTS, shortest_s=shortest, longest_s=LONGEST_S)
        self.seconds = run_length_s(model, {}, effort)
        self._known: Dict[str, Dict[str, float]] = {}

    def run(self, settings: Mapping[str, Any], seed: int) -> Dict[str, float]:
        """One window; nothing is below what is negligible, so that everything has a logarithm."""
        job = SimulatedRun(self.model, dict(settings), 0.7 * self.seconds, 0.3 * self.seconds, seed, self.metrics)
        found = simulated(job)
        return {name: max(float(value), negligible(name, self.model), 1e-6) for name, value in zip(self.metrics, found)}

    def truth(self, settings: Mapping[str, Any]) -> Dict[str, float]:
        """Means over the seeds."""
        key = json.dumps(settings, sort_keys=True, default=float)
        if key not in self._known:
            runs = [self.run(settings, seed) for seed in range(TRUTH_SEEDS)]
            self._known[key] = {name: sum(run[name] for run in runs) / len(runs) for name in self.metrics}
        return self._known[key]


@dataclass(frozen=True)
class Scenario:
    """A cluster, what is in force there, and what is wanted."""

    cluster: Cluster
    start: Settings
    slo: Slo
    share: float
    """Of random settings, those that meet all objectives."""
    reached: float
    """By which factor the best that was found misses its worst bound: below 1, it meets all."""
    spread: Mapping[str, float]
    """Metric -> deviation over random settings."""
    hidden: Optional[Settings] = None
    """Settings that meet all objectives; None: there are none."""

    @property
    def feasible(self) -> bool:
        return self.hidden is not None

    @property
    def name(self) -> str:
        return f"tuning-{self.cluster.seed}" + ("" if self.feasible else "-infeasible")

    @cached_property
    def space(self) -> KnobSpace:
        return space_of(self.cluster.model, self.start)

    @property
    def profiles(self) -> Dict[str, Settings]:
        """The release's own, each with the defaults of the other knobs."""
        return profiles_of(self.cluster.model)

    def meets(self, settings: Mapping[str, Any]) -> bool:
        return worst_ratio(self.slo, self.cluster.truth(settings)) <= 1

    def problem(self, mistake: str = "") -> TuningProblem:
        """`mistake`: one of MISTAKES, which the prior's twin makes beside its small ones."""
        constraints = tuple(
            Constraint(objective.metric, objective.comparison, objective.bound.value)
            for objective in self.slo.objectives
        )
        space: Any = self.space
        return TuningProblem(
            name=self.name, space=space, start=self.start, objective=LOSS, constraints=constraints,
            measure=self.measure, truth=self.truth, scale=self.spread, budget=BUDGET,
            priors=(ScenarioPrior(self, mistake),), designs=self.profiles, feasible=self.feasible,
            log_metrics=frozenset(self.cluster.metrics),
        )  # fmt: skip

    def truth(self, settings: Mapping[str, Any]) -> Dict[str, float]:
        """Every metric, and the loss."""
        found = self.cluster.truth(settings)
        return {**found, LOSS: Judge(self.slo).loss(found)}

    def measure(self, settings: Mapping[str, Any], random: np.random.Generator) -> Dict[str, Measured]:
        """One noisy window of the cluster that the truth is about: its PGs lie where they lie."""
        seen = {}
        for name, value in self.cluster.truth(settings).items():
            deviation = random.uniform(*NOISE[METRICS[name].unit])
            mean = value * float(random.lognormal(0.0, deviation))
            seen[name] = Measured(mean, deviation * mean)
        return {**seen, LOSS: Measured(Judge(self.slo).loss({name: entry.mean for name, entry in seen.items()}))}


CAPACITY, MECHANISM, DIRECTION = MISTAKES = ("capacity", "mechanism", "direction")
"""Of a twin: its drives are twice as fast or half as fast; a kind of background work costs clients and other work
nothing, snaptrim where there is any; a tail of the clients' latency moves the wrong way with every knob."""


@dataclass
class ScenarioPrior:
    """The twin of somebody who knows the cluster nearly; simulated when it is first asked."""

    scenario: Scenario
    mistake: str = ""
    _twins: List[TwinPrior] = field(default_factory=list, repr=False)

    @property
    def twins(self) -> List[TwinPrior]:
        """The twin, and where it lacks a mechanism the one that tells of all metrics but that work's own rate."""
        if not self._twins:
            random = np.random.default_rng([self.scenario.cluster.seed, 1])
            turn = pick(random, (-1, 1))
            model = mistaken(self.scenario.cluster.model, random, 2.0**turn if self.mistake == CAPACITY else 1.0)
            metrics = self.scenario.cluster.metrics
            self._twins.append(self._twin(model, metrics))
            if self.mistake == MECHANISM:
                work = works_of(model)[-1]
                free = replace(model, **{work: ()})
                self._twins.append(self._twin(free, [name for name in metrics if name != RATES[work]]))
        return self._twins

    def _twin(self, model: ClusterModel, metrics: Sequence[str]) -> TwinPrior:
        scenario = self.scenario
        return TwinPrior(model, scenario.space, {}, metrics, scenario.cluster.seed + 1, DESIGNS, slo=scenario.slo)

    def predict(self, points: Array) -> Mapping[str, Array]:
        """Every metric, and the loss."""
        found = self._predicted(points)
        if self.mistake == DIRECTION:
            latency = next(name for name in found if METRICS[name].unit == "ms")
            start = np.asarray([self.scenario.space.encode(self.scenario.start)])
            # mirrored, by factors, at what it says of the settings in force
            found[latency] = self._predicted(start)[latency][0] ** 2 / found[latency]
        found[LOSS] = losses(self.scenario.slo, found)
        return found

    def _predicted(self, points: Array) -> Dict[str, Array]:
        found: Dict[str, Array] = {}
        for twin in self.twins:
            found.update(twin.predict(points))
        return found


def losses(slo: Slo, values: Mapping[str, Array]) -> Array:
    """`winner.loss` for many settings at once, where every objective is hard and seen, shape (n,)."""
    total: Any = 0.0
    for objective in slo.objectives:
        margin = np.asarray(objective.margin(values[objective.metric], objective.bound.value))  # type: ignore[arg-type]
        gathered = 1.0 - 1.0 / (1.0 + np.maximum(margin, 0.0))
        violation = np.maximum(-margin, 0.0)
        total = total + objective.priority * (HARD_WEIGHT * np.log1p(violation) - HEADROOM_WEIGHT * gathered)
    return np.minimum(total, LOSS_CEILING)


def metrics_of(model: ClusterModel, random: np.random.Generator) -> List[str]:
    """What is wanted: a tail of the clients' latency, at times their rate, and the rate of all other work."""
    names = [pick(random, ("client.p95_ms", "client.p99_ms"))]
    if model.clients[0].rate is None and random.random() < 0.5:
        names.append("client.iops")
    return names + [RATES[work] for work in works_of(model)]


def works_of(model: ClusterModel) -> List[str]:
    return [work for work in RATES if getattr(model, work)]


def space_of(model: ClusterModel, in_force: Settings) -> KnobSpace:
    osd = model.osd
    return space_for(model.release, ["client", *works_of(model)], in_force, shards=osd.shards, kind=osd.kind)


def profiles_of(model: ClusterModel) -> Dict[str, Settings]:
    release = model.release
    whole = space_of(model, completed({}, release))
    others = {name: round(whole.origin[name]) for name in whole.counts}
    return {name: {**nine, **whole.always, **others} for name, nine in release.profiles.items()}


def is_less(metric: str) -> bool:
    return METRICS[metric].lower_is_better


def moved(metric: str, value: float, factor: float) -> float:
    """A bound that is easier by a factor, to four digits."""
    return float(f"{value * factor if is_less(metric) else value / factor:.4g}")


def slo_of(bounds: Mapping[str, float]) -> Slo:
    objectives = (Objective(name, "<=" if is_less(name) else ">=", Bound(value)) for name, value in bounds.items())
    return Slo("tuning", tuple(objectives))


def worst_ratio(slo: Slo, values: Mapping[str, float]) -> float:
    """Factor by which the worst objective is missed; 1 or less where all are met."""
    ratios = [
        values[o.metric] / o.bound.value if o.comparison == "<=" else o.bound.value / values[o.metric]
        for o in slo.objectives
    ]
    return max(ratios)
