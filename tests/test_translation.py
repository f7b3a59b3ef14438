from __future__ import annotations

from typing import Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.cost import Hardware, allocation
from ceph_tuner.core.knobs.releases import (
    BUILT_IN_PROFILES,
    QUINCY,
    QUINCY_EARLY,
    REEF,
    RELEASES,
    SQUID,
    TENTACLE,
    Release,
    Settings,
    Version,
    nine,
)
from ceph_tuner.core.knobs.settings import check_settings, shares
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.core.profiles.translation import from_release_units, to_release_units, translate

TUNED = nine((0.5, 8, 0.0), (0.2, 1, 0.5), (0.05, 1, 0.3))
FLASH = Hardware(21500, 1200 * 2**20, 8)
SINCE_17_2_7 = [release for release in RELEASES.values() if release.units == "fraction"]

share = st.tuples(st.floats(0, 0.33), st.integers(1, 1000), st.one_of(st.just(0.0), st.floats(0.34, 1)))


def tuned(release: Release, **others: object) -> Profile:
    settings: Settings = {**TUNED, **others}  # type: ignore[dict-item]
    return Profile.make("tuned", release, settings)


@given(st.tuples(share, share, share), st.sampled_from(SINCE_17_2_7), st.sampled_from(SINCE_17_2_7))
def test_fractions_carry_over_unchanged(
    three: tuple[tuple[float, int, float], ...], there: Release, here: Release
) -> None:
    profile = Profile.make("any", there, nine(*three))
    found = translate(profile, here, FLASH)
    assert found.settings == {PROFILE: "custom", **profile.settings}


@given(st.tuples(share, share, share), st.integers(1, 16), st.floats(500, 90_000))
def test_iops_per_shard_come_back_as_the_same_fractions(
    three: tuple[tuple[float, int, float], ...], shards: int, capacity: float
) -> None:
    hardware = Hardware(capacity, 1e9, shards)
    settings = Profile.make("any", QUINCY_EARLY, nine(*three)).settings
    in_iops = to_release_units(settings, QUINCY_EARLY, hardware)
    back = from_release_units(in_iops, QUINCY_EARLY, hardware)
    step = 1 / hardware.shard_iops
    for one, other in zip(shares(settings).values(), shares(back).values()):
        assert one[0] == pytest.approx(other[0], abs=1.5 * step + 2e-6)
        assert one[1] == other[1]
        assert one[2] == pytest.approx(other[2], abs=1.01 * step + 2e-6) or not one[2]
    check_settings({PROFILE: "custom", **in_iops}, QUINCY_EARLY)


def test_a_profile_of_today_gives_the_same_rates_on_17_2_6() -> None:
    there = allocation(TUNED, FLASH, REEF)
    found = translate(tuned(REEF), QUINCY_EARLY, FLASH)
    assert found.settings["osd_mclock_scheduler_client_res"] == 1344
    assert found.settings["osd_mclock_scheduler_client_lim"] == 999_999
    here = allocation(found.settings, FLASH, QUINCY_EARLY)
    for service_class in there:
        assert here[service_class].reserved_iops == pytest.approx(there[service_class].reserved_iops, rel=0.01)


def test_iops_without_hardware_are_refused() -> None:
    with pytest.raises(InputError, match="IOPS per shard"):
        translate(tuned(REEF), QUINCY_EARLY)


@pytest.mark.parametrize("release", RELEASES.values(), ids=list(RELEASES))
@pytest.mark.parametrize("name", BUILT_IN_PROFILES)
def test_a_built_in_profile_is_set_by_its_name_on_its_own_release(release: Release, name: str) -> None:
    profile = Profile.make(name, release, release.profiles[name], built_in=True)
    assert translate(profile, release).settings == {PROFILE: name}


def test_a_built_in_profile_that_is_the_same_elsewhere_keeps_its_name() -> None:
    profile = Profile.make("balanced", REEF, REEF.profiles["balanced"], built_in=True)
    assert translate(profile, SQUID).settings == {PROFILE: "balanced"}


def test_a_built_in_profile_with_other_values_elsewhere_becomes_custom() -> None:
    profile = Profile.make("balanced", REEF, REEF.profiles["balanced"], built_in=True)
    found = translate(profile, TENTACLE)
    assert found.settings == {PROFILE: "custom", **REEF.profiles["balanced"]}
    assert any("other values" in note for note in found.notes)


def test_tentacle_s_overbooked_profile_cannot_be_a_custom_one_on_reef() -> None:
    profile = Profile.make("balanced", TENTACLE, TENTACLE.profiles["balanced"], built_in=True)
    with pytest.raises(InputError, match=r"sum to 1\.05"):
        translate(profile, REEF)


def test_limits_above_the_capacity_become_none() -> None:
    profile = Profile.make("x", QUINCY_EARLY, QUINCY_EARLY.profiles["high_recovery_ops"])
    found = translate(profile, REEF)
    assert found.settings["osd_mclock_scheduler_background_recovery_lim"] == 0
    assert found.settings["osd_mclock_scheduler_client_lim"] == 0.8
    assert any("no limit" in note for note in found.notes)


def test_a_cheaper_scrub_becomes_a_larger_share_of_best_effort() -> None:
    profile = tuned(QUINCY_EARLY, osd_scrub_cost=25 * 2**20)
    found = translate(profile, REEF)
    assert "osd_scrub_cost" not in found.settings
    assert shares(found.settings)["background_best_effort"] == pytest.approx((0.1, 2, 0.6))
    assert any("2 times" in note and "snaptrim" in note for note in found.notes)


def test_a_dearer_scrub_becomes_a_smaller_share_of_best_effort() -> None:
    found = translate(tuned(QUINCY_EARLY, osd_scrub_cost=100 * 2**20), REEF)
    assert shares(found.settings)["background_best_effort"] == pytest.approx((0.025, 1, 0.15))


def test_a_scrub_too_cheap_to_make_room_for_is_refused_with_what_to_use() -> None:
    with pytest.raises(InputError, match="osd_scrub_chunk_max"):
        translate(tuned(QUINCY_EARLY, osd_scrub_cost=2**20), REEF)


def test_a_scrub_cost_alone_is_refused_with_what_to_use() -> None:
    profile = Profile.make("x", QUINCY_EARLY, {"osd_scrub_cost": 20 * 2**20})
    with pytest.raises(InputError, match=r"x settings\.osd_scrub_cost: .*does nothing on Reef.*osd_max_scrubs"):
        translate(profile, REEF)


def test_an_ignored_value_that_was_the_default_is_left_out() -> None:
    found = translate(tuned(QUINCY_EARLY, osd_scrub_cost=50 * 2**20, osd_snap_trim_cost=2**20), REEF)
    assert set(found.settings) == {PROFILE, *MCLOCK_NINE}
    assert sum("left out" in note for note in found.notes) == 2


def test_a_snaptrim_cost_has_no_counterpart_since_18_2_4() -> None:
    profile = tuned(QUINCY, osd_snap_trim_cost=2**23)
    with pytest.raises(InputError, match="osd_pg_max_concurrent_snap_trims"):
        translate(profile, REEF)


def test_an_event_cost_that_was_a_factor_is_no_addend() -> None:
    with pytest.raises(InputError, match="osd_scrub_event_cost"):
        translate(tuned(QUINCY, osd_scrub_event_cost=65536), REEF)
    assert translate(tuned(SQUID, osd_scrub_event_cost=65536), REEF).settings["osd_scrub_event_cost"] == 65536


def test_what_changed_its_class_is_said() -> None:
    notes = " ".join(translate(tuned(QUINCY_EARLY), REEF).notes)
    assert "backfill was scheduled as background_recovery, here as background_best_effort" in notes
    assert "operations cost otherwise" in notes


def test_defaults_that_differ_are_said_unless_the_profile_sets_them() -> None:
    assert any("osd_scrub_load_threshold" in note for note in translate(tuned(REEF), TENTACLE).notes)
    settled = translate(tuned(REEF, osd_scrub_load_threshold=0.5), TENTACLE)
    assert not any("osd_scrub_load_threshold" in note for note in settled.notes)


def test_other_hardware_is_said() -> None:
    profile = Profile.make("x", REEF, TUNED, hardware=Hardware(900, 6e7, 1, "ssd"))
    notes = " ".join(translate(profile, REEF, Hardware(315, 1.5e8, 1, "hdd")).notes)
    assert "measured on ssd, written to hdd" in notes
    assert "fractions carry over" in notes


@given(st.sampled_from(list(RELEASES.values())), st.sampled_from(list(RELEASES.values())))
def test_a_translation_passes_the_release_s_own_check(there: Release, here: Release) -> None:
    found = translate(tuned(there), here, FLASH)
    assert check_settings(found.settings, here) == found.settings


@pytest.mark.parametrize(
    ("made_on", "here", "note"),
    [
        ("18.2.0", (18, 2, 1), "clients share one queue here"),
        ("18.2.1", (18, 2, 0), "each client has a queue here"),
        ("18.2.7", (18, 2, 0), "each client has a queue here"),
        ("", (18, 2, 0), "each client has a queue here"),
        ("18.2.0", (18, 2, 0), None),
        ("18.2.1", None, None),
        ("18.2.0", None, "clients share one queue here"),
    ],
)
def test_reef_s_clients_share_a_queue_from_its_second_point_release_on(
    made_on: str, here: Optional[Version], note: Optional[str]
) -> None:
    profile = Profile.make("tuned", REEF, TUNED, version=made_on)
    notes = translate(profile, REEF, FLASH, here).notes
    assert [words for words in notes if "queue here" in words] == ([] if note is None else [note])


def test_a_profile_of_another_era_is_told_of_queues_too() -> None:
    notes = translate(tuned(QUINCY_EARLY), QUINCY, FLASH).notes
    assert "clients share one queue here" in notes
