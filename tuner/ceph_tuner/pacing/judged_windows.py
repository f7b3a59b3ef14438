"""Windows of a cluster while work is paced: sampled here, or by the plugin where there are too many OSDs for that."""

from __future__ import annotations

from collections import deque
from typing import Deque, List, Optional, Protocol, Sequence

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.cluster.sampler import OSDS_MAX, ClusterSampler
from ceph_tuner.core.errors import InputError, TunerError
from ceph_tuner.core.measure.history import MINUTE, History
from ceph_tuner.core.measure.metrics import Scope
from ceph_tuner.core.measure.sample import Sample, Window, window_of

_WHOLE = 0.8
"""Share of a window's time that samples must cover."""


class JudgedWindows(Protocol):
    """Where windows come from."""

    @property
    def seconds(self) -> float:
        """How long a window is."""

    def look(self) -> None:
        """Look at the cluster now; what does not answer is looked at again the next time.

        Raises InputError (PermissionRefused), which no second look mends.
        """

    def window(self, since: float) -> Optional[Window]:
        """A window of what came after that moment; None while there is not enough of it."""


class SampledWindows:
    """By a sampler of our own. One look costs two commands an OSD."""

    def __init__(self, cluster: Cluster, scopes: Sequence[Scope], seconds: float) -> None:
        self._sampler = ClusterSampler(cluster.commander, cluster.clock, scopes)
        self.seconds = seconds
        self._samples: Deque[Sample] = deque()

    def look(self) -> None:
        """Sample."""
        try:
            sample = self._sampler.sample()
        except InputError:
            raise
        except TunerError:
            # the next sample covers its time
            return
        if sample is None:
            return
        while self._samples and self._samples[-1].at >= sample.at:
            # of a clock that was ahead
            self._samples.pop()
        self._samples.append(sample)
        while self._samples[0].at < sample.at - self.seconds:
            self._samples.popleft()

    def window(self, since: float) -> Optional[Window]:
        """Of the samples that lie after that moment, as a whole."""
        own = [sample for sample in self._samples if sample.at - sample.seconds >= since - 0.5]
        if sum(sample.seconds for sample in own) < _WHOLE * self.seconds:
            return None
        return window_of(own)


class KeptWindows:
    """Those that the plugin keeps, a minute each."""

    seconds = MINUTE

    def __init__(self, cluster: Cluster) -> None:
        self._history, self._clock = History(cluster.store), cluster.clock
        self._newest: Optional[Window] = None

    def look(self) -> None:
        """Read the newest."""
        try:
            self._newest = self._history.newest(self._clock.now())
        except InputError:
            raise
        except TunerError:
            self._newest = None

    def window(self, since: float) -> Optional[Window]:
        """The newest, where it lies after that moment."""
        return self._newest if self._newest is not None and self._newest.start >= since else None


def kept_windows(cluster: Cluster) -> List[Window]:
    """All that the plugin keeps, each time once: a day of hours tells the day's shape; before that, minutes do."""
    history, now = History(cluster.store), cluster.clock.now()
    hours = history.hours(now)
    if len(hours) >= 24:
        return hours
    minutes = history.windows(now)
    return [*(hour for hour in hours if not minutes or hour.end <= minutes[0].start), *minutes]


def judged_s(osds: int, seconds: float) -> float:
    """How long a window is for so many OSDs, where `seconds` are asked for."""
    return seconds if osds <= OSDS_MAX else KeptWindows.seconds


def judged_windows(cluster: Cluster, osds: int, scopes: Sequence[Scope], seconds: float) -> JudgedWindows:
    """The way for so many OSDs. Raises InputError where the plugin would have to keep windows, and does not."""
    if osds <= OSDS_MAX:
        return SampledWindows(cluster, scopes, seconds)
    if History(cluster.store).newest(cluster.clock.now()) is None:
        raise InputError(
            f"cluster {cluster.name}",
            f"{osds} OSDs, and no window of the last minutes",
            "the plugin, which keeps windows (`ceph-tuner mgr install`), or no --keep",
        )
    return KeptWindows(cluster)
