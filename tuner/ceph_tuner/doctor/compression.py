"""BlueStore compression that costs more than it gives.

Published (snappy, aggressive, required ratio 0.875): 36% of the writes were compressed in vain; small writes lost a
single-digit percentage, up to 10% with synthetic loads.
"""

from __future__ import annotations

from shlex import quote
from typing import List

from ceph_tuner.core.wording import some
from ceph_tuner.doctor.facts import Facts, PoolFacts
from ceph_tuner.doctor.finding import COSTLY, Finding, size

MOST_LOST = 0.1
"""Share of small writes that compression cost at the most."""
LEAST_BLOBS = 1000.0
VAIN = 0.5
"""Share of blobs compressed in vain from which it is worth a word."""
LEAST_GAIN = 0.875
"""Ceph's own required ratio."""
LITTLE = 0.1
"""Share of a pool's bytes, below which what is compressed of it is not worth the trying."""
_MODE = "bluestore_compression_mode"


def compression(facts: Facts) -> List[Finding]:
    """OSDs that compress in vain, and pools whose data hardly becomes smaller."""
    # a pool without a mode of its own has the OSDs'
    usual = next((osd.options.get(_MODE, "none") for osd in facts.looked_at), "none")
    pools = [pool for pool in facts.pools if (pool.compression or usual) != "none"]
    if not pools:
        # what an OSD has counted was for a pool that is gone, or that compresses no more
        return []
    rejections: List[str] = []
    worst = 0.0
    for osd in facts.looked_at:
        total = osd.compressed + osd.rejected
        if total >= LEAST_BLOBS and osd.rejected / total >= VAIN:
            share = osd.rejected / total
            rejections.append(f"osd.{osd.place.osd}: {share:.0%} of {total:.0f} blobs were compressed in vain")
            worst = max(worst, share)
    # an OSD does not count by pool: of those that it may be, the ones of which little is compressed
    vain = [pool for pool in pools if _shrinks_little(pool) or (rejections and _compressed_little(pool))]
    gains = [pool for pool in pools if rejections and pool not in vain and pool.compressed_from]
    evidence = [
        *some(rejections),
        *some(
            f"{pool.name} ({pool.compression or usual}): what is compressed takes "
            f"{pool.compressed_to / pool.compressed_from:.0%} of its size"
            for pool in vain
            if _shrinks_little(pool)
        ),
        *some(_gain_text(pool, pool.compression or usual) for pool in gains),
    ]
    if not rejections and not vain:
        return []
    # the OSDs' own mode is that of every pool without one
    whole = all(pool in vain for pool in pools if not pool.compression)
    commands = {
        f"ceph osd pool set {quote(pool.name)} compression_mode passive"
        if pool.compression or not whole
        else f"ceph config set osd {_MODE} passive": None
        for pool in vain
        if (pool.compression or usual) != "passive"
    }
    cure = "Compress on clients' hints only, or not at all, where the data does not compress."
    if gains:
        cure += f" What {', '.join(pool.name for pool in gains)} saves would be lost without compression."
    return [
        Finding(
            "compression",
            COSTLY,
            "Compression works in vain",
            tuple(evidence),
            f"up to {MOST_LOST:.0%} of small writes, and CPU time, "
            + ("for blobs that did not shrink" if gains else "for next to no space"),
            cure,
            share=MOST_LOST * (worst or 1.0),
            commands=tuple(commands),
        )
    ]


def _shrinks_little(pool: PoolFacts) -> bool:
    return pool.compressed_to > LEAST_GAIN * pool.compressed_from


def _compressed_little(pool: PoolFacts) -> bool:
    """Whether next to nothing of what a pool stores is compressed; of an empty one nothing can be said."""
    return pool.raw_bytes > 0 and pool.compressed_from < LITTLE * pool.raw_bytes


def _gain_text(pool: PoolFacts, mode: str) -> str:
    gain = pool.compressed_from - pool.compressed_to
    part = pool.compressed_from / pool.raw_bytes if pool.raw_bytes else 1.0
    return f"{pool.name} ({mode}) saves {size(gain)}: {min(1.0, part):.0%} of it is compressed"
