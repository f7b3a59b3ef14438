"""Whether the turns of a mode are still taken: the lock of its trial is renewed for so long only."""

from __future__ import annotations

import time

SILENCE_S = 900.0
"""After so long without a turn the plugin hangs: its lock ends, and whoever takes it next takes the trial back."""


class Pulse:
    """Beaten by the thread that takes turns, asked by the thread that renews the lock."""

    def __init__(self) -> None:
        self._beaten = time.monotonic()

    def beat(self) -> None:
        """Give a sign of life, some times in SILENCE_S."""
        self._beaten = time.monotonic()

    def beats(self) -> bool:
        """Whether the last one is not too long ago."""
        return time.monotonic() - self._beaten < SILENCE_S
