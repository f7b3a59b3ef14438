from __future__ import annotations

import re
from typing import List

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ceph_tuner.core.autopilot.permits import Calm, back_off_s, outside_hours, permitted_from, reason_to_wait, unsteady
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.guard import Sight
from ceph_tuner.core.hours import parse_hours

NOON = 1795521600.0
"""Tuesday 2026-11-24 12:00 UTC."""
OSDS = {0: 11, 1: 12, 2: 13}
DAY_S = 86400.0


def sight(at: float, *checks: str, health: str = "HEALTH_WARN", **values: float) -> Sight:
    return Sight(at, health, {name.replace("__", "."): v for name, v in values.items()}, checks=frozenset(checks))


def calm(since: float = 3600.0, *last: Sight) -> Calm:
    """Steady for that long before noon, then this."""
    found = Calm()
    for second in range(int(since), -1, -30):
        found = found.after(sight(NOON - second), OSDS)
    for one in last:
        found = found.after(one, OSDS)
    return found


def test_a_steady_cluster_with_no_hours_waits_for_nothing() -> None:
    assert reason_to_wait(NOON, Policy(), calm()) is None


def test_outside_of_the_hours_and_in_a_blackout_it_says_until_when() -> None:
    nights = Policy(hours="mon-fri 22:00-06:00")
    assert outside_hours(NOON, nights) == ("outside of the hours (mon-fri 22:00-06:00): until 2026-11-24 22:00:00 UTC")
    # the blackout's end alone would be no moment to move
    both = Policy(hours="22:00-06:00", blackout="tue 10:00-23:00")
    assert outside_hours(NOON, both) == "blackout (tue 10:00-23:00): until 2026-11-24 23:00:00 UTC"
    assert outside_hours(NOON, Policy(hours="sat", blackout="sat-sun, tue")) == "blackout (sat-sun, tue): for ever"
    assert outside_hours(NOON, Policy(hours="tue")) is None
    with pytest.raises(InputError, match="blackout: found 'noon'"):
        reason_to_wait(NOON, Policy(blackout="noon"), calm())


spans = st.lists(
    st.tuples(
        st.sampled_from(["", "mon ", "tue-thu ", "sat-sun ", "sun-mon "]), st.integers(0, 23), st.integers(1, 24)
    ),
    max_size=3,
).map(
    lambda drawn: ", ".join(f"{d}{start:02d}:00-{(start + n - 1) % 24 + 1:02d}:00" for d, start, n in drawn if n != 24)
)
moments = st.floats(NOON, NOON + 14 * DAY_S)


@given(spans, spans, moments)
def test_a_moment_inside_a_blackout_is_never_permitted(hours: str, blackout: str, at: float) -> None:
    policy = Policy(hours=hours, blackout=blackout)
    if parse_hours(blackout).covers(at) or (parse_hours(hours).spans and not parse_hours(hours).covers(at)):
        assert reason_to_wait(at, policy, calm()) is not None
    else:
        assert outside_hours(at, policy) is None


# where it never opens, each hour of a week is looked at
@settings(max_examples=40)
@given(spans, spans, moments, st.floats(0, 1))
def test_it_opens_when_it_says_and_not_before(hours: str, blackout: str, at: float, share: float) -> None:
    policy = Policy(hours=hours, blackout=blackout)
    opens = permitted_from(at, policy)
    if opens is None:
        assert all(outside_hours(at + hour * 3600, policy) for hour in range(8 * 24))
    else:
        assert outside_hours(opens, policy) is None
        if opens > at:
            assert outside_hours(min(at + share * (opens - at), opens - 1e-3), policy) is not None


@given(st.integers(0, 2000), st.floats(1, 1e5), st.floats(1, 1e6))
def test_the_pause_grows_with_each_failure_up_to_the_most(failures: int, first: float, most: float) -> None:
    policy = Policy(back_off=first, back_off_most=most)
    pauses = [back_off_s(policy, failures), back_off_s(policy, failures + 1)]
    assert pauses == sorted(pauses)
    assert pauses[1] <= most
    assert pauses[1] in (pytest.approx(2 * pauses[0]), most, min(first, most))


def test_after_trials_taken_back_it_pauses_twice_as_long_each_time() -> None:
    def reason(minutes: float, failures: int) -> str:
        return reason_to_wait(NOON, Policy(), calm(), failures=failures, failed_at=NOON - 60 * minutes) or ""

    assert reason(59, 1) == "pause after 1 trial taken back in a row: until 2026-11-24 12:01:00 UTC"
    assert reason(60, 1) == ""
    assert "3 trials taken back in a row: until 2026-11-24 15:00:00 UTC" in reason(60, 3)


def test_after_a_proposal_that_nobody_wanted_tried_it_waits_and_says_so() -> None:
    def reason(minutes: float) -> str:
        return reason_to_wait(NOON, Policy(), calm(), declined_at=NOON - 60 * minutes) or ""

    assert reason(59) == "pause after a proposal that was not tried: until 2026-11-24 12:01:00 UTC"
    assert reason(60) == ""


def test_the_day_s_changes_are_counted_over_24_hours() -> None:
    policy = Policy(changes_per_day=2)
    moves = [NOON - 90000.0, NOON - 80000.0, NOON - 10.0]
    assert reason_to_wait(NOON, policy, calm(), moves) == (
        "2 changes in 24 hours, at most 2: until 2026-11-24 13:46:40 UTC"
    )
    assert reason_to_wait(NOON + 6400.0, policy, calm(-6400, sight(NOON + 6400.0)), moves[1:]) is not None
    assert reason_to_wait(NOON, policy, calm(), moves[:2]) is None
    # a budget that was made smaller: all but one must be a day old
    assert "until 2026-11-25 11:59:50" in (reason_to_wait(NOON, Policy(changes_per_day=1), calm(), moves) or "")


@given(st.lists(st.floats(NOON - 3 * DAY_S, NOON)), st.integers(1, 9))
def test_no_24_hours_ever_have_more_changes_than_the_policy_says(wishes: List[float], most: int) -> None:
    policy, moves = Policy(changes_per_day=most, quiet=0.0), []
    for at in sorted(wishes):
        if reason_to_wait(at, policy, Calm(seen=at, unrest=at - 1, why="x"), moves) is None:
            moves.append(at)
    assert all(sum(1 for move in moves if end - DAY_S < move <= end) <= most for end in moves)


@pytest.mark.parametrize(
    "checks",
    [
        ("POOL_APP_NOT_ENABLED",),
        ("TUNER_TRIAL",),
        ("OSDMAP_FLAGS", "PG_DEGRADED", "OBJECT_MISPLACED"),
        ("RECENT_CRASH",),
    ],
)
def test_recovery_under_way_and_other_people_s_warnings_do_not_block(checks: tuple) -> None:
    busy = sight(NOON, *checks, recovery__objects_left=500.0, scrub__bytes_s=1e8)
    assert unsteady(busy) == ""
    assert reason_to_wait(NOON, Policy(), calm(3600, busy)) is None


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (sight(NOON, health="HEALTH_ERR"), "HEALTH_ERR"),
        (sight(NOON, "OSD_DOWN", osds__down=1.0), "1 OSDs down, OSD_DOWN"),
        (sight(NOON, "OSD_RACK_DOWN"), "OSD_RACK_DOWN"),
        (sight(NOON, "OSD_NEARFULL"), "OSD_NEARFULL"),
        (sight(NOON, "MON_DOWN"), "MON_DOWN"),
        (sight(NOON, pgs__inactive=3.0), "3 inactive PGs"),
        (sight(NOON, "SLOW_OPS", ops__slow=2.0), "2 slow operations, SLOW_OPS"),
    ],
)
def test_what_is_not_steady_blocks_and_for_a_while_after(now: Sight, why: str) -> None:
    unrest = calm(3600, now)
    assert reason_to_wait(NOON, Policy(), unrest) == f"the cluster has to be steady for 300 s: {why}"
    over = unrest.after(sight(NOON + 30), OSDS)
    assert reason_to_wait(NOON + 30, Policy(), over) == (
        f"the cluster has to be steady for 300 s: until 2026-11-24 12:05:00 UTC ({why})"
    )
    assert reason_to_wait(NOON + 299, Policy(), over) is not None
    assert reason_to_wait(NOON + 300, Policy(), over) is None


def test_osds_that_flap_block_even_if_no_sight_caught_them_down() -> None:
    restarted = calm().after(sight(NOON + 30), {**OSDS, 1: 99})
    assert "OSDs came, went or started anew" in (reason_to_wait(NOON + 30, Policy(), restarted) or "")
    again = restarted.after(sight(NOON + 60), {**OSDS, 1: 99})
    assert again.unrest == NOON + 30


def test_a_rebalancing_blocks_while_it_is_young() -> None:
    began = calm().after(sight(NOON + 30, backfill__objects_left=900.0), OSDS)
    assert "a rebalancing began" in (reason_to_wait(NOON + 30, Policy(), began) or "")
    goes_on = began.after(sight(NOON + 60, backfill__objects_left=800.0), OSDS)
    assert goes_on.unrest == NOON + 30
    # where it could not be seen it is as it was
    assert goes_on.after(sight(NOON + 90), OSDS).moving


def test_what_was_not_watched_is_not_known_to_be_steady() -> None:
    assert reason_to_wait(NOON, Policy(), Calm()) == "the cluster was not looked at yet"
    assert "not watched before" in (reason_to_wait(NOON, Policy(), Calm().after(sight(NOON), OSDS)) or "")
    late = calm().after(sight(NOON + 61), OSDS)
    assert "it was not watched for 61 s" in (reason_to_wait(NOON + 61, Policy(), late) or "")


def test_it_gives_all_reasons_together() -> None:
    policy = Policy(blackout="tue", changes_per_day=1)
    reasons = reason_to_wait(NOON, policy, calm(0), [NOON - 5], 1, NOON - 5) or ""
    assert [re.split("[ (]", reason)[0] for reason in reasons.split("; ")] == ["blackout", "the", "pause", "1"]
