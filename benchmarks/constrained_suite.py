"""COCO's `bbob-constrained` as problems: every evaluation is noisy, the start is the suite's feasible one.

54 functions are 9 objectives, each with 1, 3, 9, 9 + 3n/4, 9 + 3n/2 and 9 + 9n/2 constraints in n dimensions, of which
a third is inactive at the optimum. Standard deviations are those over uniformly random points of the box.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, Iterator, Sequence

import numpy as np
from search_problem import Problem, noisy
from skopt.space import Real

from ceph_tuner.optimise.contract import Constraint, Settings

THREE_CONSTRAINTS = tuple(range(2, 55, 6))
"""Numbers of the functions with 3 constraints."""
POINTS = 2000
"""Random points from which a standard deviation is taken."""


def problems(
    seeds: Iterable[int],
    functions: Sequence[int] = THREE_CONSTRAINTS,
    dimension: int = 10,
    budget: int = 40,
    noise: float = 0.02,
) -> Iterator[Problem]:
    """A seed is the instance's number, 1 or more; noise is a share of each metric's standard deviation."""
    import cocoex  # only this suite needs it

    chosen = ",".join(map(str, functions))
    for seed in seeds:
        suite = cocoex.Suite(
            "bbob-constrained", f"instances: {seed}", f"dimensions: {dimension} function_indices: {chosen}"
        )
        for place in range(len(suite)):
            yield _problem(suite.get_problem(place), budget, noise)


def _problem(coco: Any, budget: int, noise: float) -> Problem:
    names = [f"x{place}" for place in range(coco.dimension)]
    space = [Real(low, high, name=x) for x, low, high in zip(names, coco.lower_bounds, coco.upper_bounds)]
    constraints = tuple(Constraint(f"g{place}", "<=", 0.0) for place in range(coco.number_of_constraints))
    metrics = ["f", *(constraint.name for constraint in constraints)]

    def values(point: Any) -> Dict[str, float]:
        return dict(zip(metrics, [float(coco(point)), *map(float, coco.constraint(point))]))

    def truth(settings: Settings) -> Dict[str, float]:
        return values(np.array([settings[x] for x in names], float))

    random = np.random.default_rng(POINTS)
    box = random.uniform(coco.lower_bounds, coco.upper_bounds, (POINTS, coco.dimension))
    seen = [values(point) for point in box]
    scale = {metric: float(np.std([value[metric] for value in seen])) for metric in metrics}

    start = dict(zip(names, map(float, coco.initial_solution)))
    name = f"{coco.id} noise {noise:g}"
    return Problem(name, space, start, "f", constraints, noisy(truth, scale, noise), truth, scale, budget)
