"""A lab that a benchmark writes to: under the lock, and with what an earlier run left behind taken back."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Iterator, NamedTuple

from ceph_lab.cluster import Lab, lab_of
from ceph_tuner.cluster import Cluster, open_cluster
from ceph_tuner.core.ceph.ports import Clock
from ceph_tuner.core.changes.applier import Applier
from ceph_tuner.core.changes.lock import Lock
from ceph_tuner.core.changes.lock_owner import may_live, this_process
from ceph_tuner.core.goals.guard import GuardLimits
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.tune import MeasuredWork
from ceph_tuner.tune.interrupts import Interrupts
from ceph_tuner.tune.measurement import Timing, TrialRunner
from ceph_tuner.tune.on_cluster import ClusterLookout, JournalledWriter
from ceph_tuner_cli.tune_page import TuneProgress


class LockedLab(NamedTuple):
    """A lab as the cluster that it is, and who writes to it."""

    cluster: Cluster
    lab: Lab
    target: str
    """The OSDs whose settings are tried: all, or those of one device class."""
    writer: JournalledWriter
    """Writes a trial's settings onto these."""

    def runner(
        self, slo: Slo, work: MeasuredWork, clock: Clock, progress: TuneProgress, interrupts: Interrupts, timing: Timing
    ) -> TrialRunner:
        """Who measures trials on it. How far settings miss a bound is the result here, so no miss ends a window."""
        lookout = ClusterLookout(self.cluster.commander, clock)
        limits = GuardLimits(gross=1000.0)
        return TrialRunner(slo, work, lookout, self.writer, clock, progress, interrupts, timing, limits)


@contextmanager
def locked_lab(name: str, clock: Clock, program: str, device_class: str = "") -> Iterator[LockedLab]:
    """Open it and hold its lock, for trials on the OSDs of a device class or on all; `program` is who the journal says
    writes. Raises TunerError.
    """
    target = f"osd/class:{device_class}" if device_class else "osd"
    cluster = open_cluster(name)
    try:
        lab = lab_of(cluster)
        assert lab is not None, "the load is a lab's scenario"
        with Lock(cluster.store, clock, this_process(), may_live) as lock:
            applier = Applier(cluster.config, cluster.store, clock, lock, cluster.release, program)
            applier.recover()
            hardware = cluster.in_force(target).hardware
            writer = JournalledWriter(applier, (target,), cluster.release, hardware, "benchmark")
            yield LockedLab(cluster, lab, target, writer)
    finally:
        cluster.close()
