from __future__ import annotations

import re
from typing import Any, Dict, List

import pytest
from automatic_on_twin import OnTwin
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.autopilot.audit_log import AuditRecord
from ceph_tuner.core.autopilot.contract import UNKNOWN, Effect
from tuner import render_automatic
from tuner.render_automatic import share

EFFECT = Effect("client.p95_ms", -0.2, -0.31, -0.08, 12, "better").to_dict()
UNSEEN = Effect("recovery.objects_s", None, float("-inf"), float("inf"), 0, UNKNOWN).to_dict()


def document(**changed: Any) -> Dict[str, Any]:
    return {"words": ["it observes"], "proposed": None, "effects": [], "notes": [], "problem": "", **changed}


@pytest.mark.parametrize(
    ("change", "text"), [(None, "-"), (-0.124, "-12 %"), (0.0, "+0 %"), (1.5, "+150 %"), (-1.0, "-100 %")]
)
def test_a_share_has_its_sign_and_what_is_not_known_is_a_dash(change: Any, text: str) -> None:
    assert share(change) == text


@given(st.floats(-1.0, 50.0), st.floats(0.0, 5.0))
def test_an_effect_stands_within_its_interval_on_one_line(change: float, half: float) -> None:
    row = Effect("client.p95_ms", change, change - half, change + half, 3, UNKNOWN).to_dict()
    _, line = render_automatic.effects([row]).splitlines()
    for value in (change, change - half, change + half):
        assert share(value) in line


def test_what_it_does_comes_first_and_a_problem_last() -> None:
    proposed = {"number": 7, "settings": {"osd_max_scrubs": 2, "osd_a": "x"}}
    lines = render_automatic.automatic(
        document(proposed=proposed, effects=[EFFECT], notes=["no guardian"], problem="no quorum")
    ).splitlines()
    assert lines[0] == "it observes"
    assert "settings of proposal 7:" in lines
    assert any("osd_max_scrubs" in line and "2" in line for line in lines)
    assert any("-20 %" in line and "-31 % to -8 %" in line for line in lines)
    assert lines[-2:] == ["note: no guardian", "problem: no quorum"]


def test_nothing_is_said_of_what_is_not_there() -> None:
    assert render_automatic.automatic(document()) == "it observes"


def test_an_effect_that_was_not_seen_has_dashes_for_numbers() -> None:
    assert "- to -" in render_automatic.effects([UNSEEN])


def rows(*records: AuditRecord) -> List[Dict[str, Any]]:
    return [record.to_dict() for record in records]


def test_the_trail_says_who_did_what_and_why_and_what_came_of_it() -> None:
    apply = AuditRecord(3, 1_767_225_600.0, "mgr.a", "apply", "less scrub", {"targets": ["osd.0"]})
    told = AuditRecord(4, 1_767_225_660.0, "mgr.a", "apply", "less scrub", {"changes": [1]}, "written", 3)
    back = AuditRecord(5, 1_767_225_720.0, "mgr.a", "taken back", "harm", {"effects": [EFFECT, UNSEEN]})
    text = render_automatic.trail(rows(apply, told, back))
    assert [line.split()[0] for line in text.splitlines() if line[:1].strip()] == ["NUMBER", "3", "5"]
    assert all(len(line) <= 80 for line in text.splitlines())
    # why the act was is said once
    assert text.count("less scrub") == 1
    assert "written; less scrub" in text
    for words in ("harm;", "client.p95_ms", "-20 %", "(-31 %", "-8 %)"):
        assert words in text
    # what was not seen is not worth a word
    assert "recovery" not in text


def test_numbers_are_those_of_a_trail_and_an_outcome_is_told_of_an_act_that_is_not_shown() -> None:
    boost = AuditRecord(3, 10.0, "mgr.a", "boost ended", "all is clean")
    book = AuditRecord(3, 11.0, "mgr.a", "book back", "no page for idle")
    boost_end = AuditRecord(4, 12.0, "mgr.a", "boost ended", "all is clean", {}, "taken back", 3)
    older = AuditRecord(5, 13.0, "mgr.a", "boost", "faster", {}, "written", 2)
    found = AuditRecord(4, 14.0, "mgr.b", "failover", "undone", refers=3)
    shown = [("boost", boost), ("book", book), ("boost", boost_end), ("boost", older), ("book hdd", found)]
    text = render_automatic.trail([{"trail": trail, **record.to_dict()} for trail, record in shown])
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert len(lines) == 5
    assert (lines[1][:8], lines[1][-24:]) == ("boost 3 ", "taken back; all is clean")
    assert (lines[2][:7], lines[2][-16:]) == ("book 3 ", "no page for idle")
    assert (lines[3][:8], lines[3][-27:]) == ("boost 5 ", "of boost 2; written; faster")
    assert (lines[4][:11], lines[4][-21:]) == ("book hdd 4 ", "of book hdd 3; undone")


def test_a_record_without_details_is_a_line_as_well() -> None:
    assert len(render_automatic.trail(rows(AuditRecord(1, 0.0, "me", "mode", ""))).splitlines()) == 2


def test_an_empty_trail_says_so() -> None:
    assert render_automatic.trail([]) == "nothing was done yet"


def test_capacities_are_a_line_each_with_what_speaks_against_them() -> None:
    row = {"osd": 2, "iops": 315.0, "source": "default", "seen": None}
    text = render_automatic.capacity_report({"osds": [row], "findings": ["reckons with Ceph's default: osd.2"]})
    assert [line.split()[0] for line in text.splitlines()] == ["OSD", "osd.2", "reckons"]
    assert "nothing speaks against" in render_automatic.capacity_report({"osds": [row], "findings": []})


@pytest.mark.parametrize(
    ("stored", "change", "words"),
    [
        (False, None, "nothing was changed; --yes stores it"),
        (True, 12, "stored as change 12"),
        (True, None, "nothing was changed"),
    ],
)
def test_a_bench_says_what_became_of_its_result(stored: bool, change: Any, words: str) -> None:
    measured = {
        "osd": 2,
        "measured": 20_000.0,
        "iops": 315.0,
        "source": "default",
        "findings": ["osd.2 has 315 IOPS, its bench gave 20000"],
        "bandwidth": 900e6,
        "bandwidth_in_force": 1258e6,
        "bandwidth_source": "default",
        "commands": ["ceph config set osd.2 x 20000"],
        "stored": stored,
        "change": change,
    }
    lines = render_automatic.capacity_measured(measured).splitlines()
    assert lines[-1] == words
    assert "ceph config set osd.2 x 20000" in lines
    assert "osd.2: 900 MB/s measured, 1.26 GB/s in force (default)" in lines
    assert measured["findings"][0] in lines


def test_what_the_module_really_gives_can_be_shown() -> None:
    aboard = OnTwin().on_trial()
    aboard.sample(3)
    shown = render_automatic.automatic(aboard.modes.document())
    assert "osd_max_scrubs" in shown
    assert "client.p95_ms" in shown
    past = {**aboard.service.past(False, 10), "trail": aboard.modes.past(10)}
    changes, trail = render_automatic.history(past).split("\nNUMBER ")
    assert re.search(r"^1 +\S+ +applied +osd\.0 +trial 1: a test +ceph tuner in$", changes, re.MULTILINE)
    rows = [line.split() for line in trail.splitlines()]
    told = [(row[0], row[1], row[4]) for row in rows if row[0] == "auto"]
    assert told == [("auto", "1", "mode"), ("auto", "2", "proposal"), ("auto", "3", "apply")]
    assert rows[-1][-4:] == ["mgr.a", "written;", "a", "test"]
    shares = render_automatic.capacity_report(aboard.modes.capacity.report()).splitlines()
    assert [line.split()[0] for line in shares[1:5]] == ["osd.0", "osd.1", "osd.2", "osd.3"]
