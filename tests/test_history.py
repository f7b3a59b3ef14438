from __future__ import annotations

import json
from typing import Dict, List, Optional

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ceph_tuner.core.measure.history import History, Ring, merged
from ceph_tuner.core.measure.sample import Measure, Window


class MemoryStore:
    """A store in memory that refuses what the monitors refuse."""

    def __init__(self) -> None:
        self.values: Dict[str, str] = {}

    def get(self, key: str) -> Optional[str]:
        return self.values.get(key)

    def set(self, key: str, value: str) -> None:
        assert len(value.encode()) <= 65536
        self.values[key] = value

    def remove(self, key: str) -> None:
        self.values.pop(key, None)

    def keys(self, prefix: str) -> List[str]:
        return sorted(key for key in self.values if key.startswith(prefix))


def window(end: float, iops: float = 1.0) -> Window:
    return Window(end - 60.0, end, {"client.iops": Measure(iops, 0.5, 12)})


@settings(max_examples=40)
@given(st.integers(1, 60), st.integers(2, 5), st.integers(1, 7))
def test_a_ring_keeps_the_newest_in_order_and_is_bounded(count: int, blocks: int, per_block: int) -> None:
    store = MemoryStore()
    for number in range(count):
        # a new object each time: nothing but the store carries the past
        Ring(store, "r/", blocks, per_block).append({"number": number})
    found = [entry["number"] for entry in Ring(store, "r/", blocks, per_block).read()]
    assert found == list(range(count))[-len(found) :]
    assert len(found) <= blocks * per_block
    assert len(found) >= min(count, (blocks - 1) * per_block + 1)
    assert len(store.values) <= blocks


def test_large_entries_open_a_new_block_before_a_value_is_too_large() -> None:
    store = MemoryStore()
    ring = Ring(store, "r/", 3, 10)
    for number in range(12):
        ring.append({"number": number, "text": "ä" * 6000})
    assert [entry["number"] for entry in ring.read()][-1] == 11
    with pytest.raises(ValueError, match="must be <"):
        ring.append({"text": "x" * 70000})


def test_a_window_of_a_clock_that_was_ahead_is_not_the_newest() -> None:
    history = History(MemoryStore())
    for end in (1e9, 1e9 + 3600.0, 1e12):
        history.add_window(window(end))
    newest = history.newest(1e9 + 30.0)
    assert newest is not None
    assert newest.end == 1e9
    # clocks of hosts differ
    assert history.newest(1e9 + 3590.0) == window(1e9 + 3600.0)
    assert history.newest(2e9) is None


def test_hours_are_kept_although_windows_of_a_clock_that_was_ahead_are_there() -> None:
    history = History(MemoryStore())
    begin = 1e9 - 1e9 % 3600
    for end in (begin - 120.0, begin + 1e8, begin + 1e8 + 3600.0):
        history.add_window(window(end))
    for minute in range(1, 125):
        history.add_window(window(begin + 60.0 * minute, iops=7.0))
    now = begin + 60.0 * 124
    kept = history.hours(now, begin)
    assert [(hour.end, hour.measures["client.iops"].mean) for hour in kept] == [
        (begin + 3540.0, 7.0),
        (begin + 7140.0, 7.0),
    ]
    assert history.windows(now)[-1].end == now
    assert history.hours(now)[-1].end == begin + 7140.0


@pytest.mark.parametrize(("start", "end"), [(-1e300, 1e9), (-7e10, 1e9), (0.0, 1e300)])
def test_a_window_of_no_calendar_is_passed_over(start: float, end: float) -> None:
    store = MemoryStore()
    Ring(store, "history/minute/", 12, 10).append({**window(1e9).to_dict(), "start": start, "end": end})
    history = History(store)
    assert history.windows(1e9) == []
    history.add_window(window(1e9 + 60.0))
    assert history.windows(1e9 + 60.0) == [window(1e9 + 60.0)]


def test_a_damaged_block_costs_its_own_entries_only() -> None:
    store = MemoryStore()
    ring = Ring(store, "r/", 3, 2)
    for number in range(4):
        ring.append({"number": number})
    store.values["r/000"] = '{"serial": 0, "entr'
    assert [entry["number"] for entry in ring.read()] == [2, 3]
    ring.append({"number": 4})
    assert [entry["number"] for entry in ring.read()] == [2, 3, 4]


def test_windows_are_kept_minute_by_minute_and_hour_by_hour() -> None:
    store = MemoryStore()
    history = History(store, minutes=120)
    for minute in range(1, 131):
        history.add_window(window(minute * 60.0, iops=float(minute)))
    kept = history.windows(130 * 60.0)
    assert kept[-1] == window(130 * 60.0, 130.0)
    assert len(kept) <= 120
    hours = history.hours(130 * 60.0)
    # the window that ends at the full hour belongs to the next one
    assert [hour.end for hour in hours] == [59 * 60.0, 119 * 60.0]
    assert hours[0].measures["client.iops"].mean == pytest.approx(30.0)
    assert hours[0].measures["client.iops"].count == 59 * 12


def test_windows_of_before_can_be_left_out() -> None:
    history = History(MemoryStore())
    history.add_window(window(60.0))
    history.add_window(window(120.0))
    assert history.windows(120.0, since=60.0) == [window(120.0)]


def test_records_that_cannot_be_read_are_passed_over() -> None:
    store = MemoryStore()
    history = History(store)
    history.add_window(window(60.0))
    block = json.loads(store.values["history/minute/000"])
    block["entries"].append({"end": "yesterday"})
    store.values["history/minute/000"] = json.dumps(block)
    assert history.windows(60.0) == [window(60.0)]


def test_trials_are_kept_as_they_were_told() -> None:
    history = History(MemoryStore(), trials=20)
    for number in range(50):
        history.add_trial({"at": float(number), "settings": {"osd_max_scrubs": number}})
    assert history.trials()[-1] == {"at": 49.0, "settings": {"osd_max_scrubs": 49}}
    assert len(history.trials()) <= 20


def test_merged_windows_have_the_mean_and_spread_of_all() -> None:
    one = Window(0.0, 60.0, {"client.iops": Measure(10.0, 0.0, 2)})
    other = Window(60.0, 120.0, {"client.iops": Measure(20.0, 0.0, 2), "ops.slow": Measure(1.0, 0.0, 1)})
    both = merged([one, other])
    assert both is not None
    assert (both.start, both.end) == (0.0, 120.0)
    assert both.measures["client.iops"].mean == 15.0
    # as of 10, 10, 20, 20
    assert both.measures["client.iops"].deviation == pytest.approx(5.7735, rel=1e-4)
    assert both.measures["ops.slow"].count == 1
    assert merged([]) is None


@pytest.mark.parametrize("measures", [[], 5, None, "x", {"client.iops": 1}, {"client.iops": [1, 2, []]}])
def test_a_window_of_another_shape_is_passed_over(measures: object) -> None:
    store = MemoryStore()
    History(store).add_window(window(60.0))
    block = json.loads(store.values["history/minute/000"])
    block["entries"].append({"start": 60.0, "end": 120.0, "measures": measures})
    store.values["history/minute/000"] = json.dumps(block)
    assert History(store).windows(120.0) == [window(60.0)]
