from __future__ import annotations

from dataclasses import replace
from typing import Dict, List, Mapping

import pytest

from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.ceph.target import Place
from ceph_tuner.core.changes.config_database import winner
from ceph_tuner.core.changes.plan import ChangePlan, Step, plan_change, plan_rereading, plan_restore
from ceph_tuner.core.changes.step import typed
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import RELEASES, UMBRELLA, Value, nine
from ceph_tuner.core.knobs.settings import format_settings, same_value
from monitors import TENTACLE, Monitors, Table

CUSTOM: Dict[str, Value] = nine((0.3, 1, 0), (0.2, 2, 0.5), (0.1, 3, 0.4))
LIMIT = "osd_mclock_scheduler_client_lim"
BANDWIDTH, RAISED = "osd_mclock_max_sequential_bandwidth_hdd", "157286401"
SSD = "osd_mclock_max_sequential_bandwidth_ssd"


def entries(table: Table) -> List[ConfigEntry]:
    return [ConfigEntry(*key, value) for key, value in sorted(table.items())]


def plan(table: Table, target: str, settings: Mapping[str, object]) -> ChangePlan:
    monitors = Monitors(table=table)
    sources = {osd: monitors.sources(osd) for osd in monitors.osds(target)}
    return plan_change(monitors.dump(), target, settings, TENTACLE, monitors.places(), sources)


def test_custom_comes_first_then_all_nine_then_the_rest() -> None:
    made = plan({}, "osd", {**CUSTOM, "osd_max_scrubs": 1, "osd_max_backfills": 3,
                            "osd_mclock_override_recovery_settings": True})  # fmt: skip
    names = [step.name for step in made.steps]
    assert names[0] == PROFILE
    assert names[1:10] == list(MCLOCK_NINE)
    assert names.index("osd_mclock_override_recovery_settings") < names.index("osd_max_backfills")
    assert made.osds == (0, 1, 2)


def test_commands_are_those_that_an_operator_would_type() -> None:
    made = plan({("osd/host:h0", "osd_max_scrubs"): "3"}, "osd/host:h0", {"osd_max_scrubs": 1})
    assert made.commands == ["ceph config set osd/host:h0 osd_max_scrubs 1"]
    assert Step("osd.1", "osd_max_scrubs", "1", None).command == "ceph config rm osd.1 osd_max_scrubs"


def test_whoever_types_a_change_or_its_way_back_waits_where_the_applier_would() -> None:
    made = plan({("osd", PROFILE): "custom"}, "osd", {PROFILE: "balanced"})
    raised, back = f"ceph config set osd {BANDWIDTH} {RAISED}", f"ceph config rm osd {BANDWIDTH}"
    assert typed(made.steps) == (raised, f"ceph config set osd {PROFILE} balanced", "sleep 10", back)
    custom = plan({}, "osd", CUSTOM)
    after = {step.key: step.new for step in custom.steps if step.new is not None}
    found = typed(plan_restore(entries(after), custom.standing(), Monitors().places(), TENTACLE).steps)
    assert found[-5:] == (raised, "sleep 10", f"ceph config rm osd {PROFILE}", "sleep 10", back)


def test_an_option_that_is_to_be_avoided_is_changed_neither_on_the_way_nor_on_the_way_back() -> None:
    places = Monitors().places()
    there = plan_change([], "osd", {PROFILE: "balanced"}, TENTACLE, places, avoid=[BANDWIDTH])
    custom = plan({}, "osd", CUSTOM)
    after = entries({step.key: step.new for step in custom.steps if step.new is not None})
    back = plan_restore(after, custom.standing(), places, TENTACLE, avoid=[BANDWIDTH])
    for steps in (there.steps, back.steps):
        names = {step.name for step in steps}
        assert SSD in names
        assert BANDWIDTH not in names


def test_what_holds_already_is_not_written() -> None:
    table: Table = {("osd", PROFILE): "custom", ("osd", "osd_max_scrubs"): "1"}
    table.update({("osd", name): str(value) for name, value in CUSTOM.items()})
    assert plan(table, "osd", {**CUSTOM, "osd_max_scrubs": 1}).steps == ()


def test_a_built_in_profile_takes_the_nine_values_away_while_still_custom() -> None:
    table: Table = {("osd", PROFILE): "custom", **{("osd", name): str(value) for name, value in CUSTOM.items()}}
    made = plan(table, "osd", {PROFILE: "high_client_ops"})
    assert [step.new for step in made.steps] == [None] * 9 + [RAISED, "high_client_ops", None]
    assert [step.settled for step in made.steps] == [False] * 10 + [True, True]
    assert made.expected[LIMIT] == "0.000000"


@pytest.mark.parametrize("settings", [CUSTOM, {PROFILE: "high_client_ops"}])
@pytest.mark.parametrize("who", ["global", "osd", "osd/class:ssd"])
def test_values_that_sleep_under_a_built_in_profile_are_not_woken_up(who: str, settings: Mapping[str, object]) -> None:
    """To take it back would wake them up again, and nobody can tell whether they were asleep."""
    table: Table = {(who, LIMIT): "0.100000"}
    with pytest.raises(InputError, match=rf"{LIMIT} on osd.0.*`{who}` = 0.100000"):
        plan(table, "osd/class:ssd", settings)
    assert plan(table, "osd/class:ssd", {"osd_max_scrubs": 1}).steps
    as_the_profile: Table = {(who, LIMIT): "0.000000"}
    assert plan(as_the_profile, "osd/class:ssd", settings).steps


@pytest.mark.parametrize(
    ("table", "target", "settings", "told"),
    [
        ({("osd.1", PROFILE): "balanced"}, "osd", CUSTOM, r"osd.1.*`osd.1` = balanced.*ceph config rm osd.1"),
        ({("osd/host:h0", "osd_max_scrubs"): "7"}, "osd/class:ssd", {"osd_max_scrubs": 1}, "`osd/host:h0` = 7"),
        ({("osd/host:h0", LIMIT): "0.5"}, "osd", {PROFILE: "balanced"}, "`osd/host:h0` = 0.5"),
        ({}, "osd/host:nowhere", CUSTOM, "covers no running OSD"),
        ({}, "osd", {}, "at least one knob"),
        ({}, "osd", {"pg_num": 64}, "pg_num"),
        ({}, "osd", {"recovery_priority": 5}, "recovery_priority: found a property of pools"),
        ({}, "osd", {"target_max_misplaced_ratio": 0.1}, "target_max_misplaced_ratio: found an option of mgr"),
        ({}, "osd", {"osd_scrub_cost": 1}, "osd_scrub_cost"),
        ({}, "osd", {PROFILE: "custom"}, "the nine mClock values beside it"),
        ({}, "osd", {LIMIT: 0.5}, "as well"),
        ({}, "osd/class:ssd", {"osd_op_num_shards": 2}, "osd_op_num_shards: found `osd/class:ssd`.*only after"),
    ],
)
def test_what_would_have_no_effect_or_do_harm_is_refused(
    table: Table, target: str, settings: Mapping[str, object], told: str
) -> None:
    with pytest.raises(InputError, match=told):
        plan(table, target, settings)


@pytest.mark.parametrize(
    ("table", "settings", "told"),
    [
        # the bandwidth that is raised for a moment would stand between the two, and then nothing would
        (
            {("osd/class:hdd", PROFILE): "balanced"},
            {PROFILE: "high_client_ops", "osd_mclock_override_recovery_settings": True, "osd_max_backfills": 1},
            f"hand {PROFILE} of osd.1 from `osd.1` to `osd/class:hdd`",
        ),
        (
            {("osd/class:hdd", PROFILE): "balanced"},
            {**CUSTOM, "osd_deep_scrub_stride": 1048576},
            f"{PROFILE} at `osd.1`: found `osd/class:hdd`, which still decides for osd.1",
        ),
        (
            {("osd/class:hdd", PROFILE): "high_client_ops", ("osd.1", PROFILE): "balanced"},
            {"osd_deep_scrub_stride": 1048576},
            f"osd_deep_scrub_stride at `osd.1`: .* hand {PROFILE} of osd.1 from `osd/class:hdd` to `osd.1`",
        ),
    ],
)
def test_a_write_that_decides_another_option_than_its_own_is_refused(
    table: Table, settings: Mapping[str, object], told: str
) -> None:
    with pytest.raises(InputError, match=told):
        plan(table, "osd.1", settings)
    # with the OSD's capacity, as Ceph itself measures and sets it, something does stand between
    capacity = {("osd.1", "osd_mclock_max_capacity_iops_hdd"): "400.000000"}
    assert plan({**table, **capacity}, "osd.1", settings).steps


def test_an_entry_that_outranks_the_target_with_the_same_value_is_no_obstacle() -> None:
    table: Table = {("osd.1", "osd_max_scrubs"): "1"}
    assert len(plan(table, "osd", {"osd_max_scrubs": 1}).steps) == 1


def test_a_value_in_the_osds_own_ceph_conf_is_refused_and_named() -> None:
    monitors = Monitors()
    monitors.osd[2].local["osd_max_scrubs"] = "5"
    sources = {osd: monitors.sources(osd) for osd in (0, 1, 2)}
    with pytest.raises(InputError, match=r"osd_max_scrubs on osd.2: found 5 from the OSD's own ceph.conf"):
        plan_change([], "osd", {"osd_max_scrubs": 1}, TENTACLE, monitors.places(), sources)


def test_osds_that_are_down_are_named_and_not_waited_for() -> None:
    monitors = Monitors()
    places = [place if place.osd else type(place)(0, place.device_class, place.locations, False)
              for place in monitors.places()]  # fmt: skip
    made = plan_change([], "osd", {"osd_max_scrubs": 1}, TENTACLE, places)
    assert made.osds == (1, 2)
    assert "osd.0 is down" in made.warnings[0]


def test_an_entry_that_outranks_on_an_osd_that_is_down_is_refused_as_well() -> None:
    """Started under its own built-in profile, it would take our nine values for that profile's."""
    monitors = Monitors(table={("osd.0", PROFILE): "balanced"})
    monitors.osd[0].place = replace(monitors.osd[0].place, up=False)
    with pytest.raises(InputError, match=r"osd.0, which is down: .*`osd.0` = balanced.*ceph config rm osd.0"):
        plan_change(monitors.dump(), "osd", CUSTOM, TENTACLE, monitors.places())


def test_a_custom_profile_with_holes_is_warned_of() -> None:
    assert "under custom without" in plan({("osd", PROFILE): "custom"}, "osd", CUSTOM).warnings[0]


def test_taking_back_goes_the_other_way_round_with_the_profile_last() -> None:
    made = plan({("osd", "osd_max_scrubs"): "4"}, "osd", {**CUSTOM, "osd_max_scrubs": 1})
    after = {("osd", name): text for name, text in made.expected.items()}
    back = plan_restore(entries(after), made.restores(), Monitors().places(), TENTACLE)
    assert [step.name for step in back.steps] == [
        "osd_max_scrubs",
        *reversed(MCLOCK_NINE),
        BANDWIDTH,
        PROFILE,
        BANDWIDTH,
    ]
    assert [step.settled for step in back.steps[-3:]] == [False, True, True]
    assert {step.key: step.new for step in back.steps}["osd", "osd_max_scrubs"] == "4"
    assert not back.drift


def test_what_somebody_changed_since_is_left_and_told() -> None:
    made = plan({}, "osd", {"osd_max_scrubs": 1, "osd_scrub_chunk_max": 5})
    found = entries({("osd", "osd_max_scrubs"): "2", ("osd", "osd_scrub_chunk_max"): "5"})
    back = plan_restore(found, made.restores(), Monitors().places(), TENTACLE)
    assert [step.key for step in back.steps] == [("osd", "osd_scrub_chunk_max")]
    assert str(back.drift[0]) == "osd osd_max_scrubs: found 2 instead of our 1, left as it is"


def test_a_profile_that_somebody_changed_is_held_at_custom_while_the_nine_go_and_put_back() -> None:
    made = plan({}, "osd", CUSTOM)
    found = {("osd", name): text for name, text in made.expected.items()}
    found["osd", PROFILE] = "high_recovery_ops"
    back = plan_restore(entries(found), made.restores(), Monitors().places(), TENTACLE)
    assert [(step.name, step.new) for step in (back.steps[0], back.steps[-2])] == [
        (PROFILE, "custom"), (PROFILE, "high_recovery_ops")
    ]  # fmt: skip
    assert len(back.steps) == 13
    assert back.drift[0].found == "high_recovery_ops"


def test_one_osd_under_another_profile_is_held_at_custom_by_its_own_entry() -> None:
    made = plan({}, "osd", CUSTOM)
    found = {("osd", name): text for name, text in made.expected.items()}
    found["osd.1", PROFILE] = "balanced"
    back = plan_restore(entries(found), made.restores(), Monitors().places(), TENTACLE)
    assert back.steps[0] == Step("osd.1", PROFILE, "balanced", "custom")
    # the OSDs are waited for once, before the first profile is let go
    assert back.steps[-3:] == (
        Step("osd", PROFILE, "custom", None, settled=True), Step("osd.1", PROFILE, "custom", "balanced"),
        Step("osd", BANDWIDTH, RAISED, None, settled=True),
    )  # fmt: skip


def test_an_osd_that_is_down_is_held_at_custom_as_well() -> None:
    """Started meanwhile under its built-in profile, it would have keys removed at `osd`."""
    monitors = Monitors()
    made = plan({}, "osd", CUSTOM)
    found = {("osd", name): text for name, text in made.expected.items()}
    found["osd.1", PROFILE] = "balanced"
    places = [replace(place, up=place.osd != 1) for place in monitors.places()]
    assert plan_restore(entries(found), made.restores(), places, TENTACLE).steps[0] == Step(
        "osd.1", PROFILE, "balanced", "custom"
    )


def test_what_an_osd_that_is_down_has_of_its_own_does_no_harm_and_is_told() -> None:
    dead = [replace(place, up=place.osd != 1) for place in Monitors().places()]

    def warned(table: Table, settings: Mapping[str, object]) -> str:
        return " ".join(plan_change(entries(table), "osd", settings, TENTACLE, dead).warnings)

    assert "will have osd_max_scrubs = 1 of `osd.1`" in warned(
        {("osd.1", "osd_max_scrubs"): "1"}, {"osd_max_scrubs": 2}
    )
    own = {("osd.1", PROFILE): "custom", **{("osd.1", name): "1" for name in MCLOCK_NINE}}
    assert "of `osd.1`" in warned(own, CUSTOM)
    assert "of `osd.1`" in warned({("osd.1", PROFILE): "balanced"}, {PROFILE: "high_client_ops"})


def test_the_first_cure_is_the_one_that_is_safe_first() -> None:
    """The nine go before the profile, also where an operator is told to remove them."""
    table: Table = {("osd", PROFILE): "balanced", ("osd.1", PROFILE): "custom"}
    table.update({("osd.1", name): str(value) for name, value in CUSTOM.items()})
    for name in MCLOCK_NINE:
        if not same_value(table["osd.1", name], format_settings(TENTACLE.profiles["balanced"], TENTACLE)[name]):
            with pytest.raises(InputError, match=rf"ceph config rm osd\.1 {name}"):
                plan(table, "osd", {PROFILE: "balanced"})
        del table["osd.1", name]
    with pytest.raises(InputError, match=f"ceph config rm osd.1 {PROFILE}"):
        plan(table, "osd", {PROFILE: "balanced"})


def test_a_built_in_profile_under_a_wider_custom_one_is_refused_with_a_cure_that_touches_no_other_osd() -> None:
    table: Table = {("osd", PROFILE): "custom", **{("osd", name): str(value) for name, value in CUSTOM.items()}}
    with pytest.raises(InputError, match="or take `osd` as the target") as refused:
        plan(table, "osd.1", {PROFILE: "balanced"})
    assert "config rm" not in str(refused.value)


def test_values_asleep_at_an_osd_beside_the_target_are_seen_where_its_profile_is_held() -> None:
    balanced = format_settings(TENTACLE.profiles["balanced"], TENTACLE)
    table: Table = {("osd/host:h0", PROFILE): "balanced", ("osd/class:ssd", PROFILE): "high_client_ops"}
    table.update({("osd/class:ssd", name): text for name, text in balanced.items()})
    table["osd/class:hdd", LIMIT] = "0.350000"
    shared = [replace(place, locations={"host": "h0"}) for place in Monitors().places()]
    with pytest.raises(InputError, match=r"osd\.1: found `osd/class:hdd` = 0\.35"):
        plan_change(entries(table), "osd/class:ssd", {PROFILE: "balanced"}, TENTACLE, shared)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("0.5", "0.500000", True), ("0.333333", "0.33333299999999999", True), ("1", "2", False), ("a", "a", True),
     ("custom", "balanced", False), ("true", "1", False)],
)  # fmt: skip
def test_values_are_compared_as_values(one: str, other: str, same: bool) -> None:
    assert same_value(one, other) is same


def test_the_winner_is_the_finest_entry_that_covers_the_osd() -> None:
    place = Monitors().places()[0]
    table = {("global", "x"): "1", ("osd", "x"): "2", ("osd/class:ssd", "x"): "3", ("osd/host:h1", "x"): "4"}
    found = winner(entries(table), "x", place)
    assert found is not None
    assert found.value == "3"
    assert winner(entries(table), "y", place) is None


@pytest.mark.parametrize(
    ("table", "target", "keys"),
    [
        ({}, "osd", [("osd", BANDWIDTH, None, RAISED)]),
        # an entry of that medium: the other one's, which nobody has set
        ({("osd.1", BANDWIDTH): "200000000"}, "osd", [("osd", SSD, None, "1258291201")]),
        ({("osd", BANDWIDTH): "7", ("osd", SSD): "9"}, "osd", [("osd", BANDWIDTH, "7", "8")]),
        # both are set finer: every OSD by itself, by one byte more than it has
        ({("osd.1", BANDWIDTH): "7", ("osd.1", SSD): "9"}, "osd",
         [("osd.0", BANDWIDTH, None, RAISED), ("osd.1", BANDWIDTH, "7", "8"), ("osd.2", BANDWIDTH, None, RAISED)]),
        ({("osd", BANDWIDTH): "7", ("osd", SSD): "9"}, "osd/host:h1", [("osd/host:h1", BANDWIDTH, None, "8")]),
    ],
)  # fmt: skip
def test_every_osd_of_the_target_sees_a_bandwidth_change_and_its_own_come_back(
    table: Table, target: str, keys: List[object]
) -> None:
    monitors = Monitors(table=table)
    made = plan_rereading(monitors.dump(), target, TENTACLE, monitors.places())
    assert [(step.who, step.name, step.old, step.new) for step in made.steps if not step.settled][: len(keys)] == keys
    before = {osd: monitors.sources(osd) for osd in monitors.osds(target)}
    for step in made.steps:
        if step.settled:
            assert all(monitors.sources(osd) != before[osd] for osd in before)
        if step.new is None:
            monitors.remove(*step.key)
        else:
            monitors.set(*step.key, step.new)
    assert monitors.table == table
    assert made.standing() == ()


def test_quincy_before_17_2_7_has_no_bandwidth_to_touch() -> None:
    monitors = Monitors()
    assert plan_rereading([], "osd", RELEASES["quincy-early"], monitors.places()).steps == ()


def test_reading_again_wakes_no_value_that_sleeps() -> None:
    with pytest.raises(InputError, match="would wake it up"):
        plan_rereading(entries({("osd", LIMIT): "0.100000"}), "osd", TENTACLE, Monitors().places())


def test_where_a_built_in_profile_sets_no_options_only_the_profile_is_expected() -> None:
    places = [Place(0, "ssd", {"host": "h0"})]
    assert plan_change([], "osd", {PROFILE: "balanced"}, UMBRELLA, places).expected == {PROFILE: "balanced"}
    assert len(plan_change([], "osd", {PROFILE: "balanced"}, TENTACLE, places).expected) == 10
