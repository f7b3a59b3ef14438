from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, FrozenSet, List, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.bounded import MISREAD
from ceph_tuner.core.measure.counters import DaemonReport
from ceph_tuner.core.measure.osd_documents import (
    latency_axis,
    osd_latency,
    osd_latency_in,
    osd_queues,
    osd_queues_in,
    osd_values,
    osds_down,
    slow_ops,
)
from ceph_tuner.core.measure.osd_selection import share_out, spread
from ceph_tuner.core.measure.pg_documents import (
    coded_recovered,
    data_chunks,
    deep_scrub_intervals,
    late_pgs,
    pg_details,
    pool_intervals,
    raw_bytes,
)
from ceph_tuner.core.measure.reading import Reading, Turn

RECORDED = Path(__file__).parent / "data" / "plugin"


def osd_of(release: str) -> Dict[str, Any]:
    look = json.loads((RECORDED / f"{release}-readings.json").read_text())[1]
    found: Dict[str, Any] = look["osds"]["0"]
    return found


def test_tentacle_counts_scrub_and_reef_does_not() -> None:
    counts = {release: osd_values(osd_of(release)["perf"]["osd"]) for release in ("tentacle", "reef")}
    assert "scrub_replicated_stats_cnt" in counts["tentacle"]
    assert not [name for name in counts["reef"] if name.startswith("scrub")]
    assert {"op_w", "op_w_latency.sum", "op_w_latency.count", "recovery_bytes"} <= set(counts["reef"])


@pytest.mark.parametrize("release", ["tentacle", "reef"])
def test_latency_buckets_are_nanoseconds_though_ceph_labels_them_usec(release: str) -> None:
    found = osd_latency(osd_of(release)["histogram"])["write"]
    assert found.upper_ms[0] == pytest.approx(0.1)
    assert found.upper_ms[1] == pytest.approx(0.2)
    assert len(found.counts) == 31
    mean_ms = osd_values(osd_of(release)["perf"]["osd"])
    mean = 1000 * mean_ms["op_w_latency.sum"] / mean_ms["op_w_latency.count"]
    median = found.quantile(0.5)
    assert median is not None
    assert 0.2 < mean / median < 20


def test_queue_lengths_are_added_up_over_shards() -> None:
    shard = {"mclock_client_queue_len": 2, "mclock_recovery_queue_len": 1, "mclock_best_effort_queue_len": 0}
    found = osd_queues({"mclock-shard-queue-0": shard, "mclock-shard-queue-1": shard, "osd": {}})
    assert found == {"queue.client": 4.0, "queue.background_recovery": 2.0, "queue.background_best_effort": 0.0}
    assert osd_queues({"osd": {}}) == {}


def test_the_two_axes_of_a_histogram_are_summed_over_the_second() -> None:
    ranges = [{"max": -1}, {"min": 0, "max": 99999}, {"min": 100000, "max": 199999}, {"min": 200000}]
    document = {"axes": [{"ranges": ranges}], "values": [[0, 1], [2, 3], [4, 5], [0, 7]]}
    found = latency_axis(document)
    assert found.upper_ms == (0.1, 0.2)
    assert found.counts == (6, 9, 7)


def test_a_pg_is_late_when_its_last_deep_scrub_is_longer_ago_than_the_interval() -> None:
    now, day = 1_795_241_826.0, 86400.0
    stamps = {"1.0": "2026-11-21T06:12:34.529551+0000", "1.1": "2026-11-01T06:12:34.529551+0000"}
    assert late_pgs(stamps, now, 7 * day, {}) == ["1.1"]
    assert late_pgs(stamps, now, 30 * day, {}) == []
    assert late_pgs(stamps, now + 40 * day, 7 * day, {}) == ["1.0", "1.1"]


def test_a_pg_whose_stamp_is_of_a_clock_that_was_ahead_is_late() -> None:
    now, day = 1_795_241_826.0, 86400.0
    # clocks of hosts that serve a cluster differ by an hour at most: cephx refuses more
    stamps = {"1.0": "2036-11-21T06:12:34.529551+0000", "1.1": "2026-11-21T07:12:34.529551+0000"}
    assert late_pgs(stamps, now, 7 * day, {}) == ["1.0"]
    assert late_pgs(stamps, now, 1e300, {}) == ["1.0"]
    assert late_pgs(stamps, now + 3655 * day, 7 * day, {}) == ["1.1"]


def test_a_pool_s_own_deep_scrub_interval_wins_over_that_of_the_osds() -> None:
    now, day = 1_795_241_826.0, 86400.0
    stamps = dict.fromkeys(("1.0", "2.0"), "2026-11-01T06:12:34.529551+0000")
    pools = [{"pool": 1, "options": {"deep_scrub_interval": 3 * day}}, {"pool": 2, "options": {}}, {"pool": 3}]
    own = deep_scrub_intervals({"pools": pools})
    assert own == {1: 3 * day}
    assert pool_intervals({"pools": pools}, "scrub_max_interval") == {}
    assert pool_intervals({"pools": [{"pool": 4, "options": {"scrub_max_interval": 2}}]}, "scrub_max_interval") == {
        4: 2
    }
    assert late_pgs(stamps, now, 60 * day, own) == ["1.0"]
    assert late_pgs(stamps, now, day, {1: 60 * day}) == ["2.0"]


@pytest.mark.parametrize("every", [1e11, 1e17, 1e300, float("inf"), float("nan")])
def test_an_interval_longer_than_the_calendar_makes_nothing_late(every: float) -> None:
    stamps = {"1.0": "2026-11-01T06:12:34.529551+0000", "2.0": "1999-11-01T06:12:34.529551+0000"}
    assert late_pgs(stamps, 1_795_241_826.0, every, {}) == []
    assert late_pgs(stamps, 1_795_241_826.0, 86400.0, {2: every}) == ["1.0"]


def test_what_was_recovered_of_erasure_coded_pools_is_counted_by_their_pgs() -> None:
    sums = [(1, {"num_bytes_recovered": 5}), (2, {"num_bytes_recovered": 7}), (3, {}), (2, {"num_bytes_recovered": 1})]
    assert coded_recovered(sums, {2: 4, 1: 1}) == 8.0


def test_the_shards_of_an_erasure_code_have_a_kth_of_an_object_each() -> None:
    profiles = {"default": {"k": "2", "m": "2"}, "wide": {"k": "4", "m": "2", "plugin": "isa"}}
    pools = [
        {"pool": 1, "type": 1, "erasure_code_profile": ""},
        {"pool": 2, "type": 3, "erasure_code_profile": "wide"},
    ]
    chunks = data_chunks({"pools": pools, "erasure_code_profiles": profiles})
    assert chunks == {2: 4}
    total = {"num_objects": 10, "num_bytes": 8000}
    rest = {"state": "active+clean", "last_scrub_stamp": "", "last_deep_scrub_stamp": ""}
    rows = [
        {"pgid": f"{pool}.a", "stat_sum": total, "acting": list(range(size)), **rest} for pool, size in ((1, 3), (2, 6))
    ]
    assert [pg.raw_bytes for pg in pg_details(rows, chunks).values()] == [24000.0, 12000.0]
    stats = [{"poolid": pool, "stat_sum": {**total, "num_object_copies": 10 * size}} for pool, size in ((1, 3), (2, 6))]
    empty = {"poolid": 3, "stat_sum": {"num_objects": 0, "num_object_copies": 0, "num_bytes": 0}}
    assert raw_bytes([*stats, empty], chunks) == 36000.0


def test_slow_operations_are_read_out_of_the_health_message() -> None:
    message = "12 slow ops, oldest one blocked for 34 sec, osd.1 has slow ops"
    assert slow_ops({"checks": {"SLOW_OPS": {"summary": {"message": message}}}}) == 12.0
    assert slow_ops({"checks": {}}) == 0.0


@given(st.lists(st.integers(0, 10_000), unique=True, max_size=80), st.integers(0, 20))
def test_the_chosen_osds_are_bounded_steady_and_spread(osds: List[int], limit: int) -> None:
    chosen = spread(osds, limit)
    assert len(chosen) == min(limit, len(osds))
    assert len(set(chosen)) == len(chosen)
    assert set(chosen) <= set(osds)
    assert chosen == spread(list(reversed(osds)), limit)


@pytest.mark.parametrize("release", ["tentacle", "reef"])
@pytest.mark.parametrize("indent", [None, 4])
def test_queues_and_latencies_are_found_in_the_text_without_decoding_all_of_it(
    release: str, indent: Optional[int]
) -> None:
    dump = osd_of(release)["perf"]
    assert osd_queues_in(json.dumps(dump, indent=indent)) == osd_queues(dump) != {}
    assert osd_queues_in("") == {}
    histograms = osd_of(release)["histogram"]
    assert osd_latency_in(json.dumps(histograms, indent=indent)) == osd_latency(histograms) != {}
    with pytest.raises(ValueError, match="Expecting"):
        osd_queues_in('{"mclock-shard-queue-0": oops')


@pytest.mark.parametrize(
    "count", ["NaN", "Infinity", "-Infinity", "1e999", "1.5", "-1", "1e400", "9" * 40, "null", "[" * 5000]
)
def test_a_count_that_no_osd_counts_is_refused(count: str) -> None:
    axes = [{"ranges": [{"max": -1}, {"min": 0, "max": 99999}, {"min": 100000}]}]
    document = json.dumps({"osd": {"op_w_latency_in_bytes_histogram": {"axes": axes, "values": [[0], [0], [77]]}}})
    assert osd_latency_in(document)["write"].total == 77
    with pytest.raises(MISREAD):
        osd_latency_in(document.replace("77", count))


@pytest.mark.parametrize("edge", ["NaN", "1e999", "-1", "1" + "0" * 400])
def test_an_edge_that_no_histogram_has_is_refused(edge: str) -> None:
    axes = [{"ranges": [{"max": -1}, {"min": 0, "max": 99999}, {"min": 100000}]}]
    document = json.dumps({"osd": {"op_w_latency_in_bytes_histogram": {"axes": axes, "values": [[0], [0], [77]]}}})
    with pytest.raises(MISREAD):
        osd_latency_in(document.replace("99999", edge))


@pytest.mark.parametrize("length", [-1, 2**64 - 3, 1e300])
def test_a_queue_that_counted_below_zero_is_empty(length: float) -> None:
    shards = {f"mclock-shard-queue-{at}": {"mclock_client_queue_len": each} for at, each in enumerate((length, 4))}
    assert osd_queues_in(json.dumps(shards))["queue.client"] == 4.0
    with pytest.raises(MISREAD):
        osd_queues_in(json.dumps(shards).replace("4", "NaN"))


def test_osds_that_are_in_and_down_are_counted_by_the_health_check() -> None:
    summary = {"message": "3 osds down", "count": 3}
    assert osds_down({"checks": {"OSD_DOWN": {"severity": "HEALTH_WARN", "summary": summary}}}) == 3.0
    assert osds_down({"status": "HEALTH_OK", "checks": {}}) == 0.0


@given(st.lists(st.frozensets(st.integers(0, 40)), max_size=4), st.integers(0, 50))
def test_groups_share_a_limit_evenly_and_what_a_small_one_leaves_goes_to_the_others(
    groups: List[FrozenSet[int]], limit: int
) -> None:
    apart = [frozenset(100 * place + osd for osd in group) for place, group in enumerate(groups)]
    chosen = share_out(apart, limit)
    assert len(chosen) == len(set(chosen)) == min(limit, sum(map(len, apart)))
    taken = [len(group & set(chosen)) for group in apart]
    for group, count in zip(apart, taken):
        # a group that did not get all of its own has no less than any other, but for the remainder
        assert count == len(group) or count >= max(taken) - 1


def test_osds_of_two_groups_are_taken_once() -> None:
    assert sorted(share_out([range(2), range(8)], 6)) == [0, 1, 2, 3, 5, 6]


def test_a_part_of_a_reading_is_of_its_osds_and_without_the_whole_cluster() -> None:
    whole = Reading(
        5.0,
        osds={osd: DaemonReport(5.0, {}) for osd in range(4)},
        queues={osd: {} for osd in range(4)},
        totals={"num_objects": 1.0},
        slow_ops=1.0,
        notes=("a note",),
    )
    part = whole.only([2, 1, 9])
    assert list(part.osds) == list(part.queues) == [1, 2]
    assert (part.at, part.totals, part.slow_ops, part.notes) == (5.0, {}, None, ())


def test_in_turns_a_part_of_a_reading_leaves_out_whoever_is_there_for_his_turn() -> None:
    turn = Turn(1, 3, 15.0, frozenset({0, 5}))
    whole = Reading(5.0, osds={osd: DaemonReport(5.0, {}) for osd in (0, 1, 4, 5)}, turn=turn)
    assert list(whole.only([0, 1, 4]).osds) == [0]
