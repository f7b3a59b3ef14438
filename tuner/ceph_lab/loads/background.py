"""What recovery, backfill, scrub and snaptrim have in common: a pool, a trace of its counters, an end of the work."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Callable, ClassVar, Dict, List, Mapping, Optional, Tuple

from ceph_lab.loads import LoadProgress, LoadResult
from ceph_lab.loads.pools import Flags, LoadPool, Tell, silent, total, write_in_batches
from ceph_lab.loads.session import LabSession
from ceph_lab.loads.trace import Trace
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed, LoadFailed, TunerError
from ceph_tuner.core.measure.sample import Measure

NEARLY_DONE = 0.03
"""The last few objects trickle with no parallelism left: from here on, the work counts as run out."""


@dataclass(frozen=True)
class WorkReading:
    """Counters that only grow, and the work left (None where there is no end)."""

    counters: Dict[str, float]
    left_objects: Optional[float]


class BackgroundLoad(ABC):
    """A load without a process of its own: the cluster does the work."""

    name = ""
    rates: ClassVar[Dict[str, str]] = {}
    """Metric -> the counter that it is the growth of. The counters `objects` and `bytes` are what progress shows."""

    held_by: ClassVar[Tuple[str, ...]] = ()
    """Cluster flags under which the work waits; the last one is what `start` clears."""

    def __init__(self, session: LabSession, pool: LoadPool, object_bytes: int, tell: Tell = silent) -> None:
        self.session = session
        self.pool = pool
        self.object_bytes = object_bytes
        self.tell = tell
        self.flags = Flags(session)
        self._trace = Trace()
        self._first_left: Optional[float] = None
        self._left: Optional[float] = None
        self._started: Optional[float] = None
        self._last: float = 0.0
        self._idle_since: Optional[float] = None
        self._notes: List[str] = []

    @property
    def pools(self) -> Tuple[LoadPool, ...]:
        """Those that it needs."""
        return (self.pool,)

    @property
    def metrics(self) -> Tuple[str, ...]:
        """What `measure` can give."""
        return tuple(self.rates)

    @abstractmethod
    def stores(self) -> Dict[int, float]:
        """Bytes on each OSD."""

    def hold(self) -> None:
        """Set the flags that hold the work back."""
        for flag in self.held_by:
            self.flags.set(flag)

    @abstractmethod
    def prepare(self) -> None:
        """Bring the cluster to where `start` begins the work at once."""

    @abstractmethod
    def read(self) -> WorkReading:
        """How much of the work is done and left, by Ceph's counters at this moment."""

    @abstractmethod
    def release(self) -> None:
        """Let the work begin."""

    @abstractmethod
    def halt(self) -> None:
        """End the work, whatever state it is in; clear every flag."""

    def lasts_s(self) -> Optional[float]:
        """Seconds of work at the drives' full speed; None where it has no end."""
        return None

    def start(self) -> None:
        """Begin the work and its trace."""
        self._trace, self._idle_since, self._notes = Trace(), None, []
        self._first_left = self._left = None
        self._started = time.time()
        self._record()
        self.release()

    def observe(self) -> None:
        """Read the counters. A moment without an answer is no failure: the next observation counts on from there."""
        if self._started is None:
            return
        try:
            self._record()
        except (ClusterTimeout, CommandFailed) as error:
            self._notes.append(f"one observation failed: {error}")

    def fill(self, count: int) -> List[str]:
        """Have `count` objects and no others in the pool, written once. Gives their names."""
        names = [f"object-{self.object_bytes}.{number}" for number in range(count)]
        pgs = self.pool.pgs()
        there = total(pgs, "num_objects") - total(pgs, "num_object_clones")
        if there == count and self.session.size(self.pool.name, names[-1]) == self.object_bytes:
            return names
        if there > 0:
            # of another run: they would be scrubbed and moved as well
            self.tell(f"{self.pool.name} holds other objects: it is made anew")
            self.pool.remove()
            self.pool.ensure()
            wait_for("the old objects are deleted", lambda: self.pool.without_strays(self.pool.pgs()), timeout=900)
        write_in_batches(self.pool, names, self.object_bytes, self.tell)
        return names

    def progress(self) -> LoadProgress:
        """As of the last observation."""
        done, left_objects = self._trace.total("objects"), self._left
        left_bytes = None if left_objects is None else left_objects * self.object_bytes
        return LoadProgress(done, self._trace.total("bytes"), left_objects, left_bytes)

    def idle_since(self) -> Optional[float]:
        """When the work ran out."""
        return self._idle_since

    def measure(self, start: float, end: float) -> Dict[str, Measure]:
        """Rates of that stretch."""
        metrics = {}
        for metric, counter in self.rates.items():
            measure = self._trace.rate(counter, start, end)
            if measure is not None:
                metrics[metric] = measure
        return metrics

    def remarks(self, measures: Mapping[str, Measure], seconds: float) -> Tuple[str, ...]:
        """Observations that failed."""
        return tuple(dict.fromkeys(self._notes))

    def stop(self) -> LoadResult:
        """End the work and clear the flags, even where the last reading fails."""
        start, self._started = self._started, None
        try:
            if start is not None:
                self._record()
        except TunerError as error:
            self._notes.append(f"the last reading failed: {error}")
        finally:
            self.halt()
        if start is None:
            return LoadResult(self.name, {}, {}, tuple(self._notes))
        end = self._idle_since or time.time()
        progress = self.progress()
        evidence: Dict[str, Any] = {
            "pool": self.pool.name,
            "started": start,
            "ended": end,
            "done_objects": progress.done_objects,
            "done_bytes": progress.done_bytes,
            "left_objects": progress.left_objects,
        }
        return LoadResult(self.name, self.measure(start, end), evidence, tuple(self._notes))

    def cleanup(self) -> None:
        """Remove what a run, even an interrupted one, left behind."""
        self._started = None
        self.halt()
        self.pool.remove()

    def _record(self) -> None:
        reading = self.read()
        now = time.time()
        self._trace.add(now, reading.counters)
        self._left = reading.left_objects
        if reading.left_objects is not None:
            if self._first_left is None:
                self._first_left = reading.left_objects
            if self._idle_since is None and reading.left_objects <= NEARLY_DONE * self._first_left:
                self._idle_since = self._last or now
        self._last = now


def wait_for(what: str, condition: Callable[[], bool], timeout: float, pause: float = 0.5) -> None:
    """Ask until `condition()` is true. Raises LoadFailed that names what was waited for."""
    until = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > until:
            raise LoadFailed(f"waited {timeout:.0f} s in vain until {what}")
        time.sleep(pause)
