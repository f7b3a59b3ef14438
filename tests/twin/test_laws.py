"""Laws that any scheduler with reservations, weights and limits keeps, and laws that any queue keeps."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Tuple

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from ceph_tuner.core.knobs.releases import nine
from ceph_tuner.twin.model import (
    KIB,
    MIB,
    ClientStream,
    ClusterModel,
    Device,
    OsdModel,
    Pool,
    RecoveryWork,
    SnaptrimWork,
)
from ceph_tuner.twin.queue import DmClockQueue, Later, ServedRequest
from ceph_tuner.twin.simulation import Simulation

# the queue alone, before a server of a known rate ---------------------------------------------------------------------

CAPACITY = 1e6
"""Bytes a second."""

BACKLOG = 50
"""Requests of each class that wait at any time. A tag is never earlier than its request's arrival, so what a class
could not have while others were served, it gets afterwards only for requests that were there already: with 4 waiting,
one of 5 000 bytes beside others of 50 000 got 0.335 of the capacity instead of the 0.4 reserved for it."""

Shares = Tuple[float, int, float]
"""Reservation and limit as fractions of the capacity (0: none), weight between them."""


class Turn(NamedTuple):
    """One request's service."""

    class_id: int
    start: float
    cost: float


def serve(shares: List[Shares], costs: List[float], seconds: float, rate: float = CAPACITY) -> Tuple[List[Turn], float]:
    """Classes that always have requests, before a server of that rate; and the seconds in which it had to wait."""
    queue, begin = DmClockQueue(), 1000.0
    for c, (reservation, weight, limit) in enumerate(shares):
        queue.set_class(c, reservation * CAPACITY, weight, limit * CAPACITY)
        for number in range(BACKLOG):
            queue.add(begin, number, c, costs[c])
    now, turns, waited = begin, [], 0.0
    while now < begin + seconds:
        answer = queue.pull(now)
        if isinstance(answer, Later):
            waited += answer.future - now
            now = answer.future
            continue
        assert isinstance(answer, ServedRequest), "a queue with requests has an answer"
        c = answer.class_id
        turns.append(Turn(c, now - begin, costs[c]))
        queue.add(now, 0, c, costs[c])
        now += costs[c] / rate
    return turns, waited


def served(turns: List[Turn], class_id: int, first: float, last: float) -> float:
    return sum(turn.cost for turn in turns if turn.class_id == class_id and first <= turn.start < last)


WEIGHTS = st.integers(1, 20)
COSTS = st.lists(st.floats(5_000, 50_000), min_size=3, max_size=3)
LIMITS = st.sampled_from((0.0, 0.05, 0.2, 0.5, 0.9))


@st.composite
def sharing(draw: st.DrawFn, limits: st.SearchStrategy[float] = LIMITS) -> List[Shares]:
    """Reservations whose sum is at most the capacity, limits that are not below them."""
    left, shares = 1.0, []
    for _ in range(3):
        reservation = draw(st.sampled_from((0.0, 0.05, 0.2, 0.4)))
        reservation = reservation if reservation <= left else 0.0
        left -= reservation
        limit = draw(limits)
        shares.append((reservation, draw(WEIGHTS), max(limit, reservation) if limit else 0.0))
    return shares


unhurried = hypothesis_settings(deadline=None, max_examples=60)


@unhurried
@given(sharing(), COSTS)
def test_no_class_with_work_falls_below_its_reservation(shares: List[Shares], costs: List[float]) -> None:
    turns, _ = serve(shares, costs, 5.0)
    for c, (reservation, _, _) in enumerate(shares):
        for first in (0.0, 1.3, 3.1):
            for seconds in (0.5, 1.0, 1.9):
                # of each class one request may be in the way, and one of its own reaches over either end
                least = reservation * CAPACITY * seconds - sum(costs) - 2 * costs[c]
                assert served(turns, c, first, first + seconds) >= least


@unhurried
@given(sharing(), COSTS)
def test_no_class_rises_above_its_limit(shares: List[Shares], costs: List[float]) -> None:
    turns, _ = serve(shares, costs, 5.0)
    for c, (_, _, limit) in enumerate(shares):
        if limit:
            for first in (0.0, 1.3, 3.1):
                for seconds in (0.5, 1.9):
                    # while the longest item of another class is served, its tags fall behind, and are made good for
                    behind = limit * max(costs)
                    assert served(turns, c, first, first + seconds) <= (
                        limit * CAPACITY * seconds + 2 * costs[c] + behind
                    )


@unhurried
@given(sharing(limits=st.just(0.0)), COSTS)
def test_without_limits_the_server_never_waits_while_there_is_work(shares: List[Shares], costs: List[float]) -> None:
    turns, waited = serve(shares, costs, 2.0)
    assert waited == 0.0
    assert sum(turn.cost for turn in turns) >= 2.0 * CAPACITY


@unhurried
@given(st.tuples(WEIGHTS, WEIGHTS, WEIGHTS), COSTS)
def test_without_reservations_and_limits_classes_get_what_their_weights_say(
    weights: Tuple[int, ...], costs: List[float]
) -> None:
    turns, _ = serve([(0.0, weight, 0.0) for weight in weights], costs, 5.0)
    for c, weight in enumerate(weights):
        share = 5.0 * CAPACITY * weight / sum(weights)
        # tags go in steps of cost / weight
        step = max(cost / other for cost, other in zip(costs, weights)) * weight
        assert served(turns, c, 0.0, 5.0) == pytest.approx(share, abs=2 * step + 2 * costs[c])


@unhurried
@given(sharing(), COSTS, st.integers(0, 2), st.sampled_from(("weight", "limit")), st.floats(1.1, 5.0))
def test_more_weight_or_a_higher_limit_does_not_take_from_a_class(
    shares: List[Shares], costs: List[float], class_id: int, what: str, factor: float
) -> None:
    reservation, weight, limit = shares[class_id]
    raised = list(shares)
    if what == "weight":
        raised[class_id] = (reservation, round(weight * factor) + 1, limit)
    else:
        raised[class_id] = (reservation, weight, limit * factor)
    before, _ = serve(shares, costs, 5.0)
    after, _ = serve(raised, costs, 5.0)
    # both runs end in the middle of a round of the three classes
    slack = 4 * max(costs)
    assert served(after, class_id, 0.0, 5.0) >= served(before, class_id, 0.0, 5.0) - slack


# the whole simulation -------------------------------------------------------------------------------------------------

SERVICE_S = 1e-3
"""What a thread needs for any item below; the drive is far quicker, so the thread is the server."""

SINGLE = OsdModel(
    Device(1e6, 1e12, latency_s=0.0, read_latency_s=0.0),
    capacity_iops=1.0 / SERVICE_S,
    bandwidth_bytes_s=100.0 * MIB,
    shards=1,
    threads_per_shard=1,
    write_cpu_s=SERVICE_S,
    read_cpu_s=SERVICE_S,
    reply_cpu_s=0.0,
    trim_cpu_s=0.0,
    kv_latency_s=0.0,
    throttle_bytes=0.0,
)

UNIT = round(SINGLE.hardware.cost_per_io)
"""Bytes that the least item costs; clones of that size cost as much."""


def one_osd(**work: Any) -> ClusterModel:
    """An OSD with clients and trimming that never run out of work, unscheduled work apart."""
    given_work: Dict[str, Any] = {
        "clients": (ClientStream("rbd", depth=64),),
        "snaptrim": (SnaptrimWork("rbd", 400_000, UNIT),),
        **work,
    }
    return ClusterModel(1, SINGLE, (Pool("rbd", 256, 1),), network_s=1e-5, **given_work)


def rates(
    client: Shares,
    best_effort: Shares,
    seconds: float = 40.0,
    seed: int = 1,
    recovery: Shares = (0.0, 1, 0.0),
    **work: Any,
) -> Tuple[float, float]:
    """Shares of the OSD's capacity that clients and trimming get."""
    chosen = {
        **nine(client, recovery, best_effort),
        "osd_max_trimming_pgs": 16,
        "osd_pg_max_concurrent_snap_trims": 1,
    }
    simulation = Simulation(one_osd(**work), chosen, seed)
    simulation.advance(2.0)
    before = simulation.counters()
    simulation.advance(seconds)
    after = simulation.counters()
    assert after.clones_left > 0 or "snaptrim" in work
    capacity = seconds / SERVICE_S
    clients = (after.write_ops + after.read_ops - before.write_ops - before.read_ops).sum()
    return float(clients) / capacity, float((after.trimmed - before.trimmed).sum()) / capacity


SHARES = st.tuples(st.sampled_from((0.0, 0.1, 0.3, 0.45)), WEIGHTS, st.sampled_from((0.0, 0.2, 0.5, 0.8)))
simulated = hypothesis_settings(deadline=None, max_examples=12)


def orderly(shares: Shares) -> Shares:
    """A limit is not below the reservation."""
    return (shares[0], shares[1], max(shares[2], shares[0]) if shares[2] else 0.0)


@pytest.mark.usefixtures("kernel_compiled")
@simulated
@given(SHARES.map(orderly), SHARES.map(orderly))
def test_an_osd_s_classes_stay_between_reservation_and_limit_and_use_what_is_there(
    client: Shares, best_effort: Shares
) -> None:
    got = rates(client, best_effort)
    for rate, (reservation, _, limit) in zip(got, (client, best_effort)):
        assert rate >= reservation - 0.01
        assert rate <= (limit or 1.0) + 0.01
    held_back = all(limit and rate > limit - 0.02 for rate, (_, _, limit) in zip(got, (client, best_effort)))
    assert held_back or sum(got) > 0.98, "the OSD is busy, or both classes are at their limits"


@pytest.mark.usefixtures("kernel_compiled")
@simulated
@given(SHARES.map(orderly), SHARES.map(orderly), st.sampled_from(("weight", "limit")), st.floats(1.2, 4), st.booleans())
def test_an_osd_s_class_gets_no_less_when_its_own_weight_or_limit_rises(
    client: Shares, best_effort: Shares, what: str, factor: float, of_client: bool
) -> None:
    def raised(shares: Shares) -> Shares:
        reservation, weight, limit = shares
        return (
            (reservation, round(weight * factor), limit) if what == "weight" else (reservation, weight, limit * factor)
        )

    before = rates(client, best_effort)
    after = rates(raised(client) if of_client else client, best_effort if of_client else raised(best_effort))
    own = 0 if of_client else 1
    assert after[own] >= before[own] - 0.01


@pytest.mark.usefixtures("kernel_compiled")
@pytest.mark.parametrize("what", ["weight", "limit"])
def test_recovery_of_a_whole_cluster_gets_no_less_when_its_weight_or_limit_rises(what: str) -> None:
    # a small throttle and many clients: what waits does so in the queues
    osd = OsdModel(
        Device(1000.0, 60.0 * MIB, slice_s=0.1, shared=False),
        1000.0,
        60.0 * MIB,
        shards=1,
        threads_per_shard=5,
        throttle_bytes=256.0 * KIB,
    )
    model = ClusterModel(
        4,
        osd,
        (Pool("rbd", 64),),
        clients=(ClientStream("rbd", depth=256),),
        recovery=(RecoveryWork("rbd", 40_000, 1 * MIB),),
    )
    found = []
    for value in (1, 8, 64) if what == "weight" else (0.1, 0.2, 0.4, 0.8):
        shares: Shares = (0.0, int(value), 0.0) if what == "weight" else (0.1, 4, value)
        recovered = 0.0
        # which PGs recover together is chance, and where recovery is at its most, more than the knob's effect
        for seed in range(1, 4):
            simulation = Simulation(model, nine((0.1, 4, 0.0), shares, (0.0, 1, 0.3)), seed)
            simulation.advance(30.0)
            recovered += float(simulation.counters().recovery_bytes.sum())
        found.append(recovered)
    assert all(later >= 0.97 * earlier for earlier, later in zip(found, found[1:])), found
    assert found[-1] > 1.3 * found[0], "the knob matters here"


# queueing theory ------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("kernel_compiled")
@pytest.mark.parametrize("depth", [1, 8, 100])
@pytest.mark.parametrize("read_share", [0.0, 0.5])
def test_a_closed_loop_obeys_little_s_law(depth: int, read_share: float) -> None:
    osd = OsdModel(Device(2000.0, 1e9), 2000.0, shards=2)
    clients = (ClientStream("rbd", depth=depth, read_share=read_share, latency_s=1e-4),)
    simulation = Simulation(ClusterModel(3, osd, (Pool("rbd", 32),), clients), {}, 1)
    simulation.advance(2.0)
    before = simulation.clients()[0]
    simulation.advance(60.0)
    after = simulation.clients()[0]
    operations, seconds = after.operations - before.operations, after.seconds - before.seconds
    throughput, latency = operations / 60.0, seconds / operations
    # operations across the ends of the window count whole
    assert throughput * latency == pytest.approx(depth, rel=0.01)


@pytest.mark.usefixtures("kernel_compiled")
@pytest.mark.parametrize("load", [0.2, 0.5, 0.8, 0.9])
def test_reads_of_an_open_loop_wait_as_at_an_m_d_1_queue(load: float) -> None:
    iops, cpu, latency, network = 1000.0, 20e-6, 300e-6, 50e-6
    osd = OsdModel(Device(iops, 1e12, read_latency_s=latency), 1e6, shards=1, threads_per_shard=500, read_cpu_s=cpu)
    # so many PGs that hardly two operations meet at a PG's lock
    model = ClusterModel(
        1, osd, (Pool("rbd", 8192, 1),), (ClientStream("rbd", rate=load * iops, depth=10_000, read_share=1.0),),
        network_s=network,
    )  # fmt: skip
    seconds = operations = 0.0
    for seed in range(3):
        simulation = Simulation(model, nine((0.0, 1, 0.0), (0.0, 1, 0.0), (0.0, 1, 0.0)), seed)
        simulation.advance(400.0)
        counts = simulation.clients()[0]
        seconds, operations = seconds + counts.seconds, operations + counts.operations
    service = 1.0 / iops
    # Pollaczek-Khinchine with a constant service time
    waiting = load * service / (2.0 * (1.0 - load))
    expected = 2 * network + cpu + waiting + service + latency
    assert seconds / operations == pytest.approx(expected, rel=0.03 if load < 0.9 else 0.1)


@pytest.mark.usefixtures("kernel_compiled")
@pytest.mark.parametrize("shared", [True, False])
def test_a_saturated_drive_gives_its_iops(shared: bool) -> None:
    """The utilisation law: throughput times demand is 1 at the bottleneck."""
    device = Device(1000.0, 1e12, read_iops=1500.0, shared=shared)
    osd = OsdModel(device, 1e6, shards=4, threads_per_shard=64, kv_ios=0.0, kv_bytes=0.0)
    clients = (
        ClientStream("rbd", depth=200, read_share=1.0),
        ClientStream("rbd", depth=200, read_share=0.0),
    )
    simulation = Simulation(ClusterModel(1, osd, (Pool("rbd", 512, 1),), clients), {}, 1)
    simulation.advance(2.0)
    before = simulation.counters()
    simulation.advance(20.0)
    after = simulation.counters()
    reads = float((after.read_ops - before.read_ops).sum()) / 20.0
    writes = float((after.write_ops - before.write_ops).sum()) / 20.0
    if shared:
        assert reads / 1500.0 + writes / 1000.0 == pytest.approx(1.0, rel=0.01)
    else:
        assert reads == pytest.approx(1500.0, rel=0.01)
        # a shard's threads wake one after another, so now and then a write comes late
        assert writes == pytest.approx(1000.0, rel=0.03)
