"""Writes CRUSH weights while every PG stays where it is: those that would move are held by pg_upmap_items entries.

Between the weight and the entries lie some seconds, in which backfills may begin. They end as the entry comes.
"""

from __future__ import annotations

import math
from typing import AbstractSet, Callable, Dict, List, Mapping, Tuple

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.changes.lock import Lock
from ceph_tuner.core.errors import CommandFailed
from ceph_tuner.moves import Command, MapView, MovePlan
from ceph_tuner.moves.map_view import mapped, read_map
from ceph_tuner.moves.placement import held, upmap_command
from ceph_tuner.moves.record import MoveRecord, MoveStore
from ceph_tuner.pacing.client_watch import LOOK_S

UNIT = 2e-5
"""CRUSH keeps weights in steps of 1/65536."""


ASKED_S = 15.0
"""So long the monitors are asked for one PG after the other. Those PGs that move have mostly told the mgr by then."""
LOOKS = 3
"""At what PGs tell, one after the other, before none of those that were not asked for is taken to move."""

Osds = Tuple[int, ...]


def weighs(view: MapView, osd: int, weight: float) -> bool:
    """Whether an OSD has that weight; one that was removed meanwhile has none."""
    return osd not in view.osds or abs(view.osds[osd].weight - weight) < UNIT


def nothing_to_do(view: MapView, plan: MovePlan) -> bool:
    """Whether all is where a plan wants it, weights included."""
    weights = {**plan.weights_first, **plan.weights_last}
    return not plan.left(view, frozenset()) and all(weighs(view, osd, weight) for osd, weight in weights.items())


def weight_command(osd: int, weight: float) -> Command:
    """The monitor command that gives an OSD a CRUSH weight.

    The monitors cut off what is less than 1/65536 (`CrushWrapper::adjust_item_weightf`), so the sixth digit is rounded
    up: the weight that an OSD has comes back as it was.
    """
    return "osd crush reweight", {"name": f"osd.{osd}", "weight": f"{math.ceil(weight * 1e6) / 1e6:.6f}"}


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
    return hold(cluster, lock, store, record, before, has_begun, weights.keys())


def weights_begun(store: MoveStore, record: MoveRecord, weights: Mapping[int, float]) -> bool:
    """Whether some of them may be written, by this run or by one that was killed."""
    return any(store.has_undo(record, f"osd.{osd}") for osd in weights)


def hold(
    cluster: Cluster,
    lock: Lock,
    store: MoveStore,
    record: MoveRecord,
    before: MapView,
    has_begun: bool = False,
    weighed: AbstractSet[int] = frozenset(),
) -> List[str]:
    """Hold every PG where it was; `before` says where. Gives those that no entry holds.

    `has_begun`: the weights may have been written before that look, so what is on its way is there because of them and
    is sent back. Otherwise it moves for another reason, and goes on. `weighed`: OSDs with another weight, whose PGs
    are asked for first.
    """
    osds_before = {pg.pgid: pg.acting if has_begun and not pg.settled else pg.up for pg in before.pgs}
    pools = {pg.pgid: before.pools[pg.pool] for pg in before.pgs}

    def is_moved(pgid: str, up: Osds) -> bool:
        was = osds_before[pgid]
        return up != was and (pools[pgid].erasure or set(up) != set(was))

    osds_now: Dict[str, Osds] = {}
    deadline = cluster.clock.monotonic() + ASKED_S
    for pg in sorted(before.pgs, key=lambda pg: not weighed & {*pg.up, *pg.acting}):
        if cluster.clock.monotonic() >= deadline:
            break
        osds_now[pg.pgid] = mapped(cluster, pg.pgid)
    loose = _hold(cluster, lock, store, record, before, osds_before, _those(osds_now, is_moved))
    unasked, looks = osds_before.keys() - osds_now.keys(), 0
    while unasked and looks < LOOKS:
        told = {pg.pgid: pg.up for pg in read_map(cluster).pgs if pg.pgid in unasked and is_moved(pg.pgid, pg.up)}
        moved = _those({pgid: mapped(cluster, pgid) for pgid in told}, is_moved)
        loose += _hold(cluster, lock, store, record, before, osds_before, moved)
        unasked -= told.keys()
        looks = 0 if told else looks + 1
        cluster.clock.sleep(LOOK_S)
    return loose


def _those(osds: Mapping[str, Osds], is_moved: Callable[[str, Osds], bool]) -> Dict[str, Osds]:
    return {pgid: up for pgid, up in osds.items() if is_moved(pgid, up)}


def _hold(
    cluster: Cluster,
    lock: Lock,
    store: MoveStore,
    record: MoveRecord,
    before: MapView,
    osds_before: Mapping[str, Osds],
    osds_now: Mapping[str, Osds],
) -> List[str]:
    """Hold these PGs, which the newest map wants elsewhere. Gives those that no entry holds."""
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
