"""Fits a model's unknown parameters to measured windows: the likeliest values, and how sure they are.

A simulated window differs from seed to seed as much as a measured one does, so differences between two runs say little
about a slope. Slopes come from many runs at once: places are drawn around the present one, every window is simulated
at each with one seed, and a line is fitted to all of it (statistical linearisation). On these lines the likeliest place
is found by least squares; then the next places are drawn around it, closer each time.

Glossary (shapes: p parameters, m outputs, n places)
    x         place, in standard deviations of the prior                              (p,)
    z, noise  measured outputs in logarithms, and their standard deviations           (m,)
    delta     the twin's own error by metric, which noise does not explain            (m,)
    J         slopes of the simulated outputs                                         (m, p)
    minimised sum of rho(((z - simulated) / s)^2) + sum of x^2 with s^2 = noise^2 + delta^2;
              rho(e) = 2 (sqrt(1 + e) - 1) bounds the pull of a window that the twin cannot explain
    posterior normal about the minimum, covariance (J' S^-2 J + 1)^-1 (Laplace), J freed of what chance adds to it
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ceph_tuner.twin.discrepancy import Discrepancy, by_metric
from ceph_tuner.twin.fit_runs import Runner
from ceph_tuner.twin.model import ClusterModel
from ceph_tuner.twin.observations import RATES, Observation, Outputs, SimulatedRun
from ceph_tuner.twin.parameters import Array, Parameter, ParameterPrior, fittable, with_values

Report = Callable[[str, float], None]
"""Takes what is being done, and the share that is over."""

FIRST_DELTA = {**dict.fromkeys(RATES, 0.05)}
"""The twin's own error until residuals say more; of latencies LATENCY_DELTA."""
LATENCY_DELTA = 0.15

SPREADS = (0.7, 0.5, 0.35, 0.25)
"""How far places are drawn around the present one, round by round, in standard deviations of the prior."""

POSTERIOR_SPREAD, POSTERIOR_PLACES = 0.5, 2
"""Slopes of the posterior: over the width that it is likely to have, from so many times the places, because what chance
adds to them is taken off their squares."""

LARGEST_STEP = 1.5
"""In spreads: further out the lines are guesses."""


@dataclass(frozen=True)
class FitEffort:
    """How much is simulated. `scouts`: places drawn from the whole prior, of which the best are starts."""

    scouts: int = 40
    starts: int = 2
    places_per_parameter: int = 8
    checks: int = 4
    """Seeds by which a place is judged."""

    def __post_init__(self) -> None:
        if min(self.scouts, self.starts, self.places_per_parameter, self.checks) < 1:
            raise ValueError(f"scouts, starts, places and checks must be 1 or more: {self}")


@dataclass(frozen=True)
class Lines:
    """Straight lines through simulated outputs, about a place."""

    x: Array
    z: Array
    slopes: Array
    """Shape (m, p)."""
    scatter: Array
    """Standard deviation about the line, shape (m,)."""
    spread: float
    places: int

    def at(self, x: Array) -> Array:
        """Outputs at parameters `x`, by the line through this point."""
        return np.asarray(self.z + self.slopes @ (x - self.x))


@dataclass(frozen=True)
class Calibration:
    """A fit: parameters with their posterior, and what remains unexplained."""

    prior: ParameterPrior
    x: Array
    covariance: Array
    """Of x, shape (p, p)."""
    information: Array
    """What the windows alone say of x, shape (p, p): J' S^-2 J."""
    outputs: Outputs
    predicted: Array
    """z at x, mean over seeds."""
    held_out: Array
    """z where the window's setting was held out of the fit."""
    discrepancy: Discrepancy
    lines: Lines
    runs: int = 0
    notes: Tuple[str, ...] = field(default=())

    @property
    def values(self) -> Dict[str, float]:
        """Likeliest value of each parameter."""
        return self.prior.values(self.x)

    def draws(self, count: int, random: np.random.Generator) -> List[Dict[str, float]]:
        """Values drawn from the posterior."""
        return draws(self.prior, self.x, self.covariance, count, random)


def draws(
    prior: ParameterPrior, x: Array, covariance: Array, count: int, random: np.random.Generator
) -> List[Dict[str, float]]:
    """Values drawn from a normal distribution of x, kept within the bounds."""
    places = random.multivariate_normal(x, covariance, size=count, method="eigh")
    return [prior.values(place) for place in places]


class Fitting:
    """Finds the likeliest parameters of windows."""

    def __init__(
        self,
        observations: Sequence[Observation],
        models: Mapping[str, ClusterModel],
        runner: Runner,
        effort: Optional[FitEffort] = None,
        known: Sequence[str] = (),
        parameters: Optional[Sequence[Parameter]] = None,
        report: Report = lambda text, share: None,
        seed: int = 1,
    ) -> None:
        """Take windows and the models of their scenarios; parameters that are `known` keep the models' values."""
        models_used = {entry.scenario: models[entry.scenario] for entry in observations}
        self.outputs = Outputs(observations, models_used)
        free = fittable(list(models_used.values()), known) if parameters is None else tuple(parameters)
        self.prior = ParameterPrior(free, list(models_used.values()))
        self._runner, self._effort, self._report = runner, effort or FitEffort(), report
        self._random = np.random.default_rng(seed)
        self._delta = np.asarray([FIRST_DELTA.get(name, LATENCY_DELTA) for name in self.outputs.metrics])

    def fit(self) -> Calibration:
        """All of it: scouts, starts, rounds, the posterior, and the discrepancy left where a setting was held out."""
        self._report("looking around", 0.0)
        starts = self._scout()
        best, lines = starts[0], None
        total = len(starts) + len(SPREADS) - 1
        # every start takes the first round, the best of what comes of them the others
        ends = []
        for number, start in enumerate(starts):
            self._report(f"start {number + 1} of {len(starts)}", (number + 1) / (total + 2))
            lines = self._lines(start, SPREADS[0])
            end = self._minimum(lines, np.ones(len(self.outputs), dtype=bool))
            ends.append((self._misfit(self._mean(end)), end))
        score, best = min(ends, key=lambda entry: entry[0])
        for number, spread in enumerate(SPREADS[1:]):
            self._report(f"round {number + 1} of {len(SPREADS) - 1}", (len(starts) + number + 1) / (total + 2))
            lines = self._lines(best, spread)
            candidate = self._minimum(lines, np.ones(len(self.outputs), dtype=bool))
            mean = self._mean(candidate)
            misfit = self._misfit(mean)
            if misfit <= score * 1.02:
                score, best = misfit, candidate
            self._delta = self._own_error(self._mean(best))
            score = self._misfit(self._mean(best))
        self._report("the posterior", (total + 1) / (total + 2))
        lines = self._lines(best, POSTERIOR_SPREAD, POSTERIOR_PLACES)
        predicted = self._mean(best)
        information = self._information(lines, np.ones(len(self.outputs), dtype=bool))
        covariance = np.linalg.inv(information + np.eye(len(best)))
        held_out, discrepancy = self._held_out(best, lines, predicted)
        self._report("done", 1.0)
        return Calibration(
            self.prior,
            best,
            covariance,
            information,
            self.outputs,
            predicted,
            held_out,
            discrepancy,
            lines,
            self._runner.runs,
        )

    # simulations -----------------------------------------------------------------------------------------------------

    def _rows(self, places: Iterable[Array], seeds: Iterable[int]) -> Array:
        """Outputs in logarithms, shape (places, m)."""
        runs: List[SimulatedRun] = []
        count = 0
        for place, seed in zip(places, seeds):
            count += 1
            values = self.prior.values(place)
            models = {name: with_values(model, values) for name, model in self.outputs.models.items()}
            runs += self.outputs.runs(models, int(seed))
        outputs = self._runner(runs)
        each = len(self.outputs.observations)
        rows = [np.concatenate(outputs[n * each : (n + 1) * each]) for n in range(count)]
        return np.asarray([self.outputs.to_z(row) for row in rows])

    def _mean(self, x: Array) -> Array:
        """Mean over the seeds by which places are judged: the same for every place."""
        count = self._effort.checks
        return np.asarray(self._rows([x] * count, range(101, 101 + count)).mean(axis=0))

    def _lines(self, x: Array, spread: float, times: int = 1) -> Lines:
        count = times * (self._effort.places_per_parameter * len(x) + 8)
        # opposite pairs: what bends upwards on both sides then does not tilt the lines
        half = self._random.standard_normal(((count + 1) // 2, len(x)))
        places = self.prior.inside(x + spread * np.concatenate((half, -half)))
        rows = self._rows(places, self._random.integers(1, 1 << 30, size=len(places)))
        design = np.column_stack((np.ones(len(places)), places - x))
        # a little ridge, where bounds leave a parameter nowhere to go
        ridge = np.diag([0.0, *([1e-3 * spread**2 * len(places)] * len(x))])
        coefficients = np.linalg.solve(design.T @ design + ridge, design.T @ rows)
        freedom = max(1, len(places) - len(x) - 1)
        scatter = np.sqrt(((rows - design @ coefficients) ** 2).sum(axis=0) / freedom)
        return Lines(x, coefficients[0], coefficients[1:].T, scatter, spread, len(places))

    def _scout(self) -> List[Array]:
        size = len(self.prior.parameters)
        places = [np.zeros(size), *self.prior.inside(self._random.standard_normal((self._effort.scouts, size)))]
        rows = self._rows(places, [100] * len(places))
        scores = [self._misfit(row) + float(place @ place) for row, place in zip(rows, places)]
        # the described model is always a start
        order = [int(n) for n in np.argsort(scores[1:])[: self._effort.starts - 1]]
        return [self.prior.inside(places[0]), *(places[n + 1] for n in order)]

    # arithmetic ------------------------------------------------------------------------------------------------------

    def _weights(self) -> Array:
        return np.asarray(1.0 / np.sqrt(self.outputs.noise**2 + self._delta**2))

    def _misfit(self, predicted: Array) -> float:
        error = ((self.outputs.z - predicted) * self._weights()) ** 2
        return float(2.0 * (np.sqrt(1.0 + error) - 1.0).sum())

    def _minimum(self, lines: Lines, chosen: Array, reach: float = LARGEST_STEP) -> Array:
        """The likeliest place on the lines, not far from where they hold."""
        from scipy.optimize import least_squares  # a third of a second, which who predicts by a fit does not wait for

        weights = self._weights() / np.sqrt(1.0 + (lines.scatter * self._weights()) ** 2 / lines.places)

        def residuals(x: Array) -> Array:
            error = (self.outputs.z - lines.at(x))[chosen] * weights[chosen]
            # the root of rho, so that only the windows and not the prior are bounded
            bounded = np.sign(error) * np.sqrt(2.0 * (np.sqrt(1.0 + error**2) - 1.0))
            return np.concatenate((bounded, x))

        low = np.maximum(self.prior.low, lines.x - reach * lines.spread) - 1e-9
        high = np.minimum(self.prior.high, lines.x + reach * lines.spread) + 1e-9
        return self.prior.inside(least_squares(residuals, np.clip(lines.x, low, high), bounds=(low, high)).x)

    def _information(self, lines: Lines, chosen: Array) -> Array:
        """J' S^-2 J of the chosen outputs, less what chance adds to the squares of slopes."""
        weights = self._weights()[chosen]
        slopes = lines.slopes[chosen] * weights[:, None]
        by_chance = float(((lines.scatter[chosen] * weights) ** 2).sum()) / (lines.places * lines.spread**2)
        values, vectors = np.linalg.eigh(slopes.T @ slopes)
        return np.asarray((vectors * np.maximum(values - by_chance, 0.0)) @ vectors.T)

    def _own_error(self, predicted: Array) -> Array:
        """The twin's own error by metric, out of residuals: what noise leaves to explain."""
        error, own_error = self.outputs.z - predicted, np.array(self._delta)
        for name, places in by_metric(self.outputs).items():
            first = FIRST_DELTA.get(name, LATENCY_DELTA)
            # bounded as in the fit: one window that is quite off does not free all others
            inside = np.minimum(np.abs(error[places]), 3.0 * max(first, float(np.median(np.abs(error[places])))))
            excess = float((inside**2 - self.outputs.noise[places] ** 2).sum())
            own_error[places] = np.sqrt(max(excess + 2.0 * first**2, 0.25 * first**2) / (len(places) + 2.0))
        return own_error

    def _held_out(self, x: Array, lines: Lines, predicted: Array) -> Tuple[Array, Discrepancy]:
        """Outputs and residuals of each setting in turn where the fit did without it; the fit's if there is one."""
        labels = np.asarray([self.outputs.observations[n].same[1] for n, _ in self.outputs.names])
        everything = list(dict.fromkeys(labels))
        predictions, variance = np.array(predicted), np.square(lines.scatter)
        if len(everything) > 1:
            for number, label in enumerate(everything):
                self._report(f"holding out setting {number + 1} of {len(everything)}", 0.9)
                without = labels != label
                place = self._minimum(lines, without, reach=4.0)
                covariance = np.linalg.inv(self._information(lines, without) + np.eye(len(x)))
                count = 3 * self._effort.checks
                places = self._random.multivariate_normal(place, covariance, size=count, method="eigh")
                rows = self._rows([self.prior.inside(p) for p in places], range(301, 301 + count))
                predictions[~without] = np.median(rows, axis=0)[~without]
                variance[~without] = rows.var(axis=0, ddof=1)[~without]
        return predictions, Discrepancy.of(self.outputs, predicted, predictions, variance, len(everything))
