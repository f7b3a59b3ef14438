from __future__ import annotations

from typing import Any, List, Mapping, Sequence, Tuple

import mgr_stand_in
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.measure.counters import DaemonReport
from ceph_tuner.core.measure.histogram import Histogram
from ceph_tuner.core.measure.history import History
from ceph_tuner.core.measure.reading import Reading, Turn
from ceph_tuner.core.measure.sample import WRITE
from monitors import MemoryStore
from tuner.sampler import Sampler
from tuner.sampler_groups import GroupSampler

assert mgr_stand_in.REGISTRY is not None

TRIED, CONTROL = (0, 1, 2), (3, 4, 5)
WHOLE_CLUSTER = ("backfill.", "snaptrim.", "pgs.", "ops.", "osds.", "recovery.objects_left", "recovery.finish_s")


def report(at: float, rate: float, born: int = 1) -> DaemonReport:
    done = rate * at
    values = {"op_w": done, "op_w_in_bytes": 4096 * done, "recovery_ops": done / 10}
    return DaemonReport(at, {**values, "op_w_latency.sum": done * 0.02, "op_w_latency.count": done}, born)


def reading(at: float, rates: Mapping[int, float], histograms: Sequence[int] = range(6), **fields: Any) -> Reading:
    """OSDs that write `rates` per second; half of the writes take up to 1 ms, half up to 2 ms."""
    return Reading(
        at,
        osds={osd: report(at, rate) for osd, rate in rates.items()},
        latency={
            osd: {WRITE: Histogram((1.0, 2.0), (int(rates[osd] * at), int(rates[osd] * at), 0))}
            for osd in histograms
            if osd in rates
        },
        queues={osd: {"queue.client": float(osd)} for osd in rates},
        totals={"num_objects_degraded": 9.0, "num_objects_misplaced": 9.0, "num_object_clones": 9.0},
        pg_states={"active+clean": 12},
        slow_ops=1.0,
        osds_down=1.0,
        **fields,
    )


def watched(**groups: Sequence[int]) -> GroupSampler:
    sampler = GroupSampler()
    sampler.watch(groups or {"tried": TRIED, "control": CONTROL})
    return sampler


def test_each_group_has_its_own_rates_per_osd_and_latencies_over_the_same_window() -> None:
    groups = watched()
    rates = {**dict.fromkeys(TRIED, 50.0), **dict.fromkeys(CONTROL, 80.0)}
    for at in (5.0, 10.0, 15.0):
        groups.take(reading(at, rates))
    tried, control = (groups.window_of_group(name, 0.0, 15.0) for name in ("tried", "control"))
    assert tried is not None
    assert control is not None
    assert (tried.means["client.iops"], control.means["client.iops"]) == (50.0, 80.0)
    assert tried.means["client.mean_ms"] == pytest.approx(20.0)
    assert tried.means["client.write_p95_ms"] == pytest.approx(1.9)
    assert tried.means["recovery.objects_s"] == pytest.approx(5.0)
    assert (tried.means["queue.client"], control.means["queue.client"]) == (1.0, 4.0)
    assert (tried.with_rates, tried.with_histograms, tried.notes) == (3.0, 3.0, ())
    assert tried.window.end == control.window.end == 15.0


def test_what_is_known_of_the_whole_cluster_alone_is_in_no_group() -> None:
    groups = watched()
    for at in (5.0, 10.0):
        groups.take(reading(at, dict.fromkeys(range(6), 50.0), snaptrim_queue=3.0, pgs_late=1.0))
    found = groups.samples("tried")[0]
    assert not [name for name in found.values if name.startswith(WHOLE_CLUSTER)]
    assert found.pg_states == {}


def test_an_osd_that_vanishes_is_missing_from_the_mean_and_not_zero_in_it() -> None:
    groups = watched()
    rates = dict.fromkeys(range(6), 50.0)
    for at in (5.0, 10.0):
        groups.take(reading(at, rates))
    del rates[1]
    for at in (15.0, 20.0):
        groups.take(reading(at, rates))
    found = groups.window_of_group("tried", 10.0, 20.0)
    assert found is not None
    assert found.means["client.iops"] == pytest.approx(50.0)
    assert (found.osds, found.with_rates) == (3, 2.0)


@pytest.mark.parametrize(("asked", "partial"), [((0, 1), False), ((0,), True)])
def test_a_window_says_when_more_than_a_third_of_the_histograms_are_missing(
    asked: Tuple[int, ...], partial: bool
) -> None:
    groups = watched()
    for at in (5.0, 10.0):
        groups.take(reading(at, dict.fromkeys(range(6), 50.0), histograms=asked))
    found = groups.window_of_group("tried", 0.0, 10.0)
    assert found is not None
    assert found.partial is partial
    assert bool(found.notes) is partial


def test_a_group_that_changes_in_mid_window_shows_nothing_of_its_old_osds() -> None:
    groups = watched()
    rates = {**dict.fromkeys(TRIED, 50.0), **dict.fromkeys(CONTROL, 80.0)}
    for at in (5.0, 10.0):
        groups.take(reading(at, rates))
    groups.watch({"tried": (0, 3), "control": CONTROL})
    assert groups.window_of_group("tried", 0.0, 99.0) is None
    for at in (15.0, 20.0):
        groups.take(reading(at, rates))
    tried, control = (groups.window_of_group(name, 0.0, 99.0) for name in ("tried", "control"))
    assert tried is not None
    assert control is not None
    assert tried.means["client.iops"] == 65.0
    assert tried.window.start == 15.0
    assert control.window.start == 5.0
    groups.watch({})
    assert groups.members() == ()
    assert groups.window_of_group("control", 0.0, 99.0) is None


def test_samples_are_kept_for_a_bounded_time() -> None:
    groups = GroupSampler(kept_s=60.0)
    groups.watch({"tried": TRIED})
    for tick in range(100):
        groups.take(reading(5.0 * tick, dict.fromkeys(TRIED, 50.0)))
    assert len(groups.samples("tried")) == 13


def test_where_osds_are_read_in_turns_a_group_is_those_that_are_read_every_time() -> None:
    groups = watched(tried=range(6))
    for at, part in ((5.0, 0), (10.0, 1), (15.0, 2)):
        turn = Turn(part, 3, 15.0, frozenset({0, 1}))
        seen = {0: 50.0, 1: 50.0, part + 3: 900.0}
        groups.take(reading(at, seen, turn=turn, up=range(6)))
    found = groups.window_of_group("tried", 0.0, 15.0)
    assert found is not None
    assert found.means["client.iops"] == 50.0
    assert (found.osds, found.with_rates) == (6, 2.0)


class Cluster:
    """Gives readings of OSDs that write 50 times a second, whatever the clock says."""

    def __init__(self) -> None:
        self.true = 0.0
        self.step = 0.0
        self.groups: Sequence[Sequence[int]] = ()

    def now(self) -> float:
        return 1e6 + self.true + self.step

    def read(self, now: float, groups: Sequence[Sequence[int]] = (), scopes: object = None) -> Reading:
        self.groups = groups
        found = reading(self.true, dict.fromkeys(range(6), 50.0))
        reports = {osd: DaemonReport(now, seen.values, 1) for osd, seen in found.osds.items()}
        return Reading(now, osds=reports, latency=found.latency)


def sampler_of(cluster: Cluster) -> Sampler:
    store = MemoryStore()
    return Sampler(cluster, lambda: History(store), cluster.now, lambda: cluster.true)


@given(st.lists(st.tuples(st.floats(1.0, 9.0), st.sampled_from([0.0, 0.0, 0.0, -3600.0, -30.0, 30.0, 3600.0]))))
def test_whatever_happens_to_the_clock_every_rate_is_the_true_one(story: List[Tuple[float, float]]) -> None:
    cluster = Cluster()
    sampler = sampler_of(cluster)
    sampler.groups.watch({"tried": TRIED})
    for wait, step in story:
        cluster.true, cluster.step = cluster.true + wait, cluster.step + step
        sampler.tick()
        newest = sampler.latest()
        if newest is not None and newest.at == cluster.now():
            assert newest.values["client.iops"] == pytest.approx(300.0, rel=1e-3)
        window = sampler.groups.window_of_group("tried", 0.0, 1e9)
        if window is not None:
            assert window.means["client.iops"] == pytest.approx(50.0, rel=1e-3)
    assert cluster.groups == ((TRIED,) if story else ())


def test_samples_of_a_clock_that_was_ahead_are_not_in_the_last_minute() -> None:
    cluster = Cluster()
    sampler = sampler_of(cluster)
    cluster.step = 3600.0
    for tick in range(30):
        if tick == 15:
            cluster.step = 0.0
        cluster.true += 5.0
        sampler.tick()
    window = sampler.window(600.0)
    assert window is not None
    assert window.end == cluster.now()
    assert window.seconds == pytest.approx(70.0)
