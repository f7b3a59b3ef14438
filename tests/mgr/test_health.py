from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import List

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pages import DOCS, holds

from ceph_tuner.core.autopilot.audit_log import (
    APPLY,
    DRIFT,
    KEPT,
    KINDS,
    MODE,
    PROPOSAL,
    RESUMED,
    TAKEN_BACK,
    AuditRecord,
)
from ceph_tuner.core.autopilot.contract import Rollout, Stage
from ceph_tuner.core.autopilot.state import (
    APPROVE,
    AUTO,
    COMPARING,
    DRY_RUN,
    MODES,
    OFF,
    RETURNING,
    WAITING,
    AutopilotState,
    Proposed,
)
from ceph_tuner.core.hours import DAY_S
from tuner import health
from tuner.health import CHECKS, LARGEST_DETAIL, of_state, of_trail, raised

NOW = 1_800_000_000.0
PROPOSED = Proposed(7, {"osd_max_scrubs": 1}, "a shorter scrub", Rollout("osd", (Stage(("osd",), (0, 1)),)))


def record(what: str, ago: float, number: int = 1, refers: int = 0) -> AuditRecord:
    return AuditRecord(number, NOW - ago, "automatic mode", what, f"why {number}", refers=refers)


def test_every_check_is_a_warning_that_says_what_to_do() -> None:
    for name, check in CHECKS.items():
        assert re.fullmatch(r"TUNER_[A-Z_]+", name)
        assert check.severity == "warning"
        assert check.meaning.endswith(".")
        assert check.remedy.endswith(".")
        # Ceph lists summaries in one line, parted by semicolons
        assert not re.search(r"[;\n]", check.summary)


@given(
    st.dictionaries(
        st.sampled_from(sorted(CHECKS)),
        st.text(min_size=1) | st.lists(st.text(min_size=1), max_size=3 * LARGEST_DETAIL),
    )
)
def test_what_is_raised_has_the_form_that_ceph_takes(found: dict) -> None:
    checks = raised(found)
    assert set(checks) == {name for name, detail in found.items() if detail}
    for name, check in checks.items():
        assert set(check) == {"severity", "summary", "count", "detail"}
        # a mute is by count where there is one, and by summary else: both must mean something
        assert check["count"] == (1 if isinstance(found[name], str) else len(found[name])) >= 1
        assert check["summary"] == CHECKS[name].summary
        assert 1 <= len(check["detail"]) <= LARGEST_DETAIL
        assert all(isinstance(line, str) for line in check["detail"])


def test_a_check_that_is_not_in_the_table_is_an_error() -> None:
    with pytest.raises(KeyError):
        raised({"TUNER_NONSENSE": "x"})


@pytest.mark.parametrize("mode", MODES)
def test_a_quiet_state_raises_nothing(mode: str) -> None:
    assert of_state(AutopilotState(mode=mode), ["client.p95_ms <= 80 ms: 91 ms"]) == {}


def test_a_pause_says_why_and_until_when() -> None:
    paused = AutopilotState(mode=AUTO, paused="inconclusive")
    assert of_state(paused, []) == {"TUNER_PAUSED": ["inconclusive; until it is resumed"]}
    (line,) = of_state(replace(paused, paused_until=NOW), [])["TUNER_PAUSED"]
    assert line == "inconclusive; until 2027-01-15 08:00:00 UTC"


def test_a_proposal_that_waits_is_raised_in_the_approve_mode() -> None:
    waiting = AutopilotState(mode=APPROVE, phase=WAITING, proposed=PROPOSED, since=NOW)
    (line,) = of_state(waiting, [])["TUNER_APPROVAL_NEEDED"]
    assert "proposal 7" in line
    assert "a shorter scrub" in line
    # once it is approved it goes on by itself
    assert of_state(replace(waiting, phase=COMPARING), []) == {}


def test_a_missed_objective_is_raised_once_nothing_better_is_to_be_had() -> None:
    missed = ["client.p95_ms <= 80 ms: 91 ms"]
    assert of_state(AutopilotState(mode=AUTO), missed) == {}
    gave_up = AutopilotState(mode=AUTO, gave_up="8 trials")
    assert of_state(gave_up, missed) == {"TUNER_SLO_MISSED": [*missed, "gave up: 8 trials"]}
    # it may have got better by itself
    assert of_state(gave_up, []) == {}


@pytest.mark.parametrize("mode", [OFF, DRY_RUN, AUTO])
def test_what_cannot_be_taken_back_is_raised_in_any_mode(mode: str) -> None:
    stuck = AutopilotState(mode=mode, phase=RETURNING, problem="osd.3 does not answer", changes=(4,))
    assert of_state(stuck, []) == {"TUNER_STOPPED": ["osd.3 does not answer"]}


def test_the_newest_trial_that_was_taken_back_is_raised_for_a_day() -> None:
    trail = [record(TAKEN_BACK, DAY_S + 1.0, 1), record(TAKEN_BACK, DAY_S - 1.0, 2), record(TAKEN_BACK, 5.0, 3)]
    assert of_trail(trail[:1], NOW) == {}
    (line,) = of_trail(trail, NOW)["TUNER_TRIAL_TAKEN_BACK"]
    assert line.startswith("#3, ")
    assert list(of_trail(trail[:2], NOW)) == ["TUNER_TRIAL_TAKEN_BACK"]
    assert of_trail(trail, NOW + DAY_S) == {}


def test_each_drift_is_counted_so_that_a_new_one_lifts_a_mute() -> None:
    trail = [record(DRIFT, 20.0, 1), record(DRIFT, 10.0, 2)]
    assert raised(of_trail(trail, NOW))["TUNER_DRIFT"]["count"] == 2


@pytest.mark.parametrize("word", [KEPT, RESUMED, MODE])
def test_a_success_or_an_operators_word_clears_what_was_before_it(word: str) -> None:
    before = [record(TAKEN_BACK, 30.0, 1), record(DRIFT, 20.0, 2)]
    assert set(of_trail(before, NOW)) == {"TUNER_TRIAL_TAKEN_BACK", "TUNER_DRIFT"}
    assert of_trail([*before, record(word, 10.0, 3)], NOW) == {}
    assert list(of_trail([*before, record(word, 10.0, 3), record(DRIFT, 5.0, 4)], NOW)) == ["TUNER_DRIFT"]


@given(st.lists(st.sampled_from([kind for kind in sorted(KINDS) if kind not in (TAKEN_BACK, DRIFT)])))
def test_other_records_raise_nothing(kinds: List[str]) -> None:
    assert of_trail([record(kind, 1.0, number) for number, kind in enumerate(kinds, 1)], NOW) == {}


def test_an_outcome_is_no_second_event() -> None:
    assert of_trail([record(APPLY, 3.0, 1), record(DRIFT, 2.0, 2, refers=1), record(PROPOSAL, 1.0, 3)], NOW) == {}


def test_the_documentation_has_every_check_and_none_else() -> None:
    rows = "".join(f"| `{check.name}` | {check.meaning} | {check.remedy} |\n" for check in CHECKS.values())
    assert holds("health-checks.md", f"| check | means | what to do |\n| --- | --- | --- |\n{rows}")
    text = (DOCS / "health-checks.md").read_text(encoding="utf-8")
    assert set(re.findall(r"TUNER_[A-Z_]*[A-Z]", text)) == set(CHECKS)


def test_no_other_file_of_the_plugin_names_a_check_that_is_not_in_the_table() -> None:
    table = Path(health.__file__)
    named = set()
    for path in table.parent.glob("*.py"):
        if path != table:
            named |= set(re.findall(r'"(TUNER_[A-Z_]+)"', path.read_text(encoding="utf-8")))
    assert {"TUNER_SAMPLING_FAILED", "TUNER_WORKER_FAILED"} <= named <= set(CHECKS)
