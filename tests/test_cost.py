from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.knobs.cost import (
    Hardware,
    allocation,
    item_cost,
    recovery_item_bytes,
    scrub_item_bytes,
    snaptrim_item_bytes,
)
from ceph_tuner.core.knobs.releases import QUINCY, QUINCY_EARLY, REEF, RELEASES, TENTACLE, nine

# the defaults of a hard disk, with which 18.2.7 and 20.2.4 logged the costs below
DISK = Hardware(315, 150 * 2**20, 1, "hdd")
FLASH = Hardware(21500, 1200 * 2**20, 8)


@pytest.mark.parametrize("release", [REEF, TENTACLE], ids=str)
def test_costs_are_those_in_the_osds_logs(release: object) -> None:
    release = REEF if release is REEF else TENTACLE
    assert item_cost(0, DISK, release) == 499_321
    assert item_cost(262_144, DISK, release) == 499_321
    assert item_cost(524_288, DISK, release) == 524_288
    assert scrub_item_bytes(11, 262_144, True, {}, DISK, release) == 8_380_220
    assert scrub_item_bytes(11, 262_144, False, {}, DISK, release) == 5_496_636
    assert snaptrim_item_bytes(262_144, {}, release) == 524_288


def test_flash_counts_58_525_bytes_per_io() -> None:
    assert item_cost(4096, FLASH, TENTACLE) == 58_525
    assert FLASH.shard_bytes_s == 150 * 2**20


@given(st.integers(0, 2**30), st.integers(0, 2**30), st.sampled_from(list(RELEASES.values())))
def test_more_bytes_never_cost_less(few: int, many: int, release: object) -> None:
    era = next(r for r in RELEASES.values() if r is release)
    assert item_cost(min(few, many), FLASH, era) <= item_cost(max(few, many), FLASH, era)
    assert item_cost(few, FLASH, era) >= 1


def test_osd_scrub_cost_counts_only_up_to_17_2_6() -> None:
    assert scrub_item_bytes(15, 2**20, True, {"osd_scrub_cost": 2**20}, FLASH, QUINCY_EARLY) == 2**20
    dear = scrub_item_bytes(15, 2**20, True, {"osd_scrub_cost": 50 * 2**20}, FLASH, TENTACLE)
    assert dear == scrub_item_bytes(15, 2**20, True, {"osd_scrub_cost": 2**20}, FLASH, TENTACLE)


def test_before_18_2_5_the_event_cost_is_a_factor() -> None:
    assert scrub_item_bytes(3, 2**20, True, {}, FLASH, QUINCY) == 409_600
    assert scrub_item_bytes(3, 2**20, True, {}, FLASH, REEF, (18, 2, 4)) == 409_600
    assert scrub_item_bytes(3, 2**20, True, {"osd_scrub_event_cost": 8192}, FLASH, QUINCY) == 819_200


def test_recovery_counts_its_objects_and_20_mib_before() -> None:
    assert recovery_item_bytes(2, 2**20, REEF) == 2**21
    assert recovery_item_bytes(2, 2**20, QUINCY_EARLY) == 20 * 2**20


def test_an_allocation_says_what_each_class_is_sure_of() -> None:
    found = allocation(nine((0.5, 8, 0), (0.2, 1, 0.5), (0.05, 1, 0.3)), Hardware(1000, 100e6, 1), REEF)
    client, recovery = found["client"], found["background_recovery"]
    assert (client.reserved_bytes_s, client.limit_bytes_s, client.reserved_iops) == (50e6, None, 500)
    assert (recovery.reserved_bytes_s, recovery.limit_bytes_s) == (20e6, 50e6)
    assert client.weight_share == pytest.approx(0.8)


def test_iops_per_shard_come_to_the_same_rates() -> None:
    # half of 21 500 IOPS on eight shards: 1 344 each
    in_iops = nine((1344, 2, 999_999), (672, 1, 2688), (672, 2, 999_999))
    found = allocation(in_iops, FLASH, QUINCY_EARLY)
    assert found["client"].reserved_iops == pytest.approx(10_750, rel=0.001)
    assert found["client"].limit_iops is None
    assert found["background_recovery"].limit_iops == pytest.approx(21_500, rel=0.001)


def test_hardware_that_cannot_be_is_refused() -> None:
    for bad in ((0, 1, 1), (1, 0, 1), (1, 1, 0), (float("nan"), 1, 1)):
        with pytest.raises(ValueError, match="must be > 0"):
            Hardware(*bad)
