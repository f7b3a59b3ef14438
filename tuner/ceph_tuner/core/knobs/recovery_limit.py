"""What a limit on recovery leaves of it on OSDs of several shards.

Each shard has its part of the limit, and recovery passes through the shards of the PGs that are recovered now: one PG
with osd_max_backfills 1. So L on S shards leaves L/S of the capacity. A pull counts as a whole osd_recovery_max_chunk,
however small its object (docs/ceph-behaviour.md).
"""

from __future__ import annotations

from typing import Mapping, Optional

from ceph_tuner.core.knobs.releases import Release, Value

LIMIT, CHUNK, BACKFILLS = (
    "osd_mclock_scheduler_background_recovery_lim",
    "osd_recovery_max_chunk",
    "osd_max_backfills",
)
OBJECT_BYTES = 4 << 20
"""Of RBD, CephFS and RGW by default."""
DEFAULT_CHUNK = 8 << 20
GOOD_CHUNK = 256 << 10
"""With it, and no limit, clients waited as little as under a limit; recovery kept three quarters of its rate."""


def share_left(limit: float, shards: int, backfills: float = 1.0) -> float:
    """Of an OSD's capacity, what a limit above 0 leaves to recovery that passes through so many PGs at once."""
    return limit * min(max(backfills, 1.0), shards) / shards


def limit_note(
    settings: Mapping[str, Value],
    release: Release,
    shards: int,
    chunk_bytes: float = DEFAULT_CHUNK,
) -> Optional[str]:
    """What to know of settings that limit recovery, with fractions of the capacity; None where that does no harm.

    `shards`, and the chunk where the settings have none, are those of the OSDs.
    """
    limit, chunk = float(settings.get(LIMIT, 0) or 0), float(settings.get(CHUNK, chunk_bytes))
    if release.units != "fraction" or limit <= 0 or shards < 2 or chunk <= OBJECT_BYTES:
        return None
    left = share_left(limit, shards, float(settings.get(BACKFILLS, 1)))
    return (
        f"{LIMIT} {limit:g} on OSDs of {shards} shards leaves recovery {left:.1%} of the capacity: each shard has its "
        f"part of the limit, and a pull counts as a whole {CHUNK} ({chunk / 2**20:.3g} MiB), however small the object. "
        f"{CHUNK} {GOOD_CHUNK} without a limit serves clients as well, and recovers many times faster"
    )
