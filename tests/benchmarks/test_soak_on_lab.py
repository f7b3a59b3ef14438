"""Whether something levels off, by records that are made up."""

from __future__ import annotations

import os
import random
import threading
from typing import Any, Callable, Dict, List

import pytest
from soak_on_lab import GROWS, LEVEL, OPEN, last_half, measured_s, process_figures, table, trend

Line = Dict[str, Any]


def record(hours: float, rss: Callable[[float], float], part: int = 1, pid: int = 7) -> List[Line]:
    noise = random.Random(part)
    return [
        {
            "part": part,
            "ceph": "20.2.4",
            "drives": "hdd" if part == 2 else "nvme",
            "seconds": second,
            "process": [pid, 100],
            "load": "client" if second % 1800 < 1200 else "",
            "rss_kib": rss(second / 3600) + noise.gauss(0, 300),
            "threads": 40 + noise.choice((0, 0, 1)),
            "fds": 120,
            "keys": 60,
            "keys_by_kind": {"journal": 45, "history/minute": 12, "of a newer version": 3},
            "key_bytes": 100_000 + noise.randrange(500),
        }
        for second in range(0, int(3600 * hours) + 1, 30)
    ]


def verdict(lines: List[Line], name: str = "rss_kib") -> str:
    return trend(last_half(lines, name)).verdict


def test_what_grows_at_first_and_stays_there_levels_off() -> None:
    lines = record(6, lambda hour: 100_000 + 60_000 * min(1.0, hour / 2))
    assert verdict(lines) == LEVEL
    assert all(verdict(lines, name) == LEVEL for name in ("threads", "fds", "keys", "key_bytes"))


@pytest.mark.parametrize("a_h", [3_000, 10_000])
def test_what_leaks_grows(a_h: float) -> None:
    assert verdict(record(6, lambda hour: 100_000 + a_h * hour)) == GROWS


def test_a_leak_of_descriptors_is_found_whatever_their_number() -> None:
    lines = record(6, lambda hour: 100_000)
    for line in lines:
        line["fds"] += int(line["seconds"] // 1800)
    assert verdict(lines, "fds") == GROWS


def test_what_falls_levels_off_and_single_peaks_do_not_count() -> None:
    lines = record(6, lambda hour: 200_000 - 5_000 * hour)
    for line in lines[::17]:
        line["rss_kib"] += 500_000
    assert verdict(lines) == LEVEL


def test_what_scatters_too_much_is_not_told() -> None:
    noise = random.Random(3)
    lines = record(6, lambda hour: 100_000)
    levels = {block: noise.uniform(0, 60_000) for block in range(40)}
    for line in lines:
        line["rss_kib"] += levels[int(line["seconds"] // 600)]
    assert verdict(lines) == OPEN


def test_a_record_that_is_too_short_is_not_told() -> None:
    lines = record(1.2, lambda hour: 100_000)
    with pytest.raises(ValueError, match="5 blocks of 10 min, 6 are needed"):
        trend(last_half(lines, "rss_kib"))
    assert "| cannot be told: 5 blocks" in table(lines)


def test_each_part_is_told_by_itself() -> None:
    # a cluster of its own begins with nothing: what the next one grows by at first is no growth
    lines = record(3, lambda hour: 300_000, part=1) + record(3, lambda hour: 100_000 + 9_000 * hour, part=2)
    assert measured_s(lines) == 6 * 3600
    whole, first, rows, _, second, more, _ = table(lines).split("\n\n")
    assert whole == "6.0 h in 2 parts."
    assert first.startswith("Part 1: Ceph 20.2.4 on nvme, 3.0 h, ")
    assert second.startswith("Part 2: Ceph 20.2.4 on hdd, 3.0 h, ")
    assert f"| {GROWS} |" not in rows
    assert more.count(f"| {GROWS} |") == 1


def test_a_mgr_that_failed_over_is_another_process() -> None:
    # the next one begins with less, and its growth to its own level is none
    early = [line for line in record(6, lambda hour: 300_000, pid=7) if line["seconds"] < 3600 * 4]
    late = [line for line in record(6, lambda hour: 100_000, pid=9) if line["seconds"] >= 3600 * 4]
    half = last_half(early + late, "rss_kib")
    assert max(value for _, value in half) < 110_000
    assert "mgr processes: 2." in table(early + late)
    # what the store has is no process's own
    assert len(last_half(early + late, "keys")) > len(half)


def test_the_page_has_a_row_for_each_figure() -> None:
    whole, words, rows, keys = table(record(6, lambda hour: 100_000 + 10_000 * hour)).split("\n\n")
    assert [line.rsplit("|", 2)[1].strip() for line in rows.splitlines()[2:]] == [GROWS, LEVEL, LEVEL, LEVEL, LEVEL]
    assert rows.splitlines()[4] == "| file descriptors | 120 | 120 | 120 | +0 (+0 to +0) | levels off |"
    assert whole == "6.0 h in 1 parts."
    assert keys.splitlines()[2:] == ["| journal | 45 | 52 |", "| history/minute | 12 | 12 |"]
    assert words == "Part 1: Ceph 20.2.4 on nvme, 6.0 h, 721 samples, under load in 67% of them; mgr processes: 1."


def test_figures_are_those_of_the_process() -> None:
    before, over = process_figures(os.getpid()), threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    with open(os.devnull, encoding="ascii"):
        held = bytearray(os.urandom(1 << 20) * 64)
        after = process_figures(os.getpid())
    over.set()
    thread.join()
    assert after["threads"] - before["threads"] == 1
    assert after["fds"] - before["fds"] == 1
    assert after["rss_kib"] - before["rss_kib"] == pytest.approx(len(held) / 1024, rel=0.2)
