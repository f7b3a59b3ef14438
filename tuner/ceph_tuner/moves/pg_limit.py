"""Whether another pg_num, or a drain, gives OSDs too many PGs: a split is not undone."""

from __future__ import annotations

from typing import List, Mapping, Optional

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.measure.pg_counts import HARD_RATIO, MOST_PGS, TARGET_PGS, PgCounts, pg_counts
from ceph_tuner.core.wording import first_of
from ceph_tuner.moves import MapView
from ceph_tuner.moves.map_view import pg_option
from ceph_tuner.moves.pgs_plan import PgsPlan

MANY_PGS = "--many-pgs"
NAMED_OSDS = 8


def beyond_limit(view: MapView, plan: PgsPlan) -> Optional[InputError]:
    """The refusal of more PGs than Ceph's limit; None where they keep it."""
    pool, counts = view.pools[plan.pool], _counts(view, plan.pool)
    after, most = counts.mean(plan.pg_num), view.most_pgs
    if plan.pg_num <= pool.pg_num or after <= most:
        return None
    fits = counts.permitted(most)
    room = f"{fits} keeps the limit" if fits > pool.pg_num else "its OSDs have no room for more PGs"
    found = f"{plan.pg_num}, which gives an OSD {after:.0f} PGs in the mean, beyond {MOST_PGS.name} of {most:g}"
    return InputError("PG_NUM", found, f"{MANY_PGS} to do it all the same ({room})")


def beyond_osds(view: MapView, plan: PgsPlan) -> Optional[InputError]:
    """The refusal of more PGs than the OSDs take, which nothing lifts; None where they take them."""
    pool, counts = view.pools[plan.pool], _counts(view, plan.pool)
    after = counts.mean(plan.pg_num)
    if plan.pg_num <= pool.pg_num or after <= view.hard_most_pgs:
        return None
    found = f"{plan.pg_num}, which gives an OSD {after:.0f} PGs in the mean. Beyond {view.hard_most_pgs:g} it leaves"
    limit = f"{MOST_PGS.name} times {HARD_RATIO.name}"
    return InputError("PG_NUM", f"{found} PGs inactive ({limit})", f"at most {counts.permitted(view.hard_most_pgs)}")


def remarks(cluster: Cluster, view: MapView, plan: PgsPlan) -> List[str]:
    """What is unusual about the number, and no reason to refuse it. Raises TunerError."""
    pool, counts = view.pools[plan.pool], _counts(view, plan.pool)
    if plan.pg_num < pool.pg_num and plan.pg_num * counts.size < counts.osds:
        return [f"That leaves some of its {counts.osds} OSDs without a PG of pool {pool.name}."]
    after, target = counts.mean(plan.pg_num), pg_option(cluster, TARGET_PGS)
    if plan.pg_num > pool.pg_num and after > target:
        return [f"That gives an OSD {after:.0f} PGs in the mean. Ceph aims at {target:g} ({TARGET_PGS.name})."]
    return []


def crowded_words(view: MapView, crowded: Mapping[int, int]) -> List[str]:
    """Which OSDs a drain gives more PGs than the monitors' limit, `crowded` being how many each has then."""
    if not crowded:
        return []
    rows = [f"osd.{osd} ({pgs})" for osd, pgs in sorted(crowded.items(), key=lambda item: (-item[1], item[0]))]
    limit = f"{MOST_PGS.name} of {view.most_pgs:g}"
    return [f"Beyond {limit} PGs, as no other OSD may have them: {first_of(rows, NAMED_OSDS)}."]


def _counts(view: MapView, pool: int) -> PgCounts:
    size = max((len(pg.up) for pg in view.pgs if pg.pool == pool), default=0)
    return pg_counts(((pg.pool, osd) for pg in view.pgs for osd in pg.up if osd in view.osds), pool, size)
