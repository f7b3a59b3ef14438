from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.catalogue import OVERRIDE
from ceph_tuner.core.knobs.releases import CLASSES, MCLOCK_NINE, QUINCY_EARLY, REEF, RELEASES, TENTACLE, Release, nine
from ceph_tuner.core.knobs.settings import check_settings
from ceph_tuner.search.space import CLIENT_LIMIT, DEFERRED, Count, KnobSpace, space_for

FRACTIONAL = [release for release in RELEASES.values() if release.units == "fraction"]
units = st.floats(min_value=0, max_value=1, allow_nan=False)


def whole_space(release: Release = TENTACLE) -> KnobSpace:
    return space_for(release, ["recovery", "scrub", "snaptrim"], release.profiles["balanced"])


@pytest.mark.parametrize("release", FRACTIONAL, ids=str)
@given(data=st.data())
def test_every_point_is_settings_that_the_release_accepts(release: Release, data: st.DataObject) -> None:
    space = whole_space(release)
    settings = space.decode(data.draw(st.lists(units, min_size=space.size, max_size=space.size)))
    check_settings(settings, release)
    assert sum(settings[f"osd_mclock_scheduler_{c}_res"] for c in CLASSES) <= 1 + 1e-9
    for service_class in CLASSES:
        limit = settings[f"osd_mclock_scheduler_{service_class}_lim"]
        assert limit == 0 or limit >= settings[f"osd_mclock_scheduler_{service_class}_res"]


@given(st.data())
def test_settings_of_a_point_encode_back_to_themselves(data: st.DataObject) -> None:
    space = whole_space()
    settings = space.decode(data.draw(st.lists(units, min_size=space.size, max_size=space.size)))
    assert space.decode(space.encode(settings)) == settings
    assert space.nearest(settings) == settings


@given(st.sets(st.sampled_from(MCLOCK_NINE), min_size=1), st.data())
def test_values_that_are_not_searched_stay_as_they_are(free: set, data: st.DataObject) -> None:
    origin = REEF.profiles["high_client_ops"]
    space = space_for(REEF, ["recovery"], origin, sorted(free))
    settings = space.decode(data.draw(st.lists(units, min_size=space.size, max_size=space.size)))
    assert {name: settings[name] for name in MCLOCK_NINE if name not in free} == {
        name: origin[name] for name in MCLOCK_NINE if name not in free
    }
    check_settings(settings, REEF)
    assert space.decode(space.encode(settings)) == settings


@given(st.integers(1, 1000), st.integers(1, 1000), st.booleans(), st.data())
def test_a_count_reads_back(low: int, span: int, log_scale: bool, data: st.DataObject) -> None:
    count = Count("some", low, low + span, log_scale)
    value = data.draw(st.integers(low, low + span))
    assert count.decode(count.encode(value)) == value
    assert 0 <= count.encode(value) <= 1


@pytest.mark.parametrize("release", FRACTIONAL, ids=str)
def test_built_in_profiles_encode_to_points_inside_the_cube(release: Release) -> None:
    for profile in release.profiles.values():
        point = whole_space(release).encode(profile)
        assert all(0 <= u <= 1 for u in point)
        check_settings(whole_space(release).decode(point), release)


def test_values_are_plain_python_numbers() -> None:
    import numpy

    space = whole_space()
    settings = space.decode([numpy.float64(0.3)] * space.size)
    assert {type(value) for value in settings.values()} == {int, float}


def test_a_recovery_objective_brings_no_scrub_knob() -> None:
    space = space_for(TENTACLE, ["client", "recovery"], TENTACLE.profiles["balanced"])
    assert space.free == tuple(name for name in MCLOCK_NINE[:6] if name != CLIENT_LIMIT)


def test_a_limit_on_clients_is_searched_only_where_one_is_in_force() -> None:
    limited = {**TENTACLE.profiles["balanced"], CLIENT_LIMIT: 0.6}
    assert space_for(TENTACLE, ["client", "recovery"], limited).free == MCLOCK_NINE[:6]
    chosen = space_for(TENTACLE, ["client"], TENTACLE.profiles["balanced"], [CLIENT_LIMIT])
    assert chosen.free == (CLIENT_LIMIT,)
    # settings of elsewhere that limit clients stand for nothing here
    space = space_for(TENTACLE, ["client", "recovery"], TENTACLE.profiles["balanced"])
    assert space.unsearched(limited) == [CLIENT_LIMIT]


def test_what_serves_other_work_stays_as_it_is_in_force() -> None:
    recovery, effort = MCLOCK_NINE[3:6], MCLOCK_NINE[6:]
    scrub = space_for(TENTACLE, ["client", "scrub"], TENTACLE.profiles["balanced"])
    assert not set(recovery) & set(scrub.free)
    assert scrub.left_alone == recovery
    settings = scrub.decode([1.0] * scrub.size)
    assert {name: settings[name] for name in recovery} == dict(zip(recovery, (0.5, 1, 0)))
    # the clients get no more than recovery leaves, whatever it had where settings come from
    assert settings["osd_mclock_scheduler_client_res"] == 0.5
    elsewhere = scrub.nearest(nine((0.6, 8, 0), (0.1, 1, 0.4), (0, 1, 0.7)))
    assert {name: elsewhere[name] for name in MCLOCK_NINE} == nine((0.5, 8, 0), (0.5, 1, 0), (0, 1, 0.7))
    # misplaced objects are moved in recovery's class up to 17.2.6
    assert set(effort) <= set(space_for(TENTACLE, ["backfill"], TENTACLE.profiles["balanced"]).free)
    early = space_for(QUINCY_EARLY, ["backfill"], QUINCY_EARLY.profiles["balanced"]).free
    assert set(recovery) <= set(early)
    assert not set(effort) & set(early)
    # where no background work is meant, nobody knows which it will be; and what is chosen is chosen
    assert space_for(TENTACLE, ["client"], TENTACLE.profiles["balanced"]).free == tuple(
        name for name in MCLOCK_NINE if name != CLIENT_LIMIT
    )
    assert space_for(TENTACLE, ["scrub"], TENTACLE.profiles["balanced"], recovery).free == recovery
    assert space_for(TENTACLE, ["scrub"], TENTACLE.profiles["balanced"], ["osd_max_scrubs"]).left_alone == ()


@pytest.mark.parametrize("kind", ["recovery", "backfill"])
def test_on_several_shards_recovery_brings_its_chunk(kind: str) -> None:
    balanced = TENTACLE.profiles["balanced"]
    space = space_for(TENTACLE, ["client", kind], balanced, shards=8)
    assert space.free == (*space_for(TENTACLE, ["client", kind], balanced).free, "osd_recovery_max_chunk")
    # what is in force is the release's default until it is changed
    assert space.decode(space.encode({}))["osd_recovery_max_chunk"] == 8 << 20
    assert (
        space_for(TENTACLE, ["client", "scrub"], balanced, shards=8).free
        == space_for(TENTACLE, ["client", "scrub"], balanced).free
    )


def test_on_hard_disks_an_objective_of_clients_brings_the_batch_of_deferred_writes() -> None:
    balanced = TENTACLE.profiles["balanced"]
    of_both, of_recovery = (
        space_for(TENTACLE, work, balanced, kind="hdd") for work in (["client", "recovery"], ["recovery"])
    )
    assert of_both.free == (*space_for(TENTACLE, ["client", "recovery"], balanced).free, DEFERRED)
    assert DEFERRED not in of_recovery.free
    assert of_both.decode(of_both.encode({}))[DEFERRED] == 64
    assert {of_both.decode([u] * of_both.size)[DEFERRED] for u in (0.0, 1.0)} == {4, 64}


@given(st.floats(0, 1))
def test_recovery_chunks_are_whole_blocks_of_64_kib(u: float) -> None:
    space = space_for(TENTACLE, ["recovery"], TENTACLE.profiles["balanced"], ["osd_recovery_max_chunk"])
    chunk = space.decode([u])["osd_recovery_max_chunk"]
    assert isinstance(chunk, int)
    assert chunk % (64 << 10) == 0
    assert 256 << 10 <= chunk <= 8 << 20
    assert space.decode(space.encode({"osd_recovery_max_chunk": chunk})) == {"osd_recovery_max_chunk": chunk}


def test_the_ends_of_a_count_are_multiples_of_its_step() -> None:
    with pytest.raises(ValueError, match="multiples of 64"):
        Count("some", 64, 100, step=64)


def test_a_scrub_objective_brings_the_scrub_knobs_that_the_release_honours() -> None:
    here = space_for(TENTACLE, ["client", "scrub"], TENTACLE.profiles["balanced"]).free
    assert "osd_scrub_chunk_max" in here
    assert "osd_scrub_cost" not in here
    early = space_for(QUINCY_EARLY, ["client", "scrub"], QUINCY_EARLY.profiles["balanced"]).free
    assert "osd_scrub_cost" in early


def test_a_knob_that_does_nothing_in_the_release_is_refused_with_what_does_its_job() -> None:
    with pytest.raises(InputError, match="osd_scrub_chunk_max"):
        space_for(TENTACLE, ["scrub"], TENTACLE.profiles["balanced"], ["osd_scrub_cost"])
    with pytest.raises(InputError, match="one of"):
        space_for(TENTACLE, ["scrub"], TENTACLE.profiles["balanced"], ["pg_num"])
    with pytest.raises(InputError, match="one of"):
        space_for(TENTACLE, ["scrub"], TENTACLE.profiles["balanced"], ["nonsense"])


def test_a_chosen_recovery_knob_brings_the_override_that_it_needs() -> None:
    space = space_for(TENTACLE, ["recovery"], TENTACLE.profiles["balanced"], ["osd_recovery_max_active_ssd"])
    settings = space.decode([0.5])
    assert settings[OVERRIDE] is True
    check_settings(settings, TENTACLE)


def test_a_chunk_is_never_proposed_below_the_smallest_in_force() -> None:
    in_force = {**TENTACLE.profiles["balanced"], "osd_scrub_chunk_min": 9}
    space = space_for(TENTACLE, ["scrub"], in_force, ["osd_scrub_chunk_max"])
    assert space.decode([0.0]) == {"osd_scrub_chunk_max": 9}


def test_a_point_of_another_space_is_refused() -> None:
    with pytest.raises(ValueError, match="3"):
        whole_space().decode([0.5] * 3)
