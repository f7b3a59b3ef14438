from __future__ import annotations

from typing import List, Tuple

import mgr_scale
import pytest
from mgr_scale import SCOPED, plugin_on, scopes_on, story
from synthetic_mgr import CLASSES, PLAIN, SyntheticMgr

from ceph_tuner.core.measure.metrics import CLASS, Scope
from ceph_tuner.core.measure.osd_documents import PLAIN_COUNTERS, TIME_COUNTERS
from tuner.collect import GROUP_SHARE, TURN_SHARE, TickLimits
from tuner.sampler import Sampler

pytestmark = pytest.mark.slow

COUNTERS = len(PLAIN_COUNTERS) + len(TIME_COUNTERS)
LIMITS = TickLimits()
OF_EACH_OSD = ("osd_map", "osd_metadata", "pg_summary", "pg_stats", "pg_progress", "get_daemon_health_metrics")


def run(osds: int, pgs: int, ticks: int) -> Tuple[SyntheticMgr, Sampler, List[int]]:
    mgr = SyntheticMgr(osds, pgs)
    sampler, counters = plugin_on(mgr), []
    for tick in range(ticks):
        mgr.counter_calls = 0
        story(mgr, sampler, tick, ticks)
        sampler.tick()
        counters.append(mgr.counter_calls)
    return mgr, sampler, counters


def test_every_osd_of_a_small_cluster_is_read_every_tick() -> None:
    _, sampler, counters = run(500, 1000, 8)
    assert set(counters) == {500 * COUNTERS}
    sample = sampler.latest()
    assert sample is not None
    assert not [note for note in sample.notes if "turns" in note]


@pytest.mark.parametrize("osds", [1500, 6000])
def test_a_tick_on_a_large_cluster_asks_for_as_much_as_on_a_middling_one(osds: int) -> None:
    mgr, _, counters = run(osds, 50 * osds, 60)
    budget = LIMITS.osds_per_tick * (TURN_SHARE + GROUP_SHARE) + LIMITS.histogram_osds
    assert max(counters) <= budget * COUNTERS
    assert not [name for name in OF_EACH_OSD if name in mgr.asked]
    # one list when it started, and no more than one for each new map
    assert mgr.asked["osd info"] <= 1 + mgr.epoch - 1000
    assert mgr.asked["perf dump"] == 60 * LIMITS.histogram_osds


def test_rates_of_a_large_cluster_are_the_sum_over_all_of_its_osds() -> None:
    mgr, sampler, _ = run(1500, 3000, 30)
    sample = sampler.latest()
    assert sample is not None
    away = sum(1 + osd % 7 / 10 for osd in mgr.away)
    writes = sum(1 + osd % 7 / 10 for osd in range(1500)) - away
    assert sample.values["client.write_iops"] == pytest.approx(writes * (PLAIN["op_w"] + PLAIN["op_rw"]), rel=0.01)
    assert sample.values["client.mean_ms"] == pytest.approx(1000 * 0.81 / 101, rel=0.01)
    assert sample.values["osds.down"] == len(mgr.away)
    assert sample.pg_states["active+clean"] == 2970
    assert any("turns" in note for note in sample.notes)


def test_groups_of_a_large_cluster_are_seen_every_tick() -> None:
    mean = sum(1 + osd % 7 / 10 for osd in range(20)) / 20
    mgr, sampler, _ = run(1500, 3000, 24)
    sampler.groups.watch({"tried": range(20), "control": range(40, 60)})
    for _ in range(6):
        mgr.prepare(5.0)
        sampler.tick()
    for name in ("tried", "control"):
        found = sampler.groups.window_of_group(name, mgr.now - 20.0, mgr.now)
        assert found is not None
        assert (found.window.seconds, found.with_rates, found.with_histograms) == (20.0, 20.0, 8.0)
        assert not found.partial
    tried = sampler.groups.window_of_group("tried", mgr.now - 20.0, mgr.now)
    assert tried is not None
    assert tried.means["client.write_iops"] == pytest.approx(61 * mean, rel=0.02)


def test_an_osd_that_goes_down_is_noticed_in_the_next_tick() -> None:
    mgr, sampler, _ = run(1500, 3000, 12)
    mgr.set_away(3, True)
    mgr.prepare(5.0)
    sampler.tick()
    sample = sampler.latest()
    assert sample is not None
    assert sample.values["osds.down"] == 1.0


def test_misses_are_named() -> None:
    line = {
        "OSDs": 100,
        "scopes with objectives": 0,
        "held p50 (ms)": 1.0,
        "held max (ms)": 51.0,
        "windows after it, max (ms)": 1.0,
        "look at scopes max (ms)": 0.0,
        "RSS growth (MB)": 1.0,
    }
    assert mgr_scale.misses([line]) == ["100 OSDs: held max (ms) is 51.0, more than 50"]
    larger = {**line, "OSDs": 1000, "held p50 (ms)": 11.0, "held max (ms)": 49.0, "RSS growth (MB)": 9.0}
    assert mgr_scale.misses([line, larger])[1:] == ["held p50 (ms) grows more than linearly from 100 OSDs to 1000 OSDs"]
    scoped = {**larger, "scopes with objectives": 5, "look at scopes max (ms)": 60.0}
    assert mgr_scale.misses([line, scoped])[1:] == [
        "1000 OSDs with 5 scopes: look at scopes max (ms) is 60.0, more than 50"
    ]


def test_what_belongs_to_scopes_is_decided_once_while_nothing_changes() -> None:
    mgr = SyntheticMgr(1500, 3000)
    sampler, scopes = plugin_on(mgr), scopes_on(mgr)
    scopes.look(SCOPED)
    sampler.scopes = scopes.members
    layout, members = scopes.layout, scopes.members
    for _ in range(14):
        mgr.prepare(5.0)
        sampler.tick()
        scopes.look(SCOPED)
    assert mgr.asked["osd crush dump"] == 2
    assert scopes.layout is layout
    assert scopes.members is members
    sample = sampler.latest()
    assert sample is not None
    of_classes = [sample.values[f"client.write_iops{{class={name}}}"] for name in CLASSES]
    assert sum(of_classes) == pytest.approx(sample.values["client.write_iops"], rel=0.01)
    # 200 reads in 1 s and 300 writes in 3 s, by the made-up query
    assert sample.values["client.mean_ms{pool=pool1}"] == pytest.approx(8.0)


def test_a_layout_that_changed_is_read_again() -> None:
    mgr = SyntheticMgr(40, 100)
    scopes = scopes_on(mgr)
    scopes.look(SCOPED)
    before = scopes.layout
    mgr.set_class(0, "nvme")
    mgr.prepare(61.0)
    scopes.look(SCOPED)
    assert scopes.layout != before
    assert 0 in scopes.members[Scope(CLASS, "nvme")].osds
