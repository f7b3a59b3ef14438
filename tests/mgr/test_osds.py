from __future__ import annotations

from typing import Any, List, Tuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mgr_stand_in import CommandResult
from synthetic_mgr import SyntheticMgr

from tuner.commander import MgrCommander
from tuner.osds import UNTOLD, Osds


class Mute(SyntheticMgr):
    """Its monitors may have nothing to say."""

    mute = False

    def _answer(self, prefix: str) -> str:
        return "" if self.mute else super()._answer(prefix)


def look(osds: Osds, mgr: SyntheticMgr, ticks: int, limit: int = 100) -> List[str]:
    notes: List[str] = []
    for _ in range(ticks):
        mgr.prepare(5.0)
        osds.look(limit, mgr.get_osdmap, notes)
    return notes


def watched(mgr: SyntheticMgr) -> Osds:
    return Osds(mgr, MgrCommander(mgr, CommandResult))  # type: ignore[arg-type]


def test_a_small_cluster_is_read_whole() -> None:
    mgr = SyntheticMgr(20, 40)
    osds = watched(mgr)
    mgr.set_away(3, True)
    assert not osds.look(100, mgr.get_osdmap, [])
    assert osds.born == {osd: 100 + osd for osd in range(20) if osd != 3}
    assert osds.down_osds == {3}
    assert "osd info" not in mgr.asked


def test_a_small_map_is_read_only_when_it_has_a_new_epoch() -> None:
    mgr = SyntheticMgr(20, 40)
    osds = watched(mgr)
    look(osds, mgr, 5)
    assert mgr.asked["osd_map"] == 1
    mgr.set_away(3, True)
    look(osds, mgr, 1)
    assert 3 not in osds.born
    look(osds, mgr, 5)
    assert mgr.asked["osd_map"] == 2


def test_a_map_that_could_not_be_read_is_read_again() -> None:
    class Failing(SyntheticMgr):
        failing = False

        def get(self, data_name: str) -> Any:
            if self.failing and data_name == "osd_map":
                raise RuntimeError("no memory")
            return super().get(data_name)

    mgr = Failing(20, 40)
    osds = watched(mgr)
    osds.map_changed()
    look(osds, mgr, 1)
    mgr.set_away(3, True)
    osds.map_changed()
    mgr.failing = True
    with pytest.raises(RuntimeError):
        look(osds, mgr, 1)
    mgr.failing = False
    look(osds, mgr, 1)
    assert 3 not in osds.born


@pytest.mark.parametrize("osd_count", [60, 2500])
def test_the_map_s_object_is_copied_only_as_the_mgr_tells_of_a_map(osd_count: int) -> None:
    mgr, early, late = SyntheticMgr(osd_count, 40), osd_count - 20, osd_count - 10
    osds = watched(mgr)
    osds.map_changed()
    look(osds, mgr, 5)
    copies = mgr.asked["get_osdmap"]
    look(osds, mgr, UNTOLD // 2)
    assert mgr.asked["get_osdmap"] == copies
    # a word that was lost
    mgr.set_away(early, True)
    look(osds, mgr, UNTOLD + 5)
    assert early not in osds.born
    mgr.set_away(late, True)
    osds.map_changed()
    look(osds, mgr, 5)
    assert late not in osds.born


def test_a_large_map_is_read_in_parts_and_only_when_it_has_changed() -> None:
    mgr = SyntheticMgr(2500, 40)
    osds = watched(mgr)
    look(osds, mgr, 1)
    assert len(osds.born) == 1000
    look(osds, mgr, 5)
    assert osds.born == {osd: 100 + osd % 50 for osd in range(2500)}
    assert mgr.asked["osd info"] == 1
    mgr.set_away(2400, True)
    look(osds, mgr, 3)
    assert 2400 in osds.born
    look(osds, mgr, 2)
    assert 2400 not in osds.born
    assert len(osds.born) == 2499
    assert (mgr.asked["osd info"], "osd_map" in mgr.asked) == (2, False)


def test_where_the_monitors_say_nothing_the_last_list_stays_and_it_says_so() -> None:
    mgr = Mute(300, 40)
    osds = watched(mgr)
    look(osds, mgr, 2)
    mgr.mute = True
    mgr.set_away(7, True)
    assert any("did not list" in note for note in look(osds, mgr, 4))
    assert len(osds.born) == 300
    mgr.mute = False
    look(osds, mgr, 3)
    assert len(osds.born) == 299


def test_without_a_count_at_the_start_the_map_is_read_whole_once() -> None:
    mgr = Mute(300, 40)
    mgr.mute = True
    osds = watched(mgr)
    assert osds.look(100, mgr.get_osdmap, [])
    assert len(osds.born) == 300
    mgr.mute = False
    look(osds, mgr, 3)
    assert mgr.asked["osd_map"] == 1


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 149), st.booleans()), max_size=8), st.integers(100, 200))
def test_whatever_comes_and_goes_the_list_is_right_two_ticks_later(story: List[Tuple[int, bool]], limit: int) -> None:
    mgr = SyntheticMgr(150, 40)
    osds = watched(mgr)
    for osd, away in story:
        mgr.set_away(osd, away)
        look(osds, mgr, 1, limit)
    look(osds, mgr, 3, limit)
    assert set(osds.born) == set(range(150)) - set(mgr.away)
