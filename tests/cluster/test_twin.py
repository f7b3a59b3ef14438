"""The contract of the ports on the twin, and what only a twin can promise: time and numbers that repeat."""

from __future__ import annotations

import json
import time
from typing import Any, Callable, Dict, List

import numpy as np
import pytest
from contract import CommanderContract, ConfigurationContract, StoreContract

from ceph_tuner.cluster.sampler import ClusterSampler, observe
from ceph_tuner.core.ceph.commands import CommandConfig, CommandStore
from ceph_tuner.core.errors import CommandFailed
from ceph_tuner.core.knobs.catalogue import KNOBS, PROFILE
from ceph_tuner.core.knobs.releases import QUINCY_EARLY, REEF, RELEASES, TENTACLE, Release
from ceph_tuner.core.knobs.settings import settings_in_force
from ceph_tuner.core.profiles.in_force import hardware_of
from ceph_tuner.twin.model import (
    MIB,
    ClientStream,
    Pool,
    RecoveryWork,
    ScrubWork,
    SnaptrimWork,
)
from ceph_tuner.twin.simulation import Simulation
from monitors import ManualClock
from twin_cluster.cluster import TwinCluster, TwinCommander, twin_cluster
from twins import OSD, answering, small_model, small_twin


@pytest.fixture(params=["tentacle", "reef"])
def twin(request: pytest.FixtureRequest) -> TwinCluster:
    return small_twin(release=RELEASES[request.param])


@pytest.fixture
def eventually(twin: TwinCluster) -> Callable[[Callable[[], bool]], None]:
    def wait(holds: Callable[[], bool]) -> None:
        assert holds()

    return wait


class TestTwin(CommanderContract, ConfigurationContract, StoreContract):
    @pytest.fixture
    def commander(self, twin: TwinCluster) -> TwinCommander:
        return twin.twin

    @pytest.fixture
    def config(self, twin: TwinCluster) -> CommandConfig:
        return twin.config

    @pytest.fixture
    def store(self, twin: TwinCluster) -> CommandStore:
        return twin.store


class TestTwinThatLagsBehind(ConfigurationContract):
    """Its OSDs see what was written two seconds later."""

    @pytest.fixture
    def twin(self) -> TwinCluster:
        return small_twin(lag_s=2.0)

    @pytest.fixture
    def eventually(self, twin: TwinCluster) -> Callable[[Callable[[], bool]], None]:
        def wait(holds: Callable[[], bool]) -> None:
            assert not holds()
            twin.clock.sleep(2.0)
            assert holds()

        return wait

    @pytest.fixture
    def config(self, twin: TwinCluster) -> CommandConfig:
        return twin.config


@pytest.mark.parametrize("release", RELEASES.values(), ids=str)
def test_a_twin_of_any_release_has_its_defaults_and_knows_its_hardware(release: Release) -> None:
    twin = small_twin(release=release)
    shown = twin.config.effective(0)
    found = twin.in_force("osd")
    assert found.built_in == release.default_profile == shown[PROFILE]
    assert found.osds == 4
    hardware = hardware_of(shown)
    assert (hardware.capacity_iops, hardware.shards) == (OSD.capacity_iops, OSD.shards)
    assert twin.release is release
    if release.units == "fraction":
        assert found.settings.items() >= release.profiles[release.default_profile].items()
        assert settings_in_force(shown) == {PROFILE: release.default_profile, **release.profiles[found.built_in]}
    else:
        # whole IOPS per shard, as such OSDs have them
        assert shown["osd_mclock_scheduler_client_res"] == str(round(0.5 * 935))
    for name, entry in KNOBS.items():
        if entry.scope != "pool" and entry.exists(release):
            entry.read(shown[name])
        else:
            assert name not in shown


def test_settings_of_a_twin_are_what_its_operator_wrote() -> None:
    nine = {**TENTACLE.profiles["balanced"], "osd_mclock_scheduler_client_lim": 0.3}
    twin = small_twin({**nine, "osd_max_scrubs": 1})
    assert ("osd", PROFILE, "custom") in twin.config.dump()
    assert ("osd", "osd_max_scrubs", "1") in twin.config.dump()
    assert twin.twin.simulation.settings_of(3).items() >= {**nine, "osd_max_scrubs": 1}.items()


def test_early_quincy_takes_iops_per_shard_and_its_schedulers_get_fractions() -> None:
    twin = small_twin({PROFILE: "custom", **QUINCY_EARLY.profiles["balanced"]}, release=QUINCY_EARLY)
    assert ("osd", "osd_mclock_scheduler_client_lim", "935") in twin.config.dump()
    used = twin.twin.simulation.settings_of(0)
    assert used["osd_mclock_scheduler_client_lim"] == pytest.approx(1.0, abs=0.01)
    assert used["osd_mclock_scheduler_background_best_effort_lim"] == 0


@pytest.mark.parametrize(
    ("name", "text", "kept"),
    [
        ("osd_mclock_scheduler_client_wgt", "0", "0"),
        ("osd_mclock_scheduler_client_wgt", "-1", None),
        ("osd_mclock_scheduler_client_lim", "nan", "nan"),
        ("osd_mclock_scheduler_client_lim", ".3", "0.300000"),
        ("osd_mclock_scheduler_client_lim", "1.1", None),
        ("osd_mclock_scheduler_client_res", "-0.1", None),
        ("osd_mclock_scheduler_client_res", "1e-7", "0.000000"),
        ("osd_max_scrubs", "-5", "-5"),
        ("osd_max_scrubs", "10K", "10000"),
        ("osd_max_scrubs", "2.5", None),
        ("osd_mclock_override_recovery_settings", "yes", None),
        ("osd_mclock_override_recovery_settings", "TRUE", "true"),
        ("bluestore_throttle_bytes", "256K", "262144"),
        ("bluestore_throttle_bytes", "64k", None),
        ("bluestore_throttle_bytes", "1.5M", None),
        ("osd_pg_max_concurrent_snap_trims", "0", None),
        ("osd_mclock_profile", "fast", None),
        ("pg_num", "64", None),
        ("osd_scrub_begin_hour", "22", "22"),
        ("osd_scrub_end_hour", "24", None),
        ("osd_deep_scrub_interval_cv", "0.5", None),
    ],
)
def test_a_text_is_taken_or_refused_as_real_monitors_do(name: str, text: str, kept: Any) -> None:
    """What they do was asked of 18.2.7 and 20.2.4 (`tests/test_knobs_on_cluster.py`, docs/ceph-behaviour.md)."""
    config, nobody = small_twin().config, "osd/host:nowhere"
    if kept is None:
        with pytest.raises(CommandFailed) as refusal:
            config.set(nobody, name, text)
        assert refusal.value.code == -22
    else:
        config.set(nobody, name, text)
        assert (nobody, name, kept) in config.dump()


@pytest.mark.parametrize("who", ["osd/nonsense:x", "disk", "osd/host", "osd.0/"])
def test_a_section_that_is_none_is_refused(who: str) -> None:
    twin = small_twin()
    before = twin.config.dump()
    with pytest.raises(CommandFailed, match="unrecognized config target"):
        twin.config.set(who, "osd_max_scrubs", "1")
    assert twin.config.dump() == before


def test_config_get_says_what_is_set_for_a_daemon_or_the_default() -> None:
    twin = small_twin()
    twin.config.set("osd", "osd_max_scrubs", "5")
    twin.config.set("osd/class:ssd", "osd_max_scrubs", "6")

    def get(who: str, key: str) -> float:
        return float(json.loads(twin.commander.mon("config get", {"who": who, "key": key})))

    assert (get("osd", "osd_max_scrubs"), get("osd.1", "osd_max_scrubs")) == (5, 6)
    assert get("osd", "osd_deep_scrub_interval") == 604800
    with pytest.raises(CommandFailed):
        get("osd", "osd_no_such_option")


def test_options_that_are_read_at_the_start_wait_for_a_restart() -> None:
    twin = small_twin()
    before = twin.config.effective(0)["osd_op_num_shards_ssd"]
    twin.config.set("osd", "osd_op_num_shards_ssd", "4")
    assert twin.config.effective(0)["osd_op_num_shards_ssd"] == before == "1"
    twin.twin.restart(0)
    assert [twin.config.effective(osd)["osd_op_num_shards_ssd"] for osd in (0, 1)] == ["4", "1"]


def test_every_sleep_is_forced_to_0_whatever_the_database_says() -> None:
    twin = small_twin()
    twin.config.set("osd", "osd_snap_trim_sleep", "0.1")
    assert float(twin.config.effective(0)["osd_snap_trim_sleep"]) == 0
    found = twin.config.sources(0)["osd_snap_trim_sleep"]
    assert float(found["mon"]) == 0.1
    assert float(found["override"]) == 0


def test_hosts_hold_the_osds_that_the_simulation_puts_there() -> None:
    model = small_model(osds=6, hosts=3)
    twin = twin_cluster(model)
    assert twin.config.osds("osd/host:h1") == [1, 4]
    for row in json.loads(twin.commander.mon("pg ls", {}))["pg_stats"]:
        assert len({osd % 3 for osd in row["acting"]}) == len(row["acting"])


def test_pools_come_and_go_but_those_of_the_model_stay() -> None:
    twin = small_twin()
    twin.commander.mon("osd pool create", {"pool": "new", "pg_num": "8"})
    assert json.loads(twin.commander.mon("status", {}))["pgmap"]["num_pgs"] == 32 + 16 + 8
    twin.clock.sleep(2)
    sure = {"yes_i_really_really_mean_it": "true"}
    twin.commander.mon("osd pool rm", {"pool": "new", "pool2": "new", **sure})
    assert json.loads(twin.commander.mon("osd pool ls", {})) == ["rbd", "other"]
    with pytest.raises(CommandFailed, match="the twin's own"):
        twin.commander.mon("osd pool rm", {"pool": "rbd", "pool2": "rbd", **sure})
    with pytest.raises(CommandFailed, match="name it twice"):
        twin.commander.mon("osd pool rm", {"pool": "rbd", "pool2": "other", **sure})


WORK: Dict[str, Any] = {
    "recovery": (RecoveryWork("other", 4000, MIB), RecoveryWork("rbd", 900, MIB, degraded=False)),
    "snaptrim": (SnaptrimWork("rbd", 3000, MIB, start_s=5.0),),
}
SCRUB: Dict[str, Any] = {"scrub": (ScrubWork("other", 1500, MIB),)}
"""Of what nobody writes: what is read of chunks that writes stop scrubs nothing."""


def seen(twin: TwinCluster, seconds: float) -> Dict[str, float]:
    window, _ = observe(ClusterSampler(twin.commander, twin.clock), twin.clock, seconds)
    assert window is not None
    return {name: measure.mean for name, measure in window.measures.items()}


@pytest.mark.parametrize("release", [REEF, TENTACLE], ids=str)
@pytest.mark.parametrize("work", [WORK, SCRUB], ids=["recovery", "scrub"])
def test_the_samplers_window_agrees_with_what_the_simulation_counted(release: Release, work: Dict[str, Any]) -> None:
    # backfill goes PG by PG, and the mgr's totals of it lag
    seconds = 90.0 if work is WORK else 30.0
    twin = small_twin(release=release, **work)
    twin.clock.sleep(1)
    before = twin.twin.simulation.counters()
    found = seen(twin, seconds)
    after = twin.twin.simulation.counters()
    assert after.at - before.at == pytest.approx(seconds)

    def risen(name: str) -> float:
        return float((getattr(after, name) - getattr(before, name)).sum()) / seconds

    operations = risen("read_ops") + risen("write_ops")
    busy = risen("read_seconds") + risen("write_seconds")
    assert found["client.iops"] == pytest.approx(operations, rel=1e-6)
    assert found["client.write_bytes_s"] == pytest.approx(risen("write_bytes"), rel=1e-6)
    assert found["client.mean_ms"] == pytest.approx(1000 * busy / operations, rel=1e-3)
    # the buckets are those of Ceph: a percentile is known to a factor of two
    counts = (after.latency - before.latency).sum(axis=(0, 1))
    bucket = int(np.searchsorted(np.cumsum(counts), 0.95 * counts.sum()))
    assert 0.1 * 2.0 ** (bucket - 1) <= found["client.p95_ms"] <= 0.1 * 2.0**bucket
    assert found["recovery.bytes_s"] == pytest.approx(risen("recovery_bytes"), rel=1e-6)
    assert found["ops.slow"] == found["pgs.inactive"] == found["osds.down"] == 0
    if work is WORK:
        assert found["recovery.objects_s"] == pytest.approx(risen("recovery_ops"), rel=1e-6)
        # the mgr's totals lag by less than one sample
        assert found["backfill.objects_s"] == pytest.approx(risen("backfill_ops"), rel=0.3)
        assert found["snaptrim.objects_s"] == pytest.approx(risen("trimmed"), rel=0.5)
    else:
        assert risen("scrub_objects") > 1
        assert found["scrub.objects_s"] == pytest.approx(risen("scrub_objects"), rel=0.15)
        assert found["scrub.bytes_s"] == pytest.approx(risen("scrub_bytes"), rel=0.05 if release is TENTACLE else 0.15)
        # Tentacle's OSDs count an object as they read it, and Reef's count none: there PGs' progress tells, by chunks
        if release is TENTACLE:
            copies = risen("scrub_read_bytes") / MIB
            whole = twin.twin.simulation.osds / seconds
            assert found["scrub.objects_s"] == pytest.approx(copies / 3, rel=1e-6, abs=whole / 3)


@pytest.mark.parametrize("release", [REEF, TENTACLE], ids=str)
def test_a_scrub_of_erasure_coded_objects_reads_shards_and_no_copies(release: Release) -> None:
    objects, size, k, m = 6000, 4 * MIB, 4, 2
    pools = (Pool("rbd", 32), Pool("cold", 32, k + m, k))
    twin = small_twin(release=release, osds=8, pools=pools, scrub=(ScrubWork("cold", objects, size),))
    twin.clock.sleep(1)
    before = twin.twin.simulation.counters().scrub_bytes.sum()
    found = seen(twin, 60.0)
    read = float(twin.twin.simulation.counters().scrub_bytes.sum() - before) / 60.0
    tolerance = 0.05 if release is TENTACLE else 0.15
    assert found["scrub.bytes_s"] == pytest.approx(read, rel=tolerance)
    assert found["scrub.interval_s"] == pytest.approx(objects * size * (k + m) / k / read, rel=tolerance)


def test_scrubs_show_in_states_and_their_dates_move_on() -> None:
    twin = small_twin(**SCRUB)

    def rows() -> List[Dict[str, Any]]:
        found: List[Dict[str, Any]] = json.loads(twin.commander.mon("pg ls", {}))["pg_stats"]
        return [row for row in found if row["pgid"].startswith("2.")]

    before = {row["pgid"]: row["last_deep_scrub_stamp"] for row in rows()}
    states: List[str] = []
    for _ in range(60):
        twin.clock.sleep(1)
        states += [row["state"] for row in rows()]
    assert "active+clean+scrubbing+deep" in states
    after = {row["pgid"]: row["last_deep_scrub_stamp"] for row in rows()}
    moved = [pgid for pgid in after if after[pgid] > before[pgid]]
    assert len(moved) >= 8
    assert all(after[pgid] >= before[pgid] for pgid in after)


def test_scrubs_that_are_over_within_a_moment_move_the_dates_as_well() -> None:
    twin = small_twin(scrub=(ScrubWork("rbd", 320, MIB),))
    rows = json.loads(twin.commander.mon("pg ls", {}))["pg_stats"]
    before = {row["pgid"]: row["last_deep_scrub_stamp"] for row in rows}
    twin.clock.sleep(120)
    done = float(twin.twin.simulation.counters().scrub_objects.sum())
    assert done > 2 * 320
    rows = json.loads(twin.commander.mon("pg ls", {}))["pg_stats"]
    moved = [row["pgid"] for row in rows if row["last_deep_scrub_stamp"] > before[row["pgid"]]]
    assert len(moved) >= 28
    assert all(pgid.startswith("1.") for pgid in moved)


def test_degraded_objects_are_a_warning_until_they_are_recovered() -> None:
    twin = small_twin(recovery=(RecoveryWork("other", 200, MIB),))
    twin.clock.sleep(1)
    status = json.loads(twin.commander.mon("status", {}))
    left = twin.twin.simulation.counters().degraded_left
    assert left > 0
    assert status["pgmap"]["degraded_objects"] == left
    assert "PG_DEGRADED" in status["health"]["checks"]
    twin.clock.sleep(60)
    status = json.loads(twin.commander.mon("status", {}))
    assert status["health"]["status"] == "HEALTH_OK"
    assert [row["state_name"] for row in status["pgmap"]["pgs_by_state"]] == ["active+clean"]


def test_clients_that_get_nothing_for_half_a_minute_are_slow_operations() -> None:
    # a limit does not bound what a reservation gives, so that goes as well
    nothing = {"osd_mclock_scheduler_client_res": 0.0, "osd_mclock_scheduler_client_lim": 0.000001}
    twin = small_twin({**TENTACLE.profiles["balanced"], **nothing})
    twin.clock.sleep(20)
    assert json.loads(twin.commander.mon("health", {}))["checks"] == {}
    twin.clock.sleep(20)
    assert seen(twin, 5)["ops.slow"] > 10


def test_of_a_cluster_that_is_simulated_in_part_every_osd_answers_and_the_sums_are_the_whole() -> None:
    twin = twin_cluster(
        small_model(
            osds=40,
            simulated_osds=4,
            pools=(Pool("rbd", 320, 3),),
            clients=(ClientStream("rbd", rate=3000.0, depth=512),),
            recovery=(RecoveryWork("rbd", 10000, MIB, start_s=10),),
        )
    )
    found = seen(twin, 5)
    assert found["client.iops"] == pytest.approx(3000, rel=0.1)
    assert found["recovery.objects_left"] == pytest.approx(10000, rel=0.05)
    twin.config.set("osd.39", "osd_max_scrubs", "1")
    assert twin.config.effective(39)["osd_max_scrubs"] == "1"


def test_the_same_twin_gives_the_same_answers_and_another_seed_gives_others() -> None:
    def told(seed: int) -> str:
        twin = small_twin({PROFILE: "high_client_ops"}, seed, **WORK)
        twin.clock.sleep(10)
        twin.config.set("osd/host:h1", "osd_max_scrubs", "1")
        twin.clock.sleep(3)
        asked = [twin.commander.mon(prefix, {}) for prefix in ("status", "pg ls", "config dump")]
        asked += [twin.commander.tell(f"osd.{osd}", "perf dump", {}) for osd in range(4)]
        return "".join(asked)

    assert told(3) == told(3)
    assert told(3) != told(4)


def test_time_is_the_twins_own() -> None:
    twin = small_twin()
    began, here = twin.clock.now(), time.monotonic()
    twin.clock.sleep(600)
    twin.clock.sleep(-1)
    assert twin.clock.now() == pytest.approx(began + 600)
    assert time.monotonic() - here < 60
    assert twin.clock.now() == pytest.approx(twin.twin.now())


def test_an_osd_of_two_buckets_is_one_osd_where_masks_find_it(twin: TwinCluster) -> None:
    before = twin.config.places()
    nodes = json.loads(twin.twin.mon("osd tree", {}))["nodes"]
    # `ceph osd crush link` puts a host into a second tree: its OSDs are listed once more
    again = [
        {"id": -10, "name": "archive", "type": "root", "children": [-11]},
        {"id": -11, "name": "shelf", "type": "host", "children": [0]},
        next(node for node in nodes if node["id"] == 0),
    ]
    for tree in ([*again, *nodes], [*nodes, *again]):
        places = answering(twin, {"osd tree": {"nodes": tree}}).config.places()
        assert sorted(places, key=lambda place: place.osd) == before


@pytest.mark.parametrize("prefix", ["osd dump", "status", "health", "config get"])
def test_a_sample_of_an_answer_of_another_shape_is_a_command_that_failed(prefix: str) -> None:
    with pytest.raises(CommandFailed, match="cannot be read"):
        ClusterSampler(answering(small_twin(), {prefix: []}).commander, ManualClock()).sample()


@pytest.mark.parametrize("prefix", ["perf dump", "perf histogram dump"])
def test_an_osd_whose_answer_has_another_shape_is_one_that_did_not_answer(prefix: str) -> None:
    odd = answering(small_twin(), {("osd.1", prefix): []})
    reading = ClusterSampler(odd.commander, ManualClock()).read()
    assert (set(reading.osds), reading.notes) == ({0, 2, 3}, ("no answer of osd.1",))


def test_counters_and_time_go_on_when_other_work_begins() -> None:
    twin = small_twin(**SCRUB)
    twin.config.set("osd.1", "osd_max_scrubs", "1")
    twin.clock.sleep(10)
    before, at = twin.twin.counters(), twin.clock.now()
    twin.twin.begin(Simulation(small_model(**WORK), {PROFILE: "high_recovery_ops"}, 7))
    assert twin.clock.now() == pytest.approx(at)
    assert (twin.twin.counters().write_ops == before.write_ops).all()
    # the settings are the cluster's, whatever the simulation was made with
    used = [twin.twin.simulation.settings_of(osd) for osd in (0, 1)]
    assert used[0].items() >= TENTACLE.profiles["balanced"].items()
    assert [settings["osd_max_scrubs"] for settings in used] == [3, 1]
    found = seen(twin, 10)
    assert found["client.iops"] == pytest.approx(300, rel=0.1)
    assert found["recovery.objects_s"] > 0
    with pytest.raises(ValueError, match="same OSDs"):
        twin.twin.begin(Simulation(small_model(osds=5), {}, 7))
