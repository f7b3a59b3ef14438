from __future__ import annotations

import math
import random
from typing import List, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.autopilot.sequential import (
    EFFECT_VARIANCE,
    LEAST,
    LEAST_TURNS,
    NEIGHBOURS_SHARE,
    Interval,
    TurnNoise,
    alternation,
    difference,
    inflation,
    mean,
    radius,
)

FLOOR = 0.03
values = st.floats(-10.0, 10.0)
samples = st.lists(values, min_size=LEAST, max_size=30)


def in_turns(effects: Sequence[float], confidence: float = 0.95, noise: float = 0.0, before: int = 0) -> Interval:
    """The interval of effects beside turns and windows of before that differ by `noise` from one to the next."""
    steps = [noise] * len(effects)
    return alternation(effects, TurnNoise(steps, steps[1:], [noise] * before, [noise] * before), confidence, FLOOR)


def bayes_factor(t: float, effective: float, freedom: int) -> float:
    wider = 1.0 + effective * EFFECT_VARIANCE
    return wider**-0.5 * ((1.0 + t * t / freedom) / (1.0 + t * t / (freedom * wider))) ** ((freedom + 1) / 2.0)


def bayes_factor_by_integration(t: float, count: int) -> float:
    """Of one sample with that t, by its definition: both likelihoods integrated over deviation and effect."""
    # a sample enters by its mean and sum of squares alone: take a deviation of 1, and the mean follows
    middle, squares = t / math.sqrt(count), count - 1.0
    steps = [index / 60.0 for index in range(-360, 361)]

    def likelihood(effect: float) -> float:
        # right-Haar prior on the deviation: flat in its logarithm
        return sum(
            math.exp(
                -count * step - (squares + count * (middle - effect * math.exp(step)) ** 2) / 2 / math.exp(2 * step)
            )
            for step in steps
        )

    effects = [index / 15.0 for index in range(-90, 91)]
    prior = [math.exp(-effect * effect / 2 / EFFECT_VARIANCE) for effect in effects]
    alternative = sum(weight * likelihood(effect) for weight, effect in zip(prior, effects)) / sum(prior)
    return alternative / likelihood(0.0)


@pytest.mark.parametrize(("t", "count"), [(0.0, 5), (1.5, 5), (3.0, 8), (-4.0, 12)])
def test_the_bayes_factor_is_the_integral_that_it_stands_for(t: float, count: int) -> None:
    assert bayes_factor(t, count, count - 1) == pytest.approx(bayes_factor_by_integration(t, count), rel=1e-3)


@given(st.floats(1.0, 200.0), st.integers(3, 400), st.floats(0.5, 0.999))
def test_the_radius_is_where_the_bayes_factor_refutes(effective: float, freedom: int, confidence: float) -> None:
    t = radius(effective, freedom, confidence)
    if t == math.inf:
        assert bayes_factor(1e9, effective, freedom) <= 1.0 / (1.0 - confidence) * (1 + 1e-9)
    else:
        assert bayes_factor(t, effective, freedom) == pytest.approx(1.0 / (1.0 - confidence), rel=1e-6)


def test_the_bayes_factor_is_a_martingale_where_there_is_no_effect() -> None:
    # its mean over samples without an effect stays 1 as the sample grows: what Ville's inequality stands on
    chance = random.Random(4)
    runs, total = 20_000, {3: 0.0, 8: 0.0}
    for _ in range(runs):
        sample = [chance.gauss(5.0, 2.0) for _ in range(14)]
        for more in total:
            before, during = sample[:6], sample[6 : 6 + more]
            a, b = sum(before) / 6, sum(during) / more
            squares = sum((x - a) ** 2 for x in before) + sum((x - b) ** 2 for x in during)
            effective, freedom = 6 * more / (6 + more), 4 + more
            t = (b - a) / math.sqrt(squares / freedom / effective)
            total[more] += bayes_factor(t, effective, freedom)
    for summed in total.values():
        assert summed / runs == pytest.approx(1.0, abs=0.05)


@given(samples, samples, values)
def test_an_interval_moves_with_what_is_added_to_the_later_windows(
    before: List[float], during: List[float], shift: float
) -> None:
    still = difference(before, during, 0.95, FLOOR)
    moved = difference(before, [value + shift for value in during], 0.95, FLOOR)
    for here, there in zip(still, moved):
        assert there == pytest.approx(here + shift, abs=1e-6 * (1 + abs(here)) if abs(here) < math.inf else None)


@given(samples, samples)
def test_an_interval_reads_the_same_from_either_side(before: List[float], during: List[float]) -> None:
    there = difference(before, during, 0.95, FLOOR)
    back = difference([-value for value in before], [-value for value in during], 0.95, FLOOR)
    assert (back.low, back.high) == pytest.approx((-there.high, -there.low))


@given(samples, samples, st.floats(0.5, 0.98))
def test_more_confidence_widens(before: List[float], during: List[float], confidence: float) -> None:
    less, more = (difference(before, during, level, FLOOR) for level in (confidence, confidence + 0.015))
    assert more.low <= less.low <= less.estimate <= less.high <= more.high
    for interval in (lambda level: mean(during, level, FLOOR), lambda level: in_turns(during, level, 0.1)):
        less, more = (interval(level) for level in (confidence, confidence + 0.015))
        assert more.low <= less.low <= less.estimate <= less.high <= more.high


@given(st.integers(LEAST, 200), st.integers(LEAST, 200), values)
def test_values_without_any_spread_do_not_give_certainty(count: int, more: int, value: float) -> None:
    for interval in (
        difference([value] * count, [value] * more, 0.95, FLOOR),
        mean([value] * count, 0.95, FLOOR),
        in_turns([value] * count),
        in_turns([value] * count, before=20),
    ):
        # narrower than a fixed-sample interval of the floor itself would be too sure
        assert interval.high - interval.low > 2 * 1.96 * FLOOR / math.sqrt(max(count, more))


@pytest.mark.parametrize(("count", "more"), [(LEAST - 1, 50), (50, LEAST - 1), (1, 1)])
def test_few_windows_bound_nothing(count: int, more: int) -> None:
    interval = difference([0.0] * count, [9.0] * more, 0.95, FLOOR)
    assert (interval.estimate, interval.low, interval.high) == (9.0, -math.inf, math.inf)
    assert mean([9.0] * (LEAST - 1), 0.95, FLOOR).low == -math.inf
    assert in_turns([9.0] * (LEAST_TURNS - 1), before=20).low == -math.inf
    # no turns of one kind to compare
    assert alternation([9.0] * 9, TurnNoise([], [], [], []), 0.95, FLOOR).low == -math.inf


def test_the_interval_closes_in_as_windows_come() -> None:
    chance = random.Random(1)
    before = [chance.gauss(0.0, 0.1) for _ in range(400)]
    during = [chance.gauss(0.2, 0.1) for _ in range(400)]
    wide = difference(before[:10], during[:10], 0.95, FLOOR)
    narrow = difference(before, during, 0.95, FLOOR)
    assert narrow.high - narrow.low < (wide.high - wide.low) / 4
    assert wide.low < 0.2 < wide.high
    assert narrow.low < 0.2 < narrow.high


@given(samples, st.integers(0, 29), st.floats(-1e6, 1e6))
def test_no_single_window_decides(sample: List[float], place: int, wild: float) -> None:
    # all others equal: the estimate stays within one standard error, and no radius is below two
    calm = [0.1] * len(sample)
    one_wild = list(calm)
    one_wild[place % len(calm)] += wild
    for interval in (difference(calm, one_wild, 0.95, FLOOR), difference(one_wild, calm, 0.95, FLOOR)):
        assert interval.low < 0.0 < interval.high
    interval = mean([value - 0.1 for value in one_wild], 0.95, FLOOR)
    assert interval.low < 0.0 < interval.high


def test_turns_are_told_by_windows_of_before_sooner_than_by_their_own() -> None:
    for noise in (0.05, 0.1):
        alone, beside = (in_turns([0.3] * LEAST_TURNS, noise=noise, before=before) for before in (0, 20))
        assert beside.high - beside.low < (alone.high - alone.low) / 2


def test_the_deviation_of_an_effect_of_turns_is_that_of_both_kinds_of_turns() -> None:
    # many turns: nothing is left of what is unknown but the noise itself
    chance, deviation, count = random.Random(5), 0.1, 4000
    turns = [chance.gauss(0.0, deviation) for _ in range(2 * count + 1)]
    effects = [turns[at] - (turns[at - 1] + turns[at + 1]) / 2 for at in range(1, 2 * count, 2)]
    steps = [[b - a for a, b in zip(turns[first::2], turns[first + 2 :: 2])] for first in (0, 1)]
    found = alternation(effects, TurnNoise(*steps, [], []), 0.95, FLOOR)
    error = (found.high - found.low) / 2 / radius(count, 1e6, 0.95)
    assert error == pytest.approx(deviation * math.sqrt(2 / count), rel=0.03)
    middle = sum(effects) / count
    variance = sum((effect - middle) ** 2 for effect in effects) / (count - 1)
    assert variance * NEIGHBOURS_SHARE == pytest.approx(2 * deviation**2, rel=0.05)


@pytest.mark.parametrize("before", [0, 20])
def test_effects_that_scatter_more_than_turns_differ_widen_the_interval(before: int) -> None:
    calm = in_turns([0.5] * 12, noise=0.05, before=before)
    wild = in_turns([0.5 + (-1) ** at * 0.5 for at in range(12)], noise=0.05, before=before)
    assert wild.high - wild.low > 3 * (calm.high - calm.low)


def test_windows_that_follow_their_neighbours_widen_the_interval() -> None:
    chance = random.Random(2)
    steps = [chance.gauss(0.0, 0.1) for _ in range(400)]
    following = [0.0]
    for step in steps:
        following.append(0.8 * following[-1] + step)
    # (1 + r)/(1 - r) of 0.8 is 9, of none 1
    assert inflation(following) == pytest.approx(3.0, rel=0.15)
    assert inflation(steps) == pytest.approx(1.0, rel=0.1)
    # the usual one while little is known
    assert inflation([0.0] * 4) == pytest.approx(math.sqrt(1.3 / 0.7), rel=0.1)


@pytest.mark.parametrize(("confidence", "floor"), [(1.0, 0.03), (0.0, 0.03), (0.95, 0.0), (0.95, math.inf)])
def test_what_would_make_an_interval_meaningless_is_refused(confidence: float, floor: float) -> None:
    with pytest.raises(ValueError, match="must be in"):
        mean([1.0, 2.0, 3.0, 4.0], confidence, floor)
    with pytest.raises(ValueError, match="must be in"):
        alternation([1.0, 2.0, 3.0, 4.0], TurnNoise([1.0], [], [], []), confidence, floor)
    with pytest.raises(ValueError, match="must be in"):
        difference([1.0] * 4, [2.0] * 4, confidence, floor)
