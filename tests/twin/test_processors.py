"""The OSDs of a host share its processors: a queue's laws, and what must not depend on them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List, Tuple

import numpy as np
import pytest
from drawn_models import models
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from ceph_tuner.core.knobs.releases import nine
from ceph_tuner.twin.kernel.processors import waits_for_processor
from ceph_tuner.twin.kernel.state import over_objects
from ceph_tuner.twin.kernel_tables import START_S
from ceph_tuner.twin.model import KIB, ClientStream, ClusterModel, Device, OsdModel, Pool, SnaptrimWork
from ceph_tuner.twin.placement import placed
from ceph_tuner.twin.simulation import Simulation

pytestmark = pytest.mark.usefixtures("kernel_compiled")

FREE = nine((0.0, 1, 0.0), (0.0, 1, 0.0), (0.0, 1, 0.0))
INSTANT = Device(1e7, 1e13, latency_s=0.0, read_latency_s=0.0)
WORK_S = 1e-3
READER = OsdModel(
    INSTANT, 1e6, shards=1, threads_per_shard=500, read_cpu_s=WORK_S, message_cpu_s=0.0, moved_cpu_s_per_byte=0.0
)
"""All that a read takes is processor time."""


def readers(rate: float, **changes: Any) -> ClusterModel:
    """Reads of so many PGs that hardly two meet at a PG's lock."""
    values: Dict[str, Any] = {"osds": 1, "osd": READER, "network_s": 0.0, **changes}
    clients = (ClientStream("rbd", rate=rate, depth=10_000, read_share=1.0),)
    return ClusterModel(pools=(Pool("rbd", 8192, 1),), clients=clients, **values)


def mean_s(model: ClusterModel, seconds: float = 100.0, seeds: int = 1) -> float:
    spent = operations = 0.0
    for seed in range(seeds):
        simulation = Simulation(model, FREE, seed)
        simulation.advance(seconds)
        counts = simulation.clients()[0]
        spent, operations = spent + counts.seconds, operations + counts.operations
    return spent / operations


def busy(model: ClusterModel, seconds: float = 20.0) -> float:
    simulation = Simulation(model, FREE, 1)
    simulation.advance(seconds)
    return simulation.processors_busy


@pytest.mark.parametrize("load", [0.3, 0.8])
def test_work_waits_for_one_processor_as_at_an_m_d_1_queue(load: float) -> None:
    waiting = load * WORK_S / (2.0 * (1.0 - load))
    assert mean_s(readers(load / WORK_S, processors=1), 80.0, 6) == pytest.approx(WORK_S + waiting, rel=0.03)


@pytest.mark.parametrize("processors", [1, 2, 5, 16])
def test_saturated_processors_do_all_that_they_can(processors: int) -> None:
    """The utilisation law: throughput times demand is as many processors as there are."""
    model = replace(
        readers(1.0, processors=processors), clients=(ClientStream("rbd", depth=400, read_share=1.0, latency_s=1e-5),)
    )
    simulation = Simulation(model, FREE, 1)
    simulation.advance(5.0)
    before = simulation.clients()[0].operations
    simulation.advance(10.0)
    rate = (simulation.clients()[0].operations - before) / 10.0
    assert rate * WORK_S == pytest.approx(processors, rel=0.01)
    assert simulation.processors_busy == pytest.approx(1.0, rel=0.01)


def test_told_utilisation_is_rate_times_demand() -> None:
    osd = replace(READER, message_cpu_s=2e-4, moved_cpu_s_per_byte=1e-8)
    model = readers(300.0, osd=osd, processors=4)
    model = replace(model, clients=(replace(model.clients[0], cpu_s=3e-4, block_bytes=4 * KIB),))
    demand_s = 2 * 2e-4 + 3e-4 + WORK_S + 4 * KIB * 1e-8
    assert busy(model) == pytest.approx(300.0 * demand_s / 4, rel=0.05)
    assert busy(replace(model, processors=0)) == 0.0


@pytest.mark.parametrize("hosts", [1, 2, 4])
def test_the_osds_of_a_host_share_its_processors(hosts: int) -> None:
    """Four OSDs with half of a processor's work each: on one host they have too few, on two enough, on four plenty."""
    model = readers(4 * 0.45 / WORK_S, osds=4, hosts=hosts, processors=1 if hosts > 1 else 2)
    expected = {1: 0.9, 2: 0.9, 4: 0.45}[hosts]
    assert busy(model) == pytest.approx(expected, rel=0.05)
    waiting_s = mean_s(model) - WORK_S
    # of two processors that share a line each waits less than in two lines
    bounds = {1: (0.0015, 0.0035), 2: (0.0035, 0.006), 4: (0.0003, 0.0005)}[hosts]
    assert bounds[0] < waiting_s < bounds[1]


WRITES = ClusterModel(
    6, OsdModel(Device(20_000.0, 1e9)), (Pool("rbd", 64),),
    (ClientStream("rbd", rate=900.0, depth=2000, read_share=0.3), ClientStream("rbd", depth=4, block_bytes=64 * KIB)),
    snaptrim=(SnaptrimWork("rbd", 10_000_000),), hosts=3,
)  # fmt: skip


@hypothesis_settings(deadline=None, max_examples=15, derandomize=True)
@given(st.integers(1, 12), st.integers(1, 4), st.floats(0, 3e-4), st.floats(0, 2e-3), st.integers(0, 9))
def test_more_processors_are_never_slower(few: int, more: int, message_s: float, commit_s: float, seed: int) -> None:
    osd = replace(WRITES.osd, message_cpu_s=message_s, commit_cpu_s=commit_s)
    rates: List[float] = []
    latencies: List[float] = []
    for processors in (few, few + more):
        simulation = Simulation(replace(WRITES, osd=osd, processors=processors), {}, seed)
        simulation.advance(4.0)
        clients = simulation.clients()
        rates.append(sum(stream.operations for stream in clients))
        latencies.append(sum(stream.seconds for stream in clients) / max(1.0, rates[-1]))
    # chance takes another course as soon as one event comes at another time
    assert rates[1] >= 0.97 * rates[0]
    assert latencies[1] <= 1.05 * latencies[0]


@hypothesis_settings(deadline=None, max_examples=40, derandomize=True, suppress_health_check=list(HealthCheck))
@given(models(), st.integers(0, 100))
def test_with_plenty_of_processors_all_is_as_without_a_word_of_them(model: ClusterModel, seed: int) -> None:
    alone = Simulation(replace(model, processors=0), {}, seed)
    plenty = Simulation(replace(model, processors=2000), {}, seed)
    for simulation in (alone, plenty):
        simulation.advance(0.3)
    assert alone.events == plenty.events
    for one, other in zip(alone.clients(), plenty.clients()):
        assert (one.operations, one.seconds) == (other.operations, other.seconds)
        assert (one.latency == other.latency).all()
    for name, value in vars(alone.counters()).items():
        assert np.array_equal(value, getattr(plenty.counters(), name)), name


def test_a_cluster_that_is_simulated_in_part_has_its_share_of_processors() -> None:
    whole = replace(WRITES, osds=60, hosts=6, processors=7, clients=(ClientStream("rbd", rate=4000.0, depth=4000),))
    whole = replace(whole, pools=(Pool("rbd", 1200),), snaptrim=())
    expected = busy(whole, 10.0)
    assert 0.1 < expected < 0.9
    # of ten OSDs a host 12 are simulated, on one host with 8.4 processors, and 15 on two
    for simulated in (12, 15, 30):
        assert busy(replace(whole, simulated_osds=simulated), 20.0) == pytest.approx(expected, rel=0.05)


@given(st.lists(st.tuples(st.floats(0, 0.5), st.floats(1e-3, 1.0)), max_size=60), st.integers(1, 7))
def test_work_takes_the_processor_that_is_free_first(pieces: List[Tuple[float, float]], processors: int) -> None:
    model = ClusterModel(1, OsdModel(INSTANT, shards=1), (Pool("rbd", 1, 1),), processors=processors)
    state = over_objects(Simulation(model, {}, compiled=False)._tables)
    free, now = [START_S] * processors, START_S
    for gap_s, work_s in pieces:
        now += gap_s
        begins = max(min(free), now)
        free[free.index(min(free))] = begins + work_s
        assert waits_for_processor(state, 0, now, work_s) == begins - now
    assert state.osds[0].counters.processor_s == pytest.approx(sum(work_s for _, work_s in pieces))


def test_osds_of_fewer_hosts_than_copies_are_placed_as_if_each_were_one() -> None:
    alone, together = (placed(Pool("rbd", 64), 64, 5, hosts, 0, np.random.default_rng(1)) for hosts in (0, 2))
    assert (alone == together).all()


@pytest.mark.parametrize("processors", [-1, float("inf")])
def test_processors_that_cannot_be_are_refused(processors: Any) -> None:
    with pytest.raises(ValueError, match="processors"):
        replace(WRITES, processors=processors)
