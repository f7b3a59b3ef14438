"""The model of a drive on a virtual clock: what a data sheet says comes out again, in slow motion."""

from __future__ import annotations

import random
from dataclasses import replace
from statistics import fmean
from typing import List

import pytest
from emulated import FLUSH, READ, WRITE, EmulatedDrive, Request

from ceph_lab.drives import Disk, Drive, Flash
from ceph_lab.drives.presets import PRESETS

KIB, GIB = 1 << 10, 1 << 30
SIZE = 16 * GIB
NVME, HDD = PRESETS["nvme"].data, PRESETS["hdd"].data
assert isinstance(NVME, Flash)
assert isinstance(HDD, Disk)
STEADY = replace(NVME, jitter=0.0)


def words(drive: Drive, seed: int = 1) -> str:
    return drive.words(seed, SIZE)


def at_once(count: int, kind: int, size: int, seed: int = 1) -> List[Request]:
    """All issued at second 0, at random places."""
    places = random.Random(seed)
    return [(0.0, kind, places.randrange(SIZE // size) * size, size) for _ in range(count)]


@pytest.mark.parametrize(("kind", "latency_us"), [(READ, 115), (WRITE, 20)])
def test_alone_a_small_request_takes_the_latency(emulated: EmulatedDrive, kind: int, latency_us: float) -> None:
    (done,) = emulated.done(words(STEADY), [(5.0, kind, 0, 4 * KIB)])
    assert done - 5.0 == pytest.approx(1e-6 * latency_us * STEADY.slow_motion)


@pytest.mark.parametrize(("kind", "iops"), [(READ, 645_000), (WRITE, 62_500)])
def test_with_many_under_way_iops_are_the_drive_s(emulated: EmulatedDrive, kind: int, iops: float) -> None:
    done = emulated.done(words(STEADY), at_once(5000, kind, 4 * KIB))
    assert 5000 / max(done) == pytest.approx(iops / STEADY.slow_motion, rel=0.03)


@pytest.mark.parametrize(("kind", "rate"), [(READ, 3.2e9), (WRITE, 1.8e9)])
def test_large_requests_get_the_bandwidth(emulated: EmulatedDrive, kind: int, rate: float) -> None:
    done = emulated.done(words(STEADY), at_once(200, kind, 1024 * KIB))
    assert 200 * 1024 * KIB / max(done) == pytest.approx(rate / STEADY.slow_motion, rel=0.02)


def test_reads_and_writes_share_the_back_end(emulated: EmulatedDrive) -> None:
    mixed = [*at_once(2000, READ, 4 * KIB), *at_once(2000, WRITE, 4 * KIB)]
    expected = (2000 / NVME.read_iops + 2000 / NVME.write_iops) * NVME.slow_motion
    assert max(emulated.done(words(STEADY), mixed)) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("drive", [NVME, HDD])
def test_slow_motion_stretches_time_and_changes_nothing_else(emulated: EmulatedDrive, drive: Drive) -> None:
    once, slower = (replace(drive, slow_motion=factor) for factor in (1.0, 7.0))
    chance = random.Random(3)
    requests = [(chance.uniform(0, 0.01), chance.choice([READ, WRITE]), chance.randrange(4096) << 20, 8 * KIB)
                for _ in range(300)]  # fmt: skip
    requests.sort()
    quick = emulated.done(words(once), requests)
    slow = emulated.done(words(slower), [(7 * at, *rest) for at, *rest in requests])
    assert slow == pytest.approx([7 * done for done in quick], rel=1e-9)


def test_chance_has_the_mean_that_is_stated_and_repeats(emulated: EmulatedDrive) -> None:
    requests = [(float(second), READ, 0, 4 * KIB) for second in range(4000)]
    done = emulated.done(words(NVME, seed=9), requests)
    waits = [each - at for each, (at, *_) in zip(done, requests)]
    assert fmean(waits) == pytest.approx(115e-6 * NVME.slow_motion, rel=0.02)
    assert len(set(waits)) > 3900
    assert emulated.done(words(NVME, seed=9), requests) == done
    assert emulated.done(words(NVME, seed=10), requests) != done


def test_a_flush_waits_for_what_was_issued_and_takes_its_time(emulated: EmulatedDrive) -> None:
    volatile = replace(STEADY, flush_us=500.0)
    *writes, flushed = emulated.done(words(volatile), [*at_once(100, WRITE, 4 * KIB), (0.0, FLUSH, 0, 0)])
    smallest = volatile.slow_motion / volatile.write_iops
    latest_issue = max(writes) - (20e-6 * volatile.slow_motion - smallest)
    assert flushed == pytest.approx(latest_issue + 500e-6 * volatile.slow_motion)


@pytest.mark.parametrize("drive", [HDD, NVME], ids=["disk", "flash"])
def test_a_drive_without_a_volatile_cache_is_flushed_at_once(emulated: EmulatedDrive, drive: Drive) -> None:
    """Linux sends such a drive no flush, so a commit waits for no head."""
    *writes, flushed = emulated.done(words(drive), [*at_once(50, WRITE, 4 * KIB), (0.0, FLUSH, 0, 0)])
    assert (flushed, min(writes) > 0) == (0.0, True)


def test_a_disk_alone_seeks_and_waits_for_half_a_turn_on_the_average(emulated: EmulatedDrive) -> None:
    chance = random.Random(4)
    requests = [(second * 0.1 + chance.uniform(0, 0.01), READ, chance.randrange(SIZE // 4096) * 4096, 4 * KIB)
                for second in range(4000)]  # fmt: skip
    waits = [done - at for done, (at, *_) in zip(emulated.done(words(HDD), requests), requests)]
    assert fmean(waits) == pytest.approx(8.2e-3 + 60 / 7200 / 2, rel=0.03)
    # never longer than the whole stroke and a turn
    assert max(waits) < (0.6 + (8.2 - 0.6) / (8 / 15)) * 1e-3 + 60 / 7200 + 1e-3


@pytest.mark.parametrize("kind", [READ, WRITE])
def test_a_disk_streams_at_its_bandwidth(emulated: EmulatedDrive, kind: int) -> None:
    requests = [(0.0, kind, number * 256 * KIB, 256 * KIB) for number in range(400)]
    assert 400 * 256 * KIB / max(emulated.done(words(HDD), requests)) == pytest.approx(171e6, rel=0.02)


def test_a_disk_reads_ahead_for_who_asks_a_little_later_and_not_for_who_writes(emulated: EmulatedDrive) -> None:
    def stream(kind: int) -> float:
        at, waits = 0.0, []
        for number in range(30):
            history: List[Request] = [(second, kind, place * 64 * KIB, 64 * KIB) for place, second in enumerate(issued)]
            (*_, done) = emulated.done(words(HDD), [*history, (at, kind, number * 64 * KIB, 64 * KIB)])
            issued.append(at)
            waits.append(done - at)
            at = done + 1e-3
        return fmean(waits[1:])

    issued: List[float] = []
    assert stream(READ) < 0.5e-3
    issued = []
    # the place has just gone by: nearly a whole turn until it comes again
    assert stream(WRITE) > 0.8 * 60 / 7200


def test_a_full_queue_is_served_by_the_shortest_way(emulated: EmulatedDrive) -> None:
    requests = at_once(500, WRITE, 4 * KIB)
    first_come = max(emulated.done(words(replace(HDD, queue=1)), requests))
    shortest = max(emulated.done(words(HDD), requests))
    # 80 and some 190 a second, as such disks do without and with their queue
    assert 500 / first_come == pytest.approx(1 / (8.2e-3 + 60 / 7200 / 2), rel=0.1)
    assert 150 < 500 / shortest < 300
    # as the twin is told
    assert first_come / 500 == pytest.approx(HDD.position_s(), rel=0.1)
    assert 500 / shortest == pytest.approx(HDD.queued_iops(), rel=0.15)


def test_nobody_is_passed_over_for_ever(emulated: EmulatedDrive) -> None:
    near = [(1e-3 * number, WRITE, (number % 64) * 4 * KIB, 4 * KIB) for number in range(3000)]
    far: Request = (0.5, WRITE, SIZE - 4 * KIB, 4 * KIB)
    requests = sorted([*near, far])
    done = emulated.done(words(replace(HDD, patience_ms=200.0)), requests)[requests.index(far)]
    assert done - 0.5 < 0.2 + 0.1 + 32 * 0.03


@pytest.mark.parametrize(
    "refused",
    [
        "", "kind=tape", "kind=flash read_s=1", words(NVME) + " more=1", words(NVME).replace("jitter=", "jitter=x"),
        words(NVME).replace("seed=1", "seed=-1"), words(HDD).replace(f"size={SIZE}", "size=0"),
        words(HDD).replace("queue=32", "queue=nan"),
    ],
)  # fmt: skip
def test_words_that_describe_no_drive_are_refused(emulated: EmulatedDrive, refused: str) -> None:
    assert emulated.refuses(refused)
