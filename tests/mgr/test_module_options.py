from __future__ import annotations

from typing import Any, Dict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.autopilot.policy import Policy, option_name, options
from ceph_tuner.core.errors import InputError
from tuner.options import DEFAULTS, OPTIONS, OptionRow, policy_of


def with_options(**changed: Any) -> Policy:
    given: Dict[str, Any] = {**DEFAULTS, **changed}
    return policy_of(given.__getitem__)


def test_the_defaults_are_the_policys_own() -> None:
    assert with_options() == Policy()


@pytest.mark.parametrize("item", options(), ids=option_name)
def test_each_part_of_the_policy_is_an_option_of_its_type_and_bounds(item: Any) -> None:
    (row,) = [row for row in OPTIONS if row.name == option_name(item)]
    # Ceph has no whole number with a sign among the types that modules may use for these
    assert row.type == {float: "float", int: "uint", str: "str"}[type(item.default)]
    assert (row.low, row.high) == (item.metadata["low"], item.metadata["high"])


@pytest.mark.parametrize("row", OPTIONS, ids=lambda row: row.name)
def test_an_option_is_described_in_one_line_of_words(row: OptionRow) -> None:
    assert row.meaning
    assert "\n" not in row.meaning
    assert row.type in ("float", "uint", "str")
    assert (row.low is None) == (row.high is None)
    if row.low is not None:
        assert row.low <= row.default <= row.high


def test_no_two_options_have_the_same_name() -> None:
    assert len({row.name for row in OPTIONS}) == len(OPTIONS)


NUMBERS = [item for item in options() if item.metadata["low"] is not None]


@given(st.sampled_from(NUMBERS), st.floats(0.0, 1.0))
def test_a_value_within_its_bounds_is_taken_over(item: Any, share: float) -> None:
    low, high = item.metadata["low"], item.metadata["high"]
    value = type(item.default)(low + share * (high - low))
    # those that bound one another, and the sampling interval, move out of the way
    beside = {"auto_least_windows": 2, "auto_most_windows": 10000, "sample_interval": 1.0}
    assert getattr(with_options(**{**beside, option_name(item): value}), item.name) == value


@given(st.sampled_from(NUMBERS), st.booleans())
def test_a_value_beyond_its_bounds_is_refused_by_the_options_name(item: Any, above: bool) -> None:
    value = item.metadata["high"] * 2 + 1 if above else item.metadata["low"] - 1
    with pytest.raises(InputError, match=option_name(item)):
        with_options(**{option_name(item): value})


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"auto_least_windows": 50, "auto_most_windows": 40}, "auto_least_windows"),
        ({"auto_canary": "datacenter"}, "auto_canary"),
        ({"auto_hours": "whenever"}, "whenever"),
        ({"auto_blackout": "mon-25:00"}, "blackout"),
        # no window would ever be closed with fewer samples than windows
        ({"sample_interval": 60.0}, "sample_interval"),
    ],
)
def test_options_that_make_no_sense_together_are_refused_with_the_reason(changed: Dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        with_options(**changed)
