"""The state machine arrow by arrow; `test_executor_laws.py` has what no sequence of them may lead to."""

from __future__ import annotations

from typing import Any, List, Optional

import pytest
from flights import ALTERNATING, P95, QUICK, ROLLOUT, SETTINGS, answer, effect, seen

from ceph_tuner.core.autopilot.contract import ALIKE, BETTER, UNKNOWN, WORSE, Rollout
from ceph_tuner.core.autopilot.events import (
    Answered,
    Ask,
    Event,
    Keep,
    Kept,
    Learn,
    Note,
    OperatorCommand,
    Started,
    TakeBack,
    TakeBackFailed,
    TookBack,
    Write,
    WriteFailed,
    Wrote,
)
from ceph_tuner.core.autopilot.state import (
    APPROVE,
    ASKING,
    AUTO,
    COMPARING,
    DRY_RUN,
    HOLDING,
    MODES,
    OBSERVING,
    OFF,
    ON_CLUSTER,
    PHASES,
    RETURNING,
    TRYING,
    WAITING,
    WRITING,
    AutopilotState,
    Proposed,
)
from ceph_tuner.core.autopilot.state_machine import decide, refusal
from ceph_tuner.core.autopilot.transitions import ASK_AGAIN_S, AutopilotDecision
from ceph_tuner.core.goals.guard import Breach
from ceph_tuner.core.hours import DAY_S

NOW = 1_000_000.0
GOOD = {P95: effect(P95, BETTER)}


def at(phase: str, **more: Any) -> AutopilotState:
    """A state on its way: proposal 1 on osd.0, 1 and 2, then all."""
    usual = {
        "mode": AUTO,
        "phase": phase,
        "since": NOW - 100,
        "proposed": Proposed(1, SETTINGS, "more room", ROLLOUT),
        "condition": {"osds": 4},
        "aims": (P95,),
        "baseline": {P95: 30.0},
        "changes": (5,) if phase in (TRYING, HOLDING, RETURNING) else (),
    }
    if phase in (OBSERVING, ASKING):
        usual["proposed"] = None
    return AutopilotState(**{**usual, **more})


def go(state: AutopilotState, event: Event) -> AutopilotDecision:
    return decide(state, event, QUICK)


def look(state: AutopilotState, **facts: Any) -> AutopilotDecision:
    return go(state, seen(NOW, **facts))


def tell(state: AutopilotState, what: str) -> AutopilotDecision:
    return go(state, OperatorCommand(NOW, what, "alice"))


def deeds(decision: AutopilotDecision) -> List[Any]:
    """What touches the cluster or the optimiser."""
    return [act for act in decision.acts if isinstance(act, (Ask, Write, TakeBack, Keep))]


def notes(decision: AutopilotDecision) -> List[str]:
    return [act.what for act in decision.acts if isinstance(act, Note)]


def learned(decision: AutopilotDecision) -> Optional[Learn]:
    return next((act for act in decision.acts if isinstance(act, Learn)), None)


def test_the_last_of_several_acts_alone_may_have_an_outcome() -> None:
    with pytest.raises(ValueError, match="but for the last"):
        AutopilotDecision(AutopilotState(), (Ask(), Note("gave up", "nobody can be asked")))


# the way of a trial that succeeds


def test_a_missed_objective_makes_it_ask() -> None:
    decision = look(at(OBSERVING), means={P95: 31.0})
    assert decision.state.phase == ASKING
    assert deeds(decision) == [Ask()]
    assert (decision.state.aims, decision.state.baseline) == ((P95,), {P95: 31.0})


def test_settings_are_compared_before_anything_is_written() -> None:
    decision = go(at(ASKING), answer(NOW))
    assert decision.state.phase == COMPARING
    assert deeds(decision) == []
    assert decision.state.proposed == Proposed(1, SETTINGS, "more room for clients", ROLLOUT)


def test_after_the_baseline_windows_the_canary_is_written() -> None:
    assert deeds(look(at(COMPARING), windows=QUICK.baseline_windows - 1)) == []
    decision = look(at(COMPARING), windows=QUICK.baseline_windows)
    assert decision.state.phase == WRITING
    assert deeds(decision) == [Write(("osd.0",), SETTINGS, "trial 1: more room")]
    assert decision.state.moves == (NOW,)


def test_what_was_written_is_on_trial() -> None:
    state = go(at(WRITING), Wrote(NOW, (5,))).state
    assert (state.phase, state.changes, state.since) == (TRYING, (5,), NOW)


def test_a_stage_that_passed_is_followed_by_the_next() -> None:
    decision = look(at(TRYING), windows=3, effects=GOOD)
    assert deeds(decision) == [Write(("osd.1", "osd.2"), SETTINGS, "trial 1: more room")]
    assert go(decision.state, Wrote(NOW, (6, 7))).state.changes == (5, 6, 7)


def _kept(proposed: Proposed) -> AutopilotDecision:
    return go(at(HOLDING, stage=2, proposed=proposed), Kept(NOW, 5))


def test_what_was_expected_goes_with_the_write_to_all_and_with_the_result_and_not_with_a_canary_s() -> None:
    expected = {"metrics": {P95: [60.0, 40.0, 75.0]}}
    proposed = Proposed(1, SETTINGS, "more room", ROLLOUT, expected)
    (canary,) = deeds(look(at(COMPARING, proposed=proposed), windows=QUICK.baseline_windows))
    (everywhere,) = deeds(look(at(TRYING, stage=1, proposed=proposed), windows=3, effects=GOOD))
    assert [dict(write.forecast) for write in (canary, everywhere)] == [{}, expected]
    for ended in (look(at(TRYING, proposed=proposed), breach=Breach("slow ops", "3")), _kept(proposed)):
        result = learned(ended)
        assert result is not None
        assert result.forecast == expected
    stored = AutopilotState.from_dict(at(TRYING, proposed=proposed).to_dict())
    assert stored.proposed == proposed


@pytest.mark.parametrize("part", ["forecast", "unmoved"])
@pytest.mark.parametrize("stored", [None, 7, [], "x"])
def test_what_was_expected_or_in_force_and_cannot_be_read_costs_no_state(part: str, stored: Any) -> None:
    document = at(TRYING).to_dict()
    document["proposed"][part] = stored
    assert AutopilotState.from_dict(document).proposed == Proposed(1, SETTINGS, "more room", ROLLOUT)


def test_the_search_is_told_of_what_was_in_force_beside_the_settings_that_were_written() -> None:
    beside = {"osd_recovery_max_active": 3}
    proposed = go(at(ASKING), Answered(NOW, SETTINGS, "more room", ROLLOUT, unmoved=beside)).state.proposed
    (write,) = deeds(look(at(COMPARING, proposed=proposed), windows=QUICK.baseline_windows))
    assert write.settings == SETTINGS
    stored = AutopilotState.from_dict(at(HOLDING, stage=2, proposed=proposed).to_dict())
    assert stored.proposed == proposed
    result = learned(go(stored, Kept(NOW, 5)))
    assert result is not None
    assert result.settings == {**beside, **SETTINGS}


def test_the_last_stage_replaces_the_masks_by_the_target_and_is_held() -> None:
    decision = look(at(TRYING, stage=1, changes=(5, 6)), windows=3, effects=GOOD)
    assert deeds(decision) == [Write(("osd",), SETTINGS, "trial 1: more room", replaces=(5, 6))]
    state = go(decision.state, Wrote(NOW, (7,))).state
    assert (state.phase, state.changes) == (HOLDING, (7,))


def test_what_was_held_long_enough_is_kept() -> None:
    holding = at(HOLDING, stage=2, gain="client.p95_ms 20% lower")
    assert deeds(look(holding, windows=QUICK.hold_windows - 1)) == []
    decision = look(holding, windows=QUICK.hold_windows)
    assert deeds(decision) == [Keep(5)]
    kept = go(decision.state, Kept(NOW, 5))
    assert kept.state.phase == OBSERVING
    assert (kept.state.kept, kept.state.failures, kept.state.tried, kept.state.changes) == (5, 0, 1, ())
    result = learned(kept)
    assert result is not None
    assert not result.failed


@pytest.mark.parametrize(
    ("facts", "kept"),
    [
        ({"effects": GOOD}, True),
        ({"means": {P95: 30.0}}, False),
        ({"means": {P95: 15.0}, "metrics_missed": ()}, True),
        ({"means": {}, "metrics_missed": ()}, False),
        ({"effects": GOOD, "unseen": (P95,)}, False),
    ],
    ids=["better than before", "as before", "met", "aim not seen", "clients not seen"],
)
def test_without_a_gain_on_the_canary_all_osds_have_to_show_one(facts: Any, kept: bool) -> None:
    (deed,) = deeds(look(at(HOLDING, stage=2), windows=9, **facts))
    assert isinstance(deed, Keep if kept else TakeBack)


# trials that fail


@pytest.mark.parametrize("phase", [TRYING, HOLDING])
@pytest.mark.parametrize("rollout", [ROLLOUT, ALTERNATING])
def test_a_breach_is_taken_back_at_once_and_counts_as_a_failure(phase: str, rollout: Rollout) -> None:
    state = at(phase, proposed=Proposed(1, SETTINGS, "", rollout))
    decision = look(state, breach=Breach("slow ops", "3 slow operations"), wait="quiet", windows=9, effects=GOOD)
    assert decision.state.phase == RETURNING
    assert deeds(decision) == [TakeBack((5,), "3 slow operations")]
    result = learned(decision)
    assert result is not None
    assert result.failed == "3 slow operations"
    back = go(decision.state, TookBack(NOW + 1)).state
    assert (back.phase, back.failures, back.failed_at, back.tried) == (OBSERVING, 1, NOW + 1, 1)


@pytest.mark.parametrize("rule", ["drift", "manual"])
def test_a_change_by_hand_is_given_way_to_with_a_pause_and_is_no_failure(rule: str) -> None:
    decision = look(at(TRYING), breach=Breach(rule, "osd.0 was changed"))
    state = go(decision.state, TookBack(NOW)).state
    assert state.paused == "somebody intervened: osd.0 was changed"
    assert (state.paused_until, state.failures) == (None, 0)


def test_harm_is_taken_back() -> None:
    decision = look(at(TRYING), windows=1, effects={P95: effect(P95, WORSE, 0.2)})
    assert isinstance(deeds(decision)[0], TakeBack)
    assert decision.state.back_off


def test_an_inconclusive_trial_pauses_and_resumes_by_itself() -> None:
    decision = look(at(TRYING), windows=QUICK.most_windows, effects={P95: effect(P95, UNKNOWN)})
    assert isinstance(deeds(decision)[0], TakeBack)
    paused = go(decision.state, TookBack(NOW)).state
    assert "inconclusive" in paused.paused
    assert paused.paused_until == NOW + QUICK.back_off
    assert paused.failures == 0
    assert deeds(go(paused, seen(NOW + QUICK.back_off - 1))) == []
    assert deeds(go(paused, seen(NOW + QUICK.back_off))) == [Ask()]


@pytest.mark.parametrize("facts", [{"outside": True, "wait": "outside of the hours"}, {"upset": "osd.4 is new"}])
@pytest.mark.parametrize("phase", [TRYING, HOLDING])
def test_outside_of_hours_or_with_other_osds_a_trial_is_taken_back_without_blame(phase: str, facts: Any) -> None:
    decision = look(at(phase), windows=9, effects=GOOD, **facts)
    assert isinstance(deeds(decision)[0], TakeBack)
    assert not decision.state.back_off


@pytest.mark.parametrize("phase", [TRYING, HOLDING])
def test_a_trial_is_taken_back_without_blame_when_the_calendar_wants_something_else(phase: str) -> None:
    decision = look(at(phase, policy="office"), policy="night")
    (back,) = deeds(decision)
    assert isinstance(back, TakeBack)
    assert decision.state.phase == RETURNING
    assert not decision.state.back_off
    assert "night after the policy office" in back.why
    assert not deeds(look(at(phase, policy="office"), policy="office"))


@pytest.mark.parametrize("phase", [WAITING, COMPARING])
def test_a_proposal_for_another_policy_is_dropped(phase: str) -> None:
    decision = look(at(phase, policy="office"), policy="base")
    assert decision.state.phase == OBSERVING
    assert not deeds(decision)


def test_what_was_given_up_under_one_policy_is_tried_under_the_next() -> None:
    decision = look(at(OBSERVING, policy="office", gave_up="nothing helped", tried=8), policy="night")
    assert (decision.state.policy, decision.state.tried, decision.state.gave_up) == ("night", 0, "")
    assert notes(decision)[0] == "policy"
    assert notes(look(at(OBSERVING, policy="office"), policy="office")) == notes(look(at(OBSERVING)))


def test_a_write_that_failed_is_taken_back_with_what_had_been_written() -> None:
    decision = go(at(WRITING, stage=1, changes=(5,)), WriteFailed(NOW, "no answer", (6,)))
    assert deeds(decision) == [TakeBack((5, 6), "a write failed: no answer")]


def test_a_write_that_was_cut_off_is_taken_back_at_the_next_look() -> None:
    assert isinstance(deeds(look(at(WRITING, changes=(5,))))[0], TakeBack)


def test_settings_that_are_in_force_already_are_no_trial() -> None:
    decision = go(at(WRITING), Wrote(NOW, ()))
    assert (decision.state.phase, decision.state.tried) == (OBSERVING, 1)
    assert notes(decision) == ["refused"]
    last = go(at(WRITING, stage=2, changes=(5, 6)), Wrote(NOW, ()))
    assert (last.state.phase, last.state.changes) == (OBSERVING, ())


def test_taking_back_is_tried_again_at_each_look_until_it_is_done() -> None:
    stuck = go(at(RETURNING), TakeBackFailed(NOW, "osd.0 does not answer"))
    assert (stuck.state.phase, notes(stuck)) == (RETURNING, ["stopped"])
    again = look(stuck.state, wait="quiet", missed=())
    assert deeds(again) == [TakeBack((5,), "osd.0 does not answer")]
    assert notes(go(again.state, TakeBackFailed(NOW, "osd.0 does not answer"))) == []


def test_what_others_changed_meanwhile_is_reported() -> None:
    decision = go(at(RETURNING), TookBack(NOW, ("osd.0 osd_max_scrubs: found 7",)))
    assert decision.acts == (Note("drift", "osd.0 osd_max_scrubs: found 7"),)


def test_failures_in_a_row_are_counted_until_something_is_kept() -> None:
    state = go(at(RETURNING, failures=2, back_off=True), TookBack(NOW)).state
    assert (state.failures, state.failed_at) == (3, NOW)
    assert go(at(WRITING, failures=3, changes=(5,), stage=2), Kept(NOW, 5)).state.failures == 0


# what it waits for


@pytest.mark.parametrize(
    "state", [at(OBSERVING), at(COMPARING), at(TRYING), at(TRYING, proposed=Proposed(1, SETTINGS, "", ALTERNATING))]
)
def test_no_forward_move_while_there_is_a_reason_to_wait(state: AutopilotState) -> None:
    assert deeds(look(state, wait="the cluster is not steady", windows=5, effects=GOOD)) == []


def test_what_was_compared_while_it_waited_is_no_baseline() -> None:
    assert look(at(COMPARING), wait="quiet", windows=2).state.since == NOW


@pytest.mark.parametrize("failures", [1, 2, 3])
def test_after_a_failure_of_the_optimiser_it_asks_again_later_and_later(failures: int) -> None:
    state = at(ASKING, asked_at=NOW, worker_failures=failures - 1)
    failed = go(state, Answered(NOW, refused="it hangs"))
    assert (failed.state.phase, notes(failed)) == (OBSERVING, ["refused"])
    pause = ASK_AGAIN_S * 2**failures
    assert deeds(go(failed.state, seen(NOW + pause - 1))) == []
    assert deeds(go(failed.state, seen(NOW + pause))) == [Ask()]


def test_an_answer_that_comes_too_late_is_dropped() -> None:
    assert go(at(OBSERVING), answer(NOW)) == AutopilotDecision(at(OBSERVING))


def test_an_answer_without_settings_gives_up_with_its_reason() -> None:
    state = go(at(ASKING), Answered(NOW, why="no settings meet both")).state
    assert state.gave_up == "no settings meet both"
    assert deeds(look(state)) == []


def test_after_enough_trials_it_gives_up_once() -> None:
    decision = look(at(OBSERVING, tried=QUICK.trials))
    assert notes(decision) == ["gave up"]
    assert look(decision.state).acts == ()


def test_a_changed_cluster_starts_again() -> None:
    gave_up = at(OBSERVING, tried=3, failures=2, gave_up="3 were tried")
    decision = look(gave_up, changed=("6 OSDs instead of 4",), condition={"osds": 6})
    assert notes(decision) == ["condition changed"]
    assert deeds(decision) == [Ask()]
    # the pause after failures is no matter of the load
    assert (decision.state.tried, decision.state.failures, decision.state.condition) == (0, 2, {"osds": 6})


@pytest.mark.parametrize("phase", [WAITING, COMPARING])
def test_a_proposal_for_a_cluster_that_changed_is_dropped(phase: str) -> None:
    decision = look(at(phase), changed=("6 OSDs instead of 4",), windows=9)
    assert (decision.state.phase, deeds(decision)) == (OBSERVING, [])


def test_moves_of_the_last_day_are_remembered() -> None:
    moves = (NOW - DAY_S - 1, NOW - DAY_S + 1, NOW - 1)
    assert look(at(OBSERVING, moves=moves), missed=()).state.moves == moves[1:]


def test_a_clock_that_was_ahead_for_a_while_stops_nothing() -> None:
    ahead = NOW + 1e8
    assert deeds(look(at(OBSERVING, asked_at=ahead))) == [Ask()]
    assert deeds(look(at(OBSERVING, asked_at=ahead, worker_failures=3))) == [Ask()]
    assert look(at(OBSERVING, moves=(ahead,))).state.moves == ()
    assert look(at(OBSERVING, paused="inconclusive", paused_until=ahead)).state.paused == ""


# modes and commands


def test_approval_is_waited_for_and_starts_the_trial() -> None:
    waiting = go(at(ASKING, mode=APPROVE), answer(NOW)).state
    assert waiting.phase == WAITING
    assert look(waiting, windows=9).state.phase == WAITING
    assert tell(waiting, "accept").state.phase == COMPARING


def test_the_mode_that_waits_for_approval_is_not_the_approval() -> None:
    assert tell(at(OBSERVING, mode=OFF), APPROVE).state.mode == APPROVE
    assert tell(at(WAITING, mode=APPROVE), APPROVE).state.phase == WAITING


def test_a_rejected_proposal_is_dropped_and_the_next_one_waits() -> None:
    state = tell(at(WAITING, mode=APPROVE), "reject").state
    assert (state.phase, state.proposed, state.tried) == (OBSERVING, None, 1)
    assert (state.declined_at, state.failures) == (NOW, 0)


def test_a_proposal_that_nobody_needs_any_more_is_dropped() -> None:
    assert look(at(WAITING, mode=APPROVE), missed=(), metrics_missed=(), met=True).state.phase == OBSERVING
    # scrub comes in bursts: a window or two that meet it are not enough
    assert look(at(WAITING, mode=APPROVE), missed=(), metrics_missed=()).state.phase == WAITING


def test_in_approve_mode_taking_back_waits_for_nobody() -> None:
    decision = look(at(TRYING, mode=APPROVE), breach=Breach("osd down", "osd.1 is down"))
    assert isinstance(deeds(decision)[0], TakeBack)


def test_switched_to_approve_what_nobody_approved_is_not_written_and_not_left() -> None:
    assert tell(at(COMPARING), APPROVE).state.phase == WAITING
    assert isinstance(deeds(tell(at(TRYING), APPROVE))[0], TakeBack)
    assert tell(at(COMPARING, mode=APPROVE), APPROVE).state.phase == COMPARING


def test_switched_to_auto_a_waiting_proposal_goes_on() -> None:
    assert tell(at(WAITING, mode=APPROVE), AUTO).state.phase == COMPARING


def test_dry_run_reports_and_writes_nothing() -> None:
    decision = go(at(ASKING, mode=DRY_RUN), answer(NOW))
    assert (decision.state.phase, deeds(decision)) == (OBSERVING, [])
    assert notes(decision) == ["would try"]
    # the next report comes after a pause, and nobody is told that something was taken back
    assert (decision.state.declined_at, decision.state.failures) == (NOW, 0)


def test_off_or_paused_it_does_not_even_ask() -> None:
    assert look(at(OBSERVING, mode=OFF)).acts == ()
    assert look(at(OBSERVING, paused="by alice")).acts == ()


@pytest.mark.parametrize("what", [OFF, DRY_RUN, "pause"])
@pytest.mark.parametrize("phase", sorted(PHASES))
def test_off_dry_run_and_pause_leave_nothing_under_way(phase: str, what: str) -> None:
    decision = tell(at(phase), what)
    if phase in ON_CLUSTER:
        (deed,) = deeds(decision)
        assert deed.numbers == at(phase).changes
        decision = go(decision.state, TookBack(NOW))
    assert (decision.state.phase, decision.state.proposed) == (OBSERVING, None)
    assert bool(decision.state.paused) == (what == "pause")
    assert deeds(look(decision.state, windows=99)) == ([Ask()] if decision.state.mode == DRY_RUN else [])


def test_resume_ends_a_pause_also_one_that_is_still_to_come() -> None:
    assert tell(at(OBSERVING, paused="by alice"), "resume").state.paused == ""
    returning = tell(at(TRYING), "pause").state
    assert go(tell(returning, "resume").state, TookBack(NOW)).state.paused == ""


def test_retry_forgets_what_failed() -> None:
    state = tell(at(OBSERVING, gave_up="8 tried", tried=8, failures=4, worker_failures=2, paused="x"), "retry").state
    assert (state.gave_up, state.tried, state.failures, state.worker_failures, state.paused) == ("", 0, 0, 0, "")


@pytest.mark.parametrize(
    ("state", "what", "why"),
    [
        (at(OBSERVING), "accept", "no proposal waits for approval"),
        (at(TRYING), "reject", "no proposal waits for approval"),
        (at(OBSERVING), "resume", "it is not paused"),
        (at(OBSERVING, mode=OFF), "pause", "it is off"),
        (at(OBSERVING, mode=OFF, paused="x"), "resume", "it is off: `ceph tuner auto on`"),
        (at(OBSERVING, mode=OFF), "retry", "it is off: `ceph tuner auto on`"),
    ],
)
def test_a_command_that_makes_no_sense_now_is_refused_and_changes_nothing(
    state: AutopilotState, what: str, why: str
) -> None:
    assert refusal(state, what) == why
    assert tell(state, what) == AutopilotDecision(state)


@pytest.mark.parametrize("phase", sorted(PHASES))
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("what", [*MODES, "pause", "resume", "accept", "reject", "retry"])
def test_no_command_writes_settings_or_forgets_what_is_on_the_cluster(phase: str, mode: str, what: str) -> None:
    state = at(phase, mode=mode)
    decision = tell(state, what)
    assert not any(isinstance(act, (Write, Keep)) for act in decision.acts)
    assert decision.state.on_cluster == state.on_cluster
    assert decision.state.changes == state.changes


def test_a_word_that_is_no_command_is_an_error() -> None:
    with pytest.raises(ValueError, match="'sing'"):
        tell(at(OBSERVING), "sing")


# without a control


def turns(**more: Any) -> AutopilotState:
    return at(TRYING, proposed=Proposed(1, SETTINGS, "", ALTERNATING), **more)


def test_old_and_new_settings_take_turns() -> None:
    comparing = at(COMPARING, proposed=Proposed(1, SETTINGS, "", ALTERNATING))
    assert deeds(look(comparing, windows=QUICK.guard_windows - 1)) == []
    written = look(comparing, windows=QUICK.guard_windows)
    assert deeds(written) == [Write(("osd",), SETTINGS, "trial 1: ")]
    new = go(written.state, Wrote(NOW, (5,))).state
    assert (new.phase, new.leg, new.turns, new.changes) == (TRYING, True, 1, (5,))
    back = look(new, windows=1)
    assert deeds(back) == [TakeBack((5,), "the old settings' turn")]
    old = go(back.state, TookBack(NOW)).state
    assert (old.phase, old.leg, old.changes) == (TRYING, False, ())
    again = look(old, windows=1)
    assert deeds(again) == [Write(("osd",), SETTINGS, "trial 1: ")]
    assert again.state.moves == written.state.moves  # a turn is no new move


def test_a_turn_lasts_a_window() -> None:
    assert look(turns(leg=True), windows=0, effects=GOOD).acts == ()
    assert look(turns(), windows=0).acts == ()


def test_a_turn_that_did_not_show_the_clients_goes_on_for_as_long_as_the_guard_would_bear() -> None:
    unseen = {"unseen": (P95,)}
    assert look(turns(leg=True, turns=1), windows=QUICK.guard_windows - 1, **unseen).acts == ()
    back = look(turns(leg=True, turns=1), windows=QUICK.guard_windows, **unseen)
    assert deeds(back) == [TakeBack((5,), "the old settings' turn")]
    assert look(turns(turns=1, changes=()), windows=QUICK.guard_windows - 1, **unseen).acts == ()
    assert deeds(look(turns(leg=True, turns=1), windows=1)) == deeds(back)


def test_turns_in_which_nobody_saw_the_clients_never_pass() -> None:
    """The load was gone when the trial began: neither before nor during it was there a latency."""
    trial = turns(turns=QUICK.most_windows, changes=(), aims=("scrub.bytes_s",), baseline={"scrub.bytes_s": 0.0})
    facts = {"windows": QUICK.guard_windows, "allowed": {}, "effects": {}, "metrics_missed": ("scrub.bytes_s",)}
    decision = look(trial, unseen=(P95,), **facts)
    assert (decision.state.phase, notes(decision)) == (RETURNING, ["taken back"])
    assert decision.acts[0].why == "inconclusive: 6 windows; harm not ruled out yet: client.p95_ms is not seen"


def test_turns_that_passed_are_written_for_good_and_held() -> None:
    decision = look(turns(leg=False, turns=QUICK.least_windows, changes=()), windows=1, effects=GOOD)
    assert [type(deed) for deed in deeds(decision)] == [Write]
    assert go(decision.state, Wrote(NOW, (9,))).state.phase == HOLDING


def test_turns_without_any_effect_come_to_an_end() -> None:
    decision = look(turns(leg=False, turns=QUICK.most_windows, changes=()), windows=1)
    assert (decision.state.phase, notes(decision)) == (RETURNING, ["taken back"])


def test_an_old_turn_that_cannot_be_restored_ends_the_trial() -> None:
    writing = look(turns(leg=True, turns=1), windows=1).state
    assert go(writing, TakeBackFailed(NOW, "no answer")).state.phase == RETURNING


# another mgr


@pytest.mark.parametrize("phase", sorted(set(PHASES) - {RETURNING}))
def test_another_mgr_goes_on_observing(phase: str) -> None:
    state = at(phase, effects={P95: effect(P95, ALIKE)})
    decision = go(state, Started(NOW, (5,)))
    assert (decision.state.phase, decision.state.proposed, decision.state.changes) == (OBSERVING, None, ())
    assert notes(decision) == ["failover"]
    was_on = phase in ON_CLUSTER
    assert (decision.state.failures, decision.state.tried) == (int(was_on), int(was_on))


def test_a_change_that_had_just_become_permanent_is_kept() -> None:
    decision = go(at(WRITING, stage=2, changes=(5,)), Started(NOW, kept=5))
    assert (decision.state.kept, decision.state.phase, decision.state.failures) == (5, OBSERVING, 0)
    assert learned(decision) is not None


def test_what_had_to_be_taken_back_is_taken_back_though_it_was_permanent_already() -> None:
    decision = go(at(RETURNING), Started(NOW, kept=5))
    assert isinstance(deeds(decision)[0], TakeBack)


def test_a_pause_that_was_asked_for_outlives_the_mgr() -> None:
    returning = tell(at(TRYING), "pause").state
    decision = go(returning, Started(NOW, (5,)))
    assert go(decision.state, TookBack(NOW)).state.paused == "paused by alice"


def test_what_another_mgr_left_and_cannot_be_taken_back_is_tried_again() -> None:
    decision = go(at(TRYING), Started(NOW, problem="no answer"))
    assert (decision.state.phase, notes(decision)) == (RETURNING, ["stopped"])
    assert isinstance(deeds(look(decision.state))[0], TakeBack)


def test_a_first_start_is_no_failover() -> None:
    assert go(AutopilotState(), Started(NOW)) == AutopilotDecision(AutopilotState(since=NOW))


BROKEN = ("scrub.bytes_s >= 3e+07 (seen 1.5e+07)",)


def test_settings_that_break_an_objective_on_the_whole_are_not_kept_and_go_back_after_a_while() -> None:
    holding = at(HOLDING, stage=2, gain="client.p95_ms 20% lower")
    assert deeds(look(holding, windows=2 * QUICK.hold_windows - 1, broken=BROKEN)) == []
    assert deeds(look(holding, windows=2 * QUICK.hold_windows - 1)) == [Keep(5)]
    decision = look(holding, windows=2 * QUICK.hold_windows, broken=BROKEN)
    assert deeds(decision) == [TakeBack((5,), f"harm: {2 * QUICK.hold_windows} windows on all OSDs break {BROKEN[0]}")]
    result = learned(decision)
    assert result is not None
    assert BROKEN[0] in result.failed


def test_settings_that_keep_an_objective_by_chance_are_watched_for_longer() -> None:
    holding = at(HOLDING, stage=2, gain="client.p95_ms 20% lower")
    unsure = ("scrub.bytes_s >= 3e+07 (seen 3.1e+07)",)
    assert deeds(look(holding, windows=QUICK.hold_windows)) == [Keep(5)]
    assert deeds(look(holding, windows=QUICK.most_windows - 1, unsure=unsure)) == []
    assert deeds(look(holding, windows=QUICK.most_windows, unsure=unsure)) == [Keep(5)]
