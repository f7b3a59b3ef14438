from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.regimes.bounds import (
    BOUNDS_KEY,
    DEFAULT,
    RegimeBounds,
    changes_in_words,
    parse_bounds,
    stored_bounds,
)
from monitors import MemoryStore

BUSY = {"name": "busy", "metric": "client.iops", "enter": 500, "leave": 300}


def test_bounds_read_back_and_are_the_default_where_none_are_stored() -> None:
    store = MemoryStore()
    assert stored_bounds(store) is DEFAULT
    assert parse_bounds(DEFAULT.to_dict()) == DEFAULT
    store.set(BOUNDS_KEY, json.dumps({"markers": [BUSY], "dwell_s": 5}))
    bounds = stored_bounds(store)
    assert [(marker.enter, marker.leave, marker.hold_s) for marker in bounds.markers] == [(500, 300, 15.0)]
    assert bounds.dwell_s == 5


@pytest.mark.parametrize(
    ("regime", "told"),
    [
        ("idle", True),
        ("busy+recovering+trimming", True),
        ("recovering+busy", False),
        ("busy+backup", False),
        ("busy+busy", False),
    ],
)
def test_a_regime_can_be_told_by_its_markers_in_their_order_alone(regime: str, told: bool) -> None:
    assert DEFAULT.tells(regime) == told


def test_what_other_bounds_change_is_said_marker_by_marker() -> None:
    own = parse_bounds({"markers": [BUSY], "dwell_s": 60})
    assert changes_in_words(own, own) == []
    (without, *_) = changes_in_words(own, RegimeBounds(DEFAULT.markers[1:]))
    assert without == "without busy: client.iops 500 to 300 for 15 s"
    swapped = RegimeBounds((DEFAULT.markers[1], DEFAULT.markers[0], *DEFAULT.markers[2:]))
    (order,) = changes_in_words(DEFAULT, swapped)
    assert order.startswith("in the order recovering, busy, ")


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "regimes: found list"),
        ({}, "regimes.markers: found NoneType"),
        ({"markers": []}, "must be 1 to 12"),
        ({"markers": [BUSY, BUSY]}, "of different names"),
        ({"markers": [{**BUSY, "name": f"m{number}"} for number in range(13)]}, "must be 1 to 12"),
        ({"markers": [BUSY], "version": 2}, "regimes.version: found 2"),
        ({"markers": [BUSY], "dwell": 2}, "unknown key 'dwell'"),
        ({"markers": [BUSY], "dwell_s": -1}, "dwell_s (=-1.0)"),
        ({"markers": [BUSY], "dwell_s": float("nan")}, "regimes.dwell_s"),
        ({"markers": [5]}, "regimes.markers.0: found int"),
        ({"markers": [{**BUSY, "leave": 500}]}, "less than enter"),
        ({"markers": [{**BUSY, "leave": -1}]}, "at least 0"),
        ({"markers": [{**BUSY, "enter": True}]}, "regimes.markers.0.enter"),
        ({"markers": [{**BUSY, "hold_s": 1e9}]}, "hold_s (=1000000000.0)"),
        ({"markers": [{**BUSY, "name": "idle"}]}, "not idle"),
        ({"markers": [{**BUSY, "name": "a+b"}]}, "name (='a+b')"),
        ({"markers": [{**BUSY, "name": 5}]}, "regimes.markers.0.name"),
        ({"markers": [{**BUSY, "metric": "client.speed"}]}, "metric (='client.speed')"),
        ({"markers": [{**BUSY, "metric": "client.iops{class=ssd}"}]}, "one of a whole cluster"),
        ({"markers": [{**BUSY, "of_capacity": 1}]}, "of_capacity: found 1"),
        ({"markers": [{**BUSY, "metric": "recovery.objects_left", "of_capacity": True}]}, "not for recovery"),
        ({"markers": [{**BUSY, "until": 1}]}, "regimes.markers.0.until: found unknown key"),
    ],
)
def test_what_makes_no_sense_is_named(document: Any, message: str) -> None:
    with pytest.raises(InputError) as refusal:
        parse_bounds(document)
    assert message in str(refusal.value)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["markers", "version", "dwell_s", "name", "metric", "enter", "leave"]), inner
            )
        ),
    )
)
def test_whatever_is_stored_is_read_or_named(document: Any) -> None:
    try:
        parse_bounds(document)
    except InputError:
        return
    raise AssertionError("nothing of that has a marker")
