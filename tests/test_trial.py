from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.releases import TENTACLE
from ceph_tuner.sample import Measure
from ceph_tuner.slo import parse_slo
from ceph_tuner.trial import (
    IN_FORCE,
    KINDS,
    Budget,
    Run,
    Trial,
    best_built_in,
    candidates_of,
    opening_runs,
    repeat_runs,
)

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
)
def test_a_trial_reads_back_from_json(kind: str, label: str, settings: dict, seen: dict, failed: str) -> None:
    record = Trial(Run(kind, label, settings, "why"), 5.0, 2.0, seen, failed, ("a note",))
    assert Trial.from_dict(json.loads(json.dumps(record.to_dict()))) == record


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
    runs = repeat_runs(SLO, {}, trials, Budget(trials=4, repeats=2))
    assert [run.label for run in runs] == [
        *["trial 2", "trial 4", IN_FORCE, "high_client_ops"],
        *["trial 4", IN_FORCE, "high_client_ops", "trial 2"],
    ]
    assert runs[0].settings == {"osd_max_scrubs": 2}
    assert {run.kind for run in runs} == {"repeat"}


def test_nothing_is_repeated_where_every_trial_failed() -> None:
    trials = [trial("baseline", IN_FORCE, 98), trial("trial", "trial 1", 20, failed="refused")]
    assert repeat_runs(SLO, {}, trials, Budget()) == []


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
    best = best_built_in(SLO, {}, trials)
    assert best is not None
    assert (best.label, best.means["client.p95_ms"], best.repeats) == ("balanced", 85.0, 2)


@pytest.mark.parametrize("wrong", [{"trials": 0}, {"finalists": 0}, {"repeats": -1}])
def test_a_budget_that_makes_no_sense_is_refused(wrong: dict) -> None:
    with pytest.raises(ValueError, match="="):
        Budget(**wrong)


def test_an_unknown_kind_of_run_is_refused() -> None:
    with pytest.raises(ValueError, match="'guess'"):
        Run("guess", "x", {})
