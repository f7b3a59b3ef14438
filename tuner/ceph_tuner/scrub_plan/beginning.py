"""What a drain with objectives loses before it has its pace: a first window, then one more scrub after each.

Dates of a plan reckon with it, and so does that of a drain, from its beginning on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Iterable, Iterator, Optional, Sequence, Tuple

from ceph_tuner.pacing.pace import Pace
from ceph_tuner.scrub_plan import ScrubPg
from ceph_tuner.scrub_plan.rates import usual_pace

HourShare = Tuple[float, float, float]
"""Start and seconds of an hour, or of a part of one, and the bytes that it has for scrub."""


@dataclass(frozen=True)
class Beginning:
    """Scrubs that come one by one to as many at a time as the rate takes."""

    window_s: float
    """In which each pace is judged."""
    places: float
    """Scrubs at a time that OSDs have room for."""
    scrub_pace: float
    """Bytes a second of one scrub; infinite where it is not known."""
    at: Optional[float] = None
    """When the first window begins; None: in the first hour that has a share."""

    def lost_s(self, start: float, end: float, rate: float) -> float:
        """Seconds of a rate in bytes a second that are lost between two moments."""
        if self.at is None:
            return 0.0
        full = min(self.places, rate / self.scrub_pace) if math.isfinite(self.scrub_pace) else self.places
        begins, lost_s = self.at, 0.0
        for part in (0.0, *Pace().ramp(full)):
            ends = begins + self.window_s
            lost_s += (1 - part) * max(0.0, min(end, ends) - max(start, begins))
            begins = ends
        return lost_s


def places_for(pgs: Sequence[ScrubPg], per_osd: int) -> float:
    """How many scrubs at a time the OSDs have room for, with so many on each."""
    copies = max((len(pg.acting) for pg in pgs), default=1)
    return len({osd for pg in pgs for osd in pg.acting}) * per_osd / max(1, copies)


def beginning_of(pgs: Sequence[ScrubPg], per_osd: int, window_s: float) -> Beginning:
    """That of scrubs of these PGs, with so many on each OSD."""
    return Beginning(window_s, places_for(pgs, per_osd), usual_pace(pgs))


def without_beginning(hours: Iterable[HourShare], beginning: Optional[Beginning]) -> Iterator[HourShare]:
    """The hours without what is lost in them; each loses it at its beginning."""
    for start, seconds, share in hours:
        if beginning is not None and share > 0:
            if beginning.at is None:
                beginning = replace(beginning, at=start)
            lost_s = beginning.lost_s(start, start + seconds, share / seconds)
            yield start + lost_s, seconds - lost_s, share * (1 - lost_s / seconds)
        else:
            yield start, seconds, share
