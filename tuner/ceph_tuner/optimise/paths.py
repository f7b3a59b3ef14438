"""Whole functions drawn from a posterior, for what deviations at single points cannot say: of sums, and of maxima.

Symbols
    X, x     inputs of the trials and of the points asked about, shapes (trials, size + priors) and (n, size + priors)
    f        functions drawn from the kernel before anything is seen, shape (n, count)

    f(x) + K(x, X) (K(X, X) + noise)^-1 (y - f(X) - e),  e the noise's own draw    (Wilson et al., arXiv 2002.09309)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cho_solve

from ceph_tuner.optimise.contract import Array
from ceph_tuner.optimise.gp_kernel import NOISE, VARIANCES, PlaneAndCurve

_WAVES = 128
"""Cosines that stand for the kernel's curve. Each function has its own: what they share, all would err by alike."""

_FREEDOM = 5.0
"""A Matern 5/2 kernel's frequencies follow Student's t (Rasmussen and Williams, eq. 4.15)."""


def departures(regressor: Any, inputs: Array, count: int, generator: np.random.Generator) -> Array:
    """Give how far drawn functions are from the posterior mean, shape (count, n), in the regressor's unit."""
    kernel: PlaneAndCurve = regressor.kernel_
    inputs_told = regressor.X_train_
    prior_draws = _before(kernel, np.vstack([inputs_told, inputs]), count, generator)
    noise = np.sqrt(kernel.variances[NOISE] + np.broadcast_to(regressor.alpha, len(inputs_told)))
    values = prior_draws[: len(inputs_told)] + noise[:, None] * generator.standard_normal((len(inputs_told), count))
    away: Array = (
        prior_draws[len(inputs_told) :] - kernel(inputs, inputs_told) @ cho_solve((regressor.L_, True), values)
    ).T
    return away


def _before(kernel: PlaneAndCurve, inputs: Array, count: int, generator: np.random.Generator) -> Array:
    """Draw from the kernel without its noise: planes are exact, the curve is a sum of cosines (Rahimi and Recht)."""
    size = len(kernel.lengths)
    points, beliefs = inputs[:, :size], inputs[:, size:]
    constant, slope, curve, _ = np.sqrt(kernel.variances[:VARIANCES])
    trust = np.sqrt(kernel.variances[VARIANCES:, None])
    total: Array = constant * generator.standard_normal(count) + np.zeros((len(inputs), 1))
    total += points @ (slope * generator.standard_normal((size, count)))
    total += beliefs @ (trust * generator.standard_normal((beliefs.shape[1], count)))
    # seven digits are far more than 128 cosines have, and numpy's cosine is then twenty times as quick
    brief = points.astype(np.float32)
    for function in range(count):
        spread = np.sqrt(_FREEDOM / generator.chisquare(_FREEDOM, _WAVES))
        frequencies = generator.standard_normal((size, _WAVES)) * spread / kernel.lengths[:, None]
        phases = generator.uniform(0.0, 2 * np.pi, _WAVES)
        waves = np.cos(brief @ frequencies.astype(np.float32) + phases.astype(np.float32))
        heights = curve * np.sqrt(2.0 / _WAVES) * generator.standard_normal(_WAVES)
        total[:, function] += waves @ heights.astype(np.float32)
    return total
