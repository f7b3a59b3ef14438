"""Sleeps of the older queue, as OSD.cc (do_recovery) and PrimaryLogPG (WaitTrimTimer) have them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from audit import check

from ceph_tuner.core.knobs.releases import QUINCY, TENTACLE, Release
from ceph_tuner.twin.knobs_in_force import sleep_s
from ceph_tuner.twin.model import (
    MCLOCK,
    MIB,
    WPQ,
    ClusterModel,
    DeleteWork,
    Device,
    OsdModel,
    Pool,
    RecoveryWork,
    SnaptrimWork,
)
from ceph_tuner.twin.simulation import Simulation

DISK = OsdModel(Device(500.0, 500e6, latency_s=2e-3, read_latency_s=2e-3), 500.0, 500e6, 1, 5, "hdd")
FLASH = Device(20_000.0, 500e6, latency_s=1e-4)
MANY = {"osd_max_backfills": 1000, "osd_recovery_max_active_hdd": 1000}


def model(**work: Any) -> ClusterModel:
    return ClusterModel(3, DISK, (Pool("rbd", 24),), scheduler=WPQ, **work)


def advanced(cluster: ClusterModel, seconds: float, **chosen: Any) -> Simulation:
    simulation = Simulation(cluster, chosen, 1)
    simulation.advance(seconds)
    check(simulation)
    return simulation


@pytest.mark.parametrize(
    ("stem", "kind", "seconds"),
    [
        ("osd_recovery_sleep", "hdd", 0.1),
        ("osd_recovery_sleep", "hybrid", 0.025),
        ("osd_recovery_sleep", "ssd", 0.0),
        ("osd_snap_trim_sleep", "hdd", 5.0),
        ("osd_snap_trim_sleep", "hybrid", 2.0),
        ("osd_snap_trim_sleep", "ssd", 0.0),
        ("osd_delete_sleep", "hdd", 5.0),
        ("osd_delete_sleep", "hybrid", 1.0),
        ("osd_delete_sleep", "ssd", 1.0),
    ],
)
def test_a_sleep_is_that_of_the_kind_of_drive(stem: str, kind: str, seconds: float) -> None:
    osd = {"hdd": DISK, "hybrid": replace(DISK, db=FLASH), "ssd": replace(DISK, device_class="ssd")}[kind]
    own = replace(model(), osd=osd)
    assert sleep_s(stem, {}, own) == seconds
    assert sleep_s(stem, {f"{stem}_{kind}": 0.3}, own) == 0.3
    assert sleep_s(stem, {stem: 0.7, f"{stem}_{kind}": 0.3}, own) == 0.7
    assert sleep_s(stem, {stem: 0.7}, replace(own, scheduler=MCLOCK)) == 0.0


@pytest.mark.parametrize(("release", "heeded"), [(TENTACLE, 0.5), (QUINCY, 0.1)], ids=str)
def test_degraded_pgs_have_their_own_sleep_where_there_is_one(release: Release, heeded: float) -> None:
    own = replace(model(), release=release)
    assert sleep_s("osd_recovery_sleep_degraded", {"osd_recovery_sleep_degraded_hdd": 0.5}, own) == heeded


def recovered(seconds: float, **chosen: Any) -> float:
    """Objects a second of the OSD that recovers most, with all PGs at a time."""
    work = (RecoveryWork("rbd", 3000, 4096, degraded=False),)
    return float(advanced(model(recovery=work), seconds, **MANY, **chosen).counters().recovery_ops.max()) / seconds


def test_an_osd_begins_one_object_for_each_sleep_however_many_pgs_recover() -> None:
    assert 9.0 < recovered(20.0, osd_recovery_sleep_hdd=0.1) <= 10.1
    assert 4.5 < recovered(20.0, osd_recovery_sleep_hdd=0.2) <= 5.1
    assert recovered(20.0, osd_recovery_sleep_hdd=0.0) > 15.0


def test_a_pg_trims_so_many_clones_for_each_sleep() -> None:
    work = (SnaptrimWork("rbd", 20_000, MIB),)
    simulation = advanced(model(snaptrim=work), 50.5)
    # two PGs of each OSD trim two clones at a time, at the beginning and after each of ten sleeps
    assert 3 * 2 * 2 * 9 <= simulation.counters().trimmed.sum() <= 3 * 2 * 2 * 11
    assert advanced(model(snaptrim=work), 10.0, osd_snap_trim_sleep_hdd=0.0).counters().trimmed.sum() > 1000


def test_a_pg_deletes_a_batch_for_each_sleep() -> None:
    work = (DeleteWork("rbd", 20_000),)
    for sleep, most in ((5.0, 11), (1.0, 51)):
        simulation = advanced(model(deletion=work), 50.5, osd_delete_sleep_hdd=sleep)
        deleted = simulation._tables["osds"]["counters"]["deleted_objects"].sum()
        # where a PG is done the next one begins at once
        assert 3 * 2 * 30 * 0.8 * most <= deleted <= 3 * 2 * 30 * 1.05 * most
