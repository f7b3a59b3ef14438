from __future__ import annotations

from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core import hours as module
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.hours import DAY_S, DAYS, WEEK_S, merged, parse_hours, zone_changes, zone_of


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
        ("2026-02-30", "'2026-02-30'"),
        ("2026-12-24..2026-12-20", "'2026-12-24..2026-12-20'"),
        ("2026-01-01..2028-01-01", "'2026-01-01..2028-01-01'"),
        ("0001-01-01", "'0001-01-01'"),
        ("mon-fri Europe/Berlln", "the time zone 'Europe/Berlln'"),
        ("mon-fri Europe", "the time zone 'Europe'"),
        ("mon-fri ../../etc/passwd", "'mon-fri ../../etc/passwd'"),
        ("sat " * 300, "1200 characters"),
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


BERLIN = ZoneInfo("Europe/Berlin")


def in_berlin(text: str, fold: int = 0) -> float:
    return datetime.strptime(text, "%Y-%m-%d %H:%M").replace(tzinfo=BERLIN, fold=fold).timestamp()


def test_a_zone_of_any_length_is_refused_in_a_few_words() -> None:
    with pytest.raises(InputError) as refusal:
        zone_of("x" * 2**20, "calendar.zone")
    assert len(str(refusal.value)) < 300


def test_times_of_a_zone_follow_its_clock_through_the_year() -> None:
    office = parse_hours("weekdays 08:00-20:00 Europe/Berlin")
    # 07:00 UTC in winter, 06:00 UTC in summer
    assert office.begins(at("2026-11-24 00:00")) == at("2026-11-24 07:00")
    assert office.begins(at("2026-07-21 00:00")) == at("2026-07-21 06:00")
    assert office.ends(at("2026-07-21 12:00")) == at("2026-07-21 18:00")


def test_the_hour_that_comes_twice_is_two_hours_and_the_one_that_never_comes_none() -> None:
    early, late = (parse_hours(f"{span} Europe/Berlin") for span in ("02:00-03:00", "03:00-04:00"))
    assert early.ends(in_berlin("2026-10-25 02:00")) == in_berlin("2026-10-25 02:00") + 7200
    assert late.begins(in_berlin("2026-10-25 02:30")) == in_berlin("2026-10-25 03:00")
    # on 2027-03-28 the clock goes from 02:00 to 03:00
    assert early.begins(in_berlin("2027-03-28 00:00")) == in_berlin("2027-03-29 02:00")
    assert late.begins(in_berlin("2027-03-28 00:00")) == in_berlin("2027-03-28 03:00")


def test_half_of_the_hour_that_comes_twice_ends_once() -> None:
    """What ended at 02:30 does not begin again when the clock shows 02:15 for the second time."""
    night, morning = (parse_hours(f"{span} Europe/Berlin") for span in ("22:00-02:30", "02:30-08:00"))
    first = in_berlin("2026-10-25 02:30")
    assert night.ends(in_berlin("2026-10-25 00:00")) == first
    assert not night.covers(in_berlin("2026-10-25 02:15", fold=1))
    assert morning.ends(first) == in_berlin("2026-10-25 08:00")


def test_the_clock_is_set_when_the_zone_says() -> None:
    assert zone_changes("Europe/Berlin", at("2026-10-20 00:00"), at("2026-10-27 00:00")) == [
        (at("2026-10-25 01:00"), 7200, 3600)
    ]
    assert zone_changes("Europe/Berlin", at("2027-03-25 00:00"), at("2027-04-01 00:00")) == [
        (at("2027-03-28 01:00"), 3600, 7200)
    ]
    assert zone_changes("UTC", 0, 4e9) == []


def test_dates_are_days_like_others() -> None:
    freeze = parse_hours("2026-12-24..2027-01-06, 2027-02-01 08:00-20:00, sat 10:00-12:00")
    assert freeze.begins(at("2026-12-22 12:00")) == at("2026-12-24 00:00")
    assert freeze.ends(at("2026-12-30 12:00")) == at("2027-01-07 00:00")
    assert freeze.of_dates.begins(at("2027-01-08 00:00")) == at("2027-02-01 08:00")
    assert freeze.of_the_week.begins(at("2027-01-08 00:00")) == at("2027-01-09 10:00")
    assert freeze.of_dates.begins(at("2027-02-01 20:00")) is None


def test_a_host_without_time_zones_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise module.ZoneInfoNotFoundError(name)

    monkeypatch.setattr(module, "ZoneInfo", missing)
    monkeypatch.setattr(module, "available_timezones", set)
    with pytest.raises(InputError, match="install") as refusal:
        parse_hours("mon-fri 08:00-20:00 Europe/Berlin")
    assert "tzdata" in str(refusal.value)
    assert parse_hours("mon-fri 08:00-20:00 UTC").covers(at("2026-11-24 12:00"))


zones = st.sampled_from(
    ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu"]
)
this_century = st.floats(1e9, 4e9)


@given(parts, zones, this_century)
def test_what_touches_on_the_clock_touches_in_time(part: tuple, zone: str, moment: float) -> None:
    """A day cut in two at any minute: at each moment exactly one of the parts covers it."""
    start, end = part[2:]
    one, other = (
        parse_hours(f"{begin // 60:02d}:{begin % 60:02d}-{stop // 60:02d}:{stop % 60:02d} {zone}")
        for begin, stop in ((start, end), (end, start))
    )
    assert one.covers(moment) != other.covers(moment)
    ends = (one if one.covers(moment) else other).ends(moment)
    assert ends is not None
    assert moment < ends <= moment + 2 * DAY_S


@given(st.lists(parts, min_size=1, max_size=4), zones, this_century)
def test_its_stretches_are_what_it_covers(drawn: list, zone: str, moment: float) -> None:
    hours = parse_hours(", ".join(map(written, drawn)) + f" {zone}")
    stretches = hours.stretches(moment, moment + WEEK_S)
    assert all(one[1] < other[0] for one, other in zip(stretches, stretches[1:]))
    for quarter in range(0, 7 * 24 * 4, 29):
        now = moment + quarter * 900
        assert hours.covers(now) == any(begin <= now < end for begin, end in stretches)
    begins = hours.begins(moment)
    assert begins is not None
    assert hours.covers(begins)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=8))
def test_merged_stretches_hold_the_same_moments(drawn: list) -> None:
    found = merged(drawn)
    assert {at for begin, end in drawn for at in range(begin, end)} == {
        at for begin, end in found for at in range(begin, end)
    }
    assert all(one[1] < other[0] for one, other in zip(found, found[1:]))
