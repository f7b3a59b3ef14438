"""The drives that `lab up --drive NAME` knows, each by its maker's data sheet, and how much slower they run here."""

from __future__ import annotations

from typing import Dict, Tuple

from ceph_lab.drives import Disk, DriveSet, Flash
from ceph_tuner.core.errors import InputError

THROTTLE = "throttle"
"""No emulated drive: the kernel's cgroup limits a loop device."""

_NVME = Flash(
    read_iops=645_000,
    write_iops=62_500,
    read_bandwidth=3.2e9,
    write_bandwidth=1.8e9,
    read_latency_us=115,
    write_latency_us=20,
    slow_motion=32,
    source="Intel DC P4500 4 TB, Lenovo's product guide: 4 KiB random at depth, 128 KiB sequential, random latency",
)
_SATA_SSD = Flash(
    read_iops=72_000,
    write_iops=33_000,
    read_bandwidth=500e6,
    write_bandwidth=490e6,
    read_latency_us=110,
    write_latency_us=52,
    slow_motion=16,
    source="Intel DC S4500, product specification 2017: 4 KiB random at depth 32, 128 KiB sequential, random latency",
)
_HDD = Disk(
    rpm=7200,
    average_seek_ms=8.2,
    track_seek_ms=0.6,
    bandwidth=171e6,
    source="HGST Ultrastar 7K4000 SAS, specification 2012: typical seek, 7 200 rpm, sustained transfer",
)

PRESETS: Dict[str, DriveSet] = {
    "nvme": DriveSet(_NVME, bench_iops={"tentacle": 1740, "reef": 1630}),
    "sata-ssd": DriveSet(_SATA_SSD, bench_iops={"tentacle": 1820, "reef": 1655}),
    "hdd": DriveSet(_HDD, bench_iops={"tentacle": 640, "reef": 580}),
    "hybrid": DriveSet(_HDD, _NVME, bench_iops={"tentacle": 735, "reef": 715}),
}

NAMES: Tuple[str, ...] = (*PRESETS, THROTTLE)


def preset(name: str) -> DriveSet:
    """The named preset. Raises InputError."""
    if name not in PRESETS:
        raise InputError("--drive", repr(name), f"{', '.join(NAMES)}, or a file that describes one")
    return PRESETS[name]


_DATA_BYTES = {"hdd": 5 << 30, "hybrid": 15 << 28}
"""Of the devices that the benches of PRESETS were run on, where their size counts."""


def _kind(drive: DriveSet) -> Tuple[bool, bool]:
    """Where the data lie, and where the log does: the bench is of both."""
    return drive.rotational, drive.database is not None


def bench_bound_iops(drive: DriveSet, release: str, data_bytes: float) -> float:
    """4 KiB writes a second that an OSD on a drive does at least on an idle machine, in slow motion.

    By the drive's model, and the least that OSDs made of a preset's model on that kind of drive.
    """
    alike = {name: one for name, one in PRESETS.items() if _kind(one) == _kind(drive)}
    shares = [one.bench_iops[release] / one.small_writes_s(_DATA_BYTES.get(name, 1)) for name, one in alike.items()]
    return min(shares) * drive.small_writes_s(data_bytes)
