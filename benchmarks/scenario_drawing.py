"""From a cluster to a scenario: bounds that hidden settings truly reach, or that nothing does, and what is in force.

A feasible scenario's bounds are what hidden settings truly reach, with some slack; what is in force misses at least one
of them, and so do most settings at random. An infeasible one has a bound beyond what the best that was found reaches,
by a factor, or two bounds of which each can be kept but not both.
"""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple

import numpy as np
from scenario_clusters import log_uniform, pick
from scenario_problem import (
    LOSS,
    Cluster,
    Scenario,
    is_less,
    moved,
    profiles_of,
    slo_of,
    space_of,
    works_of,
    worst_ratio,
)

from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.search.designs import informed_designs
from ceph_tuner.twin.observations import negligible

RANDOM_SETTINGS = 48
"""Drawn uniformly, to see how many of them meet all objectives."""

MOST_RANDOM, LEAST_RANDOM = 0.3, 2 / RANDOM_SETTINGS
"""Share of random settings that meets all objectives of a feasible scenario: else it is trivial, or a needle."""

SLACK = {"ms": (1.05, 1.2), "1/s": (1.05, 1.2), "B/s": (1.05, 1.2)}
"""By the metric's unit: how far a bound is from what the hidden settings truly reach."""

MISSED = 1.1
"""Factor by which what is in force misses a bound at least: less would pass for met in a noisy window."""

BEYOND = 1.3
"""Factor by which an infeasible scenario's best settings miss a bound."""


class Drawing:
    """From a cluster to objectives."""

    def __init__(self, cluster: Cluster, random: np.random.Generator) -> None:
        self._cluster, self._random = cluster, random
        self._asked: List[Dict[str, float]] = []
        model = cluster.model
        self._profiles = profiles_of(model)
        self._space = space_of(model, self._profiles[model.release.default_profile])
        self._drawn = [self._space.decode(point) for point in random.random((RANDOM_SETTINGS, self._space.size))]
        self._designs = [proposal.settings for proposal in informed_designs(self._space, works_of(model))]

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
        truths = [{**t, LOSS: Judge(slo).loss(t)} for t in map(self._truth, self._drawn)]
        spread = {name: max(float(np.std([t[name] for t in truths])), 1e-6) for name in truths[0]}
        reached = min(worst_ratio(slo, truth) for truth in self._asked)
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
            slo = slo_of({name: moved(name, reached[name], slacks[name]) for name in self._cluster.metrics})
            if self._reached(slo, start) >= MISSED and LEAST_RANDOM <= self._share(slo) <= MOST_RANDOM:
                return self._drawn[place], slo
        return None

    def _share(self, slo: Slo) -> float:
        return sum(self._reached(slo, settings) <= 1 for settings in self._drawn) / len(self._drawn)

    def _reached(self, slo: Slo, settings: Settings) -> float:
        return worst_ratio(slo, self._truth(settings))

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
        factor = self._best(slo_of({name: bounds[name]}))
        beyond = BEYOND * log_uniform(self._random, 1.05, 1.5)
        return slo_of({**bounds, name: moved(name, bounds[name], factor / beyond)})

    def _excluding(self, wanted: Slo) -> Optional[Slo]:
        """Two bounds that are each within reach, and the best of all settings misses one of them by far."""
        bounds = {objective.metric: objective.bound.value for objective in wanted.objectives}
        truths = [self._truth(settings) for settings in self._drawn]
        best = {
            name: min(t[name] for t in truths) if is_less(name) else max(t[name] for t in truths) for name in bounds
        }
        pairs = [(one, other) for one in best for other in best if one < other]
        slos = [slo_of({name: moved(name, best[name], 1.03) for name in pair}) for pair in pairs]
        if not slos:
            return None
        slo = max(slos, key=lambda slo: min(worst_ratio(slo, truth) for truth in truths))
        factor = self._best(slo)
        tight = {objective.metric: objective.bound.value for objective in slo.objectives}
        return slo_of({**bounds, **tight}) if factor >= BEYOND else None
