"""Of variants of what was found, simplest first, the first one that is thought as good."""

from __future__ import annotations

from typing import Dict

import pytest
from skopt.space import Real
from small_problems import SmallProblem, played

from ceph_tuner.optimise import Constraint, MixedSpace, Options, Settings

pytestmark = pytest.mark.slow


def _with_one_that_does_nothing(settings: Settings) -> Dict[str, float]:
    return {"cost": (settings["a"] - 0.8) ** 2, "heat": 1.5 * settings["a"]}


IDLE = SmallProblem(
    MixedSpace([Real(0.0, 1.0, name="a"), Real(0.0, 1.0, name="idle")]),
    (Constraint("heat", "<=", 1.1),),
    {"a": 0.3, "idle": 0.5},
    _with_one_that_does_nothing,
    noise=0.005,
)


def test_what_does_nothing_is_left_as_it_was_and_what_matters_is_not() -> None:
    search = IDLE.search(1)
    played(search, IDLE, 14)
    best = search.best().settings
    start, without_idle = IDLE.start, {"a": best["a"], "idle": IDLE.start["idle"]}
    # a bowl's floor is flat: half of the way costs a quarter of the gain, which is more than what counts as alike
    halfway = {"a": (start["a"] + best["a"]) / 2, "idle": start["idle"]}
    proposal = search.first_as_good(best, [start, halfway, without_idle, best], 0.02)
    assert proposal is not None
    assert proposal.settings == without_idle
    assert 0.95 <= proposal.safe <= 1.0
    low, high = proposal.expected["cost"][1:]
    assert low <= IDLE.truth(without_idle)["cost"] <= high


def test_where_all_matters_nothing_is_as_good() -> None:
    search = IDLE.search(1)
    played(search, IDLE, 14)
    assert search.first_as_good(search.best().settings, [IDLE.start], 0.02) is None
    assert search.first_as_good(search.best().settings, [], 0.02) is None


def test_fewer_changes_are_no_further_away_than_a_trial_may_be() -> None:
    search = IDLE.search(1, options=Options(step_limit=0.2))
    for a, idle in [(0.3, 0.5), (0.3, 0.6), (0.4, 0.7), (0.5, 0.8), (0.6, 0.9), (0.7, 0.9), (0.7, 0.5), (0.7, 0.7)]:
        settings = {"a": a, "idle": idle}
        search.tell(settings, IDLE.truth(settings))
    best = {"a": 0.7, "idle": 0.9}
    assert search.first_as_good(best, [{"a": 0.7, "idle": 0.5}], 0.02) is None
    assert search.first_as_good(best, [{"a": 0.7, "idle": 0.75}], 0.02) is not None


def test_what_is_not_safe_is_not_as_good_and_a_frozen_search_tries_nothing_more() -> None:
    search = IDLE.search(1)
    played(search, IDLE, 14)
    # lower cost, and too hot
    assert search.first_as_good(search.best().settings, [{"a": 0.8, "idle": 0.5}], 0.02) is None
    frozen = IDLE.search(1, options=Options(violation_budget=0))
    for settings in (IDLE.start, {"a": 0.9, "idle": 0.2}):
        frozen.tell(settings, IDLE.truth(settings))
    assert frozen.verdict().state == "frozen"
    assert frozen.first_as_good(IDLE.start, [IDLE.start], 0.02) is None
