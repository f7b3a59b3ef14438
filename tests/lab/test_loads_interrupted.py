"""Ctrl-C at any moment of a scenario, once or again while it is cleaned up: the cluster's flags are as before."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
from typing import Any, Callable, Collection, Dict, List, Optional, Tuple

import pytest
from host_lab import HostLab

from ceph_lab import scenarios
from ceph_lab.loads.backfill import BackfillLoad
from ceph_lab.loads.background import BackgroundLoad
from ceph_lab.loads.pools import Flags
from ceph_lab.loads.recovery import RecoveryLoad
from ceph_lab.loads.scrub import ScrubLoad
from ceph_lab.loads.session import LabSession
from ceph_lab.loads.snaptrim import SnaptrimLoad
from ceph_lab.quiet import Quiet
from ceph_lab.scenarios import Scenario
from ceph_tuner.core.ceph.uninterrupted import uninterrupted
from ceph_tuner.core.errors import ClusterTimeout

OBJECTS = 100
STATS = {
    "num_objects": 25,
    "num_object_clones": 25,
    "num_objects_degraded": 25,
    "num_objects_misplaced": 25,
    "num_objects_recovered": 0,
    "num_bytes": 25 << 20,
}


class Cluster(LabSession):
    """A cluster with its pools prepared, whose flags are remembered. Question `strikes` are interrupted.

    An interrupt comes once the cluster has done what was asked, and before the answer is here.
    """

    def __init__(self, flags: Collection[str], strikes: Collection[int] = (), deaf_to: str = "") -> None:
        super().__init__(HostLab(""))
        self.flags, self.strikes, self.deaf_to = list(flags), set(strikes), deaf_to
        self.asked, self.deaf_for = 0, 1

    def ask(self, request: Dict[str, Any], timeout: Optional[float] = None) -> Any:
        self.asked += 1
        answer = self._answer(request)
        if self.asked in self.strikes:
            signal.raise_signal(signal.SIGINT)
        return answer

    def _answer(self, request: Dict[str, Any]) -> Any:
        command = request.get("command", {})
        prefix = command.get("prefix", request["do"])
        if prefix == self.deaf_to and self.deaf_for:
            self.deaf_for -= 1
            raise ClusterTimeout("no answer")
        if prefix == "osd set" and command["key"] not in self.flags:
            self.flags.append(command["key"])
        if prefix == "osd unset" and command["key"] in self.flags:
            self.flags.remove(command["key"])
        if prefix == "size":
            return 1 << 20
        if prefix == "pgs_of":
            return ["1.0" for _ in request["names"]]
        if prefix == "pgs":
            stats = {
                "stat_sum": STATS,
                "log_start": "1'1",
                "snaptrimq_len": 1,
                "last_deep_scrub_stamp": "",
                "objects_scrubbed": 0,
            }
            return [{"pgid": pgid, "state": "active", "up": [0, 1], "acting": [0, 1], "stats": stats, "scrubber": {}}
                    for pgid in request["pgids"][:4]]  # fmt: skip
        return json.dumps(self._said(prefix))

    def _said(self, prefix: str) -> Dict[str, Any]:
        pools = [
            {
                "pool": number,
                "pool_name": f"load-{name}-replicated-{size}",
                "size": size,
                "pg_num": pgs,
                "pool_snaps": [],
            }
            for number, (name, size, pgs) in enumerate(
                (("recovery", 2, 4), ("backfill", 2, 3), ("snaptrim", 3, 4), ("scrub", 3, 4))
            )
        ]
        osds = [{"osd": osd, "up": 1} for osd in range(3)]
        known: Dict[str, Dict[str, Any]] = {
            "osd dump": {"flags_set": self.flags, "pools": pools, "osds": osds, "pg_upmap_items": []},
            "perf dump": {"osd": {"stat_bytes": 1 << 40, "stat_bytes_used": 0}},
            "schedule-deep-scrub": {"stamp": "then"},
            "pg dump": {"pg_stats": []},
        }
        return known.get(prefix, {})


def recovery(cluster: Cluster) -> BackgroundLoad:
    return RecoveryLoad(HostLab(""), cluster, OBJECTS)


def backfill(cluster: Cluster) -> BackgroundLoad:
    return BackfillLoad(HostLab(""), cluster, 3 * OBJECTS // 4)


def snaptrim(cluster: Cluster) -> BackgroundLoad:
    return SnaptrimLoad(HostLab(""), cluster, OBJECTS, 1 << 20)


def scrub(cluster: Cluster) -> BackgroundLoad:
    return ScrubLoad(HostLab(""), cluster, objects=OBJECTS, pgs=4)


LOADS: Tuple[Callable[[Cluster], BackgroundLoad], ...] = (recovery, backfill, snaptrim, scrub)


@pytest.fixture(autouse=True)
def _four_pgs_and_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("recovery", "snaptrim"):
        monkeypatch.setattr(f"ceph_lab.loads.{module}.PGS", 4)
    monkeypatch.setattr("ceph_lab.loads.background.BackgroundLoad.fill", lambda self, count: ["object"])
    monkeypatch.setattr(scenarios, "wait_until_quiet", lambda *_, **__: Quiet(0.0, ()))


def run(make: Callable[[Cluster], BackgroundLoad], cluster: Cluster) -> None:
    with Scenario("test", HostLab(""), [make(cluster)], cluster) as scenario:
        scenario.prepare()
        scenario.start()


@pytest.mark.parametrize("make", LOADS)
@pytest.mark.parametrize("flags", [[], ["noout", "norecover", "nobackfill", "nosnaptrim", "noscrub", "nodeep-scrub"]])
def test_flags_are_as_before_wherever_an_interrupt_strikes(
    make: Callable[[Cluster], BackgroundLoad], flags: List[str]
) -> None:
    whole = Cluster(flags)
    run(make, whole)
    assert sorted(whole.flags) == sorted(flags)
    assert whole.asked > 5
    for first in range(1, whole.asked + 1):
        # alone, and with impatience: again and again while it is cleaned up
        for again in ((), (1,), (2, 3), (4,)):
            cluster = Cluster(flags, {first, *(first + later for later in again)})
            with pytest.raises(KeyboardInterrupt):
                run(make, cluster)
            assert sorted(cluster.flags) == sorted(flags), (first, again)


@pytest.mark.parametrize("make", LOADS)
def test_flags_are_as_before_when_the_cluster_does_not_answer_once(make: Callable[[Cluster], BackgroundLoad]) -> None:
    cluster = Cluster([], deaf_to="osd unset")
    # where the work itself was to begin, that fails; where only the cleaning up was left, it is tried again
    with contextlib.suppress(ClusterTimeout):
        run(make, cluster)
    assert (cluster.deaf_for, cluster.flags) == (0, [])


def test_every_flag_is_tried_though_one_fails() -> None:
    cluster = Cluster(["noscrub"])
    flags = Flags(cluster)
    flags.set("noout")
    flags.set("norecover")
    flags.clear("noscrub")
    cluster.deaf_to, cluster.deaf_for = "osd unset", 3
    with pytest.raises(ClusterTimeout):
        flags.restore()
    # one was cleared at the second try of it
    assert len(cluster.flags) == 2
    assert "noscrub" in cluster.flags
    flags.restore()
    assert cluster.flags == ["noscrub"]


def test_what_is_not_to_be_interrupted_is_finished_first() -> None:
    done = []

    def clean_up() -> None:
        with uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        clean_up()
    assert done == [True]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_another_thread_cannot_be_interrupted_and_does_not_mind() -> None:
    done = []

    def clean_up() -> None:
        with uninterrupted():
            done.append(True)

    thread = threading.Thread(target=clean_up)
    thread.start()
    thread.join()
    assert done == [True]
