from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.moments import duration, duration_s, moment, moment_ahead, stamp, utc, utc_minute

NOW = 1_795_200_000.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", NOW),
        ("90s", NOW - 90),
        (" 1.5 h ", NOW - 5400),
        ("2w", NOW - 14 * 86400),
        ("2026-11-20", 1_795_132_800.0),
        ("2026-11-20T01:00:00+01:00", 1_795_132_800.0),
    ],
)
def test_a_moment_is_an_age_or_a_time_in_utc(text: str, expected: float) -> None:
    assert moment(text, NOW, "--since") == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(-1, "0 s"), (0, "0 s"), (9.46, "9.46 s"), (119, "119 s"), (120, "2 min"), (5400, "90 min"), (7200, "2 h"),
     (34_200, "9.5 h"), (172_800, "2 d"), (820_800, "9.5 d"), (1e9, "11574 d")],
)  # fmt: skip
def test_a_duration_is_told_in_the_unit_that_people_use(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected


@given(st.integers(0, int(NOW)))
def test_a_time_is_read_as_it_is_written(at: int) -> None:
    assert moment(utc(at).removesuffix(" UTC"), NOW, "--since") == at


@pytest.mark.parametrize(
    "text", ["", "soon", "0d", "-1h", "7", "7 days", "2999-01-01", "2026-13-01", "1900-01-01", "999999w"]
)
def test_what_is_no_past_moment_is_refused_by_its_flag(text: str) -> None:
    with pytest.raises(InputError, match="--since"):
        moment(text, NOW, "--since")


@pytest.mark.parametrize("text", ["9" * 400 + "s", "9" * 400 + "w", "mon-" * 2**18, " " * 2**20, "1" * 2**20])
def test_a_time_of_any_length_is_refused_in_a_few_words(text: str) -> None:
    for read in (moment, moment_ahead):
        with pytest.raises(InputError) as refusal:
            read(text, NOW, "--since")
        assert len(str(refusal.value)) < 300
    with pytest.raises(InputError) as refusal:
        duration_s(text, "--at-most")
    assert len(str(refusal.value)) < 300


def test_a_duration_has_a_unit() -> None:
    assert duration_s("30min", "--step") == 1800
    with pytest.raises(InputError, match="--step: found '30', expected a time such as 30min"):
        duration_s("30", "--step")


@pytest.mark.parametrize("at", [1e300, -1e300, float("inf"), float("nan"), 1e18, -1e12, 10**400])
def test_a_moment_that_no_calendar_has_is_shown_and_is_no_error(at: float) -> None:
    assert utc(at).isprintable()
    assert stamp(at)
    assert utc_minute(at)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8h", NOW + 8 * 3600),
        (" 2 d ", NOW + 2 * 86400),
        ("2026-12-01", 1_796_083_200.0),
        ("2026-12-01T06:00", 1_796_083_200.0 + 6 * 3600),
        ("2026-12-01T06:00+01:00", 1_796_083_200.0 + 5 * 3600),
    ],
)
def test_a_moment_to_come_is_a_time_from_now_or_a_date_in_utc(text: str, expected: float) -> None:
    assert moment_ahead(text, NOW, "--by") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-12-01", 1_796_083_200.0 - 3600),
        ("2027-07-01", 1_814_400_000.0 - 7200),
        ("2026-12-01T06:00+00:00", 1_796_083_200.0 + 6 * 3600),
        ("12h", NOW + 12 * 3600),
    ],
)
def test_a_date_is_the_midnight_of_a_zone_where_one_is_given(text: str, expected: float) -> None:
    assert moment_ahead(text, NOW, "--begin", ZoneInfo("Europe/Berlin")) == expected


@pytest.mark.parametrize("text", ["", "soon", "0h", "-8h", "2026-11-20", "2026-13-01", "now", "9999999999d"])
def test_what_is_no_moment_to_come_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--by"):
        moment_ahead(text, NOW, "--by")


@pytest.mark.parametrize("text", ["9999-12-31", "9998-01-01", "9999999999d"])
def test_a_moment_without_a_year_of_calendar_after_it_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="expected a time before the year 9998"):
        moment_ahead(text, NOW, "--begin")
    assert moment_ahead("9997-12-31", NOW, "--begin") > NOW
