"""A day by regimes, and what is told of days."""

from __future__ import annotations

from typing import Any, Dict

import pytest
from day import (
    BOOSTED,
    FIRST_TOLD,
    GRID,
    HOUR_S,
    MARKERS,
    PEAK_H,
    POLICIES,
    SCRUBBED,
    DayWorld,
    Situation,
    best_single,
    live,
    predicted,
    rate_at,
    singles,
    table,
)
from flight_world import p95_ms

from ceph_tuner.core.boost.rules import parse_rules
from ceph_tuner.twin.model import ClientStream
from ceph_tuner.twin.samples import look, sample_between
from ceph_tuner.twin.simulation import Simulation
from twins import small_model


def line(policy: str, day: int, **counts: Any) -> Dict[str, Any]:
    usual = {"missed_minutes": 60.0, "degraded_object_hours": 100.0, "scrubs_not_done": 0.0, "changes": 1}
    return {"policy": policy, "day": day, **usual, **counts}


def test_clients_ask_for_the_most_in_the_afternoon() -> None:
    assert max(range(48), key=lambda half: rate_at(half / 2)) == 2 * PEAK_H
    assert Situation(rate_at(PEAK_H), True, False, True).regime == "busy+recovering+trimming"
    assert Situation(1.0, False, False, False).regime == "idle"
    assert set(Situation(1e9, True, True, True).regime.split("+")) == set(MARKERS)


@pytest.mark.slow
def test_work_that_is_not_done_goes_on_in_the_next_phase() -> None:
    world = DayWorld(1)
    seen = []
    world.on_phase = seen.append
    world.advance(HOUR_S)
    assert len(seen) == 2
    assert 0 < world.remaining()[1] < SCRUBBED
    twin = DayWorld(1)
    twin.advance(HOUR_S)
    assert twin.remaining() == world.remaining()


def test_clients_are_judged_by_what_a_sample_of_the_twin_says_of_them() -> None:
    simulation = Simulation(small_model(clients=(ClientStream("rbd", rate=300.0, read_share=0.3),)), {}, 1)
    before = look(simulation)
    simulation.advance(20.0)
    after = look(simulation)
    counts = sum(stream.latency.sum(axis=0) for stream in after.clients)
    sample = sample_between(before, after, simulation.model, after.counters.at)
    assert p95_ms(counts) == pytest.approx(sample.values["client.p95_ms"])


@pytest.mark.slow
def test_an_osd_is_lost_in_the_night() -> None:
    world, recovering = DayWorld(1), []
    world.on_phase = lambda situation: recovering.append(situation.recovering)
    world.advance(5.5 * HOUR_S)
    assert not recovering[0]
    assert any(recovering)
    assert not recovering[-1]


@pytest.mark.long
@pytest.mark.parametrize("policy", [policy for policy in POLICIES if policy.startswith("the book, pages")])
def test_the_book_switches_by_the_regime(policy: str) -> None:
    lived = live(policy, 1, 1.0)
    assert lived["changes"] >= 1
    assert 0.0 <= lived["scrubs_not_done"] < 1.0
    assert lived["missed_minutes"] <= 60.0


def test_the_boost_rule_is_one_of_the_plugin_in_the_time_of_the_day() -> None:
    (rule,) = parse_rules(BOOSTED)
    assert (rule.kind, rule.keep) == ("recovery", "")
    assert rule.after_s == pytest.approx(300.0 * HOUR_S / 3600.0)
    assert rule.at_most_s == pytest.approx(6.0 * HOUR_S)


def test_what_the_twin_found_is_tried_all_day_as_well_and_each_once() -> None:
    pages = predicted()
    assert pages
    assert {page.state for page in pages} == {"unvalidated"}
    assert len({page.regime for page in pages}) == len(pages)
    found = [settings for name, settings in singles().items() if name not in GRID]
    assert found
    assert all(found.count(settings) == 1 for settings in found)
    assert {f"all day: {name}" for name in singles()} < set(POLICIES)


def test_the_best_single_setting_is_of_those_that_get_the_scrubs_done() -> None:
    lines = [
        line("all day: clients", 0, missed_minutes=1.0, scrubs_not_done=0.4),
        line("all day: halves", 0, missed_minutes=20.0),
        line("all day: balanced", 0, missed_minutes=30.0),
    ]
    assert best_single(lines) == "all day: halves"
    assert best_single(lines[:1]) == "all day: clients"
    assert best_single([]) is None


def test_days_that_were_chosen_on_are_not_told() -> None:
    lines = [
        line("all day: halves", 0, missed_minutes=1.0),
        line("all day: halves", FIRST_TOLD - 1, missed_minutes=700.0),
        *(line("all day: halves", FIRST_TOLD + day, missed_minutes=20.0 + 20.0 * day) for day in (0, 1)),
        line("the book, pages of the grid", FIRST_TOLD, missed_minutes=5.0),
    ]
    told = table(lines)
    assert "| **all day: halves** (best on day 0) | 30 | 100 | 0% | 1.0 |" in told
    assert "| the book, pages of the grid | 5 |" in told
    assert told.endswith("Means of 2 days.")
    assert table(lines[:3]).endswith("Of one day.")
