"""PGs on OSDs: how uneven they are, how many there should be, and what a change would move.

Why it counts (published: 60 NVMe OSDs, random reads gained up to 16 384 PGs, writes up to 2 048): the busiest OSD is
full while the others wait, and operations on one PG take turns.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from shlex import quote
from typing import Dict, List, Mapping, Optional, Sequence, Set, Tuple

from ceph_tuner.cluster.balancer import OFF, evens_pgs_out
from ceph_tuner.core.measure.pg_counts import MOST_PGS, pg_counts
from ceph_tuner.core.wording import some
from ceph_tuner.doctor.facts import Facts, PgFacts, PoolFacts
from ceph_tuner.doctor.finding import COSTLY, Finding, size

UNEVEN = 0.15
"""The busiest OSD above the mean, as a share: below it nothing is said."""
MATTERS = 0.05
"""A pool's share of the bytes or of the operations on its OSDs from which its PGs count."""
LEAST_BYTES = 2.0**30
"""Of a pool, on all OSDs: below it more PGs are not worth a word."""
FEWER = 2.0
"""How many times more PGs the target must allow for it to be worth moving data."""


@dataclass(frozen=True)
class PoolSpread:
    """A pool's PGs over its OSDs, each held against its CRUSH weight."""

    osds: int
    mean: float
    """PGs (copies) of an OSD of mean weight."""
    busiest: int
    excess: float
    """How far the busiest OSD is above what its weight is due, as a share."""


def placement(facts: Facts) -> List[Finding]:
    """Pools that carry load on few or unevenly spread PGs."""
    load_shares = shares(facts)
    fullest, worst = busiest_of_all(facts)
    evidence, commands, bytes_to_move, pools_to_split, full_pools = [], [], 0.0, [], []
    pg_nums = {pool.number: pool.pg_num for pool in facts.pools}
    for pool in facts.pools:
        distribution = spread_of([pg for pg in facts.pgs if pg.pool == pool.number], facts.weights)
        if distribution is None or max(load_shares[pool.number]) < MATTERS or pool.raw_bytes < LEAST_BYTES:
            continue
        share = max(load_shares[pool.number])
        few = ideal_pgs(pool, facts.target_pgs, distribution.osds, share) >= FEWER * pool.pg_num
        # where the other pools carry the load, a pool's own unevenness costs next to nothing
        uneven = min(distribution.excess, worst) >= UNEVEN
        if not uneven and not few:
            continue
        nbytes, operations = load_shares[pool.number]
        words = f"{pool.name} ({nbytes:.0%} of the data and {operations:.0%} of the operations on its OSDs): "
        words += f"{pool.pg_num} PGs x {pool.size} on {distribution.osds} OSDs, {distribution.mean:.3g} each"
        if uneven:
            words += f"; osd.{distribution.busiest} has {distribution.excess:.0%} more than its part"
        if few:
            ideal, most = (
                planned_pgs(pool, facts.target_pgs, distribution.osds, share),
                permitted_pgs(facts, pool, pg_nums),
            )
            pg_num = min(ideal, most)
            if pg_num < ideal:
                words += f". {ideal} would be more than the monitors take ({MOST_PGS.name} is {facts.most_pgs:g})"
        if few and pg_num <= pool.pg_num:
            full_pools.append(pool.name)
        elif few:
            after = distribution.excess * math.sqrt(pool.pg_num / pg_num)
            moves = moved_bytes(pool, pg_num, distribution.osds)
            words += f". Planned: {pg_num}, which moves {size(moves)} of {size(pool.raw_bytes)}"
            words += f" and leaves about {after:.0%}" if uneven else ""
            # without it the autoscaler would take a larger pg_num back
            commands += [f"ceph osd pool set {quote(pool.name)} pg_num_min {pg_num}"] if pool.autoscaled else []
            commands.append(f"ceph osd pool set {quote(pool.name)} pg_num {pg_num}")
            bytes_to_move += moves
            pools_to_split.append(pool.name)
            pg_nums[pool.number] = pg_num
        evidence.append(words)
    if worst >= UNEVEN and len(facts.pools) > 1:
        evidence.insert(0, f"all pools together: osd.{fullest} has {worst:.0%} more load than its part")
    if not facts.pgs:
        # too many to be listed: all pools together
        together = _together(facts)
        evidence += [words for words, _ in together]
        worst = max((excess for _, excess in together), default=0.0)
    if not evidence:
        return []
    loss = 1 - 1 / (1 + worst)
    when = f"in hours when {size(bytes_to_move)} may move" if bytes_to_move else "which moves next to nothing here"
    cure = f"More PGs for {', '.join(pools_to_split)}, {when}. " if pools_to_split else ""
    if full_pools:
        cure += (
            f"The OSDs have no room for more PGs of {', '.join(full_pools)}: first fewer of pools that carry little. "
        )
    even, how = _balancer_advice(facts) if worst >= UNEVEN else ("", ())
    return [
        Finding(
            "placement",
            COSTLY,
            "Few or uneven PGs: the busiest OSD is full while others wait"
            if worst >= UNEVEN
            else "Few PGs of a pool that carries load",
            some(evidence),
            (f"about {loss:.0%} of the throughput, as the busiest OSD decides it; " if worst >= UNEVEN else "")
            + "operations on one PG take turns (published: reads gained up to 820 PG copies an OSD)",
            f"{cure}{even}".strip(),
            share=loss,
            commands=(*commands, *how),
        )
    ]


def _balancer_advice(facts: Facts) -> Tuple[str, Tuple[str, ...]]:
    """What evens PGs out, and by which commands."""
    if facts.balancer in ("", OFF):
        off = " is off, and" if facts.balancer else ""
        return f"The balancer{off} evens them out.", ("ceph balancer mode upmap", "ceph balancer on")
    if not evens_pgs_out(facts.balancer):
        words = f"The balancer's mode is {facts.balancer}: upmap evens them out better."
        return words, ("ceph balancer mode upmap",)
    if facts.deviation > 1:
        words = f"The balancer is on, and lets OSDs differ by {facts.deviation:g} PGs: let it be 1."
        return words, ("ceph config set mgr mgr/balancer/upmap_max_deviation 1",)
    return "The balancer is on and as strict as it can be: give it time, or look at the CRUSH weights.", ()


def busiest_of_all(facts: Facts) -> Tuple[int, float]:
    """The OSD whose load, of all pools, is the farthest above its part, and how far, as a share; 0 where none is.

    By the bytes and by the operations of the pools, whichever is worse: the sum over the pools of an OSD of each one's
    part of them, times its PGs there over those due. A pool too small for a word counts as even.
    """
    candidates = [_busiest(facts, {pool.number: pool.raw_bytes for pool in facts.pools})]
    candidates.append(_busiest(facts, {pool.number: pool.operations for pool in facts.pools}))
    return max(candidates, key=lambda pair: pair[1])


def _busiest(facts: Facts, amounts: Mapping[int, float]) -> Tuple[int, float]:
    load: Dict[int, float] = {}
    due: Dict[int, float] = {}
    counts: Dict[int, Counter[int]] = {}
    for pg in facts.pgs:
        counts.setdefault(pg.pool, Counter()).update(osd for osd in pg.acting if facts.weights.get(osd, 0) > 0)
    for pool in facts.pools:
        own = counts.get(pool.number, Counter())
        total, weight = sum(own.values()), sum(facts.weights[osd] for osd in own)
        for osd, count in own.items():
            part = amounts[pool.number] * facts.weights[osd] / weight
            due[osd] = due.get(osd, 0.0) + part
            is_even = pool.raw_bytes < LEAST_BYTES
            load[osd] = load.get(osd, 0.0) + (part if is_even else amounts[pool.number] * count / total)
    excesses = {osd: load[osd] / due[osd] - 1 for osd in load if due[osd] > 0}
    busiest = max(excesses, key=lambda osd: (excesses[osd], -osd), default=0)
    return busiest, max(0.0, excesses.get(busiest, 0.0))


def _together(facts: Facts) -> List[Tuple[str, float]]:
    """Device classes whose PGs are uneven, in words and by how much."""
    excesses = []
    for name in sorted({place.device_class for place in facts.places}):
        osds = [place.osd for place in facts.places if place.device_class == name and place.osd in facts.weights]
        spread = _spread({osd: facts.pg_copies.get(osd, 0) for osd in osds}, facts.weights)
        if spread is not None and spread.excess >= UNEVEN:
            words = f"class {name or 'none'}, all pools together: {spread.mean:.3g} PGs on each of {spread.osds} OSDs; "
            excesses.append((f"{words}osd.{spread.busiest} has {spread.excess:.0%} more than its part", spread.excess))
    return excesses


def shares(facts: Facts) -> Dict[int, Tuple[float, float]]:
    """By pool: its share of the bytes, and of the operations, on the OSDs that have its PGs.

    Pools of one device class say nothing about those of another: of a pool that is on other OSDs as well, the part
    that falls to these counts.
    """
    on: Dict[int, Set[int]] = {pool.number: set() for pool in facts.pools}
    for pg in facts.pgs:
        on.setdefault(pg.pool, set()).update(osd for osd in pg.acting if facts.weights.get(osd, 0) > 0)

    def share(pool: PoolFacts, amounts: Mapping[int, float]) -> float:
        total = sum(
            amounts[other.number] * len(on[other.number] & on[pool.number]) / len(on[other.number])
            for other in facts.pools
            if on[other.number]
        )
        return amounts[pool.number] / total if total else 0.0

    nbytes = {pool.number: pool.raw_bytes for pool in facts.pools}
    operations = {pool.number: pool.operations for pool in facts.pools}
    return {pool.number: (share(pool, nbytes), share(pool, operations)) for pool in facts.pools}


def spread_of(pgs: Sequence[PgFacts], weights: Mapping[int, float]) -> Optional[PoolSpread]:
    """How a pool's PGs lie on the OSDs that have any; None where it has none on OSDs of known weight.

    An OSD of the pool's CRUSH rule that got no PG at all is not seen, so few PGs look more even than they are.
    """
    return _spread(Counter(osd for pg in pgs for osd in pg.acting if weights.get(osd, 0) > 0), weights)


def _spread(counts: Mapping[int, int], weights: Mapping[int, float]) -> Optional[PoolSpread]:
    total, weight = sum(counts.values()), sum(weights[osd] for osd in counts)
    if not total:
        return None
    due = {osd: total * weights[osd] / weight for osd in counts}
    busiest = max(counts, key=lambda osd: (counts[osd] / due[osd], -osd))
    return PoolSpread(len(counts), total / len(counts), busiest, max(0.0, counts[busiest] / due[busiest] - 1))


def ideal_pgs(pool: PoolFacts, target: float, osds: int, share: float) -> float:
    """PGs by which the pool's share of each OSD's target is used."""
    return max(1.0, target * osds * share / pool.size)


def planned_pgs(pool: PoolFacts, target: float, osds: int, share: float) -> int:
    """The power of two that is nearest to it."""
    return int(2 ** round(math.log2(ideal_pgs(pool, target, osds, share))))


def permitted_pgs(facts: Facts, pool: PoolFacts, pg_nums: Mapping[int, int]) -> int:
    """The largest power of two that the monitors take as the pool's pg_num; 0 where they take none.

    They hold the mean of the pool's OSDs against `mon_max_pg_per_osd`. `pg_nums` are those of all pools, with what is
    planned for them.
    """
    copies = ((pg.pool, osd) for pg in facts.pgs for osd in pg.acting if facts.weights.get(osd, 0) > 0)
    planned = {each.number: float(pg_nums[each.number] * each.size) for each in facts.pools}
    return pg_counts(copies, pool.number, pool.size, planned).permitted(facts.most_pgs)


def moved_bytes(pool: PoolFacts, pg_num: int, osds: int) -> float:
    """Bytes that a larger pg_num moves: of the new PGs' copies, those that CRUSH places elsewhere.

    Each doubling places one half of the data anew (`ceph_stable_mod`: a PG whose own place does not count yet lies with
    its parent, so from 8 to 32 PGs some data moves twice); a copy that is placed anew finds one there already with
    the probability size / OSDs. Of erasure-coded data it must be the same shard: 1 / OSDs.
    """
    doublings = math.log2(max(1.0, pg_num / pool.pg_num))
    there = (1 if pool.erasure else pool.size) / osds
    return pool.raw_bytes * doublings / 2 * max(0.0, 1 - there)
