from __future__ import annotations

import re
from typing import Dict, List, Optional, Tuple

import numpy as np
import pytest
from skopt.space import Real
from small_problems import BOWL, HOT, SmallProblem, played

from ceph_tuner.optimise import Constraint, Measured, MixedSpace, Options, SafeOptimiser, SearchVerdict, Settings
from ceph_tuner.optimise.contract import Array, Prior
from ceph_tuner.optimise.explanation import Explanation
from ceph_tuner.optimise.feasibility import Reach

LINE = MixedSpace([Real(0.0, 1.0, name="a")])
WARM = SmallProblem(
    LINE,
    (Constraint("heat", "<=", 9.5),),
    {"a": 0.6},
    lambda settings: {"cost": -settings["a"], "heat": 10 + settings["a"]},
    noise=0.005,
)
"""No settings are cool enough."""

EDGE = SmallProblem(
    LINE,
    (Constraint("heat", "<=", 1.0),),
    {"a": 0.0},
    lambda settings: {"cost": -settings["a"], "heat": 0.999 + 20 * settings["a"]},
)
"""The start holds its constraint by a hair; every other setting breaks it."""

FAR = SmallProblem(LINE, (Constraint("heat", "<=", -3.0),), {"a": 0.0}, WARM.truth, noise=2.0)
"""Too hot by more than can be made good, and a measurement says next to nothing."""

SETTLED = SmallProblem(
    LINE,
    (Constraint("heat", "<=", 1.0),),
    {"a": 0.5},
    lambda settings: {"cost": (settings["a"] - 0.5) ** 2, "heat": 0.5 * settings["a"]},
)
"""The start is the best."""


class Hot:
    """A prior that is right about WARM."""

    def predict(self, points: Array) -> Dict[str, Array]:
        return {"cost": -points[:, 0], "heat": 10 + points[:, 0]}


def verdicts(problem: SmallProblem, trials: int, **further: object) -> List[SearchVerdict]:
    search, found = problem.search(**further), []
    for _ in range(trials):
        played(search, problem, 1, len(found))
        found.append(search.verdict())
    return found


def test_before_anything_is_told_it_searches() -> None:
    assert BOWL.search().verdict().state == "searching"


def test_while_there_is_something_to_gain_it_searches() -> None:
    found = verdicts(BOWL, 4)
    assert {verdict.state for verdict in found} == {"searching"}
    assert all(verdict.go_on and verdict.reason for verdict in found)


def test_at_the_best_it_is_satisfied() -> None:
    found = verdicts(SETTLED, 10)
    assert found[-1].state == "satisfied"
    assert not found[-1].go_on
    assert "holds" in found[-1].reason


def test_after_its_trials_the_budget_is_spent() -> None:
    search = BOWL.search(options=Options(trials=3, least_gain=0.0))
    asked = played(search, BOWL, 4)
    assert len(asked) == 4
    assert search.verdict() == SearchVerdict("budget", "all 3 trials are made")


def test_the_last_trials_of_a_budget_measure_the_best_again() -> None:
    search = BOWL.search(options=Options(trials=8, confirm=2, least_gain=0.0))
    asked = [proposal.settings for proposal in played(search, BOWL, 9)]
    assert all(settings in asked[:7] for settings in asked[7:])
    assert all(BOWL.excess(settings) <= 0 for settings in asked[7:])


def test_more_violations_than_allowed_freeze_it() -> None:
    hot = {"a": 0.9, "b": 0.9}
    search = BOWL.search(options=Options(violation_budget=1))
    played(search, BOWL, 3)
    search.tell(hot, BOWL.truth(hot))
    assert search.verdict().state == "searching"
    search.tell({**hot, "a": 0.95}, BOWL.truth({**hot, "a": 0.95}))
    assert search.verdict().state == "frozen"
    assert "2 trials" in search.verdict().reason
    assert search.ask() == []
    assert BOWL.excess(search.best().settings) <= 0


def test_failed_trials_are_violations() -> None:
    search = BOWL.search(options=Options(violation_budget=0))
    played(search, BOWL, 3)
    search.tell({"a": 0.9, "b": 0.9}, {}, failed="an OSD went down")
    assert search.verdict().state == "frozen"


def test_what_an_earlier_search_violated_freezes_nothing() -> None:
    search = BOWL.search(options=Options(violation_budget=0))
    played(search, BOWL, 1)
    search.tell({"a": 0.9, "b": 0.9}, BOWL.truth({"a": 0.9, "b": 0.9}), old=True)
    played(search, BOWL, 1)
    assert search.verdict().state != "frozen"


def test_a_violating_start_alone_freezes_nothing() -> None:
    search = HOT.search(options=Options(violation_budget=0))
    played(search, HOT, 2)
    assert search.verdict().state == "searching"


def test_what_cannot_be_met_is_infeasible_in_the_end() -> None:
    found = verdicts(WARM, 14)
    assert found[-1].state == "infeasible"
    assert "probability" in found[-1].reason
    assert found[0].state == "searching"


def test_where_nothing_but_the_start_is_safe_it_says_so() -> None:
    search = EDGE.search()
    search.tell(EDGE.start, EDGE.truth(EDGE.start))
    for a in (0.05, 0.2, 0.4):
        search.tell({"a": a}, EDGE.truth({"a": a}), old=True)
    asked = played(search, EDGE, 6)
    assert {proposal.settings["a"] for proposal in asked} <= {0.0}
    assert search.ask() == []
    verdict = search.verdict()
    assert verdict.state == "nothing safe"
    # the way to what is nearest, and how safe that is
    told = re.fullmatch(r"no untried .* 95%; the nearest are with (\d+)%: a 0 to (0\.\d+)", verdict.reason)
    assert told, verdict.reason
    assert int(told[1]) < 95
    assert 0 < float(told[2]) < 0.2


def test_what_is_met_where_nothing_more_is_safe_is_not_called_satisfied() -> None:
    search = EDGE.search()
    sure = {"cost": Measured(0.0, 1e-4), "heat": Measured(0.999, 1e-4)}
    for _ in range(10):
        search.tell(EDGE.start, sure)
    for a in (0.05, 0.2, 0.4):
        search.tell({"a": a}, EDGE.truth({"a": a}), old=True)
    assert search.ask() == []
    assert search.verdict().state == "nothing safe"


def close(noise: float, slope: float = 1.0) -> SmallProblem:
    """The start keeps its bound by a bit more than half an error of measurement."""
    return SmallProblem(
        LINE,
        (Constraint("heat", "<=", 0.06),),
        {"a": 0.3},
        lambda settings: {"cost": -settings["a"], "heat": slope * (settings["a"] - 0.3)},
        noise,
    )


@pytest.mark.parametrize("seed", [2, 3])
def test_while_more_repeats_can_show_that_something_is_safe_it_does_not_give_up(seed: int) -> None:
    problem = close(0.1, slope=0.3)
    search, random = problem.search(seed), np.random.default_rng(seed)
    tried = []
    for _ in range(30):
        for proposal in search.ask():
            tried.append(proposal.settings["a"])
            values = problem.measure(proposal.settings, random)
            search.tell(proposal.settings, {name: Measured(value, 0.1) for name, value in values.items()})
    assert len(tried) > 12
    assert any(a != 0.3 for a in tried)


def test_where_nothing_is_safe_what_is_known_to_be_hopeless_is_called_so() -> None:
    bounds = (*EDGE.constraints, Constraint("wait", "<=", -3.0))

    def truth(settings: Settings) -> Dict[str, float]:
        return {**EDGE.truth(settings), "wait": 10.0 - settings["a"]}

    problem = SmallProblem(LINE, bounds, EDGE.start, truth)
    search = problem.search()
    search.tell(problem.start, problem.truth(problem.start))
    for a in np.linspace(0.05, 1.0, 12):
        search.tell({"a": float(a)}, problem.truth({"a": float(a)}), old=True)
    asked = played(search, problem, 6)
    assert {proposal.settings["a"] for proposal in asked} <= {0.0}
    assert len(asked) < 4
    assert search.verdict().state == "infeasible"


@pytest.mark.parametrize(("exists", "state"), [(0.03, "infeasible"), (0.07, "budget")])
def test_after_the_last_trial_what_is_hardly_possible_is_called_infeasible(
    monkeypatch: pytest.MonkeyPatch, exists: float, state: str
) -> None:
    monkeypatch.setattr(Explanation, "reach", lambda self: Reach(dict(WARM.start), 0.0, exists))
    found = verdicts(WARM, 9, options=Options(trials=8))
    # there is a word for it once nothing is left to be found out
    assert [verdict.state for verdict in found] == ["searching"] * 8 + [state]


class Nowhere:
    """A prior that says of every way that it leads into more heat."""

    def predict(self, points: Array) -> Dict[str, Array]:
        away = np.abs(points - 0.6).sum(axis=1)
        return {"cost": -points[:, 0], "heat": 10 + 5 * away}


COOLER = SmallProblem(
    WARM.space,
    (Constraint("heat", "<=", 9.7),),
    WARM.start,
    lambda settings: {"cost": -settings["a"], "heat": 10 - 2 * abs(settings["a"] - 0.6)},
    noise=0.005,
)
"""Every way leads out of the heat, and away from what `Nowhere` says."""


@pytest.mark.parametrize("priors", [(), (Hot(),), (Nowhere(),)])
def test_nothing_is_called_infeasible_before_ten_trials(priors: Tuple[Prior, ...]) -> None:
    found = verdicts(WARM, 9, priors=priors)
    assert "infeasible" not in {verdict.state for verdict in found}


def test_a_prior_that_no_trial_has_tested_makes_nothing_infeasible() -> None:
    search = COOLER.search(priors=(Nowhere(),))
    for number in range(12):
        search.tell(COOLER.start, COOLER.measure(COOLER.start, np.random.default_rng(number)))
    assert search.explain().reach().exists < 0.005
    assert search.verdict().state != "infeasible"


def test_a_prior_that_trials_have_borne_out_does() -> None:
    problem = SmallProblem(
        WARM.space,
        COOLER.constraints,
        WARM.start,
        lambda settings: {"cost": -settings["a"], "heat": 10 + 5 * abs(settings["a"] - 0.6)},
        noise=0.005,
    )
    search = problem.search(priors=(Nowhere(),))
    for number, a in enumerate([0.6] * 6 + [0.5, 0.7, 0.8, 0.4]):
        search.tell({"a": a}, problem.measure({"a": a}, np.random.default_rng(number)))
    assert search.verdict().state == "infeasible"


@pytest.mark.parametrize(("priors", "ends"), [((Hot(),), 10), ((), None)])
def test_what_a_prior_calls_hardly_possible_is_given_up_after_ten_trials_that_could_not_help(
    monkeypatch: pytest.MonkeyPatch, priors: Tuple[Prior, ...], ends: Optional[int]
) -> None:
    monkeypatch.setattr(Explanation, "reach", lambda self: Reach(dict(WARM.start), 0.0, 0.03))
    found = verdicts(WARM, 12, priors=priors)
    assert next((number for number, each in enumerate(found, 1) if each.state == "infeasible"), None) == ends


def test_where_no_way_leads_from_a_bad_start_nothing_is_safe() -> None:
    found = verdicts(FAR, 12, options=Options(tolerance=0.0))
    assert found[-1].state == "nothing safe"
    assert not found[-1].go_on


def test_a_start_that_is_much_worse_than_its_bound_may_still_move() -> None:
    bound = (Constraint("heat", "<=", 0.1),)
    search = SafeOptimiser(BOWL.space, "cost", bound, {"a": 0.9, "b": 0.9}, seed=1)
    problem = SmallProblem(BOWL.space, bound, {"a": 0.9, "b": 0.9}, BOWL.truth, noise=0.005)
    asked = played(search, problem, 12)
    assert problem.excess(asked[-1].settings) < problem.excess(problem.start) - 0.5


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"safe_probability": -0.1}, "-0.1"),
        ({"safe_probability": 1.0}, "1.0"),
        ({"step_limit": 0.0}, "step_limit"),
        ({"first_step": 1.5}, "first_step"),
        ({"violation_budget": -1}, "-1"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Options(**options)


def test_constraints_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="<"):
        Constraint("heat", "<", 1.0)
    with pytest.raises(ValueError, match="finite"):
        Constraint("heat", "<=", float("nan"))
