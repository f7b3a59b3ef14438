"""A commit on a disk that others read from waits as on the lab's emulated drive (ceph_lab/drives/model.c)."""

from __future__ import annotations

import heapq
import itertools
import random
from typing import List, Tuple

import numpy as np
import pytest

from ceph_lab.drives import Disk
from ceph_lab.drives.presets import PRESETS
from ceph_tuner.twin.kernel import drive, records
from ceph_tuner.twin.kernel.state import over_objects
from ceph_tuner.twin.kernel_tables import START_S, KernelTables
from ceph_tuner.twin.model import KIB, ClusterModel, Device, OsdModel, Pool

_DATA = PRESETS["hdd"].data
assert isinstance(_DATA, Disk)
HDD: Disk = _DATA
LOG_AT = 1.3 / 6
"""Of the stroke, as on the lab."""


def disk(begin: float, end: float) -> Device:
    """With what is read within a part of the stroke, and the log elsewhere."""
    way_s = HDD.position_s(end - begin)
    return Device(
        HDD.queued_iops(end - begin), HDD.bandwidth, latency_s=way_s, read_latency_s=way_s, turn_s=60 / HDD.rpm,
        log_way_s=HDD.apart_s(begin, end, LOG_AT),
    )  # fmt: skip


@pytest.mark.parametrize(("begin", "end"), [(0.0, 1 / 6), (0.0, 0.37), (0.3, 0.5)])
def test_the_way_to_the_log_is_a_seek_over_its_distance_and_half_a_turn(begin: float, end: float) -> None:
    """As `disk_done` of model.c: a seek goes by the root of the distance, 8/15 in the mean of the whole stroke."""
    roots = np.sqrt(np.abs(np.linspace(begin, end, 10_001) - LOG_AT))
    seek_ms = HDD.track_seek_ms + (HDD.average_seek_ms - HDD.track_seek_ms) / (8 / 15) * float(np.mean(roots))
    assert HDD.apart_s(begin, end, LOG_AT) == pytest.approx(1e-3 * seek_ms + 30 / HDD.rpm, rel=1e-3)


@pytest.mark.parametrize(("aside", "least_ms", "most_ms"), [(45, 4, 20), (0, 80, 300)])
def test_deferred_writes_that_have_new_places_are_one_request(aside: int, least_ms: float, most_ms: float) -> None:
    """By the logs of three OSDs with an erasure code, batches of 29 to 56 writes took 4 to 20 ms."""
    osd = OsdModel(disk(0.0, 1 / 6), shards=1, device_class="hdd")
    state = over_objects(KernelTables(ClusterModel(1, osd, (Pool("rbd", 1, 1),)), 1).tables)
    own = state.osds[0]
    own.deferred_writes, own.deferred_aside = 45, aside
    drive.write_deferred(state, 0, START_S)
    until = own.budgets[own.prices[records.WRITES].budget].deferred_until_s
    assert least_ms <= 1e3 * (until - START_S) <= most_ms


READ_BYTES, COMMIT_BYTES, COMMITS_S, THINKS_S = 256.0 * KIB, 10.0 * KIB, 15.0, 6e-4


def beside_readers(readers: int, device: Device, seconds: float = 200.0) -> Tuple[List[float], float]:
    """How long each of 15 transactions a second waits for its commit, and the bytes that are read in a second."""
    osd = OsdModel(device, shards=1, device_class="hdd")
    state = over_objects(KernelTables(ClusterModel(1, osd, (Pool("rbd", 1, 1),)), 1).tables)
    chance, number = random.Random(1), itertools.count()
    events = [(START_S, next(number), records.READS) for _ in range(readers)]
    arrivals, free_at, committed, reads, waits = START_S, START_S, [], 0, []
    while arrivals < START_S + seconds:
        arrivals += chance.expovariate(COMMITS_S)
        committed.append(arrivals)
    heapq.heappush(events, (committed[0], next(number), records.COMMITS))
    done = 0
    while done < len(committed):
        now, _, use = heapq.heappop(events)
        if use == records.READS:
            reads += 1
            at = drive.transfer(state, 0, records.READS, now, 1.0, READ_BYTES) + THINKS_S
            heapq.heappush(events, (at, next(number), records.READS))
            continue
        # one commit at a time takes all that has come
        last = int(np.searchsorted(committed, now, side="right"))
        free_at = drive.transfer(state, 0, records.COMMITS, now, 1.0, COMMIT_BYTES)
        waits += [free_at - came for came in committed[done:last]]
        done = last
        if done < len(committed):
            heapq.heappush(events, (max(free_at, committed[done]), next(number), records.COMMITS))
    return waits, reads * READ_BYTES / seconds


@pytest.mark.parametrize(
    ("readers", "mean_ms", "p95_ms", "read_mb_s"),
    [(1, 18, 34, 20.1), (2, 29, 65, 22.4), (3, 34, 85, 24.3), (4, 44, 125, 25.5)],
)
def test_a_commit_waits_for_as_many_reads_as_on_the_lab_s_drive(
    readers: int, mean_ms: float, p95_ms: float, read_mb_s: float
) -> None:
    """Numbers are of model.c on a virtual clock: reads of four blobs of 64 KiB, which also come out of order."""
    waits, read = beside_readers(readers, disk(0.0, 2.2 / 6))
    assert 1e3 * np.mean(waits) == pytest.approx(mean_ms, rel=0.25)
    assert 1e3 * np.percentile(waits, 95) == pytest.approx(p95_ms, rel=0.25)
    assert 1e-6 * read == pytest.approx(read_mb_s, rel=0.2)


@pytest.mark.parametrize(("begin", "mean_ms", "p95_ms"), [(1.0, 31, 80), (1.7, 93, 238), (2.4, 406, 1016)])
def test_the_farther_the_log_is_the_longer_a_commit_waits(begin: float, mean_ms: float, p95_ms: float) -> None:
    """Of three readers within a fifth of the stroke, by model.c as well."""
    waits, _ = beside_readers(3, disk(begin / 6, (begin + 1.2) / 6))
    assert 1e3 * np.mean(waits) == pytest.approx(mean_ms, rel=0.3)
    assert 1e3 * np.percentile(waits, 95) == pytest.approx(p95_ms, rel=0.35)
