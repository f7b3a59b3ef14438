"""Points to choose the next settings from: inside a box, and near those that looked best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

import numpy as np

from ceph_tuner.optimise.contract import Array

CANDIDATES = 1500
"""Of the first round."""

_KEPT, _CHILDREN = 25, 16
_KEEPS_CATEGORY = 0.7
_SPREAD, _NARROWER = 0.3, 0.6
"""Deviation of the first children as a share of the box, and the factor from round to round."""


@dataclass(frozen=True)
class Region:
    """A box in the cube, between `low` and `high`, each of shape (size,)."""

    low: Array
    high: Array
    centre: Array
    categories: Sequence[Sequence[int]] = ()
    """Sides that stand for one categorical setting each: there is nothing between its values."""

    @classmethod
    def around(cls, centre: Array, half: float, categories: Sequence[Sequence[int]] = ()) -> Region:
        """Give the part of the box with this half side that is inside the cube; categories are free in it."""
        low, high = np.clip(centre - half, 0.0, 1.0), np.clip(centre + half, 0.0, 1.0)
        for sides in categories:
            low[list(sides)], high[list(sides)] = 0.0, 1.0
        return cls(low, high, centre, categories)

    def inside(self, points: Array) -> Array:
        """Move points into the box."""
        moved: Array = np.clip(points, self.low, self.high)
        return moved


def candidates(region: Region, trials: Array, generator: np.random.Generator) -> Array:
    """Give points of the box, shape (n, size): some anywhere, most with a few values moved off the centre.

    The values that matter are few and unknown; a point that moves in all of them is far from all that was measured.
    Others lie on lines from the centre to and away from what was tried: little is unknown along these (Kirschner et
    al., arXiv 1902.03229).
    """
    size = len(region.centre)
    anywhere = region.low + (region.high - region.low) * generator.random((CANDIDATES, size))
    share = generator.random((CANDIDATES, 1))
    moved = generator.random((CANDIDATES, size)) < np.maximum(share, 1.0 / size)
    # some of the way as well as all of it: what is safe is mostly near the centre
    reach = generator.random((CANDIDATES, 1))
    scattered = region.centre + np.where(moved, reach * (anywhere - region.centre), 0.0)
    ends = trials[generator.integers(len(trials), size=(CANDIDATES // 4, 2))]
    weights = generator.normal(0.0, 1.0, (CANDIDATES // 4, 2, 1))
    weights[::2, 1] = 0.0
    lines = region.centre + np.sum(weights * (ends - region.centre), axis=1)
    points = np.vstack([scattered, region.inside(lines)])
    for sides in region.categories:
        # each keeps its category, or takes any one
        values = np.eye(len(sides)) if len(sides) > 1 else np.array([[0.0], [1.0]])
        categories = values[generator.integers(len(values), size=len(points))]
        same_category = generator.random((len(points), 1)) < _KEEPS_CATEGORY
        points[:, list(sides)] = np.where(same_category, region.centre[list(sides)], categories)
    return points


def refined(region: Region, points: Array, score: Array, round_number: int, generator: np.random.Generator) -> Array:
    """Give the best points by their score, shape (n,), and children scattered around them, ever nearer."""
    best = points[np.argsort(-score, kind="stable")[:_KEPT]]
    sides = (region.high - region.low) * _SPREAD * _NARROWER**round_number
    steps = generator.standard_normal((len(best), _CHILDREN, points.shape[1])) * sides
    # a child moves all values or a few
    few = generator.random((len(best), _CHILDREN, 1)) < 0.5
    steps = np.where(few & (generator.random(steps.shape) < 0.7), 0.0, steps)
    steps[:, :, [side for sides in region.categories for side in sides]] = 0.0
    return np.vstack([best, region.inside((best[:, None, :] + steps).reshape(-1, points.shape[1]))])
