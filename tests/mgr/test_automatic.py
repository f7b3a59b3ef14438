from __future__ import annotations

import threading
import time
from typing import Any, Dict, List

import pytest
from automatic_on_twin import OnTwin, answering

from ceph_tuner.core.autopilot.audit_log import APPLY, KINDS
from ceph_tuner.core.autopilot.events import Note
from ceph_tuner.core.autopilot.state import OBSERVING, TRYING
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.catalogue import PROFILE
from prometheus_server import free_port
from tuner import health
from tuner.health import CHECKS

CHANGED = {"osd_max_scrubs": 3}


def on_trial(**options: Any) -> OnTwin:
    return OnTwin(**options).on_trial(**CHANGED)


def scrubs(aboard: OnTwin) -> List[str]:
    return [entry.value for entry in aboard.service.config.dump() if entry.name == "osd_max_scrubs"]


def states(aboard: OnTwin) -> Dict[int, str]:
    return {entry.number: entry.state for entry in aboard.entries()}


# an operator's own work while a trial is on


def test_a_rollback_while_a_trial_is_on_takes_the_trial_back_alone_and_pauses() -> None:
    aboard = OnTwin()
    aboard.service.profile_apply("high_client_ops", "osd", True)
    aboard.on_trial(**CHANGED)
    done = aboard.during(lambda: aboard.modes.rollback(True, None, False))
    assert [row["change"] for row in done["undone"]] == [2]
    assert states(aboard) == {1: "applied", 2: "undone"}
    assert aboard.driver.state.paused
    aboard.sample(30)
    assert len(aboard.entries()) == 2


def test_a_rollback_of_everything_takes_the_trial_back_and_then_all_the_rest() -> None:
    aboard = OnTwin()
    aboard.service.profile_apply("high_client_ops", "osd", True)
    aboard.on_trial(**CHANGED)
    done = aboard.during(lambda: aboard.modes.rollback(True, None, True))
    assert [row["change"] for row in done["undone"]] == [1]
    assert set(states(aboard).values()) == {"undone"}


def test_a_rollback_that_only_shows_leaves_the_trial_alone() -> None:
    aboard = on_trial()
    shown = aboard.during(lambda: aboard.modes.rollback(False, None, False))
    assert [row["change"] for row in shown["would"]] == [1]
    assert aboard.driver.state.phase == TRYING
    assert aboard.driver.state.paused == ""


def test_without_a_trial_a_rollback_takes_the_newest_change_back_and_pauses_nothing() -> None:
    aboard = OnTwin()
    aboard.service.profile_apply("high_client_ops", "osd", True)
    aboard.during(lambda: aboard.modes.switch("auto"))
    done = aboard.during(lambda: aboard.modes.rollback(True, None, False))
    assert [row["change"] for row in done["undone"]] == [1]
    assert aboard.driver.state.paused == ""


def apply(aboard: OnTwin, really: bool) -> Any:
    work = lambda: aboard.service.profile_apply("high_client_ops", "osd", really)  # noqa: E731
    return aboard.during(lambda: aboard.modes.by_hand(really, "profile high_client_ops applied", work))


def test_a_profile_that_is_applied_while_a_trial_is_on_comes_after_the_trial_has_gone() -> None:
    aboard = on_trial()
    assert apply(aboard, True)["applied"]
    assert states(aboard) == {1: "undone", 2: "applied"}
    assert scrubs(aboard) == []
    assert [entry.value for entry in aboard.service.config.dump() if entry.name == PROFILE] == ["high_client_ops"]
    assert aboard.driver.state.paused == "paused profile high_client_ops applied"
    # that was the operator's own hand: nobody speaks of drift
    aboard.sample(3)
    assert "drift" not in [record.what for record in aboard.modes.whole.trail.newest()]


def test_a_profile_that_is_only_shown_ends_no_trial() -> None:
    aboard = on_trial()
    assert not apply(aboard, False)["applied"]
    assert aboard.driver.state.phase == TRYING


@pytest.mark.parametrize("word", ["off", "dry-run"])
def test_switching_off_takes_the_trial_back(word: str) -> None:
    aboard = on_trial()
    document = aboard.during(lambda: aboard.modes.switch(word))
    assert (document["mode"], document["phase"]) == (word, OBSERVING)
    assert scrubs(aboard) == []


def test_a_mode_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="turbo"):
        OnTwin().modes.switch("turbo")


def test_no_bench_while_settings_are_on_trial() -> None:
    aboard = on_trial()
    with pytest.raises(InputError, match="on trial"):
        aboard.modes.measure(0, True)


# options


@pytest.mark.parametrize(
    "changed", [{"auto_hours": "whenever"}, {"auto_least_windows": 500}, {"sample_interval": 60.0}]
)
def test_options_that_make_no_sense_end_the_trial_and_let_nothing_new_begin_and_say_so(changed: Dict[str, Any]) -> None:
    """Each turn would fail otherwise, and the trial would stand without a guard."""
    aboard = on_trial()
    before = dict(aboard.options)
    aboard.options.update(changed)
    aboard.sample()
    assert scrubs(aboard) == []
    (name,) = changed
    assert any(name.partition("_")[2] in line for line in aboard.modes.health()["TUNER_STOPPED"])
    assert any("makes no sense" in note for note in aboard.modes.document()["notes"])
    aboard.sample(20)
    assert aboard.driver.state.phase == OBSERVING
    # an operator can still say something
    assert aboard.during(lambda: aboard.modes.tell("pause", "lunch"))["paused"]
    aboard.options.update(before)
    aboard.sample()
    assert "TUNER_STOPPED" not in aboard.modes.health()


# what an operator sees


def test_health_checks_are_documented_ones_and_follow_the_state() -> None:
    aboard = on_trial()
    assert set(aboard.modes.health()) <= set(CHECKS)
    assert "TUNER_PAUSED" not in aboard.modes.health()
    aboard.during(lambda: aboard.modes.tell("pause", "lunch"))
    assert "lunch" in aboard.modes.health()["TUNER_PAUSED"][0]
    aboard.during(lambda: aboard.modes.tell("resume"))
    assert "TUNER_PAUSED" not in aboard.modes.health()
    assert set(health.raised(aboard.modes.health())) <= set(CHECKS)


def test_a_hard_objective_that_is_missed_is_a_check_once_nothing_more_is_tried(tmp_path: Any) -> None:
    nothing = '{"version": 1, "ok": true, "proposals": [], "verdict": {"state": "done", "reason": "nothing better"}}'
    aboard = OnTwin(worker_python=answering(tmp_path, nothing))
    aboard.service.slo_commands.set("client.p95_ms<=0.01", False, 1.0, "")
    aboard.during(lambda: aboard.modes.switch("auto"))
    aboard.until("asking")
    for thread in threading.enumerate():
        if thread.name == "tuner-asking":
            thread.join()
    aboard.sample()
    lines = aboard.modes.health()["TUNER_SLO_MISSED"]
    assert any("client.p95_ms" in line for line in lines)
    assert any("nothing better" in line for line in lines)


def test_a_turn_that_fails_is_a_check_unless_it_is_switched_off() -> None:
    aboard = OnTwin()
    aboard.driver._problem = "no quorum"
    assert "TUNER_STOPPED" not in aboard.modes.health()
    aboard.during(lambda: aboard.modes.switch("auto"))
    aboard.driver._problem = "no quorum"
    assert aboard.modes.health()["TUNER_STOPPED"] == ["no quorum"]


def test_a_note_says_that_no_guardian_watches_while_the_mode_is_on() -> None:
    aboard = on_trial()
    assert any("ceph-tuner guardian" in note for note in aboard.modes.whole.notes())
    aboard.during(lambda: aboard.modes.switch("off"))
    assert not any("ceph-tuner guardian" in note for note in aboard.modes.whole.notes())
    aboard.modes.close(time.monotonic() + 5.0)


def test_the_trail_is_part_of_the_past_the_newest_last() -> None:
    aboard = on_trial()
    rows = aboard.modes.past(3)
    assert [row["number"] for row in rows] == sorted(row["number"] for row in rows)
    assert [(row["what"], row["outcome"]) for row in rows][-2:] == [(APPLY, ""), (APPLY, "written")]
    assert {row["what"] for row in aboard.modes.past(100)} <= set(KINDS)


def progress(aboard: OnTwin) -> List[str]:
    return [call[0] for call in aboard.mgr.progress]


def test_the_progress_bar_of_a_trial_that_an_operator_ends_has_not_failed() -> None:
    aboard = OnTwin()
    # an earlier trial did harm
    aboard.modes.whole.logbook.note(Note("taken back", "harm"), aboard.twin.clock.now())
    aboard.on_trial(**CHANGED)
    aboard.sample()
    assert "update" in progress(aboard)
    aboard.during(lambda: aboard.modes.tell("pause"))
    aboard.sample()
    assert progress(aboard)[-1] == "complete"


def test_the_progress_bar_of_a_trial_that_was_taken_back_has_failed() -> None:
    aboard = on_trial()
    aboard.sample()
    aboard.mgr.status = "HEALTH_ERR"
    aboard.sample(2)
    assert progress(aboard)[-1] == "fail"


def test_groups_are_sampled_apart_while_a_trial_is_on_and_no_longer() -> None:
    aboard = on_trial()
    aboard.sample()
    assert aboard.sampler.groups.members() == ((0,), (1, 2, 3))
    aboard.during(lambda: aboard.modes.tell("pause"))
    aboard.sample()
    assert aboard.sampler.groups.members() == ()


def test_the_metrics_are_those_of_the_state() -> None:
    aboard = on_trial()
    aboard.sample()
    found = aboard.modes.whole.exported()
    assert (found["mode"], found["phase"], found["stage"], found["stages"]) == ("auto", TRYING, 1, 2)
    assert found["changes_on_trial"] == 1
    assert found["slo"][0]["met"] is False


def test_objectives_are_exported_while_the_automatic_mode_is_off_too() -> None:
    aboard = OnTwin(metrics_port=free_port(), metrics_address="127.0.0.1")
    try:
        aboard.service.slo_commands.set("client.p95_ms<=0.01", False, 1.0, "")
        aboard.sample(3)
        found = aboard.modes.whole.exported()
        assert (found["mode"], aboard.modes.whole.lookout.release) == ("off", aboard.service.release_version())
        assert [verdict["met"] for verdict in found["slo"]] == [False]
        aboard.service.slo_commands.remove("all")
        aboard.sample()
        assert aboard.modes.whole.exported()["slo"] == []
    finally:
        aboard.modes._endpoint.close()
