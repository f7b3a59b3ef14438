"""How sure the models may call themselves: their deviations are held against what was seen.

Two corrections. Leave-one-out residuals that are larger than the model says widen its deviations. And each trial that
did break a constraint lowers the risk that the next may take, each that did not lets it go back towards what was asked
for (adaptive conformal inference, Gibbs and Candes, arXiv 2106.00170): the share of violations then keeps to what was
promised, whatever is wrong with the models.
"""

from __future__ import annotations

import math
from typing import Iterable

import numpy as np

from ceph_tuner.optimise.contract import Array

_PRIOR_WEIGHT = 8.0
"""Trials that the model's own word counts for."""

_LARGEST = 4.0

_LEAST_INFLATION = 1.1
"""A fit of the largest posterior density leaves out what is uncertain about the hyperparameters themselves."""

_RATE = 0.2
_LEAST_RISK = 0.1
"""Of the risk asked for: below it nothing would ever be safe."""


def inflation(surprises: Array) -> float:
    """Give the factor on a model's deviations, at least _LEAST_INFLATION, from its standardised residuals."""
    return max(_LEAST_INFLATION, _widening(surprises))


def doubt(forecast_errors: Array) -> float:
    """Give the factor on deviations that forecasts call for, at least 1, from their errors in the stated deviations.

    Leave-one-out residuals are of hyperparameters that have seen the left-out trial. What was said before a trial had
    not, and was said of a point that was chosen for looking good.
    """
    return max(1.0, _widening(forecast_errors))


def _widening(errors: Array) -> float:
    """Root mean square of errors in their deviations, beside _PRIOR_WEIGHT of 1."""
    bounded = np.clip(errors, -_LARGEST, _LARGEST)
    return math.sqrt((_PRIOR_WEIGHT + float(bounded @ bounded)) / (_PRIOR_WEIGHT + len(bounded)))


def risk(violated: Iterable[bool], target: float) -> float:
    """Give the risk that the next trial may take, after trials that did or did not violate."""
    allowed = target
    for violation in violated:
        allowed += _RATE * target * (target - 1.0 if violation else target)
        allowed = min(max(allowed, _LEAST_RISK * target), target)
    return allowed
