"""Moments in words: in UTC, as Ceph's own logs are."""

from __future__ import annotations

import re
import time
from datetime import datetime, timezone

from ceph_tuner.core.errors import InputError

_AGE = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|h|d|w)\Z")
_LENGTHS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


def stamp(at: float) -> str:
    """`2026-11-21 18:42:06`, from seconds since the epoch: in UTC, for the narrow columns of tables."""
    return _written(at, "%Y-%m-%d %H:%M:%S")


def utc(at: float) -> str:
    """`2026-11-21 18:42:06 UTC`."""
    return f"{stamp(at)} UTC"


def utc_minute(at: float) -> str:
    """`2026-11-21 18:42 UTC`."""
    return _written(at, "%Y-%m-%d %H:%M UTC")


def _written(at: float, form: str) -> str:
    """What is stored may say any number: one that no calendar has is shown as it is, and costs nothing else."""
    try:
        return time.strftime(form, time.gmtime(at))
    except (ValueError, OverflowError, OSError):
        return f"{str(at)[:20]} s after 1970"


def duration_s(text: str, place: str) -> float:
    """Seconds of `90s`, `30min`, `12h`, `7d` or `2w`. Raises InputError."""
    match = _AGE.match(text.strip())
    if match is None or not float(match[1]) > 0:
        raise InputError(place, repr(text), "a time such as 30min, 12h or 7d")
    return float(match[1]) * _LENGTHS[match[2]]


def moment(text: str, now: float, place: str) -> float:
    """Seconds since the epoch of `now`, of so long ago (`7d`), or of a date and time in UTC. Raises InputError."""
    if text.strip() == "now":
        return now
    try:
        if _AGE.match(text.strip()):
            at = now - duration_s(text, place)
        else:
            stamp = datetime.fromisoformat(text.strip())
            at = (stamp if stamp.tzinfo else stamp.replace(tzinfo=timezone.utc)).timestamp()
    except (ValueError, OverflowError):
        raise InputError(
            place, repr(text), "an age such as 12h or 7d, or a time such as 2026-11-21 or 2026-11-21T18:00"
        ) from None
    if not 0 <= at <= now:
        raise InputError(place, repr(text), "a time that is past")
    return at
