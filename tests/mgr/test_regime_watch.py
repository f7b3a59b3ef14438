"""Regimes inside the mgr: told at each sample, kept across a failover, shown with what they were told by."""

from __future__ import annotations

import json
from typing import Any, Dict, List

import pytest
from automatic_on_twin import OnTwin

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.measure.timeline import timeline
from ceph_tuner.core.regimes.bounds import BOUNDS_KEY
from tuner import render_automatic, render_regimes

BUSY = {"name": "writing", "metric": "client.write_iops", "enter": 1, "leave": 0.5, "hold_s": 0}
NEVER = {**BUSY, "enter": 1e9, "leave": 1e8}


def bounds(*markers: Any, dwell_s: float = 0) -> str:
    return json.dumps({"markers": markers, "dwell_s": dwell_s})


def held(aboard: OnTwin) -> Dict[str, str]:
    return {row["scope"]: row["regime"] for row in aboard.modes.regimes.document()["regimes"]}


def kept(aboard: OnTwin) -> List[str]:
    return [entry.name for entry in timeline(aboard.service.history()) if entry.kind == "regime"]


def test_a_regime_is_told_from_the_first_sample_on_and_kept_once() -> None:
    aboard = OnTwin()
    assert aboard.modes.regimes.document()["regimes"] == []
    aboard.sample(3)
    assert list(held(aboard)) == [""]
    assert kept(aboard) == [held(aboard)[""]]
    shown = render_regimes.book(aboard.modes.regimes.document())
    assert f"cluster: {held(aboard)['']} since 20" in shown
    assert "client.iops" in shown
    assert "10% of capacity" in shown


def test_other_bounds_tell_other_regimes_at_the_next_sample() -> None:
    aboard = OnTwin()
    aboard.sample(2)
    aboard.modes.regimes.set_bounds(bounds(BUSY), False)
    aboard.sample()
    assert held(aboard) == {"": "writing"}
    aboard.modes.regimes.set_bounds(bounds(NEVER), False)
    aboard.sample()
    assert held(aboard) == {"": "idle"}
    assert kept(aboard)[-2:] == ["writing", "idle"]
    history = {**aboard.service.past(False, 20), "trail": []}
    assert "writing" in render_automatic.history(history)
    aboard.modes.regimes.set_bounds("", True)
    assert aboard.service.store.get(BOUNDS_KEY) is None


@pytest.mark.parametrize(
    ("text", "default", "message"),
    [("", False, "nothing"), (bounds(BUSY), True, "both"), (bounds(), False, "must be 1 to 12"), ("{", False, "JSON")],
)
def test_bounds_that_make_no_sense_change_nothing(text: str, default: bool, message: str) -> None:
    aboard = OnTwin()
    with pytest.raises(InputError, match=message):
        aboard.modes.regimes.set_bounds(text, default)
    assert aboard.service.store.get(BOUNDS_KEY) is None


def test_stored_bounds_that_nobody_can_read_are_said_and_replaced_by_the_default() -> None:
    aboard = OnTwin()
    aboard.service.store.set(BOUNDS_KEY, '{"markers": 5}')
    aboard.sample(2)
    document = aboard.modes.regimes.document()
    assert "the stored regimes.markers" in document["problem"]
    assert len(document["bounds"]["markers"]) == 5
    assert "note: the stored regimes" in render_regimes.book(document)


def test_the_next_mgr_writes_nothing_twice_and_goes_on_with_the_stored_bounds() -> None:
    aboard = OnTwin()
    aboard.modes.regimes.set_bounds(bounds(BUSY), False)
    aboard.sample(3)
    before = kept(aboard)
    following = OnTwin(aboard.twin)
    following.sample(3)
    assert held(following) == {"": "writing"}
    assert kept(following)[len(before) :] in ([], ["writing"])
    assert following.modes.regimes.document()["bounds"]["markers"][0]["name"] == "writing"


def test_the_policy_of_a_calendar_is_in_the_history_as_well() -> None:
    aboard = OnTwin()
    odd = {"name": "always", "hours": "mon-sun", "objectives": ["client.p95_ms <= 9"]}
    calendar = {"objectives": ["client.p95_ms <= 20"], "calendar": {"policies": [odd]}}
    aboard.sample(2)
    assert [entry.kind for entry in timeline(aboard.service.history())] == ["regime"]
    aboard.service.slo_commands.set("", False, 1.0, json.dumps(calendar), True)
    aboard.sample(2)
    aboard.service.slo_commands.remove("all")
    aboard.sample(2)
    policies = [entry.name for entry in timeline(aboard.service.history()) if entry.kind == "policy"]
    assert policies == ["always", "none"]


def test_a_scope_of_an_objective_has_a_regime_of_its_own() -> None:
    aboard = OnTwin()
    (name,) = {place.device_class for place in aboard.service.config.places() if place.device_class}
    aboard.service.slo_commands.set(f"client.p95_ms{{class={name}}}<=20", False, 1.0, "")
    aboard.sample(3)
    assert set(held(aboard)) == {"", f"class={name}"}


def test_regimes_are_kept_while_nobody_can_read_the_objectives() -> None:
    aboard = OnTwin()
    aboard.service.store.set("slo", "{")
    aboard.sample(3)
    assert kept(aboard) == [held(aboard)[""]]


def test_the_guard_has_its_turn_whatever_becomes_of_regimes(monkeypatch: pytest.MonkeyPatch) -> None:
    aboard = OnTwin()

    def broken(*_: Any) -> None:
        raise RuntimeError("a regime that cannot be told")

    monkeypatch.setattr(aboard.modes.regimes, "sampled", broken)
    monkeypatch.setattr(aboard.driver, "_sampled", False)
    with pytest.raises(RuntimeError):
        aboard.modes.sampled()
    assert aboard.driver._sampled
