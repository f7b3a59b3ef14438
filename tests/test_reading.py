from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.reading import PgDetail, late_pgs, latency_axis, osd_latency, osd_queues, osd_values, slow_ops, spread

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
    pgs = {pgid: PgDetail(0, 0, 1, 1, 2, "active+clean", deep_scrubbed=stamp) for pgid, stamp in stamps.items()}
    assert late_pgs(pgs, now, 7 * day) == 1
    assert late_pgs(pgs, now, 30 * day) == 0
    assert late_pgs(pgs, now + 40 * day, 7 * day) == 2


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
