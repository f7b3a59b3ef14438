"""How much a point promises: expected improvement weighted by the probability of meeting the constraints.

Symbols
    mean, deviation   posterior of a metric at n points, shape (n,)
    excess            posterior mean of a constraint's metric beyond its bound, in the metric's unit

Everything is a logarithm: far from the bounds the numbers themselves are all 0 (Ament et al., arXiv 2310.20708).
"""

from __future__ import annotations

from typing import Optional

import numpy as np
from scipy.special import erfcx, log_ndtr, stdtr

from ceph_tuner.optimise.contract import Array

_ROOT_HALF_PI, _ROOT_2 = np.sqrt(np.pi / 2), np.sqrt(2.0)
_LOG_ROOT_2_PI = 0.5 * np.log(2 * np.pi)
_FAR = -1e4


def log_expected_improvement(mean: Array, deviation: Array, incumbent: float) -> Array:
    """Logarithm of the expected fall below the incumbent."""
    z = (incumbent - mean) / deviation
    near = np.maximum(z, -1.0)
    density = np.exp(-0.5 * near**2 - _LOG_ROOT_2_PI)
    direct = np.log(density + near * np.exp(log_ndtr(near)))
    far = np.clip(z, _FAR, -1.0)
    # phi(z) (1 + z Phi(z) / phi(z)), with the ratio by the scaled complementary error function
    ratio = 1.0 + far * _ROOT_HALF_PI * erfcx(-far / _ROOT_2)
    tail = -0.5 * far**2 - _LOG_ROOT_2_PI + np.log(np.maximum(ratio, 1e-12))
    improvement: Array = np.where(z > -1.0, direct, tail) + np.log(deviation)
    return improvement


def log_feasibility(excess: Array, deviation: Array, freedom: Optional[float] = None) -> Array:
    """Logarithm of the probability that the constraint holds; `freedom` of Student's t where errors have its tails."""
    z = -excess / deviation
    probability: Array = log_ndtr(z) if freedom is None else np.log(stdtr(freedom, z))
    return probability
