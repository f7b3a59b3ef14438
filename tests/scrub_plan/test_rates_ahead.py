"""Each hour ahead has the rates of the policy that holds then."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from ceph_tuner.core.goals.slo_calendar import SloCalendar, parse_slo_calendar
from ceph_tuner.scrub_plan import HOURS, RateRange, ScrubRules
from ceph_tuner.scrub_plan.pace import Expectation
from ceph_tuner.scrub_plan.plan import plan
from ceph_tuner.scrub_plan.rates_ahead import RatesAhead
from ceph_tuner.scrub_plan.schedule import shares
from keeping import by_day_and_night
from overdue import DAY, HOUR, MB, NOW, pg, rate, view

FAST, SLOW = rate(50 * MB, 40 * MB, 60 * MB), rate(1 * MB)


def ahead(calendar: SloCalendar, night: RateRange = FAST, day: RateRange = SLOW) -> RatesAhead:
    return RatesAhead({"base": (day,) * HOURS, "night": (night,) * HOURS}, calendar)


def test_an_hour_has_the_rate_of_its_own_policy() -> None:
    hours = [(NOW + hour * HOUR, HOUR) for hour in range(24)]
    found = shares(hours, ahead(by_day_and_night("20")), ScrubRules())
    assert found == [(50 if hour < 6 or hour >= 22 else 1) * MB * HOUR for hour in range(24)]
    lows = shares(hours, ahead(by_day_and_night("20")), ScrubRules(), "low")
    assert lows[0] == 40 * MB * HOUR


def test_the_same_hour_of_another_day_may_have_another_policy() -> None:
    calendar = by_day_and_night("20", "sat-sun")
    rates = ahead(calendar)
    # NOW is the midnight before a Saturday
    assert [rates.at(NOW + day * DAY + 10 * HOUR).mean for day in range(3)] == [50 * MB, 50 * MB, 1 * MB]


def test_an_hour_in_which_a_policy_ends_has_a_part_of_both() -> None:
    rates = ahead(by_day_and_night("20", "22:00-06:15"))
    assert rates.bytes_in(NOW + 6 * HOUR, HOUR) == pytest.approx((50 * 900 + 1 * 2700) * MB)
    assert rates.bytes_in(NOW + 6 * HOUR + 0.25, 0.5) == pytest.approx(25 * MB)


def test_the_hours_of_the_hosts_and_the_zone_of_the_calendar_are_two_things() -> None:
    berlin = parse_slo_calendar(
        {
            "objectives": ["client.p95_ms <= 20"],
            "calendar": {"zone": "Europe/Berlin", "policies": [{"name": "night", "hours": "00:00-06:00"}]},
        }
    )
    by_hour = tuple(rate((1 + hour) * MB) for hour in range(HOURS))
    tokyo = timezone(timedelta(hours=9))
    rates = RatesAhead({"base": by_hour, "night": by_hour}, berlin, tokyo)
    assert rates.policy_at(NOW) == "night"
    assert rates.policy_at(NOW + 5 * HOUR) == "base"
    hour = datetime.fromtimestamp(NOW, tokyo).hour
    assert rates.at(NOW).mean == (1 + hour) * MB
    # Ceph's own hours are those of the hosts too, for the plan's shares and for the date of a drain
    rules = ScrubRules(hours=(hour + 2, hour + 3))
    assert shares([(NOW + each * HOUR, HOUR) for each in range(4)], rates, rules) == [0, 0, (3 + hour) * MB * HOUR, 0]
    assert Expectation(rates, 1.0).finish_at(NOW, (3 + hour) * MB * HOUR / 2, rules) == pytest.approx(NOW + 2.5 * HOUR)


def test_each_policy_must_have_its_rates() -> None:
    with pytest.raises(ValueError, match="'night'"):
        RatesAhead({"base": (SLOW,) * HOURS}, by_day_and_night("20"))


def test_a_drain_expects_what_the_policies_of_its_hours_leave() -> None:
    rates = ahead(by_day_and_night("20"))
    # 100 GB: the night's last hour takes it, the day's first ones would not
    assert Expectation(rates, 1.0).finish_at(NOW + 5 * HOUR, 100e9, ScrubRules()) == pytest.approx(
        NOW + 5 * HOUR + 2000
    )
    begun_by_day = Expectation(rates, 1.0).finish_at(NOW + 6 * HOUR, 100e9, ScrubRules())
    assert begun_by_day == pytest.approx(NOW + 22 * HOUR + (100e9 - 16 * HOUR * 1e6) / 50e6)


def test_a_plan_says_which_policy_holds_in_which_hours() -> None:
    late = [pg(f"1.{number}", 1, raw_bytes=3600 * 20 * MB) for number in range(4)]
    found = plan(view(late), ahead(by_day_and_night("20")), {"base": ("client.p95_ms <= 20 ms",), "night": ()}, days=1)
    assert found.hours_by_policy == {"night": (0, 1, 2, 3, 4, 5, 22, 23), "base": tuple(range(6, 22))}
    document = found.to_dict()
    rows = {(row["hour"], row["policy"]): row["mean"] for row in document["rates"]}
    assert len(rows) == 24
    assert (rows[0, "night"], rows[6, "base"]) == (50 * MB, 1 * MB)
    assert document["objectives"] == []
    assert document["policies"] == {"base": ["client.p95_ms <= 20 ms"], "night": []}
    assert found.schedule.gone_at == pytest.approx(NOW + 1.6 * HOUR)
