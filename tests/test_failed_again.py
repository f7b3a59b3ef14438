"""What failed beside other tests runs again by itself, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Sequence

import pytest

import failed_again

pytestmark = pytest.mark.slow

MODULE = """
import pathlib
import pytest

@pytest.mark.xdist_group("lab")
@pytest.mark.parametrize("case", ["a@b", "c"])
def test_late(case):
    seen = pathlib.Path("seen-" + case)
    late = not seen.exists()
    seen.touch()
    assert not late

def test_else():
    pass
"""


def rerun(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, failed_again.__file__]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def run(folder: Path) -> None:
    (folder / "test_made.py").write_text(MODULE)
    command = [sys.executable, "-m", "pytest", "-n", "1", "--dist", "loadgroup"]
    assert subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 1


def test_what_passes_by_itself_has_passed_and_nothing_else_runs(tmp_path: Path) -> None:
    run(tmp_path)
    assert sorted(failed_again.failed(tmp_path / failed_again.FAILED)) == [
        "test_made.py::test_late[a@b]",
        "test_made.py::test_late[c]",
    ]
    again = rerun(tmp_path)
    assert (again.returncode, "2 passed" in again.stdout) == (0, True), again.stdout
    # nothing is left that failed
    assert rerun(tmp_path).returncode == 1


def test_what_fails_again_has_failed(tmp_path: Path) -> None:
    run(tmp_path)
    (tmp_path / "seen-c").unlink()
    again = rerun(tmp_path)
    assert (again.returncode > 0, "1 failed" in again.stdout) == (True, True), again.stdout


@pytest.mark.parametrize("names", [(), [f"test_made.py::test_{number}" for number in range(failed_again.MOST + 1)]])
def test_nothing_and_many_are_no_accident(names: Sequence[str], tmp_path: Path) -> None:
    path = tmp_path / failed_again.FAILED
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(dict.fromkeys(names, True)))
    again = rerun(tmp_path)
    assert again.returncode == 1
    assert f"{len(names)} tests are known to have failed" in again.stderr
