from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Optional

import pytest
from boosts import LEFT, begin, request
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.autopilot.events import Note, OperatorCommand, Wrote
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.boost.explanation import explain
from ceph_tuner.core.boost.outcome import in_words, outcome_of
from ceph_tuner.core.boost.progress import fall
from ceph_tuner.core.boost.state import ON, BoostState
from ceph_tuner.core.boost.state_machine import decide

AT = 1000.0


def on(kind: str = "recovery", rate: Optional[float] = 2.0, **before: float) -> BoostState:
    left = before or {LEFT: 1000.0}
    return BoostState(ON, AT, request(kind), begun=AT, baseline=left, rate_before=rate, changes=(7,))


def outcome(state: BoostState, seconds: float, rule: str = "clean", **left: float) -> Dict[str, Any]:
    return outcome_of(state, AT + seconds, left, "why", rule)


def test_what_it_did_and_saved_is_told_in_words() -> None:
    told = in_words(outcome(on(), 240.0, **{LEFT: 0.0}))
    assert told == "in 4 min, 1000 degraded object copies were left before, saved 4.33 min"


def test_of_one_that_did_not_end_clean_what_it_did_counts() -> None:
    told = outcome(on(), 100.0, "time", **{LEFT: 400.0})
    # 600 copies at 2 a second
    assert (told["saved_s"], told["by"]) == (200.0, "an operator")
    assert in_words(told).endswith("were left before, 400 are left, saved 3.33 min")
    slower = outcome(on(), 900.0, "time", **{LEFT: 400.0})
    assert in_words(slower).endswith("no faster than before")


def test_the_time_of_being_sure_is_no_work() -> None:
    assert outcome_of(on(), AT + 160.0, {LEFT: 0.0}, "why", "clean", AT + 100.0)["saved_s"] == 400.0


@pytest.mark.parametrize(
    ("state", "left", "why"),
    [
        (on(rate=None), {LEFT: 400.0}, "it was not seen becoming less before"),
        (on(), {}, "what was left was not seen"),
        (on(), {LEFT: 1000.0}, "no less is left than before"),
        (on("scrub", None, **{"scrub.pgs_late": 9.0}), {"scrub.pgs_late": 0.0}, "it was not seen becoming less before"),
    ],
)
def test_where_the_saving_cannot_be_known_it_says_why(state: BoostState, left: Dict[str, float], why: str) -> None:
    told = outcome(state, 100.0, "slo", **left)
    assert told["saved_s"] is None
    assert in_words(told).endswith(f"what it saved is not known: {why}")


def test_copies_that_were_found_again_are_not_saved() -> None:
    some = outcome_of(on(), AT + 100.0, {LEFT: 0.0}, "why", "clean", mended=300.0)
    # 300 copies at 2 a second
    assert some["saved_s"] == 50.0
    none = outcome_of(on(), AT + 100.0, {LEFT: 17.0}, "why", "time", mended=0.0)
    assert none["saved_s"] is None
    assert in_words(none).endswith("what it saved is not known: what became less was found again, and not worked on")
    # new work came meanwhile
    assert outcome_of(on(), AT + 100.0, {LEFT: 400.0}, "why", "time", mended=900.0)["saved_s"] == 200.0


def test_it_is_told_how_often_another_mgr_became_active() -> None:
    for resumed, words in ((1, "became active once since"), (2, "became active 2 times since")):
        assert [line for line in explain(replace(on(), resumed=resumed), {}, None, AT + 5.0) if words in line]


def test_scrub_and_snaptrim_are_reckoned_by_what_was_seen_to_become_less() -> None:
    for kind, metric in (("scrub", "scrub.pgs_late"), ("snaptrim", "snaptrim.queue")):
        told = outcome(on(kind, 0.01, **{metric: 9.0}), 300.0, **{metric: 0.0})
        assert told["saved_s"] == pytest.approx(600.0)


def test_the_record_of_its_end_says_so_also_where_an_operator_ended_it() -> None:
    state = decide(decide(BoostState(), begin(AT), Policy()).state, Wrote(AT, (7,)), Policy()).state
    ended = decide(state, OperatorCommand(AT + 100.0, "cancel", "alice", means={LEFT: 400.0}), Policy())
    note = ended.acts[0]
    assert isinstance(note, Note)
    words = "in 100 s, 1000 degraded object copies were left before, 400 are left, saved 3.33 min"
    assert note.why == f"boost of recovery: cancelled by alice; {words}"
    assert note.detail["saved_s"] == 200.0
    assert words in explain(BoostState(last=ended.state.last), {}, None, AT + 101.0)


def test_before_the_first_windows_it_is_done_within_what_the_rate_of_before_says() -> None:
    assert "done within 4.17 min at the rate of before" in explain(on(), {LEFT: 500.0}, None, AT + 5.0)
    assert "when it will be done is not known yet" in explain(on(rate=None), {LEFT: 500.0}, None, AT + 5.0)


@pytest.mark.parametrize("rate", [float("nan"), float("inf"), -1.0, 0.0])
def test_a_rate_of_before_that_makes_no_sense_is_as_if_it_was_not_seen(rate: float) -> None:
    assert BoostState.from_dict({**on().to_dict(), "rate_before": rate}).rate_before is None


def minutes(*left: float) -> list[tuple[float, float]]:
    return [(60.0 * number, value) for number, value in enumerate(left)]


@pytest.mark.parametrize(
    ("left", "rate"),
    [
        ((), None),
        ((9.0,), None),
        # too short a time, none at all, and no more than it goes up and down
        ((9.0, 5.0), None),
        ((5.0, 5.0, 5.0, 5.0), None),
        ((5.0, 7.0, 9.0), None),
        ((50.0, 51.0, 49.0, 50.0), None),
        ((12.0, 10.0, 8.0, 6.0), 6.0 / 180.0),
        # since it was most: an OSD was lost meanwhile
        ((0.0, 0.0, 300.0, 200.0, 100.0), 200.0 / 120.0),
        # late scrubs that come while others are done
        ((20.0, 17.0, 18.0, 14.0), 6.0 / 180.0),
    ],
)
def test_a_fall_is_what_became_less_since_it_was_most(left: tuple[float, ...], rate: Optional[float]) -> None:
    assert fall(minutes(*left)) == (None if rate is None else pytest.approx(rate))


@given(st.lists(st.floats(0, 1e9), max_size=30))
def test_a_fall_is_above_nothing(left: list[float]) -> None:
    rate = fall(minutes(*left))
    assert rate is None or rate > 0
