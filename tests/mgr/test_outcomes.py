"""The plugin keeps what was measured after a change that a twin had spoken of, and shows both."""

from __future__ import annotations

from typing import Any, List

from ceph_tuner.core.measure.forecast_record import ForecastInterval, ForecastRecord
from ceph_tuner.core.measure.history import MINUTE, History
from ceph_tuner.core.measure.sample import Measure, Sample, Window
from monitors import MemoryStore
from tuner import render
from tuner.changes import Changes
from tuner.sampler import Sampler
from twins import small_twin

P95 = "client.p95_ms"


def test_a_change_s_outcome_is_kept_once_and_shown_with_what_was_said() -> None:
    twin = small_twin()
    said = ForecastRecord(twin.clock.now(), "here", 0.9, {P95: ForecastInterval(5.0, 4.0, 8.0)})
    applier = twin.applier()
    entry = applier.apply(applier.plan("osd", {"osd_max_scrubs": 2}), forecast=said.to_dict())
    assert entry is not None
    history = History(twin.store)
    changes = Changes(twin.commander, twin.store, twin.release, twin.version, "the test")
    begin = entry.at + MINUTE
    for place in range(11):
        history.add_window(Window(begin + MINUTE * place, begin + MINUTE * (place + 1), {P95: Measure(6.0, 0.1, 12)}))
        changes.keep_outcomes(history)
    assert len(history.outcomes()) == 1
    (change,) = changes.journal(history)
    (pair,) = change["forecast"]
    assert [pair[name] for name in ("predicted", "low", "high", "measured")] == [5.0, 4.0, 8.0, 6.0]
    assert pair["inside"]
    text = render.history({"windows": [], "trials": [], "changes": [change]})
    assert "EXPECTED" in text
    assert "4 ms to 8 ms (90%)" in text


def test_without_a_forecast_nothing_is_kept_or_read() -> None:
    twin = small_twin()
    applier = twin.applier()
    applier.apply(applier.plan("osd", {"osd_max_scrubs": 2}))
    history = History(twin.store)
    changes = Changes(twin.commander, twin.store, twin.release, twin.version, "the test")
    changes.keep_outcomes(history)
    assert history.outcomes() == []
    assert "EXPECTED" not in render.history({"windows": [], "trials": [], "changes": changes.journal(history)})


def test_it_looks_for_outcomes_whenever_another_ten_minutes_are_kept() -> None:
    calls: List[int] = []
    history = History(MemoryStore())
    reader: Any = None
    windows = lambda: calls.append(len(history.windows(26 * 60.0 + 600.0)))  # noqa: E731
    sampler = Sampler(reader, lambda: history, after_ten_minutes=windows)
    for second in range(600, 600 + 26 * 60, 10):
        sampler._keep(Sample(float(second), 10.0, {P95: 5.0}))
    assert calls == [10, 20]
