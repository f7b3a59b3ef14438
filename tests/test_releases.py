from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.releases import (
    BUILT_IN_PROFILES,
    CLASSES,
    MCLOCK_NINE,
    QUINCY_EARLY,
    RELEASES,
    TENTACLE,
    UMBRELLA,
    format_version,
    level_of,
    parse_version,
    release_named,
    release_of,
)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("17.2.0", "quincy-early"),
        ("17.2.6", "quincy-early"),
        ("17.2.7", "quincy"),
        ("18.2.7", "reef"),
        ("ceph version 18.2.7 (6b0e988052ec84cf2d4a54ff9bbbc5e720b621ad) reef (stable)", "reef"),
        ("v19.2.1", "squid"),
        ("20.2.2", "tentacle-early"),
        ("20.2.3", "tentacle"),
        ("20.2.4-1+b1", "tentacle"),
        ("20.3.0", "tentacle"),
        ("21.1.0", "umbrella"),
        ("tentacle", "tentacle"),
        (" reef ", "reef"),
        ("17.2", "quincy"),
        ("18.2", "reef"),
        ("19.2", "squid"),
        ("20.2", "tentacle"),
    ],
)
def test_a_version_gives_its_release(text: str, name: str) -> None:
    assert release_of(text).name == name


@pytest.mark.parametrize(
    "text", ["16.2.15", "pacific", "", "16.2", "20", "22.1.0", "18.1.2", "17.1.0", "ceph version Development"]
)
def test_what_is_not_supported_is_refused_with_the_list_of_what_is(text: str) -> None:
    with pytest.raises(InputError, match=r"Ceph's version: found .* expected"):
        release_of(text)


@pytest.mark.parametrize("text", ["16.2.15", "pacific", "16.2"])
def test_an_unsupported_version_is_answered_with_every_supported_release(text: str) -> None:
    with pytest.raises(InputError) as refusal:
        release_of(text)
    assert all(name in str(refusal.value) for name in RELEASES)


def test_an_unknown_name_is_answered_with_those_that_are_known() -> None:
    with pytest.raises(InputError, match="quincy-early, quincy, reef, squid"):
        release_named("pacific")


@given(st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(0, 999)))
def test_a_version_survives_being_written(version: tuple[int, int, int]) -> None:
    assert parse_version(f"ceph version {format_version(version)} (abc) x (stable)") == version


@given(st.sampled_from([17, 18, 19, 20]), st.integers(0, 99))
def test_every_point_release_belongs_to_one_era(major: int, point: int) -> None:
    version = (major, 2, point)
    covering = [era for era in RELEASES.values() if era.first <= version <= (era.last or (era.first[0], 99, 99))]
    assert covering == [release_of(format_version(version))]


@pytest.mark.parametrize("name", RELEASES)
def test_a_release_has_all_nine_values_of_every_built_in_profile(name: str) -> None:
    release = RELEASES[name]
    assert set(release.profiles) == set(BUILT_IN_PROFILES)
    assert release.default_profile in release.profiles
    for settings in release.profiles.values():
        assert tuple(settings) == MCLOCK_NINE


def test_the_nine_are_written_class_by_class() -> None:
    assert MCLOCK_NINE[:3] == (
        "osd_mclock_scheduler_client_res",
        "osd_mclock_scheduler_client_wgt",
        "osd_mclock_scheduler_client_lim",
    )
    assert [name.split("_")[-1] for name in MCLOCK_NINE] == ["res", "wgt", "lim"] * len(CLASSES)


def test_only_20_2_3_overbooks_its_reservations() -> None:
    sums = {
        release.name: max(
            sum(float(settings[name]) for name in MCLOCK_NINE if name.endswith("_res"))
            for settings in release.profiles.values()
        )
        for release in RELEASES.values()
    }
    assert sums.pop("tentacle") == pytest.approx(1.05)
    assert max(sums.values()) <= 1


def test_backfill_moved_to_best_effort_in_17_2_7() -> None:
    classes = {name: release.service_classes["backfill"] for name, release in RELEASES.items()}
    assert classes.pop("quincy-early") == "background_recovery"
    assert set(classes.values()) == {"background_best_effort"}


def test_erasure_code_recovery_reads_are_scheduled_from_20_2_3() -> None:
    for work in ("recovery", "backfill"):
        classes = {name: era.service_classes[f"erasure-code {work} read"] for name, era in RELEASES.items()}
        # by the PG's recovery priority, as the work itself
        assert classes.pop("tentacle") == RELEASES["tentacle"].service_classes[work]
        assert set(classes.values()) == {"immediate"}


def test_no_limit_is_written_as_the_release_writes_it() -> None:
    assert (QUINCY_EARLY.no_limit, TENTACLE.no_limit) == (999_999, 0)


def test_the_newest_point_releases_that_are_known() -> None:
    newest = {name: format_version(era.newest) for name, era in RELEASES.items()}
    assert (newest["reef"], newest["squid"], newest["tentacle"]) == ("18.2.8", "19.2.7", "20.2.4")


def test_umbrella_is_known_and_not_supported() -> None:
    assert not UMBRELLA.verified
    assert UMBRELLA.name not in RELEASES
    assert all(era.verified for era in RELEASES.values())
    assert copy.deepcopy(UMBRELLA) is UMBRELLA


def test_a_version_names_a_patch_level_and_a_release_none() -> None:
    assert level_of("18.2.1") == (18, 2, 1)
    assert level_of("reef") is None
    assert level_of("19.2") is None


@pytest.mark.parametrize(
    ("version", "share"),
    [
        ("17.2.6", False),
        ("17.2.7", True),
        ("18.2.0", False),
        ("18.2.1", True),
        ("reef", True),
        ("19.2.0", True),
        ("20.2.0", True),
    ],
)
def test_from_when_on_all_clients_share_one_queue(version: str, share: bool) -> None:
    assert release_of(version).clients_share(level_of(version)) is share
