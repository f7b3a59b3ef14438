from __future__ import annotations

import json
from dataclasses import replace
from typing import Optional

import pytest

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.core.goals.trial import FEWER_CHANGES, IN_FORCE, Run, Trial
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import TENTACLE, Settings
from ceph_tuner.core.measure.history import History
from ceph_tuner.core.measure.sample import Measure
from ceph_tuner.tune.past import (
    ALIKE,
    OLDEST_S,
    Heading,
    PastRun,
    PastTrials,
    lessons,
    past_runs,
    to_resume,
    written_out,
)
from monitors import Monitors

SLO = parse_slo({"objectives": ["client.p95_ms <= 80 ms"]})
BALANCED, FAST = dict(TENTACLE.profiles["balanced"]), dict(TENTACLE.profiles["high_client_ops"])
HEADING = Heading(SLO.to_dict(), "osd", "client-recovery", ("osd_max_scrubs",), 1, BALANCED)


def trial(kind: str, label: str, p95: float, settings: Optional[Settings] = None, failed: str = "") -> Trial:
    return Trial(Run(kind, label, settings or {}), 5.0, 30.0, {"client.p95_ms": Measure(p95, 1.0, 5)}, failed or None)


def test_runs_come_back_from_the_clusters_history_with_their_trials() -> None:
    history = History(Monitors().store)
    trials = [trial("baseline", IN_FORCE, 98), trial("trial", "trial 1", 70, FAST)]
    for began, heading in ((1000.0, HEADING), (2000.0, replace(HEADING, seed=2))):
        for entry in trials:
            history.add_trial(json.loads(json.dumps(heading.record(began, entry))))
    # what older versions wrote
    history.add_trial({**trials[0].to_dict(), "slo": SLO.to_dict(), "target": "osd"})
    history.add_trial({"at": 3.0})
    assert past_runs(history) == [
        PastRun(1000.0, HEADING, tuple(trials)),
        PastRun(2000.0, replace(HEADING, seed=2), tuple(trials)),
    ]


def test_the_last_run_on_the_target_is_gone_on_with_where_it_was_about_the_same() -> None:
    runs = [PastRun(1.0, HEADING, ()), PastRun(2.0, replace(HEADING, target="osd.1", seed=3), ())]
    assert to_resume(runs, HEADING) is runs[0]
    with pytest.raises(InputError, match="no earlier run on osd/host:h0"):
        to_resume(runs, replace(HEADING, target="osd/host:h0"))
    with pytest.raises(InputError, match="differs in seed, in force"):
        to_resume(runs, replace(HEADING, seed=2, in_force=FAST))


def test_what_an_interrupted_run_measured_is_used_once_and_never_its_check() -> None:
    past = PastTrials([trial("trial", "trial 1", 70), trial("trial", "trial 2", 60), trial("check", "trial 2", 60)])
    assert past.of(Run("check", "trial 2", {})) is None
    assert past.of(Run("trial", "trial 2", {})) is not None
    found = past.of_search()
    assert found is not None
    assert found.run.label == "trial 1"
    assert past.of_search() is None


def test_an_interrupted_run_s_trial_is_used_for_its_own_settings_alone() -> None:
    past = PastTrials([trial("trial", "trial 1", 70, FAST)])
    assert past.of(Run("trial", "trial 1", {**FAST, "osd_max_scrubs": 1})) is None
    assert past.of(Run("trial", "trial 1", FAST)) is not None


def test_the_best_with_fewer_changes_is_none_of_the_trials_that_the_search_had_asked_for() -> None:
    run = Run("trial", "trial 2", FAST, f"{FEWER_CHANGES}osd_max_scrubs")
    past = PastTrials([Trial(run, 0.0, 20.0, {})])
    assert past.of_search() is None
    assert past.of(run) is not None


WINNER = {**BALANCED, "osd_max_scrubs": 1}


def learnt(heading: Heading = HEADING, baseline: float = 70.0, now: float = 2000.0, **earlier: object) -> list:
    """Lessons for a run that began with the winner of the earlier one in force."""
    trials = (
        trial("baseline", IN_FORCE, 98),
        trial("profile", "high_client_ops", 95, {PROFILE: "high_client_ops"}),
        trial("trial", "trial 1", 71, WINNER),
        trial("trial", "trial 2", 300, {**FAST, "osd_max_scrubs": 3}, failed="OSDs down"),
        replace(trial("trial", "trial 3", 200, {**FAST, "osd_max_scrubs": 2}, failed="no hope"), hopeless=True),
    )
    run = PastRun(1000.0, replace(HEADING, **earlier), trials)  # type: ignore[arg-type]
    found = lessons([run], heading, {"client.p95_ms": baseline}, now, dict, TENTACLE)
    return [(settings, measures["client.p95_ms"].mean) for settings, measures in found]


def test_an_earlier_run_that_saw_the_settings_in_force_give_the_same_teaches_all_it_measured() -> None:
    assert learnt(replace(HEADING, in_force=WINNER)) == [
        (BALANCED, 98.0),
        (FAST, 95.0),
        (WINNER, 71.0),
        ({**FAST, "osd_max_scrubs": 2}, 200.0),
    ]


@pytest.mark.parametrize(
    "unlike",
    [
        {"baseline": 70.0 * (1 + 2 * ALIKE)},
        {"now": 1001.0 + OLDEST_S},
        {"target": "osd.1"},
        {"work": "client-scrub"},
        {"knobs": ("osd_max_scrubs", "osd_scrub_chunk_max")},
        {"heading": replace(HEADING, in_force={**BALANCED, "osd_max_scrubs": 9})},
    ],
    ids=str,
)
def test_what_was_measured_on_another_load_long_ago_or_about_other_things_teaches_nothing(unlike: dict) -> None:
    assert learnt(**{"heading": replace(HEADING, in_force=WINNER), **unlike}) == []


CHUNK = "osd_recovery_max_chunk"
CLIENT_SHARE = "osd_mclock_scheduler_client_res"


def test_what_stands_beside_a_profile_s_name_is_written_out_as_well() -> None:
    """But for the values of the classes, which Ceph ignores under a built-in profile."""
    values = TENTACLE.profiles["high_client_ops"]
    written = written_out({PROFILE: "high_client_ops", CHUNK: 1 << 18, CLIENT_SHARE: 0.99}, TENTACLE.profiles, {})
    assert written == {**values, CHUNK: 1 << 18}
    assert written[CLIENT_SHARE] != 0.99


@pytest.mark.parametrize("settings", [{PROFILE: "custom", CLIENT_SHARE: 0.99}, {CHUNK: 1 << 18}])
def test_values_without_a_built_in_profile_are_written_out_already(settings: Settings) -> None:
    assert written_out(settings, TENTACLE.profiles, {CHUNK: 1}) == settings


def test_no_settings_are_those_in_force() -> None:
    assert written_out({}, TENTACLE.profiles, {CHUNK: 1}) == {CHUNK: 1}
