"""Changes of a cluster that Rook manages: stated in its resource, and taken back there and at the monitors."""

from __future__ import annotations

import json
import shlex
from typing import Dict

import pytest

from appliers import CUSTOM, FULL, Killed, applier, kill_at, survive
from ceph_tuner.core.changes.journal import APPLIED, UNDONE
from ceph_tuner.core.changes.step import Step
from ceph_tuner.core.errors import InputError, RetryLater
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE, PROFILE
from monitors import Monitors
from rook_monitors import RESOURCE, RookMonitors

OSD = RESOURCE.who("osd")


def test_a_change_is_stated_in_the_resource_and_stays_when_rook_runs() -> None:
    monitors = RookMonitors()
    one = applier(monitors)
    one.apply(one.plan("osd", FULL))
    monitors.reconcile()
    stated = {name: value for (_, name), value in monitors.stated.items()}
    assert set(stated) == {PROFILE, *MCLOCK_NINE, "osd_max_scrubs"}
    assert all(monitors.table["osd", name] == value for name, value in stated.items())


def test_what_is_taken_back_is_gone_from_both_and_does_not_come_again() -> None:
    monitors = RookMonitors(table={("osd", "osd_max_scrubs"): "4"})
    before = dict(monitors.table), monitors.schedulers()
    one = applier(monitors)
    one.apply(one.plan("osd", FULL))
    assert (done := one.undo())[0].drift == ()
    assert done[0].entry.state == UNDONE
    monitors.reconcile()
    assert monitors.stated == {}
    assert (dict(monitors.table), monitors.schedulers()) == before


def test_a_value_leaves_the_resource_before_the_monitors_and_comes_to_them_first() -> None:
    monitors = RookMonitors()
    one = applier(monitors)
    one.apply(one.plan("osd", {"osd_max_scrubs": 2}))
    one.undo()
    keys = [write.rsplit(" ", 1) for write in monitors.writes if "osd_max_scrubs" in write]
    assert keys == [
        ["osd osd_max_scrubs", "2"],
        ["cephconfig osd osd_max_scrubs", "2"],
        ["cephconfig osd osd_max_scrubs", "None"],
        ["osd osd_max_scrubs", "None"],
        # once more: the run that had begun before set what it had read
        ["osd osd_max_scrubs", "None"],
    ]


def test_a_second_change_over_the_first_goes_back_to_what_the_first_stated() -> None:
    monitors = RookMonitors()
    one = applier(monitors)
    one.apply(one.plan("osd", {"osd_max_scrubs": 2}))
    one.apply(one.plan("osd", {"osd_max_scrubs": 5}))
    one.undo()
    assert monitors.stated == {("osd", "osd_max_scrubs"): "2"}
    assert monitors.table["osd", "osd_max_scrubs"] == "2"


def test_what_is_stated_already_is_not_written_again() -> None:
    monitors = RookMonitors(stated={("osd", "osd_max_scrubs"): "2"})
    assert applier(monitors).plan("osd", {"osd_max_scrubs": 2}).steps == ()


def test_a_value_that_only_the_monitors_have_is_stated_as_well() -> None:
    monitors = RookMonitors(table={("osd", "osd_max_scrubs"): "2"})
    assert applier(monitors).plan("osd", {"osd_max_scrubs": 2}).steps == (Step(OSD, "osd_max_scrubs", None, "2"),)


def test_an_edit_of_the_resource_is_drift_of_both_and_stays() -> None:
    monitors = RookMonitors()
    one = applier(monitors)
    one.apply(one.plan("osd", {"osd_max_scrubs": 2}))
    monitors.someone_states("osd", "osd_max_scrubs", "7")
    (done,) = one.undo()
    assert {(item.who, item.found) for item in done.drift} == {("osd", "7"), (OSD, "7")}
    assert monitors.stated == {("osd", "osd_max_scrubs"): "7"}


@pytest.mark.parametrize("lags", [False, True])
def test_a_value_set_at_the_monitors_alone_stays_unless_rook_sets_ours_over_it(lags: bool) -> None:
    monitors = RookMonitors()
    one = applier(monitors)
    one.apply(one.plan("osd", {"osd_max_scrubs": 2}))
    monitors.someone_sets("osd", "osd_max_scrubs", "7")
    monitors.lags = lags
    (done,) = one.undo()
    assert monitors.stated == {}
    assert [(item.who, item.found) for item in done.drift] == ([] if lags else [("osd", "7")])
    assert monitors.table.get(("osd", "osd_max_scrubs")) == (None if lags else "7")


@pytest.mark.parametrize("landed", [False, True], ids=["before", "after"])
def test_a_change_that_dies_at_any_write_is_taken_back_whole(landed: bool) -> None:
    for at in range(1, 200):
        monitors = RookMonitors(table={("osd", "osd_max_scrubs"): "4"})
        before = dict(monitors.table)
        kill_at(monitors, at, landed)
        one = applier(monitors)
        try:
            one.apply(one.plan("osd", FULL))
        except Killed:
            survive(monitors)
            applier(monitors, "two").recover()
        monitors.reconcile()
        if applier(monitors, "two").history()[-1:] and applier(monitors, "two").history()[-1].state == APPLIED:
            # it died when everything was done
            assert at > 20
            return
        assert (monitors.table, monitors.stated) == (before, {}), f"killed at write {at}"
    raise AssertionError("it never came to an end")


def test_the_way_back_to_a_built_in_profile_leaves_no_scheduler_with_our_values() -> None:
    monitors = RookMonitors()
    before = monitors.schedulers()
    one = applier(monitors)
    one.apply(one.plan("osd", CUSTOM))
    assert monitors.schedulers() != before
    one.undo()
    monitors.reconcile()
    assert monitors.schedulers() == before


def test_a_change_in_a_resource_is_not_taken_back_where_that_is_out_of_reach() -> None:
    monitors = RookMonitors()
    one = applier(monitors)
    one.apply(one.plan("osd", {"osd_max_scrubs": 2}))
    plain = Monitors(table=dict(monitors.table))
    plain.store = monitors.store
    for take_back in (applier(plain).undo, lambda: applier(plain).preview_undo(one.history()[-1])):
        with pytest.raises(InputError, match="--rook rook-ceph/rook-ceph"):
            take_back()
    assert plain.table["osd", "osd_max_scrubs"] == "2"


def test_an_operator_that_does_nothing_is_told_and_keeps_nobody_from_taking_back() -> None:
    monitors = RookMonitors()
    monitors.works = False
    one = applier(monitors)
    entry = one.apply(one.plan("osd", {"osd_max_scrubs": 2}))
    assert entry is not None
    assert "Rook is not done" in entry.note
    (done,) = one.undo()
    assert "Rook is not done" in done.unseen
    assert monitors.stated == {}


def test_the_command_of_a_step_in_a_resource_is_one_that_kubectl_takes() -> None:
    words = shlex.split(Step(RESOURCE.who("osd/class:ssd"), "osd_max_scrubs", "2", None).command)
    assert words[:6] == ["kubectl", "-n", "rook-ceph", "patch", "cephcluster", "rook-ceph"]
    expected: Dict[str, object] = {"spec": {"cephConfig": {"osd/class:ssd": {"osd_max_scrubs": None}}}}
    assert json.loads(words[-1]) == expected


def two_changes(first: int, second: int) -> RookMonitors:
    """A cluster whose operator stopped in a run that has read both."""
    monitors = RookMonitors(table={("osd", "osd_max_scrubs"): "4"})
    one = applier(monitors)
    one.apply(one.plan("osd", {"osd_max_scrubs": first}))
    one.apply(one.plan("osd", {"osd_max_scrubs": second}))
    monitors.works = False
    return monitors


def rook_works_again(monitors: RookMonitors) -> None:
    monitors.works, monitors.lags = True, False
    monitors.reconcile()


def test_what_rook_brings_back_later_is_taken_back_by_the_next_rollback_and_nothing_else() -> None:
    monitors = two_changes(2, 5)
    applier(monitors).undo()
    rook_works_again(monitors)
    monitors.someone_sets("osd", "osd_max_scrubs", "5")
    (done,) = applier(monitors, "two").undo()
    assert (done.entry.number, done.entry.state, done.unseen) == (2, UNDONE, ())
    assert monitors.table["osd", "osd_max_scrubs"] == "2"
    assert [entry.state for entry in applier(monitors).history()] == [APPLIED, UNDONE]


def test_no_change_goes_on_top_of_one_that_rook_may_bring_back() -> None:
    monitors = two_changes(2, 5)
    one = applier(monitors)
    one.undo()
    with pytest.raises(RetryLater, match=r"change 2 .*Rook is not done"):
        one.apply(one.plan("osd", {"osd_max_scrubs": 7}))
    assert monitors.table["osd", "osd_max_scrubs"] == "2"
    rook_works_again(monitors)
    assert one.apply(one.plan("osd", {"osd_max_scrubs": 7})) is not None


@pytest.mark.parametrize("second", [5, 4])
@pytest.mark.parametrize("killed", range(1, 12))
def test_older_changes_are_taken_back_while_rook_stands_and_stay_so(second: int, killed: int) -> None:
    """Where the newest set what stood before the oldest, too."""
    monitors = two_changes(2, second)
    kill_at(monitors, killed)
    try:
        applier(monitors).undo(everything=True)
    except Killed:
        survive(monitors)
        applier(monitors, "two").undo(to=0)
    survive(monitors)
    assert monitors.table["osd", "osd_max_scrubs"] == "4"
    rook_works_again(monitors)
    last = applier(monitors, "three")
    last.recover()
    assert (monitors.table["osd", "osd_max_scrubs"], monitors.stated) == ("4", {})
    assert {entry.state for entry in last.history()} == {UNDONE}


def test_what_another_states_just_as_we_did_stays_at_the_monitors_as_well() -> None:
    monitors = RookMonitors(table={("osd", "osd_max_scrubs"): "4", ("osd", "osd_scrub_chunk_max"): "9"})
    one = applier(monitors)
    one.apply(one.plan("osd", {"osd_max_scrubs": 2, "osd_scrub_chunk_max": 6}))
    # helm states it too: Rook sets it at each run, whatever becomes of our claim
    monitors.also_stated["osd", "osd_max_scrubs"] = "helm"
    (done,) = one.undo()
    assert monitors.table == {("osd", "osd_max_scrubs"): "2", ("osd", "osd_scrub_chunk_max"): "9"}
    assert {(item.who, item.found) for item in done.drift} == {(who, "2 (stated by helm)") for who in ("osd", OSD)}
    assert (done.entry.state, monitors.given_up) == (UNDONE, {("osd", "osd_max_scrubs")})


def test_changes_taken_back_one_by_one_while_rook_stands_end_as_before() -> None:
    """The second sets what stood before the first."""
    monitors = two_changes(2, 4)
    one = applier(monitors)
    below, above = one.history()
    one.undo_entry(above)
    rook_works_again(monitors)
    one.undo_entry(below)
    last = applier(monitors, "two")
    last.recover()
    assert (monitors.table, monitors.stated) == ({("osd", "osd_max_scrubs"): "4"}, {})
    assert {entry.state for entry in last.history()} == {UNDONE}


def test_what_is_left_below_a_change_that_is_taken_back_keeps_what_it_restores() -> None:
    monitors = two_changes(2, 4)
    one = applier(monitors)
    below, above = one.history()
    one.undo_entry(below)
    restores = one.history()[0].restores
    one.undo_entry(above)
    assert one.history()[0].restores == restores
