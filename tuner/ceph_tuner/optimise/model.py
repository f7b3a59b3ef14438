"""What the trials say about every metric, and the probabilities that follow.

Each metric is modelled in a unit of its own: logarithms where the options say so, the metric's unit otherwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Collection, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ceph_tuner.optimise.acquisition import log_feasibility
from ceph_tuner.optimise.contract import Array, Constraint, Options, Prior, Settings, Space
from ceph_tuner.optimise.history import ToldTrial, logarithms
from ceph_tuner.optimise.margins import doubt, inflation
from ceph_tuner.optimise.surrogate import Data, Surrogate, robust_fit

FEASIBLE = 0.5
"""Probability from which what was tried counts as feasible, for what is to be bettered."""

BROKEN = 0.5
"""Probability of having been safe below which a trial counts as a violation."""

_ODDS = 1.0
"""How much likelier than to make worse what is bad already a trial must be to mend everything."""

_NEAR_FAILURE = 0.15
"""Distance in the cube over which a failed trial makes its neighbours suspect."""

_SUSPECT = 0.35
"""The same, at most, as a share of the distance to the nearest trial that went well."""

_PRIOR_POINTS = 256
"""Points at which it is seen how much the priors say that a metric varies."""

_WITHIN = 1.96
"""Deviations on either side within which 95% are."""

_FREEDOM = 6.0
"""Degrees of freedom of Student's t of what is not known about safety: a model's errors have longer tails than its own
deviations, where trials are few and their places were chosen for looking good."""

_MARGINS = 2.0
"""How much a constraint varies over the cube where nothing is known, in margins of the start."""


@dataclass(frozen=True)
class Bounds:
    """A constraint in its model's unit: `goal` is what is wanted, `hold` what no trial may be worse than."""

    name: str
    sign: float
    goal: float
    hold: float

    @property
    def kept(self) -> bool:
        """Whether it holds now, so that a trial must not break it."""
        return self.goal == self.hold


def _encoded(space: Space, settings: Sequence[Settings]) -> Array:
    """Give the point of each, shape (n, size); those of an earlier search may have other names."""
    if len({frozenset(each) for each in settings}) == 1:
        return space.encode_all(settings)
    return np.array([space.encode(each) for each in settings], dtype=float).reshape(-1, space.size)


class Model:
    """Surrogates of the objective and of all constrained metrics. `start` is a point of the cube."""

    def __init__(
        self,
        space: Space,
        metrics: Sequence[str],
        constraints: Sequence[Constraint],
        start: Array,
        options: Options,
        priors: Sequence[Prior],
        trials: Sequence[ToldTrial],
        doubted: Collection[str] = (),
    ) -> None:
        """`doubted`: metrics of which the priors are as little believed as `Surrogate` can."""
        self._options, self._priors, self._start, self._trials = options, priors, start, trials
        self.points = _encoded(space, [trial.settings for trial in trials])
        self._failures = self.points[[trial.failed is not None for trial in trials]]
        well = self.points[[trial.failed is None for trial in trials]]
        # what is nearer to settings that went well than to those that failed is not suspect
        reach = [
            _SUSPECT * float(np.min(np.linalg.norm(well - point, axis=1), initial=1.0)) for point in self._failures
        ]
        self._suspect = np.clip(np.array(reach), 1e-3, _NEAR_FAILURE)
        # settings that failed once are out, however often they went well
        self.failed = np.array([bool((self._failures == point).all(axis=1).any()) for point in self.points], dtype=bool)
        self._prior_at_start = [prior.predict(start[None, :]) for prior in priors]
        # the first rows are the trials: one call of each prior for all of them
        cube = np.random.default_rng(0).random((_PRIOR_POINTS if priors else 0, space.size))
        beforehand = self.prior(np.vstack([self.points, cube]))
        self.surrogates: Dict[str, Surrogate] = {}
        self._inflation: Dict[str, float] = {}
        for name in metrics:
            rows, means, errors = self._measurements(name)
            columns = [np.asarray(table[name]) for table in beforehand if name in table]
            spread = float(np.mean([column[len(trials) :].std() for column in columns])) if columns else 0.0
            own = [constraint.bound for constraint in constraints if constraint.name == name]
            tried = self.points[rows]
            usual = self._scale_beforehand(name, own, means[np.all(tried == tried[0], axis=1)])
            data = Data(self._inputs(tried, [column[rows] for column in columns]), space.size, means, errors)
            surrogate = robust_fit(data, usual, spread or None, name in doubted)
            self.surrogates[name] = surrogate
            error_of = dict(zip(rows, surrogate.errors))
            self._inflation[name] = inflation(surrogate.surprises) * doubt(self._forecast_errors(name, error_of))
        self._at_trials: Optional[ModelView] = None
        at_start = self.at(start[None, :])
        self.bounds = [self._bounds(constraint, at_start) for constraint in constraints]
        self.broken = np.minimum(self.at_trials.log_safe(), self.at_trials.log_no_worse()) < math.log(BROKEN)
        """Whether each trial did worse than may be, as it is seen now, shape (trials,)."""
        surely = max(options.safe_probability, FEASIBLE)
        if np.any(self.at_trials.log_feasible()[~self.failed] >= math.log(surely)):
            # there are settings that keep everything: from now on nothing less may be tried
            self.bounds = [replace(bounds, hold=bounds.goal) for bounds in self.bounds]

    @property
    def start(self) -> Array:
        """What is in use, as a point of the cube, shape (size,)."""
        return self._start

    @property
    def has_priors(self) -> bool:
        """Whether something was believed before anything was measured."""
        return bool(self._priors)

    def at(self, points: Array) -> ModelView:
        """Look at points of the cube, shape (n, size)."""
        return ModelView(self, points)

    @property
    def at_trials(self) -> ModelView:
        """Look at what was tried."""
        if self._at_trials is None:
            self._at_trials = self.at(self.points)
        return self._at_trials

    def expected(self, name: str) -> Array:
        """Give what was expected of each trial beforehand, in the model's unit; NaN: nothing, shape (trials,)."""
        middles = [trial.expected[name][0] if name in trial.expected else math.nan for trial in self._trials]
        return self._unit(name, np.array(middles))

    def predict(self, name: str, points: Array, beforehand: List[Mapping[str, Array]]) -> Tuple[Array, Array]:
        """Give mean and calibrated deviation of a metric in its model's unit, each of shape (n,)."""
        inputs = self._inputs_of(name, points, beforehand)
        mean, deviation = self.surrogates[name].predict(inputs)
        return mean, self._inflation[name] * deviation

    def covariance(self, name: str, points: Array, beforehand: List[Mapping[str, Array]], row: int) -> Array:
        """Give the calibrated covariance of a metric with that at one of the points, shape (n,)."""
        inputs = self._inputs_of(name, points, beforehand)
        return self._inflation[name] ** 2 * self.surrogates[name].covariance(inputs, inputs[row : row + 1])

    def draws(
        self,
        name: str,
        points: Array,
        beforehand: List[Mapping[str, Array]],
        count: int,
        generator: np.random.Generator,
    ) -> Array:
        """Give a metric by functions that fit what was seen, as far apart as `predict` says, shape (count, n)."""
        inputs = self._inputs_of(name, points, beforehand)
        surrogate = self.surrogates[name]
        away = surrogate.departures(inputs, count, generator)
        values: Array = surrogate.predict(inputs)[0] + self._inflation[name] * away
        return values

    def is_log(self, name: str) -> bool:
        """Whether a metric's unit in its model is the logarithm."""
        return name in self._options.log_metrics

    def plain(self, name: str, values: Array) -> Array:
        """Translate a metric from its model's unit to its own."""
        return np.exp(np.minimum(values, 700.0)) if self.is_log(name) else values

    def log_no_failure(self, points: Array) -> Array:
        """Logarithm of the probability that a trial does not fail, shape (n,)."""
        squared = np.sum((points[:, None, :] - self._failures[None, :, :]) ** 2, axis=2)
        near = np.exp(-0.5 * squared / self._suspect**2)
        healthy: Array = np.sum(np.log1p(-np.minimum(near, 1 - 1e-9)), axis=1)
        return healthy

    def prior(self, points: Array) -> List[Mapping[str, Array]]:
        """Ask each prior about points: how far from what it says about the start, in the models' units."""
        return [
            {name: self._unit(name, values) - self._unit(name, start[name]) for name, values in predicted.items()}
            for predicted, start in zip((prior.predict(points) for prior in self._priors), self._prior_at_start)
        ]

    def _inputs_of(self, name: str, points: Array, beforehand: List[Mapping[str, Array]]) -> Array:
        return self._inputs(points, [table[name] for table in beforehand if name in table])

    def _inputs(self, points: Array, columns: List[Array]) -> Array:
        return np.hstack([points - self._start, *(column[:, None] for column in columns)])

    def _unit(self, name: str, values: Array) -> Array:
        return np.log(np.maximum(values, 1e-12)) if self.is_log(name) else np.asarray(values, dtype=float)

    def _bounds(self, constraint: Constraint, at_start: ModelView) -> Bounds:
        sign = 1.0 if constraint.comparison == "<=" else -1.0
        logs = self.is_log(constraint.name)
        goal = constraint.bound
        if logs:
            goal = math.log(goal) if goal > 0 else -1e3
        now = float(at_start.metric(constraint.name)[0][0])
        if sign * (now - goal) <= 0:
            return Bounds(constraint.name, sign, goal, goal)
        tolerance = self._options.tolerance
        slack = math.log1p(tolerance) if logs else tolerance * self.surrogates[constraint.name].scale
        return Bounds(constraint.name, sign, goal, now + sign * slack)

    def _measurements(self, name: str) -> Tuple[List[int], Array, Array]:
        """Give the rows of the trials that saw a metric, its means and their errors."""
        rows_of_metric = []
        for row, trial in enumerate(self._trials):
            value = trial.values.get(name)
            entry = None if value is None else (value.mean, value.error)
            if value is not None and self.is_log(name):
                entry = logarithms(value)
            if entry is not None:
                rows_of_metric.append((row, *entry))
        if not rows_of_metric:
            raise ValueError(f"{name} was not seen in any trial")
        rows, means, errors = zip(*rows_of_metric)
        return list(rows), np.array(means), np.array(errors)

    def _forecast_errors(self, name: str, error_of: Mapping[int, float]) -> Array:
        """Give what trials gave less what was expected of them, in the deviations that were stated."""
        errors = []
        for row, trial in enumerate(self._trials):
            value, interval = trial.values.get(name), trial.expected.get(name)
            if value is None or interval is None or trial.failed is not None or row not in error_of:
                continue
            seen, middle, low, high = self._unit(name, np.array([value.mean, *interval]))
            errors.append((seen - middle) / math.hypot((high - low) / (2 * _WITHIN), error_of[row]))
        return np.array(errors)

    def _scale_beforehand(self, name: str, bounds: List[float], first: Array) -> Optional[float]:
        """Give what is believed of a metric before it was seen to vary; `first`: measurements of the first settings."""
        if not bounds:
            return None
        return 1.0 if self.is_log(name) else _MARGINS * max(abs(bounds[0] - float(np.mean(first))), 1e-9)


class ModelView:
    """The model at some points, each metric and each bound asked for once."""

    def __init__(self, model: Model, points: Array, beforehand: Optional[List[Mapping[str, Array]]] = None) -> None:
        """`beforehand`: what the priors say of the points, where they were asked already."""
        self.points = points
        self._model = model
        self._beforehand = model.prior(points) if beforehand is None else beforehand
        self._known: Dict[str, Tuple[Array, Array]] = {}
        self._met: Dict[Tuple[Bounds, float, Optional[float]], Array] = {}

    def metric(self, name: str) -> Tuple[Array, Array]:
        """Give mean and deviation, each of shape (n,)."""
        if name not in self._known:
            self._known[name] = self._model.predict(name, self.points, self._beforehand)
        return self._known[name]

    def difference(self, name: str, row: int) -> Array:
        """Give the deviation of how far a metric differs from that at one of the points, shape (n,).

        What is not known of both alike, as the level that they share, is not known to differ.
        """
        deviation, covariance = self.metric(name)[1], self._covariance(name, row)
        apart: Array = np.sqrt(np.maximum(deviation**2 + deviation[row] ** 2 - 2 * covariance, 0.0))
        return apart

    def after_repeats(self, row: int, count: int) -> ModelView:
        """Look at the points as after so many more measurements of one of them, if these give what is expected."""
        later = ModelView(self._model, self.points, self._beforehand)
        for name, surrogate in self._model.surrogates.items():
            mean, deviation = self.metric(name)
            learnt = self._covariance(name, row) ** 2 / (deviation[row] ** 2 + surrogate.error**2 / count)
            later._known[name] = (mean, np.sqrt(np.maximum(deviation**2 - learnt, 1e-12 * surrogate.scale**2)))
        return later

    def _covariance(self, name: str, row: int) -> Array:
        return self._model.covariance(name, self.points, self._beforehand, row)

    def intervals(self) -> Dict[str, Tuple[float, float, float]]:
        """Give the middle of each metric at the first point, and the ends of its 95%, in the metric's own unit."""
        intervals = {}
        for name in self._model.surrogates:
            mean, deviation = (float(values[0]) for values in self.metric(name))
            places = np.array([mean, mean - _WITHIN * deviation, mean + _WITHIN * deviation])
            middle, low, high = self._model.plain(name, places)
            intervals[name] = (float(middle), float(low), float(high))
        return intervals

    def draws(self, name: str, count: int, generator: np.random.Generator) -> Array:
        """Give a metric by functions that fit what was seen, shape (count, n)."""
        return self._model.draws(name, self.points, self._beforehand, count, generator)

    def log_meets(self) -> Array:
        """Logarithm of the probability that each constraint is met, shape (constraints, n)."""
        return np.array([self._log_meets(bounds, bounds.goal) for bounds in self._model.bounds]).reshape(
            -1, len(self.points)
        )

    def log_feasible(self) -> Array:
        """Logarithm of the probability that every constraint is met, shape (n,)."""
        return self._log_all([(bounds, bounds.goal) for bounds in self._model.bounds])

    def information(self) -> Array:
        """What a measurement would say of all metrics, in nats, shape (n,)."""
        each = [
            np.log1p((self.metric(name)[1] / surrogate.error) ** 2)
            for name, surrogate in self._model.surrogates.items()
        ]
        total: Array = 0.5 * np.sum(each, axis=0)
        return total

    def log_safe(self) -> Array:
        """Logarithm of the probability that no constraint is broken which the start keeps, shape (n,)."""
        return self._log_all([(bounds, bounds.hold) for bounds in self._model.bounds if bounds.kept], _FREEDOM)

    def log_no_worse(self) -> Array:
        """Logarithm of the probability that what the start breaks already gets no worse, shape (n,)."""
        return self._log_all([(bounds, bounds.hold) for bounds in self._model.bounds if not bounds.kept], _FREEDOM)

    def allowed(self, risk: float, options: Options, success: bool = True) -> Array:
        """Whether points may be tried, where `risk` may be taken that they break what the start keeps, shape (n,).

        More risk that what the start breaks gets worse is taken only where success is likelier than that, as far as a
        prior can tell; without `success` also where there is none, so that a prior is tested.
        """
        safe = self.log_safe() >= math.log(max(1.0 - risk, 1e-300))
        # without a safe probability nothing is at risk at all
        least = min(options.improve_probability, options.safe_probability)
        # violations lower either risk alike
        least = 1.0 - (1.0 - least) * risk / (1.0 - options.safe_probability)
        no_worse = np.exp(self.log_no_worse())
        hopeful = no_worse >= least
        if self._model.has_priors and success:
            hopeful &= np.exp(self.log_feasible()) >= _ODDS * (1.0 - no_worse)
        return np.asarray(safe & (hopeful | (no_worse >= 1.0 - risk)))

    def _log_all(self, limits: Sequence[Tuple[Bounds, float]], freedom: Optional[float] = None) -> Array:
        total = self._model.log_no_failure(self.points)
        for bounds, limit in limits:
            total = total + self._log_meets(bounds, limit, freedom)
        return total

    def _log_meets(self, bounds: Bounds, limit: float, freedom: Optional[float] = None) -> Array:
        key = (bounds, limit, freedom)
        if key not in self._met:
            mean, deviation = self.metric(bounds.name)
            self._met[key] = log_feasibility(bounds.sign * (mean - limit), deviation, freedom)
        return self._met[key]
