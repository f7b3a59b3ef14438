"""Settings reach the simulation as they reach an OSD: rates, costs and limits, by release and scheduler."""

from __future__ import annotations

from typing import Any

import pytest

from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import QUINCY_EARLY, REEF, RELEASES, TENTACLE, nine
from ceph_tuner.twin.knobs_in_force import (
    class_of,
    class_rates,
    client_costs,
    completed,
    delete_cost,
    limits_of,
    recovery_costs,
    recovery_parts,
    scrub_cost,
    trim_cost,
)
from ceph_tuner.twin.model import MIB, WPQ, ClusterModel, Device, OsdModel, Pool

OSD = OsdModel(Device(1000.0, 150.0 * MIB), capacity_iops=315.0, bandwidth_bytes_s=150.0 * MIB, shards=2)
PER_IO = 150 * MIB / 315


def model(**changes: Any) -> ClusterModel:
    return ClusterModel(3, changes.pop("osd", OSD), (Pool("rbd"),), **{"release": TENTACLE, **changes})


def test_a_profile_that_is_named_gives_all_nine_and_single_values_win() -> None:
    values = completed({PROFILE: "high_recovery_ops", "osd_mclock_scheduler_client_res": 0.2}, REEF)
    assert values["osd_mclock_scheduler_background_recovery_res"] == 0.7
    assert values["osd_mclock_scheduler_client_res"] == 0.2
    assert PROFILE not in values


def test_without_a_profile_the_release_s_own_is_in_force() -> None:
    assert completed({}, REEF) == REEF.profiles["balanced"]
    assert completed({}, QUINCY_EARLY) == QUINCY_EARLY.profiles["high_client_ops"]


def test_a_shard_schedules_its_part_of_the_bandwidth() -> None:
    rates = class_rates(nine((0.5, 3, 0.0), (0.25, 2, 0.8), (0.0, 1, 0.1)), model())
    shard = 75.0 * MIB
    assert rates[0] == (0.5 * shard, 3.0, 0.0)
    assert rates[1] == (0.25 * shard, 2.0, 0.8 * shard)
    assert rates[2] == pytest.approx((0.0, 1.0, 0.1 * shard))


def test_early_quincy_counts_small_operations() -> None:
    rates = class_rates(nine((0.5, 3, 0.0), (0.25, 2, 0.8), (0.0, 1, 0.1)), model(release=QUINCY_EARLY))
    assert rates[0] == (0.5 * 157.5, 3.0, 0.0)


def test_costs_are_those_seen_in_the_logs_of_osds() -> None:
    # 315 IOPS and 150 MiB/s: 499 321 for a small operation (20.2.4)
    costs = client_costs(4096, model())
    assert costs.least == costs.client_write == costs.client_read == int(PER_IO)
    assert client_costs(4 * MIB, model()).client_write == 4 * MIB
    assert client_costs(4 * MIB, model()).client_read == int(PER_IO)
    each, fixed = scrub_cost(262144.0, True, {}, model())
    assert fixed == 0.0
    assert int(4096 + 11 * each) == pytest.approx(8_380_220, abs=1)
    each, fixed = trim_cost(262144.0, {}, model())
    assert (2 * each, fixed) == (524_288, 0.0)
    assert delete_cost({}, model()) == (MIB, 0.0)


def test_chunks_and_strides_of_early_releases_have_one_price() -> None:
    early = model(release=QUINCY_EARLY)
    # (50 + 0.011 x bytes) microseconds, counted in milliseconds
    assert scrub_cost(4.0 * MIB, True, {"osd_scrub_cost": 10 * MIB}, early) == (115.0, 1.0)
    assert delete_cost({}, early) == (0.0, 12.0)
    fixed = trim_cost(4.0 * MIB, {}, early)
    assert fixed[0] == 0.0
    assert fixed[1] > 0.0
    assert recovery_costs(4096.0, 1, {}, early) == recovery_costs(4.0 * MIB, 1, {}, early) == (231.0, 0.0, 0.0)


def test_a_pull_costs_the_chunk_and_a_push_its_part_of_the_object() -> None:
    assert recovery_parts(1.0 * MIB, {}, model()) == 1
    assert recovery_costs(1.0 * MIB, 1, {}, model()) == (MIB, MIB + 1000, 8 * MIB)
    small = {"osd_recovery_max_chunk": 512 << 10}
    assert recovery_parts(1.0 * MIB, small, model()) == 2
    assert recovery_costs(1.0 * MIB, 2, small, model()) == (MIB, MIB / 2 + 1000, MIB / 2)
    assert recovery_costs(1.0 * MIB, 2, small, model(scheduler=WPQ))[1:] == (MIB / 2 + 1000, MIB / 2 + 1000)


def test_what_starts_an_erasure_coded_object_costs_all_of_it() -> None:
    """A push is of one part: 512 KiB of 1 MiB at 2+1."""
    assert recovery_costs(MIB / 2, 1, {}, model(), 2) == (MIB, MIB / 2 + 1000, 8 * MIB)


def test_no_part_of_an_object_is_larger_than_the_chunk() -> None:
    for size in (1.0, 65536.0, 65537.0, 4.0 * MIB, 33.0 * MIB):
        parts = recovery_parts(size, {"osd_recovery_max_chunk": 65536}, model())
        assert size / parts <= 65536 < size / max(parts - 1, 0.5) or parts == 1


@pytest.mark.parametrize("release", RELEASES.values(), ids=str)
def test_every_kind_of_work_has_its_release_s_class(release: Any) -> None:
    numbers = {"client": 0, "background_recovery": 1, "background_best_effort": 2, "immediate": 3}
    for work, name in release.service_classes.items():
        assert class_of(work, model(release=release)) == numbers[name]


def test_recovery_s_limits_count_only_with_the_override() -> None:
    chosen = {"osd_max_backfills": 7, "osd_recovery_max_active_ssd": 5}
    assert limits_of(chosen, model()) == limits_of({}, model())
    overridden = limits_of({**chosen, "osd_mclock_override_recovery_settings": True}, model())
    assert (overridden.max_backfills, overridden.recovery_active) == (7, 5)
    wpq = limits_of(chosen, model(scheduler=WPQ))
    assert (wpq.max_backfills, wpq.recovery_active) == (7, 5)


def test_a_chunk_is_not_smaller_than_the_least_chunk() -> None:
    assert limits_of({"osd_scrub_chunk_max": 3, "osd_scrub_chunk_min": 5}, model()).chunk_max == 5
    assert limits_of({"osd_scrub_chunk_max": 9, "osd_scrub_chunk_min": 5}, model()).chunk_max == 9
