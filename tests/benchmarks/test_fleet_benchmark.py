from __future__ import annotations

import pytest
from fleet_clusters import SIMULATED, counted, tasks

from ceph_tuner.fleet.advice import advise
from ceph_tuner.fleet.search_order import ordered
from fleet import EFFORT, Setting, misses, page, rows


def test_a_cluster_is_the_same_however_many_there_are() -> None:
    few, many = tasks(5, EFFORT), tasks(60, EFFORT)
    assert [few[name].digest for name in few] == [many[name].digest for name in few]
    assert len({task.digest for task in many.values()}) == 60


def test_the_clusters_differ_and_some_lead_others() -> None:
    drawn = tasks(200, EFFORT)
    models = [task.question.model for task in drawn.values()]
    assert len({model.release.name for model in models}) == 5
    assert min(model.osds for model in models) < 10
    assert max(model.osds for model in models) == 1000
    assert max(model.simulated_osds or model.osds for model in models) == SIMULATED
    leaders = list(ordered(drawn).leader.values())
    assert 5 < sum(leader is None for leader in leaders) < 100


@pytest.mark.slow
def test_what_a_search_took_is_counted_and_its_answer_stays() -> None:
    ((_, task), *_) = tasks(1, EFFORT).items()
    found, events, seconds = counted((advise, task), lambda message: None)
    assert found == advise(task, lambda message: None)
    runs = found.document["evidence"]["simulated"]["runs"]
    assert events > 0.3 * EFFORT.events * runs
    assert seconds > 0


def test_other_answers_a_slow_second_worker_and_a_worker_that_was_not_lost_are_missed() -> None:
    settings = [
        Setting("processes", 1, False, 100.0, 90.0, 1e9, {"a": "no"}, load=[1.0]),
        Setting("processes", 2, False, 90.0, 95.0, 1e9, {"a": "other"}, load=[1.0]),
        Setting("Dask workers", 1, False, 100.0, 95.0, 1e9, {"a": "no"}, load=[1.0]),
        Setting("Dask workers", 2, False, 50.0, 95.0, 1e9, {"a": "no"}, load=[1.0]),
        Setting("processes", 2, True, 99.0, 95.0, 1e9, {"a": "no"}, load=[1.0]),
    ]
    assert misses(settings) == [
        "2 processes: other answers",
        "2 processes: 1.11 times as quick as one, less than 1.8",
        "2 processes, one killed: nothing was lost",
    ]
    assert [line[2] for line in rows(settings)[1:]] == ["1.00", "1.11", "1.00", "2.00", "+9.0 s"]
    assert "- 2 processes: other answers" in page(settings, "it")
