from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Dict, List, Mapping, Tuple

import pytest
from automatic_on_twin import ROLLOUT, OnTwin
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.autopilot.events import Look
from ceph_tuner.core.autopilot.phase_windows import Closed
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.autopilot.state import COMPARING, HOLDING, TRYING, AutopilotState, Proposed
from ceph_tuner.core.errors import ClusterTimeout
from ceph_tuner.core.goals.guard import Breach
from tuner import render
from tuner.lookout import LATE, PLACES_S, Lookout
from tuner.options import policy_of

P95 = "client.p95_ms"
ALWAYS = Policy(quiet=0.0)
ON = AutopilotState("auto")
TRIED = AutopilotState(
    "auto", TRYING, proposed=Proposed(1, {"osd_max_scrubs": 3}, "why", ROLLOUT), baseline={P95: 20.0}
)


def around(**options: Any) -> Tuple[Lookout, OnTwin]:
    aboard = OnTwin(**options)
    return aboard.modes.whole.lookout, aboard


def sampled(aboard: OnTwin, count: int = 2) -> None:
    for _ in range(count):
        aboard.twin.clock.sleep(5.0)
        aboard.sampler.tick()


def look(there: Lookout, state: AutopilotState, policy: Policy) -> Look:
    found = there.look(state, policy)
    assert found is not None
    return found


def closed(end: float, **means: float) -> Closed:
    return Closed(end - 30.0, end, {P95: 30.0, **means}, ())


class Counted:
    """Counts calls of a method."""

    def __init__(self, owner: object, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._original = getattr(owner, name)
        monkeypatch.setattr(owner, name, self)

    def __call__(self, *arguments: Any) -> Any:
        self.count += 1
        return self._original(*arguments)


# health


def test_a_check_that_an_operator_muted_and_our_own_are_no_reason_for_anything() -> None:
    there, aboard = around()
    sampled(aboard)
    aboard.mgr.checks = {
        "OSD_NEARFULL": {"severity": "HEALTH_WARN", "muted": True},
        "TUNER_PAUSED": {"severity": "HEALTH_WARN", "muted": False},
    }
    assert look(there, ON, ALWAYS).wait == "the cluster has to be steady for 0 s: it was not watched before"
    sampled(aboard, 1)
    assert look(there, ON, ALWAYS).wait == ""
    assert there.sight.words == ""
    assert "OSD_NEARFULL" not in there.sight.checks
    aboard.mgr.checks["OSD_NEARFULL"]["muted"] = False
    sampled(aboard, 1)
    assert "OSD_NEARFULL" in look(there, ON, ALWAYS).wait


@pytest.mark.parametrize(
    ("check", "rule"), [({"OSD_NEARFULL": {"severity": "HEALTH_WARN"}}, "near-full"), ({}, "health")]
)
def test_what_becomes_of_the_clusters_health_while_something_is_on_trial_is_a_breach(
    check: Dict[str, Any], rule: str
) -> None:
    there, aboard = around()
    aboard.service.slo_commands.set("client.p95_ms<=80", False, 1.0, "")
    sampled(aboard)
    assert look(there, ON, ALWAYS).breach is None
    there.watch(TRIED)
    assert look(there, TRIED, ALWAYS).breach is None
    aboard.mgr.checks, aboard.mgr.status = check, "" if check else "HEALTH_ERR"
    sampled(aboard, 1)
    breach = look(there, TRIED, ALWAYS).breach
    assert breach is not None
    assert breach.rule == rule
    # with nothing on trial any more, nobody guards it
    there.watch(AutopilotState())
    assert look(there, ON, ALWAYS).breach is None


# samples that do not come


def test_before_the_first_sample_there_is_nothing_to_see() -> None:
    there, _ = around()
    first = look(there, ON, ALWAYS)
    assert (first.windows, first.breach) == (0, None)
    assert first.wait.startswith("no fresh sample")


def test_a_sample_that_is_too_old_holds_up_forward_moves_and_is_seen_by_nobody() -> None:
    there, aboard = around()
    sampled(aboard, 3)
    look(there, ON, ALWAYS)
    sampled(aboard, 1)
    assert look(there, ON, ALWAYS).wait == ""
    seen = there.sight
    aboard.twin.clock.sleep(LATE * 5.0 - 0.1)
    assert look(there, ON, ALWAYS).wait == ""
    aboard.twin.clock.sleep(0.2)
    assert "no fresh sample" in look(there, ON, ALWAYS).wait
    assert there.sight == seen


def test_samples_that_are_missing_while_something_is_on_trial_are_a_breach_after_guard_blind_of_them() -> None:
    there, aboard = around()
    aboard.service.slo_commands.set("client.p95_ms<=80", False, 1.0, "")
    sampled(aboard)
    look(there, ON, ALWAYS)
    there.watch(TRIED)
    aboard.twin.clock.sleep(60.0)
    found = [look(there, TRIED, ALWAYS).breach for _ in range(ALWAYS.guard_blind)]
    assert [breach.rule if breach else "" for breach in found] == ["", "", "blind"]


# one look


def test_switched_off_nothing_is_looked_at_while_nothing_is_on_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    there, aboard = around()
    sampled(aboard)
    asked = Counted(aboard.mgr, "get", monkeypatch)
    assert there.look(AutopilotState(), ALWAYS) is None
    assert asked.count == 0
    assert there.look(replace(TRIED, mode="off"), ALWAYS) is not None
    assert asked.count > 0


def test_what_the_sample_says_outranks_what_the_windows_say(monkeypatch: pytest.MonkeyPatch) -> None:
    there, aboard = around()
    aboard.service.slo_commands.set("client.p95_ms<=80", False, 1.0, "")
    policy = replace(ALWAYS, window=5.0, guard_windows=1)
    sampled(aboard)
    look(there, ON, policy)
    there.watch(TRIED)
    assert there._watchdog is not None
    monkeypatch.setattr(there._watchdog, "close", lambda *window: Breach("slo", "of a window"))
    sampled(aboard)
    assert look(there, ON, policy).breach == Breach("slo", "of a window")
    aboard.mgr.status = "HEALTH_ERR"
    sampled(aboard)
    breach = look(there, ON, policy).breach
    assert breach is not None
    assert breach.rule == "health"


# the canary ahead of its trial


def wide() -> Tuple[Lookout, OnTwin]:
    """One OSD may be the canary of four, and an objective is missed."""
    there, aboard = around(auto_canary="osd")
    aboard.service.slo_commands.set("client.p95_ms<=0.01", False, 1.0, "")
    return there, aboard


def test_the_canary_of_the_next_trial_is_watched_before_there_is_one() -> None:
    there, aboard = wide()
    policy = policy_of(aboard.options.__getitem__)
    sampled(aboard)
    look(there, ON, policy)
    look(there, ON, policy)
    watched = aboard.sampler.groups.members()
    assert len(watched) == 2
    assert not set(watched[0]) & set(watched[1])
    # nobody watches for a mode that is off
    there.look(AutopilotState(), policy)
    assert aboard.sampler.groups.members() == ()


def test_where_few_of_many_osds_are_asked_nobody_is_preferred_until_an_objective_is_missed() -> None:
    there, aboard = wide()
    aboard.options["histogram_osds"] = 2
    policy = policy_of(aboard.options.__getitem__)
    sampled(aboard)
    look(there, ON, policy)
    assert aboard.sampler.groups.members() == ()
    sampled(aboard, 4)
    look(there, ON, policy)
    look(there, ON, policy)
    assert len(aboard.sampler.groups.members()) == 2


@pytest.mark.parametrize(
    ("who", "option", "windows"),
    [
        ("", "", 4),
        ("osd", "osd_max_scrubs", 2),
        ("osd/host:h1", "osd_max_scrubs", 2),
        ("osd.0", "osd_mclock_max_capacity_iops_ssd", 4),
    ],
)
def test_windows_under_other_settings_are_no_time_before_a_trial(who: str, option: str, windows: int) -> None:
    there, aboard = wide()
    policy = replace(policy_of(aboard.options.__getitem__), window=5.0, baseline_windows=20)
    sampled(aboard)
    look(there, ON, policy)
    for place in range(6):
        if place == 3 and who:
            aboard.service.config.set(who, option, "4")
        sampled(aboard, 1)
        look(there, ON, policy)
    comparing = replace(TRIED, phase=COMPARING, since=there._now())
    assert look(there, comparing, policy).pairs == windows


def test_monitors_that_do_not_answer_cost_the_look_ahead_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    there, aboard = wide()
    sampled(aboard)
    look(there, ON, ALWAYS)

    def silent() -> int:
        raise ClusterTimeout("osd pool ls", 30.0)

    monkeypatch.setattr(aboard.service, "replicas", silent)
    aboard.twin.clock.sleep(PLACES_S + 1.0)
    sampled(aboard)
    assert look(there, ON, replace(ALWAYS, canary="osd")).windows >= 0
    assert aboard.sampler.groups.members() == ()


# other people


def on_trial() -> OnTwin:
    return OnTwin(auto_back_off=0.0).on_trial()


def test_a_value_on_trial_that_somebody_changes_ends_the_trial_and_is_left_as_it_is() -> None:
    aboard = on_trial()
    target = aboard.entries()[-1].target
    aboard.service.config.set(target, "osd_max_scrubs", "7")
    aboard.sample()
    assert aboard.driver.state.phase == "observing"
    assert "somebody" in aboard.driver.state.paused
    assert [(entry.value) for entry in aboard.service.config.dump() if entry.name == "osd_max_scrubs"] == ["7"]
    assert [entry.state for entry in aboard.entries()] == ["undone"]


def test_another_knob_that_somebody_changes_on_these_osds_ends_the_trial() -> None:
    aboard = on_trial()
    aboard.service.config.set("osd", "osd_scrub_chunk_max", "7")
    aboard.sample()
    assert "osd_scrub_chunk_max" in aboard.driver.state.paused
    assert [entry.state for entry in aboard.entries()] == ["undone"]


def test_what_somebody_changes_on_other_osds_and_what_an_osd_writes_itself_end_nothing() -> None:
    aboard = on_trial()
    aboard.service.config.set("osd.2", "osd_scrub_chunk_max", "7")
    aboard.service.config.set("osd.0", "osd_mclock_max_capacity_iops_ssd", "940")
    aboard.sample()
    assert aboard.driver.state.phase == "trying"


# hours, and what was asked for


def test_outside_of_the_hours_nothing_moves_and_it_is_said_until_when() -> None:
    there, aboard = around(auto_blackout="mon-sun 00:00-23:59")
    policy = policy_of(aboard.options.__getitem__)
    sampled(aboard, 3)
    found = look(there, ON, policy)
    assert found.outside
    assert "blackout" in found.wait
    assert not look(there, ON, ALWAYS).outside


def test_reasons_to_wait_do_not_hide_one_another() -> None:
    there, _ = around()
    wait = look(there, replace(ON, failures=2, failed_at=there._now()), Policy(blackout="mon-sun")).wait
    for words in ("no fresh sample", "blackout", "not looked at", "taken back"):
        assert words in wait


@pytest.mark.parametrize("word", ["rm", "other"])
def test_an_objective_that_is_withdrawn_in_mid_trial_ends_it_and_keeps_nothing(word: str) -> None:
    """With no objective left nothing would be harmed, and nothing missed: the settings would be kept for that."""
    aboard = on_trial()
    aboard.service.slo_commands.remove("all")
    if word == "other":
        aboard.service.slo_commands.set("recovery.bytes_s>=1", False, 1.0, "")
    aboard.sample(30)
    assert aboard.driver.state.kept is None
    assert [entry.state for entry in aboard.entries()] == ["undone"]
    assert any(P95 in record.why for record in aboard.modes.whole.trail.newest())


def test_another_bound_on_the_same_metric_goes_on_with_the_trial() -> None:
    aboard = on_trial()
    aboard.service.slo_commands.set("client.p95_ms<=0.02", False, 1.0, "")
    aboard.sample()
    assert aboard.driver.state.phase == "trying"


# a calendar of objectives

ODD = {"name": "odd", "hours": "mon, wed, fri, sun", "objectives": ["client.p95_ms <= 0.02"]}
"""A policy of whole days; on the others the base holds."""


class Date:
    """The twin's clock for the calendar alone, so that days can pass without a gap in the samples."""

    def __init__(self, aboard: OnTwin) -> None:
        self._aboard, self.later = aboard, 0.0
        calendar = {"objectives": ["client.p95_ms <= 0.01"], "calendar": {"policies": [ODD]}}
        aboard.service.slo_commands.set("", False, 1.0, json.dumps(calendar), True)
        aboard.service.slos._date = self.now
        # noon, so that no policy ends soon
        self.later = 43200 - self.now() % 86400

    def now(self) -> float:
        return self._aboard.twin.clock.now() + self.later


def test_when_the_policy_changes_under_a_trial_it_is_taken_back_and_nothing_is_held_against_it() -> None:
    aboard = OnTwin()
    date = Date(aboard)
    aboard.on_trial()
    policy = aboard.driver.state.policy
    assert policy in ("odd", "base")
    date.later += 86400 if date.now() // 86400 % 7 != 3 else 2 * 86400
    aboard.sample()
    assert aboard.driver.state.phase == "observing"
    assert [entry.state for entry in aboard.entries()] == ["undone"]
    aboard.sample()
    assert {policy, aboard.driver.state.policy} == {"odd", "base"}
    assert aboard.driver.state.failures == 0
    records = aboard.modes.whole.trail.newest()
    assert any(record.what == "taken back" and "calendar" in record.why for record in records)
    assert [record.detail["policy"] for record in records if record.what == "policy"][-1] == aboard.driver.state.policy


def test_no_trial_begins_that_the_end_of_its_policy_would_cut_off() -> None:
    there, aboard = around()
    date = Date(aboard)
    sampled(aboard, 3)
    assert "ends at" not in look(there, ON, ALWAYS).wait
    policy = there._calendar_policy
    days = 0
    while aboard.service.slos.policy()[0] == policy:
        days += 1
        date.later += 86400
    date.later -= 43200 + 60
    there._now = date.now  # type: ignore[method-assign]
    assert f"the policy {policy} ends at" in look(there, ON, ALWAYS).wait
    assert "ends at" not in look(there, TRIED, ALWAYS).wait


def test_a_calendar_is_shown_before_it_is_taken() -> None:
    aboard = OnTwin()
    calendar = json.dumps({"objectives": ["client.p95_ms <= 0.01"], "calendar": {"policies": [ODD]}})
    shown = aboard.service.slo_commands.set("", False, 1.0, calendar)
    assert shown is not None
    assert aboard.service.slo_commands.document() is None
    text = render.slo(shown)
    assert {spell["policy"] for spell in shown["week"]["spells"]} == {"odd", "base"}
    assert "--yes" in text
    assert "ceph-tuner slo week FILE --cluster ceph" in text
    assert "client.p95_ms <= 0.02 ms" in text
    taken = aboard.service.slo_commands.set("", False, 1.0, calendar, True)
    assert taken == aboard.service.slo_commands.document()
    assert taken is not None
    assert "policy odd: mon, wed, fri, sun (UTC)" in render.slo(taken)
    sampled(aboard)
    status = aboard.service.status()
    assert status["policy"]["name"] == taken["policy"]["name"]
    assert f"policy     {taken['policy']['name']}, until 20" in render.status(status)
    # no calendar: as ever
    aboard.service.slo_commands.remove("all")
    assert aboard.service.status()["policy"] is None


# what relative bounds refer to


def bound(there: Lookout, aboard: OnTwin) -> Any:
    """What the one objective's bound is now, as a number; None where nothing is known that it refers to."""
    look(there, ON, ALWAYS)
    (verdict,) = there.verdicts(aboard.sampler.window(60.0))
    return verdict["bound"]


def test_relative_bounds_keep_the_baseline_of_the_first_window() -> None:
    there, aboard = around()
    aboard.service.slo_commands.set("client.p95_ms<=1.5*baseline", False, 1.0, "")
    sampled(aboard, 8)
    now = aboard.twin.clock.now()
    assert bound(there, aboard) is None
    there.take(closed(now), ON, ALWAYS)
    first = bound(there, aboard)
    assert first == pytest.approx(1.5 * closed(now).means[P95])
    # later windows and trials' own baselines move it no more
    sampled(aboard, 8)
    for _ in range(3):
        there.take(closed(aboard.twin.clock.now()), replace(TRIED, baseline={P95: 1.0}), ALWAYS)
    assert bound(there, aboard) == first
    # until the objective is set anew
    aboard.service.slo_commands.set("client.p95_ms<=1.5*baseline", False, 1.0, "")
    assert bound(there, aboard) is None


def test_bounds_as_numbers_need_no_baseline() -> None:
    there, aboard = around()
    aboard.service.slo_commands.set("client.p95_ms<=80", False, 1.0, "")
    look(there, ON, ALWAYS)
    there.take(closed(aboard.twin.clock.now()), ON, ALWAYS)
    assert aboard.service.history().trials() == []


# the cluster itself


def test_the_crush_tree_is_read_again_only_when_other_osds_run_or_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there, aboard = around()
    sampled(aboard)
    asked = Counted(aboard.service.config, "places", monkeypatch)
    counts: List[int] = []
    for step, more in ((0.0, {}), (5.0, {}), (5.0, {7: 1}), (5.0, {7: 2}), (PLACES_S + 1.0, {}), (5.0, {})):
        aboard.twin.clock.sleep(step)
        aboard.collector._osds.born = {**aboard.collector._osds.born, **more}
        there.take(closed(aboard.twin.clock.now()), ON, ALWAYS)
        counts.append(asked.count)
    assert counts == [1, 1, 2, 2, 3, 3]


def test_osds_are_asked_for_their_capacity_again_only_when_it_may_be_another(monkeypatch: pytest.MonkeyPatch) -> None:
    there, aboard = around()
    sampled(aboard)
    asked = Counted(aboard.service, "capacities", monkeypatch)
    counts: List[int] = []
    for capacity, started in ((None, {}), (None, {}), (None, {}), ("1200", {}), (None, {}), (None, {}), (None, {1: 9})):
        aboard.twin.clock.sleep(30.0)
        if capacity is not None:
            aboard.twin.config.set("osd", "osd_mclock_max_capacity_iops_ssd", capacity)
        aboard.collector._osds.born = {**aboard.collector._osds.born, **started}
        there.take(closed(aboard.twin.clock.now()), ON, ALWAYS)
        counts.append(asked.count)
    # after a change once more in the next window, as the mgr is told of it some seconds later
    assert counts == [1, 2, 2, 3, 4, 4, 5]


def condition(there: Lookout) -> Mapping[str, Any]:
    return look(there, ON, ALWAYS).condition


def test_the_condition_has_every_osd_and_the_capacity_that_it_reckons_with() -> None:
    there, aboard = around()
    sampled(aboard)
    there.take(closed(aboard.twin.clock.now(), **{"client.iops": 300.0}), ON, ALWAYS)
    found = condition(there)
    assert found["release"] == there.release == "20.2.4"
    assert sum(found["osds"].values()) == 4
    assert list(found["capacity_iops"].values()) == [935.0]
    assert found["iops"] == 300.0


@given(st.integers(1, 6), st.integers(1, 12))
def test_a_change_of_the_load_counts_once_it_has_lasted(windows: int, lasts: int) -> None:
    there, _ = AROUND
    policy = replace(ALWAYS, changed_windows=windows)
    there.take(closed(0.0, **{"client.iops": 300.0}), ON, policy)
    begun = there._begun + 1.0
    state = replace(ON, begun=begun, condition=dict(look(there, replace(ON, begun=begun), policy).condition))
    for number in range(1, lasts + 1):
        there.take(closed(30.0 * number, **{"client.iops": 900.0}), state, policy)
        assert bool(look(there, state, policy).changed) == (number >= windows)
    # once it is taken for a new one, the count begins again
    assert look(there, replace(state, begun=begun + 1.0), policy).changed == ()


AROUND = around()


def test_another_release_of_an_osd_makes_a_trial_incomparable_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    there, aboard = around()
    sampled(aboard)
    there.take(closed(aboard.twin.clock.now()), ON, ALWAYS)
    state = AutopilotState("auto", HOLDING, proposed=TRIED.proposed, condition=dict(condition(there)))
    assert look(there, state, ALWAYS).upset == ""
    monkeypatch.setattr(aboard.service, "release_version", lambda: "20.2.9")
    there.take(closed(aboard.twin.clock.now()), state, ALWAYS)
    assert "20.2.9" in look(there, state, ALWAYS).upset


def test_more_clients_make_nothing_incomparable() -> None:
    there, aboard = around()
    sampled(aboard)
    there.take(closed(aboard.twin.clock.now(), **{"client.iops": 300.0}), ON, ALWAYS)
    state = AutopilotState("auto", HOLDING, proposed=TRIED.proposed, condition=dict(condition(there)))
    there.take(closed(aboard.twin.clock.now(), **{"client.iops": 3000.0, "scrub.objects_s": 9.0}), state, ALWAYS)
    assert look(there, state, ALWAYS).upset == ""


def test_the_slo_is_held_against_a_window_without_asking_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    there, aboard = around()
    aboard.service.slo_commands.set("client.p95_ms<=0.01", False, 1.0, "")
    sampled(aboard, 3)
    look(there, ON, ALWAYS)
    monkeypatch.setattr(aboard.commander, "mon", None)
    assert [row["met"] for row in there.verdicts(aboard.sampler.window(60.0))] == [False]
    assert there.verdicts(None) == []
