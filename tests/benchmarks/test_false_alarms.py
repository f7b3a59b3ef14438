from __future__ import annotations

from unittest import mock

import pytest
from false_alarms import NOISES, OSCILLATING, POLICY, TOLD, Case, alarm, share, student_radius, windows_until
from scipy.stats import binom

pytestmark = pytest.mark.slow

RUNS = 200


def allowed(runs: int = RUNS) -> float:
    """What a rate of exactly 5% stays below in 99 of 100 simulations of so many runs."""
    return float(binom.ppf(0.99, runs, 1.0 - POLICY.confidence)) / runs


ALLOWED = allowed()

PATIENT = Case("normal, neighbours correlated by 0.3", before=60, during=100)
"""Many looks: what peeking does to an ordinary interval shows best."""


@pytest.mark.parametrize("turns", [False, True], ids=["before", "in turns"])
@pytest.mark.parametrize("noise", NOISES)
def test_equal_settings_are_rarely_called_better_or_worse_at_any_look(noise: str, turns: bool) -> None:
    assert share(Case(noise, turns=turns), RUNS, alarm) <= ALLOWED


@pytest.mark.parametrize("before", [3, 20])
def test_work_that_goes_up_and_down_by_turns_is_rarely_taken_for_an_effect(before: int) -> None:
    assert share(Case(OSCILLATING, before=before, turns=True), RUNS, alarm) <= ALLOWED


def test_it_is_the_correction_for_looking_that_keeps_the_promise() -> None:
    assert share(PATIENT, RUNS, alarm) <= ALLOWED
    with mock.patch("ceph_tuner.core.autopilot.sequential.radius", student_radius):
        # one in six is wrong: fewer show that
        few = RUNS // 4
        assert share(PATIENT, few, alarm) > allowed(few)


def test_new_settings_that_change_the_noise_are_not_taken_for_better_or_worse() -> None:
    for louder in (0.4, 2.5):
        assert share(Case(before=60, louder=louder), RUNS, alarm) <= ALLOWED
        assert share(Case(turns=True, louder=louder), RUNS, alarm) <= ALLOWED


def test_harm_is_not_called_where_it_is_just_at_the_tolerance() -> None:
    assert share(Case(change=POLICY.tolerance, before=20), RUNS, TOLD["worse"]) <= ALLOWED / 2


@pytest.mark.parametrize(("change", "verdict"), [(-0.2, "better"), (0.3, "worse")])
def test_a_large_effect_is_told_within_a_dozen_windows_mostly(change: float, verdict: str) -> None:
    took = windows_until(Case(change=change, before=20), RUNS // 4, TOLD[verdict])
    assert sum(windows is not None and windows <= 12 for windows in took) > 0.8 * len(took)


def test_turns_tell_a_large_effect_within_four_pairs_mostly() -> None:
    took = windows_until(Case(change=-0.2, turns=True), RUNS // 4, TOLD["better"])
    assert sum(windows is not None and windows <= 4 for windows in took) > 0.6 * len(took)
