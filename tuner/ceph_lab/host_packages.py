"""Debian packages that the set-up needs on the host: debootstrap, python3-venv, the tests' Chromium.

`python3 -m ceph_lab.host_packages PACKAGE...` installs them; it uses the standard library only, since
`make` calls it before there is a virtual environment.

Several set-ups may run at once, beside other programs that use apt. apt waits for dpkg's locks at most, when it is
told to (`DPkg::Lock::Timeout`); `apt-get update` gives up at once where the lock of its lists is held. So a command
that met a lock is repeated.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable, List, Optional, Sequence, Tuple

from ceph_lab.places import LABS, cache_directory
from ceph_lab.processes import host_environment
from ceph_lab.state import locked
from ceph_tuner.core.errors import InputError, LabFailed, Locked, PermissionRefused, TunerError

Report = Callable[[str], None]

LOCK = LABS.parent / ".packages.lock"
"""Held by the one set-up that installs. The packages are the machine's, so the lock is too."""

_HELD = ("Could not get lock", "is another process using it?", "lock was locked by another process")
"""What apt and dpkg say where another process holds one of their locks."""

_APT = ["apt-get", "-q", "-o", "Acquire::Retries=3"]


def missing(packages: Sequence[str]) -> List[str]:
    """Those that are not wholly installed: unpacked and configured."""
    query = ["dpkg-query", "--show", "--showformat=${Package} ${Status}\n", *packages]
    # dpkg-query fails where one of them is unknown, and answers for the others
    answer = subprocess.run(query, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
    present = {line.split()[0] for line in answer.splitlines() if line.endswith(" ok installed")}
    return [package for package in packages if package not in present]


def _half_unpacked() -> List[str]:
    """Packages of the machine that dpkg configures only once they are unpacked again."""
    query = ["dpkg-query", "--show", "--showformat=${Package}:${Architecture} ${db:Status-Eflag}\n"]
    answer = subprocess.run(query, stdout=subprocess.PIPE, text=True, check=True).stdout
    return [line.split()[0] for line in answer.splitlines() if line.endswith(" reinstreq")]


def ensure_packages(packages: Sequence[str], report: Report, wait_s: float = 1800) -> None:
    """Install what is missing of these, once, however many ask for it at the same time.

    An earlier installation that was killed is completed first. Raises Locked where somebody else's apt or dpkg does
    not end within `wait_s`, LabFailed with apt's words where it fails.
    """
    if not shutil.which("dpkg-query") or not shutil.which("apt-get"):
        raise InputError(" ".join(packages), "no apt", "Debian or Ubuntu, or these installed by hand")
    absent = missing(packages)
    if not absent:
        return
    if os.geteuid() != 0:
        raise PermissionRefused(f"apt-get install {' '.join(absent)}", f"user id {os.geteuid()}", "root")
    deadline = time.monotonic() + wait_s
    with locked(LOCK, "another set-up is installing packages", wait_s):
        absent = missing(packages)
        if not absent:
            return
        report(f"installing {' '.join(absent)}")
        log = cache_directory() / "host-packages.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_bytes(b"")
        # what was killed half-way: apt refuses to work before this is done. It fails for a package that was being
        # unpacked; that one has to be unpacked again, which apt does by itself only sometimes
        _carry_out(["dpkg", "--configure", "-a", "--force-confdef", "--force-confold"], log, report, deadline)
        install = [*_APT, "install", "--yes", "--no-install-recommends", "--fix-broken", "--reinstall"]
        for command in ([*_APT, "update"], [*install, *absent, *_half_unpacked()]):
            code, words = _carry_out(command, log, report, deadline)
            if code:
                raise LabFailed(f"`{command[0]}` failed with {code}, see {log}: {words}", "read that log")
        still = missing(absent)
        if still:
            raise LabFailed(f"{' '.join(still)} not installed although apt says so, see {log}", "read that log")


def _carry_out(command: Sequence[str], log: Path, report: Report, deadline: float) -> Tuple[int, str]:
    """Exit code, and what tells why it failed; repeated while a lock is held. Raises Locked."""
    announcement: Optional[str] = None
    while True:
        began = log.stat().st_size
        code = _run(command, log)
        with log.open("rb") as file:
            file.seek(began)
            lines = file.read().decode(errors="replace").splitlines()
        obstacle = next((line for line in lines if any(words in line for words in _HELD)), None)
        if code == 0 or obstacle is None:
            errors = [line for line in lines if line.startswith("E:")] or lines
            return code, " / ".join(errors[-3:])
        if time.monotonic() > deadline:
            raise Locked(obstacle)
        if announcement is None:
            announcement = obstacle
            report(f"waiting for other programs that use apt: {obstacle}")
        time.sleep(1)


def _run(command: Sequence[str], log: Path) -> int:
    """Exit code. The command is left to end by itself if we do not live that long.

    It is in a session of its own, writes to a file, and carries no lab's mark: Ctrl-C, a closed pipe and `lab down`
    would kill dpkg half-way otherwise.
    """
    with log.open("ab") as output:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**host_environment({}), "LC_ALL": "C"},
            start_new_session=True,
        )
    return process.wait()


def main() -> int:
    """Install the packages that are named on the command line; the exit code."""
    try:
        ensure_packages(sys.argv[1:], lambda line: print(line, file=sys.stderr))  # noqa: T201
    except TunerError as error:
        print(f"error: {error.advised}", file=sys.stderr)  # noqa: T201
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
