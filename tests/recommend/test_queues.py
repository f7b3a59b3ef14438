"""Wpq beside mClock on a described cluster: the same seeds, an order only where it is sure, and its cost."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Tuple

import pytest

from ceph_tuner.core.knobs.releases import REEF
from ceph_tuner.files import slo_file
from ceph_tuner.recommend import Prediction, Question, SearchEffort
from ceph_tuner.recommend.queues import (
    BETTER_MCLOCK,
    BETTER_WPQ,
    NOT_TOLD,
    UNDECIDED,
    QueueComparison,
    QueueOrder,
    caveats,
    compare_queues,
    slept_at,
)
from ceph_tuner.recommend.runs import means_of
from ceph_tuner.recommend.search import SearchedSettings, fresh_seeds, search
from ceph_tuner.twin import published
from ceph_tuner.twin.model import (
    MCLOCK,
    MIB,
    WPQ,
    ClusterModel,
    DeleteWork,
    Pool,
    RecoveryWork,
    ScrubWork,
    SnaptrimWork,
)
from ceph_tuner.twin.prediction import PredictionRun
from silent_listener import SilentListener
from twins import small_model

PAGE = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "twin-published.md"
EFFORT = SearchEffort(trials=1, batch=1, seeds=2, finalists=1, fresh=4, events=1e5, shortest_s=4.0, longest_s=8.0)
SLO = slo_file.from_text(
    "schema: 1\nname: night\nobjectives:\n  - client.p95_ms <= 60 s\n  - recovery.bytes_s >= 1 kB/s\n"
).slo
MODEL = small_model(recovery=(RecoveryWork("rbd", 500_000, MIB),))


@pytest.fixture(scope="module")
def searched() -> SearchedSettings:
    return search(Question(MODEL, SLO), EFFORT, SilentListener(), processes=1)


@pytest.fixture(scope="module")
def found(searched: SearchedSettings) -> QueueComparison:
    return compare_queues(searched, {}, processes=1)


def test_wpq_runs_on_the_seeds_that_the_mclock_settings_were_confirmed_on(
    found: QueueComparison, searched: SearchedSettings
) -> None:
    seconds = searched.run_s
    settle = seconds * EFFORT.settle_share
    own = [PredictionRun(replace(MODEL, scheduler=WPQ), {}, seconds - settle, settle, s) for s in fresh_seeds(EFFORT)]
    assert found.wpq.runs == tuple(map(means_of, own))


def test_wpq_stands_beside_the_best_settings_what_is_in_force_and_every_built_in_profile(
    found: QueueComparison, searched: SearchedSettings
) -> None:
    labels = [entry.mclock.label for entry in found.against]
    assert labels[0] == searched.closest.label
    assert {"balanced", "high_client_ops", "high_recovery_ops"} <= set(labels)
    assert len(set(labels)) == len(labels)


def test_an_order_s_ratio_is_wpq_over_mclock_seed_by_seed(found: QueueComparison) -> None:
    for entry in found.against:
        for order in entry.orders:
            assert order.ratio is not None
            mean, low, high = order.ratio
            assert low <= mean <= high
            assert mean == pytest.approx(order.wpq / order.mclock, rel=0.3)


def test_the_change_costs_a_restart_of_every_osd(found: QueueComparison) -> None:
    assert found.cost is not None
    assert (found.cost.restarts, found.cost.rounds) == (4, 4)


def test_the_change_is_in_the_journal_so_that_its_way_back_leaves_no_entry_behind(found: QueueComparison) -> None:
    way, way_back = found.steps("c.conf"), found.undo("c.conf")
    assert way[0].command == "ceph-tuner apply --cluster c.conf --set osd_op_queue=wpq --yes"
    assert way_back[0].command == "ceph-tuner rollback --cluster c.conf"
    for steps, queue in ((way, WPQ), (way_back, MCLOCK)):
        assert [step.command for step in steps[1:]] == [
            "ceph osd set noout",
            "systemctl restart ceph-osd@ID",
            "ceph osd unset noout",
        ]
        assert f"`ceph tell osd.ID config get osd_op_queue` says {queue} " in steps[2].until


def test_of_a_device_class_each_osd_gets_an_entry_of_its_own(found: QueueComparison) -> None:
    searched = replace(found.searched, question=replace(found.searched.question, target="osd/class:ssd"))
    of_class = replace(found, searched=searched)
    first = of_class.steps()[0]
    assert (first.each, first.command.endswith("--yes --target osd.ID")) == ("OSD of osd/class:ssd", True)
    assert of_class.undo()[0].each


def test_wpq_has_the_knobs_of_the_settings_that_it_stands_beside(searched: SearchedSettings) -> None:
    """Else a knob that helps under either queue would count for mClock."""
    chunk, seconds = {"osd_recovery_max_chunk": 131072}, searched.run_s
    settle = seconds * EFFORT.settle_share
    settings = {**MODEL.release.profiles["high_client_ops"], **chunk}
    seeds = fresh_seeds(EFFORT)
    runs = tuple(means_of(PredictionRun(MODEL, settings, seconds - settle, settle, seed)) for seed in seeds)
    best = Prediction("trial 9", settings, runs)
    winner = replace(searched.choice, winner=best.candidate, better=False)
    found = compare_queues(replace(searched, compared=(*searched.compared, best), choice=winner), {}, processes=1)
    assert (found.best.mclock.label, found.best.wpq.label) == ("trial 9", "wpq, other knobs of trial 9")
    model = replace(MODEL, scheduler=WPQ)
    assert found.best.wpq.runs == tuple(
        means_of(PredictionRun(model, chunk, seconds - settle, settle, seed)) for seed in seeds
    )
    rate = next(order for order in found.best.orders if order.metric == "recovery.bytes_s")
    assert rate.wpq == pytest.approx(found.best.wpq.means["recovery.bytes_s"])
    assert found.best.wpq.means["recovery.bytes_s"] != found.wpq.means["recovery.bytes_s"]
    assert all(entry.wpq == found.wpq for entry in found.against[1:])


@pytest.mark.parametrize(
    "knobs", [{"osd_max_scrubs": 3}, {"osd_mclock_override_recovery_settings": True, "osd_max_backfills": 1}]
)
def test_wpq_stands_once_where_the_other_knobs_change_nothing_under_it(
    searched: SearchedSettings, knobs: Dict[str, Any]
) -> None:
    best = replace(searched.closest, label="trial 9", settings={**searched.closest.settings, **knobs})
    winner = replace(searched.choice, winner=best.candidate, better=False)
    found = compare_queues(replace(searched, compared=(*searched.compared, best), choice=winner), {}, processes=1)
    assert found.best.mclock.label == "trial 9"
    assert [entry.wpq.label for entry in found.against] == ["wpq"] * len(found.against)


@pytest.mark.parametrize(
    ("metric", "ratio", "better"),
    [
        ("client.p95_ms", (0.8, 0.7, 0.9), BETTER_WPQ),
        ("client.p95_ms", (1.2, 1.1, 1.3), BETTER_MCLOCK),
        ("client.p95_ms", (0.9, 0.7, 1.1), UNDECIDED),
        ("client.p95_ms", None, UNDECIDED),
        # beyond chance, and less than anybody could measure
        ("client.p95_ms", (0.99, 0.985, 0.995), UNDECIDED),
        ("recovery.bytes_s", (1.01, 1.005, 1.015), UNDECIDED),
        ("recovery.bytes_s", (0.8, 0.7, 0.9), BETTER_MCLOCK),
        ("recovery.bytes_s", (1.2, 1.1, 1.3), BETTER_WPQ),
    ],
)
def test_an_order_within_chance_is_undecided(metric: str, ratio: Any, better: str) -> None:
    assert QueueOrder(metric, 1.0, 1.0, ratio).better == better


def test_a_fit_s_known_error_turns_a_near_order_into_an_undecided_one(searched: SearchedSettings) -> None:
    errors: Dict[str, Tuple[float, float]] = dict.fromkeys(("client.p95_ms", "recovery.bytes_s"), (5.0, 3.0))
    doubtful = replace(searched, question=replace(searched.question, errors=errors))
    orders = compare_queues(doubtful, {}, processes=1).best.orders
    assert {order.better for order in orders} == {UNDECIDED}


def test_what_the_twin_tells_of_published_orders_is_what_the_page_of_results_says() -> None:
    rows = re.findall(
        r"^\| (?:A1|A2|B1|B2|B3|F1|F2) \| ([^|]+) \| ([^|]*WPQ[^|]*) \| ([^|]+) \|$", PAGE.read_text(), re.M
    )
    alike = {published.BUSY_MS: published.MEAN_MS}
    names = [alike.get(metric, metric) for metric, _, _ in rows]
    right = Counter(name for name, (_, _, holds) in zip(names, rows) if holds == "yes")
    assert {name: (right[name], of) for name, of in Counter(names).items()} == published.TOLD_AGAINST_WPQ


@pytest.mark.parametrize(
    ("metric", "weak"),
    [
        ("client.mean_ms", False),
        ("client.iops", False),
        ("snaptrim.drain_s", True),
        ("recovery.finish_s", False),
        ("scrub.finish_s", True),
    ],
)
def test_an_order_is_weak_where_the_twin_is_no_better_than_a_coin(metric: str, weak: bool) -> None:
    assert QueueOrder(metric, 1.0, 2.0, (2.0, 1.9, 2.1)).weak == weak


HYBRID = replace(MODEL, osd=replace(MODEL.osd, device_class="hdd", db=MODEL.osd.device))
COMES_BACK = replace(MODEL, recovery=(RecoveryWork("rbd", 10, degraded=False),), release=REEF)
TRIM, SCRUB = (SnaptrimWork("rbd", 1000),), (ScrubWork("rbd", 10),)
OLD = replace(MODEL, release=REEF, version=(18, 2, 7))


@pytest.mark.parametrize(
    ("model", "sleeps_set", "slept"),
    [
        (MODEL, {}, {}),
        (HYBRID, {}, {"recovery": "osd_recovery_sleep_degraded_hybrid 0.025 s"}),
        (replace(HYBRID, snaptrim=TRIM, recovery=()), {}, {"snaptrim": "osd_snap_trim_sleep_hybrid 2 s"}),
        (HYBRID, {"osd_recovery_sleep_degraded_hybrid": 0.0}, {}),
        (HYBRID, {"osd_recovery_sleep_degraded": 0.5}, {"recovery": "osd_recovery_sleep_degraded 0.5 s"}),
        # another drive's
        (MODEL, {"osd_recovery_sleep_degraded_hdd": 1.0}, {}),
        (COMES_BACK, {"osd_recovery_sleep_ssd": 0.2}, {"backfill": "osd_recovery_sleep_ssd 0.2 s"}),
        (OLD, {"osd_recovery_sleep": 0.2}, {"recovery": "osd_recovery_sleep 0.2 s"}),
        (replace(MODEL, recovery=(), scrub=SCRUB), {"osd_scrub_sleep": 0.1}, {"scrub": "osd_scrub_sleep 0.1 s"}),
    ],
)
def test_wpq_sleeps_by_the_drives_and_by_what_is_set(
    model: ClusterModel, sleeps_set: Dict[str, Any], slept: Dict[str, str]
) -> None:
    assert slept_at(model, sleeps_set) == slept


RECOVERY_SLEEPS = {"recovery": "osd_recovery_sleep_hdd 0.1 s"}


@pytest.mark.parametrize(
    ("metric", "ratio", "better"),
    [
        # it does less than the twin says, which may turn any order round
        ("recovery.bytes_s", (1.2, 1.1, 1.3), NOT_TOLD),
        ("recovery.bytes_s{class=hdd}", (0.8, 0.7, 0.9), NOT_TOLD),
        # clients get more than it says: who does better already does
        ("client.p95_ms", (0.8, 0.7, 0.9), BETTER_WPQ),
        ("client.p95_ms", (1.2, 1.1, 1.3), NOT_TOLD),
        ("client.p95_ms", (0.9, 0.7, 1.1), UNDECIDED),
    ],
)
def test_no_queue_is_named_where_a_sleep_could_turn_the_order_round(metric: str, ratio: Any, better: str) -> None:
    assert QueueOrder(metric, 1.0, 1.0, ratio, RECOVERY_SLEEPS).better == better


def test_with_an_objective_about_work_that_sleeps_no_queue_is_named(searched: SearchedSettings) -> None:
    found = compare_queues(searched, {}, processes=1, sleeps_set={"osd_recovery_sleep_degraded_ssd": 0.3})
    assert found.sleeps == {"recovery": "osd_recovery_sleep_degraded_ssd 0.3 s"}
    assert {entry.better for entry in found.against} == {NOT_TOLD}
    rates = [order.better for entry in found.against for order in entry.orders if order.metric == "recovery.bytes_s"]
    assert set(rates) == {NOT_TOLD}
    assert "no queue is named for recovery, nor mClock for clients" in " ".join(found.caveats)


def test_caveats_name_what_the_twin_does_not_know_of_a_cluster() -> None:
    coded = (Pool("rbd", 32, 6, k=4),)
    work = (RecoveryWork("rbd", 1000),)

    def said(model: ClusterModel) -> str:
        return " ".join(caveats(model, slept_at(model, {})))

    flash = said(replace(MODEL, deletion=(DeleteWork("rbd", 1000),)))
    disk = said(replace(MODEL, osd=replace(MODEL.osd, device_class="hdd")))
    old = said(small_model(osds=6, pools=coded, recovery=work, release=REEF))
    new = said(small_model(osds=6, pools=coded, recovery=work))
    # mClock forces them to 0, and of work that is not there nothing is said
    assert "(osd_recovery_sleep_degraded_hdd 0.1 s)" in disk
    assert "(osd_delete_sleep_ssd 1 s)" in flash
    assert "sleeps" not in said(MODEL)
    assert "past mClock" in old
    assert "past mClock" not in new
    assert "erasure-coded" in new
    assert "erasure-coded" not in flash
