"""When Ceph's own hours and days let a scrub begin."""

from __future__ import annotations

from datetime import datetime, timezone, tzinfo
from typing import Tuple

Bounds = Tuple[int, int]
"""Begin and end; the same for always."""


def may_begin(days: Bounds, hours: Bounds, at: float, zone: tzinfo = timezone.utc) -> bool:
    """Whether a scrub may begin at a moment in seconds since the epoch (`OsdScrub::scrub_time_permit`).

    Ceph goes by the local time of the OSD's host, `zone`. Day 0 is Sunday.
    """
    local = datetime.fromtimestamp(at, zone)
    return _between(days, (local.weekday() + 1) % 7) and _between(hours, local.hour)


def _between(bounds: Bounds, value: int) -> bool:
    """`isbetween_modulo` of osd_scrub.cc: the same begin and end is always."""
    begin, end = bounds
    return begin == end or ((end >= begin) ^ (value >= begin) ^ (value < end))
