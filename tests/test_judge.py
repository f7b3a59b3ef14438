from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.goals.judge import LOSS_CEILING, TOLERANCE, Judge, all_met, weighed
from ceph_tuner.core.goals.ranking import LEAST_GAIN
from ceph_tuner.core.goals.slo import Objective, parse_slo
from ceph_tuner.core.goals.stored_slo import BASELINE as BASELINE_KEY
from ceph_tuner.core.goals.stored_slo import SLO_KEY, stored_judge
from monitors import MemoryStore

SLO = parse_slo(
    {
        "objectives": [
            "client.p95_ms <= 80 ms",
            "recovery.bytes_s >= 8 MB/s",
            {"objective": "client.p99_ms <= 150 ms", "hard": False, "priority": 3},
        ]
    }
)
KEPT = parse_slo({"objectives": ["client.p95_ms <= 80 ms", "client.iops >= 200", "recovery.bytes_s >= 10 MB/s"]})
BASELINE = {"client.p95_ms": 100.0, "client.iops": 250.0, "recovery.bytes_s": 26e6}
latencies = st.floats(0, 1e6)
rates = st.floats(0, 1e12)


def test_a_hard_bound_and_a_tighter_soft_one_on_the_same_metric_go_together() -> None:
    slo = parse_slo({"objectives": ["client.p95_ms <= 90", {"objective": "client.p95_ms <= 60", "hard": False}]})
    verdicts = Judge(slo).verdicts({"client.p95_ms": 70.0})
    assert [verdict.met for verdict in verdicts] == [True, False]
    assert all_met(verdicts, hard_only=True)
    assert not all_met(verdicts)


def test_what_was_not_seen_is_neither_met_nor_missed() -> None:
    slo = parse_slo({"objectives": ["client.p95_ms <= 1.2 * baseline", "recovery.bytes_s >= 1 MB/s"]})
    assert [verdict.met for verdict in Judge(slo).verdicts({"client.p95_ms": 5.0})] == [None, None]
    judge = Judge(slo, {"client.p95_ms": 5.0})
    assert [v.met for v in judge.verdicts({"client.p95_ms": math.nan})] == [None, None]
    assert [v.met for v in judge.verdicts({"client.p95_ms": 6.0})] == [True, None]
    assert not all_met(judge.verdicts({"client.p95_ms": 6.0}))


def loss_of(p95: float, rate: float, p99: float) -> float:
    return Judge(SLO).loss({"client.p95_ms": p95, "recovery.bytes_s": rate, "client.p99_ms": p99})


@given(latencies, latencies, rates, latencies)
def test_a_better_latency_never_has_a_larger_loss(one: float, other: float, rate: float, p99: float) -> None:
    assert loss_of(min(one, other), rate, p99) <= loss_of(max(one, other), rate, p99) + 1e-9


@given(rates, rates, latencies, latencies)
def test_a_better_rate_never_has_a_larger_loss(one: float, other: float, p95: float, p99: float) -> None:
    assert loss_of(p95, max(one, other), p99) <= loss_of(p95, min(one, other), p99) + 1e-9


@given(latencies, rates, latencies)
def test_the_loss_is_a_finite_number(p95: float, rate: float, p99: float) -> None:
    assert math.isfinite(loss_of(p95, rate, p99))
    assert loss_of(p95, rate, p99) <= LOSS_CEILING


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=9), st.sampled_from(SLO.objectives), st.floats(0, 100))
def test_many_margins_at_once_are_weighed_as_each_by_itself(margins: list, objective: Objective, weight: float) -> None:
    together = weighed(objective, np.array(margins), weight, np.log1p, np.maximum)
    assert together == pytest.approx([weighed(objective, margin, weight) for margin in margins])


def test_a_hard_violation_weighs_more_than_a_soft_one_of_the_same_size() -> None:
    assert loss_of(88, 9e6, 150) > loss_of(80, 9e6, 165)


def test_what_was_not_seen_counts_as_missed() -> None:
    seen = {"client.p95_ms": 70.0, "recovery.bytes_s": 9e6, "client.p99_ms": 100.0}
    without = {name: value for name, value in seen.items() if name != "recovery.bytes_s"}
    assert Judge(SLO).loss(without) > Judge(SLO).loss(seen) + 5
    assert Judge(SLO).rank(without)[0] is True


def test_a_trial_must_hold_what_is_kept_now_and_make_no_worse_what_is_missed() -> None:
    held = {objective.metric: bound for objective, bound in Judge(KEPT, BASELINE).must_hold().items()}
    assert held == {"client.p95_ms": 100.0 * (1 + TOLERANCE), "client.iops": 200.0, "recovery.bytes_s": 10e6}
    assert [
        objective.metric for objective in Judge(KEPT, BASELINE).broken({"client.p95_ms": 104.0, "client.iops": 190.0})
    ] == ["client.iops"]
    assert Judge(KEPT, BASELINE).broken({**BASELINE, "client.p95_ms": 106.0})
    # soft objectives are no promise, and what was not seen is not known to be broken
    soft = parse_slo({"objectives": [{"objective": "client.p95_ms <= 80 ms", "hard": False}]})
    assert Judge(soft, BASELINE).must_hold() == {}
    assert Judge(KEPT, {}).broken(BASELINE) == []


def test_a_window_of_clients_that_wait_breaks_what_it_does_not_show() -> None:
    kept = {"recovery.bytes_s": 20e6}
    starved = {**kept, "client.iops": 0.0, "queue.client": 3.0}
    assert [objective.metric for objective in Judge(KEPT, BASELINE).broken(starved)] == ["client.p95_ms", "client.iops"]
    assert Judge(KEPT, BASELINE).broken(kept) == []


def test_the_rate_of_work_that_is_not_there_is_idle_and_neither_met_nor_missed() -> None:
    quiet = {"client.p95_ms": 70.0, "recovery.bytes_s": 0.0, "recovery.objects_s": 0.0, "recovery.objects_left": 0.0}
    by_metric = {verdict.objective.metric: verdict for verdict in Judge(SLO).verdicts_at_work(quiet)}
    assert (by_metric["recovery.bytes_s"].met, by_metric["recovery.bytes_s"].idle) == (None, True)
    assert by_metric["client.p95_ms"].met
    # what was not seen is not idle, and work that is there and stands still misses its rate
    assert not by_metric["client.p99_ms"].idle
    stuck = {**quiet, "recovery.objects_left": 7.0}
    assert [verdict.met for verdict in Judge(SLO).verdicts_at_work(stuck)] == [True, False, None]
    assert [verdict.met for verdict in Judge(SLO).verdicts(quiet)] == [True, False, None]


WISHES = {"objectives": ["client.p95_ms <= 80 ms", "recovery.bytes_s >= 8 MB/s"]}
FAST = {"client.p95_ms": 70.0, "recovery.bytes_s": 8e7}


def test_a_goal_takes_what_the_bounds_leave() -> None:
    careful = {"client.p95_ms": 10.0, "recovery.bytes_s": 1.6e7}
    assert Judge(parse_slo(WISHES)).loss({**FAST, "recovery.bytes_s": 4e7}) > Judge(parse_slo(WISHES)).loss(careful)
    judge = Judge(parse_slo({**WISHES, "maximise": "recovery.bytes_s"}), BASELINE)
    assert judge.rank({**FAST, "recovery.bytes_s": 4e7}) < judge.rank(careful)
    # no goal is worth a hard objective, nor worth being unseen
    assert judge.rank({**FAST, "client.p95_ms": 81.0, "recovery.bytes_s": 1e12}) > judge.rank(careful)
    unseen = Judge(parse_slo({**WISHES, "minimise": "snaptrim.drain_s"}), {"snaptrim.drain_s": 60.0})
    assert unseen.loss(FAST) > unseen.loss({**FAST, "snaptrim.drain_s": 3600.0})


@given(st.floats(0, 10), st.floats(0, 10))
def test_nothing_left_is_the_best_that_a_goal_can_be(one: float, other: float) -> None:
    judge = Judge(parse_slo({**WISHES, "minimise": "scrub.pgs_late"}), {"scrub.pgs_late": 4.0})
    losses = [judge.loss({**FAST, "scrub.pgs_late": value}) for value in (0.0, *sorted((one, other)))]
    assert losses == sorted(losses)
    assert losses[0] < judge.loss({**FAST, "scrub.pgs_late": 1.0})
    served = Judge(parse_slo({**WISHES, "maximise": "client.iops"}), {"client.iops": 100.0})
    assert served.loss({**FAST, "client.iops": 0.0}) == served.loss(FAST) > served.loss({**FAST, "client.iops": 50.0})


@given(st.floats(1, 1e9), st.floats(1, 1e9))
def test_a_better_goal_never_has_a_larger_loss_and_a_tenth_is_worth_a_write(one: float, other: float) -> None:
    judge = Judge(parse_slo({**WISHES, "minimise": "recovery.finish_s"}), {"recovery.finish_s": 100.0})
    losses = [judge.loss({**FAST, "recovery.finish_s": value}) for value in sorted((one, other))]
    assert losses[0] <= losses[1]
    gain = judge.loss({**FAST, "recovery.finish_s": one}) - judge.loss({**FAST, "recovery.finish_s": 0.9 * one})
    assert gain == pytest.approx(LEAST_GAIN[False], rel=0.1)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=5))
def test_many_margins_at_once_count_as_each_by_itself(margins: list) -> None:  # type: ignore[type-arg]
    judge = Judge(parse_slo({**WISHES, "minimise": "recovery.finish_s"}))
    assert list(judge.counted(np.asarray(margins), np.minimum)) == pytest.approx([judge.counted(m) for m in margins])
    assert [judge.counted(m) < 0 for m in margins] == [m < 0 for m in margins]
    assert [Judge(parse_slo(WISHES)).counted(m) for m in margins] == margins


def test_hard_objectives_that_are_missed_or_not_seen_are_named() -> None:
    means = {"client.p95_ms": 90.0, "client.p99_ms": 500.0}
    assert [each.metric for each in Judge(SLO).missed_hard(means)] == ["client.p95_ms", "recovery.bytes_s"]
    assert not Judge(SLO).keeps_hard(means)
    assert Judge(SLO).keeps_hard({**means, "client.p95_ms": 80.0, "recovery.bytes_s": 8e6})


def test_without_an_slo_nothing_is_missed() -> None:
    judge = Judge(None, BASELINE)
    assert (judge.verdicts({}), judge.must_hold(), judge.rank({})) == ([], {}, (False, 0.0))


def test_a_cluster_is_judged_by_what_it_keeps_unless_told_otherwise() -> None:
    store = MemoryStore()
    assert stored_judge(store).slo is None
    store.set(SLO_KEY, '{"objectives": ["client.p95_ms <= 1.5 * baseline"]}')
    store.set(BASELINE_KEY, '{"client.p95_ms": 10.0}')
    assert [verdict.bound for verdict in stored_judge(store).verdicts({})] == [15.0]
    assert stored_judge(store, SLO) == Judge(SLO, {"client.p95_ms": 10.0})
