"""Models that have seen enough of a known function to know it."""

from __future__ import annotations

from typing import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from ceph_tuner.optimise import Constraint, Measured, MixedSpace, Options
from ceph_tuner.optimise.history import ToldTrial, measured
from ceph_tuner.optimise.model import Model

Functions = Mapping[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]]
"""Metric -> its value at points of the cube, shape (n, size) -> (n,)."""


def learnt(
    space: MixedSpace,
    functions: Functions,
    constraints: Sequence[Constraint] = (),
    options: Options = Options(),  # noqa: B008 - frozen
    count: int = 32,
    error: float = 0.01,
) -> Model:
    points = qmc.Sobol(space.size, seed=1).random(count)
    # at the settings themselves: a category lies at a corner
    points = np.array([space.encode(space.decode(list(point))) for point in points])
    seen = {name: function(points) for name, function in functions.items()}
    trials = [
        ToldTrial(
            space.decode(list(point)), measured({name: Measured(float(v[row]), error) for name, v in seen.items()})
        )
        for row, point in enumerate(points)
    ]
    return Model(space, list(functions), constraints, points[0], options, (), trials)
