from __future__ import annotations

import random
from dataclasses import replace
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import pytest
from flights import ALTERNATING, P95, RECOVERY, ROLLOUT, SETTINGS
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.autopilot.contract import BETTER, UNKNOWN, WORSE, Effect, Rollout
from ceph_tuner.core.autopilot.phase_windows import OUTLIVED_S, Closed, PhaseWindows, groups_ahead, groups_of
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.autopilot.state import (
    ASKING,
    AUTO,
    COMPARING,
    HOLDING,
    OBSERVING,
    RETURNING,
    TRYING,
    WAITING,
    WRITING,
    AutopilotState,
    Proposed,
)
from ceph_tuner.core.goals.slo import Slo, parse_slo
from ceph_tuner.core.measure.sample import Measure, Window

START = 10_000.0
POLICY = Policy(window=30.0, settle=15.0, guard_windows=3, miss_windows=3)
SLO: Slo = parse_slo({"objectives": ["client.p95_ms<=80"]}, "cluster")

Rates = Callable[[float], Mapping[str, float]]
"""What is seen at a time."""


def steady(p95: float = 100.0, **more: float) -> Rates:
    return lambda at: {P95: p95, **more}


class Seen:
    """`phase_windows.Eyes`: the cluster and its groups do what functions of the window's end say."""

    def __init__(self, cluster: Rates, groups: Optional[Mapping[str, Rates]] = None) -> None:
        self.cluster, self.groups = cluster, dict(groups or {})
        self.asked: List[Tuple[float, float]] = []
        self.blind: Callable[[float], bool] = lambda end: False
        self.scrubs_since: Optional[float] = None

    def between(self, start: float, end: float) -> Optional[Window]:
        self.asked.append((start, end))
        if self.blind(end):
            return None
        return Window(start, end, {name: Measure(value, 0.0, 6) for name, value in self.cluster(end).items()})

    def group_between(self, name: str, start: float, end: float) -> Mapping[str, float]:
        return self.groups[name](end) if name in self.groups else {}


def phase(name: str, since: float = START, rollout: Rollout = ROLLOUT, **more: Any) -> AutopilotState:
    proposed = Proposed(1, SETTINGS, "why", rollout)
    return AutopilotState(AUTO, name, since, proposed=proposed, **more)


def watch(
    observer: PhaseWindows,
    state: AutopilotState,
    start: float,
    end: float,
    policy: Policy = POLICY,
    interval: float = 5.0,
    slo: Slo = SLO,
) -> Iterator[Closed]:
    """Look at each sample from `start` on, as the driver does."""
    at = start
    while at <= end:
        yield from observer.close(at, state, slo, {}, policy)
        at += interval


def effects_of(observer: PhaseWindows, state: AutopilotState, policy: Policy = POLICY) -> Mapping[str, Effect]:
    return observer.see(START, state, SLO, policy).effects


def wavy(level: float, seed: int = 0) -> Rates:
    """A metric that scatters by some percent, alike in every run."""
    return lambda at: {P95: level * random.Random(int(at) * 31 + seed).uniform(0.96, 1.04)}


# windows


@given(
    st.lists(st.floats(0.5, 40.0), min_size=5, max_size=80),
    st.sampled_from([5.0, 20.0, 30.0, 60.0]),
    st.sampled_from([OBSERVING, COMPARING, TRYING, HOLDING]),
)
def test_windows_follow_one_another_without_a_gap(steps: List[float], length: float, name: str) -> None:
    policy = replace(POLICY, window=max(length, max(steps)))
    observer, at, closed = PhaseWindows(Seen(steady())), START, []
    for step in steps:
        at += step
        closed += observer.close(at, phase(name), SLO, {}, policy)
    assert all(after.start == before.end for before, after in zip(closed, closed[1:]))
    assert all(window.end - window.start == pytest.approx(policy.window) for window in closed)
    # nothing that was over is held back, and nothing is closed that is not over
    assert not closed or closed[-1].end <= at < closed[-1].end + policy.window


@pytest.mark.parametrize(
    ("name", "begins"), [(COMPARING, START), (TRYING, START + POLICY.settle), (HOLDING, START + POLICY.settle)]
)
def test_a_phase_begins_a_row_of_windows_and_what_settles_after_a_write_is_in_none(name: str, begins: float) -> None:
    observer = PhaseWindows(Seen(steady()))
    list(watch(observer, phase(OBSERVING, 0.0), START - 200.0, START - 2.0))
    closed = list(watch(observer, phase(name), START, START + 80.0))
    assert [(window.start, window.end) for window in closed] == [
        (begins + place * POLICY.window, begins + (place + 1) * POLICY.window) for place in range(2)
    ]
    assert observer.see(START + 80.0, phase(name), SLO, POLICY).windows == 2


@pytest.mark.parametrize("name", [OBSERVING, ASKING, WAITING, WRITING, RETURNING])
def test_phases_that_write_nothing_go_on_with_the_window_under_way(name: str) -> None:
    observer = PhaseWindows(Seen(steady()))
    before = list(watch(observer, phase(OBSERVING, 0.0), START - 100.0, START - 1.0))
    after = list(watch(observer, phase(name), START, START + 60.0))
    assert after[0].start == before[-1].end


def test_the_next_stage_is_a_row_of_its_own() -> None:
    observer = PhaseWindows(Seen(steady()))
    list(watch(observer, phase(TRYING), START, START + 80.0))
    later = phase(TRYING, START + 82.0, stage=1)
    assert next(watch(observer, later, START + 85.0, START + 200.0)).start == START + 82.0 + POLICY.settle
    assert observer.see(0.0, later, SLO, POLICY).windows == 1


def test_after_a_gap_the_row_goes_on_from_now() -> None:
    eyes = Seen(steady())
    observer = PhaseWindows(eyes)
    list(watch(observer, phase(TRYING), START, START + 80.0))
    closed = list(watch(observer, phase(TRYING), START + 5000.0, START + 5040.0))
    assert [(window.start, window.end) for window in closed] == [(START + 5000.0, START + 5030.0)]
    # the hour in between is not asked for window by window
    assert len(eyes.asked) == 3


def test_windows_of_before_a_gap_make_no_row_with_those_after_it() -> None:
    observer = PhaseWindows(Seen(steady(100.0)))
    list(watch(observer, phase(OBSERVING, 0.0), START, START + 60.0))
    list(watch(observer, phase(OBSERVING, 0.0), START + 86400.0, START + 86430.0))
    assert observer.see(START, phase(OBSERVING, 0.0), SLO, POLICY).missed == ()


def test_a_clock_that_is_set_back_costs_a_window_and_not_the_hours_until_it_is_there_again() -> None:
    observer = PhaseWindows(Seen(steady()))
    list(watch(observer, phase(TRYING), START, START + 80.0))
    closed = list(watch(observer, phase(TRYING), START - 7200.0, START - 7100.0))
    assert [window.start for window in closed] == [START - 7200.0 + place * POLICY.window for place in range(3)]


def test_a_window_without_a_sample_counts_for_nothing() -> None:
    eyes = Seen(steady())
    eyes.blind = lambda end: end < START + 100.0
    observer = PhaseWindows(eyes)
    closed = list(watch(observer, phase(COMPARING), START, START + 130.0))
    assert [window.end for window in closed] == [START + 120.0]
    assert observer.see(0.0, phase(COMPARING), SLO, POLICY).windows == 1


def test_rates_of_work_that_is_not_there_are_in_no_window() -> None:
    observer = PhaseWindows(Seen(steady(100.0, **{RECOVERY: 0.0, "recovery.objects_left": 0.0})))
    (closed,) = watch(observer, phase(COMPARING), START, START + 30.0)
    assert set(closed.means) == {P95, "recovery.objects_left"}


# objectives


@given(st.lists(st.booleans(), min_size=1, max_size=25), st.integers(1, 11))
def test_an_objective_is_missed_or_met_once_all_but_a_fifth_of_so_many_windows_say_so(
    misses: List[bool], count: int
) -> None:
    policy = replace(POLICY, miss_windows=count)
    observer = PhaseWindows(Seen(lambda end: {P95: 100.0 if misses[int((end - START) // 30) - 1] else 60.0}))
    state = phase(COMPARING)
    for place in range(len(misses)):
        list(watch(observer, state, START + 30.0 * place + 5.0, START + 30.0 * (place + 1)))
        found = observer.see(0.0, state, SLO, policy)
        recent = misses[max(0, place + 1 - count) : place + 1]
        missed = len(recent) == count and recent.count(False) <= count // 5
        assert found.metrics_missed == ((P95,) if missed else ())
        assert found.met == (len(recent) == count and recent.count(True) <= count // 5)
        assert bool(found.missed) == missed


def test_work_that_is_not_there_misses_nothing() -> None:
    slo = parse_slo({"objectives": ["recovery.objects_s>=50", "client.p95_ms<=80"]}, "cluster")
    observer = PhaseWindows(Seen(steady(60.0, **{RECOVERY: 0.0})))
    list(watch(observer, phase(COMPARING), START, START + 200.0, slo=slo))
    assert observer.see(0.0, phase(COMPARING), slo, POLICY).missed == ()


def test_a_bound_relative_to_a_baseline_is_held_against_the_baseline_given() -> None:
    slo = parse_slo({"objectives": ["client.p95_ms<=1.2*baseline"]}, "cluster")
    observer = PhaseWindows(Seen(steady(100.0)))
    met = [
        observer.close(START + 30.0 * place, phase(COMPARING), slo, {P95: base}, POLICY)[0].verdicts[0].met
        for place, base in enumerate((90.0, 80.0), start=1)
    ]
    assert met == [True, False]


def test_without_objectives_windows_are_closed_all_the_same() -> None:
    observer = PhaseWindows(Seen(steady()))
    found = [
        window
        for place in range(1, 5)
        for window in observer.close(START + 30.0 * place, AutopilotState(), None, {}, POLICY)
    ]
    assert found
    seen = observer.see(0.0, AutopilotState(), None, POLICY)
    assert (seen.missed, seen.allowed, seen.effects) == ((), {}, {})


# means


@pytest.mark.parametrize(("name", "mean"), [(COMPARING, 35.0), (HOLDING, 35.0), (OBSERVING, 45.0), (TRYING, 45.0)])
def test_means_are_of_the_phase_where_it_is_about_them_and_else_of_the_last_windows(name: str, mean: float) -> None:
    """Windows of 10, 20, ... 60 in the phase, and others before it."""
    observer = PhaseWindows(Seen(lambda end: {P95: max(5.0, (end - START) / 3.0)}))
    policy = replace(POLICY, settle=0.0, guard_windows=4, miss_windows=4)
    list(watch(observer, phase(OBSERVING, 0.0), START - 90.0, START, policy))
    list(watch(observer, phase(name), START + 5.0, START + 180.0, policy))
    assert observer.see(0.0, phase(name), SLO, policy).means == {P95: pytest.approx(mean)}


def test_means_have_no_work_that_has_ended() -> None:
    def ends(end: float) -> Dict[str, float]:
        return {P95: 50.0, **({RECOVERY: 90.0} if end < START + 100.0 else {RECOVERY: 0.0})}

    observer = PhaseWindows(Seen(ends))
    list(watch(observer, phase(COMPARING), START, START + 90.0))
    assert RECOVERY in observer.see(0.0, phase(COMPARING), SLO, POLICY).means
    list(watch(observer, phase(COMPARING), START + 95.0, START + 150.0))
    assert RECOVERY not in observer.see(0.0, phase(COMPARING), SLO, POLICY).means


# canary and control


def test_groups_are_what_this_stage_added_and_what_the_next_one_will_each_with_its_control() -> None:
    assert groups_of(phase(COMPARING)) == {"tried 0": (0,), "control 0": (1, 2, 3)}
    assert groups_of(phase(TRYING)) == {
        "tried 0": (0,),
        "control 0": (1, 2, 3),
        "tried 1": (1, 2),
        "control 1": (3,),
    }
    # the last stage has no control, and so no groups
    assert set(groups_of(phase(TRYING, stage=1))) == {"tried 1", "control 1"}
    assert groups_of(phase(HOLDING, stage=2)) == {}
    assert groups_of(phase(TRYING, rollout=ALTERNATING)) == {}
    assert groups_of(AutopilotState()) == {}
    assert groups_ahead(ROLLOUT) == groups_of(phase(COMPARING))
    assert groups_ahead(ALTERNATING) == {}


def fly(observer: PhaseWindows, *rows: Tuple[AutopilotState, int]) -> float:
    """Go through phases, each with so many windows; `since` follows by itself."""
    at = START
    for state, windows in rows:
        settle = 0.0 if state.phase == COMPARING else POLICY.settle
        list(watch(observer, replace(state, since=at), at + 1.0, at + settle + windows * 30.0, interval=1.0))
        at += settle + windows * 30.0 + 2.0
    return at


def on_trial(eyes: Seen, windows: int = 12, name: str = TRYING, **more: int) -> Mapping[str, Effect]:
    observer = PhaseWindows(eyes)
    fly(observer, (phase(COMPARING), windows), (phase(name, **more), windows))
    return effects_of(observer, phase(name, **more))


def test_effects_are_reckoned_once_a_window_and_anew_for_another_question(monkeypatch: pytest.MonkeyPatch) -> None:
    observer = PhaseWindows(Seen(steady(), {"tried 0": wavy(60.0), "control 0": wavy(100.0)}))
    end = fly(observer, (phase(COMPARING), 6), (phase(TRYING), 6))
    asked: List[int] = []
    monkeypatch.setattr(
        "ceph_tuner.core.autopilot.phase_windows.effects", lambda pairs, *rest: asked.append(len(pairs)) or {}
    )
    for _ in range(3):
        effects_of(observer, phase(TRYING))
    assert asked == [12]
    effects_of(observer, phase(TRYING), replace(POLICY, tolerance=0.5))
    assert asked == [12, 12]
    list(watch(observer, replace(phase(TRYING), since=START + 6 * 30.0 + 2.0), end, end + 30.0, interval=1.0))
    effects_of(observer, phase(TRYING))
    assert asked == [12, 12, 13]


def changing(before: float, after: float, since: float = START + 12 * 30.0 + 1.0) -> Rates:
    return lambda at: wavy(before if at <= since else after)(at)


@pytest.mark.parametrize(("after", "verdict"), [(60.0, BETTER), (100.0, UNKNOWN), (160.0, WORSE)])
def test_the_canary_is_held_against_the_control_at_the_same_moment(after: float, verdict: str) -> None:
    found = on_trial(Seen(steady(), {"tried 0": changing(100.0, after), "control 0": wavy(90.0, 3)}))[P95]
    assert found.change == pytest.approx(after / 100.0 - 1.0, abs=0.05)
    assert (verdict == UNKNOWN and found.low < 0.0 < found.high) or found.verdict == verdict


@pytest.mark.parametrize("step", [0.4, 3.0])
def test_a_load_that_hits_both_groups_in_mid_trial_is_no_effect(step: float) -> None:
    middle = START + 18 * 30.0
    groups = {"tried 0": changing(100.0, 100.0 * step, middle), "control 0": changing(90.0, 90.0 * step, middle)}
    found = on_trial(Seen(steady(), groups))[P95]
    assert found.change == pytest.approx(0.0, abs=0.02)
    assert found.low < 0.0 < found.high


def test_a_lasting_difference_between_the_groups_is_no_effect() -> None:
    found = on_trial(Seen(steady(), {"tried 0": wavy(300.0), "control 0": wavy(100.0)}))[P95]
    assert found.change == pytest.approx(0.0, abs=0.02)


def test_what_the_next_stages_osds_do_under_the_old_settings_is_what_they_are_compared_with_later() -> None:
    """They are slower than their control by nature; nobody compared them before this stage."""
    turn = START + 12 * 30.0 + 2.0 + POLICY.settle + 12 * 30.0 + 1.0
    groups = {
        "tried 0": wavy(100.0),
        "control 0": wavy(100.0),
        "tried 1": changing(200.0, 120.0, turn),
        "control 1": wavy(100.0),
    }
    observer = PhaseWindows(Seen(steady(), groups))
    fly(observer, (phase(COMPARING), 12), (phase(TRYING), 12), (phase(TRYING, stage=1), 12))
    state = phase(TRYING, stage=1)
    assert effects_of(observer, state)[P95].change == pytest.approx(-0.4, abs=0.05)
    assert observer.see(0.0, state, SLO, POLICY).pairs == 12


def test_windows_in_which_one_side_was_not_seen_are_no_pairs() -> None:
    def now_and_then(end: float) -> Mapping[str, float]:
        return {P95: 100.0} if (end - START) // 30 % 3 == 0 else {}

    eyes = Seen(steady(), {"tried 0": steady(), "control 0": now_and_then})
    observer = PhaseWindows(eyes)
    fly(observer, (phase(COMPARING), 12))
    found = observer.see(0.0, phase(COMPARING, START), SLO, POLICY)
    assert (found.windows, found.pairs) == (12, 4)


def test_a_new_proposal_forgets_the_pairs_of_the_one_before() -> None:
    observer = PhaseWindows(Seen(steady(), {"tried 0": changing(100.0, 50.0), "control 0": wavy(100.0)}))
    end = fly(observer, (phase(COMPARING), 12), (phase(TRYING), 6))
    other = replace(phase(COMPARING, end), proposed=Proposed(2, SETTINGS, "why", ROLLOUT))
    list(watch(observer, other, end + 1.0, end + 95.0))
    assert observer.see(0.0, other, SLO, POLICY).pairs == 3
    trying = replace(other, phase=TRYING, since=end + 92.0)
    list(watch(observer, trying, end + 93.0, end + 300.0))
    # held against what the canary did just now, not before the first proposal
    assert effects_of(observer, trying)[P95].change == pytest.approx(0.0, abs=0.05)


@pytest.mark.parametrize(("unrest", "pairs"), [(0.0, 12), (150.0, 7), (151.0, 6), (300.0, 2)])
def test_comparing_that_begins_again_forgets_what_it_saw_while_the_cluster_was_not_steady(
    unrest: float, pairs: int
) -> None:
    eyes = Seen(steady(), {"tried 0": steady(), "control 0": steady()})
    observer = PhaseWindows(eyes)
    list(watch(observer, phase(COMPARING), START, START + 300.0))
    assert observer.see(0.0, phase(COMPARING), SLO, POLICY).pairs == 10
    observer.disturbed(START + unrest)
    again = phase(COMPARING, START + 300.0)
    list(watch(observer, again, START + 305.0, START + 360.0))
    assert observer.see(0.0, again, SLO, POLICY).pairs == pairs


@pytest.mark.parametrize("rollout", [ROLLOUT, ALTERNATING], ids=["canary", "in turns"])
def test_what_was_seen_before_the_proposal_counts(rollout: Rollout) -> None:
    """All windows before a trial may be over when its settings come."""
    eyes = Seen(steady(), {"tried 0": wavy(60.0), "control 0": wavy(100.0, 1)})
    observer = PhaseWindows(eyes)
    list(watch(observer, AutopilotState(AUTO), START, START + 1500.0))
    comparing = phase(COMPARING, START + 1500.0, rollout)
    list(watch(observer, comparing, START + 1501.0, START + 1502.0))
    found = observer.see(0.0, comparing, SLO, POLICY)
    assert (found.windows, found.pairs) == (0, POLICY.baseline_windows)
    # nobody waits to know the cluster as a whole either
    holding = phase(HOLDING, START + 1505.0, rollout, stage=len(rollout.stages) - 1)
    list(watch(observer, holding, START + 1506.0, START + 1700.0))
    assert effects_of(observer, holding)[P95].low > -1.0


def test_what_a_group_did_before_somebody_watched_it_counts_for_nothing() -> None:
    seen: Rates = lambda end: {P95: 100.0} if end > START + 200.0 else {}  # noqa: E731
    observer = PhaseWindows(Seen(steady(), {"tried 0": seen, "control 0": seen}))
    list(watch(observer, AutopilotState(AUTO), START, START + 300.0))
    comparing = phase(COMPARING, START + 300.0)
    list(watch(observer, comparing, START + 301.0, START + 302.0))
    assert observer.see(0.0, comparing, SLO, POLICY).pairs == 4


def test_what_a_trial_left_behind_is_not_taken_for_the_time_before_the_next_one() -> None:
    observer = PhaseWindows(Seen(steady(), {"tried 0": steady(), "control 0": steady()}))
    end = fly(observer, (phase(COMPARING), 10), (phase(TRYING), 10))
    list(watch(observer, AutopilotState(AUTO, OBSERVING, end), end, end + 100.0))
    comparing = replace(phase(COMPARING, end + 100.0), proposed=Proposed(2, SETTINGS, "why", ROLLOUT))
    list(watch(observer, comparing, end + 101.0, end + 102.0))
    assert observer.see(0.0, comparing, SLO, POLICY).pairs == 2


def test_once_the_settings_are_everywhere_the_whole_cluster_is_held_against_itself_before() -> None:
    eyes = Seen(changing(100.0, 70.0), {"tried 0": steady(), "control 0": steady()})
    observer = PhaseWindows(eyes)
    fly(observer, (phase(COMPARING), 12), (phase(HOLDING, stage=2), 10))
    state = phase(HOLDING, stage=2)
    assert effects_of(observer, state)[P95].change == pytest.approx(-0.3, abs=0.03)
    assert effects_of(observer, state)[P95].verdict == BETTER


def test_effects_of_a_stand_in_are_given_beside_the_metric_that_no_part_of_the_osds_shows() -> None:
    slo = parse_slo({"objectives": ["recovery.finish_s<=3600"]}, "cluster")
    rates: Rates = lambda at: {RECOVERY: 100.0 if at <= START + 361.0 else 200.0}  # noqa: E731
    observer = PhaseWindows(Seen(steady(), {"tried 0": rates, "control 0": steady(**{RECOVERY: 50.0})}))
    fly(observer, (phase(COMPARING), 12), (phase(TRYING), 12))
    assert observer.see(0.0, phase(TRYING), slo, POLICY).effects[RECOVERY].change == pytest.approx(1.0)


def test_the_more_metrics_may_end_a_trial_the_more_certain_each_has_to_be() -> None:
    observer = PhaseWindows(Seen(steady(), {"tried 0": wavy(100.0), "control 0": wavy(100.0, 3)}))
    fly(observer, (phase(COMPARING), 12), (phase(TRYING), 12))
    more = parse_slo({"objectives": ["client.p95_ms<=80", "client.p99_ms<=200", "recovery.objects_s>=50"]}, "cluster")
    one, three = (observer.see(0.0, phase(TRYING), slo, POLICY).effects[P95] for slo in (SLO, more))
    assert three.low < one.low < one.high < three.high


def test_no_effect_is_told_before_anything_was_written() -> None:
    eyes = Seen(steady(), {"tried 0": steady(), "control 0": steady()})
    observer = PhaseWindows(eyes)
    fly(observer, (phase(COMPARING), 12))
    assert effects_of(observer, phase(COMPARING)) == {}


# turns


def take_turns(levels: Sequence[float], count: int) -> Mapping[str, Effect]:
    """`levels`: of each window in its turn, old and new alternately, the old first."""
    values = iter(levels)
    eyes = Seen(lambda end: {P95: next(values)})
    observer, at = PhaseWindows(eyes), START
    list(watch(observer, phase(COMPARING, at, ALTERNATING), at + 30.0, at + 30.0))
    state = phase(TRYING, at, ALTERNATING)
    for turn in range(1, count):
        at += 60.0
        state = phase(TRYING, at, ALTERNATING, leg=turn % 2 == 1)
        end = at + POLICY.settle + POLICY.window
        list(watch(observer, state, end, end))
    return effects_of(observer, state)


@pytest.mark.parametrize("growth", [0.9, 1.0, 1.15])
def test_where_settings_take_turns_a_load_that_rises_or_falls_steadily_is_no_effect(growth: float) -> None:
    """Each new turn is held against both its neighbours; against the one before alone it would be the growth."""
    found = take_turns([100.0 * growth**turn for turn in range(21)], 21)[P95]
    assert found.change == pytest.approx(0.0, abs=1e-9)
    assert found.windows == 10


@pytest.mark.parametrize(("factor", "verdict"), [(0.7, BETTER), (1.4, WORSE)])
def test_an_effect_shows_between_turns_whatever_the_load_does(factor: float, verdict: str) -> None:
    levels = [100.0 * 1.05**turn * (factor if turn % 2 else 1.0) for turn in range(25)]
    found = take_turns(levels, 25)[P95]
    assert found.change == pytest.approx(factor - 1.0)
    assert found.verdict == verdict


def test_a_turn_whose_second_neighbour_has_not_come_yet_does_not_count() -> None:
    assert take_turns([100.0, 50.0], 2) == {}
    assert take_turns([100.0, 50.0, 100.0], 3)[P95].windows == 1


def test_every_window_counts_as_compared_where_nothing_stands_beside() -> None:
    observer = PhaseWindows(Seen(steady()))
    list(watch(observer, phase(COMPARING, START, ALTERNATING), START, START + 60.0))
    assert observer.see(0.0, phase(COMPARING, START, ALTERNATING), SLO, POLICY).pairs == 2


# what is not seen


def test_a_latency_that_the_newest_window_lacks_is_in_the_means_while_clients_work() -> None:
    def patchy(work: float) -> Rates:
        return lambda end: {"client.iops": work, **({P95: 50.0} if end < START + 80.0 else {})}

    for work, names in ((100.0, {P95, "client.iops"}), (0.0, {"client.iops"})):
        observer = PhaseWindows(Seen(patchy(work)))
        list(watch(observer, phase(COMPARING), START, START + 90.0))
        found = observer.see(0.0, phase(COMPARING), SLO, POLICY)
        assert set(found.means) == names
        assert found.unseen == ()


def test_clients_that_no_window_of_the_phase_shows_are_told_as_unseen() -> None:
    observer = PhaseWindows(Seen(lambda end: {"client.iops": 0.0} if end > START + 1.0 else {P95: 50.0}))
    list(watch(observer, phase(OBSERVING, 0.0), START - 100.0, START))
    assert observer.see(0.0, phase(OBSERVING, 0.0), SLO, POLICY).unseen == ()
    list(watch(observer, phase(HOLDING), START, START + 80.0))
    assert observer.see(0.0, phase(HOLDING), SLO, POLICY).unseen == (P95,)


def test_a_turn_that_goes_on_is_one_turn_with_what_all_its_windows_showed() -> None:
    """The new settings' first window showed no latency, its second one did."""
    shown = {START + 30.0: 100.0, START + 135.0: 60.0, START + 195.0: 100.0}
    observer = PhaseWindows(Seen(lambda end: {"client.iops": 9.0, **({P95: shown[end]} if end in shown else {})}))
    rows = [(phase(COMPARING, START, ALTERNATING), START, 30.0)]
    rows += [(phase(TRYING, START + 60.0, ALTERNATING, leg=True), START + 60.0, 75.0)]
    rows += [(phase(TRYING, START + 150.0, ALTERNATING), START + 150.0, 45.0)]
    unseen = []
    for state, since, seconds in rows:
        for end in range(30, int(seconds) + 1, 15):
            list(observer.close(since + end, state, SLO, {}, POLICY))
            unseen.append(observer.see(0.0, state, SLO, POLICY).unseen)
    found = effects_of(observer, rows[-1][0])[P95]
    assert (found.windows, found.change) == (1, pytest.approx(-0.4))
    # the turn itself says that it has not shown the clients yet
    assert (P95,) in unseen
    assert unseen[-1] == ()


@pytest.mark.parametrize("attempts", [0, 1], ids=["taken back at once", "seen while it is taken back"])
@pytest.mark.parametrize("name", [TRYING, HOLDING])
def test_what_a_trial_did_is_no_miss_of_the_settings_that_are_in_force_again(name: str, attempts: int) -> None:
    observer = PhaseWindows(Seen(lambda end: {P95: 500.0 if end <= START + 95.0 else 60.0}))
    list(watch(observer, phase(name), START, START + 80.0))
    for _ in range(attempts):
        list(watch(observer, phase(RETURNING, START + 81.0), START + 85.0, START + 90.0))
    back = AutopilotState(AUTO, OBSERVING, START + 91.0)
    closed = list(watch(observer, back, START + 95.0, START + 200.0))
    # as after every write, what settles is in no window
    assert closed[0].start >= back.since + POLICY.settle
    found = observer.see(0.0, back, SLO, POLICY)
    assert (found.missed, found.means) == ((), {P95: 60.0})


# on probation

SCRUB = "scrub.bytes_s"
SCRUBBED: Slo = parse_slo({"objectives": ["client.p95_ms<=80", "scrub.bytes_s >= 30 MB/s"]}, "cluster")


def probation(began: Callable[[float], Optional[float]], slo: Slo = SCRUBBED, **settings: int) -> List[int]:
    """Windows that count at each look in the first two minutes; `began` gives since when scrubs go on."""
    eyes = Seen(steady())
    state = AutopilotState(AUTO, HOLDING, START, proposed=Proposed(1, settings or SETTINGS, "why", ROLLOUT))
    observer, counted = PhaseWindows(eyes), []
    for at in range(0, 121, 5):
        eyes.scrubs_since = began(START + at)
        observer.close(START + at, state, slo, {}, POLICY)
        counted.append(observer.see(START + at, state, slo, POLICY).windows)
    return counted


def test_windows_count_once_the_scrubs_of_the_old_settings_have_ended() -> None:
    at_once = probation(lambda at: None)
    assert at_once[-1] == 3
    # the new ones began later
    assert probation(lambda at: START + 6.0) == at_once
    later = probation(lambda at: START - 100.0 if at < START + 60.0 else START + 50.0)
    # the window that was under way counts: it is the first to end afterwards
    assert (later[11], later[-1]) == (0, 2)
    # only the knob that is about new scrubs is waited for, and only where an objective shows it
    old = probation(lambda at: START - 100.0, osd_scrub_chunk_max=5)
    assert old == probation(lambda at: START - 100.0, slo=SLO) == at_once
    assert probation(lambda at: START - 100.0)[-1] == 0


def test_scrubs_that_never_end_are_not_waited_for_for_ever() -> None:
    eyes, state = Seen(steady()), phase(HOLDING)
    eyes.scrubs_since = START - 100.0
    observer = PhaseWindows(eyes)
    list(watch(observer, state, START, START + OUTLIVED_S, slo=SCRUBBED))
    list(watch(observer, state, START + OUTLIVED_S, START + OUTLIVED_S + 35.0, slo=SCRUBBED))
    assert observer.see(START, state, SCRUBBED, POLICY).windows > 0
    assert not observer.see(START, state, SCRUBBED, POLICY).outlived


def test_the_guard_sees_windows_that_do_not_count() -> None:
    eyes = Seen(steady())
    eyes.scrubs_since = START - 100.0
    observer = PhaseWindows(eyes)
    assert len(list(watch(observer, phase(HOLDING), START, START + 120.0, slo=SCRUBBED))) == 3
    assert observer.see(START + 120.0, phase(HOLDING), SCRUBBED, POLICY).outlived


@pytest.mark.parametrize(
    ("before", "now", "broken"),
    [
        (57e6, 15e6, ("scrub.bytes_s >= 30 MB/s (seen 15 MB/s)",)),
        (57e6, 31e6, ()),
        (20e6, 17e6, ()),
        (20e6, 15e6, ("scrub.bytes_s >= 30 MB/s (seen 15 MB/s)",)),
        (57e6, 0.0, ()),
    ],
    ids=["kept before", "kept", "missed before, within the tolerance", "missed before, and worse", "no scrub"],
)
def test_what_windows_on_probation_break_on_the_whole_is_told(before: float, now: float, broken: Any) -> None:
    observer = PhaseWindows(Seen(steady(60.0, **{SCRUB: now, "scrub.objects_s": now / 1e6})))
    state = phase(HOLDING, baseline={P95: 100.0, SCRUB: before})
    list(watch(observer, state, START, START + 120.0, slo=SCRUBBED))
    assert observer.see(START, state, SCRUBBED, POLICY).broken == broken
    assert observer.see(START, replace(state, phase=OBSERVING), SCRUBBED, POLICY).broken == ()


@pytest.mark.parametrize(
    ("by_turns", "windows", "is_unsure"),
    [
        ((31e6, 31e6), 3, False),
        ((24e6, 38e6), 4, True),
        ((24e6, 38e6), 20, True),
        ((29e6, 43e6), 3, True),
        ((29e6, 43e6), 20, False),
        ((22e6, 30e6), 20, False),
    ],
    ids=["each keeps it", "few", "many, near the bound", "few, far from it", "many, far from it", "broken"],
)
def test_probation_that_keeps_an_objective_by_chance_is_not_sure(
    by_turns: Tuple[float, float], windows: int, is_unsure: bool
) -> None:
    def seen_at(at: float) -> Mapping[str, float]:
        return {P95: 60.0, SCRUB: by_turns[int(at / POLICY.window) % 2], "scrub.objects_s": 30.0}

    observer = PhaseWindows(Seen(seen_at))
    state = phase(HOLDING, baseline={P95: 100.0, SCRUB: 57e6})
    list(watch(observer, state, START, START + POLICY.settle + windows * POLICY.window, slo=SCRUBBED))
    seen = observer.see(START, state, SCRUBBED, POLICY)
    assert seen.windows == windows
    assert bool(seen.unsure) == is_unsure
    assert not (seen.unsure and seen.broken)


def test_recovery_that_comes_to_its_end_breaks_nothing() -> None:
    slo = parse_slo({"objectives": ["recovery.objects_s>=50"]}, "cluster")
    left = "recovery.objects_left"
    state = phase(HOLDING, baseline={RECOVERY: 90.0, left: 1000.0})
    for remains, told in ((900.0, 1), (100.0, 0)):
        observer = PhaseWindows(Seen(steady(60.0, **{RECOVERY: 10.0, left: remains})))
        list(watch(observer, state, START, START + 120.0, slo=slo))
        assert len(observer.see(START, state, slo, POLICY).broken) == told
