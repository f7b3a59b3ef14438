"""Daemons that crash are started again; those that were stopped or killed on purpose are not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Iterator, List, Optional, Tuple

import pytest

from ceph_lab.cluster import Lab
from ceph_lab.processes import command_line
from ceph_lab.supervision import BURST, supervised, supervises
from waiting import until

pytestmark = pytest.mark.long_on_reef

STARTER = """
import os, sys, time
folder, code = sys.argv[1], int(sys.argv[2])
executing = os.path.exists(folder + "/executing")
if executing:
    # the name of who executes /proc/self/exe
    open("/proc/self/comm", "w").write("exe")
if code or os.fork():
    sys.exit(code)
os.setsid()
with open(folder + "/pids", "a") as file:
    file.write(f"{os.getpid()}\\n")
nowhere = os.open(os.devnull, os.O_RDWR)
for descriptor in (0, 1, 2):
    os.dup2(nowhere, descriptor)
if executing:
    time.sleep(0.5)
    open("/proc/self/comm", "w").write("python")
while not os.path.exists(folder + "/anew"):
    time.sleep(0.02)
os.remove(folder + "/anew")
os.execv(sys.executable, [sys.executable, "-c", sys.orig_argv[2], folder, "0"])
"""


class Daemon:
    """Something that goes into the background, as Ceph's daemons do, under supervision."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "supervision.log"

    def start(self, code: int = 0) -> int:
        argv = [sys.executable, "-c", STARTER, str(self.folder), str(code)]
        return subprocess.run(supervised("mgr.x", self.log, argv, delay_s=0.2), timeout=30, check=False).returncode

    @property
    def pids(self) -> List[int]:
        """Of each start, the first one's first."""
        file = self.folder / "pids"
        return [int(line) for line in file.read_text().splitlines()] if file.exists() else []

    def end(self, number: int) -> None:
        until(lambda: bool(self.pids))
        os.kill(self.pids[-1], number)

    def begin_anew(self) -> None:
        """As a mgr does for a module that is enabled: it executes itself and goes into the background again."""
        starts = len(self.pids)
        (self.folder / "anew").touch()
        until(lambda: len(self.pids) == starts + 1)

    @staticmethod
    def supervisors() -> List[int]:
        pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
        return [pid for pid in pids if supervises(command_line(pid), "mgr.x")]


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    made = Daemon(tmp_path)
    yield made
    for pid in [pid for pid in made.supervisors() if str(tmp_path) in " ".join(command_line(pid))]:
        os.kill(pid, signal.SIGKILL)
    for pid in made.pids:
        if command_line(pid)[1:2] == ["-c"]:
            os.kill(pid, signal.SIGKILL)


def gone(daemon: Daemon) -> bool:
    return not [pid for pid in daemon.supervisors() if str(daemon.folder) in " ".join(command_line(pid))]


@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS])
def test_what_crashes_is_started_again_and_it_is_noted(daemon: Daemon, number: int) -> None:
    assert daemon.start() == 0
    daemon.end(number)
    until(lambda: len(daemon.pids) == 2)
    until(lambda: f"mgr.x ended with {-number}; started again\n" in daemon.log.read_text())
    assert command_line(daemon.pids[1]) != []


def test_what_began_anew_by_itself_is_looked_after_as_before(daemon: Daemon) -> None:
    assert daemon.start() == 0
    for times in (2, 3):
        until(lambda: bool(daemon.pids))
        daemon.begin_anew()
        assert len(daemon.pids) == times
    daemon.end(signal.SIGABRT)
    until(lambda: len(daemon.pids) == 4)
    daemon.end(signal.SIGTERM)
    until(lambda: gone(daemon))
    assert len(daemon.pids) == 4


def test_what_began_anew_twice_in_a_row_is_looked_after_as_before(daemon: Daemon) -> None:
    assert daemon.start() == 0
    until(lambda: bool(daemon.pids))
    # the second time comes before the supervisor looks: the process is about to execute itself, under another name
    (daemon.folder / "executing").touch()
    daemon.begin_anew()
    time.sleep(0.7)
    (daemon.folder / "executing").unlink()
    daemon.begin_anew()
    daemon.end(signal.SIGABRT)
    until(lambda: len(daemon.pids) == 4)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_what_is_killed_on_purpose_stays_dead(daemon: Daemon, number: int) -> None:
    assert daemon.start() == 0
    daemon.end(number)
    until(lambda: gone(daemon))
    assert len(daemon.pids) == 1


def test_what_crashes_again_and_again_is_given_up(daemon: Daemon) -> None:
    assert daemon.start() == 0
    for times in range(1, BURST + 2):
        until(lambda times=times: len(daemon.pids) == times)
        daemon.end(signal.SIGABRT)
    until(lambda: gone(daemon))
    assert len(daemon.pids) == 1 + BURST
    assert "not started again, after 3 times in 30 minutes" in daemon.log.read_text()


def test_a_start_that_fails_is_told_and_not_repeated(daemon: Daemon) -> None:
    assert daemon.start(code=7) == 7
    until(lambda: gone(daemon))
    assert daemon.pids == []


def active_mgr(lab: Lab) -> Tuple[str, Optional[int]]:
    """Its daemon and its process."""
    daemon = f"mgr.{lab.json(['ceph', 'mgr', 'dump'])['active_name']}"
    return daemon, lab.daemon_pid(daemon)


def began_anew(lab: Lab, gid: int) -> bool:
    """Whether a mgr of another id is up: of one that only begins a crash may go without a note."""
    dump = lab.json(["ceph", "mgr", "dump"])
    return bool(dump["available"]) and dump["active_gid"] != gid


@pytest.mark.timeout(300)
def test_a_mgr_that_crashes_is_started_again_and_one_that_was_stopped_is_not(any_lab: Lab) -> None:
    before = any_lab.json(["ceph", "mgr", "dump"])["active_gid"]
    # for a module it begins anew, in a process of its own making
    any_lab.run(["ceph", "mgr", "module", "enable", "insights"])
    until(lambda: began_anew(any_lab, before), 60)
    daemon, first = active_mgr(any_lab)
    assert first is not None
    os.kill(first, signal.SIGABRT)
    until(lambda: any_lab.daemon_pid(daemon) not in (None, first), 60)
    until(lambda: bool(any_lab.json(["ceph", "mgr", "dump"])["available"]), 60)
    noted = (any_lab.places.shared / "log/supervision.log").read_text()
    assert f"{daemon} ended with {-signal.SIGABRT}; started again\n" in noted
    # its last words are kept
    assert "Caught signal (Aborted)" in (any_lab.places.shared / "log" / f"{daemon}.log").read_text(errors="replace")
    any_lab.stop_daemon(daemon)
    time.sleep(12)
    assert any_lab.daemon_pid(daemon) is None
    any_lab.start_daemon(daemon)
    any_lab.run(["ceph", "mgr", "module", "disable", "insights"])
    until(lambda: bool(any_lab.json(["ceph", "mgr", "dump"])["available"]), 60)
