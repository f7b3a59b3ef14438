from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Optional

import pytest
from small_cluster import CLUSTER

from ceph_tuner.core.goals.stored_slo import BASELINE
from ceph_tuner_cli import cluster_option, slo
from running_program import Run
from twins import small_twin


@pytest.mark.parametrize(("baseline", "met", "code"), [(None, None, 1), (1e6, True, 0), (1e-6, False, 1)])
def test_a_relative_bound_is_held_against_the_baseline_that_the_cluster_keeps(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, baseline: Optional[float], met: Optional[bool], code: int
) -> None:
    twin = small_twin()
    monkeypatch.setattr(cluster_option, "open_cluster", lambda name: twin)
    monkeypatch.setattr(slo, "SystemClock", lambda: twin.clock)
    if baseline is not None:
        twin.store.set(BASELINE, json.dumps({"client.p95_ms": baseline}))
    path = tmp_path / "slo.yaml"
    path.write_text("schema: 1\nname: x\nobjectives: [client.p95_ms <= 1.2 * baseline]\n")
    ended, out, _ = run("slo", "measure", str(path), "--cluster", "twin", "--format", "json")
    (verdict,) = json.loads(out)["verdicts"]
    assert (ended, verdict["met"]) == (code, met)


def test_a_rate_of_work_that_is_not_there_is_idle_and_not_missed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = small_twin()
    monkeypatch.setattr(cluster_option, "open_cluster", lambda name: twin)
    monkeypatch.setattr(slo, "SystemClock", lambda: twin.clock)
    path = tmp_path / "slo.yaml"
    path.write_text("schema: 1\nname: x\nobjectives: [client.iops >= 1 IOPS, recovery.bytes_s >= 12 MB/s]\n")
    command = ("slo", "measure", str(path), "--cluster", "twin")
    code, out, _ = run(*command, "--format", "json")
    found = json.loads(out)
    assert (code, found["idle"]) == (0, ["recovery.bytes_s >= 12 MB/s"])
    assert [verdict["met"] for verdict in found["verdicts"]] == [True, None]
    assert "idle" in run(*command)[1]


EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CALENDAR = str(EXAMPLES / "slo-calendar.yaml")


def test_the_week_of_a_calendar_shows_who_holds_when_and_when_the_clock_is_set(run: Run) -> None:
    # the clock is set on Sunday the 28th
    code, out, _ = run("slo", "week", CALENDAR, "--begin", "2027-03-26T00:00", "--days", "3", "--format", "json")
    document = json.loads(out)
    assert code == 0
    # midnight in Berlin
    assert document["from"] == datetime(2027, 3, 25, 23, tzinfo=timezone.utc).timestamp()
    assert [spell["policy"] for spell in document["spells"]] == ["night", "base", "office", "base"]
    assert [(each["before"], each["after"]) for each in document["clock_changes"]] == [(3600, 7200)]
    assert [(each["name"], each["hours_in_force"] > 0) for each in document["policies"]] == [
        ("base", True),
        ("office", True),
        ("night", True),
        ("christmas", False),
    ]
    shown = run("slo", "week", CALENDAR, "--begin", "2027-03-26T00:00", "--days", "3")[1]
    assert "the clock is set forward, from UTC+1 h to UTC+2 h" in shown
    assert "Fri 2027-03-26 08:00" in shown
    assert "not in force in these days: christmas" in shown
    assert "office: boosts that may run: recovery\n" in shown
    assert "christmas: no boost may run" in shown
    assert [each["boosts"] for each in document["policies"]][1::2] == [["recovery"], []]


def test_the_week_of_a_file_without_a_calendar_is_the_base(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "slo.yaml"
    path.write_text("schema: 1\nname: x\nobjectives: [client.p95_ms <= 8 ms]\n")
    document = json.loads(run("slo", "week", str(path), "--format", "json")[1])
    assert [(each["name"], each["hours_in_force"]) for each in document["policies"]] == [("base", 168.0)]


def test_a_check_tells_all_policies_back(run: Run) -> None:
    shown = run("slo", "check", CALENDAR)[1]
    for words in (
        "policy office: mon-fri 08:00-20:00 (Europe/Berlin)",
        "without client.p95_ms",
        "<= 12 ms",
        "no boost may run",
    ):
        assert words in shown
    (document,) = json.loads(run("slo", "check", CALENDAR, "--format", "json")[1])
    assert [policy["name"] for policy in document["calendar"]["policies"]] == ["office", "night", "christmas"]


def test_a_measurement_is_held_against_the_policy_of_its_moment(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = small_twin()
    monkeypatch.setattr(cluster_option, "open_cluster", lambda name: twin)
    monkeypatch.setattr(slo, "SystemClock", lambda: twin.clock)
    path = tmp_path / "slo.yaml"
    path.write_text(
        "schema: 1\nname: x\nobjectives: [client.iops >= 1e9]\ncalendar:\n  policies:\n"
        "    - {name: always, hours: mon-sun, objectives: [client.iops >= 1]}\n"
    )
    code, out, _ = run("slo", "measure", str(path), "--cluster", "twin", "--format", "json")
    document = json.loads(out)
    assert (code, document["policy"]) == (0, "always")
    assert [verdict["objective"] for verdict in document["verdicts"]] == ["client.iops >= 1 /s"]


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_what_the_twin_predicts_under_each_policy(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "slo.yaml"
    path.write_text(
        "schema: 1\nname: x\nobjectives: [client.p95_ms <= 10 s]\ncalendar:\n  policies:\n"
        "    - {name: hopeless, hours: mon-fri, objectives: [client.p95_ms <= 1 us]}\n"
    )
    described = tmp_path / "cluster.yaml"
    described.write_text(CLUSTER)
    code, out, _ = run("slo", "week", str(path), "--cluster-file", str(described), "--trials", "1", "--format", "json")
    predicted = json.loads(out)["predicted"]
    assert code == 1
    assert [(name, predicted[name]["keeps_hard"]) for name in ("base", "hopeless")] == [
        ("base", True),
        ("hopeless", False),
    ]
    assert predicted["hopeless"]["verdicts"][0]["met"] is False
