"""What the twin says of settings, quickly enough to be asked about thousands: the prior of a search.

A run of the twin takes some tens of milliseconds, so a design is simulated once and the metrics are emulated between
its points by extremely randomised trees (Geurts et al. 2006). They pass through the points of the design, and of the
emulators that were tried they err least on points that they have not seen (benchmarks/results/search.md).

What serves an SLO best may be a corner of the space, such as no limit and one scrub at a time, in which a design that
fills the space has no point. So where an SLO is named, a part of the design is chosen by the trees themselves.

Glossary
    point    settings as a point of the space's unit cube
    z        log(value + negligible): what is too small to matter counts alike (`twin/observations.py`)
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, Dict, List, Mapping, Optional, Sequence

import numpy as np
from scipy.stats import qmc
from sklearn.ensemble import ExtraTreesRegressor

from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.knobs.releases import CLASSES, Settings
from ceph_tuner.core.measure.metrics import METRICS, work_of
from ceph_tuner.recommend import SearchEffort
from ceph_tuner.recommend.runs import run_length_s
from ceph_tuner.search.designs import informed_designs
from ceph_tuner.search.space import KnobSpace
from ceph_tuner.twin.fit_runs import Runner
from ceph_tuner.twin.forecast import metrics_of
from ceph_tuner.twin.model import ClusterModel
from ceph_tuner.twin.observations import SimulatedRun, negligible
from ceph_tuner.twin.parameters import Array

SEEDS = 2
"""Runs of each point, on the same seeds for all. Where the PGs lie does more to a result than the length of a run."""

EVENTS, SHORTEST_S, SHORTEST_SCRUB_S, LONGEST_S = 4e5, 2.0, 5.0, 40.0
"""Of a run. An OSD throws its coin for a scrub once a second, so that scrubs take some seconds to begin."""

LOCAL_SHARE, LOCAL_REACH = 0.25, 0.15
"""Of the design, the part that lies around the settings in force, and its deviation in each dimension."""

SOUGHT_SHARE, ROUNDS = 1 / 3, 3
"""Of the design, the part that lies where an SLO is served best, and the rounds in which it is chosen."""

ELITES, CANDIDATES = 12, 1000
"""Of each round: the best points so far, and what is bred of them."""

ANEW, NUDGED, NUDGE = 0.1, 0.2, 0.1
"""Chances of each dimension of what is bred: anywhere, as often at an end, and near by, at such a deviation."""

TREES = 100
FEW_TREES = 10
"""That choose a point: others for each, so that points differ as far as the trees do."""

NEVER_S = 30 * 86400.0
"""Times to finish are cut off here: ten years, as samples say of work that stands still, would be all that counts."""

_NOT_SEEN = ("scrub.pgs_late", "snaptrim.queue")
"""Metrics that the twin has nothing to say about."""

_NO_LIMIT = 1.2


class TwinPrior:
    """Implements `ceph_tuner.optimise.Prior`. Same arguments, same predictions."""

    def __init__(
        self,
        model: ClusterModel,
        space: KnobSpace,
        beside: Settings,
        metrics: Sequence[str],
        seed: int,
        designs: int = 192,
        runs: Optional[Runner] = None,
        slo: Optional[Slo] = None,
    ) -> None:
        """Simulate the design: the settings in force, built-in profiles, informed designs, and a Latin hypercube.

        Then what serves `slo` best, where there is one. `beside` is what stays beside a point's settings. Metrics of
        work that the model lacks are left out. `runs` says on how many cores; None: on this one. An interrupt is passed
        on.
        """
        if designs < 1:
            raise ValueError(f"designs(={designs}) must be 1 or more")
        kinds = {work_of(name) for name in metrics_of(model)}
        self.metrics = tuple(name for name in metrics if work_of(name) in kinds and name not in _NOT_SEEN)
        self._model, self._space, self._kept, self._seed = model, space, dict(beside), seed
        shortest = SHORTEST_SCRUB_S if model.scrub else SHORTEST_S
        self._effort = SearchEffort(seed=seed, events=EVENTS, shortest_s=shortest, longest_s=LONGEST_S)
        self._seconds = run_length_s(model, {**self._kept, **space.decode(space.encode({}))}, self._effort)
        self._floors = np.asarray([negligible(name, model) for name in self.metrics])
        sought = round(SOUGHT_SHARE * designs) if slo is not None and self.metrics else 0
        self.points: Array = _design(model, space, designs - sought, seed, sorted(kinds))
        z = self._simulate(self.points, runs)
        self._fit(z)
        random = np.random.default_rng([seed, ROUNDS])
        for part in np.array_split(np.arange(sought), ROUNDS) if sought else ():
            points = self._promising(Judge(slo, self._at_start()), z, len(part), random)
            if len(points):
                z = np.vstack([z, self._simulate(points, runs)])
                self.points = np.vstack([self.points, points])
                self._fit(z)

    def predict(self, points: Any) -> Mapping[str, Array]:
        """Give every metric in its own unit, above 0; points have the shape (n, size), metrics (n,)."""
        return self._plain(self._emulated(np.asarray(points, dtype=float), self._trees))

    def _emulated(self, points: Array, trees: Sequence[Any]) -> Array:
        """Give z by these trees, shape (n, metrics)."""
        features = _features(self._space.columns(points)).astype(np.float32)
        # by the trees themselves: the forest's own `predict` checks and dispatches for longer than it computes
        votes = sum(tree.predict(features) for tree in trees)
        z: Array = np.reshape(votes, (len(features), -1)) / len(trees) * self._spread + self._mean
        return z

    def _plain(self, z: Array) -> Dict[str, Array]:
        """Give metric -> values in its unit, shape (n,)."""
        return {
            name: np.maximum(np.exp(column) - floor, max(floor, 1e-9))
            for name, floor, column in zip(self.metrics, self._floors, z.T)
        }

    def _at_start(self) -> Dict[str, float]:
        """What it says of the settings in force: relative bounds refer to that."""
        return {name: float(value) for name, (value,) in self.predict([self._space.encode({})]).items()}

    def _promising(self, judge: Judge, z: Array, count: int, random: np.random.Generator) -> Array:
        """Points that were not simulated and may have the least loss, shape (count or fewer, size)."""
        best = self.points[np.argsort(self._losses(judge, z), kind="stable")[:ELITES]]
        bred = np.unique(self._space.rounded(_bred(best, random)), axis=0)
        there = {tuple(point) for point in self._space.rounded(self.points).tolist()}
        new = np.asarray([point for point in bred.tolist() if tuple(point) not in there]).reshape(-1, self._space.size)
        chosen: List[int] = []
        for _ in range(min(count, len(new))):
            few = [self._trees[place] for place in random.choice(len(self._trees), FEW_TREES, replace=False)]
            losses = self._losses(judge, self._emulated(new, few))
            losses[chosen] = np.inf
            chosen.append(int(np.argmin(losses)))
        return new[chosen]

    def _losses(self, judge: Judge, z: Array) -> Array:
        """The judge's, shape (n,)."""
        columns = self._plain(z)
        rows = zip(*(values.tolist() for values in columns.values()))
        return np.asarray([judge.loss(dict(zip(columns, row))) for row in rows])

    def _fit(self, z: Array) -> None:
        """One forest for all metrics: asked about thousands of points, each forest costs its time."""
        features = _features(self._space.columns(self.points))
        self._mean, self._spread = z.mean(axis=0), np.maximum(z.std(axis=0), 1e-9)
        forest = ExtraTreesRegressor(TREES, random_state=self._seed)
        forest.fit(features, np.squeeze((z - self._mean) / self._spread, axis=1 if z.shape[1] == 1 else ()))
        self._trees = [tree.tree_ for tree in forest.estimators_]

    def _simulate(self, points: Array, runs: Optional[Runner]) -> Array:
        """Give z, shape (n, metrics): the mean over the seeds."""
        settle = self._seconds * self._effort.settle_share
        jobs = [
            SimulatedRun(
                self._model, settings, self._seconds - settle, settle, self._seed * 1009 + number, self.metrics
            )
            for settings in ({**self._kept, **self._space.decode(point)} for point in points)
            for number in range(SEEDS)
        ]
        with ExitStack() as stack:
            runner = stack.enter_context(Runner(1)) if runs is None else runs
            values = np.asarray(runner(jobs)).reshape(len(points), SEEDS, len(self.metrics))
        for place, name in enumerate(self.metrics):
            if METRICS[name].unit == "s":
                # an interval is absent while nothing is scrubbed, which `simulated` gives as 0
                never = name == "scrub.interval_s"
                values[..., place] = np.where(never & (values[..., place] <= 0), NEVER_S, values[..., place])
                values[..., place] = np.minimum(values[..., place], NEVER_S)
        z: Array = np.log(np.maximum(values + self._floors, 1e-9)).mean(axis=1)
        return z


def _design(model: ClusterModel, space: KnobSpace, count: int, seed: int, kinds: Sequence[str]) -> Array:
    """Points, shape (n, size): those that mean something first, then around the settings in force, then everywhere."""
    origin = np.asarray(space.encode({}))
    points = [space.encode(nine) for nine in model.release.profiles.values()]
    points += [space.encode(proposal.settings) for proposal in informed_designs(space, kinds)]
    anchors = np.unique(np.vstack([origin, *points]), axis=0)
    local = round(LOCAL_SHARE * max(0, count - len(anchors)))
    random = np.random.default_rng(seed)
    around = np.clip(origin + LOCAL_REACH * random.standard_normal((local, space.size)), 0.0, 1.0)
    cube = qmc.LatinHypercube(space.size, seed=random).random(max(0, count - len(anchors) - local))
    return np.vstack([anchors, around, cube])


def _bred(parents: Array, random: np.random.Generator) -> Array:
    """Points of the cube with each dimension of one of two parents, or moved, shape (CANDIDATES, size)."""
    shape = (CANDIDATES, parents.shape[1])
    one, other = parents[random.integers(len(parents), size=(2, CANDIDATES))]
    points = np.where(random.random(shape) < 0.5, one, other)
    chance, anywhere = random.random(shape), random.random(shape)
    nudged = points + NUDGE * random.standard_normal(shape)
    moved = [chance < ANEW, chance < 2 * ANEW, chance < 2 * ANEW + NUDGED]
    bred: Array = np.select(moved, [anywhere, np.rint(anywhere), nudged], points)
    return bred.clip(0.0, 1.0)


def _features(knobs: Mapping[str, Array]) -> Array:
    """What the queue sees of settings, shape (n, features): on the cube itself, much depends on the reservations."""
    columns: List[Array] = []
    logs: List[Array] = []
    for name in CLASSES:
        stem = f"osd_mclock_scheduler_{name}_"
        if stem + "res" in knobs:
            columns += [knobs[stem + "res"], np.where(knobs[stem + "lim"] > 0, knobs[stem + "lim"], _NO_LIMIT)]
            logs.append(np.log(knobs[stem + "wgt"]))
    columns += logs
    columns += [one - other for one, other in zip(logs, logs[1:])]
    counts = (value for name, value in sorted(knobs.items()) if not name.startswith("osd_mclock_scheduler_"))
    return np.stack([*columns, *(np.log(np.maximum(value, 1e-9)) for value in counts)], axis=1)
