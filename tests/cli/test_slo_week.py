"""`ceph-tuner slo week` of a cluster: each policy and hour on its twin, and the past against the calendar."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, List, Tuple

import pytest
from small_cluster import CLUSTER

from ceph_tuner.core.goals.slo_calendar import parse_slo_calendar
from ceph_tuner.core.goals.stored_slo import store_slo
from ceph_tuner.core.measure.history import History
from ceph_tuner.core.measure.sample import Measure, Window
from ceph_tuner.recommend import SearchEffort, policy_hours
from ceph_tuner_cli import slo_week
from running_program import Run
from twin_cluster.cluster import TwinCluster
from twins import small_twin

pytestmark = pytest.mark.slow

WANTED = """\
schema: 1
name: x
objectives: [client.p95_ms <= 10 s, ops.slow <= 0]
calendar:
  policies:
    - {name: strict, hours: mon-sun 08:00-12:00, objectives: [client.p95_ms <= 1 us]}
"""
QUICK = ("--trials", "1", "--processes", "1")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    little = SearchEffort(seeds=1, fresh=2, events=1e4, shortest_s=1.0)
    monkeypatch.setattr(slo_week, "SearchEffort", lambda: little)
    monkeypatch.setattr(policy_hours, "EFFORT", little)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "slo.yaml"
    path.write_text(WANTED)
    return str(path)


@pytest.fixture
def twin(monkeypatch: pytest.MonkeyPatch) -> TwinCluster:
    cluster = small_twin()
    monkeypatch.setattr(slo_week, "open_cluster", lambda name: cluster)
    return cluster


def keep(
    cluster: TwinCluster,
    hours: int,
    iops: float,
    p95_ms: float,
    more: float = 1.0,
    busy: Tuple[int, float] = (24, 0.0),
) -> None:
    """Minutes of so many hours before now, and so all of them but the last as hours. `busy`: an hour of the day."""
    history, now = History(cluster.store), cluster.clock.now() // 3600.0 * 3600.0
    for hour in range(hours, -1, -1):
        at_busy = (now - 3600.0 * hour) // 3600.0 % 24.0 == busy[0]
        rate = busy[1] if at_busy else iops + hour * more
        measures = {
            "client.iops": Measure(rate, 0.0, 60),
            "client.write_iops": Measure(rate, 0.0, 60),
            "client.bytes_s": Measure(4096.0 * rate, 0.0, 60),
            "client.p95_ms": Measure(p95_ms, 0.0, 60),
        }
        history.add_window(Window(now - 3600.0 * hour, now - 3600.0 * hour + 60.0, measures))


def test_a_cluster_is_told_by_policy_by_hour_and_by_its_past(run: Run, twin: TwinCluster, file: str) -> None:
    keep(twin, 24, 50.0, 2.0)
    code, out, err = run("slo", "week", file, "--cluster", "twin", *QUICK, "--format", "json")
    document = json.loads(out)
    # a microsecond is kept by nothing
    assert code == 1
    predicted = document["predicted"]
    assert (predicted["base"]["keeps_hard"], predicted["strict"]["keeps_hard"]) == (True, False)
    assert predicted["base"]["left_out"] == ["ops.slow <= 0"]
    assert "base: nothing is said of ops.slow <= 0: a metric that the twin does not predict" in " ".join(err.split())
    hours = document["hours"]
    assert {row["hour"] for row in hours} == set(range(24))
    strict = [row for row in hours if row["policy"] == "strict"]
    assert [row["hour"] for row in strict] == [8, 9, 10, 11]
    assert {row["verdicts"]["in_force"][0]["met"] for row in strict} == {False}
    assert {row["verdicts"]["in_force"][0]["met"] for row in hours if row["policy"] == "base"} == {True}
    assert all(50.0 <= row["client_iops"] <= 74.0 for row in hours)
    # the search is at the policy's busiest hour
    most = max(row["client_iops"] for row in hours if row["policy"] == "base")
    assert predicted["base"]["client_iops"] == most
    past = document["past"]
    assert past["windows"] == 24
    assert {each["policy"] for each in past["missed"]} == {"strict"}
    assert len(past["missed"]) == 4


def test_people_see_the_hours_and_what_was_missed(run: Run, twin: TwinCluster, file: str) -> None:
    keep(twin, 24, 50.0, 2.0)
    code, out, _ = run("slo", "week", file, "--cluster", "twin", *QUICK)
    words = " ".join(out.split())
    assert code == 1
    assert "by hour of the day, at the most that clients did in that hour" in words
    assert "of 24 hours that the history keeps, 4 miss the calendar's objectives" in words
    assert "client.p95_ms <= 0.001 ms: 2 ms" in words
    assert max(map(len, out.splitlines())) <= 80


def test_hours_and_policies_without_clients_miss_nothing(run: Run, twin: TwinCluster, file: str) -> None:
    # less than an operation in a run of the twin
    keep(twin, 24, 0.0, 2.0, more=1e-3)
    code, out, err = run("slo", "week", file, "--cluster", "twin", *QUICK, "--format", "json")
    document = json.loads(out)
    assert code == 0
    for entry in document["predicted"].values():
        assert (entry["keeps_hard"], entry["verdicts"], entry["settings"]) == (None, [], {})
        assert entry["reason"] == "clients do nothing"
    assert {(row["reason"], len(row["verdicts"])) for row in document["hours"]} == {("clients do nothing", 0)}
    assert "strict: nothing is said of client.p95_ms <= 0.001 ms: clients do nothing" in " ".join(err.split())
    code, out, _ = run("slo", "week", file, "--cluster", "twin", *QUICK)
    assert (code, max(map(len, out.splitlines())) <= 80) == (0, True)
    assert "none is judged: clients do nothing" in " ".join(out.split())


def test_a_cluster_without_clients_now_is_told_by_the_hours_that_had_some(
    run: Run, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    twin = small_twin(clients=())
    monkeypatch.setattr(slo_week, "open_cluster", lambda name: twin)
    twin.clock.sleep(20.0)
    keep(twin, 24, 0.0, 2.0, more=0.0, busy=(10, 50.0))
    code, out, err = run("slo", "week", file, "--cluster", "twin", *QUICK, "--format", "json")
    document = json.loads(out)
    judged = {row["hour"] for row in document["hours"] if row["verdicts"]}
    assert judged == {10}
    assert (code, document["predicted"]["strict"]["keeps_hard"]) == (1, False)
    assert document["predicted"]["base"]["keeps_hard"] is None
    words = " ".join(err.split())
    assert "their work is taken to be of the kind of the busiest kept hour" in words
    assert "base: nothing is said of client.p95_ms <= 10000 ms: clients do nothing" in words


def test_without_a_file_it_is_the_cluster_s_own_calendar(run: Run, twin: TwinCluster) -> None:
    code, _, err = run("slo", "week", "--cluster", "twin", *QUICK)
    assert code == 2
    assert "the cluster keeps no objectives" in " ".join(err.split())
    store_slo(twin.store, parse_slo_calendar({"name": "own", "objectives": ["client.p95_ms <= 10 s"]}))
    code, out, err = run("slo", "week", "--cluster", "twin", *QUICK, "--format", "json")
    document = json.loads(out)
    assert (code, document["slo"], document["file"]) == (0, "own", None)
    assert (document["hours"], document["past"]["windows"]) == ([], 0)
    assert "no hour is kept in the history" in " ".join(err.split())


def test_a_described_cluster_has_no_past(run: Run, tmp_path: Path, file: str) -> None:
    described = tmp_path / "cluster.yaml"
    described.write_text(CLUSTER)
    document = json.loads(run("slo", "week", file, "--cluster-file", str(described), *QUICK, "--format", "json")[1])
    assert "past" not in document
    assert document["hours"] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "no FILE"),
        (["FILE", "--cluster", "twin", "--cluster-file", "x.yaml"], "two of --cluster"),
        (["--cluster-file", "x.yaml"], "no FILE"),
        (["FILE", "--begin", "yesterday"], "--begin"),
    ],
)
def test_what_makes_no_sense_is_refused(run: Run, twin: Any, file: str, arguments: List[str], words: str) -> None:
    code, _, err = run("slo", "week", *(file if each == "FILE" else each for each in arguments))
    assert code == 2
    assert words in " ".join(err.split())
