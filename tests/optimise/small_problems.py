"""Problems small enough to be seen through, with their truth beside what a measurement shows of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Tuple

import numpy as np
from skopt.space import Categorical, Integer, Real

from ceph_tuner.optimise import Constraint, MixedSpace, Options, Proposal, SafeOptimiser, Settings


@dataclass(frozen=True)
class SmallProblem:
    """What is minimised is always `cost`."""

    space: MixedSpace
    constraints: Tuple[Constraint, ...]
    start: Settings
    truth: Callable[[Settings], Dict[str, float]]
    noise: float = 0.0

    def search(self, seed: int = 1, **further: Any) -> SafeOptimiser:
        return SafeOptimiser(self.space, "cost", self.constraints, self.start, seed=seed, **further)

    def measure(self, settings: Settings, random: np.random.Generator) -> Dict[str, float]:
        return {name: value + self.noise * random.standard_normal() for name, value in self.truth(settings).items()}

    def excess(self, settings: Mapping[str, Any]) -> float:
        """The largest true excess over a bound; 0 or less where every constraint holds."""
        values = self.truth(dict(settings))
        return max(constraint.excess(values[constraint.name]) for constraint in self.constraints)


def played(search: SafeOptimiser, problem: SmallProblem, trials: int, seed: int = 0) -> List[Proposal]:
    """Ask, measure and tell, until nothing more is asked."""
    random, asked = np.random.default_rng(seed), []
    for _ in range(trials):
        for proposal in search.ask():
            asked.append(proposal)
            search.tell(proposal.settings, problem.measure(proposal.settings, random))
    return asked


def _square(names: str = "ab") -> MixedSpace:
    return MixedSpace([Real(0.0, 1.0, name=name) for name in names])


def _bowl(settings: Settings) -> Dict[str, float]:
    a, b = settings["a"], settings["b"]
    return {"cost": (a - 0.8) ** 2 + (b - 0.3) ** 2, "heat": 1.5 * a + 0.5 * b}


BOWL = SmallProblem(_square(), (Constraint("heat", "<=", 1.1),), {"a": 0.3, "b": 0.6}, _bowl, noise=0.005)
"""The best without the constraint is too hot; 0.04 of cost is left where it just holds."""

HOT = SmallProblem(_square(), (Constraint("heat", "<=", 0.8),), {"a": 0.7, "b": 0.6}, _bowl, noise=0.005)
"""The start is too hot."""


def _mixed(settings: Settings) -> Dict[str, float]:
    queue = {"wpq": 0.6, "mclock": 0.0, "none": 0.9}[settings["queue"]]
    weight = np.log2(settings["weight"])
    return {
        "cost": queue + 0.1 * (weight - 4) ** 2 + settings["share"],
        "served": 10 * settings["share"] + 0.5 * weight - queue,
    }


MIXED = SmallProblem(
    MixedSpace(
        [
            Categorical(["wpq", "mclock", "none"], name="queue"),
            Integer(1, 64, prior="log-uniform", name="weight"),
            Real(0.0, 1.0, name="share"),
        ]
    ),
    (Constraint("served", ">=", 4.0),),
    {"queue": "wpq", "weight": 2, "share": 0.8},
    _mixed,
    noise=0.01,
)


def waves(seed: int) -> SmallProblem:
    """Slow random waves in three dimensions: the start keeps both constraints by a third of their spread."""
    random, names = np.random.default_rng(seed), "abc"
    slopes, phases = random.normal(0.0, 1.5, (3, 5, 3)), random.uniform(0, 2 * np.pi, (3, 5))
    start = {name: float(u) for name, u in zip(names, random.uniform(0.2, 0.8, 3))}

    def values(settings: Settings) -> np.ndarray:
        point = np.array([settings[name] for name in names])
        found: np.ndarray = np.sin(slopes @ point + phases).sum(axis=1) / np.sqrt(2.5)
        return found

    bounds = values(start) + 0.33

    def truth(settings: Settings) -> Dict[str, float]:
        return dict(zip(("cost", "heat", "wait"), map(float, values(settings))))

    constraints = (Constraint("heat", "<=", float(bounds[1])), Constraint("wait", "<=", float(bounds[2])))
    return SmallProblem(_square(names), constraints, start, truth, noise=0.02)


BOLD = Options(first_step=0.5)
"""The first step is as far as any."""
