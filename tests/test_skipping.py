"""What is skipped on Debian as root has failed, unless it was left out on purpose."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import debian_packages

TESTS = Path(__file__).resolve().parent

SKIPPED = """
import pytest

def test_without_a_reason_here():
    pytest.skip("no such program")

@pytest.mark.skipif(True, reason="no such program")
def test_marked():
    pass

@pytest.mark.xfail(reason="known")
def test_expected():
    raise AssertionError
"""

ON_PURPOSE = """
import pytest

@pytest.mark.cluster
def test_on_a_lab():
    pass
"""


def run(folder: Path, text: str, **variables: str) -> str:
    (folder / "test_it.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", "--rootdir", str(folder)]
    environment = {
        **os.environ,
        "PYTEST_ADDOPTS": "",
        **variables,
        "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path]),
    }
    done = subprocess.run(
        [*command, "-c", str(TESTS.parent / "pyproject.toml"), str(folder)],
        capture_output=True, text=True, check=False, timeout=120, env=environment,
    )  # fmt: skip
    return done.stdout


@pytest.mark.skipif(not debian_packages.on_debian_as_root(), reason="elsewhere tests may be skipped")
def test_on_debian_as_root_a_skip_is_a_failure_that_tells_its_reason(tmp_path: Path) -> None:
    said = run(tmp_path, SKIPPED)
    assert " 1 failed, 1 xfailed, 1 error in " in said
    assert (
        "test_without_a_reason_here was left out, which no test is on Debian as root: Skipped: no such program" in said
    )


def test_what_is_left_out_on_purpose_is_no_failure(tmp_path: Path) -> None:
    said = run(tmp_path, ON_PURPOSE, CEPH_TUNER_LAB="0")
    assert " 1 skipped in " in said
    assert "1 real-cluster tests skipped: CEPH_TUNER_LAB is 0" in said
