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
from numpy.typing import NDArray
from scipy.linalg import cho_solve, null_space, solve_triangular
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

_ERROR_FREEDOM = 4.0
"""Degrees of freedom of Student's t of a measurement's error."""

_REWEIGHTINGS, _CREDIBLE = 20, 0.25
"""Steps in which measurements get their weights, and the weight up to which one is an outlier: that of four
deviations."""

_SCALE_WIDTH = 1.0
"""Deviation of the logarithm of how much a metric varies over the cube, around what is believed beforehand."""


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
        stated = np.where(np.isnan(data.errors), 0.0, data.errors / scale) ** 2 + 1e-8
        self._offset = float(np.median(self._residuals(data)))
        self._data, self._stated = data, stated
        self._gp = _Regressor(kernel, stated, centres, widths)
        with warnings.catch_warnings():
            # a hyperparameter at its bound is expected with so few points
            warnings.simplefilter("ignore")
            self._gp.fit(data.inputs, (self._residuals(data) - self._offset) / scale)
        self._inverse = cho_solve((self._gp.L_, True), np.eye(len(data.means)))

    def outliers(self) -> Optional[Tuple[Array, NDArray[np.bool_]]]:
        """Give the errors of the measurements, larger where one is an outlier, and which are none, each of shape (n,).

        Errors follow Student's t: once in a while something else happens while it is measured. Weights and noise are
        found by expectation maximisation, all else is as it was fitted. None where none is.
        """
        metric = self._gp.kernel_(self._gp.X_train_, self._gp.X_train_)
        noise, weights = float(self._gp.kernel_.variances[NOISE]), np.ones(len(self._stated))
        for _ in range(_REWEIGHTINGS):
            usual = self._stated + noise
            variances = usual / weights
            inverse = np.linalg.inv(metric + np.diag(variances))
            # of the error itself, which is known no better than the metric is
            squared = (variances * (inverse @ self._gp.y_train_)) ** 2 + variances - variances**2 * np.diag(inverse)
            weights = (_ERROR_FREEDOM + 1.0) / (_ERROR_FREEDOM + squared / usual)
            noise = max(float(np.mean(weights * squared - self._stated)), 0.0)
        credible = weights > _CREDIBLE
        if np.all(credible):
            return None
        further = self.scale**2 * (self._stated + noise) * np.maximum(1.0 / weights - 1.0, 0.0)
        wider = np.sqrt(np.nan_to_num(self._data.errors) ** 2 + further)
        return np.where(further > 0, wider, self._data.errors), credible

    def predict(self, inputs: Array) -> Tuple[Array, Array]:
        """Give posterior means and deviations of the metric (not of a measurement), each of shape (n,)."""
        inputs = self._of_use(inputs)
        cross = self._gp.kernel_(inputs, self._gp.X_train_)
        mean = cross @ self._gp.alpha_
        half = solve_triangular(self._gp.L_, cross.T, lower=True, check_finite=False)
        variance = np.maximum(self._gp.kernel_.diag(inputs) - np.sum(half**2, axis=0), 1e-12)
        prior = inputs[:, self._size :] @ self._weights
        return prior + self._offset + self.scale * mean, self.scale * np.sqrt(variance)

    def covariance(self, inputs: Array, other: Array) -> Array:
        """Give the posterior covariance of the metric with that at another point, of shape (1, inputs), shape (n,)."""
        inputs, other = self._of_use(inputs), self._of_use(other)
        kernel, tried = self._gp.kernel_, self._gp.X_train_
        half, other_half = (
            solve_triangular(self._gp.L_, kernel(tried, each), lower=True, check_finite=False)
            for each in (inputs, other)
        )
        covariance: Array = self.scale**2 * (kernel(inputs, other) - half.T @ other_half)[:, 0]
        return covariance

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
    def errors(self) -> Array:
        """Deviation of each measurement as a whole, in the metric's unit, larger where it is an outlier, shape (n,)."""
        errors: Array = self.scale * np.sqrt(self._gp.kernel_.variances[NOISE] + np.asarray(self._gp.alpha))
        return errors

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


def robust_fit(
    data: Data, usual: Optional[float], by_priors: Optional[float] = None, doubted: bool = False
) -> Surrogate:
    """Fit a metric, and once more where a measurement is an outlier: with what makes it so as its error.

    `usual`: how much the metric is believed to vary over the cube before it was seen, `by_priors`: how much priors say.
    """
    points = data.inputs[:, : data.size]
    scale = by_priors or scale_of(points, data.means, data.errors, usual)
    surrogate = Surrogate(data, scale, doubted)
    # beside priors it may be these that are wrong
    outliers = None if by_priors else surrogate.outliers()
    if outliers is None:
        return surrogate
    errors, credible = outliers
    scale = scale_of(points[credible], data.means[credible], errors[credible], usual)
    return Surrogate(replace(data, errors=errors), scale, doubted)


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


def scale_of(points: Array, means: Array, errors: Array, usual: Optional[float]) -> float:
    """How much a metric varies over the cube: what is believed beforehand (`usual`), and what was seen, less its noise.

    Symbols
        s      the scale; r and c the deviations of repeats, and of what is not a plane, as shares of it; all on a grid
        v, q   eigenvalues of the kernel for s of 1 and no noise, and the squares of what was seen along its
               eigenvectors, each of shape (n - 1,): the level is left out

    q varies by v s^2 + r^2 s^2 + error^2. Over a short distance noise looks like a steep slope, so that neither is told
    without the other. Given is the posterior's middle on the scale of logarithms, where the kernel's priors are normal.
    """
    size, count = points.shape[1], len(means)
    deviation = float(np.std(means))
    if not np.any(points != points[0]) or deviation == 0:
        return usual or 1.0
    stated = float(np.nanmean(np.square(errors))) if np.any(np.isfinite(errors)) else 0.0
    contrasts = null_space(np.ones((1, count)))
    differences = contrasts.T @ means
    centres, _ = _centres(size, 0, 1.0)
    lengths, variances = np.exp(centres[:size]), np.exp(centres[size:])
    variances[NOISE] = 0.0

    def unscaled() -> Array:
        return np.asarray(contrasts.T @ PlaneAndCurve(variances, lengths)(points - points[0]) @ contrasts)

    middle = math.log(usual or deviation / math.sqrt(float(np.trace(unscaled())) / (count - 1) + _NOISE**2))
    log_s, s_density = _log_normal(middle, _SCALE_WIDTH, 33)
    log_r, r_density = _log_normal(math.log(_NOISE), 0.5 * _WIDTHS["noise"], 17)
    log_c, c_density = _log_normal(math.log(_CURVED), 0.5 * _WIDTHS["curve"], 5)
    densities = []
    for each, its_density in zip(log_c, c_density):
        variances[CURVE] = math.exp(2 * each)
        v, vectors = np.linalg.eigh(unscaled())
        q = np.square(vectors.T @ differences)
        varies = np.exp(2 * log_s)[:, None, None] * (np.maximum(v, 0.0) + np.exp(2 * log_r)[None, :, None]) + stated
        likelihood = -0.5 * np.sum(np.log(varies) + q / varies, axis=2)
        densities.append(likelihood + s_density[:, None] + r_density + its_density)
    density = np.exp(np.array(densities) - np.max(densities)).sum(axis=(0, 2))
    return math.exp(float(density @ log_s / density.sum()))


def _log_normal(middle: float, width: float, count: int) -> Tuple[Array, Array]:
    """Give points of a logarithm, four deviations on either side of its middle, and their densities' logarithms."""
    deviations = np.linspace(-4.0, 4.0, count)
    return middle + width * deviations, -0.5 * deviations**2
