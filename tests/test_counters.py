from __future__ import annotations

from typing import Dict, List, Optional, Tuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.measure.counters import (
    DaemonReport,
    EpisodeProgress,
    Episodes,
    Mended,
    Meter,
    Rise,
    Trend,
    WorkInTurns,
    WorkRates,
)


def test_a_rise_is_the_difference_over_the_time_between_the_stamps() -> None:
    meter = Meter()
    assert meter.look("osd.0", DaemonReport(10.0, {"op": 100.0}), 11.0) is None
    rise = meter.look("osd.0", DaemonReport(15.0, {"op": 150.0}), 16.0)
    assert rise is not None
    assert rise.rate("op") == 10.0
    assert rise.rate("other") is None


def test_a_report_that_is_not_new_keeps_its_rise_for_a_while() -> None:
    meter = Meter(hold_s=15.0)
    meter.look("osd.0", DaemonReport(10.0, {"op": 0.0}), 10.0)
    fresh = meter.look("osd.0", DaemonReport(15.0, {"op": 50.0}), 15.0)
    assert meter.look("osd.0", DaemonReport(15.0, {"op": 50.0}), 20.0) == fresh
    assert meter.look("osd.0", DaemonReport(15.0, {"op": 50.0}), 31.0) is None


@pytest.mark.parametrize(
    ("report", "why"),
    [
        (DaemonReport(15.0, {"op": 99.0}), "the counter fell"),
        (DaemonReport(15.0, {"op": 500.0}, born=2), "the daemon was restarted and has passed its old count"),
        (DaemonReport(80.0, {"op": 500.0}), "it was silent for more than a minute"),
        (DaemonReport(9.0, {"op": 500.0}), "its stamp went back"),
    ],
)
def test_what_is_no_rise_gives_no_rate(report: DaemonReport, why: str) -> None:
    meter = Meter()
    meter.look("osd.0", DaemonReport(10.0, {"op": 100.0}), 10.0)
    assert meter.look("osd.0", report, report.at) is None, why


def test_an_osd_that_comes_back_starts_afresh() -> None:
    meter = Meter()
    meter.look("osd.0", DaemonReport(10.0, {"op": 100.0}), 10.0)
    meter.keep_only([])
    assert meter.look("osd.0", DaemonReport(15.0, {"op": 900.0}), 15.0) is None


steps = st.lists(
    st.tuples(
        st.floats(0.0, 30.0),  # time until the look
        st.floats(0.0, 10.0),  # age of the report
        st.floats(0.0, 200.0),  # true operations per second meanwhile
        st.sampled_from(["run", "run", "run", "restart", "away"]),
    ),
    max_size=40,
)


@given(steps, st.booleans())
def test_rates_are_never_negative_and_never_above_what_was_done(
    story: List[Tuple[float, float, float, str]], told_of_restarts: bool
) -> None:
    """A daemon that works, restarts and goes away: no rate exceeds the fastest it ever was."""
    meter = Meter()
    now, count, born, fastest, at = 0.0, 0.0, 1, 0.0, 0.0
    for wait, age, speed, event in story:
        now += wait
        fastest = max(fastest, speed)
        if event == "away":
            meter.keep_only([])
            continue
        if event == "restart":
            count, born = 0.0, born + 1
        stamp = max(at, now - age)
        count += speed * (stamp - at)
        at = stamp
        rise = meter.look("osd.0", DaemonReport(stamp, {"op": count}, born if told_of_restarts else 1), now)
        rate = rise.rate("op") if rise else None
        assert rate is None or 0.0 <= rate <= fastest * (1 + 1e-6) + 1e-6


@given(st.lists(st.tuples(st.floats(0.1, 40.0), st.floats(0.0, 1e6)), min_size=2, max_size=30))
def test_a_trend_counts_every_up_and_down_once_however_far_apart_the_looks_are(
    points: List[Tuple[float, float]],
) -> None:
    # looks before and after, in which nothing changes: a span that is known whole, and one in which all is told
    quiet_before, quiet_after = [(5.0, points[0][1])] * 5, [(5.0, points[-1][1])] * 12
    trend, at, ups, downs, told_up, told_down = Trend(15.0), 0.0, 0.0, 0.0, 0.0, 0.0
    last = points[0][1]
    for wait, value in [*quiet_before, *points, *quiet_after]:
        at += wait
        trend.add(at, value)
        ups, downs, last = ups + max(value - last, 0.0), downs + max(last - value, 0.0), value
        told_up += (trend.rising() or 0.0) * wait
        told_down += (trend.falling() or 0.0) * wait
    assert told_up == pytest.approx(ups, rel=1e-6, abs=1e-3)
    assert told_down == pytest.approx(downs, rel=1e-6, abs=1e-3)


@given(st.lists(st.floats(0.1, 40.0), min_size=2, max_size=30))
def test_a_trend_of_what_falls_evenly_is_that_rate_from_the_second_look_on(waits: List[float]) -> None:
    trend, at = Trend(15.0), 0.0
    for number, wait in enumerate(waits):
        at += wait
        trend.add(at, 1e6 - 7.0 * at)
        if number:
            assert trend.falling() == pytest.approx(7.0, rel=1e-6)
            assert trend.rising() == 0.0


def test_a_trend_looks_back_over_its_span_only() -> None:
    trend = Trend(10.0)
    for at, value in ((0.0, 0.0), (5.0, 1000.0), (10.0, 1000.0), (15.0, 1000.0), (20.0, 1000.0)):
        trend.add(at, value)
    assert trend.rising() == 0.0


def test_a_gap_starts_a_new_trend() -> None:
    trend = Trend(15.0)
    trend.add(0.0, 100.0)
    trend.add(200.0, 0.0)
    assert trend.falling() is None
    trend.add(205.0, None)
    assert trend.falling() is None


def test_an_episode_that_begins_again_counts_from_zero() -> None:
    episodes = Episodes()
    assert episodes.look("1.0", EpisodeProgress(0.0, 25, False, "monday")) is None
    assert episodes.look("1.0", EpisodeProgress(5.0, 10, True, "monday")) == 2.0
    assert episodes.look("1.0", EpisodeProgress(10.0, 25, False, "tuesday")) == 3.0


def test_an_episode_between_two_looks_is_seen_by_its_stamp() -> None:
    episodes = Episodes()
    episodes.look("1.0", EpisodeProgress(0.0, 25, False, "monday"))
    assert episodes.look("1.0", EpisodeProgress(5.0, 25, False, "tuesday")) == 5.0
    assert episodes.look("1.0", EpisodeProgress(10.0, 25, False, "tuesday")) == 0.0


def test_what_was_not_looked_at_for_long_is_forgotten() -> None:
    episodes = Episodes()
    episodes.look("1.0", EpisodeProgress(0.0, 5, False))
    episodes.forget_before(10.0)
    assert episodes.look("1.0", EpisodeProgress(20.0, 25, False)) is None


@given(st.lists(st.tuples(st.floats(0.1, 100.0), st.integers(0, 1000), st.booleans(), st.sampled_from("ab"))))
def test_progress_is_never_negative(looks: List[Tuple[float, int, bool, str]]) -> None:
    episodes, at = Episodes(), 0.0
    for wait, count, running, episode in looks:
        at += wait
        rate = episodes.look("1.0", EpisodeProgress(at, count, running, episode))
        # the sum of the waits is less exact than each of them
        assert rate is None or 0 <= rate <= count / wait * 1.001


def test_what_is_looked_at_in_turns_is_not_silent_between_them() -> None:
    meter = Meter()
    meter.look("osd.0", DaemonReport(10.0, {"op": 0.0}), 10.0, turn_s=200.0)
    rise = meter.look("osd.0", DaemonReport(210.0, {"op": 2000.0}), 210.0, turn_s=200.0)
    assert rise is not None
    assert rise.rate("op") == 10.0
    assert meter.look("osd.0", DaemonReport(500.0, {"op": 9000.0}), 500.0, turn_s=200.0) is None


def test_after_a_stamp_that_went_back_a_little_the_rate_is_the_true_one() -> None:
    meter = Meter()
    meter.look("osd.0", DaemonReport(100.0, {"op": 1000.0}), 100.0)
    rates = []
    for tick in range(1, 10):
        rise = meter.look("osd.0", DaemonReport(70.0 + 5 * tick, {"op": 1000.0 + 50 * tick}), 70.0 + 5 * tick)
        rates.append(rise.rate("op") if rise else None)
    assert rates == [None] + [10.0] * 8


@given(
    st.lists(st.tuples(st.integers(0, 3), st.lists(st.floats(0.0, 1e6), max_size=4)), min_size=1, max_size=20),
)
def test_turns_add_up_the_last_work_of_each_part(story: List[Tuple[int, List[float]]]) -> None:
    turns = WorkInTurns()
    last: Dict[int, List[float]] = {}
    for at, (part, rates) in enumerate(story):
        turns.put(part, 4, float(at), WorkRates.of([Rise(float(at), 1.0, {"op": rate}) for rate in rates]))
        last[part] = rates
    work, share = turns.together(0.0)
    seen = [rates for rates in last.values() if rates]
    assert share == len(seen) / 4
    if work is None:
        assert not seen
    else:
        assert work.daemons == sum(map(len, seen))
        assert work.rates["op"] == pytest.approx(sum(map(sum, seen)), rel=1e-9)


def test_work_that_is_too_old_or_of_another_number_of_turns_counts_no_more() -> None:
    turns = WorkInTurns()
    for part in (0, 1):
        turns.put(part, 2, 10.0 * part, WorkRates.of([Rise(0.0, 1.0, {"op": 5.0})]))
    assert turns.together(5.0) == (WorkRates(1, {"op": 5.0}), 0.5)
    turns.put(0, 3, 20.0, WorkRates.of([Rise(0.0, 1.0, {"op": 7.0})]))
    assert turns.together(0.0) == (WorkRates(1, {"op": 7.0}), 1 / 3)


def test_the_oldest_episode_under_way_is_told_by_when_it_was_first_seen() -> None:
    episodes = Episodes()
    assert episodes.oldest() is None
    for at, first, second in ((0.0, "monday", ""), (5.0, "monday", "monday"), (10.0, "tuesday", "monday")):
        episodes.look("1.0", EpisodeProgress(at, 0, True, first))
        episodes.look("1.1", EpisodeProgress(at, 0, bool(second), second))
    # that of PG 1.0 ended, and another one began
    assert episodes.oldest() == 5.0
    episodes.look("1.1", EpisodeProgress(15.0, 0, False, "tuesday"))
    assert episodes.oldest() == 10.0
    episodes.forget_before(20.0)
    assert episodes.oldest() is None


def mended(looks: List[Tuple[float, Optional[float]]], per_object: float = 2.0, pause_s: float = 5.0) -> float:
    """Copies that count as mended, by what was left and what was ever recovered at each look."""
    counted, copies = Mended(), 0.0
    # all of it is counted once the last fall is a whole span ago
    for place, (remainder, recovered) in enumerate([*looks, *[looks[-1]] * 3]):
        counted.add(pause_s * place, remainder, recovered, per_object)
        copies += pause_s * (counted.rate() or 0.0)
    return copies


REST: List[Tuple[float, Optional[float]]] = [(1000.0, 7.0)] * 4


def test_copies_that_peering_finds_are_not_recovered() -> None:
    assert mended([*REST, (17.0, 7.0)]) == 0.0
    # an object or two are mended beside it, and not a thousand
    assert mended([*REST, (17.0, 9.0)]) == pytest.approx(4.0)
    # what was recovered a while ago explains nothing
    assert mended([(1000.0, 0.0), *REST, (17.0, 7.0)]) == 0.0


def test_recovered_copies_count_whether_an_object_lacked_one_or_two() -> None:
    for lacking in (1, 2):
        looks = [*REST, *((1000.0 - lacking * done, 7.0 + done) for done in (100.0, 250.0, 250.0, 300.0))]
        assert mended(looks) == pytest.approx(300.0 * lacking)


def test_a_fall_that_shows_one_look_after_its_objects_is_recovery_too() -> None:
    for pause_s in (5.0, 15.0):
        late = mended([*REST, (1000.0, 57.0), (900.0, 57.0)], pause_s=pause_s)
        assert late == pytest.approx(100.0)
    assert mended([*REST, (1000.0, 57.0), (1000.0, 57.0), (900.0, 57.0)]) == 0.0


def test_a_finished_object_explains_one_fall_alone() -> None:
    assert mended([*REST, (900.0, 57.0), (0.0, 57.0)]) == pytest.approx(100.0)


def test_where_nothing_tells_of_recovered_objects_each_fall_counts() -> None:
    assert mended([(1000.0, None)] * 4 + [(17.0, None)]) == pytest.approx(983.0)


@given(
    st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e6)), min_size=2, max_size=12),
    st.floats(0, 12),
)
def test_no_more_is_mended_than_fell_and_than_recovery_accounts_for(
    looks: List[Tuple[float, float]], per_object: float
) -> None:
    copies = mended(list(looks), per_object)
    pairs = list(zip(looks, looks[1:]))
    fell = sum(max(before[0] - after[0], 0.0) for before, after in pairs)
    finished = sum(max(after[1] - before[1], 0.0) for before, after in pairs)
    # what is known of the first span counts for the whole of it
    assert 0.0 <= copies <= 3 * min(fell, per_object * finished) * (1 + 1e-9) + 1e-6
