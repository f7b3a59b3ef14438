from __future__ import annotations

import math
from typing import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.ranking import (
    CHANCE,
    NOISE_FREEDOM,
    WINDOW_NOISE,
    Candidate,
    candidate,
    choose,
    finalists,
    window_noise,
)
from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.core.knobs.settings import ChangeCost

SLO = parse_slo(
    {
        "objectives": [
            "client.p95_ms <= 80 ms",
            "recovery.bytes_s >= 8 MB/s",
            {"objective": "client.p99_ms <= 150 ms", "hard": False, "priority": 3},
        ]
    }
)


def entry(label: str, p95: float, rate: float = 9e6, repeats: int = 1) -> Candidate:
    return Candidate(label, {"client.p95_ms": p95, "recovery.bytes_s": rate, "client.p99_ms": 120.0}, repeats)


def test_the_candidate_that_was_measured_again_beats_the_luckier_single_window() -> None:
    choice = choose(Judge(SLO), entry("now", 98), [entry("lucky", 40), entry("steady", 75, repeats=2)])
    assert choice.winner.label == "steady"
    assert choice.better
    assert "client.p95_ms" in choice.reason


def test_a_difference_within_the_noise_changes_nothing() -> None:
    assert not choose(Judge(SLO), entry("now", 98), [entry("other", 95)]).better
    assert choose(Judge(SLO), entry("now", 98), [entry("other", 75)]).better
    assert not choose(Judge(SLO), entry("now", 60), [entry("other", 59)]).better


def test_where_nothing_is_better_what_is_in_force_wins() -> None:
    choice = choose(Judge(SLO), entry("now", 60), [entry("other", 90)])
    assert (choice.winner.label, choice.better) == ("now", False)
    assert not choose(Judge(SLO), entry("now", 60), []).better


def test_a_winner_that_still_misses_an_objective_says_so() -> None:
    choice = choose(Judge(SLO), entry("now", 98, 5e6), [entry("other", 70, 6e6)])
    assert choice.better
    assert "still misses recovery.bytes_s" in choice.reason


def test_where_every_objective_is_met_already_that_is_what_is_said() -> None:
    for others in ([], [entry("worse", 70)], [entry("hardly better", 59)]):
        choice = choose(Judge(SLO), entry("now", 60), others)
        assert not choice.better
        assert choice.reason.startswith("every objective is met already")
    missed = choose(Judge(SLO), entry("now", 98), [entry("other", 97)])
    assert not missed.better
    assert "met already" not in missed.reason


def test_a_winner_never_hides_what_it_makes_worse() -> None:
    lost = choose(Judge(SLO), entry("now", 200, 9e6), [entry("other", 90, 7.9e6)])
    assert lost.better
    assert "still misses client.p95_ms" in lost.reason
    assert "no longer meets recovery.bytes_s, which the settings in force do" in lost.reason
    assert "still misses client.p95_ms and recovery.bytes_s" not in lost.reason

    worse = choose(Judge(SLO), entry("now", 400, 5e6), [entry("other", 90, 4e6)])
    assert worse.better
    assert worse.reason == (
        "closer to the bounds on the whole, but still misses client.p95_ms and recovery.bytes_s; "
        "recovery.bytes_s gets worse"
    )


def test_a_soft_objective_that_is_given_up_is_named() -> None:
    def with_tail(label: str, p95: float, p99: float) -> Candidate:
        return Candidate(label, {"client.p95_ms": p95, "recovery.bytes_s": 9e6, "client.p99_ms": p99}, 1)

    choice = choose(Judge(SLO), with_tail("now", 120, 140), [with_tail("other", 70, 160)])
    assert choice.better
    assert choice.reason == ("meets client.p95_ms; no longer meets client.p99_ms, which the settings in force do")


def test_keeping_all_hard_objectives_comes_before_everything_else() -> None:
    order = finalists(Judge(SLO), [entry("fast", 10, 7.9e6), entry("kept", 79, 8.1e6)], 2)
    assert [found.label for found in order] == ["kept", "fast"]


def test_repeats_are_averaged_over_what_all_of_them_saw() -> None:
    found = candidate("x", [{"client.p95_ms": 70.0, "client.iops": 3.0}, {"client.p95_ms": 90.0}])
    assert (found.label, found.means, found.repeats) == ("x", {"client.p95_ms": 80.0}, 2)
    with pytest.raises(ValueError, match="not measured"):
        candidate("x", [])


def windows(label: str, *p95: float, spread: float = 0.0) -> Candidate:
    seen = [{"client.p95_ms": value, "recovery.bytes_s": 9e6, "client.p99_ms": 120.0} for value in p95]
    return candidate(label, seen, [{"client.p95_ms": spread} for _ in p95])


def test_an_upper_bound_that_is_no_better_than_what_is_in_force_changes_nothing() -> None:
    now = windows("now", 98, 97)
    # the same gain by the means: with windows that repeat well it is one, with others it may be chance
    assert choose(Judge(SLO), now, [windows("sure", 84, 85, spread=1), windows("other", 120, 121)]).better
    wild = choose(Judge(SLO), now, [windows("lucky", 55, 114), windows("other", 90, 120)])
    assert wild.winner.label == "lucky"
    assert not wild.better
    assert wild.bounds["client.p95_ms"] > 98


def test_the_upper_bound_is_the_mean_and_what_chance_adds_to_it() -> None:
    choice = choose(Judge(SLO), entry("now", 98), [entry("other", 60)])
    assert choice.bounds["client.p95_ms"] == pytest.approx(60 * math.exp(CHANCE * WINDOW_NOISE * math.sqrt(2)))
    # of a rate the lower end is the bad one
    assert choice.bounds["recovery.bytes_s"] < 9e6
    assert choice.to_dict()["upper_bounds"] == choice.bounds


def test_of_those_that_are_alike_by_their_means_the_steadiest_wins_and_it_is_said() -> None:
    now = windows("now", 98, 97)
    choice = choose(Judge(SLO), now, [windows("shaky", 50, 68), windows("steady", 61, 61)])
    assert choice.winner.label == "steady"
    assert "steadier than shaky" in choice.reason
    assert "client.p95_ms at worst 61 ms against 68 ms" in choice.reason
    # the deviation inside of a window counts alike
    inside = choose(Judge(SLO), now, [windows("shaky", 59, 60, spread=30), windows("steady", 61, 61, spread=2)])
    assert inside.winner.label == "steady"
    # steadiness does not buy a clearly worse mean
    assert choose(Judge(SLO), now, [windows("shaky", 30, 42), windows("steady", 70, 70)]).winner.label == "shaky"


def test_of_those_that_are_as_good_and_as_steady_the_cheapest_wins_and_it_is_said() -> None:
    now = windows("now", 98, 99)
    alike = [windows("many", 60, 61), windows("few", 61, 62)]
    choice = choose(Judge(SLO), now, alike, {"many": ChangeCost(12, 11), "few": ChangeCost(12, 2)})
    assert choice.winner.label == "few"
    assert "knobs moved: 2, by many, which is as good, 11" in choice.reason
    # a custom profile is ten entries, however little it moves
    live = choose(Judge(SLO), now, alike, {"many": ChangeCost(3, 3), "few": ChangeCost(10, 1)})
    assert live.winner.label == "many"
    dear = choose(Judge(SLO), now, alike, {"many": ChangeCost(10, 1), "few": ChangeCost(3, 3)})
    assert "writes: 3, by many, which is as good, 10" in dear.reason
    # a gain that is worth a write is worth knobs as well
    unlike = [windows("much", 30, 31), windows("few", 61, 62)]
    costs = {"much": ChangeCost(12, 11), "few": ChangeCost(2, 2)}
    assert choose(Judge(SLO), now, unlike, costs).winner.label == "much"


@pytest.mark.parametrize(("rate", "winner"), [(29.6e6, "few"), (28e6, "best")])
def test_fewer_changes_are_not_as_good_where_they_lose_of_the_goal(rate: float, winner: str) -> None:
    def entry_of(label: str, p95: float, rates: Sequence[float]) -> Candidate:
        return candidate(label, [{"client.p95_ms": p95, "recovery.bytes_s": each} for each in rates])

    # 60 windows show that those of the same settings differ by 2%
    slo = parse_slo({"objectives": ["client.p95_ms <= 85 ms"], "maximise": "recovery.bytes_s"})
    noise = [0.98, 1.02] * 30
    entries = [
        entry_of("best", 60.0, [30e6 * each for each in noise]),
        entry_of("few", 60.0, [rate * each for each in reversed(noise)]),
    ]
    now = entry_of("now", 98.0, [15e6 * each for each in noise])
    costs = {"best": ChangeCost(10, 4), "few": ChangeCost(1, 1)}
    assert choose(Judge(slo), now, entries, costs).winner.label == winner


def test_a_reason_tells_rates_in_the_unit_that_tables_tell_them_in() -> None:
    wishes = {"objectives": ["client.p95_ms <= 85 ms"], "maximise": "recovery.bytes_s"}
    gain = choose(Judge(parse_slo(wishes)), entry("now", 98, 15e6), [entry("other", 60, 29.62e6)])
    assert gain.reason.endswith("; recovery.bytes_s 29.6 MB/s against 15 MB/s")
    pairs = [[9e6, 2.2e7], [1.52e7, 1.52e7]]
    slo = parse_slo({"objectives": ["recovery.bytes_s >= 12 MB/s"]})
    shaky, steady = (candidate(name, [{"recovery.bytes_s": r} for r in pair]) for name, pair in zip("ab", pairs))
    now = candidate("now", [{"recovery.bytes_s": 2e6}] * 2)
    assert "recovery.bytes_s at worst 15.2 MB/s against 9 MB/s" in choose(Judge(slo), now, [shaky, steady]).reason


def test_a_worst_window_that_keeps_its_bounds_by_a_tenth_is_as_good_as_any() -> None:
    now = windows("now", 98, 99)
    costs = {"many": ChangeCost(10, 5), "few": ChangeCost(1, 1)}
    # the bound is at 80: the deviation inside of the windows leaves 11% of it, and none
    wild = choose(Judge(SLO), now, [windows("many", 60, 61, spread=1), windows("few", 62, 63, spread=8)], costs)
    assert wild.winner.label == "few"
    wilder = choose(Judge(SLO), now, [windows("many", 60, 61, spread=1), windows("few", 62, 63, spread=20)], costs)
    assert wilder.winner.label == "many"


def test_a_rate_far_above_its_floor_does_not_make_settings_the_steadier_ones() -> None:
    def entry_of(label: str, p95: float, rate: float) -> Candidate:
        return candidate(label, [{"client.p95_ms": p95, "recovery.bytes_s": rate, "client.p99_ms": 120.0}] * 2)

    now = windows("now", 98, 97)
    # by their means these are alike, as 2% more latency weighs little against ten times the rate
    choice = choose(Judge(SLO), now, [entry_of("quick", 60.0, 50e6), entry_of("excessive", 61.5, 200e6)])
    assert choice.winner.label == "quick"
    assert choice.better


def test_what_all_settings_share_in_a_round_is_no_noise() -> None:
    drifting = [windows("one", 50, 100), windows("other", 60, 120), windows("third", 55, 110)]
    least = WINDOW_NOISE * math.sqrt(NOISE_FREEDOM / (NOISE_FREEDOM + 2))
    assert window_noise(drifting)["client.p95_ms"] == pytest.approx(least)
    assert window_noise([windows("one", 50, 100), windows("other", 120, 60)])["client.p95_ms"] > 3 * WINDOW_NOISE
    assert window_noise([windows("one", 50), windows("other", 60)]) == {}
    assert window_noise([]) == {}


@given(st.lists(st.lists(st.floats(1, 1e3), min_size=3, max_size=3), min_size=2, max_size=4))
def test_whatever_was_measured_the_choice_is_among_it_and_never_worse_by_its_mean(table: list) -> None:
    now, *others = (windows(f"entry {number}", *row) for number, row in enumerate(table))
    choice = choose(Judge(SLO), now, others)
    assert choice.winner in (now, *others)
    if choice.better:
        assert Judge(SLO).rank(choice.winner.means) < Judge(SLO).rank(now.means)
