"""Nothing is lost in the simulation, nothing is done twice, and what is counted is what happened."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, List, Optional, Tuple

import numpy as np
import pytest
from audit import check
from drawn_models import models, settings
from hypothesis import HealthCheck, assume, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.twin.kernel import loop, records
from ceph_tuner.twin.model import (
    KIB,
    MIB,
    ClientStream,
    ClusterModel,
    DeleteWork,
    Device,
    OsdModel,
    Pool,
    RecoveryWork,
    ScrubWork,
    SnaptrimWork,
)
from ceph_tuner.twin.simulation import Simulation

pytestmark = pytest.mark.usefixtures("kernel_compiled")
unhurried = hypothesis_settings(deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)

PIECES = st.lists(st.tuples(st.floats(0, 2), settings()), min_size=1, max_size=4)


@hypothesis_settings(unhurried, max_examples=40)
@given(models(), settings(), PIECES, st.integers(0, 100))
def test_every_item_and_operation_is_in_one_place_whatever_is_set_meanwhile(
    model: ClusterModel, first: Settings, pieces: List[Tuple[float, Settings]], seed: int
) -> None:
    simulation = Simulation(model, first, seed)
    check(simulation)
    for seconds, changed in pieces:
        simulation.advance(seconds)
        check(simulation)
        simulation.configure(changed)


def all_objects(model: ClusterModel, simulation: Simulation, kind: str) -> int:
    return sum(work.objects for work in simulation.work() if work.kind == kind)


def overwhelmed(simulation: Simulation) -> bool:
    """Whether some shard's strict queue is never empty for a while."""
    heads = simulation._tables["shards"]["head"][:, records.HIGH]
    always = heads >= 0
    for _ in range(20):
        simulation.advance(0.1)
        always &= heads >= 0
    return bool(always.any())


@hypothesis_settings(unhurried, max_examples=40)
@given(models(endless=False), settings(), st.integers(0, 100))
def test_finite_work_is_done_once_and_gives_back_what_it_held(model: ClusterModel, chosen: Settings, seed: int) -> None:
    simulation = Simulation(model, chosen, seed)
    for _ in range(40):
        simulation.advance(20.0)
        if not any(work.left or work.running for work in simulation.work()):
            break
    # what was in flight with the last object
    simulation.advance(1.0)
    audit = check(simulation)
    # replica writes come first, and a thread that never sees the end of them does nothing else
    assume(not any(work.left for work in simulation.work()) or not overwhelmed(simulation))
    counters = simulation.counters()
    assert [work for work in simulation.work() if work.left] == []
    moved = all_objects(model, simulation, "misplaced")
    assert counters.recovery_ops.sum() == all_objects(model, simulation, "degraded") + moved
    assert counters.backfill_ops.sum() == moved
    assert counters.scrub_objects.sum() == all_objects(model, simulation, "scrub")
    assert counters.trimmed.sum() == all_objects(model, simulation, "snaptrim")
    deleted = simulation._tables["osds"]["counters"]["deleted_objects"]
    assert deleted.sum() == all_objects(model, simulation, "deletion")
    for held in (
        "recovering",
        "local_backfills",
        "remote_backfills",
        "scrubs",
        "remote_scrubs",
        "trimming_pgs",
        "deleting_pgs",
    ):
        assert not audit.osds[held].any(), held


@hypothesis_settings(unhurried, max_examples=25)
@given(models(clients=st.just(()), endless=False), settings(), st.integers(0, 100))
def test_a_cluster_comes_to_rest_when_its_work_is_done(model: ClusterModel, chosen: Settings, seed: int) -> None:
    simulation = Simulation(model, chosen, seed)
    simulation.advance(4000.0)
    audit = check(simulation)
    assert len(audit.free_items()) == len(audit.items)
    assert len(audit.free_operations()) == len(audit.operations)
    assert not simulation.counters().waiting.any()
    recurring = {
        records.SCRUB_TICK,
        records.DEFERRED_TICK,
        records.QUEUE_CLEANED,
        records.QUEUE_WAKES,
        records.LEASES_RENEWED,
    }
    assert {event for event, _ in audit.events} <= recurring
    quiet = simulation.counters()
    simulation.advance(100.0)
    assert np.array_equal(simulation.counters().recovery_ops, quiet.recovery_ops)


OSD = OsdModel(Device(1000.0, 200.0 * MIB), capacity_iops=1000.0, bandwidth_bytes_s=200.0 * MIB, shards=2)
MODEL = ClusterModel(4, OSD, (Pool("rbd", 32),), clients=(ClientStream("rbd", depth=32, read_share=0.3),))


def run(model: ClusterModel = MODEL, seconds: float = 20.0, seed: int = 1, **chosen: object) -> Simulation:
    simulation = Simulation(model, chosen, seed)  # type: ignore[arg-type]
    simulation.advance(seconds)
    return simulation


def test_another_seed_gives_another_run_of_about_the_same_cluster() -> None:
    one, other = run(seed=1), run(seed=2)
    first, second = one.clients()[0], other.clients()[0]
    assert one._tables["items"].tobytes() != other._tables["items"].tobytes()
    assert first.operations != second.operations
    assert second.operations == pytest.approx(first.operations, rel=0.15)


def test_what_clients_count_is_what_osds_and_histograms_count() -> None:
    simulation = run()
    counters, client = simulation.counters(), simulation.clients()[0]
    assert counters.read_ops.sum() + counters.write_ops.sum() == client.operations
    assert counters.latency.sum() == client.operations
    assert client.latency.sum() == client.operations
    assert client.latency[0].sum() == counters.read_ops.sum()
    assert counters.write_bytes.sum() == counters.write_ops.sum() * 4 * KIB
    assert 0.25 < counters.read_ops.sum() / client.operations < 0.35


def test_the_mean_of_a_stream_s_histogram_is_its_mean_latency() -> None:
    client = run(seconds=60.0).clients()[0]
    # 32 buckets to a doubling: their middles miss by 1.1% at most
    octave, part = np.divmod(np.arange(records.STREAM_BUCKETS), records.PER_OCTAVE)
    middles = 1e-6 * 2.0 ** (octave - 1.0) * (1.0 + (part + 0.5) / records.PER_OCTAVE)
    mean = float((client.latency.sum(axis=0) * middles).sum() / client.operations)
    assert mean == pytest.approx(client.seconds / client.operations, rel=0.011)


def test_an_open_loop_within_capacity_is_answered_at_the_rate_offered() -> None:
    model = replace(MODEL, clients=(ClientStream("rbd", rate=300.0, depth=64),))
    assert run(model, 200.0).clients()[0].operations == pytest.approx(300.0 * 200.0, rel=0.03)


def test_bytes_of_a_scrub_are_read_on_every_copy() -> None:
    model = replace(MODEL, clients=(), scrub=(ScrubWork("rbd", 200, 1 * MIB, once=True),))
    simulation = run(model, 400.0)
    assert simulation.counters().scrub_objects.sum() == 200
    assert simulation.counters().scrub_bytes.sum() == 200 * 3 * MIB
    assert simulation.counters().scrubbing_pgs == 0


def test_an_endless_scrub_begins_again() -> None:
    model = replace(MODEL, clients=(), scrub=(ScrubWork("rbd", 200, 4 * KIB, deep=False),))
    assert run(model, 2000.0).counters().scrub_objects.sum() > 3 * 200


def test_work_begins_when_it_is_told_to() -> None:
    model = replace(
        MODEL,
        clients=(),
        recovery=(RecoveryWork("rbd", 50, 4 * KIB, start_s=5.0),),
        snaptrim=(SnaptrimWork("rbd", 50, start_s=10.0),),
        deletion=(DeleteWork("rbd", 50, start_s=5.0),),
    )
    simulation = run(model, 4.9)
    assert {work.left == work.objects for work in simulation.work()} == {True}
    simulation.advance(5.0)
    assert simulation.counters().recovery_ops.sum() > 0
    assert simulation.counters().trimmed.sum() == 0
    simulation.advance(60.0)
    assert simulation.counters().trimmed.sum() == 50


def test_clients_ask_for_more_while_a_scrub_goes_on() -> None:
    model = replace(MODEL, clients=(ClientStream("rbd", rate=100.0),), scrub=(ScrubWork("rbd", 100_000, 4 * KIB),))
    simulation = run(model, 50.0)
    before, scrubbed = simulation.clients()[0].operations, simulation.counters().scrub_objects.sum()
    assert before == pytest.approx(50.0 * 100.0, rel=0.1)
    simulation.offer([300.0])
    assert simulation.model == replace(model, clients=(ClientStream("rbd", rate=300.0),))
    assert simulation.counters().scrub_objects.sum() == scrubbed
    simulation.advance(50.0)
    check(simulation)
    assert simulation.clients()[0].operations - before == pytest.approx(50.0 * 300.0, rel=0.1)
    assert simulation.counters().scrub_objects.sum() > scrubbed


@pytest.mark.parametrize("rates", [[], [1.0, 1.0], [0.0], [-1.0]])
def test_rates_that_no_client_can_ask_for_are_refused(rates: List[float]) -> None:
    simulation = Simulation(replace(MODEL, clients=(ClientStream("rbd", rate=100.0),)), {})
    with pytest.raises(ValueError, match="rate"):
        simulation.offer(rates)
    assert simulation.model.clients[0].rate == 100.0
    with pytest.raises(ValueError, match="streams with a rate"):
        Simulation(replace(MODEL, clients=(ClientStream("rbd", depth=2),)), {}).offer([1.0])


def test_recovery_of_an_osd_that_came_back_reaches_only_its_pgs() -> None:
    model = replace(MODEL, clients=(), recovery=(RecoveryWork("rbd", 300, 4 * KIB, target=2),))
    simulation = Simulation(model, {}, 3)
    acting = simulation.acting("rbd")
    assert {2 in acting[work.pg] for work in simulation.work()} == {True}
    simulation.advance(60.0)
    assert simulation.counters().recovery_ops.sum() == 300
    assert simulation.counters().degraded_left == 0


@pytest.mark.parametrize(
    ("knob", "work", "column"),
    [
        ("osd_max_scrubs", {"scrub": (ScrubWork("rbd", 60_000, 1 * MIB),)}, "scrubs"),
        ("osd_max_trimming_pgs", {"snaptrim": (SnaptrimWork("rbd", 60000),)}, "trimming_pgs"),
        ("osd_max_backfills", {"recovery": (RecoveryWork("rbd", 9000),)}, "local_backfills"),
        ("osd_recovery_max_active_ssd", {"recovery": (RecoveryWork("rbd", 9000),)}, "recovering"),
    ],
)
@pytest.mark.parametrize("most", [1, 3])
def test_a_concurrency_knob_is_a_bound_that_is_reached(knob: str, work: dict, column: str, most: int) -> None:
    chosen = {
        "osd_mclock_override_recovery_settings": True,
        "osd_max_backfills": 20,
        "osd_recovery_max_active_ssd": 20,
        knob: most,
    }
    simulation = Simulation(replace(MODEL, pools=(Pool("rbd", 64, 2),), clients=(), **work), chosen, 1)
    seen = []
    for _ in range(200):
        simulation.advance(0.1)
        seen.append(simulation._tables["osds"][column].max())
    assert max(seen) == most


def recovered(**chosen: object) -> Tuple[float, float]:
    """The clients' 95th percentile (s) and the bytes recovered a second, on three NVMe drives in slow motion."""
    device = Device(1953.0, 56e6, 20156.0, 100e6, shared=False, latency_s=640e-6, read_latency_s=3.7e-3)
    osd = OsdModel(device, capacity_iops=1740.0, bandwidth_bytes_s=56e6, shards=8, threads_per_shard=2)
    client = ClientStream("rbd", rate=250.0, depth=64, drains=True)
    work = RecoveryWork("rbd", 20_000, MIB, target=0)
    simulation = run(ClusterModel(3, osd, (Pool("rbd", 32),), clients=(client,), recovery=(work,)), **chosen)
    latency = np.cumsum(simulation.clients()[0].latency[1])
    octave, place = divmod(int(np.searchsorted(latency, 0.95 * latency[-1])), records.PER_OCTAVE)
    seconds = float(np.ldexp(0.5 + place / (2 * records.PER_OCTAVE), octave) * 1e-6)
    return seconds, float(simulation.counters().recovery_bytes.sum()) / 20.0


def test_small_recovery_chunks_spare_clients_where_a_limit_starves_recovery() -> None:
    """As on a lab of 20.2.4: p95 48, 17 and 15 ms at 33, 25 and 3 to 5 MB/s."""
    whole = recovered()
    small = recovered(osd_recovery_max_chunk=256 * KIB)
    limited = recovered(osd_mclock_scheduler_background_recovery_lim=0.7)
    assert small[0] < 0.5 * whole[0]
    assert 0.6 * whole[1] < small[1] < whole[1]
    assert limited[1] < 0.2 * whole[1]


@pytest.mark.parametrize("pool", [Pool("rbd", 16), Pool("rbd", 16, 3, k=2)], ids=["replicated", "erasure-coded"])
@pytest.mark.parametrize("target", [0, None])
def test_an_object_s_parts_are_its_bytes_once(pool: Pool, target: Optional[int]) -> None:
    """Where drives are what recovery waits for, it goes on at nearly the same rate, and comes to the same end."""
    work = RecoveryWork("rbd", 400, 4 * MIB, target=target)
    model = replace(MODEL, pools=(pool,), clients=(), recovery=(work,))
    whole, parts = (run(model, 4.0, osd_recovery_max_chunk=chunk) for chunk in (8 * MIB, MIB))
    rates = [simulation.counters().recovery_bytes.sum() / 4.0 for simulation in (whole, parts)]
    assert 0.7 * rates[0] < rates[1] < 1.15 * rates[0]
    for simulation in (whole, parts):
        simulation.advance(400.0)
        assert simulation.counters().degraded_left == 0
        assert simulation.counters().recovery_bytes.sum() == 400 * 4 * MIB


def test_settings_of_one_osd_leave_the_others_alone() -> None:
    simulation = Simulation(MODEL, {}, 1)
    before = simulation.settings_of(1)
    simulation.configure({"osd_max_scrubs": 1}, [0])
    assert simulation.settings_of(0)["osd_max_scrubs"] == 1
    assert simulation.settings_of(1) == before


def test_time_does_not_run_backwards() -> None:
    with pytest.raises(ValueError, match="seconds"):
        Simulation(MODEL, {}).advance(-1.0)
    with pytest.raises(ValueError, match="seconds"):
        Simulation(MODEL, {}).advance(float("nan"))


def test_a_part_of_a_cluster_stands_for_the_whole() -> None:
    # 12 of 48 OSDs with a quarter of the clients' depth: what an OSD does stays the same
    whole = replace(MODEL, osds=48, pools=(Pool("rbd", 4800),), clients=(ClientStream("rbd", depth=768),))
    part = replace(whole, simulated_osds=12)
    all_of_it, quarter = run(whole, 10.0), run(part, 10.0)
    assert quarter.osds == 12
    assert quarter.share == 0.25
    per_osd = all_of_it.clients()[0].operations / 48
    # the fullest of 48 OSDs is fuller than the fullest of 12, and a closed loop goes at its pace
    assert quarter.clients()[0].operations / 12 == pytest.approx(per_osd, rel=0.08)


LOW_LIMIT = {
    "osd_mclock_scheduler_background_best_effort_res": 0.0,
    "osd_mclock_scheduler_background_best_effort_lim": 0.03,
    "osd_max_scrubs": 2,
    "osd_scrub_chunk_max": 60,
}
"""Chunks of 60 objects of 1 MiB, one every 30 s and more."""


def scrubbed(drains: bool) -> ClusterModel:
    client = ClientStream("rbd", rate=100.0, latency_s=3e-4, drains=drains)
    device = Device(1000.0, 60.0 * MIB, slice_s=0.1, shared=False)
    osd = OsdModel(device, capacity_iops=800.0, bandwidth_bytes_s=60.0 * MIB, shards=1, threads_per_shard=5)
    return ClusterModel(3, osd, (Pool("rbd", 32),), clients=(client,), scrub=(ScrubWork("rbd", 20_000, MIB),))


def begins_s(bucket: int) -> float:
    """Where a bucket of a stream's histogram begins."""
    octave, place = divmod(bucket, records.PER_OCTAVE)
    return float(np.ldexp(0.5 + place / (2 * records.PER_OCTAVE), octave) * 1e-6)


def slowest(simulation: Simulation) -> float:
    """Where the highest bucket in use begins (s)."""
    return begins_s(int(np.flatnonzero(simulation.clients()[0].latency[1])[-1]))


def test_clients_that_drain_offer_their_rate() -> None:
    clients = (ClientStream("rbd", rate=100.0, depth=64, drains=True), ClientStream("rbd", rate=100.0, depth=64))
    for client in run(replace(MODEL, clients=clients), seconds=200.0).clients():
        assert client.operations == pytest.approx(200 * 100, rel=0.03)


def test_beside_a_class_with_a_low_limit_clients_that_drain_wait_where_an_open_loop_does_not() -> None:
    """Nothing comes any more, so nothing wakes the thread beside which the answers lie, but the limit's moment."""
    means = []
    for drains in (False, True):
        client = run(scrubbed(drains), 120.0, **LOW_LIMIT).clients()[0]
        means.append(client.seconds / client.operations)
    assert means[1] > 4 * means[0]


def test_leases_end_a_standstill_long_before_a_limit_s_moment() -> None:
    simulation = run(scrubbed(drains=True), 240.0, **LOW_LIMIT)
    assert 1.0 < slowest(simulation) < loop.LEASE_S + 2.0


def test_an_item_of_snaptrim_costs_the_mean_of_heads_and_clones() -> None:
    """Where its limit binds, small clones let trimming go faster at first than whole ones do."""
    work = SnaptrimWork("rbd", 4000, 4 * MIB)
    limits = {"osd_mclock_scheduler_background_best_effort_lim": 0.1}
    trimmed = []
    for clone_bytes, heads in ((4 * MIB, None), (0, None), (0, 1000)):
        model = replace(MODEL, clients=(), snaptrim=(replace(work, clone_bytes=clone_bytes, heads=heads),))
        trimmed.append(run(model, 5.0, **limits).counters().trimmed.sum())
    # about one clone is left for each head, and a clone of nothing halves the mean; not all shards always have work
    assert 1.4 * trimmed[0] < trimmed[1] <= 2 * trimmed[0]
    # four clones of each head: a fifth of it, and not half
    assert 1.8 * trimmed[1] < trimmed[2] <= 2.5 * trimmed[1]


DISK = Device(210.0, 170e6, latency_s=12.4e-3, read_latency_s=12.4e-3)


def on_disks(device: Device = DISK, **osd: Any) -> ClusterModel:
    """15 small writes a second on three hard disks."""
    model = OsdModel(device, 400.0, 170e6, 1, 5, "hdd", **osd)
    return ClusterModel(3, model, (Pool("rbd", 32),), clients=(ClientStream("rbd", rate=15.0),))


def tail_s(model: ClusterModel, batch: int, share: float = 0.99, **chosen: object) -> float:
    """A percentile of the clients' writes."""
    counts = run(model, 400.0, bluestore_deferred_batch_ops_hdd=batch, **chosen).clients()[0].latency[1]
    return begins_s(int(np.searchsorted(np.cumsum(counts), share * counts.sum())))


def test_small_batches_of_deferred_writes_shorten_the_tail_on_hard_disks() -> None:
    """As on a lab, where the p99 fell to 31 to 38% (docs/ceph-behaviour.md)."""
    assert 0.1 < tail_s(on_disks(), 4) / tail_s(on_disks(), 64) < 0.4


def test_few_deferred_writes_go_after_their_time_however_large_a_batch_may_be() -> None:
    """Five a second are 15 to 20 in the 3 to 4 s after which they go; a batch of them would wait for 13 s."""
    few = replace(on_disks(), clients=(ClientStream("rbd", rate=5.0),))
    by_time = tail_s(few, 64)
    assert by_time == pytest.approx(tail_s(few, 1000), rel=0.1)
    assert by_time < 0.6 * tail_s(few, 64, bluestore_max_defer_interval=0.0)


def test_with_the_log_apart_from_the_data_commits_wait_for_all_that_is_nearer() -> None:
    """As on the lab: p95 120 ms, where a twin with the log among the data has 60."""
    assert tail_s(on_disks(replace(DISK, log_way_s=0.011)), 64, 0.95) > 1.3 * tail_s(on_disks(), 64, 0.95)


def test_batches_of_an_erasure_code_are_short() -> None:
    """What it writes gets new places side by side: 130 ms for 47 of them on a lab, where 47 in place take 300."""
    coded = replace(on_disks(), pools=(Pool("rbd", 32, 3, k=2),))
    assert tail_s(coded, 64, 0.95) < 0.6 * tail_s(on_disks(), 64, 0.95)


def test_shards_of_an_erasure_code_are_read_at_the_same_time() -> None:
    device = Device(1e6, 1e12, latency_s=0.0, read_latency_s=0.01, spread=0.0)
    reads = ClientStream("rbd", rate=1.0, read_share=1.0)
    osd = replace(MODEL.osd, device=device)
    counts = run(ClusterModel(6, osd, (Pool("rbd", 16, 6, k=4),), clients=(reads,)), 60.0).clients()[0].latency[0]
    assert begins_s(int(np.flatnonzero(counts)[-1])) == pytest.approx(0.01, rel=0.1)


def test_an_erasure_coded_write_is_followed_by_an_empty_one_where_no_other_is_under_way() -> None:
    """Each is an item at every shard, and an answer from all but the primary: five of three shards."""
    served = []
    for pool in (Pool("rbd", 256), Pool("rbd", 256, 3, k=2)):
        writes = ClientStream("rbd", rate=5.0, partial_stripe=False)
        simulation = run(replace(MODEL, pools=(pool,), clients=(writes,)), 200.0)
        served.append(float(simulation._tables["progress"]["served"][0]) / simulation.clients()[0].operations)
    assert served == [pytest.approx(5, rel=0.01), pytest.approx(10, rel=0.01)]


def test_with_the_log_on_flash_nobody_waits_for_deferred_writes() -> None:
    on_flash = on_disks(db=Device(20_000.0, 500e6, latency_s=1e-4))
    assert tail_s(on_flash, 64) < 5e-3 < 0.05 * tail_s(on_disks(), 64)


def test_writes_as_large_as_the_bound_are_not_deferred() -> None:
    large, small = (
        replace(on_disks(), clients=(ClientStream("rbd", rate=15.0, block_bytes=size),))
        for size in (64 * KIB, 60 * KIB)
    )
    # what waits from before the start may go by its time
    by_number = {"bluestore_max_defer_interval": 0.0}
    assert tail_s(large, 64, **by_number) == tail_s(large, 4, **by_number)
    assert tail_s(small, 64) > 2 * tail_s(small, 4)


def test_commits_are_not_planned_again_and_again_while_a_large_write_is_on_its_way() -> None:
    """With the log on flash there are hundreds of commits until a disk has written an object."""
    model = on_disks(db=Device(10_000.0, 300e6, latency_s=1e-4))
    recovery = (RecoveryWork("rbd", 100_000, 4 * MIB),)
    model = replace(model, pools=(Pool("rbd", 433),), clients=(ClientStream("rbd", depth=26),), recovery=recovery)
    simulation = run(model, 20.0, bluestore_deferred_batch_ops_hdd=14)
    assert check(simulation).events.count((records.COMMIT_BEGINS, 0)) <= 4
