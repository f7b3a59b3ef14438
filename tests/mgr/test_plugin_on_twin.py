"""The plugin's logic on a twin: it collects, keeps history, writes and takes back as inside a real mgr."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any, Callable, List, Tuple

import pytest
from mgr_stand_in import CommandResult

from ceph_tuner.cluster.sampler import ClusterSampler
from ceph_tuner.core.ceph.commands import parsed
from ceph_tuner.core.errors import InputError, PermissionRefused, TunerError
from ceph_tuner.core.goals.stored_slo import BASELINE
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import REEF, TENTACLE, Release
from ceph_tuner.core.measure.pg_documents import pg_rows
from ceph_tuner.core.measure.sample import window_of
from ceph_tuner.core.measure.sampling import Sampling
from ceph_tuner.gather.replay import open_state
from ceph_tuner.twin.model import MIB, Pool, RecoveryWork, ScrubWork
from documented import ROOT
from tuner import compat, render_recommendation, render_why
from tuner.collect import Collector, TickLimits
from tuner.commander import MgrCommander
from tuner.inventory import MgrInventory
from tuner.options import DEFAULTS
from tuner.proto import Mgr
from tuner.sampler import Sampler
from tuner.service import Service
from twin_cluster.cluster import TwinCluster
from twin_cluster.mgr import TwinMgr
from twins import OSD, small_twin

WORK = {"recovery": (RecoveryWork("other", 20_000, MIB),)}


def plugin(twin: TwinCluster, **limits: int) -> Tuple[Collector, MgrCommander, Mgr]:
    mgr: Mgr = TwinMgr(twin.twin)
    commander = MgrCommander(mgr, CommandResult)

    return Collector(mgr, commander, compat.counters(mgr), lambda: TickLimits(**limits)), commander, mgr


def service(twin: TwinCluster) -> Tuple[Service, Sampler]:
    collector, commander, mgr = plugin(twin)
    made: List[Service] = []
    sampler = Sampler(collector, lambda: made[0].history(), twin.clock.now)
    made.append(Service(commander, sampler, MgrInventory(mgr), DEFAULTS.__getitem__, "the test", clock=twin.clock))
    return made[0], sampler


@pytest.mark.parametrize("release", [REEF, TENTACLE], ids=str)
def test_the_plugin_sees_what_the_sampler_of_the_command_line_sees(release: Release) -> None:
    twin = small_twin(release=release, **WORK)
    collector, _, _ = plugin(twin)
    inside, outside, samples = Sampling(), ClusterSampler(twin.commander, twin.clock), []
    for _ in range(13):
        samples.append((inside.take(collector.read(twin.clock.now())), outside.sample()))
        twin.clock.sleep(5)
    ours, theirs = (window_of(sample for sample in column[1:] if sample) for column in zip(*samples))
    assert ours is not None
    assert theirs is not None
    for name, measure in theirs.measures.items():
        if measure.mean > 1 and not name.startswith("snaptrim"):
            assert ours.measures[name].mean == pytest.approx(measure.mean, rel=0.05), name
    assert ours.measures["recovery.objects_s"].mean > 1
    assert ours.measures["client.p95_ms"].mean > 1


@pytest.mark.parametrize("release", [REEF, TENTACLE], ids=str)
def test_scrub_of_an_erasure_coded_pool_is_seen_alike_inside_and_outside(release: Release) -> None:
    coded = {"pools": (Pool("rbd", 32, 6, 4),), "osds": 8, "scrub": (ScrubWork("rbd", 6000, 4 * MIB),)}
    twin = small_twin(release=release, **coded)
    collector, _, _ = plugin(twin)
    inside, outside = Sampling(), ClusterSampler(twin.commander, twin.clock)
    ours, theirs = [], []
    for _ in range(13):
        ours.append(inside.take(collector.read(twin.clock.now())))
        theirs.append(outside.sample())
        twin.clock.sleep(5)
    before, after = (window_of(sample for sample in column if sample) for column in (ours, theirs))
    assert before is not None
    assert after is not None
    for name in ("scrub.bytes_s", "scrub.interval_s"):
        assert before.means[name] == pytest.approx(after.means[name], rel=0.1), name
    # six shards of a quarter of an object each
    assert after.means["scrub.interval_s"] * after.means["scrub.bytes_s"] == pytest.approx(6000 * 6 * MIB, rel=0.01)


def test_where_there_are_many_pgs_a_few_are_asked_at_their_primaries() -> None:
    twin = small_twin(scrub=(ScrubWork("rbd", 3000, MIB),))
    collector, _, _ = plugin(twin, pg_detail_limit=10)
    found = {}
    for _ in range(8):
        twin.clock.sleep(5)
        found.update(collector.read(twin.clock.now()).pgs)
    assert len(found) == 32 + 16
    assert sum(pg.objects for pg in found.values()) == 3000


def test_clients_that_get_nothing_are_slow_operations_of_their_osds() -> None:
    nothing = {"osd_mclock_scheduler_client_res": 0.0, "osd_mclock_scheduler_client_lim": 0.000001}
    twin = small_twin({**TENTACLE.profiles["balanced"], **nothing})
    collector, _, mgr = plugin(twin)
    assert mgr.get_daemon_health_metrics() == {}
    twin.clock.sleep(60)
    assert (collector.read(twin.clock.now()).slow_ops or 0) > 10


def test_a_module_cannot_ask_the_monitors_for_what_is_the_mgrs() -> None:
    _, commander, _ = plugin(small_twin())
    with pytest.raises(PermissionRefused):
        commander.mon("pg ls", {})
    with pytest.raises(TunerError):
        commander.mon("no such command", {})
    with pytest.raises(TunerError):
        commander.tell("osd.77", "perf dump", {})


def test_why_names_what_holds_work_with_its_evidence_and_commands() -> None:
    recorded = open_state(ROOT / "tests" / "data" / "why" / "tentacle-limit.tar.zst")
    running, _ = service(small_twin())
    running.commander, running.clock = recorded.commander, recorded.clock  # type: ignore[assignment]
    running.inventory.pgs = lambda: pg_rows(parsed(recorded.commander.mon("pg ls", {}), "pg ls"))  # type: ignore[method-assign]
    document = running.why("", "", 10.0)
    assert (document["asked"], document["not_judged"]) == ([0, 1, 2], [])
    first = document["causes"][0]
    assert (first["cause"], first["work"]) == ("limit", "recovery")
    said = render_why.causes(document)
    assert said.startswith("What holds work now")
    assert f"1. recovery, {first['held']:.0%} held: mClock's limit holds recovery" in said
    assert "     ceph tell osd." in said
    assert max(len(line) for line in said.splitlines() if " ceph" not in line) <= 80
    with pytest.raises(InputError, match="pool: found 'nowhere'"):
        running.why("nowhere", "", 10.0)
    with pytest.raises(InputError, match="seconds: found 1, expected 2 to 600"):
        running.why("", "", 1.0)


def test_why_of_more_pgs_than_are_looked_at_says_what_it_cannot_judge() -> None:
    twin = small_twin(**WORK)
    running, _ = service(twin)
    running.option = {**DEFAULTS, "pg_detail_limit": 10}.__getitem__
    document = running.why("", "", 10.0)
    assert "48 PGs are not listed one by one (at most 10)" in document["notes"]
    assert "reservation slots" in [each["cause"] for each in document["not_judged"]]
    assert "14 could not be judged" in " ".join(render_why.causes(document).split())


def test_status_shows_rates_objectives_and_what_is_in_force() -> None:
    twin = small_twin({PROFILE: "high_client_ops"}, **WORK)
    running, sampler = service(twin)
    running.slo_commands.set("client.p95_ms<=1", False, 1.0, "")
    for _ in range(20):
        sampler.tick()
        twin.clock.sleep(5)
    found = running.status()
    assert found["release"] == "20.2.4"
    assert found["in_force"]["settings"][PROFILE] == "high_client_ops"
    assert found["in_force"]["agree"]
    assert found["window"]["measures"]["client.iops"][0] == pytest.approx(300, rel=0.1)
    assert found["newest"]["osds.down"] == 0.0
    assert [verdict["met"] for verdict in found["slo"]] == [False]
    # measured where they stand at the OSDs, as a bench at their first start would put them
    assert {(row["iops"], row["source"]) for row in found["capacity"]} == {(935.0, f"osd.{osd}") for osd in range(4)}
    assert running.past(False, 10)["windows"]


def test_a_profile_is_applied_to_the_schedulers_and_rolled_back() -> None:
    twin = small_twin()
    running, _ = service(twin)
    before = twin.commander.mon("config dump", {})
    planned = running.profile_apply("high_recovery_ops", "osd", False)
    assert planned["changes"]
    assert twin.commander.mon("config dump", {}) == before
    running.profile_apply("high_recovery_ops", "osd", True)
    used: Callable[[], Any] = lambda: twin.twin.simulation.settings_of(1)  # noqa: E731
    assert used().items() >= TENTACLE.profiles["high_recovery_ops"].items()
    # the command line finds the plugin's change in the journal that they share
    assert [entry.who for entry in twin.applier().history()] == ["the test"]
    running.changes().rollback(True, None, False)
    assert used().items() >= TENTACLE.profiles["balanced"].items()
    assert twin.commander.mon("config dump", {}) == before
    with pytest.raises(InputError):
        running.profile_apply("high_recovery_ops", "osd/host:nowhere", False)


@pytest.mark.slow
def test_a_recommendation_says_what_becomes_of_imported_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DEFAULTS, "worker_python", sys.executable)
    twin = small_twin(**WORK)
    made, sampler = service(twin)
    for _ in range(13):
        sampler.tick()
        twin.clock.sleep(5)
    made.slo_commands.set("client.p95_ms<=80", False, 1.0, "")
    assert made.recommend()["elsewhere"] == []
    hardware = {"capacity_iops": 1e6, "bandwidth_bytes_s": 1e9, "shards": 1, "device_class": "ssd", "osds": 3}
    settings = dict(TENTACLE.profiles["high_client_ops"])
    profile = {"schema": 1, "name": "other", "release": "tentacle", "hardware": hardware, "settings": settings}
    made.profile_import(json.dumps(profile), "")
    found = made.recommend()
    assert [(entry["profile"], entry["suggested"]) for entry in found["elsewhere"]] == [("other", False)]
    assert "an OSD had" in found["elsewhere"][0]["reason"]
    assert "profile other is not used: an OSD had" in render_recommendation.recommendation(found)


def test_recommend_and_status_hold_relative_bounds_against_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DEFAULTS, "worker_python", sys.executable)
    twin = small_twin(**WORK)
    made, sampler = service(twin)
    made.slo_commands.set("client.p95_ms<=1.2*baseline", False, 1.0, "")
    made.store.set(BASELINE, json.dumps({"client.p95_ms": 0.5}))
    for _ in range(13):
        sampler.tick()
        twin.clock.sleep(5)
    asked: List[Any] = []
    monkeypatch.setattr(made, "_ask", lambda slo, *rest, **named: asked.append(slo) or {"proposals": []})
    found = made.recommend()["slo"]
    assert found == made.status()["slo"]
    assert [(verdict["bound"], verdict["met"]) for verdict in found] == [(pytest.approx(0.6), False)]
    assert [objective.bound.resolve(None) for objective in asked[0].objectives] == [pytest.approx(0.6)]


@pytest.mark.parametrize("shards", [1, 4])
def test_the_optimiser_is_told_how_many_shards_an_osd_has(monkeypatch: pytest.MonkeyPatch, shards: int) -> None:
    twin = small_twin(osd=replace(OSD, shards=shards), **WORK)
    made, sampler = service(twin)
    made.slo_commands.set("client.p95_ms<=80", False, 1.0, "")
    for _ in range(13):
        sampler.tick()
        twin.clock.sleep(5)
    asked: List[Any] = []
    monkeypatch.setattr("tuner.service.ask_worker", lambda request, *_: asked.append(request) or {"proposals": []})
    made.recommend()
    assert asked[0]["shards"] == shards
    assert asked[0]["kind"] == "ssd"
