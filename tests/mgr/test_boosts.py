"""Boosts inside a mgr on a twin that recovers: real code but for the mgr, the clock and the driver's thread."""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any, Callable, Dict

import pytest
from automatic_on_twin import new_lock
from boosted_mgr import LIMITED, RULES, Boosted, boosted, by_rule, recovering

from ceph_tuner.core.autopilot.audit_log import BOOST, BOOST_ENDED
from ceph_tuner.core.boost.events import Begin, Request
from ceph_tuner.core.boost.executor import KEY
from ceph_tuner.core.boost.rules import RuleWatch
from ceph_tuner.core.boost.state import OFF, ON, BoostState
from ceph_tuner.core.changes.journal import APPLIED, UNDONE
from ceph_tuner.core.errors import ClusterTimeout, InputError, Locked, RetryLater, Stopped, TunerError
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE, PROFILE
from tuner import render_automatic, turns
from tuner.exposition import exposition
from twins import small_twin


def test_recovery_is_done_sooner_and_all_is_as_before() -> None:
    mgr = boosted()
    before = mgr.table()
    document = mgr.begin(at_most="2h")
    assert any(words.startswith("done within ") and words.endswith("the rate of before") for words in document["words"])
    assert mgr.phase == ON
    shares = [float(mgr.table()["osd", name]) for name in MCLOCK_NINE]
    # recovery's are those of `high_recovery_ops`; what limits scrubs stays
    assert (shares[3:6], shares[8]) == ([0.7, 2.0, 0.0], LIMITED[MCLOCK_NINE[8]])
    assert mgr.table()["osd", "osd_max_backfills"] == "4"
    assert document["request"]["at_most_s"] == 7200.0
    mgr.sample(14)
    document = mgr.modes.boosts.document()
    assert document["finish"]["expected"] > mgr.twin.clock.now()
    assert any(words.startswith("done in ") for words in document["words"])
    assert "osd_max_backfills" in render_automatic.boost(document)
    last = mgr.until_off()
    assert (last["rule"], last["left"]) == ("clean", 0.0)
    assert last["saved_s"] > 0
    # by the rates that were seen, of which some were before and after it
    assert mgr.modes.boosts.driver.lookout.mended == pytest.approx(last["left_before"], rel=0.1)
    assert mgr.table() == before
    assert [entry.state for entry in mgr.entries()] == [UNDONE]
    assert mgr.trail()[-2:] == [BOOST, BOOST_ENDED]
    shown = " ".join(render_automatic.trail(mgr.modes.past(20)).split())
    assert re.search(
        r"for 60 s; in [0-9.]+ (s|min), [0-9]+ degraded object copies were left before, saved [0-9.]+ ", shown
    )
    assert mgr.modes.health() == {}
    mgr.sample()
    assert ("complete", "tuner-boost") in [event[:2] for event in mgr.mgr.progress]


def test_it_ends_when_time_is_up_and_says_so() -> None:
    mgr = boosted(recovering(500_000))
    before = mgr.table()
    mgr.begin(at_most="2min")
    last = mgr.until_off(40)
    assert last["rule"] == "time"
    assert last["left"] > 0
    assert mgr.table() == before
    assert list(mgr.modes.health()) == ["TUNER_BOOST_ENDED"]


def test_the_guard_ends_it_when_what_is_to_be_kept_is_missed() -> None:
    mgr = boosted(recovering(500_000))
    before = mgr.table()
    now = mgr.sampler.window(60.0).means["client.p95_ms"]  # type: ignore[union-attr]
    document = mgr.begin(keep=f"client.p95_ms<={now * 1.02:.3f}")
    assert document["request"]["keep"] == [f"client.p95_ms <= {float(f'{now * 1.02:.3f}'):g} ms"]
    last = mgr.until_off(100)
    assert last["rule"] == "slo"
    assert "client.p95_ms" in last["why"]
    assert mgr.table() == before


def test_an_operator_ends_it() -> None:
    mgr = boosted(recovering(500_000))
    before = mgr.table()
    mgr.begin()
    document = mgr.during(lambda: mgr.modes.boosts.cancel("enough"))
    assert document["phase"] == OFF
    assert mgr.table() == before
    assert mgr.modes.health() == {}
    with pytest.raises(InputError, match=r"^boost: nothing is boosted; see `ceph tuner boost status`$"):
        mgr.modes.boosts.cancel()


@pytest.mark.slow
def test_the_next_mgr_goes_on_within_the_same_deadline() -> None:
    twin = recovering(500_000)
    mgr = boosted(twin)
    before = mgr.table()
    mgr.begin(at_most="10min")
    begun = mgr.modes.boosts.driver.state.begun
    # gone: its lock's claim is left behind, and its process is this one
    for key in list(mgr.service.store.keys("lock/")):
        mgr.service.store.remove(key)
    other = Boosted(twin)
    other.sample(1)
    assert other.phase != OFF
    other.sample(3)
    assert other.phase == ON
    state = other.modes.boosts.driver.state
    assert (state.begun, state.resumed) == (begun, 1)
    assert other.until_off(400)["rule"] == "time"
    assert twin.clock.now() - begun < 600.0 + 30.0
    assert other.table() == before
    assert [entry.state for entry in other.entries()] == [UNDONE, UNDONE]


def test_the_automatic_mode_waits_for_it_and_says_so() -> None:
    mgr = boosted(recovering(500_000))
    mgr.begin()
    mgr.service.slo_commands.set("client.p95_ms<=0.01", True, 1.0, "")
    mgr.during(lambda: mgr.modes.switch("auto"))
    mgr.sample(6)
    assert "a boost is on" in mgr.driver.document()["waits_for"]
    assert mgr.driver.problem == ""
    assert mgr.driver.state.phase == "observing"


def test_the_automatic_mode_of_a_new_mgr_begins_beside_a_boost_that_is_on() -> None:
    mgr = boosted(recovering(500_000))
    mgr.begin()
    # as one whose class has just got its first objective
    mode = mgr.modes._mode("hdd")
    mode.driver.attempt()
    assert mode.driver.problem == ""
    assert mgr.phase == ON
    assert [entry.state for entry in mgr.entries()] == [APPLIED]


def test_it_refuses_while_settings_are_on_trial() -> None:
    mgr = Boosted(recovering(500_000)).on_trial(osd_max_scrubs=2)
    with pytest.raises(RetryLater, match="on trial") as refused:
        mgr.modes.boosts.begin("recovery")
    assert "ceph tuner auto pause" in refused.value.advised


def test_an_operators_own_work_goes_first() -> None:
    mgr = boosted(recovering(500_000))
    before = mgr.table()
    mgr.begin()
    mgr.during(lambda: mgr.modes.by_hand(True, "a profile", lambda: None))
    assert mgr.phase == OFF
    assert mgr.table() == before
    mgr.begin()
    undone = mgr.during(lambda: mgr.modes.rollback(True, None, False))["undone"]
    assert [item["change"] for item in undone] == [2]
    assert mgr.table() == before


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"kind": "tea"}, "recovery"),
        ({"until": "midnight"}, "--until"),
        ({"at_most": "for ever"}, "--at-most"),
        ({"at_most": "9d"}, "--at-most"),
        ({"keep": "speed"}, "--keep"),
        ({"keep": "client.p95_ms<=0.01"}, "now"),
        ({"keep": "client.p95_ms{pool=rbd}<=900"}, "whole cluster"),
        ({"who": "osd/class:tape"}, "no running OSD"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: Dict[str, str], words: str) -> None:
    mgr = boosted(recovering(500_000))
    before = mgr.table()
    with pytest.raises(TunerError, match=words):
        mgr.begin(**{"kind": "recovery", **wrong})
    assert mgr.table() == before


def test_there_must_be_something_to_boost() -> None:
    mgr = boosted(small_twin())
    with pytest.raises(RetryLater, match="no degraded object copies are left"):
        mgr.begin()


def test_somebody_elses_value_ends_it_and_stays() -> None:
    mgr = boosted(recovering(500_000))
    mgr.begin()
    mgr.service.config.set("osd", "osd_max_backfills", "7")
    last = mgr.until_off(10)
    assert last["rule"] == "drift"
    assert mgr.table()["osd", "osd_max_backfills"] == "7"
    assert mgr.table()["osd", PROFILE] == "custom"


def test_it_is_exported() -> None:
    mgr = boosted(recovering(500_000))
    mgr.begin()
    mgr.sample(20)
    text = exposition({"boost": mgr.modes.boosts.exported()})
    assert 'ceph_tuner_boost{class="recovery"} 1.0' in text
    assert 'ceph_tuner_boost{class="scrub"} 0.0' in text
    assert "ceph_tuner_boost_limit_seconds 2" in text
    assert "ceph_tuner_boost_finish_seconds" in text


RULE = "recovery after 1min at-most 2min"


def test_a_rule_begins_one_once_and_only_after_a_while() -> None:
    mgr = boosted(recovering(500_000), boost_rules=RULE)
    before = mgr.table()
    by_rule(mgr, 6)
    assert mgr.phase == OFF
    by_rule(mgr, 10)
    state = mgr.modes.boosts.driver.state
    assert state.phase == ON
    assert state.request is not None
    assert (state.request.at_most_s, state.request.by) == (120.0, "the rule `recovery after 60 s`")
    assert mgr.until_off(40)["rule"] == "time"
    # the same work is still there: it is not begun again, nor by the next mgr
    by_rule(mgr, 20)
    assert mgr.phase == OFF
    other = Boosted(mgr.twin, boost_rules=RULE)
    by_rule(other, 20)
    assert other.phase == OFF
    assert other.table() == before


def test_a_rule_whose_work_had_its_boost_says_so_until_none_of_it_is_left() -> None:
    mgr = boosted(recovering(500_000))
    mgr.begin()
    mgr.during(mgr.modes.boosts.cancel)
    # an operator sets it after a boost of his own
    mgr.options["boost_rules"] = RULE
    mgr.service.config.set("mgr", RULES, RULE)
    by_rule(mgr, 20)
    assert mgr.phase == OFF
    words = "the rule of recovery begins no other boost until none of this work is left"
    assert words in mgr.modes.boosts.document()["notes"]


def test_why_a_rule_began_no_boost_is_told_for_as_long_as_its_work_lasts() -> None:
    mgr = boosted(recovering(500_000), boost_rules="recovery after 1min keep client.p95_ms{pool=rbd}<=5")
    by_rule(mgr, 20)
    assert mgr.phase == OFF
    assert any(
        note.startswith("the rule of recovery began no boost: ") for note in mgr.modes.boosts.document()["notes"]
    )


def test_a_rule_that_was_removed_begins_nothing_though_the_mgr_still_shows_it() -> None:
    mgr = boosted(recovering(500_000), boost_rules=RULE)
    mgr.service.config.remove("mgr", RULES)
    assert mgr.service.option("boost_rules") == RULE
    by_rule(mgr, 20)
    assert mgr.phase == OFF
    assert mgr.modes.boosts.document()["notes"] == []


def test_a_target_without_osds_is_refused_before_anything_is_noted() -> None:
    mgr = boosted(recovering(500_000))
    with pytest.raises(InputError, match=r"osd\.77"):
        mgr.modes.boosts.begin("recovery", who="osd.77")
    assert (mgr.phase, mgr.trail(), mgr.modes.health()) == (OFF, [], {})


def test_a_rule_waits_for_a_trial_and_one_that_makes_no_sense_is_told() -> None:
    mgr = Boosted(recovering(500_000), boost_rules=RULE).on_trial(osd_max_scrubs=2)
    by_rule(mgr, 1)
    mgr.during(mgr.modes.boosts.by_rule)
    mgr.options["boost_rules"] = "recovery after tea"
    by_rule(mgr, 1)
    assert any("boost_rules" in note for note in mgr.modes.boosts.document()["notes"])
    (line,) = mgr.modes.health()["TUNER_OPTION_WRONG"]
    assert line.startswith("no boost begins by itself: boost_rules: found 'tea', expected a time")
    # a mgr is not told that one was removed
    mgr.service.config.remove("mgr", RULES)
    by_rule(mgr, 1)
    assert "TUNER_OPTION_WRONG" not in mgr.modes.health()
    mgr.options["boost_rules"] = ""
    by_rule(mgr, 1)
    assert mgr.modes.boosts.document()["notes"] == [
        note for note in mgr.modes.boosts.document()["notes"] if "guardian" in note
    ]


def test_a_rule_whose_boost_cannot_be_written_is_silent_afterwards() -> None:
    mgr = boosted(recovering(500_000), boost_rules=RULE)
    # outranks what a boost sets at `osd`: the write is refused
    mgr.service.config.set("osd.1", PROFILE, "balanced")
    for _ in range(30):
        mgr.sample()
        with contextlib.suppress(Stopped):
            mgr.during(mgr.modes.boosts.by_rule)
    assert mgr.trail().count(BOOST) == 1
    assert mgr.phase == OFF


def test_a_rule_whose_boost_ends_before_it_is_seen_again_is_silent_afterwards() -> None:
    mgr = boosted(recovering(500_000), boost_rules=RULE)
    while mgr.phase != ON:
        by_rule(mgr, 1)
    mgr.during(lambda: mgr.modes.boosts.cancel("no"))
    by_rule(mgr, 20)
    assert mgr.trail().count(BOOST) == 1
    assert mgr.phase == OFF


def test_the_next_mgr_knows_of_each_kind_of_work_what_came_of_its_last_boost() -> None:
    mgr = boosted(recovering(500_000))
    mgr.begin()
    mgr.during(lambda: mgr.modes.boosts.cancel("no"))
    # since then another kind of work had a boost
    mgr.service.store.set(KEY, json.dumps(BoostState(last={"kind": "scrub", "rule": "clean"}).to_dict()))
    other = Boosted(mgr.twin, boost_rules=RULE)
    by_rule(other, 20)
    assert other.trail().count(BOOST) == 1


def asked(mgr: Boosted, work: Callable[[], Any]) -> Any:
    """What a command ends with while the driver takes no turn."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turns, "PATIENCE_S", 0.05)
        try:
            return work()
        except TunerError as error:
            return error


def test_a_boost_that_waits_to_begin_is_asked_for_once_and_can_be_cancelled() -> None:
    mgr = boosted(recovering(500_000))
    before, boosts = mgr.table(), mgr.modes.boosts
    assert isinstance(asked(mgr, lambda: boosts.begin("recovery")), RetryLater)
    # as a rule does every few seconds while the monitors do not answer
    again = asked(mgr, lambda: boosts.begin("recovery"))
    assert isinstance(again, RetryLater)
    assert "waits to begin already" in str(again)
    assert isinstance(asked(mgr, lambda: boosts.cancel("not any more")), RetryLater)
    mgr.sample(3)
    assert mgr.phase == OFF
    assert mgr.trail().count(BOOST) == 1
    assert mgr.table() == before


def test_a_boost_of_another_mgr_can_be_cancelled_before_its_state_was_read() -> None:
    mgr = boosted(recovering(500_000))
    before = mgr.table()
    mgr.begin()
    for key in list(mgr.service.store.keys("lock/")):
        mgr.service.store.remove(key)
    other = Boosted(mgr.twin)
    assert isinstance(asked(other, lambda: other.modes.boosts.cancel("enough")), RetryLater)
    other.sample(3)
    assert other.phase == OFF
    assert other.table() == before


@pytest.mark.parametrize(
    "last",
    [{"kind": "recovery", "ended": "soon"}, {"ended": [], "rule": []}, {"saved_s": {}, "kind": 5}, {"begun": {}}],
)
def test_a_damaged_outcome_in_the_store_costs_neither_status_nor_health_nor_metrics(last: Dict[str, Any]) -> None:
    mgr = Boosted(recovering(), boost_rules=RULE)
    mgr.service.store.set(KEY, json.dumps({**BoostState().to_dict(), "last": last}))
    by_rule(mgr, 3)
    mgr.modes.health()
    assert exposition({"boost": mgr.modes.boosts.exported()})
    assert "off" in render_automatic.boost(mgr.modes.boosts.document())


def test_changes_that_cannot_be_taken_back_are_no_boost_but_are_told_as_they_are() -> None:
    mgr = boosted(recovering(500_000))
    mgr.service.store.set(KEY, json.dumps(BoostState("ending", problem="no way back").to_dict()))
    other = Boosted(mgr.twin)
    other.modes.boosts.driver._executor.state = BoostState("ending", problem="no way back")
    words = other.modes.boosts.document()["words"]
    assert "ending" in words[0]
    assert any("no way back" in line for line in words)
    refused = asked(other, lambda: other.modes.boosts.driver.begin(Begin(0.0, Request("scrub"), {}, "")))
    assert isinstance(refused, InputError)
    assert "taken back" in str(refused)


def test_objectives_that_are_wanted_later_end_it_too() -> None:
    mgr = boosted(recovering(500_000))
    now = mgr.sampler.window(60.0).means["client.p95_ms"]  # type: ignore[union-attr]
    mgr.begin()
    mgr.sample(2)
    # as at the hour at which another policy of the calendar begins
    mgr.service.slo_commands.set(f"client.p95_ms<={now * 1.02:.3f}", False, 1.0, "")
    assert mgr.until_off(100)["rule"] == "slo"


def test_it_does_not_begin_without_objectives_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    mgr = boosted(recovering(500_000))
    before = mgr.table()

    def silent() -> None:
        raise ClusterTimeout("the monitors do not answer")

    monkeypatch.setattr(mgr.service.slos, "current", silent)
    with pytest.raises(Stopped, match="the monitors do not answer"):
        mgr.begin()
    assert (mgr.phase, mgr.table()) == (OFF, before)


def test_objectives_that_cannot_be_read_meanwhile_hold_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    mgr = boosted(recovering(500_000))
    now = mgr.sampler.window(60.0).means["client.p95_ms"]  # type: ignore[union-attr]
    mgr.service.slo_commands.set(f"client.p95_ms<={now * 1.02:.3f}", False, 1.0, "")
    mgr.begin()
    mgr.service.store.set("slo", "{")
    mgr.service.slos.begin_interval()
    assert mgr.until_off(100)["rule"] == "slo"


def test_a_clock_that_is_set_back_gives_it_no_more_time() -> None:
    mgr = boosted(recovering(500_000))
    mgr.begin(at_most="2min")
    steady = mgr.twin.clock.monotonic
    begun = steady()
    mgr.sample(10)
    mgr.modes.boosts.driver.lookout._now = lambda: steady() - 12.0
    assert mgr.until_off(40)["rule"] == "time"
    assert steady() - begun <= 120.0 + 10.0


def test_it_does_not_begin_by_what_was_seen_long_ago() -> None:
    mgr = boosted(recovering(500_000))
    mgr.blind = True
    mgr.sample(4)
    with pytest.raises(RetryLater, match="no sample has told"):
        mgr.begin()
    assert BOOST not in mgr.trail()


def test_two_windows_that_end_with_one_sample_do_not_begin_the_forecast_anew() -> None:
    mgr = boosted(recovering(500_000))
    mgr.begin()
    mgr.sample(8)
    points = len(mgr.modes.boosts.driver.lookout.progress.points)
    mgr.twin.clock.sleep(10.0)
    mgr.sample()
    assert len(mgr.modes.boosts.driver.lookout.progress.points) > points


def test_one_that_waits_for_another_tuner_keeps_the_trail_readable_and_the_mode_waiting() -> None:
    mgr = boosted(recovering(500_000))
    mgr.begin()
    for key in list(mgr.service.store.keys("lock/")):
        mgr.service.store.remove(key)
    other = Boosted(mgr.twin)
    other.sample(1)
    lock = new_lock(other.service.store, mgr.twin.clock, "another tuner")
    with lock:
        other.sample(8)
        assert other.phase == "starting"
        assert other.trail().count(BOOST) <= 3
        assert any("tried again" in line for line in other.modes.boosts.document()["words"])
        assert other.modes.health() == {}
        other.service.slo_commands.set("client.p95_ms<=0.01", True, 1.0, "")
        other.during(lambda: other.modes.switch("auto"))
        other.sample(2)
        assert "a boost is on" in other.driver.document()["waits_for"]
    other.sample(14)
    assert other.phase == ON


def test_another_tuner_at_work_is_a_refusal_for_people_and_a_wait_for_rules() -> None:
    mgr = boosted(recovering(500_000), boost_rules=RULE)
    with new_lock(mgr.service.store, mgr.twin.clock, "another tuner"):
        with pytest.raises(Locked, match="another tuner"):
            mgr.begin()
        assert (mgr.phase, mgr.trail()) == (OFF, [])
        mgr.sample()
        mgr.modes.boosts._rules = RuleWatch({"recovery": 0.0})
        mgr.during(mgr.modes.boosts.by_rule)
        assert (mgr.phase, mgr.trail()) == (OFF, [])
        assert any("another tuner" in note for note in mgr.modes.boosts.document()["notes"])
    by_rule(mgr, 1)
    assert mgr.phase == ON


def test_a_boost_that_nobody_began_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    mgr = boosted(recovering(500_000))

    def fail(event: Any) -> None:
        raise RuntimeError("unforeseen")

    monkeypatch.setattr(mgr.modes.boosts.driver._executor, "handle", fail)
    with pytest.raises(Stopped, match="did not begin"):
        mgr.begin()
    assert mgr.phase == OFF


def test_a_tuner_that_comes_between_the_look_and_the_write_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    mgr = boosted()
    monkeypatch.setattr("tuner.boosts.claim_at_work", lambda store, now: None)
    with new_lock(mgr.service.store, mgr.twin.clock, "another tuner"):
        with pytest.raises(Locked, match="another tuner"):
            mgr.begin()
        document = mgr.modes.boosts.document()
        assert (mgr.phase, document["last"], mgr.modes.boosts.health()) == (OFF, {}, {})
        # who waited in vain for the command looks there
        assert "did not begin: " in document["words"][1]
        assert "another tuner" in document["words"][1]
    # nothing of it is left to wait for
    assert mgr.begin()["phase"] == ON
