"""A scrub's chunks, item by item, as the OSDs' logs of 20.2.4 have them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.twin.kernel import records
from ceph_tuner.twin.kernel.events import new_item
from ceph_tuner.twin.kernel.state import over_objects
from ceph_tuner.twin.kernel.threads import start, thread_ends
from ceph_tuner.twin.model import KIB, MIB, ClusterModel, Device, OsdModel, Pool, ScrubWork
from ceph_tuner.twin.simulation import Simulation

pytestmark = pytest.mark.usefixtures("kernel_compiled")

MODEL = ClusterModel(
    3,
    OsdModel(Device(5_000.0, 1e9, latency_s=1e-4, read_latency_s=1e-4), 2000.0, 50 * MIB, shards=1),
    (Pool("rbd", 1, 3),),
)
LIMITED: Settings = {"osd_mclock_profile": "custom", "osd_mclock_scheduler_background_best_effort_lim": 0.1}
CHUNK = 15


def seconds(objects: int, object_bytes: int = 1 * MIB, settings: Settings = LIMITED) -> float:
    """How long a PG's deep scrub takes."""
    simulation = Simulation(replace(MODEL, scrub=(ScrubWork("rbd", objects, object_bytes, once=True),)), settings)
    while not simulation.counters().scrubbing_pgs:
        simulation.advance(0.02)
    begun = simulation.now
    while simulation.counters().scrubbing_pgs:
        simulation.advance(0.02)
    return simulation.now - begun


def test_a_replica_pays_for_a_whole_chunk_however_few_objects_it_has() -> None:
    """The second chunk's one object: the primary's item cost 1 084 999, those of both replicas 16 217 649."""
    assert seconds(CHUNK + 1) == pytest.approx(seconds(2 * CHUNK), rel=0.1)


def test_a_pg_of_one_chunk_waits_only_for_its_own_objects() -> None:
    """The first request of a class waits for nothing at the replicas."""
    assert seconds(1) < 0.2 * seconds(CHUNK)


def items(object_bytes: int) -> int:
    simulation = Simulation(replace(MODEL, scrub=(ScrubWork("rbd", 10, object_bytes, once=True),)), {})
    simulation.advance(100.0)
    assert simulation.counters().scrub_objects.sum() == 10
    assert simulation.counters().scrub_bytes.sum() == 3 * 10 * object_bytes
    return int(simulation._tables["progress"]["served"][0])


def test_a_whole_number_of_strides_takes_a_read_that_finds_nothing() -> None:
    """On each of three copies: two items after the first for an object of 1 MiB, one for what is a little smaller."""
    assert items(1 * MIB) - items(1 * MIB - 4 * KIB) == 3 * 10


def test_objects_below_a_stride_are_read_in_one_turn() -> None:
    """Steps: two before and two after, a list of the objects on each copy, and the two replicas' maps."""
    assert items(4 * KIB) == 2 + 2 + 2 * 3 + 2


def test_a_chunk_has_its_pg_s_lock_from_its_first_object_to_its_last() -> None:
    """PgScrubber::build_scrub_map_chunk: a replica's map waits, and its thread with it, until all objects are read."""
    model = replace(MODEL, scrub=(ScrubWork("rbd", 10, 4 * KIB),))
    state, now = over_objects(Simulation(model, {}, compiled=False)._tables), 1001.0
    chunk, answer = (new_item(state, role, records.HIGH, 0, 0, 0.0, 0.0, 0.0) for role in
                     (records.SCRUB_CHUNK, records.SCRUB_MAP))  # fmt: skip
    slot, state.items[chunk].objects_left, state.items[chunk].strides_left = state.slots[0], 3, -1
    state.tasks[0].pending = 3
    start(state, chunk, now)
    thread_ends(state, chunk, now)
    assert slot.held_by == -1, "it is queued anew between the list of its objects and the first of them"
    start(state, chunk, now)
    start(state, answer, now)
    for _ in range(2):
        thread_ends(state, chunk, now)
        assert (slot.held_by, slot.waiting_head) == (chunk, answer)
    thread_ends(state, chunk, now)
    assert (slot.held_by, slot.waiting_head) == (-1, -1)
    ends = [event.index for event in state.events[: state.progress.heap_size] if event.kind == records.THREAD_ENDS]
    assert answer in ends


def begun_s(backoff_ratio: float) -> float:
    """When a PG's scrub begins, on the mean of some seeds; an OSD thinks of it once a second."""
    model = replace(MODEL, scrub=(ScrubWork("rbd", 1000),), scrub_backoff_ratio=backoff_ratio)
    times = []
    for seed in range(20):
        simulation = Simulation(model, {}, seed)
        while not simulation.counters().scrubbing_pgs:
            simulation.advance(0.02)
        times.append(simulation.now)
    return sum(times) / len(times)


def test_a_scrub_waits_for_its_coin_as_often_as_the_cluster_passes_over() -> None:
    assert begun_s(0.0) == pytest.approx(0.5, abs=0.2)
    assert begun_s(0.66) == pytest.approx(0.5 + 0.66 / 0.34, rel=0.4)
