"""Recovery and scrub in one SLO: each is foreseen as Ceph does it, and clients by the worse of the two."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict

import pytest

from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.knobs.releases import TENTACLE
from ceph_tuner.files import slo_file
from ceph_tuner.recommend import Question, SearchEffort
from ceph_tuner.recommend.accounts import NOTHING, accounts
from ceph_tuner.recommend.document import document
from ceph_tuner.recommend.recommendation import recommend
from ceph_tuner.recommend.runs import means_of
from ceph_tuner.recommend.turns import together, turns
from ceph_tuner.twin.knobs_in_force import completed
from ceph_tuner.twin.model import MIB, ClusterModel, RecoveryWork, ScrubWork, SnaptrimWork
from ceph_tuner.twin.prediction import PredictionRun
from silent_listener import SilentListener
from twins import small_model

RECOVERY, SCRUB = (RecoveryWork("rbd", 500_000, MIB),), (ScrubWork("rbd", 200_000, MIB),)
BOTH = small_model(recovery=RECOVERY, scrub=SCRUB, snaptrim=(SnaptrimWork("other", 100_000, MIB),))
SLO = slo_file.from_text(
    "schema: 1\nname: night\nobjectives:\n  - client.p95_ms <= 60 s\n  - recovery.bytes_s >= 1 kB/s\n"
    "  - scrub.bytes_s >= 1 kB/s\n"
).slo


def seen(model: ClusterModel, settings: Any = None) -> Dict[str, float]:
    return means_of(PredictionRun(model, settings or {}, 15.0, 5.0, 3))


def test_each_goes_on_as_without_the_other_and_clients_get_the_worse() -> None:
    recovering, scrubbing = (seen(turn) for turn in turns(BOTH))
    found = seen(BOTH)
    assert found["recovery.bytes_s"] == recovering["recovery.bytes_s"] > 0
    assert found["scrub.bytes_s"] == scrubbing["scrub.bytes_s"] > 0
    assert recovering["client.p95_ms"] != scrubbing["client.p95_ms"]
    assert found["client.p95_ms"] == max(recovering["client.p95_ms"], scrubbing["client.p95_ms"])
    assert found["client.iops"] == min(recovering["client.iops"], scrubbing["client.iops"])
    assert found["snaptrim.objects_s"] == min(recovering["snaptrim.objects_s"], scrubbing["snaptrim.objects_s"])


@pytest.mark.parametrize("model", [replace(BOTH, scrub=()), replace(BOTH, recovery=()), small_model()])
def test_where_there_is_one_of_them_nothing_takes_turns(model: ClusterModel) -> None:
    assert turns(model) == (model,)
    assert together([{"client.iops": 1.0, "queue.client": 2.0}]) == {"client.iops": 1.0, "queue.client": 2.0}


def test_clients_that_starve_in_one_turn_are_promised_nothing() -> None:
    found = together([{"client.iops": 0.0, "recovery.bytes_s": 5.0}, {"client.iops": 9.0, "client.p95_ms": 3.0}])
    assert found == {"client.iops": 0.0, "recovery.bytes_s": 5.0}


def test_the_capacity_is_that_of_one_turn() -> None:
    settings, means = completed({}, TENTACLE), {"client.iops": 300.0, "recovery.bytes_s": 5e7, "scrub.bytes_s": 5e7}
    one, other = (accounts(Judge(SLO, means), turn, settings, means) for turn in turns(replace(BOTH, snaptrim=())))
    both = accounts(Judge(SLO, means), replace(BOTH, snaptrim=()), settings, means)
    assert both in (one, other)
    assert NOTHING in [entry.held_by for entry in both]


def test_a_recommendation_says_so_and_keeps_objectives_about_both() -> None:
    effort = SearchEffort(trials=4, seeds=1, fresh=2, finalists=1, events=1e5)

    told = document(recommend(Question(BOTH, SLO), effort, SilentListener(), 1, explain=False), "night")
    assert any("one after the other" in note for note in told["notes"])
    assert not any("processors" in note for note in told["notes"])
    assert {entry["met"] for each in told["predictions"] for entry in each["verdicts"]} == {True}
