"""`ceph-tuner compare-queues`: a described cluster under both queues, and a trial on a host that is only planned."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import List, Tuple

import pytest

from ceph_tuner.recommend import SearchEffort
from ceph_tuner_cli import cluster_option, render
from running_program import Run
from twin_cluster.cluster import TwinCluster
from twins import small_twin

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = """\
schema: 1
release: tentacle
osds: 4
osd:
  drive: {iops: 1075, bandwidth: 60 MiB/s}
  capacity_iops: 935
  bandwidth: 60 MiB/s
  shards: 1
  threads_per_shard: 5
pools:
  - {name: rbd, pgs: 32, size: 2}
clients:
  - {pool: rbd, rate: 300, depth: 64}
background:
  recovery:
    - {pool: rbd, objects: 400 k, object_size: 1 MiB}
"""
SLO = "schema: 1\nobjectives:\n  - client.p95_ms <= 60 ms\n  - recovery.bytes_s >= 1 MB/s\n"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> List[str]:
    small = SearchEffort(seeds=2, fresh=3, finalists=1, events=5e4, shortest_s=3.0, longest_s=4.0)
    monkeypatch.setattr("ceph_tuner_cli.compare_queues.SearchEffort", lambda: small)
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "slo.yaml").write_text(SLO)
    return [str(tmp_path / "cluster.yaml"), "--slo", str(tmp_path / "slo.yaml"), "--trials", "1", "--processes", "1"]


@pytest.fixture
def twin(monkeypatch: pytest.MonkeyPatch) -> TwinCluster:
    made = small_twin(hosts=4)
    monkeypatch.setattr(cluster_option, "open_cluster", lambda name: made)
    return made


def test_programs_get_both_queues_their_orders_the_cost_and_the_caveats(run: Run, files: List[str]) -> None:
    code, out, _ = run("compare-queues", *files, "--format", "json")
    found = json.loads(out)
    assert code == 0
    assert found["trial"] is None
    comparison = found["comparison"]
    assert comparison["better"] in ("wpq", "mClock", "undecided")
    assert comparison["wpq"]["runs"] == 3
    assert {"balanced", "high_client_ops", "high_recovery_ops"} <= {entry["label"] for entry in comparison["mclock"]}
    for entry in comparison["mclock"]:
        assert [order["metric"] for order in entry["orders"]] == ["client.p95_ms", "recovery.bytes_s"]
    assert comparison["cost"]["osds_restarted"] == 4
    assert "published orders" in comparison["caveats"][0]


def test_sleeps_of_the_description_s_settings_count(
    run: Run, files: List[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(files[0]).write_text(CLUSTER + "settings: {osd_recovery_sleep_degraded: 0.5}\n")
    _, out, _ = run("compare-queues", *files, "--format", "json")
    comparison = json.loads(out)["comparison"]
    assert comparison["better"] == "not told"
    assert comparison["sleeps_under_wpq"] == {"recovery": "osd_recovery_sleep_degraded 0.5 s"}
    monkeypatch.setattr(render.console, "_width", 80)
    _, out, _ = run("compare-queues", *files)
    words = " ".join(out.split())
    assert "it cannot be told which queue does better, as wpq sleeps between items of work" in words
    assert "not told: wpq sleeps between items of that work" in words


def test_the_page_fits_80_columns(run: Run, files: List[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render.console, "_width", 80)
    code, out, _ = run("compare-queues", *files)
    assert code == 0
    assert max(len(line) for line in out.partition("All OSDs to wpq:")[0].splitlines()) <= 80
    assert "4 OSDs restarted" in " ".join(out.split())


def test_the_way_of_all_osds_to_wpq_and_back_is_for_the_cluster_that_is_named(
    run: Run, files: List[str], twin: TwinCluster
) -> None:
    code, out, _ = run("compare-queues", *files, "--cluster", "a")
    way, _, way_back = out.partition("The way back, at the same cost:")
    assert code == 0
    assert "\n  ceph-tuner apply --cluster a --set osd_op_queue=wpq --yes\n" in way
    assert "\n  ceph-tuner rollback --cluster a\n" in way_back
    _, out, _ = run("compare-queues", *files, "--format", "json")
    comparison = json.loads(out)["comparison"]
    assert comparison["undo"][0]["command"] == "ceph-tuner rollback --cluster ceph"
    assert [step["for_each"] for step in comparison["steps"]] == ["", "", "OSD", ""]


def test_a_trial_is_planned_and_nothing_is_written(
    run: Run, twin: TwinCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render.console, "_width", 80)
    before = twin.config.dump(), twin.store.keys("")
    code, out, err = run("compare-queues", "--cluster", "a", "--host", "h2")
    assert (code, "nothing is changed" in err) == (0, True)
    assert (twin.config.dump(), twin.store.keys("")) == before
    assert "\n  ceph config set osd.2 osd_op_queue wpq\n" in out
    assert "\n  ceph config rm osd.2 osd_op_queue\n" in out
    assert max(len(line) for line in out.splitlines() if not line.startswith("  ")) <= 80


def test_an_osd_that_will_change_its_queue_at_its_next_restart_is_no_part_of_a_trial(
    run: Run, twin: TwinCluster
) -> None:
    twin.config.set("osd.2", "osd_op_queue", "wpq")
    code, _, err = run("compare-queues", "--cluster", "a", "--host", "h2")
    assert (code, "OSDs under mclock_scheduler, and wpq after a restart" in err) == (2, True)
    _, out, _ = run("compare-queues", "--cluster", "a", "--host", "h1", "--format", "json")
    assert set(json.loads(out)["trial"]["controls"]) == {"h0", "h3"}


def test_a_trial_for_programs(run: Run, twin: TwinCluster) -> None:
    code, out, _ = run("compare-queues", "--cluster", "a", "--format", "json")
    trial = json.loads(out)["trial"]
    assert (code, trial["host"], trial["osds"], trial["tried"]) == (0, "h0", [0], "wpq")
    assert set(trial["controls"]) == {"h1", "h2", "h3"}
    assert {step["kind"] for step in trial["steps"]} == {"run", "wait", "measure"}
    assert trial["minutes"] >= 30


def test_stretches_of_a_trial_are_measured_into_a_file_and_compared(
    run: Run, twin: TwinCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render.console, "_width", 80)
    measure = ("compare-queues", "--cluster", "a", "--measure", str(tmp_path / "trial.json"), "--minutes", "2")
    before = twin.config.dump(), twin.store.keys("")
    code, out, _ = run(*measure, "--host", "h2")
    assert (code, max(map(len, out.splitlines())) <= 80) == (0, True)
    assert "The trial on h2, beside h0, h1, h3:" in out
    # the file knows the host
    code, out, _ = run(*measure, "--format", "json")
    found = json.loads(out)
    assert (code, found["host"], found["osds"], set(found["controls"])) == (0, "h2", [2], {"h0", "h1", "h3"})
    assert [(stretch["queue"], stretch["minutes"]) for stretch in found["stretches"]] == [("mclock_scheduler", 2)] * 2
    first, second = ({row["metric"]: row for row in stretch["metrics"]} for stretch in found["stretches"])
    writes = second["client writes, mean ms"]
    assert first["client writes, mean ms"]["change"] is None
    assert writes["host"] > 0
    mean, low, high = writes["change"]
    assert low <= mean <= high
    assert (twin.config.dump(), twin.store.keys("")) == before
    code, _, err = run(*measure, "--host", "h1")
    assert (code, "a trial on h2" in err) == (2, True)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("cluster.yaml",),
        ("--slo", "slo.yaml", "--cluster", "a"),
        ("--cluster", "a", "--minutes", "3"),
        ("--measure", "trial.json"),
        ("cluster.yaml", "--slo", "slo.yaml", "--cluster", "a", "--measure", "trial.json"),
    ],
)
def test_half_a_question_is_refused(run: Run, arguments: Tuple[str, ...]) -> None:
    code, out, err = run("compare-queues", *arguments)
    assert (code, out) == (2, "")
    assert re.match(r"error: (compare-queues|--measure|--minutes): ", err)
