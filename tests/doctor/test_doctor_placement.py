from __future__ import annotations

from dataclasses import replace
from typing import Tuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from patients import OSDS, TIB, healthy, pgs

from ceph_tuner.doctor.facts import Facts, PoolFacts
from ceph_tuner.doctor.placement import (
    busiest_of_all,
    ideal_pgs,
    moved_bytes,
    permitted_pgs,
    placement,
    planned_pgs,
    shares,
    spread_of,
)


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


def metadata(operations: float) -> Facts:
    """A hundred OSDs filled evenly, and a pool of next to no bytes on 64 PGs, the first five OSDs in many of them."""
    osds = range(100)
    data = PoolFacts(1, "data", 4096, 3, raw_bytes=300 * TIB, operations=1e6 - operations)
    meta = PoolFacts(2, "meta", 64, 3, raw_bytes=TIB / 100, operations=operations)
    even = [((at, (at + 33) % 100, (at + 66) % 100), 41) for at in osds]
    rows = [((at % 5, 5 + at, (50 + at) if at > 19 else 80 + at), 1) for at in range(64)]
    meta_pgs = tuple(replace(pg, pool=2) for pg in pgs(rows))
    weights = dict.fromkeys(osds, 1.0)
    return healthy(pools=(data, meta), pgs=(*pgs(even), *meta_pgs), weights=weights, balancer="upmap")


def test_a_pool_s_uneven_pgs_cost_what_that_pool_carries() -> None:
    facts = metadata(1e5)
    own = spread_of([pg for pg in facts.pgs if pg.pool == 2], facts.weights)
    assert own.excess > 5
    (found,) = placement(facts)
    # one operation in ten
    assert found.share == pytest.approx(1 - 1 / (1 + 0.1 * own.excess), rel=0.01)
    assert found.evidence[0] == f"all pools together: osd.0 has {busiest_of_all(facts)[1]:.0%} more load than its part"
    assert "meta (0% of the data and 10% of the operations on its OSDs)" in found.evidence[1]
    assert "ceph osd pool set meta pg_num 256" in found.commands


def test_a_pool_that_carries_little_is_no_finding_however_uneven_it_is() -> None:
    assert placement(metadata(2e4)) == []


@given(st.lists(st.integers(20, 60), min_size=OSDS, max_size=OSDS), st.floats(0, 1))
def test_no_osd_is_farther_above_its_part_by_all_pools_than_by_the_worst(counts: list, share: float) -> None:
    rows = pgs(((osd, (osd + 2) % OSDS), count) for osd, count in enumerate(counts))
    even = tuple(replace(pg, pool=2) for pg in pgs(((osd, (osd + 2) % OSDS), 40) for osd in range(OSDS)))
    both = (replace(pool(256, raw=share * TIB), operations=1e3), PoolFacts(2, "even", 256, 2, (1 - share) * TIB, 9e3))
    _, worst = busiest_of_all(healthy(pools=both, pgs=(*rows, *even)))
    assert worst <= spread_of(rows, healthy().weights).excess + 1e-9


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


def crowded(most: float, pg_num: int = 64) -> Facts:
    """Ten OSDs with about 250 PGs each, nearly none of them of the pool that has nearly all bytes."""
    osds = range(10)
    small = [PoolFacts(number, f"small{number}", 128, 3, raw_bytes=TIB / 100) for number in range(2, 8)]
    data = PoolFacts(1, "data", pg_num, 3, raw_bytes=10 * TIB)
    rows = [
        replace(pg, pool=pool.number)
        for pool in (data, *small)
        for pg in pgs([(tuple((at + step) % 10 for step in (0, 3, 6)), 1) for at in range(pool.pg_num)])
    ]
    return healthy(pools=(data, *small), pgs=tuple(rows), weights=dict.fromkeys(osds, 1.0), most_pgs=most)


def test_where_the_osds_have_no_room_for_more_pgs_none_are_planned_and_it_is_said() -> None:
    (found,) = placement(crowded(250))
    assert found.title == "Few PGs of a pool that carries load"
    assert found.commands == ()
    assert "256 would be more than the monitors take (mon_max_pg_per_osd is 250)" in found.evidence[0]
    assert found.cure == "The OSDs have no room for more PGs of data: first fewer of pools that carry little."


def test_a_plan_keeps_to_what_the_monitors_take() -> None:
    # 2304 copies of others and 128 x 3 are 269 on each OSD; with 256 x 3 they are 307
    assert placement(crowded(269))[0].commands == ("ceph osd pool set data pg_num 128",)
    assert placement(crowded(307))[0].commands == ("ceph osd pool set data pg_num 128",)
    assert placement(crowded(308))[0].commands == ("ceph osd pool set data pg_num 256",)


def test_what_is_planned_for_one_pool_is_taken_from_the_room_of_the_next() -> None:
    facts = crowded(308)
    data = facts.pools[0]
    numbers = {pool.number: pool.pg_num for pool in facts.pools}
    assert permitted_pgs(facts, data, numbers) == 256
    assert permitted_pgs(facts, data, {**numbers, 2: 256}) == 128


@given(st.integers(1, 600), st.integers(10, 200))
def test_the_monitors_take_what_is_permitted_and_nothing_twice_as_large(most: int, pg_num: int) -> None:
    facts = crowded(most, pg_num)
    permitted = permitted_pgs(facts, facts.pools[0], {pool.number: pool.pg_num for pool in facts.pools})
    others = 6 * 128 * 3
    assert permitted == 0 or others + permitted * 3 <= most * 10
    assert others + max(1, 2 * permitted) * 3 > most * 10


def uneven(**given: object) -> Facts:
    return healthy(pgs=pgs(((osd, (osd + 2) % OSDS), 60 if osd == 0 else 30) for osd in range(OSDS)), **given)


def test_what_evens_pgs_out_depends_on_what_the_balancer_does_already() -> None:
    def told(**given: object) -> Tuple[str, ...]:
        return placement(uneven(**given))[0].commands

    assert told(balancer="off") == ("ceph balancer mode upmap", "ceph balancer on")
    assert told(balancer="crush-compat") == ("ceph balancer mode upmap",)
    assert told(balancer="upmap", deviation=5.0) == ("ceph config set mgr mgr/balancer/upmap_max_deviation 1",)
    assert told(balancer="upmap", deviation=1.0) == ()


def test_where_ceph_sets_the_number_of_pgs_itself_it_is_told_the_least_that_it_may_have() -> None:
    few = replace(pool(32), autoscaled=True)
    (found,) = placement(healthy(pools=(few,), pgs=pgs(((osd, (osd + 2) % OSDS), 5) for osd in range(OSDS))))
    assert found.commands == ("ceph osd pool set rbd pg_num_min 256", "ceph osd pool set rbd pg_num 256")


def test_pgs_above_half_of_the_target_are_no_finding() -> None:
    # 6 OSDs with 100 each in two copies are 300 PGs
    assert ideal_pgs(pool(160), 100, OSDS, 1.0) == 300
    rows = pgs(((osd, (osd + 2) % OSDS), 27) for osd in range(OSDS))
    assert placement(healthy(pools=(pool(160),), pgs=rows)) == []


def test_a_pool_is_held_against_those_on_its_own_osds_alone() -> None:
    fast, slow = pool(64, raw=TIB / 100), replace(pool(64, raw=OSDS * TIB), number=2, name="archive")
    rows = (*pgs([((0, 1), 64)]), *(replace(pg, pool=2) for pg in pgs([((2, 3), 32), ((4, 5), 32)])))
    both = shares(healthy(pools=(fast, slow), pgs=rows))
    assert both[1][0] == both[2][0] == 1.0
    # half of another pool lies on them as well
    beside = replace(fast, number=3, name="beside", raw_bytes=TIB / 50)
    rows = (*rows, *(replace(pg, pool=3) for pg in pgs([((0, 2), 8), ((1, 3), 8)])))
    assert shares(healthy(pools=(fast, slow, beside), pgs=rows))[1][0] == pytest.approx(0.5)


def test_shards_of_erasure_coded_data_move_where_copies_would_be_there_already() -> None:
    copies, shards = pool(8, 3, raw=1e12), replace(pool(8, 3, raw=1e12), erasure=True)
    assert moved_bytes(copies, 16, 3) == 0
    assert moved_bytes(shards, 16, 3) == pytest.approx(1e12 / 2 * 2 / 3)


def test_an_osd_that_is_missing_from_a_pg_is_no_osd() -> None:
    none = 2**31 - 1
    assert spread_of(pgs([((0, 1, none), 4)]), dict.fromkeys(range(3), 1.0)).osds == 2


def test_where_pgs_are_too_many_to_be_listed_all_of_a_device_class_are_counted_together() -> None:
    even = dict.fromkeys(range(OSDS), 300)
    assert placement(healthy(pgs=(), pg_copies=even)) == []
    (found,) = placement(healthy(pgs=(), pg_copies={**even, 3: 390}, balancer="upmap", deviation=5))
    assert found.evidence == (
        "class ssd, all pools together: 315 PGs on each of 6 OSDs; osd.3 has 24% more than its part",
    )
    assert found.share == pytest.approx(1 - 315 / 390)


def test_a_cluster_without_pools_or_osds_has_no_finding() -> None:
    assert placement(healthy(pools=(), pgs=())) == []
    assert placement(healthy(osds=(), places=(), weights={}, entries=())) == []


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
