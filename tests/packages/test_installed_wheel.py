"""The wheel in an environment of its own, with the locked packages, far from any checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Callable, List, Tuple

import pytest

import ceph_tuner
import python_distributions

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parent.parent.parent
Run = Callable[..., str]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`ceph-tuner` as `pipx install` makes it: a virtual environment with this wheel."""
    place = tmp_path_factory.mktemp("wheel")
    _, wheel = python_distributions.build(ROOT, place)
    pip = [str(place / "environment/bin/pip"), "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    locked: List[str] = ["--require-hashes", "-r", str(ROOT / "requirements/program.txt")]
    for command in ([sys.executable, "-m", "venv", str(place / "environment")], [*pip, *locked], [*pip, str(wheel)]):
        subprocess.run(command, check=True, cwd=place, env=environment())
    return place / "environment/bin/ceph-tuner"


def environment() -> dict:
    """The shell's, without what leads to this checkout."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


@pytest.fixture
def run(program: Path, tmp_path: Path) -> Run:
    """Run it in an empty directory; what it prints."""

    def in_empty_directory(*words: str, codes: Tuple[int, ...] = (0,)) -> str:
        done = subprocess.run(
            [program, *words], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False, timeout=900
        )
        assert done.returncode in codes, done.stdout + done.stderr
        return done.stdout

    return in_empty_directory


@pytest.mark.timeout(1800)
def test_it_recommends_settings_for_an_example_that_it_brings(run: Run) -> None:
    assert run("--version") == f"ceph-tuner {ceph_tuner.__version__}\n"
    cluster, slo = run("example", "nvme-node").split()
    few = ["--trials", "2", "--live-only", "--processes", "1"]
    # 1: a search of two trials misses an objective
    said = json.loads(run("recommend", cluster, "--slo", slo, *few, "--format", "json", codes=(0, 1)))
    assert said["release"] == "tentacle"
    assert {"balanced", "high_client_ops"} <= {each["label"] for each in said["predictions"]}


def test_profiles_and_schemas_come_along(run: Run) -> None:
    assert "balanced" in run("profile", "ls", "--release", "reef")
    run("example", "scrub")
    run("slo", "check", "slo-scrub.yaml")


@pytest.mark.cluster
@pytest.mark.timeout(900)
def test_it_brings_a_lab_up_and_installs_its_plugin_there(run: Run) -> None:
    name = f"test-{os.getpid()}-wheel"
    run("lab", "up", "--name", name)
    try:
        run("mgr", "install", "--cluster", name)
        installed = json.loads(run("mgr", "status", "--cluster", name, "--format", "json"))
        assert installed["current"] is True
        assert installed["running"] == installed["build"]
    finally:
        run("lab", "down", "--name", name)
