"""A boost as a question to the twin, and what comes of the answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Optional, Tuple

import pytest

from ceph_tuner.core.boost.choice import known
from ceph_tuner.core.boost.kinds import KINDS
from ceph_tuner.core.boost.offer import TwinOffer
from ceph_tuner.core.goals.slo import Objective, parse_objective
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import Settings, nine
from ceph_tuner.recommend import SearchEffort
from ceph_tuner.recommend.boost_offer import (
    NONE_FASTER,
    BoostAnswer,
    BoostQuestion,
    answer_for,
    question_for,
)
from ceph_tuner.recommend.recommendation import Recommendation, recommend
from ceph_tuner.twin.described_cluster import DescribedCluster
from ceph_tuner.twin.model import MIB, RecoveryWork, ScrubWork, SnaptrimWork
from silent_listener import SilentListener
from twins import small_model

RECOVERY, KEPT = KINDS["recovery"], "client.p95_ms <= 20 ms"
SHARES: Any = ((0.6, 2, 0), (0.1, 1, 0.2), (0.05, 1, 0.2))
LIMITED: Settings = {PROFILE: "custom", **nine(*SHARES)}
WORK: Any = {"recovery": (RecoveryWork("rbd", 500_000, MIB),)}
CLUSTER = DescribedCluster("small", small_model(**WORK), LIMITED)
EFFORT = SearchEffort(trials=6, seeds=2, fresh=4, events=1e5, shortest_s=1.0)


def objectives(*lines: str) -> Tuple[Objective, ...]:
    return tuple(map(parse_objective, lines))


def boost_question(*lines: str, kind: str = "recovery", cluster: DescribedCluster = CLUSTER) -> Optional[BoostQuestion]:
    return question_for(KINDS[kind], cluster, objectives(*lines))


def test_it_asks_for_the_fastest_work_within_what_is_to_be_kept() -> None:
    soft = {"objective": "client.mean_ms <= 5 ms", "hard": False}
    lines = (KEPT, "ops.slow <= 0", "client.p95_ms{class=tape} <= 9 ms", "scrub.bytes_s >= 1 MB/s")
    question = question_for(RECOVERY, CLUSTER, (*objectives(*lines), parse_objective(soft)))
    assert question is not None
    slo = question.question.slo
    assert ([each.text for each in slo.objectives], slo.goal and slo.goal.text) == (
        [KEPT],
        "maximise recovery.copies_s",
    )
    assert set(question.left_out) == {
        "ops.slow <= 0",
        "client.p95_ms{class=tape} <= 9 ms",
        "scrub.bytes_s >= 1 MB/s",
    }
    # settings come while the work goes on
    assert question.question.switched


def test_what_is_to_be_kept_is_asked_beside_what_was_measured() -> None:
    seen = {"client.p95_ms": 5.0, "client.mean_ms": 0.0}
    lines = (KEPT, "client.mean_ms <= 9 ms", "client.p99_ms <= 3 * baseline", "recovery.bytes_s >= 0")
    question = boost_question(*lines, cluster=replace(CLUSTER, seen=seen))
    assert question is not None
    texts = [each.text for each in question.question.slo.objectives]
    assert texts == [
        "client.p95_ms <= 4 * baseline",
        "client.mean_ms <= 9 ms",
        *lines[2:3],
        "recovery.bytes_s >= 0 B/s",
    ]
    assert question.wanted["client.p95_ms"].text == KEPT


@pytest.mark.parametrize(
    ("kind", "goal"),
    [
        ("recovery", "recovery.copies_s"),
        ("backfill", "backfill.objects_s"),
        ("scrub", "scrub.bytes_s"),
        ("snaptrim", "snaptrim.objects_s"),
    ],
)
def test_each_kind_of_work_has_its_rate(kind: str, goal: str) -> None:
    moved = RecoveryWork("rbd", 400_000, MIB, degraded=False)
    work: Any = {"scrub": (ScrubWork("rbd", 200_000, MIB),), "snaptrim": (SnaptrimWork("rbd", 100_000, MIB),)}
    cluster = DescribedCluster("small", small_model(recovery=(*WORK["recovery"], moved), **work))
    question = boost_question(KEPT, kind=kind, cluster=cluster)
    assert question is not None
    assert question.question.slo.goal is not None
    assert question.question.slo.goal.metric == goal


def test_what_the_twin_cannot_say_is_not_asked() -> None:
    assert boost_question() is None
    assert boost_question("ops.slow <= 0") is None
    assert boost_question("client.p95_ms{class=tape} <= 9 ms") is None
    assert boost_question(KEPT, kind="scrub") is None


@pytest.fixture(scope="module")
def searched_boost() -> Tuple[BoostQuestion, Recommendation]:
    question = boost_question(KEPT)
    assert question is not None
    return question, recommend(question.question, EFFORT, SilentListener(), 1, explain=False)


def answered(searched_boost: Tuple[BoostQuestion, Recommendation], usual: Settings, **searched: Any) -> BoostAnswer:
    question, recommendation = searched_boost
    own = replace(recommendation, searched=replace(recommendation.searched, **searched))
    return answer_for(question, own, usual, "small", 7.0, 1)


@pytest.mark.slow
def test_settings_that_are_faster_than_what_a_boost_takes_anyway_are_offered(
    searched_boost: Tuple[BoostQuestion, Recommendation],
) -> None:
    answer = answered(searched_boost, {"osd_max_scrubs": 2})
    offer = answer.offer
    assert offer is not None
    assert offer == TwinOffer.from_dict(offer.to_dict())
    assert (offer.kind, offer.target, offer.forecast.at, offer.forecast.model) == ("recovery", "osd", 7.0, "small")
    assert offer.rate_of(RECOVERY) == "recovery.copies_s"
    assert offer.is_faster(RECOVERY)
    assert offer.means["client.p95_ms"] < 20.0
    interval = offer.forecast.metrics["recovery.copies_s"]
    assert interval.low < interval.value < interval.high
    # beside these the profile in force stays
    assert answer.usual is not None
    assert answer.usual.settings.items() >= {"osd_max_scrubs": 2, **nine(*SHARES)}.items()


@pytest.mark.slow
def test_what_it_predicts_is_a_change_of_what_was_measured(
    searched_boost: Tuple[BoostQuestion, Recommendation],
) -> None:
    plain = answered(searched_boost, {"osd_max_scrubs": 2})
    seen = {"client.p95_ms": 5.0, "recovery.copies_s": 50.0}
    question, recommendation = searched_boost
    measured = replace(question.question, measured_means=seen)
    searched = replace(recommendation.searched, question=measured)
    own = (replace(question, question=measured), replace(recommendation, searched=searched))
    answer = answered(own, {"osd_max_scrubs": 2})
    assert plain.offer is not None
    assert answer.offer is not None
    assert answer.offer.before == pytest.approx({**plain.offer.before, **seen})
    for metric, value in seen.items():
        one, other = (each.forecast.metrics[metric] for each in (plain.offer, answer.offer))
        factor = value / plain.offer.before[metric]
        assert [other.value, other.low, other.high] == pytest.approx(
            [factor * end for end in (one.value, one.low, one.high)]
        )
    assert [each.metric for each in answer.off] == list(seen)
    assert plain.off == ()


@pytest.mark.slow
def test_what_a_boost_takes_anyway_stays_where_it_is_as_fast(
    searched_boost: Tuple[BoostQuestion, Recommendation],
) -> None:
    own = dict(searched_boost[1].instructions.settings)
    answer = answered(searched_boost, own)
    assert (answer.offer, answer.reason) == (None, f"{NONE_FASTER} than what a boost takes anyway")
    assert answer.missed == ()


@pytest.mark.slow
def test_settings_that_keep_what_a_boost_would_miss_are_offered_though_they_are_slower(
    searched_boost: Tuple[BoostQuestion, Recommendation],
) -> None:
    answer = answered(searched_boost, known(RECOVERY, {}, CLUSTER.model.release, CLUSTER.model.release.newest))
    assert answer.missed == (KEPT,)
    assert answer.offer is not None
    assert answer.usual is not None
    assert answer.usual.means["client.p95_ms"] > 20.0
    rate = "recovery.copies_s"
    assert answer.offer.before[rate] < answer.offer.means[rate] < answer.usual.means[rate]


@pytest.mark.slow
def test_what_is_not_better_than_what_is_in_force_or_was_not_confirmed_is_not_offered(
    searched_boost: Tuple[BoostQuestion, Recommendation],
) -> None:
    usual = known(RECOVERY, LIMITED, CLUSTER.model.release, CLUSTER.model.release.newest)
    choice = replace(searched_boost[1].searched.choice, better=False)
    for other in ({"choice": choice}, {"confirmed": False}):
        answer = answered(searched_boost, usual, **other)
        assert answer.offer is None
        assert answer.reason == NONE_FASTER


@pytest.mark.slow
def test_it_says_what_a_boost_would_miss_without_it() -> None:
    question = boost_question("client.p95_ms <= 0.1 ms")
    assert question is not None
    recommendation = recommend(question.question, EFFORT, SilentListener(), 1, explain=False)
    answer = answered((question, recommendation), {PROFILE: "high_recovery_ops"})
    assert (answer.offer, answer.missed) == (None, ("client.p95_ms <= 0.1 ms",))
