"""Described clusters by seed: the examples, with other sizes, releases, drives, loads, objectives and settings."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, Tuple
from unittest import mock

import numpy as np

from ceph_tuner.core.goals.slo import Slo, parse_slo
from ceph_tuner.core.knobs.releases import MCLOCK_NINE, RELEASES, Settings
from ceph_tuner.files import cluster_file
from ceph_tuner.fleet.advice import SearchTask
from ceph_tuner.recommend import SearchEffort
from ceph_tuner.recommend.question import question_of
from ceph_tuner.twin import prediction
from ceph_tuner.twin.model import ClusterModel
from ceph_tuner.twin.simulation import Simulation
from ceph_tuner.workers import Argument, CallResult, Event, Tell, Workers
from ceph_tuner.workers import Call as Called

EXAMPLES = Path(__file__).parents[1] / "examples"
TEMPLATES = ("nvme-node", "erasure-coded", "975-osds")
SIMULATED = 12
"""OSDs that stand for all of a larger cluster."""


def tasks(count: int, effort: SearchEffort, seed: int = 1) -> Dict[str, SearchTask]:
    """Name -> search. Cluster n is the same whatever the count."""
    return {f"c{number:03}": _task(f"c{number:03}", effort, [seed, number]) for number in range(count)}


def _task(name: str, effort: SearchEffort, seed: Any) -> SearchTask:
    random = np.random.default_rng(seed)
    template = TEMPLATES[random.integers(len(TEMPLATES))]
    described = cluster_file.read(EXAMPLES / f"cluster-{template}.yaml")
    drawn = replace(described, model=_model(described.model, random), settings=_settings(random))
    own = replace(effort, seed=int(random.integers(1, 1 << 20)))
    return SearchTask(name, question_of(drawn, _slo(drawn.model, random)), own, explain=False)


def _model(model: ClusterModel, random: np.random.Generator) -> ClusterModel:
    """Half to twice as quick drives, a third to all of the load for its size, any size and release."""
    osds = int(random.choice([6, 12, 36, 120, 400, 1000]))
    quicker, load = 2.0 ** random.uniform(-1, 1), random.uniform(0.3, 1.0)
    device = model.osd.device
    more = {"iops": device.iops * quicker, "bandwidth_bytes_s": device.bandwidth_bytes_s * quicker}
    size = osds / model.osds
    clients = tuple(
        replace(
            stream,
            rate=max(1.0, (stream.rate or 0.0) * size * min(quicker, 1.0) * load),
            depth=max(16, round(stream.depth * size)),
        )
        for stream in model.clients
    )
    releases = list(RELEASES.values())[1:]  # all that have fractions
    return replace(
        model,
        osds=osds,
        hosts=0,
        simulated_osds=SIMULATED if osds > SIMULATED else 0,
        release=releases[random.integers(len(releases))],
        version=None,
        osd=replace(model.osd, device=replace(device, **more), capacity_iops=model.osd.capacity_iops * quicker),
        pools=tuple(replace(pool, pgs=max(32, 2 ** round(np.log2(pool.pgs * size)))) for pool in model.pools),
        clients=clients,
    )


def _settings(random: np.random.Generator) -> Settings:
    """Ceph's default, another built-in profile, or somebody's own nine values."""
    kind = random.integers(3)
    if kind == 0:
        return {}
    if kind == 1:
        return {"osd_mclock_profile": "high_recovery_ops"}
    own = random.uniform(0.1, 0.5)
    nine = zip(MCLOCK_NINE, (round(own, 2), 1, 0.0, round(0.7 - own, 2), 2, 0.0, 0.1, 1, 0.0))
    return {"osd_mclock_profile": "custom", **dict(nine)}


def _slo(model: ClusterModel, random: np.random.Generator) -> Slo:
    """Clients shall have it better, and the other work may take longer, by as much."""
    share = round(float(random.uniform(0.5, 0.9)), 2)
    times = {"recovery": "recovery.finish_s", "snaptrim": "snaptrim.drain_s", "scrub": "scrub.interval_s"}
    works = {"recovery": model.recovery, "snaptrim": model.snaptrim, "scrub": model.scrub}
    objectives = [f"client.p95_ms <= {share} * baseline"]
    objectives += [f"{times[kind]} <= {round(2 / share, 2)} * baseline" for kind, found in works.items() if found]
    return parse_slo({"name": "drawn", "objectives": objectives})


class Counted:
    """`Workers` that also counts what its calls took: events of the twin, and processor time of the workers."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self.events_simulated, self.processor_s = 0.0, 0.0

    def start(self, key: str, call: Called[Argument], argument: Argument) -> None:
        self._workers.start(key, counted, (call, argument))

    def events(self) -> Iterator[Event]:
        for event in self._workers.events():
            if isinstance(event, CallResult):
                answer, simulated, seconds = event.result
                self.events_simulated += simulated
                self.processor_s += seconds
                yield CallResult(event.key, answer)
            else:
                yield event


def counted(work: Tuple[Callable[..., Any], Any], tell: Tell) -> Tuple[Any, float, float]:
    """A call's answer, events of the twin, processor seconds."""
    call, argument = work
    total = 0.0

    class Counting(Simulation):
        def advance(self, seconds: float) -> None:
            nonlocal total
            before = self.events
            super().advance(seconds)
            total += self.events - before

    began = time.process_time()
    with mock.patch.object(prediction, "Simulation", Counting):
        answer = call(argument, tell)
    return answer, total, time.process_time() - began


def nothing(given: int, tell: Tell) -> int:
    """Shows that a worker is there, and has what a search needs."""
    return given
