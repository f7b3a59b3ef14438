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
from ceph_tuner.recommend import Question, SearchEffort
from ceph_tuner.recommend.queues import (
    BETTER_MCLOCK,
    BETTER_WPQ,
    UNDECIDED,
    QueueComparison,
    QueueOrder,
    caveats,
    compare_queues,
)
from ceph_tuner.recommend.runs import means_of
from ceph_tuner.recommend.search import SearchedSettings, fresh_seeds, search
from ceph_tuner.twin import published
from ceph_tuner.twin.model import MIB, WPQ, DeleteWork, Pool, RecoveryWork
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
    assert [step.command for step in found.change.steps({})][:2] == [
        "ceph config set osd osd_op_queue wpq",
        "ceph osd set noout",
    ]
    assert found.change.undo({}, MODEL)[0].command == "ceph config set osd osd_op_queue mclock_scheduler"


@pytest.mark.parametrize(
    ("metric", "ratio", "better"),
    [
        ("client.p95_ms", (0.8, 0.7, 0.9), BETTER_WPQ),
        ("client.p95_ms", (1.2, 1.1, 1.3), BETTER_MCLOCK),
        ("client.p95_ms", (0.9, 0.7, 1.1), UNDECIDED),
        ("client.p95_ms", None, UNDECIDED),
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
    ("metric", "weak"), [("client.iops", False), ("snaptrim.drain_s", True), ("recovery.finish_s", False)]
)
def test_an_order_is_weak_where_the_twin_is_no_better_than_a_coin(metric: str, weak: bool) -> None:
    assert QueueOrder(metric, 1.0, 2.0, (2.0, 1.9, 2.1)).weak == weak


def test_caveats_name_what_the_twin_does_not_know_of_a_cluster() -> None:
    coded = (Pool("rbd", 32, 6, k=4),)
    work = (RecoveryWork("rbd", 1000),)
    flash = " ".join(caveats(replace(MODEL, deletion=(DeleteWork("rbd", 1000),))))
    disk = " ".join(caveats(replace(MODEL, osd=replace(MODEL.osd, device_class="hdd"))))
    old = " ".join(caveats(small_model(osds=6, pools=coded, recovery=work, release=REEF)))
    new = " ".join(caveats(small_model(osds=6, pools=coded, recovery=work)))
    # mClock forces them to 0, and of work that is not there nothing is said
    assert "(osd_recovery_sleep_hdd 0.1 s)" in disk
    assert "(osd_delete_sleep_ssd 1 s)" in flash
    assert "sleeps" not in " ".join(caveats(MODEL))
    assert "past mClock" in old
    assert "past mClock" not in new
    assert "erasure-coded" in new
    assert "erasure-coded" not in flash
