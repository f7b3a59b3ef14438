from __future__ import annotations

import pytest
from boosts import LEFT

from ceph_tuner.core.boost.rules import Rule, RuleWatch, parse_rules
from ceph_tuner.core.errors import InputError

RULES = parse_rules("recovery after 5min at-most 2h keep client.p95_ms<=20; ops.slow<=0, scrub after 1d")


def test_rules_are_read() -> None:
    keep = "client.p95_ms<=20; ops.slow<=0"
    assert (Rule("recovery", 300.0, 7200.0, keep), Rule("scrub", 86400.0)) == RULES
    assert parse_rules("") == parse_rules(" , ") == ()


@pytest.mark.parametrize(
    "text",
    [
        "recovery",
        "tea after 5min",
        "recovery after soon",
        "recovery after 5min at-most 9d",
        "recovery after 5min, recovery after 9min",
        ", ".join(["recovery after 5min"] * 11),
        "recovery after 5min please",
    ],
)
def test_what_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"boost_rules|--at-most"):
        parse_rules(text)


def test_what_the_calendar_ended_may_be_begun_again_and_what_time_ended_may_not() -> None:
    watch = RuleWatch().after(0.0, {LEFT: 5.0}).fired("recovery")
    assert watch.ended({"kind": "recovery", "rule": "time"}).due(RULES, 900.0) is None
    assert watch.ended({"kind": "recovery", "rule": "calendar", "by": RULES[0].by}).due(RULES, 900.0) == RULES[0]


def test_an_operator_s_boost_that_the_calendar_ended_leaves_it_to_the_rule_as_it_was() -> None:
    by_hand = {"kind": "recovery", "rule": "calendar", "by": "an operator"}
    guarded = {"kind": "recovery", "rule": "slo", "by": RULES[0].by}
    watch = RuleWatch().after(0.0, {LEFT: 5.0})
    assert watch.ended(by_hand).due(RULES, 900.0) == RULES[0]
    # with the bounds that the guard ended it for
    assert watch.ended(guarded).ended(by_hand).due(RULES, 900.0) is None
    assert RuleWatch.after_boosts((guarded, by_hand)).after(0.0, {LEFT: 5.0}).due(RULES, 900.0) is None


def test_a_rule_is_due_once_its_work_has_lasted_and_again_only_after_none_was_left() -> None:
    watch = RuleWatch().after(0.0, {LEFT: 5.0}).after(200.0, {}).after(299.0, {LEFT: 9.0})
    assert watch.due(RULES, 299.0) is None
    assert watch.due(RULES, 300.0) == RULES[0]
    spent = watch.fired("recovery").after(900.0, {LEFT: 9.0})
    assert spent.due(RULES, 900.0) is None
    again = spent.after(1000.0, {LEFT: 0.0}).after(1005.0, {LEFT: 3.0})
    assert again.due(RULES, 1100.0) is None
    assert again.due(RULES, 1305.0) == RULES[0]


def test_work_that_is_done_meanwhile_or_a_clock_that_is_set_back_begins_to_count_anew() -> None:
    watch = RuleWatch().after(0.0, {LEFT: 5.0}).after(200.0, {LEFT: 0.0}).after(250.0, {LEFT: 5.0})
    assert watch.due(RULES, 400.0) is None
    assert RuleWatch().after(9000.0, {LEFT: 5.0}).after(10.0, {LEFT: 5.0}).due(RULES, 20.0) is None


def test_the_next_mgr_knows_what_had_its_boost() -> None:
    unfinished, done = ({"kind": "recovery", "rule": rule} for rule in ("slo", "clean"))
    scrub = {"kind": "scrub", "rule": "clean"}
    for outcomes, due in (
        ((unfinished,), None),
        ((unfinished, scrub), None),
        ((unfinished, done), RULES[0]),
        ((done,), RULES[0]),
        (({},), RULES[0]),
        (({"kind": 5, "rule": []},), RULES[0]),
    ):
        assert RuleWatch.after_boosts(outcomes).after(0.0, {LEFT: 5.0}).due(RULES, 300.0) == due
