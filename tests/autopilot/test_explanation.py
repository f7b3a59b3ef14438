from __future__ import annotations

from dataclasses import replace
from typing import Any, List

import pytest
from flights import ALTERNATING, P95, ROLLOUT, SETTINGS, effect, seen

from ceph_tuner.core.autopilot.contract import BETTER, UNKNOWN
from ceph_tuner.core.autopilot.explanation import explain
from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.autopilot.state import (
    APPROVE,
    ASKING,
    AUTO,
    COMPARING,
    DRY_RUN,
    HOLDING,
    OFF,
    PHASES,
    RETURNING,
    TRYING,
    WAITING,
    WRITING,
    AutopilotState,
    Proposed,
)

NOW = 1_000_000.0
"""1970-01-12 13:46:40 UTC."""
PROPOSED = Proposed(3, SETTINGS, "more room for clients", replace(ROLLOUT, why="osd.0 first, 1 of 4 OSDs"))
ON = "The automatic mode is on."
MISSED = "Missed: client.p95_ms 30, wanted 20 at most."
STOPS = (
    "Taken back at once: harm, a hard objective broken, slow operations, an OSD down, HEALTH_ERR, missing samples, "
    "settings changed by hand, the end of its hours, `ceph tuner auto pause` or `off`."
)


def told(state: AutopilotState, **facts: Any) -> List[str]:
    return explain(state, seen(NOW, **facts), Policy(), NOW)


def at(phase: str, **more: Any) -> AutopilotState:
    return AutopilotState(**{"mode": AUTO, "phase": phase, "since": NOW - 60, "proposed": PROPOSED, **more})


def test_off_says_how_to_start_it() -> None:
    assert told(AutopilotState()) == ["The automatic mode is off: it changes nothing. `ceph tuner auto on` starts it."]


def test_with_all_objectives_met_it_only_watches() -> None:
    assert told(AutopilotState(mode=AUTO, kept=12), missed=()) == [
        ON,
        "It watches the objectives; nothing is on trial.",
        "It kept change 12 last; `ceph tuner rollback --yes` takes that back.",
        "Next: once an objective is missed, it asks the optimiser for settings.",
    ]


def test_a_missed_objective_is_named_and_what_is_waited_for() -> None:
    assert told(
        AutopilotState(mode=AUTO, tried=2, failures=2), wait="outside of the hours (sat-sun): until Saturday"
    ) == [
        ON,
        "It watches the objectives; nothing is on trial.",
        MISSED,
        "The last 2 trials were taken back; the pause doubles with each in a row.",
        "It waits: outside of the hours (sat-sun): until Saturday.",
        "Next: it asks the optimiser; 2 of 8 proposals were tried.",
    ]


def test_a_failing_optimiser_is_named_with_the_time_of_the_next_question() -> None:
    assert told(AutopilotState(mode=AUTO, worker_failures=3, asked_at=NOW))[3:] == [
        "The optimiser failed 3 times in a row; it is asked again at 1970-01-12 13:54 UTC.",
        "Next: it asks the optimiser; 0 of 8 proposals were tried.",
    ]


def test_who_gave_up_says_what_can_be_done() -> None:
    assert told(AutopilotState(mode=AUTO, gave_up="8 proposals were tried")) == [
        ON,
        "It watches the objectives; nothing is on trial.",
        MISSED,
        "It gave up: 8 proposals were tried.",
        "Loosen an objective or add hardware; `ceph tuner auto retry` lets it try again.",
        "It starts again by itself once load, hardware, OSDs or release change.",
    ]


@pytest.mark.parametrize(
    ("until", "words"),
    [(None, "with `ceph tuner auto resume`"), (NOW + 3600, "at 1970-01-12 14:46 UTC")],
)
def test_paused_says_why_and_what_ends_it(until: Any, words: str) -> None:
    paused = AutopilotState(mode=AUTO, paused="paused by alice", paused_until=until)
    assert told(paused) == [ON, f"It is paused: paused by alice. It resumes {words}."]


@pytest.mark.parametrize(
    ("mode", "following"),
    [
        (AUTO, "canary and control are compared, then the canary gets the settings"),
        (APPROVE, "the proposal waits for approval"),
        (DRY_RUN, "it reports what it would try, and tries nothing"),
    ],
)
def test_while_it_asks_what_follows_depends_on_the_mode(mode: str, following: str) -> None:
    lines = told(AutopilotState(mode=mode, phase=ASKING, since=NOW - 300))
    assert lines[1:] == ["It asked the optimiser for settings 5 min ago.", MISSED, f"Next: {following}."]


def test_dry_run_says_that_nothing_is_written() -> None:
    assert told(AutopilotState(mode=DRY_RUN))[0] == (
        "The automatic mode is in dry run: it says what it would try, and writes nothing."
    )


def test_a_waiting_proposal_comes_with_the_commands_that_decide_on_it() -> None:
    assert told(at(WAITING, mode=APPROVE)) == [
        "The automatic mode is on; each proposal waits for approval, taking back never does.",
        "A proposal waits for approval since 1970-01-12 13:45 UTC; nothing is written.",
        "Proposal 3: more room for clients.",
        "Where: osd.0 first, 1 of 4 OSDs.",
        MISSED,
        "Next: `ceph tuner approve` starts its trial, `ceph tuner reject` drops it.",
        "It is dropped by itself once the objectives are met or the cluster changes.",
    ]


def test_comparing_counts_its_windows() -> None:
    assert told(at(COMPARING), windows=2, wait="the cluster has to be steady") == [
        ON,
        "It compares one OSD with 3 others before anything is written: 2 of 20 windows.",
        "Proposal 3: more room for clients.",
        "Where: osd.0 first, 1 of 4 OSDs.",
        MISSED,
        "It waits: the cluster has to be steady.",
        "Next: it writes the settings to osd.0.",
        "Dropped at once: the cluster changes, `ceph tuner auto pause` or `off`.",
    ]


def test_a_trial_shows_each_effect_with_its_interval_and_what_would_end_it() -> None:
    effects = {P95: effect(P95, BETTER), "client.iops": effect("client.iops", UNKNOWN, None)}
    assert told(at(TRYING, stage=1), windows=5, effects=effects) == [
        ON,
        "The settings are on 3 of 4 OSDs, compared with another one. Stage 2 of 3.",
        "Proposal 3: more room for clients.",
        "Where: osd.0 first, 1 of 4 OSDs.",
        "5 windows so far; a verdict takes 4 to 40.",
        "So far client.p95_ms 20% lower (10% to 30% lower): better.",
        MISSED,
        "Next: if all is well, they go to 4 of 4 OSDs.",
        "Without a verdict by then they are taken back, and it pauses for 60 min.",
        STOPS,
    ]


def test_a_trial_that_shows_nothing_yet_says_so() -> None:
    assert "No effect seen yet." in told(at(TRYING))


def test_alternating_settings_are_said_to_have_no_control() -> None:
    lines = told(at(TRYING, proposed=replace(PROPOSED, rollout=ALTERNATING), leg=True, turns=2))
    assert lines[1] == (
        "Old and new settings take turns on all 4 OSDs, as there is no control; the new ones have theirs now."
    )
    assert lines[3] == "2 turns so far; a verdict takes 4 to 40."


def test_on_probation_the_trial_s_result_is_shown() -> None:
    assert told(at(HOLDING, stage=2, gain="client.p95_ms 20% lower"), windows=3, missed=()) == [
        ON,
        "The settings are on all 4 OSDs, on probation: 3 of 10 windows.",
        "Proposal 3: more room for clients.",
        "Where: osd.0 first, 1 of 4 OSDs.",
        "The trial showed: client.p95_ms 20% lower.",
        "Next: they are kept if all stays well and they gained something, else taken back.",
        STOPS,
    ]


def test_a_taking_back_that_fails_says_why_and_what_to_do() -> None:
    assert told(at(RETURNING, problem="osd.0 does not answer", then="paused by alice")) == [
        ON,
        "It takes a trial back. This waits for nobody, and is tried again at each sample until it is done.",
        "The last attempt failed: osd.0 does not answer.",
        "`ceph tuner rollback --yes` does it by hand.",
        "Next: it pauses (paused by alice).",
    ]


@pytest.mark.parametrize(
    ("state", "following"),
    [
        (at(RETURNING, back_off=True), "it watches the objectives, and pauses before the next trial"),
        (at(RETURNING), "it watches the objectives"),
        (at(RETURNING, mode=OFF), "it stays off"),
    ],
)
def test_what_follows_a_taking_back(state: AutopilotState, following: str) -> None:
    assert told(state)[-1] == f"Next: {following}."


@pytest.mark.parametrize("phase", sorted(PHASES))
@pytest.mark.parametrize("rollout", [ROLLOUT, ALTERNATING])
def test_every_phase_can_be_explained_before_anything_was_seen(phase: str, rollout: Any) -> None:
    lines = explain(at(phase, proposed=replace(PROPOSED, rollout=rollout)), None, Policy(), NOW)
    assert lines[-1] == "The cluster was not looked at yet: objectives and effects are missing here."
    assert all(line.endswith(".") for line in lines)


def test_writing_says_since_when() -> None:
    assert told(at(WRITING))[1] == "It is writing since 1970-01-12 13:45 UTC."


def test_without_objectives_it_says_how_to_set_one() -> None:
    words = told(AutopilotState(AUTO), wanted=False)
    assert words[-1] == "No objective is set, so there is nothing to do: `ceph tuner slo set 'client.p95_ms<=80'`."


def test_probation_says_what_it_waits_for_and_what_is_broken() -> None:
    lines = told(at(HOLDING, stage=2), windows=3, missed=(), outlived=True, broken=("scrub.bytes_s >= 3e+07 (seen 1)",))
    assert "Windows count once the scrubs have ended that began under the old settings." in lines
    assert "Broken by these windows on the whole: scrub.bytes_s >= 3e+07 (seen 1)." in lines


def test_probation_says_what_it_is_not_sure_of() -> None:
    lines = told(at(HOLDING, stage=2), windows=3, missed=(), unsure=("scrub.bytes_s >= 3e+07 (seen 3.1e+07)",))
    assert "Kept by some of these windows, and more are waited for: scrub.bytes_s >= 3e+07 (seen 3.1e+07)." in lines
