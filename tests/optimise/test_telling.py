from __future__ import annotations

import math
from typing import Optional

import numpy as np
import pytest
from skopt.space import Real
from small_problems import BOWL, played

from ceph_tuner.optimise import Constraint, Measured, MixedSpace, Options, SafeOptimiser


def far(one: dict, other: dict) -> float:
    return float(np.linalg.norm([one[name] - other[name] for name in one]))


@pytest.mark.parametrize("values", [{}, {"cost": 0.01, "heat": 0.5}], ids=["nothing seen", "some seen"])
def test_what_failed_is_avoided_whatever_it_promised(values: dict) -> None:
    search = BOWL.search()
    played(search, BOWL, 4)
    fault = {"a": 0.65, "b": 0.2}
    search.tell(fault, values, failed="an OSD went down")
    asked = played(search, BOWL, 6)
    assert len(asked) >= 4
    assert min(far(proposal.settings, fault) for proposal in asked) > 0.2
    assert search.best().settings != fault


def test_a_failure_beside_the_best_does_not_end_the_search() -> None:
    search = BOWL.search()
    played(search, BOWL, 5)
    (proposal,) = search.ask()
    search.tell(proposal.settings, {}, failed="the load did not come up")
    assert len(played(search, BOWL, 6)) == 6


def test_a_start_that_failed_is_asked_again() -> None:
    search = BOWL.search()
    search.ask()
    search.tell(BOWL.start, {}, failed="the load did not come up")
    assert [proposal.settings for proposal in search.ask()] == [BOWL.start]


@pytest.mark.parametrize("violation_budget", [None, 0])
def test_a_start_that_failed_leaves_a_verdict(violation_budget: Optional[int]) -> None:
    search = BOWL.search(options=Options(violation_budget=violation_budget))
    search.tell(BOWL.start, {}, failed="the load did not come up")
    assert search.verdict().go_on
    assert [proposal.settings for proposal in search.ask()] == [BOWL.start]


@pytest.mark.parametrize("nothing", [math.nan, math.inf, Measured(math.nan, 0.1)])
def test_what_is_no_number_was_not_seen(nothing: float) -> None:
    one, other = BOWL.search(), BOWL.search()
    for search, values in ((one, {"heat": nothing}), (other, {})):
        played(search, BOWL, 3)
        search.tell({"a": 0.35, "b": 0.5}, {"cost": 0.24, **values})
    assert one.ask() == other.ask()
    assert "heat" not in one.trials[-1].values


def test_a_start_of_which_a_metric_was_not_seen_is_asked_again() -> None:
    search = BOWL.search()
    search.tell(BOWL.start, {"cost": 0.3, "heat": math.nan})
    assert [proposal.settings for proposal in search.ask()] == [BOWL.start]


def test_trials_may_lack_metrics() -> None:
    search = BOWL.search()
    played(search, BOWL, 3)
    search.tell({"a": 0.4, "b": 0.5}, {"cost": 0.2})
    search.tell({"a": 0.4, "b": 0.45}, {"heat": 0.82})
    search.tell({"a": 0.4, "b": 0.4}, {})
    asked = played(search, BOWL, 4)
    assert len(asked) == 4
    assert all(BOWL.excess(proposal.settings) <= 0 for proposal in asked)


def test_an_unknown_metric_is_kept_and_changes_nothing() -> None:
    one, other = BOWL.search(), BOWL.search()
    for search, further in ((one, {"mood": 7.0}), (other, {})):
        for _ in range(3):
            (proposal,) = search.ask()
            search.tell(proposal.settings, {**BOWL.truth(proposal.settings), **further})
    assert one.ask() == other.ask()
    assert [trial.values["mood"].mean for trial in one.trials] == [7.0] * 3
    assert one.to_dict()["trials"][0]["values"]["mood"] == [7.0, None]
    assert set(one.best().expected) == {"cost", "heat"}


def test_repeats_make_surer() -> None:
    deviations = []
    for repeats in (1, 8):
        search = BOWL.search()
        random = np.random.default_rng(1)
        for a in (0.3, 0.35, 0.4, 0.45):
            for _ in range(repeats):
                cost, heat = BOWL.truth({"a": a, "b": 0.6}).values()
                noise = 0.05 * random.standard_normal(2)
                search.tell({"a": a, "b": 0.6}, {"cost": cost + noise[0], "heat": heat + noise[1]})
        deviations.append(search.best().deviation["heat"])
    assert deviations[1] < 0.6 * deviations[0]


def test_of_settings_measured_by_luck_and_often_the_often_measured_is_the_best() -> None:
    search = BOWL.search()
    for _ in range(6):
        search.tell({"a": 0.5, "b": 0.5}, {"cost": Measured(0.13, 0.02), "heat": Measured(1.0, 0.01)})
    search.tell(BOWL.start, {"cost": Measured(0.34, 0.02), "heat": Measured(0.75, 0.01)})
    # one short look, far better than its neighbour can be
    search.tell({"a": 0.48, "b": 0.5}, {"cost": Measured(0.02, 0.3), "heat": Measured(0.97, 0.2)})
    assert search.best().settings == {"a": 0.5, "b": 0.5}


def test_the_best_is_no_setting_that_violates() -> None:
    search = BOWL.search()
    played(search, BOWL, 6)
    search.tell({"a": 0.8, "b": 0.3}, {"cost": 0.0, "heat": 1.35})
    best = search.best()
    assert BOWL.excess(best.settings) <= 0
    assert best.feasible > 0.9


def test_nothing_told_has_no_best() -> None:
    with pytest.raises(ValueError, match="seen"):
        BOWL.search().best()


def test_what_an_earlier_search_saw_teaches_and_does_not_count() -> None:
    search = BOWL.search(options=Options(trials=4))
    grid = [{"a": a, "b": b} for a in (0.2, 0.4, 0.6) for b in (0.2, 0.5, 0.8)]
    for settings in grid:
        search.tell(settings, BOWL.truth(settings), old=True)
    asked = played(search, BOWL, 3)
    assert search.verdict().state != "budget"
    assert min(BOWL.truth(proposal.settings)["cost"] for proposal in asked) < 0.05


def test_metrics_that_vary_by_factors_are_told_and_given_in_their_own_unit() -> None:
    from skopt.space import Real

    space = MixedSpace([Real(0.0, 1.0, name="a")])
    options = Options(log_metrics=frozenset({"latency", "cost"}))
    search = SafeOptimiser(space, "cost", [Constraint("latency", "<=", 100.0)], {"a": 0.1}, options=options)
    for a in (0.1, 0.2, 0.3, 0.4):
        search.tell({"a": a}, {"latency": Measured(10 ** (1 + a), 0.1), "cost": 10 ** (-a)})
    best = search.best()
    assert best.settings == {"a": 0.4}
    assert best.expected["latency"] == pytest.approx(10**1.4, rel=0.05)
    assert best.expected["cost"] == pytest.approx(10**-0.4, rel=0.05)
    # what is not positive has no logarithm: it counts as not seen
    search.tell({"a": 0.5}, {"latency": 0.0, "cost": 10**-0.5})
    assert search.ask()


def test_what_is_in_use_gives_way_to_what_is_surely_better_whatever_the_level_of_both() -> None:
    line = MixedSpace([Real(0.0, 1.0, name="a")])
    search = SafeOptimiser(line, "cost", [Constraint("heat", "<=", 0.62)], {"a": 0.5}, seed=1)
    random = np.random.default_rng(1)
    for a in (0.5, 0.6, 0.0, 0.1, 0.9, 1.0, 0.2, 0.8):
        cost = -0.4 * a + 0.1 * random.standard_normal()
        search.tell({"a": a}, {"cost": Measured(cost, 0.1), "heat": Measured(a, 0.001)}, old=a not in (0.5, 0.6))
    best = search.best()
    assert best.settings == {"a": 0.6}
    # neither is known as well as by how much they differ
    start = search.explain().convergence()[0]
    assert 0.5 * (start.high - start.low) > 0.05
