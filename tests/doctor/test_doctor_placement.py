from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from patients import OSDS, TIB, healthy, pgs

from ceph_tuner.doctor.facts import PoolFacts
from ceph_tuner.doctor.placement import moved_bytes, placement, planned_pgs, spread_of


def pool(pg_num: int, size: int = 2, raw: float = OSDS * TIB) -> PoolFacts:
    return PoolFacts(1, "rbd", pg_num, size, raw_bytes=raw)


def test_many_even_pgs_are_no_finding() -> None:
    assert placement(healthy()) == []


def test_the_busiest_osd_decides_the_throughput() -> None:
    rows = [((osd, (osd + 2) % OSDS), 60 if osd == 0 else 30) for osd in range(OSDS)]
    (found,) = placement(healthy(pgs=pgs(rows)))
    # osd.0 and osd.2 hold 90 copies where 70 are due
    assert found.share == pytest.approx(1 - 70 / 90)
    assert "osd.0 has 29% more than its part" in found.evidence[0]


def test_an_osd_of_twice_the_weight_may_have_twice_the_pgs() -> None:
    even = pgs([((0, 1), 20), ((0, 2), 20)])
    assert spread_of(even, {0: 2.0, 1: 1.0, 2: 1.0}).excess == pytest.approx(0)
    assert spread_of(even, {0: 1.0, 1: 1.0, 2: 1.0}).excess == pytest.approx(0.5)


def test_few_pgs_are_planned_anew_with_what_that_moves() -> None:
    few = healthy(pools=(pool(32),), pgs=pgs(((osd, (osd + 2) % OSDS), 5) for osd in range(OSDS)))
    (found,) = placement(few)
    assert found.commands == ("ceph osd pool set rbd pg_num 256",)
    # three doublings, and 4 of 6 OSDs hold no copy of what is placed anew
    assert f"moves {3 / 2 * 4 / 6 * OSDS * TIB / 1e12:.3g} TB of 6.6 TB" in found.evidence[0]


def test_pools_without_load_or_of_a_few_bytes_are_left_alone() -> None:
    idle = PoolFacts(2, "idle", 1, 3, raw_bytes=TIB / 1000)
    rows = (*healthy().pgs, *pgs([((0, 1, 2), 1)]))
    assert placement(healthy(pools=(*healthy().pools, idle), pgs=rows)) == []
    assert placement(healthy(pools=(pool(1, raw=2.0**20),), pgs=pgs([((0, 2), 1), ((0, 3), 1)]))) == []


@given(st.integers(0, 10), st.integers(0, 10), st.integers(1, 6), st.integers(0, 100))
def test_what_moves_is_half_of_the_data_a_doubling_at_most_and_nothing_without_other_osds(
    before: int, doublings: int, size: int, more: int
) -> None:
    whole = pool(2**before, size, raw=1e12)
    moved = moved_bytes(whole, 2 ** (before + doublings), size + more)
    assert 0 <= moved <= doublings / 2 * 1e12
    assert (moved == 0) == (doublings == 0 or more == 0)
    assert moved <= moved_bytes(whole, 2 ** (before + doublings + 1), size + more)


@given(st.floats(1, 1000), st.integers(1, 5000), st.floats(0.01, 1), st.integers(1, 12))
def test_the_plan_is_a_power_of_two_near_the_target(target: float, osds: int, share: float, size: int) -> None:
    wanted = planned_pgs(pool(8, size), target, osds, share)
    assert wanted >= 1
    assert wanted & (wanted - 1) == 0
    ideal = max(1.0, target * osds * share / size)
    assert ideal / 2 <= wanted <= 2 * ideal
