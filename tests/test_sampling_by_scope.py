from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, Mapping, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.measure.counters import DaemonReport
from ceph_tuner.core.measure.histogram import Histogram
from ceph_tuner.core.measure.metrics import CLASS, POOL, Scope, parted, scoped
from ceph_tuner.core.measure.reading import PoolReading, Reading, ServedOperations
from ceph_tuner.core.measure.sample import WRITE, Sample, Window, at_work, window_of
from ceph_tuner.core.measure.sampling_by_scope import SamplingByScope
from ceph_tuner.core.measure.scopes import Members

HDD, NVME, VOLUMES, COLD = Scope(CLASS, "hdd"), Scope(CLASS, "nvme"), Scope(POOL, "volumes"), Scope(POOL, "cold")
MEMBERS = {
    HDD: Members(frozenset({0, 1}), frozenset({1})),
    NVME: Members(frozenset({2, 3}), frozenset({2, 3})),
    COLD: Members(frozenset({0, 1}), frozenset({1})),
    VOLUMES: Members(frozenset({2, 3}), frozenset({2})),
}
EDGES = tuple(0.1 * 2.0**power for power in range(30))


def histogram(latencies: Mapping[float, int]) -> Histogram:
    """Counts by latency in ms."""
    counts = [0] * (len(EDGES) + 1)
    for latency, count in latencies.items():
        counts[next((place for place, edge in enumerate(EDGES) if latency <= edge), len(EDGES))] += count
    return Histogram(EDGES, tuple(counts))


def reading(at: float, **changes: Any) -> Reading:
    """Disks that do 20 writes a second each at 40 ms, and flash that does 200 at 1 ms; the disks recover."""
    reports, latency = {}, {}
    for osd, (rate, ms) in enumerate([(20, 40.0), (20, 40.0), (200, 1.0), (200, 1.0)]):
        done = rate * at
        values = {"op_r": 0.0, "op_w": done, "op_rw": 0.0, "op_r_out_bytes": 0.0, "op_rw_out_bytes": 0.0}
        values.update({"op_w_in_bytes": done * 4096, "op_rw_in_bytes": 0.0, "recovery_bytes": (osd < 2) * 5e6 * at})
        values.update({"op_w_latency.sum": done * ms / 1000, "op_w_latency.count": done, "recovery_ops": 0.0})
        reports[osd] = DaemonReport(at, values, 1)
        latency[osd] = {WRITE: histogram({ms: int(done)})}
    given: Dict[str, Any] = {
        "at": at,
        "osds": reports,
        "latency": latency,
        "totals": {"num_objects_degraded": 1000.0, "num_objects_misplaced": 0.0, "num_object_clones": 0.0},
        "pools": {1: pool(at, 40, degraded=1000.0 - at), 2: pool(at, 300), 3: pool(at, 100)},
        "pg_states": {"active+clean": 30, "peering": 2},
        "slow_of": {0: 3.0},
        "slow_ops": 3.0,
        "down": frozenset({1}),
        "osds_down": 1.0,
        "raw_bytes": 6e9,
    }
    return Reading(**{**given, **changes})


def pool(at: float, rate: float, degraded: float = 0.0, served: Optional[ServedOperations] = None) -> PoolReading:
    sums = {"num_objects_degraded": degraded, "num_objects_misplaced": 0.0, "num_object_clones": 0.0}
    sums.update({"num_read": 0.0, "num_write": rate * at, "num_read_kb": 0.0, "num_write_kb": 4 * rate * at})
    sums.update({"num_objects": 500.0, "num_object_copies": 1000.0, "num_bytes_recovered": 0.0, "num_bytes": 1e9})
    states = {"active+clean": 10} if rate > 40 else {"active+clean": 8, "peering": 2}
    served = served or ServedOperations(0, 0.0, int(rate * at), rate * at * 0.002)
    return PoolReading(sums, 2e9, states=states, snaptrim_queue=0.0, pgs_late=0.0, served=served)


def samples(readings: List[Reading], members: Mapping[Scope, Members] = MEMBERS) -> List[Sample]:
    sampling = SamplingByScope()
    found = [sampling.take(each, members) for each in readings]
    return [sample for sample in found if sample is not None]


def values(**changes: Any) -> Mapping[str, float]:
    return samples([reading(at, **changes) for at in (100.0, 105.0, 110.0)])[-1].values


def test_each_class_shows_what_its_own_osds_and_pools_do() -> None:
    seen = values()
    assert seen["client.iops"] == pytest.approx(440)
    assert seen[scoped("client.iops", HDD)] == pytest.approx(40)
    assert seen[scoped("client.iops", NVME)] == pytest.approx(400)
    assert seen[scoped("client.mean_ms", HDD)] == pytest.approx(40)
    assert seen[scoped("client.p95_ms", HDD)] > 25 > 2 > seen[scoped("client.p95_ms", NVME)]
    assert seen[scoped("recovery.bytes_s", HDD)] == pytest.approx(1e7)
    assert seen[scoped("recovery.bytes_s", NVME)] == 0
    assert seen[scoped("recovery.objects_left", HDD)] == 890
    assert seen[scoped("recovery.copies_s", HDD)] == pytest.approx(1)
    assert seen[scoped("recovery.objects_left", NVME)] == 0


def test_trouble_is_that_of_the_class_and_of_the_whole_only_where_it_is_not_known_by_class() -> None:
    seen = values()
    for name, hdd in (("pgs.inactive", 2.0), ("ops.slow", 3.0), ("osds.down", 1.0)):
        assert (seen[name], seen[scoped(name, HDD)], seen[scoped(name, NVME)]) == (hdd, hdd, 0.0)
    apart = {number: PoolReading(each.sums, each.raw_bytes) for number, each in reading(1.0).pools.items()}
    seen = values(slow_of=None, down=None, pools=apart)
    for name in ("pgs.inactive", "ops.slow", "osds.down"):
        assert seen[scoped(name, NVME)] == seen[name] > 0


def test_classes_add_up_to_the_whole() -> None:
    seen = values()
    for name in ("client.iops", "client.write_iops", "client.bytes_s", "recovery.bytes_s"):
        assert seen[scoped(name, HDD)] + seen[scoped(name, NVME)] == pytest.approx(seen[name])


def test_a_pool_shows_its_own_rates_and_no_queue_of_its_osds() -> None:
    seen = values()
    assert seen[scoped("client.iops", VOLUMES)] == pytest.approx(300)
    assert seen[scoped("client.write_bytes_s", VOLUMES)] == pytest.approx(300 * 4096)
    assert seen[scoped("client.mean_ms", VOLUMES)] == pytest.approx(2.0)
    assert seen[scoped("recovery.objects_left", COLD)] == 890
    kinds = {parted(name)[0].split(".")[0] for name in seen if parted(name)[1] == VOLUMES}
    assert not kinds & {"queue", "ops", "osds"}


def test_without_the_osds_answer_by_pool_there_is_no_latency_of_it() -> None:
    apart = {number: PoolReading(each.sums, each.raw_bytes) for number, each in reading(1.0).pools.items()}
    seen = values(pools=apart)
    assert not [name for name in seen if parted(name)[1] == VOLUMES and name.partition("{")[0].endswith("_ms")]


def test_a_pool_that_has_its_osds_for_itself_has_their_percentiles() -> None:
    seen = values()
    for name in ("client.p50_ms", "client.p95_ms", "client.p99_ms"):
        assert seen[scoped(name, COLD)] == pytest.approx(seen[scoped(name, HDD)], rel=0.05)


latencies = st.dictionaries(st.sampled_from([0.3, 0.9, 3.0, 10.0, 90.0, 700.0]), st.integers(1, 400), min_size=1)


@given(latencies, latencies)
def test_no_pool_has_a_higher_percentile_than_what_is_said_of_it(
    own: Mapping[float, int], others: Mapping[float, int]
) -> None:
    mine, theirs = histogram(own), histogram(others)
    together = Histogram(EDGES, tuple(map(sum, zip(mine.counts, theirs.counts))))
    bound = together.slowest(mine.total / together.total)
    assert bound.total == mine.total
    for fraction in (0.1, 0.5, 0.95, 0.99):
        said, true = bound.bracket(fraction), mine.bracket(fraction)
        assert said is not None
        assert true is not None
        assert said[1] >= true[1]


def test_of_nothing_the_slowest_is_nothing() -> None:
    assert histogram({1.0: 5}).slowest(0.0).total == 0
    assert histogram({1.0: 5}).slowest(2.0).total == 5
    assert histogram({}).slowest(0.5).total == 0


def whole_window() -> Window:
    window = window_of(samples([reading(100.0 + 5 * number) for number in range(8)]))
    assert window is not None
    return window


def test_a_window_pools_percentiles_and_reckons_times_by_scope() -> None:
    found = whole_window().means
    assert found[scoped("client.p95_ms", NVME)] < 2 < 25 < found[scoped("client.p95_ms", HDD)]
    left, rate = found[scoped("recovery.objects_left", HDD)], found[scoped("recovery.copies_s", HDD)]
    assert found[scoped("recovery.finish_s", HDD)] == pytest.approx((left - 15) / rate, rel=0.03)
    assert found[scoped("recovery.finish_s", NVME)] == 0


def test_a_class_can_be_seen_as_a_cluster_of_its_own() -> None:
    window = whole_window()
    own = window.of(NVME, ["volumes"]).means
    assert own["client.iops"] == pytest.approx(400)
    assert own[scoped("client.iops", VOLUMES)] == pytest.approx(300)
    assert {scope for _, scope in map(parted, own)} == {None, VOLUMES}
    assert Window.from_dict(window.to_dict()).of(HDD).means == window.of(HDD).means


def test_work_that_is_not_there_is_left_out_by_scope() -> None:
    there = at_work(whole_window().means)
    assert scoped("recovery.bytes_s", HDD) in there
    assert scoped("recovery.bytes_s", NVME) not in there


def test_a_scope_that_comes_later_begins_when_it_comes() -> None:
    sampling = SamplingByScope()
    sampling.take(reading(100.0))
    assert not [name for name in _values(sampling.take(reading(105.0), MEMBERS)) if parted(name)[1]]
    assert [name for name in _values(sampling.take(reading(110.0), MEMBERS)) if parted(name)[1]]
    assert not [name for name in _values(sampling.take(reading(115.0))) if parted(name)[1]]


def test_scrubs_under_way_are_known_by_class() -> None:
    sampling = SamplingByScope()
    assert sampling.scrubs_since() is None
    sampling.take(reading(100.0), MEMBERS)
    assert sampling.scrubs_since(HDD) is None
    assert sampling.scrubs_since(VOLUMES) is None


def _values(sample: Optional[Sample]) -> Mapping[str, float]:
    assert sample is not None
    return sample.values


@given(st.lists(st.frozensets(st.integers(0, 3)), min_size=2, max_size=6))
def test_who_runs_of_a_scope_is_found_again_only_where_it_changed(lists: List[FrozenSet[int]]) -> None:
    sampling = SamplingByScope()
    before: Dict[Scope, FrozenSet[int]] = {}
    for at, up in enumerate(lists):
        found = reading(10.0 + at, up=set(up))
        sampling.take(found, MEMBERS)
        now = {scope: sampling._osds_up(found, members) for scope, members in MEMBERS.items()}
        assert now == {scope: members.osds & up for scope, members in MEMBERS.items()}
        assert all(running is before[scope] for scope, running in now.items() if before.get(scope) == running)
        before = now
    sampling.take(reading(30.0, up={0}), {HDD: MEMBERS[HDD]})
    assert set(sampling._up_in) == {MEMBERS[HDD].osds}
