"""The OSDs' devices: sparse files on loop devices, found again by the path of the file."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Dict, Mapping

from ceph_lab.processes import run
from ceph_tuner.core.errors import CommandFailed, LabFailed

BLOCK = Path("/sys/block")


def attached(directory: Path) -> Dict[str, Path]:
    """Loop device (`/dev/loop7`) to image file, for the images in a directory."""
    devices = {}
    # the kernel names files by their real path
    directory = directory.resolve()
    for file in BLOCK.glob("loop*/loop/backing_file"):
        try:
            image = file.read_text(encoding="utf-8").rstrip("\n")
        except OSError:
            # it went away while we looked
            continue
        path = Path(image[: -len(" (deleted)")] if image.endswith(" (deleted)") else image)
        if directory in path.parents:
            devices[f"/dev/{file.parts[-3]}"] = path
    return devices


def attach(
    image: Path, size: int, environment: Mapping[str, str], rotational: bool = False, host_cache: bool = False
) -> str:
    """Make the sparse file and give it a loop device, which looks like a hard disk or an SSD.

    `host_cache`: through the host's cache, for emulated drives, whose time is not the host's disk's.
    """
    with image.open("wb") as file:
        file.truncate(size)
    try:
        device = run(
            ["losetup", "--find", "--show", f"--direct-io={'off' if host_cache else 'on'}", str(image)],
            environment=environment,
            timeout=30,
        ).strip()
    except CommandFailed as error:
        raise LabFailed(f"no loop device for {image}: {error}", "free one (`losetup -l` lists them)") from error
    # Ceph takes its options, and its device class, by what the kernel says
    (BLOCK / Path(device).name / "queue" / "rotational").write_text(f"{int(rotational)}\n", encoding="ascii")
    return device


def number(device: str) -> str:
    """`major:minor`, as cgroups name a device."""
    status = os.stat(device)
    return f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"


def detach_all(directory: Path, environment: Mapping[str, str], seconds: float = 30) -> int:
    """Detach every loop device whose image lies in the directory, and wait until they are gone; how many there were."""
    devices = attached(directory)
    deadline = time.monotonic() + seconds
    rest = devices
    while rest:
        refusals = [_detach(device, environment) for device in rest]
        # a device still in use is detached by the kernel when its last user closes it
        rest = attached(directory)
        if rest:
            if time.monotonic() > deadline:
                words = "; ".join(filter(None, refusals)) or "still in use"
                raise LabFailed(f"{', '.join(sorted(rest))} not detached in {seconds:.0f} s: {words}")
            time.sleep(0.1)
    return len(devices)


def _detach(device: str, environment: Mapping[str, str]) -> str:
    try:
        run(["losetup", "--detach", device], environment=environment, timeout=30)
    except CommandFailed as error:
        return str(error)
    return ""
