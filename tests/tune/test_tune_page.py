from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from fake_cluster import FakeCluster
from rich.console import Console
from test_loop import SLO, run, task

from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.core.goals.trial import Run, TrialBudget
from ceph_tuner.core.knobs.cost import Hardware
from ceph_tuner.core.knobs.releases import TENTACLE
from ceph_tuner.core.knobs.settings import fitting_reservations
from ceph_tuner.core.profiles.in_force import InForce
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.files import profile_file, slo_file
from ceph_tuner.optimise import Options
from ceph_tuner.search.space import space_for
from ceph_tuner.tune.measurement import Timing
from ceph_tuner.tune.outcome import TuneOutcome
from ceph_tuner_cli.tune_page import announcement, page, what_to_do
from ceph_tuner_cli.tune_profile import tuned_profile

NOW = InForce(
    Profile.make("in-force", TENTACLE, TENTACLE.profiles["balanced"]), (), "balanced", Hardware(935.0, 62914560.0, 1), 3
)


def printed(outcome: TuneOutcome, commands: list, saved: str = "") -> str:
    stream = io.StringIO()
    Console(file=stream, width=80).print(page(outcome, TENTACLE, NOW))
    stream.write("\n".join(what_to_do(outcome, "lab", commands, saved or None)))
    return " ".join(stream.getvalue().split())


def test_a_winner_is_shown_with_its_margins_its_settings_and_the_way_back() -> None:
    text = printed(run(FakeCluster()), [], "tuned.yaml")
    assert "Winner: trial" in text
    assert "client.p95_ms <= 85 ms" in text
    assert "100 ms, missed" in text
    assert "met by" in text
    assert "(at most " in text
    assert "In the way" not in text
    assert "checked after the write-back" in text
    assert "osd_mclock_scheduler_client_wgt" in text
    assert "IOPS" in text
    assert "ceph-tuner rollback --cluster lab" in text
    assert "ceph-tuner profile import tuned.yaml" in text


def test_a_winner_that_was_not_left_in_place_comes_with_its_commands() -> None:
    text = printed(run(FakeCluster(), task(write_back=False)), ["ceph config set osd osd_mclock_profile custom"])
    assert "To write it: ceph config set osd osd_mclock_profile custom" in text
    assert "rollback" not in text


def test_on_a_cluster_that_is_no_lab_it_says_first_what_it_would_do() -> None:
    space = space_for(TENTACLE, SLO.work, NOW.settings)
    text = announcement("ceph", task(), Timing(), space, Options(violation_budget=2, step_limit=0.5), "4 OSDs")
    assert "nothing was changed" in text
    assert "would write to 4 OSDs;" in text
    assert "tries up to 3 settings of 5 knobs" in text
    assert "settings in force, high_client_ops, high_recovery_ops;" in text
    assert "with 95% probability" in text
    assert "50% of its range" in text
    assert "with 75%" in text
    assert "more than 2 trials that broke" in text
    assert "of its range" not in announcement("ceph", task(), Timing(), space, Options(), "4 OSDs")
    assert "--yes" in text
    assert "high_client_ops" not in announcement("ceph", task(compare=False), Timing(), space, Options(), "4 OSDs")


def test_the_front_of_what_was_measured_is_on_the_page_and_in_the_document() -> None:
    def trade(doing: Run, phase: str) -> None:
        recovery, p95 = {"trial 1": (12e6, 60.0), "trial 2": (20e6, 80.0), "trial 3": (11e6, 70.0)}.get(
            doing.label, (26e6, 100.0)
        )
        cluster.seen = lambda: {"client.p95_ms": p95, "client.mean_ms": 30.0, "recovery.bytes_s": recovery}  # type: ignore[method-assign]

    cluster = FakeCluster(trade)
    outcome = run(cluster, task(budget=TrialBudget(trials=3)))
    means = [{"client.p95_ms": 60.0, "recovery.bytes_s": 12e6}, {"client.p95_ms": 80.0, "recovery.bytes_s": 20e6}]
    labels = ["trial 1", "trial 2"]
    assert outcome.to_dict()["front"] == {
        "metrics": ["client.p95_ms", "recovery.bytes_s"],
        "entries": [{"label": label, "means": own} for label, own in zip(labels, means)],
    }
    text = printed(outcome, [])
    assert "front client.p95_ms recovery.bytes_s trial 1 60 ms 12 MB/s trial 2 80 ms 20 MB/s Each keeps" in text
    alone = replace(outcome, trials=[trial for trial in outcome.trials if trial.run.label != "trial 2"])
    assert alone.to_dict()["front"] is None
    assert "Each keeps all hard" not in printed(alone, [])


def test_where_nothing_is_better_the_page_says_so_and_proposes_nothing() -> None:
    slo = parse_slo({"objectives": ["recovery.bytes_s >= 1.5 * baseline"]})
    text = printed(run(FakeCluster(), task(slo)), [])
    assert text.startswith("Nothing better found")
    assert "Written back" not in text


def test_the_page_says_how_the_search_went_and_counts_gross_misses_as_hopeless_and_not_as_failures() -> None:
    def strike(doing: Run, phase: str) -> None:
        bad = {"trial 1": 140.0, "trial 2": 400.0}.get(doing.label) if phase == "measuring" else None
        usual = FakeCluster.seen(cluster)
        cluster.seen = lambda: {**usual, "client.p95_ms": bad} if bad else FakeCluster.seen(cluster)  # type: ignore[method-assign]

    cluster = FakeCluster(strike)
    outcome = run(cluster, task(budget=TrialBudget(trials=4)), window=60)
    # an objective that is missed grossly is an answer too; an OSD that goes down is not
    assert [(t.hopeless, t.failed is not None) for t in outcome.trials if t.run.kind == "trial"][:2] == [
        (True, True),
        (True, True),
    ]
    text = printed(outcome, [])
    assert "The search ended (budget): all 4 trials are made." in text
    assert "2 broke a hard objective that they had to hold, 0 were stopped or could not be measured, 2 ended" in text


def test_a_profile_that_stays_is_not_shown_as_lowered_to_what_a_custom_one_may_reserve() -> None:
    in_force = {**fitting_reservations(NOW.settings), "osd_recovery_max_chunk": 8 << 20}
    wanted = replace(task(), in_force=in_force)
    whole = {**in_force, "osd_recovery_max_chunk": 1 << 20}
    outcome = replace(run(FakeCluster()), settings=whole, moves=wanted.moves(whole))
    assert in_force["osd_mclock_scheduler_client_res"] != NOW.settings["osd_mclock_scheduler_client_res"]
    assert outcome.to_dict()["winner"]["moves"] == {"osd_recovery_max_chunk": 1 << 20}
    text = printed(outcome, [])
    table = text[text.index("knob before winner") : text.index("per OSD")]
    assert table.count("osd_") == 1
    # what each class is sure of is as the profile has it
    assert text.split("per OSD")[1] == printed(replace(outcome, moves={}), []).split("per OSD")[1]


def test_what_stands_in_the_way_is_on_the_page() -> None:
    slo = parse_slo({"objectives": ["client.p95_ms <= 20 ms", "recovery.bytes_s >= 8 MB/s"]})
    assert "In the way: client.p95_ms <= 20 ms was met by nothing" in printed(run(FakeCluster(), task(slo)), [])


def test_how_far_a_model_was_right_is_on_the_page() -> None:
    outcome = replace(run(FakeCluster()), trust={"client.p95_ms": (0.87,)}, lessons=7)
    assert "(1: as it predicted, 0: not at all): client.p95_ms 0.87." in printed(outcome, [])
    assert "7 windows of earlier runs" in printed(outcome, [])


def test_the_winner_can_be_saved_as_a_profile_with_its_evidence(tmp_path: Path) -> None:
    class Opened:
        release, version = TENTACLE, "20.2.4"

    outcome = run(FakeCluster())
    profile = tuned_profile(outcome, slo_file.SloFile(SLO, scenario="client-recovery"), Opened, NOW)  # type: ignore[arg-type]
    profile_file.write(tmp_path / "tuned.yaml", profile)
    found = profile_file.read(tmp_path / "tuned.yaml")
    assert found == profile
    assert found.settings == outcome.settings
    assert found.slos == (SLO.to_dict(),)
    assert found.evidence[0]["measured"]["client.p95_ms"] == pytest.approx(
        outcome.choice.winner.means["client.p95_ms"], rel=1e-3
    )
