"""What an operation costs an OSD, and what settings therefore give each class: capacity accounting.

Symbols (per OSD; bytes and seconds):
    capacity_iops      4 KiB random writes a second, `osd_mclock_max_capacity_iops_*`
    bandwidth          bytes a second, `osd_mclock_max_sequential_bandwidth_*`
    cost_per_io        bandwidth / capacity_iops: the least that any item costs (bytes)
    share              bandwidth / shards: what one shard schedules (bytes/s)

From 17.2.7 an item costs max(its bytes, cost_per_io); reservation and limit are fractions of the shard's capacity
(`mClockScheduler::calc_scaled_cost`, `set_osd_capacity_params_from_config`). Seen in the OSDs' logs of 18.2.7 and
20.2.4 with 315 IOPS and 150 MiB/s: a 4 KiB write and a read cost 499 321; the chunk of a deep scrub of 11 objects of
256 KiB 8 380 220, of a shallow one 5 496 636, each between four or five items of one I/O; a snaptrim item of two clones
524 288; a PG deletion 1 MiB per object.

Up to 17.2.6 an item costs round(per I/O + per byte x bytes), in milliseconds on flash, in seconds on hard disks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Mapping, Optional, Tuple

from ceph_tuner.core.knobs.catalogue import KNOBS
from ceph_tuner.core.knobs.releases import CLASSES, Release, Value, Version
from ceph_tuner.core.knobs.settings import shares

# microseconds per I/O and per byte up to 17.2.6 (osd_mclock_cost_per_io_usec_*, osd_mclock_cost_per_byte_usec_*)
_EARLY_USEC = {"ssd": (50.0, 0.011, 1e3), "hdd": (11400.0, 2.6, 1e6)}
_BEFORE_QUINCY_USEC = {"ssd": (50.0, 0.011, 1e3), "hdd": (25000.0, 5.2, 1e6)}
"""The same in what was developed towards 17.2.0, as in Pacific."""


def kind_of_class(device_class: str) -> str:
    """`hdd` or `ssd`: what a class says of its drives where they say nothing themselves."""
    return "hdd" if device_class == "hdd" else "ssd"


@dataclass(frozen=True)
class Hardware:
    """One OSD as mClock sees it."""

    capacity_iops: float
    bandwidth_bytes_s: float
    shards: int
    device_class: str = "ssd"

    def __post_init__(self) -> None:
        """Refuse what mClock could not divide by."""
        if not self.capacity_iops > 0 or not self.bandwidth_bytes_s > 0 or self.shards < 1:
            raise ValueError(
                f"capacity {self.capacity_iops} IOPS, bandwidth {self.bandwidth_bytes_s} B/s and {self.shards} shards "
                "must be > 0"
            )

    @property
    def cost_per_io(self) -> float:
        """Bytes that the smallest operation costs."""
        return self.bandwidth_bytes_s / self.capacity_iops

    @property
    def shard_bytes_s(self) -> float:
        """Bytes a second that one shard schedules."""
        return self.bandwidth_bytes_s / self.shards

    @property
    def shard_iops(self) -> float:
        """Small operations a second that one shard schedules."""
        return self.capacity_iops / self.shards


def item_cost(nbytes: float, hardware: Hardware, release: Release, version: Optional[Version] = None) -> int:
    """Return an item's cost: bytes from 17.2.7, time before. A client read counts 0 bytes, a write its data."""
    if release.cost_model == "bytes":
        return max(1, int(nbytes), int(hardware.cost_per_io))
    early = _BEFORE_QUINCY_USEC if (version or release.newest) < (17, 2, 0) else _EARLY_USEC
    per_io, per_byte, scale = early[kind_of_class(hardware.device_class)]
    return max(1, round((per_io + per_byte * nbytes) / scale))


def scrub_item_bytes(
    objects: int,
    object_bytes: float,
    deep: bool,
    settings: Mapping[str, Value],
    hardware: Hardware,
    release: Release,
    version: Optional[Version] = None,
) -> int:
    """Bytes that a chunk of a scrub counts.

    Four to five more items of `osd_scrub_event_cost` surround each chunk (the scrubber's own messages).
    """
    if release.cost_model == "scaled":
        return int(_setting("osd_scrub_cost", settings, release))
    event = _setting("osd_scrub_event_cost", settings, release)
    if (version or release.newest) < (18, 2, 5):
        return int(event * _setting("osd_shallow_scrub_chunk_max", settings, release))
    per_object = hardware.cost_per_io + (object_bytes if deep else 0.0)
    return int(event + int(objects * per_object))


def snaptrim_item_bytes(
    object_bytes: float, settings: Mapping[str, Value], release: Release, version: Optional[Version] = None
) -> int:
    """Bytes that a snaptrim item counts; it trims osd_pg_max_concurrent_snap_trims clones."""
    if KNOBS["osd_snap_trim_cost"].effective(release, version).works:
        return int(_setting("osd_snap_trim_cost", settings, release))
    return int(object_bytes * _setting("osd_pg_max_concurrent_snap_trims", settings, release))


def recovery_item_bytes(objects: int, object_bytes: float, release: Release) -> int:
    """Bytes that a recovery item counts: its objects' mean size each; up to 17.2.6 a fixed 20 MiB."""
    return 20 * 2**20 if release.cost_model == "scaled" else int(objects * object_bytes)


def _setting(name: str, settings: Mapping[str, Value], release: Release) -> float:
    value = settings.get(name, KNOBS[name].default(release))
    if value is None:
        raise ValueError(f"{name} has no value on {release.name}")
    return float(value)


@dataclass(frozen=True)
class Allocation:
    """What one class of an OSD is sure of, and what it cannot exceed. None = no limit."""

    reserved_bytes_s: float
    limit_bytes_s: Optional[float]
    reserved_iops: float
    limit_iops: Optional[float]
    weight_share: float
    """Its part of what the reservations leave over, when all three classes want more and none is at its limit."""


def allocation(settings: Mapping[str, Value], hardware: Hardware, release: Release) -> Dict[str, Allocation]:
    """Translate the nine values into rates by class, per OSD (all its shards, evenly loaded).

    Small IOs are operations up to cost_per_io; larger ones share the bytes. `settings` are in the release's units.
    """
    by_class = shares(settings)
    weights = sum(weight for _, weight, _ in by_class.values())
    result = {}
    for service_class in CLASSES:
        reservation, weight, limit = by_class[service_class]
        reserved, limited = _fractions(reservation, limit, hardware, release)
        result[service_class] = Allocation(
            reserved_bytes_s=reserved * hardware.bandwidth_bytes_s,
            limit_bytes_s=None if limited is None else limited * hardware.bandwidth_bytes_s,
            reserved_iops=reserved * hardware.capacity_iops,
            limit_iops=None if limited is None else limited * hardware.capacity_iops,
            weight_share=weight / weights if weights else 0.0,
        )
    return result


def _fractions(reservation: float, limit: float, hardware: Hardware, release: Release) -> Tuple[float, Optional[float]]:
    """Reservation and limit as fractions of the OSD's capacity; no limit is None."""
    unit = 1.0 if release.units == "fraction" else hardware.shard_iops
    return reservation / unit, None if limit in (0, release.no_limit) else limit / unit
