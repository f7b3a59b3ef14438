"""Every shard of an OSD on real clusters of both releases: by dmClock's clocks under client load."""

from __future__ import annotations

import time
from typing import Iterator, List, Tuple

import pytest

from ceph_lab.cluster import Lab
from ceph_lab.loads.small_writes import small_writes
from ceph_tuner.cluster import Cluster, open_cluster
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.changes.applier import Applier
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import nine
from ceph_tuner.core.measure.queue_dump import served_meanwhile

pytestmark = pytest.mark.long_on_reef

CUSTOM = nine((0.3, 3, 0.8), (0.2, 1, 0.5), (0.05, 1, 0.4))
UNRESERVED = nine((0, 1, 0.9), (0.2, 1, 0.5), (0.05, 1, 0.4))
LIMIT = "osd_mclock_scheduler_client_lim"


class LaterClock(SystemClock):
    """An hour ahead, so that clocks that stand have stood for long: at these capacities a request moves them by ms."""

    def now(self) -> float:
        return super().now() + 3600.0


@pytest.fixture(scope="module")
def cluster(any_lab: Lab) -> Iterator[Cluster]:
    opened = open_cluster(any_lab.name)
    yield opened
    opened.close()


def clocks(lab: Lab, cluster: Cluster) -> List[Tuple[bool, bool]]:
    """Of every shard that served clients: whether by a reservation, whether by a limit."""
    with small_writes(lab, 5, settle_s=1.5):
        looks = served_meanwhile(cluster.commander, lab.osds, LaterClock(), 2.0)
    shards = [item for osd in lab.osds for item in looks[osd]]
    assert shards
    return [(item.by_reservation, item.by_limit) for item in shards if item.service_class == "client"]


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
