"""Twins describe themselves by Ceph's own commands, and so do clusters that only their answers make."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence

import pytest

from ceph_tuner.cluster.balancer import MAX_DEVIATION
from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.ceph.commands import CommandConfig
from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.changes.lock import Holder
from ceph_tuner.core.errors import CommandFailed, InputError
from ceph_tuner.core.knobs.releases import MCLOCK_NINE, REEF, TENTACLE
from ceph_tuner.core.measure.history import History
from ceph_tuner.core.measure.sample import Measure, Window
from ceph_tuner.describe.live_cluster import describe
from ceph_tuner.describe.osds import DB, DRIVE_IOPS
from ceph_tuner.files import cluster_file, cluster_text
from ceph_tuner.twin.model import LATENCY_S, MIB, Device, Pool, RecoveryWork, ScrubWork, SnaptrimWork
from ceph_tuner.twin.simulation import Simulation
from twins import DISK, Answering, answering, archive_twin, small_twin, trial_of

LOAD = {"client.iops": 400.0, "client.read_iops": 100.0, "client.write_iops": 300.0, "client.bytes_s": 400.0 * 8192}
RULES = [
    {"rule_id": 0, "steps": [{"op": "take", "item_name": "default"}, {"op": "chooseleaf_firstn", "type": "host"}]},
    {"rule_id": 1, "steps": [{"op": "take", "item_name": "default~hdd"}, {"op": "choose_indep", "type": "osd"}]},
]


def with_window(cluster: Cluster, **changes: float) -> Cluster:
    measures = {name: Measure(value, 0.0, 12) for name, value in {**LOAD, **changes}.items()}
    now = cluster.clock.now()
    History(cluster.store).add_window(Window(now - 65, now - 5, measures))
    return cluster


def rates(pool: int, reads: float, writes: float, moved: float, **left: int) -> Dict[str, Any]:
    done = {"read_op_per_sec": reads, "write_op_per_sec": writes, "write_bytes_sec": moved}
    return {"pool_id": pool, "client_io_rate": done, "recovery": left}


def dumped(cluster: Cluster, pools: List[Mapping[str, Any]]) -> Dict[str, Any]:
    """Its `osd dump` with these in its pools' rows."""
    document: Dict[str, Any] = json.loads(cluster.commander.mon("osd dump", {}))
    document["pools"] = [{**row, **change} for row, change in zip(document["pools"], pools)]
    return document


def refusing(cluster: Cluster, refused: str) -> Cluster:
    """One that lets nobody run that command."""

    class Refusing(Answering):
        def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
            if prefix == refused:
                raise CommandFailed(prefix, -13, "access denied")
            return super().mon(prefix, arguments, payload)

    return replace(cluster, commander=Refusing(cluster.commander, {}))


def test_a_twin_describes_itself() -> None:
    work = {
        "recovery": (RecoveryWork("other", 5000, MIB),),
        "snaptrim": (SnaptrimWork("third", 4000, MIB),),
        "pools": (Pool("rbd", 32, 2), Pool("other", 16, 3), Pool("third", 16, 2)),
    }
    twin = small_twin({"osd_mclock_profile": "high_client_ops", "osd_max_scrubs": 5}, hosts=3, osds=6, **work)
    twin.clock.sleep(1.0)
    found = describe(with_window(twin, **{"client.p95_ms": 20.0}))
    model, told = found.model, twin.commander.simulation.model
    assert (model.osds, model.hosts, model.release, model.version) == (6, 3, TENTACLE, (20, 2, 4))
    # where its PGs are, for each pool
    placed = [twin.commander.simulation.acting(pool.name).tolist() for pool in told.pools]
    assert [replace(pool, acting=()) for pool in model.pools] == list(told.pools)
    assert [[list(osds) for osds in pool.acting] for pool in model.pools] == placed
    assert model.osd.hardware == told.osd.hardware
    assert (model.osd.threads_per_shard, model.osd.throttle_bytes) == (5, 256 * 1024)
    assert model.osd.device.iops == pytest.approx(DRIVE_IOPS["ssd"] * 935, rel=1e-3)
    assert [(each.pool, each.object_bytes) for each in model.recovery] == [("other", MIB)]
    # less than a run would see through is taken to last for a minute, at 6 x 60 MiB/s
    assert model.recovery[0].objects == 21600
    # by PGs that recover again, so that none has more objects than there are
    assert 4500 < model.recovery[0].objects / model.recovery[0].rounds < 6000
    # the time to its end is of what there is
    assert 4500 < model.recovery[0].objects / model.recovery[0].times < 5001
    assert 3500 < model.snaptrim[0].clones / model.snaptrim[0].times < 4001
    assert model.scrub == ()
    assert [each.clones for each in model.snaptrim] == [21600]
    assert sum(each.rate or 0 for each in model.clients) == pytest.approx(400, rel=1e-3)
    assert {(each.read_share, each.block_bytes) for each in model.clients} == {(0.25, 8192)}
    assert found.settings == {"osd_mclock_profile": "high_client_ops", "osd_max_scrubs": 5}
    assert found.seen["client.p95_ms"] == 20.0
    assert any("the drive is a guess" in note for note in found.notes)


class RunsHere:
    """As a lab does, on emulated drives."""

    mgr_modules = Path("/nowhere")

    def __init__(self, stated: Optional[Device]) -> None:
        self._stated = stated

    def argv(self, command: Sequence[str]) -> List[str]:
        return list(command)

    def drive(self, osd: int) -> Optional[Device]:
        return self._stated


def test_the_drive_is_no_guess_where_it_is_stated() -> None:
    stated = Device(1953.0, 56e6, 20_156.0, 100e6, latency_s=1.3e-4, read_latency_s=3.6e-3)
    for drive in (stated, None):
        cluster = with_window(replace(small_twin(), run_here=RunsHere(drive)))
        found = describe(cluster)
        assert (found.model.osd.device == stated) == (drive is stated)
        assert any("the drive is a guess" in note for note in found.notes) == (drive is None)
        # how clients wait is not seen, also where they are of this machine
        assert not any(stream.drains for stream in found.model.clients)
        assert any("keep that rate whatever waits" in note for note in found.notes)


def test_scrubs_that_run_are_told_of() -> None:
    twin = small_twin(scrub=(ScrubWork("rbd", 9000, MIB),))
    twin.clock.sleep(4.0)
    found = describe(with_window(twin))
    assert [(work.pool, work.objects, work.deep) for work in found.model.scrub] == [("rbd", 9000, True)]
    assert found.seen


@pytest.mark.parametrize("release", [REEF, TENTACLE])
def test_a_description_is_read_back_from_its_file(release: Any) -> None:
    custom = {**release.profiles["high_recovery_ops"], "osd_mclock_scheduler_client_res": 0.125}
    found = describe(with_window(small_twin(custom, release=release)), also={"scrub", "snaptrim", "recovery"})
    again = cluster_file.from_text(cluster_text.to_text(found))
    assert (again.model, again.settings, again.stored) == (found.model, found.settings, found.stored)
    assert {name: found.settings[name] for name in MCLOCK_NINE} == custom


def test_load_is_shared_out_by_what_each_pool_does_now() -> None:
    twin = with_window(small_twin())
    stats = [rates(1, 30, 70, 100 * 4096, degraded_objects=7), rates(2, 300, 0, 300 * 9000)]
    model = describe(answering(twin, {"osd pool stats": stats})).model
    first, second = model.clients
    assert (first.pool, first.rate, first.read_share, first.block_bytes) == ("rbd", 100.0, 0.3, 4096)
    assert (second.pool, second.rate, second.read_share, second.block_bytes) == ("other", 300.0, 1.0, 9000)
    # of work that has ended since: no operation of the window was that large
    stats = [rates(1, 0, 300, 300 * 4096), rates(2, 0, 100, 100 * MIB)]
    model = describe(answering(twin, {"osd pool stats": stats})).model
    assert [(stream.rate, stream.block_bytes) for stream in model.clients] == [(300.0, 8192), (100.0, 8192)]
    # rows of PGs are nearer than sums that are smoothed
    assert model.recovery == ()


@pytest.mark.parametrize("count", [1, 15, 16, 18, 90])
def test_the_twin_has_room_for_the_clients_of_as_many_pools_as_there_are(count: int) -> None:
    pools = tuple(Pool(f"p{number}", 4, 2) for number in range(count))
    twin = with_window(small_twin(pools=pools, clients=()))
    stats = [rates(number, 5, 5, 10 * 4096) for number in range(1, count + 1)]
    found = describe(answering(twin, {"osd pool stats": stats}))
    assert len(found.model.clients) == count
    # the twin refuses what it has no room for when it is built
    Simulation(found.model, found.settings)


def test_writes_wait_for_the_objects_that_an_osd_of_the_acting_set_lacks() -> None:
    pools = (Pool("rbd", 32, 2), Pool("other", 16, 3))
    twin = with_window(small_twin(pools=pools, recovery=(RecoveryWork("other", 400, MIB, target=1, among=4000),)))
    found = describe(twin)
    (work,) = found.model.recovery
    # a write meets one of those as often: by the PGs, which have whole numbers of objects
    assert work.objects / work.rounds / work.among == pytest.approx(400 / 4000, rel=0.02)
    assert any("all objects of a pool alike" in note for note in found.notes)
    read_back = cluster_file.from_text(cluster_text.to_text(found), "some.yaml").model.recovery
    assert read_back == found.model.recovery


@pytest.mark.parametrize(
    "change",
    [
        # the OSD is down, or backfilled, or it recovers outside of the acting set
        {"state": "active+undersized+degraded"},
        {"state": "active+backfilling+degraded"},
        {"state": "active+recovering+degraded", "up": [0, 1, 3]},
    ],
)
def test_elsewhere_nobody_waits_for_degraded_objects(change: Dict[str, Any]) -> None:
    twin = with_window(small_twin(recovery=(RecoveryWork("other", 400, MIB, target=1, among=4000),)))
    rows = [{**row, **change} for row in json.loads(twin.commander.mon("pg ls", {}))["pg_stats"]]
    found = describe(answering(twin, {"pg ls": [{**row, "acting": [0, 1, 2]} for row in rows]}))
    assert [work.among for work in found.model.recovery] == [0]
    assert not any("all objects of a pool alike" in note for note in found.notes)


def test_where_a_part_of_the_degraded_objects_is_waited_for_a_write_waits_as_often() -> None:
    twin = with_window(small_twin(recovery=(RecoveryWork("other", 400, MIB, target=1, among=4000),)))
    rows = json.loads(twin.commander.mon("pg ls", {}))["pg_stats"]
    degraded = [row for row in rows if row["stat_sum"]["num_objects_degraded"]]
    awaited = sum(row["stat_sum"]["num_objects_degraded"] for row in degraded[::2])
    for row in degraded[1::2]:
        row["state"] = "active+undersized+degraded"
    (work,) = describe(answering(twin, {"pg ls": rows})).model.recovery
    assert work.objects / work.rounds / work.among == pytest.approx(awaited / 4000, rel=0.01)


def test_an_assumed_loss_of_an_osd_lets_nobody_wait() -> None:
    found = describe(with_window(small_twin(scrub=(ScrubWork("rbd", 9000, MIB),))), also={"recovery"})
    assert found.model.recovery
    assert not any(work.among for work in found.model.recovery)


def test_recovery_goes_to_the_osd_that_lacks_the_copies() -> None:
    twin = with_window(small_twin(osds=8, recovery=(RecoveryWork("other", 5000, MIB),)))
    assert describe(twin).model.recovery[0].target is None
    rows = json.loads(twin.commander.mon("pg ls", {}))["pg_stats"]
    for row in rows:
        # an erasure code's chunks are numbered
        row["avail_no_missing"] = [f"{osd}(1)" for osd in row["acting"] if osd != 2]
    lacked = sum(row["stat_sum"]["num_objects_degraded"] for row in rows if 2 in row["acting"])
    assert lacked < 0.8 * 5000
    assert describe(answering(twin, {"pg ls": rows})).model.recovery[0].target is None
    rows = [row if 2 in row["acting"] else {**row, "stat_sum": {}} for row in rows]
    assert describe(answering(twin, {"pg ls": rows})).model.recovery[0].target == 2


def test_without_a_window_the_cluster_is_sampled_or_it_is_said_what_to_do() -> None:
    twin = small_twin()
    found = describe(twin, sample_s=10.0)
    assert sum(stream.rate or 0 for stream in found.model.clients) == pytest.approx(300, rel=0.1)
    assert any("sampled for 10 s" in note for note in found.notes)
    with pytest.raises(InputError, match="mgr install"):
        describe(twin, sample_s=0)
    stats = [rates(1, 0, 50, 50 * 4096), rates(2, 0, 0, 0)]
    found = describe(answering(twin, {"osd pool stats": stats}), sample_s=0)
    assert [(stream.pool, stream.rate) for stream in found.model.clients] == [("rbd", 50.0)]
    assert any("the monitors reckon" in note for note in found.notes)


def with_minutes(cluster: Cluster, count: int) -> Cluster:
    """Windows of the last minutes, with a p95 of the minute's number."""
    now, history = cluster.clock.now(), History(cluster.store)
    for number in range(count):
        measures = {name: Measure(value, 0.0, 6) for name, value in {**LOAD, "client.p95_ms": float(number)}.items()}
        start = now - 60.0 * (count - number)
        history.add_window(Window(start, start + 60.0, measures))
    return cluster


@pytest.mark.parametrize(
    ("who", "option", "value", "p95_ms"),
    [
        ("osd", "osd_mclock_profile", "high_client_ops", 4.5),
        ("osd.2", "osd_max_scrubs", "3", 4.5),
        # of a host that there is not, and of no OSD
        ("osd/host:elsewhere", "osd_max_scrubs", "3", 2.5),
        ("mgr", "mgr/tuner/interval", "20", 2.5),
    ],
)
def test_windows_under_other_settings_than_those_in_force_are_left_out(
    who: str, option: str, value: str, p95_ms: float
) -> None:
    twin = small_twin()
    twin.clock.sleep(120.0)
    twin.commander.mon("config set", {"who": who, "name": option, "value": value})
    twin.clock.sleep(180.0)
    found = describe(with_minutes(twin, 6))
    assert found.seen["client.p95_ms"] == p95_ms
    expected = [
        f"4 windows up to 2026-01-01 00:03:00 UTC are left out: {option} was changed at 2026-01-01 00:02:00 UTC"
    ]
    assert [note for note in found.notes if "left out" in note] == (expected if p95_ms > 4 else [])


def test_where_no_window_of_the_settings_in_force_is_left_the_cluster_is_sampled() -> None:
    twin = small_twin()
    twin.clock.sleep(120.0)
    twin.commander.mon("config set", {"who": "osd", "name": "osd_max_scrubs", "value": "3"})
    twin.clock.sleep(30.0)
    found = describe(with_minutes(twin, 2))
    assert found.seen["client.p95_ms"] != 0.5
    assert any("sampled" in note for note in found.notes)


def test_where_nothing_can_be_sampled_the_newest_window_stands_for_what_clients_do() -> None:
    twin = small_twin()
    twin.clock.sleep(120.0)
    twin.commander.mon("config set", {"who": "osd", "name": "osd_max_scrubs", "value": "3"})
    twin.clock.sleep(30.0)
    found = describe(with_minutes(twin, 3), sample_s=0.0)
    assert found.seen["client.p95_ms"] == 2.0
    why = "osd_max_scrubs was changed at 2026-01-01 00:02:00 UTC"
    assert f"what clients do is of before or just after a change: {why}" in found.notes


def test_a_change_that_is_stamped_by_a_clock_that_was_ahead_leaves_no_window_out() -> None:
    ahead = {"timestamp": "2031-01-01T00:00:00.000000+0000", "changes": [{"name": "osd/osd_max_scrubs"}]}
    found = describe(answering(with_minutes(small_twin(), 3), {"config log": [ahead]}))
    assert found.seen["client.p95_ms"] == 1.0


def test_who_may_not_read_the_log_of_changes_is_told_so() -> None:
    found = describe(refusing(with_minutes(small_twin(), 3), "config log"))
    assert found.seen["client.p95_ms"] == 1.0
    assert any("whether windows are of the settings in force is not told" in note for note in found.notes)


@pytest.mark.parametrize(
    ("before", "left_out"),
    [
        ({"client.bytes_s": 100.0 * MIB}, "clients' operations had 256 KiB in the mean, and have 8 KiB now"),
        ({"recovery.copies_s": 30.0}, "recovery was under way"),
        ({"backfill.objects_s": 30.0}, "backfill was under way"),
        # bursts are one load, and scrubs come and go
        ({"client.iops": 40.0, "client.bytes_s": 40 * 8192.0}, ""),
        ({"scrub.objects_s": 30.0}, ""),
    ],
)
def test_windows_of_other_work_than_the_present_one_are_left_out(before: Dict[str, float], left_out: str) -> None:
    idle = {"recovery.copies_s": 0.0, "backfill.objects_s": 0.0, "scrub.objects_s": 0.0}
    twin, measured = small_twin(), {"client.iops": 400.0, "client.bytes_s": 400 * 8192.0, "client.p95_ms": 20.0, **idle}
    now, history = twin.clock.now(), History(twin.store)
    for age, changes in ((250.0, {}), (190.0, {**before, "client.p95_ms": 300.0}), (130.0, {}), (70.0, {})):
        measures = {name: Measure(value, 0.0, 6) for name, value in {**measured, **changes}.items()}
        history.add_window(Window(now - age, now - age + 60, measures))
    found = describe(twin)
    notes = [note for note in found.notes if "left out" in note]
    if left_out:
        assert notes == [f"2 windows up to 2025-12-31 23:57:50 UTC are left out: {left_out}"]
        assert found.seen["client.p95_ms"] == pytest.approx(20.0)
    else:
        assert not notes
        assert found.seen["client.p95_ms"] == pytest.approx(90.0)


def test_a_load_of_another_time_takes_the_place_of_what_clients_do_now() -> None:
    twin = small_twin()
    found = describe(twin, load={**LOAD, "client.p95_ms": 7.0})
    assert sum(stream.rate or 0 for stream in found.model.clients) == pytest.approx(400, rel=1e-3)
    # how clients fared then is not how they fare now, and nobody was sampled
    assert (found.seen, twin.clock.now()) == ({}, small_twin().clock.now())


def test_work_that_is_not_under_way_is_assumed_only_where_it_is_asked_for() -> None:
    twin = with_window(small_twin(scrub=(ScrubWork("rbd", 8000, MIB),), osds=4))
    ended = {**json.loads(twin.commander.mon("status", {}))}
    ended["pgmap"]["pgs_by_state"] = [{"state_name": "active+clean", "count": 48}]
    quiet = answering(twin, {"status": ended})
    idle = describe(quiet)
    assert (idle.model.recovery, idle.model.scrub, idle.model.snaptrim) == ((), (), ())
    assert idle.seen
    found = describe(quiet, also={"client", "recovery", "scrub", "backfill"})
    # of 8 000 objects in 2 copies on 4 OSDs, one holds 4 000: 16 s at full speed, where it shall last for 60
    assert [(work.objects, work.degraded) for work in found.model.recovery] == [(14400, True), (14400, False)]
    assert [work.rounds for work in found.model.recovery] == [4, 4]
    assert [work.objects for work in found.model.scrub] == [8000]
    assert not found.seen
    assert sum("assumed" in note for note in found.notes) == 3


def test_only_the_class_of_most_osds_and_the_pools_on_it_are_told_of() -> None:
    twin = with_window(small_twin(osds=4, pools=(Pool("rbd", 32, 2), Pool("cold", 16, 2))))
    tree = json.loads(twin.commander.mon("osd tree", {}))
    for node in tree["nodes"]:
        if node["id"] == 3:
            node["device_class"] = "hdd"
    pools = [{"crush_rule": 0}, {"crush_rule": 1}]
    mixed = answering(twin, {"osd tree": tree, "osd crush rule dump": RULES, "osd dump": dumped(twin, pools)})
    found = describe(mixed, also={"scrub"})
    assert (found.model.osds, [pool.name for pool in found.model.pools]) == (3, ["rbd"])
    # its settings are not for the others
    assert (found.target, describe(twin).target) == ("osd/class:ssd", "osd")
    (note,) = [note for note in found.notes if note.startswith("only OSDs of the class ssd")]
    assert "(hdd) is left out" in note
    assert "--target osd/class:CLASS" in note
    with pytest.raises(InputError, match="copies need as many OSDs"):
        describe(mixed, "osd/class:hdd")


def test_settings_on_trial_are_told_to_be_no_more_than_that() -> None:
    twin = with_window(small_twin())
    assert not any("on trial" in note for note in describe(twin).notes)
    _, lock = trial_of(twin, Holder("ceph tuner in mgr.x"))
    try:
        (note,) = [note for note in describe(twin).notes if "on trial" in note]
        assert note.startswith("settings of ceph tuner in mgr.x are on trial")
    finally:
        lock.__exit__(None, None, None)


def test_the_load_of_the_whole_cluster_is_not_put_on_the_pools_of_one_class() -> None:
    pools = (Pool("fast", 32, 2), Pool("cold", 16, 2))
    twin = with_window(
        small_twin(osds=7, pools=pools, clients=()),
        **{"client.iops": 1e4, "client.read_iops": 0.0, "client.write_iops": 1e4, "client.bytes_s": 1e4 * 8192},
    )
    tree = json.loads(twin.commander.mon("osd tree", {}))
    for node in tree["nodes"]:
        if node["id"] >= 4:
            node["device_class"] = "hdd"
    ssd = {"rule_id": 0, "steps": [{**RULES[0]["steps"][0], "item_name": "default~ssd"}, RULES[0]["steps"][1]]}
    map_ = dumped(twin, [{"crush_rule": 0}, {"crush_rule": 1}])
    answers = {"osd tree": tree, "osd crush rule dump": [ssd, RULES[1]], "osd dump": map_}

    def found(target: str, *loads: float) -> Any:
        stats = [rates(pool, 0, load, load * 8192) for pool, load in enumerate(loads, 1)]
        return describe(answering(twin, {**answers, "osd pool stats": stats}), target)

    few, most = found("osd/class:ssd", 200, 9800), found("osd/class:hdd", 200, 9800)
    assert [(each.pool, each.rate) for each in few.model.clients] == [("fast", 200.0)]
    assert [(each.pool, each.rate) for each in most.model.clients] == [("cold", 9800.0)]
    assert any(note.startswith("2.0% of what clients do") for note in few.notes)
    # what all clients waited for is not what those few did
    assert not few.seen
    assert most.seen["client.iops"] == 9800.0
    # a pool with less than a hundredth of all load is still all that there is on its class
    assert [each.rate for each in found("osd", 50, 9950).model.clients] == [50.0]
    assert found("osd", 0, 9950).model.clients == ()


def test_osds_of_a_class_of_the_operators_own_are_told_of_by_their_drives() -> None:
    found = describe(with_window(archive_twin({"osd_mclock_profile": "high_client_ops"})))
    assert found.model.osd.hardware == DISK.hardware
    assert found.model.osd.threads_per_shard == DISK.threads_per_shard
    assert found.model.osd.device.latency_s == LATENCY_S["hdd"]
    assert found.settings == {"osd_mclock_profile": "high_client_ops"}
    cluster_file.from_text(cluster_text.to_text(found))


def test_where_drives_of_one_class_differ_in_kind_most_of_them_stand_for_all() -> None:
    twin = archive_twin()
    said = [{"id": 0, "rotational": "0"}, *({"id": osd, "rotational": "1"} for osd in (1, 2, 3))]
    found = describe(with_window(answering(twin, {"osd metadata": said})))
    assert found.model.osd.hardware == DISK.hardware
    assert found.model.osd.db is None
    assert any(note.startswith("3 of 4 OSDs of the class archive are on drives") for note in found.notes)


@pytest.mark.parametrize(("rotational", "on_flash"), [("0", True), ("1", False)])
def test_a_database_on_flash_beside_hard_disks_is_seen_and_called_a_guess(rotational: str, on_flash: bool) -> None:
    apart = {"rotational": "1", "bluefs_dedicated_db": "1", "bluefs_db_rotational": rotational}
    said = [{"id": 0, "rotational": "1", "bluefs_dedicated_db": "0"}, *({"id": osd, **apart} for osd in (1, 2, 3))]
    found = describe(with_window(answering(archive_twin(), {"osd metadata": said})))
    assert found.model.osd.db == (DB if on_flash else None)
    assert sum("(osd.db)" in note for note in found.notes) == on_flash
    assert cluster_file.from_text(cluster_text.to_text(found)).model.osd.db == found.model.osd.db


@pytest.mark.parametrize(
    ("own", "told"),
    [
        ({}, False),
        ({"bluestore_prefer_deferred_size": "0", "bluestore_prefer_deferred_size_hdd": "65536"}, False),
        ({"bluestore_prefer_deferred_size": "0", "bluestore_prefer_deferred_size_hdd": "0"}, True),
        ({"bluestore_prefer_deferred_size": "32768", "bluestore_prefer_deferred_size_hdd": "65536"}, True),
    ],
)
def test_another_bound_of_deferred_writes_than_ceph_s_own_is_told(own: Dict[str, str], told: bool) -> None:
    class WithBound(CommandConfig):
        def effective(self, osd: int) -> Dict[str, str]:
            return {**super().effective(osd), **own}

    twin = with_window(archive_twin())
    found = describe(replace(twin, config=WithBound(twin.commander)))
    assert any("deferred" in note for note in found.notes) == told


def test_chance_in_the_beginning_of_scrubs_is_that_of_the_cluster() -> None:
    class WithBackoff(CommandConfig):
        def effective(self, osd: int) -> Dict[str, str]:
            return {**super().effective(osd), "osd_scrub_backoff_ratio": "0.25"}

    twin = with_window(archive_twin())
    assert describe(twin).model.scrub_backoff_ratio == 0.66
    found = describe(replace(twin, config=WithBackoff(twin.commander)))
    assert found.model.scrub_backoff_ratio == 0.25
    assert cluster_file.from_text(cluster_text.to_text(found)).model.scrub_backoff_ratio == 0.25


def test_where_the_osds_are_not_seen_the_monitors_say_with_which_chance_scrubs_begin() -> None:
    class OfTheMonitors(CommandConfig):
        def effective(self, osd: int) -> Dict[str, str]:
            raise CommandFailed("ceph tell", -13, "access denied")

        def dump(self) -> List[ConfigEntry]:
            return [*super().dump(), ConfigEntry("osd", "osd_scrub_backoff_ratio", "0.1")]

    twin = with_window(archive_twin())
    assert describe(replace(twin, config=OfTheMonitors(twin.commander))).model.scrub_backoff_ratio == 0.1


def test_pgs_whose_osds_are_not_all_seen_are_placed_by_crush_and_the_balancer() -> None:
    twin = with_window(small_twin())
    rows = json.loads(twin.commander.mon("pg ls", {}))["pg_stats"]
    # of the pool `other` one PG has lost a copy; of `rbd` one has its primary in second place
    rows[0]["up"], rows[0]["up_primary"] = [2, 1], 1
    rows[-1]["up"] = rows[-1]["up"][:2]
    model = describe(answering(twin, {"pg ls": {"pg_stats": rows}})).model
    assert [bool(pool.acting) for pool in model.pools] == [True, False]
    assert model.pools[0].acting[0] == (1, 2)
    assert model.upmap_max_deviation == 5
    # an OSD of another device class, which the model has not
    rows[0]["up"] = [1, 9]
    assert not any(pool.acting for pool in describe(answering(twin, {"pg ls": {"pg_stats": rows}})).model.pools)
    many = describe(with_window(small_twin(osds=60)))
    assert (many.model.simulated_osds, [pool.acting for pool in many.model.pools]) == (24, [(), ()])


@pytest.mark.parametrize(
    ("status", "option", "max_deviation"),
    [
        ({"active": True, "mode": "upmap"}, "2", 2),
        ({"active": True, "mode": "upmap-read"}, "1", 1),
        ({"active": True, "mode": "crush-compat"}, "5", 0),
        ({"active": True, "mode": "none"}, "5", 0),
        ({"active": False, "mode": "upmap"}, "5", 0),
    ],
)
def test_the_balancer_is_described(status: Mapping[str, Any], option: str, max_deviation: int) -> None:
    twin = with_window(small_twin(osds=60))
    twin.commander.mon("config set", {"who": "mgr", "name": MAX_DEVIATION.name, "value": option})
    found = describe(answering(twin, {"balancer status": status}))
    assert found.model.upmap_max_deviation == max_deviation
    assert cluster_file.from_text(cluster_text.to_text(found)).model == found.model
    assert not any("balancer" in note for note in found.notes)


def test_a_balancer_that_is_not_seen_is_taken_to_be_on() -> None:
    found = describe(refusing(with_window(small_twin()), "balancer status"))
    assert found.model.upmap_max_deviation == 5
    assert any("the balancer is not seen, and taken to be on" in note for note in found.notes)


def test_a_target_of_some_osds_of_a_class_is_said_to_stand_for_all() -> None:
    twin = with_window(small_twin())
    found = describe(twin, "osd.1")
    assert found.model.osds == 4
    assert any(note.startswith("osd.1 is 1 of 4 OSDs of the class ssd") for note in found.notes)
    assert not any("of 4 OSDs" in note for note in describe(twin).notes)


def test_erasure_codes_and_osds_that_are_out_are_seen() -> None:
    twin = with_window(small_twin(osds=8, pools=(Pool("rbd", 32, 6),)))
    map_ = dumped(twin, [{"type": 3, "erasure_code_profile": "wide", "crush_rule": 1}])
    map_["osds"][7]["in"] = 0
    rules = [{**RULES[1], "steps": [{"op": "take", "item_name": "default"}, RULES[1]["steps"][1]]}]
    answers = {"osd dump": map_, "osd erasure-code-profile get": {"k": "4", "m": "2"}, "osd crush rule dump": rules}
    found = describe(answering(twin, answers))
    assert (found.model.pools, found.model.osds, found.model.hosts) == ((Pool("rbd", 32, 6, 4),), 7, 0)


def test_a_pool_whose_erasure_code_does_not_state_k_is_left_out_with_its_part_of_the_load() -> None:
    twin = with_window(small_twin(osds=8, pools=(Pool("rbd", 32, 2), Pool("layered", 16, 8))))
    layered = {"type": 3, "erasure_code_profile": "lrc"}
    profile = {"plugin": "lrc", "mapping": "__DD__DD", "layers": '[["_cDD_cDD", ""], ["cDDD____", ""]]'}
    stats = [rates(1, 0, 100, 100 * 4096), rates(2, 0, 300, 300 * 4096)]
    answers = {
        "osd dump": dumped(twin, [{}, layered]), "osd erasure-code-profile get": profile, "osd pool stats": stats
    }  # fmt: skip
    found = describe(answering(twin, answers))
    assert [pool.name for pool in found.model.pools] == ["rbd"]
    assert [(stream.pool, stream.rate) for stream in found.model.clients] == [("rbd", 100.0)]
    assert any(note.startswith("the pool layered is left out") for note in found.notes)
    # of all clients' waits nothing follows for those of one pool
    assert not found.seen
    with pytest.raises(InputError, match="no pool on these OSDs but what is left out: rbd, layered"):
        describe(answering(twin, {**answers, "osd dump": dumped(twin, [layered, layered])}))


def test_osds_that_are_all_out_are_no_cluster_to_describe() -> None:
    twin = with_window(small_twin())
    map_ = dumped(twin, [{}, {}])
    for osd in map_["osds"]:
        osd["in"] = 0
    with pytest.raises(InputError, match=r"none of whose OSDs of the class ssd is in.*`ceph osd in ID`"):
        describe(answering(twin, {"osd dump": map_}))


def test_many_quiet_pools_are_one_and_none_of_their_data_is_lost() -> None:
    pools = (Pool("busy", 32, 2), *(Pool(f"quiet{number}", 8, 2) for number in range(6)), Pool("three", 8, 3))
    scrub = tuple(ScrubWork(f"quiet{number}", 1000, MIB) for number in range(6))
    twin = with_window(small_twin(pools=pools, scrub=scrub, clients=()))
    stats = [rates(1, 0, 100, 100 * 4096), *(rates(number, 0, 0, 0) for number in range(2, 9))]
    model = describe(answering(twin, {"osd pool stats": stats}), also={"scrub"}).model
    assert {pool.name: pool.pgs for pool in model.pools} == {"busy": 32, "three": 8, "quiet0 and 5 quiet ones": 48}
    assert [(work.objects, work.object_bytes) for work in model.scrub] == [(6000, MIB)]


def test_a_cluster_of_thousands_of_pgs_is_seen_by_its_pools_sums() -> None:
    twin = with_window(small_twin())
    status = json.loads(twin.commander.mon("status", {}))
    status["pgmap"]["num_pgs"] = 100_000
    df = {"pools": [{"id": 1, "stats": {"objects": 500, "stored": 500 * MIB, "rd": 1, "wr": 9}}]}
    stats = [rates(1, 0, 100, 4096, degraded_objects=90, misplaced_objects=40), rates(2, 0, 0, 0)]
    large = answering(twin, {"status": status, "df": df, "osd pool stats": stats, "pg ls": None})
    found = describe(large, also={"scrub"})
    assert [(work.objects, work.object_bytes, work.degraded) for work in found.model.recovery] == [
        (90, MIB, True),
        (40, MIB, False),
    ]
    assert [work.objects for work in found.model.scrub] == [500]
    assert any("100000 PGs are not looked at one by one" in note for note in found.notes)


def test_another_queue_and_an_answer_that_is_none_are_told_in_one_line() -> None:
    with pytest.raises(InputError, match="another queue"):
        describe(with_window(small_twin(scheduler="wpq")))
    twin = with_window(small_twin())

    class Mad(Answering):
        def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
            return "<html>" if prefix == "osd dump" else super().mon(prefix, arguments, payload)

    with pytest.raises(CommandFailed, match="instead of JSON"):
        describe(replace(twin, commander=Mad(twin.commander, {})))
    with pytest.raises(InputError, match="covers no running OSD"):
        describe(twin, "osd.99")
