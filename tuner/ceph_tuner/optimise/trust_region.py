"""The box in which the next settings are looked for: it grows where trials keep their promise, and shrinks where not.

After Eriksson et al., Scalable global optimisation via local Bayesian optimisation (arXiv 1910.04739), section 2, with
the counts for budgets of tens of trials.
"""

from __future__ import annotations

from typing import Iterable

SMALLEST = 0.01
"""Half a side below which the region starts again from `restart`: nothing is left to be learnt in it."""

_GROW_AFTER, _SHRINK_AFTER = 1, 3
_GROW, _SHRINK = 1.6, 0.6


def half_side(successes: Iterable[bool], first: float, largest: float) -> float:
    """Give half a side of the box after trials that did or did not better the best known."""
    half, good, bad = first, 0, 0
    for success in successes:
        good, bad = (good + 1, 0) if success else (0, bad + 1)
        if good >= _GROW_AFTER:
            half, good = min(half * _GROW, largest), 0
        elif bad >= _SHRINK_AFTER:
            half, bad = half * _SHRINK, 0
        if half < SMALLEST:
            half = first
    return half
