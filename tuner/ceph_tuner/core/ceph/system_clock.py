"""The machine's own clock."""

from __future__ import annotations

import time

_PIECE_S = 1.0
"""The longest sleep without a look at what signals came."""


class SystemClock:
    """`ports.Clock` by the machine's own."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds since the machine started, those that it was suspended for included where the system counts them."""
        return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Sleep; signals end it by what their handlers raise."""
        end = time.monotonic() + seconds
        while True:
            left = end - time.monotonic()
            # in pieces: a signal that strikes just before a sleep begins is heard only when that one is over
            time.sleep(min(max(0.0, left), _PIECE_S))
            if left <= _PIECE_S:
                return
