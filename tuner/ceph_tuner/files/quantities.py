"""Amounts with their units, as people write them: `4 KiB`, `1.2 GB/s`, `80 us`, `6 kIOPS`. A bare number is SI."""

from __future__ import annotations

import math
import re
from typing import Dict

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.moments import TIME_UNITS, TIME_WORDS

_BYTES = {
    "B": 1.0,
    "kB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "TB": 1e12,
    "PB": 1e15,
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
    "TiB": 2.0**40,
    "PiB": 2.0**50,
}

UNITS: Dict[str, Dict[str, float]] = {
    "size": _BYTES,
    "bandwidth": {f"{name}/s": factor for name, factor in _BYTES.items()},
    "time": {**TIME_UNITS, "ms": 1e-3, "us": 1e-6, **TIME_WORDS},
    "rate": {"/s": 1.0, "IOPS": 1.0, "iops": 1.0, "kIOPS": 1e3, "MIOPS": 1e6},
    "count": {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "million": 1e6, "billion": 1e9},
}
"""Kind of amount -> unit -> its size in SI units; the first is meant where there is none."""

_AMOUNT = re.compile(r"((?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-z/]*)")


def quantity(value: object, kind: str, place: str, zero: bool = False) -> float:
    """Read an amount of a kind of `UNITS`. Raises InputError: no amount, another unit, below 0, or 0 unless allowed."""
    units = UNITS[kind]
    expected = f"a {kind} {'of 0 or more' if zero else 'above 0'} such as {_EXAMPLES[kind]}"
    amount = math.nan
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        amount = float(value)
    elif isinstance(value, str):
        parts = _AMOUNT.fullmatch(value.strip())
        if parts is not None and parts[2] in ("", *units):
            # 50 us are 5e-05 s, not 4.9999999999999996e-05
            amount = float(parts[1]) if units.get(parts[2], 1.0) == 1.0 else _decimal(float(parts[1]) * units[parts[2]])
    if not (0 <= amount < math.inf) or (amount == 0 and not zero):
        raise InputError(place, repr(value), expected)
    return amount


def _decimal(value: float) -> float:
    """To as many digits as a float keeps of any decimal number."""
    return float(f"{value:.15g}")


_EXAMPLES = {
    "size": "4 KiB or 4 MB",
    "bandwidth": "1200 MiB/s or 1.2 GB/s",
    "time": "80 us or 2 ms",
    "rate": "500 IOPS or 20 kIOPS",
    "count": "18000, 10 M or 2 G",
}
