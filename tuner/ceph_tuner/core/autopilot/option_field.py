"""Fields of a dataclass that are options of the mgr module: default, meaning, bounds."""

from __future__ import annotations

from dataclasses import Field, field, fields
from typing import Any, Callable, Optional

from ceph_tuner.core.errors import InputError


def option_field(default: Any, meaning: str, low: Optional[float] = None, high: Optional[float] = None) -> Any:
    """One; `low` and `high` are the least and the greatest value, None for what is no number."""
    return field(default=default, metadata={"meaning": meaning, "low": low, "high": high})


def check_bounds(values: Any, option_name: Callable[[Field[Any]], str]) -> None:
    """Hold each field of a dataclass against its bounds. Raises InputError with the option's name."""
    for item in fields(values):
        value, low, high = getattr(values, item.name), item.metadata["low"], item.metadata["high"]
        if low is not None and not low <= value <= high:
            raise InputError(option_name(item), f"{value}", f"{low:g} to {high:g}")
