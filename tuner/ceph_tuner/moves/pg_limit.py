"""Whether another pg_num gives OSDs too many PGs: a split is not undone."""

from __future__ import annotations

from typing import List, Optional

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.ceph.commands import option_number
from ceph_tuner.core.errors import CommandFailed, InputError, PermissionRefused
from ceph_tuner.core.measure.pg_counts import MOST_PGS, TARGET_PGS, PgCounts, PgOption, pg_counts
from ceph_tuner.moves import MapView
from ceph_tuner.moves.pgs_plan import PgsPlan

MANY_PGS = "--many-pgs"


def beyond_limit(cluster: Cluster, view: MapView, plan: PgsPlan) -> Optional[InputError]:
    """The refusal of more PGs than Ceph's limit; None where they keep it. Raises TunerError."""
    pool, counts = view.pools[plan.pool], _counts(view, plan.pool)
    after, most = counts.mean(plan.pg_num), _option(cluster, MOST_PGS)
    if plan.pg_num <= pool.pg_num or after <= most:
        return None
    fits = counts.permitted(most)
    room = f"{fits} keeps the limit" if fits > pool.pg_num else "its OSDs have no room for more PGs"
    found = f"{plan.pg_num}, which gives an OSD {after:.0f} PGs in the mean, beyond {MOST_PGS.name} of {most:g}"
    return InputError("PG_NUM", found, f"{MANY_PGS} to do it all the same ({room})")


def remarks(cluster: Cluster, view: MapView, plan: PgsPlan) -> List[str]:
    """What is unusual about the number, and no reason to refuse it. Raises TunerError."""
    pool, counts = view.pools[plan.pool], _counts(view, plan.pool)
    if plan.pg_num < pool.pg_num and plan.pg_num * counts.size < counts.osds:
        return [f"That leaves some of its {counts.osds} OSDs without a PG of pool {pool.name}."]
    after, target = counts.mean(plan.pg_num), _option(cluster, TARGET_PGS)
    if plan.pg_num > pool.pg_num and after > target:
        return [f"That gives an OSD {after:.0f} PGs in the mean. Ceph aims at {target:g} ({TARGET_PGS.name})."]
    return []


def _counts(view: MapView, pool: int) -> PgCounts:
    size = max((len(pg.up) for pg in view.pgs if pg.pool == pool), default=0)
    return pg_counts(((pg.pool, osd) for pg in view.pgs for osd in pg.up if osd in view.osds), pool, size)


def _option(cluster: Cluster, option: PgOption) -> float:
    try:
        return option_number(cluster.commander, option.who, option.name)
    except (CommandFailed, PermissionRefused):
        return option.default
