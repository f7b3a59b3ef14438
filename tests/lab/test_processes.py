from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Iterator

import pytest

from ceph_lab.processes import MARK, ProcessId, carries, identify, kill, kill_all, marked, run
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed


def sleeper(directory: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "60"], env={**os.environ, MARK: str(directory)})


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process of another lab, whose name begins alike."""
    process = sleeper(tmp_path / "lab-2")
    yield process
    process.kill()
    process.wait()


def test_only_processes_of_the_lab_are_killed(tmp_path: Path, stranger: subprocess.Popen[bytes]) -> None:
    mine = [sleeper(tmp_path / "lab") for _ in range(3)]
    assert set(marked(tmp_path / "lab")) == {process.pid for process in mine}
    assert kill_all(tmp_path / "lab") == 3
    assert [process.wait(5) for process in mine] == [-signal.SIGKILL] * 3
    assert stranger.poll() is None


def test_children_inherit_the_mark_and_go_too(tmp_path: Path) -> None:
    shell = subprocess.Popen(["sh", "-c", "sleep 60 & sleep 60"], env={**os.environ, MARK: str(tmp_path)})
    while len(marked(tmp_path)) < 3:
        assert shell.poll() is None
    kill_all(tmp_path)
    shell.wait(5)
    assert marked(tmp_path) == []


def test_a_process_without_the_mark_is_not_signalled(tmp_path: Path, stranger: subprocess.Popen[bytes]) -> None:
    assert not kill(stranger.pid, tmp_path / "lab", signal.SIGKILL)
    assert stranger.poll() is None


def test_a_process_is_not_mistaken_for_a_later_one_of_the_same_number(stranger: subprocess.Popen[bytes]) -> None:
    identity = identify(stranger.pid)
    assert identity is not None
    assert identity != ProcessId(stranger.pid, identity.started - 1)


def test_an_ended_process_that_nobody_waited_for_does_not_count(tmp_path: Path) -> None:
    process = sleeper(tmp_path)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert identify(process.pid) is None
    assert not carries(process.pid, tmp_path)
    assert marked(tmp_path) == []
    process.wait()


def test_a_failed_command_reports_its_own_words() -> None:
    with pytest.raises(CommandFailed, match=r"`sh -c echo no such luck >&2; exit 7` failed with 7: no such luck"):
        run(["sh", "-c", "echo no such luck >&2; exit 7"])


def test_a_command_that_does_not_answer_is_ended(tmp_path: Path) -> None:
    with pytest.raises(ClusterTimeout, match=r"within 0\.2 s"):
        run(["sleep", "60"], environment={**os.environ, MARK: str(tmp_path)}, timeout=0.2)
    assert marked(tmp_path) == []


def test_a_command_reads_its_payload() -> None:
    assert run(["cat"], payload="höhe\n") == "höhe\n"
