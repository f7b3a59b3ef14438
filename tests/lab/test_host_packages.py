"""Packages on the host, with real apt and dpkg on machines that nobody has used."""

from __future__ import annotations

import fcntl
import os
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Callable, Iterator

import pytest

import pristine
from ceph_lab import host_packages
from ceph_tuner.core.errors import InputError, PermissionRefused

PACKAGE = "python3-venv"
"""Brings five others, so that there is a middle to be killed in."""

INSTALL = ["env", f"PYTHONPATH={pristine.ROOT}/tuner", "python3", "-B", "-m", "ceph_lab.host_packages"]


@pytest.fixture(scope="module", params=["trixie", pytest.param("bookworm", marks=pytest.mark.long)])
def machine(request: pytest.FixtureRequest, needs_lab: None) -> Iterator[pristine.Machine]:
    """Of trixie where one is enough: `make bare SUITE=trixie` then needs no tree of its own."""
    with pristine.machine(request.param, carried=[pristine.ROOT]) as made:
        yield made


@pytest.fixture
def log(machine: pristine.Machine, tmp_path: Path) -> Path:
    """The output of a test's commands; the package is not there when it begins."""
    gone = "dpkg --configure -a; apt-get purge -q -y --autoremove '^python3[.][0-9]+-venv$'; rm -f /var/log/dpkg.log"
    assert machine.run(["sh", "-c", gone], tmp_path / "purged", 60) == 0
    assert not installed(machine)
    return tmp_path / "log"


def installed(machine: pristine.Machine) -> bool:
    """Whether dpkg is content, and the package works."""
    audit = subprocess.run(["dpkg", f"--root={machine.root}", "--audit"], stdout=subprocess.PIPE, check=True)
    use = "import ensurepip, venv"
    works = machine.run(["python3", "-c", use], Path(os.devnull), 30) == 0
    return audit.stdout == b"" and works


@contextmanager
def installing(machine: pristine.Machine, log: Path) -> Iterator[subprocess.Popen[str]]:
    with log.open("a", encoding="utf-8") as output:
        process = machine.start([*INSTALL, PACKAGE], stdout=output, stderr=output)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        assert process.poll() is None, "it ended before"
        time.sleep(0.005)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "lock",
    [
        pytest.param("lib/apt/lists/lock", marks=pytest.mark.long),
        pytest.param("cache/apt/archives/lock", marks=pytest.mark.long),
        "lib/dpkg/lock-frontend",
        pytest.param("lib/dpkg/lock", marks=pytest.mark.long),
    ],
)
def test_it_waits_for_whoever_else_uses_apt(machine: pristine.Machine, log: Path, lock: str) -> None:
    with (machine.root / "var" / lock).open("w") as file:
        # as apt and dpkg hold theirs: it goes with the process that has it
        fcntl.lockf(file, fcntl.LOCK_EX)
        with installing(machine, log) as process:
            wait_for(lambda: "waiting for other programs that use apt" in log.read_text(), process)
            time.sleep(2)
            assert process.poll() is None
            fcntl.lockf(file, fcntl.LOCK_UN)
            assert process.wait(120) == 0, log.read_text()
    assert log.read_text().count("waiting for other") == 1
    assert installed(machine)


@pytest.mark.timeout(300)
def test_of_two_at_once_one_installs_and_both_have_it(machine: pristine.Machine, log: Path) -> None:
    with installing(machine, log) as first, installing(machine, log) as second:
        assert [process.wait(120) for process in (first, second)] == [0, 0], log.read_text()
    assert log.read_text() == f"installing {PACKAGE}\n"
    assert installed(machine)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "moment",
    [
        "half-installed",
        pytest.param("unpacked", marks=pytest.mark.long),
        pytest.param("half-configured", marks=pytest.mark.long),
    ],
)
def test_what_is_killed_at_any_moment_is_completed_by_the_next(
    machine: pristine.Machine, log: Path, moment: str
) -> None:
    history = machine.root / "var/log/dpkg.log"
    with installing(machine, log) as process:
        # apt and dpkg end with it
        wait_for(lambda: history.exists() and f"status {moment} python3" in history.read_text(), process)
    assert not installed(machine)
    with installing(machine, log) as process:
        assert process.wait(120) == 0, log.read_text()
    assert installed(machine)


@pytest.mark.timeout(300)
def test_a_package_that_was_killed_while_it_was_unpacked_is_unpacked_again(
    machine: pristine.Machine, log: Path
) -> None:
    # one that the others need, and that apt has marked for nothing
    assert machine.run(["apt-get", "install", "-q", "-y", "python3-setuptools-whl"], log, 120) == 0
    status = machine.root / "var/lib/dpkg/status"
    head, found, tail = status.read_text().partition("Package: python3-setuptools-whl\n")
    status.write_text(head + found + tail.replace("ok installed", "reinstreq half-installed", 1))
    with installing(machine, log) as process:
        assert process.wait(120) == 0, log.read_text()
    assert installed(machine)


_KILLED_ALONE = """
apt() { grep -qsz '^install$' /proc/[0-9]*/cmdline; }
"$@" & sleep 0.5
until apt; do kill -0 $! || exit 1; done
kill -9 $!; wait
apt && echo still at work
while apt; do sleep 0.1; done
"""


@pytest.mark.timeout(300)
def test_apt_goes_on_where_its_caller_is_killed(machine: pristine.Machine, log: Path) -> None:
    assert machine.run(["sh", "-c", _KILLED_ALONE, "sh", *INSTALL, PACKAGE], log, 120) == 0, log.read_text()
    assert "still at work" in log.read_text()
    assert installed(machine)


def test_what_is_there_already_takes_no_root_and_no_apt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(host_packages, "missing", lambda packages: [])
    host_packages.ensure_packages(["bash"], pytest.fail)


@pytest.mark.skipif(not Path("/usr/bin/dpkg-query").exists(), reason="no dpkg")
def test_who_may_not_install_is_told_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert host_packages.missing(["bash", "no-such-package", "dpkg"]) == ["no-such-package"]
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(PermissionRefused, match="apt-get install no-such-package: found user id 1000, expected root"):
        host_packages.ensure_packages(["bash", "no-such-package"], pytest.fail)


def test_a_system_without_apt_is_told_what_to_install_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(InputError, match="debootstrap: found no apt"):
        host_packages.ensure_packages(["debootstrap"], pytest.fail)
