"""What to try next: in a box around the best known, among what is safe, what promises most."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ceph_tuner.bayesian.acquisition import log_expected_improvement
from ceph_tuner.bayesian.candidates import Region, candidates, refined, rounded
from ceph_tuner.bayesian.contract import Array, Options, Space
from ceph_tuner.bayesian.margins import risk
from ceph_tuner.bayesian.model import FEASIBLE, Model, View
from ceph_tuner.bayesian.trust_region import half_side

_LARGEST = 0.5
"""Half a side of the largest region where nothing but what was measured is known."""

_REPEATS = 3
"""Times that the best known is measured before it is given up that anything else is safe."""

_ROUNDS, _SHRINKS, _ROUNDED, _EVERYWHERE, _SAME = 6, 5, 50, 2000, 1e-6


@dataclass(frozen=True)
class Step:
    """The next trial, and what there is to know before it."""

    point: Optional[Array]
    """Of the cube; None where nothing is safe."""
    why: str
    safe: float
    """Probability that it is safe."""
    met: bool
    """Whether something tried is surely feasible."""
    gain: float
    """What the trial is expected to gain, as a share of how much the objective varies over the cube."""
    reachable: float
    """The largest probability, anywhere, that every constraint is met."""


@dataclass(frozen=True)
class _Worth:
    """What a trial is worth: what it gains on the incumbent, or, without one, the chance that it becomes one."""

    objective: str
    incumbent: Optional[float]

    def of(self, view: View) -> Array:
        """Logarithm of the worth of points, shape (n,)."""
        if self.incumbent is None:
            return view.log_feasible()
        return log_expected_improvement(*view.metric(self.objective), self.incumbent) + view.log_feasible()

    def of_trials(self, view: View) -> Array:
        """Order what was tried: larger is better."""
        if self.incumbent is None:
            return view.log_feasible()
        met = view.log_feasible() >= math.log(FEASIBLE)
        return np.where(met, -view.metric(self.objective)[0], -np.inf)


def next_step(
    space: Space,
    objective: str,
    model: Model,
    violated: Sequence[bool],
    options: Options,
    suggestions: Mapping[str, Array],
    entropy: Sequence[int],
) -> Step:
    """Find the best safe settings to try.

    `violated` says of each trial whether it broke a constraint; `suggestions` are points to look at wherever the region
    is; `entropy` seeds what is random in the looking.
    """
    view, generator = model.at_trials, np.random.default_rng(entropy)
    met = (view.log_feasible() >= math.log(FEASIBLE)) & ~model.failed
    worth = _Worth(objective, float(np.min(view.metric(objective)[0][met])) if met.any() else None)
    tried = np.where(model.failed, -np.inf, worth.of_trials(view))
    centre = model.points[int(np.argmax(tried))]
    first, largest = options.first_step, min(options.step_limit, _LARGEST)
    if model.has_priors:
        # a prior knows what is far away, and how far it may be trusted is in the deviations
        first = largest = options.step_limit
    half = half_side(_successes(tried), first, largest)
    taken = risk(violated, 1 - options.safe_probability)
    within = {label: u for label, u in suggestions.items() if np.max(np.abs(u - centre)) <= options.step_limit}
    categories = getattr(space, "categories", ())
    point = None
    for shrink in range(_SHRINKS):
        region = Region.around(centre, half * 0.5**shrink, categories)
        point = _best_safe(space, model, region, worth, (taken, options), list(within.values()), generator)
        if point is not None:
            break
    why = "most gain that is expected" if met.any() else "most likely to meet every constraint"
    for label, suggested in within.items():
        if point is not None and np.array_equal(point, suggested):
            why = f"{label}: {why}"
    repeats = int(np.sum(np.all(model.points == centre, axis=1)))
    if point is None and repeats < _REPEATS and not model.failed.all():
        point, why = centre, "the best again: nothing else is safe, as far as is known"
    safe, gain = 0.0, 0.0
    if point is not None:
        here = model.at(point[None, :])
        safe = float(np.exp(np.minimum(here.log_safe(), here.log_no_worse())[0]))
        why = f"{why} (feasible with {100 * float(np.exp(here.log_feasible()[0])):.0f}%)"
        gain = float(np.exp(worth.of(here)[0])) / model.surrogates[objective].scale if met.any() else 0.0
    surely = bool(np.any(view.log_feasible() >= math.log(max(options.safe_probability, FEASIBLE))))
    everywhere = model.at(np.vstack([generator.random((_EVERYWHERE, space.size)), model.points]))
    return Step(point, why, safe, surely, gain, float(np.exp(np.max(everywhere.log_feasible()))))


def _best_safe(
    space: Space,
    model: Model,
    region: Region,
    worth: _Worth,
    taken: Tuple[float, Options],
    suggestions: Sequence[Array],
    generator: np.random.Generator,
) -> Optional[Array]:
    points = np.vstack([candidates(region, model.points, generator), *suggestions])
    for number in range(_ROUNDS + 1):
        view = model.at(points)
        nearly = view.log_safe() + view.log_no_worse()
        # what is not safe is ordered by how nearly it is, below all that is
        score = np.where(view.allowed(*taken), worth.of(view), -1e9 + np.maximum(nearly, -1e6))
        if number < _ROUNDS:
            points = refined(region, points, score, number, generator)
    order = np.argsort(-score, kind="stable")[:_ROUNDED]
    settled = rounded(space, points[order])
    view = model.at(settled)
    apart = np.min(np.max(np.abs(settled[:, None, :] - model.points[None, :, :]), axis=2), axis=1)
    score = np.where(view.allowed(*taken) & (apart > _SAME), worth.of(view), -np.inf)
    best = int(np.argmax(score))
    return settled[best] if np.isfinite(score[best]) else None


def _successes(tried: Array) -> List[bool]:
    """Whether each trial after the first was better than all before it."""
    best = np.maximum.accumulate(tried)
    return [bool(now > before) for before, now in zip(best[:-1], best[1:])]
