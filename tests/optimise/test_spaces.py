"""What a search asks of any space: the cube, settings, and the way between them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from skopt.space import Categorical, Integer, Real

from ceph_tuner.core.knobs.releases import REEF, TENTACLE
from ceph_tuner.optimise import MixedSpace
from ceph_tuner.optimise.proposal import _box
from ceph_tuner.search.space import space_for

NUMBERS = [
    Real(-2.0, 5.0, name="offset"),
    Real(1e-4, 1e3, prior="log-uniform", name="rate"),
    Integer(-3, 12, name="shift"),
    Integer(1, 64, prior="log-uniform", name="weight"),
]
CATEGORIES = [
    Categorical(["hdd", "ssd"], name="device"),
    Categorical(["wpq", "mclock", "none"], name="queue"),
    Categorical([1, 2, 4, 8], name="shards"),
    Categorical([False, True], name="override"),
]
SPACES = {
    "numbers": MixedSpace(NUMBERS),
    "categories": MixedSpace(CATEGORIES),
    "mixed": MixedSpace([*CATEGORIES, *NUMBERS]),
    "ceph, all work": space_for(TENTACLE, ["recovery", "scrub", "snaptrim"], TENTACLE.profiles["balanced"]),
    "ceph, recovery": space_for(REEF, ["recovery"], REEF.profiles["high_client_ops"]),
}

unhurried = hypothesis_settings(deadline=None, max_examples=40)
any_space = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)


def points(size: int, low: float = 0.0, high: float = 1.0) -> st.SearchStrategy:
    return st.lists(st.floats(low, high), min_size=size, max_size=size)


@any_space
@unhurried
@given(data=st.data())
def test_settings_of_a_point_encode_back_to_themselves(space: Any, data: st.DataObject) -> None:
    settings = space.decode(data.draw(points(space.size)))
    point = space.encode(settings)
    assert space.decode(point) == settings
    assert len(point) == space.size
    assert all(type(u) is float and 0 <= u <= 1 for u in point)


@any_space
@unhurried
@given(data=st.data())
def test_what_is_encoded_once_stays_where_it_is(space: Any, data: st.DataObject) -> None:
    point = space.encode(space.decode(data.draw(points(space.size))))
    assert space.encode(space.decode(point)) == pytest.approx(point, abs=1e-9)


@any_space
@unhurried
@given(data=st.data())
def test_many_at_once_are_what_each_is_by_itself(space: Any, data: st.DataObject) -> None:
    drawn = data.draw(st.lists(points(space.size), min_size=1, max_size=5))
    settings = space.decode_all(np.array(drawn))
    assert settings == [space.decode(point) for point in drawn]
    assert space.encode_all(settings).tolist() == [space.encode(each) for each in settings]


@any_space
@unhurried
@given(data=st.data())
def test_a_point_beside_the_cube_is_taken_for_the_nearest_in_it(space: Any, data: st.DataObject) -> None:
    point = data.draw(points(space.size, -1.0, 2.0))
    assert space.decode(point) == space.decode([min(max(u, 0.0), 1.0) for u in point])


@any_space
@unhurried
@given(data=st.data())
def test_settings_survive_json(space: Any, data: st.DataObject) -> None:
    settings = space.decode(data.draw(points(space.size)))
    again = json.loads(json.dumps(settings))
    assert again == settings
    assert space.encode(again) == space.encode(settings)


@unhurried
@given(data=st.data())
def test_values_are_inside_their_dimensions_and_of_their_type(data: st.DataObject) -> None:
    space = SPACES["mixed"]
    settings = space.decode(data.draw(points(space.size)))
    assert list(settings) == [dimension.name for dimension in (*CATEGORIES, *NUMBERS)]
    for dimension in (*NUMBERS, *CATEGORIES):
        assert settings[dimension.name] in dimension
    kinds = [float, float, int, int]
    assert [type(settings[dimension.name]) for dimension in NUMBERS] == kinds
    assert type(settings["override"]) is bool


@unhurried
@given(st.floats(0, 1), st.floats(0, 1))
def test_a_larger_coordinate_is_no_smaller_a_number(one: float, other: float) -> None:
    space = SPACES["numbers"]
    low, high = (space.decode([u] * space.size) for u in sorted((one, other)))
    assert all(low[name] <= high[name] for name in low)


def test_the_ends_of_the_cube_are_the_ends_of_the_dimensions() -> None:
    space = SPACES["numbers"]
    for end, u in (("low", 0.0), ("high", 1.0)):
        expected = {dimension.name: pytest.approx(getattr(dimension, end)) for dimension in NUMBERS}
        assert space.decode([u] * space.size) == expected


def test_the_middle_of_a_log_uniform_dimension_is_its_geometric_mean() -> None:
    assert SPACES["numbers"].decode([0.5] * 4)["rate"] == pytest.approx((1e-4 * 1e3) ** 0.5)


@pytest.mark.parametrize("name", ["wpq", "mclock", "none"])
def test_of_three_categories_the_one_with_the_largest_coordinate_counts(name: str) -> None:
    space = MixedSpace([CATEGORIES[1]])
    sure = space.encode({"queue": name})
    assert space.size == 3
    assert space.decode([0.31 if u else 0.3 for u in sure])["queue"] == name


def test_the_callers_dimensions_stay_as_they_are() -> None:
    dimension = Real(0.0, 10.0, name="share")
    MixedSpace([dimension])
    assert dimension.transform([5.0]) == [5.0]


@pytest.mark.parametrize("names", [["a", "a"], ["a", None]])
def test_each_dimension_needs_a_name_of_its_own(names: list) -> None:
    with pytest.raises(ValueError, match="name of its own"):
        MixedSpace([Real(0, 1, name=name) for name in names])


def test_a_name_that_lacks_and_a_value_out_of_range_are_told() -> None:
    space = SPACES["numbers"]
    settings = space.decode([0.5] * 4)
    with pytest.raises(KeyError, match="rate"):
        space.encode({name: value for name, value in settings.items() if name != "rate"})
    with pytest.raises(ValueError, match="inside"):
        space.encode({**settings, "weight": 65})


def test_a_whole_number_has_one_beside_it_on_either_side_and_nothing_else_is_moved() -> None:
    names = {"few": Integer(1, 5, name="few"), "many": Integer(1, 64, prior="log-uniform", name="many")}
    space = MixedSpace([*names.values(), Real(0.0, 1.0, name="share"), Categorical(["x", "y", "z"], name="kind")])
    here = {"few": 5, "many": 8, "share": 0.3, "kind": "y"}
    smaller, larger = (space.decode(list(point)) for point in space.steps(np.array(space.encode(here))))
    assert smaller == {**here, "few": 4, "many": 7, "share": pytest.approx(0.3)}
    assert larger == {**here, "many": 9, "share": pytest.approx(0.3)}


def test_a_box_has_one_step_of_each_whole_number_where_a_trial_may_go_as_far() -> None:
    space = MixedSpace([Integer(1, 5, name="few"), Real(0.0, 1.0, name="share")])
    centre = np.array(space.encode({"few": 3, "share": 0.5}))
    box = _box(space, centre, 0.03, 1.0)
    assert np.array([box.low, box.high]) == pytest.approx(np.array([[0.25, 0.47], [0.75, 0.53]]))
    near = _box(space, centre, 0.03, 0.1)
    assert np.array([near.low, near.high]) == pytest.approx(np.array([[0.47, 0.47], [0.53, 0.53]]))
