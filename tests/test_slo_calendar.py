"""Objectives by a calendar: what holds at a moment, and what is refused."""

from __future__ import annotations

from datetime import date, datetime, timedelta, tzinfo
from typing import Any, Callable, Dict, List, Optional, Tuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals import slo_calendar
from ceph_tuner.core.goals.slo_calendar import BASE, BOOSTS, SloCalendar, boosts_in_words, parse_slo_calendar
from ceph_tuner.core.goals.week_ahead import week_ahead
from ceph_tuner.core.hours import DAY_S, DAYS, WEEK_S, first_moment

OFFICE = {"name": "office", "hours": "mon-fri 08:00-20:00", "objectives": ["client.p95_ms <= 8 ms"]}
NIGHT = {"name": "night", "hours": "mon-thu 22:00-06:00", "without": ["client.p95_ms"]}
FREEZE = {"name": "freeze", "hours": "2026-12-24..2026-12-26", "objectives": ["recovery.bytes_s >= 1 MB/s"]}


def document(*policies: Any, **more: Any) -> Dict[str, Any]:
    base = ["client.p95_ms <= 20 ms", "recovery.bytes_s >= 8 MB/s"]
    return {"name": "x", "objectives": base, "calendar": {"zone": "Europe/Berlin", "policies": list(policies), **more}}


def wanted(calendar: SloCalendar, text: str) -> List[str]:
    """Objectives at a time on the clock of Berlin."""
    return [objective.text for objective in calendar.at(berlin(text)).objectives]


def berlin(text: str) -> float:
    return datetime.strptime(text, "%Y-%m-%d %H:%M").replace(tzinfo=ZoneInfo("Europe/Berlin")).timestamp()


WEEK = parse_slo_calendar(document(OFFICE, NIGHT, FREEZE))


def test_a_policy_replaces_what_is_about_the_same_metric_and_leaves_the_rest() -> None:
    assert wanted(WEEK, "2026-11-24 12:00") == ["recovery.bytes_s >= 8 MB/s", "client.p95_ms <= 8 ms"]
    assert wanted(WEEK, "2026-11-24 23:00") == ["recovery.bytes_s >= 8 MB/s"]
    assert wanted(WEEK, "2026-11-28 12:00") == ["client.p95_ms <= 20 ms", "recovery.bytes_s >= 8 MB/s"]


def test_outside_of_all_policies_the_base_holds_and_dates_outrank_the_week() -> None:
    assert WEEK.policy_at(berlin("2026-11-24 21:00")) == BASE
    # a Thursday
    assert WEEK.policy_at(berlin("2026-12-24 12:00")) == "freeze"
    assert WEEK.ends(berlin("2026-12-24 12:00")) == berlin("2026-12-27 00:00")
    assert WEEK.ends(berlin("2026-11-24 12:00")) == berlin("2026-11-24 20:00")


def test_daylight_saving_moves_the_hours_in_time_and_not_on_the_clock() -> None:
    before, after = "2027-03-26 08:00", "2027-03-29 08:00"
    assert [WEEK.policy_at(berlin(text)) for text in (before, after)] == ["office", "office"]
    assert [WEEK.policy_at(berlin(text) - 1) for text in (before, after)] == [BASE, BASE]
    assert berlin(after) - berlin(before) == 3 * DAY_S - 3600
    assert week_ahead(WEEK, berlin(before))["clock_changes"] == [
        {"at": berlin("2027-03-28 03:00"), "before": 3600, "after": 7200}
    ]


def test_without_a_calendar_it_is_one_slo_at_all_times() -> None:
    plain = parse_slo_calendar({"name": "x", "objectives": ["client.p95_ms <= 20 ms"]})
    assert plain.policy_at(0.0) == BASE
    assert plain.at(0.0) is plain.base
    assert plain.ends(0.0) is None
    assert plain.to_dict() == plain.base.to_dict()


def test_a_far_date_is_seen_and_a_past_one_ends_nothing() -> None:
    far = parse_slo_calendar(document(FREEZE))
    assert far.ends(berlin("2026-06-01 00:00")) == berlin("2026-12-24 00:00")
    assert far.ends(berlin("2027-01-01 00:00")) is None


def test_it_reads_back_what_it_wrote() -> None:
    assert parse_slo_calendar(WEEK.to_dict()) == WEEK


def test_a_policy_says_which_boosts_may_run_and_without_a_word_all_may() -> None:
    calendar = parse_slo_calendar(document({**OFFICE, "boosts": ["scrub"]}, NIGHT, {**FREEZE, "boosts": []}))
    assert calendar.boosts_at(berlin("2026-11-24 12:00")) == ("scrub",)
    assert calendar.boosts_at(berlin("2026-12-24 12:00")) == ()
    assert calendar.boosts_at(berlin("2026-11-24 23:00")) == calendar.boosts_at(berlin("2026-11-24 21:00")) == BOOSTS
    assert parse_slo_calendar(calendar.to_dict()) == calendar
    assert "boosts" not in WEEK.to_dict()["calendar"]["policies"][0]
    entries = week_ahead(calendar, berlin("2026-11-24 12:00"))["policies"]
    assert {entry["name"]: len(entry["boosts"]) for entry in entries} == {
        "base": 4,
        "office": 1,
        "night": 4,
        "freeze": 0,
    }


def test_a_boost_may_run_again_once_a_policy_that_lets_it_begins() -> None:
    day = {"name": "day", "hours": "mon-sun 08:00-20:00", "boosts": []}
    evening = {"name": "evening", "hours": "mon-sun 20:00-23:00", "boosts": ["scrub"]}
    calendar = parse_slo_calendar(document(day, evening))
    noon = berlin("2026-11-24 12:00")
    assert calendar.boost_again("scrub", noon) == berlin("2026-11-24 20:00")
    assert calendar.boost_again("recovery", noon) == berlin("2026-11-24 23:00")
    always = parse_slo_calendar(document({"name": "never", "hours": "mon-sun", "boosts": []}))
    assert always.boost_again("recovery", noon) is None


def test_what_may_run_is_said_in_words() -> None:
    assert boosts_in_words(BOOSTS) == ""
    assert boosts_in_words(("recovery", "scrub")) == "boosts that may run: recovery, scrub"
    assert boosts_in_words(()) == "no boost may run"


def test_scopes_are_those_of_all_policies() -> None:
    scoped = {"name": "scoped", "hours": "sat", "objectives": ["client.p95_ms{class=nvme} <= 2 ms"]}
    assert [str(scope.name) for scope in parse_slo_calendar(document(scoped)).scopes] == ["nvme"]


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        ([OFFICE, {**NIGHT, "hours": "fri 19:00-23:00"}], "slo.calendar.policies.1.hours: found office and night both"),
        ([OFFICE, {**NIGHT, "hours": "fri 19:00-23:00"}], "both at fri 19:00"),
        ([{**OFFICE, "hours": "sun 22:00-06:00"}, {**NIGHT, "hours": "mon 05:00-07:00"}], "both at mon 05:00"),
        ([FREEZE, {**OFFICE, "hours": "2026-12-26 08:00-20:00"}], "both at 2026-12-26 08:00"),
        ([OFFICE, {**NIGHT, "name": "office"}], "policies.1.name: found office twice"),
        ([{**OFFICE, "name": "base"}], "policies.0.name: found 'base'"),
        ([{**OFFICE, "name": "Office hours"}], "policies.0.name"),
        ([{**OFFICE, "hours": "weekend"}], "policies.0.hours: found 'weekend'"),
        ([{**OFFICE, "hours": "sat America/New_York"}], "found the zone America/New_York, expected none"),
        ([{**OFFICE, "hours": ""}], "policies.0.hours: found ''"),
        ([{**OFFICE, "boost": []}], "policies.0.boost: found unknown key 'boost'"),
        ([{**OFFICE, "boosts": ["tea"]}], "policies.0.boosts: found ['tea']"),
        ([{**OFFICE, "boosts": "scrub"}], "policies.0.boosts: found scrub"),
        ([{**OFFICE, "boosts": None}], "policies.0.boosts: found None"),
        ([{**OFFICE, "objectives": ["client.p95_ms >= 8 ms"]}], "policies.0.objectives.0"),
        ([{**OFFICE, "objectives": ["client.p95_ms <= 8", "client.p95_ms <= 9"]}], "two hard objectives"),
        ([{**NIGHT, "without": ["client.p99_ms"]}], "policies.0.without"),
        ([{**NIGHT, "without": ["client.p95_ms", "recovery.bytes_s"]}], "at least one objective"),
        ([{**OFFICE, "objectives": 5}], "policies.0.objectives: found int"),
        ([5], "policies.0: found int"),
        ([], "found 0 policies"),
        ([{**OFFICE, "name": f"p{number}"} for number in range(21)], "found 21 policies"),
    ],
)
def test_what_makes_no_sense_is_named_with_its_place(policies: List[Any], message: str) -> None:
    with pytest.raises(InputError) as refusal:
        parse_slo_calendar(document(*policies))
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("calendar", "message"),
    [
        (5, "slo.calendar: found int"),
        ({"zone": "Europe/Berlln", "policies": [OFFICE]}, "the time zone 'Europe/Berlln'"),
        ({"zone": "../../etc/passwd", "policies": [OFFICE]}, "the time zone '../../etc/passwd'"),
        ({"zone": "Europe", "policies": [OFFICE]}, "the time zone 'Europe'"),
        ({"zone": 5, "policies": [OFFICE]}, "slo.calendar.zone: found 5"),
        ({"zones": "UTC", "policies": [OFFICE]}, "slo.calendar.zones: found unknown key 'zones'"),
        ({"policies": "office"}, "slo.calendar.policies: found str"),
    ],
)
def test_a_calendar_that_cannot_be_read_is_named(calendar: Any, message: str) -> None:
    with pytest.raises(InputError) as refusal:
        parse_slo_calendar({**document(), "calendar": calendar})
    assert message in str(refusal.value)


zones = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"])


@st.composite
def calendars(draw: Any) -> SloCalendar:
    """Policies that share the week's hours out among them; some hours are left to the base."""
    cuts = sorted(draw(st.lists(st.integers(0, 167), min_size=2, max_size=8, unique=True)))
    policies = []
    for number, (begin, end) in enumerate(zip(cuts, cuts[1:])):
        if number % 3 == 2:
            continue
        parts = []
        for hour in range(begin, end):
            # by the hour, so that no part is longer than a day
            following = f"{(hour + 1) % 24:02d}:00" if (hour + 1) % 24 else "24:00"
            parts.append(f"{DAYS[hour // 24]} {hour % 24:02d}:00-{following}")
        policies.append({"name": f"p{number}", "hours": ",".join(parts[:24]), "objectives": ["client.p99_ms <= 9"]})
    return parse_slo_calendar(document(*policies, zone=draw(zones)))


@given(calendars(), st.floats(1e9, 4e9))
def test_every_moment_has_the_one_policy_of_its_spell(calendar: SloCalendar, start: float) -> None:
    spells = calendar.spells(start, start + WEEK_S)
    assert (spells[0].start, spells[-1].end) == (int(start), int(start + WEEK_S))
    for one, other in zip(spells, spells[1:]):
        assert one.end == other.start
        assert one.policy != other.policy
    for spell in spells:
        for moment in (spell.start, (spell.start + spell.end) // 2, spell.end - 1):
            assert calendar.policy_at(moment) == spell.policy
            assert calendar.at(moment) is calendar.by_policy[spell.policy]
    if len(spells) > 1:
        assert calendar.ends(start) == spells[0].end
    for name in calendar.by_policy:
        holds = spells[0].policy == name
        turn = next((spell.start for spell in spells[1:] if (spell.policy == name) != holds), None)
        assert turn is None or calendar.turns(name, start) == turn


def test_a_policy_begins_and_ends_at_a_moment_of_its_own() -> None:
    sunday = berlin("2026-11-22 12:00")
    assert WEEK.turns("office", sunday) == berlin("2026-11-23 08:00")
    assert WEEK.turns("office", berlin("2026-11-23 12:00")) == berlin("2026-11-23 20:00")
    assert WEEK.turns(BASE, berlin("2026-11-23 12:00")) == WEEK.ends(berlin("2026-11-23 12:00"))
    assert WEEK.turns("elsewhere", sunday) is None


@given(st.dictionaries(st.text(max_size=8), st.recursive(st.none() | st.integers() | st.text(), st.lists), max_size=4))
def test_whatever_a_calendar_is_it_is_read_or_named(calendar: Any) -> None:
    try:
        parse_slo_calendar({**document(), "calendar": calendar})
    except InputError:
        return
    raise AssertionError("nothing of that is a calendar")


QUARTER_S = 900
CLOCK_CHANGES = ["2011-12-30", "2026-10-25", "2027-03-28", "2026-11-01", "2027-03-14", "2027-04-04", "2026-10-04"]
"""Days on which a clock of `zones` is set, once past a whole day; on others nothing is."""


@st.composite
def moments_with_calendars(draw: Any) -> Tuple[float, SloCalendar]:
    """A moment near a day on which a clock is set, and a calendar that has times of the week and dates around it."""
    day = date.fromisoformat(draw(st.sampled_from(CLOCK_CHANGES)))
    zone = draw(zones)
    parts: Dict[str, List[str]] = {}
    week = sorted(draw(st.lists(st.integers(0, 7 * 96), max_size=6, unique=True)))
    for number, (begin, end) in enumerate(zip(week, week[1:])):
        cuts = [begin, *(96 * midnight for midnight in range(1, 7) if begin < 96 * midnight < end), end]
        for first, last in zip(cuts, cuts[1:]):
            times = f"{_clock(first % 96)}-{_clock((last - 1) % 96 + 1)}"
            parts.setdefault(draw(st.sampled_from([f"p{number}", BASE])), []).append(f"{DAYS[first // 96]} {times}")
    dated = sorted(draw(st.lists(st.integers(0, 96), max_size=4, unique=True)))
    for number, (begin, end) in enumerate(zip(dated, dated[1:])):
        first_date = day + timedelta(days=draw(st.integers(-3, 6)))
        last_date = first_date + timedelta(days=draw(st.integers(0, 3)))
        name = draw(st.sampled_from(["p0", f"d{number}"]))
        parts.setdefault(name, []).append(f"{first_date}..{last_date} {_clock(begin)}-{_clock(end)}")
    parts.pop(BASE, None)
    policies = [
        {"name": name, "hours": ", ".join(times), "boosts": draw(st.sampled_from([["scrub"], [], list(BOOSTS)]))}
        for name, times in parts.items()
    ]
    calendar = {} if policies else {"calendar": None}
    moment = datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(zone)).timestamp()
    near = draw(st.integers(-2 * DAY_S, 3 * DAY_S) | st.integers(-8, 20).map(lambda number: number * QUARTER_S))
    at = moment + near + draw(st.sampled_from([0.0, 0.5]))
    return at, parse_slo_calendar({**document(*policies, zone=zone), **calendar})


def _clock(quarter: int) -> str:
    return f"{quarter // 4:02d}:{quarter % 4 * 15:02d}"


def policy_by_hours(calendar: SloCalendar, at: float) -> str:
    """The policy that holds, by each policy's own hours."""
    names = [policy.name for policy in calendar.policies if policy.hours.of_dates.covers(at)]
    names += [policy.name for policy in calendar.policies if policy.hours.of_the_week.covers(at)]
    return names[0] if names else BASE


def edge_by_hours(calendar: SloCalendar, at: float, end: float, fits: Callable[[str], bool]) -> Optional[int]:
    """The first begin or end of any policy's hours up to a moment at which a policy holds that fits."""
    edges = {
        edge
        for policy in calendar.policies
        for times in (policy.hours.of_dates, policy.hours.of_the_week)
        for stretch in (times.stretches(at, end) if times else [])
        for edge in stretch
        if at < edge < end
    }
    return next((edge for edge in sorted(edges) if fits(policy_by_hours(calendar, edge))), None)


@settings(max_examples=200, deadline=None)
@given(moments_with_calendars())
def test_what_holds_and_what_comes_follows_from_the_hours_of_each_policy(case: Tuple[float, SloCalendar]) -> None:
    at, calendar = case
    end = at + 2 * WEEK_S
    holds = policy_by_hours(calendar, at)
    assert calendar.policy_at(at) == holds

    def soon(turn: Optional[int]) -> Optional[int]:
        """Without what comes later than the hours are looked at."""
        return None if turn is None or turn >= end else turn

    for name in (*calendar.by_policy, "elsewhere"):
        expected = edge_by_hours(calendar, at, end, lambda other, name=name: (other == name) != (holds == name))
        assert soon(calendar.turns(name, at)) == expected
    for kind in BOOSTS:
        permits = {name: kind in kinds for name, kinds in calendar.boosts_by_policy.items()}
        if permits[holds]:
            expected = edge_by_hours(calendar, at, end, lambda name, permits=permits: not permits[name])
            assert soon(calendar.boost_ends(kind, at)) == expected
        else:
            expected = edge_by_hours(calendar, at, end, lambda name, permits=permits: permits[name])
            assert soon(calendar.boost_again(kind, at)) == expected


def test_a_policy_that_is_months_ahead_or_past_costs_no_more_than_one_of_tomorrow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # the plugin asks at each sample, for each marker of a policy, while the mgr waits
    weekly = [{"name": f"p{hour}", "hours": f"{hour:02d}:00-{hour:02d}:30", "boosts": []} for hour in range(18)]
    later = {"name": "later", "hours": "2027-10-25..2027-10-29", "boosts": []}
    past = {"name": "past", "hours": "2026-01-01..2026-12-31 20:00-20:30", "boosts": []}
    calendar = parse_slo_calendar(document(*weekly, later, past))
    looked_at: List[int] = []

    def counted(second: int, zone: tzinfo) -> int:
        looked_at.append(second)
        return first_moment(second, zone)

    monkeypatch.setattr(slo_calendar, "first_moment", counted)
    at = berlin("2027-01-01 12:15")
    assert calendar.turns("later", at) == berlin("2027-10-25 00:00")
    assert calendar.turns("past", at) is None
    assert calendar.turns("p3", at) == berlin("2027-01-02 03:00")
    assert calendar.ends(berlin("2026-11-25 20:15")) == berlin("2026-11-25 20:30")
    each_day = [
        {"name": f"p{hour}", "hours": f"2027-01-01..2027-12-31 {hour:02d}:00-{hour:02d}:30", "boosts": []}
        for hour in range(20)
    ]
    assert parse_slo_calendar(document(*each_day)).ends(berlin("2026-11-25 12:00")) == berlin("2027-01-01 00:00")
    assert len(looked_at) < 40


def test_a_time_that_the_clock_passes_over_this_week_comes_with_the_next() -> None:
    sundays = parse_slo_calendar(document({**OFFICE, "hours": "sun 02:00-03:00"}))
    # on the 28th the clock is set from 2 to 3
    assert sundays.turns("office", berlin("2027-03-22 12:00")) == berlin("2027-04-04 02:00")
