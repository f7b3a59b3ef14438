from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.regimes.bounds import (
    BOUNDS_KEY,
    DEFAULT,
    Marker,
    PolicyMarker,
    RegimeBounds,
    changes_in_words,
    parse_bounds,
    regime_of,
    stored_bounds,
)
from documented import DOCS
from monitors import MemoryStore

BUSY = {"name": "busy", "metric": "client.iops", "enter": 500, "leave": 300}
OFFICE = {"name": "office", "policy": "office-hours"}
NIGHT = {"name": "night", "policy": "night"}
BY_POLICY = RegimeBounds(
    (PolicyMarker("office", "office-hours"), Marker("busy", "client.iops", 500, 300), PolicyMarker("night", "night"))
)


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


def test_markers_of_policies_read_back_and_stand_beside_those_of_metrics() -> None:
    store = MemoryStore()
    store.set(BOUNDS_KEY, json.dumps({"markers": [OFFICE, BUSY, NIGHT]}))
    assert stored_bounds(store) == BY_POLICY
    assert parse_bounds(BY_POLICY.to_dict()) == BY_POLICY
    assert [marker.to_dict() for marker in BY_POLICY.of_policies] == [OFFICE, NIGHT]
    assert [marker.name for marker in BY_POLICY.of_metrics] == ["busy"]
    assert str(BY_POLICY.markers[0]) == "office: while the policy office-hours holds"


def test_bounds_without_a_policy_are_stored_as_a_plugin_that_knows_none_reads_them() -> None:
    keys = {key for marker in DEFAULT.to_dict()["markers"] for key in marker}
    assert keys == {"name", "metric", "enter", "leave", "hold_s", "of_capacity"}


@pytest.mark.parametrize(
    ("regime", "told", "policy"),
    [
        ("office", True, "office-hours"),
        ("office+busy", True, "office-hours"),
        ("busy+night", True, "night"),
        ("busy", True, None),
        ("idle", True, None),
        ("office+night", False, None),
        ("office+busy+night", False, None),
    ],
)
def test_a_regime_names_one_policy_at_most(regime: str, told: bool, policy: Any) -> None:
    assert BY_POLICY.tells(regime) == told
    if told:
        assert BY_POLICY.policy_of(regime) == policy
        assert regime_of(regime, BY_POLICY) == regime
    else:
        with pytest.raises(InputError, match="one policy of the calendar at a time"):
            regime_of(regime, BY_POLICY)


def test_where_each_policy_has_a_marker_a_regime_without_one_is_never_told() -> None:
    policies = ("base", "office-hours", "night")
    every = RegimeBounds((*BY_POLICY.markers, PolicyMarker("else", "base")))
    for regime in ("busy", "idle"):
        assert not every.tells(regime, policies)
        with pytest.raises(InputError, match="one of office, night, else in it"):
            regime_of(regime, every, policies=policies)
        # a policy without a marker may hold, or nobody knows the calendar
        assert every.tells(regime, (*policies, "weekend"))
        assert every.tells(regime)
        assert BY_POLICY.tells(regime, policies)
    assert every.tells("busy+else", policies)
    assert regime_of("else+busy", every, policies=policies) == "busy+else"


def test_the_files_of_the_page_are_read() -> None:
    files = re.findall(r"```text\n(.*?)```", (DOCS / "regimes.md").read_text(), re.DOTALL)
    plain, with_policies = (parse_bounds(json.loads(file)) for file in files)
    assert plain.dwell_s == 120
    assert with_policies.of_policies == (PolicyMarker("office", "office"), PolicyMarker("night", "night"))
    assert with_policies.of_metrics[0] == DEFAULT.markers[0]


def test_a_marker_that_names_a_policy_now_is_said_with_what_it_was() -> None:
    night = RegimeBounds((Marker("night", "client.iops", 500, 300),))
    (words,) = changes_in_words(night, parse_bounds({"markers": [NIGHT]}))
    assert words == "night: while the policy night holds (before: night: client.iops 500 to 300 for 15 s)"


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
        ({"markers": [{**NIGHT, "hold_s": 0}]}, "unknown key 'hold_s', expected one of name, policy"),
        ({"markers": [{**BUSY, "policy": "night"}]}, "regimes.markers.0.enter: found unknown key"),
        ({"markers": [{**NIGHT, "policy": 5}]}, "regimes.markers.0.policy: found 5"),
        ({"markers": [{**NIGHT, "policy": "Night shift"}]}, "policy (='Night shift')"),
        ({"markers": [{**NIGHT, "name": "idle"}]}, "not idle"),
        ({"markers": [{"policy": "night"}]}, "regimes.markers.0.name"),
        ({"markers": [NIGHT, {**NIGHT, "name": "dark"}]}, "policies (=night, night) must have one marker each"),
        ({"markers": [NIGHT, {**OFFICE, "name": "night"}]}, "of different names"),
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


some_texts = st.sampled_from(["night", "office", "idle", "Day", ""]) | st.text(max_size=3)


@given(
    st.lists(st.dictionaries(st.sampled_from(["name", "policy", "metric", "hold_s"]), some_texts | st.integers())),
    st.floats(allow_nan=False),
)
def test_whatever_names_policies_is_read_back_or_named(markers: Any, dwell_s: float) -> None:
    try:
        bounds = parse_bounds({"markers": markers, "dwell_s": dwell_s})
    except InputError:
        return
    assert [marker.to_dict() for marker in bounds.of_policies] == markers
    assert parse_bounds(json.loads(json.dumps(bounds.to_dict()))) == bounds
