"""What a real cluster counts of an erasure-coded pool's rebuilt objects, as a reading tells it."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest

from ceph_lab.cluster import Lab
from ceph_tuner.cluster.sampler import ClusterSampler
from ceph_tuner.cluster.session import Session
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.errors import RetryLater

MIB = 1 << 20


def recovered(session: Session) -> float:
    """Bytes so far; the active mgr may not have heard of the PGs yet."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(RetryLater):
            return ClusterSampler(session, SystemClock()).read().coded_recovered or 0.0
        time.sleep(1)
    raise AssertionError("the mgr has not heard of the PGs")


def rebuilds_once(lab: Lab, session: Session, pool: str, objects: int, seconds: float = 90) -> None:
    """Write objects of 1 MiB over those that are there, without osd.0: what is rebuilt once it is back is their bytes.

    Raises AssertionError where that is not so within 3%.
    """
    before = recovered(session)
    lab.stop_osd(0)
    try:
        write = f"rados -p {pool} bench 60 write -b {MIB} --max-objects {objects} --no-cleanup"
        lab.run(write.split(), timeout=seconds)
    finally:
        lab.start_osd(0)
    rebuilt, deadline = 0.0, time.monotonic() + seconds
    while rebuilt != pytest.approx(objects * MIB, rel=0.03):
        assert time.monotonic() < deadline, rebuilt / MIB
        time.sleep(2)
        rebuilt = recovered(session) - before
