"""What each class asks for, is owed and gets, held against the twin."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Mapping, Tuple

import pytest

from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.knobs.releases import TENTACLE
from ceph_tuner.files import slo_file
from ceph_tuner.recommend import Prediction, Question, SearchEffort
from ceph_tuner.recommend.accounts import BELOW, LIMIT, LOAD, NOTHING, SHARE, Account, accounts
from ceph_tuner.recommend.runs import Runs
from ceph_tuner.twin.model import MIB, WPQ, ClientStream, ClusterModel, Device, OsdModel, Pool, RecoveryWork

# what mClock believes is half of what the drive can do, so that mClock divides it
OSD = OsdModel(Device(4000, 200 * MIB), capacity_iops=1000, bandwidth_bytes_s=50 * MIB, shards=1, threads_per_shard=4)
RECOVERY = RecoveryWork("rbd", 400_000, 1 * MIB)
LIGHT = ClientStream("rbd", rate=200.0, depth=64)
HEAVY = ClientStream("rbd", depth=512, block_bytes=4096)
SLO = slo_file.from_text(
    "schema: 1\nname: s\nobjectives:\n  - client.iops >= 150\n  - recovery.bytes_s >= 60 MB/s\n"
).slo
OVERRIDE = {"osd_mclock_override_recovery_settings": True, "osd_max_backfills": 64, "osd_recovery_max_active_ssd": 64}


def model(client: ClientStream, *recovery: RecoveryWork, **changes: Any) -> ClusterModel:
    return ClusterModel(4, OSD, (Pool("rbd", 64, 3),), (client,), recovery=recovery, hosts=0, **changes)


def nine(client: Tuple[float, int, float], recovery: Tuple[float, int, float]) -> Dict[str, Any]:
    parts = {"client": client, "background_recovery": recovery, "background_best_effort": (0.0, 1, 0.0)}
    return {
        f"osd_mclock_scheduler_{name}_{part}": value
        for name, values in parts.items()
        for part, value in zip(("res", "wgt", "lim"), values)
    }


def simulated(cluster: ClusterModel, settings: Mapping[str, Any]) -> Dict[str, Account]:
    with Runs(Question(cluster, SLO), SearchEffort(), 30.0, processes=1) as runs:
        means = Prediction("one", dict(settings), runs.start(cluster, dict(settings), [1, 2]).collect()).means
    return {account.name: account for account in accounts(Judge(SLO, means), cluster, settings, means)}


def test_a_light_load_is_held_by_itself_and_recovery_by_its_limit() -> None:
    found = simulated(model(LIGHT, RECOVERY), {**nine((0.5, 1, 0.0), (0.1, 1, 0.2)), **OVERRIDE})
    client, recovery, rest = found.values()
    assert client.held_by == LOAD
    assert client.got == pytest.approx(client.asked, rel=0.1)
    assert recovery.held_by == LIMIT
    assert recovery.asked is None
    assert recovery.got == pytest.approx(0.2, rel=0.1) == recovery.owed
    assert (rest.held_by, rest.needed, rest.owed) == (NOTHING, 0, 0)


def test_what_is_moved_is_not_counted_among_what_is_recovered_again() -> None:
    moved = RecoveryWork("rbd", 400_000, 1 * MIB, degraded=False)
    settings = nine((0.3, 1, 0.0), (0.3, 3, 0.0))
    seen = {"client.iops": 200.0, "recovery.objects_s": 150.0, "backfill.objects_s": 100.0}
    alone = {**seen, "recovery.objects_s": 50.0, "backfill.objects_s": 0.0}
    soft = replace(SLO, objectives=(replace(SLO.objectives[0], hard=False),))
    both = accounts(Judge(soft, seen), model(LIGHT, RECOVERY, moved), settings, seen)[1]
    one = accounts(Judge(soft, alone), model(LIGHT, RECOVERY), settings, alone)[1]
    assert both.got == pytest.approx(one.got)


def test_a_drive_that_gives_more_than_mclock_believes_shows_in_the_sum() -> None:
    found = simulated(model(HEAVY, RECOVERY), {**nine((0.3, 1, 0.0), (0.3, 3, 0.0)), **OVERRIDE})
    client, recovery, _ = found.values()
    # of the 0.4 that is left a quarter and three quarters
    assert (client.owed, recovery.owed) == (pytest.approx(0.4), pytest.approx(0.6))
    assert client.got + recovery.got > 1.5
    assert client.held_by == recovery.held_by == SHARE


def test_a_drive_that_gives_less_than_mclock_believes_holds_all() -> None:
    slow = replace(OSD, device=Device(300, 15 * MIB))
    cluster = replace(model(HEAVY, RECOVERY), osd=slow)
    found = simulated(cluster, {**nine((0.3, 1, 0.0), (0.3, 3, 0.0)), **OVERRIDE})
    client, recovery, _ = found.values()
    assert client.got + recovery.got < 0.7
    assert BELOW in (client.held_by, recovery.held_by)


def test_an_osd_that_came_back_empty_pulls_what_it_leads_and_that_counts() -> None:
    settings = {**nine((0.1, 1, 0.0), (0.1, 1, 0.1)), **OVERRIDE}
    found = simulated(model(LIGHT, replace(RECOVERY, target=0)), settings)["background_recovery"]
    # a pull costs 8 MiB, and every third object is pulled: counted as pushes they would be at a half of their limit
    assert found.got == pytest.approx(0.1, rel=0.2)
    assert found.held_by == LIMIT


def test_recovery_that_does_too_little_at_a_time_is_not_held_by_mclock() -> None:
    few = {**OVERRIDE, "osd_max_backfills": 1, "osd_recovery_max_active_ssd": 1}
    slow = replace(OSD, device=Device(4000, 200 * MIB, latency_s=0.05, read_latency_s=0.05))
    cluster = replace(model(LIGHT, RECOVERY), osd=slow)
    recovery = simulated(cluster, {**nine((0.1, 1, 0.0), (0.5, 1, 0.0)), **few})["background_recovery"]
    assert recovery.held_by == BELOW
    assert recovery.got < 0.9 * recovery.owed


def test_what_is_needed_is_held_against_what_is_owed() -> None:
    cluster, seen = model(LIGHT, RECOVERY), {"client.iops": 200.0, "recovery.objects_s": 20.0}
    starved = accounts(Judge(SLO, seen), cluster, nine((0.5, 1, 0.0), (0.0, 1, 0.05)), seen)[1]
    assert not starved.enough
    fed = accounts(Judge(SLO, seen), cluster, nine((0.1, 1, 0.0), (0.8, 1, 0.0)), seen)[1]
    assert fed.enough
    assert fed.needed == starved.needed > fed.got


def test_clients_that_are_a_closed_loop_take_what_they_get() -> None:
    seen = {"client.iops": 800.0}
    assert accounts(Judge(SLO, seen), model(HEAVY), nine((0.5, 1, 0.0), (0.5, 1, 0.0)), seen)[0].asked is None
    mixed = replace(model(LIGHT), clients=(LIGHT, HEAVY))
    assert accounts(Judge(SLO, seen), mixed, nine((0.5, 1, 0.0), (0.5, 1, 0.0)), seen)[0].asked is None


def test_under_wpq_there_are_no_classes_to_account_for() -> None:
    settings = dict(TENTACLE.profiles["balanced"])
    assert accounts(Judge(SLO, {}), model(LIGHT, scheduler=WPQ), settings, {}) == []
