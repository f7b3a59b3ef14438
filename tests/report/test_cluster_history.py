"""What a cluster remembers, on a twin behind the ports of a real cluster."""

from __future__ import annotations

import json
from typing import Any, Dict, List

import pytest
from example_answers import AT, LIMIT, OBJECTIVES, explanation, recommendation, trials, tuning

from ceph_tuner.core.autopilot import audit_log as audit
from ceph_tuner.core.autopilot.audit_log import Audit
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.stored_slo import BASELINE, SLO_KEY
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import nine
from ceph_tuner.core.measure.history import History
from ceph_tuner.core.measure.sample import Measure, Window
from ceph_tuner.core.measure.timeline import POLICY, REGIME, TimelineEntry
from ceph_tuner.report import HISTORY, TUNING, Findings, Learnt, answer_file
from ceph_tuner.report.answers import findings_of
from ceph_tuner.report.axes import bounds_of
from ceph_tuner.report.cluster_history import remembered, with_history
from ceph_tuner.report.page import page
from ceph_tuner.tune.past import keep_learnt
from twin_cluster.cluster import TwinCluster
from twins import small_twin

SLO: Dict[str, Any] = {"name": "wanted", "objectives": OBJECTIVES}
NOTHING_FITS: Dict[str, Any] = {"together": 0.1, "without": {}, "nearest": [], "settings": {}, "probability": 0.2}


@pytest.fixture
def cluster() -> TwinCluster:
    return small_twin()


def past(cluster: TwinCluster, since: float = 0.0, now: float = AT + 300) -> Findings:
    return remembered("lab", cluster.store, cluster.applier().history(), cluster.release, since, now)


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
    assert found.after == {PROFILE: "custom", LIMIT: 0.4}
    told = findings_of(answer_file.parse(json.dumps(tuning()).encode(), "answer"))
    # by way of the cluster's memory and of what was printed: the same
    assert found.options == told.options


def test_what_the_last_run_had_learnt_is_as_when_it_was_told(cluster: TwinCluster) -> None:
    keep_run(cluster, trials())
    answer = tuning(explanation=explanation(), capacity=recommendation()["capacity"])
    assert any("keeps nothing of what the search had learnt" in line for line in past(cluster).unknown)
    keep_learnt(History(cluster.store), AT - 9, {"importance": {}}, [])
    assert past(cluster).learnt == Learnt()
    keep_learnt(History(cluster.store), AT, answer["explanation"], answer["capacity"])
    found, told = past(cluster), findings_of(answer_file.parse(json.dumps(answer).encode(), "answer"))
    assert found.learnt.matters
    assert (found.learnt, found.capacity) == (told.learnt, told.capacity)
    assert not any("learnt" in line for line in found.unknown)
    assert "osd_mclock" in page(found, AT, "x")


def test_curves_that_no_value_holds_are_left_out_and_the_rest_is_kept(cluster: TwinCluster) -> None:
    keep_run(cluster, trials())
    answer = tuning(explanation=explanation(), capacity=recommendation()["capacity"])
    (curve, *_) = answer["explanation"]["partial_dependence"]
    many = {**answer["explanation"], "partial_dependence": [curve] * 2000}
    keep_learnt(History(cluster.store), AT, many, answer["capacity"])
    assert (past(cluster).learnt.curves, past(cluster).capacity != ()) == ((), True)
    assert past(cluster).learnt.matters


def test_a_run_that_was_gone_on_with_tells_what_it_knew_in_the_end(cluster: TwinCluster) -> None:
    keep_run(cluster, trials())
    answer = tuning(explanation=explanation(), capacity=recommendation()["capacity"])
    keep_learnt(History(cluster.store), AT, {"importance": {}}, [])
    keep_learnt(History(cluster.store), AT, answer["explanation"], answer["capacity"])
    assert past(cluster).learnt.matters
    # so much that only what matters has room
    step = answer["explanation"]["convergence"][0]
    keep_learnt(History(cluster.store), AT, {**answer["explanation"], "convergence": [step] * 2000}, [])
    assert past(cluster).learnt.matters
    assert past(cluster).learnt.progress == ()


@pytest.mark.parametrize(
    "learnt",
    [
        {"importance": {"client.p95_ms": {"deviation": float("nan"), "knobs": []}}},
        {"importance": "all"},
        {"importance": {}, "in_the_way": {**NOTHING_FITS, "conflicts": [["scrub.bytes_s >= 1 MB/s"]]}},
    ],
)
def test_what_another_version_had_learnt_is_no_error(cluster: TwinCluster, learnt: Dict[str, Any]) -> None:
    keep_run(cluster, trials())
    keep_learnt(History(cluster.store), AT, learnt, [])
    found = past(cluster)
    assert (found.kind, found.learnt) == (TUNING, Learnt())
    assert any("keeps nothing" in line for line in found.unknown)


def test_a_run_that_measured_nothing_is_no_error(cluster: TwinCluster) -> None:
    keep_run(cluster, trials()[2:3])
    assert "before anything was measured" in past(cluster).headline


def test_without_a_run_the_last_minute_is_held_against_the_objectives(cluster: TwinCluster) -> None:
    cluster.store.set(SLO_KEY, json.dumps({"name": "own", "objectives": ["client.p95_ms <= 5 ms"]}))
    History(cluster.store).add_window(minute(0, 9.0))
    assert "does not keep" in past(cluster).headline
    History(cluster.store).add_window(minute(1, 4.0))
    assert "keeps all" in past(cluster).headline


def test_bounds_are_drawn_without_a_run_as_well_relative_ones_by_the_stored_baseline(cluster: TwinCluster) -> None:
    wanted = ["client.p95_ms <= 5 ms", "client.p99_ms <= 1.5 * baseline", "client.iops >= 0.5 * baseline"]
    cluster.store.set(SLO_KEY, json.dumps({"name": "own", "objectives": wanted}))
    cluster.store.set(BASELINE, json.dumps({"client.p99_ms": 8.0}))
    History(cluster.store).add_window(minute(0, 4.0))
    found = past(cluster)
    assert bounds_of(found) == {"client.p95_ms": (5.0, True), "client.p99_ms": (12.0, True)}
    # of a metric that was seen
    assert "var(--red)" in page(found, AT, "x")


def test_a_window_of_long_ago_says_nothing_of_the_present(cluster: TwinCluster) -> None:
    cluster.store.set(SLO_KEY, json.dumps({"name": "own", "objectives": ["client.p95_ms <= 5 ms"]}))
    History(cluster.store).add_window(minute(0, 4.0))
    found = past(cluster, now=AT + 90 * 86400)
    assert found.headline == "No tuning run is remembered, and no window of the last 10 min is kept."
    assert found.slo is not None


def test_objectives_that_cannot_be_read_are_told(cluster: TwinCluster) -> None:
    cluster.store.set(SLO_KEY, "{")
    History(cluster.store).add_window(minute(0))
    with pytest.raises(InputError, match="the stored SLO"):
        past(cluster)


def test_changes_are_marked_with_what_came_of_them_in_the_order_of_time(cluster: TwinCluster) -> None:
    trail = Audit(cluster.store)
    trail.append(AT + 300, "operator", audit.PAUSED, "a night\u202e of work")
    settings = {LIMIT: 0.4, "osd_max_scrubs": 2, "osd_scrub_chunk_max": 5, "osd_max_trimming_pgs": 3}
    trail.append(AT + 90, "automatic mode", audit.PROPOSAL, "gain", {"settings": settings})
    detail = {"stage": "canary", "targets": ["osd/host:h0"]}
    act = trail.append(AT + 100, "automatic mode", audit.APPLY, "client.p95_ms is missed", detail)
    trail.append(AT + 150, "automatic mode", audit.PROPOSAL, "changes nothing by itself")
    trail.tell(act, AT + 200, "12% better")
    # each trail has numbers of its own
    Audit(cluster.store, f"{audit.PREFIX}=boost/").append(AT + 210, "a", audit.BOOST, "x", {}, "refused", act.number)
    marks = past(cluster).marks
    assert [mark.what for mark in marks] == [
        "apply: recovery limit 0.4, osd_max_scrubs 2, osd_scrub_chunk_max 5, 1 more for osd/host:h0",
        audit.PAUSED,
    ]
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


def test_an_answer_that_was_written_is_told_with_its_commands_unless_another_change_is_in_force(
    cluster: TwinCluster,
) -> None:
    written = tuning(written=True, commands=[])
    told = findings_of(answer_file.parse(json.dumps(written).encode(), "answer"))
    applier = cluster.applier()
    applier.apply(applier.plan("osd", {**nine((0.4, 1, 0), (0.2, 1, 0), (0, 1, 0)), **told.after}), "tune")
    assert f"ceph config set osd {LIMIT} 0.400000" in with_history(told, past(cluster)).commands
    applier.apply(applier.plan("osd", {"osd_max_scrubs": 2}), "another")
    assert with_history(told, past(cluster)).commands == ()


def test_changes_are_on_the_page_before_anything_was_measured(cluster: TwinCluster) -> None:
    applier = cluster.applier()
    applier.apply(applier.plan("osd", {"osd_max_scrubs": 2}), "by hand")
    text = page(past(cluster), AT, "the memory")
    assert 'data-name="what">1 write for osd<' in text
    assert "Nothing was measured yet" in text


def test_trials_that_were_taken_back_are_no_changes(cluster: TwinCluster) -> None:
    applier = cluster.applier()
    applier.apply(applier.plan("osd", {"osd_max_scrubs": 2}), "tune", trial=True)
    entry = applier.undo()[0].entry
    keep_run(cluster, [{**one, "at": entry.at - 1, "seconds": 60.0} for one in trials()])
    assert past(cluster).marks == ()


def test_gaps_between_windows_are_told(cluster: TwinCluster) -> None:
    for number in (0, 1, 30, 31):
        History(cluster.store).add_window(minute(number))
    found = past(cluster, now=AT + 3600)
    assert len(found.windows) == 4
    assert any("In 1 stretches" in line for line in found.unknown)


def test_the_past_stands_beside_an_answer_and_changes_nothing_of_it(cluster: TwinCluster) -> None:
    History(cluster.store).add_window(minute(0))
    told = findings_of(answer_file.parse(json.dumps(tuning()).encode(), "answer"))
    both = with_history(told, past(cluster))
    assert len(both.windows) == 1
    assert (both.options, both.commands, both.undo) == (told.options, told.commands, told.undo)


def test_which_regime_and_which_policy_held_is_marked(cluster: TwinCluster) -> None:
    history = History(cluster.store)
    for number in range(30):
        name = "busy+recovering" if number % 2 else "idle"
        evidence = {"client.iops": 800.0, "recovery.objects_left": 7.0}
        history.add_change(TimelineEntry(AT + number, REGIME, "", name, evidence).to_dict())
    history.add_change(TimelineEntry(AT + 40, POLICY, "", "night").to_dict())
    history.add_change({"at": "whenever"})
    history.add_window(minute(0))
    found = past(cluster)
    assert len(found.marks) == 20
    assert [(mark.what, mark.outcome) for mark in found.marks[-2:]] == [
        ("regime", "busy+recovering"),
        ("policy", "night"),
    ]
    assert "client.iops 800" in found.marks[-2].why
    assert {span.name for span in found.spans} == {"busy+recovering", "idle", "night"}
    assert "<h3>Regimes</h3>" in page(found, AT, "x")
