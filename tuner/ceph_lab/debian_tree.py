"""A Debian system in a directory: made by debootstrap, changed by commands that run inside."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Callable, List, Mapping, Sequence

from ceph_lab.host_packages import ensure_packages
from ceph_lab.processes import run
from ceph_tuner.core.errors import CommandFailed, LabFailed

Report = Callable[[str], None]


class BuildSteps:
    """Runs the build's commands, their output in one log, and quotes its end where one fails."""

    def __init__(self, log: Path, environment: Mapping[str, str]) -> None:
        """Begin a new log."""
        self.log, self.environment = log, environment
        log.write_bytes(b"")

    def __call__(self, argv: Sequence[str]) -> None:
        """Run one. Raises LabFailed."""
        # a private mount namespace: what debootstrap and the package scripts mount goes when they end, however they end
        with self.log.open("ab") as log:
            command = ["unshare", "--mount", "--propagation", "private", "--", *argv]
            code = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=dict(self.environment), check=False
            ).returncode
        if code:
            lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
            errors = [line for line in lines if line.startswith(("E:", "W: Failure"))] or lines
            raise LabFailed(
                f"`{argv[0]}` failed with {code}, see {self.log}: {' / '.join(errors[-3:])}",
                "read that log; `ceph-tuner lab up` goes on where it stopped",
            )


def bootstrap(
    suite: str, tree: Path, step: BuildSteps, report: Report, mirror: str = "", packages: Sequence[str] = ()
) -> None:
    """Put a suite's essential packages, and those named, into a directory. Installs debootstrap where it is missing."""
    ensure_packages(("debootstrap", "debian-archive-keyring"), report)
    step(bootstrap_command(suite, tree, mirror, packages))


def bootstrap_command(suite: str, tree: Path, mirror: str = "", packages: Sequence[str] = ()) -> List[str]:
    """Command line of debootstrap."""
    # all of Debian's suites share one script; an older debootstrap only lacks the newer names for it
    script = "/usr/share/debootstrap/scripts/sid"
    names = [*packages, *(["ca-certificates"] if mirror.startswith("https:") else [])]
    include = [f"--include={','.join(names)}"] if names else []
    return ["debootstrap", "--variant=minbase", *include, suite, str(tree), mirror, script]


def host_proxies() -> str:
    """The host's own way to its mirrors, where it goes through a proxy."""
    try:
        settings = run(["apt-config", "dump"], timeout=30).splitlines()
    except (OSError, CommandFailed):
        return ""
    lines = [line for line in settings if line.startswith("Acquire::http") and "::Proxy" in line]
    return "".join(f"{line}\n" for line in lines)


def inside(tree: Path, command: str) -> List[str]:
    """Command line that mounts the kernel's file systems in a tree and runs a shell command there.

    It is for a mount namespace of its own, as `BuildSteps` makes one.
    """
    mounts = f'mount -t proc proc "{tree}/proc" && mount --rbind /sys "{tree}/sys" && mount --rbind /dev "{tree}/dev"'
    path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return ["sh", "-c", f'{mounts} && exec env {path} chroot "{tree}" sh -c "$0"', command]
