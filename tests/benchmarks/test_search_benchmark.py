"""The judge's own arithmetic: what counts as gain and as unsafe, how runs are compared, and what is not run again."""

import json
from dataclasses import replace

import numpy as np
import pytest
import search_pairs
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


def with_designs():
    return replace(
        line(budget=9), designs={"near": {"x": 3.0, "n": 2}, "again": {"x": 2.0, "n": 3}, "far": {"x": 9.0, "n": 8}}
    )


@pytest.mark.parametrize("name", ["skopt-ei", "skopt-hedge", "optuna-tpe"])
def test_a_peer_begins_with_the_designs_and_its_model_comes_next(name):
    problem = with_designs()
    peer = search_peers.ALL[name](problem, 5)
    assert peer.first_model_trial == 4
    asked = []
    for trial in range(3):
        asked.append(peer.ask())
        peer.tell(asked[-1], problem.measure(asked[-1], np.random.default_rng(trial)))
    # a design that is the start is tried once
    assert asked == [problem.start, {"x": 3.0, "n": 2}, {"x": 9.0, "n": 8}]


def test_scikit_optimize_proposes_by_its_model_from_the_trial_that_it_tells():
    problem = with_designs()
    peer = search_peers.ALL["skopt-ei"](problem, 5)
    fits = []
    for _ in range(peer.first_model_trial - 1):
        fits.append(len(peer._optimiser.models))
        settings = peer.ask()
        peer.tell(settings, problem.measure(settings, np.random.default_rng(1)))
    assert fits == [0, 0, 0]
    assert len(peer._optimiser.models) == 1


def test_a_sampler_of_optuna_stops_drawing_at_random_at_the_trial_that_it_tells():
    peer = search_peers.ALL["optuna-tpe"](with_designs(), 5)
    assert peer._study.sampler._n_startup_trials == peer.first_model_trial - 1


def test_a_peer_without_designs_has_three_trials_before_its_model():
    assert search_peers.ALL["optuna-tpe"](line(), 5).first_model_trial == 4
    assert search_peers.start_up(line(budget=2)) == 2
    assert search_peers.ALL["random"](line(), 5).first_model_trial is None


def test_noise_is_told_in_the_scale_of_each_metric_and_only_where_every_error_is_there():
    told = [{"f": Measured(1.0, 0.4), "g": Measured(1.0, 0.5)}, {"f": Measured(2.0, 0.2), "g": Measured(1.0)}]
    of_f, of_g = search_peers.noise_variances(line(), told)
    assert of_f == pytest.approx([0.04, 0.01])
    assert of_g is None


def test_each_ablation_lacks_one_thing_alone(monkeypatch):
    made, told = {}, {}

    class Recording:
        def __init__(self, *_, priors, suggestions, **__):
            made[name] = (tuple(priors), dict(suggestions))

        def tell(self, settings, values):
            told[name] = values["f"].error

    monkeypatch.setattr("ceph_tuner.optimise.SafeOptimiser", Recording)
    problem = replace(with_designs(), priors=("twin",))
    for name in ("ours", "ours-no-prior", "ours-no-suggestions", "ours-no-noise"):
        search_peers.ALL[name](problem, 1).tell(problem.start, {"f": Measured(1.0, 0.5)})
    whole = (("twin",), problem.designs)
    assert made == {
        "ours": whole, "ours-no-prior": ((), problem.designs), "ours-no-suggestions": (("twin",), {}),
        "ours-no-noise": whole,
    }  # fmt: skip
    assert [name for name, error in told.items() if np.isnan(error)] == ["ours-no-noise"]


def test_an_ablation_runs_where_the_problem_has_what_it_lacks():
    noisy = replace(line(), measure=lambda settings, rng: {"f": Measured(0.0, 0.1), "g": Measured(0.0)})
    problems = {"bare": line(), "designs": with_designs(), "priors": replace(line(), priors=("twin",)), "noisy": noisy}
    for optimiser, lacks in search.WITHOUT.items():
        assert sum(search.suits("tuning", problem, optimiser) for problem in problems.values()) == 1, optimiser
        assert not lacks(problems["bare"])


@pytest.mark.parametrize("suite", search_table.MISTAKEN)
def test_a_twin_that_is_wrong_is_held_against_none(suite):
    optimisers = [name for name in search_peers.ALL if search.suits(suite, with_designs(), name)]
    assert optimisers == ["ours", "ours-no-prior"]
    met = {"suite": suite, "violated": [1, 0]}
    late, never = {**met, "violated": [1, 1, 1, 1, 0]}, {**met, "violated": [1]}
    ours = {"a": late, "b": late, "c": met, "d": never}
    without = {"a": met, "b": {**met, "violated": [1, 1, 0]}, "c": never, "d": never}
    (_, line) = search_table.harm_of_the_twin({"ours": ours, "ours-no-prior": without})
    assert line == "With the twin it took over 2 trials more than without in 1 of 4."
    assert search_table.harm_of_the_twin({"ours": ours}) == []


def test_a_run_tells_how_far_its_prior_was_trusted_at_the_end():
    class Right:
        def predict(self, points):
            return {"f": -10.0 * points[:, 0], "g": 10.0 * points[:, 0] - 6.0}

    problem = replace(line(), priors=(Right(),))
    found = json.loads(json.dumps(search.judge("mistaken", problem, "ours")))
    assert {name: len(scales) for name, scales in found["trust"].items()} == {"f": 1, "g": 1}
    assert all(0.5 < scale < 1.5 for (scale,) in found["trust"].values())
    for optimiser in ("ours-no-prior", "random"):
        assert search.judge("mistaken", problem, optimiser)["trust"] == {}


def test_a_table_tells_the_trust_in_a_twin_by_metric():
    runs = [{"trust": {"rate": [0.5], "tail": [1.0]}}, {"trust": {"tail": [0.0]}}, {"trust": {"tail": [0.25]}}, {}]
    rate, tail = search_table.trust_in_the_twin(runs)[3:5]
    assert rate == "| rate | 1 | 0.50 | 0.50 | 0.50 |"
    assert tail == "| tail | 3 | 0.25 | 0.00 | 1.00 |"
    assert search_table.trust_in_the_twin([{}, {"trust": {}}]) == []


def test_a_run_that_gives_up_counts_as_one_that_used_the_whole_budget():
    gave_up = {"suite": "tuning", "violated": [1, 1, 1]}
    assert search_table.trials_until_met(gave_up) == 21
    assert search_table.trials_until_met({**gave_up, "budget": 8}) == 9
    assert search_table.trials_until_met({**gave_up, "violated": [1, 0]}) == 2


def test_a_table_says_after_which_trial_the_model_began():
    assert search_table.first_model_trial([{"first_model_trial": 4}, {"first_model_trial": 6}], "optuna-gp") == "4–6"
    assert search_table.first_model_trial([{}], "optuna-gp") == "11"
    assert search_table.first_model_trial([{"first_model_trial": None}], "random") == "none"


def test_an_optimiser_that_lacks_a_problem_is_left_out_of_what_all_are_compared_on():
    by = {
        "random": {"a": result("a", 1.0), "b": result("b", 2.0)},
        "botorch": {"a": result("a", 1.0)},
        "ours": {"a": result("a", 1.0), "b": result("b", 2.0)},
    }
    assert list(search_table.complete(by)) == ["random", "ours"]


def named(scores):
    return {name: {"score": score} for name, score in scores.items()}


def score(run):
    return run["score"]


def test_pairs_are_counted_where_both_have_been_and_small_differences_are_ties():
    ours = named({"a": 1.0, "b": 2.0, "c": 3.0, "d": 9.0})
    pair = search_pairs.pairs(ours, named({"a": 0.0, "b": 2.05, "c": 4.0}), score, 0.1)
    assert (pair.wins, pair.ties, pair.losses) == (1, 1, 1)
    assert pair.median == pytest.approx(-0.05)
    with pytest.raises(ValueError, match="no problem has a run of both"):
        search_pairs.pairs(ours, named({"z": 1.0}), score, 0.1)


@pytest.mark.parametrize(
    ("low", "high", "order"),
    [
        (0.1, 2.0, "better"),
        (-2.0, -0.1, "worse"),
        (-0.1, 2.0, "undecided"),
        (-2.0, 0.1, "undecided"),
        (0.0, 1.0, "undecided"),
        (-1.0, 0.0, "undecided"),
    ],
)
def test_an_order_within_chance_is_undecided_whichever_way_it_falls(low, high, order):
    assert search_pairs.order(low, high) == order


def test_instances_of_a_function_are_drawn_together():
    # ten instances of each function that agree are two numbers, not twenty
    alike = {f"bbob_f{f:03d}_i{i:02d}_d10": float(f) for f in (0, 1) for i in range(10)}
    assert search_pairs.clustered_interval(alike, np.mean) == (0.0, 1.0)
    low, high = search_pairs.clustered_interval({f"tuning-{i}": float(i % 2) for i in range(20)}, np.mean)
    assert 0.2 < low < 0.5 < high < 0.8


def test_the_pairs_of_a_suite_stand_below_its_table():
    more = {"suite": "constrained", "unsafe": [0], "violated": [0], "cpu_s": [0.0]}
    runs = [
        {**result(f"p_f{number:03d}_i01_d10", gained), **more, "optimiser": name}
        for name, gained in (("random", 1.0), ("ours", 3.0))
        for number in range(4)
    ]
    assert "| random | 4 | 4 | 0 | 0 | 2.00 [2.00, 2.00] | better |" in search_table.tables(runs, ())


def test_an_ablation_that_was_not_run_has_a_row_that_says_so():
    run = {
        "suite": "tuning",
        "optimiser": "ours",
        "feasible": True,
        "verdict": "",
        "unsafe": [0],
        "violated": [0],
        "cpu_s": [0.0],
    }
    text = search_table.tables([{**result("a", 1.0), **run}], ())
    for what in ("the twin", "suggestions", "the known noise"):
        assert f"| ceph-tuner without {what} | not run |" in text


def test_a_run_keeps_what_one_rule_for_all_recommends(one_suite):
    told = search.judge("constrained", line(), "random")
    assert (told["budget"], told["first_model_trial"]) == (4, None)
    assert (told["best_measured"], told["best_measured_violates"]) == (-2.5, False)


def test_what_is_finished_is_not_run_again(one_suite, tmp_path, monkeypatch, capsys):
    output = tmp_path / "runs.jsonl"
    given = ["search.py", "--suite", "constrained", "--seeds", "1", "--optimiser", "random", "--output", str(output)]
    monkeypatch.setattr("sys.argv", given)
    search.main()
    once = output.read_text()
    search.main()
    assert output.read_text() == once
    assert "| random | none | 1 |" in capsys.readouterr().out
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


def test_what_was_promised_is_held_against_what_was_true():
    runs = [{"promised": [None, 0.96, 0.99, 0.8, 0.995], "unsafe": [0, 1, 0, 1, 0], "beyond": [0, 0.2, 0, 0.9, 0]}] * 10
    lines = search_table.calibration(runs)
    assert "| 75% to 90% | 10 | 100.0% | 69.2% to 100.0% | 25% |" in lines
    assert "| 95% to 97% | 10 | 100.0% | 69.2% to 100.0% | 5% |" in lines
    assert "| **95% or more** | 30 | 33.3% | 17.3% to 52.8% | 5% |" in lines
    assert lines[-1] == "Of 20 unsafe trials 50% went beyond by less than 0.5 deviations."


def test_runs_of_before_promises_were_kept_have_no_table_of_them():
    assert search_table.calibration([{"unsafe": [0, 1]}]) == []
