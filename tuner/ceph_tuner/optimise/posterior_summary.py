"""What a search has learnt, for people: which settings matter for what, which way, and how the search went.

Symbols
    u      points of the cube in a region; every one is moved to where the settings are that it stands for
    draws  functions that fit what was seen (`paths.py`): what they disagree on is not known yet

Nothing is measured here. Where two metrics depend on the same settings in opposite ways, they are in conflict there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc, sobol_indices

from ceph_tuner.optimise.candidates import Region
from ceph_tuner.optimise.contract import Array, Space
from ceph_tuner.optimise.history import ToldTrial
from ceph_tuner.optimise.model import Model

COVERAGE = 0.9
"""Of the draws, the share that an interval holds."""

_ROWS, _DRAWS = 256, 48
_BACKGROUND, _VALUES = 64, 12


@dataclass(frozen=True)
class Influence:
    """How much of a metric's variation over a region a setting causes: Sobol's indices of the posterior mean.

    The intervals hold the model's uncertainty and that of the sample. A `first` far below `total`: the effect depends
    on other settings.
    """

    name: str
    first: float
    """Alone."""
    total: float
    """Together with all others; sums to more than 1 where settings act together."""
    first_interval: Tuple[float, float]
    total_interval: Tuple[float, float]


@dataclass(frozen=True)
class Importance:
    """A metric's influences, the largest first."""

    metric: str
    deviation: float
    """How much the posterior mean varies over the region, in the model's unit: of the logarithm 0.1 is about 10%."""
    influences: Tuple[Influence, ...]


@dataclass(frozen=True)
class Dependence:
    """A metric at values of one setting, averaged over the others in a region: partial dependence (Friedman 2001)."""

    metric: str
    name: str
    values: Tuple[Any, ...]
    mean: Tuple[float, ...]
    """In the metric's unit; of a metric that is modelled by its logarithm the geometric mean."""
    low: Tuple[float, ...]
    high: Tuple[float, ...]


@dataclass(frozen=True)
class TrialProgress:
    """A trial as it is seen now, with all that was told since."""

    number: int
    """From 1."""
    mean: float
    """Of the objective, in its own unit."""
    low: float
    high: float
    feasible: float
    """Probability that every constraint is met."""
    safe: bool
    """Whether it probably broke nothing that the start keeps, and made nothing worse."""
    failed: Optional[str]
    old: bool
    best: Optional[float]
    """The least objective of this and earlier feasible trials; None before the first."""


def importance(
    model: Model,
    space: Space,
    metrics: Sequence[str],
    names: Sequence[str],
    generator: np.random.Generator,
    region: Optional[Region] = None,
) -> Dict[str, Importance]:
    """Say which settings each metric depends on, over a region or everywhere.

    `names` has one name for each side of the cube; sides of the same name count as one setting.
    """
    if len(names) != space.size:
        raise ValueError(f"names (={len(names)}) must be one for each of {space.size} sides")
    groups = list(dict.fromkeys(names))
    whole = region or Region.around(np.full(space.size, 0.5), 0.5)
    pairs = qmc.Sobol(2 * space.size, seed=generator).random(_ROWS)
    one, other = pairs[:, : space.size], pairs[:, space.size :]
    mixed = [np.where(np.array(names) == group, other, one) for group in groups]
    u = whole.low + (whole.high - whole.low) * np.vstack([one, other, *mixed])
    view = model.at(space.rounded(u))
    by_metric = {}
    for metric in metrics:
        mean = view.metric(metric)[0].reshape(1, -1, _ROWS)
        draws = view.draws(metric, _DRAWS, generator).reshape(_DRAWS, -1, _ROWS)
        # each draw with rows of its own: the spread then holds the sample's chance as well
        rows = generator.integers(_ROWS, size=(_DRAWS, 1, _ROWS))
        values = np.vstack([mean, np.take_along_axis(draws, rows, axis=2)])
        indices = np.clip(_sobol(values), 0.0, 1.0)
        low, high = _ends(indices[:, 1:], indices[:, 0])
        influences = [
            Influence(
                name,
                float(indices[0, 0, place]),
                float(indices[1, 0, place]),
                (float(low[0, place]), float(high[0, place])),
                (float(low[1, place]), float(high[1, place])),
            )
            for place, name in enumerate(groups)
        ]
        ordered = tuple(sorted(influences, key=lambda influence: -influence.total))
        by_metric[metric] = Importance(metric, float(np.std(mean[0, :2])), ordered)
    return by_metric


def _sobol(values: Array) -> Array:
    """Give first and total indices, shape (2, s, groups), of values of shape (s, 2 + groups, rows)."""
    # rounding alone shall not look like an effect
    still = np.std(values[:, :2], axis=(1, 2), keepdims=True) < 1e-9 * (1.0 + np.abs(values[:, :1, :1]))
    values = np.where(still, 0.0, values)
    table = {"f_A": values[:, 0], "f_B": values[:, 1], "f_AB": np.moveaxis(values[:, 2:], 1, 0)}
    indices = sobol_indices(func=table, n=values.shape[2])
    return np.stack([indices.first_order, indices.total_order]).reshape(2, len(values), -1)


def partial_dependence(
    model: Model,
    space: Space,
    metric: str,
    name: str,
    generator: np.random.Generator,
    values: Optional[Sequence[Any]] = None,
    region: Optional[Region] = None,
) -> Dependence:
    """Follow a metric over one setting's values; None: some of those that it takes in the region.

    A value is averaged over those of the others that the space allows beside it. Raises ValueError where none is so.
    """
    whole = region or Region.around(np.full(space.size, 0.5), 0.5)
    sample = whole.low + (whole.high - whole.low) * qmc.Sobol(space.size, seed=generator).random(_BACKGROUND)
    background = space.decode_all(sample)
    if values is None:
        values = _some(settings[name] for settings in background)
    beside = [{**settings, name: value} for value in values for settings in background]
    points = space.encode_all(beside)
    allowed = [_same(stood[name], asked[name]) for stood, asked in zip(space.decode_all(points), beside)]
    owned = np.repeat(np.eye(len(values)), len(background), axis=1)[:, allowed]
    counts = owned.sum(axis=1)
    if not counts.all():
        raise ValueError(f"{name} (={values[int(counts.argmin())]!r}) must be a value of the space")
    view = model.at(points[allowed])
    weights = owned / counts[:, None]
    mean = weights @ view.metric(metric)[0]
    low, high = _ends(view.draws(metric, 2 * _DRAWS, generator) @ weights.T, mean)
    mean, low, high = (model.plain(metric, column) for column in (mean, low, high))
    return Dependence(metric, name, tuple(values), tuple(mean.tolist()), tuple(low.tolist()), tuple(high.tolist()))


def convergence(model: Model, objective: str, trials: Sequence[ToldTrial], least: float = 0.5) -> List[TrialProgress]:
    """Follow a search; trials count as feasible from a probability of `least` on. `trials` are the model's first."""
    view = model.at_trials
    mean, deviation = view.metric(objective)
    reach = float(ndtri(0.5 + COVERAGE / 2)) * deviation
    ends = (mean, mean - reach, mean + reach)
    rows = np.transpose([*(model.plain(objective, values) for values in ends), np.exp(view.log_feasible())])
    safe = view.log_safe() >= math.log(least)
    best: Optional[float] = None
    progress = []
    for number, (trial, (centre, low, high, feasible)) in enumerate(zip(trials, rows.tolist()), 1):
        if trial.failed is None and feasible >= least:
            best = centre if best is None else min(best, centre)
        is_safe = bool(safe[number - 1])
        progress.append(TrialProgress(number, centre, low, high, feasible, is_safe, trial.failed, trial.old, best))
    return progress


def _ends(draws: Array, mean: Array) -> Tuple[Array, Array]:
    """Give the ends that hold COVERAGE of the draws, the known value always among them."""
    axis = draws.ndim - 2
    low, high = np.quantile(draws, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2], axis=axis)
    return np.minimum(low, mean), np.maximum(high, mean)


def _some(items: Iterable[Any]) -> List[Any]:
    """Give a few of the values, from the least to the largest where they have an order."""
    distinct = list(dict.fromkeys(items))
    if not all(isinstance(value, (int, float)) for value in distinct):
        return sorted(distinct, key=str)
    places = np.unique(np.linspace(0, len(distinct) - 1, _VALUES).round().astype(int))
    return [sorted(distinct)[place] for place in places]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return bool(one == other)
