"""Background work of a cluster is shared out to its PGs: all of it, to those that it concerns."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

import numpy as np
import pytest
from drawn_models import models
from hypothesis import given
from hypothesis import settings as hypothesis_settings

from ceph_tuner.twin.kernel import records
from ceph_tuner.twin.model import ClusterModel, DeleteWork, Device, OsdModel, Pool, RecoveryWork, ScrubWork
from ceph_tuner.twin.pg_tasks import MOST_RECOVERIES, PgTask, pg_tasks
from ceph_tuner.twin.placement import placed


def shared_out(model: ClusterModel, share: float = 1.0, seed: int = 0) -> Tuple[List[PgTask], Dict[str, Any]]:
    random = np.random.default_rng(seed)
    pools: Dict[str, Any] = {}
    first = 0
    for pool in model.pools:
        pools[pool.name] = (first, placed(pool, pool.pgs, model.osds, 0, model.upmap_max_deviation, random))
        first += pool.pgs
    return pg_tasks(model, pools, share, random), pools


def cluster(**work: Any) -> ClusterModel:
    return ClusterModel(6, OsdModel(Device(1000.0, 1e8)), (Pool("logs", 8), Pool("rbd", 64)), **work)


@hypothesis_settings(deadline=None)
@given(models())
def test_every_object_of_work_that_concerns_all_pgs_is_some_pg_s(model: ClusterModel) -> None:
    tasks, _ = shared_out(model)
    for kind, objects in (
        (records.SCRUB, sum(work.objects for work in model.scrub)),
        (records.SNAPTRIM, sum(work.clones for work in model.snaptrim)),
        (records.DELETION, sum(work.objects for work in model.deletion)),
    ):
        assert sum(task.objects for task in tasks if task.kind == kind) == objects
    assert all(task.objects > 0 for task in tasks)


def test_a_pool_s_work_is_its_own_pgs() -> None:
    tasks, _ = shared_out(cluster(scrub=(ScrubWork("rbd", 5000),), deletion=(DeleteWork("logs", 500),)))
    assert {task.pg for task in tasks if task.kind == records.SCRUB} == set(range(8, 72))
    assert {task.pg for task in tasks if task.kind == records.DELETION} == set(range(8))


def test_a_part_of_the_cluster_has_its_part_of_the_work() -> None:
    tasks, _ = shared_out(cluster(scrub=(ScrubWork("rbd", 5000),)), share=0.25)
    assert sum(task.objects for task in tasks) == 1250


@pytest.mark.parametrize("rounds", [1, 3, 50, 10_000])
def test_rounds_are_recoveries_of_the_same_pgs_that_share_the_objects(rounds: int) -> None:
    once, _ = shared_out(cluster(recovery=(RecoveryWork("rbd", 9000, target=2),)))
    tasks, _ = shared_out(cluster(recovery=(RecoveryWork("rbd", 9000, target=2, rounds=rounds),)))
    assert len(once) * min(rounds, 20) <= len(tasks) <= max(len(once), MOST_RECOVERIES)
    for task in once:
        parts = [own for own in tasks if own.pg == task.pg]
        assert sum(own.objects for own in parts) == task.objects
        assert max(own.objects for own in parts) <= min(own.objects for own in parts) + 1
        assert {own._replace(objects=task.objects) for own in parts} == {task}


def test_there_is_no_recovery_of_no_round() -> None:
    with pytest.raises(ValueError, match="rounds"):
        cluster(recovery=(RecoveryWork("rbd", 9000, rounds=0),))


@pytest.mark.parametrize("rounds", [1, 3, 50, 1000])
def test_a_write_meets_an_object_that_lacks_a_copy_as_often_in_every_number_of_rounds(rounds: int) -> None:
    """Rounds that have no room are put together, and have more objects."""
    work = RecoveryWork("rbd", 90 * rounds, rounds=rounds, among=1800)
    tasks, _ = shared_out(cluster(recovery=(work,)))
    own = [task for task in tasks if task.among]
    assert own
    assert sum(task.objects for task in own) / sum(task.among for task in own) == pytest.approx(0.05, rel=0.5)
    assert all(task.objects <= task.among for task in own)


@pytest.mark.parametrize("degraded", [True, False])
def test_an_osd_that_came_back_is_the_target_in_each_of_its_pgs_and_in_no_other(degraded: bool) -> None:
    tasks, pools = shared_out(cluster(recovery=(RecoveryWork("rbd", 9000, degraded=degraded, target=2),)))
    first, acting = pools["rbd"]
    assert {task.pg - first for task in tasks} == set(np.flatnonzero((acting == 2).any(axis=1)).tolist())
    assert all(acting[task.pg - first, task.target] == 2 for task in tasks)


def test_a_backfilled_osd_leads_none_of_the_pgs_that_it_lacks() -> None:
    _, before = shared_out(cluster())
    _, pools = shared_out(cluster(recovery=(RecoveryWork("rbd", 9000, degraded=False, target=2),)))
    assert (before["rbd"][1][:, 0] == 2).any()
    assert not (pools["rbd"][1][:, 0] == 2).any()
    # the PGs are where they were
    assert np.array_equal(np.sort(pools["rbd"][1]), np.sort(before["rbd"][1]))


def test_a_scrub_s_items_are_paid_for_whole_objects_of_an_erasure_code() -> None:
    model = ClusterModel(6, OsdModel(Device(1000.0, 1e8)), (Pool("cold", 8, 6, 4),), scrub=(ScrubWork("cold", 80),))
    tasks, _ = shared_out(model)
    assert {(task.scrubbed_bytes, task.object_bytes) for task in tasks} == {(4.0 * 2**20, 2.0**20)}
