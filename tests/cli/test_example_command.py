"""Examples come along as files that one can begin with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ceph_tuner import shipped
from running_program import Run

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"


def test_every_file_of_the_folder_belongs_to_one_example() -> None:
    names = sorted(name for files in shipped.examples().values() for name in files)
    assert names == sorted(path.name for path in EXAMPLES.glob("*"))


def test_the_list_says_what_each_is_about(run: Run) -> None:
    code, out, _ = run("example", "--format", "json")
    listed = {entry["name"]: entry for entry in json.loads(out)}
    assert code == 0
    assert listed["nvme-60"]["files"] == ["cluster-nvme-60.yaml", "slo-nvme-60.yaml"]
    assert listed["nvme-60"]["about"].startswith("10 hosts with 60 OSDs on NVMe")
    assert listed["scrub"]["files"] == ["slo-scrub.yaml"]
    assert all(entry["about"].endswith(".") and len(entry["about"]) > 20 for entry in listed.values())


@pytest.mark.parametrize("name", [name for name, files in shipped.examples().items() if len(files) == 2])
def test_its_files_are_written_and_checked_by_the_command_that_is_named_next(
    name: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run("example", name)
    assert code == 0
    assert out.split() == [f"cluster-{name}.yaml", f"slo-{name}.yaml"]
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (EXAMPLES / path.name).read_bytes()
    words = err.partition("next: ceph-tuner ")[2].split()
    assert words[0] == "recommend"
    assert run("recommend", "--check", *words[1:])[0] == 0


def test_a_file_that_is_there_stays_without_force(run: Run, tmp_path: Path) -> None:
    mine = tmp_path / "slo-nvme-node.yaml"
    mine.write_text("mine\n", encoding="utf-8")
    code, _, err = run("example", "nvme-node", "--directory", str(tmp_path))
    assert code == 2
    assert "--force" in err
    assert [path.name for path in tmp_path.iterdir()] == [mine.name]
    assert mine.read_text(encoding="utf-8") == "mine\n"
    assert run("example", "nvme-node", "--directory", str(tmp_path), "--force")[0] == 0
    assert mine.read_bytes() == (EXAMPLES / mine.name).read_bytes()


def test_an_unknown_one_is_answered_with_those_that_there_are(run: Run) -> None:
    code, _, err = run("example", "nvme")
    assert code == 2
    assert "nvme-node" in err
