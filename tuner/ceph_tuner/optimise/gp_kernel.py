"""The covariance of a metric over the unit cube, as scikit-learn's regressor takes it.

Symbols
    X      inputs, shape (n, size + priors): offsets from the start, then what each prior predicts, standardised
    theta  logarithms of the hyperparameters, in the order below

    k(x, x') =   constant                                a level of its own
               + slope x.x'                              a plane through the start
               + curve Matern52(|x - x'| / lengths)      what is not a plane (Rasmussen and Williams, eq. 4.17)
               + sum over priors  trust_j t_j t'_j       prior j is wrong in scale: how far is learnt
               + noise on the diagonal                   what repeats of the same settings differ by
"""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import numpy as np
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel

from ceph_tuner.optimise.contract import Array

CONSTANT, SLOPE, CURVE, NOISE = range(4)
VARIANCES = 4
_ROOT_5 = np.sqrt(5.0)
_BOUNDS = (1e-8, 1e6)


class PlaneAndCurve(Kernel):  # type: ignore[misc]  # scikit-learn has no types
    """The sum above. `variances`: constant, slope, curve, noise, each prior's trust; `lengths`: one a dimension."""

    def __init__(self, variances: Array, lengths: Array) -> None:
        self.variances = variances
        self.lengths = lengths

    @property
    def hyperparameter_variances(self) -> Any:
        """As scikit-learn finds hyperparameters."""
        return Hyperparameter("variances", "numeric", _BOUNDS, len(self.variances))

    @property
    def hyperparameter_lengths(self) -> Any:
        """As scikit-learn finds hyperparameters."""
        return Hyperparameter("lengths", "numeric", _BOUNDS, len(self.lengths))

    @property
    def theta(self) -> Array:
        """Lengths first: scikit-learn orders by name."""
        logarithms: Array = np.log(np.concatenate([self.lengths, self.variances]))
        return logarithms

    @theta.setter
    def theta(self, theta: Array) -> None:
        size = len(self.lengths)
        self.lengths, self.variances = np.exp(theta[:size]), np.exp(theta[size:])

    def __call__(self, points: Array, others: Optional[Array] = None, eval_gradient: bool = False) -> Any:
        """Give covariances, shape (n, m); with `eval_gradient` also their derivatives by theta, shape (n, n, theta)."""
        size = len(self.lengths)
        right = points if others is None else others
        constant, slope, curve, noise = self.variances[:VARIANCES]
        trust = self.variances[VARIANCES:]
        plane = slope * (points[:, :size] @ right[:, :size].T)
        matern, radius = _matern(points[:, :size] / self.lengths, right[:, :size] / self.lengths)
        beliefs = points[:, size:]
        covariance = constant + plane + curve * matern + (beliefs * trust) @ right[:, size:].T
        if others is None:
            covariance[np.diag_indices_from(covariance)] += noise
        if not eval_gradient:
            return covariance
        gradient = np.empty((len(points), len(points), len(self.theta)))
        each = ((points[:, None, :size] - points[None, :, :size]) / self.lengths) ** 2
        falling = curve * (5.0 / 3.0) * (1.0 + _ROOT_5 * radius) * np.exp(-_ROOT_5 * radius)
        gradient[:, :, :size] = falling[:, :, None] * each
        gradient[:, :, size + CONSTANT] = constant
        gradient[:, :, size + SLOPE] = plane
        gradient[:, :, size + CURVE] = curve * matern
        gradient[:, :, size + NOISE] = noise * np.eye(len(points))
        for index, variance in enumerate(trust):
            gradient[:, :, size + VARIANCES + index] = variance * np.outer(beliefs[:, index], beliefs[:, index])
        return covariance, gradient

    def diag(self, points: Array) -> Array:
        """Variances without the noise: of the metric, not of its next measurement."""
        size = len(self.lengths)
        constant, slope, curve, _ = self.variances[:VARIANCES]
        variances: Array = constant + slope * np.sum(points[:, :size] ** 2, axis=1) + curve
        return variances + (points[:, size:] ** 2) @ self.variances[VARIANCES:]

    def is_stationary(self) -> bool:
        """Tell scikit-learn that it depends on more than differences."""
        return False

    def get_params(self, deep: bool = True) -> Dict[str, Any]:
        """As scikit-learn clones kernels."""
        return {"variances": self.variances, "lengths": self.lengths}


def _matern(left: Array, right: Array) -> Tuple[Array, Array]:
    """Give covariances and distances of scaled points, each of shape (n, m)."""
    squared = np.sum(left**2, 1)[:, None] + np.sum(right**2, 1)[None, :] - 2.0 * left @ right.T
    radius = np.sqrt(np.maximum(squared, 0.0))
    value = (1.0 + _ROOT_5 * radius + (5.0 / 3.0) * radius**2) * np.exp(-_ROOT_5 * radius)
    return value, radius
