"""The machine's clock: it sleeps as long as it was told, and hears of signals within a second."""

from __future__ import annotations

import time
from typing import List

import pytest

from ceph_tuner.core.ceph import system_clock
from ceph_tuner.core.ceph.system_clock import SystemClock


@pytest.mark.parametrize("seconds", [-1.0, 0.0, 0.4, 1.0, 2.5, 30.0])
def test_a_sleep_is_as_long_as_told_in_pieces_of_a_second(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    at = 100.0
    pieces: List[float] = []

    def sleep(piece: float) -> None:
        nonlocal at
        at += piece
        pieces.append(piece)

    monkeypatch.setattr(system_clock.time, "monotonic", lambda: at)
    monkeypatch.setattr(system_clock.time, "sleep", sleep)
    SystemClock().sleep(seconds)
    assert sum(pieces) == pytest.approx(max(0.0, seconds))
    assert max(pieces) <= 1.0


def test_a_sleep_takes_its_time() -> None:
    began = time.monotonic()
    SystemClock().sleep(0.05)
    assert time.monotonic() - began >= 0.05


def test_no_one_sets_the_clock_that_durations_go_by(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SystemClock()
    began = clock.monotonic()
    monkeypatch.setattr(system_clock.time, "time", lambda: 0.0)
    assert 0 <= clock.monotonic() - began < 10
