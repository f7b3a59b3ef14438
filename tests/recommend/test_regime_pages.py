"""Regimes as questions to the twin, and its answers as pages of the book."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Dict, List, Tuple

import pytest

from ceph_tuner.core.book.page import TWIN, UNVALIDATED, Page
from ceph_tuner.core.book.page_check import check_page
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo import Slo
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import QUINCY_EARLY, REEF, Release
from ceph_tuner.core.measure.timeline import POLICY, REGIME, TimelineEntry
from ceph_tuner.core.regimes.bounds import DEFAULT, Marker, RegimeBounds, regime_of
from ceph_tuner.files import slo_file
from ceph_tuner.recommend import SearchEffort
from ceph_tuner.recommend.recommendation import recommend
from ceph_tuner.recommend.regime_pages import (
    RegimeAnswer,
    pages_of,
    question_in,
    usual_regimes,
    work_in,
)
from ceph_tuner.twin.described_cluster import DescribedCluster
from ceph_tuner.twin.model import MIB, ClientStream, ClusterModel, RecoveryWork, ScrubWork, SnaptrimWork
from silent_listener import SilentListener
from twins import small_model

WORK: Any = {
    "recovery": (RecoveryWork("rbd", 500_000, MIB), RecoveryWork("rbd", 400_000, MIB, degraded=False)),
    "scrub": (ScrubWork("rbd", 200_000, MIB),),
    "snaptrim": (SnaptrimWork("rbd", 100_000, MIB),),
}
MODEL = small_model(clients=(ClientStream("rbd", rate=225.0), ClientStream("rbd", rate=75.0)), **WORK)
CLUSTER = DescribedCluster("small", MODEL)
EFFORT = SearchEffort(trials=6, seeds=2, fresh=4, events=1e5, shortest_s=1.0)
CAPACITY = MODEL.osds * MODEL.osd.capacity_iops


def slo(*objectives: str, goal: str = "") -> Slo:
    lines = "".join(f"  - {line}\n" for line in objectives)
    return slo_file.from_text(f"schema: 1\nname: wanted\nobjectives:\n{lines}{goal}").slo


CLIENTS = slo("client.p95_ms <= 60 s")
BETTER = slo("client.p95_ms <= 0.8 * baseline", "recovery.bytes_s >= 1 kB/s")
"""Limits and small chunks of recovery give it here."""


def kinds(regime: str, wanted: Slo = CLIENTS) -> Tuple[str, ...]:
    return question_in(regime, CLUSTER, wanted, DEFAULT).work


def test_markers_may_be_named_in_any_order_and_none_is_idle() -> None:
    assert regime_of("trimming + recovering", DEFAULT) == "recovering+trimming"
    assert regime_of("idle", DEFAULT) == "idle"
    for wrong in ("", "recover", "idle+busy", "busy+"):
        with pytest.raises(InputError, match="idle, or with"):
            regime_of(wrong, DEFAULT)


def test_usual_are_each_marker_alone_and_what_the_cluster_was_in() -> None:
    entries = [
        TimelineEntry(1.0, REGIME, "", "busy+recovering"),
        TimelineEntry(2.0, REGIME, "class=ssd", "busy+trimming"),
        TimelineEntry(3.0, POLICY, "", "night"),
        TimelineEntry(4.0, REGIME, "", "of-other-bounds"),
    ]
    assert usual_regimes(DEFAULT, entries) == (
        "idle", "backfilling", "busy", "recovering", "scrub-late", "trimming", "busy+recovering",
    )  # fmt: skip


def test_a_regime_has_the_work_of_its_markers_and_no_other() -> None:
    assert work_in(("busy+recovering", "trimming"), DEFAULT) == {"recovery", "snaptrim"}
    assert kinds("idle") == ("client",)
    assert kinds("recovering") == ("client", "recovery")
    # what is moved is recovered as well, as Ceph counts
    assert set(kinds("backfilling")) == {"client", "recovery", "backfill"}
    model = question_in("backfilling", CLUSTER, CLIENTS, DEFAULT).question.model
    assert [work.degraded for work in model.recovery] == [False]
    assert kinds("scrub-late+trimming") == ("client", "scrub", "snaptrim")


def test_scrub_goes_on_in_every_regime_but_beside_recovery_where_it_is_wanted() -> None:
    wanted = slo("client.p95_ms <= 60 s", "scrub.interval_s <= 4 w")
    assert kinds("idle", wanted) == ("client", "scrub")
    assert kinds("recovering", wanted) == ("client", "recovery")


def test_objectives_about_other_work_are_left_out_and_named() -> None:
    wanted = slo(
        "client.p95_ms <= 60 s", "recovery.finish_s <= 2 h", "scrub.pgs_late <= 0", goal="maximise: recovery.bytes_s"
    )
    asked = question_in("busy", CLUSTER, wanted, DEFAULT)
    assert [each.metric for each in asked.question.slo.objectives] == ["client.p95_ms"]
    assert asked.question.slo.goal is None
    assert len(asked.left_out) == 3
    assert question_in("recovering", CLUSTER, wanted, DEFAULT).question.slo.goal is not None
    with pytest.raises(InputError, match="no objective about its work"):
        question_in("trimming", CLUSTER, slo("recovery.finish_s <= 2 h"), DEFAULT)


def test_a_regime_whose_work_is_not_described_cannot_be_asked_of() -> None:
    with pytest.raises(InputError, match="no snaptrim in the description"):
        question_in("trimming", replace(CLUSTER, model=replace(MODEL, snaptrim=())), CLIENTS, DEFAULT)


def asked_iops(regime: str, *seen: float, model: ClusterModel = MODEL) -> float:
    asked = question_in(regime, replace(CLUSTER, model=model), CLIENTS, DEFAULT, seen)
    rates = [stream.rate or 0.0 for stream in asked.question.model.clients]
    assert asked.client_iops is not None
    assert math.isclose(sum(rates), asked.client_iops)
    # each stream keeps its part
    assert math.isclose(rates[0], 3 * rates[1])
    return asked.client_iops / CAPACITY


def test_clients_ask_for_the_most_that_was_seen_in_the_regime() -> None:
    described = 300.0 / CAPACITY
    assert described < 0.1
    assert asked_iops("idle") == pytest.approx(described)
    assert asked_iops("idle", 0.09 * CAPACITY, 0.5 * CAPACITY) == pytest.approx(0.09)
    assert asked_iops("busy") == pytest.approx(0.1)
    assert asked_iops("busy", 0.09 * CAPACITY, 0.5 * CAPACITY) == pytest.approx(0.5)
    loaded = replace(
        MODEL, clients=(ClientStream("rbd", rate=0.3 * CAPACITY), ClientStream("rbd", rate=0.1 * CAPACITY))
    )
    # nothing was seen below the bound: between where it begins and where it ends
    assert asked_iops("idle", model=loaded) == pytest.approx(0.075)
    assert asked_iops("busy", model=loaded) == pytest.approx(0.4)


def test_rates_stay_where_no_bound_tells_them_or_clients_have_none() -> None:
    by_queue = RegimeBounds((Marker("trimming", "snaptrim.queue", 1, 0),))
    assert question_in("trimming", CLUSTER, CLIENTS, by_queue).client_iops is None
    closed = replace(CLUSTER, model=replace(MODEL, clients=(ClientStream("rbd", depth=8),)))
    asked = question_in("busy", closed, CLIENTS, DEFAULT)
    assert (asked.client_iops, asked.question.model.clients) == (None, closed.model.clients)


def answered(wanted: Slo, in_force: Any = None, regime: str = "recovering", cluster: Any = CLUSTER) -> RegimeAnswer:
    asked = question_in(regime, replace(cluster, settings=in_force or {}), wanted, DEFAULT)
    return RegimeAnswer(asked, recommend(asked.question, EFFORT, SilentListener(), 1, explain=False))


def pages(*answers: RegimeAnswer) -> Dict[str, Page]:
    return {page.regime: page for page in pages_of(answers, 5.0, "osd/class:ssd", processes=1)}


@pytest.mark.slow
def test_an_answer_is_a_page_that_says_all_of_its_settings() -> None:
    page = pages(answered(BETTER, {PROFILE: "high_client_ops", "osd_max_scrubs": 5}))["recovering"]
    assert (page.number, page.state, page.origin, page.at, page.target) == (1, UNVALIDATED, TWIN, 5.0, "osd/class:ssd")
    # whatever is in force when it is written
    assert page.settings[PROFILE] in ("custom", "high_client_ops")
    assert (page.settings[PROFILE] == "custom") == (MCLOCK_NINE[0] in page.settings)
    assert page.settings["osd_max_scrubs"] == 5
    assert page.effects["client.p95_ms"] < -0.2
    assert page.load["client.iops"] > 0
    # a boost asks how fast the work is under it
    assert page.means["recovery.bytes_s"] > 0
    assert "predicted by the twin" in page.verdict
    check_page(page, "20.2.1")
    with pytest.raises(InputError, match="page 1"):
        check_page(replace(page, settings={"osd_op_num_shards": 4}), "20.2.1")


@pytest.mark.slow
@pytest.mark.parametrize(("release", "version"), [(QUINCY_EARLY, "17.2.0"), (REEF, "18.2.7")])
def test_a_page_is_in_the_units_of_its_release(release: Release, version: str) -> None:
    # early Quincy limits recovery by default, and later releases do not
    wanted = BETTER if release is REEF else slo("client.p95_ms <= 60 s", "recovery.bytes_s >= 1.3 * baseline")
    old = replace(CLUSTER, model=replace(MODEL, release=release, version=None))
    page = pages(answered(wanted, cluster=old))["recovering"]
    check_page(page, version)
    shares = [page.settings[name] for name in MCLOCK_NINE if name.endswith("_res") and name in page.settings]
    assert all(isinstance(share, int) == (release.units == "iops") for share in shares)


@pytest.mark.slow
def test_no_page_misses_a_hard_objective_or_is_no_better_or_was_interrupted() -> None:
    answer = answered(BETTER)
    unconfirmed = replace(answer.found, searched=replace(answer.found.searched, confirmed=False))
    assert pages(replace(answer, found=unconfirmed)) == {}
    missed = answered(slo("client.p95_ms <= 0.001 ms", "recovery.bytes_s >= 1 kB/s"))
    assert not missed.found.keeps_hard
    no_better = answered(slo("client.p95_ms <= 60 s", "recovery.bytes_s >= 1 kB/s"))
    assert not no_better.found.better
    assert pages(missed) == pages(no_better) == {}


@pytest.mark.slow
def test_regimes_share_settings_where_these_keep_the_objectives_in_each_so_that_there_is_less_to_switch() -> None:
    told: List[Tuple[int, int]] = []
    answers = [answered(BETTER, regime=regime) for regime in ("idle", "recovering", "recovering+trimming")]
    # nobody recovers in it, so that what limits recovery changes nothing there
    assert not answers[0].found.better
    made = pages_of(answers, 5.0, "osd", lambda done, total: told.append((done, total)), 1)
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert [page.number for page in made] == list(range(1, len(made) + 1))
    settings = {page.regime: dict(page.settings) for page in made}
    # the one with more markers serves the one with fewer
    assert settings["recovering"] == settings["recovering+trimming"]
    (shared,) = (page for page in made if page.regime == "recovering")
    assert "found for recovering+trimming" in shared.verdict
    assert shared.effects["client.p95_ms"] < -0.2


@pytest.mark.slow
def test_settings_that_miss_another_regime_s_objectives_are_not_shared() -> None:
    # what helps the clients here leaves recovery alone, which is wanted as fast as now there
    fast = slo("client.p95_ms <= 60 s", "recovery.bytes_s >= 0.98 * baseline", "snaptrim.objects_s >= 1.5 * baseline")
    limited = slo("client.p95_ms <= 0.3 * baseline", "recovery.bytes_s >= 1 kB/s")
    made = pages(answered(limited), answered(fast, regime="recovering+trimming"))
    assert list(made) == ["recovering"]
    assert made["recovering"].effects["recovery.bytes_s"] < -0.1
