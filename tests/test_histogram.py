from __future__ import annotations

from typing import List

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.measure.histogram import Histogram, pooled

EDGES = tuple(0.1 * 2**place for place in range(10))
counts = st.lists(st.integers(0, 1000), min_size=len(EDGES) + 1, max_size=len(EDGES) + 1)


def histogram(numbers: List[int]) -> Histogram:
    return Histogram(EDGES, tuple(numbers))


def test_a_quantile_is_interpolated_inside_its_bucket() -> None:
    found = Histogram((1.0, 2.0, 4.0), (0, 50, 50, 0))
    assert found.quantile(0.5) == 2.0
    assert found.quantile(0.25) == 1.5
    assert found.quantile(0.95) == pytest.approx(3.8)
    assert found.bracket(0.95) == (2.0, 4.0)


def test_operations_in_the_open_last_bucket_count_as_at_its_lower_edge() -> None:
    assert Histogram((1.0, 2.0), (0, 0, 7)).quantile(0.99) == 2.0


def test_nothing_counted_has_no_quantile() -> None:
    assert histogram([0] * 11).quantile(0.5) is None
    assert histogram([0] * 11).bracket(0.5) is None


@given(counts, st.floats(0, 1), st.floats(0, 1))
def test_quantiles_rise_with_their_fraction(numbers: List[int], one: float, other: float) -> None:
    low, high = (histogram(numbers).quantile(fraction) for fraction in sorted((one, other)))
    assert (low is None) == (sum(numbers) == 0)
    assert low is None or high is None or low <= high + 1e-9


@given(counts, st.floats(0, 1))
def test_a_quantile_lies_within_its_bracket(numbers: List[int], fraction: float) -> None:
    found = histogram(numbers)
    bracket, value = found.bracket(fraction), found.quantile(fraction)
    assert bracket is None or value is None or bracket[0] <= value <= bracket[1]


@given(st.lists(st.floats(0.11, 50), min_size=1, max_size=200), st.sampled_from([0.5, 0.95, 0.99]))
def test_the_true_quantile_is_in_the_bracket(latencies: List[float], fraction: float) -> None:
    numbers = [0] * 11
    for latency in latencies:
        numbers[sum(1 for edge in EDGES if latency >= edge)] += 1
    rank = max(0, -(-len(latencies) * fraction // 1) - 1)
    true = sorted(latencies)[int(rank)]
    bracket = histogram(numbers).bracket(fraction)
    assert bracket is not None
    assert bracket[0] <= true
    assert true <= bracket[1] or bracket[1] == EDGES[-1]


@given(counts, counts)
def test_what_came_since_and_what_was_before_make_the_whole(before: List[int], more: List[int]) -> None:
    earlier = histogram(before)
    later = pooled([earlier, histogram(more)])
    assert later is not None
    assert later.since(earlier) == histogram(more)
    if sum(more):
        assert earlier.since(later) is None


@given(counts)
def test_plain_form_round_trips(numbers: List[int]) -> None:
    assert Histogram.from_dict(histogram(numbers).to_dict()) == histogram(numbers)


def test_histograms_with_other_buckets_are_not_compared() -> None:
    assert Histogram((1.0,), (1, 1)).since(Histogram((2.0,), (0, 0))) is None
    assert pooled([]) is None


@pytest.mark.parametrize(
    ("edges", "numbers"), [((1.0, 2.0), (1, 2)), ((1.0,), (1, -1)), ((2.0, 1.0), (0, 0, 0)), ((0.0,), (0, 0))]
)
def test_an_impossible_histogram_is_refused(edges: tuple, numbers: tuple) -> None:  # type: ignore[type-arg]
    with pytest.raises(ValueError, match="must"):
        Histogram(edges, numbers)
