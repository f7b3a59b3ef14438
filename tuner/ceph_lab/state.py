"""What is written down about a lab, and the lock that its `up` and `down` hold."""

from __future__ import annotations

import fcntl
import json
import os
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional

from ceph_lab.options import LabOptions
from ceph_lab.places import LABS, LabPlaces
from ceph_lab.processes import ProcessId
from ceph_tuner.core.errors import LabFailed, Locked

STARTING, UP = "starting", "up"


@dataclass(frozen=True)
class LabState:
    """A lab as its file describes it.

    What has to be undone at `down` is not listed here: processes are found by their mark, loop devices by their
    image, cgroups by their name, so that nothing is lost when `up` is killed between two steps.
    """

    name: str
    options: LabOptions
    phase: str
    port: int
    fsid: str
    chroot: str
    created: float
    ceph_version: str = ""
    keeper: Optional[ProcessId] = None
    capacities: Mapping[str, float] = field(default_factory=dict)
    """IOPS of one OSD by Ceph's bench, by its drive's name; empty until they are measured."""
    doubts: Mapping[str, str] = field(default_factory=dict)
    """Drive -> why its capacity is not verified."""

    @property
    def capacity_iops(self) -> float:
        """The same for the first drive; 0 until it is measured."""
        return self.capacities.get(self.options.groups[0].drive, 0.0)

    def to_dict(self) -> Dict[str, Any]:
        """Plain values for JSON."""
        keeper = self.keeper._asdict() if self.keeper else None
        plain = asdict(replace(self, options=LabOptions()))
        return {**plain, "options": self.options.to_dict(), "keeper": keeper, "version": 1}

    def write(self, places: LabPlaces) -> None:
        """Replace the file as a whole, so that a reader never sees half of it."""
        temporary = places.state.with_suffix(".json.new")
        temporary.write_text(json.dumps(self.to_dict(), indent=2) + "\n", encoding="utf-8")
        os.replace(temporary, places.state)

    def with_changes(self, **changes: Any) -> LabState:
        """A copy with some values replaced."""
        return replace(self, **changes)


def read_state(places: LabPlaces) -> Optional[LabState]:
    """None where there is no such lab, or `up` was killed before it wrote the file."""
    try:
        values = json.loads(places.state.read_text(encoding="utf-8"))
        keeper = values.pop("keeper")
        values.pop("version")
        # written by versions that knew one drive; it is among `capacities` now
        values.pop("capacity_iops", None)
        options = LabOptions.from_dict(values.pop("options"))
        return LabState(options=options, keeper=ProcessId(**keeper) if keeper else None, **values)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LabFailed(
            f"{places.state} cannot be read ({error}): `ceph-tuner lab down --name {places.name}` clears it away",
            "",
        ) from error


def readable_state(places: LabPlaces) -> Optional[LabState]:
    """The same; None also where it cannot be read."""
    try:
        return read_state(places)
    except LabFailed:
        return None


def lab_names(labs: Path = LABS) -> List[str]:
    """Every lab of this machine, also those that are only half there."""
    if not labs.is_dir():
        return []
    return sorted(entry.name for entry in labs.iterdir() if entry.is_dir() and not entry.name.startswith("."))


@contextmanager
def locked(path: Path, busy: str, wait: float = 0) -> Iterator[None]:
    """Hold a lock file; the kernel lets go of it when the holder dies. Raises Locked with `busy`.

    The file is removed at the end, so whoever waited checks that it holds the one that has the name now.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + wait
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
            os.close(descriptor)
            if time.monotonic() >= deadline:
                raise Locked(f"{busy} (process {holder or 'unknown'})") from None
            time.sleep(0.2)
            continue
        try:
            if os.stat(path).st_ino == os.fstat(descriptor).st_ino:
                break
        except FileNotFoundError:
            pass
        os.close(descriptor)
    try:
        os.truncate(descriptor, 0)
        # told to who waits; a full disk must not keep the lab that fills it from being taken down
        with suppress(OSError):
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)
