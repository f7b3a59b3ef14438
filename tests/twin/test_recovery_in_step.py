"""What recovery's writes count in BlueStore's throttle, and what follows from it."""

from __future__ import annotations

from typing import Any, List

import pytest
from numpy.typing import NDArray

from ceph_tuner.core.knobs.releases import QUINCY_EARLY, REEF, TENTACLE, Release, Settings
from ceph_tuner.twin.kernel import records
from ceph_tuner.twin.kernel.bluestore import submit
from ceph_tuner.twin.kernel.events import new_item
from ceph_tuner.twin.kernel.state import over_objects
from ceph_tuner.twin.model import KIB, MIB, ClusterModel, Device, OsdModel, Pool, RecoveryWork
from ceph_tuner.twin.simulation import Simulation

pytestmark = pytest.mark.usefixtures("kernel_compiled")

Array = NDArray[Any]

TWO_AT_A_TIME: Settings = {"osd_mclock_override_recovery_settings": True, "osd_max_backfills": 2}
FLASH = OsdModel(
    Device(2000.0, 50e6, 20_000.0, 100e6, latency_s=1e-4, read_latency_s=4e-3),
    2000.0,
    50e6,
    shards=8,
    threads_per_shard=2,
    throttle_bytes=256.0 * KIB,
)
DISK = OsdModel(Device(210.0, 115e6, latency_s=12e-3, read_latency_s=12e-3), shards=1, device_class="hdd")


def counted_bytes(osd: OsdModel, release: Release, role: int) -> float:
    """Of a write of 1 MiB."""
    model = ClusterModel(3, osd, (Pool("rbd", 8),), recovery=(RecoveryWork("rbd", 8, MIB),), release=release)
    state = over_objects(Simulation(model, {}, compiled=False)._tables)
    i = new_item(state, role, records.HIGH, 0, 0, 0.0, float(MIB), 4.0)
    submit(state, i, 0, 1000.0)
    return state.items[i].throttle_bytes


def test_tentacle_does_not_count_the_bytes_of_recovery_in_the_throttle() -> None:
    """`_txc_calc_cost`: 70 520 for 1 MiB, where Reef has 1 119 000; 17 I/Os in both."""
    assert counted_bytes(FLASH, TENTACLE, records.PUSH) == 17 * 4000
    assert counted_bytes(FLASH, REEF, records.PUSH) == 17 * 4000 + MIB
    assert counted_bytes(FLASH, TENTACLE, records.SUBWRITE) == 17 * 4000 + MIB
    assert counted_bytes(DISK, TENTACLE, records.PUSH) == 17 * 670_000


def test_no_piece_of_a_write_is_a_request_on_disks_where_all_pieces_were_deferred() -> None:
    assert counted_bytes(DISK, QUINCY_EARLY, records.PUSH) == 670_000 + MIB


def pushed_together(release: Release) -> float:
    """Of the moments in which an OSD writes what recovery sent, the share in which several objects are on the drive."""
    work = RecoveryWork("rbd", 400, MIB, target=2)
    model = ClusterModel(3, FLASH, (Pool("rbd", 16),), recovery=(work,), release=release)
    simulation = Simulation(model, TWO_AT_A_TIME)
    simulation.advance(1.0)
    tables = simulation._tables
    seen: List[int] = []
    for _ in range(2000):
        simulation.advance(1e-3)
        seen.append(_written(tables["items"], int(tables["osds"][2]["written_head"])))
    writing = [number for number in seen if number]
    return sum(number > 1 for number in writing) / len(writing)


def _written(items: Array, i: int) -> int:
    """How many objects are on their way to the drive."""
    found = 0
    while i >= 0:
        found += int(items["role"][i] == records.PUSH)
        i = int(items["next_item"][i])
    return found


def test_pgs_that_recover_onto_one_osd_march_in_step() -> None:
    """Tentacle lets all pushes onto the drive, so that the first one's commit waits for the second one's data."""
    assert pushed_together(TENTACLE) > 0.9
    assert pushed_together(REEF) < 0.1
