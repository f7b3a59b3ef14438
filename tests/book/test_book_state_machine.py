"""The book's state machine: when it switches, goes back, strikes, waits and stops."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, List

import pytest
from books import LIMITS, look, page

from ceph_tuner.core.autopilot.audit_log import BOOK, BOOK_BACK, BOOK_MODE, FAILOVER, STOPPED
from ceph_tuner.core.autopilot.events import (
    Keep,
    Kept,
    Look,
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
from ceph_tuner.core.book.events import OFF, ON, Replace, Strike
from ceph_tuner.core.book.limits import BookLimits
from ceph_tuner.core.book.state import HOLDING, RESTING, RETURNING, SWITCHING, WATCHING, BookState
from ceph_tuner.core.book.state_machine import MOST_DEATHS, BookDecision, decide, refusal, why_not_now
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.guard import Breach

RESTING_ON = BookState(on=True)
HELD = BookState(True, HOLDING, 900.0, "busy", 1, "osd", {"osd_max_scrubs": 1}, changes=(7,))
WATCHED = replace(HELD, phase=WATCHING)


def after(state: BookState, event: Any, limits: BookLimits = LIMITS) -> BookDecision:
    return decide(state, event, limits)


def kinds(decision: BookDecision) -> List[Any]:
    return [act.what if isinstance(act, Note) else type(act) for act in decision.acts]


def test_it_is_off_by_default() -> None:
    assert after(BookState(), look(1000.0, page())) == BookDecision(BookState())


def test_a_page_of_the_regime_is_written_watched_and_held() -> None:
    switching = after(RESTING_ON, look(1000.0, page()))
    assert kinds(switching) == [BOOK, Write]
    write = switching.acts[-1]
    assert (write.targets, write.settings) == (("osd",), {"osd_max_scrubs": 1})
    watching = after(switching.state, Wrote(1001.0, (7,)))
    assert (watching.state.phase, watching.state.page, watching.state.changes) == (WATCHING, 1, (7,))
    assert kinds(after(watching.state, look(1060.0, page()))) == []
    keeping = after(watching.state, look(1061.0, page()))
    assert keeping.acts == (Keep(7),)
    held = after(keeping.state, Kept(1062.0, 7)).state
    assert (held.phase, held.on_cluster, held.stands) == (HOLDING, False, True)


def test_another_regimes_page_replaces_it_in_the_same_change() -> None:
    for state in (HELD, WATCHED):
        switching = after(state, look(1000.0, page(2, "idle"), "idle"))
        assert kinds(switching) == [BOOK, Replace]
        assert switching.acts[-1].number == 7
        assert switching.state.page == 1
        wrote = after(switching.state, Wrote(1001.0, (7,))).state
        assert (wrote.phase, wrote.page, wrote.regime, wrote.settings) == (WATCHING, 2, "idle", {"osd_max_scrubs": 2})


def test_a_regime_without_a_page_has_what_was_there_before_the_book() -> None:
    back = after(HELD, look(1000.0, None, "idle"))
    assert kinds(back) == [BOOK_BACK, TakeBack]
    assert back.acts[-1].numbers == (7,)
    rest = after(back.state, TookBack(1001.0)).state
    assert rest == replace(RESTING_ON, since=1001.0)


def test_the_same_settings_for_another_regime_are_not_written_again() -> None:
    other = replace(page(2, "idle"), settings={"osd_max_scrubs": 1})
    decision = after(HELD, look(1000.0, other, "idle"))
    assert decision == BookDecision(replace(HELD, page=2, regime="idle"))


def test_settings_that_were_in_force_already_are_written_once() -> None:
    there = after(after(RESTING_ON, look(1000.0, page())).state, Wrote(1001.0)).state
    assert (there.phase, there.page, there.changes) == (RESTING, 1, ())
    assert after(there, look(1100.0, page())).acts == ()
    assert kinds(after(there, look(1100.0, page(2, "idle"), "idle"))) == [BOOK, Write]


@pytest.mark.parametrize(
    ("state", "more"),
    [
        (RESTING_ON, {"wait": "a boost is on"}),
        (RESTING_ON, {"hours": "outside of the hours"}),
        (HELD, {"wait": "a boost is on"}),
        (replace(RESTING_ON, switches=(990.0,)), {}),
        (replace(RESTING_ON, problem="another tuner", since=990.0), {}),
        (replace(RESTING_ON, switches=tuple(float(900 - n) for n in range(12))), {}),
    ],
)
def test_nothing_is_written_while_a_limit_or_somebody_stands_against_it(state: BookState, more: Any) -> None:
    seen = look(1000.0, page(2, "idle"), "idle", **more)
    assert after(state, seen).acts == ()
    assert why_not_now(state, seen, LIMITS)


def test_without_a_regime_nothing_is_done() -> None:
    assert after(RESTING_ON, look(1000.0, None, "")).acts == ()
    assert after(HELD, look(1000.0, None, "")).acts == ()


def test_outside_of_the_hours_and_without_switches_left_it_goes_back() -> None:
    assert kinds(after(HELD, look(1000.0, page(), hours="outside of the hours"))) == [BOOK_BACK, TakeBack]
    spent = replace(HELD, switches=tuple(float(900 - n) for n in range(12)))
    assert kinds(after(spent, look(1000.0, page(2, "idle"), "idle"))) == [BOOK_BACK, TakeBack]
    # the page that holds goes on
    assert after(spent, look(1000.0, page())).acts == ()


def test_a_strike_says_which_policy_held_beside_the_regime() -> None:
    other = page(2, "idle")
    for state in (WATCHED, HELD):
        broken = after(state, look(1000.0, page(), breach="slo", policy="office"))
        assert broken.acts[1] == Strike(1, "slo: slo broken", "office")
        # it comes again as the policy ends
        assert broken.state.rests == {}
    switching = after(HELD, look(1000.0, other, "idle", policy="office")).state
    assert BookState.from_dict(json.loads(json.dumps(switching.to_dict()))).policy == "office"
    failed = after(switching, WriteFailed(1001.0, "p95 is broken", rule="slo"))
    assert failed.acts[1] == Strike(2, "slo: p95 is broken", "office")
    assert failed.state.rests == {}
    assert after(failed.state, TookBack(1002.0)).state.policy == ""


def test_where_the_pages_of_the_regime_are_left_out_what_was_there_before_comes_back() -> None:
    back = after(HELD, look(1000.0, None, policy="office", left_out=(page(), page(2))))
    assert kinds(back) == [BOOK_BACK, TakeBack]
    assert back.acts[0].why.endswith("for the regime busy (left out while the policy office holds: 1, 2)")


def test_a_page_that_breaks_an_objective_in_its_regime_is_struck() -> None:
    for state in (WATCHED, HELD):
        broken = after(state, look(1000.0, page(), breach="slo"))
        assert kinds(broken) == [BOOK_BACK, Strike, TakeBack]
        assert broken.acts[1] == Strike(1, "slo: slo broken")
        rest = after(broken.state, TookBack(1001.0)).state
        assert (rest.on, rest.phase) == (True, RESTING)
    # in another regime it is not the page's fault
    assert kinds(after(HELD, look(1000.0, page(), "idle", breach="slo"))) == [BOOK_BACK, TakeBack]
    # nor where the regime is in doubt, or nobody knows it
    for in_doubt in (look(1000.0, page(), breach="slo", doubtful=True), look(1000.0, None, "", breach="slo")):
        decision = after(HELD, in_doubt)
        assert kinds(decision) == [BOOK_BACK, TakeBack]
        assert 1 in decision.state.rests


def test_a_page_that_broke_as_its_regime_ended_is_there_again_once_another_was_told() -> None:
    for state, sight in ((HELD, look(1000.0, page(), breach="slo", doubtful=True)),
                         (WATCHED, look(1000.0, page(2, "idle"), "idle", breach="slo"))):  # fmt: skip
        rest = after(after(state, sight).state, TookBack(1001.0)).state
        # the same regime is still told: it may have been the page
        waiting = after(rest, look(1010.0, None)).state
        assert waiting.rests == {1: 1000.0 + LIMITS.rest}
        # nobody knows which it is
        assert after(waiting, look(1015.0, None, "")).state.rests == waiting.rests
        over = after(waiting, look(1020.0, None, "idle")).state
        assert (over.rests, over.doubts) == ({}, {})
    # so it is once another policy of the calendar holds
    sight = look(1000.0, page(), breach="slo", doubtful=True, policy="office")
    for state, broken in ((HELD, sight), (replace(HELD, policy="office"), look(1000.0, None, "", breach="slo"))):
        rest = after(after(state, broken).state, TookBack(1001.0)).state
        assert after(rest, look(1010.0, None, policy="office")).state.rests == {1: 1000.0 + LIMITS.rest}
        assert after(rest, look(1010.0, None)).state.rests == {}
    # what the page did in its regime, or for another reason, stays
    for breach in (look(1000.0, page(), breach="slo"), look(1000.0, page(), breach="osds.down", doubtful=True)):
        rest = after(after(HELD, breach).state, TookBack(1001.0)).state
        assert after(rest, look(1020.0, None, "idle")).state.rests == {1: 1000.0 + LIMITS.rest}


def test_a_page_in_doubt_that_cannot_be_written_either_is_left_out_for_the_whole_time() -> None:
    doubted = replace(RESTING_ON, rests={2: 1500.0}, doubts={2: "busy"}, phase=SWITCHING, next_page=2, changes=(7,))
    failed = after(doubted, WriteFailed(1001.0, "no", (7,)))
    assert (failed.state.rests, failed.state.doubts) == ({2: 1001.0 + LIMITS.rest}, {})


def test_what_may_not_stay_goes_whatever_the_regime() -> None:
    for held in (page(), page(2, "idle"), None):
        assert kinds(after(HELD, look(1000.0, held, "idle" if held else "", gone="struck"))) == [BOOK_BACK, TakeBack]
    assert after(RESTING_ON, look(1000.0, None, gone="struck")).acts == ()


def test_somebodys_value_that_the_way_back_meets_stops_it() -> None:
    back = after(HELD, look(1000.0, None, "idle"))
    rest = after(back.state, TookBack(1001.0, ("osd osd_max_scrubs: found 9",))).state
    assert (rest.on, rest.phase) == (False, RESTING)
    assert "osd_max_scrubs" in rest.stopped


def test_off_is_the_last_word_also_while_what_somebody_changed_is_taken_back() -> None:
    back = after(HELD, look(1000.0, page(), breach="drift")).state
    off = after(back, OperatorCommand(1001.0, OFF, "alice")).state
    rest = after(off, TookBack(1002.0)).state
    assert (rest.on, rest.stopped) == (False, "")


def test_what_else_the_guard_sees_leaves_the_page_out_for_a_while() -> None:
    broken = after(WATCHED, look(1000.0, page(), breach="osds.down"))
    assert kinds(broken) == [BOOK_BACK, TakeBack]
    assert broken.state.rests == {1: 1000.0 + LIMITS.rest}
    blind = after(WATCHED, Look(1000.0, breach=Breach("blind", "no sample")))
    assert kinds(blind) == [BOOK_BACK, TakeBack]
    rest = after(broken.state, TookBack(1001.0)).state
    assert after(rest, look(1000.0 + LIMITS.rest, None)).state.rests == {}


def test_who_intervenes_has_the_last_word() -> None:
    back = after(HELD, look(1000.0, page(), breach="drift"))
    rest = after(back.state, TookBack(1001.0, ("osd osd_max_scrubs: found 9",)))
    assert (rest.state.on, rest.state.phase) == (False, RESTING)
    assert "intervened" in rest.state.stopped
    assert kinds(rest) == ["drift"]
    again = after(rest.state, OperatorCommand(1002.0, ON, "alice"))
    assert (again.state.on, again.state.stopped, kinds(again)) == (True, "", [BOOK_MODE])
    assert (again.state.phase, again.state.since) == (RESTING, 1002.0)


def test_an_operator_switches_it_off_at_any_time() -> None:
    off = OperatorCommand(1000.0, OFF, "alice")
    assert after(RESTING_ON, off).state.on is False
    back = after(HELD, off)
    assert kinds(back) == [BOOK_BACK, TakeBack]
    assert after(back.state, TookBack(1001.0)).state == BookState(since=1001.0)
    assert [bool(refusal(*each)) for each in ((BookState(), OFF), (HELD, ON), (HELD, OFF), (BookState(), ON))] == [
        True,
        True,
        False,
        False,
    ]
    assert after(BookState(), off) == BookDecision(BookState())


def test_what_cannot_be_taken_back_is_tried_again() -> None:
    back = after(HELD, look(1000.0, None, "idle")).state
    failed = after(back, TakeBackFailed(1001.0, "no answer"))
    assert kinds(failed) == [STOPPED]
    assert kinds(after(failed.state, TakeBackFailed(1002.0, "no answer"))) == []
    assert after(failed.state, look(1005.0, page())).acts == (TakeBack((7,), "tried again"),)


def test_what_was_switched_off_waits_for_another_tuner_and_is_no_failure() -> None:
    off = after(HELD, OperatorCommand(1000.0, OFF, "an operator")).state
    waiting = after(off, TakeBackFailed(1001.0, "another tuner", busy=True))
    assert (kinds(waiting), waiting.state.waits, waiting.state.problem) == ([], True, "another tuner")
    assert after(waiting.state, look(1005.0, page())).acts == (TakeBack((7,), "tried again"),)
    # to switch it on again meanwhile does not make it one
    on = after(waiting.state, OperatorCommand(1006.0, ON, "an operator")).state
    assert after(on, TakeBackFailed(1007.0, "another tuner", busy=True)).state.waits
    assert not after(waiting.state, TakeBackFailed(1007.0, "no answer")).state.waits
    assert not after(waiting.state, TookBack(1008.0)).state.waits
    # a page that broke what is wanted has to go, whoever is at work
    broken = after(HELD, look(1000.0, page(), breach="slo")).state
    stuck = after(broken, TakeBackFailed(1001.0, "another tuner", busy=True))
    assert (kinds(stuck), stuck.state.waits) == ([STOPPED], False)


def test_a_write_that_fails_goes_back_and_leaves_the_page_out() -> None:
    switching = after(HELD, look(1000.0, page(2, "idle"), "idle")).state
    failed = after(switching, WriteFailed(1001.0, "osd.2 does not show it"))
    assert kinds(failed) == [BOOK_BACK, TakeBack]
    assert failed.state.rests == {2: 1001.0 + LIMITS.rest}
    ended = after(switching, WriteFailed(1001.0, "p95", rule="slo"))
    assert Strike(2, "slo: p95") in ended.acts
    assert kinds(after(switching, look(1005.0, page(2, "idle"), "idle"))) == [BOOK_BACK, TakeBack]


def test_it_waits_for_another_tuner_and_tries_again() -> None:
    first = after(RESTING_ON, look(1000.0, page())).state
    busy = after(first, WriteFailed(1001.0, "another tuner is at work", busy=True))
    assert (busy.state.phase, kinds(busy), busy.state.rests) == (RESTING, [], {})
    assert after(busy.state, look(1010.0, page())).acts == ()
    assert kinds(after(busy.state, look(1062.0, page()))) == [BOOK, Write]
    # of a change that stands nobody knows then what is in force
    over = after(after(HELD, look(1000.0, page(2, "idle"), "idle")).state, WriteFailed(1001.0, "lost", busy=True))
    assert kinds(over) == [BOOK_BACK, TakeBack]


def test_what_cannot_be_made_permanent_is_tried_again() -> None:
    failed = after(WATCHED, WriteFailed(1000.0, "no answer")).state
    assert (failed.phase, failed.problem) == (WATCHING, "no answer")
    assert after(failed, look(1005.0, page())).acts == (Keep(7),)


@pytest.mark.parametrize("phase", [SWITCHING, WATCHING])
def test_the_next_mgr_begins_anew_after_what_was_taken_back(phase: str) -> None:
    state = replace(HELD, phase=phase, deaths=0)
    started = after(state, Started(1000.0, (7,)))
    assert (started.state.phase, started.state.on, kinds(started)) == (RESTING, True, [FAILOVER])
    for _ in range(MOST_DEATHS - 1):
        started = after(replace(state, deaths=started.state.deaths), Started(1000.0, (7,)))
    assert not started.state.on
    assert "mgrs ended" in started.state.stopped


@pytest.mark.parametrize("phase", [SWITCHING, WATCHING])
def test_the_next_mgr_writes_no_page_over_what_somebody_set_meanwhile(phase: str) -> None:
    started = after(replace(HELD, phase=phase), Started(1000.0, (7,), drift=("osd_max_backfills of osd is 9",)))
    assert (started.state.phase, started.state.on, kinds(started)) == (RESTING, False, [FAILOVER, STOPPED])
    assert started.state.stopped == "somebody intervened: osd_max_backfills of osd is 9"


def test_the_next_mgr_goes_on_with_what_stands() -> None:
    for phase in (SWITCHING, WATCHING, HOLDING):
        started = after(replace(HELD, phase=phase, next_page=2), Started(1000.0, kept=7)).state
        assert (started.phase, started.page, started.next_page) == (HOLDING, 1, 0)
    gone = after(HELD, Started(1000.0))
    assert (gone.state.phase, gone.state.on) == (RESTING, False)
    returning = after(replace(HELD, phase=RETURNING), Started(1000.0))
    assert kinds(returning) == [FAILOVER, TakeBack]
    stuck = after(WATCHED, Started(1000.0, problem="no answer"))
    assert (stuck.state.phase, kinds(stuck)) == (RETURNING, [STOPPED])


def test_switches_of_a_clock_that_was_ahead_bind_nobody() -> None:
    ahead = replace(RESTING_ON, switches=(9000.0,), rests={1: 999_999.0})
    decision = after(ahead, look(1000.0, page()))
    assert kinds(decision) == [BOOK, Write]
    assert decision.state.rests == {}


def test_a_page_that_was_written_by_a_clock_that_was_ahead_is_watched_from_now_on() -> None:
    ahead = replace(WATCHED, since=900.0 + 365 * 86400)
    seen = after(ahead, look(1000.0, page()))
    assert (seen.state.phase, kinds(seen)) == (WATCHING, [])
    assert kinds(after(seen.state, look(1059.0, page()))) == []
    assert after(seen.state, look(1060.0, page())).acts == (Keep(7),)


@pytest.mark.parametrize(
    "state", [BookState(), HELD, WATCHED, replace(HELD, rests={3: 5.0}, doubts={3: "idle"}, switches=(1.0,))]
)
def test_the_state_is_stored_and_read(state: BookState) -> None:
    assert BookState.from_dict(json.loads(json.dumps(state.to_dict()))) == state
    assert BookState.from_dict({**state.to_dict(), "later": 1}) == state


@pytest.mark.parametrize(
    "wrong",
    [
        {"phase": "tea"},
        {"on": 1},
        {"page": True},
        {"changes": ["7"]},
        {"changes": []},
        {"since": None},
        {"rests": 7},
        {"doubts": 7},
    ],
)
def test_what_is_no_state_is_refused(wrong: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        BookState.from_dict({**HELD.to_dict(), **wrong})


@pytest.mark.parametrize(
    ("wrong", "words"),
    [({"switches": 0}, "book_switches"), ({"hours": "tea"}, "book_hours"), ({"unvalidated": "x"}, "book_unvalidated")],
)
def test_limits_that_make_no_sense_are_refused(wrong: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        BookLimits(**wrong)


def test_notes_and_strikes_come_before_the_one_act() -> None:
    with pytest.raises(ValueError, match="acts"):
        BookDecision(HELD, (Keep(7), Note(BOOK, "")))
