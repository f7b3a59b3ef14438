from __future__ import annotations

from typing import Dict, Tuple

import pytest
from boosts import LEFT
from test_boost_outcome import AT, on

from ceph_tuner.core.boost.explanation import explain
from ceph_tuner.core.boost.kinds import KINDS
from ceph_tuner.core.boost.obstacles import NOTHING, flags_in, obstacles

DEGRADED = {LEFT: 7.0}


@pytest.mark.parametrize(
    ("kind", "flag"),
    [
        ("recovery", "norecover"),
        ("backfill", "norecover"),
        ("backfill", "nobackfill"),
        ("scrub", "nodeep-scrub"),
        ("snaptrim", "nosnaptrim"),
    ],
)
def test_a_flag_that_stops_a_kind_of_work_is_named_with_the_way_out(kind: str, flag: str) -> None:
    found = obstacles(kind, frozenset({flag, "noout"}), DEGRADED, {})
    words = f"the flag {flag} is set, so {kind} does not go on: `ceph osd unset {flag}` lets it go on"
    assert (found.stops, found.holds) == ((words,), ())


def test_flags_of_other_work_are_no_obstacle() -> None:
    flags = frozenset({"noout", "noscrub", "pauserd"})
    assert all(obstacles(kind, flags, DEGRADED, {}) == NOTHING for kind in KINDS)
    assert obstacles("scrub", frozenset({"norecover", "nobackfill"}), DEGRADED, {}) == NOTHING


def test_a_flag_that_holds_some_of_it_is_a_note_alone() -> None:
    held = obstacles("recovery", frozenset({"nobackfill"}), DEGRADED, {})
    assert (held.stops, len(held.holds)) == ((), 1)
    held = obstacles("backfill", frozenset({"norebalance"}), DEGRADED, {})
    assert (held.stops, len(held.holds)) == ((), 1)
    # nothing but whole PGs is left to move
    assert len(obstacles("backfill", frozenset({"norebalance"}), {LEFT: 0.0}, {}).stops) == 1


@pytest.mark.parametrize(
    ("states", "words"),
    [
        (
            {"active+recovery_toofull+degraded": 40, "active+recovery_toofull+degraded+remapped": 3},
            "43 PGs in recovery_toofull have no room",
        ),
        ({"active+remapped+backfill_toofull": 1}, "1 PG in backfill_toofull has no room"),
    ],
)
def test_pgs_without_room_are_counted(states: Dict[str, int], words: str) -> None:
    for kind in ("recovery", "backfill"):
        found = obstacles(kind, frozenset(), DEGRADED, states)
        assert found.stops == ()
        assert found.words[0].startswith(words)
    assert obstacles("scrub", frozenset(), DEGRADED, states) == NOTHING


@pytest.mark.parametrize(
    ("message", "flags"),
    [
        ("norecover flag(s) set", ("norecover",)),
        ("noout,nodeep-scrub flag(s) set", ("noout", "nodeep-scrub")),
        ("", ()),
    ],
)
def test_flags_are_read_from_the_health(message: str, flags: Tuple[str, ...]) -> None:
    assert flags_in({"checks": {"OSDMAP_FLAGS": {"summary": {"message": message}}}}) == frozenset(flags)
    assert flags_in({}) == frozenset()


def test_no_end_is_promised_of_work_that_does_not_go_on() -> None:
    stopped = obstacles("recovery", frozenset({"norecover"}), DEGRADED, {})
    lines = explain(on(), {LEFT: 500.0}, None, AT + 5.0, stopped)
    assert stopped.stops[0] in lines
    assert not [line for line in lines if line.startswith("done")]
    # what is held in part goes on
    held = obstacles("recovery", frozenset({"nobackfill"}), DEGRADED, {})
    assert [line for line in explain(on(), {LEFT: 500.0}, None, AT + 5.0, held) if line.startswith("done")]
