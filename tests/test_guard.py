from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.goals.guard import Guard, GuardLimits, Sight
from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.goals.slo import parse_slo

SLO = parse_slo({"objectives": ["client.p95_ms <= 80 ms", "client.iops >= 200", "recovery.bytes_s >= 10 MB/s"]})
BASELINE = {"client.p95_ms": 100.0, "client.iops": 250.0, "recovery.bytes_s": 26e6}
BEFORE = Sight(0.0, "HEALTH_WARN")


def sight(health: str = "HEALTH_OK", **values: float) -> Sight:
    return Sight(0.0, health, {name.replace("__", "."): value for name, value in values.items()})


def guard(before: Sight = BEFORE, **limits: float) -> Guard:
    return Guard(Judge(SLO, BASELINE), before, GuardLimits(**limits))


def test_a_quiet_cluster_is_left_alone() -> None:
    watch = guard()
    assert all(watch.watch(sight(client__p95_ms=70.0, client__iops=250.0)) is None for _ in range(50))


def test_an_osd_down_or_a_health_error_stops_at_once() -> None:
    breach = guard().watch(sight(osds__down=1))
    assert breach is not None
    assert "1 OSDs down, 0 before" in breach.reason
    breach = guard().watch(sight("HEALTH_ERR"))
    assert breach is not None
    assert breach.rule == "health"


def test_what_was_so_before_the_trial_does_not_count() -> None:
    watch = guard(sight("HEALTH_ERR", osds__down=1, pgs__inactive=3, ops__slow=7))
    same = sight("HEALTH_ERR", osds__down=1, pgs__inactive=3, ops__slow=7)
    assert all(watch.watch(same) is None for _ in range(10))
    assert watch.watch(sight("HEALTH_ERR", osds__down=2)) is not None


@pytest.mark.parametrize(("name", "times"), [("ops__slow", 2), ("pgs__inactive", 4)])
def test_a_state_that_may_pass_must_be_seen_several_times_in_a_row(name: str, times: int) -> None:
    watch = guard()
    for _ in range(times - 1):
        assert watch.watch(sight(**{name: 2})) is None
    assert watch.watch(sight(**{name: 0})) is None
    for _ in range(times - 1):
        assert watch.watch(sight(**{name: 2})) is None
        # a sight that does not show it neither adds to the row nor ends it
        assert watch.watch(sight()) is None
    assert watch.watch(sight(**{name: 1})) is not None


def test_a_gross_breach_of_a_hard_client_objective_stops_the_trial() -> None:
    watch = guard()
    assert watch.watch(sight(client__p95_ms=170.0)) is None
    assert watch.watch(sight(client__p95_ms=170.0)) is None
    breach = watch.watch(sight(client__p95_ms=170.0))
    assert breach is not None
    assert breach.reason.startswith("client.p95_ms at 170 ms")
    slow = guard()
    assert [slow.watch(sight(client__iops=90.0)) is None for _ in range(3)] == [True, True, False]


def test_a_breach_that_the_baseline_shows_as_well_stops_nothing() -> None:
    bad = Guard(Judge(SLO, {"client.p95_ms": 200.0}), sight(), GuardLimits())
    assert all(bad.watch(sight(client__p95_ms=240.0)) is None for _ in range(5))
    assert [bad.watch(sight(client__p95_ms=260.0)) is None for _ in range(3)] == [True, True, False]


def test_slow_background_work_and_soft_objectives_stop_nothing() -> None:
    watch = guard()
    assert all(watch.watch(sight(recovery__bytes_s=0.0)) is None for _ in range(10))
    soft = parse_slo({"objectives": [{"objective": "client.p95_ms <= 80 ms", "hard": False}]})
    lenient = Guard(Judge(soft, BASELINE), sight(), GuardLimits())
    assert all(lenient.watch(sight(client__p95_ms=1000.0)) is None for _ in range(10))


def test_a_cluster_that_does_not_answer_three_times_in_a_row_is_not_safe() -> None:
    watch = guard()
    assert watch.watch(None) is None
    assert watch.watch(None) is None
    assert watch.watch(sight()) is None
    assert [watch.watch(None) is None for _ in range(3)] == [True, True, False]


@given(st.floats(0, 160))
def test_latencies_within_the_factor_never_stop(latency: float) -> None:
    watch = guard()
    assert all(watch.watch(sight(client__p95_ms=latency)) is None for _ in range(5))


@pytest.mark.parametrize(
    ("limit", "wrong", "right", "words"),
    [
        ("gross", 1.0, 1.01, "gross (=1.0) must be above 1"),
        ("gross", math.nan, 2.0, "gross (=nan) must be above 1"),
        ("worse_than_baseline", 0.5, 1.0, "worse_than_baseline (=0.5) at least 1"),
        ("patience", 0, 1, "patience (=0, "),
        ("patience_pgs", 0, 1, "of PGs =0,"),
        ("patience_clients", 0, 1, "of clients =0)"),
        ("blind", 0, 1, "blind (=0) must be at least 1"),
        ("patience_laggy", 0, None, "patience_laggy (=0) must be at least 1"),
        ("slow_ops", -1, 0, "slow_ops (=-1) at least 0"),
    ],
)
def test_limits_that_make_no_sense_are_refused(limit: str, wrong: object, right: object, words: str) -> None:
    # each for its own reason, and the next that does make sense is taken
    with pytest.raises(ValueError, match=re.escape(words)):
        GuardLimits(**{limit: wrong})  # type: ignore[arg-type]
    assert getattr(GuardLimits(**{limit: right}), limit) == right  # type: ignore[arg-type]


def test_a_pool_that_became_nearly_full_stops_at_once_and_one_that_was_so_does_not() -> None:
    full = Sight(0.0, "HEALTH_WARN", checks=frozenset({"POOL_NEAR_FULL", "POOL_APP_NOT_ENABLED"}))
    breach = guard().watch(full)
    assert breach is not None
    assert (breach.rule, breach.reason) == ("near-full", "POOL_NEAR_FULL was raised")
    assert guard(full).watch(full) is None
    assert guard(full).watch(Sight(0.0, "HEALTH_WARN", checks=full.checks | {"OSD_BACKFILLFULL"})) is not None


def test_a_lesser_check_of_the_same_family_is_no_new_fault() -> None:
    def space(*names: str) -> Sight:
        return Sight(0.0, "HEALTH_WARN", checks=frozenset(names))

    assert guard(space("OSD_FULL")).watch(space("OSD_NEARFULL")) is None
    assert guard(space("OSD_FULL")).watch(space("OSD_NEARFULL", "OSD_BACKFILLFULL", "OSD_FULL")) is None
    assert guard(space("OSD_NEARFULL")).watch(space("OSD_BACKFILLFULL")) is not None
    # an OSD that is full is no pool that is
    breach = guard(space("OSD_FULL")).watch(space("POOL_NEAR_FULL", "POOL_FULL"))
    assert breach is not None
    assert breach.reason == "POOL_FULL, POOL_NEAR_FULL were raised"


def test_laggy_pgs_and_more_slow_operations_count_as_the_limits_say() -> None:
    assert all(guard().watch(sight(pgs__laggy=9)) is None for _ in range(9))
    watch = guard(patience_laggy=2)
    assert [watch.watch(sight(pgs__laggy=9)) is None for _ in range(2)] == [True, False]
    lenient = guard(sight(ops__slow=4), slow_ops=5, patience=1)
    assert lenient.watch(sight(ops__slow=9)) is None
    breach = lenient.watch(sight(ops__slow=10))
    assert breach is not None
    assert breach.reason == "10 slow operations, 4 before, 5 more are borne"


STARVING = {"client__iops": 0.0, "queue__client": 12.0}
"""Operations wait in the queues, and none ends: no latency is seen."""


def test_clients_whose_operations_wait_and_never_end_are_grossly_off() -> None:
    watch = guard()
    assert [watch.watch(sight(**STARVING)) is None for _ in range(2)] == [True, True]
    breach = watch.watch(sight(**STARVING))
    assert breach is not None
    assert breach.reason == "client.p95_ms is not seen: clients wait, and no operation of theirs ends"


@pytest.mark.parametrize(
    "others",
    [
        {"client__iops": 0.0, "queue__client": 0.0},  # they went home
        {"client__iops": 240.0, "queue__client": 12.0},  # their latency was not asked for in time
        {"queue__client": 12.0},
    ],
)
def test_a_latency_that_is_not_seen_for_another_reason_stops_nothing_and_clears_nothing(others: dict) -> None:
    slo = parse_slo({"objectives": ["client.p95_ms <= 80 ms"]})
    watch = Guard(Judge(slo, BASELINE), BEFORE, GuardLimits())
    assert all(watch.watch(sight(**others)) is None for _ in range(9))
    gross = [watch.watch(sight(client__p95_ms=170.0)), watch.watch(sight(**others))]
    gross += [watch.watch(sight(client__p95_ms=170.0)) for _ in range(2)]
    assert [breach is None for breach in gross] == [True, True, True, False]


def test_clients_that_nobody_saw_at_work_before_do_not_wait() -> None:
    slo = parse_slo({"objectives": ["client.p95_ms <= 80 ms"]})
    watch = Guard(Judge(slo, {}), BEFORE, GuardLimits())
    assert all(watch.watch(sight(**STARVING)) is None for _ in range(9))
