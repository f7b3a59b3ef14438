from __future__ import annotations

import json
import pickle
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.goals.slo import parse_slo
from ceph_tuner.core.knobs.releases import REEF
from ceph_tuner.core.profiles.profile import Profile
from ceph_tuner.fleet.advice import Advice
from ceph_tuner.workers import plain

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text(st.characters(codec="utf-8")), inner)
        | st.dictionaries(st.integers(0, 9) | st.tuples(st.booleans()), inner)
        | st.frozensets(st.integers(0, 99))
    ),
    max_leaves=20,
)


@given(VALUES)
def test_a_result_comes_back_as_it_was(value: Any) -> None:
    assert plain.from_text(plain.to_text(value)) == value


def test_what_searches_answer_comes_back_as_it_was() -> None:
    profile = Profile("x", REEF, {"osd_max_scrubs": 2}, slos=({"name": "a"},))
    advice = Advice({"recommended": {"better": True}, "means": {"client.p95_ms": np.float64(1.5)}}, profile)
    assert plain.from_text(plain.to_text(advice)) == advice
    slo = parse_slo({"objectives": ["client.p95_ms <= 80 ms"]})
    assert plain.from_text(plain.to_text((slo, np.arange(3)))) == (slo, [0, 1, 2])
    assert plain.from_text(plain.to_text(REEF)) is REEF


@pytest.mark.parametrize("value", [threading.Lock(), object(), plain, print, {"a": pickle.dumps}])
def test_what_is_no_result_is_not_sent(value: Any) -> None:
    with pytest.raises(TypeError):
        plain.to_text(value)


@pytest.mark.parametrize(
    "stored",
    [
        {"!": "os:system", "of": {"command": "id"}},
        {"!": "ceph_tuner.workers.plain:json.loads", "of": {}},
        {"!": "ceph_tuner.workers.plain:read_json", "of": {}},
        {"!": "ceph_tuner.core.errors:InputError", "of": {}},
        {"!": "ceph_tuner.not_there:X", "of": {}},
        {"!": "subprocess:Popen", "of": {"args": "id"}},
        {"!": 5, "of": {}},
        {"!": "ceph_tuner.core.goals.slo:Slo", "of": {}},
        {"!release": "none"},
        {"!other": 1},
        {"!tuple": 5},
        {"!dict": [1]},
    ],
)
def test_nothing_but_values_of_this_program_is_made(stored: Any) -> None:
    with pytest.raises((TypeError, ValueError, KeyError, InputError)):
        plain.from_text(json.dumps(stored))


@pytest.mark.parametrize("text", [b"x", pickle.dumps(1), None, "[" * 10_000, "x", 5])
def test_what_is_no_json_is_no_result(text: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        plain.from_text(text)
