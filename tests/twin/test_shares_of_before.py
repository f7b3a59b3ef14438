"""mClock's clocks of shares go on through a change: what a class did under other weights decides for minutes."""

from __future__ import annotations

import pytest
from flight_world import p95_ms, seen_by_clients

from ceph_tuner.core.knobs.releases import Settings, nine
from ceph_tuner.twin.model import KIB, MIB, ClientStream, ClusterModel, Device, OsdModel, Pool, ScrubWork
from ceph_tuner.twin.simulation import Simulation

NOW: Settings = {**nine((0.53, 10, 0), (0.47, 1, 0), (0.0, 1, 0.55)), "osd_scrub_chunk_max": 5}


def p95_after(before: Settings) -> float:
    """Of clients beside scrub under NOW, in the minute after two minutes under other settings."""
    osd = OsdModel(
        Device(1075.0, 60.0 * MIB, shared=False), 935.0, 60.0 * MIB, shards=2, threads_per_shard=2,
        throttle_bytes=256.0 * KIB,
    )  # fmt: skip
    clients = (ClientStream("rbd", rate=2165.0, depth=256, read_share=0.3),)
    model = ClusterModel(8, osd, (Pool("rbd", 32, 2),), clients, scrub=(ScrubWork("rbd", 130_000, 4 * MIB),), hosts=4)
    simulation = Simulation(model, before, 19)
    simulation.advance(120.0)
    simulation.configure(NOW)
    simulation.advance(30.0)
    counts = seen_by_clients(simulation)
    simulation.advance(60.0)
    return p95_ms(seen_by_clients(simulation) - counts)


@pytest.mark.slow
def test_a_class_that_was_held_back_is_served_first_once_its_limit_is_lifted() -> None:
    light, heavy = (
        {**nine((0.47, weight, 0), (0.47, 1, 0), (0.04, 2, 0.06)), "osd_scrub_chunk_max": 5} for weight in (1, 64)
    )
    assert p95_after(light) > 1.5 * p95_after(heavy)
    # where clients never fell behind it is as if these settings had been there from the start
    assert p95_after(heavy) == pytest.approx(p95_after(NOW), rel=0.2)
