"""A day by regimes, and what is told of days."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Dict

import day_policies
import pytest
from day import best_single, bounds_table, counted, live, missed_minutes, table
from day_kinds import KINDS, OFFICE, OFFICE_H, OFFICE_HOURS, ONE_BOUND, Kind, hours_of_clients, moment
from day_pages import predicted
from day_policies import BOOSTED, GRID, Probe, lived_with, policies, probe, singles, tried
from day_world import BUSY_MARKER, DAY_BEGINS, HOUR_S, PEAK_H, WARM_UP_H, WORK_MARKERS, DayWorld, Situation, rate_at
from flight_world import p95_ms, seen_by_clients

from ceph_tuner.core.boost.rules import parse_rules
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.twin.model import ClientStream
from ceph_tuner.twin.samples import look, sample_between
from ceph_tuner.twin.simulation import Simulation
from twins import small_model

SCRUBBED, FIRST_REPORTED = ONE_BOUND.scrubbed, ONE_BOUND.first_reported
BOUND_MS = ONE_BOUND.bound_ms(0.0)


def line(policy: str, day: int, missed: float = 60.0, **counts: Any) -> Dict[str, Any]:
    """`missed` minutes of a day that is judged each minute."""
    usual = {"degraded_object_hours": 100.0, "scrubs_not_done": 0.0, "changes": 1, "hours": 24.0}
    p95_ms = [BOUND_MS + 1.0] * round(missed) + [BOUND_MS] * (1440 - round(missed))
    under = lived_with(policy, SCRUBBED, ONE_BOUND)
    return {"policy": policy, "day": day, "lived_with": under, "p95_ms": p95_ms, **usual, **counts}


def test_clients_ask_for_the_most_in_the_afternoon() -> None:
    assert max(range(48), key=lambda half: rate_at(half / 2)) == 2 * PEAK_H
    assert Situation(rate_at(PEAK_H), True, False, True).regime == "busy+recovering+trimming"
    assert Situation(1.0, False, False, False).regime == "idle"
    assert set(Situation(1e9, True, True, True).regime.split("+")) == {
        marker.name for marker in (BUSY_MARKER, *WORK_MARKERS)
    }


def test_clients_have_another_bound_in_office_hours_by_the_calendar_of_the_cluster() -> None:
    assert [OFFICE_HOURS.bound_ms(hour) for hour in (0.0, 7.99, 8.0, 19.99, 20.0)] == [60.0, 60.0, 20.0, 20.0, 60.0]
    assert {ONE_BOUND.bound_ms(hour) for hour in range(24)} == {25.0}
    assert DayWorld(0, 1).begun + WARM_UP_H * HOUR_S == DAY_BEGINS
    in_office = [window.start for window in hours_of_clients() if OFFICE_HOURS.wanted.policy_at(window.start) == OFFICE]
    assert (in_office[0], in_office[-1]) == (moment(OFFICE_H[0]), moment(OFFICE_H[1] - 1.0))
    # pages are asked for within the bounds
    for kind in KINDS.values():
        bounded = {name: slo.objectives[-1] for name, slo in kind.page_objectives.by_policy.items()}
        assert set(bounded) == set(kind.bounds_ms)
    lived = line("all day: halves", 0, p95_ms=[70.0, 30.0, 70.0, 30.0])
    assert missed_minutes(lived, OFFICE_HOURS.bound_ms) == 1080.0


@pytest.mark.slow
def test_work_goes_on_while_clients_ask_for_more() -> None:
    world = DayWorld(1, SCRUBBED)
    seen = []
    world.on_phase = seen.append
    world.advance(world.phase_s)
    before = world.twin.simulation
    left = world.remaining()[1]
    assert world.hour() == world.phase_s / HOUR_S - WARM_UP_H
    world.advance(world.phase_s)
    assert len(seen) == 2
    assert seen[0].rate != seen[1].rate
    assert world.twin.simulation is before
    assert 0 < world.remaining()[1] < left < SCRUBBED
    twin = DayWorld(1, SCRUBBED)
    twin.advance(2 * world.phase_s)
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
    world, recovering = DayWorld(1, SCRUBBED), []
    world.on_phase = lambda situation: recovering.append(situation.recovering)
    world.advance((WARM_UP_H + 5.5) * HOUR_S)
    assert not any(recovering[: round(WARM_UP_H)])
    assert any(recovering)
    assert not recovering[-1]


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "policy"),
    [(kind, policy) for kind in KINDS.values() for policy in policies(kind) if policy.startswith("the book, pages")],
)
def test_the_book_switches_by_the_regime(kind: Kind, policy: str) -> None:
    lived = live(policy, 1, kind, kind.scrubbed, 1.0)
    assert lived["changes"] >= 1
    assert 0.0 <= lived["scrubs_not_done"] < 1.0
    assert missed_minutes(lived, kind.bound_ms) <= 60.0


def test_the_boost_rule_is_one_of_the_plugin_in_the_time_of_the_day() -> None:
    (rule,) = parse_rules(BOOSTED)
    assert (rule.kind, rule.keep) == ("recovery", "")
    assert rule.after_s == pytest.approx(300.0 * HOUR_S / 3600.0)
    assert rule.at_most_s == pytest.approx(6.0 * HOUR_S)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_what_the_twin_found_is_tried_all_day_as_well_and_each_once(kind: Kind) -> None:
    pages = predicted(kind.pages)
    assert pages
    assert {page.state for page in pages} == {"unvalidated"}
    assert len({page.regime for page in pages}) == len(pages)
    assert all(kind.bounds.tells(page.regime) for page in pages)
    found = [settings for name, settings in singles(kind).items() if name not in GRID]
    assert found
    assert all(found.count(settings) == 1 for settings in found)
    assert {f"all day: {name}" for name in singles(kind)} < set(policies(kind))
    everywhere = [dict(page.settings) for path in (kind.pages, kind.each) for page in predicted(path)]
    assert all(settings in singles(kind).values() for settings in everywhere)


def test_the_best_single_setting_is_of_those_that_get_the_scrubs_done() -> None:
    lines = [
        line("all day: clients", 0, missed=1.0, scrubs_not_done=0.4),
        line("all day: halves", 0, missed=20.0),
        line("all day: balanced", 0, missed=30.0),
    ]
    assert best_single(lines, ONE_BOUND) == "all day: halves"
    assert best_single(lines[:1], ONE_BOUND) == "all day: clients"
    assert best_single([], ONE_BOUND) is None


def test_days_that_were_chosen_on_are_not_told() -> None:
    lines = [
        line("all day: halves", 0, missed=1.0),
        line("all day: halves", FIRST_REPORTED - 1, missed=700.0),
        *(line("all day: halves", FIRST_REPORTED + day, missed=20.0 + 20.0 * day) for day in (0, 1)),
        line("the book, pages of the grid", FIRST_REPORTED, missed=5.0),
    ]
    told = table(lines)
    assert "| **all day: halves** (best on day 0) | 30 | 100 | 0% | 1.0 |" in told
    # means of other days are not to be held against each other unseen
    assert "| the book, pages of the grid, 1 of the days | 5 |" in told
    assert told.endswith("Means of 2 days.")
    assert table(lines[:3]).endswith("Of one day.")


def test_scrub_dates_are_told_of_lines_that_have_them() -> None:
    lines = [line("all day: halves", FIRST_REPORTED), line("all day: clients", FIRST_REPORTED)]
    assert "date" not in table(lines)
    lines[1]["scrub_dates_missed"], lines[1]["scrub_dates"] = 7, 64
    told = table(lines)
    assert "| not scrubbed | PGs past their scrub date | journal entries |" in told
    assert "| all day: halves | 60 | 100 | 0% |  | 1.0 |" in told
    assert "| all day: clients | 60 | 100 | 0% | 7.0 | 1.0 |" in told


def test_a_life_under_other_things_is_not_counted() -> None:
    ours = line("the book, pages by the twin", FIRST_REPORTED)
    others = [
        {**ours, "lived_with": {**ours["lived_with"], name: value}}
        for name, value in (("told", "0123"), ("bound_ms", 2 * BOUND_MS), ("rate", 1.0), ("day", "0123"))
    ]
    others += [{**ours, "hours": 10.0}, {**ours, "policy": "all day: nothing"}]
    assert counted([ours, *others], ONE_BOUND, SCRUBBED) == [ours]
    assert counted([ours], ONE_BOUND, 2 * SCRUBBED) == []
    assert counted([ours], OFFICE_HOURS, SCRUBBED) == []
    lives = {policy: str(lived_with(policy, SCRUBBED, ONE_BOUND)) for policy in policies(ONE_BOUND)}
    assert len(set(lives.values())) == len(lives)
    # what one setting does is judged by any bound
    assert lived_with("all day: halves", SCRUBBED, ONE_BOUND)["bound_ms"] is None


def test_one_life_is_judged_by_many_bounds() -> None:
    lived = line("all day: halves", 0, p95_ms=[None, 10.0, 20.0, 30.0, 30.0])
    missed = [missed_minutes(lived, lambda hour, bound=bound: bound) for bound in (5.0, 10.0, 25.0, 30.0)]
    assert missed == [1440.0, 1080.0, 720.0, 0.0]
    shown = bounds_table([lived, line("all day: halves", FIRST_REPORTED)], [10.0, 25.0], ONE_BOUND, SCRUBBED)
    assert shown.count("| all day: halves |") == 1
    assert "| all day: halves | 1080 | 720 | 100 | 0% | 1.0 |" in shown


def test_of_settings_that_miss_as_little_an_oracle_takes_those_that_do_the_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    probes = {
        "balanced": Probe([30.0, 20.0], 100, 900.0),
        "slow": Probe([10.0, 10.0], 74, 800.0),
        "fast": Probe([10.0, 20.0], 75, 300.0),
        "faster": Probe([25.0, 25.0], 76, 304.0),
    }
    monkeypatch.setattr(day_policies, "singles", lambda kind: {name: {PROFILE: name} for name in probes})
    copies = []

    def probe_of(simulation: Simulation, windows: int, window_s: float) -> Probe:
        copies.append(simulation)
        assert windows * window_s == DayWorld.phase_s
        return probes[str(simulation.settings()[PROFILE])]

    monkeypatch.setattr(day_policies, "probe", probe_of)
    world = DayWorld(1, SCRUBBED)
    monkeypatch.setattr(Simulation, "configure", lambda self, settings: setattr(self, "settings", lambda: settings))
    assert tried(world, ONE_BOUND) == "faster"
    assert world.twin.simulation not in copies
    # with nothing to recover all are fast enough
    probes = {name: each._replace(recovered=0) for name, each in probes.items()}
    assert tried(world, ONE_BOUND) == "slow"
    # at night all but one keep the bound
    monkeypatch.setattr(world.twin, "now", lambda: DAY_BEGINS)
    assert tried(world, OFFICE_HOURS) == "balanced"


@pytest.mark.slow
def test_a_try_leaves_the_cluster_as_it_is() -> None:
    world, twin = DayWorld(1, SCRUBBED), DayWorld(1, SCRUBBED)
    for each in (world, twin):
        each.advance(each.phase_s / 10)
    seen = probe(deepcopy(world.twin.simulation), 2, 30.0)
    assert len(seen.p95_ms) == 2
    assert seen.done > 0.0
    for each in (world, twin):
        each.advance(each.phase_s / 10)
    assert world.remaining() == twin.remaining()
    assert (seen_by_clients(world.twin.simulation) == seen_by_clients(twin.twin.simulation)).all()


@pytest.mark.slow
def test_the_day_begins_after_a_time_that_is_not_judged() -> None:
    lived = live("all day: high_client_ops", 1, ONE_BOUND, SCRUBBED, 0.5)
    assert len(lived["p95_ms"]) == 10
    assert None not in lived["p95_ms"]
    assert lived["degraded_object_hours"] == 0.0
    # of the day's end; hardly one PG is scrubbed after half an hour
    assert 0 < lived["scrub_dates_missed"] <= lived["scrub_dates"]
    # the scrubs were under way before
    assert lived["scrubs_not_done"] < 1.0 - 0.5 * HOUR_S * 10.0 / SCRUBBED
