"""Writes CRUSH weights while every PG stays where it is: those that would move are held by pg_upmap_items entries.

Between the weight and the entries lie some seconds, in which backfills may begin. They end as the entry comes.
"""

from __future__ import annotations

from typing import Dict, List, Mapping

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.changes.lock import Lock
from ceph_tuner.core.errors import CommandFailed
from ceph_tuner.moves import Command, MapView, MovePlan
from ceph_tuner.moves.map_view import mapped, read_map
from ceph_tuner.moves.placement import held, upmap_command
from ceph_tuner.moves.record import MoveRecord, MoveStore

UNIT = 2e-5
"""CRUSH keeps weights in steps of 1/65536."""


def weighs(view: MapView, osd: int, weight: float) -> bool:
    """Whether an OSD has that weight; one that was removed meanwhile has none."""
    return osd not in view.osds or abs(view.osds[osd].weight - weight) < UNIT


def nothing_to_do(view: MapView, plan: MovePlan) -> bool:
    """Whether all is where a plan wants it, weights included."""
    weights = {**plan.weights_first, **plan.weights_last}
    return not plan.left(view, frozenset()) and all(weighs(view, osd, weight) for osd, weight in weights.items())


def weight_command(osd: int, weight: float) -> Command:
    """The monitor command that gives an OSD a CRUSH weight."""
    return "osd crush reweight", {"name": f"osd.{osd}", "weight": f"{weight:.6f}"}


def write_weights(
    cluster: Cluster, lock: Lock, store: MoveStore, record: MoveRecord, before: MapView, weights: Mapping[int, float]
) -> List[str]:
    """Write them, and hold the PGs. Gives the PGs that could not be held and move at once."""
    has_begun = weights_begun(store, record, weights)
    for osd in weights:
        store.remember_undo(record, f"osd.{osd}", weight_command(osd, before.osds[osd].weight))
    for osd, weight in weights.items():
        if abs(before.osds[osd].weight - weight) > 1e-5:
            lock.check()
            prefix, arguments = weight_command(osd, weight)
            cluster.commander.mon(prefix, arguments)
    return hold(cluster, lock, store, record, before, has_begun)


def weights_begun(store: MoveStore, record: MoveRecord, weights: Mapping[int, float]) -> bool:
    """Whether some of them may be written, by this run or by one that was killed."""
    return any(store.has_undo(record, f"osd.{osd}") for osd in weights)


def hold(
    cluster: Cluster, lock: Lock, store: MoveStore, record: MoveRecord, before: MapView, has_begun: bool = False
) -> List[str]:
    """Hold every PG where it was; `before` says where. Gives those that no entry holds.

    `has_begun`: the weights may have been written before that look, so what is on its way is there because of them and
    is sent back. Otherwise it moves for another reason, and goes on.
    """
    osds_before = {pg.pgid: pg.acting if has_begun and not pg.settled else pg.up for pg in before.pgs}
    osds_now: Dict[str, tuple[int, ...]] = {}
    for pg in before.pgs:
        up = mapped(cluster, pg.pgid)
        if up != osds_before[pg.pgid] and (before.pools[pg.pool].erasure or set(up) != set(osds_before[pg.pgid])):
            osds_now[pg.pgid] = up
    if not osds_now:
        return []
    now, pairs_by_pg = read_map(cluster), store.held(record)
    loose = []
    for pg in before.pgs:
        if pg.pgid not in osds_now:
            continue
        pairs = now.upmaps.get(pg.pgid, ())
        pairs_to_hold = held(pairs, osds_now[pg.pgid], osds_before[pg.pgid], before.pools[pg.pool].erasure)
        if pairs_to_hold is None or pg.pgid in now.whole_upmaps:
            loose.append(pg.pgid)
            continue
        if set(pairs) <= set(pairs_by_pg.get(pg.pgid, pairs)):
            # otherwise it is held already, and what was there before that is stored
            store.remember_held(record, pg.pgid, pairs)
        store.remember_undo(record, pg.pgid, upmap_command(pg.pgid, before.upmaps.get(pg.pgid, ())))
        lock.check()
        prefix, arguments = upmap_command(pg.pgid, pairs_to_hold)
        if not _accepts(cluster, prefix, arguments):
            loose.append(pg.pgid)
    return loose


def _accepts(cluster: Cluster, prefix: str, arguments: Mapping[str, str]) -> bool:
    try:
        cluster.commander.mon(prefix, arguments)
    except CommandFailed:
        return False
    return True
