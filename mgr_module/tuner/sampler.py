"""The sampling loop: a reading each interval, the newest samples at hand, a window each minute into the history."""

from __future__ import annotations

import gc
import threading
import time
from collections import deque
from typing import Callable, Deque, Dict, List, Mapping, Optional, Protocol, Sequence, Tuple

from ceph_tuner.core.measure.history import MINUTE, History
from ceph_tuner.core.measure.metrics import PERCENTILES, Scope
from ceph_tuner.core.measure.reading import Reading
from ceph_tuner.core.measure.sample import Sample, Window, window_of
from ceph_tuner.core.measure.sampling import CLOCK_STEP_S, SampleCoverage
from ceph_tuner.core.measure.sampling_by_scope import SamplingByScope
from ceph_tuner.core.measure.scopes import Members

from .sampler_groups import GroupSampler, keep

FAILURES_TOLERATED = 3
KEPT_S = 600.0


def exempt_what_is_loaded() -> None:
    """Have Python's garbage collection go no more through what is there now: code, which stays until the mgr ends.

    A full collection goes through all objects of the interpreter, which each module of a mgr has for itself.
    """
    gc.collect()
    gc.freeze()


class Reader(Protocol):
    """Takes a reading of the cluster."""

    def read(
        self, now: float, groups: Sequence[Sequence[int]] = (), scopes: Optional[Mapping[Scope, Members]] = None
    ) -> Reading:
        """The cluster at `now`; the OSDs of the groups and scopes come first where not all can be asked."""


class Sampler:
    """Everything that happens in a tick. `tick` is called by one thread; the rest by any.

    `steady` is a clock that nobody sets; without one, the machine's beside `time.time`, and none beside another clock.
    """

    def __init__(
        self,
        reader: Reader,
        history: Callable[[], History],
        now: Callable[[], float] = time.time,
        steady: Optional[Callable[[], float]] = None,
        after_ten_minutes: Callable[[], None] = lambda: None,
    ) -> None:
        """`after_ten_minutes` is called when another ten minutes are in the history."""
        self._after_ten_minutes = after_ten_minutes
        self._reader, self._history, self._now = reader, history, now
        self._steady = steady or (time.monotonic if now is time.time else now)
        self._ahead: Optional[float] = None
        self.groups = GroupSampler()
        self._sampling = SamplingByScope()
        self.scopes: Mapping[Scope, Members] = {}
        """Device classes and pools that are sampled by themselves."""
        self._lock = threading.Lock()
        self._samples: Deque[Tuple[Sample, SampleCoverage]] = deque()
        self._windows: Dict[float, Optional[Window]] = {}
        """Seconds -> the window up to the newest sample: each mode asks for the same ones."""
        self._minute: List[Sample] = []
        self._failure: Optional[str] = None
        self._failures = 0
        self._tick_s = 0.0

    def tick(self) -> None:
        """Sample once. Raises whatever the cluster does; the loop goes on after it."""
        start = time.monotonic()
        try:
            now = self._now()
            self._notice_clock(now)
            scopes = self.scopes
            reading = self._reader.read(now, self.groups.members(), scopes)
            sample = self._sampling.take(reading, scopes)
            self.groups.take(reading)
            if sample is not None:
                self._keep(sample)
            self._failures, self._failure = 0, None
        except Exception as error:
            self._failures += 1
            self._failure = f"{type(error).__name__}: {error}"
            raise
        finally:
            self._tick_s = time.monotonic() - start

    def latest(self) -> Optional[Sample]:
        """The newest sample."""
        with self._lock:
            return self._samples[-1][0] if self._samples else None

    def window(self, seconds: float) -> Optional[Window]:
        """The samples of the last `seconds` as one window."""
        with self._lock:
            windows = self._windows
            newest = self._samples[-1][0].at if self._samples else 0.0
        if seconds not in windows:
            windows[seconds] = self.between(newest - seconds, newest)
        return windows[seconds]

    def between(self, start: float, end: float) -> Optional[Window]:
        """The samples that ended after `start` and not after `end` as one window; None where there are none."""
        with self._lock:
            samples = [sample for sample, _ in self._samples if start < sample.at <= end]
        return window_of(samples)

    def group_between(self, name: str, start: float, end: float, of: str = "") -> Dict[str, float]:
        """Means of a group over that stretch of time, without percentiles of too few of its OSDs."""
        window = self.groups.window_of_group(name, start, end, of)
        if window is None:
            return {}
        return {
            name: mean
            for name, mean in window.means.items()
            if not (window.partial and name.endswith(tuple(PERCENTILES)))
        }

    def scrubs_since(self, scope: Optional[Scope] = None) -> Optional[float]:
        """When the oldest scrub under way began, anywhere or in a class; None where none is known to be."""
        return self._sampling.scrubs_since(scope)

    @property
    def tick_s(self) -> float:
        """How long the last tick took."""
        return self._tick_s

    @property
    def failures(self) -> int:
        """Samples in a row that failed."""
        return self._failures

    def health(self) -> Dict[str, str]:
        """Health check -> its message."""
        if self._failures < FAILURES_TOLERATED:
            return {}
        return {"TUNER_SAMPLING_FAILED": f"no samples, {self._failures} failures in a row; the last: {self._failure}"}

    def _notice_clock(self, now: float) -> None:
        """Start again when the clock was set: a difference of stamps is no time then."""
        before, self._ahead = self._ahead, now - self._steady()
        if before is not None and abs(self._ahead - before) > CLOCK_STEP_S:
            self._sampling = SamplingByScope()
            self.groups.start_again()

    def _keep(self, sample: Sample) -> None:
        with self._lock:
            keep(self._samples, (sample, self._sampling.coverage), KEPT_S)
            # a new one, so that a window of before, which is made just now, is not taken for one of this sample
            self._windows = {}
        if self._minute and sample.at // MINUTE != self._minute[0].at // MINUTE:
            full, self._minute = self._minute, [sample]
            window = window_of(full)
            if window is not None:
                self._history().add_window(window)
                if sample.at // (10 * MINUTE) != full[0].at // (10 * MINUTE):
                    self._after_ten_minutes()
        else:
            self._minute.append(sample)
