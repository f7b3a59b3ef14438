"""Constrained, safe, thrifty Bayesian optimisation of any mixed space under noise.

It knows nothing of what is searched, and imports nothing of the rest of the library.
"""

from ceph_tuner.bayesian.contract import (
    Constraint,
    Measured,
    Options,
    Prior,
    Proposal,
    Recommendation,
    Settings,
    Space,
    Values,
    Verdict,
)
from ceph_tuner.bayesian.explanation import Explanation
from ceph_tuner.bayesian.optimiser import SafeOptimiser
from ceph_tuner.bayesian.space import MixedSpace

__all__ = [
    "Constraint",
    "Explanation",
    "Measured",
    "MixedSpace",
    "Options",
    "Prior",
    "Proposal",
    "Recommendation",
    "SafeOptimiser",
    "Settings",
    "Space",
    "Values",
    "Verdict",
]
