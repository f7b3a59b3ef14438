"""`ceph-tuner fleet recommend` on a fleet of small described clusters, with little effort."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, Dict, List

import distributed
import pytest

from ceph_tuner.fleet import portable_file
from ceph_tuner.recommend import SearchEffort
from ceph_tuner.workers import dask_workers
from ceph_tuner_cli import fleet_recommend, workers_option
from running_program import Run

pytestmark = pytest.mark.slow


CLUSTER = """\
schema: 1
release: tentacle
osds: 4
osd: {{drive: {{iops: 80 kIOPS, bandwidth: 1 GB/s, latency: 30 us}}, throttle: 256 KiB}}
pools: [{{name: rbd, pgs: 64}}]
clients: [{{pool: rbd, rate: {rate}, depth: 256}}]
background: {{recovery: [{{pool: rbd, objects: 400 k}}]}}
"""
SLO = "schema: 1\nname: wanted\nobjectives:\n  - client.p95_ms <= {}\n  - recovery.finish_s <= {}\n"
QUICK = "SearchEffort(batch=3, seeds=1, finalists=1, fresh=2, events=5e4, shortest_s=1.0)"


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> List[str]:
    """`reachable` is met, `greedy` wants too much, `other` names no SLO, `wrong` asks for what is not there."""
    monkeypatch.setattr(fleet_recommend, "EFFORT", eval(QUICK, {"SearchEffort": SearchEffort}))  # noqa: S307 - our own text
    for name, rate in (("small", 4000), ("busy", 20_000)):
        (tmp_path / f"{name}.yaml").write_text(CLUSTER.format(rate=rate))
    (tmp_path / "slo.yaml").write_text(SLO.format("0.8 * baseline", "12 h"))
    (tmp_path / "hard.yaml").write_text(SLO.format("10 us", "1 min"))
    (tmp_path / "scrub.yaml").write_text("schema: 1\nname: x\nobjectives: [scrub.interval_s <= 7 d]\n")
    lines = [
        "reachable: {lab: none-of-it, description: small.yaml, slo: slo.yaml, labels: {site: a}}",
        "greedy: {lab: none-of-it, description: busy.yaml, slo: hard.yaml}",
        "other: {lab: none-of-it, description: small.yaml}",
        "wrong: {lab: none-of-it, description: small.yaml, slo: scrub.yaml}",
    ]
    path = tmp_path / "fleet.yaml"
    path.write_text("schema: 1\nclusters:\n" + "".join(f"  {line}\n" for line in lines))
    return ["--fleet", str(path), "--trials", "6"]


def by_name(out: str) -> Dict[str, Any]:
    return {entry["cluster"]: entry for entry in json.loads(out)}


def test_each_cluster_has_a_row_and_what_fits_no_row_a_line(
    run: Run, fleet: List[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = run("fleet", "recommend", *fleet, "--processes", "2")
    assert code == 1
    assert max(map(len, out.splitlines())) <= 80
    rows = [line for line in out.splitlines()[1:] if not line.startswith(" ")]
    assert [row.split()[0] for row in rows] == ["reachable", "greedy", "other", "wrong"]
    assert "→ custom" in out or "→ other" in out
    assert out.count("no answer") == 2
    # the cluster itself is asked for what fleet.yaml does not say, and it is not there
    assert "other: " in err
    assert "no running lab" in err
    assert "wrong: scrub.interval_s <= 7 d: found no scrub in the description" in err
    assert "greedy: client.p95_ms <= 10 us is missed" in err.replace("0.01 ms", "10 us")
    assert "with no other work" in err
    assert "--output DIR keeps profiles" in err


def test_answers_and_profiles_are_kept_and_the_same_command_goes_on(run: Run, fleet: List[str], tmp_path: Path) -> None:
    folder = tmp_path / "out"
    command = ("fleet", "recommend", "reachable", "greedy", *fleet, "--output", str(folder), "--format", "json")
    code, out, err = run(*command)
    first = by_name(out)
    assert code == 1
    assert first["reachable"]["meets_hard_objectives"]
    assert not first["greedy"]["meets_hard_objectives"]
    (latency, _) = first["reachable"]["objectives"]
    assert latency["recommended"]["mean"] < latency["in_force"]["mean"]
    low, high = latency["recommended"]["interval"]
    assert low <= latency["recommended"]["mean"] <= high
    assert first["reachable"]["saved"] == str(folder / "reachable.yaml")
    assert portable_file.read(folder / "reachable.yaml").origin["cluster"] == "reachable"
    assert f"ceph-tuner fleet import {folder / 'reachable.yaml'} reachable" in err
    code, out, err = run(*command)
    assert (code, by_name(out)) == (1, first)
    assert err.count("(by an earlier run)") == 2
    assert "&id" not in run(*command[:-1], "yaml")[1]
    # what is in it is what the other commands read
    assert run("report", str(folder / "greedy.json"), "--output", str(tmp_path / "page.html"))[0] == 0
    assert "recovery.finish_s" in (tmp_path / "page.html").read_text()


def test_a_full_disk_costs_the_files_and_not_the_table(
    run: Run, fleet: List[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: str, target: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    command = ("fleet", "recommend", "reachable", *fleet, "--processes", "1", "--output", str(tmp_path / "out"))
    code, out, err = run(*command, "--format", "json")
    assert code == 0
    (found,) = by_name(out).values()
    assert found["better"]
    assert found["saved"] is None
    assert "warning: reachable: its answer is shown but not kept" in err
    assert "No space left on device" in err
    assert "fleet import" not in err


def test_where_all_is_well_it_ends_with_0_and_one_slo_serves_those_without(
    run: Run, fleet: List[str], tmp_path: Path
) -> None:
    code, out, _ = run("fleet", "recommend", "--label", "site=a", *fleet, "--processes", "1", "--format", "json")
    assert code == 0
    assert list(by_name(out)) == ["reachable"]
    slo = ("--slo", str(tmp_path / "slo.yaml"))
    code, told, _ = run("fleet", "recommend", "reachable", "other", *fleet, *slo, "--format", "json")
    assert code == 0
    # of equal clusters the second begins with what was found for the first, so it is no worse off
    other = by_name(told)["other"]
    assert by_name(told)["reachable"] == by_name(out)["reachable"]
    assert other["meets_hard_objectives"]


def test_over_dask_the_answers_are_the_same(run: Run, fleet: List[str]) -> None:
    command = ("fleet", "recommend", "reachable", "greedy", *fleet, "--format", "json")
    here = run(*command, "--processes", "1")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=":0", silence_logs=50
    ) as cluster:
        assert run(*command, "--dask", cluster.scheduler_address, "--insecure")[:2] == here[:2]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--dask", "tcp://127.0.0.1:1", "--insecure"], "no scheduler"),
        (["--dask", "tcp://127.0.0.1:1"], "without TLS"),
        (["--dask", "tcp://127.0.0.1:1", "--processes", "2"], "one of them"),
        (["--slo", "nothing.yaml"], "nothing.yaml"),
        (["--output", "/dev/null"], "/dev/null"),
    ],
)
def test_what_cannot_be_used_is_refused_before_anything_is_searched(
    run: Run, fleet: List[str], monkeypatch: pytest.MonkeyPatch, more: List[str], words: str
) -> None:
    monkeypatch.setattr(dask_workers, "DaskWorkers", partial(dask_workers.DaskWorkers, connect_s=0.5))
    code, out, err = run("fleet", "recommend", "reachable", *fleet, *more)
    assert (code, out) == (2, "")
    assert words in err
    assert len(err.strip().splitlines()) == 1


def test_without_dask_it_says_what_to_install(run: Run, fleet: List[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers_option, "find_spec", lambda name: None)
    code, _, err = run("fleet", "recommend", "reachable", *fleet, "--dask", "tcp://127.0.0.1:8786")
    assert (code, "the Python package `distributed`" in err) == (2, True)


def test_ctrl_c_shows_what_is_known_and_leaves_nothing_running(fleet: List[str], tmp_path: Path) -> None:
    code = "from ceph_tuner.recommend import SearchEffort; from ceph_tuner_cli import fleet_recommend as f, main\n"
    code += f"f.EFFORT = {QUICK}\nmain.main()"
    arguments = [*fleet[:2], "--trials", "400", "--processes", "3", "--output", str(tmp_path / "out")]
    running = subprocess.Popen(
        [sys.executable, "-c", code, "fleet", "recommend", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert running.stderr is not None
    # its row is done at once, the others are under way
    first = next(line for line in running.stderr if line.startswith("wrong: no answer"))
    assert "scrub" in first
    # as a terminal does: to every process of the group
    os.killpg(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert "Traceback" not in err
    assert out.count("not done") == 2
    assert "2 of 4 clusters are not done yet: the same command goes on" in err
    # who starts the workers sees by itself that nobody needs it any more
    for _ in range(200):
        if not left_of(running.pid):
            return
        time.sleep(0.05)
    pytest.fail(f"still there: {left_of(running.pid)}")


def left_of(group: int) -> List[str]:
    """Processes of a group that are not merely waiting for somebody to hear of their end."""
    lines = subprocess.run(["ps", "-eo", "pgid,stat,args"], capture_output=True, text=True, check=True).stdout
    return [line for line in lines.splitlines()[1:] if line.split()[0] == str(group) and line.split()[1][0] != "Z"]
