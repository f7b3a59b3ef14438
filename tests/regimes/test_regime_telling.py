"""Regimes from samples: the laws of the hysteresis, and what the default bounds call what."""

from __future__ import annotations

from itertools import accumulate
from typing import Any, Dict, List, Optional, Tuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.regimes.bounds import DEFAULT, IDLE, Marker, PolicyMarker, RegimeBounds
from ceph_tuner.core.regimes.telling import (
    GAP_S,
    UNREADABLE,
    UNSEEN_S,
    PolicyTurn,
    RegimeState,
    calendar_turned,
    tell,
    turns,
)

LEFT, QUEUE = "recovery.objects_left", "snaptrim.queue"
CALM = {"client.iops": 0.0, LEFT: 0.0, "backfill.objects_left": 0.0, "scrub.pgs_late": 0.0, QUEUE: 0.0}


def told(
    samples: List[Tuple[float, Dict[str, float]]], bounds: RegimeBounds = DEFAULT, capacity: Optional[float] = 1000.0
) -> List[RegimeState]:
    states: List[RegimeState] = []
    for at, values in samples:
        states.append(tell(states[-1] if states else None, at, values, bounds, capacity))
    return states


def every(seconds: float, count: int, start: float = 1000.0, **values: float) -> List[Tuple[float, Dict[str, float]]]:
    named = {name.replace("__", "."): value for name, value in values.items()}
    return [(start + number * seconds, {**CALM, **named}) for number in range(count)]


@pytest.mark.parametrize(
    ("values", "regime"),
    [
        ({}, IDLE),
        ({"client.iops": 99.0}, IDLE),
        ({"client.iops": 100.0}, "busy"),
        ({LEFT: 5.0}, "recovering"),
        ({"backfill.objects_left": 5.0, "client.iops": 500.0}, "busy+backfilling"),
        ({"scrub.pgs_late": 2.0, QUEUE: 1.0}, "scrub-late+trimming"),
        ({LEFT: 1.0, "backfill.objects_left": 1.0}, "recovering+backfilling"),
    ],
)
def test_the_default_bounds_name_what_a_cluster_does(values: Dict[str, float], regime: str) -> None:
    (state,) = told([(0.0, {**CALM, **values})])
    assert state.name == regime
    assert state.evidence[LEFT] == values.get(LEFT, 0.0)


def test_a_change_is_told_once_it_has_lasted_and_says_by_what() -> None:
    states = told([*every(5.0, 20), *every(5.0, 10, 1100.0, recovery__objects_left=7.0)])
    changed = next(state for state in states if state.name == "recovering")
    # 15 s of samples beyond the bound
    assert (changed.at, changed.since, changed.evidence[LEFT]) == (1115.0, 1115.0, 7.0)
    assert states[-1].since == 1115.0


def test_what_would_turn_each_marker_has_its_bound_in_the_metrics_unit_and_its_present_value() -> None:
    (state,) = told([(1000.0, {**CALM, "client.iops": 500.0})])
    state = tell(state, 1005.0, {**CALM, "client.iops": 20.0, LEFT: 3.0}, DEFAULT, 1000.0)
    found = {turn.name: turn for turn in turns(state, {"client.iops": 20.0, LEFT: 3.0}, DEFAULT, 1000.0)}
    assert found["busy"] == ("busy", "client.iops", True, 50.0, 20.0, 60.0, 1005.0)
    assert found["recovering"] == ("recovering", LEFT, False, 1.0, 3.0, 15.0, 1005.0)
    assert (found["trimming"].value, found["trimming"].against) == (None, None)
    assert turns(state, {}, DEFAULT, None)[0].bound is None


def test_the_first_sample_alone_settles_nothing() -> None:
    # a new mgr has not heard of the clients yet
    states = told([*every(5.0, 2), *every(5.0, 20, 1010.0, client__iops=500.0)])
    assert [state.name for state in states[:2]] == [IDLE, IDLE]
    assert not any(state.settled for state in states if state.name == IDLE)
    assert (states[-1].name, states[-1].settled) == ("busy", True)
    assert [state.settled for state in told(every(5.0, 20))] == [False] * 12 + [True] * 8


def test_what_passes_is_no_regime() -> None:
    blink = every(5.0, 20) + every(5.0, 2, 1100.0, recovery__objects_left=7.0) + every(5.0, 20, 1110.0)
    assert {state.name for state in told(blink)} == {IDLE}


def test_what_came_in_a_gap_has_to_last_after_it() -> None:
    states = told([*every(5.0, 20), *every(GAP_S + 1, 5, 1200.0, recovery__objects_left=7.0)])
    assert states[-1].name == IDLE


def test_a_metric_that_is_missing_leaves_it_as_it_is_and_after_a_while_ends_it() -> None:
    begun = every(5.0, 1, recovery__objects_left=7.0)
    without = [(1005.0 + 5 * number, {"client.iops": 0.0}) for number in range(70)]
    states = told([*begun, *without])
    assert states[40].name == "recovering"
    assert (states[-1].name, states[-1].since) == (IDLE, 1000.0 + UNSEEN_S)


def test_without_a_known_capacity_nobody_is_busy() -> None:
    assert told(every(5.0, 1, client__iops=1e9), capacity=None)[0].name == IDLE


def test_a_clock_that_is_set_back_begins_anew() -> None:
    states = told([*every(5.0, 5), (500.0, {**CALM, LEFT: 3.0})])
    assert (states[-1].name, states[-1].since) == ("recovering", 500.0)


markers = st.builds(
    lambda name, metric, leave, width, hold: Marker(name, metric, leave + width, leave, hold),
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from([LEFT, QUEUE, "scrub.pgs_late"]),
    st.integers(0, 5),
    st.integers(1, 5),
    st.integers(0, 60),
)
some_bounds = st.builds(
    RegimeBounds,
    st.lists(markers, min_size=1, max_size=3, unique_by=lambda marker: marker.name).map(tuple),
    st.integers(0, 200),
)
values = st.fixed_dictionaries({}, optional=dict.fromkeys((LEFT, QUEUE, "scrub.pgs_late"), st.integers(0, 12)))
series = st.lists(st.tuples(st.integers(1, 80), values), min_size=1, max_size=40).map(
    lambda steps: list(zip(accumulate(float(step[0]) for step in steps), [step[1] for step in steps]))
)


def states_of(samples: Any, bounds: RegimeBounds) -> List[RegimeState]:
    return told(samples, bounds, None)


@given(series, some_bounds)
def test_every_sample_has_exactly_one_regime_of_known_names(samples: Any, bounds: RegimeBounds) -> None:
    names = {marker.name for marker in bounds.markers}
    for state, (at, _) in zip(states_of(samples, bounds), samples):
        on = [name for name, marker in state.markers.items() if marker.on]
        assert state.name == ("+".join(marker.name for marker in bounds.markers if marker.name in on) or IDLE)
        assert set(state.markers) == names
        assert state.since <= state.at == at


@given(series, some_bounds)
def test_no_two_changes_are_nearer_than_the_dwell(samples: Any, bounds: RegimeBounds) -> None:
    states = states_of(samples, bounds)
    changes = [after.at for before, after in zip(states, states[1:]) if after.name != before.name]
    assert all(later - earlier >= bounds.dwell_s for earlier, later in zip(changes, changes[1:]))
    assert not changes or changes[0] - states[0].at >= bounds.dwell_s
    # since is the last change, or the beginning
    assert all(state.since in (states[0].at, *changes) for state in states)


@given(series, some_bounds)
def test_a_marker_turns_only_after_all_samples_of_its_hold_spoke_against_it(samples: Any, bounds: RegimeBounds) -> None:
    states = states_of(samples, bounds)
    for number in range(1, len(states)):
        for marker in bounds.markers:
            before, after = states[number - 1].markers[marker.name], states[number].markers[marker.name]
            if before.on == after.on:
                continue
            end = states[number].at
            held = [entry for at, entry in samples[: number + 1] if at >= end - marker.hold_s]
            found = [entry.get(marker.metric) for entry in held]
            if before.on and (before.seen is None or end - before.seen >= UNSEEN_S):
                continue
            for value in found:
                assert value is not None
                assert value <= marker.leave if before.on else value >= marker.enter


@given(series, some_bounds)
def test_between_its_bounds_nothing_changes(samples: Any, bounds: RegimeBounds) -> None:
    states = states_of(samples, bounds)
    middle = {marker.metric: (marker.enter + marker.leave) / 2 for marker in bounds.markers}
    if len(middle) < len(bounds.markers):
        # two markers of one metric have no common middle
        return
    start = states[-1]
    for number in range(1, 60):
        after = tell(start, states[-1].at + 5.0 * number, middle, bounds)
        assert after.name == states[-1].name
        start = after


@given(series, some_bounds, values)
def test_what_lasts_is_told_in_the_end(samples: Any, bounds: RegimeBounds, lasting: Dict[str, float]) -> None:
    state = states_of(samples, bounds)[-1]
    whole = {LEFT: 0, QUEUE: 0, "scrub.pgs_late": 0, **lasting}
    for _ in range(100):
        state = tell(state, state.at + 5.0, whole, bounds)
    for marker in bounds.markers:
        if whole[marker.metric] >= marker.enter:
            assert state.markers[marker.name].on
        if whole[marker.metric] <= marker.leave:
            assert not state.markers[marker.name].on


def test_a_regime_of_before_the_clock_was_set_back_is_not_told() -> None:
    state = told(every(5.0, 20))[-1]
    assert state.is_told(state.at + 5.0, 12.5)
    assert not state.is_told(state.at + 20.0, 12.5)
    assert not state.is_told(state.at - 3600.0, 12.5)


# policies of the objectives' calendar

OFFICE, NIGHT = PolicyMarker("office", "office"), PolicyMarker("night", "dark")
BY_POLICY = RegimeBounds((OFFICE, *DEFAULT.markers, NIGHT))


def told_under(steps: Any, bounds: RegimeBounds) -> List[RegimeState]:
    """Steps: time, values, and the policy."""
    states: List[RegimeState] = []
    for at, found, policy in steps:
        states.append(tell(states[-1] if states else None, at, found, bounds, None, policy))
    return states


def under(policy: Optional[str], *samples: Tuple[float, Dict[str, float]]) -> Any:
    return [(at, found, policy) for at, found in samples]


def test_a_policy_turns_the_regime_with_the_first_sample_under_it_whatever_turned_before() -> None:
    lost = {"recovery__objects_left": 7.0}
    steps = [
        *under("base", *every(5.0, 20)),
        # recovering from 1115 on
        *under("base", *every(5.0, 4, 1100.0, **lost)),
        *under("office", *every(5.0, 1, 1120.0, **lost)),
        *under("dark", *every(5.0, 1, 1125.0, **lost)),
    ]
    states = told_under(steps, BY_POLICY)
    assert [(state.name, state.since, state.by_policy) for state in states[-3:]] == [
        ("recovering", 1115.0, None),
        ("office+recovering", 1120.0, "office"),
        ("recovering+night", 1125.0, "dark"),
    ]
    assert states[-1].evidence[LEFT] == 7.0
    assert not states[-1].turning


def test_a_policy_does_not_put_off_what_metrics_turn() -> None:
    lost = {"recovery__objects_left": 7.0}
    steps = [
        *under("base", *every(5.0, 20)),
        *under("base", *every(5.0, 2, 1100.0, **lost)),
        *under("office", *every(5.0, 3, 1110.0, **lost)),
    ]
    assert [state.name for state in told_under(steps, BY_POLICY)[-3:]] == ["office", *2 * ["office+recovering"]]


def test_a_policy_that_turns_settles_nothing_of_what_a_new_mgr_sees() -> None:
    steps = [*under("base", *every(5.0, 2)), *under("office", *every(5.0, 12, 1010.0))]
    states = told_under(steps, BY_POLICY)
    assert {state.name for state in states[2:]} == {"office"}
    assert [state.settled for state in states] == [False] * 12 + [True] * 2


@pytest.mark.parametrize("policy", ["", "base", "elsewhere"])
def test_without_that_policy_its_marker_is_off(policy: str) -> None:
    first, second = told_under(under(policy, *every(5.0, 2)), BY_POLICY)
    assert (first.name, second.name) == (IDLE, IDLE)
    (ended,) = told_under([*under("office", *every(5.0, 2)), *under("", *every(5.0, 1, 1010.0))], BY_POLICY)[2:]
    assert (ended.name, ended.since, ended.by_policy) == (IDLE, 1010.0, "")


def test_a_calendar_that_nobody_knows_leaves_it_as_it_is_and_after_a_while_ends_it() -> None:
    states = told_under([*under("office", *every(5.0, 20)), *under(None, *every(5.0, 70, 1100.0))], BY_POLICY)
    assert {state.name for state in states if state.at < 1095.0 + UNSEEN_S} == {"office"}
    assert (states[-1].name, states[-1].since) == (IDLE, 1095.0 + UNSEEN_S)
    # office may hold: that none does is another matter
    assert states[-1].by_policy == UNREADABLE
    assert calendar_turned(UNREADABLE) == "the calendar, as nobody can read it"
    # a new mgr that has not read it yet
    unread = told_under([*under(None, *every(5.0, 2)), *under("office", *every(5.0, 1, 1010.0))], BY_POLICY)
    assert [state.name for state in unread] == [IDLE, IDLE, "office"]


def test_what_would_turn_a_marker_of_a_policy_is_a_moment_of_the_calendar() -> None:
    (state,) = told_under(under("office", *every(5.0, 1)), BY_POLICY)
    found = {turn.name: turn for turn in turns(state, {}, BY_POLICY, None, {"office": 5000.0})}
    assert found["office"] == PolicyTurn("office", "office", True, 5000.0, True)
    assert found["night"] == PolicyTurn("night", "dark", False, None, False)
    assert [turn.name for turn in turns(state, {}, BY_POLICY)] == [marker.name for marker in BY_POLICY.markers]


policies = st.sampled_from(["", "base", "office", "dark", "lunch", None])
series_under = st.lists(st.tuples(st.integers(1, 80), values, policies), min_size=1, max_size=40).map(
    lambda steps: [
        (at, found, policy) for at, (_, found, policy) in zip(accumulate(float(step[0]) for step in steps), steps)
    ]
)
mixed_bounds = st.builds(
    lambda bounds, before: RegimeBounds(
        (OFFICE, *bounds.markers, NIGHT) if before else (*bounds.markers, OFFICE, NIGHT), bounds.dwell_s
    ),
    some_bounds,
    st.booleans(),
)


@given(series_under, mixed_bounds)
def test_metrics_turn_their_markers_as_if_there_were_no_policies(steps: Any, bounds: RegimeBounds) -> None:
    alone = RegimeBounds(bounds.of_metrics, bounds.dwell_s)
    own = {marker.name for marker in bounds.of_metrics}
    for mixed, plain in zip(told_under(steps, bounds), states_of([step[:2] for step in steps], alone)):
        assert {name: marker for name, marker in mixed.markers.items() if name in own} == plain.markers
        assert (mixed.settled, mixed.turning) == (plain.settled, plain.turning)
        assert mixed.since >= plain.since


@given(series_under, mixed_bounds)
def test_a_policy_that_is_known_has_its_marker_on_at_every_sample_and_no_other_has(
    steps: Any, bounds: RegimeBounds
) -> None:
    states = told_under(steps, bounds)
    for state, (_, _, policy) in zip(states, steps):
        on = [marker.policy for marker in bounds.of_policies if state.markers[marker.name].on]
        assert on == [policy] * (policy in ("office", "dark")) or policy is None
        assert bounds.tells(state.name)
        assert bounds.policy_of(state.name) == next(iter(on), None)
    changes = [after.at for before, after in zip(states, states[1:]) if after.name != before.name]
    assert states[-1].since == next(reversed(changes), states[0].at)
