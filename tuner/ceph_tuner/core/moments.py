"""Moments in words, in UTC as Ceph's own logs are, and durations."""

from __future__ import annotations

import math
import re
import time
from datetime import datetime, timezone, tzinfo

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.wording import digits

LAST_S = 253_402_300_799.0
"""The last second that a calendar date has (year 9999)."""
LAST_AHEAD_S = 253_339_228_800.0
"""The beginning of the year 9998: what follows a moment by a year has dates as well."""
_LONGEST_SHOWN = 60
TIME_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
"""Unit -> seconds."""
_WORDS = {"second": "s", "minute": "min", "hour": "h", "day": "d", "week": "w"}
TIME_WORDS = {f"{word}{ending}": TIME_UNITS[unit] for word, unit in _WORDS.items() for ending in ("", "s")}
"""The same units written out, as files may have them: `14 days`."""
_AGE = re.compile(rf"(\d+(?:\.\d+)?)\s*({'|'.join(TIME_UNITS)})\Z")


def stamp(at: float) -> str:
    """`2026-11-21 18:42:06`, from seconds since the epoch: in UTC, for the narrow columns of tables."""
    return _calendar_text(at, "%Y-%m-%d %H:%M:%S")


def utc(at: float) -> str:
    """`2026-11-21 18:42:06 UTC`."""
    return f"{stamp(at)} UTC"


def utc_minute(at: float) -> str:
    """`2026-11-21 18:42 UTC`."""
    return _calendar_text(at, "%Y-%m-%d %H:%M UTC")


def iso(at: float) -> str:
    """`2026-11-21T18:42:06Z`, for documents that programs read."""
    return _calendar_text(at, "%Y-%m-%dT%H:%M:%SZ")


def clock(at: float, zone: tzinfo) -> str:
    """`Sat 2026-11-21 19:42`, by the clock of a zone."""
    return datetime.fromtimestamp(at, zone).strftime("%a %Y-%m-%d %H:%M")


def _calendar_text(at: float, form: str) -> str:
    """What is stored may say any number: one that no calendar has is shown as it is, and costs nothing else."""
    try:
        return time.strftime(form, time.gmtime(at))
    except (ValueError, OverflowError, OSError):
        return f"{str(at)[:20]} s after 1970"


DURATION_SCALES = ((172_800.0, 86_400.0, "d"), (7_200.0, 3_600.0, "h"), (120.0, 60.0, "min"), (0.0, 1.0, "s"))
"""From so many seconds on, divided by, unit."""


def duration(seconds: float) -> str:
    """`40 s`, `15 min`, `3.2 h`, `9.5 d`: three digits that count. What is below nothing is nothing."""
    seconds = max(seconds, 0.0)
    scale, unit = next((scale, unit) for least, scale, unit in DURATION_SCALES if seconds >= least)
    return f"{digits(seconds / scale)} {unit}"


def duration_s(text: str, place: str) -> float:
    """Seconds of `90s`, `30min`, `12h`, `7d` or `2w`. Raises InputError."""
    match = _AGE.match(text.strip())
    if match is None or not 0 < float(match[1]) < math.inf:
        raise InputError(place, _shown(text), "a time such as 30min, 12h or 7d")
    return float(match[1]) * TIME_UNITS[match[2]]


def moment(text: str, now: float, place: str) -> float:
    """Seconds since the epoch of `now`, of so long ago (`7d`), or of a date and time in UTC. Raises InputError."""
    if text.strip() == "now":
        return now
    try:
        at = now - duration_s(text, place) if _AGE.match(text.strip()) else _of_date(text)
    except (ValueError, OverflowError):
        raise InputError(
            place, _shown(text), "an age such as 12h or 7d, or a time such as 2026-11-21 or 2026-11-21T18:00"
        ) from None
    if not 0 <= at <= now:
        raise InputError(place, _shown(text), "a time that is past")
    return at


def moment_ahead(text: str, now: float, place: str, zone: tzinfo = timezone.utc) -> float:
    """Seconds since the epoch of in so long (`12h`), or of a date and time to come, in that zone. Raises InputError."""
    try:
        at = now + duration_s(text, place) if _AGE.match(text.strip()) else _of_date(text, zone)
    except (ValueError, OverflowError):
        raise InputError(
            place,
            _shown(text),
            "a time from now on such as 12h or 7d, or a date such as 2030-12-01 or 2030-12-01T06:00",
        ) from None
    if not at > now:
        raise InputError(place, _shown(text), f"a time to come: it is {utc_minute(now)}")
    if at >= LAST_AHEAD_S:
        raise InputError(place, _shown(text), "a time before the year 9998")
    return at


def _shown(text: str) -> str:
    return repr(text[:_LONGEST_SHOWN])


def _of_date(text: str, zone: tzinfo = timezone.utc) -> float:
    date = datetime.fromisoformat(text.strip())
    return (date if date.tzinfo else date.replace(tzinfo=zone)).timestamp()
