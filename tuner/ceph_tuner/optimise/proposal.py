"""What to try next: in a box around the best known, among what is safe, what promises most."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
from numpy.typing import NDArray

from ceph_tuner.optimise.acquisition import log_expected_improvement
from ceph_tuner.optimise.candidates import Region, candidates, refined
from ceph_tuner.optimise.contract import Array, Expected, Options, Space
from ceph_tuner.optimise.margins import risk
from ceph_tuner.optimise.model import BROKEN, FEASIBLE, Model, ModelView
from ceph_tuner.optimise.trust_region import SMALLEST, half_side

_LARGEST = 0.5
"""Half a side of the largest region where nothing but what was measured is known."""

_LESSONS = 0.5
"""Trials, as a share of the sides of the cube, of which each may be a lesson; later every other one after a success."""

_NOTABLE = 2.0
"""Errors of a measurement, from which an expected gain is worth more than a lesson."""

_REPEATS, LEAST_TRIALS = 3, 10
"""Times that the best known is measured, and trials, before it is given up that anything else is safe."""

_TESTS = 3
"""Settings apart from those in use that are tried before what priors say of all of them counts as tested."""

_AS_GOOD = math.log(0.95)
"""Share of the worth of the best trial that was found, from which a suggestion is tried in its place: it means
something to whoever reads it."""

_BESIDE = 0.01
"""Least distance from what is under way, in the cube."""

_ROUNDS, _SHRINKS, _ROUNDED = 6, 5, 50

_SAME = SMALLEST * 0.5 ** (_SHRINKS - 1)
"""Distance from what was tried up to which settings are the same: half a side of the smallest box."""


@dataclass(frozen=True)
class SearchStep:
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
    feasible: float
    """Probability that the trial meets every constraint."""
    expected: Expected = field(default_factory=dict)
    nearest: Optional[Array] = None
    """Where nothing is safe: the likeliest safe of what was not tried, `safe` being its probability."""
    beside: Optional[Array] = None
    """What was tried that `nearest` lies next to."""


@dataclass(frozen=True)
class _Worth:
    """What a trial is worth: what it gains on the incumbent, or, without one, the chance that it becomes one."""

    objective: str
    incumbent: Optional[float]

    def of(self, view: ModelView) -> Array:
        """Logarithm of the worth of points, shape (n,)."""
        if self.incumbent is None:
            return view.log_feasible()
        return log_expected_improvement(*view.metric(self.objective), self.incumbent) + view.log_feasible()

    def of_trials(self, view: ModelView) -> Array:
        """Order what was tried: larger is better."""
        if self.incumbent is None:
            return view.log_feasible()
        feasible = view.log_feasible() >= math.log(FEASIBLE)
        return np.where(feasible, -view.metric(self.objective)[0], -np.inf)


@dataclass(frozen=True)
class _Safety:
    """What may be tried. What is under way proves nothing: its values are expected, and may come otherwise."""

    model: Model
    measured_model: Model
    risk: float
    options: Options
    success: bool = True
    """Whether a trial that risks more must be likely to succeed."""

    def of(self, view: ModelView) -> ModelView:
        """The points of a view, as what was measured alone sees them."""
        return view if self.measured_model is self.model else self.measured_model.at(view.points)

    def likely(self, view: ModelView) -> Array:
        """Logarithm of the probability that the points of a view are safe, shape (n,)."""
        judged = self.of(view)
        return np.minimum(judged.log_safe(), judged.log_no_worse())

    def allows(self, judged: ModelView) -> Array:
        """Whether the points of a view that `of` gave may be tried, shape (n,)."""
        return judged.allowed(self.risk, self.options, self.success)


class _Lesson:
    """What a trial teaches: it is worth most where the models know least."""

    def of(self, view: ModelView) -> Array:
        """Information about the metrics, shape (n,)."""
        return view.information()


def next_step(
    space: Space,
    objective: str,
    model: Model,
    measured_model: Model,
    violated: Sequence[bool],
    options: Options,
    suggestions: Mapping[str, Array],
    entropy: Sequence[int],
) -> SearchStep:
    """Find the best safe settings to try.

    `model` takes what is under way for measured as expected; `measured_model` has what was
    measured alone, and judges safety.
    `violated` says of each trial whether it broke a constraint; `suggestions` are points to look at wherever the region
    is; `entropy` seeds what is random in the looking.
    """
    view, generator = model.at_trials, np.random.default_rng(entropy)
    met = (view.log_feasible() >= math.log(FEASIBLE)) & ~model.failed
    worth = _Worth(objective, float(np.min(view.metric(objective)[0][met])) if met.any() else None)
    worths = np.where(model.failed, -np.inf, worth.of_trials(view))
    centre = model.points[int(np.argmax(worths))]
    first, largest = options.first_step, min(options.step_limit, _LARGEST)
    if model.has_priors:
        # a prior knows what is far away, and how far it may be trusted is in the deviations
        first = largest = options.step_limit
    half = half_side(_successes(worths, _expected_to_gain(model, worth, worths)), first, largest)
    safety = _Safety(model, measured_model, risk(violated, 1 - options.safe_probability), options)
    within = {label: u for label, u in suggestions.items() if np.max(np.abs(u - centre)) <= options.step_limit}

    def lesson(judged: _Safety = safety) -> Optional[Array]:
        region = _around_safest(space, model, centre, max(half, first), options.step_limit)
        return _best_safe(space, judged, region, _Lesson(), [], generator)

    point = None
    for shrink in range(_SHRINKS):
        region = _box(space, centre, half * 0.5**shrink, options.step_limit)
        point = _best_safe(space, safety, region, worth, list(within.values()), generator)
        if point is not None:
            break
    why = "most gain that is expected" if met.any() else "most likely to meet every constraint"
    instead = None if point is None else _as_good(safety, worth, point, list(within.values()))
    if instead is not None:
        point, why = instead, f"within 5% of the {why}"
    gain = _gain(model, worth, point) if met.any() else 0.0
    # at the edge of what is safe nothing is learnt any more, and what was learnt there may have been noise
    stuck = _failures(worths) % 2 == 1 or len(worths) <= _LESSONS * space.size
    if met.any() and not model.has_priors and stuck and gain < _NOTABLE * model.surrogates[objective].error:
        taught = lesson()
        if taught is not None:
            point, why = taught, "most to be learnt"
    for label, suggested in within.items():
        if point is not None and np.array_equal(point, suggested):
            why = f"{label}: {why}"
    if point is None:
        # what promises most is nowhere safe: what is learnt around the safest may show that more is
        point = lesson()
        why = "most to be learnt: what promises more is not known to be safe"
    if point is None and model.has_priors and _untested(model) and not any(violated):
        # all hope is what the priors say, and measuring the same again tells nothing of them
        point = lesson(replace(safety, success=False))
        why = "to see whether what is believed of settings apart from these is so"
    if point is None:
        point, why = (
            _repeat(space, worth, safety, centre, half, generator),
            "again, to know it better: nothing else is known to be safe",
        )
    safe, feasible = 0.0, 0.0
    expected: Expected = {}
    if point is not None:
        at_point = model.at(point[None, :])
        safe = float(np.exp(safety.likely(at_point)[0]))
        feasible = float(np.exp(at_point.log_feasible()[0]))
        expected = at_point.intervals()
        why = f"{why} (feasible with {100 * feasible:.0f}%)"
    nearest = None
    if point is None:
        region = _box(space, centre, half, options.step_limit)
        nearest, safe = _nearest_unknown(space, safety, region, generator)
    gain /= model.surrogates[objective].scale
    surely = bool(np.any(view.log_feasible() >= math.log(max(options.safe_probability, FEASIBLE))))
    return SearchStep(point, why, safe, surely, gain, feasible, expected, nearest, centre)


def _nearest_unknown(
    space: Space, safety: _Safety, region: Region, generator: np.random.Generator
) -> Tuple[Optional[Array], float]:
    """Give what is likeliest safe around a tried point, apart from all that was tried, and how likely it is.

    None where there is no such.
    """
    nearby = space.rounded(candidates(region, safety.model.points, generator))
    new = _apart(nearby, safety.model.points, _BESIDE)
    likely = np.where(new, safety.likely(safety.model.at(nearby)), -np.inf)
    best = int(np.argmax(likely))
    return (nearby[best], float(np.exp(likely[best]))) if np.isfinite(likely[best]) else (None, 0.0)


def _best_safe(
    space: Space,
    safety: _Safety,
    region: Region,
    worth: Union[_Worth, _Lesson],
    suggestions: Sequence[Array],
    generator: np.random.Generator,
) -> Optional[Array]:
    model = safety.model
    points = np.vstack([candidates(region, model.points, generator), *suggestions])
    for number in range(_ROUNDS):
        points = refined(region, points, _score(model.at(points), worth, safety), number, generator)
    order = np.argsort(-_score(model.at(points), worth, safety), kind="stable")[:_ROUNDED]
    rounded_points = space.rounded(points[order])
    score = _worth_trying(safety, worth, rounded_points)
    best = int(np.argmax(score))
    return rounded_points[best] if np.isfinite(score[best]) else None


def _as_good(safety: _Safety, worth: _Worth, point: Array, suggestions: Sequence[Array]) -> Optional[Array]:
    """Give the first suggestion that is worth as much as a point, within a little; None where that is the point."""
    score = _worth_trying(safety, worth, np.vstack([point, *suggestions]))
    first = next((each for each, its in zip(suggestions, score[1:]) if its >= score[0] + _AS_GOOD), point)
    return None if np.array_equal(first, point) else first


def _worth_trying(safety: _Safety, worth: Union[_Worth, _Lesson], points: Array) -> Array:
    """Worth of points of the space, shape (n,); -inf for what is not safe, and for what was tried or is under way."""
    tried, under_way = np.split(safety.model.points, [len(safety.measured_model.points)])
    view = safety.model.at(points)
    # what is nearly the same as what is under way would say nothing new
    new = np.logical_and(_apart(points, tried, _SAME), _apart(points, under_way, _BESIDE))
    return np.where(np.logical_and(safety.allows(safety.of(view)), new), worth.of(view), -np.inf)


def _apart(points: Array, others: Array, least: float) -> Array:
    """Whether points lie further than that from all the others, in some dimension, shape (n,)."""
    far: Array = np.all(np.max(np.abs(points[:, None, :] - others[None, :, :]), axis=2) > least, axis=1)
    return far


def _box(space: Space, centre: Array, half: float, step_limit: float) -> Region:
    """Give the box with this half side, and one step of each whole number where a trial may go as far.

    There is nothing between two of them, as there is not between categories: a smaller box would leave such a setting
    out of the search.
    """
    box = Region.around(centre, half, getattr(space, "categories", ()))
    steps = getattr(space, "steps", None)
    if steps is None:
        return box
    low, high = steps(centre)
    low = np.where(centre - low <= step_limit, np.minimum(box.low, low), box.low)
    high = np.where(high - centre <= step_limit, np.maximum(box.high, high), box.high)
    return Region(low, high, centre, box.categories)


def _around_safest(space: Space, model: Model, centre: Array, half: float, step_limit: float) -> Region:
    """Give the box around the safest that was tried within a step of the centre, as far as a step leads."""
    safest = _safest(model, centre, step_limit)
    box, limit = _box(space, safest, half, step_limit), _box(space, centre, step_limit, step_limit)
    return Region(np.maximum(box.low, limit.low), np.minimum(box.high, limit.high), safest, box.categories)


def _safest(model: Model, centre: Array, step_limit: float) -> Array:
    """Give the safest that was tried within a step of the centre."""
    view = model.at_trials
    near = np.max(np.abs(model.points - centre), axis=1) <= step_limit
    safety = np.where(near & ~model.failed, view.log_safe() + view.log_no_worse(), -np.inf)
    safest: Array = model.points[int(np.argmax(safety))]
    return safest


def _untested(model: Model) -> bool:
    """Whether what is in use was measured often enough, and little beside it."""
    in_use = np.all(model.points == model.start, axis=1)
    return int(np.sum(in_use)) >= _REPEATS and len(np.unique(model.points[~in_use], axis=0)) < _TESTS


def _repeat(
    space: Space, worth: _Worth, safety: _Safety, centre: Array, half: float, generator: np.random.Generator
) -> Optional[Array]:
    """Give what was tried and is measured once more.

    It is what would help most by as many measurements as there were trials: the best, the safest or what is in use.
    Where none would, it is the best, or what is in use where that may not be tried; None where that was done often
    enough. What is in use harms nobody more for being measured.
    """
    model, limit = safety.model, safety.options.step_limit
    best = int(np.argmax(np.all(model.points == centre, axis=1)))
    # without a prior the best lies where safety ends, and to know it better is what moves that
    view = model.at_trials
    may = safety.allows(safety.of(view)) if model.has_priors else safety.likely(view) >= math.log(BROKEN)
    point = centre if may[best] and not model.failed[best] else model.start
    if worth.incumbent is not None:
        safest = _safest(model, centre, limit)
        nearby = [candidates(_box(space, each, half, limit), model.points, generator) for each in (centre, safest)]
        others = model.points[may & ~model.failed & np.all(model.points == safest, axis=1)]
        places = np.unique(np.vstack([point, model.start, others]), axis=0)
        gains = _gains_after_repeats(safety, worth, places, space.rounded(np.vstack(nearby)))
        if np.max(gains) >= safety.options.least_gain * model.surrogates[worth.objective].scale:
            chosen: Array = places[int(np.argmax(gains))]
            return chosen
    repeats = int(np.sum(np.all(model.points == point, axis=1)))
    return point if repeats < _REPEATS or len(model.points) < LEAST_TRIALS else None


def _gains_after_repeats(safety: _Safety, worth: _Worth, places: Array, nearby: Array) -> Array:
    """Give the largest gain safe nearby once a place is measured as often as there were trials, shape (places,)."""
    count = len(safety.measured_model.points)
    new = np.concatenate([np.full(len(places), False), _apart(nearby, safety.model.points, _SAME)])
    view = safety.of(safety.model.at(np.vstack([places, nearby])))
    gains = []
    for row in range(len(places)):
        later = view.after_repeats(row, count)
        gains.append(float(np.max(np.where(new & safety.allows(later), np.exp(worth.of(later)), 0.0))))
    return np.array(gains)


def _gain(model: Model, worth: _Worth, point: Optional[Array]) -> float:
    """Expected gain of a trial, in the objective's unit."""
    return 0.0 if point is None else float(np.exp(worth.of(model.at(point[None, :]))[0]))


def _failures(worths: Array) -> int:
    """How many trials it is since one was better than all before it."""
    return len(worths) - 1 - int(np.argmax(worths))


def _score(view: ModelView, worth: Union[_Worth, _Lesson], safety: _Safety) -> Array:
    """Order points: what is not safe by how nearly it is, below all that is."""
    judged = safety.of(view)
    nearly = judged.log_safe() + judged.log_no_worse()
    return np.where(safety.allows(judged), worth.of(view), -1e9 + np.maximum(nearly, -1e6))


def _expected_to_gain(model: Model, worth: _Worth, worths: Array) -> NDArray[np.bool_]:
    """Whether each trial was to be better than all before it by more than an error of measurement, shape (trials,).

    A repeat, one that was made for what it teaches, and one whose gain nobody could have seen, are no failures of the
    region for gaining nothing.
    """
    repeated = [bool(np.any(np.all(model.points[:row] == point, axis=1))) for row, point in enumerate(model.points)]
    expected = model.expected(worth.objective)
    modest = np.zeros(len(worths), dtype=bool)
    if worth.incumbent is not None:
        before = np.maximum.accumulate(np.concatenate([[-np.inf], worths[:-1]]))
        modest = -expected <= before + model.surrogates[worth.objective].error
    return ~(np.array(repeated) | modest)


def _successes(worths: Array, promised: NDArray[np.bool_]) -> List[bool]:
    """Whether each trial after the first was better than all before it; without those that were not and need not be."""
    best = np.maximum.accumulate(worths)
    gained = best[1:] > best[:-1]
    return [bool(gain) for gain, promise in zip(gained, promised[1:]) if gain or promise]
