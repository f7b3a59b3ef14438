"""The lab's own view of the machine: a mount and IPC namespace held by one sleeping process, the keeper.

Its root is an overlay: the shared chroot below, a tmpfs for whatever is written above it, and the lab's directory at
`/lab`. Nothing of it is mounted on the host, so nothing is left mounted when its processes end, however they end.
The IPC namespace takes fio's shared memory along.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import List, Sequence

from ceph_lab.places import LabPlaces
from ceph_lab.processes import MARK, ProcessId, carries, identify
from ceph_tuner.core.errors import LabFailed

CONF = "/lab/ceph.conf"
"""The lab's ceph.conf, as seen inside."""

_ENTER = r"""
set -eu
mount -t tmpfs -o mode=755 scratch "$scratch"
mkdir "$scratch/upper" "$scratch/work"
mount -t overlay overlay -o "lowerdir=$chroot,upperdir=$scratch/upper,workdir=$scratch/work" "$root"
# with the monitors' stores in it, which may be a file system of their own
mount --rbind "$shared" "$root/lab"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
mount --rbind /sys "$root/sys"
mount -t proc proc "$root/proc"
# names resolve as on the host
cp /etc/hosts /etc/resolv.conf "$root/etc/" 2>/dev/null || true
cd /
# said from inside: whoever enters by this process's root before that would still get the host's
exec chroot "$root" sh -c 'echo ready; exec sleep infinity >/dev/null 2>&1'
"""


def start_keeper(places: LabPlaces, chroot: Path) -> ProcessId:
    """Make the namespace and return the process that holds it."""
    for path in (places.scratch, places.root):
        path.mkdir(exist_ok=True)
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        MARK: str(places.directory),
        "chroot": str(chroot),
        "scratch": str(places.scratch),
        "shared": str(places.shared),
        "root": str(places.root),
    }
    # a session of its own: Ctrl-C in the terminal is for the program, not for the lab
    keeper = subprocess.Popen(
        ["unshare", "--mount", "--ipc", "--propagation", "private", "--", "sh", "-c", _ENTER],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
        cwd="/",
    )
    with keeper.stdout as output, keeper.stderr as errors:  # type: ignore[union-attr]
        if output.readline() != b"ready\n":
            words = errors.read().decode(errors="replace").strip()
            keeper.wait()
            raise LabFailed(f"the lab's mount namespace cannot be made: {words or 'no message'}")
    identity = identify(keeper.pid)
    if identity is None:
        raise LabFailed("the lab's keeper ended at once")
    # it outlives this program on purpose; without this, Python warns about a child that is not waited for
    keeper.returncode = 0
    return identity


def alive(keeper: ProcessId, places: LabPlaces) -> bool:
    """Whether the namespace is still held by the process that was written down."""
    return identify(keeper.pid) == keeper and carries(keeper.pid, places.directory)


def enter(keeper: ProcessId, places: LabPlaces, command: Sequence[str]) -> List[str]:
    """Host command line that runs a command in the namespace.

    It is replaced by the command step by step (exec), so its process id and its signals are the command's own.
    """
    environment = [
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME=/root",
        "LANG=C.UTF-8",
        f"TERM={os.environ.get('TERM', 'dumb')}",
        f"CEPH_CONF={CONF}",
        f"CEPH_ARGS=-c {CONF}",
        f"{MARK}={places.directory}",
    ]
    # -i: of the caller's environment, PYTHONPATH and the like would lead Ceph's programs astray
    return [
        "nsenter", f"--target={keeper.pid}", "--mount", "--ipc", "--root", "--wd",
        "env", "-i", *environment, *command,
    ]  # fmt: skip
