"""Moves of real data on labs of four OSDs, of both releases: what is promised of a drain, a weight and a split."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from typing import Any, Dict, Iterator, List, Set

import pytest

from ceph_lab.bringup import up
from ceph_lab.cluster import Lab
from ceph_lab.teardown import down
from ceph_tuner.cluster import Cluster, open_cluster
from ceph_tuner.core.errors import RetryLater, TunerError
from ceph_tuner.core.measure.pg_documents import UNHEARD, UNKNOWN, pg_rows
from ceph_tuner.moves import MapView, MovePlan
from ceph_tuner.moves.drain_plan import DrainPlan
from ceph_tuner.moves.map_view import read_map
from ceph_tuner.moves.mover import DONE, INTERRUPTED, MoveOutcome, MoveProgress, Mover, MoveTask
from ceph_tuner.moves.pgs_plan import PgsPlan
from ceph_tuner.moves.record import MoveRecord, MoveStore
from ceph_tuner.moves.reweight_plan import ReweightPlan
from keeping import keeping
from lab_mgrs import LabMgrs
from waiting import until

pytestmark = pytest.mark.long

POOL, OBJECTS, MIB = "moved", 160, 1 << 20


@pytest.fixture(scope="module", params=["tentacle", "reef"])
def four(request: pytest.FixtureRequest, needs_lab: None) -> Iterator[Lab]:
    """A lab of four OSDs, with a pool of two copies and 32 PGs that has 160 MiB."""
    name = f"test-{os.getpid()}-moves"
    try:
        lab = up(name, {"release": request.param, "osds": "4xnvme"}, lambda line: None)
        lab.run(f"ceph osd pool create {POOL} 32 32 --autoscale-mode=off".split())
        lab.run(f"ceph osd pool set {POOL} size 2".split())
        write = f"rados -p {POOL} bench 60 write -b {MIB} --max-objects {OBJECTS} --no-cleanup".split()
        lab.run(write, timeout=120)
        yield lab
    finally:
        down(name, lambda line: None)


@pytest.fixture
def cluster(four: Lab) -> Iterator[Cluster]:
    """The lab as it was: all weights alike, no entry, all PGs where they belong."""
    with closing(open_cluster(four.name)) as opened:
        yield opened
        view = read_map(opened)
        usual = max(osd.weight for osd in view.osds.values())
        for pgid in view.upmaps:
            opened.commander.mon("osd rm-pg-upmap-items", {"pgid": pgid})
        for osd in view.osds.values():
            if osd.weight != usual:
                opened.commander.mon("osd crush reweight", {"name": f"osd.{osd.number}", "weight": f"{usual:.6f}"})
        until_settled(opened)


def until_settled(cluster: Cluster, seconds: float = 300.0) -> MapView:
    """Two looks in a row, as PGs tell some seconds late where they are."""
    deadline, quiet = time.monotonic() + seconds, 0
    while time.monotonic() < deadline:
        with suppress(RetryLater):
            # else the pool is new, and the mgr has not heard of its PGs
            view = read_map(cluster)
            quiet = quiet + 1 if all(pg.settled for pg in view.pgs) else 0
            if quiet >= 3:
                return view
        time.sleep(4)
    raise AssertionError(f"PGs were not settled after {seconds:g} s")


def places(view: MapView) -> Dict[str, Set[int]]:
    return {pg.pgid: set(pg.up) for pg in view.pgs}


def on(view: MapView, osd: int) -> Set[str]:
    return {pgid for pgid, osds in places(view).items() if osd in osds}


def move(cluster: Cluster, name: str, plan: MovePlan, task: MoveTask, look: Any = lambda progress: None) -> MoveOutcome:
    store = MoveStore(cluster.store)
    record = (store.record(name) or MoveRecord(name, 0.0, 0.0)).changed(weighed=False)
    with cluster.lock("move") as lock:
        return Mover(cluster, task, plan, record, lock, look).run()


def forget(cluster: Cluster) -> None:
    store = MoveStore(cluster.store)
    for record in store.records():
        store.remove(record)


def test_a_drained_osd_has_nothing_and_nothing_else_has_moved(cluster: Cluster) -> None:
    before = until_settled(cluster)
    own = on(before, 3)
    assert own
    outcome = move(cluster, "drain osd.3", DrainPlan(frozenset({3})), MoveTask(at_most=16))
    assert (outcome.reason, outcome.moved) == (DONE, len(own))
    after = until_settled(cluster)
    assert on(after, 3) == set()
    assert after.osds[3].weight == 0
    others = {pgid: osds for pgid, osds in places(before).items() if pgid not in own}
    assert {pgid: places(after)[pgid] for pgid in others} == others
    assert {pgid: places(after)[pgid] >= places(before)[pgid] - {3} for pgid in own} == dict.fromkeys(own, True)
    forget(cluster)


def test_the_clients_bound_stops_it_and_it_goes_on_later(cluster: Cluster, four: Lab) -> None:
    until_settled(cluster)
    waits: List[str] = []

    def look(progress: MoveProgress) -> None:
        waits.append(progress.waits_for)
        if len(waits) >= 6:
            raise KeyboardInterrupt

    # over and over the same 16 objects: rados bench would write a new one each time, and all of them were to be moved
    four.run(f"rbd create --size 64M {POOL}/clients".split())
    bench = "--io-type write --io-size 4K --io-threads 2 --io-total 1T --io-pattern rand"
    load = f"rbd bench {POOL}/clients {bench}".split()
    quiet = subprocess.DEVNULL
    before = places(read_map(cluster))
    with subprocess.Popen(four.argv(load), env=four.environment, stdout=quiet, stderr=quiet) as clients:
        try:
            time.sleep(10)
            tight = MoveTask(keeping("client.p95_ms <= 0.001"), window_s=15.0)
            plan = DrainPlan(frozenset({3}), keep_weight=True)
            assert move(cluster, "drain osd.3", plan, tight, look).reason == INTERRUPTED
            assert "client.p95_ms at" in waits[-1]
            assert places(read_map(cluster)) == before
            loose = MoveTask(keeping("client.p95_ms <= 60000"), window_s=15.0, at_most=16)
            outcome = move(cluster, "drain osd.3", plan, loose)
        finally:
            clients.terminate()
    four.run(f"rbd rm --no-progress {POOL}/clients".split())
    assert (outcome.reason, outcome.windows_missed) == (DONE, 0)
    assert on(until_settled(cluster), 3) == set()
    forget(cluster)


def test_a_drain_that_was_killed_goes_on_and_gives_the_balancer_back(cluster: Cluster, four: Lab) -> None:
    until_settled(cluster)
    four.run(["ceph", "balancer", "on"])
    words = ["drain", "osd.3", "--cluster", four.name, "--pause-balancer", "--at-most", "2", "--yes"]
    argv = [sys.executable, "-c", "from ceph_tuner_cli.main import main; main()"]
    try:
        with subprocess.Popen([*argv, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            deadline = time.monotonic() + 120
            while not read_map(cluster).upmaps and time.monotonic() < deadline:
                time.sleep(1)
            process.send_signal(signal.SIGKILL)
        assert read_map(cluster).upmaps
        assert balancer(four) is False
        ended = subprocess.run(
            [*argv, *words, "--format", "json"], capture_output=True, text=True, timeout=500, check=False
        )
        assert ended.returncode == 0, ended.stderr
        assert json.loads(ended.stdout)["reason"] == DONE
        assert balancer(four) is True
    finally:
        four.run(["ceph", "balancer", "off"])
    assert on(until_settled(cluster), 3) == set()
    forget(cluster)


def test_a_mgr_that_has_not_heard_of_all_pgs_ends_no_drain(cluster: Cluster, four: Lab) -> None:
    """A mgr says that it is ready after 20 s, also while an OSD that hangs has told it nothing."""
    own = on(until_settled(cluster), 3)
    commander, mgrs = cluster.commander, LabMgrs(four, cluster.commander)
    hangs = four.daemon_pid("osd.3")
    assert hangs is not None
    goes_on = threading.Timer(15, os.kill, (hangs, signal.SIGCONT))
    begun: List[MoveProgress] = []

    def unheard() -> bool:
        answer = json.loads(commander.mon("pg ls", {"format": "json"}))
        states = [row["state"] for row in pg_rows(answer)]
        return answer["pg_ready"] is True and 0 < states.count(UNKNOWN) < len(states)

    def look(progress: MoveProgress) -> None:
        if not begun and read_map(cluster).upmaps:
            begun.append(progress)
            os.kill(hangs, signal.SIGSTOP)
            mgrs.kill_active()
            until(unheard, 90, despite=(TunerError,))
            with pytest.raises(RetryLater, match=UNHEARD):
                read_map(cluster)
            goes_on.start()

    # else it would be marked down, and others would tell the mgr of its PGs
    four.run(["ceph", "osd", "set", "nodown"])
    try:
        outcome = move(cluster, "drain osd.3", DrainPlan(frozenset({3})), MoveTask(at_most=4), look)
    finally:
        os.kill(hangs, signal.SIGCONT)
        four.run(["ceph", "osd", "unset", "nodown"])
    assert begun
    assert (outcome.reason, outcome.moved) == (DONE, len(own))
    after = until_settled(cluster)
    assert on(after, 3) == set()
    assert after.osds[3].weight == 0
    forget(cluster)


def balancer(lab: Lab) -> bool:
    return bool(json.loads(lab.run(["ceph", "balancer", "status", "--format", "json"]))["active"])


def test_norebalance_holds_the_next_step_and_is_not_cleared(cluster: Cluster, four: Lab) -> None:
    until_settled(cluster)
    four.run(["ceph", "osd", "set", "norebalance"])
    waits: List[str] = []

    def look(progress: MoveProgress) -> None:
        waits.append(progress.waits_for)
        if len(waits) == 3:
            assert "norebalance" in read_map(cluster).flags
            four.run(["ceph", "osd", "unset", "norebalance"])

    try:
        plan = DrainPlan(frozenset({3}), keep_weight=True)
        assert move(cluster, "drain osd.3", plan, MoveTask(at_most=16), look).reason == DONE
    finally:
        with suppress(TunerError):
            four.run(["ceph", "osd", "unset", "norebalance"])
    assert all(reason.startswith("norebalance") for reason in waits[:3])
    forget(cluster)


def test_a_weight_comes_while_all_is_held_and_each_pg_moves_once(cluster: Cluster) -> None:
    before = until_settled(cluster)
    weight = before.osds[2].weight / 2
    outcome = move(cluster, "reweight osd.2", ReweightPlan({2: weight}), MoveTask(at_most=16))
    assert outcome.reason == DONE
    after = until_settled(cluster)
    assert after.osds[2].weight == pytest.approx(weight, abs=2e-5)
    assert after.upmaps == before.upmaps
    changed = [pgid for pgid, osds in places(after).items() if osds != places(before)[pgid]]
    assert outcome.moved == len(changed) > 0
    forget(cluster)


def test_pgs_are_split_and_moved_with_all_data(cluster: Cluster, four: Lab) -> None:
    until_settled(cluster)
    pool = read_map(cluster).pool(POOL)
    assert pool is not None
    numbers: List[int] = []

    def look(progress: MoveProgress) -> None:
        now = read_map(cluster).pool(POOL)
        assert now is not None
        numbers.append(now.pgp_num)

    outcome = move(cluster, f"pgs {POOL}", PgsPlan(pool.number, 64), MoveTask(at_most=16), look)
    assert outcome.reason == DONE
    view = until_settled(cluster)
    after = view.pool(POOL)
    assert after is not None
    assert (after.pg_num, after.pgp_num) == (64, 64)
    assert numbers[0] == 32
    assert len(set(numbers)) > 2
    stored = json.loads(four.run(["ceph", "df", "--format", "json"]))["pools"]
    assert next(row["stats"]["objects"] for row in stored if row["name"] == POOL) >= OBJECTS
    forget(cluster)
