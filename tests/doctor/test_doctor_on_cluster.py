"""The doctor on a real cluster: planted faults are found, and nothing is changed."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Dict, Iterator, Tuple

import pytest

from ceph_lab.cluster import Lab
from ceph_tuner.cluster import Cluster, open_cluster
from ceph_tuner.doctor import POINTLESS, Finding, examine, gather
from config_dump import bring_back

CAPACITY = "osd_mclock_max_capacity_iops_ssd"


@pytest.fixture
def cluster(any_lab: Lab) -> Iterator[Cluster]:
    with closing(open_cluster(any_lab.name)) as opened:
        before = opened.config.dump()
        yield opened
        bring_back(opened.config, before)


def findings(cluster: Cluster) -> Tuple[Dict[str, Finding], Tuple[str, ...]]:
    facts = gather(cluster.commander, cluster.clock, cluster.release, cluster.version)
    return {finding.check: finding for finding in examine(facts)}, facts.notes


def wait_stored(cluster: Cluster, pool: str, seconds: float = 120) -> None:
    """Bytes of a pool and of its PGs are told every few seconds, and not together."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        facts = gather(cluster.commander, cluster.clock, cluster.release, cluster.version)
        found = next((entry for entry in facts.pools if entry.name == pool), None)
        if found and found.raw_bytes and any(pg.nbytes for pg in facts.pgs if pg.pool == found.number):
            return
        time.sleep(1)
    raise AssertionError(f"nothing is seen in pool {pool} after {seconds:g} s")


def test_every_fact_is_seen_and_looking_changes_nothing(cluster: Cluster) -> None:
    before = cluster.config.dump()
    found, notes = findings(cluster)
    assert notes == ()
    assert cluster.config.dump() == before
    # what is true of every lab: scrubs are off, Tentacle's own profile promises too much, loads have few PGs; and of a
    # busy machine's: leases come late
    assert set(found) - {"overbooked", "placement", "laggy-pgs"} == {"scrub-flags"}
    assert ("overbooked" in found) == (cluster.release.name == "tentacle")


def test_planted_settings_are_found(cluster: Cluster) -> None:
    cluster.config.remove("osd.0", CAPACITY)
    for row in (
        ("osd", "osd_scrub_cost", "1048576"),
        ("osd", "osd_max_scrubs", "2"),
        ("osd/host:h1", "osd_max_scrubs", "1"),
        ("osd/host:h1", "osd_mclock_scheduler_client_lim", "0.5"),
        ("osd", "bluestore_throttle_bytes", "67108864"),
    ):
        cluster.config.set(*row)
    found, _ = findings(cluster)
    assert "osd.0" in found["capacity-unmeasured"].evidence[0]
    assert "osd osd_scrub_cost 1048576" in found["ignored-knobs"].evidence[0]
    assert "osd/host:h1 osd_max_scrubs 1 over 2 of osd: osd.1" in found["leftovers"].evidence
    assert found["nine-under-built-in"].evidence[0].startswith("osd.1: 1 of the nine")
    # 8 289 writes on 800 IOPS
    assert found["throttle"].severity == POINTLESS


def test_what_is_on_trial_is_a_note_and_no_leftover(cluster: Cluster) -> None:
    with cluster.lock() as lock:
        applier = cluster.applier(lock)
        applier.apply(applier.plan("osd/host:h1", {"osd_max_scrubs": 1}), "a trial", trial=True)
        try:
            found, notes = findings(cluster)
        finally:
            applier.undo()
    assert "leftovers" not in found
    assert len(notes) == 1
    assert "on trial" in notes[0]


def test_an_osd_under_wpq_is_found_before_and_after_its_restart(cluster: Cluster, any_lab: Lab) -> None:
    cluster.config.set("osd.2", "osd_op_queue", "wpq")
    try:
        any_lab.stop_osd(2)
        # one that is down costs nothing but itself
        found, notes = findings(cluster)
        assert notes == ()
        assert "other-queue" not in found
        any_lab.start_osd(2)
        any_lab.wait_osd(2, True)
        found, _ = findings(cluster)
        assert found["other-queue"].evidence == ("osd.2: osd_op_queue is wpq",)
        cluster.config.remove("osd.2", "osd_op_queue")
        found, _ = findings(cluster)
        assert "no mClock queue runs" in found["other-queue"].evidence[0]
    finally:
        cluster.config.remove("osd.2", "osd_op_queue")
        any_lab.stop_osd(2)
        any_lab.start_osd(2)
        any_lab.wait_osd(2, True)
    found, _ = findings(cluster)
    assert "other-queue" not in found


def test_flags_and_an_interval_that_no_scrub_can_keep_are_found(cluster: Cluster, any_lab: Lab) -> None:
    # an instant, in which nothing at all can be read
    cluster.config.set("osd", "osd_deep_scrub_interval", "0.0001")
    any_lab.run(["ceph", "osd", "set", "norebalance"])
    any_lab.run(["ceph", "osd", "pool", "set", "rbd", "nodeep-scrub", "1"])
    # a lab scrubs when it is asked to
    any_lab.run(["ceph", "osd", "unset", "nodeep-scrub"])
    try:
        found, _ = findings(cluster)
    finally:
        any_lab.run(["ceph", "osd", "set", "nodeep-scrub"])
        any_lab.run(["ceph", "osd", "unset", "norebalance"])
        any_lab.run(["ceph", "osd", "pool", "set", "rbd", "nodeep-scrub", "0"])
    assert found["work-flags"].evidence == ("flags of the OSD map: norebalance",)
    assert found["scrub-flags"].evidence == ("flags of the OSD map: noscrub", "flag of pool rbd: nodeep-scrub")
    assert found["deep-scrub-allowed"].share == pytest.approx(1, abs=0.1)


def test_a_pool_s_own_interval_is_the_one_that_counts(cluster: Cluster, any_lab: Lab) -> None:
    any_lab.run(["sh", "-c", "head -c 1M /dev/urandom | rados -p rbd put doctor -"])
    wait_stored(cluster, "rbd")
    any_lab.run(["ceph", "osd", "pool", "set", "rbd", "deep_scrub_interval", "0.0001"])
    try:
        found, _ = findings(cluster)
    finally:
        any_lab.run(["ceph", "osd", "pool", "set", "rbd", "deep_scrub_interval", "0"])
        any_lab.run(["rados", "-p", "rbd", "rm", "doctor"])
    assert "ceph osd pool set rbd deep_scrub_interval SECONDS" in found["deep-scrub-allowed"].commands
    found, _ = findings(cluster)
    assert "deep-scrub-allowed" not in found


def test_compression_in_vain_is_seen_by_what_the_osds_count(cluster: Cluster, any_lab: Lab) -> None:
    def pool(*words: str) -> None:
        any_lab.run(["ceph", "osd", "pool", *words])

    pool("create", "photos", "8")
    pool("set", "photos", "compression_mode", "force")
    try:
        # nothing makes these smaller
        any_lab.run(["sh", "-c", "head -c 96M /dev/urandom | rados -p photos put photo -"], timeout=120)
        wait_stored(cluster, "photos")
        found, _ = findings(cluster)
    finally:
        pool("delete", "photos", "photos", "--yes-i-really-really-mean-it")
    assert found["compression"].commands == ("ceph osd pool set photos compression_mode passive",)
    assert "were compressed in vain" in found["compression"].evidence[0]
    # the OSDs go on counting, and nothing is wrong any more
    found, _ = findings(cluster)
    assert "compression" not in found
