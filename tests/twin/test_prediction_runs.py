"""A run of the twin under settings that come while the work goes on."""

from __future__ import annotations

from dataclasses import replace
from typing import Tuple

import pytest

from ceph_tuner.core.goals.slo import Slo, parse_objective
from ceph_tuner.processes.process_pool import ProcessPool
from ceph_tuner.recommend import Question, SearchEffort
from ceph_tuner.recommend.runs import EVENTS, Runs, run_length_s
from ceph_tuner.twin.model import MIB, OsdModel, ScrubWork
from ceph_tuner.twin.prediction import PredictionRun, predict
from twins import DISK, OSD, small_model

MODEL = small_model(scrub=(ScrubWork("rbd", 200_000, MIB, once=True),))
FEW, MANY = {"osd_max_scrubs": 1}, {"osd_max_scrubs": 5}
SLO = Slo("some", (parse_objective("client.p95_ms <= 10 ms"),))
RUN = PredictionRun(MODEL, FEW, 20.0, 10.0, 3)


def test_scrubs_that_run_go_on_when_fewer_are_let_begin() -> None:
    runs = (RUN, replace(RUN, settings=MANY), replace(RUN, before=MANY), replace(RUN, before=FEW))
    few, many, fewer, as_few = (predict(run).means["client.p95_ms"] for run in runs)
    assert many > 1.3 * few
    assert fewer > (few + many) / 2
    assert as_few == pytest.approx(few, rel=0.15)


def test_runs_begin_under_what_is_in_force_where_that_is_asked_for() -> None:
    effort = SearchEffort(settle_share=1 / 3)
    for switched in (True, False):
        with Runs(Question(MODEL, SLO, MANY, switched=switched), effort, 30.0, 1) as runs:
            (means,) = runs.start(MODEL, FEW, [3]).collect()
            (standing,) = runs.start(MODEL, FEW, [3], standing=True).collect()
        assert means == pytest.approx(predict(replace(RUN, before=MANY if switched else None)).means)
        assert standing == pytest.approx(predict(replace(RUN, before=FEW)).means)


@pytest.mark.parametrize(
    ("kind", "osd", "scrub"), [("ssd", OSD, ()), ("ssd, scrubbed", OSD, MODEL.scrub), ("hdd", DISK, MODEL.scrub)]
)
def test_a_run_has_as_many_events_as_its_drives_need(kind: str, osd: OsdModel, scrub: Tuple[ScrubWork, ...]) -> None:
    model = replace(MODEL, osd=osd, scrub=scrub)
    effort = SearchEffort(shortest_s=0.0, longest_s=1e6)
    lengths = [run_length_s(model, FEW, replace(effort, events=events)) for events in (None, EVENTS[kind], 2e6)]
    assert lengths[0] == lengths[1]
    assert lengths[2] == pytest.approx(lengths[1] * 2e6 / EVENTS[kind], abs=2.0)


def test_a_pool_that_was_there_is_there_after_the_runs() -> None:
    ended = []

    class Watched(ProcessPool):
        def __exit__(self, *_: object) -> None:
            ended.append(self)

    with Watched(1) as pool:
        with Runs(Question(MODEL, SLO), SearchEffort(), 8.0, pool) as runs:
            assert len(runs.start(MODEL, FEW, [1, 2]).collect()) == 2
        assert ended == []
    assert ended == [pool]
