"""How fast the OSDs' drives are, as mClock is told: what a load's amount of work is made for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Sequence

from ceph_lab.loads.layout import PoolLayout
from ceph_lab.loads.session import LabSession
from ceph_tuner.core.profiles.in_force import kind_of, log_is_on_flash

TRIMMED_PER_IO = 0.8
"""Clones that an OSD without a limit trims for each write that its drive can do a second; 0.57 was measured."""

FLASH_LOG_IOPS = 1740.0
"""Writes a second of a drive that holds RocksDB alone: an OSD's bench on the lab's flash. To trim is to commit."""

PLACES_S = 450.0
"""Writes a second at places of their own, at most, on a disk whose log lies elsewhere: what a bench finds there is the
log's pace, and the data go to their places later. With a full queue a lab's disk does 213."""


@dataclass(frozen=True)
class DriveSpeed:
    """Of the slowest of some OSDs: bytes and small writes a second."""

    bandwidth_bytes_s: float
    iops: float
    log_iops: float
    """Of the drive that RocksDB's log lies on."""

    @classmethod
    def of(cls, bandwidth_bytes_s: float, iops: float, log_on_flash: bool) -> DriveSpeed:
        """Of one OSD as mClock is told, whose log may lie on another drive."""
        if log_on_flash:
            return cls(bandwidth_bytes_s, min(iops, PLACES_S), max(iops, FLASH_LOG_IOPS))
        return cls(bandwidth_bytes_s, iops, iops)

    def moved_objects_s(self, layout: PoolLayout, object_bytes: int) -> float:
        """Objects of which one OSD takes a copy, or a chunk, at most: its drive does nothing else.

        Each is a write at a place of its own and its transfer. On a disk the first is as long as the second of 400 KB.
        """
        return 1.0 / (object_bytes * layout.stored_share / self.bandwidth_bytes_s + 1.0 / self.iops)

    def trimmed_clones_s(self, layout: PoolLayout, osds: int) -> float:
        """Clones that so many OSDs trim together, at most."""
        return TRIMMED_PER_IO * self.log_iops * osds / layout.size

    def lasting_clones(self, seconds: float, layout: PoolLayout, osds: int) -> int:
        """So many that trimming lasts that long."""
        return objects_for(seconds, self.trimmed_clones_s(layout, osds))


def objects_for(seconds: float, objects_s: float) -> int:
    """So many that they last, and enough to spread over PGs."""
    return max(32, math.ceil(seconds * objects_s))


def slowest_drive(session: LabSession, osds: Sequence[int]) -> DriveSpeed:
    """The least bandwidth and the least operations a second among the drives of these OSDs."""
    drives = [_drive(session, osd) for osd in osds]
    return DriveSpeed(
        min(drive.bandwidth_bytes_s for drive in drives),
        min(drive.iops for drive in drives),
        min(drive.log_iops for drive in drives),
    )


def backfilled_at_once(session: LabSession, osds: Sequence[int]) -> int:
    """Drives that backfill keeps busy together at most: those of the PGs that osd_max_backfills in force lets begin.

    The OSDs say so themselves: mClock takes a value back that is in the configuration database without its override.
    """
    answers = (session.osd(osd, "config get", var="osd_max_backfills") for osd in osds)
    return max(1, min(len(osds), max(int(answer["osd_max_backfills"]) for answer in answers)))


def _drive(session: LabSession, osd: int) -> DriveSpeed:
    # an OSD goes by what its drive says, whatever class an operator has given it
    said = session.mon("osd metadata", id=osd)
    kind = kind_of(said)
    bandwidth, iops = (
        float(session.mon("config get", who=f"osd.{osd}", key=f"osd_mclock_max_{key}_{kind}"))
        for key in ("sequential_bandwidth", "capacity_iops")
    )
    return DriveSpeed.of(bandwidth, iops, kind == "hdd" and log_is_on_flash(said))
