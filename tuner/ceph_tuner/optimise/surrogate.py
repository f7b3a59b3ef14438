"""One metric over the unit cube: a Gaussian process with a prior mean, learnt from a handful of noisy trials.

The hyperparameters are those of the largest posterior density: with trials this few their likelihood alone is almost
flat, and its maximum often a model that is sure of what it cannot know. Their priors are lognormal and scale with what
was seen (`_centres`).
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any, Optional, Tuple

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from skopt.learning import GaussianProcessRegressor

from ceph_tuner.optimise.contract import Array
from ceph_tuner.optimise.gp_kernel import CONSTANT, CURVE, NOISE, SLOPE, VARIANCES, PlaneAndCurve
from ceph_tuner.optimise.paths import departures

_LENGTH = 1.0
"""Centre of the length scales for one dimension; it grows by the square root of their number (Hvarfner et al.,
arXiv 2402.02229)."""

_WIDTHS = {"constant": 2.0, "slope": 1.0, "curve": 1.5, "noise": 1.5, "trust": 1.0, "length": 1.0}
"""Deviations of the logarithms."""

_CURVED = 0.3
"""Deviation of what is not a plane, as a share of the plane's over the cube."""

_TRUST = 0.25
"""Deviation of a prior's scale around 1: a model that is wrong by half is common."""

_UNEXPLAINED = 0.2
"""What a prior leaves unexplained, as a share of its own variation over the cube."""

_NOISE = 0.03
"""Deviation of repeats where nothing is known about it, as a share of the metric's over the cube."""


@dataclass(frozen=True)
class Data:
    """What was measured of a metric: inputs (n, size + priors), means (n,), standard errors (n,; NaN: unknown).

    The first inputs are offsets from the start, the rest what each prior predicts, less what it predicts at the start.
    """

    inputs: Array
    size: int
    means: Array
    errors: Array


class _Regressor(GaussianProcessRegressor):  # type: ignore[misc]  # scikit-optimize has no types
    """scikit-optimize's regressor with priors on the logarithms of the hyperparameters."""

    def __init__(self, kernel: Any = None, alpha: Any = 1e-10, centres: Any = None, widths: Any = None) -> None:
        self.centres, self.widths = centres, widths
        super().__init__(kernel=kernel, alpha=alpha, normalize_y=False)

    def log_marginal_likelihood(self, theta: Any = None, eval_gradient: bool = False, clone_kernel: bool = True) -> Any:
        """The likelihood times the priors' density."""
        likelihood = super().log_marginal_likelihood(theta, eval_gradient, clone_kernel)
        if theta is None:
            return likelihood
        distance = (np.asarray(theta) - self.centres) / self.widths
        density = -0.5 * float(distance @ distance)
        if not eval_gradient:
            return likelihood + density
        return likelihood[0] + density, likelihood[1] - distance / self.widths


class Surrogate:
    """The posterior of one metric."""

    def __init__(self, data: Data, scale: float, doubted: bool = False) -> None:
        """Fit. `scale` is how much the metric varies over the cube, as far as that is known.

        `doubted`: priors may be of no use as well as right, or as wrong as to say the opposite.
        """
        self._size, self.scale, self._doubted = data.size, scale, doubted
        self._believed = np.full(data.inputs.shape[1] - data.size, True)
        self._fit(data)
        while np.any(self.trust < 0) and not doubted:
            # what moves against the metric is no use to it: the best scale that is no less than 0 is 0
            self._believed &= self.trust >= 0
            self._fit(data)

    def _fit(self, data: Data) -> None:
        """Find the hyperparameters, with the priors that are believed."""
        data = replace(data, inputs=self._of_use(data.inputs))
        scale, priors = self.scale, data.inputs.shape[1] - data.size
        self._weights = np.full(priors, 0.0 if self._doubted else 1.0 / max(1, priors))
        centres, widths = _centres(data.size, priors, scale, self._doubted)
        kernel = PlaneAndCurve(np.exp(centres[data.size :]), np.exp(centres[: data.size]))
        deviations = np.where(np.isnan(data.errors), 0.0, data.errors / scale)
        self._gp = _Regressor(kernel, deviations**2 + 1e-8, centres, widths)
        self._offset = float(np.median(self._residuals(data)))
        with warnings.catch_warnings():
            # a hyperparameter at its bound is expected with so few points
            warnings.simplefilter("ignore")
            self._gp.fit(data.inputs, (self._residuals(data) - self._offset) / scale)
        self._inverse = cho_solve((self._gp.L_, True), np.eye(len(data.means)))

    def predict(self, inputs: Array) -> Tuple[Array, Array]:
        """Give posterior means and deviations of the metric (not of a measurement), each of shape (n,)."""
        inputs = self._of_use(inputs)
        cross = self._gp.kernel_(inputs, self._gp.X_train_)
        mean = cross @ self._gp.alpha_
        half = solve_triangular(self._gp.L_, cross.T, lower=True, check_finite=False)
        variance = np.maximum(self._gp.kernel_.diag(inputs) - np.sum(half**2, axis=0), 1e-12)
        prior = inputs[:, self._size :] @ self._weights
        return prior + self._offset + self.scale * mean, self.scale * np.sqrt(variance)

    def departures(self, inputs: Array, count: int, generator: np.random.Generator) -> Array:
        """Give how far functions that fit what was seen are from `predict`'s mean, shape (count, n)."""
        return self.scale * departures(self._gp, self._of_use(inputs), count, generator)

    @property
    def surprises(self) -> Array:
        """Leave-one-out residuals in their own deviations, shape (n,) (Rasmussen and Williams, eq. 5.12)."""
        residuals: Array = np.asarray(self._gp.alpha_) / np.sqrt(np.diag(self._inverse))
        return residuals

    @property
    def log_pseudo_likelihood(self) -> float:
        """Logarithm of the density of each measurement by the others, summed (Rasmussen and Williams, eq. 5.11).

        Of those apart from the start: its level is claimed by nobody, and repeats of it say nothing of what changes.
        """
        apart = np.any(self._gp.X_train_[:, : self._size] != 0.0, axis=1)
        of_one = -0.5 * self.surprises**2 + 0.5 * np.log(np.diag(self._inverse) / (2 * math.pi * self.scale**2))
        return float(np.sum(of_one[apart]))

    @property
    def noise(self) -> float:
        """Deviation of repeats beyond what the measurements say of themselves, in the metric's unit."""
        return self.scale * math.sqrt(float(self._gp.kernel_.variances[NOISE]))

    @property
    def error(self) -> float:
        """Deviation of a measurement as a whole, in the metric's unit, > 0."""
        return math.hypot(self.noise, self.scale * math.sqrt(float(np.median(self._gp.alpha))))

    @property
    def trust(self) -> Array:
        """Learnt scale of each prior, shape (priors,): 1 as predicted, 0 of no use."""
        kernel = self._gp.kernel_
        beliefs = self._gp.X_train_[:, self._size :]
        learnt = np.zeros(len(self._believed))
        learnt[self._believed] = self._weights + self.scale * kernel.variances[VARIANCES:] * (
            beliefs.T @ self._gp.alpha_
        )
        return learnt

    @property
    def lengths(self) -> Array:
        """Length scales, shape (size,)."""
        return np.asarray(self._gp.kernel_.lengths, dtype=float)

    def _of_use(self, inputs: Array) -> Array:
        """Leave out the priors that are not believed."""
        return inputs[:, np.concatenate([np.full(self._size, True), self._believed])]

    def _residuals(self, data: Data) -> Array:
        residuals: Array = data.means - data.inputs[:, data.size :] @ self._weights
        return residuals


def _centres(size: int, priors: int, scale: float, doubted: bool = False) -> Tuple[Array, Array]:
    """Give centres and widths of the logarithms of the hyperparameters, in the kernel's order."""
    share = _UNEXPLAINED if priors and not doubted else 1.0
    variances = np.empty(VARIANCES + priors)
    variances[CONSTANT] = share**2
    # a plane with this slope has deviation 1 over the uniform cube
    variances[SLOPE] = share**2 * 12.0 / size
    variances[CURVE] = (share * (1.0 if priors else _CURVED)) ** 2
    variances[NOISE] = _NOISE**2
    # what priors predict comes in the metric's unit
    variances[VARIANCES:] = ((1.0 if doubted else _TRUST) / scale) ** 2
    names = ["constant", "slope", "curve", "noise", *["trust"] * priors]
    centres = np.concatenate([np.full(size, math.log(_LENGTH * math.sqrt(size))), np.log(variances)])
    widths = np.array([_WIDTHS["length"]] * size + [_WIDTHS[name] for name in names])
    return centres, widths


def scale_of(points: Array, means: Array, usual: Optional[float]) -> float:
    """How much a metric varies over the cube, from how much it varied over the points tried, shape (n, size).

    A plane that varies by s over points that are r from their centre varies by s sqrt(size / 12) / r over the cube.
    `usual` is what is believed beforehand: with two points the larger counts, later what was seen, but no less than a
    third of it: the points tried may lie where the metric happens to be flat.
    """
    size = points.shape[1]
    # from the first of them: the mean of equal numbers is not quite the same number
    offsets = points - points[0]
    spread = math.sqrt(float(np.mean(np.sum((offsets - offsets.mean(0)) ** 2, axis=1))))
    deviation = float(np.std(means))
    if len(means) < 2 or spread == 0 or deviation == 0:
        return usual or 1.0
    scale = deviation * math.sqrt(size / 12.0) / spread
    return max(scale, (usual or 0.0) * (1.0 if len(means) == 2 else 1.0 / 3.0))
