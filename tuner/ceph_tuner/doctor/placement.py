"""PGs on OSDs: how uneven they are, how many there should be, and what a change would move.

Why it counts (published: 60 NVMe OSDs, random reads gained up to 16 384 PGs, writes up to 2 048): the busiest OSD is
full while the others wait, and operations on one PG take turns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Sequence

from ceph_tuner.doctor.facts import Facts, PgFacts, PoolFacts
from ceph_tuner.doctor.finding import COSTLY, Finding, size, some

UNEVEN = 0.15
"""The busiest OSD above the mean, as a share: below it nothing is said."""
MATTERS = 0.05
"""A pool's share of the bytes or of the operations from which its PGs count."""
LEAST_BYTES = 2.0**30
"""Of a pool, on all OSDs: below it more PGs are not worth a word."""
FEWER = 2.0
"""How many times more PGs must be planned for it to be worth moving data."""


@dataclass(frozen=True)
class Spread:
    """A pool's PGs over its OSDs, each held against its CRUSH weight."""

    osds: int
    mean: float
    """PGs (copies) of an OSD of mean weight."""
    busiest: int
    excess: float
    """How far the busiest OSD is above what its weight is due, as a share."""


def placement(facts: Facts) -> List[Finding]:
    """Pools that carry load on few or unevenly spread PGs."""
    nbytes, operations = sum(pool.raw_bytes for pool in facts.pools), sum(pool.operations for pool in facts.pools)
    evidence, commands, worst, moved, planned = [], [], 0.0, 0.0, []
    for pool in facts.pools:
        by_bytes = pool.raw_bytes / nbytes if nbytes else 0.0
        by_work = pool.operations / operations if operations else 0.0
        found = spread_of([pg for pg in facts.pgs if pg.pool == pool.number], facts.weights)
        if found is None or max(by_bytes, by_work) < MATTERS:
            continue
        share = by_bytes or by_work
        wanted = planned_pgs(pool, facts.target_pgs, found.osds, share)
        few = wanted >= FEWER * pool.pg_num and pool.raw_bytes >= LEAST_BYTES
        if (found.excess < UNEVEN or pool.raw_bytes < LEAST_BYTES) and not few:
            continue
        words = f"{pool.name} ({share:.0%} of the data): {pool.pg_num} PGs x {pool.size} on {found.osds} OSDs, "
        words += f"{found.mean:.3g} each"
        if found.excess >= UNEVEN:
            words += f"; osd.{found.busiest} has {found.excess:.0%} more than its part"
        if few:
            after = found.excess * math.sqrt(pool.pg_num / wanted)
            moves = moved_bytes(pool, wanted, found.osds)
            words += f". Planned: {wanted}, which moves {size(moves)} of {size(pool.raw_bytes)}"
            words += f" and leaves about {after:.0%}" if found.excess >= UNEVEN else ""
            commands.append(f"ceph osd pool set {pool.name} pg_num {wanted}")
            moved += moves
            planned.append(pool.name)
        evidence.append(words)
        worst = max(worst, found.excess)
    if not evidence:
        return []
    lost = 1 - 1 / (1 + worst)
    moving = f"in hours when {size(moved)} may move" if moved else "which moves next to nothing here"
    cure = f"More PGs for {', '.join(planned)}, {moving}." if planned else ""
    uneven = "The balancer evens them out (`ceph balancer status`)." if worst >= UNEVEN else ""
    return [
        Finding(
            "placement",
            COSTLY,
            "Few or uneven PGs: the busiest OSD is full while others wait" if worst >= UNEVEN else "Few PGs per OSD",
            some(evidence),
            (f"about {lost:.0%} of the throughput, as the busiest OSD decides it; " if worst >= UNEVEN else "")
            + "operations on one PG take turns (published: reads gained up to 820 PG copies an OSD)",
            f"{cure} {uneven}".strip(),
            share=lost,
            commands=(*commands, *(["ceph balancer mode upmap", "ceph balancer on"] if worst >= UNEVEN else [])),
        )
    ]


def spread_of(pgs: Sequence[PgFacts], weights: Mapping[int, float]) -> Optional[Spread]:
    """How a pool's PGs lie on the OSDs that have any; None where it has none on OSDs of known weight.

    An OSD of the pool's CRUSH rule that got no PG at all is not seen, so few PGs look more even than they are.
    """
    counts: Dict[int, int] = {}
    for pg in pgs:
        for osd in pg.acting:
            if weights.get(osd, 0) > 0:
                counts[osd] = counts.get(osd, 0) + 1
    if not counts:
        return None
    total, weight = sum(counts.values()), sum(weights[osd] for osd in counts)
    due = {osd: total * weights[osd] / weight for osd in counts}
    busiest = max(counts, key=lambda osd: (counts[osd] / due[osd], -osd))
    return Spread(len(counts), total / len(counts), busiest, max(0.0, counts[busiest] / due[busiest] - 1))


def planned_pgs(pool: PoolFacts, target: float, osds: int, share: float) -> int:
    """PGs by which the pool's share of each OSD's target is used, as the nearest power of two."""
    ideal = max(1.0, target * osds * share / pool.size)
    return int(2 ** round(math.log2(ideal)))


def moved_bytes(pool: PoolFacts, wanted: int, osds: int) -> float:
    """Bytes that a larger pg_num moves: of the new PGs' copies, those that CRUSH places elsewhere.

    Each doubling places one half of the data anew (`ceph_stable_mod`: a PG whose own place does not count yet lies with
    its parent, so from 8 to 32 PGs some data moves twice); a copy that is placed anew finds one there already with
    the probability size / OSDs.
    """
    doublings = math.log2(max(1.0, wanted / pool.pg_num))
    return pool.raw_bytes * doublings / 2 * max(0.0, 1 - pool.size / osds)
