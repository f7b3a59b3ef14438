"""What the OSDs of a real cluster hold of an erasure-coded pool, as samples tell it and as Ceph's own `df` does."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import Dict, Iterator, Tuple

import pytest

from ceph_lab.cluster import Lab
from ceph_tuner.cluster.sampler import ClusterSampler
from ceph_tuner.cluster.session import Session
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.errors import RetryLater
from rebuilding import MIB, rebuilds_once

pytestmark = pytest.mark.long_on_reef

POOL, OBJECTS = "shards", 40


@pytest.fixture
def coded(any_lab: Lab) -> Iterator[Session]:
    """A session with a cluster that has a pool of 40 objects of 1 MiB in two data shards and one coding shard each."""
    any_lab.run(f"ceph osd erasure-code-profile set {POOL} k=2 m=1 crush-failure-domain=osd".split())
    any_lab.run(f"ceph osd pool create {POOL} 8 8 erasure {POOL} --autoscale-mode=off".split())
    try:
        any_lab.run(f"rados -p {POOL} bench 60 write -b {MIB} --max-objects {OBJECTS} --no-cleanup".split())
        with Session(any_lab.argv) as session:
            yield session
    finally:
        any_lab.run(f"ceph osd pool delete {POOL} {POOL} --yes-i-really-really-mean-it".split())
        any_lab.run(f"ceph osd erasure-code-profile rm {POOL}".split())


def test_a_shard_holds_a_kth_of_an_object(coded: Session) -> None:
    written, deadline = 1.5 * OBJECTS * MIB, time.monotonic() + 90
    seen: Tuple[float, float] = (0.0, 0.0)
    # a coding shard beside two of data, and hardly anything of rados bench's own
    while seen != pytest.approx((written, written), rel=0.05):
        assert time.monotonic() < deadline, seen
        time.sleep(1)
        # the mgr hears of the PGs every five seconds, and one that has just begun of none
        with suppress(RetryLater):
            read = ClusterSampler(coded, SystemClock()).read()
            # nor of a pool
            for pool in json.loads(coded.mon("df", {"detail": "detail"}))["pools"]:
                if pool["name"] == POOL:
                    pgs = [pg for name, pg in read.pgs.items() if int(name.split(".")[0]) == pool["id"]]
                    seen = (sum(pg.raw_bytes for pg in pgs), float(pool["stats"]["bytes_used"]))


def test_what_is_rebuilt_of_an_erasure_coded_pool_is_counted_once_an_object(any_lab: Lab, coded: Session) -> None:
    """An OSD's own counter has nothing of it: `recovery_bytes` is what is pushed of copies."""
    before = pushed(any_lab)
    rebuilds_once(any_lab, coded, POOL, OBJECTS)
    after = pushed(any_lab)
    # osd.0 was restarted in it, and counts from 0
    assert after[0] + sum(after[osd] - before[osd] for osd in any_lab.osds if osd) < 0.05 * OBJECTS * MIB


def pushed(lab: Lab) -> Dict[int, float]:
    """OSD -> its `recovery_bytes`."""
    return {
        osd: float(lab.json(["ceph", "tell", f"osd.{osd}", "perf", "dump", "osd"])["osd"]["recovery_bytes"])
        for osd in lab.osds
    }
