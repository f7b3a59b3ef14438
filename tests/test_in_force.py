from __future__ import annotations

import json
from typing import Dict, Mapping

import pytest

from ceph_tuner.core.ceph.target import Place
from ceph_tuner.core.errors import CommandFailed, InputError
from ceph_tuner.core.knobs.catalogue import KNOBS, PROFILE
from ceph_tuner.core.knobs.releases import QUINCY_EARLY, REEF, TENTACLE, Release, Settings, nine
from ceph_tuner.core.knobs.settings import format_settings
from ceph_tuner.core.profiles.in_force import hardware_of, kinds_of, profile_in_force
from ceph_tuner.core.profiles.translation import translate

TUNED = nine((0.5, 8, 0.0), (0.2, 1, 0.5), (0.05, 1, 0.3))


def options_of(release: Release, settings: Settings, **others: str) -> Dict[str, str]:
    """What an OSD with these settings would show."""
    shown = {
        name: entry.format(default) for name, entry in KNOBS.items() if (default := entry.default(release)) is not None
    }
    return {**shown, **format_settings(settings, release), **others}


def test_a_custom_profile_is_found_with_what_is_not_at_its_default() -> None:
    options = options_of(TENTACLE, {PROFILE: "custom", **TUNED, "osd_max_scrubs": 5})
    found = profile_in_force("night", options, TENTACLE, "20.2.4", osds=3)
    assert found.profile.settings == {**TUNED, "osd_max_scrubs": 5}
    assert found.profile.name == "night"
    assert (found.profile.version, found.profile.osds, found.notes) == ("20.2.4", 3, ())


def test_a_built_in_profile_is_found_by_its_name() -> None:
    options = options_of(TENTACLE, {PROFILE: "high_client_ops", **TENTACLE.profiles["high_client_ops"]})
    found = profile_in_force("night", options, TENTACLE).profile
    assert found.built_in
    assert found.name == "high_client_ops"
    assert translate(found, TENTACLE).settings == {PROFILE: "high_client_ops"}


def test_a_built_in_profile_with_other_knobs_is_a_profile_of_its_own() -> None:
    options = options_of(REEF, {PROFILE: "balanced", **REEF.profiles["balanced"], "osd_max_scrubs": 1})
    found = profile_in_force("night", options, REEF).profile
    assert not found.built_in
    assert found.settings == {**REEF.profiles["balanced"], "osd_max_scrubs": 1}


def test_what_only_the_operator_sets_is_in_no_profile() -> None:
    night = {"osd_scrub_begin_hour": "22", "osd_backfill_scan_max": "64", "bluestore_throttle_cost_per_io": "9000"}
    options = options_of(TENTACLE, {PROFILE: "balanced", **TENTACLE.profiles["balanced"]}, **night)
    found = profile_in_force("night", options, TENTACLE, "20.2.4")
    assert found.profile.built_in
    assert (found.profile.settings, found.notes) == (TENTACLE.profiles["balanced"], ())


def test_what_the_release_ignores_is_left_out_and_said() -> None:
    options = options_of(REEF, {PROFILE: "custom", **TUNED}, osd_scrub_cost="1048576", osd_max_backfills="5")
    found = profile_in_force("night", options, REEF)
    assert found.profile.settings == TUNED
    assert len(found.notes) == 2
    assert any("osd_scrub_cost" in note for note in found.notes)


def test_a_value_out_of_our_range_is_left_out_and_said() -> None:
    found = profile_in_force("x", options_of(REEF, {PROFILE: "custom", **TUNED}, osd_max_scrubs="99"), REEF)
    assert "osd_max_scrubs" not in found.profile.settings
    assert found.notes == ("osd_max_scrubs: found 99, expected 1 to 10: left out",)


def test_recovery_limits_come_with_what_opens_them() -> None:
    opened = {"osd_mclock_override_recovery_settings": "true", "osd_max_backfills": "5"}
    found = profile_in_force("x", options_of(REEF, {PROFILE: "custom", **TUNED}, **opened), REEF).profile
    assert found.settings["osd_max_backfills"] == 5
    assert found.settings["osd_mclock_override_recovery_settings"] is True


def test_an_osd_without_mclock_has_no_profile() -> None:
    with pytest.raises(InputError, match="osd_op_queue: found wpq"):
        profile_in_force("x", options_of(REEF, {PROFILE: "custom", **TUNED}, osd_op_queue="wpq"), REEF)


def test_a_starved_class_cannot_be_a_profile() -> None:
    options = options_of(REEF, {PROFILE: "custom", **TUNED}, osd_mclock_scheduler_client_wgt="0")
    with pytest.raises(InputError, match="client_wgt: found 0, expected 1 to 1000"):
        profile_in_force("x", options, REEF)


def test_iops_per_shard_become_fractions() -> None:
    in_iops = nine((1344, 2, 999_999), (672, 1, 2688), (1, 2, 999_999))
    found = profile_in_force("x", options_of(QUINCY_EARLY, {PROFILE: "custom", **in_iops}), QUINCY_EARLY).profile
    assert found.settings["osd_mclock_scheduler_client_res"] == pytest.approx(0.5, abs=0.001)
    assert found.settings["osd_mclock_scheduler_client_lim"] == 0
    assert found.settings["osd_mclock_scheduler_background_best_effort_res"] == 0
    assert found.settings["osd_mclock_scheduler_background_recovery_lim"] == pytest.approx(1, abs=0.001)


def test_hardware_is_that_of_the_device() -> None:
    options = options_of(REEF, {})
    flash, disk = hardware_of(options, "nvme"), hardware_of(options, "hdd")
    assert (flash.capacity_iops, flash.shards, flash.device_class) == (21500, 8, "nvme")
    assert (disk.capacity_iops, disk.bandwidth_bytes_s, disk.shards) == (315, 150 * 2**20, 1)
    assert hardware_of({**options, "osd_op_num_shards": "3"}, "hdd").shards == 3
    with pytest.raises(InputError, match=r"osd\.5: found no option osd_op_num_shards"):
        hardware_of({}, "ssd", "osd.5")


class Metadata:
    def __init__(self, answer: str = "") -> None:
        self._answer = answer

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        if not self._answer:
            raise CommandFailed(f"ceph {prefix}", -22, "command not known")
        return {"osd metadata": self._answer}[prefix]

    def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
        raise AssertionError(daemon)


def test_a_drive_is_of_the_kind_that_it_says_whatever_its_class() -> None:
    places = [Place(0, "archive"), Place(1, "hdd"), Place(2, "hdd"), Place(3, ""), Place(4, "hdd-large")]
    said = [{"id": 0, "rotational": "1"}, {"id": 1, "rotational": "0"}, {"id": 2}, {"id": 9, "rotational": "1"}]
    assert kinds_of(Metadata(json.dumps(said)), places) == {0: "hdd", 1: "ssd", 2: "hdd", 3: "ssd", 4: "ssd"}
    assert kinds_of(Metadata(), places[:2]) == {0: "ssd", 1: "hdd"}


def test_an_osd_has_the_options_of_its_drives_kind_whatever_its_class() -> None:
    options = options_of(REEF, {}, osd_mclock_max_capacity_iops_hdd="380")
    found = hardware_of(options, "archive", kind="hdd")
    assert (found.capacity_iops, found.bandwidth_bytes_s, found.shards) == (380, 150 * 2**20, 1)
    assert found.device_class == "archive"
    assert hardware_of(options, "hdd", kind="ssd").capacity_iops == 21500


def test_iops_per_shard_are_those_of_the_drives_kind() -> None:
    in_iops = nine((190, 2, 999_999), (95, 1, 380), (1, 2, 999_999))
    options = options_of(
        QUINCY_EARLY, {PROFILE: "custom", **in_iops}, osd_mclock_max_capacity_iops_hdd="380", osd_op_num_shards_hdd="1"
    )
    found = profile_in_force("x", options, QUINCY_EARLY, device_class="archive", kind="hdd").profile
    assert found.settings["osd_mclock_scheduler_client_res"] == pytest.approx(0.5, abs=0.001)
    assert found.settings["osd_mclock_scheduler_background_recovery_lim"] == pytest.approx(1, abs=0.001)
