"""How long the strict queue may hold mClock's classes back: for ever, but for Umbrella (by Ceph's sources alone)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ceph_tuner.core.knobs.releases import RELEASES, TENTACLE, UMBRELLA, Release
from ceph_tuner.twin.model import ClientStream, ClusterModel, Device, OsdModel, Pool
from ceph_tuner.twin.simulation import Simulation

pytestmark = pytest.mark.usefixtures("kernel_compiled")

WRITE_CPU_S = 0.02
OSD = OsdModel(Device(100_000.0, 1e9), shards=1, threads_per_shard=1, write_cpu_s=WRITE_CPU_S)
# each write makes five of other OSDs', which go first there
MODEL = ClusterModel(6, OSD, (Pool("rbd", 96, 6),), (ClientStream("rbd", depth=300),))


def longest_s(release: Release, device_class: str = "ssd") -> float:
    """The longest time for which a shard took no client's item that waited, seen every 5 ms."""
    model = replace(MODEL, release=release, osd=replace(OSD, device_class=device_class))
    simulation, longest = Simulation(model, {}, 1), 0.0
    shards, progress = (simulation._tables[name] for name in ("shards", "progress"))
    empty_at = np.full(len(shards), float(progress["now_s"][0]))
    for _ in range(600):
        simulation.advance(0.005)
        now = float(progress["now_s"][0])
        empty_at[shards["head"][:, 0] < 0] = now
        longest = max(longest, float(np.max(now - np.maximum(empty_at, shards["classes_served_at_s"]))))
    return longest


def test_replica_writes_hold_clients_back_for_as_long_as_they_come() -> None:
    assert longest_s(TENTACLE) > 0.1


def test_on_umbrella_one_of_a_class_goes_first_once_none_went_for_the_bound() -> None:
    # beyond the bound only what a thread is at work on
    assert longest_s(UMBRELLA) < 0.05 + 2 * WRITE_CPU_S
    assert longest_s(UMBRELLA, "hdd") < 0.25 + 2 * WRITE_CPU_S


def test_no_release_that_was_seen_has_a_bound() -> None:
    assert not any(release.strict_bound_s for release in RELEASES.values())
    assert not UMBRELLA.verified
    assert not UMBRELLA.sets_nine
