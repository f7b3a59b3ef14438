from __future__ import annotations

import json

import pytest
from boosts import FORECAST, HOUR, LEFT, SETTINGS, begin, request, seen

from ceph_tuner.core.autopilot.events import (
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
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.boost.events import Event
from ceph_tuner.core.boost.state import ENDING, OFF, ON, STARTING, BoostState
from ceph_tuner.core.boost.state_machine import (
    AGAIN_S,
    BY_OPERATOR,
    CLEAN,
    CLEAN_S,
    MGRS,
    MOST_RESUMED,
    TIME,
    WRITE_FAILED,
    BoostDecision,
    decide,
    refusal,
)
from ceph_tuner.core.errors import InputError

AT = 1000.0
NOTHING = BoostState()


def after(*events: Event, state: BoostState = NOTHING) -> BoostDecision:
    decision = BoostDecision(state)
    for event in events:
        decision = decide(decision.state, event, Policy())
    return decision


def test_its_settings_are_noted_and_then_written() -> None:
    decision = after(begin(AT))
    note, write = decision.acts
    assert isinstance(note, Note)
    assert note.detail["left"] == 1000.0
    assert isinstance(write, Write)
    assert (write.targets, write.settings) == (("osd",), SETTINGS)
    assert decision.state.phase == STARTING
    assert decision.state.on_cluster
    assert after(begin(AT), Wrote(AT + 1, (7,))).state.phase == ON


def test_what_the_twin_said_goes_with_each_write_also_that_of_the_next_mgr() -> None:
    on = after(begin(AT), Wrote(AT, (7,))).state
    stored = BoostState.from_dict(json.loads(json.dumps(on.to_dict())))
    again = after(Started(AT + 9, (7,)), seen(AT + 10), state=stored)
    for decision in (after(begin(AT)), again):
        write = decision.acts[-1]
        assert isinstance(write, Write)
        assert (write.settings, write.forecast) == (SETTINGS, FORECAST)


def test_a_second_one_does_not_begin() -> None:
    on = after(begin(AT), Wrote(AT, (7,))).state
    assert after(begin(AT + 5, request("scrub")), state=on) == BoostDecision(on)
    assert refusal(on, "begin") == "a boost of recovery is on already"
    assert refusal(on, "cancel") is None
    assert refusal(BoostState(), "cancel") == "nothing is boosted"


def test_it_ends_once_nothing_has_been_left_for_a_while() -> None:
    on = after(begin(AT), Wrote(AT, (7,))).state
    zero = after(seen(AT + 100, 0.0), state=on).state
    assert (zero.phase, zero.clean_since) == (ON, AT + 100)
    # peering showed nothing for a moment
    assert after(seen(AT + 110, 3.0), state=zero).state.clean_since is None
    still = after(seen(AT + 100 + CLEAN_S - 1, 0.0), state=zero)
    assert still.state.phase == ON
    done = after(seen(AT + 100 + CLEAN_S, 0.0), state=zero)
    assert (done.state.phase, done.state.rule) == (ENDING, CLEAN)
    assert done.acts[-1] == TakeBack((7,), done.state.why)
    # 1000 copies at 2 a second would have taken 500 s
    assert done.state.last["saved_s"] == 400.0
    off = after(TookBack(AT + 200), state=done.state).state
    assert (off.phase, off.request, off.last) == (OFF, None, done.state.last)


def test_time_that_is_over_while_nothing_is_left_is_an_end_as_wanted() -> None:
    on = after(begin(AT), Wrote(AT, (7,)), seen(AT + HOUR - CLEAN_S / 2, 0.0)).state
    done = after(seen(AT + HOUR, 0.0), state=on).state
    assert (done.rule, done.last["left"]) == (CLEAN, 0.0)
    assert after(seen(AT + HOUR, 1.0), state=on).state.rule == TIME


def test_what_is_not_seen_is_not_clean() -> None:
    on = after(begin(AT), Wrote(AT, (7,)), seen(AT + 10, 0.0)).state
    assert after(seen(AT + 10 + CLEAN_S, None), state=on).state.phase == ON


@pytest.mark.parametrize("left", [0.0, 500.0, None])
@pytest.mark.parametrize("at", [AT + HOUR, AT + 9 * HOUR, AT - 1])
def test_it_outlives_neither_its_time_nor_a_clock_that_was_set_back(left: float, at: float) -> None:
    done = after(begin(AT), Wrote(AT, (7,)), seen(at, left))
    assert (done.state.phase, done.state.rule) == (ENDING, TIME)


def test_the_guard_ends_it() -> None:
    done = after(begin(AT), Wrote(AT, (7,)), seen(AT + 5, breach="slo"))
    assert (done.state.rule, done.state.why) == ("slo", "slo broken")
    note = done.acts[0]
    assert isinstance(note, Note)
    assert note.detail["rule"] == "slo"


def test_an_operator_ends_it() -> None:
    done = after(begin(AT), Wrote(AT, (7,)), OperatorCommand(AT + 5, "cancel", "alice"))
    assert (done.state.phase, done.state.rule, done.state.why) == (ENDING, BY_OPERATOR, "cancelled by alice")
    assert after(OperatorCommand(AT + 6, "cancel", "bob"), state=done.state) == BoostDecision(done.state)
    assert after(OperatorCommand(AT, "cancel", "bob")) == BoostDecision(BoostState())


def test_a_write_that_failed_ends_it_and_takes_back_what_was_written() -> None:
    done = after(begin(AT), WriteFailed(AT, "osd.3 does not show it", (7,)))
    assert done.acts[-1] == TakeBack((7,), "its settings cannot be written: osd.3 does not show it")


def test_another_tuner_that_came_first_is_as_if_the_boost_had_been_refused() -> None:
    earlier = BoostState(last={"kind": "scrub", "rule": "clean"})
    refused = after(begin(AT), WriteFailed(AT + 1, "another tuner", busy=True, untouched=True), state=earlier)
    assert refused.state == BoostState(since=AT + 1, last=earlier.last, problem="another tuner")
    assert refused.acts == ()
    # a lock that was lost in the middle leaves something to take back
    lost = after(begin(AT), WriteFailed(AT + 1, "another tuner", busy=True))
    assert isinstance(lost.acts[-1], TakeBack)


def test_what_cannot_be_taken_back_is_tried_at_each_look() -> None:
    stuck = after(begin(AT), Wrote(AT, (7,)), seen(AT + HOUR), TakeBackFailed(AT + HOUR, "no monitors"))
    assert (stuck.state.phase, stuck.state.problem) == (ENDING, "no monitors")
    again = after(seen(AT + HOUR + 5), state=stuck.state)
    assert again.acts == (TakeBack((7,), stuck.state.why),)
    # said once
    assert after(TakeBackFailed(AT + HOUR + 5, "no monitors"), state=again.state).acts == ()


def test_another_mgr_goes_on_within_the_same_deadline() -> None:
    on = after(begin(AT), Wrote(AT, (7,))).state
    waiting = after(Started(AT + 60, (7,)), state=on)
    assert (waiting.state.phase, waiting.state.on_cluster, waiting.state.begun) == (STARTING, False, AT)
    assert [type(act) for act in waiting.acts] == [Note]
    # blind, it writes nothing
    assert after(seen(AT + 65, None), state=waiting.state).acts == ()
    again = after(seen(AT + 65), state=waiting.state)
    assert isinstance(again.acts[-1], Write)
    busy = after(WriteFailed(AT + 66, "another tuner", busy=True), state=again.state)
    assert (busy.state.phase, busy.acts) == (STARTING, ())
    # each attempt is a record in the trail
    assert after(seen(AT + 70), state=busy.state).acts == ()
    assert isinstance(after(seen(AT + 65 + AGAIN_S), state=busy.state).acts[-1], Write)
    assert after(seen(AT + HOUR), state=busy.state).state.rule == TIME


def test_mgr_after_mgr_does_not_die_of_it() -> None:
    state = after(begin(AT), Wrote(AT, (7,))).state
    for number in range(MOST_RESUMED):
        state = after(Started(AT, (7 + number,)), seen(AT), Wrote(AT, (8 + number,)), state=state).state
        assert state.phase == ON
    ended = after(Started(AT, (9,)), state=state)
    assert (ended.state.phase, ended.state.rule) == (ENDING, MGRS)


def test_a_take_back_that_a_mgr_began_is_finished_by_the_next() -> None:
    ending = after(begin(AT), Wrote(AT, (7,)), seen(AT + 5, breach="slo")).state
    assert after(Started(AT + 60), state=ending).acts[-1] == TakeBack((7,), "slo broken")
    problem = after(Started(AT + 60, problem="no way"), state=ending).state
    assert (problem.phase, problem.problem) == (ENDING, "no way")


def test_others_settings_are_left_and_told() -> None:
    ending = after(begin(AT), Wrote(AT, (7,)), seen(AT + 5, breach="drift")).state
    off = after(TookBack(AT + 6, ("osd osd_max_scrubs: found 9",)), state=ending)
    assert off.acts == (Note("drift", "osd osd_max_scrubs: found 9"),)


@pytest.mark.parametrize(
    "state",
    [
        BoostState(),
        after(begin(AT)).state,
        after(begin(AT, request("backfill", 7200.0, keep=("client.p95_ms <= 20 ms",))), Wrote(AT, (7, 8))).state,
        after(begin(AT), Wrote(AT, (7,)), seen(AT + 5, 0.0), seen(AT + 99, 0.0)).state,
    ],
)
def test_a_state_survives_the_store(state: BoostState) -> None:
    assert BoostState.from_dict(json.loads(json.dumps(state.to_dict()))) == state


@pytest.mark.parametrize(
    "document",
    [
        [],
        {"phase": "sideways"},
        {"phase": "on"},
        {"phase": "on", "request": {"kind": "tea"}},
        {"phase": "on", "request": {**request().to_dict(), "kind": "tea"}},
        {"begun": "yesterday"},
        {"writing": 1},
        {"changes": ["x"]},
        {"changes": "12"},
        {"changes": [7.5]},
        {"begun": float("nan")},
    ],
)
def test_what_is_no_state_is_refused(document: object) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        BoostState.from_dict(document)  # type: ignore[arg-type]


@pytest.mark.parametrize("seconds", [0.0, 59.0, 8 * 86400.0, float("nan")])
def test_a_time_that_makes_no_sense_is_refused(seconds: float) -> None:
    with pytest.raises(InputError, match="--at-most"):
        request(at_most_s=seconds)


def test_backfill_is_done_when_nothing_is_degraded_either() -> None:
    on = after(begin(AT, request("backfill")), Wrote(AT, (7,))).state
    look = seen(AT + 5, 0.0)
    assert after(look, state=on).state.clean_since is None
    both = {**look.means, LEFT: 0.0, "backfill.objects_left": 0.0}
    assert after(type(look)(AT + 5, both), state=on).state.clean_since == AT + 5


@pytest.mark.parametrize("phase", ["starting", "on"])
def test_a_boost_that_another_mgr_left_and_that_cannot_be_taken_back_has_ended(phase: str) -> None:
    left = after(begin(AT)).state if phase == "starting" else after(begin(AT), Wrote(AT, (7,))).state
    stuck = after(Started(AT + 60, problem="no way"), state=left)
    assert (stuck.state.phase, stuck.state.problem, stuck.state.changes) == (ENDING, "no way", left.changes)
    assert [act.what for act in stuck.acts if isinstance(act, Note)] == ["stopped", "boost ended"]
    off = after(TookBack(AT + 65), state=stuck.state).state
    # so that it is told, and no rule begins it again
    assert (off.last["kind"], off.last["rule"], off.last["ended"]) == ("recovery", WRITE_FAILED, AT + 60)
