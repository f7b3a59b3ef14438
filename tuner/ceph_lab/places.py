"""Where the labs and what is cached for them live on this machine."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from ceph_tuner.core.errors import InputError

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")

LABS = Path("/var/lib/ceph-tuner/labs")
"""Labs belong to the machine (devices, cgroups, ports), so every root user sees the same ones."""


def checked_name(name: str) -> str:
    """The lab's name, once it is known to be safe in paths, cgroups and process environments."""
    if not _NAME.fullmatch(name):
        raise InputError("lab name", repr(name), "lower-case letters, digits and hyphens, at most 40")
    return name


def cache_directory() -> Path:
    """`$XDG_CACHE_HOME/ceph-tuner`, by default below `~/.cache`."""
    variable = os.environ.get("XDG_CACHE_HOME", "")
    # the specification says that a relative path is to be ignored
    base = Path(variable) if variable.startswith("/") else Path.home() / ".cache"
    return base / "ceph-tuner"


@dataclass(frozen=True)
class LabPlaces:
    """The paths of one lab. What lies in `shared` is seen inside the lab as `/lab`."""

    name: str
    labs: Path = LABS

    @property
    def directory(self) -> Path:
        """Everything that the lab keeps on disk, its image files included."""
        return self.labs / checked_name(self.name)

    @property
    def lock(self) -> Path:
        """Held by the `up` or `down` that is at work."""
        return self.labs / f".{checked_name(self.name)}.lock"

    @property
    def state(self) -> Path:
        """What the lab is, see `state.py`."""
        return self.directory / "lab.json"

    @property
    def devices(self) -> Path:
        """The sparse files behind the OSDs' loop devices."""
        return self.directory / "devices"

    @property
    def shared(self) -> Path:
        """The host's side of `/lab`."""
        return self.directory / "ceph"

    @property
    def monitors(self) -> Path:
        """The host's side of `/lab/mon`, the monitors' stores."""
        return self.shared / "mon"

    @property
    def scratch(self) -> Path:
        """Mount point of the tmpfs that takes what the lab writes outside `/lab`."""
        return self.directory / "scratch"

    @property
    def root(self) -> Path:
        """Mount point of the lab's root, seen in its own mount namespace only."""
        return self.directory / "root"
