from __future__ import annotations

import math

import numpy as np
import pytest
from known_functions import Functions, learnt
from skopt.space import Real

from ceph_tuner.optimise import Constraint, Measured, MixedSpace, Options, SafeOptimiser
from ceph_tuner.optimise.feasibility import limiting, nearest_feasible, reach

pytestmark = pytest.mark.slow

CUBE = MixedSpace([Real(0.0, 1.0, name=name) for name in "abcd"])

# latency falls with a and cost rises with it; rate rises with b
OPPOSED: Functions = {
    "latency": lambda u: 10 - 8 * u[:, 0],
    "cost": lambda u: 2 + 8 * u[:, 0],
    "rate": lambda u: 1 + 5 * u[:, 1],
}
FAST, CHEAP, BUSY = Constraint("latency", "<=", 5.0), Constraint("cost", "<=", 4.0), Constraint("rate", ">=", 4.0)
AFFORDABLE = Constraint("cost", "<=", 8.0)


def generator() -> np.random.Generator:
    return np.random.default_rng(5)


def truth(settings: dict[str, float]) -> dict[str, float]:
    point = np.array([CUBE.encode(settings)])
    return {name: float(function(point)[0]) for name, function in OPPOSED.items()}


def test_the_most_likely_settings_meet_what_can_be_met() -> None:
    constraints = [FAST, AFFORDABLE, BUSY]
    found = reach(learnt(CUBE, OPPOSED, constraints), CUBE, generator())
    assert found.probability == pytest.approx(1.0, abs=0.05)
    values = truth(found.settings)
    assert all(constraint.excess(values[constraint.name]) <= 0 for constraint in constraints)


def test_a_small_feasible_region_is_found_where_random_points_miss_it() -> None:
    # a ball that has a 10 000th of the cube
    ball = {"far": lambda u: np.sqrt(np.sum((u - np.array([0.7, 0.2, 0.6, 0.8])) ** 2, axis=1))}
    bowl = {"far": lambda u: ball["far"](u) ** 2}
    constraint = Constraint("far", "<=", 0.066**2)
    model = learnt(CUBE, bowl, [constraint], count=64, error=1e-4)
    anywhere = model.at(generator().random((2000, 4)))
    found = reach(model, CUBE, generator())
    assert float(ball["far"](np.array([CUBE.encode(found.settings)]))[0]) < 0.066
    assert found.probability > 0.7 > math.exp(float(np.max(anywhere.log_feasible())))


def test_what_nobody_can_meet_is_out_of_reach() -> None:
    found = reach(learnt(CUBE, OPPOSED, [FAST, CHEAP, BUSY]), CUBE, generator())
    assert found.probability <= found.exists < 0.01


def test_what_hardly_anything_is_known_of_may_be_met_somewhere() -> None:
    # no point is likely to be as fast, but as yet some may
    constraint = Constraint("latency", "<=", 5.5)
    known = {"latency": lambda u: 10 - np.sin(6 * u[:, 0]) - np.sin(5 * u[:, 1]) * u[:, 2]}
    model = learnt(CUBE, known, [constraint], count=8)
    found = reach(model, CUBE, generator())
    assert found.probability < found.exists
    sure = reach(learnt(CUBE, known, [constraint], count=64), CUBE, generator())
    assert sure.exists < found.exists


def test_what_is_feasible_exists_with_certainty() -> None:
    found = reach(learnt(CUBE, OPPOSED, [FAST, AFFORDABLE, BUSY]), CUBE, generator())
    assert found.probability == pytest.approx(1.0, abs=0.01)
    assert found.exists == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("logs", [frozenset(), frozenset(OPPOSED)])
def test_the_constraints_in_each_others_way_are_named(logs: frozenset[str]) -> None:
    constraints = [FAST, CHEAP, BUSY]
    model = learnt(CUBE, OPPOSED, constraints, Options(log_metrics=logs))
    found = limiting(model, CUBE, constraints, generator())
    assert found.together < 0.01
    assert found.conflicts == (frozenset({FAST, CHEAP}),)
    assert all(probability > 0.95 for probability in found.alone.values())
    assert found.without[FAST] > 0.95
    assert found.without[CHEAP] > 0.95
    assert found.without[BUSY] < 0.01


def test_a_constraint_that_cannot_be_met_at_all_is_the_only_conflict() -> None:
    constraints = [Constraint("latency", "<=", 1.0), AFFORDABLE, BUSY]
    found = limiting(learnt(CUBE, OPPOSED, constraints), CUBE, constraints, generator())
    assert found.conflicts == (frozenset({constraints[0]}),)
    assert found.alone[constraints[0]] < 0.01
    assert found.without[constraints[0]] > 0.95
    assert found.without[AFFORDABLE] < 0.01


def test_three_constraints_can_be_in_conflict_though_any_two_are_not() -> None:
    # shares of one whole: any two of a half, but not three
    shares: Functions = {
        "one": lambda u: u[:, 0],
        "two": lambda u: u[:, 1],
        "rest": lambda u: 1 - u[:, 0] - u[:, 1],
    }
    constraints = [Constraint(name, ">=", 0.45) for name in shares]
    found = limiting(learnt(CUBE, shares, constraints), CUBE, constraints, generator())
    assert found.conflicts == (frozenset(constraints),)
    assert all(probability > 0.95 for probability in found.without.values())


def test_nothing_is_in_the_way_of_what_can_be_met() -> None:
    constraints = [FAST, AFFORDABLE, BUSY]
    model = learnt(CUBE, OPPOSED, constraints)
    found = limiting(model, CUBE, constraints, generator())
    assert found.conflicts == ()
    assert found.together > 0.95
    nearest = nearest_feasible(model, CUBE, constraints, generator())
    assert nearest.total == 0
    assert [entry.bound for entry in nearest.relaxed] == [5.0, 8.0, 4.0]
    assert nearest.probability > 0.95


@pytest.mark.parametrize("logs", [frozenset(), frozenset(OPPOSED)])
def test_the_nearest_bounds_give_way_where_a_share_buys_most(logs: frozenset[str]) -> None:
    constraints = [FAST, CHEAP, BUSY]
    model = learnt(CUBE, OPPOSED, constraints, Options(log_metrics=logs))
    found = nearest_feasible(model, CUBE, constraints, generator())
    # both change alike with a; a unit of 5 costs less than one of 4, so latency gives way, to 8 at a = 1/4
    fast, cheap, busy = found.relaxed
    assert fast.bound == pytest.approx(8.0, rel=0.03)
    assert (cheap.bound, busy.bound) == (pytest.approx(4.0, rel=0.01), 4.0)
    assert fast.share == pytest.approx(math.log(8 / 5) if logs else 3 / 5, rel=0.05)
    assert found.total == pytest.approx(fast.share + cheap.share)
    assert found.probability >= 0.9 - 1e-6
    values = truth(found.settings)
    assert all(Constraint(e.constraint.name, e.constraint.comparison, e.bound).excess(values[e.constraint.name]) < 0.05
               for e in found.relaxed)  # fmt: skip


def test_more_certainty_costs_more() -> None:
    constraints = [FAST, CHEAP, BUSY]
    model = learnt(CUBE, OPPOSED, constraints, error=0.2, count=16)
    totals = [nearest_feasible(model, CUBE, constraints, generator(), share).total for share in (0.5, 0.9, 0.99)]
    assert totals == sorted(totals)
    assert totals[0] < totals[2]


def test_a_bound_of_nothing_gives_way_in_the_metrics_own_scale() -> None:
    constraints = [Constraint("latency", "<=", 0.0)]
    found = nearest_feasible(learnt(CUBE, OPPOSED, constraints), CUBE, constraints, generator())
    assert found.relaxed[0].bound == pytest.approx(2.0, abs=0.1)
    assert 0 < found.total < 10


def test_constraints_that_are_not_the_models_are_refused() -> None:
    model = learnt(CUBE, OPPOSED, [FAST, CHEAP])
    with pytest.raises(ValueError, match="must be the model's 2"):
        limiting(model, CUBE, [FAST], generator())
    with pytest.raises(ValueError, match=r"probability \(=1\) must be"):
        nearest_feasible(model, CUBE, [FAST, CHEAP], generator(), 1)


def test_a_search_does_not_call_infeasible_what_random_points_miss() -> None:
    search = SafeOptimiser(CUBE, "cost", [Constraint("far", "<=", 0.028**2)], dict.fromkeys("abcd", 0.1))
    centre = np.array([0.7, 0.2, 0.6, 0.8])
    for point in generator().random((60, 4)):
        far = float(np.sum((point - centre) ** 2))
        assert far > 0.028**2
        search.tell(CUBE.decode(list(point)), {"cost": float(point[0]), "far": Measured(far, 1e-4)})
    told = search.explain()
    anywhere = told.model.at(generator().random((2000, 4)))
    assert float(np.max(anywhere.log_feasible())) < math.log(0.1) < math.log(told.reach().probability)
    assert search.verdict().state != "infeasible"
