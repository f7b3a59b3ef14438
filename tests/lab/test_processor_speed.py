"""Stretches in which this machine's processors are slow: found in what was timed, and left out of latencies alone."""

from __future__ import annotations

import json
import threading
import time
from typing import List, Sequence, Tuple

import pytest
from host_lab import HostLab

from ceph_lab.loads.client import ClientLoad
from ceph_lab.loads.client_process import OpenLoop
from ceph_lab.loads.client_work import ClientWork
from ceph_lab.loads.processor_speed import KEPT, ProcessorSpeed, Stretch
from ceph_lab.loads.session import LabSession

USUAL_NS = 20_000
DUE = (1.988, 2.042)
OFTEN = [(0.059 + 0.06 * number, 0.079 + 0.06 * number) for number in range(80)]


def timed(seconds: float, slow: Sequence[Tuple[float, float]], times: float = 12.0) -> ProcessorSpeed:
    """Looked on from second 1000, with the work so many times as long within those stretches."""
    speed = ProcessorSpeed()
    for number in range(round(seconds / 0.005)):
        at = 1000 + 0.005 * number
        is_slow = any(low <= at - 1000 < high for low, high in slow)
        speed.add(at, round(USUAL_NS * (times if is_slow else 1 + 0.1 * (number % 5))))
    return speed


def rounded(stretches: Sequence[Stretch]) -> List[Tuple[float, float]]:
    return [(round(one.start - 1000, 3), round(one.end - 1000, 3)) for one in stretches]


def test_slow_stretches_are_found_joined_and_cut_to_the_window() -> None:
    speed = timed(10, [(0.999, 1.05), (1.069, 1.099), (3.999, 4.199), (9.899, 10.0)])
    assert rounded(speed.slow(1000, 1010)) == [(0.995, 1.1), (3.995, 4.2), (9.895, 10.0)]
    assert rounded(speed.slow(1004.1, 1008)) == [(4.1, 4.2)]
    assert speed.slow(1002, 1003) == ()


def test_twice_as_long_is_a_shared_core_and_always_slow_is_usual() -> None:
    assert timed(10, [(1.0, 1.5)], times=2).slow(1000, 1010) == ()
    assert timed(10, [(0.0, 10.0)]).slow(1000, 1010) == ()
    assert ProcessorSpeed().slow(1000, 1010) == ()


def test_no_more_than_an_hour_is_remembered() -> None:
    speed = ProcessorSpeed()
    for number in range(KEPT + 10):
        speed.add(1000 + 0.005 * number, USUAL_NS * (12 if number in (5, KEPT) else 1))
    assert rounded(speed.slow(0, 1e9)) == [(round(0.005 * KEPT - 0.005, 3), round(0.005 * KEPT + 0.005, 3))]


def test_it_looks_on_until_it_is_stopped_and_may_begin_again() -> None:
    speed = ProcessorSpeed()
    for _ in range(2):
        before, threads = len(speed._at), threading.active_count()
        speed.start()
        time.sleep(0.5)
        speed.stop()
        speed.stop()
        assert threading.active_count() == threads
        assert len(speed._at) - before > 10
    assert min(speed._took_ns) > 0
    assert sorted(speed._at) == list(speed._at)


def answered() -> OpenLoop:
    """400 writes and 100 reads, one every 10 ms from second 1000 on: of 2 ms, and of 60 about second 2."""
    client = OpenLoop(HostLab(""), ClientWork(rate=100).plan("pool"))
    client.collect(json.dumps({"began": 1000.0}))
    due_us = [10_000 * number for number in range(500)]
    latency_us = [60_000 if 2_000_000 <= due < 2_060_000 else 2_000 for due in due_us]
    answers = sorted(zip((due + took for due, took in zip(due_us, latency_us)), latency_us))
    document = {
        "until_us": 5_100_000,
        "at_us": [at for at, _ in answers],
        "latency_us": [took for _, took in answers],
        "reads": list(range(0, 500, 5)),
        "waited": 0,
        "issued": 500,
        "late_us": 0,
    }
    client.collect(json.dumps(document))
    return client


def test_what_was_due_while_processors_were_slow_counts_and_is_in_no_latency() -> None:
    client = answered()
    whole = client.interval(1000, 1005)
    assert whole is not None
    assert (whole.untimed, whole.write.quantile_ms(1.0)) == (0, 60.0)
    interval = client.interval(1000, 1005, [Stretch(1001.985, 1002.02), Stretch(1002.03, 1002.045)])
    assert interval is not None
    # due from 1.985 s to 20 ms after 2.045
    assert interval.untimed == 8
    assert interval.read.count + interval.write.count + interval.untimed == whole.read.count + whole.write.count
    assert interval.write.quantile_ms(1.0) == interval.read.quantile_ms(1.0) == 2.0
    for name in ("client.iops", "client.read_iops", "client.write_iops", "client.bytes_s"):
        assert interval.metrics(4096)[name] == whole.metrics(4096)[name]


def test_where_most_would_be_left_out_none_is() -> None:
    often = [Stretch(1000 + 0.06 * number, 1000.03 + 0.06 * number) for number in range(80)]
    interval = answered().interval(1000, 1005, often)
    assert interval is not None
    assert (interval.untimed, interval.write.quantile_ms(1.0)) == (0, 60.0)


@pytest.mark.parametrize(
    ("slow", "remark"),
    [
        (
            [DUE],
            "this machine's processors were slow for 0.1 s of 5 s: 8 operations that were due then are in no latency",
        ),
        (OFTEN, "this machine's processors were slow for 2.0 s of 5 s: the latencies hold that"),
        ([], None),
    ],
)
def test_a_remark_tells_it(slow: Sequence[Tuple[float, float]], remark: str) -> None:
    lab = HostLab("")
    load = ClientLoad(lab, LabSession(lab), ClientWork(rate=100))
    load._process, load._processors = answered(), timed(6, slow)
    measures = load.measure(1000, 1005)
    assert load.remarks(measures, 5) == ((remark,) if remark else ())
    assert measures["client.p99_ms"].mean == (2.0 if slow == [DUE] else 60.0)
