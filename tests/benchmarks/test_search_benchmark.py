"""The judge's own arithmetic: what counts as gain and as unsafe, how runs are compared, and what is not run again."""

import json

import numpy as np
import pytest
import search_peers
import search_table
from search_problem import Problem
from skopt.space import Integer, Real

import search
from ceph_tuner.optimise import Constraint, Measured


def line(start=2.0, budget=4, noise=0.0):
    def truth(settings):
        return {"f": -settings["x"], "g": settings["x"] - 6.0}

    def measure(settings, rng):
        return {name: Measured(value + noise * rng.standard_normal()) for name, value in truth(settings).items()}

    return Problem(
        name="line", space=[Real(0.0, 10.0, name="x"), Integer(1, 8, name="n")], start={"x": start, "n": 3},
        objective="f", constraints=(Constraint("g", "<=", 0.0),), measure=measure, truth=truth,
        scale={"f": 2.0, "g": 1.0}, budget=budget,
    )  # fmt: skip


class Scripted(search_peers.Peer):
    """Tries these, then has nothing left."""

    steps = (5.0, 7.0)

    def propose(self):
        return {"x": self.steps[len(self.seen) - 1], "n": 3}

    def ask(self):
        return super().ask() if len(self.seen) <= len(self.steps) else None


@pytest.fixture
def one_suite(monkeypatch):
    """A suite of one problem a seed, and an optimiser with a script."""
    monkeypatch.setitem(search_peers.ALL, "random", Scripted)
    monkeypatch.setitem(search.SUITES, "constrained", lambda seeds: [line() for _ in seeds])


def result(problem, gained, violates=False, **more):
    return {
        "problem": problem, "objectives": [0.0], "recommended": -gained, "recommended_violates": violates, **more,
    }  # fmt: skip


def test_a_run_is_judged_by_what_is_true_of_its_trials(one_suite):
    found = search.judge("constrained", line(), "random")
    assert found["objectives"] == [-1.0, -2.5, -3.5]
    assert found["violated"] == found["unsafe"] == [0, 0, 1]
    assert search_table.gain(found) == search_table.best_seen(found) == 1.5
    assert search_table.unsafe(found) == pytest.approx(1 / 3)


def test_no_more_trials_are_run_than_the_budget_allows(one_suite):
    assert len(search.judge("constrained", line(budget=2), "random")["objectives"]) == 2


def test_a_recommendation_that_truly_misses_a_constraint_gains_nothing():
    assert search_table.gain(result("a", 3.0)) == 3.0
    assert search_table.gain(result("a", 3.0, violates=True)) == 0.0


def test_the_first_trial_that_meets_everything_is_counted_from_the_start(one_suite):
    assert search_table.first_met(search.judge("constrained", line(), "random")) == 1
    found = search.judge("constrained", line(start=8.0), "random")
    assert search_table.first_met(found) == 2
    assert search_table.met_within(found, 2)
    assert not search_table.met_within(found, 1)
    assert search_table.first_met({"violated": [1, 1]}) is None


def test_noise_is_the_same_for_every_optimiser(monkeypatch):
    heard = []

    class Listening(Scripted):
        def tell(self, settings, values):
            super().tell(settings, values)
            heard.append(values["f"].mean - self.problem.truth(settings)["f"])

    class Elsewhere(Listening):
        steps = (1.0, 3.0)

    for kind in (Listening, Elsewhere):
        monkeypatch.setitem(search_peers.ALL, "random", kind)
        search.judge("constrained", line(noise=0.1), "random")
    assert heard[:3] == pytest.approx(heard[3:])
    assert len({round(value, 6) for value in heard}) == 3


def test_runs_are_compared_where_every_optimiser_has_been():
    by = {
        "random": {"a": result("a", 1.0), "b": result("b", 2.0), "c": result("c", 9.0), "d": result("d", -1.0)},
        "ours": {"a": result("a", 4.0), "b": result("b", 2.0), "d": result("d", 0.5)},
    }
    assert search_table.relative(by, search_table.gain) == {"random": [0.25, 1.0, 0.0], "ours": [1.0, 1.0, 1.0]}
    assert search_table.ranks(by) == {"random": [2.0, 1.5, 2.0], "ours": [1.0, 1.5, 1.0]}


def test_a_problem_on_which_nobody_gained_says_nothing_of_shares():
    by = {"random": {"a": result("a", -1.0)}, "ours": {"a": result("a", 1e-9)}}
    assert search_table.relative(by, search_table.gain) == {"random": [], "ours": []}


def test_an_interval_holds_its_statistic_and_is_the_same_each_time():
    values = list(np.random.default_rng(3).normal(1.0, 1.0, 40))
    text = search_table.interval(values, np.mean)
    middle, low, high = (float(word.strip("[],")) for word in text.split())
    assert low < middle < high
    assert high - low == pytest.approx(2 * 1.96 * np.std(values) / np.sqrt(40), rel=0.2)
    assert text == search_table.interval(values, np.mean)
    assert search_table.interval([], np.mean) == "—"


def test_the_best_seen_trial_is_recommended_or_the_one_that_missed_least():
    peer = search_peers.Random(line(), 1)
    for x, f, g in ((1.0, 0.0, 0.5), (2.0, 5.0, 0.2), (3.0, -9.0, 0.9)):
        peer.tell({"x": x, "n": 3}, {"f": Measured(f), "g": Measured(g)})
    assert peer.recommend()["x"] == 2.0
    peer.tell({"x": 4.0, "n": 3}, {"f": Measured(7.0), "g": Measured(-0.1)})
    peer.tell({"x": 5.0, "n": 3}, {"f": Measured(6.0), "g": Measured(-0.1)})
    assert peer.recommend()["x"] == 5.0


@pytest.mark.parametrize("name", ["random", "skopt-ei", "optuna-tpe", "ours"])
def test_an_optimiser_asks_for_the_start_first_and_stays_in_the_space(name):
    problem = line()
    peer = search_peers.ALL[name](problem, 5)
    for trial in range(4):
        settings = peer.ask()
        assert trial or settings == problem.start
        assert 0.0 <= settings["x"] <= 10.0
        assert settings["n"] in range(1, 9)
        peer.tell(settings, problem.measure(settings, np.random.default_rng(trial)))
    assert set(peer.recommend()) == {"x", "n"}


def test_what_is_finished_is_not_run_again(one_suite, tmp_path, monkeypatch, capsys):
    output = tmp_path / "runs.jsonl"
    given = ["search.py", "--suite", "constrained", "--seeds", "1", "--optimiser", "random", "--output", str(output)]
    monkeypatch.setattr("sys.argv", given)
    search.main()
    once = output.read_text()
    search.main()
    assert output.read_text() == once
    assert "| random | 1 |" in capsys.readouterr().out
    # a line cut short by a kill is run again, and a rerun replaces its own line alone
    output.write_text(once + json.dumps({**json.loads(once), "optimiser": "ours"}) + "\n" + once[:20])
    monkeypatch.setattr(Scripted, "steps", (3.0, 4.0))
    monkeypatch.setattr("sys.argv", [*given, "--rerun", "random"])
    search.main()
    kept = [json.loads(text) for text in output.read_text().splitlines()]
    assert [(run["optimiser"], run["objectives"][1]) for run in kept] == [("ours", -2.5), ("random", -1.5)]


def test_an_optimiser_without_its_package_has_a_row_that_says_so(monkeypatch):
    monkeypatch.setitem(search_peers.NEEDS, "botorch", ("no_such_package",))
    absent = search.missing(["random", "botorch"])
    assert absent == {"botorch"}
    run = {"suite": "constrained", "optimiser": "random", "unsafe": [0], "violated": [0], "cpu_s": [0.0]}
    table = search_table.tables([{**result("a", 1.0), **run}], absent)
    assert "| BoTorch qLogNEI, constraints | not installed |" in table


def test_seeds_are_numbers_and_ranges():
    assert search.seeds("1-3,7") == [1, 2, 3, 7]
