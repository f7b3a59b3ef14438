from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Callable, Dict, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.goal import Goal, objective_metrics
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo import (
    Bound,
    Objective,
    Slo,
    parse_objective,
    parse_slo,
    wanted_of,
)
from ceph_tuner.core.measure.metrics import CLASS, METRICS, POOL, Scope, scoped

_SCOPES = (None, Scope(CLASS, "nvme"), Scope(POOL, "a.b-c_d"))
metrics = st.sampled_from(
    [scoped(name, scope) for name in objective_metrics() for scope in _SCOPES if scoped(name, scope) in METRICS]
)
amounts = st.one_of(
    st.floats(min_value=1e-6, max_value=1e9, allow_nan=False, allow_infinity=False), st.integers(1, 10**9).map(float)
)


def right_side(metric: str) -> str:
    return "<=" if METRICS[metric].lower_is_better else ">="


@st.composite
def objectives(draw: st.DrawFn) -> Objective:
    metric = draw(metrics)
    relative = draw(st.booleans())
    return Objective(
        metric,
        right_side(metric),
        Bound(draw(amounts.filter(lambda factor: not relative or factor <= 1e6)), relative),
        draw(st.booleans()),
        draw(st.floats(min_value=0.01, max_value=1000)),
    )


@given(objectives())
def test_an_objective_reads_back_as_it_was_written(objective: Objective) -> None:
    assert parse_objective(objective.to_dict()) == objective


@given(metrics, amounts, st.floats(0, 1e12), st.floats(0, 1e12))
def test_a_better_measurement_never_has_a_smaller_margin(metric: str, bound: float, one: float, other: float) -> None:
    objective = Objective(metric, right_side(metric), Bound(bound))
    worse, better = sorted([one, other], reverse=METRICS[metric].lower_is_better)
    assert objective.margin(better, bound) >= objective.margin(worse, bound)


@given(metrics, amounts)
def test_a_measurement_on_the_bound_meets_it_with_no_margin(metric: str, bound: float) -> None:
    slo = Slo("one", (Objective(metric, right_side(metric), Bound(bound)),))
    (verdict,) = Judge(slo).verdicts({metric: bound})
    assert verdict.met is True
    assert verdict.margin == 0


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("client.p95_ms <= 80 ms", 80.0),
        ("client.p95_ms<=80", 80.0),
        ("client.p95_ms ≤ 0.08 s", 80.0),
        ("client.p95_ms <= 500us", 0.5),
        ("recovery.bytes_s >= 10 MB/s", 10e6),
        ("recovery.bytes_s >= 10 MiB/s", 10 * 2**20),
        ("scrub.interval_s <= 7 d", 7 * 86400.0),
        ("scrub.interval_s <= 14 days", 14 * 86400.0),
        ("scrub.interval_s <= 1 day", 86400.0),
        ("scrub.interval_s <= 2 weeks", 14 * 86400.0),
        ("recovery.finish_s <= 2 h", 7200.0),
        ("recovery.finish_s <= 2.5 hours", 9000.0),
        ("recovery.finish_s <= 1 hour", 3600.0),
        ("recovery.finish_s <= 90minutes", 5400.0),
        ("recovery.finish_s <= 30 seconds", 30.0),
        ("client.iops >= 2 kIOPS", 2000.0),
        ("ops.slow <= 0", 0.0),
    ],
)
def test_bounds_are_read_in_units_that_fit_the_metric(line: str, value: float) -> None:
    assert parse_objective(line).bound == Bound(value)


@pytest.mark.parametrize("bound", ["1.2 * baseline", "baseline * 1.2", "1.2*baseline", "1.2 × baseline"])
def test_a_bound_can_be_relative_to_the_baseline(bound: str) -> None:
    objective = parse_objective(f"client.p95_ms <= {bound}")
    assert objective.bound == Bound(1.2, relative=True)
    assert objective.bound.resolve(50.0) == 60.0
    assert objective.bound.resolve(None) is None


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("client.p95 <= 80 ms", "client.p95_ms"),
        ("nonsense.rate >= 1", "one of"),
        ("client.p95_ms >= 80 ms", "client.p95_ms <= (less of it is better)"),
        ("recovery.bytes_s < 1 MB/s", "recovery.bytes_s >= (more of it is better)"),
        ("client.p95_ms <= 80 MB/s", "a unit out of ms"),
        ("scrub.interval_s <= 14 dayss", "a unit out of s, min, h, d, w, or"),
        ("client.iops >= 14 days", "a unit out of /s"),
        ("recovery.bytes_s >= 10 mb/s", "MB/s"),
        ("client.p95_ms <= -3 ms", "expected 0 to 1e+09 ms"),
        ("client.p95_ms <= 1e999 ms", "expected 0 to 1e+09 ms"),
        ("recovery.bytes_s >= 1e290 GB/s", "expected 0 to 1e+16 B/s"),
        ("client.iops >= 1e300", "expected 0 to 1e+12 1/s"),
        ("ops.slow <= 1e300", "expected 0 to 1e+12"),
        ("client.p95_ms <= 1e9 * baseline", "at most 1e+06"),
        ("client.p95_ms <= nan", "a number"),
        ("client.p95_ms <= 0 * baseline", "factor above 0"),
        ("client.p95_ms", "METRIC <= BOUND"),
        ("queue.client <= 3", "one of"),
        ("ops.slow <= 3 ms", "a number"),
    ],
)
def test_a_wrong_objective_is_refused_in_one_line_that_says_what_is_right(line: str, words: str) -> None:
    with pytest.raises(InputError) as refusal:
        parse_objective(line, lambda *keys: "slo.yaml:3")
    assert str(refusal.value).startswith("slo.yaml:3: found ")
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ([], "slo: "),
        ({}, "slo.objectives: "),
        ({"objectives": "client.p95_ms <= 1"}, "slo.objectives: "),
        ({"objectives": [3]}, "slo.objectives.0: "),
        ({"objectives": [{"objective": "client.p95_ms <= 1", "heard": True}]}, "slo.objectives.0.heard: "),
        ({"objectives": [{"objective": "client.p95_ms <= 1", "hard": "yes"}]}, "slo.objectives.0.hard: "),
        ({"objectives": [{"objective": "client.p95_ms <= 1", "priority": 0}]}, "slo.objectives.0.priority: "),
        ({"objectives": [{"objective": "client.p95_ms <= 1", "priority": True}]}, "slo.objectives.0.priority: "),
        ({"objectives": ["client.p95_ms <= 1", "client.p95_ms <= 2"]}, "slo.objectives: "),
        ({"name": "A b", "objectives": ["client.p95_ms <= 1"]}, "slo.name: "),
        ({"name": 7, "objectives": ["client.p95_ms <= 1"]}, "slo.name: "),
    ],
)
def test_wrong_data_is_refused_at_its_place(data: object, place: str) -> None:
    with pytest.raises(InputError) as refusal:
        parse_slo(data)
    assert str(refusal.value).startswith(place)


PLAIN = [name for name in METRICS if "{" not in name and name in objective_metrics()]


@given(
    st.lists(objectives(), min_size=1, max_size=6, unique_by=lambda o: (o.metric, o.hard)),
    st.none() | st.sampled_from(PLAIN),
)
def test_an_slo_reads_back_as_it_was_written(listed: list[Objective], metric: Optional[str]) -> None:
    slo = Slo("some", tuple(listed), None if metric is None else Goal(metric))
    assert parse_slo(slo.to_dict()) == slo
    assert set(slo.metrics) == {objective.metric for objective in listed} | ({metric} if metric else set())


@pytest.mark.parametrize(
    ("given", "place", "words"),
    [
        ({"minimise": "recovery.bytes_s"}, "slo.minimise: ", "maximise: recovery.bytes_s (more of it is better)"),
        ({"maximise": "client.p95_ms"}, "slo.maximise: ", "minimise: client.p95_ms (less of it is better)"),
        ({"minimise": "client.p95"}, "slo.minimise: ", "client.p95_ms"),
        ({"minimise": "recovery.objects_left"}, "slo.minimise: ", "one of"),
        ({"minimise": ["client.p95_ms"]}, "slo.minimise: ", "the name of one metric"),
        ({"minimise": "client.p95_ms", "maximise": "client.iops"}, "slo.maximise: ", "one goal"),
        ({"minimise": "client.mean_ms{pool=a}"}, "slo.minimise: ", "of a device class"),
    ],
)
def test_a_wrong_goal_is_refused_at_its_place(given: Dict[str, object], place: str, words: str) -> None:
    with pytest.raises(InputError) as refusal:
        parse_slo({"objectives": ["client.p95_ms <= 1"], **given})
    assert str(refusal.value).startswith(place)
    assert words in str(refusal.value)


def test_a_goal_counts_as_a_wish_for_its_work_and_its_class() -> None:
    data = {"objectives": ["client.p95_ms{class=nvme} <= 2 ms", "client.p95_ms <= 9 ms"]}
    whole = parse_slo({**data, "minimise": "recovery.finish_s"})
    assert whole.work == {"client", "recovery"}
    # that of the whole cluster is not one of the class alone, and holds where one class is tuned
    nvme = whole.of_class("nvme")
    assert nvme is not None
    assert nvme.goal is None
    assert wanted_of(whole, "nvme").goal == Goal("recovery.finish_s")
    own = parse_slo({**data, "maximise": "client.iops{class=nvme}"})
    assert own.goal is not None
    assert own.goal.text == "maximise client.iops{class=nvme}"
    assert wanted_of(own, "nvme").goal == Goal("client.iops")
    assert wanted_of(parse_slo({**data, "maximise": "client.iops{class=hdd}"}), "nvme").goal is None


def test_an_slo_knows_the_kinds_of_work_it_is_about() -> None:
    slo = parse_slo({"objectives": ["client.p95_ms <= 80 ms", "recovery.bytes_s >= 1 MB/s"]})
    assert slo.work == {"client", "recovery"}
    assert not slo.needs_baseline


P95 = Objective("client.p95_ms", "<=", Bound(1.0))


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Bound(math.nan), "bound (=nan) must be a finite number"),
        (lambda: Bound(math.inf), "bound (=inf) must be a finite number"),
        (lambda: Bound(-1.0), "bound (=-1.0) must be a finite number"),
        (lambda: Bound(0.0, relative=True), "bound (=0.0) must be a finite number"),
        (lambda: replace(P95, comparison=">="), "client.p95_ms is bounded by <= (=>=)"),
        (lambda: replace(P95, metric="queue.client"), "no objective can be about 'queue.client'"),
        (lambda: replace(P95, priority=0.0), "priority (=0.0) must be above 0"),
        (lambda: replace(P95, priority=math.nan), "priority (=nan) must be above 0"),
        (lambda: replace(P95, priority=1e9), "priority (=1000000000.0) must be above 0"),
        (lambda: Slo("empty", ()), "at least one objective"),
        (lambda: Slo("-a", (P95,)), "name (='-a') is 1 to 64"),
        (lambda: Slo("twice", (P95, P95)), "client.p95_ms has two hard objectives"),
    ],
)
def test_values_that_are_wrong_cannot_be_built(build: Callable[[], object], words: str) -> None:
    # each for its own reason
    with pytest.raises(ValueError, match=re.escape(words)):
        build()


def test_values_at_the_edge_of_what_is_right_can_be_built() -> None:
    assert Bound(0.0).value == 0.0
    assert Slo("a", (replace(P95, priority=1e-9), replace(P95, hard=False))).name == "a"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("client.p95_ms{class=} <= 2 ms", "scope of one device class or one pool"),
        ("client.p95_ms{host=h1} <= 2 ms", "scope of one device class or one pool"),
        ("client.p95_ms{class=a,pool=b} <= 2 ms", "scope of one device class or one pool"),
        ("ops.slow{pool=volumes} <= 2", "OSDs do not tell it by pool"),
        ("queue.client{class=nvme} <= 2", "one of"),
        ("no.such{class=nvme} <= 2", "one of"),
    ],
)
def test_a_scope_that_is_none_is_refused_with_one_that_is(line: str, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        parse_objective(line)


MIXED = parse_slo(
    {
        "name": "mixed",
        "objectives": [
            "client.p95_ms <= 80 ms",
            "client.p95_ms{class=nvme} <= 2 ms",
            "client.p95_ms{pool=volumes} <= 5 ms",
            "recovery.bytes_s{class=hdd} >= 50 MB/s",
            "client.mean_ms{pool=cold} <= 1.2 * baseline",
        ],
    }
)


def test_an_objective_says_what_it_is_about() -> None:
    assert MIXED.scopes == (
        Scope(CLASS, "nvme"),
        Scope(POOL, "volumes"),
        Scope(CLASS, "hdd"),
        Scope(POOL, "cold"),
    )
    assert MIXED.work == {"client", "recovery"}
    assert parse_slo(MIXED.to_dict()) == MIXED


def test_what_is_wanted_of_a_class_is_an_slo_of_its_own() -> None:
    nvme, hdd = MIXED.of_class("nvme", ["volumes"]), MIXED.of_class("hdd", ["cold"])
    assert nvme is not None
    assert hdd is not None
    assert [each.text for each in nvme.objectives] == ["client.p95_ms <= 2 ms", "client.p95_ms{pool=volumes} <= 5 ms"]
    assert [each.metric for each in hdd.objectives] == ["recovery.bytes_s", "client.mean_ms{pool=cold}"]
    assert MIXED.of_class("ssd") is None


def test_each_scope_is_held_against_its_own_measurement() -> None:
    seen = {"client.p95_ms": 90.0, "client.p95_ms{class=nvme}": 1.0, "client.mean_ms{pool=cold}": 3.0}
    verdicts = Judge(MIXED, {"client.mean_ms{pool=cold}": 2.0, "client.mean_ms": 9.0}).verdicts(seen)
    assert [verdict.met for verdict in verdicts] == [False, True, None, None, False]


CLASSES = parse_slo(
    {
        "name": "hybrid",
        "objectives": [
            "client.p95_ms <= 80 ms",
            "client.p99_ms <= 200 ms",
            "client.p95_ms{class=nvme} <= 2 ms",
            "recovery.bytes_s{class=hdd} >= 50 MB/s",
        ],
    }
)


def test_where_a_class_is_tuned_its_own_objectives_go_before_the_clusters() -> None:
    assert [each.text for each in wanted_of(CLASSES, "nvme").objectives] == [
        "client.p95_ms <= 2 ms",
        "client.p99_ms <= 200 ms",
    ]
    whole = parse_slo({"objectives": ["client.p95_ms <= 80 ms"]})
    assert wanted_of(whole, "") is whole is wanted_of(whole, "nvme")


@pytest.mark.parametrize(
    ("slo", "device_class", "expected"),
    [
        (CLASSES, "", "osd/class:nvme"),
        (MIXED, "nvme", "automatic mode"),
        (parse_slo({"objectives": ["client.p95_ms{class=nvme} <= 2 ms"]}), "hdd", "no objective of the class hdd"),
    ],
)
def test_what_is_not_tuned_is_no_objective_of_it(slo: Slo, device_class: str, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        wanted_of(slo, device_class)
