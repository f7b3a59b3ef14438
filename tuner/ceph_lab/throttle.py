"""Holds every OSD to its device's IOPS and bandwidth, by cgroup v1 (blkio) or v2 (io.max).

Without it the CPU is a small machine's limit, every profile looks alike, and runs do not repeat.
"""

from __future__ import annotations

import errno
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import List, Optional, Tuple

from ceph_tuner.core.errors import LabFailed

_PREFIX = "ceph-tuner"


@dataclass(frozen=True)
class Limit:
    """What a device does per second, for reads and for writes each."""

    iops: int
    bandwidth: int


@dataclass(frozen=True)
class Throttle:
    """A cgroup hierarchy that can limit block devices. One cgroup for each OSD: `ceph-tuner.LAB.osd.N`."""

    root: Path
    version: int

    def group(self, lab: str, osd: int) -> Path:
        """The OSD's cgroup. Lab names hold no dots, so two labs' groups cannot be mistaken."""
        return self.root / f"{_PREFIX}.{lab}.osd.{osd}"

    def members(self, lab: str, osd: int) -> Path:
        """A process that writes its id here is limited, with all that it starts."""
        return self.group(lab, osd) / "cgroup.procs"

    def limit(self, lab: str, osd: int, device: str, limit: Limit) -> None:
        """Make the OSD's cgroup with the device's limits; `device` is `major:minor`."""
        group = self.group(lab, osd)
        try:
            if self.version == 2:
                control = self.root / "cgroup.subtree_control"
                if "io" not in control.read_text(encoding="ascii").split():
                    control.write_text("+io", encoding="ascii")
            group.mkdir(exist_ok=True)
            for name, line in self._lines(device, limit):
                (group / name).write_text(line, encoding="ascii")
        except OSError as error:
            raise LabFailed(f"{group}: cgroup v{self.version} refuses the device's limits: {error}") from error

    def groups(self, lab: str) -> List[Path]:
        """The cgroups of a lab that exist."""
        pattern = re.compile(rf"{re.escape(f'{_PREFIX}.{lab}.osd.')}\d+")
        return sorted(path for path in self.root.glob(f"{_PREFIX}.*") if pattern.fullmatch(path.name))

    def remove(self, lab: str, seconds: float = 10) -> int:
        """Remove the lab's cgroups, which must be empty of processes by now; how many there were."""
        groups = self.groups(lab)
        deadline = time.monotonic() + seconds
        for group in groups:
            while True:
                try:
                    group.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError as error:
                    # a killed process leaves its cgroup a moment after it is gone from the process table
                    if error.errno != errno.EBUSY or time.monotonic() > deadline:
                        raise LabFailed(f"{group}: cgroup cannot be removed: {error}") from error
                    time.sleep(0.05)
        return len(groups)

    def _lines(self, device: str, limit: Limit) -> List[Tuple[str, str]]:
        if self.version == 2:
            words = f"riops={limit.iops} wiops={limit.iops} rbps={limit.bandwidth} wbps={limit.bandwidth}"
            return [("io.max", f"{device} {words}")]
        return [
            (f"blkio.throttle.{way}_{unit}_device", f"{device} {value}")
            for way in ("read", "write")
            for unit, value in (("iops", limit.iops), ("bps", limit.bandwidth))
        ]


def find_throttle(mounts: str) -> Optional[Throttle]:
    """The first hierarchy in the text of /proc/mounts that can limit a device; None where there is none."""
    for line in mounts.splitlines():
        _, point, kind, options, *_ = line.split()
        if kind == "cgroup" and "blkio" in options.split(","):
            root = Path(point)
            # the files exist in child groups only where the kernel was built with throttling; the root shows it too
            if (root / "blkio.throttle.write_iops_device").exists():
                return Throttle(root, 1)
        if kind == "cgroup2":
            root = Path(point)
            try:
                controllers = (root / "cgroup.controllers").read_text(encoding="ascii").split()
            except OSError:
                continue
            if "io" in controllers:
                return Throttle(root, 2)
    return None


def host_throttle() -> Throttle:
    """This machine's throttle. Raises LabFailed where it has none."""
    throttle = find_throttle(Path("/proc/mounts").read_text(encoding="utf-8"))
    if throttle is None:
        raise LabFailed(
            "this machine cannot throttle devices: found neither a cgroup v1 hierarchy with blkio.throttle nor "
            "cgroup v2 with the io controller, and without limits the CPU would be what is measured",
            "use a machine (no container without cgroups) with one of them",
        )
    return throttle
