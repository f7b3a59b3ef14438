"""Work for a lab cluster: clients, recovery, backfill, scrub and snaptrim, each measured by counters of its own.

A load is prepared (slow, as often as wanted), started, observed about once a second, and stopped. While it runs, the
caller cuts windows out of it: `measure(start, end)` gives that stretch alone. What is counted comes from fio and from
the primaries' own PG statistics, never from what the plugin samples, so that the two can be held against each other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ContextManager, Dict, List, Mapping, Optional, Protocol, Sequence, Tuple

from ceph_tuner.core.measure.sample import Measure

if TYPE_CHECKING:
    from ceph_lab.loads.pools import LoadPool


class LabUnderLoad(Protocol):
    """What a load uses of `lab.cluster.Lab`."""

    @property
    def name(self) -> str:
        """For messages."""

    @property
    def conf(self) -> str:
        """Path of ceph.conf inside the lab."""

    @property
    def osds(self) -> List[int]:
        """Ids of all OSDs."""

    @property
    def classes(self) -> Mapping[str, Sequence[int]]:
        """Device class -> ids of its OSDs."""

    def argv(self, command: Sequence[str]) -> List[str]:
        """Arguments on the host that run a command inside the lab."""

    def run(self, command: Sequence[str], payload: Optional[str] = None, timeout: float = 60) -> str:
        """Standard output of a command inside the lab. Raises CommandFailed or LoadFailed."""

    def in_haste(self) -> ContextManager[None]:
        """Meanwhile emulated drives take no time."""

    def stop_osd(self, osd: int) -> None:
        """Return when the OSD's process is gone."""

    def start_osd(self, osd: int) -> None:
        """Start its process again."""


@dataclass(frozen=True)
class LoadProgress:
    """Work done since `start`, and work left; None where a load has no end."""

    done_objects: float
    done_bytes: float
    left_objects: Optional[float]
    left_bytes: Optional[float]

    @property
    def fraction(self) -> Optional[float]:
        """0 to 1; None where a load has no end."""
        if self.left_objects is None:
            return None
        whole = self.done_objects + self.left_objects
        return self.done_objects / whole if whole > 0 else 1.0


@dataclass(frozen=True)
class LoadResult:
    """What a load measured from start to stop: metrics, raw evidence for the record, and remarks for people."""

    name: str
    metrics: Dict[str, Measure]
    evidence: Dict[str, Any]
    notes: Tuple[str, ...] = field(default=())


class Load(Protocol):
    """One kind of work. Every method may raise LoadFailed, ClusterTimeout or CommandFailed."""

    @property
    def name(self) -> str:
        """Of the command and of the pool (`load-NAME`)."""

    @property
    def metrics(self) -> Tuple[str, ...]:
        """Names out of `ceph_tuner.core.measure.metrics` that `measure` can give."""

    @property
    def pools(self) -> Sequence[LoadPool]:
        """Where its objects lie."""

    def stores(self) -> Mapping[int, float]:
        """Bytes that it has on each OSD once it is prepared."""

    def hold(self) -> None:
        """Hold back what an earlier run left to do, so that nobody has to wait until it is done."""

    def prepare(self) -> None:
        """Bring the cluster to where `start` begins the work at once. Idempotent, slow."""

    def lasts_s(self) -> Optional[float]:
        """Seconds of work at the drives' full speed, once prepared; None where it has no end."""

    def start(self) -> None:
        """Begin the work. Returns as soon as it has begun."""

    def observe(self) -> None:
        """Read the counters and keep the work going; to be called about once a second from start to stop."""

    def progress(self) -> LoadProgress:
        """As of the last observation."""

    def idle_since(self) -> Optional[float]:
        """When the work ran out (seconds since the epoch); None while there is some."""

    def measure(self, start: float, end: float) -> Dict[str, Measure]:
        """Metrics of that stretch of time. A metric that was not seen is absent."""

    def remarks(self, measures: Mapping[str, Measure], seconds: float) -> Tuple[str, ...]:
        """What people should know of such a measurement."""

    def stop(self) -> LoadResult:
        """End the work and clear every flag that `prepare` and `start` set. Stopping what does not run is no error."""

    def cleanup(self) -> None:
        """Remove pools, snapshots and flags, also those that an interrupted run left behind."""
