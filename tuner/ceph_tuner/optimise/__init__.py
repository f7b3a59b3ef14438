"""Constrained, safe, thrifty Bayesian optimisation of any mixed space under noise.

It knows nothing of what is searched, and imports nothing of the rest of the library.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ceph_tuner.optimise.contract import (
    BestSettings,
    Constraint,
    Measured,
    Options,
    Prior,
    Proposal,
    SearchVerdict,
    Settings,
    Space,
    Values,
)

if TYPE_CHECKING:
    from ceph_tuner.optimise.explanation import Explanation
    from ceph_tuner.optimise.optimiser import SafeOptimiser
    from ceph_tuner.optimise.space import MixedSpace

__all__ = [
    "BestSettings",
    "Constraint",
    "Explanation",
    "Measured",
    "MixedSpace",
    "Options",
    "Prior",
    "Proposal",
    "SafeOptimiser",
    "SearchVerdict",
    "Settings",
    "Space",
    "Values",
]

_LATER = {"Explanation": "explanation", "MixedSpace": "space", "SafeOptimiser": "optimiser"}
"""Imported when first used: they bring scipy and scikit-learn, a second that the contract alone does not take."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
