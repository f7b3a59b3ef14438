"""Tuning scenarios on the twin, drawn by seed: a cluster, its load, what is in force, and objectives that are missed.

    python benchmarks/scenarios.py --seeds 0-29

A feasible scenario's bounds are what hidden settings truly reach, with some slack; what is in force misses at least one
of them, and so do most settings at random. An infeasible one has a bound beyond what the best that was found reaches,
by a factor, or two bounds of which each can be kept but not both.

Truth is the mean over TRUTH_SEEDS runs of the twin. A measurement is one run on a seed of its own, with noise on top.
What was drawn is kept in the user's cache directory, by the sources that it follows from.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np
from scenario_clusters import drawn_cluster, log_uniform, mistaken, pick
from search_problem import Problem

from ceph_tuner.bayesian.contract import Array, Constraint, Measured
from ceph_tuner.metrics import METRICS
from ceph_tuner.recommendation import Effort
from ceph_tuner.recommendation.runs import run_length_s
from ceph_tuner.releases import Settings
from ceph_tuner.search import space
from ceph_tuner.search.designs import informed_designs
from ceph_tuner.search.space import Space, space_for
from ceph_tuner.slo import Bound, Objective, Slo, evaluate
from ceph_tuner.tuning.twin_prior import TwinPrior, simulated_as_far
from ceph_tuner.twin import kernel
from ceph_tuner.twin.knobs_in_force import completed
from ceph_tuner.twin.model import ClusterModel
from ceph_tuner.twin.observations import Run, negligible
from ceph_tuner.winner import loss

BUDGET = 20
"""Trials, what is in force included."""

LOSS = "loss"
"""The objective's name: `winner.loss` of the means."""

RATES = {"recovery": "recovery.bytes_s", "scrub": "scrub.bytes_s", "snaptrim": "snaptrim.objects_s"}

TRUTH_SEEDS = 3
EVENTS, SHORTEST_S, SHORTEST_SCRUB_S, LONGEST_S = 5e5, 2.0, 5.0, 40.0
"""Of a run."""

RANDOM_SETTINGS = 48
"""Drawn uniformly, to see how many of them meet all objectives."""

DESIGNS = 192
"""Points that the prior simulates."""

MOST_RANDOM, LEAST_RANDOM = 0.3, 2 / RANDOM_SETTINGS
"""Share of random settings that meets all objectives of a feasible scenario: else it is trivial, or a needle."""

SLACK = {"ms": (1.05, 1.2), "1/s": (1.05, 1.2), "B/s": (1.05, 1.2)}
"""By the metric's unit: how far a bound is from what the hidden settings truly reach."""

NOISE = {"ms": (0.05, 0.10), "1/s": (0.03, 0.05), "B/s": (0.03, 0.05)}
"""By the metric's unit: deviation of a measurement's logarithm."""

MISSED = 1.1
"""Factor by which what is in force misses a bound at least: less would pass for met in a noisy window."""

BEYOND = 1.3
"""Factor by which an infeasible scenario's best settings miss a bound."""

HARMLESS = 0.05
"""Share by which a bound that is missed in force may be missed by more without harm."""


@dataclass(frozen=True)
class TuningProblem(Problem):
    """A scenario as the optimisers see it."""

    def unsafe(self, settings: Settings) -> bool:
        """Whether an objective is missed that is met in force, or one that is missed there is missed by more."""
        now, then = self.truth(self.start), self.truth(settings)
        for constraint in self.constraints:
            missed_now = constraint.excess(now[constraint.name]) > 0
            worse = now[constraint.name] * (1 + HARMLESS if constraint.comparison == "<=" else 1 - HARMLESS)
            bound = Constraint(constraint.name, constraint.comparison, worse) if missed_now else constraint
            if bound.excess(then[constraint.name]) > 0:
                return True
        return False


class Cluster:
    """What is true of a drawn cluster under any settings."""

    def __init__(self, seed: int, random: np.random.Generator) -> None:
        self.seed = seed
        self.kind, self.model = drawn_cluster(random)
        self.metrics = tuple(_metrics(self.model, random))
        model = self.model
        shortest = SHORTEST_SCRUB_S if model.scrub else SHORTEST_S
        effort = Effort(events=EVENTS, shortest_s=shortest, longest_s=LONGEST_S)
        self.seconds = run_length_s(model, {}, effort)
        self._known: Dict[str, Dict[str, float]] = {}

    def run(self, settings: Mapping[str, Any], seed: int) -> Dict[str, float]:
        """One window; nothing is below what is negligible, so that everything has a logarithm."""
        job = Run(self.model, dict(settings), 0.7 * self.seconds, 0.3 * self.seconds, seed, self.metrics)
        found = simulated_as_far(job)
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
    def space(self) -> Space:
        return _space(self.cluster.model, self.start)

    @property
    def profiles(self) -> Dict[str, Settings]:
        """The release's own, each with the defaults of the other knobs."""
        return _profiles(self.cluster.model)

    def meets(self, settings: Mapping[str, Any]) -> bool:
        return _worst(self.slo, self.cluster.truth(settings)) <= 1

    def problem(self, capacity_error: float = 1.0) -> TuningProblem:
        """`capacity_error`: by which factor the prior's twin is wrong about the drives, either way."""
        constraints = tuple(
            Constraint(objective.metric, objective.comparison, objective.bound.value)
            for objective in self.slo.objectives
        )
        space: Any = self.space
        return TuningProblem(
            name=self.name, space=space, start=self.start, objective=LOSS, constraints=constraints,
            measure=self.measure, truth=self.truth, scale=self.spread, budget=BUDGET,
            priors=(ScenarioPrior(self, capacity_error),), designs=self.profiles, feasible=self.feasible,
            log_metrics=frozenset(self.cluster.metrics),
        )  # fmt: skip

    def truth(self, settings: Mapping[str, Any]) -> Dict[str, float]:
        """Every metric, and the loss."""
        found = self.cluster.truth(settings)
        return {**found, LOSS: loss(evaluate(self.slo, found))}

    def measure(self, settings: Mapping[str, Any], random: np.random.Generator) -> Dict[str, Measured]:
        """One noisy window of the cluster that the truth is about: its PGs lie where they lie."""
        seen = {}
        for name, value in self.cluster.truth(settings).items():
            deviation = random.uniform(*NOISE[METRICS[name].unit])
            mean = value * float(random.lognormal(0.0, deviation))
            seen[name] = Measured(mean, deviation * mean)
        return {**seen, LOSS: Measured(loss(evaluate(self.slo, {name: entry.mean for name, entry in seen.items()})))}


@dataclass
class ScenarioPrior:
    """The twin of somebody who knows the cluster nearly; simulated when it is first asked."""

    scenario: Scenario
    capacity_error: float = 1.0
    _twin: Optional[TwinPrior] = field(default=None, repr=False)

    @property
    def twin(self) -> TwinPrior:
        if self._twin is None:
            random = np.random.default_rng([self.scenario.cluster.seed, 1])
            capacity = self.capacity_error ** pick(random, (-1, 1))
            model = mistaken(self.scenario.cluster.model, random, capacity)
            self._twin = TwinPrior(
                model, self.scenario.space, {}, self.scenario.cluster.metrics, self.scenario.cluster.seed + 1, DESIGNS
            )
        return self._twin

    def predict(self, points: Array) -> Mapping[str, Array]:
        """Every metric, and the loss."""
        found = dict(self.twin.predict(points))
        rows = zip(*found.values())
        found[LOSS] = np.asarray([loss(evaluate(self.scenario.slo, dict(zip(found, row)))) for row in rows])
        return found


def scenario(seed: int, infeasible: bool = False) -> Scenario:
    """The scenario of a seed. Clusters on which nothing is worth tuning are drawn again."""
    kept = _cache() / f"{seed}{'-infeasible' if infeasible else ''}.json"
    if kept.exists():
        document = json.loads(kept.read_text(encoding="utf-8"))
        return _restored(document, _cluster(seed, document["attempt"]))
    for attempt in range(100):
        found = _Drawing(_cluster(seed, attempt), np.random.default_rng([seed, attempt, 1])).scenario(infeasible)
        if found is not None:
            _keep(kept, found, attempt)
            return found
    raise ValueError(f"seed {seed}: no cluster is worth tuning")


def scenarios(
    seeds: Iterable[int], infeasible: Sequence[bool] = (False, True), capacity_error: float = 1.0
) -> Iterator[Problem]:
    """Problems of each seed: a feasible scenario and an infeasible one."""
    for seed in seeds:
        for kind in infeasible:
            yield scenario(seed, kind).problem(capacity_error)


class _Drawing:
    """From a cluster to objectives."""

    def __init__(self, cluster: Cluster, random: np.random.Generator) -> None:
        self._cluster, self._random = cluster, random
        self._asked: List[Dict[str, float]] = []
        model = cluster.model
        self._profiles = _profiles(model)
        self._space = _space(model, self._profiles[model.release.default_profile])
        self._drawn = [self._space.decode(point) for point in random.random((RANDOM_SETTINGS, self._space.size))]
        self._designs = [proposal.settings for proposal in informed_designs(self._space, _works(model))]

    def scenario(self, infeasible: bool) -> Optional[Scenario]:
        start = self._start()
        found = self._within_reach(start)
        if found is None:
            return None
        hidden, wanted = found
        if not infeasible:
            return self._made(start, wanted, hidden)
        # two bounds that exclude each other are rarer than one that is out of reach, so they are looked for first
        slo = self._excluding(wanted) if self._random.random() < 0.5 else None
        slo = slo or self._out_of_reach(wanted)
        # a search for all objectives finds nothing better than the one for these bounds did
        return self._made(start, slo, None)

    def _truth(self, settings: Settings) -> Dict[str, float]:
        self._asked.append(self._cluster.truth(settings))
        return self._asked[-1]

    def _made(self, start: Settings, slo: Slo, hidden: Optional[Settings]) -> Scenario:
        truths = [{**t, LOSS: loss(evaluate(slo, t))} for t in map(self._truth, self._drawn)]
        spread = {name: max(float(np.std([t[name] for t in truths])), 1e-6) for name in truths[0]}
        reached = min(_worst(slo, truth) for truth in self._asked)
        return Scenario(self._cluster, start, slo, self._share(slo), reached, spread, hidden)

    def _start(self) -> Settings:
        """Mostly the release's default profile, at times another one or somebody's own."""
        names = self._cluster.model.release.default_profile, pick(self._random, list(self._profiles))
        drawn = self._random.random()
        if drawn < 0.15:
            return self._drawn[0]
        return self._space.nearest(self._profiles[names[0] if drawn < 0.6 else names[1]])

    def _within_reach(self, start: Settings) -> Optional[Tuple[Settings, Slo]]:
        """Hidden settings, and objectives that they meet and those in force do not; None where there are none."""
        tails = [name for name in self._cluster.metrics if name.endswith("_ms")]
        usual = {name: float(np.median([self._truth(s)[name] for s in self._drawn])) for name in tails}
        order = self._random.permutation(len(self._drawn))
        slacks = {name: log_uniform(self._random, *SLACK[METRICS[name].unit]) for name in self._cluster.metrics}
        for place in order:
            reached = self._truth(self._drawn[place])
            if any(reached[name] > usual[name] for name in tails):
                continue
            if any(reached[name] < 4 * negligible(name, self._cluster.model) for name in self._cluster.metrics):
                continue
            slo = _slo({name: _moved(name, reached[name], slacks[name]) for name in self._cluster.metrics})
            if self._reached(slo, start) >= MISSED and LEAST_RANDOM <= self._share(slo) <= MOST_RANDOM:
                return self._drawn[place], slo
        return None

    def _share(self, slo: Slo) -> float:
        return sum(self._reached(slo, settings) <= 1 for settings in self._drawn) / len(self._drawn)

    def _reached(self, slo: Slo, settings: Settings) -> float:
        return _worst(slo, self._truth(settings))

    def _best(self, slo: Slo, rounds: int = 3, tries: int = 12) -> float:
        """The best over everything known and, around the best of it, something new."""
        known = [*self._drawn, *self._designs, *self._profiles.values()]
        order = sorted(known, key=lambda settings: self._reached(slo, settings))
        for reach in np.geomspace(0.15, 0.04, rounds):
            centres = [np.asarray(self._space.encode(settings)) for settings in order[:4]]
            for number in range(tries):
                step = reach * self._random.standard_normal(self._space.size)
                order.append(self._space.decode(np.clip(centres[number % 4] + step, 0, 1)))
            order.sort(key=lambda settings: self._reached(slo, settings))
        return self._reached(slo, order[0])

    def _out_of_reach(self, wanted: Slo) -> Slo:
        """One bound is put beyond the best that a search for this metric alone finds."""
        bounds = {objective.metric: objective.bound.value for objective in wanted.objectives}
        name = pick(self._random, list(bounds))
        factor = self._best(_slo({name: bounds[name]}))
        beyond = BEYOND * log_uniform(self._random, 1.05, 1.5)
        return _slo({**bounds, name: _moved(name, bounds[name], factor / beyond)})

    def _excluding(self, wanted: Slo) -> Optional[Slo]:
        """Two bounds that are each within reach, and the best of all settings misses one of them by far."""
        bounds = {objective.metric: objective.bound.value for objective in wanted.objectives}
        truths = [self._truth(settings) for settings in self._drawn]
        best = {name: min(t[name] for t in truths) if _less(name) else max(t[name] for t in truths) for name in bounds}
        pairs = [(one, other) for one in best for other in best if one < other]
        slos = [_slo({name: _moved(name, best[name], 1.03) for name in pair}) for pair in pairs]
        if not slos:
            return None
        slo = max(slos, key=lambda slo: min(_worst(slo, truth) for truth in truths))
        factor = self._best(slo)
        tight = {objective.metric: objective.bound.value for objective in slo.objectives}
        return _slo({**bounds, **tight}) if factor >= BEYOND else None


@lru_cache(maxsize=8)
def _cluster(seed: int, attempt: int) -> Cluster:
    return Cluster(seed, np.random.default_rng([seed, attempt]))


def _metrics(model: ClusterModel, random: np.random.Generator) -> List[str]:
    """What is wanted: a tail of the clients' latency, at times their rate, and the rate of all other work."""
    names = [pick(random, ("client.p95_ms", "client.p99_ms"))]
    if model.clients[0].rate is None and random.random() < 0.5:
        names.append("client.iops")
    return names + [RATES[work] for work in _works(model)]


def _works(model: ClusterModel) -> List[str]:
    return [work for work in RATES if getattr(model, work)]


def _space(model: ClusterModel, in_force: Settings) -> Space:
    return space_for(model.release, ["client", *_works(model)], in_force)


def _profiles(model: ClusterModel) -> Dict[str, Settings]:
    release = model.release
    whole = _space(model, completed({}, release))
    others = {name: round(whole.origin[name]) for name in whole.counts}
    return {name: {**nine, **whole.always, **others} for name, nine in release.profiles.items()}


def _less(metric: str) -> bool:
    return METRICS[metric].lower_is_better


def _moved(metric: str, value: float, factor: float) -> float:
    """A bound that is easier by a factor, to four digits."""
    return float(f"{value * factor if _less(metric) else value / factor:.4g}")


def _slo(bounds: Mapping[str, float]) -> Slo:
    objectives = (Objective(name, "<=" if _less(name) else ">=", Bound(value)) for name, value in bounds.items())
    return Slo("tuning", tuple(objectives))


def _worst(slo: Slo, values: Mapping[str, float]) -> float:
    """Factor by which the worst objective is missed; 1 or less where all are met."""
    ratios = [
        values[o.metric] / o.bound.value if o.comparison == "<=" else o.bound.value / values[o.metric]
        for o in slo.objectives
    ]
    return max(ratios)


def _cache() -> Path:
    here = Path(__file__).parent
    sources = [
        Path(kernel.__file__).parent,
        Path(space.__file__).parent,
        here / "scenarios.py",
        here / "scenario_clusters.py",
    ]
    digest = hashlib.sha256()
    for source in sources:
        for path in sorted(source.glob("*.py")) if source.is_dir() else [source]:
            digest.update(path.read_bytes())
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "ceph-tuner" / "scenarios" / digest.hexdigest()[:16]


def _keep(path: Path, found: Scenario, attempt: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}")
    document = {
        "attempt": attempt, "start": found.start,
        "bounds": {o.metric: o.bound.value for o in found.slo.objectives}, "share": found.share,
        "reached": found.reached, "spread": found.spread, "hidden": found.hidden,
    }  # fmt: skip
    part.write_text(json.dumps(document, indent=1), encoding="utf-8")
    part.replace(path)


def _restored(document: Mapping[str, Any], cluster: Cluster) -> Scenario:
    return Scenario(
        cluster, document["start"], _slo(document["bounds"]), document["share"], document["reached"],
        document["spread"], document["hidden"],
    )  # fmt: skip


def row(found: Scenario) -> str:
    """A scenario as a row of the table."""
    model, device = found.cluster.model, found.cluster.model.osd.device
    (client,) = model.clients
    asked = f"{client.rate:.0f}/s" if client.rate is not None else f"{client.depth} at a time"
    load = [f"{client.block_bytes >> 10} KiB, {client.read_share:.0%} reads, {asked}", *_works(model)]
    met = [name for name, settings in found.profiles.items() if found.meets(settings)]
    cells = [
        found.name, model.release.name, f"{model.osds} {found.cluster.kind}", f"{device.iops:.0f}",
        f"{device.bandwidth_bytes_s / 1e6:.0f}", "; ".join(load), ", ".join(o.text for o in found.slo.objectives),
        f"{found.share:.0%}", f"{found.reached:.2f}", ", ".join(met) or "none",
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


HEAD = (
    "scenario",
    "release",
    "OSDs",
    "IOPS",
    "MB/s",
    "load",
    "objectives",
    "random meet",
    "best misses by",
    "profiles",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seeds", default="0-29", help="such as 0-29 or 3,5")
    parser.add_argument("--kind", choices=("feasible", "infeasible", "both"), default="both")
    arguments = parser.parse_args()
    ends = [part.partition("-") for part in arguments.seeds.split(",")]
    kinds = {"feasible": (False,), "infeasible": (True,), "both": (False, True)}[arguments.kind]
    print("| " + " | ".join(HEAD) + " |\n|" + " --- |" * len(HEAD))
    for first, _, last in ends:
        for seed in range(int(first), int(last or first) + 1):
            for kind in kinds:
                print(row(scenario(seed, kind)), flush=True)


if __name__ == "__main__":
    main()
