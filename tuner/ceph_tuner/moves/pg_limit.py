"""How many PGs an OSD has with another pg_num, held against what Ceph aims at and what it calls too many.

Tentacle's monitors take a pg_num beyond their own limit, and a split is not undone (docs/ceph-behaviour.md).
"""

from __future__ import annotations

from typing import List, Optional

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.errors import CommandFailed, InputError, PermissionRefused
from ceph_tuner.moves import MapView
from ceph_tuner.moves.pgs_plan import PgsPlan

MANY_PGS = "--many-pgs"
TARGET, MOST = ("mgr", "mon_target_pg_per_osd", 100.0), ("mon", "mon_max_pg_per_osd", 250.0)
"""Who has an option, its name, and Ceph's default."""


def pgs_per_osd(view: MapView, pool: int, pg_num: int) -> float:
    """Copies of PGs, of all pools, on an OSD of that pool with that pg_num: their mean, as the monitors count them."""
    own = [pg for pg in view.pgs if pg.pool == pool]
    osds = {osd for pg in own for osd in pg.up if osd in view.osds}
    if not osds:
        return 0.0
    others = sum(osd in osds for pg in view.pgs if pg.pool != pool for osd in pg.up)
    return (pg_num * _size(view, pool) + others) / len(osds)


def beyond_limit(cluster: Cluster, view: MapView, plan: PgsPlan) -> Optional[InputError]:
    """The refusal of more PGs than Ceph's limit; None where they keep it. Raises TunerError."""
    pool = view.pools[plan.pool]
    after, most = pgs_per_osd(view, plan.pool, plan.pg_num), _option(cluster, *MOST)
    if plan.pg_num <= pool.pg_num or after <= most:
        return None
    fits = plan.pg_num
    while fits > pool.pg_num and pgs_per_osd(view, plan.pool, fits) > most:
        fits //= 2
    room = f"{fits} keeps the limit" if fits > pool.pg_num else "its OSDs have no room for more PGs"
    found = f"{plan.pg_num}, which gives an OSD {after:.0f} PGs in the mean, beyond {MOST[1]} of {most:g}"
    return InputError("PG_NUM", found, f"{MANY_PGS} to do it all the same ({room})")


def remarks(cluster: Cluster, view: MapView, plan: PgsPlan) -> List[str]:
    """What is unusual about the number, and no reason to refuse it. Raises TunerError."""
    pool = view.pools[plan.pool]
    osds = len({osd for pg in view.pgs if pg.pool == plan.pool for osd in pg.up})
    if plan.pg_num < pool.pg_num and plan.pg_num * _size(view, plan.pool) < osds:
        return [f"That leaves some of its {osds} OSDs without a PG of pool {pool.name}."]
    after, target = pgs_per_osd(view, plan.pool, plan.pg_num), _option(cluster, *TARGET)
    if plan.pg_num > pool.pg_num and after > target:
        return [f"That gives an OSD {after:.0f} PGs in the mean. Ceph aims at {target:g} ({TARGET[1]})."]
    return []


def _size(view: MapView, pool: int) -> int:
    return max((len(pg.up) for pg in view.pgs if pg.pool == pool), default=0)


def _option(cluster: Cluster, who: str, name: str, default: float) -> float:
    try:
        return float(cluster.commander.mon("config get", {"who": who, "key": name}))
    except (CommandFailed, PermissionRefused, ValueError):
        return default
