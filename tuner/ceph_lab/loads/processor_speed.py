"""Whether this machine's processors run at their usual speed.

A host may slow the processors of a virtual machine down for a moment, and neither its load nor its stolen time tells.
So a small piece of work is done every few milliseconds, and timed by the thread's own clock: waiting for a processor
does not count.
"""

from __future__ import annotations

import os
import threading
import time
import zlib
from array import array
from contextlib import suppress
from typing import List, NamedTuple, Optional, Tuple

import numpy as np

from ceph_lab.loads.open_loop import PRIORITY

STEP_S = 0.005
SLOW_TIMES = 3.0
"""So many times its usual duration is slow. Two threads of a core that share it are slower by less."""

APART_S = 0.03
"""Slow moments that are nearer to each other are one stretch."""

KEPT = 720_000
"""Moments that are remembered, about an hour; the older half goes when there are more."""

_WORK = bytes(32 * 1024)


class Stretch(NamedTuple):
    """Seconds since the epoch."""

    start: float
    end: float


class ProcessorSpeed:
    """Looks on from `start` until `stop`; what it saw stays."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._at, self._took_ns = array("d"), array("q")
        self._thread: Optional[threading.Thread] = None

    def start(self) -> None:
        """Begin to look, in a thread of its own."""
        self._over.clear()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Look no more. Idempotent."""
        thread, self._thread = self._thread, None
        self._over.set()
        if thread is not None:
            thread.join()

    def add(self, at: float, took_ns: int) -> None:
        """A piece of work ended at that second since the epoch, after so long."""
        with self._lock:
            if len(self._at) >= KEPT:
                del self._at[: KEPT // 2], self._took_ns[: KEPT // 2]
            self._at.append(at)
            self._took_ns.append(took_ns)

    def slow(self, start: float, end: float) -> Tuple[Stretch, ...]:
        """Stretches between these seconds since the epoch in which the processors were slow."""
        with self._lock:
            at, took = np.array(self._at), np.array(self._took_ns, float)
        if not len(at):
            return ()
        # what is slow for half of the time is its usual speed
        moments = at[(took > SLOW_TIMES * np.median(took)) & (at > start - APART_S) & (at < end + APART_S)]
        groups = np.split(moments, np.nonzero(np.diff(moments) > APART_S)[0] + 1) if len(moments) else []
        stretches: List[Stretch] = []
        for group in groups:
            first, last = max(start, float(group[0]) - STEP_S), min(end, float(group[-1]) + STEP_S)
            if first < last:
                stretches.append(Stretch(first, last))
        return tuple(stretches)

    def _look(self) -> None:
        # as the clients': what is late has to be seen then, and not after
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), PRIORITY)
        while not self._over.wait(STEP_S):
            began = time.thread_time_ns()
            zlib.crc32(_WORK)
            took = time.thread_time_ns() - began
            self.add(time.time(), took)
