"""The sampling loop: a reading each interval, the newest samples at hand, a window each minute into the history."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Callable, Deque, Dict, List, Optional, Protocol

from ceph_tuner.history import MINUTE, History
from ceph_tuner.reading import Reading
from ceph_tuner.sample import Sample, Window, window_of
from ceph_tuner.sampling import Sampling

FAILURES_TOLERATED = 3
KEPT_S = 600.0


class Reader(Protocol):
    """Takes a reading of the cluster."""

    def read(self, now: float) -> Reading:
        """The cluster at `now`."""


class Sampler:
    """Everything that happens in a tick. `tick` is called by one thread; the rest by any."""

    def __init__(self, reader: Reader, history: Callable[[], History], now: Callable[[], float] = time.time) -> None:
        self._reader, self._history, self._now = reader, history, now
        self._sampling = Sampling()
        self._lock = threading.Lock()
        self._samples: Deque[Sample] = deque()
        self._minute: List[Sample] = []
        self._failure: Optional[str] = None
        self._failures = 0
        self._tick_s = 0.0

    def tick(self) -> None:
        """Sample once. Raises whatever the cluster does; the loop goes on after it."""
        started = time.monotonic()
        try:
            now = self._now()
            sample = self._sampling.take(self._reader.read(now))
            if sample is not None:
                self._keep(sample)
            self._failures, self._failure = 0, None
        except Exception as error:
            self._failures += 1
            self._failure = f"{type(error).__name__}: {error}"
            raise
        finally:
            self._tick_s = time.monotonic() - started

    def latest(self) -> Optional[Sample]:
        """The newest sample."""
        with self._lock:
            return self._samples[-1] if self._samples else None

    def window(self, seconds: float) -> Optional[Window]:
        """The samples of the last `seconds` as one window."""
        with self._lock:
            newest = self._samples[-1].at if self._samples else 0.0
            recent = [sample for sample in self._samples if sample.at > newest - seconds]
        return window_of(recent)

    @property
    def tick_s(self) -> float:
        """How long the last tick took."""
        return self._tick_s

    def health(self) -> Dict[str, str]:
        """Health check -> its message."""
        if self._failures < FAILURES_TOLERATED:
            return {}
        return {"TUNER_SAMPLING_FAILED": f"no samples, {self._failures} failures in a row; the last: {self._failure}"}

    def _keep(self, sample: Sample) -> None:
        with self._lock:
            self._samples.append(sample)
            while self._samples[0].at < sample.at - KEPT_S:
                self._samples.popleft()
        if self._minute and sample.at // MINUTE != self._minute[0].at // MINUTE:
            full, self._minute = self._minute, [sample]
            window = window_of(full)
            if window is not None:
                self._history().add_window(window)
        else:
            self._minute.append(sample)
