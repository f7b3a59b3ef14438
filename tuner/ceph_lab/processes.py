"""The processes that belong to a lab.

Every process that is started for a lab carries a mark in its environment, which its children inherit. So they
can be found again after a crash of whoever started them, and nothing else is ever signalled: the process is pinned
by a file descriptor first and its mark read afterwards, so a reused process id is harmless.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence

from ceph_tuner.core.errors import ClusterTimeout, CommandFailed, LabFailed

MARK = "CEPH_TUNER_LAB_DIRECTORY"
"""Environment variable that names the directory (of a lab, or of a chroot being built) that a process works for."""

BUILD_MARK = "CEPH_TUNER_CHROOT_BUILD"
"""The same for the processes that build a chroot; those carry the lab's mark as well."""


class ProcessId(NamedTuple):
    """A process for as long as it lives: an id alone may be given to another process later."""

    pid: int
    started: int
    """Clock ticks after the machine's boot."""


def identify(pid: int) -> Optional[ProcessId]:
    """None where there is no such process, or only its unreaped remains."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else ProcessId(pid, int(fields[19]))


def command_line(pid: int) -> List[str]:
    """Empty where the process is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def carries(pid: int, directory: Path, mark: str = MARK) -> bool:
    """Whether a process was started for this directory."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return f"{mark}={directory}".encode() in environment


def marked(directory: Path, mark: str = MARK) -> List[int]:
    """Ids of all living processes that were started for this directory."""
    pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    return [pid for pid in pids if pid != os.getpid() and carries(pid, directory, mark)]


def kill(pid: int, directory: Path, number: int, mark: str = MARK) -> bool:
    """Signal a process if it carries the mark; False where it does not or is gone."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if not carries(pid, directory, mark):
            return False
        signal.pidfd_send_signal(descriptor, number)
        return True
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)


def wait_gone(pid: int, seconds: float) -> bool:
    """Whether the process ends within the time."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return True
    try:
        return bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)


def kill_all(directory: Path, mark: str = MARK, seconds: float = 60) -> int:
    """Kill every process that carries the mark and wait until none is left; how many there were."""
    pids_so_far = set()
    deadline = time.monotonic() + seconds
    quiet = 0
    # a process may be between fork and exec, not marked yet: only the second look in a row that finds nothing counts
    while quiet < 2:
        pids = marked(directory, mark)
        quiet = 0 if pids else quiet + 1
        for pid in pids:
            if kill(pid, directory, signal.SIGKILL, mark):
                pids_so_far.add(pid)
        if time.monotonic() > deadline:
            raise LabFailed(f"{directory}: processes {pids} did not end within {seconds:.0f} s of SIGKILL")
        for pid in pids:
            wait_gone(pid, 1)
        if quiet < 2:
            time.sleep(0.05)
    return len(pids_so_far)


def host_environment(marks: Mapping[str, str]) -> Dict[str, str]:
    """The environment of what runs on the host's side for a lab: the caller's, in a plain language, marked."""
    return {**os.environ, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive", **marks}


def _brief(words: Sequence[str], width: int = 100) -> str:
    line = " ".join(" ".join(words).split())
    return line if len(line) <= width else line[: width - 1] + "…"


def run(
    argv: Sequence[str],
    *,
    environment: Optional[Mapping[str, str]] = None,
    payload: Optional[str] = None,
    timeout: float = 60,
    title: Optional[Sequence[str]] = None,
) -> str:
    """Standard output of a command. Raises CommandFailed with its own words, or ClusterTimeout.

    `title` is what the error calls the command, where argv has a long prefix.
    """
    command = _brief(title or argv)
    with subprocess.Popen(
        list(argv),
        stdin=subprocess.DEVNULL if payload is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=dict(environment) if environment is not None else None,
    ) as process:
        try:
            output, errors = process.communicate(payload, timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            # not communicate(): a grandchild may hold the pipes open for ever
            raise ClusterTimeout(f"`{command}` did not answer within {timeout:g} s") from None
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise CommandFailed(command, process.returncode, errors or output)
    return output
