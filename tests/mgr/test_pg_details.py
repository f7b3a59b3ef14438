from __future__ import annotations

from typing import Dict, List

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mgr_stand_in import CommandResult
from synthetic_mgr import SyntheticMgr

from tuner.commander import MgrCommander
from tuner.pg_details import PG_QUERIES, PgDetails


def look(details: PgDetails, mgr: SyntheticMgr, pools: Dict[int, int]) -> List[str]:
    """PGs looked at in one tick."""
    states = {"active+clean": sum(pools.values())}
    return list(details.look(mgr.now, states, lambda: pools, mgr.get_osdmap, {}, 0, []))


def watched(mgr: SyntheticMgr) -> PgDetails:
    return PgDetails(mgr, MgrCommander(mgr, CommandResult))  # type: ignore[arg-type]


@settings(max_examples=20, deadline=None)
@given(st.dictionaries(st.integers(1, 9), st.integers(1, 20), min_size=1, max_size=4))
def test_each_pg_of_each_pool_has_its_turn_once(pools: Dict[int, int]) -> None:
    mgr = SyntheticMgr(4, 8)
    details = watched(mgr)
    whole = sum(pools.values())
    for _ in range(2):
        turn = [pgid for _ in range(-(-whole // PG_QUERIES)) for pgid in look(details, mgr, pools)]
        assert sorted(turn) == sorted(f"{pool}.{number:x}" for pool, count in pools.items() for number in range(count))
    assert details.snaptrim_queue(whole) == 0.0
    assert details.snaptrim_queue(whole + 1) is None


def test_pgs_of_a_pool_that_is_gone_are_forgotten_with_the_next_turn() -> None:
    mgr = SyntheticMgr(4, 8)
    details = watched(mgr)
    for _ in range(2):
        look(details, mgr, {1: 8, 2: 8})
    assert details.late(16, mgr.now, {}) is not None
    for _ in range(2):
        look(details, mgr, {1: 4})
    assert details.snaptrim_queue(4) == 0.0
    assert details.snaptrim_queue(5) is None


def test_what_is_known_of_pgs_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuner.pg_details.PGS_KEPT", 12)
    mgr = SyntheticMgr(4, 8)
    details = watched(mgr)
    for _ in range(5):
        look(details, mgr, {1: 100})
    assert details.snaptrim_queue(12) == 0.0
    assert details.snaptrim_queue(13) is None


def test_the_longest_scrub_is_that_of_the_pgs_that_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuner.pg_details.PGS_KEPT", 16)
    mgr = SyntheticMgr(4, 8)
    details = watched(mgr)
    assert details.longest_scrub_s() is None
    longest = []
    for lasted in (30.0, 90.0, 20.0, 40.0, 10.0):
        mgr.scrub_lasted_s = lasted
        look(details, mgr, {1: 100})
        longest.append(details.longest_scrub_s())
    # two looks are kept
    assert longest == [30.0, 90.0, 90.0, 40.0, 40.0]
