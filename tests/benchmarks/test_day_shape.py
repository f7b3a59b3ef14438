"""The clients' day, and how a block trace gives it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from statistics import fmean
from typing import Sequence

import day_on_lab
import day_world
import pytest
from day_shape import BUSIEST_H, SHAPE, by_hour, clients_at, derive, follows_the_hour, shape


def wave(days: int, busiest_h: int, mean: float = 100.0) -> Sequence[float]:
    return [mean * (1.0 + 0.8 * math.cos(2.0 * math.pi * (hour - busiest_h) / 24.0)) for hour in range(24 * days)]


def counted(folder: Path, machine: str, hours: Sequence[float]) -> None:
    """Half of an hour's requests in each of its halves, as the repository counts them."""
    path = folder / "cloudphysics" / machine / "block_snapshots" / f"block_snap_{machine}.csv"
    path.parent.mkdir(parents=True)
    rows = [f"{1_800_000_000 * (half + 1) - 5},{round(hours[half // 2])}" for half in range(2 * len(hours))]
    path.write_text("\n".join(["ts,block_req_count", *rows]) + "\n", encoding="utf-8")


def test_the_shape_has_a_mean_of_one_and_its_busiest_hour_where_it_says() -> None:
    assert len(shape()) == 24
    assert fmean(shape()) == pytest.approx(1.0, abs=0.001)
    assert shape().index(max(shape())) == BUSIEST_H
    assert {"source", "licence", "method"} <= set(json.loads(SHAPE.read_text("utf-8")))


def test_between_the_middles_of_two_hours_the_rate_changes_evenly() -> None:
    assert clients_at(16.5) == shape()[16]
    assert clients_at(17.0) == pytest.approx((shape()[16] + shape()[17]) / 2.0)
    assert clients_at(0.0) == clients_at(24.0) == pytest.approx((shape()[23] + shape()[0]) / 2.0)


def test_both_days_have_the_trace_s_shape() -> None:
    assert day_world.rate_at(5.5) == day_world.RATE * shape()[5]
    assert day_on_lab.rate_at(5.5) == day_on_lab.RATE * shape()[5]


def test_a_wave_follows_the_hour_and_a_burst_or_silence_does_not() -> None:
    assert follows_the_hour(wave(6, 3)) == pytest.approx(1.0)
    assert follows_the_hour([5.0] * 48) == 0.0
    assert follows_the_hour([1000.0 if hour == 30 else 1.0 for hour in range(144)]) < 0.05


def test_machines_without_a_day_are_left_out_and_the_busiest_hour_is_turned(tmp_path: Path) -> None:
    counted(tmp_path, "w1", wave(5, 3))
    counted(tmp_path, "w2", wave(6, 3, 300.0))
    counted(tmp_path, "idle", [7.0] * 144)
    counted(tmp_path, "short", wave(4, 3))
    derived = derive(tmp_path)
    assert derived["taken"] == ["w1", "w2"]
    assert derived["machines"] == [2, 4]
    assert derived["days"] == 5
    assert derived["by_hour"][BUSIEST_H] == max(derived["by_hour"]) == pytest.approx(1.8, abs=0.01)
    assert derived["by_hour"][(BUSIEST_H + 12) % 24] == pytest.approx(0.2, abs=0.01)


def test_hours_that_one_trace_lacks_count_for_none() -> None:
    loud = [1e6] * 24
    assert by_hour([wave(2, 3), [*wave(2, 3), *loud]]) == by_hour([wave(2, 3)])


def test_a_folder_without_counts_is_told(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="block_snap"):
        derive(tmp_path)
