"""When Ceph's own hours and days let a scrub begin."""

from __future__ import annotations

from datetime import datetime, timezone, tzinfo
from typing import Mapping, Tuple

Bounds = Tuple[int, int]
"""Begin and end; the same for always."""


def may_begin(days: Bounds, hours: Bounds, at: float, zone: tzinfo = timezone.utc) -> bool:
    """Whether a scrub may begin at a moment in seconds since the epoch (`OsdScrub::scrub_time_permit`).

    Ceph goes by the local time of the OSD's host, `zone`. Day 0 is Sunday.
    """
    local = datetime.fromtimestamp(at, zone)
    return _between(days, (local.weekday() + 1) % 7) and _between(hours, local.hour)


def bounds_of(options: Mapping[str, str]) -> Tuple[Bounds, Bounds]:
    """Days and hours in which an OSD with these options lets scrubs begin."""

    def number(name: str) -> int:
        text = options.get(name, "0")
        return int(text) if text.isdecimal() and len(text) < 4 else 0

    days = number("osd_scrub_begin_week_day"), number("osd_scrub_end_week_day")
    return days, (number("osd_scrub_begin_hour"), number("osd_scrub_end_hour"))


def bounding_options(days: Bounds, hours: Bounds) -> Tuple[str, ...]:
    """The options that make these bounds narrower than always."""
    of_hours = ("osd_scrub_begin_hour", "osd_scrub_end_hour") if hours[0] != hours[1] else ()
    of_days = ("osd_scrub_begin_week_day", "osd_scrub_end_week_day") if days[0] != days[1] else ()
    return (*of_hours, *of_days)


def _between(bounds: Bounds, value: int) -> bool:
    """`isbetween_modulo` of osd_scrub.cc: the same begin and end is always."""
    begin, end = bounds
    return begin == end or ((end >= begin) ^ (value >= begin) ^ (value < end))
