from __future__ import annotations

import math
import random
from statistics import median
from typing import Dict, List, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.autopilot.contract import ALIKE, BETTER, UNKNOWN, WORSE, Effect, Pair, Turn
from ceph_tuner.core.autopilot.effect import (
    drawn_in,
    effects,
    effects_of_turns,
    harm_ruled_out,
    verdict_on,
    worsening,
)

LATENCY, RATE = "client.p95_ms", "recovery.bytes_s"
LOWER = {LATENCY: True, RATE: False}


LATENCIES = {LATENCY: True}


def alternating(values: Sequence[float]) -> List[Turn]:
    """Turns, of which the first has the old settings."""
    return [Turn(float(at), at % 2 == 1, {LATENCY: value}) for at, value in enumerate(values)]


def wavy(count: int, noise: float, change: float = 0.0, seed: int = 7) -> List[float]:
    """So many latencies about 20 ms, every second one with the change."""
    chance = random.Random(seed)
    return [20.0 * (1.0 + change * (at % 2)) * math.exp(chance.gauss(0.0, noise)) for at in range(count)]


def pair(at: int, during: bool, tried: float, control: float, metric: str = LATENCY) -> Pair:
    return Pair(float(at), during, {metric: tried}, {metric: control})


def trial(
    change: float = 0.0, before: int = 20, during: int = 40, noise: float = 0.05, lasting: float = 1.0, seed: int = 1,
    metric: str = LATENCY,
) -> List[Pair]:  # fmt: skip
    """Pairs with load that doubles in mid-trial, for both groups; `lasting` is what always differs between them."""
    chance = random.Random(seed)
    pairs = []
    for at in range(before + during):
        load = 20.0 * (2.0 if at >= before + during // 2 else 1.0)
        factor = 1.0 + change if at >= before else 1.0
        tried = load * lasting * factor * math.exp(chance.gauss(0.0, noise))
        pairs.append(pair(at, at >= before, tried, load, metric))
    return pairs


@pytest.mark.parametrize(
    ("metric", "change", "verdict"),
    [(LATENCY, 0.3, WORSE), (LATENCY, -0.2, BETTER), (RATE, -0.3, WORSE), (RATE, 0.3, BETTER)],
)
@pytest.mark.parametrize("lasting", [1.0, 3.0])
def test_a_change_is_told_beside_a_step_of_the_load_and_a_lasting_difference(
    metric: str, change: float, verdict: str, lasting: float
) -> None:
    found = effects(trial(change, lasting=lasting, metric=metric), LOWER, 0.95, 0.05)[metric]
    assert found.verdict == verdict
    assert found.low < change < found.high
    assert found.change == pytest.approx(change, abs=0.05)
    assert found.windows == 40


@pytest.mark.parametrize("lasting", [0.5, 1.0, 3.0])
def test_a_step_of_the_load_and_a_lasting_difference_are_no_effect(lasting: float) -> None:
    pairs = trial(lasting=lasting, noise=0.02, before=40)
    assert effects(pairs, LOWER, 0.95, 0.05)[LATENCY].verdict == ALIKE


def test_the_order_of_the_pairs_does_not_matter() -> None:
    pairs = trial(0.1)
    shuffled = list(pairs)
    random.Random(3).shuffle(shuffled)
    assert effects(shuffled, LOWER, 0.95, 0.05) == effects(pairs, LOWER, 0.95, 0.05)


@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_units_and_lasting_differences_cancel(tried: float, control: float) -> None:
    plain = effects(trial(0.1, before=6, during=6), LOWER, 0.95, 0.05)[LATENCY]
    scaled = [
        Pair(p.at, p.during, {LATENCY: p.tried[LATENCY] * tried}, {LATENCY: p.control[LATENCY] * control})
        for p in trial(0.1, before=6, during=6)
    ]
    found = effects(scaled, LOWER, 0.95, 0.05)[LATENCY]
    assert (found.change, found.low, found.high) == pytest.approx((plain.change, plain.low, plain.high))
    assert found.verdict == plain.verdict


numbers = st.one_of(st.floats(), st.sampled_from([0.0, -1.0, math.nan, math.inf, 5e-324, 1.7e308]))
sides = st.dictionaries(st.sampled_from([LATENCY, RATE, "of.nobody"]), numbers)


@given(
    st.lists(st.builds(Pair, st.floats(0.0, 1e9), st.booleans(), sides, sides), max_size=30),
    st.lists(st.builds(Turn, st.floats(0.0, 1e9), st.booleans(), sides), max_size=30),
    st.lists(sides, max_size=9),
)
def test_whatever_was_measured_there_is_an_answer(
    pairs: List[Pair], turns: List[Turn], before: List[Dict[str, float]]
) -> None:
    judged = LOWER, 0.95, 0.05
    for metric, effect in (*effects(pairs, *judged).items(), *effects_of_turns(turns, before, *judged).items()):
        assert metric in LOWER
        assert effect.change is None or effect.low <= effect.change <= effect.high
        assert not math.isnan(effect.low)
        assert not math.isnan(effect.high)
        assert Effect.from_dict(effect.to_dict()).verdict in (BETTER, WORSE, ALIKE, UNKNOWN)


def test_work_that_stands_still_on_one_side_is_not_taken_for_absent() -> None:
    pairs = [pair(at, at >= 6, 0.0 if at >= 6 else 5.0, 5.0, RATE) for at in range(12)]
    found = effects(pairs, LOWER, 0.95, 0.05)[RATE]
    assert (found.change, found.verdict, found.windows) == (None, UNKNOWN, 6)
    mostly = [pair(at, at >= 6, 5.0 if at < 6 or at % 3 == 0 else 0.0, 5.0, RATE) for at in range(24)]
    assert effects(mostly, LOWER, 0.95, 0.05)[RATE].change is None
    # work that is nowhere is absent
    ended = [pair(at, at >= 6, 0.0, 0.0, RATE) for at in range(12)]
    assert effects(ended, LOWER, 0.95, 0.05) == {}
    assert effects([], LOWER, 0.95, 0.05) == {}


def test_work_that_nobody_saw_before_cannot_be_judged() -> None:
    found = effects([pair(at, True, 9.0, 5.0) for at in range(20)], LOWER, 0.95, 0.05)[LATENCY]
    assert (found.change, found.verdict, found.windows) == (None, UNKNOWN, 20)
    assert (found.low, found.high) == (-math.inf, math.inf)


def test_zeros_are_left_out_and_the_rest_counts() -> None:
    pairs = trial(0.3, seed=5)
    holes = [pair(1000 + at, at % 2 == 0, 0.0, 7.0) for at in range(10)]
    assert effects(pairs + holes, LOWER, 0.95, 0.05) == effects(pairs, LOWER, 0.95, 0.05)


@given(st.integers(0, 25), st.floats(1e-6, 1e6))
def test_one_wild_window_does_not_decide(place: int, factor: float) -> None:
    pairs = [pair(at, at >= 6, 20.0 * (factor if at == place else 1.0), 20.0) for at in range(26)]
    assert effects(pairs, LOWER, 0.95, 0.05)[LATENCY].verdict in (ALIKE, UNKNOWN)


def test_one_wild_window_does_not_hide_an_effect() -> None:
    pairs = trial(-0.2, before=10, during=16, noise=0.05)
    wild = [
        Pair(p.at, p.during, {LATENCY: p.tried[LATENCY] * (50.0 if at in (3, 12) else 1.0)}, p.control)
        for at, p in enumerate(pairs)
    ]
    found = effects(wild, LOWER, 0.95, 0.05)[LATENCY]
    assert found.verdict == BETTER
    assert found.low < -0.2 < found.high


def test_settings_that_are_wild_now_and_then_are_not_called_better_for_the_windows_between() -> None:
    pairs = [
        Pair(p.at, p.during, {LATENCY: p.tried[LATENCY] * (5.0 if p.during and p.at % 8 == 0 else 1.0)}, p.control)
        for p in trial(-0.2, before=20, during=40, noise=0.05)
    ]
    assert effects(pairs, LOWER, 0.95, 0.05)[LATENCY].verdict == UNKNOWN


@given(st.lists(st.lists(st.floats(-10.0, 10.0), min_size=1, max_size=20), min_size=1, max_size=2))
def test_what_is_drawn_in_stays_on_its_side_of_the_median(samples: List[List[float]]) -> None:
    for sample, drawn in zip(samples, drawn_in(*samples)):
        middle = median(sample)
        for value, instead in zip(sample, drawn):
            assert abs(instead - middle) <= abs(value - middle) + 1e-12
            assert (instead - middle) * (value - middle) >= 0.0
    # at least half of what was measured is left as it was
    kept = [value == instead for s, d in zip(samples, drawn_in(*samples)) for value, instead in zip(s, d)]
    assert sum(kept) >= len(kept) / 2


@pytest.mark.parametrize("known", [0, 20])
def test_turns_of_old_and_new_settings_are_compared_with_each_other(known: int) -> None:
    before = [{LATENCY: value} for value in wavy(known, 0.1, seed=3)]
    turns = alternating(wavy(31, 0.1, -0.3))
    found = effects_of_turns(turns, before, LATENCIES, 0.95, 0.05)[LATENCY]
    assert found.verdict == BETTER
    assert found.low < -0.3 < found.high
    assert found.windows == 15
    # what was before alone says nothing, nor does a new turn that none of the old ones follows
    assert effects_of_turns(turns[:2], before, LATENCIES, 0.95, 0.05) == {}


def test_windows_of_before_let_three_turns_tell_what_five_told() -> None:
    before = [{LATENCY: value} for value in wavy(20, 0.05, seed=3)]
    turns = alternating(wavy(7, 0.05, -0.4))
    assert effects_of_turns(turns, before, LATENCIES, 0.95, 0.05)[LATENCY].verdict == BETTER
    assert effects_of_turns(turns, [], LATENCIES, 0.975, 0.05)[LATENCY].verdict == UNKNOWN


@pytest.mark.parametrize("rise", [0.0, 0.1])
def test_a_load_that_rises_from_turn_to_turn_is_no_effect(rise: float) -> None:
    latencies = [value * math.exp(rise * at) for at, value in enumerate(wavy(41, 0.02))]
    found = effects_of_turns(alternating(latencies), [], LATENCIES, 0.95, 0.05)[LATENCY]
    assert found.low < 0.0 < found.high
    assert found.change == pytest.approx(0.0, abs=0.02)


@given(st.integers(0, 24), st.floats(1e-3, 1e3), st.integers(0, 20))
def test_one_wild_turn_does_not_decide(place: int, factor: float, known: int) -> None:
    latencies = [20.0 * (factor if at == place else 1.0) for at in range(25)]
    before = [{LATENCY: 20.0}] * known
    for seen in range(7, 26, 2):
        found = effects_of_turns(alternating(latencies[:seen]), before, LATENCIES, 0.95, 0.05)[LATENCY]
        assert found.verdict in (ALIKE, UNKNOWN)


def test_a_turn_that_showed_nothing_is_left_out_with_what_is_compared_with_it() -> None:
    turns = alternating(wavy(41, 0.05, -0.4))
    turns[20] = Turn(20.0, False, {LATENCY: 0.0})
    found = effects_of_turns(turns, [], LATENCIES, 0.95, 0.05)[LATENCY]
    assert (found.windows, found.verdict) == (18, BETTER)


@pytest.mark.parametrize(
    ("low", "high", "verdict", "at_all", "ruled_out"),
    [
        (0.06, 0.2, WORSE, True, False),
        (0.01, 0.2, UNKNOWN, True, False),
        (0.01, 0.04, ALIKE, True, True),
        (-0.04, 0.04, ALIKE, False, True),
        (-0.2, 0.04, UNKNOWN, False, True),
        (-0.2, 0.2, UNKNOWN, False, False),
        (-0.04, -0.01, BETTER, False, True),
        (-0.4, -0.1, BETTER, False, True),
        (-math.inf, math.inf, UNKNOWN, False, False),
    ],
)
def test_verdicts_by_where_the_interval_lies(
    low: float, high: float, verdict: str, at_all: bool, ruled_out: bool
) -> None:
    for lower_is_better, ends in ((True, (low, high)), (False, (-high, -low))):
        effect = Effect("any", 0.0, *ends, 9, verdict)
        assert verdict_on(*ends, lower_is_better, 0.05) == verdict
        assert (worsening(*ends, lower_is_better)[0] > 0.0) == at_all
        assert harm_ruled_out(effect, lower_is_better, 0.05) == ruled_out
