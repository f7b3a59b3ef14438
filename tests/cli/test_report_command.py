"""`ceph-tuner report` from its arguments to the file."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any, List

import pytest

from ceph_tuner.core.measure.history import History
from ceph_tuner.core.measure.sample import Measure, Window
from ceph_tuner_cli import report as report_command
from running_program import Run
from twins import small_twin

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "report"))

from example_answers import recommendation, tuning

pytestmark = pytest.mark.slow


CLUSTER = """\
schema: 1
name: small
release: tentacle
osds: 3
osd:
  drive: {iops: 2 kIOPS, bandwidth: 100 MB/s, latency: 30 us}
pools:
  - {name: rbd, pgs: 16, size: 2}
clients:
  - {pool: rbd, rate: 300 IOPS, block: 4 KiB}
background:
  recovery:
    - {pool: rbd, objects: 4 k, object_size: 4 MiB}
"""

GATHERED = Path(__file__).parents[1] / "data" / "lab" / "nvme.tar.zst"


@pytest.fixture
def answer(tmp_path: Path) -> str:
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(recommendation()), encoding="utf-8")
    return str(path)


def test_an_answer_becomes_a_page(answer: str, run: Run, tmp_path: Path) -> None:
    output = tmp_path / "page.html"
    code, out, err = run("report", answer, "--output", str(output))
    assert (code, err) == (0, "")
    assert f"written: {output}" in out
    text = output.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert "from answer.json" in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answer.json", "page.html"]


def test_standard_input_is_an_answer_as_well(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = io.TextIOWrapper(io.BytesIO(json.dumps(tuning()).encode()))
    monkeypatch.setattr(sys, "stdin", given)
    assert run("report", "-", "-o", str(tmp_path / "page.html"))[0] == 0
    assert "from standard input" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_page_is_replaced_only_by_force_and_only_by_a_whole_one(answer: str, run: Run, tmp_path: Path) -> None:
    output = tmp_path / "page.html"
    output.write_text("mine", encoding="utf-8")
    code, _, err = run("report", answer, "-o", str(output))
    assert code == 2
    assert "--force" in err
    bad = tmp_path / "bad.json"
    bad.write_text("{}", encoding="utf-8")
    assert run("report", str(bad), "-o", str(output), "--force")[0] == 2
    assert output.read_text(encoding="utf-8") == "mine"
    assert run("report", answer, "-o", str(output), "--force")[0] == 0
    assert "nvme-node" in output.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "{tmp}/x.html"], "neither an answer nor --cluster"),
        (["{tmp}/missing.json", "-o", "{tmp}/x.html"], "no such file"),
        (["{tmp}", "-o", "{tmp}/x.html"], "a directory"),
        (["{tmp}/answer.json", "-o", "{tmp}/nowhere/x.html"], "no directory"),
        (["-", "--slo", "x.yaml", "-o", "{tmp}/x.html"], "no described cluster"),
        (["{tmp}/answer.json"], "--output"),
    ],
)
def test_what_cannot_be_used_is_told_in_a_line(
    arguments: List[str], words: str, answer: str, run: Run, tmp_path: Path
) -> None:
    code, out, err = run("report", *(argument.format(tmp=tmp_path) for argument in arguments))
    assert (code, out) == (2, "")
    assert words in err
    assert not (tmp_path / "x.html").exists()


def test_a_cluster_tells_its_past(answer: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster: Any = small_twin()
    monkeypatch.setattr(report_command, "open_cluster", lambda name: cluster)
    now = cluster.clock.now()
    for number in range(5):
        start = now - 600 + 60 * number
        History(cluster.store).add_window(Window(start, start + 60, {"client.p95_ms": Measure(4.0, 0.5, 6)}))
    alone, beside = tmp_path / "alone.html", tmp_path / "beside.html"
    assert run("report", "--cluster", "twin", "-o", str(alone))[0] == 0
    assert "Minute by minute" in alone.read_text(encoding="utf-8")
    assert run("report", answer, "--cluster", "twin", "-o", str(beside))[0] == 0
    text = beside.read_text(encoding="utf-8")
    assert "Minute by minute" in text
    assert "answer.json and the memory of cluster twin" in text
    # further back than that there is nothing
    late = tmp_path / "late.html"
    cluster.twin.pass_over(7200)
    assert run("report", "--cluster", "twin", "--hours", "1", "-o", str(late))[0] == 0
    assert "Minute by minute" not in late.read_text(encoding="utf-8")


def test_a_gathered_file_tells_the_past_of_its_cluster(answer: str, run: Run, tmp_path: Path) -> None:
    state, output = str(GATHERED), tmp_path / "past.html"
    assert run("report", "--from", state, "-o", str(output))[0] == 0
    assert f"the memory of {GATHERED.name}" in output.read_text(encoding="utf-8")
    assert run("report", answer, "--from", state, "-o", str(output), "--force")[0] == 0
    assert f"answer.json and the memory of {GATHERED.name}" in output.read_text(encoding="utf-8")
    code, _, err = run("report", "--from", state, "--cluster", "twin", "-o", str(output), "--force")
    assert (code, "one of them" in err) == (2, True)


@pytest.mark.usefixtures("quick")
def test_a_recommendation_is_made_where_there_is_none_yet(run: Run, tmp_path: Path) -> None:
    described, slo, output = tmp_path / "cluster.yaml", tmp_path / "slo.yaml", tmp_path / "page.html"
    described.write_text(CLUSTER, encoding="utf-8")
    slo.write_text("schema: 1\nname: wanted\nobjectives:\n  - client.p95_ms <= 0.9 * baseline\n", encoding="utf-8")
    code, out, err = run("report", str(described), "--slo", str(slo), "--trials", "4", "-o", str(output))
    assert (code, out.count("\n")) == (0, 1), err
    text = output.read_text(encoding="utf-8")
    assert "small: recommendation" in text
    assert "high_recovery_ops" in text
    assert "Everything here is predicted by a model" in text


def test_a_recommendation_that_cannot_be_made_leaves_no_page(run: Run, tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text("schema: 1\n", encoding="utf-8")
    (tmp_path / "slo.yaml").write_text("schema: 1\n", encoding="utf-8")
    arguments = [str(tmp_path / "cluster.yaml"), "--slo", str(tmp_path / "slo.yaml"), "-o", str(tmp_path / "x.html")]
    assert run("report", *arguments)[0] == 2
    assert not (tmp_path / "x.html").exists()
