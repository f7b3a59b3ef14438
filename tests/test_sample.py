from __future__ import annotations

import math
from typing import Any, Dict, List

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.measure.histogram import Histogram
from ceph_tuner.core.measure.history import merged
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.core.measure.sample import (
    LARGEST,
    NEVER_S,
    READ,
    WRITE,
    Measure,
    Sample,
    Window,
    finish_s,
    measured_once,
    percentiles,
    window_of,
    window_within,
)

values = st.dictionaries(st.sampled_from(sorted(METRICS)), st.floats(0, 1e9), max_size=12)


def sample(at: float, seconds: float = 5.0, **rest: Any) -> Sample:
    found: Dict[str, float] = {name.replace("__", "."): value for name, value in rest.pop("values", {}).items()}
    return Sample(at, seconds, found, **rest)


@given(values, st.integers(0, 40))
def test_plain_form_of_a_sample_round_trips(seen: Dict[str, float], states: int) -> None:
    latency = {WRITE: Histogram((1.0, 2.0), (1, 2, 0))}
    found = Sample(100.0, 5.0, seen, latency, {"active+clean": states}, ("a note",))
    assert Sample.from_dict(found.to_dict()) == found


@given(st.lists(values, min_size=1, max_size=8))
def test_plain_form_of_a_window_round_trips(seen: List[Dict[str, float]]) -> None:
    window = window_of([Sample(10.0 * place, 5.0, entry) for place, entry in enumerate(seen, 1)])
    assert window is not None
    assert Window.from_dict(window.to_dict()) == window


@given(st.lists(values, min_size=1, max_size=8))
def test_means_lie_between_what_was_seen(seen: List[Dict[str, float]]) -> None:
    window = window_of([Sample(10.0 * place, 5.0, entry) for place, entry in enumerate(seen, 1)])
    assert window is not None
    for name, measure in window.measures.items():
        if name not in ("recovery.finish_s", "backfill.finish_s", "snaptrim.drain_s", "scrub.interval_s"):
            known = [entry[name] for entry in seen if name in entry]
            assert min(known) <= measure.mean <= max(known)
            assert measure.count == len(known)


def test_a_metric_that_was_not_seen_is_absent() -> None:
    window = window_of([sample(5.0, values={"client.iops": 1.0})])
    assert window is not None
    assert set(window.measures) == {"client.iops"}


def test_rates_are_means_over_time() -> None:
    window = window_of(
        [sample(5.0, 5.0, values={"client.iops": 100.0}), sample(20.0, 15.0, values={"client.iops": 20.0})]
    )
    assert window is not None
    assert window.measures["client.iops"].mean == 40.0
    assert (window.start, window.end) == (0.0, 20.0)


def test_mean_latencies_are_means_over_operations() -> None:
    busy = sample(5.0, values={"client.iops": 900.0, "client.mean_ms": 1.0})
    idle = sample(10.0, values={"client.iops": 100.0, "client.mean_ms": 11.0})
    window = window_of([busy, idle])
    assert window is not None
    assert window.measures["client.mean_ms"].mean == pytest.approx(2.0)


def test_percentiles_of_a_window_come_from_all_operations_together() -> None:
    fast = Histogram((1.0, 2.0, 4.0), (990, 0, 0, 0))
    slow = Histogram((1.0, 2.0, 4.0), (0, 0, 10, 0))
    samples = [
        Sample(5.0 * place, 5.0, percentiles({WRITE: histogram}), {WRITE: histogram})
        for place, histogram in enumerate((fast, slow), 1)
    ]
    window = window_of(samples)
    assert window is not None
    # the mean of both p95 would be 2.4 ms
    assert window.measures["client.p95_ms"].mean < 1.0
    assert window.measures["client.p95_ms"].count == 2
    assert window.measures["client.p95_ms"].deviation > 1.0


def test_reads_and_writes_have_percentiles_of_their_own() -> None:
    found = percentiles({READ: Histogram((1.0, 2.0), (10, 0, 0)), WRITE: Histogram((1.0, 2.0), (0, 10, 0))})
    assert found["client.read_p95_ms"] < 1.0 < found["client.write_p95_ms"]
    assert found["client.read_p95_ms"] < found["client.p95_ms"] <= 2.0
    assert "client.read_p50_ms" not in found


def test_the_finish_time_of_a_window_is_what_is_left_over_the_mean_rate() -> None:
    samples = [
        sample(
            5.0 * place,
            values={
                "recovery.objects_left": left,
                "recovery.copies_s": rate,
                "recovery.finish_s": finish_s(left, rate),
            },
        )
        for place, (left, rate) in enumerate([(100.0, 0.0), (90.0, 2.0), (80.0, 4.0)], 1)
    ]
    window = window_of(samples)
    assert window is not None
    assert window.measures["recovery.finish_s"].mean == pytest.approx(40.0)


def test_the_drain_time_of_a_window_is_what_is_queued_over_how_the_queue_fell() -> None:
    queue = [(100.0, NEVER_S), (80.0, 20.0), (60.0, 15.0)]
    samples = [
        sample(5.0 * place, values={"snaptrim.queue": waiting, "snaptrim.drain_s": drain})
        for place, (waiting, drain) in enumerate(queue, 1)
    ]
    window = window_of(samples)
    assert window is not None
    assert window.measures["snaptrim.drain_s"].mean == pytest.approx(15.0)


def test_a_window_in_which_the_queue_stays_while_objects_are_trimmed_has_no_drain_time() -> None:
    def six(trimmed: float) -> Dict[str, float]:
        values = {"snaptrim.queue": 32.0, "snaptrim.objects_s": trimmed, "snaptrim.drain_s": NEVER_S}
        window = window_of([sample(5.0 * place, values=values) for place in range(1, 7)])
        assert window is not None
        return window.means

    assert "snaptrim.drain_s" not in six(500.0)
    assert six(0.0)["snaptrim.drain_s"] == NEVER_S


def test_the_scrub_interval_of_a_window_is_what_is_stored_over_the_mean_rate() -> None:
    busy = {"scrub.bytes_s": 200.0, "scrub.interval_s": 5.0}
    window = window_of([sample(5.0, values=busy), sample(10.0, values={"scrub.bytes_s": 0.0})])
    assert window is not None
    assert window.measures["scrub.interval_s"].mean == pytest.approx(10.0)


def test_work_that_stands_still_never_ends_and_no_work_is_done() -> None:
    assert finish_s(1.0, 0.0) == NEVER_S
    assert finish_s(1.0, 1e-12) == NEVER_S
    assert finish_s(0.0, 0.0) == 0.0


def test_no_samples_make_no_window() -> None:
    assert window_of([]) is None


@pytest.mark.parametrize("seen", [{"client.iops": -1.0}, {"client.iops": float("nan")}, {"no.such": 1.0}])
def test_impossible_values_are_refused(seen: Dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"must be|is no metric"):
        Sample(1.0, 1.0, seen)


def test_impossible_stretches_of_time_are_refused() -> None:
    with pytest.raises(ValueError, match="seconds"):
        Sample(1.0, 0.0, {})
    with pytest.raises(ValueError, match="end"):
        Window(1.0, 1.0, {})
    with pytest.raises(ValueError, match="count"):
        Measure(1.0, 0.0, 0)


def test_metrics_of_another_version_are_dropped_when_read() -> None:
    document = {"start": 0.0, "end": 1.0, "measures": {"client.iops": [1.0, 0.0, 1], "client.new": [1.0, 0.0, 1]}}
    assert set(Window.from_dict(document).measures) == {"client.iops"}


def test_a_window_within_two_moments_has_the_samples_that_lie_there_to_the_slack() -> None:
    samples = [sample(at, values={"client__iops": at}) for at in (5.0, 10.0, 15.0, 20.0)]
    window = window_within(samples, 4.0, 16.0, 1.0)
    assert window is not None
    assert (window.start, window.end, window.means["client.iops"]) == (5.0, 15.0, 12.5)
    assert window_within(samples, 6.5, 9.0, 1.0) is None


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=9))
def test_a_measure_reads_back_as_it_was_written(numbers: List[float]) -> None:
    measure = Measure.of(numbers)
    assert (measure.count, Measure.from_list(measure.to_list())) == (len(numbers), measure)
    assert min(numbers) * (1 - 1e-9) <= measure.mean <= max(numbers) * (1 + 1e-9)


def test_one_value_says_nothing_of_its_spread() -> None:
    assert measured_once({"client.iops": 7.0}) == {"client.iops": Measure.of([7.0])}
    assert math.isnan(Measure.of([7.0]).error)


@pytest.mark.parametrize("value", [1e300, 1.1e100, float("inf"), float("nan"), -1.0])
def test_what_nothing_can_be_reckoned_with_is_no_sample_and_no_measure(value: float) -> None:
    with pytest.raises(ValueError, match=r"client\.iops must be 0 to"):
        Sample(10.0, 10.0, {"client.iops": value})
    with pytest.raises(ValueError, match="seconds"):
        Sample(10.0, value, {})
    if value != -1.0:
        with pytest.raises(ValueError, match="mean and deviation must be"):
            Measure(value, 0.0, 1)
    with pytest.raises(ValueError, match="mean and deviation must be"):
        Measure(1.0, value, 1)


def test_the_largest_values_become_windows_and_hours() -> None:
    rates = [{"client.iops": rate, "client.mean_ms": LARGEST} for rate in (LARGEST, 0.0, LARGEST)]
    samples = [Sample(20.0 + number, LARGEST, rates[number % 3]) for number in range(999)]
    window = window_of(samples)
    assert window is not None
    assert window.measures["client.iops"].mean == pytest.approx(LARGEST * 2 / 3)
    hour = merged([Window(60.0 * n, 60.0 * n + 60.0, window.measures) for n in range(60)])
    assert hour is not None
    assert hour.measures["client.mean_ms"] == Measure(LARGEST, 0.0, 60 * 999)
