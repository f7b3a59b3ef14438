from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import scenario_drawing
import scenario_problem
import scenarios
from scenario_clusters import drawn_cluster, mistaken
from scenario_problem import Scenario

# what is drawn for one of them serves the others
pytestmark = [pytest.mark.long, pytest.mark.xdist_group("scenarios")]

SEED = 3
"""Whose runs are short."""


@pytest.fixture(scope="module", autouse=True)
def nothing_kept(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def feasible(nothing_kept: None) -> Scenario:
    return scenarios.scenario(SEED)


@pytest.fixture(scope="module")
def infeasible(nothing_kept: None) -> Scenario:
    return scenarios.scenario(SEED, infeasible=True)


def random_settings(found: Scenario, count: int) -> list[Any]:
    return [found.space.decode(point) for point in np.random.default_rng(77).random((count, found.space.size))]


def test_a_scenario_is_the_same_again_drawn_or_kept(
    feasible: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = scenarios.scenario(SEED)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    drawn = scenarios.scenario(SEED)
    for again in (kept, drawn):
        assert (again.slo, again.start) == (feasible.slo, feasible.start)
        assert (again.share, again.reached) == (feasible.share, feasible.reached)
        assert again.cluster.model == feasible.cluster.model
        assert again.truth(again.start) == feasible.truth(feasible.start)


def test_what_is_in_force_misses_an_objective_and_the_hidden_settings_meet_all(feasible: Scenario) -> None:
    problem = feasible.problem()
    assert problem.feasible
    assert feasible.hidden is not None
    assert not problem.violated(feasible.hidden)
    assert problem.violated(problem.start)
    assert not feasible.meets(feasible.start)
    assert 0 < feasible.share <= scenario_drawing.MOST_RANDOM
    assert feasible.reached < 1


def test_no_settings_come_near_the_bounds_of_an_infeasible_scenario(infeasible: Scenario) -> None:
    problem = infeasible.problem()
    assert problem.feasible is False
    assert infeasible.reached >= scenario_drawing.BEYOND
    candidates = [problem.start, *problem.designs.values(), *random_settings(infeasible, 40)]
    assert all(problem.violated(settings) for settings in candidates)


def test_a_measurement_is_noisy_repeats_with_its_generator_and_says_its_error(feasible: Scenario) -> None:
    true = feasible.truth(feasible.start)
    one, same, other = (feasible.measure(feasible.start, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert one == same
    assert one != other
    for name in feasible.cluster.metrics:
        assert one[name].mean == pytest.approx(true[name], rel=0.6)
        assert 0.02 * one[name].mean < one[name].error < 0.11 * one[name].mean
    assert scenario_problem.LOSS in one


def test_settings_in_force_are_never_unsafe_and_worse_ones_are(feasible: Scenario) -> None:
    problem = feasible.problem()
    assert not problem.unsafe(problem.start)
    now = problem.truth(problem.start)
    for settings in random_settings(feasible, 12):
        then = problem.truth(settings)
        worse = [
            c.excess(then[c.name]) > 0
            and (c.excess(now[c.name]) <= 0 or c.excess(then[c.name]) - c.excess(now[c.name]) > 0.05 * now[c.name])
            for c in problem.constraints
        ]
        assert problem.unsafe(settings) == any(worse)


def test_a_trial_is_beyond_by_what_it_does_and_not_by_what_is_missed_in_force_already(infeasible: Scenario) -> None:
    problem = infeasible.problem()
    now = problem.truth(problem.start)
    assert max(c.excess(now[c.name]) / problem.scale[c.name] for c in problem.constraints) > 0
    assert problem.beyond(problem.start) < 0
    for settings in random_settings(infeasible, 12):
        then = problem.truth(settings)
        done = []
        for c in problem.constraints:
            missed = max(0.0, c.excess(now[c.name]))
            allowed = 0.05 * now[c.name] if missed else 0.0
            done.append((c.excess(then[c.name]) - missed - allowed) / problem.scale[c.name])
        assert problem.beyond(settings) == pytest.approx(max(done))


def test_the_start_and_the_profiles_are_settings_of_the_space(feasible: Scenario) -> None:
    assert feasible.space.nearest(feasible.start) == feasible.start
    assert all(set(settings) == set(feasible.start) for settings in feasible.profiles.values())


@pytest.mark.parametrize("seed", range(6))
def test_clusters_are_of_all_kinds_and_a_mistaken_twin_keeps_their_work(seed: int) -> None:
    kind, model = drawn_cluster(np.random.default_rng([seed, 0]))
    assert drawn_cluster(np.random.default_rng([seed, 0])) == (kind, model)
    assert 4 <= model.osds <= 40
    assert 300 <= model.osd.device.iops <= 100_000
    seen = mistaken(model, np.random.default_rng(1), 2.0)
    assert 1.4 < seen.osd.device.iops / model.osd.device.iops < 2.8
    assert 0.7 < seen.osd.write_cpu_s / model.osd.write_cpu_s < 1.4
    assert (seen.clients[0].rate, seen.recovery, seen.scrub) == (model.clients[0].rate, model.recovery, model.scrub)


def test_a_prior_is_wrong_in_the_way_that_is_named(feasible: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenario_problem, "DESIGNS", 12)
    random, space = np.random.default_rng(5), feasible.space
    points = np.vstack([space.encode(feasible.start), *(random.random((5, space.size)))])
    found = {name: feasible.problem(name).priors[0].predict(points) for name in ("", *scenario_problem.MISTAKES)}
    right, turned, without = found[""], found[scenario_problem.DIRECTION], found[scenario_problem.MECHANISM]
    latency = next(name for name in right if name.endswith("_ms"))
    # what makes it shorter is said to make it longer, by as much, and it begins at the same
    for ours, theirs in zip(right[latency][1:], turned[latency][1:]):
        assert theirs / right[latency][0] == pytest.approx(right[latency][0] / ours)
    assert turned[latency][0] == pytest.approx(right[latency][0])
    rates = [name for name in right if name != scenario_problem.LOSS and name != latency]
    assert all(np.allclose(turned[name], right[name]) for name in rates)
    # work that costs nothing has its own rate, and clients wait less
    own = scenario_problem.RATES[scenario_problem.works_of(feasible.cluster.model)[-1]]
    assert np.allclose(without[own], right[own])
    assert np.median(without[latency] / right[latency]) < 1


def test_the_prior_knows_every_metric_and_the_loss(feasible: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenario_problem, "DESIGNS", 12)
    (prior,) = feasible.problem().priors
    points = np.asarray([feasible.space.encode(feasible.start)])
    found = prior.predict(points)
    assert set(found) == {*feasible.cluster.metrics, scenario_problem.LOSS}
    true = feasible.truth(feasible.start)
    for name in feasible.cluster.metrics:
        assert found[name][0] == pytest.approx(true[name], rel=0.6)


def test_many_losses_at_once_are_those_of_each(feasible: Scenario) -> None:
    true = [feasible.truth(settings) for settings in random_settings(feasible, 8)]
    columns = {name: np.array([values[name] for values in true]) for name in feasible.cluster.metrics}
    found = scenario_problem.losses(feasible.slo, columns)
    assert found == pytest.approx([values[scenario_problem.LOSS] for values in true])
