"""A cluster for the automatic mode to fly over: a twin with a day's load on it, and what goes wrong around it.

`World` answers Ceph's commands as the twin does, except for what is down or unwell at the moment, and tells
`watchers` of each write. Time goes on only by `World.advance`.
"""

from __future__ import annotations

import errno
import json
import math
import random
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Set

import numpy as np

# the cluster behind the ports is of the tests
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from ceph_tuner.core.ceph.target import Place
from ceph_tuner.core.measure.histogram import Histogram
from ceph_tuner.twin.model import (
    KIB,
    MIB,
    ClientStream,
    ClusterModel,
    Device,
    OsdModel,
    Pool,
    RecoveryWork,
    ScrubWork,
    SnaptrimWork,
)
from ceph_tuner.twin.samples import edges_ms
from ceph_tuner.twin.simulation import Simulation
from twin_cluster.cluster import TwinCluster, twin_cluster
from twin_cluster.monitors import refusal
from twin_cluster.osd import TwinOsd

OSDS, HOSTS = 8, 4
PHASE_S = 1200.0
"""How often the work changes."""
SCRUB_PHASES = 6
"""So many in a row have the same scrubs, or none."""
RATE, SWING = 900.0, 0.4
"""Client operations a second in the mean of a day, and the share by which they swing."""
WRITES = ("config set", "config rm", "config-key set", "config-key rm")

_OSD = OsdModel(
    Device(iops=1075.0, bandwidth_bytes_s=60.0 * MIB, slice_s=0.1, shared=False),
    capacity_iops=935.0,
    bandwidth_bytes_s=60.0 * MIB,
    shards=1,
    threads_per_shard=5,
    throttle_bytes=256.0 * KIB,
)

Watcher = Callable[[str, Mapping[str, str], str, bool], None]
"""Called with prefix, arguments, payload, and whether it was done already."""


class World:
    """The cluster as daemons and operators see it."""

    phase_s = PHASE_S
    osd = _OSD

    def __init__(self, seed: int, copies: int = 2) -> None:
        """`copies` of the objects: with more than two, there are too few hosts for a canary of one."""
        self.random = random.Random(seed)
        self._seed, self._phases = seed, 0
        self._scrubs = False
        self.factor = 1.0
        """On the clients' rate."""
        # nobody writes what is scrubbed: clients of so few objects would stop a scrub of theirs for good
        pools = (Pool("rbd", 32, 2), Pool("other", 16, copies), Pool("cold", 32, 2))
        self._model = ClusterModel(osds=OSDS, osd=self.osd, pools=pools, clients=(_clients(RATE),), hosts=HOSTS)
        self.cluster: TwinCluster = twin_cluster(self._model, {}, seed)
        self.twin = self.cluster.twin
        self.begun = self.twin.now()
        self._next_phase = self.begun
        self.offset = 0.0
        """What the mgrs' host adds to the time."""
        self.down: Set[int] = set()
        self.returned: Optional[int] = None
        """An OSD that came back and lacks objects."""
        self.checks: Dict[str, str] = {}
        """Health check -> its severity, beside the twin's own."""
        self.slow = 0
        self.watchers: List[Watcher] = []
        self._answers: Dict[str, tuple[float, str]] = {}
        self._seen: Optional[np.ndarray[Any, Any]] = None

    # time and work

    def now(self) -> float:
        """The true time."""
        return self.twin.now()

    def advance(self, seconds: float) -> None:
        """Let time pass; the work changes on the way."""
        end = self.now() + seconds
        while end - self.now() > 1e-6:
            if self.now() >= self._next_phase:
                self._next_phase = self.now() + self.phase_s
                self.change_work()
            self.twin.advance(min(end, self._next_phase) - self.now())

    def change_work(self) -> None:
        """Begin the next phase: a rate by the time of day, and background work as it comes."""
        self._phases += 1
        hour = (self.now() - self.begun) / 3600.0
        rate = RATE * self.factor * (1.0 + SWING * math.sin(2.0 * math.pi * hour / 24.0))
        left = self.twin.counters()
        degraded, misplaced = int(left.degraded_left), int(left.misplaced_left)
        if self.returned is not None:
            degraded, self.returned = degraded + 8000, None
        elif self.random.random() < 0.15:
            misplaced += 30000
        recovery = [RecoveryWork("other", degraded)] * (degraded > 0)
        recovery += [RecoveryWork("other", misplaced, degraded=False)] * (misplaced > 0)
        if self._phases % SCRUB_PHASES == 1:
            self._scrubs = self.random.random() < 0.8
        scrub = (ScrubWork("cold", 20000),) if self._scrubs else ()
        snaptrim = (SnaptrimWork("rbd", 40000),) if self.random.random() < 0.2 else ()
        model = replace(
            self._model, clients=(_clients(rate),), recovery=tuple(recovery), scrub=scrub, snaptrim=snaptrim
        )
        self.twin.begin(Simulation(model, {}, self._seed * 1000 + self._phases))
        self._seen = None

    def add_osd(self) -> None:
        """One more, on a host of its own. It counts what osd.0 counts: the simulation has none for it."""
        place = Place(len(self.twin.osds), self.osd.device_class, {"host": f"h{HOSTS}", "root": "default"})
        self.twin.osds.append(TwinOsd(place, self.twin.release, self.twin.version))
        self.twin.restart(place.osd)

    def clients_p95_ms(self) -> Optional[float]:
        """What the clients themselves saw since the last call; None where the work changed since, or there were few."""
        counts = seen_by_clients(self.twin.simulation)
        before, self._seen = self._seen, counts
        if before is None or (counts - before).sum() < 100:
            return None
        return p95_ms(counts - before)

    # the commands, as `TwinMgr` wants them

    @property
    def osds(self) -> List[TwinOsd]:
        """Those that run."""
        return [osd for osd in self.twin.osds if osd.place.osd not in self.down]

    @property
    def release(self) -> Any:
        """As the twin's."""
        return self.twin.release

    @property
    def version(self) -> Any:
        """As the twin's."""
        return self.twin.version

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "", watched: bool = True) -> str:
        """A monitor's answer. `watched`: the tuner's; what operators write by hand is not."""
        telling = self.watchers if watched and prefix in WRITES else []
        for watcher in telling:
            watcher(prefix, arguments, payload, False)
        answer = self._answer(prefix, arguments, payload)
        for watcher in telling:
            watcher(prefix, arguments, payload, True)
        if prefix in ("osd dump", "osd tree", "health"):
            return json.dumps(getattr(self, f"_{prefix.replace(' ', '_')}")(json.loads(answer)))
        return answer

    def _answer(self, prefix: str, arguments: Mapping[str, str], payload: str) -> str:
        """What takes long is worked out once for each moment."""
        if prefix not in ("pg ls", "health"):
            return self.twin.mon(prefix, arguments, payload)
        at, answer = self._answers.get(prefix, (0.0, ""))
        if at != self.now():
            answer = self.twin.mon(prefix, arguments, payload)
            self._answers[prefix] = self.now(), answer
        return answer

    def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
        """An OSD's answer; the one that is down has none."""
        if int(daemon.partition(".")[2]) in self.down:
            raise refusal(f"tell {daemon} {prefix}", errno.ENXIO, "problem getting command descriptions")
        return self.twin.tell(daemon, prefix, arguments)

    def slow_operations(self) -> Dict[int, int]:
        """By OSD."""
        found = Counter(self.twin.slow_operations())
        found.update({1: self.slow} if self.slow else {})
        return dict(found)

    def table(self) -> Dict[tuple[str, str], str]:
        """The configuration database."""
        return {(entry.who, entry.name): entry.value for entry in self.cluster.config.dump()}

    def stored(self) -> Dict[str, str]:
        """The tuner's keys of the store."""
        return self.cluster.store.items("")

    def _osd_dump(self, document: Dict[str, Any]) -> Dict[str, Any]:
        document["osds"] = [{**row, "up": int(row["osd"] not in self.down)} for row in document["osds"]]
        return document

    def _osd_tree(self, document: Dict[str, Any]) -> Dict[str, Any]:
        for node in document["nodes"]:
            if node["id"] in self.down:
                node["status"] = "down"
        return document

    def _health(self, document: Dict[str, Any]) -> Dict[str, Any]:
        checks = {**self.checks, **({"OSD_DOWN": "HEALTH_WARN"} if self.down else {})}
        checks.update({"SLOW_OPS": "HEALTH_WARN"} if self.slow else {})
        for name, severity in checks.items():
            document["checks"][name] = {"severity": severity, "summary": {"message": name, "count": 1}, "muted": False}
        severities = [check["severity"] for check in document["checks"].values()]
        document["status"] = min(severities, default="HEALTH_OK")
        return document


def seen_by_clients(simulation: Simulation) -> np.ndarray[Any, Any]:
    """Client operations since the beginning by bucket of `twin.simulation.ClientCounts`, reads and writes together."""
    return np.sum([stream.latency.sum(axis=0) for stream in simulation.clients()], axis=0)


def p95_ms(counts: np.ndarray[Any, Any]) -> float:
    """Of client operations by bucket of `twin.simulation.ClientCounts`, reads and writes together; some at least."""
    seen = Histogram(edges_ms(), tuple(int(count) for count in counts)).quantile(0.95)
    assert seen is not None
    return seen


def _clients(rate: float) -> ClientStream:
    return ClientStream("rbd", rate=rate, depth=256, read_share=0.3)
