from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import List, Mapping, Optional, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ceph_tuner.scrub_plan import ScrubPg, ScrubRules
from ceph_tuner.scrub_plan.rates_ahead import RatesAhead
from ceph_tuner.scrub_plan.schedule import Schedule, hours_ahead, needed_bytes_s, schedule, shares
from overdue import DAY, HOUR, MB, NOW, daily, pg, rate

FLAT = daily(rate(1 * MB))
"""One PG of `pg` an hour."""


def planned(
    pgs: Sequence[ScrubPg],
    days: float = 7.0,
    max_scrubs: int = 3,
    held: Optional[Mapping[str, Optional[float]]] = None,
    rules: Optional[ScrubRules] = None,
    rates: RatesAhead = FLAT,
) -> Schedule:
    hours = list(hours_ahead(NOW, days))
    return schedule(pgs, NOW, hours, shares(hours, rates, rules or ScrubRules()), max_scrubs, held)


def test_hours_are_looked_at_as_far_as_they_are_asked_for() -> None:
    # a drain asks at each look, and mostly for the first ones of 60 days
    ahead = hours_ahead(NOW, 1e15)
    first = list(islice(ahead, 3))
    assert first[0][0] == NOW
    assert [start + seconds for start, seconds in first[:-1]] == [start for start, _ in first[1:]]
    assert [seconds for _, seconds in first[1:]] == [HOUR, HOUR]


def test_late_pgs_come_first_and_the_longest_late_before_all() -> None:
    found = planned([pg("1.0", 1), pg("1.1", 3), pg("1.2", 2), pg("1.3", -1)])
    assert [scrub.pgid for scrub in sorted(found.scrubs, key=lambda each: each.start)][:3] == ["1.1", "1.2", "1.0"]


def test_the_backlog_is_gone_when_the_last_late_one_is_done() -> None:
    found = planned([pg(f"1.{number}", 1 + number / 10) for number in range(10)])
    assert found.gone_at == pytest.approx(NOW + 10 * HOUR)


def test_where_nothing_is_late_there_is_no_backlog() -> None:
    assert planned([pg("1.0", -3)]).gone_at == NOW


def test_a_pg_that_becomes_late_behind_the_backlog_is_part_of_it() -> None:
    backlog = [pg(f"1.{number}", 1) for number in range(5)]
    found = planned([*backlog, pg("2.0", -2 / 24, raw_bytes=2 * 3600 * MB)])
    assert found.gone_at == pytest.approx(NOW + 7 * HOUR)
    assert [scrub.pgid for scrub in found.to_be_late if scrub.due_at > NOW] == ["2.0"]


def test_what_comes_is_spread_over_the_hours() -> None:
    # all due at the same hour, as after they were scrubbed together
    found = planned([pg(f"1.{number}", -6, raw_bytes=900 * MB) for number in range(48)])
    assert found.to_be_late == []
    assert max(hour.planned_bytes for hour in found.hours) == pytest.approx(900 * MB)


def test_nothing_is_scrubbed_before_the_middle_of_its_interval_unless_late() -> None:
    found = planned([pg("1.0", -6)])
    assert min(scrub.start for scrub in found.scrubs) >= NOW - DAY + 3.5 * DAY


def test_an_interval_that_ends_more_than_once_comes_more_than_once() -> None:
    found = planned([pg("1.0", 0.5, interval_s=DAY)], days=5)
    starts = sorted(scrub.start for scrub in found.scrubs)
    assert len(starts) >= 5
    assert all(later - earlier <= DAY + HOUR for earlier, later in zip(starts, starts[1:]))


def test_hours_that_ceph_closes_have_no_share() -> None:
    found = planned([pg(f"1.{number}", 1) for number in range(5)], rules=ScrubRules(hours=(2, 4)))
    assert found.gone_at == pytest.approx(NOW + 2 * DAY + 3 * HOUR)


def test_a_rate_of_nothing_leaves_everything_without_a_date() -> None:
    found = planned([pg("1.0", 1)], rates=daily(rate(0.0)))
    assert (found.gone_at, found.unplaced) == (None, ("1.0",))


def test_what_waits_for_nobody_knows_what_is_left_out_and_what_waits_for_a_moment_comes_then() -> None:
    found = planned([pg("1.0", 1), pg("1.1", 1)], held={"1.0": None, "1.1": NOW + 5 * HOUR})
    assert found.held == ("1.0",)
    assert [(scrub.pgid, scrub.start) for scrub in found.scrubs] == [("1.1", NOW + 5 * HOUR)]


def test_an_osd_that_all_late_pgs_are_on_is_the_limit() -> None:
    # each takes two hours of a scrub's time, whatever the others have
    pgs = [pg(f"1.{number}", 1, acting=(0, 1 + number), raw_bytes=36 * MB, scrub_s=2 * HOUR) for number in range(6)]
    assert planned(pgs, max_scrubs=1).gone_at == pytest.approx(NOW + 12 * HOUR)
    assert planned(pgs, max_scrubs=3).gone_at == pytest.approx(NOW + 4 * HOUR)


def test_what_is_needed_for_ever_counts_each_pool_s_own_interval() -> None:
    pgs = [pg("1.0", raw_bytes=7 * 86400 * MB), pg("2.0", raw_bytes=86400 * MB, interval_s=DAY)]
    assert needed_bytes_s(pgs) == pytest.approx(2 * MB)


PGS = st.lists(
    st.builds(
        pg,
        st.integers(0, 10_000).map(lambda number: f"1.{number:x}"),
        st.floats(-7, 30),
        raw_bytes=st.floats(0, 2e10),
        interval_s=st.floats(0.1 * DAY, 14 * DAY),
        acting=st.lists(st.integers(0, 7), min_size=1, max_size=3, unique=True).map(tuple),
        scrub_s=st.one_of(st.none(), st.floats(1.0, 10 * HOUR)),
    ),
    max_size=40,
    unique_by=lambda each: each.pgid,
)


@settings(max_examples=60, deadline=None)
@given(PGS, st.lists(st.floats(0, 5 * MB), min_size=24, max_size=24), st.integers(1, 4))
def test_no_hour_gets_more_than_its_share_and_every_pg_is_answered_for(
    pgs: List[ScrubPg], rates: List[float], max_scrubs: int
) -> None:
    found = planned(pgs, days=3, max_scrubs=max_scrubs, rates=RatesAhead.daily([rate(one) for one in rates]))
    for hour in found.hours:
        assert -1 <= hour.planned_bytes <= hour.share_bytes + 1
    placed = Counter(scrub.pgid for scrub in found.scrubs)
    for each in pgs:
        assert placed[each.pgid] or each.pgid in found.unplaced or each.due_at >= NOW + 3 * DAY
    assert all(NOW <= scrub.start <= scrub.end <= NOW + 3 * DAY + 1 for scrub in found.scrubs)
    assert found.gone_at is None or found.gone_at >= NOW


@settings(max_examples=40, deadline=None)
@given(PGS, st.floats(0.1 * MB, 5 * MB), st.floats(1.0, 4.0))
def test_a_backlog_ahead_of_nothing_else_is_gone_no_later_with_more_room(
    pgs: List[ScrubPg], slow: float, factor: float
) -> None:
    late = [each for each in pgs if each.late and each.scrub_s is None and each.interval_s > 4 * DAY]
    one, other = (planned(late, days=3, rates=daily(rate(mean))).gone_at for mean in (slow, slow * factor))
    assert one is None or (other is not None and other <= one + 1)
