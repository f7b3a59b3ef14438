from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.autopilot.hours import DAY_S, DAYS, WEEK_S, parse_hours
from ceph_tuner.core.errors import InputError


def at(text: str) -> float:
    """Seconds since the epoch; 2026-11-23 is a Monday."""
    return datetime.strptime(text, "%Y-%m-%d %H:%M").replace(tzinfo=timezone.utc).timestamp()


NIGHTS = parse_hours("mon-fri 22:00-06:00, sat-sun")


@pytest.mark.parametrize(
    ("moment", "inside"),
    [
        ("2026-11-23 21:59", False),
        ("2026-11-23 22:00", True),
        ("2026-11-24 05:59", True),
        ("2026-11-24 06:00", False),
        ("2026-11-28 05:00", True),
        ("2026-11-29 23:59", True),
        # Sunday is a whole day, and no night begins on it
        ("2026-11-30 00:00", False),
    ],
)
def test_nights_begin_on_their_day_and_end_on_the_next(moment: str, inside: bool) -> None:
    assert NIGHTS.covers(at(moment)) is inside


def test_it_says_when_it_begins_and_ends() -> None:
    assert NIGHTS.begins(at("2026-11-24 12:00")) == at("2026-11-24 22:00")
    assert NIGHTS.ends(at("2026-11-24 23:00")) == at("2026-11-25 06:00")
    # Friday's night goes on into the weekend without a gap
    assert NIGHTS.ends(at("2026-11-27 23:00")) == at("2026-11-30 00:00")
    assert parse_hours("mon-sun").ends(at("2026-11-24 12:00")) is None
    assert parse_hours("").begins(at("2026-11-24 12:00")) is None


@pytest.mark.parametrize("text", ["fri-mon 23:00-01:00", "FRI-MON 23:00-1:00", "fri 23:00-01:00,sat-mon 23:00-01:00"])
def test_days_go_over_the_end_of_the_week(text: str) -> None:
    hours = parse_hours(text)
    assert all(hours.covers(at(f"2026-11-{day} 00:30")) for day in (24, 28, 29, 30))
    assert not any(hours.covers(at(f"2026-11-{day} 00:30")) for day in (25, 26, 27))


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("mon-fri 22:00-06:00, weekend", "'weekend'"),
        ("sat,", "''"),
        ("mon 22-06", "'mon 22-06'"),
        ("mon 24:00-06:00", "'mon 24:00-06:00'"),
        ("22:60-23:00", "'22:60-23:00'"),
        ("sun 10:00-10:00", "'sun 10:00-10:00'"),
        ("mon-xyz", "'mon-xyz'"),
        ("00:00-25:00", "'00:00-25:00'"),
    ],
)
def test_a_part_that_cannot_be_read_is_named(text: str, part: str) -> None:
    with pytest.raises(InputError) as error:
        parse_hours(text, "blackout")
    assert str(error.value).startswith(f"blackout: found {part}, expected ")


days = st.integers(0, 6)
minutes = st.integers(0, 24 * 60 - 1)
parts = st.tuples(days, days, minutes, minutes).filter(lambda part: part[2] != part[3])
moments = st.floats(0, 4e9)


def written(part: tuple) -> str:
    first, last, start, end = part
    clock = "-".join(f"{minute // 60:02d}:{minute % 60:02d}" for minute in (start, end))
    return f"{DAYS[first]}-{DAYS[last]} {clock}"


def inside(part: tuple, moment: float) -> bool:
    """By the calendar: did a span of this part begin today or yesterday, and not end yet."""
    first, last, start, end = part
    now = datetime.fromtimestamp(moment, timezone.utc)
    for begun in (now, now - timedelta(days=1)):
        midnight = begun.replace(hour=0, minute=0, second=0, microsecond=0)
        begins = midnight + timedelta(minutes=start)
        ends = midnight + timedelta(minutes=end, days=1 if end < start else 0)
        if (begun.weekday() - first) % 7 <= (last - first) % 7 and begins <= now < ends:
            return True
    return False


@given(st.lists(parts, min_size=1, max_size=4), moments)
def test_it_agrees_with_the_calendar(drawn: list, moment: float) -> None:
    hours = parse_hours(", ".join(map(written, drawn)))
    assert hours.covers(moment) == any(inside(part, moment) for part in drawn)


@given(st.lists(parts, min_size=1, max_size=4), moments, st.floats(0, 1))
def test_nothing_begins_or_ends_before_it_says_so(drawn: list, moment: float, share: float) -> None:
    hours = parse_hours(", ".join(map(written, drawn)))
    begins, ends = hours.begins(moment), hours.ends(moment)
    assert begins is not None
    assert moment <= begins <= moment + WEEK_S
    assert hours.covers(begins)
    if begins > moment:
        assert not hours.covers(min(moment + share * (begins - moment), begins - 1e-3))
    if ends is not None and ends > moment:
        assert not hours.covers(ends)
        assert hours.covers(min(moment + share * (ends - moment), ends - 1e-3))
    if ends is None:
        assert all(hours.covers(moment + hour * DAY_S / 24) for hour in range(7 * 24))
