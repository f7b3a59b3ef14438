"""What a real cluster counts of objects that lack two copies, and of a remap beside a recovery, as readings tell it."""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from typing import Any, Callable, Dict, Iterator, List, Tuple

import pytest

from ceph_lab.cluster import Lab
from ceph_lab.loads.backfill import BackfillLoad
from ceph_lab.loads.background import wait_for
from ceph_lab.loads.layout import PoolLayout
from ceph_lab.loads.pools import LoadPool
from ceph_lab.loads.recovery import RecoveryLoad
from ceph_lab.loads.session import LabSession
from ceph_tuner.cluster.sampler import ClusterSampler
from ceph_tuner.cluster.session import Session
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.errors import RetryLater
from ceph_tuner.core.measure.reading import Reading

pytestmark = pytest.mark.long_on_reef

DELETED = 179
"""Priority of a PG that is deleted: OSD_DELETE_PRIORITY_NORMAL."""
OBJECTS, HELD = 120, ("noout", "norecover", "nobackfill", "norebalance")


@pytest.fixture
def session(any_lab: Lab) -> Iterator[Session]:
    """A session with a lab in which nothing recovers by itself."""
    for flag in HELD:
        any_lab.run(["ceph", "osd", "set", flag])
    try:
        with Session(any_lab.argv) as opened:
            yield opened
    finally:
        for flag in HELD:
            any_lab.run(["ceph", "osd", "unset", flag])


@contextmanager
def pool(lab: Lab, name: str, size: int) -> Iterator[None]:
    lab.run(f"ceph osd pool create {name} 16 16 replicated --autoscale-mode=off".split())
    try:
        lab.run(f"ceph osd pool set {name} size {size}".split())
        lab.run(f"ceph osd pool set {name} min_size 1".split())
        yield
    finally:
        lab.run(f"ceph osd pool delete {name} {name} --yes-i-really-really-mean-it".split())


def write(lab: Lab, name: str) -> None:
    command = f"rados -p {name} bench 60 write -b 65536 --max-objects {OBJECTS} --no-cleanup"
    lab.run(command.split(), timeout=120)


def when(session: Session, holds: Callable[[Reading], bool], timeout: float = 120) -> Reading:
    """The first reading of which this holds; the mgr hears of the PGs every five seconds."""
    deadline, sampler = time.monotonic() + timeout, ClusterSampler(session, SystemClock())
    totals: Dict[str, float] = {}
    while time.monotonic() < deadline:
        with suppress(RetryLater):
            reading = sampler.read()
            totals = dict(reading.totals)
            if holds(reading):
                return reading
        time.sleep(1)
    raise AssertionError({name: value for name, value in totals.items() if name.startswith("num_object")})


def left(reading: Reading) -> Tuple[float, float]:
    """Copies that are missing, and copies that are elsewhere than they belong."""
    return reading.totals["num_objects_degraded"], reading.totals["num_objects_misplaced"]


def about(copies: float) -> Any:
    """Ceph's own objects in the pools are few: `rados bench` writes down what it did."""
    return pytest.approx(copies, abs=3)


def begun(reading: Reading) -> float:
    """How many objects the OSDs have begun to recover since they were started."""
    return sum(report.values["recovery_ops"] for report in reading.osds.values())


def all_three(reading: Reading) -> bool:
    return len(reading.osds) == 3


@contextmanager
def led_by_the_first(lab: Lab) -> Iterator[None]:
    """osd.0 leads every PG: an OSD that leads and lacks objects itself fetches those before it gives them to others."""
    for osd in (1, 2):
        lab.run(["ceph", "osd", "primary-affinity", f"osd.{osd}", "0"])
    try:
        yield
    finally:
        for osd in (1, 2):
            lab.run(["ceph", "osd", "primary-affinity", f"osd.{osd}", "1"])


@contextmanager
def away(lab: Lab, *osds: int) -> Iterator[None]:
    for osd in osds:
        lab.stop_osd(osd)
    try:
        yield
    finally:
        for osd in osds:
            lab.start_osd(osd)


def test_an_object_that_lacks_two_copies_is_two_copies_left_and_one_object_begun(
    any_lab: Lab, session: Session
) -> None:
    with pool(any_lab, "two-lost", 3), led_by_the_first(any_lab):
        when(session, lambda reading: left(reading) == (0, 0))
        with away(any_lab, 1, 2):
            write(any_lab, "two-lost")
        held = when(session, lambda reading: all_three(reading) and left(reading) == (about(2 * OBJECTS), 0))
        any_lab.run(["ceph", "osd", "unset", "norecover"])
        whole = when(session, lambda reading: all_three(reading) and left(reading) == (0, 0))
        assert begun(whole) - begun(held) == about(OBJECTS)


def test_a_remap_beside_a_recovery_is_counted_by_itself(any_lab: Lab) -> None:
    with LabSession(any_lab) as loads, Session(any_lab.argv) as session:
        # the logs of its PGs do not reach back to their beginning: those would be recovered from the log, as degraded
        remap = BackfillLoad(any_lab, loads, OBJECTS, 65536)
        recovery = RecoveryLoad(any_lab, loads, OBJECTS, 65536)
        try:
            remap.prepare()
            recovery.prepare()
            both = (about(OBJECTS), about(OBJECTS))
            held = when(session, lambda reading: all_three(reading) and left(reading) == both)
            recovery.release()
            recovered = when(session, lambda reading: left(reading) == (0, about(OBJECTS)))
            assert begun(recovered) - begun(held) == about(OBJECTS)
            remap.release()
            moved = when(session, lambda reading: left(reading) == (0, 0))
            # each PG's backfill begins with a look at what the new OSD has, which counts as well
            assert begun(moved) - begun(recovered) == about(OBJECTS + remap.pool.pg_count)
        finally:
            recovery.cleanup()
            remap.cleanup()


def test_a_deletion_waits_for_the_slot_of_a_pg_that_norecover_holds(any_lab: Lab) -> None:
    with LabSession(any_lab) as session:
        moved = LoadPool(session, "moved", PoolLayout(2), (0, 1, 2))
        recovery = RecoveryLoad(any_lab, session, OBJECTS, 65536)

        def deletions() -> Tuple[int, List[str]]:
            """How many PGs osd.0 deletes, and which of them wait for its slot."""
            slots = session.osd(0, "dump_recovery_reservations")["local_reservations"]
            entries = [entry for queue in slots["queues"] for entry in queue["items"]]
            waiting = [entry["item"] for entry in entries if entry["prio"] == DELETED]
            return session.osd(0, "perf dump", logger="osd")["osd"]["numpg_removing"], waiting

        def bring(pgid: str, *osds: int) -> None:
            moved.place({pgid: osds})
            wait_for(f"{pgid} is on {osds}", lambda: session.pgs([pgid])[0]["acting"] == [*osds], timeout=60)

        try:
            moved.ensure()
            bring(moved.pgids[0], 0, 1)
            recovery.prepare()
            assert deletions() == (0, [])
            bring(moved.pgids[0], 1, 2)
            wait_for("its old copy is to be deleted", lambda: deletions()[0] == 1, timeout=60)
            time.sleep(5)
            removing, waiting = deletions()
            assert removing == 1
            assert moved.pgids[0] in waiting
            recovery.release()
            wait_for("it is deleted", lambda: deletions() == (0, []), timeout=60)
        finally:
            recovery.cleanup()
            moved.remove()
