"""Where emulated drives and monitors keep their bytes: in memory where that fits, else on disk.

A device in memory answers at once, so that the model alone decides when a request is done. Its file is sparse, but what
a lab may write is reserved beforehand: a lab that ran out of memory would take the machine with it. A monitor commits
nothing, no flag and no option, before its store is synced: a host's disk that others keep busy would hold the cluster.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Mapping, Tuple

from ceph_lab.options import DISK, GIB, MIB, RAM, LabOptions, format_size
from ceph_lab.places import LABS, LabPlaces
from ceph_lab.processes import run
from ceph_lab.state import UP, lab_names, readable_state
from ceph_tuner.core.errors import InputError

OSD_BYTES = 1000 * MIB
"""Of an OSD with the least osd_memory_target (896 MiB)."""

MONITOR_BYTES = 512 * MIB
"""A monitor's store in memory; it takes 40 MB at first, and trims what is old."""

DISK_BYTES = GIB
"""An OSD on disk is not begun with less free for it: monitors die on a full disk, and so does the lab."""

SPARE_BYTES = GIB
"""Left to the machine."""

RAM_DEVICE, DISK_DEVICE = 5 * GIB, 16 * GIB
"""A device's size where none is stated."""

RAM_HARD_DISK = 6 * GIB
"""The same of a hard disk's data, where memory suffices. Half a minute of recovery or backfill at a disk's full speed,
with the clients' image, is 5.1 GB on an OSD; loads fill 85% of a device (`loads/room.py`)."""

MEMINFO = Path("/proc/meminfo")


@dataclass(frozen=True)
class Need:
    """Bytes of memory that a lab may come to take, and what the machine has for it."""

    devices: int
    osds: int
    available: int
    device: int = RAM_DEVICE
    """Bytes of one device."""
    monitors: int = MONITOR_BYTES

    @property
    def fits(self) -> bool:
        """Whether it will do."""
        return self.devices + self.monitors + self.osds + SPARE_BYTES <= self.available

    def __str__(self) -> str:
        """What the lab needs, and what the machine has."""
        stores = f"{self.devices / GIB:.1f} GiB for devices, {self.monitors / GIB:.1f} GiB for monitors"
        words = f"{stores} and {self.osds / GIB:.1f} GiB for OSDs"
        return f"{words}; {self.available / GIB:.1f} GiB available"


def placed(options: LabOptions, need: Need, disk_free: int) -> LabOptions:
    """The options with storage and device size decided. Raises InputError where what they need is short.

    `disk_free`: bytes. On disk not all is reserved: most labs never write a tenth of it. To be called, and its answer
    written down, while no other lab is being placed.
    """
    if options.throttled:
        if options.storage == RAM:
            raise InputError("--storage", RAM, "disk: the kernel throttles no device that lies in memory")
    elif options.storage != DISK:
        if need.fits:
            return replace(options, storage=RAM, device_size=need.device)
        if options.storage == RAM:
            raise InputError(
                "--storage",
                f"ram: {need}",
                f"{format_size(SPARE_BYTES)} left over; fewer OSDs, a smaller --device-size, or --storage disk",
            )
    if disk_free < options.osds * DISK_BYTES:
        raise InputError(
            "--storage",
            f"disk: {disk_free / GIB:.1f} GiB free for {options.osds} OSDs",
            f"{format_size(DISK_BYTES)} for each: take another lab down (`ceph-tuner lab status`)",
        )
    return replace(options, storage=DISK, device_size=options.device_size or DISK_DEVICE)


def memory_need(options: LabOptions, labs: Path = LABS, meminfo: Path = MEMINFO) -> Need:
    """What a lab with its devices in memory may come to take: with the largest of its sizes that fits."""
    available = max(0, _available(meminfo) - _claims(labs))
    monitors = options.mons * MONITOR_BYTES
    needs = [
        Need(options.osds * size, options.osds * OSD_BYTES, available, size, monitors) for size in ram_devices(options)
    ]
    return next((need for need in needs if need.fits), needs[-1])


def ram_devices(options: LabOptions) -> Tuple[int, ...]:
    """A device's sizes in memory, the best first; the one that is stated alone."""
    if options.device_size:
        return (options.device_size,)
    drives = [options.drive_of(osd) for osd in range(options.osds)]
    disks = [drive for drive in drives if drive is not None and drive.rotational]
    if not disks:
        return (RAM_DEVICE,)
    # of an OSD with a drive for RocksDB its data have three quarters
    with_database = any(drive.database is not None for drive in disks)
    return (RAM_HARD_DISK * 4 // 3 if with_database else RAM_HARD_DISK, RAM_DEVICE)


def mount(places: LabPlaces, options: LabOptions, environment: Mapping[str, str]) -> None:
    """The directories of the devices' files and the monitors' stores; in memory file systems that cannot outgrow it."""
    # 4 KiB for each file's own bookkeeping would do
    sizes = {places.devices: _devices_bytes(options) + 16 * MIB, places.monitors: options.mons * MONITOR_BYTES}
    for directory, size in sizes.items():
        directory.mkdir()
        if options.storage == RAM:
            command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "ceph-tuner", str(directory)]
            run(command, environment=environment, timeout=30)


def _devices_bytes(options: LabOptions) -> int:
    return options.osds * options.device_size


def _available(meminfo: Path) -> int:
    for line in meminfo.read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) * 1024
    return 0


def _claims(labs: Path) -> int:
    """What other labs may still come to take: of their own file systems, and of OSDs that have only begun."""
    nbytes = 0
    for name in lab_names(labs):
        places = LabPlaces(name, labs)
        state = readable_state(places)
        if state is None or state.options.storage != RAM:
            continue
        options = state.options
        for directory, size in (
            (places.devices, _devices_bytes(options)),
            (places.monitors, options.mons * MONITOR_BYTES),
        ):
            nbytes += shutil.disk_usage(directory).free if os.path.ismount(directory) else size
        nbytes += 0 if state.phase == UP else options.osds * OSD_BYTES
    return nbytes
