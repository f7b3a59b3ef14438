from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Callable, Collection, Dict, List, Optional, Tuple

import pytest

from appliers import CUSTOM, FULL, LIMIT, OTHER, Killed, applier, apply, kill_at, survive
from ceph_tuner.core.ceph.target import Place
from ceph_tuner.core.changes.applier import Applier, Undone
from ceph_tuner.core.changes.journal import APPLIED, LARGEST, UNDONE
from ceph_tuner.core.changes.lock import LEASE_S, Holder, Lock
from ceph_tuner.core.changes.plan import plan_change
from ceph_tuner.core.changes.shard_rereading import BANDWIDTHS
from ceph_tuner.core.errors import (
    ClusterTimeout,
    CommandFailed,
    EffectNotSeen,
    InputError,
    Locked,
    RetryLater,
    Stopped,
    UnknownOption,
)
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import REEF
from ceph_tuner.core.knobs.settings import format_settings
from monitors import TENTACLE, ManualClock, Monitors, Table

# every boundary of one change, by number

BEFORE: Table = {
    ("osd", "osd_max_scrubs"): "2",
    ("osd/host:h9", LIMIT): "0.800000",
    ("osd.1", "osd_scrub_chunk_max"): "7",
}


def boundaries() -> List[int]:
    monitors = Monitors(table=BEFORE)
    counted = kill_at(monitors, 0)
    apply(monitors, "osd", FULL)
    return list(range(1, counted.count + 1))


@pytest.mark.parametrize("at", boundaries())
@pytest.mark.parametrize("landed", [False, True])
def test_killed_between_any_two_writes(at: int, landed: bool) -> None:
    monitors = Monitors(table=BEFORE)
    schedulers = monitors.schedulers()
    kill_at(monitors, at, landed)
    with pytest.raises(Killed):
        apply(monitors, "osd", FULL)
    survive(monitors)
    applier(monitors, "next").recover()
    states = [entry.state for entry in applier(monitors).history()]
    if states == [APPLIED]:
        assert applier(monitors).plan("osd", FULL).steps == ()
        applier(monitors, "next").undo()
    assert monitors.table == BEFORE
    assert monitors.schedulers() == schedulers
    assert [key for key in monitors.store.values if key.startswith("lock/")] == []


def dying_in(
    monitors: Monitors, late: List[Callable[[], None]], here: Callable[[str], bool]
) -> Callable[[str, str, Optional[str]], bool]:
    """For `refuse`: the process dies in the write of an option for which `here` holds; `late` lets that write land."""

    def die(who: str, name: str, value: Optional[str]) -> bool:
        if here(name):
            late.append(lambda: monitors.someone_sets(who, name, value))
            kill_at(monitors, 1)
            raise Killed
        return False

    return die


@pytest.mark.parametrize("at", range(11))
def test_a_write_that_lands_after_its_process_died_is_taken_back_too(at: int) -> None:
    monitors = Monitors(table=BEFORE)
    one = applier(monitors, "dead")
    plan = one.plan("osd", FULL)
    assert at < len(plan.steps)
    held: List[Callable[[], None]] = []

    monitors.refuse = dying_in(monitors, held, lambda name: len(monitors.writes) == at)
    with pytest.raises(Killed):
        one.apply(plan)
    monitors.refuse = lambda who, name, value: False

    def land() -> None:
        # while the next run writes its first step, the journal's entry
        if len(monitors.store.values) > 1 and held:
            held.pop()()

    monitors.before_write = land
    applier(monitors, "next").recover()
    assert not held
    assert monitors.table == BEFORE
    late = plan.steps[at]
    assert any(write.startswith(f"osd {late.name} ") for write in monitors.writes[at:]), "its inverse is written anyway"


# refusals and failures


@pytest.mark.parametrize("refused", [PROFILE, MCLOCK_NINE[0], MCLOCK_NINE[8], "osd_max_scrubs"])
def test_a_monitor_that_refuses_a_step_leaves_nothing_half_done(refused: str) -> None:
    monitors = Monitors(table=BEFORE)
    schedulers = monitors.schedulers()
    refusals = iter([True])
    monitors.refuse = lambda who, name, value: name == refused and next(refusals, False)
    with pytest.raises(CommandFailed, match="the monitor refuses"):
        apply(monitors, "osd", FULL)
    assert monitors.table == BEFORE
    assert monitors.schedulers() == schedulers
    (entry,) = applier(monitors).history()
    assert entry.state == UNDONE
    assert "the monitor refuses" in entry.note


def test_when_even_taking_back_is_refused_the_next_run_does_it() -> None:
    monitors = Monitors(table=BEFORE)
    monitors.refuse = lambda who, name, value: name == MCLOCK_NINE[4] or len(monitors.writes) >= 4
    with pytest.raises(Stopped, match="taking it back failed as well"):
        apply(monitors, "osd", FULL)
    assert monitors.table != BEFORE
    monitors.refuse = lambda who, name, value: False
    assert len(applier(monitors).leftover()) == 1
    applier(monitors).recover()
    assert monitors.table == BEFORE


def test_ctrl_c_takes_the_change_back_and_goes_on_as_ctrl_c() -> None:
    monitors = Monitors(table=BEFORE)
    # pressed again while it takes back, and again
    interrupts = iter([(MCLOCK_NINE[3], "0.200000"), (MCLOCK_NINE[1], None), (MCLOCK_NINE[0], None)])
    pressed = next(interrupts, None)

    def interrupt(who: str, name: str, value: Optional[str]) -> bool:
        nonlocal pressed
        if (name, value) == pressed:
            pressed = next(interrupts, None)
            raise KeyboardInterrupt
        return False

    monitors.refuse = interrupt
    with pytest.raises(KeyboardInterrupt):
        apply(monitors, "osd", FULL)
    assert pressed is None
    assert monitors.table == BEFORE
    assert applier(monitors).history()[0].note == "not applied: KeyboardInterrupt"


def test_an_osd_that_does_not_show_the_value_within_five_seconds_undoes_the_change() -> None:
    monitors, clock = Monitors(table=BEFORE), ManualClock()
    one = applier(monitors, clock=clock)
    plan = one.plan("osd", {"osd_max_scrubs": 1})
    monitors.osd[1].local["osd_max_scrubs"] = "5"
    began = clock.time
    with pytest.raises(EffectNotSeen, match=r"osd\.1 shows osd_max_scrubs = 5, expected 1, 5 s after"):
        one.apply(plan)
    assert 5 <= clock.time - began < 12
    assert monitors.table == BEFORE


def test_a_plan_that_the_database_has_left_behind_is_refused() -> None:
    monitors = Monitors()
    one = applier(monitors)
    plan = one.plan("osd", {"osd_max_scrubs": 1})
    monitors.someone_sets("osd", "osd_max_scrubs", "2")
    with pytest.raises(RetryLater, match="has changed since the plan was made"):
        one.apply(plan)
    assert monitors.table == {("osd", "osd_max_scrubs"): "2"}


@pytest.mark.parametrize("value", ["many", "", "0x10", "1" * 101])
def test_a_value_that_the_journal_could_not_give_back_is_refused_before_anything_is_written(value: str) -> None:
    # `config set --force` takes whatever it is given
    monitors = Monitors(table={("osd", "osd_max_scrubs"): value})
    with pytest.raises(InputError, match=r"could not be put back, .*`ceph config rm osd osd_max_scrubs`"):
        applier(monitors).plan("osd", {"osd_max_scrubs": 1})
    assert monitors.table == {("osd", "osd_max_scrubs"): value}
    assert applier(monitors).plan("osd.1", {"osd_max_scrubs": 1}).steps


@pytest.mark.parametrize("length", [58_000, 65_000, 200_000])
def test_a_reason_that_leaves_the_entry_no_room_is_refused_before_anything_is_written(length: int) -> None:
    monitors = Monitors()
    one = applier(monitors)
    with pytest.raises(InputError, match=rf"change: found .* {length} characters of reason.* a shorter reason"):
        one.apply(one.plan("osd", {"osd_max_scrubs": 1}), "w" * length)
    assert (monitors.table, one.history()) == ({}, [])
    assert apply(monitors, "osd", {"osd_max_scrubs": 1}) == 1


def test_a_change_that_an_earlier_version_stored_without_room_is_taken_back_all_the_same() -> None:
    monitors = Monitors()
    one = applier(monitors)
    one.apply(one.plan("osd", FULL))
    (entry,) = one.history()
    full = replace(entry, why="w" * (LARGEST - len(entry.to_text()) - 100))
    monitors.store.set("journal/00000001", full.to_text())
    for name in CUSTOM:
        monitors.set("osd", name, "0.77" if name.endswith(("res", "lim")) else "7")
    (undone,) = applier(monitors).undo()
    assert len(undone.drift) == len(CUSTOM)
    (stored,) = one.history()
    assert stored.state == UNDONE
    assert stored.note == "; ".join(map(str, undone.drift))
    # nothing stands in the way of the next one
    assert apply(monitors, "osd", {"osd_max_scrubs": 2}) == 2


def test_two_at_once_the_second_is_refused_and_writes_nothing() -> None:
    monitors = Monitors()
    clock = ManualClock()
    first = Lock(monitors.store, clock, Holder("first"), heartbeat=False)
    second = Applier(
        monitors, monitors.store, clock, Lock(monitors.store, clock, Holder("2"), heartbeat=False), TENTACLE, "2"
    )
    plan = second.plan("osd", FULL)
    with first, pytest.raises(Locked, match="first"):
        second.apply(plan)
    assert monitors.writes == []
    assert Locked.exit_code == 3


def test_who_lost_the_lock_in_the_middle_writes_no_more_and_leaves_the_rest_to_the_next() -> None:
    monitors, clock = Monitors(table=BEFORE), ManualClock()
    one = applier(monitors, "sleeper", clock)
    plan = one.plan("osd", FULL)
    taken: List[Undone] = []

    def suspended(who: str, name: str, value: Optional[str]) -> bool:
        if name == MCLOCK_NINE[2] and not taken:
            clock.sleep(LEASE_S * 2)
            taken.extend(applier(monitors, "next", clock).recover())
        return False

    monitors.refuse = suspended
    with pytest.raises(Locked, match="lost"):
        one.apply(plan)
    # the write that was under way when it fell asleep is the one that no lock can stop; the next run finds it
    applier(monitors, "next", clock).recover()
    left = {key: value for key, value in monitors.table.items() if BEFORE.get(key) != value}
    assert set(left) <= {("osd", MCLOCK_NINE[2])}
    assert {key for key in BEFORE if key not in monitors.table} <= {("osd", MCLOCK_NINE[2])}


# what others did meanwhile


def test_a_value_that_somebody_changed_is_left_and_reported() -> None:
    monitors = Monitors(table=BEFORE)
    apply(monitors, "osd", FULL)
    monitors.someone_sets("osd", "osd_max_scrubs", "4")
    (undone,) = applier(monitors).undo()
    assert [str(drift) for drift in undone.drift] == ["osd osd_max_scrubs: found 4 instead of our 1, left as it is"]
    assert monitors.table == {**BEFORE, ("osd", "osd_max_scrubs"): "4"}
    assert "found 4" in applier(monitors).history()[0].note


def test_an_option_that_an_upgrade_retired_comes_back_as_it_was() -> None:
    monitors = Monitors(table=BEFORE)
    apply(monitors, "osd", FULL)
    monitors.retired = ("osd_max_scrubs",)
    (undone,) = applier(monitors).undo()
    assert monitors.table == BEFORE
    words = "osd osd_max_scrubs: 2 as before; the release has no such option"
    assert undone.remarks == (words,)
    assert words in applier(monitors).history()[0].note


def test_an_option_that_an_upgrade_retired_is_removed_where_there_was_none() -> None:
    before = {key: value for key, value in BEFORE.items() if key[1] != "osd_max_scrubs"}
    monitors = Monitors(table=before)
    apply(monitors, "osd", FULL)
    monitors.retired = ("osd_max_scrubs",)
    (undone,) = applier(monitors).undo()
    assert monitors.table == before
    assert undone.remarks == ()


def test_nothing_new_is_written_for_an_option_that_the_release_does_not_have() -> None:
    monitors = Monitors(table=BEFORE)
    monitors.retired = ("osd_max_scrubs",)
    with pytest.raises(UnknownOption, match="unrecognized config option"):
        apply(monitors, "osd", FULL)
    assert monitors.table == BEFORE


@pytest.mark.parametrize("at", [("osd", "high_recovery_ops"), ("osd/class:ssd", "balanced"), ("osd.1", "balanced")])
def test_a_profile_that_somebody_chose_stays_and_schedules(at: object) -> None:
    who, profile = at  # type: ignore[misc]
    monitors = Monitors()
    apply(monitors, "osd", CUSTOM)
    monitors.someone_sets(who, PROFILE, profile)
    applier(monitors).undo()
    assert monitors.table == {(who, PROFILE): profile}
    for osd in monitors.osd:
        chosen = TENTACLE.profiles[osd.effective()[PROFILE]]
        assert osd.scheduler == format_settings(chosen, TENTACLE)


def test_profiles_that_somebody_gave_to_hundreds_of_osds_do_not_stand_in_the_way() -> None:
    """What is held at custom meanwhile is stored first, in a value of 64 KiB; the OSDs are waited for once."""
    monitors = Monitors(osds=2)
    apply(monitors, "osd", CUSTOM)
    many = [Place(osd, "ssd", {"host": f"h{osd}"}) for osd in range(800)]
    monitors.places = lambda: many  # type: ignore[method-assign]
    asked = [0]

    def sources(osd: int) -> Dict[str, Dict[str, str]]:
        asked[0] += 1
        found = {name: value for who in ("osd", f"osd.{osd}") for name in (PROFILE, *MCLOCK_NINE, *BANDWIDTHS)
                 if (value := monitors.table.get((who, name)))}  # fmt: skip
        return {name: {"mon": value} for name, value in found.items()}

    monitors.sources = sources  # type: ignore[method-assign]
    monitors.batch = 10**9
    chosen: Table = {(f"osd.{osd}", PROFILE): "high_recovery_ops" for osd in range(800)}
    monitors.table.update(chosen)
    applier(monitors).undo()
    assert monitors.table == chosen
    assert asked[0] == 3 * 800


@pytest.mark.parametrize("last", [None, "balanced", "high_client_ops"])
def test_who_took_it_back_by_hand_in_the_documented_order_is_freed_from_the_old_values(last: Optional[str]) -> None:
    monitors = Monitors()
    apply(monitors, "osd", CUSTOM)
    monitors.someone_sets("osd", PROFILE, last)
    for name in MCLOCK_NINE:
        monitors.someone_sets("osd", name, None)
    trapped = format_settings(CUSTOM, TENTACLE)
    assert monitors.schedulers() == [trapped] * 3, "the fake must have Ceph's trap, or this test says nothing"
    applier(monitors).undo()
    free = format_settings(TENTACLE.profiles[last or "balanced"], TENTACLE)
    assert monitors.schedulers() == [free] * 3
    assert monitors.table == ({("osd", PROFILE): last} if last else {})


# several changes, and which of them


def test_rollback_takes_the_newest_then_the_one_before() -> None:
    monitors = Monitors(table=BEFORE)
    apply(monitors, "osd", CUSTOM)
    between = dict(monitors.table)
    apply(monitors, "osd", OTHER)
    applier(monitors).undo()
    assert monitors.table == between
    applier(monitors).undo()
    assert monitors.table == BEFORE
    with pytest.raises(InputError, match="no change in force"):
        applier(monitors).undo()


def test_rollback_to_a_change_leaves_that_one_in_force() -> None:
    monitors = Monitors()
    tables = []
    for scrubs in (1, 2, 4):
        apply(monitors, "osd", {"osd_max_scrubs": scrubs})
        tables.append(dict(monitors.table))
    applier(monitors).undo(to=2)
    assert monitors.table == tables[1]
    applier(monitors).undo(to=0)
    assert monitors.table == {}
    with pytest.raises(InputError, match="--to: found 9"):
        applier(monitors).undo(to=9)


def test_rollback_after_a_crash_takes_the_interrupted_change_back_and_no_other() -> None:
    monitors = Monitors()
    apply(monitors, "osd", {"osd_max_scrubs": 1})
    good = dict(monitors.table)
    kill_at(monitors, 8)
    with suppress(Killed):
        apply(monitors, "osd", CUSTOM)
    survive(monitors)
    assert monitors.table != good
    (left,), none = applier(monitors).leftover(), applier(monitors).undoable()
    assert none == []
    assert [undone.entry.number for undone in applier(monitors, "next").undo()] == [left.number]
    assert monitors.table == good


def test_everything_can_be_taken_back_at_once() -> None:
    monitors = Monitors(table=BEFORE)
    apply(monitors, "osd", CUSTOM)
    apply(monitors, "osd/class:ssd", OTHER)
    apply(monitors, "osd.1", {PROFILE: "custom", **OTHER, "osd_max_scrubs": 4})
    assert len(applier(monitors).undo(everything=True)) == 3
    assert monitors.table == BEFORE


def test_a_trial_is_taken_back_when_its_owner_is_gone_and_not_before() -> None:
    monitors = Monitors()
    owner = applier(monitors, "owner")
    trial = owner.apply(owner.plan("osd", {"osd_max_scrubs": 1}), trial=True)
    second = owner.apply(owner.plan("osd", {"osd_scrub_chunk_max": 5}), trial=True)
    assert trial is not None
    assert second is not None
    assert owner.recover() == []
    assert owner.keep(second).trial is False
    assert [undone.entry.number for undone in applier(monitors, "next").recover()] == [trial.number]
    assert monitors.table == {("osd", "osd_scrub_chunk_max"): "5"}


def test_an_own_trial_is_taken_back_by_itself() -> None:
    monitors = Monitors()
    owner = applier(monitors)
    kept = owner.apply(owner.plan("osd", {"osd_max_scrubs": 1}))
    trial = owner.apply(owner.plan("osd", CUSTOM), trial=True)
    assert kept is not None
    assert trial is not None
    owner.undo_entry(trial)
    assert monitors.table == {("osd", "osd_max_scrubs"): "1"}


def test_a_change_that_another_took_back_is_not_taken_from_who_set_the_same_since() -> None:
    monitors = Monitors()
    one = applier(monitors)
    entry = one.apply(one.plan("osd", {"osd_max_scrubs": 1}), trial=True)
    assert entry is not None
    applier(monitors, "guardian").recover()
    assert monitors.table == {}
    monitors.someone_sets("osd", "osd_max_scrubs", "1")
    done = one.undo_entry(entry)
    assert (done.entry.state, monitors.table) == (UNDONE, {("osd", "osd_max_scrubs"): "1"})


def test_planning_and_looking_write_nothing() -> None:
    monitors = Monitors(table=BEFORE)
    apply(monitors, "osd", CUSTOM)
    kill_at(monitors, 1)
    one = applier(monitors)
    one.plan("osd", OTHER)
    (entry,) = one.undoable()
    steps, drift = one.preview_undo(entry)
    assert [step.command for step in steps[-2:]] == [
        "ceph config rm osd osd_mclock_profile",
        "ceph config rm osd osd_mclock_max_sequential_bandwidth_hdd",
    ]
    assert not drift
    assert one.leftover() == []
    one.history()


# every shard


def stale(monitors: Monitors) -> List[int]:
    return [osd.place.osd for osd in monitors.osd if osd.shards[0] != osd.shards[1]]


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("back", ["undo", "balanced", "high_client_ops"])
def test_on_the_way_to_a_built_in_profile_every_shard_gets_its_values(restarted: bool, back: str) -> None:
    monitors = Monitors()
    apply(monitors, "osd", {PROFILE: "high_recovery_ops"} if back == "balanced" else CUSTOM)
    if restarted:
        monitors.restart_osds()
    if back == "undo":
        applier(monitors).undo()
    else:
        apply(monitors, "osd", {PROFILE: back})
    assert stale(monitors) == []
    profile = "balanced" if back == "undo" else back
    assert monitors.schedulers() == [format_settings(TENTACLE.profiles[profile], TENTACLE)] * 3


def test_a_profile_switched_by_hand_leaves_stale_shards_and_the_cure_frees_them() -> None:
    monitors = Monitors()
    monitors.someone_sets("osd", PROFILE, "high_client_ops")
    assert stale(monitors) == [0, 1, 2], "the fake must have Ceph's trap, or this test says nothing"
    one = applier(monitors)
    assert one.apply(one.plan_rereading("osd")) is not None
    assert stale(monitors) == []
    assert monitors.table == {("osd", PROFILE): "high_client_ops"}
    assert [entry.state for entry in one.history()] == [UNDONE]
    assert one.undoable() == []


@pytest.mark.parametrize("at", range(1, 9))
@pytest.mark.parametrize("landed", [False, True])
def test_killed_while_the_shards_are_cured_nothing_stays(at: int, landed: bool) -> None:
    monitors = Monitors()
    monitors.someone_sets("osd", PROFILE, "high_client_ops")
    kill_at(monitors, at, landed)
    one = applier(monitors)
    with suppress(Killed):
        one.apply(one.plan_rereading("osd"))
    survive(monitors)
    applier(monitors, "next").recover()
    assert monitors.table == {("osd", PROFILE): "high_client_ops"}


@pytest.mark.parametrize("at", range(1, 16))
@pytest.mark.parametrize("landed", [False, True])
def test_an_undo_that_was_killed_leaves_no_stale_shard_to_who_finishes_it(at: int, landed: bool) -> None:
    """Also where the OSDs would see the profile of the first, and the bandwidth of the second, at once."""
    monitors = Monitors()
    before = monitors.schedulers()
    apply(monitors, "osd", {PROFILE: "high_client_ops"})
    monitors.batch = 2
    kill_at(monitors, at, landed)
    with suppress(Killed):
        applier(monitors, "dead").undo()
    survive(monitors)
    for one in applier(monitors, "next"), applier(monitors, "last"):
        one.recover()
        if one.undoable():
            one.undo()
    assert monitors.table == {}
    assert monitors.schedulers() == before


def test_of_steps_that_touch_a_key_twice_the_one_under_way_is_known() -> None:
    """A write of the last step that lands late is taken back, although earlier steps look undone."""
    monitors = Monitors()
    one = applier(monitors, "dead")
    wanted = {PROFILE: "high_client_ops", "osd_max_scrubs": 1}
    late: List[Callable[[], None]] = []

    monitors.refuse = dying_in(monitors, late, lambda name: name == "osd_max_scrubs")
    with pytest.raises(Killed):
        one.apply(one.plan("osd", wanted))
    survive(monitors)
    monitors.refuse = lambda who, name, value: False
    next_one = applier(monitors, "next")
    assert ("osd", "osd_max_scrubs") in next_one._doubtful(next_one.history()[-1])


# the OSDs' versions


def test_where_two_versions_differ_in_a_built_in_profile_it_is_refused_and_a_custom_one_is_not() -> None:
    monitors = Monitors()
    monitors.running = ["20.2.2", "20.2.4"]
    one = applier(monitors)
    with pytest.raises(InputError, match=r"= balanced: found OSDs of Tentacle up to 20\.2\.2 beside"):
        one.plan("osd", {PROFILE: "balanced"})
    assert one.plan("osd", CUSTOM).steps
    monitors.running = ["20.2.3", "20.2.4"]
    assert one.plan("osd", {PROFILE: "high_client_ops"}).steps
    monitors.running = ["17.2.6", "17.2.7"]
    with pytest.raises(InputError, match="in other units"):
        one.plan("osd", {"osd_max_scrubs": 1})


def test_nothing_is_written_to_a_release_whose_rules_are_not_known_and_taking_back_works() -> None:
    monitors = Monitors()
    apply(monitors, "osd", CUSTOM)
    monitors.running = ["21.1.0"]
    one = applier(monitors)
    for plan in (lambda: one.plan("osd", {"osd_max_scrubs": 1}), lambda: one.plan_rereading("osd")):
        with pytest.raises(InputError, match=r"Umbrella .* not known yet"):
            plan()
    one.undo()
    assert monitors.table == {}


def test_a_knob_is_judged_by_the_oldest_version_that_runs() -> None:
    monitors = Monitors()
    wanted = {"osd_snap_trim_cost": 2_000_000}
    with pytest.raises(InputError, match="does nothing"):
        plan_change([], "osd", wanted, REEF, monitors.places())
    assert plan_change([], "osd", wanted, REEF, monitors.places(), version=(18, 2, 1)).steps


# many OSDs


def slow(monitors: Monitors, clock: ManualClock, answer_s: float, effect_s: float) -> None:
    """Each answer takes time, and a value takes effect some time after the monitors have it."""
    since: Dict[str, float] = {}
    monitors.after_write = lambda: since.update(dict.fromkeys([str(len(monitors.writes))], clock.time))
    real = monitors.effective

    def effective(osd: int) -> Dict[str, str]:
        clock.sleep(answer_s)
        return real(osd) if clock.time >= max(since.values(), default=0.0) + effect_s else {}

    monitors.effective = effective  # type: ignore[method-assign]


def test_osds_that_were_asked_a_moment_too_early_are_asked_again_however_many_there_are() -> None:
    monitors, clock = Monitors(osds=1000), ManualClock()
    one = applier(monitors, clock=clock)
    plan = one.plan("osd", {"osd_max_scrubs": 1})
    slow(monitors, clock, 0.006, 0.05)
    entry = one.apply(plan)
    assert entry is not None
    assert (entry.state, entry.note) == (APPLIED, "")


def test_an_osd_that_goes_down_after_the_plan_is_told_and_does_not_fail_the_change() -> None:
    monitors = Monitors()
    one = applier(monitors)
    plan = one.plan("osd", CUSTOM)
    monitors.osd[1].place = replace(monitors.osd[1].place, up=False)
    real = monitors.effective

    def effective(osd: int) -> Dict[str, str]:
        if osd == 1:
            raise ClusterTimeout("osd.1 did not answer in time")
        return real(osd)

    monitors.effective = effective  # type: ignore[method-assign]
    entry = one.apply(plan)
    assert entry is not None
    assert entry.note == "osd.1 went down: it follows when it starts, unchecked"


def hanging(monitors: Monitors, osds: Collection[int]) -> None:
    real = monitors.effective, monitors.sources

    def effective(osd: int) -> Dict[str, str]:
        if osd in osds:
            raise ClusterTimeout(f"osd.{osd} did not answer in time")
        return real[0](osd)

    def sources(osd: int) -> Dict[str, Dict[str, str]]:
        if osd in osds:
            raise ClusterTimeout(f"osd.{osd} did not answer in time")
        return real[1](osd)

    monitors.effective, monitors.sources = effective, sources  # type: ignore[method-assign]


def test_few_of_many_osds_may_hang_and_are_named() -> None:
    monitors = Monitors(osds=40)
    one = applier(monitors)
    plan = one.plan("osd", CUSTOM)
    hanging(monitors, {7, 31})
    entry = one.apply(plan)
    assert entry is not None
    assert entry.state == APPLIED
    assert "osd.7 does not answer" in entry.note
    assert "osd.31 does not answer" in entry.note
    assert monitors.schedulers()[0] == monitors.schedulers()[7]
    (undone,) = one.undo()
    assert any("osd.7 does not answer" in words for words in undone.unseen)
    assert monitors.table == {}


@pytest.mark.parametrize(("osds", "hang"), [(40, {1, 2, 3}), (3, {1}), (1, {0})])
def test_a_change_that_is_not_seen_where_it_should_be_is_taken_back(osds: int, hang: Collection[int]) -> None:
    monitors = Monitors(osds=osds)
    one = applier(monitors)
    plan = one.plan("osd", CUSTOM)
    hanging(monitors, hang)
    with pytest.raises(EffectNotSeen, match=rf"osd.\d+ does not answer .*; {len(hang)} of {osds} OSDs do not"):
        one.apply(plan)
    assert monitors.table == {}


def test_progress_is_told_where_many_osds_are_asked() -> None:
    told: List[Tuple[str, int, int]] = []
    monitors = Monitors(osds=250)
    one = applier(monitors, progress=lambda *words: told.append(words))
    one.apply(one.plan("osd", {"osd_max_scrubs": 1}))
    assert [done for words, done, total in told if "read" in words] == [0, 100, 200]
    assert {total for *_, total in told} == {250}
    assert len({words for words, *_ in told}) >= 2


def test_an_osd_that_hangs_fails_no_dry_run() -> None:
    monitors = Monitors()
    real = monitors.sources

    def sources(osd: int) -> Dict[str, Dict[str, str]]:
        if osd == 1:
            raise ClusterTimeout("osd.1 did not answer in time")
        return real(osd)

    monitors.sources = sources  # type: ignore[method-assign]
    plan = applier(monitors).plan("osd", CUSTOM)
    assert len(plan.steps) == 10
    assert any("osd.1 does not answer" in warning for warning in plan.warnings)


def test_a_profile_is_not_switched_while_an_osd_is_late_to_show_what_that_needs() -> None:
    monitors = Monitors()
    apply(monitors, "osd", CUSTOM)
    before = dict(monitors.table)
    real = monitors.sources
    late = {osd: real(osd) for osd in (0, 1, 2)}
    one = applier(monitors)
    plan = one.plan("osd", {PROFILE: "balanced"})
    monitors.sources = lambda osd: late[1] if osd == 1 else real(osd)  # type: ignore[method-assign]
    with pytest.raises(EffectNotSeen, match=r"osd\.1 has"):
        one.apply(plan)
    assert monitors.table == before
