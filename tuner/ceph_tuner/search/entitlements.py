"""What mClock owes its classes while their queues are long."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Tuple

import numpy as np

from ceph_tuner.optimise.contract import Array


def entitlements(parts: Mapping[str, Tuple[Any, Any, Any]], demands: Mapping[str, Any]) -> Dict[str, Array]:
    """Divide OSDs as mClock does: class -> share of the capacity, shape (n,); of single numbers (1,).

    `parts` are (reservation, weight, limit), a limit of 0 being none; `demands` is infinite where a class takes all
    that it is given. Reservations come first, in proportion where they sum to more than 1; what is left goes by weight
    to those that ask for more and are below their limit (Gulati et al., mClock, OSDI 2010, section 3).
    """
    res, wgt, lim, demand = (
        np.stack(np.broadcast_arrays(*(np.atleast_1d(np.asarray(value, dtype=float)) for value in column)))
        for column in (*zip(*parts.values()), [demands[name] for name in parts])
    )
    caps = np.minimum(np.where(lim > 0, lim, np.inf), demand)
    shares: Array = np.minimum(res, caps)
    shares = shares / np.maximum(shares.sum(axis=0), 1.0)
    # each round all is given away, or one more class has enough
    for _ in parts:
        weights = np.where(shares < caps - 1e-12, wgt, 0.0)
        remainder = np.maximum(1.0 - shares.sum(axis=0), 0.0)
        shares = np.minimum(caps, shares + remainder * weights / np.maximum(weights.sum(axis=0), 1e-9))
    return dict(zip(parts, shares))
