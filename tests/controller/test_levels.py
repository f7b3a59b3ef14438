from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.controller.levels import Hold, course, holds_from, is_same, record_of
from ceph_tuner.controller.resource import UNREADABLE
from ceph_tuner.core.errors import Malformed

VALUES = st.sampled_from([None, "1", "2", "3"])


class Interrupted(Exception):
    pass


class World:
    """A cluster and a resource's record, with an end of the process after so many writes."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.cluster: Dict[str, Any] = dict(values)
        self.record: Mapping[str, Any] = {}
        self.left: Optional[int] = None

    def spend(self) -> None:
        if self.left is not None:
            if self.left == 0:
                raise Interrupted
            self.left -= 1

    def follow(self, values: Mapping[str, Any], generation: int) -> Mapping[str, Any]:
        holds = holds_from(self.record)
        now = {key: self.cluster.get(key) for key in {*holds, *values}}
        way = course(holds, values, now, generation)
        self.spend()
        self.record = record_of(way.holds)
        for step in way.steps:
            assert step.hold.before == way.holds[step.key].before
            self.spend()
            self.cluster[step.key] = step.value
        self.spend()
        self.record = record_of(way.holds_after)
        return way.drift


def test_a_value_is_carried_once_and_taken_back() -> None:
    world = World({"a": "1"})
    assert world.follow({"a": "2"}, 1) == {}
    assert world.cluster == {"a": "2"}
    before = world.record
    assert world.follow({"a": "2"}, 1) == {}
    assert world.record == before
    world.follow({}, 2)
    assert (world.cluster, world.record) == ({"a": "1"}, {"holds": {}})


def test_what_somebody_else_sets_is_left_until_the_resource_is_changed() -> None:
    world = World({"a": "1"})
    world.follow({"a": "2"}, 1)
    world.cluster["a"] = "9"
    assert world.follow({"a": "2"}, 1) == {"a": "9"}
    assert world.cluster["a"] == "9"
    assert world.follow({"a": "2"}, 2) == {}
    assert world.cluster["a"] == "2"
    world.follow({}, 3)
    assert world.cluster["a"] == "9"


def test_what_somebody_else_sets_is_left_when_the_resource_goes() -> None:
    world = World({"a": "1"})
    world.follow({"a": "2"}, 1)
    world.cluster["a"] = "9"
    world.follow({}, 2)
    assert world.cluster["a"] == "9"


def test_what_is_there_already_stays_when_the_resource_goes() -> None:
    world = World({"a": "2"})
    world.follow({"a": "2"}, 1)
    world.follow({}, 2)
    assert world.cluster["a"] == "2"


def test_a_key_that_is_no_longer_stated_is_taken_back_alone() -> None:
    world = World({"a": "1"})
    world.follow({"a": "2", "b": "3"}, 1)
    world.follow({"b": "3"}, 2)
    assert world.cluster == {"a": "1", "b": "3"}
    assert list(holds_from(world.record)) == ["b"]


@given(
    st.dictionaries(st.sampled_from("ab"), VALUES),
    st.lists(st.dictionaries(st.sampled_from("ab"), VALUES.filter(bool)), max_size=4),
    st.lists(st.none() | st.integers(0, 4), max_size=10),
)
def test_wherever_it_is_interrupted_it_comes_to_the_same(
    before: Dict[str, Any], values: List[Dict[str, Any]], ends: List[Optional[int]]
) -> None:
    """The law of all of it: a restart converges, and what is taken back is what was there first."""
    world = World(before)
    # each change of the resource meets some processes that end in the middle, and the next change may come before any
    # came to its end; the last one, which takes all back, is followed until it does
    turns = [(each, generation) for generation, each in enumerate(values, 1) for _ in range(2)]
    for (each, generation), end in zip(turns, [*ends, *[None] * len(turns)]):
        world.left = end
        try:
            assert world.follow(each, generation) == {}
        except Interrupted:
            continue
        assert {key: world.cluster.get(key) for key in each} == each
    for end in [*ends[len(turns) :], None]:
        world.left = end
        try:
            world.follow({}, len(values) + 1)
        except Interrupted:
            continue
    # what is not there and what was never there are one
    there = {key: value for key, value in world.cluster.items() if value is not None}
    assert there == {key: value for key, value in before.items() if value is not None}


@given(
    st.dictionaries(
        st.text(), st.builds(Hold, VALUES, VALUES, st.lists(VALUES).map(tuple), st.booleans(), st.integers())
    )
)
def test_a_record_reads_back(holds: Dict[str, Hold]) -> None:
    assert holds_from(record_of(holds)) == holds


@pytest.mark.parametrize(
    "record", [{"holds": 1}, {"holds": {"a": {"other": 1}}}, {"holds": {"a": 1}}, {UNREADABLE: "x"}]
)
def test_a_record_that_is_none_is_refused(record: Any) -> None:
    with pytest.raises(Malformed):
        holds_from(record)


def test_options_are_the_same_however_they_are_written() -> None:
    assert is_same("30", "30.0")
    assert not is_same("30", None)
    assert not is_same({"name": "a"}, {"name": "b"})
