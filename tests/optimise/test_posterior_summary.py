from __future__ import annotations

import math

import numpy as np
import pytest
from known_functions import learnt
from skopt.space import Categorical, Integer, Real

from ceph_tuner.optimise import Constraint, Measured, MixedSpace, Options, SafeOptimiser
from ceph_tuner.optimise.candidates import Region
from ceph_tuner.optimise.history import ToldTrial, measured
from ceph_tuner.optimise.model import Model
from ceph_tuner.optimise.posterior_summary import Importance, Influence, convergence, importance, partial_dependence

pytestmark = pytest.mark.slow

CUBE = MixedSpace([Real(0.0, 1.0, name=name) for name in "abc"])


def generator() -> np.random.Generator:
    return np.random.default_rng(3)


def by_name(found: Importance) -> dict[str, Influence]:
    return {influence.name: influence for influence in found.influences}


def test_shares_of_an_additive_function_are_those_of_its_slopes() -> None:
    model = learnt(CUBE, {"y": lambda u: 3 * u[:, 0] + 4 * u[:, 1]})
    found = importance(model, CUBE, ["y"], CUBE.names, generator())["y"]
    assert [influence.name for influence in found.influences] == ["b", "a", "c"]
    # variances of the sides are 3^2 / 12 and 4^2 / 12
    for name, share in (("a", 9 / 25), ("b", 16 / 25), ("c", 0.0)):
        influence = by_name(found)[name]
        assert influence.first == pytest.approx(share, abs=0.03)
        assert influence.total == pytest.approx(share, abs=0.03)
        assert influence.first_interval[0] <= influence.first <= influence.first_interval[1]
        assert influence.total_interval[0] - 0.02 <= share <= influence.total_interval[1] + 0.02
    assert found.deviation == pytest.approx(math.sqrt(25 / 12), rel=0.03)


def test_settings_that_act_only_together_have_no_share_of_their_own() -> None:
    model = learnt(CUBE, {"y": lambda u: (2 * u[:, 0] - 1) * (2 * u[:, 1] - 1)}, count=64)
    found = by_name(importance(model, CUBE, ["y"], CUBE.names, generator())["y"])
    for name in "ab":
        assert found[name].first == pytest.approx(0.0, abs=0.1)
        assert found[name].total == pytest.approx(1.0, abs=0.1)
    assert found["c"].total == pytest.approx(0.0, abs=0.05)


def test_a_region_has_shares_of_its_own() -> None:
    # of no account up to the middle of a, and all that counts beyond
    model = learnt(CUBE, {"y": lambda u: u[:, 1] + 20 * np.maximum(0, u[:, 0] - 0.5) ** 2}, count=64)
    near = Region(np.zeros(3), np.array([0.4, 1.0, 1.0]), np.full(3, 0.2))
    whole = by_name(importance(model, CUBE, ["y"], CUBE.names, generator())["y"])
    inside = by_name(importance(model, CUBE, ["y"], CUBE.names, generator(), near)["y"])
    assert whole["a"].total > 0.8
    assert inside["b"].total > 0.8


def test_what_hardly_anything_is_known_of_has_wide_intervals() -> None:
    functions = {"y": lambda u: np.sin(4 * u[:, 0]) + u[:, 1]}
    widths = []
    for count in (4, 64):
        found = importance(learnt(CUBE, functions, count=count), CUBE, ["y"], CUBE.names, generator())["y"]
        low, high = by_name(found)["a"].total_interval
        widths.append(high - low)
    assert widths[0] > 2 * widths[1]
    assert widths[0] > 0.2


def test_sides_of_a_category_count_as_one_setting() -> None:
    space = MixedSpace([Categorical(["one", "two", "three"], name="kind"), Real(0.0, 1.0, name="share")])
    assert space.names == ["kind", "kind", "kind", "share"]
    model = learnt(space, {"y": lambda u: 2.0 * u[:, 1] + 0.5 * u[:, 3]})
    found = by_name(importance(model, space, ["y"], space.names, generator())["y"])
    assert set(found) == {"kind", "share"}
    # 2 with probability 1/3 has variance 8/9, the share's half 1/48
    assert found["kind"].total == pytest.approx((8 / 9) / (8 / 9 + 1 / 48), abs=0.03)


def test_a_metric_that_nothing_changes_has_no_shares() -> None:
    model = learnt(CUBE, {"y": lambda u: np.full(len(u), 5.0)})
    found = importance(model, CUBE, ["y"], CUBE.names, generator())["y"]
    assert found.deviation < 0.01


def test_the_same_generator_gives_the_same_shares() -> None:
    model = learnt(CUBE, {"y": lambda u: u[:, 0] ** 2})
    first, second = (importance(model, CUBE, ["y"], CUBE.names, generator()) for _ in range(2))
    assert first == second


def test_names_that_do_not_fit_the_cube_are_refused() -> None:
    model = learnt(CUBE, {"y": lambda u: u[:, 0]})
    with pytest.raises(ValueError, match=r"names \(=2\) must be one for each of 3 sides"):
        importance(model, CUBE, ["y"], ["a", "b"], generator())


def test_partial_dependence_follows_the_function_and_averages_the_rest() -> None:
    model = learnt(CUBE, {"y": lambda u: 10 * (u[:, 0] - 0.5) ** 2 + 4 * u[:, 1]}, count=64)
    values = [0.0, 0.25, 0.5, 0.75, 1.0]
    found = partial_dependence(model, CUBE, "y", "a", generator(), values)
    truth = [10 * (value - 0.5) ** 2 + 2 for value in values]
    assert found.mean == pytest.approx(truth, abs=0.3)
    assert all(low <= mean <= high for low, mean, high in zip(found.low, found.mean, found.high))


def test_partial_dependence_of_a_logarithm_is_in_the_metrics_own_unit() -> None:
    model = learnt(CUBE, {"y": lambda u: np.exp(3 * u[:, 0])}, options=Options(log_metrics=frozenset("y")))
    found = partial_dependence(model, CUBE, "y", "a", generator(), [0.0, 1.0])
    assert found.mean == pytest.approx([1.0, math.exp(3)], rel=0.1)


def test_partial_dependence_chooses_values_in_order_and_takes_categories() -> None:
    space = MixedSpace([Categorical(["low", "high"], name="kind"), Integer(1, 64, prior="log-uniform", name="weight")])
    model = learnt(space, {"y": lambda u: u[:, 0] + u[:, 1]})
    weights = partial_dependence(model, space, "y", "weight", generator())
    assert list(weights.values) == sorted(weights.values)
    assert list(weights.mean) == sorted(weights.mean)
    kinds = partial_dependence(model, space, "y", "kind", generator())
    assert set(kinds.values) == {"low", "high"}
    assert abs(kinds.mean[0] - kinds.mean[1]) == pytest.approx(1.0, abs=0.05)


class Stick:
    """Two shares of which the second has what the first leaves."""

    size = 2

    def __init__(self) -> None:
        self.decoded = self.encoded = 0

    def decode(self, point: list[float]) -> dict[str, float]:
        return {"one": point[0], "two": point[1] * (1 - point[0])}

    def encode(self, settings: dict[str, float]) -> list[float]:
        one, left = settings["one"], 1 - settings["one"]
        return [one, min(1.0, settings["two"] / left) if left else 0.0]

    def decode_all(self, points: np.ndarray) -> list[dict[str, float]]:
        self.decoded += 1
        return [self.decode(list(point)) for point in points]

    def encode_all(self, settings: list[dict[str, float]]) -> np.ndarray:
        self.encoded += 1
        return np.array([self.encode(each) for each in settings])


def test_a_value_is_averaged_over_what_the_space_allows_beside_it() -> None:
    space = Stick()
    settings = [{"one": one, "two": two * (1 - one)} for one in np.linspace(0, 0.9, 6) for two in np.linspace(0, 1, 6)]
    trials = [ToldTrial(dict(s), measured({"y": Measured(s["one"], 0.01)})) for s in settings]
    model = Model(space, ["y"], (), np.array([0.5, 0.5]), Options(), (), trials)  # type: ignore[arg-type]
    before = space.encoded
    found = partial_dependence(model, space, "y", "two", generator(), [0.0, 0.8])  # type: ignore[arg-type]
    # hundreds of settings, asked for at once
    assert (space.encoded - before, space.decoded) == (1, 2)
    # the first share is anything beside 0, and at most 0.2 beside 0.8
    assert found.mean[0] == pytest.approx(0.5, abs=0.05)
    assert found.mean[1] == pytest.approx(0.1, abs=0.05)


def test_a_value_outside_the_space_is_refused() -> None:
    model = learnt(CUBE, {"y": lambda u: u[:, 0]})
    with pytest.raises(ValueError, match="space"):
        partial_dependence(model, CUBE, "y", "a", generator(), [2.0])


def test_drawn_functions_differ_as_the_model_says() -> None:
    model = learnt(CUBE, {"y": lambda u: np.sin(5 * u[:, 0]) + u[:, 1] ** 2}, count=16, error=0.05)
    view = model.at(generator().random((200, 3)))
    mean, deviation = view.metric("y")
    drawn = view.draws("y", 400, generator())
    assert drawn.shape == (400, 200)
    assert np.abs(drawn.mean(0) - mean).max() < 0.3 * deviation.max()
    ratio = drawn.std(0) / deviation
    assert np.median(ratio) == pytest.approx(1.0, abs=0.1)
    assert 0.7 < ratio.min() <= ratio.max() < 1.4


def test_convergence_counts_only_what_is_feasible_and_whole() -> None:
    trials = [
        ToldTrial({"a": a, "b": b, "c": 0.5}, measured({"y": Measured(1 - a, 0.01), "heat": Measured(a, 0.01)}), failed)
        for a, b, failed in ((0.2, 0, None), (0.5, 0, None), (0.9, 0, None), (0.6, 1, "stopped"), (0.4, 0, None))
    ]
    constraint = Constraint("heat", "<=", 0.7)
    model = Model(CUBE, ["y", "heat"], [constraint], np.array([0.2, 0.5, 0.5]), Options(), (), trials)
    found = convergence(model, "y", trials)
    assert [entry.number for entry in found] == [1, 2, 3, 4, 5]
    best = [entry.best for entry in found]
    assert best[0] == pytest.approx(0.8, abs=0.05)
    # too hot, stopped, and worse: none of them betters 0.5
    assert best[1:] == pytest.approx([0.5] * 4, abs=0.05)
    assert [entry.safe for entry in found][:3] == [True, True, False]
    assert found[2].feasible < 0.1 < 0.9 < found[0].feasible
    assert [entry.failed for entry in found][3] == "stopped"
    assert all(entry.low < entry.mean < entry.high for entry in found)


def test_a_search_explains_itself_and_the_same_each_time() -> None:
    constraint = Constraint("heat", "<=", 0.2)
    search = SafeOptimiser(CUBE, "y", [constraint], {"a": 0.5, "b": 0.5, "c": 0.5})
    with pytest.raises(ValueError, match="not seen"):
        search.explain()
    for a, b in ((0.5, 0.5), (0.8, 0.1), (0.1, 0.9), (0.9, 0.8), (0.2, 0.3)):
        search.tell({"a": a, "b": b, "c": 0.5}, {"y": Measured(a, 0.01), "heat": Measured(1 + b, 0.01)})
    told = search.explain()
    assert told.metrics == ["y", "heat"]
    assert told.importance(CUBE.names)["heat"].influences[0].name == "b"
    assert told.importance(CUBE.names, {"a": 0.1, "b": 0.5, "c": 0.5}, 0.1)["y"].influences[0].name == "a"
    assert [entry.best for entry in told.convergence()] == [None] * 5
    assert told.limiting().conflicts == (frozenset({constraint}),)
    assert told.reach().exists < 0.5
    assert told.nearest_feasible().relaxed[0].bound > 0.9
    again = search.explain()
    assert again.nearest_feasible() == told.nearest_feasible()
    assert again.partial_dependence("y", "a") == told.partial_dependence("y", "a")
