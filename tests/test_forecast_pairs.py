"""What the twin said before a write stays with it, and is held against what was measured after."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Dict, List, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.changes.forecast_pairs import (
    LEAST_S,
    LONGEST_S,
    SETTLED_S,
    Outcome,
    awaited_scopes,
    coverage,
    due,
    forecast_pairs,
    kept_pairs,
    outcome_of,
    outcome_record,
    outcomes_of,
)
from ceph_tuner.core.changes.journal import APPLIED, UNDONE, Entry
from ceph_tuner.core.changes.plan import Step
from ceph_tuner.core.goals.trial import Run, Trial
from ceph_tuner.core.measure.forecast_record import VERSION, ForecastInterval, ForecastRecord
from ceph_tuner.core.measure.history import MINUTE, History
from ceph_tuner.core.measure.metrics import CLASS, Scope
from ceph_tuner.core.measure.sample import Measure, Window
from monitors import MemoryStore

P95 = "client.p95_ms"
SAID = ForecastRecord(1000.0, "here 0123", 0.9, {P95: ForecastInterval(5.0, 4.0, 8.0)})
BEGAN = 12_000.0


def entry(
    number: int = 1, at: float = BEGAN, state: str = APPLIED, changed: Optional[float] = None, **more: Any
) -> Entry:
    step = (Step("osd", "osd_max_scrubs", None, "1"),)
    given: Dict[str, Any] = {"forecast": SAID.to_dict(), **more}
    return Entry(number, state, at, at if changed is None else changed, "me", "", "tentacle", "osd", step, (), **given)


def minutes(count: int, value: float = 6.0, begin: float = BEGAN) -> List[Window]:
    return [
        Window(begin + MINUTE * place, begin + MINUTE * (place + 1), {P95: Measure(value + place, 0.5, 12)})
        for place in range(count)
    ]


def test_a_change_carries_what_was_said_of_it_through_the_journal() -> None:
    again = Entry.from_text("journal/00000001", entry().to_text())
    assert ForecastRecord.from_dict(again.forecast) == SAID
    assert "forecast" not in json.loads(entry(forecast={}).to_text())


@pytest.mark.parametrize("stored", ["nonsense", 7, [], None, {"metrics": {P95: ["x"]}}, {"metrics": {}}, {"level": 2}])
def test_a_forecast_that_cannot_be_read_does_not_cost_the_way_back(stored: Any) -> None:
    text = json.dumps({**json.loads(entry().to_text()), "forecast": stored})
    again = Entry.from_text("journal/00000001", text)
    assert ForecastRecord.from_dict(again.forecast) is None
    assert forecast_pairs([again], {1: Outcome(0.0, 1.0, {P95: Measure(5.0, 0.0, 1)})}, []) == []


def test_fields_of_a_newer_version_are_kept_as_they_are() -> None:
    newer = {**SAID.to_dict(), "version": VERSION + 1, "drive": "nvme"}
    read = ForecastRecord.from_dict(newer)
    assert read is not None
    assert read.metrics == SAID.metrics
    assert read.to_dict() == newer
    assert entry(forecast=newer) == Entry.from_text("journal/00000001", entry(forecast=newer).to_text())


FINITE = st.floats(0, 1e12)


@given(st.floats(0.01, 0.99), FINITE, FINITE, FINITE)
def test_a_record_comes_back_as_it_was_stored(level: float, value: float, one: float, other: float) -> None:
    said = ForecastRecord(1.5, "m", level, {P95: ForecastInterval(value, min(one, other), max(one, other))})
    assert ForecastRecord.from_dict(json.loads(json.dumps(said.to_dict()))) == said


def test_what_is_measured_after_a_change_begins_once_it_has_settled_and_lasts_ten_minutes() -> None:
    found = outcome_of(entry(), [entry()], minutes(30))
    assert found is not None
    assert (found.start, found.end) == (BEGAN + SETTLED_S, BEGAN + SETTLED_S + LONGEST_S)
    # the mean of 7 to 16
    assert found.measures[P95].mean == pytest.approx(11.5)


def test_the_next_change_ends_it_and_too_little_is_nothing() -> None:
    first, second = entry(), entry(2, BEGAN + SETTLED_S + LEAST_S)
    found = outcome_of(first, [first, second], minutes(30))
    assert found is not None
    assert found.end == BEGAN + SETTLED_S + LEAST_S
    early = entry(2, BEGAN + SETTLED_S + LEAST_S - 1.0)
    assert outcome_of(first, [first, early], minutes(30)) is None
    taken_back = entry(state=UNDONE, changed=BEGAN + 2 * MINUTE)
    assert outcome_of(taken_back, [taken_back], minutes(30)) is None


def test_an_outcome_is_due_once_when_its_ten_minutes_are_there() -> None:
    assert due([entry()], {}, minutes(6)) == {}
    found = due([entry()], {}, minutes(11))
    assert list(found) == [1]
    assert due([entry()], found, minutes(11)) == {}
    assert due([entry(forecast={})], {}, minutes(11)) == {}


def test_outcomes_are_stored_and_told_from_those_of_another_change_with_the_number() -> None:
    (outcome,) = due([entry()], {}, minutes(11)).values()
    store = MemoryStore()
    history = History(store)
    history.add_outcome(outcome_record(entry(), outcome))
    history.add_outcome({"version": 2, "change": "one"})
    assert outcomes_of([entry()], history.outcomes()) == {1: outcome}
    assert outcomes_of([entry(at=BEGAN + 1.0)], history.outcomes()) == {}


def test_the_store_s_pairs_are_of_kept_outcomes_of_minutes_and_of_trials() -> None:
    store = MemoryStore()
    history = History(store)
    first, second = entry(), entry(2, BEGAN + 3600.0)
    history.add_outcome(outcome_record(first, Outcome(BEGAN, BEGAN + 60.0, {P95: Measure(9.0, 0.0, 1)})))
    for window in minutes(11, 5.0, BEGAN + 3600.0):
        history.add_window(window)
    run = Run("trial", "trial 3", {}, forecast=SAID)
    history.add_trial(Trial(run, 1.0, 25.0, {P95: Measure(4.0, 0.0, 5)}).to_dict())
    history.add_trial(Trial(run, 2.0, 25.0, {P95: Measure(4.0, 0.0, 5)}, "the guard").to_dict())
    found = {pair.subject: pair.inside for pair in kept_pairs(history, [first, second], BEGAN + 7200.0)}
    # what failed says nothing of the twin, nor do minutes of a clock that was ahead
    assert "change 2" not in {pair.subject for pair in kept_pairs(history, [first, second], BEGAN)}
    assert found == {"change 1": False, "change 2": False, "trial 3": True}


OF_SSD = "client.p95_ms{class=ssd}"


def of_class(count: int) -> List[Window]:
    """Minutes of a mixed cluster: the class does better than the whole."""
    return [
        replace(window, measures={**window.measures, OF_SSD: Measure(5.0, 0.5, 12), "client.p95_ms{class=hdd}": hdd})
        for window in minutes(count)
        for hdd in [Measure(40.0, 0.5, 12)]
    ]


@pytest.mark.parametrize("said", [SAID, SAID.within(Scope(CLASS, "ssd"))])
def test_a_change_for_a_device_class_is_held_against_that_class_alone(said: ForecastRecord) -> None:
    change = replace(entry(forecast=said.to_dict()), target="osd/class:ssd")
    found = outcome_of(change, [change], of_class(30))
    assert found is not None
    assert list(found.measures) == [OF_SSD]
    (pair,) = forecast_pairs([change], {1: found}, [])
    assert (pair.metric, pair.measured, pair.inside) == (OF_SSD, 5.0, True)


def test_minutes_in_which_a_class_was_not_sampled_show_nothing_of_it() -> None:
    change = replace(entry(), target="osd/class:ssd")
    assert outcome_of(change, [change], minutes(30)) is None
    # sampled from the seventh minute on: there are five of the ten that count
    late = [*minutes(6), *of_class(30)[6:]]
    found = outcome_of(change, [change], late)
    assert found is not None
    assert found.start == BEGAN + 6 * MINUTE


def test_classes_are_sampled_while_the_outcome_of_their_change_is_awaited() -> None:
    ssd = replace(entry(), target="osd/class:ssd")
    others = [entry(2), replace(entry(3, forecast={}), target="osd/class:hdd"), replace(entry(4), target="osd/host:h0")]
    assert awaited_scopes([ssd, *others], BEGAN + SETTLED_S + LONGEST_S) == (Scope(CLASS, "ssd"),)
    assert awaited_scopes([ssd], BEGAN + 3600.0) == ()


def test_trials_of_a_device_class_are_pairs_of_that_class() -> None:
    history = History(MemoryStore())
    trial = Trial(Run("trial", "trial 3", {}, forecast=SAID), 1.0, 25.0, {P95: Measure(4.0, 0.0, 5)})
    history.add_trial({**trial.to_dict(), "target": "osd/class:ssd"})
    history.add_trial({**trial.to_dict(), "target": "osd"})
    history.add_trial(replace(trial, device_class="hdd").to_dict())
    assert [pair.metric for pair in kept_pairs(history, [], BEGAN)] == [P95, "client.p95_ms{class=hdd}", OF_SSD]


def test_coverage_counts_what_the_intervals_held_ends_included() -> None:
    outcomes = {n: Outcome(0.0, 1.0, {P95: Measure(mean, 0.0, 1)}) for n, mean in enumerate((4.0, 8.0, 8.1, 3.9), 1)}
    (found,) = coverage(forecast_pairs([entry(n, BEGAN + n) for n in outcomes], outcomes, []))
    assert (found.metric, found.level, found.inside, found.pairs) == (P95, 0.9, 2, 4)


@pytest.mark.parametrize("ends", [(-1.0, 2.0), (3.0, 2.0), (0.0, float("inf"))])
def test_an_interval_that_is_none_is_refused(ends: Any) -> None:
    with pytest.raises(ValueError, match="interval"):
        ForecastInterval(1.0, *ends)


def test_a_trial_carries_what_was_said_of_it() -> None:
    trial = Trial(Run("trial", "t", {}, forecast=SAID), 1.0, 25.0)
    assert Trial.from_dict(json.loads(json.dumps(trial.to_dict()))).run.forecast == SAID
    without = replace(trial, run=replace(trial.run, forecast=None)).to_dict()
    del without["forecast"]
    assert Trial.from_dict(without).run.forecast is None
