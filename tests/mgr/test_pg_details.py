from __future__ import annotations

import json
from typing import Dict, List

import mgr_scale
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mgr_stand_in import CommandResult
from synthetic_mgr import SyntheticMgr

from tuner.collect import TickLimits
from tuner.commander import MgrCommander
from tuner.pg_details import DETAIL_S, PG_QUERIES, PgDetails


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


class OwnIntervals(SyntheticMgr):
    """Its OSDs scrub once in 30 years, one pool every three days, and its monitors may have nothing to say."""

    mute = False

    def get_ceph_option(self, key: str) -> float:
        return 1e9

    def _answer(self, prefix: str) -> str:
        if prefix == "osd pool ls":
            options = {2: {"deep_scrub_interval": 3 * 86400.0}}
            rows = [{"pool_id": pool, "options": options.get(pool, {})} for pool in (1, 2)]
            return "" if self.mute else json.dumps(rows)
        return "" if prefix == "config get" else super()._answer(prefix)


def test_pools_own_intervals_win_where_the_map_is_not_read_whole_too() -> None:
    mgr, pools = OwnIntervals(4, 8), {1: 8, 2: 8}
    details = watched(mgr)
    for _ in range(2):
        look(details, mgr, pools)
    assert details.late(16, mgr.now, {}) == 0.0
    assert "osd pool ls" not in mgr.asked
    mgr.now += DETAIL_S
    for _ in range(3):
        assert details.late(16, mgr.now, None) == 8.0
    assert mgr.asked["osd pool ls"] == 1
    # monitors that do not answer change nothing
    mgr.mute = True
    mgr.now += DETAIL_S
    assert details.late(16, mgr.now, None) == 8.0
    assert mgr.asked["osd pool ls"] == 2


def test_a_large_cluster_s_pools_are_asked_for_their_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuner.pg_details.PG_QUERIES", 16)
    mgr = OwnIntervals(600, 16)
    monkeypatch.setattr(mgr, "_pools", lambda: {1: 8, 2: 8})
    sampler = mgr_scale.plugin_on(mgr)
    sampler._reader._limits = lambda: TickLimits(pg_detail_limit=8)  # type: ignore[attr-defined]
    for _ in range(4):
        mgr.prepare(5.0)
        sampler.tick()
    sample = sampler.latest()
    assert sample is not None
    assert sample.values["scrub.pgs_late"] == 8.0


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
