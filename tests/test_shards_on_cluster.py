"""Every shard of an OSD on real clusters of both releases: by dmClock's clocks under client load."""

from __future__ import annotations

import json
import subprocess
import time
from contextlib import contextmanager
from typing import Iterator, List, Tuple

import pytest

from ceph_lab.cluster import Lab
from ceph_tuner.cluster import Cluster, open_cluster
from ceph_tuner.core.changes.applier import Applier
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import nine
from ceph_tuner.core.measure.queue_dump import Dump, read_tags, served

CUSTOM = nine((0.3, 3, 0.8), (0.2, 1, 0.5), (0.05, 1, 0.4))
UNRESERVED = nine((0, 1, 0.9), (0.2, 1, 0.5), (0.05, 1, 0.4))
LIMIT = "osd_mclock_scheduler_client_lim"


@pytest.fixture(scope="module")
def cluster(any_lab: Lab) -> Iterator[Cluster]:
    opened = open_cluster(any_lab.name)
    yield opened
    opened.close()


@contextmanager
def clients(lab: Lab) -> Iterator[None]:
    """Small writes to many PGs for as long as it takes to look twice."""
    command = ["rados", "bench", "-p", "rbd", "5", "write", "-b", "4096", "-t", "32"]
    with subprocess.Popen(lab.argv(command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as bench:
        time.sleep(1.5)
        yield
        bench.wait(60)


def clocks(lab: Lab, cluster: Cluster) -> List[Tuple[bool, bool]]:
    """Of every shard that served clients: whether by a reservation, whether by a limit."""

    def look(osd: int) -> Dump:
        return read_tags(json.loads(cluster.commander.tell(f"osd.{osd}", "dump_op_pq_state", {})))

    with clients(lab):
        before = {osd: look(osd) for osd in lab.osds}
        time.sleep(2)
        found = [item for osd in lab.osds for item in served(before[osd], look(osd))]
    assert found
    return [(item.by_reservation, item.by_limit) for item in found if item.service_class == "client"]


def reread(applier: Applier) -> None:
    applier.apply(applier.plan_rereading("osd"))
    time.sleep(1)


def test_the_clocks_of_a_shard_tell_whether_a_class_has_a_reservation_and_a_limit(
    any_lab: Lab, cluster: Cluster
) -> None:
    applier = cluster.applier()
    assert set(clocks(any_lab, cluster)) == {(True, False)}
    applier.apply(applier.plan("osd", UNRESERVED))
    try:
        # where clients always wait, a reservation's clock that stands says nothing
        unreserved = set(clocks(any_lab, cluster))
        assert (False, True) in unreserved
        assert unreserved <= {(False, True), (True, True)}
    finally:
        applier.undo()
    assert set(clocks(any_lab, cluster)) == {(True, False)}


def test_reading_again_reaches_every_shard_under_a_built_in_profile(any_lab: Lab, cluster: Cluster) -> None:
    """Shown by a limit that sleeps at a mask, which no OSD removes: it wakes up, and goes."""
    applier = cluster.applier()
    hosts = {place.locations["host"] for place in cluster.config.places()}
    for host in hosts:
        cluster.config.set(f"osd/host:{host}", LIMIT, "0.9")
    try:
        time.sleep(1)
        assert set(clocks(any_lab, cluster)) == {(True, False)}
        name, value = "osd_mclock_max_sequential_bandwidth_hdd", "157286401"
        cluster.config.set("osd", name, value)
        time.sleep(1)
        assert set(clocks(any_lab, cluster)) == {(True, True)}
        cluster.config.remove("osd", name)
    finally:
        for host in hosts:
            cluster.config.remove(f"osd/host:{host}", LIMIT)
    time.sleep(1)
    before = cluster.config.dump()
    reread(applier)
    assert set(clocks(any_lab, cluster)) == {(True, False)}
    assert cluster.config.dump() == before


def test_after_every_way_to_a_built_in_profile_all_shards_have_its_values(any_lab: Lab, cluster: Cluster) -> None:
    applier = cluster.applier()
    initial = cluster.config.dump()
    for settings, restarted in ((CUSTOM, False), (CUSTOM, True), ({PROFILE: "high_recovery_ops"}, False)):
        applier.apply(applier.plan("osd", settings))
        if restarted:
            any_lab.stop_osd(any_lab.osds[0])
            any_lab.start_osd(any_lab.osds[0])
            time.sleep(2)
        applier.apply(applier.plan("osd", {PROFILE: "high_client_ops"}))
        assert set(clocks(any_lab, cluster)) == {(True, False)}
        applier.undo(everything=True)
        assert set(clocks(any_lab, cluster)) == {(True, False)}
        assert cluster.config.dump() == initial
