"""What mClock owes its classes keeps to capacity, limits and wishes, for one OSD as for many."""

from __future__ import annotations

from typing import Any, List

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.search.entitlements import entitlements

HUNDREDTHS = st.integers(0, 100).map(lambda value: value / 100)
PART = st.tuples(HUNDREDTHS, st.integers(1, 64), HUNDREDTHS)


@given(st.lists(PART, min_size=3, max_size=3), st.lists(st.none() | HUNDREDTHS, min_size=3, max_size=3))
def test_what_is_owed_keeps_to_capacity_limits_and_wishes(parts: List[Any], asked: List[Any]) -> None:
    # as Ceph demands of a limit: none, or not below the reservation
    parts = [(r, w, max(limit, r) if limit else 0.0) for r, w, limit in parts]
    names = ["a", "b", "c"]
    wishes = [float("inf") if wish is None else wish for wish in asked]
    owed = {
        name: float(own[0]) for name, own in entitlements(dict(zip(names, parts)), dict(zip(names, wishes))).items()
    }
    assert sum(owed.values()) <= 1 + 1e-9
    caps = [min(limit or float("inf"), wish) for (_, _, limit), wish in zip(parts, wishes)]
    for name, cap, (reservation, _, _) in zip(names, caps, parts):
        assert owed[name] <= cap + 1e-9
        if sum(part[0] for part in parts) <= 1:
            assert owed[name] >= min(reservation, cap) - 1e-9
    # nothing is left while somebody may have more
    assert sum(owed.values()) == pytest.approx(min(1.0, sum(caps)))


def test_what_reservations_leave_goes_by_weight_to_those_below_their_limit() -> None:
    owed = entitlements({"a": (0.3, 1, 0.0), "b": (0.1, 3, 0.25), "c": (0.0, 1, 0.0)}, {"a": 0.4, "b": 9.0, "c": 0.1})
    assert {name: round(float(own[0]), 6) for name, own in owed.items()} == {"a": 0.4, "b": 0.25, "c": 0.1}
    over = entitlements({"a": (0.9, 1, 0.0), "b": (0.6, 3, 0.0)}, {"a": 9.0, "b": 9.0})
    assert [float(own[0]) for own in over.values()] == pytest.approx([0.6, 0.4])


def test_many_settings_at_once_are_divided_as_each_by_itself() -> None:
    random = np.random.default_rng(1)
    parts = {name: (0.3 * random.random(20), random.integers(1, 9, 20), 0.3 + random.random(20)) for name in "abc"}
    asked = {"a": 0.4, "b": np.inf, "c": 0.1}
    together = entitlements(parts, asked)
    for row in range(20):
        alone = entitlements({name: tuple(column[row] for column in own) for name, own in parts.items()}, asked)
        assert {name: own[0] for name, own in alone.items()} == {name: own[row] for name, own in together.items()}
