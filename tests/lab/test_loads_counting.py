from __future__ import annotations

from typing import Any, Dict, List

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_lab.loads.latency import Latencies, Snapshot, interval_between, snapshot_of
from ceph_lab.loads.snaptrim import lacks
from ceph_lab.loads.trace import Trace, batches

BINS = st.dictionaries(st.integers(1, 10**9), st.integers(1, 1000), max_size=20)


def latencies(bins: Dict[int, int]) -> Latencies:
    count = sum(bins.values())
    return Latencies(count, sum(latency * number for latency, number in bins.items()) / 1e6, bins)


@given(BINS, BINS)
def test_what_was_added_after_a_print_is_what_was_added(before: Dict[int, int], added: Dict[int, int]) -> None:
    both = latencies(before).plus(latencies(added)).since(latencies(before))
    assert dict(both.bins) == added
    assert both.count == sum(added.values())


@given(BINS.filter(bool), st.floats(0.01, 1.0), st.floats(0.01, 1.0))
def test_quantiles_are_ordered_and_within_what_was_seen(bins: Dict[int, int], one: float, other: float) -> None:
    low, high = sorted((one, other))
    first, second = latencies(bins).quantile_ms(low), latencies(bins).quantile_ms(high)
    assert first is not None
    assert second is not None
    assert min(bins) / 1e6 <= first <= second <= max(bins) / 1e6


@given(BINS.filter(bool))
def test_steps_lose_no_operation_and_no_more_than_their_width(bins: Dict[int, int]) -> None:
    fine = latencies(bins)
    steps = fine.stepped()
    assert (steps.count, steps.sum_ms) == (fine.count, fine.sum_ms)
    assert sum(steps.bins.values()) == fine.count
    for fraction in (0.5, 0.95, 1.0):
        exact, coarse = fine.quantile_ms(fraction), steps.quantile_ms(fraction)
        assert exact is not None
        assert coarse == pytest.approx(exact, rel=1 / 64)


def test_the_95th_percentile_is_not_exceeded_by_95_of_100() -> None:
    assert latencies({1_000_000: 94, 2_000_000: 1, 9_000_000: 5}).quantile_ms(0.95) == 2.0
    assert latencies({}).quantile_ms(0.95) is None


def test_a_print_of_fio_is_read() -> None:
    job: Dict[str, Any] = {
        "read": {"lat_ns": {"N": 0, "mean": 0.0}},
        "write": {"lat_ns": {"N": 3, "mean": 2e6, "bins": {"1000000": 2, "4000000": 1}}},
    }
    found = snapshot_of({"timestamp_ms": 1500, "jobs": [job]})
    assert (found.at, found.write.count, found.write.sum_ms) == (1.5, 3, 6.0)
    assert found.read.count == 0


def prints(until: int) -> List[Snapshot]:
    """100 operations a second: of 1 ms until second 10, of 5 ms from then on."""
    return [
        Snapshot(float(at), Latencies(), latencies({1_000_000: 100 * min(at, 10), 5_000_000: 100 * max(0, at - 10)}))
        for at in range(until + 1)
    ]


def test_a_window_holds_its_own_operations_only() -> None:
    interval = interval_between(prints(20), 10.2, 19.9)
    assert interval is not None
    found = interval.metrics(4096)
    assert found["client.p50_ms"] == found["client.mean_ms"] == 5.0
    assert found["client.iops"] == 100
    assert found["client.write_bytes_s"] == 409600


def test_without_a_print_near_its_borders_a_window_is_not_measured() -> None:
    assert interval_between(prints(12), 5, 20) is None
    assert interval_between([], 5, 20) is None


@given(st.lists(st.integers(0, 100), min_size=3, max_size=30))
def test_the_rate_of_the_whole_is_the_growth_over_the_time(steps: List[int]) -> None:
    trace, total = Trace(), 1000
    trace.add(0.0, {"objects": total})
    for second, step in enumerate(steps, 1):
        total += step
        trace.add(float(second), {"objects": total})
    measure = trace.rate("objects", 0.0, float(len(steps)))
    assert measure is not None
    assert measure.mean == pytest.approx(sum(steps) / len(steps))
    assert trace.total("objects") == sum(steps)


def test_a_counter_that_starts_again_neither_falls_nor_jumps() -> None:
    trace = Trace()
    for second, value in enumerate([500.0, 510.0, 0.0, 10.0]):
        trace.add(float(second), {"objects": value})
    assert trace.total("objects") == 20


def test_readings_that_cover_too_little_give_no_rate() -> None:
    trace = Trace()
    trace.add(0.0, {"objects": 0.0})
    trace.add(1.0, {"objects": 5.0})
    assert trace.rate("objects", 0.0, 20.0) is None


def test_a_window_is_cut_into_equal_stretches() -> None:
    assert batches(0, 25) == [0, 5, 10, 15, 20, 25]
    assert batches(0, 3) == [0, 3]


@given(
    st.lists(st.sampled_from("abcd"), min_size=4, max_size=40),
    st.dictionaries(st.sampled_from("abcd"), st.integers(0, 60)),
    st.integers(1, 200),
)
def test_every_pg_gets_its_share_of_the_clones_and_no_object_twice_in_a_snapshot(
    pgids: List[str], there: Dict[str, int], clones: int
) -> None:
    pgid_of = {f"object.{number}": pgid for number, pgid in enumerate(pgids)}
    made = lacks(pgid_of, there, clones)
    for batch in made:
        assert batch
        assert sorted(set(batch), key=list(pgid_of).index) == batch
    for pgid in set(pgids):
        share = round(clones * pgids.count(pgid) / len(pgids))
        added = sum(pgid_of[name] == pgid for batch in made for name in batch)
        assert added == (max(0, share - there[pgid]) if pgid in there else 0)
