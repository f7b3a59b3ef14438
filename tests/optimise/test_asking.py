from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Mapping

import numpy as np
import pytest
from small_problems import BOLD, BOWL, HOT, MIXED, SmallProblem, played

from ceph_tuner.optimise import Constraint, Measured, Options, SafeOptimiser
from ceph_tuner.optimise.contract import Array
from ceph_tuner.optimise.proposal import _Safety

pytestmark = pytest.mark.slow

GO_ON = """
import json, sys
from small_problems import BOWL, MIXED
problem = {"BOWL": BOWL, "MIXED": MIXED}[sys.argv[1]]
search = problem.search(seed=int(sys.argv[2]))
search.restore(json.load(sys.stdin))
print(json.dumps([[proposal.settings, proposal.why, proposal.safe] for proposal in search.ask(2)]))
"""


class Told:
    """A prior that is the truth of `BOWL`, but for a constant."""

    def predict(self, points: Array) -> Mapping[str, Array]:
        a, b = points[:, 0], points[:, 1]
        return {"cost": (a - 0.8) ** 2 + (b - 0.3) ** 2 + 1.0, "heat": 1.5 * a + 0.5 * b - 2.0}


def distance(problem: SmallProblem, one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """The largest of the dimensions, in the cube."""
    return float(np.max(np.abs(np.subtract(problem.space.encode(one), problem.space.encode(other)))))


@pytest.mark.parametrize("problem", [BOWL, MIXED], ids=["bowl", "mixed"])
def test_the_start_is_asked_first(problem: SmallProblem) -> None:
    search = problem.search()
    assert search.verdict().go_on
    (proposal,) = search.ask()
    assert proposal.settings == problem.start
    assert proposal.safe == 1.0


def test_after_the_start_something_else_is_asked() -> None:
    search = BOWL.search()
    played(search, BOWL, 1)
    (proposal,) = search.ask()
    assert proposal.settings != BOWL.start
    assert proposal.safe >= 0.95


@pytest.mark.parametrize("priors", [(), (Told(),)], ids=["without a prior", "with a prior"])
def test_told_the_same_it_asks_the_same(priors: tuple) -> None:
    one, other, another = (BOWL.search(seed, priors=priors) for seed in (3, 3, 4))
    asked = played(one, BOWL, 6)
    assert asked == played(other, BOWL, 6)
    assert asked[:1] == played(another, BOWL, 6)[:1]
    assert asked != played(another, BOWL, 6)


def test_looking_changes_nothing() -> None:
    quiet, curious = BOWL.search(2), BOWL.search(2)
    for _ in range(5):
        for proposal in quiet.ask():
            quiet.tell(proposal.settings, BOWL.truth(proposal.settings))
        curious.verdict()
        for proposal in curious.ask():
            curious.verdict()
            curious.tell(proposal.settings, BOWL.truth(proposal.settings))
            curious.best()
            curious.verdict()
    assert curious.trials == quiet.trials


@pytest.mark.parametrize("name", ["BOWL", "MIXED"])
def test_another_machine_goes_on_as_this_one_would(name: str) -> None:
    problem = {"BOWL": BOWL, "MIXED": MIXED}[name]
    search = problem.search(seed=5)
    played(search, problem, 6)
    search.ask()
    document = json.dumps(search.to_dict())
    here = Path(__file__).resolve().parent
    done = subprocess.run(
        [sys.executable, "-c", GO_ON, name, "5"],
        input=document,
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(here), *filter(None, sys.path)]),
            # whatever differs between machines of one kind
            "PYTHONHASHSEED": "77",
            "OMP_NUM_THREADS": "2",
            "OPENBLAS_NUM_THREADS": "2",
        },
    )
    assert done.returncode == 0, done.stderr
    expected = [[proposal.settings, proposal.why, proposal.safe] for proposal in search.ask(2)]
    assert json.loads(done.stdout) == expected
    assert expected


def test_a_history_survives_json() -> None:
    search = BOWL.search()
    search.tell(BOWL.start, {"cost": Measured(0.3, 0.01), "heat": 0.75, "mood": 3.0})
    search.tell({"a": 0.2, "b": 0.2}, {"heat": 0.4}, failed="an OSD went down")
    search.tell({"a": 0.25, "b": 0.5}, {"cost": 0.4, "heat": 0.6}, old=True)
    for proposal in search.ask():
        search.tell(proposal.settings, BOWL.truth(proposal.settings))
    search.ask()
    again = BOWL.search()
    again.restore(json.loads(json.dumps(search.to_dict())))
    assert again.to_dict() == search.to_dict()
    assert [trial.settings for trial in again.trials] == [trial.settings for trial in search.trials]
    assert again.trials[0].values["cost"] == Measured(0.3, 0.01)
    assert again.trials[1].failed == "an OSD went down"
    assert again.trials[2].old
    assert set(again.trials[3].expected) == {"cost", "heat"}
    assert not again.trials[0].expected


@pytest.mark.parametrize(
    "document",
    [{}, {"version": 2, "trials": [], "pending": []}, {"version": 1, "trials": [{}], "pending": []}, {"version": 1}],
)
def test_what_is_no_history_is_refused_and_changes_nothing(document: Dict[str, Any]) -> None:
    search = BOWL.search()
    search.tell(BOWL.start, BOWL.truth(BOWL.start))
    before = search.to_dict()
    with pytest.raises(ValueError, match=r"history|version"):
        search.restore(document)
    assert search.to_dict() == before


def warm(seed: int = 1, **further: Any) -> SafeOptimiser:
    search = BOWL.search(seed, **further)
    played(search, BOWL, 5)
    return search


def test_four_at_once_are_four_that_differ_and_all_are_safe() -> None:
    proposals = warm().ask(4)
    assert len(proposals) == 4
    for place, proposal in enumerate(proposals):
        assert proposal.safe >= 0.95
        assert BOWL.excess(proposal.settings) <= 0.01
        assert all(distance(BOWL, proposal.settings, other.settings) > 1e-3 for other in proposals[:place])


def test_what_is_under_way_is_not_asked_again() -> None:
    search = warm()
    asked = [search.ask()[0].settings for _ in range(4)]
    for place, settings in enumerate(asked):
        assert all(distance(BOWL, settings, other) > 1e-3 for other in asked[:place])


def test_one_by_one_or_at_once_the_same_is_asked() -> None:
    one, other = warm(), warm()
    assert one.ask(3) == [other.ask()[0] for _ in range(3)]


def test_what_was_told_is_no_longer_under_way() -> None:
    search = warm()
    first, second = search.ask(2)
    assert [pending["settings"] for pending in search.to_dict()["pending"]] == [first.settings, second.settings]
    search.tell(first.settings, BOWL.truth(first.settings))
    assert [pending["settings"] for pending in search.to_dict()["pending"]] == [second.settings]


def test_the_start_is_under_way_only_once() -> None:
    search = BOWL.search()
    assert [proposal.settings for proposal in search.ask(4)] == [BOWL.start]
    assert search.ask() == []


@pytest.mark.parametrize("limit", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("priors", [(), (Told(),)], ids=["without a prior", "with a prior"])
def test_no_step_is_longer_than_the_limit(limit: float, priors: tuple) -> None:
    search = BOWL.search(1, options=Options(step_limit=limit, first_step=min(limit, 0.03)), priors=priors)
    steps = []
    for _ in range(8):
        for proposal in search.ask():
            tried = [trial.settings for trial in search.trials]
            if tried:
                steps.append(min(distance(BOWL, proposal.settings, settings) for settings in tried))
            search.tell(proposal.settings, BOWL.truth(proposal.settings))
    assert len(steps) == 7
    assert max(steps) <= limit + 1e-9
    assert max(steps) > 0


def test_without_a_prior_the_first_step_is_short() -> None:
    for first in (0.01, 0.1):
        search = BOWL.search(1, options=Options(first_step=first))
        played(search, BOWL, 1)
        (proposal,) = search.ask()
        assert 0 < distance(BOWL, proposal.settings, BOWL.start) <= first + 1e-9


def test_a_prior_that_is_right_finds_the_best_in_a_few_trials() -> None:
    search = BOWL.search(1, priors=[Told()])
    asked = played(search, BOWL, 5)
    assert BOWL.truth(search.best().settings)["cost"] < 0.035
    assert all(BOWL.excess(proposal.settings) <= 0.01 for proposal in asked)


def test_a_history_without_the_start_does_not_replace_it() -> None:
    search = BOWL.search()
    hot = {"a": 0.9, "b": 0.9}
    search.tell(hot, BOWL.truth(hot), old=True)
    assert [proposal.settings for proposal in search.ask()] == [BOWL.start]


def test_a_suggestion_that_serves_is_taken_up_by_its_name() -> None:
    good = {"a": 0.6, "b": 0.3}
    search = BOWL.search(1, options=BOLD, priors=[Told()], suggestions={"what served elsewhere": good})
    asked = played(search, BOWL, 6)
    near = min(asked, key=lambda proposal: distance(BOWL, proposal.settings, good))
    assert distance(BOWL, near.settings, good) < 0.1


def test_the_first_suggestion_that_is_as_good_as_anything_is_tried_as_it_is() -> None:
    """Of many settings that meet the constraint as surely, one means something to whoever reads it."""
    suggestions = {"warm": {"a": 0.3, "b": 0.3}, "cool": {"a": 0.05, "b": 0.1}, "cooler": {"a": 0.04, "b": 0.05}}
    search = HOT.search(options=BOLD, priors=[Told()], suggestions=suggestions)
    _, second = played(search, HOT, 2)
    assert second.settings == suggestions["cool"]
    assert second.why.startswith("cool: within 5% of the most likely to meet every constraint")


def test_settings_of_no_point_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="inside"):
        SafeOptimiser(BOWL.space, "cost", BOWL.constraints, {"a": 2.0, "b": 0.5})
    with pytest.raises(KeyError, match="b"):
        SafeOptimiser(BOWL.space, "cost", BOWL.constraints, {"a": 0.5})


def test_where_a_trial_gains_less_than_the_noise_it_teaches_where_least_is_known() -> None:
    flat = SmallProblem(
        BOWL.space, (Constraint("heat", "<=", 1.0),), BOWL.start, lambda u: {"cost": 0.0, "heat": u["a"]}, noise=0.05
    )
    search = flat.search(options=Options(least_gain=0.0))
    asked = played(search, flat, 10)
    lessons = [number for number, proposal in enumerate(asked) if "learnt" in proposal.why]
    assert lessons
    for number in lessons:
        before = flat.search(options=Options(least_gain=0.0))
        for trial in search.trials[:number]:
            before.tell(trial.settings, trial.values)
        model = before.explain().model
        taught = model.at(np.array([flat.space.encode(asked[number].settings)])).information()[0]
        assert taught > np.max(model.at_trials.information())


def test_with_a_prior_no_risk_is_taken_where_success_is_less_likely_than_harm() -> None:
    class Opposed:
        def predict(self, points: Array) -> Mapping[str, Array]:
            a, b = points[:, 0], points[:, 1]
            return {"cost": a, "heat": 2 + a - 0.3 * b, "wait": 2 - a + 0.2 * b}

    def truth(settings: Mapping[str, Any]) -> Dict[str, float]:
        return {name: float(v[0]) for name, v in Opposed().predict(np.array([[settings["a"], settings["b"]]])).items()}

    bounds = (Constraint("heat", "<=", 1.0), Constraint("wait", "<=", 1.0))
    problem = SmallProblem(BOWL.space, bounds, {"a": 0.5, "b": 0.5}, truth, noise=0.05)
    search = problem.search(priors=(Opposed(),))
    for _ in range(5):
        for proposal in search.ask():
            again = proposal.settings in [trial.settings for trial in search.trials]
            assert again or proposal.safe >= 0.95 or not search.trials
            search.tell(proposal.settings, problem.measure(proposal.settings, np.random.default_rng(1)))


class Unlike:
    """A prior that says of every setting apart from the start that clients wait longer there."""

    def predict(self, points: Array) -> Dict[str, Array]:
        away = np.abs(points - 0.5).sum(axis=1)
        return {"cost": points[:, 0], "wait": 2.0 + 0.4 * away}


def _waits(settings: Mapping[str, Any]) -> Dict[str, float]:
    return {"cost": settings["a"], "wait": 2.0 - 2.0 * abs(settings["a"] - 0.5)}


STUCK = SmallProblem(BOWL.space, (Constraint("wait", "<=", 1.4),), {"a": 0.5, "b": 0.5}, _waits, noise=0.02)
"""What is in use waits too long, every change of `a` mends it, and `Unlike` knows of none that does."""


def test_where_a_prior_leaves_no_hope_it_is_tested_after_three_measurements_of_what_is_in_use() -> None:
    search = STUCK.search(priors=(Unlike(),))
    asked = played(search, STUCK, 10)
    apart = [number for number, proposal in enumerate(asked) if proposal.settings != STUCK.start]
    assert apart
    assert apart[0] == 3
    assert "what is believed" in asked[apart[0]].why
    assert all(asked[number].safe >= Options().improve_probability for number in apart)


def test_once_something_was_broken_a_prior_is_tested_no_further() -> None:
    search = STUCK.search(priors=(Unlike(),))
    for settings, wait in [(STUCK.start, 2.0)] * 3 + [({"a": 0.1, "b": 0.1}, 2.6)]:
        search.tell(settings, {"cost": settings["a"], "wait": Measured(wait, 0.02)})
    assert not any("what is believed" in proposal.why for proposal in played(search, STUCK, 5))


@pytest.mark.parametrize(("priors", "asked_again"), [((Unlike(),), "start"), ((), "best")])
def test_with_a_prior_what_may_not_be_tried_is_not_measured_again(
    monkeypatch: pytest.MonkeyPatch, priors: Any, asked_again: str
) -> None:
    again = {"start": STUCK.start, "best": {"a": 0.52, "b": 0.5}}
    search = STUCK.search(priors=priors)
    for settings, wait in [(again["start"], 2.0)] * 4 + [(again["best"], 1.9)]:
        search.tell(settings, {"cost": settings["a"], "wait": Measured(wait, 0.05)})
    monkeypatch.setattr(_Safety, "allows", lambda self, judged: np.full(len(judged.points), False))
    assert [each.settings for each in search.ask()] == [again[asked_again]]


def test_a_start_at_its_bound_is_measured_again_before_the_search_gives_up() -> None:
    at_its_bound = replace(BOWL, constraints=(Constraint("heat", "<=", 0.751),))
    search = at_its_bound.search()
    asked = []
    for _ in range(10):
        for proposal in search.ask():
            asked.append(proposal)
            values = at_its_bound.truth(proposal.settings)
            search.tell(proposal.settings, {name: Measured(value, 0.1) for name, value in values.items()})
    assert len(asked) == 10
    assert all(proposal.settings == BOWL.start or proposal.safe >= 0.95 for proposal in asked)
    assert sum(proposal.settings == BOWL.start for proposal in asked) > 3


def test_forecasts_that_did_not_come_true_make_the_search_more_careful() -> None:
    def steep(settings: Mapping[str, Any]) -> Dict[str, float]:
        return {"cost": -settings["a"], "heat": 0.6 + 3 * max(0.0, settings["a"] - 0.32)}

    problem = SmallProblem(BOWL.space, (Constraint("heat", "<=", 1.0),), BOWL.start, steep, noise=0.001)
    search = problem.search()
    played(search, problem, 12)
    naive = problem.search()
    for trial in search.trials:
        naive.tell(trial.settings, trial.values)
    points = np.random.default_rng(1).random((200, 2))
    careful, trusting = (each.explain().model.at(points).metric("heat")[1] for each in (search, naive))
    assert (careful >= trusting).all()
    assert careful.mean() > 1.05 * trusting.mean()
