"""A recommendation says where the hosts' processors are near their limit under it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, List

import pytest

from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.recommend import Question, SearchEffort
from ceph_tuner.recommend.busy_processors import busy_processors
from ceph_tuner.recommend.document import document
from ceph_tuner.recommend.recommendation import recommend
from silent_listener import SilentListener
from twins import small_model

SLO = parse_slo({"name": "day", "objectives": ["client.p95_ms <= 500 ms"]})
WORK_S = 2e-3


def notes_with(processors: int) -> List[str]:
    model = small_model(processors=processors, hosts=1)
    # 300 operations a second, of which each takes two messages at its client
    model = replace(model, osd=replace(model.osd, message_cpu_s=WORK_S))
    effort = SearchEffort(trials=2, seeds=1, fresh=2, finalists=1, events=3e4)
    told = document(recommend(Question(model, SLO), effort, SilentListener(), 1, explain=False), "small")
    return [note for note in told["notes"] if "processors" in note]


@pytest.mark.parametrize(("processors", "near"), [(0, False), (3, True), (64, False)])
def test_processors_near_their_limit_are_told(processors: int, near: bool) -> None:
    notes = notes_with(processors)
    assert bool(notes) == near
    assert not near or notes[0].endswith(": more work would wait for them")


@pytest.mark.parametrize(("better", "under"), [(True, "these settings"), (False, "what is in force")])
def test_where_nothing_is_recommended_it_is_what_is_in_force_that_is_near(better: bool, under: str) -> None:
    model = small_model(processors=1, hosts=1)
    model = replace(model, osd=replace(model.osd, message_cpu_s=WORK_S))
    searched: Any = SimpleNamespace(
        question=Question(model, SLO),
        winner=SimpleNamespace(settings={}),
        choice=SimpleNamespace(better=better),
        effort=SearchEffort(),
        run_s=2.0,
    )
    assert busy_processors(searched) == (
        f"the hosts' processors are 100% busy under {under}: more work would wait for them",
    )
