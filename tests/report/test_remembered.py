"""What a cluster remembers, on a twin behind the ports of a real cluster."""

from __future__ import annotations

import json
from typing import Any, Dict, List

import pytest
from example_answers import AT, LIMIT, OBJECTIVES, trials, tuning

from ceph_tuner.autopilot import audit
from ceph_tuner.autopilot.audit import Audit
from ceph_tuner.clusters.twin import TwinCluster
from ceph_tuner.errors import InputError
from ceph_tuner.history import History
from ceph_tuner.report import HISTORY, TUNING, Findings, answer_file
from ceph_tuner.report.answers import findings_of
from ceph_tuner.report.remembered import SLO_KEY, remembered, with_history
from ceph_tuner.sample import Measure, Window
from twins import small_twin

SLO: Dict[str, Any] = {"name": "wanted", "objectives": OBJECTIVES}


@pytest.fixture
def cluster() -> TwinCluster:
    return small_twin()


def past(cluster: TwinCluster, since: float = 0.0) -> Findings:
    return remembered("lab", cluster.store, cluster.applier().history(), cluster.release, since)


def keep_run(cluster: TwinCluster, entries: List[Dict[str, Any]]) -> None:
    about = {"work": "", "knobs": [LIMIT], "seed": 1, "in_force": {}, "prior": ""}
    for entry in entries:
        History(cluster.store).add_trial({**entry, "slo": SLO, "target": "osd", "run": AT, "about": about})


def minute(number: int, latency: float = 4.0) -> Window:
    return Window(AT + 60 * number, AT + 60 * number + 60, {"client.p95_ms": Measure(latency, 0.5, 6)})


def test_a_cluster_that_remembers_nothing_has_a_page_that_says_so(cluster: TwinCluster) -> None:
    found = past(cluster)
    assert found.kind == HISTORY
    assert "no objectives" in found.headline
    assert any("kept no windows" in line for line in found.unknown)


def test_the_last_run_is_chosen_from_as_it_was(cluster: TwinCluster) -> None:
    keep_run(cluster, trials())
    found = past(cluster)
    assert found.kind == TUNING
    assert found.better
    assert found.chosen is not None
    assert found.chosen.label == "trial 1"
    assert found.after == {LIMIT: 0.4}
    told = findings_of(answer_file.parse(json.dumps(tuning()).encode(), "answer"))
    # by way of the cluster's memory and of what was printed: the same
    assert found.options == told.options


def test_a_run_that_measured_nothing_is_no_error(cluster: TwinCluster) -> None:
    keep_run(cluster, trials()[2:3])
    assert "before anything was measured" in past(cluster).headline


def test_without_a_run_the_last_minute_is_held_against_the_objectives(cluster: TwinCluster) -> None:
    cluster.store.set(SLO_KEY, json.dumps({"name": "own", "objectives": ["client.p95_ms <= 5 ms"]}))
    History(cluster.store).add_window(minute(0, 9.0))
    assert "does not keep" in past(cluster).headline
    History(cluster.store).add_window(minute(1, 4.0))
    assert "keeps all" in past(cluster).headline


def test_objectives_that_cannot_be_read_are_told(cluster: TwinCluster) -> None:
    cluster.store.set(SLO_KEY, "{")
    History(cluster.store).add_window(minute(0))
    with pytest.raises(InputError, match="the stored SLO"):
        past(cluster)


def test_changes_are_marked_with_what_came_of_them_in_the_order_of_time(cluster: TwinCluster) -> None:
    trail = Audit(cluster.store)
    trail.append(AT + 300, "operator", audit.PAUSED, "a night\u202e of work")
    act = trail.append(AT + 100, "automatic mode", audit.APPLY, "client.p95_ms is missed")
    trail.append(AT + 150, "automatic mode", audit.PROPOSAL, "changes nothing by itself")
    trail.tell(act, AT + 200, "12% better")
    marks = past(cluster).marks
    assert [mark.what for mark in marks] == [audit.APPLY, audit.PAUSED]
    assert marks[0].outcome == "12% better"
    assert marks[1].why == "a night\ufffd of work"
    assert [mark.what for mark in past(cluster, since=AT + 250).marks] == [audit.PAUSED]


def test_a_change_in_force_is_told_with_its_commands_and_the_way_back(cluster: TwinCluster) -> None:
    applier = cluster.applier()
    entry = applier.apply(applier.plan("osd", {"osd_max_scrubs": 2}), "by hand")
    assert entry is not None
    found = past(cluster)
    assert found.written
    assert found.commands == ("ceph config set osd osd_max_scrubs 2",)
    assert found.undo == ("ceph-tuner rollback --cluster lab",)
    (mark,) = found.marks
    assert mark.why == "by hand"
    # the audit trail tells the same write better
    Audit(cluster.store).append(entry.at + 1, "automatic mode", audit.APPLY, "the same")
    assert [mark.why for mark in past(cluster).marks] == ["the same"]
    applier.undo()
    assert not past(cluster).written


def test_trials_that_were_taken_back_are_no_changes(cluster: TwinCluster) -> None:
    applier = cluster.applier()
    applier.apply(applier.plan("osd", {"osd_max_scrubs": 2}), "tune", trial=True)
    entry = applier.undo()[0].entry
    keep_run(cluster, [{**one, "at": entry.at - 1, "seconds": 60.0} for one in trials()])
    assert past(cluster).marks == ()


def test_gaps_between_windows_are_told(cluster: TwinCluster) -> None:
    for number in (0, 1, 30, 31):
        History(cluster.store).add_window(minute(number))
    found = past(cluster)
    assert len(found.windows) == 4
    assert any("In 1 stretches" in line for line in found.unknown)


def test_the_past_stands_beside_an_answer_and_changes_nothing_of_it(cluster: TwinCluster) -> None:
    History(cluster.store).add_window(minute(0))
    told = findings_of(answer_file.parse(json.dumps(tuning()).encode(), "answer"))
    both = with_history(told, past(cluster))
    assert len(both.windows) == 1
    assert (both.options, both.commands, both.undo) == (told.options, told.commands, told.undo)
