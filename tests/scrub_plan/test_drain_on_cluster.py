"""Backlogs of real clusters, made by a pool's own short intervals, drained here and by Ceph's own scheduler."""

from __future__ import annotations

import subprocess
import time
from contextlib import closing, suppress
from typing import Callable, Dict, Iterator, List

import pytest

from ceph_lab.cluster import Lab
from ceph_tuner.cluster import Cluster, open_cluster
from ceph_tuner.core.errors import CommandFailed
from ceph_tuner.scrub_plan import PAST_SCRUBS, RateRange, ScrubView
from ceph_tuner.scrub_plan.cluster_view import read_view
from ceph_tuner.scrub_plan.drain import DONE, Drain, DrainProgress, DrainTask
from ceph_tuner.scrub_plan.pace import ScrubLimits, due_until
from keeping import keeping
from overdue import daily
from waiting import until

pytestmark = pytest.mark.long_on_reef

POOL, PGS, OBJECTS, MIB = "scrubbed", 16, 240, 1 << 20
INTERVAL_S, WITHIN_S = 60, 900

RATE = RateRange(20e6, 10e6, 30e6, PAST_SCRUBS)


@pytest.fixture
def backlog(any_lab: Lab) -> Iterator[Cluster]:
    """A pool of 16 PGs, all of them late, on a cluster on which no deep scrub begins by itself."""
    any_lab.run(["ceph", "osd", "set", "nodeep-scrub"])
    any_lab.run(["ceph", "osd", "set", "noscrub"])
    any_lab.run(f"ceph osd pool create {POOL} {PGS} {PGS} --autoscale-mode=off".split())
    try:
        any_lab.run(f"rados -p {POOL} bench 60 write -b {MIB} --max-objects {OBJECTS} --no-cleanup".split(), timeout=90)
        for name, seconds in (("deep_scrub_interval", INTERVAL_S), ("scrub_min_interval", INTERVAL_S / 2)):
            any_lab.run(f"ceph osd pool set {POOL} {name} {seconds:g}".split())
        with closing(open_cluster(any_lab.name)) as opened:
            until(lambda: len(own_late(read_view(opened))) == PGS, 300, lambda: "all PGs of the pool are late", pause=2)
            yield opened
    finally:
        any_lab.run(f"ceph osd pool delete {POOL} {POOL} --yes-i-really-really-mean-it".split())
        for flag in ("noscrub", "nodeep-scrub"):
            any_lab.run(["ceph", "osd", "unset", flag])


def own_late(view: ScrubView) -> List[str]:
    return [pg.pgid for pg in view.pgs if pg.pool == POOL and pg.late]


def stamps(cluster: Cluster) -> Dict[str, float]:
    return {pg.pgid: pg.deep_scrubbed_at for pg in read_view(cluster).pgs if pg.pool == POOL}


def drained(cluster: Cluster, keep: str, per_osd: int, look: Callable[[DrainProgress], None]) -> str:
    view = read_view(cluster)
    order = tuple(pg for pg in due_until(view, view.at) if pg.pool == POOL)
    by = view.at + WITHIN_S
    wanted = DrainTask(
        order, by, ScrubLimits(per_osd, 8), keeping(keep), daily(RATE), despite_flags=True, window_s=15.0
    )
    with cluster.lock("test drain") as lock:
        return Drain(cluster, view, wanted, lock, look).run().reason


@pytest.mark.long
def test_a_backlog_is_drained_against_the_flags_and_no_stamp_ever_goes_back(backlog: Cluster) -> None:
    before, most = stamps(backlog), [0]
    newest = dict(before)

    def look(progress: DrainProgress) -> None:
        seen = read_view(backlog)
        running: Dict[int, int] = {}
        for pg in seen.pgs:
            if pg.pool == POOL:
                assert pg.deep_scrubbed_at >= newest[pg.pgid], pg.pgid
                newest[pg.pgid] = pg.deep_scrubbed_at
            if pg.scrubbing:
                running.update({osd: running.get(osd, 0) + 1 for osd in pg.acting})
        most.append(max(running.values(), default=0))

    assert drained(backlog, "", 2, look) == DONE
    assert all(stamp > before[pgid] for pgid, stamp in stamps(backlog).items())
    assert max(most) <= 2


@pytest.mark.long
def test_a_drain_that_was_killed_asks_only_for_what_is_left(backlog: Cluster) -> None:
    class Killed(BaseException):
        pass

    def kill(progress: DrainProgress) -> None:
        if progress.done >= PGS // 2:
            raise Killed

    begun = backlog.clock.now()
    with pytest.raises(Killed):
        drained(backlog, "", 1, kill)
    done = {pgid: stamp for pgid, stamp in stamps(backlog).items() if stamp >= begun}
    assert len(done) >= PGS // 2
    # within the interval they are not late again
    if backlog.clock.now() < min(done.values()) + INTERVAL_S - 10:
        assert not set(own_late(read_view(backlog))) & set(done)
    assert drained(backlog, "", 1, lambda progress: None) == DONE


@pytest.mark.long
def test_an_objective_that_no_cluster_keeps_leaves_the_backlog_as_it_is(backlog: Cluster, any_lab: Lab) -> None:
    before = stamps(backlog)
    load = f"rados -p {POOL} bench 60 write -b 4096 -t 4 --no-cleanup --run-name clients".split()
    waits: List[str] = []

    def look(progress: DrainProgress) -> None:
        waits.append(progress.waits_for)
        if len(waits) >= 6:
            raise KeyboardInterrupt

    quiet = subprocess.DEVNULL
    with subprocess.Popen(any_lab.argv(load), env=any_lab.environment, stdout=quiet, stderr=quiet) as clients:
        try:
            drained(backlog, "client.p95_ms <= 0.001", 1, look)
        finally:
            clients.terminate()
    assert "client.p95_ms at" in waits[-1]
    assert stamps(backlog) == before


@pytest.mark.long
def test_ceph_s_own_scheduler_drains_the_same_backlog(
    backlog: Cluster, any_lab: Lab, record_property: Callable[[str, object], None]
) -> None:
    """Both ways end with every PG scrubbed; how long each took is recorded, and judged by nobody here."""
    begun = time.monotonic()
    assert drained(backlog, "", 3, lambda progress: None) == DONE
    record_property("drain_s", time.monotonic() - begun)
    until(lambda: len(own_late(read_view(backlog))) == PGS, 300, lambda: "all PGs of the pool are late again", pause=2)
    since, begun = backlog.clock.now(), time.monotonic()
    for flag in ("noscrub", "nodeep-scrub"):
        any_lab.run(["ceph", "osd", "unset", flag])
    until(
        lambda: all(stamp >= since for stamp in stamps(backlog).values()),
        WITHIN_S,
        lambda: "Ceph has scrubbed all",
        pause=2,
    )
    record_property("ceph_s", time.monotonic() - begun)


def test_what_is_asked_for_by_the_mgr_leaves_the_stamps_and_what_osds_are_told_sets_them_back(
    backlog: Cluster, any_lab: Lab
) -> None:
    """Why the drain asks by `pg deep-scrub`: the OSDs' own way to schedule one forges the PG's date."""
    pgid = own_late(read_view(backlog))[0]
    before = stamps(backlog)[pgid]
    backlog.commander.mon("pg deep-scrub", {"pgid": pgid})
    until(lambda: stamps(backlog)[pgid] != before, 300, lambda: "the PG is scrubbed", pause=2)
    after = stamps(backlog)[pgid]
    assert after > before
    for command in ("schedule-deep-scrub", "deep_scrub"):
        with suppress(CommandFailed):
            assert any_lab.json(["ceph", "tell", pgid, command])["deep"] is True
            until(lambda: stamps(backlog)[pgid] < after, 60, lambda: "its stamp went back", pause=2)
            return
    raise AssertionError("every release has one of these commands")
