"""BlueStore compression that costs more than it gives.

Published (snappy, aggressive, required ratio 0.875): 36% of the writes were compressed in vain; small writes lost a
single-digit percentage, up to 10% with synthetic loads.
"""

from __future__ import annotations

from typing import List

from ceph_tuner.doctor.facts import Facts
from ceph_tuner.doctor.finding import COSTLY, Finding, some

MOST_LOST = 0.1
"""Share of small writes that compression cost at the most."""
LEAST_BLOBS = 1000.0
VAIN = 0.5
"""Share of blobs compressed in vain from which it is worth a word."""
LEAST_GAIN = 0.875
"""Ceph's own required ratio."""


def compression(facts: Facts) -> List[Finding]:
    """OSDs that compress in vain, and pools whose data hardly becomes smaller."""
    evidence, worst = [], 0.0
    for osd in facts.looked_at:
        total = osd.compressed + osd.rejected
        if total >= LEAST_BLOBS and osd.rejected / total >= VAIN:
            share = osd.rejected / total
            evidence.append(f"osd.{osd.place.osd}: {share:.0%} of {total:.0f} blobs were compressed in vain")
            worst = max(worst, share)
    pools = []
    for pool in facts.pools:
        ratio = pool.compressed_to / pool.compressed_from if pool.compressed_from else None
        if pool.compression != "none" and ratio is not None and ratio > LEAST_GAIN:
            evidence.append(f"{pool.name} ({pool.compression}): what is compressed takes {ratio:.0%} of its size")
            pools.append(pool.name)
    if not evidence:
        return []
    modes = {pool.name: pool.compression for pool in facts.pools if pool.compression != "none"}
    return [
        Finding(
            "compression",
            COSTLY,
            "Compression works in vain",
            some(evidence),
            f"up to {MOST_LOST:.0%} of small writes, and CPU time, for next to no space",
            "Compress on clients' hints only, or not at all, where the data does not compress.",
            share=MOST_LOST * (worst or 1.0),
            commands=tuple(f"ceph osd pool set {name} compression_mode passive" for name in pools or modes),
        )
    ]
