"""What of a run counts: the finalists' windows, in the same rounds; and what is not measured again."""

import json
import math
from types import SimpleNamespace

import pytest
import tuning_on_lab
from tuning_on_lab import Compared, ratio, tables

from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.core.goals.trial import IN_FORCE, Run, Trial
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.measure.sample import Measure

SLO = parse_slo({"name": "recovery", "objectives": ["client.p95_ms <= 80 ms", "recovery.bytes_s >= 15 MB/s"]})


def window(kind, label, p95_ms, rate_mb_s, failed=None, why=""):
    settings = {} if label == IN_FORCE else {PROFILE: label}
    values = {"client.p95_ms": p95_ms, "client.mean_ms": p95_ms / 2, "recovery.bytes_s": 1e6 * rate_mb_s}
    measures = {name: Measure(value, 0.0, 2) for name, value in values.items()}
    return Trial(Run(kind, label, settings, why), 0.0, 30.0, measures, failed)


def entry(trials, winner="trial 2", profile="high_client_ops", repeat=1):
    outcome = {
        "slo": SLO.to_dict(), "baseline": trials[0].means, "best_built_in": {"label": profile},
        "winner": {"winner": winner, "better": winner != IN_FORCE},
        "search": {"state": "budget", "unsafe": []}, "trials": [trial.to_dict() for trial in trials],
        "commands": ["config set", "config set"],
    }  # fmt: skip
    about = {"scenario": "client-recovery", "version": tuning_on_lab.VERSION, "osds": ["3xnvme"]}
    return {**about, "repeat": repeat, "window": 10.0, "seconds": 300.0, "outcome": outcome}


def trials(tuned=60.0, again=66.0, built_in=110.0):
    return [
        window("baseline", IN_FORCE, 100, 35, why="balanced"),
        window("profile", "high_client_ops", 95, 35),
        window("trial", "trial 1", 70, 14),
        window("trial", "trial 2", tuned, 20),
        window("repeat", "trial 2", again, 21),
        window("repeat", IN_FORCE, 105, 36),
        window("repeat", "high_client_ops", built_in, 34),
    ]


def test_the_windows_that_were_measured_in_turns_are_compared():
    run = Compared(entry(trials()))
    assert (run.tuned["client.p95_ms"], run.built_in["client.p95_ms"]) == (66.0, 110.0)
    assert (run.met(run.tuned), run.met(run.built_in)) == ([True, True], [False, True])


def test_the_profile_in_force_is_measured_as_what_is_in_force():
    assert Compared(entry(trials(), profile="balanced")).built_in["client.p95_ms"] == 105


def test_what_nobody_measured_again_counts_with_the_windows_that_it_has():
    assert Compared(entry(trials()[:4])).tuned["client.p95_ms"] == 60.0


def test_the_first_trial_that_keeps_every_objective_is_counted():
    assert Compared(entry(trials())).until_met == 2
    assert Compared(entry(trials(tuned=90.0))).until_met is None


def test_unsafe_is_what_breaks_an_objective_that_the_settings_in_force_keep():
    run = Compared(entry(trials(tuned=120.0)))
    # trial 1 is too slow a recovery, trial 2 makes the clients' latency worse, which is beyond its bound anyway
    assert (run.unsafe, run.worse) == (1, 1)


def test_runs_are_compared_by_ratios_with_a_students_interval():
    runs = [Compared(entry(trials(again=110.0 * factor), repeat=n)) for n, factor in enumerate((0.4, 0.5, 0.625), 1)]
    # half of the interval: 4.303 (two degrees of freedom) x log(1.25) / sqrt(3)
    half = 4.3027 * math.log(1.25) / math.sqrt(3)
    assert ratio(runs, "client.p95_ms") == f"0.50 [{0.5 * math.exp(-half):.2f}, {0.5 * math.exp(half):.2f}]"
    assert ratio(runs[:1], "client.p95_ms") == "0.40"


def test_the_tables_tell_what_was_unsafe_and_what_was_not_met():
    text = tables([entry(trials(again=99.0))])
    assert "99 ms (99): met 0 of 1" in text
    assert "1 of 2 trials" in text
    assert "| every objective met | 0 of 1 | 0 of 1 | |" in text


def test_a_run_that_is_there_is_not_made_again(tmp_path, monkeypatch):
    made = []

    def fake(arguments, name, repeat, conditions):
        made.append((name, repeat))
        return entry(trials(), repeat=repeat)

    lab = SimpleNamespace(state=SimpleNamespace(ceph_version="20.2.4", options=SimpleNamespace(groups=("3xnvme",))))
    output = tmp_path / "runs.jsonl"
    output.write_text(json.dumps(entry(trials())) + "\n")
    monkeypatch.setattr(tuning_on_lab, "run", fake)
    monkeypatch.setattr(tuning_on_lab.Lab, "open", lambda name: lab)
    arguments = ["tuning_on_lab.py", "--scenarios", "client-recovery", "--repeats", "3", "--output", str(output)]
    monkeypatch.setattr("sys.argv", arguments)
    tuning_on_lab.main()
    assert made == [("client-recovery", 2), ("client-recovery", 3)]
    assert len(output.read_text().splitlines()) == 3


@pytest.mark.parametrize("name", tuning_on_lab.SCENARIOS)
def test_the_objectives_are_of_metrics_that_the_scenario_can_give(name, tmp_path):
    from ceph_tuner.files import slo_file

    path = tmp_path / "slo.yaml"
    path.write_text(tuning_on_lab.slo_text(name))
    wanted = slo_file.read(path)
    kinds = {objective.metric.split(".")[0] for objective in wanted.slo.objectives}
    assert kinds == set(wanted.scenario.split("-"))


def test_another_pool_or_another_drive_is_another_subject():
    text = tables([entry(trials()), {**entry(trials()), "load_options": ["pool=ec:2+1"], "osds": ["3xhdd"]}])
    assert "### client-recovery, 3xnvme\n" in text
    assert "### client-recovery, pool=ec:2+1, 3xhdd\n" in text


def test_a_goal_is_in_the_slo_and_its_runs_are_another_subject(tmp_path):
    from ceph_tuner.files import slo_file

    path = tmp_path / "slo.yaml"
    path.write_text(tuning_on_lab.slo_text("client-scrub", maximise="scrub.bytes_s"))
    goal = slo_file.read(path).slo.goal
    assert (goal.verb, goal.metric) == ("maximise", "scrub.bytes_s")
    text = tables([entry(trials()), {**entry(trials()), "maximise": "scrub.bytes_s"}])
    assert "### client-recovery, 3xnvme\n" in text
    assert "### client-recovery, 3xnvme, maximise scrub.bytes_s\n" in text


def test_runs_of_another_version_stand_apart_behind_those_of_the_newest():
    text = tables([{**entry(trials()), "version": 1, "osds": []}, entry(trials(), repeat=11)])
    newest, older = text.index(f"## Version {tuning_on_lab.VERSION} "), text.index("## Version 1 ")
    assert newest < text.index("### client-recovery, 3xnvme\n") < older
    assert older < text.index("### client-recovery, throttled devices\n")
    assert text.count("Unsafe: 1 of 2 trials.") == 2


def test_versions_are_ordered_by_their_numbers():
    text = tables([{**entry(trials()), "version": version} for version in (9, 10, 2)])
    assert text.index("## Version 10 ") < text.index("## Version 9 ") < text.index("## Version 2 ")


def test_a_winner_s_writes_are_counted():
    assert "| trial 2 | no | 2 | 2 |" in tables([entry(trials())])
    assert "| none better | no |  | 2 |" in tables([entry(trials(), winner=IN_FORCE)])


def test_a_winner_that_is_a_shipped_design_is_named_as_one():
    tried = trials()
    for why in ("most gain that is expected (feasible with 99%)", "within 5% of the most gain that is expected"):
        tried[3] = window("trial", "trial 2", 60.0, 20, why=f"small chunks: {why}")
        assert "| trial 2 | small chunks | 2 | 2 |" in tables([entry(tried)])
    tried[3] = window("trial", "trial 2", 60.0, 20, why="most gain that is expected (feasible with 99%)")
    assert "| trial 2 | no | 2 | 2 |" in tables([entry(tried)])


def test_what_was_expected_is_held_against_what_was_measured():
    expecting = trials()
    expected = {"client.p95_ms": (50.0, 40.0, 62.5), "recovery.bytes_s": (2e7, 1.5e7, 2.5e7)}
    expecting[3] = Trial(Run("trial", "trial 2", {PROFILE: "x"}, "", expected), 0.0, 30.0, expecting[3].measures)
    text = tables([entry(expecting)])
    assert "- client.p95_ms: measured over expected 1.20 in the median (1.20 to 1.20), 1 of 1 within the 95%" in text
    assert "- recovery.bytes_s: measured over expected 1.00" in text
    assert "What was expected" not in tables([entry(trials())])
