from __future__ import annotations

import enum
import json
import logging
from typing import Any, Dict, List, Tuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.autopilot.audit_log import (
    APPLY,
    BOOST_ENDED,
    BREACH,
    KINDS,
    PROPOSAL,
    TAKEN_BACK,
    Audit,
    AuditRecord,
)
from ceph_tuner.core.autopilot.contract import BETTER, UNKNOWN, Effect
from monitors import MemoryStore
from tuner.announce import LONGEST_LINE, WARNINGS, Announcer, line

LOG = logging.getLogger("test")


class Priority(enum.IntEnum):
    """As MgrModule.ClusterLogPrio of 18.2.7 and 20.2.4."""

    DEBUG, INFO, SEC, WARN, ERROR = range(5)


class Progress:
    """Ceph's progress module as far as other modules call it; the same in 18.2.7 and 20.2.4."""

    def __init__(self) -> None:
        self.events: Dict[str, Tuple[str, float, bool]] = {}
        self.failed: Dict[str, str] = {}
        self.completed: List[str] = []
        self.calls = 0

    def update(
        self, ev_id: str, ev_msg: str, ev_progress: float, refs: Any = None, add_to_ceph_s: bool = False
    ) -> None:
        self.calls += 1
        # what the dashboard makes of it
        assert dict(refs or {}) == {"tuner": ev_id}
        self.events[ev_id] = (ev_msg, ev_progress, add_to_ceph_s)

    def complete(self, ev_id: str) -> None:
        del self.events[ev_id]
        self.completed.append(ev_id)

    def fail(self, ev_id: str, message: str) -> None:
        del self.events[ev_id]
        self.failed[ev_id] = message


class Mgr:
    """What of a mgr announcements go to."""

    ClusterLogPrio = Priority

    def __init__(self, **modules: Any) -> None:
        self.lines: List[Tuple[str, int, str]] = []
        self.modules = modules

    def cluster_log(self, channel: str, priority: Priority, message: str) -> None:
        self.lines.append((channel, priority.value, message))

    def remote(self, module_name: str, method_name: str, *args: Any, **kwargs: Any) -> Any:
        if module_name not in self.modules:
            raise ImportError(f"Module not found: {module_name}")
        try:
            return getattr(self.modules[module_name], method_name)(*args, **kwargs)
        except Exception as error:
            raise RuntimeError(f"Remote method threw exception: {error}") from None


def effect(metric: str, change: float, low: float, high: float) -> Dict[str, Any]:
    return Effect(metric, change, low, high, 6, BETTER).to_dict()


def test_a_line_says_number_kind_targets_why_effect_and_who() -> None:
    detail = {"targets": ["osd/host:h0", "osd/host:h1"], "effects": [effect("client.p95_ms", -0.2, -0.3, -0.094)]}
    said = line(AuditRecord(12, 0.0, "automatic mode in mgr.a", APPLY, "p95 91 ms, bound 80 ms", detail))
    assert said == (
        "tuner #12: apply on osd/host:h0, osd/host:h1: p95 91 ms, bound 80 ms "
        "[client.p95_ms -20% (-30% to -9%)] (by automatic mode in mgr.a)"
    )


def test_an_outcome_names_what_it_is_of() -> None:
    said = line(AuditRecord(13, 0.0, "mgr.a", APPLY, "", outcome="done", refers=12))
    assert said == "tuner #13: apply (of #12) done (by mgr.a)"


def test_an_effect_that_was_not_seen_is_left_out_and_an_open_end_is_a_question_mark() -> None:
    unseen = Effect("client.iops", None, float("-inf"), float("inf"), 1, UNKNOWN).to_dict()
    detail = {"effects": [unseen, effect("scrub.bytes_s", 0.1, float("-inf"), 0.5)]}
    assert "[scrub.bytes_s +10% (? to +50%)]" in line(AuditRecord(1, 0.0, "a", BREACH, "x", detail))


def test_many_targets_are_counted() -> None:
    detail = {"targets": [f"osd.{osd}" for osd in range(10)]}
    assert "on osd.0, osd.1, osd.2 and 7 more:" in line(AuditRecord(1, 0.0, "a", APPLY, "x", detail))


anything: Any = st.recursive(
    st.none() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(
    st.text(),
    st.text(max_size=2000),
    st.text(max_size=600),
    st.dictionaries(st.sampled_from(["targets", "effects", "x"]), anything),
)
def test_whatever_is_in_a_record_its_line_is_one_short_line(who: str, why: str, told: str, detail: dict) -> None:
    said = line(AuditRecord(1, 0.0, who, APPLY, why, detail, told))
    assert said.isprintable()
    assert len(said) <= LONGEST_LINE
    assert said.startswith("tuner #1: apply")


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_each_record_is_one_line_in_the_clusters_log(kind: str) -> None:
    mgr = Mgr()
    Announcer(mgr, LOG).announce(AuditRecord(1, 0.0, "alice", kind, "because"))
    ((channel, priority, said), collected) = mgr.lines
    assert channel == "cluster"
    assert collected[:2] == ("audit", Priority.INFO)
    assert priority == (Priority.WARN if kind in WARNINGS else Priority.INFO)
    assert kind in said


@given(st.text(max_size=2000), st.dictionaries(st.text(), anything, max_size=3))
def test_a_collector_finds_the_whole_record_in_one_line(why: str, detail: dict) -> None:
    mgr = Mgr()
    stored = Audit(MemoryStore()).append(7.5, "alice", APPLY, why, detail)
    Announcer(mgr, LOG).collect(stored)
    ((channel, _, said),) = mgr.lines
    mark, _, document = said.partition(" ")
    assert (channel, mark) == ("audit", "ceph-tuner")
    assert said.isascii()
    assert said.isprintable()
    assert AuditRecord.from_dict(json.loads(document)) == stored


def test_a_log_that_fails_is_no_error_and_the_line_goes_to_the_mgrs_own(caplog: pytest.LogCaptureFixture) -> None:
    class Deaf(Mgr):
        def cluster_log(self, channel: str, priority: Priority, message: str) -> None:
            raise OSError("gone")

    announcer = Announcer(Deaf(), LOG)
    announcer.announce(AuditRecord(1, 0.0, "alice", PROPOSAL, "because"))
    assert "tuner #1: proposal: because" in caplog.text
    assert announcer.counts()["events"][PROPOSAL] == 1


def test_a_trial_is_shown_in_the_status_until_it_ends() -> None:
    progress = Progress()
    announcer = Announcer(Mgr(progress=progress), LOG)
    announcer.progress("trial-7", "trial 7\non 1 of 3 hosts", 0.25)
    assert progress.events == {"trial-7": ("trial 7 on 1 of 3 hosts", 0.25, True)}
    announcer.progress("trial-7", "trial 7 on all hosts", 3.0)
    assert progress.events["trial-7"] == ("trial 7 on all hosts", 1.0, True)
    announcer.finished("trial-7")
    assert (progress.events, progress.completed) == ({}, ["trial-7"])


def test_a_trial_that_was_taken_back_has_failed() -> None:
    progress = Progress()
    announcer = Announcer(Mgr(progress=progress), LOG)
    announcer.progress("trial-7", "trial 7", float("nan"))
    announcer.finished("trial-7", "taken back: p95 91 ms")
    assert progress.failed == {"trial-7": "taken back: p95 91 ms"}
    assert progress.events == {}


def test_the_progress_module_is_called_for_what_is_new_only() -> None:
    progress = Progress()
    announcer = Announcer(Mgr(progress=progress), LOG)
    for _ in range(3):
        announcer.progress("trial-7", "trial 7", 0.5)
    announcer.progress("trial-7", "trial 7", 0.5001)
    assert progress.calls == 1
    # ended here, or never begun: Ceph's module would log a warning for each
    announcer.finished("trial-8")
    announcer.finished("trial-7")
    announcer.finished("trial-7", "again")
    assert (progress.completed, progress.failed) == (["trial-7"], {})


def test_without_the_progress_module_nothing_is_an_error() -> None:
    announcer = Announcer(Mgr(), LOG)
    announcer.progress("trial-7", "trial 7", 0.5)
    announcer.finished("trial-7", "taken back")


def test_a_progress_module_that_forgot_the_event_is_no_error() -> None:
    progress = Progress()
    announcer = Announcer(Mgr(progress=progress), LOG)
    announcer.progress("trial-7", "trial 7", 0.5)
    # `ceph progress clear`
    progress.events.clear()
    announcer.finished("trial-7")
    announcer.progress("trial-8", "trial 8", 0.5)
    assert list(progress.events) == ["trial-8"]


@pytest.mark.parametrize(
    ("rule", "priority"),
    [("clean", Priority.INFO), ("calendar", Priority.INFO), ("operator", Priority.INFO), ("time", Priority.WARN)],
)
def test_the_end_of_a_boost_that_people_wanted_is_no_warning(rule: str, priority: Priority) -> None:
    mgr = Mgr()
    Announcer(mgr, LOG).announce(AuditRecord(1, 0.0, "a", BOOST_ENDED, "x", {"rule": rule}))
    assert max(each for _, each, _ in mgr.lines) == priority.value


def test_what_is_announced_is_counted_once_with_the_rule_that_stopped_it() -> None:
    announcer = Announcer(Mgr(), LOG)
    assert announcer.counts() == {"changes": 0, "rollbacks": {}, "events": dict.fromkeys(KINDS, 0)}
    announcer.announce(AuditRecord(1, 0.0, "a", APPLY, "x"))
    announcer.announce(AuditRecord(2, 0.0, "a", APPLY, "x", outcome="done", refers=1))
    announcer.announce(AuditRecord(3, 0.0, "a", TAKEN_BACK, "x", {"rule": "slow operations"}))
    announcer.announce(AuditRecord(4, 0.0, "a", TAKEN_BACK, "x"))
    counts = announcer.counts()
    assert counts["changes"] == 1
    assert counts["rollbacks"] == {"slow operations": 1, "other": 1}
    assert counts["events"][TAKEN_BACK] == 2
