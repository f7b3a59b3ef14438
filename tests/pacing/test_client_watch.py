"""Clients that are watched while somebody sets the clock."""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

import pytest

from ceph_tuner.core.ceph.ports import Clock
from ceph_tuner.core.measure.sample import Measure, Window
from ceph_tuner.pacing.client_watch import ClientWatch
from ceph_tuner.pacing.judged_windows import SampledWindows
from keeping import keeping
from twins import small_twin


class SetClock:
    """A clock that somebody sets."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self.shift_s = clock, 0.0

    def now(self) -> float:
        return self._clock.now() + self.shift_s

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds)


class OneWindow:
    """A first window, and none after it."""

    seconds = 30.0

    def __init__(self, clock: Clock) -> None:
        means = {"client.p95_ms": Measure(5.0, 0.0, 5), "client.iops": Measure(100.0, 0.0, 5)}
        self._window = Window(clock.now() - 30, clock.now(), means)

    def look(self) -> None:
        """Nothing new is seen."""

    def window(self, since: float) -> Optional[Window]:
        return self._window if self._window.end >= since else None


@pytest.mark.parametrize("shift_s", [0.0, -3600.0, -90 * 86400.0])
def test_an_old_window_says_nothing_of_now_where_the_clock_was_set_back(
    monkeypatch: pytest.MonkeyPatch, shift_s: float
) -> None:
    twin = small_twin()
    clock = SetClock(twin.clock)
    monkeypatch.setattr("ceph_tuner.pacing.client_watch.judged_windows", lambda *_: OneWindow(clock))
    cluster = replace(twin, clock=clock)
    watch = ClientWatch(cluster, keeping("client.p95_ms <= 20"), {}, 30.0, 3)
    watch.begin(lambda text: None)
    began = clock.now()
    assert watch.reason() == ""
    clock.shift_s = shift_s
    for _ in range(30):
        clock.sleep(5)
        watch.judge(began)
    assert "not seen" in watch.reason()


def test_samples_of_before_the_clock_was_set_back_are_in_no_window() -> None:
    twin = small_twin()
    clock = SetClock(twin.clock)
    windows = SampledWindows(replace(twin, clock=clock), (), 30.0)
    for shift_s in (0.0, -3600.0):
        clock.shift_s = shift_s
        for _ in range(9):
            windows.look()
            clock.sleep(5.0)
    window = windows.window(clock.now() - 40.0)
    assert window is not None
    assert clock.now() - 40.0 <= window.start < window.end <= clock.now()
    assert window.measures["client.iops"].count <= 7
