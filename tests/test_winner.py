from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.slo import evaluate, parse_slo
from ceph_tuner.winner import LOSS_CEILING, Candidate, candidate, choose, finalists, loss, rank

SLO = parse_slo(
    {
        "objectives": [
            "client.p95_ms <= 80 ms",
            "recovery.bytes_s >= 8 MB/s",
            {"objective": "client.p99_ms <= 150 ms", "hard": False, "priority": 3},
        ]
    }
)
latencies = st.floats(0, 1e6)
rates = st.floats(0, 1e12)


def loss_of(p95: float, rate: float, p99: float) -> float:
    return loss(evaluate(SLO, {"client.p95_ms": p95, "recovery.bytes_s": rate, "client.p99_ms": p99}))


@given(latencies, latencies, rates, latencies)
def test_a_better_latency_never_has_a_larger_loss(one: float, other: float, rate: float, p99: float) -> None:
    assert loss_of(min(one, other), rate, p99) <= loss_of(max(one, other), rate, p99) + 1e-9


@given(rates, rates, latencies, latencies)
def test_a_better_rate_never_has_a_larger_loss(one: float, other: float, p95: float, p99: float) -> None:
    assert loss_of(p95, max(one, other), p99) <= loss_of(p95, min(one, other), p99) + 1e-9


@given(latencies, rates, latencies)
def test_the_loss_is_a_finite_number(p95: float, rate: float, p99: float) -> None:
    assert math.isfinite(loss_of(p95, rate, p99))
    assert loss_of(p95, rate, p99) <= LOSS_CEILING


def test_a_hard_violation_weighs_more_than_a_soft_one_of_the_same_size() -> None:
    assert loss_of(88, 9e6, 150) > loss_of(80, 9e6, 165)


def test_what_was_not_seen_counts_as_missed() -> None:
    seen = {"client.p95_ms": 70.0, "recovery.bytes_s": 9e6, "client.p99_ms": 100.0}
    without = {name: value for name, value in seen.items() if name != "recovery.bytes_s"}
    assert loss(evaluate(SLO, without)) > loss(evaluate(SLO, seen)) + 5
    assert rank(evaluate(SLO, without))[0] is True


def entry(label: str, p95: float, rate: float = 9e6, repeats: int = 1) -> Candidate:
    return Candidate(label, {"client.p95_ms": p95, "recovery.bytes_s": rate, "client.p99_ms": 120.0}, repeats)


def test_the_candidate_that_was_measured_again_beats_the_luckier_single_window() -> None:
    choice = choose(SLO, {}, entry("now", 98), [entry("lucky", 40), entry("steady", 75, repeats=2)])
    assert choice.winner.label == "steady"
    assert choice.better
    assert "client.p95_ms" in choice.reason


def test_a_difference_within_the_noise_changes_nothing() -> None:
    assert not choose(SLO, {}, entry("now", 98), [entry("other", 95)]).better
    assert choose(SLO, {}, entry("now", 98), [entry("other", 75)]).better
    assert not choose(SLO, {}, entry("now", 60), [entry("other", 59)]).better


def test_where_nothing_is_better_what_is_in_force_wins() -> None:
    choice = choose(SLO, {}, entry("now", 60), [entry("other", 90)])
    assert (choice.winner.label, choice.better) == ("now", False)
    assert not choose(SLO, {}, entry("now", 60), []).better


def test_a_winner_that_still_misses_an_objective_says_so() -> None:
    choice = choose(SLO, {}, entry("now", 98, 5e6), [entry("other", 70, 6e6)])
    assert choice.better
    assert "still misses recovery.bytes_s" in choice.reason


def test_keeping_all_hard_objectives_comes_before_everything_else() -> None:
    order = finalists(SLO, {}, [entry("fast", 10, 7.9e6), entry("kept", 79, 8.1e6)], 2)
    assert [found.label for found in order] == ["kept", "fast"]


def test_repeats_are_averaged_over_what_all_of_them_saw() -> None:
    found = candidate("x", [{"client.p95_ms": 70.0, "client.iops": 3.0}, {"client.p95_ms": 90.0}])
    assert (found.label, found.means, found.repeats) == ("x", {"client.p95_ms": 80.0}, 2)
    with pytest.raises(ValueError, match="not measured"):
        candidate("x", [])
