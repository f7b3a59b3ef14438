from __future__ import annotations

import math
from dataclasses import replace
from typing import Dict

import pytest
from flights import P95, RECOVERY, SETTINGS, UNSEEN, effect
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.autopilot.contract import BETTER, UNKNOWN, Effect
from ceph_tuner.core.autopilot.events import Learn
from ceph_tuner.core.autopilot.judgement import STAND_INS
from ceph_tuner.core.autopilot.learning import absolute, estimated, trial_of
from ceph_tuner.core.goals.goal import objective_metrics
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.core.goals.trial import Trial
from ceph_tuner.core.measure.forecast_record import SEARCH_LEVEL, SEARCH_MODEL
from ceph_tuner.core.measure.metrics import METRICS
from ceph_tuner.core.measure.sample import finish_s

FINISH = "recovery.finish_s"


def of(*effects: Effect) -> Dict[str, Effect]:
    return {found.metric: found for found in effects}


# an interval narrower than a float's own steps cannot be told from none
HALF_WIDTHS = st.just(0.0) | st.floats(1e-6, 3.0)


@given(st.floats(0.1, 1e9), st.floats(-0.99, 20.0), HALF_WIDTHS, st.integers(1, 500))
def test_a_metric_is_estimated_as_its_baseline_with_the_effect_on_it(
    before: float, change: float, half: float, windows: int
) -> None:
    found = estimated({P95: before}, of(Effect(P95, change, change - half, change + half, windows, UNKNOWN)))[P95]
    assert found.mean == pytest.approx(before * (1.0 + change))
    assert found.count == windows
    # the interval's half width is 1.96 standard errors: what the optimiser takes for the mean's error is that
    assert found.deviation / math.sqrt(windows) == pytest.approx(before * half / 1.96, rel=1e-3)


def test_a_wider_interval_is_a_less_certain_measure() -> None:
    known = effect(P95, BETTER)
    narrow = estimated({P95: 50.0}, of(known))[P95]
    wide = estimated({P95: 50.0}, of(replace(known, high=known.high + 0.5)))[P95]
    assert wide.mean == narrow.mean
    assert wide.error > narrow.error


def test_what_no_effect_was_seen_on_is_left_out() -> None:
    baseline = {P95: 50.0, RECOVERY: 100.0, "client.iops": 300.0}
    found = estimated(baseline, of(effect(P95, BETTER), effect(RECOVERY, UNKNOWN, UNSEEN)))
    assert set(found) == {P95}


def test_what_was_not_there_before_has_no_estimate() -> None:
    assert estimated({}, of(effect(P95, BETTER))) == {}


def test_an_unbounded_interval_is_a_measure_all_the_same() -> None:
    found = estimated({P95: 50.0}, of(Effect(P95, -0.2, -math.inf, math.inf, 1, UNKNOWN)))[P95]
    assert (found.mean, found.deviation, found.count) == (pytest.approx(40.0), 0.0, 1)


@given(st.floats(1.0, 1e6), st.floats(0.1, 1e4), st.floats(-0.9, 5.0))
def test_a_time_to_finish_is_the_work_left_over_the_rate_that_stands_in_for_it(
    left: float, rate: float, change: float
) -> None:
    baseline = {FINISH: left / rate}
    found = estimated(baseline, of(Effect(RECOVERY, change, change - 0.1, change + 0.1, 9, UNKNOWN)))[FINISH]
    assert found.mean == pytest.approx(left / (rate * (1.0 + change)))
    if left / (rate * (1.0 + change)) < 1e8:
        assert found.mean == pytest.approx(finish_s(left, rate * (1.0 + change)))


def test_what_is_no_time_follows_its_stand_in_as_it_is() -> None:
    found = estimated({"backfill.objects_s": 40.0}, of(Effect(RECOVERY, 0.5, 0.4, 0.6, 9, BETTER)))
    assert found["backfill.objects_s"].mean == pytest.approx(60.0)


@pytest.mark.parametrize("metric", sorted(STAND_INS))
@pytest.mark.parametrize("change", [-0.4, 0.5])
def test_what_stands_in_never_tells_the_optimiser_the_opposite(metric: str, change: float) -> None:
    name = STAND_INS[metric]
    found = estimated({metric: 40.0}, of(Effect(name, change, change - 0.1, change + 0.1, 9, BETTER)))[metric]
    gets_better = METRICS[metric].lower_is_better == (found.mean < 40.0)
    assert gets_better == (METRICS[name].lower_is_better == (change < 0))


def test_the_metric_itself_outranks_its_stand_in() -> None:
    own, other = Effect(FINISH, -0.5, -0.6, -0.4, 9, BETTER), Effect(RECOVERY, 3.0, 2.0, 4.0, 9, BETTER)
    assert estimated({FINISH: 100.0}, of(own, other))[FINISH].mean == pytest.approx(50.0)


def test_a_rate_that_fell_to_nothing_makes_no_time_that_cannot_be_stored() -> None:
    for metric in STAND_INS:
        gone = Effect(STAND_INS[metric], -1.0, -1.0, -0.9, 9, UNKNOWN)
        for found in estimated({metric: 100.0}, of(gone)).values():
            assert math.isfinite(found.mean)


@pytest.mark.parametrize("failed", ["", "harm: client.p95_ms 40% higher"])
def test_the_record_of_a_trial_survives_the_history(failed: str) -> None:
    forecast = {"at": 1.0, "model": SEARCH_MODEL, "level": SEARCH_LEVEL, "metrics": {P95: [40.0, 30.0, 55.0]}}
    result = Learn(SETTINGS, of(effect(P95, BETTER)), {P95: 50.0}, 7, failed, forecast)
    record = trial_of(result, 1000.0, 600.0)
    assert Trial.from_dict(record.to_dict()) == record
    assert (record.run.kind, record.run.label, record.failed) == ("trial", "trial 7", failed or None)
    assert record.run.settings == SETTINGS
    assert record.run.expected == {P95: (40.0, 30.0, 55.0)}
    assert record.notes


def test_a_forecast_that_cannot_be_read_costs_no_result() -> None:
    record = trial_of(Learn(SETTINGS, {}, {}, 7, forecast={"metrics": "many"}), 1000.0, 600.0)
    assert record.run.expected == {}


# bounds


@given(
    st.lists(st.sampled_from(objective_metrics()), min_size=1, max_size=5, unique=True),
    st.floats(0.1, 10.0),
    st.floats(0.1, 1e4),
    st.floats(0.1, 1e4),
)
def test_bounds_as_numbers_give_the_verdicts_that_relative_ones_gave_and_follow_no_change(
    metrics: list, factor: float, reference: float, seen: float
) -> None:
    sides = {name: "<=" if METRICS[name].lower_is_better else ">=" for name in metrics}
    slo = parse_slo({"objectives": [f"{name} {sides[name]} {factor} * baseline" for name in metrics]}, "cluster")
    means, first = dict.fromkeys(metrics, seen), dict.fromkeys(metrics, reference)
    fixed = absolute(slo, first)
    assert not fixed.needs_baseline
    assert [verdict.met for verdict in Judge(fixed).verdicts(means)] == [
        verdict.met for verdict in Judge(slo, first).verdicts(means)
    ]
    # another reference moves nothing any more
    assert absolute(fixed, dict.fromkeys(metrics, 2.0 * reference)) == fixed


def test_bounds_as_numbers_keep_everything_else() -> None:
    slo = parse_slo(
        {
            "objectives": [
                {"objective": "client.p95_ms<=1.5*baseline", "hard": False, "priority": 3.0},
                "recovery.bytes_s>=20e6",
            ]
        },
        "cluster",
    )
    relative, number = absolute(slo, {P95: 40.0}).objectives
    assert (relative.bound.value, relative.hard, relative.priority) == (60.0, False, 3.0)
    assert number == slo.objectives[1]


def test_a_bound_whose_reference_was_not_seen_stays_relative() -> None:
    slo = parse_slo({"objectives": ["client.p95_ms<=1.5*baseline"]}, "cluster")
    assert absolute(slo, {}) == slo
