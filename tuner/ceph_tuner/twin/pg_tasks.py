"""Background work of a cluster, PG by PG: recovery, scrub, snaptrim and deletion as the kernel's tasks."""

from __future__ import annotations

from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from ceph_tuner.twin import kernel
from ceph_tuner.twin.knobs_in_force import class_of, delete_cost
from ceph_tuner.twin.model import ClusterModel

Array = NDArray[Any]


class PgTask(NamedTuple):
    """A PG's part of some background work, as the kernel is told of it."""

    kind: int
    pg: int
    objects: int
    target: int
    """Place in the acting set of the OSD that objects are recovered onto."""
    service: int
    endless: int
    size: int
    k: int
    object_bytes: float
    cost: float
    push_cost: float
    read_class: float
    pull_cost: float
    start_s: float
    work: int


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
        reads = class_of("erasure-code recovery read", model)
        targets = [
            int(random.integers(1, pool.size)) if work.target is None and pool.size > 1 else
            _position(acting[pg], work.target)
            for pg in range(len(acting))
        ]  # fmt: skip
        affected = [pg for pg, target in enumerate(targets) if target >= 0]
        objects = _shared_out(work.objects * share, affected, len(acting), random)
        number = kernel.DEGRADED if work.degraded else kernel.MISPLACED
        for pg, count in enumerate(objects):
            if count:
                tasks.append(
                    PgTask(number, first + pg, count, targets[pg], class_of(kind, model), 0, pool.size, pool.k, size,
                           0.0, 0.0, float(reads), 0.0, work.start_s, len(tasks))
                )  # fmt: skip
    for scrub in model.scrub:
        pool, (first, acting) = model.pool(scrub.pool), pools[scrub.pool]
        size = scrub.object_bytes / (pool.k or 1)
        for pg, count in enumerate(_shared_out(scrub.objects * share, range(len(acting)), len(acting), random)):
            if count:
                tasks.append(
                    PgTask(kernel.SCRUB, first + pg, count, 0, class_of("scrub", model), 0 if scrub.once else 1,
                           pool.size, pool.k, size if scrub.deep else 0.0, size, 0.0, 0.0, 0.0, scrub.start_s,
                           len(tasks))
                )  # fmt: skip
    for trim in model.snaptrim:
        pool, (first, acting) = model.pool(trim.pool), pools[trim.pool]
        for pg, count in enumerate(_shared_out(trim.clones * share, range(len(acting)), len(acting), random)):
            if count:
                tasks.append(
                    PgTask(kernel.SNAPTRIM, first + pg, count, 0, class_of("snaptrim", model), 0, pool.size, pool.k,
                           float(trim.object_bytes), 0.0, 0.0, 0.0,
                           float(trim.object_bytes if trim.clone_bytes is None else trim.clone_bytes), trim.start_s,
                           len(tasks))
                )  # fmt: skip
    for delete in model.deletion:
        pool, (first, acting) = model.pool(delete.pool), pools[delete.pool]
        for pg, count in enumerate(_shared_out(delete.objects * share, range(len(acting)), len(acting), random)):
            if count:
                tasks.append(
                    PgTask(kernel.DELETION, first + pg, count, 0, class_of("pg deletion", model), 0, pool.size,
                           pool.k, 0.0, *delete_cost(model), 0.0, 0.0, delete.start_s, len(tasks))
                )  # fmt: skip
    return tasks


def _shared_out(objects: float, pgs: Sequence[int], count: int, random: np.random.Generator) -> List[int]:
    """Objects of each PG: hashed, so as uneven as chance makes them."""
    shares = np.zeros(count)
    shares[list(pgs)] = 1.0 / max(1, len(pgs))
    if not pgs:
        return [0] * count
    return [int(n) for n in random.multinomial(round(objects), shares)]


def _position(acting: Sequence[int], osd: Optional[int]) -> int:
    """Place of an OSD in an acting set; -1 where it is not in it, 0 where nobody is named and there is one copy."""
    if osd is None:
        return 0
    found = np.flatnonzero(np.asarray(acting) == osd)
    return int(found[0]) if len(found) else -1
