from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.core.goals.trial import (
    IN_FORCE,
    KINDS,
    NOT_MEASURED,
    Run,
    Trial,
    TrialBudget,
    at_fault,
    best_built_in,
    candidates_of,
    opening_runs,
    repeat_runs,
    standing,
)
from ceph_tuner.core.knobs.releases import TENTACLE
from ceph_tuner.core.measure.sample import Measure

SLO = parse_slo({"objectives": ["client.p95_ms <= 80 ms"]})
numbers = st.floats(0, 1e12, allow_nan=False)
measures = st.builds(Measure, numbers, numbers, st.integers(1, 1000))


def trial(kind: str, label: str, p95: float, failed: str = "", why: str = "", **settings: int) -> Trial:
    return Trial(Run(kind, label, settings, why), 0.0, 1.0, {"client.p95_ms": Measure(p95, 0.0, 1)}, failed or None)


@given(
    st.sampled_from(KINDS),
    st.text(max_size=20),
    st.dictionaries(st.text(max_size=5), st.one_of(st.booleans(), st.integers(), numbers)),
    st.dictionaries(st.sampled_from(["client.p95_ms", "client.iops"]), measures),
    st.one_of(st.none(), st.text()),
    st.booleans(),
)
def test_a_trial_reads_back_from_json(
    kind: str, label: str, settings: dict, seen: dict, failed: str, hopeless: bool
) -> None:
    run = Run(kind, label, settings, "why", {"client.p95_ms": (20.0, 15.5, 26.0)})
    record = Trial(run, 5.0, 2.0, seen, failed, ("a note",), hopeless)
    assert Trial.from_dict(json.loads(json.dumps(record.to_dict()))) == record


@pytest.mark.parametrize(
    "changed",
    [{"measures": None}, {"measures": ["client.iops"]}, {"measures": {"client.iops": 5}}, {"kind": "prophecy"},
     {"at": "noon"}, {"notes": 5}, {"expected": {"client.iops": [1.0]}}],
)  # fmt: skip
def test_a_record_of_another_version_is_no_trial_and_no_error(changed: dict) -> None:
    record = trial("trial", "t1", 50.0).to_dict()
    assert Trial.remembered(record) == trial("trial", "t1", 50.0)
    # of a version that did not write down what it expected
    del record["expected"]
    assert Trial.remembered(record) == trial("trial", "t1", 50.0)
    assert Trial.remembered({**record, **changed}) is None
    assert Trial.remembered({}) is None


def test_the_profile_in_force_is_the_baseline_and_not_measured_twice() -> None:
    labels = [run.label for run in opening_runs(TENTACLE.profiles, "balanced")]
    assert labels == [IN_FORCE, "high_client_ops", "high_recovery_ops"]
    assert [run.label for run in opening_runs(TENTACLE.profiles, None)] == [IN_FORCE, *TENTACLE.profiles]
    assert opening_runs(TENTACLE.profiles, "balanced")[0].settings == {}


def test_the_best_two_are_measured_again_in_turns_with_what_exists_already() -> None:
    trials = [
        trial("baseline", IN_FORCE, 98, why="balanced"),
        trial("profile", "high_client_ops", 95),
        trial("trial", "trial 1", 90, osd_max_scrubs=1),
        trial("trial", "trial 2", 70, osd_max_scrubs=2),
        trial("trial", "trial 3", 20, failed="an OSD went down"),
        trial("trial", "trial 4", 75, osd_max_scrubs=4),
    ]
    runs = repeat_runs(Judge(SLO), trials, TrialBudget(trials=4, repeats=2))
    assert [run.label for run in runs] == [
        *["trial 2", "trial 4", IN_FORCE, "high_client_ops"],
        *["trial 4", IN_FORCE, "high_client_ops", "trial 2"],
    ]
    assert runs[0].settings == {"osd_max_scrubs": 2}
    assert {run.kind for run in runs} == {"repeat"}


def test_nothing_is_repeated_where_every_trial_failed() -> None:
    trials = [trial("baseline", IN_FORCE, 98), trial("trial", "trial 1", 20, failed="refused")]
    assert repeat_runs(Judge(SLO), trials, TrialBudget()) == []


def test_settings_that_failed_in_a_repeat_are_out() -> None:
    trials = [trial("trial", "trial 1", 70), trial("repeat", "trial 1", 71, failed="slow operations")]
    assert candidates_of(trials) == []


def test_the_best_built_in_profile_may_be_the_one_in_force() -> None:
    trials = [
        trial("baseline", IN_FORCE, 90, why="balanced"),
        trial("profile", "high_client_ops", 95),
        trial("repeat", IN_FORCE, 80),
        trial("trial", "trial 1", 10),
    ]
    best = best_built_in(Judge(SLO), trials)
    assert best is not None
    assert (best.label, best.means["client.p95_ms"], best.repeats) == ("balanced", 85.0, 2)


@pytest.mark.parametrize("wrong", [{"trials": 0}, {"finalists": 0}, {"repeats": -1}, {"hours": 0.0}])
def test_a_budget_that_makes_no_sense_is_refused(wrong: dict) -> None:
    with pytest.raises(ValueError, match="="):
        TrialBudget(**wrong)


def test_an_unknown_kind_of_run_is_refused() -> None:
    with pytest.raises(ValueError, match="'guess'"):
        Run("guess", "x", {})


def test_what_did_no_better_than_what_is_in_force_is_not_measured_again() -> None:
    trials = [trial("baseline", IN_FORCE, 98), trial("trial", "trial 1", 99), trial("trial", "trial 2", 97)]
    assert [run.label for run in repeat_runs(Judge(SLO), trials, TrialBudget())] == ["trial 2", IN_FORCE]
    assert repeat_runs(Judge(SLO), trials[:2], TrialBudget()) == []


def test_what_the_models_think_best_is_a_finalist() -> None:
    p95s = {"trial 1": 70, "trial 2": 71, "trial 3": 75}
    trials = [trial("baseline", IN_FORCE, 98), *(trial("trial", label, p95) for label, p95 in p95s.items())]
    runs = repeat_runs(Judge(SLO), trials, TrialBudget(finalists=2), "trial 3")
    assert [run.label for run in runs] == ["trial 3", "trial 1", IN_FORCE]
    # where it is one that did better at all
    assert [run.label for run in repeat_runs(Judge(SLO), trials, TrialBudget(), IN_FORCE)] == [
        "trial 1",
        "trial 2",
        IN_FORCE,
    ]


def test_a_repeat_that_could_not_be_measured_does_not_count_against_its_settings() -> None:
    trials = [trial("trial", "trial 1", 70), trial("repeat", "trial 1", 0, failed=f"{NOT_MEASURED}out of work")]
    (found,) = candidates_of(trials)
    assert (found.means["client.p95_ms"], found.repeats) == (70.0, 1)


def test_the_place_to_beat_is_known_once_so_many_were_measured() -> None:
    trials = [trial("baseline", IN_FORCE, 98), trial("trial", "trial 1", 70)]
    assert standing(Judge(SLO), trials, 3) is None
    second = standing(Judge(SLO), trials, 2)
    assert second is not None
    assert second[0] is True
    first = standing(Judge(SLO), trials, 1)
    assert first is not None
    assert first < second


def both(label: str, p95: float, rate: float) -> Trial:
    seen = {"client.p95_ms": Measure(p95, 0.0, 1), "recovery.bytes_s": Measure(rate, 0.0, 1)}
    return Trial(Run("trial", label, {}), 0.0, 1.0, seen)


def test_what_stands_in_the_way_is_what_nothing_met_or_what_was_not_met_together() -> None:
    slo = parse_slo({"objectives": ["client.p95_ms <= 80 ms", "recovery.bytes_s >= 10 MB/s"]})
    apart = [both("fast", 60, 5e6), both("eager", 100, 20e6), both("between", 84, 10e6)]
    assert at_fault(Judge(slo), apart) == [
        "client.p95_ms <= 80 ms was not met together with recovery.bytes_s: between came nearest, 5% off"
    ]
    (alone,) = at_fault(Judge(slo), apart[1:])
    assert alone == "client.p95_ms <= 80 ms was met by nothing: between came nearest, 5% off"
    assert at_fault(Judge(slo), [*apart, both("good", 79, 11e6)]) == []
    assert at_fault(Judge(slo), []) == []
