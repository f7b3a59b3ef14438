from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Dict, List, Set

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.pacing.pace import Pace
from ceph_tuner.scrub_plan import ScrubPg, ScrubRules
from ceph_tuner.scrub_plan.pace import Expectation, ScrubLimits, due_until, finished, next_scrubs
from ceph_tuner.scrub_plan.rates_ahead import RatesAhead
from overdue import DAY, HOUR, MB, NOW, daily, pg, rate, view

WIDE = ScrubLimits(100, 100)
SCRUBBED = frozenset(("active", "clean", "scrubbing", "deep"))


def goal_of(*pgs: ScrubPg) -> Dict[str, float]:
    return {each.pgid: each.deep_scrubbed_at for each in pgs}


def ids(pgs: List[ScrubPg]) -> List[str]:
    return [each.pgid for each in pgs]


def test_late_pgs_and_those_due_by_the_date_are_drained_the_longest_late_first() -> None:
    pgs = [pg("1.0", 1), pg("1.1", -2), pg("1.2", 5), pg("1.3", -6)]
    assert ids(list(due_until(view(pgs), NOW + 3 * DAY))) == ["1.2", "1.0", "1.1"]


def test_a_pg_is_done_when_its_stamp_is_newer_and_not_when_somebody_set_it_back() -> None:
    goal = {"1.0": NOW - 9 * DAY, "1.1": NOW - 9 * DAY, "1.2": NOW - 9 * DAY, "1.3": NOW - 9 * DAY}
    pgs = [pg("1.0", deep_scrubbed_at=NOW), pg("1.1", 2), pg("1.2", 400)]
    assert finished(goal, view(pgs)) == {"1.0": True, "1.1": False, "1.2": False}


def test_a_stamp_of_a_clock_that_was_ahead_is_no_scrub_to_come_and_one_of_now_after_it_is_done() -> None:
    ahead = pg("1.0", deep_scrubbed_at=NOW + 300 * DAY, ahead=True)
    ahead = replace(ahead, late=True)
    assert ids(list(due_until(view([ahead, pg("1.1", 5)]), NOW))) == ["1.0", "1.1"]
    goal = goal_of(ahead)
    assert finished(goal, view([ahead])) == {"1.0": False}
    assert finished(goal, view([pg("1.0", deep_scrubbed_at=NOW)])) == {"1.0": True}


def test_an_osd_gets_no_more_than_its_number_replicas_counted() -> None:
    pgs = [pg("1.0", 3, acting=(0, 1)), pg("1.1", 2, acting=(2, 0)), pg("1.2", 1, acting=(2, 3))]
    assert ids(next_scrubs(goal_of(*pgs), view(pgs), set(), ScrubLimits(1, 100), None)) == ["1.0", "1.2"]


def test_what_ceph_scrubs_by_itself_is_counted_as_well() -> None:
    pgs = [pg("2.0", -3, acting=(0, 4), state=SCRUBBED), pg("1.0", 3, acting=(0, 1))]
    assert next_scrubs(goal_of(pgs[1]), view(pgs), set(), ScrubLimits(1, 100), None) == []


def test_what_was_asked_for_and_has_not_begun_is_counted_and_not_asked_again() -> None:
    pgs = [pg("1.0", 3, acting=(0, 1)), pg("1.1", 2, acting=(1, 2)), pg("1.2", 1, acting=(3, 4))]
    assert ids(next_scrubs(goal_of(*pgs), view(pgs), {"1.0"}, ScrubLimits(1, 100), None)) == ["1.2"]


def test_the_pace_is_for_the_whole_cluster() -> None:
    pgs = [pg(f"1.{number}", 3, acting=(number,)) for number in range(6)]
    assert len(next_scrubs(goal_of(*pgs), view(pgs), {"1.0"}, WIDE, 3)) == 2


@pytest.mark.parametrize(
    "state",
    [
        ("active", "clean", "snaptrim"),
        ("active", "clean", "snaptrim_wait"),
        ("active", "recovering", "degraded"),
        ("active", "clean", "scrubbing"),
        ("peering",),
    ],
)
def test_a_pg_that_ceph_would_not_scrub_now_is_passed_over(state: List[str]) -> None:
    pgs = [pg("1.0", 3, acting=(0,), state=frozenset(state)), pg("1.1", 2, acting=(4,))]
    assert ids(next_scrubs(goal_of(*pgs), view(pgs), set(), WIDE, None)) == ["1.1"]


def test_osds_that_recover_are_left_alone_unless_ceph_scrubs_them_too() -> None:
    pgs = [pg("2.0", -3, acting=(0, 1), state=frozenset(("active", "recovering"))), pg("1.0", 3, acting=(1, 2))]
    goal = goal_of(pgs[1])
    assert next_scrubs(goal, view(pgs), set(), WIDE, None) == []
    assert ids(next_scrubs(goal, view(pgs, during_recovery=True), set(), WIDE, None)) == ["1.0"]


def test_the_target_of_a_backfill_is_left_alone_before_it_is_in_the_acting_set() -> None:
    backfilled = pg("2.0", -3, acting=(0, 1), up=(0, 2), state=frozenset(("active", "remapped", "backfilling")))
    pgs = [backfilled, pg("1.0", 3, acting=(2, 3)), pg("1.1", 2, acting=(4, 5))]
    assert ids(next_scrubs(goal_of(*pgs[1:]), view(pgs), set(), WIDE, None)) == ["1.1"]


def test_a_flag_is_heeded_unless_the_operator_says_otherwise() -> None:
    pgs = [pg("1.0", 3)]
    flagged = view(pgs, pool_flags={"rbd": frozenset(("nodeep-scrub",))})
    assert next_scrubs(goal_of(*pgs), flagged, set(), WIDE, None) == []
    assert ids(next_scrubs(goal_of(*pgs), flagged, set(), WIDE, None, despite_flags=True)) == ["1.0"]


@given(
    st.lists(st.tuples(st.sets(st.integers(0, 7), min_size=1, max_size=3), st.booleans(), st.booleans()), max_size=30),
    st.integers(1, 4),
    st.integers(1, 4),
    st.one_of(st.none(), st.integers(1, 8)),
)
def test_no_osd_no_host_and_no_pace_is_ever_exceeded(rows, per_osd: int, per_host: int, at_once) -> None:  # type: ignore[no-untyped-def]
    pgs = [
        pg(
            f"1.{number}",
            1,
            acting=tuple(sorted(acting)),
            state=SCRUBBED if running else frozenset(("active", "clean")),
        )
        for number, (acting, running, _) in enumerate(rows)
    ]
    asked: Set[str] = {each.pgid for each, (_, running, asked) in zip(pgs, rows) if asked and not running}
    chosen = next_scrubs(goal_of(*pgs), view(pgs), asked, ScrubLimits(per_osd, per_host), at_once)
    own = {each.pgid for each in chosen}
    before: Counter[int] = Counter()
    after: Counter[int] = Counter()
    for each in pgs:
        if each.scrubbing or each.pgid in asked:
            before.update(each.acting)
        if each.scrubbing or each.pgid in asked or each.pgid in own:
            after.update(each.acting)
    # each OSD is a host of its own here
    limit = min(per_osd, per_host)
    assert all(after[osd] <= max(limit, before[osd]) for osd in after)
    under_way = sum(each.scrubbing or each.pgid in asked for each in pgs)
    assert at_once is None or not chosen or under_way + len(chosen) <= at_once
    assert not own & asked


def test_what_is_to_be_passed_over_is_not_chosen() -> None:
    pgs = [pg("1.0", 2), pg("1.1", 1)]
    chosen = next_scrubs(goal_of(*pgs), view(pgs), set(), ScrubLimits(8, 8), None, False, {"1.0"})
    assert [each.pgid for each in chosen] == ["1.1"]


def test_the_pace_rises_by_a_quarter_until_an_objective_is_missed_and_then_one_by_one() -> None:
    pace = Pace(8)
    assert (pace.faster().at_once, pace.faster().faster().at_once) == (10, 12)
    assert (pace.slower().at_once, pace.slower().faster().at_once) == (4, 5)
    assert Pace().slower().at_once == 1


def test_a_pace_is_tried_when_so_many_pgs_ran_and_half_as_many_at_a_time() -> None:
    assert Pace(2).tried_by([{"1.0"}, {"1.0", "1.1"}])
    assert not Pace(2).tried_by([{"1.0"}, {"1.0"}])
    # one after the other
    assert not Pace(4).tried_by([{"1.0"}, {"1.1"}, {"1.2"}, {"1.3"}])
    assert not Pace().tried_by([])
    assert not Pace().tried_by([set(), set()])


def test_where_a_single_scrub_is_too_much_rests_double_until_a_window_is_kept() -> None:
    pace, rests = Pace(2), []
    for _ in range(9):
        pace = pace.slower()
        rests.append(pace.rest)
    assert rests == [0, 1, 2, 4, 8, 16, 32, 64, 64]
    assert pace.faster().rest == 0


def test_the_date_follows_what_came_in_the_place_of_the_forecast() -> None:
    found = Expectation(daily(rate(1 * MB)), trusted_bytes=600 * MB)
    left = 3600 * MB
    assert found.finish_at(NOW, left, ScrubRules()) == pytest.approx(NOW + HOUR)
    for minute in range(1, 241):
        found = found.after(NOW, 60.0, minute * 30 * MB)
    assert found.factor == pytest.approx(0.5, rel=0.01)
    assert found.finish_at(NOW, left, ScrubRules()) == pytest.approx(NOW + 2 * HOUR, rel=1e-6)


def test_a_pace_of_long_ago_is_forgotten() -> None:
    found = Expectation(daily(rate(1 * MB)), trusted_bytes=600 * MB)
    for _ in range(240):
        found = found.after(NOW, 60.0, 0.0)
    for minute in range(1, 241):
        found = found.after(NOW, 60.0, minute * 60 * MB)
    assert found.factor == pytest.approx(1.0, abs=0.01)


def test_hours_that_ceph_closes_are_waited_for() -> None:
    found = Expectation(daily(rate(1 * MB)), 1.0).finish_at(NOW, 1800 * MB, ScrubRules(hours=(4, 6)))
    assert found == pytest.approx(NOW + 4.5 * HOUR)


def test_hours_that_ceph_closes_say_nothing_of_the_rate() -> None:
    found = Expectation(daily(rate(1 * MB)), trusted_bytes=60 * MB).after(NOW, 600.0, 600 * MB)
    for hour in range(4):
        found = found.after(NOW + hour * HOUR, HOUR, 600 * MB, is_open=False)
    assert found.factor == pytest.approx(1.0)
    # scrubs that were begun before
    assert found.after(NOW, 60.0, 660 * MB, is_open=False).came_bytes == found.came_bytes + 60 * MB


def test_what_no_rate_will_ever_do_has_no_date() -> None:
    assert Expectation(daily(rate(0.0)), 1.0).finish_at(NOW, 1.0, ScrubRules()) is None


def test_where_the_forecast_has_nothing_the_date_is_by_what_came() -> None:
    found = Expectation(daily(rate(0.0)), trusted_bytes=100 * MB)
    for minute in range(1, 11):
        found = found.after(NOW, 60.0, minute * 60 * MB)
        # less than a PG tells nothing
        assert (found.finish_at(NOW, 3600 * MB, ScrubRules()) is None) == (minute == 1)
    assert found.finish_at(NOW, 3600 * MB, ScrubRules()) == pytest.approx(NOW + HOUR)


def test_what_came_in_an_hour_without_a_rate_says_nothing_of_the_others() -> None:
    hours = [rate(0.0), *[rate(2 * MB)] * 23]
    found = Expectation(RatesAhead.daily(hours), trusted_bytes=600 * MB)
    for minute in range(1, 11):
        found = found.after(NOW, 60.0, minute * 60 * MB)
    assert found.factor == 1.0
    # the rest of the first hour at 1 MB/s, then 2
    assert found.finish_at(NOW + 1800, 5400 * MB, ScrubRules()) == pytest.approx(NOW + HOUR + 1800)


@pytest.mark.parametrize(("per_osd", "per_host"), [(0, 1), (1, 0)])
def test_limits_below_one_are_refused(per_osd: int, per_host: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        ScrubLimits(per_osd, per_host)


@pytest.mark.parametrize("seconds", [-60.0, -90 * DAY])
def test_a_clock_that_is_set_back_tells_no_pace(seconds: float) -> None:
    found = Expectation(daily(rate(1 * MB)), trusted_bytes=600 * MB).after(NOW, seconds, 10 * MB)
    assert 0 < found.factor < 1.1
