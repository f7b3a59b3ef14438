"""What a guard sees of the newest sample."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, Dict

import pytest

from ceph_tuner.core.measure.sample import Sample
from tuner.sights import newest_sight, newest_sight_while_rebuilt


def guarded(states: Dict[str, int], inactive: float) -> Any:
    sample = Sample(100.0, 10.0, {"pgs.inactive": inactive}, pg_states=states)
    mgr = SimpleNamespace(get=lambda _: {"json": json.dumps({"status": "HEALTH_OK", "checks": {}})})
    return mgr, SimpleNamespace(latest=lambda: sample, concerns=lambda check: True)


@pytest.mark.parametrize(
    ("states", "inactive", "borne"),
    [
        ({"active+clean": 74, "peering": 100, "remapped+peering": 80, "activating+undersized": 2}, 182.0, 0.0),
        ({"active+clean": 70, "peering": 3, "down": 2, "undersized+peered": 1}, 6.0, 3.0),
        ({"active+clean": 70, "incomplete": 4}, 4.0, 4.0),
    ],
)
def test_pgs_that_peer_are_inactive_for_a_trial_and_not_for_a_boost(
    states: Dict[str, int], inactive: float, borne: float
) -> None:
    mgr, aim = guarded(states, inactive)
    trial, boost = newest_sight(mgr, aim, 101.0, 25.0), newest_sight_while_rebuilt(mgr, aim, 101.0, 25.0)
    assert trial is not None
    assert boost is not None
    assert (trial.values["pgs.inactive"], boost.values["pgs.inactive"]) == (inactive, borne)


def test_where_there_is_no_fresh_sample_nothing_is_seen() -> None:
    mgr, aim = guarded({"peering": 1}, 1.0)
    assert newest_sight_while_rebuilt(mgr, aim, 200.0, 25.0) is None


@pytest.mark.parametrize(("now", "seen"), [(99.0, True), (70.0, False), (-3500.0, False)])
def test_a_sample_of_before_the_clock_was_set_back_is_not_fresh(now: float, seen: bool) -> None:
    mgr, aim = guarded({"peering": 1}, 1.0)
    assert (newest_sight(mgr, aim, now, 25.0) is not None) is seen
