"""The drives of labs that share this machine's processors: twice as slow as the preset, so that the drives decide."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict

from ceph_lab.drives import DriveSet
from ceph_lab.drives.presets import PRESETS
from ceph_lab.options import GIB

_NVME = PRESETS["nvme"].data

DRIVE = DriveSet(replace(_NVME, slow_motion=2 * _NVME.slow_motion), bench_iops={"tentacle": 910, "reef": 850})

SLOW_NVME: Dict[str, Any] = {"drive": "slow-nvme", "drives": {"slow-nvme": DRIVE}, "device_size": 2 * GIB}
"""Options of a lab. Several fit into memory: those on a disk would share what else is written to it."""
