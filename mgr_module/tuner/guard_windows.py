"""Time since settings were written, cut into windows for the guard."""

from __future__ import annotations

from typing import List

from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.measure.sample import Window

from .aim import Aim


class GuardWindows:
    """Of a boost, or of a page of the book: one after the other, without a group to compare with."""

    def __init__(self, aim: Aim) -> None:
        self._aim, self._begun = aim, 0.0

    def begin(self, at: float) -> None:
        """The next window begins then (seconds since the epoch)."""
        self._begun = at

    def begin_anew(self, at: float) -> None:
        """Other objectives hold from then on: what was before is not held against the settings by them."""
        # later than that while what was written settles
        self._begun = max(self._begun, at)

    def closed(self, at: float, policy: Policy) -> List[Window]:
        """Give those that have ended since the last call, `at` being the newest sample's time; none without samples."""
        late = at - self._begun > 2 * policy.window
        if late or at < self._begun - policy.settle - policy.window:
            # the clock was set, or no sample came for long: these windows tell nothing
            self._begun = at
        windows: List[Window] = []
        while self._begun + policy.window <= at:
            begun, self._begun = self._begun, self._begun + policy.window
            window = self._aim.between(begun, self._begun)
            if window is not None:
                windows.append(window)
        return windows
