from __future__ import annotations

from typing import Dict, List, Tuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.autopilot.demand import asked_for, dwindles, unseen_of
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.core.measure.sample import clients_wait

BUSY = {"client.iops": 400.0, "client.mean_ms": 10.0, "client.read_iops": 100.0, "client.read_mean_ms": 4.0}


def kept(values: Dict[str, float], usual: Dict[str, float] = BUSY, **left: float) -> set:
    return set(asked_for(values, usual, 0.2, {name.replace("__", "."): value for name, value in left.items()}))


def test_clients_that_do_less_at_the_same_latency_went_home() -> None:
    assert kept({"client.iops": 50.0, "client.mean_ms": 11.9}) == {"client.mean_ms"}
    assert kept({"client.iops": 0.0}) == set()


def test_clients_that_do_less_and_wait_longer_are_held_back() -> None:
    assert "client.iops" in kept({"client.iops": 50.0, "client.mean_ms": 12.1})
    # without a latency it is not known, and counts
    assert "client.iops" in kept({"client.iops": 50.0})
    assert "client.iops" in kept({"client.iops": 50.0, "client.mean_ms": 1.0}, usual={})


def test_reads_are_held_against_the_latency_of_reads() -> None:
    assert "client.read_iops" in kept({"client.read_iops": 50.0, "client.read_mean_ms": 8.0, "client.mean_ms": 9.0})
    assert "client.read_iops" not in kept({"client.read_iops": 50.0, "client.read_mean_ms": 4.0})


@pytest.mark.parametrize(
    ("rate", "left"),
    [
        ("recovery.bytes_s", "recovery.objects_left"),
        ("backfill.objects_s", "backfill.objects_left"),
        ("snaptrim.objects_s", "snaptrim.queue"),
    ],
)
def test_background_work_that_ended_has_no_rate(rate: str, left: str) -> None:
    assert rate in kept({rate: 1.0, left: 5.0})
    assert rate not in kept({rate: 1.0, left: 0.0})
    # it ended within the window: its mean left something, the newest sight nothing
    assert rate not in set(asked_for({rate: 1.0, left: 5.0}, BUSY, 0.2, {left: 0.0}))


def test_recovery_that_moves_misplaced_copies_is_recovery_still() -> None:
    values = {"recovery.bytes_s": 1.0, "recovery.objects_left": 0.0, "backfill.objects_left": 3.0}
    assert "recovery.bytes_s" in kept(values)


def test_a_scrub_that_stands_still_is_none() -> None:
    assert kept({"scrub.bytes_s": 0.0, "scrub.objects_s": 0.1}) == {"scrub.objects_s"}


@given(st.dictionaries(st.sampled_from(sorted(METRICS)), st.floats(0, 1e9)), st.floats(0.01, 0.9))
def test_only_rates_are_ever_left_out_and_nothing_is_changed(values: Dict[str, float], tolerance: float) -> None:
    found = asked_for(values, values, tolerance, {})
    assert found.items() <= values.items()
    assert all(METRICS[name].unit in ("1/s", "B/s") for name in values.keys() - found.keys())
    # what was there before, and is there now as it was, is work unless its rate is 0 or nothing of it is left
    assert all(name in found for name in values if name.startswith("client.") and values[name] > 0)


QUEUE, SLOW = "queue.client", "ops.slow"


@pytest.mark.parametrize(
    ("seen", "waiting"),
    [
        ({"client.iops": 0.0, QUEUE: 0.5}, True),
        ({"client.iops": 0.0, QUEUE: 0.0, SLOW: 3.0}, False),
        ({"client.iops": 0.0, SLOW: 3.0}, True),  # under wpq there is no such queue
        ({"client.iops": 0.0, SLOW: 1.0}, False),
        ({"client.iops": 0.1, QUEUE: 0.5}, False),
        ({QUEUE: 0.5}, False),
    ],
)
def test_clients_wait_where_something_is_under_way_and_nothing_ends(seen: Dict[str, float], waiting: bool) -> None:
    usual = {**BUSY, SLOW: 1.0}
    assert clients_wait(seen, usual) == waiting
    assert not clients_wait(seen, {**usual, "client.iops": 0.0})
    if waiting:
        assert "client.iops" in asked_for(seen, usual, 0.2, {})


P95, READS, WRITES = "client.p95_ms", "client.read_p95_ms", "client.write_p95_ms"


@pytest.mark.parametrize(
    ("windows", "unseen"),
    [
        ([], ()),
        ([{P95: 9.0, READS: 9.0, WRITES: 9.0, "client.iops": 1.0}], ()),
        # the last one was not asked for in time
        ([{P95: 9.0, READS: 9.0, WRITES: 9.0, "client.iops": 1.0}, {"client.iops": 1.0}], ()),
        ([{"client.iops": 1.0, "client.write_iops": 1.0, "client.read_iops": 0.0}], (P95, WRITES)),
        ([{P95: 9.0, WRITES: 9.0, "client.iops": 1.0, "client.write_iops": 1.0}], ()),
        ([{"client.iops": 0.0}], (P95, READS, WRITES)),
        ([{"recovery.objects_s": 1.0}], (P95, READS, WRITES)),
    ],
)
def test_what_no_window_shows_of_clients_is_missing_unless_they_do_nothing_of_the_kind(
    windows: List[Dict[str, float]], unseen: Tuple[str, ...]
) -> None:
    assert unseen_of([P95, READS, WRITES, "recovery.objects_s"], windows) == unseen


@pytest.mark.parametrize(("left", "dwindling"), [(60.0, False), (49.0, True), (0.0, True)])
def test_work_of_which_less_than_half_is_left_dwindles(left: float, dwindling: bool) -> None:
    usual = {"recovery.objects_left": 80.0, "backfill.objects_left": 20.0}
    assert dwindles("recovery.bytes_s", {"recovery.objects_left": left}, usual) is dwindling
    assert not dwindles("recovery.bytes_s", {}, {})
    assert not dwindles("scrub.bytes_s", {}, usual)
