"""A twin has drifted where its intervals held less often than they promise, beyond chance."""

from __future__ import annotations

from typing import Iterable, List

import numpy as np
import pytest
from patients import healthy

from ceph_tuner.core.changes.forecast_pairs import ForecastPair
from ceph_tuner.core.measure.forecast_record import SEARCH_MODEL, ForecastInterval
from ceph_tuner.doctor.twin_drift import NEWEST, twin_drift, undercoverage

P95, RATE = "client.p95_ms", "recovery.bytes_s"


def pairs(held: Iterable[bool], metric: str = P95, model: str = "m1") -> List[ForecastPair]:
    interval = ForecastInterval(5.0, 4.0, 8.0)
    return [
        ForecastPair(float(at), f"change {at}", metric, 0.9, interval, 5.0 if inside else 20.0, model)
        for at, inside in enumerate(held)
    ]


def test_nothing_is_said_of_a_twin_that_keeps_its_promise_or_of_none() -> None:
    assert twin_drift(healthy()) == []
    assert twin_drift(healthy(forecasts=tuple(pairs([True] * 18 + [False] * 2)))) == []


def test_a_twin_that_is_wrong_half_of_the_time_has_drifted() -> None:
    (found,) = twin_drift(healthy(forecasts=tuple(pairs([True, False] * 10))))
    assert found.check == "twin-drift"
    assert "client.p95_ms: 10 of 20 measurements inside the interval that promises 90%" in found.evidence[0]
    assert found.share == pytest.approx(0.4)


@pytest.mark.parametrize(("missed", "drift"), [(1, False), (2, True)])
def test_a_few_pairs_decide_only_where_chance_could_not(missed: int, drift: bool) -> None:
    # of two pairs both outside: 0.1 x 0.1 = 1%
    assert bool(undercoverage(pairs([False] * missed + [True] * (2 - missed)))) == drift


def test_many_metrics_share_what_is_left_of_the_confidence() -> None:
    wrong = pairs([False, False])
    right = [pair for number in range(9) for pair in pairs([True] * 2, f"client.{number}")]
    assert undercoverage(wrong)
    assert undercoverage([*right, *wrong]) == []


def test_a_twin_that_was_fitted_again_is_another_one() -> None:
    assert undercoverage([*pairs([False] * 20), *pairs([True] * 5, model="m2")]) == []


def test_each_device_class_has_a_twin_of_its_own() -> None:
    disks = pairs([False] * 20, "client.p95_ms{class=hdd}", "hdd 01")
    flash = pairs([True] * 20, "client.p95_ms{class=ssd}", "ssd 01")
    for order in ([*disks, *flash], [*flash, *disks]):
        (found,) = undercoverage(order)
        assert found.coverage.metric == "client.p95_ms{class=hdd}"


def test_what_the_search_itself_expected_says_nothing_about_a_twin() -> None:
    own = pairs([False] * 20, model=SEARCH_MODEL)
    assert twin_drift(healthy(forecasts=tuple(own))) == []
    assert twin_drift(healthy(forecasts=(*pairs([False] * 20), *own))) != []


def test_what_was_wrong_long_ago_is_forgotten() -> None:
    assert undercoverage(pairs([False] * 20 + [True] * NEWEST)) == []


def test_a_true_promise_is_called_drift_no_more_often_than_it_says() -> None:
    random = np.random.default_rng(1)
    alarms = 0
    for _ in range(400):
        held = random.random((3, 20)) < 0.9
        alarms += bool(
            undercoverage([pair for number, own in enumerate(held) for pair in pairs(own, f"client.{number}")])
        )
    assert alarms / 400 <= 0.05
