"""Compiles the library that stands between ceph-osd and its device, by the compiler of the tree that Ceph is in.

It is kept beside that tree, and named by a digest of its sources: one that an OSD has mapped is never written over,
which would kill that OSD.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Mapping

from ceph_lab.processes import run
from ceph_lab.state import locked
from ceph_tuner.core.errors import CommandFailed, LabFailed

SOURCES = ("model.h", "model.c", "preload.c")
COMPILER = ("gcc", "-O2", "-std=gnu11", "-Wall", "-Wextra", "-shared", "-fPIC")


def digest(directory: Path = Path(__file__).parent) -> str:
    """Of all that decides what the library does."""
    content = hashlib.sha256(" ".join(COMPILER).encode())
    for name in SOURCES:
        content.update((directory / name).read_bytes())
    return content.hexdigest()[:12]


def library(chroot: Path, environment: Mapping[str, str]) -> Path:
    """The host's path of the library for that tree; compiled where it is not there yet. Raises LabFailed."""
    target = chroot.with_name(f"{chroot.name}.drive-{digest()}.so")
    if target.exists():
        return target
    with locked(target.with_suffix(".lock"), "the emulated drive is being compiled", wait=120):
        if not target.exists():
            _compile(chroot, target, environment)
    return target


def _compile(chroot: Path, target: Path, environment: Mapping[str, str]) -> None:
    sources = Path(__file__).parent
    with tempfile.TemporaryDirectory(prefix=".drive-", dir=target.parent) as directory:
        library = Path(directory) / "library.so"
        # the tree is read only to us: the work is done in a mount of its own above it, which goes with the command
        values = {"work": directory, "tree": str(chroot)}
        for name in SOURCES:
            (Path(directory) / name).write_bytes((sources / name).read_bytes())
        # the tree stays as it was built: the mount goes with the command
        script = 'mount --bind "$work" "$tree/mnt" && exec chroot "$tree" sh -c "cd /mnt && exec $0"'
        command = f"{' '.join(COMPILER)} -o library.so model.c preload.c -lm -lpthread"
        argv = ["unshare", "--mount", "--propagation", "private", "--", "sh", "-c", script, command]
        plain = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        try:
            run(argv, environment={**environment, **values, **plain}, timeout=120, title=list(COMPILER))
        except CommandFailed as error:
            raise LabFailed(f"the emulated drive cannot be compiled in {chroot}: {error}") from error
        os.replace(library, target)
