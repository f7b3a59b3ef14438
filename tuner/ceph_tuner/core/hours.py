"""Times as an operator writes them: `mon-fri 22:00-06:00, sat-sun`, `2026-12-24..2026-12-26 Europe/Berlin`.

Each part between commas has days, a time, or both: without days it is every day, without a time the whole day. Days are
weekdays or dates. A time that ends before it begins goes on past midnight, so `fri 22:00-06:00` ends on Saturday.
`sun-tue` is three days. A zone at the end is for all parts; without one the times are in UTC.

A part goes from the first moment at which a clock of the zone shows its begin, or more, to that for its end. So where
the hour from 2 to 3 comes twice, `02:00-03:00` is two hours, and where it never comes, none. Parts that touch on the
clock touch in time, and parts that do not overlap on the clock never do.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Iterable, List, Optional, Tuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from ceph_tuner.core.errors import InputError

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAY_S, WEEK_S = 86400, 7 * 86400
UTC = "UTC"
LONGEST_TEXT, MOST_DATES = 500, 366
"""Characters of such a text, and days of one part of it with dates."""
FARTHEST_S = 400 * DAY_S
"""So far ahead is looked for what dates begin or end."""

Stretch = Tuple[int, int]
"""Two moments, in seconds: the begin, and the end, which is outside."""

_GROUPS = {"weekdays": "mon-fri", "weekends": "sat-sun"}
_DAY = "|".join(DAYS)
_DATE = r"\d{4}-\d\d-\d\d"
_PART = re.compile(
    rf"(?:({_DAY})(?:-({_DAY}))?|({_DATE})(?:\.\.({_DATE}))?)?\s*(?:(\d\d?):(\d\d)-(\d\d?):(\d\d))?",
    re.ASCII,
)
_ZONE = re.compile(r"(?<![,\s])\s+([A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*)\Z")
_EXPECTED = (
    f"days ({', '.join(DAYS)}, weekdays, weekends, or dates such as 2026-12-24..2026-12-26), a time, or both, such as "
    "`mon-fri 22:00-06:00`"
)
# years in which every zone's clock can be reckoned with
_YEARS = (1971, 2200)


@dataclass(frozen=True)
class DatedSpan:
    """A time of each day from one date to another."""

    first: date
    last: date
    start: int
    length: int


@dataclass(frozen=True)
class Hours:
    """Spans of the week, each as the second after Monday 00:00 at which it begins, and its length; and dated ones."""

    spans: Tuple[Tuple[int, int], ...] = ()
    dated: Tuple[DatedSpan, ...] = ()
    zone: str = UTC

    @property
    def of_the_week(self) -> Hours:
        """Those of its times that come every week."""
        return replace(self, dated=())

    @property
    def of_dates(self) -> Hours:
        """Those of its times that have dates."""
        return replace(self, spans=())

    @property
    def reach_s(self) -> int:
        """How far ahead of a moment it has to be looked for a begin or an end."""
        # a clock that is set forward makes a week longer on the clock than in time, and back
        return FARTHEST_S if self.dated else WEEK_S + DAY_S

    def __bool__(self) -> bool:
        """Whether there is any time in it."""
        return bool(self.spans or self.dated)

    def covers(self, at: float) -> bool:
        """Whether a moment (seconds since the epoch) is inside; a span's end is outside."""
        moment = math.floor(at)
        return any(begin <= moment < end for begin, end in self._around(moment))

    def begins(self, at: float) -> Optional[float]:
        """The first moment from `at` on that is inside; None where there is none."""
        if self.covers(at):
            return at
        moment = math.floor(at)
        weekly = self.of_the_week.stretches(moment, moment + WEEK_S + DAY_S) if self.spans else []
        zone = zone_of(self.zone)
        dated = (first_moment(begin, zone) for begin, _ in self.of_dates.on_the_clock())
        return min((begin for begin in (*(begin for begin, _ in weekly), *dated) if begin > moment), default=None)

    def ends(self, at: float) -> Optional[float]:
        """The first moment from `at` on that is outside; None where there is none."""
        if not self.covers(at):
            return at
        moment = math.floor(at)
        while moment < at + self.reach_s:
            later = max((end for begin, end in self._around(moment) if begin <= moment < end), default=None)
            if later is None:
                return moment
            moment = later
        return None

    def stretches(self, start: float, end: float) -> List[Stretch]:
        """When it covers something of that time, in order, without those that touch or overlap: they are one."""
        zone = zone_of(self.zone)
        first, last = (datetime.fromtimestamp(moment, zone).date() for moment in (start, end))
        # a span may go on past midnight
        days = [first + timedelta(days=number) for number in range(-2, (last - first).days + 2)]
        overlapping = (_stretch(begin, length, zone) for day in days for begin, length in self._on(day))
        return [each for each in merged(overlapping) if each[0] < end and each[1] > start]

    def on_the_clock(self) -> List[Stretch]:
        """The same on the zone's clock, in seconds: after Monday 00:00 without dates, after the year 1 with them only.

        What goes on past the week's end is there twice, at its end and its beginning.
        """
        if self.spans:
            weekly = [(start, min(start + length, WEEK_S)) for start, length in self.spans]
            weekly += [(0, start + length - WEEK_S) for start, length in self.spans if start + length > WEEK_S]
            return merged(weekly)
        return merged(
            (begin, begin + span.length)
            for span in self.dated
            for begin in (
                (span.first.toordinal() + number) * DAY_S + span.start
                for number in range((span.last - span.first).days + 1)
            )
        )

    def _around(self, moment: int) -> List[Stretch]:
        if not self:
            return []
        zone = zone_of(self.zone)
        day = datetime.fromtimestamp(moment, zone).date()
        days = (day + timedelta(days=number) for number in (-2, -1, 0, 1))
        return [_stretch(begin, length, zone) for day in days for begin, length in self._on(day)]

    def _on(self, day: date) -> List[Tuple[int, int]]:
        """What begins on a day: the second on the clock (as `on_the_clock` has dates), and the length there."""
        midnight, weekday = day.toordinal() * DAY_S, day.weekday()
        weekly = [(midnight + at % DAY_S, length) for at, length in self.spans if at // DAY_S == weekday]
        return weekly + [(midnight + each.start, each.length) for each in self.dated if each.first <= day <= each.last]


def parse_hours(text: str, place: str = "hours", zone: str = "") -> Hours:
    """Read times; an empty text has none. Raises InputError naming the part at fault.

    With a `zone` they are in that one, and can name no other.
    """
    if len(text) > LONGEST_TEXT:
        raise InputError(place, f"{len(text)} characters", f"at most {LONGEST_TEXT}")
    zone_at_end = _ZONE.search(text)
    if zone_at_end is not None and not _is_days(zone_at_end[1]):
        if zone and zone_at_end[1] != zone:
            raise InputError(place, f"the zone {zone_at_end[1]}", f"none, or {zone}: the calendar has one zone for all")
        text, zone = text[: zone_at_end.start()], zone_at_end[1]
    zone = zone or UTC
    zone_of(zone, place)
    parts = text.lower().split(",") if text.strip() else []
    spans: List[Tuple[int, int]] = []
    dated: List[DatedSpan] = []
    for part in parts:
        weekly, of_dates = _parsed(part.strip(), place)
        spans += weekly
        dated += of_dates
    return Hours(tuple(spans), tuple(dated), zone)


def zone_of(name: str, place: str = "hours") -> tzinfo:
    """A time zone by its name. Raises InputError, also where this host has no time zones."""
    if name == UTC:
        return timezone.utc
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(place, f"the time zone {name[:60]!r}", _zone_expected()) from None


def zone_changes(zone: str, start: float, end: float) -> List[Tuple[int, int, int]]:
    """When a zone's clock is set in that time, with its distance from UTC before and after, in seconds."""
    kind = zone_of(zone)
    changes: List[Tuple[int, int, int]] = []
    low = math.floor(start)
    while low < end:
        high = min(low + DAY_S, math.ceil(end))
        if _offset(low, kind) != _offset(high, kind):
            at = _set_at(low, high, kind)
            changes.append((at, _offset(at - 1, kind), _offset(at, kind)))
        low = high
    return changes


def clock_second(moment: int, zone: tzinfo) -> int:
    """What the zone's clock shows at a moment, in seconds after the year 1 (as `Hours.on_the_clock` has dates)."""
    clock = datetime.fromtimestamp(moment, zone)
    return clock.toordinal() * DAY_S + clock.hour * 3600 + clock.minute * 60 + clock.second


@lru_cache(maxsize=4096)  # a look at a calendar asks for those of many days again
def first_moment(clock_s: int, zone: tzinfo) -> int:
    """The first moment at which the zone's clock shows that second, or a later one."""
    clock = datetime.fromordinal(clock_s // DAY_S) + timedelta(seconds=clock_s % DAY_S)
    moment = math.floor(clock.replace(tzinfo=zone).timestamp())
    if datetime.fromtimestamp(moment, zone).replace(tzinfo=None) == clock:
        return moment
    # the clock is set past it; with the later offset the moment is before that
    return _set_at(math.floor(clock.replace(tzinfo=zone, fold=1).timestamp()), moment, zone)


def merged(stretches: Iterable[Stretch]) -> List[Stretch]:
    """In order, those that touch or overlap as one."""
    joint: List[Stretch] = []
    for begin, end in sorted(each for each in stretches if each[0] < each[1]):
        if joint and begin <= joint[-1][1]:
            joint[-1] = (joint[-1][0], max(joint[-1][1], end))
        else:
            joint.append((begin, end))
    return joint


def _is_days(word: str) -> bool:
    return word.lower() in _GROUPS or re.fullmatch(rf"({_DAY})(-({_DAY}))?", word.lower()) is not None


def _zone_expected() -> str:
    if not available_timezones():
        return "UTC, or another zone after this host's package tzdata is installed: there are no time zones here"
    return "UTC or a name of the time zone database, such as Europe/Berlin"


def _parsed(part: str, place: str) -> Tuple[List[Tuple[int, int]], List[DatedSpan]]:
    for name, days in _GROUPS.items():
        part = re.sub(rf"\A{name}(?=\s|\Z)", days, part)
    parsed = _PART.fullmatch(part)
    if parsed is None or not part:
        raise InputError(place, repr(part), _EXPECTED)
    first, last, from_date, to_date, *clock = parsed.groups()
    start, length = 0, DAY_S
    if clock[0] is not None:
        start, end = _second(clock[0], clock[1]), _second(clock[2], clock[3])
        if max(start, end) > DAY_S or start == DAY_S or int(clock[1]) > 59 or int(clock[3]) > 59:
            raise InputError(place, repr(part), "times from 00:00 to 24:00")
        if start == end:
            raise InputError(place, repr(part), "a time that ends at another time than it begins")
        length = end - start if end > start else end - start + DAY_S
    if from_date is not None:
        dates = (_date(from_date, part, place), _date(to_date or from_date, part, place))
        if not 0 <= (dates[1] - dates[0]).days < MOST_DATES:
            raise InputError(place, repr(part), f"a first and a last date, at most {MOST_DATES} days")
        return [], [DatedSpan(*dates, start, length)]
    if first is None:
        days_of_it = range(len(DAYS))
    else:
        begin = DAYS.index(first)
        days_of_it = range(begin, begin + (DAYS.index(last or first) - begin) % len(DAYS) + 1)
    return [(day % len(DAYS) * DAY_S + start, length) for day in days_of_it], []


def _date(text: str, part: str, place: str) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise InputError(place, repr(part), "dates that there are") from None
    if not _YEARS[0] <= day.year <= _YEARS[1]:
        raise InputError(place, repr(part), f"dates from {_YEARS[0]} to {_YEARS[1]}")
    return day


def _second(hour: str, minute: str) -> int:
    return int(hour) * 3600 + int(minute) * 60


def _stretch(begin: int, length: int, zone: tzinfo) -> Stretch:
    return first_moment(begin, zone), first_moment(begin + length, zone)


def _set_at(low: int, high: int, zone: tzinfo) -> int:
    """When the clock is set between two moments of different offsets."""
    before = _offset(low, zone)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _offset(middle, zone) == before else (low, middle)
    return high


def _offset(moment: int, zone: tzinfo) -> int:
    offset = datetime.fromtimestamp(moment, zone).utcoffset()
    return 0 if offset is None else round(offset.total_seconds())
