from __future__ import annotations

from typing import List

import mgr_scale
import pytest
from mgr_stand_in import CommandResult
from synthetic_mgr import SyntheticMgr

from tuner.commander import MgrCommander
from tuner.erasure_codes import ErasureCodes


class Mute(SyntheticMgr):
    """Its monitors may have nothing to say."""

    mute = False

    def _answer(self, prefix: str) -> str:
        return "" if self.mute else super()._answer(prefix)


def watched(mgr: SyntheticMgr) -> ErasureCodes:
    return ErasureCodes(MgrCommander(mgr, CommandResult))  # type: ignore[arg-type]


def test_the_monitors_are_asked_again_only_when_a_pool_is_new() -> None:
    mgr, notes = SyntheticMgr(4, 3 * 8192, k=4), list[str]()
    codes = watched(mgr)
    for _ in range(3):
        assert codes.look([1, 2], notes) == {1: 4, 2: 4}
    assert (mgr.asked["osd pool ls"], mgr.asked["osd erasure-code-profile get"]) == (1, 1)
    assert codes.look([1, 2, 3], notes) == {1: 4, 2: 4, 3: 4}
    # one that is gone meanwhile is not asked for time and again
    for _ in range(3):
        assert codes.look([1, 9], notes)[9] == 1
    assert mgr.asked["osd pool ls"] == 3
    assert notes == []


def test_copies_have_no_chunks() -> None:
    mgr = SyntheticMgr(4, 8)
    assert watched(mgr).look([1], []) == {1: 1}
    assert "osd erasure-code-profile get" not in mgr.asked


def test_monitors_that_do_not_say_are_a_note_and_asked_again() -> None:
    mgr, notes = Mute(4, 8, k=4), list[str]()
    mgr.mute = True
    codes = watched(mgr)
    assert codes.look([1], notes) == {}
    assert notes == ["the monitors did not list the pools: erasure codes are taken for copies"]
    mgr.mute = False
    assert codes.look([1], notes) == {1: 4}


@pytest.mark.slow
@pytest.mark.parametrize("osds", [500, 1500])
def test_shards_of_a_large_cluster_are_a_kth_of_an_object(osds: int) -> None:
    stored: List[float] = []
    for k in (0, 4):
        mgr = SyntheticMgr(osds, 50 * osds, k=k)
        sampler = mgr_scale.plugin_on(mgr)
        for _ in range(20):
            mgr.prepare(5.0)
            sampler.tick()
        sample = sampler.latest()
        assert sample is not None
        stored.append(sample.values["scrub.interval_s"] * sample.values["scrub.bytes_s"])
    assert stored[0] == pytest.approx(4 * stored[1])
