"""The machine's clock: it sleeps as long as it was told, and hears of signals within a second."""

from __future__ import annotations

import os
import time
from typing import List

import pytest

from ceph_tuner.clusters import machine
from ceph_tuner.clusters.machine import SystemClock


@pytest.mark.parametrize("seconds", [-1.0, 0.0, 0.4, 1.0, 2.5, 30.0])
def test_a_sleep_is_as_long_as_told_in_pieces_of_a_second(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    at = 100.0
    pieces: List[float] = []

    def sleep(piece: float) -> None:
        nonlocal at
        at += piece
        pieces.append(piece)

    monkeypatch.setattr(machine.time, "monotonic", lambda: at)
    monkeypatch.setattr(machine.time, "sleep", sleep)
    SystemClock().sleep(seconds)
    assert sum(pieces) == pytest.approx(max(0.0, seconds))
    assert max(pieces) <= 1.0


def test_a_sleep_takes_its_time() -> None:
    began = time.monotonic()
    SystemClock().sleep(0.05)
    assert time.monotonic() - began >= 0.05


def test_who_writes_is_whom_the_kernel_says(monkeypatch: pytest.MonkeyPatch) -> None:
    before = machine.this_process().name
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "somebody-else")
    assert machine.this_process().name == before
    assert f", uid {os.getuid()} (ceph-tuner, process {os.getpid()})" in before
    assert f", uid {os.getuid()}, client.tuner (ceph-tuner" in machine.this_process(entity="client.tuner").name
    monkeypatch.setattr(machine.os, "getuid", lambda: 4_000_000_123)
    assert machine.this_process().name.startswith("uid 4000000123 (ceph-tuner, process ")


def test_no_one_sets_the_clock_that_durations_go_by(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = machine.SystemClock()
    began = clock.monotonic()
    monkeypatch.setattr(machine.time, "time", lambda: 0.0)
    assert 0 <= clock.monotonic() - began < 10
