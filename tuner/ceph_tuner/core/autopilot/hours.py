"""Times of the week as an operator writes them, in UTC: `mon-fri 22:00-06:00, sat-sun`.

Each part between commas has days, a time, or both: without days it is every day, without a time the whole day. A time
that ends before it begins goes on past midnight, so `fri 22:00-06:00` ends on Saturday. `sun-tue` is three days.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Optional, Tuple

from ceph_tuner.core.errors import InputError

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAY_S, WEEK_S = 86400, 7 * 86400

_DAY = "|".join(DAYS)
_PART = re.compile(rf"(?:({_DAY})(?:-({_DAY}))?)?\s*(?:(\d\d?):(\d\d)-(\d\d?):(\d\d))?")
_EXPECTED = f"days ({', '.join(DAYS)}), a time, or both, such as `mon-fri 22:00-06:00`"
# the epoch began on a Thursday
_MONDAY_S = 3 * DAY_S


@dataclass(frozen=True)
class Hours:
    """Spans of the week, each as the second after Monday 00:00 UTC at which it begins, and its length."""

    spans: Tuple[Tuple[int, int], ...]

    def covers(self, at: float) -> bool:
        """Whether a moment (seconds since the epoch) is inside; a span's end is outside."""
        return self._left(math.floor(at)) > 0

    def begins(self, at: float) -> Optional[float]:
        """The first moment from `at` on that is inside; None where there is none."""
        if self.covers(at):
            return at
        moment = math.floor(at)
        return min((moment + (start - moment - _MONDAY_S) % WEEK_S for start, _ in self.spans), default=None)

    def ends(self, at: float) -> Optional[float]:
        """The first moment from `at` on that is outside; None where there is none."""
        if not self.covers(at):
            return at
        moment = math.floor(at)
        while self._left(moment) > 0:
            moment += self._left(moment)
            if moment >= at + WEEK_S:
                return None
        return moment

    def _left(self, moment: int) -> int:
        """Seconds to the end of the span that goes on longest."""
        return max((length - (moment + _MONDAY_S - start) % WEEK_S for start, length in self.spans), default=0)


def parse_hours(text: str, place: str = "hours") -> Hours:
    """Read times of the week; an empty text has none. Raises InputError naming the part at fault."""
    spans = [span for part in text.lower().split(",") for span in _spans(part.strip(), place)] if text.strip() else []
    return Hours(tuple(spans))


def _spans(part: str, place: str) -> Tuple[Tuple[int, int], ...]:
    parsed = _PART.fullmatch(part)
    if parsed is None or not part:
        raise InputError(place, repr(part), _EXPECTED)
    first, last, *clock = parsed.groups()
    start, length = 0, DAY_S
    if clock[0] is not None:
        start, end = _second(clock[0], clock[1]), _second(clock[2], clock[3])
        if max(start, end) > DAY_S or start == DAY_S or int(clock[1]) > 59 or int(clock[3]) > 59:
            raise InputError(place, repr(part), "times from 00:00 to 24:00")
        if start == end:
            raise InputError(place, repr(part), "a time that ends at another time than it begins")
        length = end - start if end > start else end - start + DAY_S
    if first is None:
        days = range(len(DAYS))
    else:
        begin = DAYS.index(first)
        days = range(begin, begin + (DAYS.index(last or first) - begin) % len(DAYS) + 1)
    return tuple((day % len(DAYS) * DAY_S + start, length) for day in days)


def _second(hour: str, minute: str) -> int:
    return int(hour) * 3600 + int(minute) * 60
