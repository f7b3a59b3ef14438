"""Background work of a cluster, PG by PG: recovery, scrub, snaptrim and deletion as the kernel's tasks."""

from __future__ import annotations

from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from ceph_tuner.twin.kernel import records
from ceph_tuner.twin.knobs_in_force import class_of
from ceph_tuner.twin.model import ClusterModel

Array = NDArray[Any]

MOST_RECOVERIES = 1024
"""Tasks that rounds make of a pool's recovery: the kernel goes through all of an OSD's after every object."""


class PgTask(NamedTuple):
    """A PG's part of some background work, as the kernel is told of it."""

    kind: int
    pg: int
    objects: int
    """Or clones."""
    lane: int
    """Class of its items."""
    copies: int
    k: int
    object_bytes: float
    """On one OSD; 0 of a shallow scrub."""
    start_s: float
    target: int = 0
    """Place in the acting set of the OSD that objects are recovered onto."""
    read_lane: int = 0
    """Class of reads that recover an erasure-coded object."""
    closing_lane: int = 0
    """Class of what ends a PG's recovery, when no object is degraded any more."""
    endless: int = 0
    scrubbed_bytes: float = 0.0
    """What a scrub's items cost for an object, deep or shallow: all of it (PG::get_average_object_size)."""
    clone_bytes: float = 0.0
    heads: float = 0.0
    """Objects that the clones are of."""
    among: float = 0.0
    """Objects of the PG that clients go to, those that lack a copy among them; 0: clients go to none of these.

    Of a scrub: that clients write to.
    """


def pg_tasks(
    model: ClusterModel, pools: Mapping[str, Tuple[int, Array]], share: float, random: np.random.Generator
) -> List[PgTask]:
    """Every PG's part of the model's work, of which the `share` of the cluster that is simulated has its part.

    `pools`: pool -> number of its first PG, acting sets. A backfill's target is moved out of the lead there (pg_temp).
    """
    tasks: List[PgTask] = []
    for work in model.recovery:
        pool, (first, acting) = model.pool(work.pool), pools[work.pool]
        size = work.object_bytes / (pool.k or 1)
        kind = "recovery" if work.degraded else "backfill"
        if not work.degraded and work.target is not None and pool.size > 1:
            # an OSD without a PG's data does not lead it (pg_temp)
            led = acting[:, 0] == work.target
            acting[led, 0], acting[led, 1] = acting[led, 1], work.target
        reads = class_of(f"erasure-code {kind} read", model)
        # a PG that has lost an OSD is undersized to the last, and so of recovery's class
        closes = class_of("recovery" if work.degraded and work.target is None else "backfill", model)
        targets = [
            int(random.integers(1, pool.size)) if work.target is None and pool.size > 1 else
            _position(acting[pg], work.target)
            for pg in range(len(acting))
        ]  # fmt: skip
        affected = [pg for pg, target in enumerate(targets) if target >= 0]
        objects = _shared_out(work.objects * share, affected, len(acting), random)
        number = records.DEGRADED if work.degraded else records.MISPLACED
        rounds = max(1, min(work.rounds, MOST_RECOVERIES // max(1, len(affected))))
        # fewer rounds have more objects each: a write meets one that lacks a copy as often as in the others
        among = work.among * share / len(acting) * work.rounds / rounds
        tasks += [
            PgTask(number, first + pg, count, class_of(kind, model), pool.size, pool.k, size, work.start_s,
                   target=targets[pg], read_lane=reads, closing_lane=closes,
                   among=among)
            for pg, whole in enumerate(objects)
            for count in _parts(whole, rounds)
        ]  # fmt: skip
    written = {client.pool for client in model.clients if client.read_share < 1.0}
    for scrub in model.scrub:
        pool, (first, acting) = model.pool(scrub.pool), pools[scrub.pool]
        size = scrub.object_bytes / (pool.k or 1)
        for pg, count in enumerate(_shared_out(scrub.objects * share, range(len(acting)), len(acting), random)):
            if count:
                tasks.append(
                    PgTask(records.SCRUB, first + pg, count, class_of("scrub", model), pool.size, pool.k,
                           size if scrub.deep else 0.0, scrub.start_s, endless=int(not scrub.once),
                           scrubbed_bytes=scrub.object_bytes, among=float(count) if scrub.pool in written else 0.0)
                )  # fmt: skip
    for trim in model.snaptrim:
        pool, (first, acting) = model.pool(trim.pool), pools[trim.pool]
        for pg, count in enumerate(_shared_out(trim.clones * share, range(len(acting)), len(acting), random)):
            if count:
                tasks.append(
                    PgTask(records.SNAPTRIM, first + pg, count, class_of("snaptrim", model), pool.size, pool.k,
                           float(trim.object_bytes), trim.start_s,
                           clone_bytes=float(trim.object_bytes if trim.clone_bytes is None else trim.clone_bytes),
                           heads=count * (1.0 if trim.heads is None else trim.heads / trim.clones))
                )  # fmt: skip
    for delete in model.deletion:
        pool, (first, acting) = model.pool(delete.pool), pools[delete.pool]
        for pg, count in enumerate(_shared_out(delete.objects * share, range(len(acting)), len(acting), random)):
            if count:
                tasks.append(
                    PgTask(records.DELETION, first + pg, count, class_of("pg deletion", model), pool.size, pool.k, 0.0,
                           delete.start_s)
                )  # fmt: skip
    return tasks


def _shared_out(objects: float, pgs: Sequence[int], count: int, random: np.random.Generator) -> List[int]:
    """Objects of each PG: hashed, so as uneven as chance makes them."""
    shares = np.zeros(count)
    shares[list(pgs)] = 1.0 / max(1, len(pgs))
    if not pgs:
        return [0] * count
    return [int(n) for n in random.multinomial(round(objects), shares)]


def _parts(whole: int, count: int) -> List[int]:
    """So many parts, as even as they can be; those that are 0 are left out."""
    each, more = divmod(whole, count)
    return [each + 1] * more + [each] * (count - more if each else 0)


def _position(acting: Sequence[int], osd: Optional[int]) -> int:
    """Place of an OSD in an acting set; -1 where it is not in it, 0 where nobody is named and there is one copy."""
    if osd is None:
        return 0
    positions = np.flatnonzero(np.asarray(acting) == osd)
    return int(positions[0]) if len(positions) else -1
