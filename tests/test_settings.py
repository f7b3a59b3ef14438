from __future__ import annotations

from typing import Dict

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.catalogue import KNOBS, MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import QUINCY_EARLY, REEF, RELEASES, TENTACLE, Release, Settings, nine
from ceph_tuner.core.knobs.settings import (
    ChangeCost,
    change_cost,
    check_settings,
    fitting_reservations,
    format_settings,
    moved_knobs,
    moves_alone,
    notes_on,
    parse_settings,
    reservation_sum,
    settings_in_force,
    shares,
)

GOOD = nine((0.5, 8, 0.0), (0.2, 1, 0.5), (0.05, 1, 0.3))

share = st.tuples(st.floats(0, 1), st.integers(1, 1000), st.floats(0, 1))


@given(st.tuples(share, share, share))
def test_what_passes_can_be_kept_by_an_osd(three: tuple[tuple[float, int, float], ...]) -> None:
    settings = nine(*three)
    try:
        checked = check_settings(settings, TENTACLE)
    except InputError:
        total = sum(round(reservation, 6) for reservation, _, _ in three)
        below = any(0 < limit < reservation for reservation, _, limit in three)
        assert total > 1 or below
        return
    assert reservation_sum(checked) <= 1 + 2e-6
    for reservation, weight, limit in shares(checked).values():
        assert weight >= 1
        assert limit == 0 or limit >= reservation - 2e-6


@given(st.tuples(share, share, share))
def test_checking_twice_changes_nothing(three: tuple[tuple[float, int, float], ...]) -> None:
    try:
        checked = check_settings(nine(*three), REEF)
    except InputError:
        assume(False)
        return
    assert check_settings(checked, REEF) == checked
    assert parse_settings(format_settings(checked, REEF), REEF) == checked


@pytest.mark.parametrize("release", RELEASES.values(), ids=list(RELEASES))
def test_the_built_in_profiles_pass(release: Release) -> None:
    for settings in release.profiles.values():
        if release.units == "fraction":
            assert check_settings(settings, release) == settings


def test_overbooked_reservations_pass_only_as_ceph_itself_wrote_them() -> None:
    own = TENTACLE.profiles["balanced"]
    assert reservation_sum(own) == pytest.approx(1.05)
    assert any("1.05" in note for note in notes_on(own, TENTACLE))
    with pytest.raises(InputError, match=r"sum to 1\.05, expected at most 1"):
        check_settings({**own, "osd_mclock_scheduler_client_wgt": 2}, TENTACLE)


def test_the_refusal_of_a_profile_s_own_reservations_says_which_and_what_would_pass() -> None:
    """Who changes one weight of `balanced` has named no reservation."""
    custom = {**TENTACLE.profiles["balanced"], "osd_mclock_scheduler_client_wgt": 2}
    with pytest.raises(InputError, match="found the reservations of balanced, which sum to") as refusal:
        check_settings(custom, TENTACLE)
    instead = dict(word.split("=") for word in str(refusal.value).split() if "=" in word)
    assert sorted(instead) == sorted(name for name in MCLOCK_NINE if name.endswith("_res"))
    check_settings({**custom, **{name: float(value) for name, value in instead.items()}}, TENTACLE)
    with pytest.raises(InputError, match="found reservations that sum to"):
        check_settings({**custom, "osd_mclock_scheduler_client_res": 0.51}, TENTACLE)


def test_eight_of_the_nine_are_refused() -> None:
    for name in MCLOCK_NINE:
        partial = {key: value for key, value in GOOD.items() if key != name}
        with pytest.raises(InputError, match=f"8 of the nine mClock values, expected {name}"):
            check_settings(partial, REEF)


def test_a_limit_below_the_reservation_is_refused() -> None:
    with pytest.raises(InputError, match=r"background_recovery_lim: found 0\.1, expected 0"):
        check_settings({**GOOD, "osd_mclock_scheduler_background_recovery_lim": 0.1}, REEF)


def test_a_weight_of_zero_is_refused_as_it_starves() -> None:
    with pytest.raises(InputError, match="best_effort_wgt: found 0, expected 1 to 1000"):
        check_settings({**GOOD, "osd_mclock_scheduler_background_best_effort_wgt": 0}, REEF)


def test_the_nine_under_a_built_in_profile_are_refused() -> None:
    with pytest.raises(InputError, match="custom"):
        check_settings({PROFILE: "balanced", **GOOD}, REEF)
    assert check_settings({PROFILE: "custom", **GOOD}, REEF)[PROFILE] == "custom"


def test_a_knob_that_does_nothing_is_refused_with_its_substitutes() -> None:
    with pytest.raises(InputError) as refusal:
        check_settings({"osd_scrub_cost": 2**20}, TENTACLE)
    assert "osd_scrub_chunk_max" in str(refusal.value)
    assert "wpq" in str(refusal.value)
    assert check_settings({"osd_scrub_cost": 2**20}, QUINCY_EARLY) == {"osd_scrub_cost": 2**20}


def test_a_recovery_limit_needs_its_override_beside_it() -> None:
    with pytest.raises(InputError, match="osd_mclock_override_recovery_settings: true"):
        check_settings({"osd_max_backfills": 3}, REEF)
    together = {"osd_max_backfills": 3, "osd_mclock_override_recovery_settings": True}
    assert check_settings(together, REEF) == together


def test_a_chunk_smaller_than_the_smallest_is_refused() -> None:
    with pytest.raises(InputError, match="osd_scrub_chunk_max: found 3, expected at least 5"):
        check_settings({"osd_scrub_chunk_max": 3}, REEF)
    with pytest.raises(InputError, match="osd_shallow_scrub_chunk_max"):
        check_settings({"osd_shallow_scrub_chunk_max": 20}, REEF)
    assert check_settings({"osd_scrub_chunk_max": 3, "osd_scrub_chunk_min": 3}, REEF)


def test_settings_come_in_the_order_in_which_they_are_written() -> None:
    backwards: Settings = dict(reversed(list({PROFILE: "custom", **GOOD, "osd_max_scrubs": 2}.items())))
    assert list(check_settings(backwards, REEF)) == [PROFILE, *MCLOCK_NINE, "osd_max_scrubs"]


def test_the_place_of_a_fault_is_the_callers() -> None:
    def place(*keys: object) -> str:
        return "file.yaml:12 settings." + ".".join(str(key) for key in keys)

    with pytest.raises(InputError, match=r"^file\.yaml:12 settings\.osd_max_scrubs: found 99, expected 1 to 10$"):
        check_settings({"osd_max_scrubs": 99}, REEF, place)


def test_what_is_in_force_is_read_whatever_it_is() -> None:
    options: Dict[str, str] = {PROFILE: "custom", "osd_mclock_scheduler_client_wgt": "0", "other": "x"}
    assert settings_in_force(options) == {PROFILE: "custom", "osd_mclock_scheduler_client_wgt": 0}


def test_a_knob_is_moved_where_its_value_is_another_one_and_a_profile_is_one() -> None:
    in_force = {"osd_max_scrubs": 3, "osd_scrub_sleep": 0.0}
    assert moved_knobs({}, in_force) == 0
    assert moved_knobs({"osd_max_scrubs": 3.0, "osd_scrub_sleep": 0.1}, in_force) == 1
    assert moved_knobs({"osd_max_scrubs": 1, "osd_max_backfills": 2, PROFILE: "custom"}, in_force) == 2
    assert moved_knobs({PROFILE: "balanced"}, in_force) == 1


def test_a_change_costs_its_entries_and_a_custom_profile_is_ten() -> None:
    in_force = {**TENTACLE.profiles["balanced"], "osd_max_scrubs": 3}
    weight = {**in_force, "osd_mclock_scheduler_client_wgt": 9}
    assert change_cost(in_force, in_force, built_in=True) == ChangeCost(0, 0)
    assert change_cost({**in_force, "osd_max_scrubs": 1}, in_force, built_in=True) == ChangeCost(1, 1)
    assert change_cost(weight, in_force, built_in=True) == ChangeCost(10, 1)
    # where a custom profile is in force, one of its values is one entry
    assert change_cost(weight, in_force, built_in=False) == ChangeCost(1, 1)
    assert change_cost({PROFILE: "high_client_ops"}, in_force, built_in=True) == ChangeCost(1, 1)
    assert ChangeCost(3, 3) < ChangeCost(10, 1) < ChangeCost(10, 2)


def test_of_settings_only_what_moves_is_written_and_the_nine_together() -> None:
    before = {**TENTACLE.profiles["balanced"], "osd_max_scrubs": 2}
    batch, weight = "bluestore_deferred_batch_ops_hdd", "osd_mclock_scheduler_client_wgt"
    assert moves_alone({**before, batch: 4}, before, TENTACLE) == {batch: 4}
    # a default stands for what has no entry
    assert moves_alone({**before, batch: 64}, before, TENTACLE) == {}
    assert moves_alone({"osd_max_scrubs": 3}, before, TENTACLE) == {"osd_max_scrubs": 3}
    shares = {**TENTACLE.profiles["balanced"], weight: 9}
    assert moves_alone({**shares, "osd_max_scrubs": 2, PROFILE: "custom"}, before, TENTACLE) == {
        **shares,
        PROFILE: "custom",
    }
    assert moves_alone({PROFILE: "high_client_ops"}, before, TENTACLE) == {PROFILE: "high_client_ops"}


def test_a_knob_is_written_with_what_it_needs_and_that_never_alone() -> None:
    active, override = "osd_recovery_max_active_ssd", "osd_mclock_override_recovery_settings"
    before = TENTACLE.profiles["balanced"]
    settings = {active: 9, override: True, "osd_max_scrubs": 1}
    assert moves_alone(settings, before, TENTACLE) == settings
    assert moves_alone({**settings, active: 10}, before, TENTACLE) == {"osd_max_scrubs": 1}
    # also where it is in force: nobody else need have set it
    assert override in moves_alone(settings, {**before, override: True}, TENTACLE)


def test_shares_are_in_the_order_of_the_table() -> None:
    assert list(format_settings(GOOD, REEF)) == [name for name in KNOBS if name in GOOD]


@given(st.tuples(share, share, share))
def test_fitting_reservations_sum_to_at_most_1_in_the_same_proportions(
    three: tuple[tuple[float, int, float], ...],
) -> None:
    settings = {**nine(*three), "osd_max_scrubs": 3}
    fitting, total = fitting_reservations(settings), reservation_sum(settings)
    assert reservation_sum(fitting) <= max(1.0, min(total, 1.0)) + 1e-9
    if total <= 1:
        assert fitting == settings
    for name, (reservation, _, _) in shares(fitting).items():
        wanted = shares(settings)[name][0] / max(1.0, total)
        assert wanted - 0.01 - 1e-9 <= reservation <= wanted + 1e-9
    assert {name: value for name, value in fitting.items() if not name.endswith("_res")} == {
        name: value for name, value in settings.items() if not name.endswith("_res")
    }
