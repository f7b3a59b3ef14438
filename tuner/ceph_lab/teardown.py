"""Takes a lab down, whole, half or damaged: what belongs to it is found by mark, image file and name."""

from __future__ import annotations

from pathlib import Path
from typing import Callable, List

from ceph_lab import devices
from ceph_lab.chroot import discard_unfinished
from ceph_lab.mounts import mounted_below, remove_tree
from ceph_lab.places import LABS, LabPlaces
from ceph_lab.processes import MARK, host_environment, kill_all, marked
from ceph_lab.state import locked
from ceph_lab.throttle import find_throttle
from ceph_tuner.core.errors import LabFailed

Report = Callable[[str], None]


def down(name: str, report: Report, labs: Path = LABS) -> bool:
    """Remove every trace of a lab; False where there was none. Raises Locked while another command works on it."""
    places = LabPlaces(name, labs)
    with locked(places.lock, f"another command is at work on lab {name}", wait=5):
        was_there = bool(remains(places))
        clear(places, report)
        discard_unfinished(report)
    return was_there


def clear(places: LabPlaces, report: Report) -> None:
    """The same, for whoever holds the lab's lock."""
    if not remains(places):
        return
    environment = host_environment({MARK: str(places.directory)})
    report(f"taking lab {places.name} down")
    # in this order: processes hold mounts and devices, devices hold files
    kill_all(places.directory)
    devices.detach_all(places.directory, environment)
    throttle = find_throttle(Path("/proc/mounts").read_text(encoding="utf-8"))
    if throttle is not None:
        throttle.remove(places.name)
    remove_tree(places.directory)
    rest = remains(places)
    if rest:
        raise LabFailed(f"lab {places.name} left behind: {', '.join(rest)}", "end what holds it, then do it again")


def remains(places: LabPlaces) -> List[str]:
    """Everything on this machine that belongs to a lab."""
    throttle = find_throttle(Path("/proc/mounts").read_text(encoding="utf-8"))
    return [
        *(f"process {pid}" for pid in marked(places.directory)),
        *(f"mount {point}" for point in mounted_below(places.directory)),
        *(f"device {device}" for device in sorted(devices.attached(places.directory))),
        *(f"cgroup {group}" for group in (throttle.groups(places.name) if throttle else [])),
        *([f"directory {places.directory}"] if places.directory.exists() else []),
    ]
