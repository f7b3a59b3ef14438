"""Boosts inside a mgr, under a calendar whose policies say which may run."""

from __future__ import annotations

from typing import Any

import pytest
from automatic_on_twin import closed_windows
from boosted_mgr import Boosted, boosted, by_rule, forbidding, recovering

from ceph_tuner.core.autopilot.audit_log import BOOST
from ceph_tuner.core.boost.state import ENDING, OFF, ON
from ceph_tuner.core.changes.applier import Applier
from ceph_tuner.core.errors import ClusterTimeout, RetryLater
from tuner import render_automatic


def test_a_policy_of_the_calendar_refuses_a_boost_and_says_until_when() -> None:
    mgr = boosted(recovering(500_000))
    document = forbidding(mgr, -3600.0, 3600.0, "scrub")
    mgr.service.slos.replace(document)
    until = document["calendar"]["policies"][0]["hours"][-5:]
    with pytest.raises(
        RetryLater, match=f"the policy quiet of the calendar lets no boost of recovery run, until .* {until} UTC"
    ):
        mgr.begin()
    assert (mgr.phase, mgr.trail()) == (OFF, [])
    explained = mgr.modes.document()
    assert (explained["policy"]["name"], explained["policy"]["boosts"]) == ("quiet", ["scrub"])
    shown = render_automatic.modes(explained)
    assert "policy     quiet, until" in shown
    assert "boosts that may run: scrub" in shown
    mgr.service.slos.replace(forbidding(mgr, -3600.0, 3600.0, "scrub", "recovery"))
    mgr.begin()
    assert mgr.phase == ON


@pytest.mark.parametrize("later", [0, 1])
def test_no_window_of_before_another_policy_is_held_against_a_boost_by_its_objectives(
    later: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mgr = boosted(recovering(1_000_000))
    document = forbidding(mgr, 180.0, 600.0, "recovery")
    document["calendar"]["policies"][0]["objectives"] = ["client.p95_ms <= 9 s"]
    mgr.service.slos.replace(document)
    turn = mgr.service.slos.policy()[1] or 0.0
    mgr.sample(later)
    mgr.begin()
    windows = closed_windows(monkeypatch)
    while mgr.twin.clock.now() < turn + 60.0:
        mgr.sample()
    assert mgr.phase == ON
    assert min(window.start for window in windows) < turn < max(window.end for window in windows)
    assert not [window for window in windows if window.start < turn < window.end]


@pytest.mark.slow
def test_a_boost_lets_go_as_a_policy_begins_that_forbids_it_and_its_rule_begins_another_after_that() -> None:
    mgr = boosted(recovering(500_000), boost_rules="recovery after 1min at-most 2h")
    before = mgr.table()
    mgr.service.slos.replace(forbidding(mgr, 300.0, 600.0))
    while mgr.phase != ON:
        by_rule(mgr, 1)
    assert any("as the policy quiet begins" in note for note in mgr.modes.boosts.document()["notes"])
    for _ in range(100):
        if mgr.phase == OFF:
            break
        by_rule(mgr, 1)
    last = mgr.modes.boosts.driver.state.last
    assert last["rule"] == "calendar"
    assert "the policy quiet of the calendar" in last["why"]
    assert mgr.table() == before
    # on schedule: nobody has to look
    assert mgr.modes.health() == {}
    by_rule(mgr, 1)
    assert any("waits: the policy quiet" in note for note in mgr.modes.boosts.document()["notes"])
    # the next mgr knows as much
    other = Boosted(mgr.twin, boost_rules="recovery after 1min at-most 2h")
    by_rule(other, 80)
    assert other.phase == ON
    assert other.trail().count(BOOST) == 2


@pytest.mark.slow
def test_a_boost_that_the_calendar_ends_is_begun_again_by_its_rule_also_where_taking_it_back_fails_at_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mgr = boosted(recovering(500_000), boost_rules="recovery after 1min at-most 2h")
    while mgr.phase != ON:
        by_rule(mgr, 1)
    mgr.service.slos.replace(forbidding(mgr, -60.0, 600.0))

    def silent(*_: Any) -> None:
        raise ClusterTimeout("the monitors do not answer")

    with monkeypatch.context() as patch:
        patch.setattr(Applier, "undo_entry", silent)
        by_rule(mgr, 3)
        assert (mgr.phase, mgr.modes.boosts.driver.state.last["rule"]) == (ENDING, "calendar")
    for _ in range(200):
        by_rule(mgr, 1)
        if mgr.phase == ON:
            break
    assert mgr.phase == ON
    assert mgr.trail().count(BOOST) == 2


def test_a_boost_of_another_mgr_does_not_go_on_under_a_policy_that_forbids_it() -> None:
    mgr = boosted(recovering(500_000))
    before = mgr.table()
    mgr.begin()
    for key in list(mgr.service.store.keys("lock/")):
        mgr.service.store.remove(key)
    mgr.service.slos.replace(forbidding(mgr, -3600.0, 3600.0))
    other = Boosted(mgr.twin)
    other.sample(4)
    assert other.modes.boosts.driver.state.last["rule"] == "calendar"
    assert other.table() == before
    assert other.trail().count(BOOST) == 1
