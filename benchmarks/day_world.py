"""The cluster of `day.py` and its day: clients by the hour, two lost OSDs, deep scrubs, a deleted snapshot."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import asdict, replace
from typing import Any, Callable, NamedTuple, Tuple

from day_shape import BUSIEST_H, clients_at, shape
from flight_world import World, seen_by_clients

from ceph_tuner.core.regimes.bounds import IDLE, Marker
from ceph_tuner.twin.model import (
    KIB,
    MIB,
    ClientStream,
    ClusterModel,
    Device,
    OsdModel,
    RecoveryWork,
    ScrubWork,
    SnaptrimWork,
)
from ceph_tuner.twin.simulation import Simulation
from twin_cluster.cluster import EPOCH

HOUR_S = 600.0
"""Of the twin's time: the day takes a sixth of its time, and the book has as much less to react in."""
PHASES_AN_HOUR = 2
LOOK_S = 30.0
"""A window by which clients are judged."""
WARM_UP_H = 1.0
"""Before the day, under `balanced` and with the scrubs under way; nothing of it is judged."""
RATE, PEAK_H = 1500.0, BUSIEST_H + 0.5
"""Client operations a second in the mean of the day, and when they are the most; the day's shape is that of a trace."""
OSD = OsdModel(
    Device(iops=1075.0, bandwidth_bytes_s=60.0 * MIB, shared=False),
    capacity_iops=935.0,
    bandwidth_bytes_s=60.0 * MIB,
    shards=2,
    threads_per_shard=2,
    throttle_bytes=256.0 * KIB,
)
BUSY = 1800.0
"""Client operations a second: so many leave background work less room within the bound."""
SCRUBBED_POOL = "rbd"
LOST, CLONES = 8_000, 20_000
"""Object copies that an OSD takes along, clones of the snapshot."""
BUSY_MARKER = Marker("busy", "client.iops", BUSY, 0.9 * BUSY, 30.0)
WORK_MARKERS = (
    Marker("recovering", "recovery.objects_left", 1.0, 0.0, 15.0),
    Marker("scrubbing", "scrub.bytes_s", 1.0, 0.0, 15.0),
    Marker("trimming", "snaptrim.queue", 1.0, 0.0, 15.0),
)
DAY_BEGINS = EPOCH + WARM_UP_H * HOUR_S
"""Seconds since the epoch."""


class Situation(NamedTuple):
    """What settings are chosen for."""

    rate: float
    recovering: bool
    scrubbing: bool
    trimming: bool

    @property
    def regime(self) -> str:
        """As the plugin calls it."""
        on = (self.rate >= BUSY, self.recovering, self.scrubbing, self.trimming)
        return "+".join(marker.name for marker, is_on in zip((BUSY_MARKER, *WORK_MARKERS), on) if is_on) or IDLE


class DayWorld(World):
    """A cluster with a day on it, whose luck is of its seed."""

    phase_s = HOUR_S / PHASES_AN_HOUR
    osd = OSD

    def __init__(self, seed: int, scrubbed: int) -> None:
        super().__init__(seed)
        self.scrubbed = scrubbed
        luck = random.Random(f"day {seed}")
        self._lost = [luck.uniform(9.0, 17.0), luck.uniform(0.0, 5.0)]
        self._deleted = luck.uniform(10.0, 22.0)
        self.on_phase: Callable[[Situation], None] = lambda situation: None

    def hour(self) -> float:
        """Of the day; below 0 before it."""
        return round((self.now() - DAY_BEGINS) / HOUR_S, 6)

    def change_work(self) -> None:
        """Begin a half hour: clients ask for more or less, and all that is under way goes on.

        Where an OSD was lost or a snapshot was deleted, all work begins anew, as after peering.
        """
        self._phases += 1
        hour = self.hour()
        rate = rate_at(hour)
        degraded, scrub, clones = self.remaining() if self._phases > 1 else (0, self.scrubbed, 0)
        due = [at for at in self._lost if at <= hour]
        self._lost = [at for at in self._lost if at > hour]
        degraded += LOST * len(due)
        deleted = self._deleted <= hour
        if deleted:
            clones, self._deleted = clones + CLONES, math.inf
        if self._phases == 1 or due or deleted:
            model = with_work(self._model, rate, (degraded, scrub, clones))
            # of the same seed: PGs stay where they are
            self.twin.begin(Simulation(model, {}, self._seed))
            self._seen = seen_by_clients(self.twin.simulation)
        else:
            self.twin.simulation.offer([rate])
        self.on_phase(Situation(rate, degraded > 0, scrub > 0, clones > 0))

    def remaining(self) -> Tuple[int, int, int]:
        """Object copies that are lacking, objects to be scrubbed, clones."""
        simulation = self.twin.simulation
        left = left_of(simulation)
        degraded, scrub, clones = (round(left[kind] / simulation.share) for kind in ("degraded", "scrub", "snaptrim"))
        return degraded, scrub, clones

    def scrub_dates(self) -> Tuple[int, int]:
        """PGs with objects left to scrub, and all that have the date: at the day's end the first have missed it.

        Where the work began anew, what was left is spread over all PGs.
        """
        simulation = self.twin.simulation
        left = sum(work.left > 0 for work in simulation.work() if work.kind == "scrub")
        return left, len(simulation.acting(SCRUBBED_POOL))


def rate_at(hour: float) -> float:
    """Client operations a second."""
    return RATE * clients_at(hour)


def day_told(scrubbed: int) -> Any:
    """What a day is, as a document: days of another one are not to be compared."""
    work = [LOST, scrubbed, CLONES]
    return [HOUR_S, PHASES_AN_HOUR, WARM_UP_H, list(shape()), asdict(OSD), work]


def with_work(model: ClusterModel, rate: float, works: Tuple[int, int, int]) -> ClusterModel:
    """The cluster with these clients and this much left."""
    degraded, scrub, clones = works
    return replace(
        model,
        clients=(ClientStream("rbd", rate=rate, depth=256, read_share=0.3),),
        recovery=(RecoveryWork("other", degraded),) if degraded else (),
        scrub=(ScrubWork(SCRUBBED_POOL, scrub, once=True),) if scrub else (),
        snaptrim=(SnaptrimWork("rbd", clones),) if clones else (),
    )


def left_of(simulation: Simulation) -> Counter[str]:
    """Objects by kind of work."""
    left: Counter[str] = Counter()
    for work in simulation.work():
        left[work.kind] += work.left
    return left
