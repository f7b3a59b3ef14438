"""PGs are placed as described, or as CRUSH does (independent draws, different failure domains) and the balancer."""

from __future__ import annotations

from typing import Tuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ceph_tuner.twin.description import from_dict, to_dict
from ceph_tuner.twin.model import ClusterModel, Device, OsdModel, Pool
from ceph_tuner.twin.placement import per_osd, placed
from ceph_tuner.twin.simulation import Simulation


@settings(deadline=None)
@given(
    st.integers(1, 40), st.integers(0, 12), st.integers(1, 4), st.integers(1, 200), st.integers(0, 6),
    st.integers(0, 1000),
)  # fmt: skip
def test_copies_lie_on_different_osds_and_on_different_hosts_where_there_are_enough(
    osds: int, hosts: int, size: int, pgs: int, max_deviation: int, seed: int
) -> None:
    osds, hosts = max(osds, size), min(hosts, max(osds, size))
    acting = placed(Pool("rbd", pgs, size), pgs, osds, hosts, max_deviation, np.random.default_rng(seed))
    assert acting.shape == (pgs, size)
    assert acting.min() >= 0
    assert acting.max() < osds
    assert all(len(set(row)) == size for row in acting.tolist())
    if hosts >= size:
        assert all(len({osd % hosts for osd in row}) == size for row in acting.tolist())
    assert sum(per_osd(acting, osds)) == pgs * size


def test_pgs_of_an_osd_scatter_as_independent_draws_do() -> None:
    osds, pgs = 40, 40_000
    acting = placed(Pool("rbd", pgs, 3), pgs, osds, 0, 0, np.random.default_rng(1))
    counts = np.array(per_osd(acting, osds))
    share = 3 / osds
    assert counts.mean() == pgs * share
    # chi-square over its degrees of freedom is near 1
    assert ((counts - pgs * share) ** 2).sum() / (pgs * share * (1 - share)) / (osds - 1) == pytest.approx(1.0, abs=0.5)


@pytest.mark.parametrize("hosts", [0, 5])
def test_every_osd_leads_its_share(hosts: int) -> None:
    acting = placed(Pool("rbd", 30_000, 3), 30_000, 10, hosts, 0, np.random.default_rng(2))
    for position in range(3):
        counts = np.bincount(acting[:, position], minlength=10)
        assert counts == pytest.approx(np.full(10, 3000), rel=0.07)


def test_the_same_generator_places_alike() -> None:
    one, other = (placed(Pool("rbd", 64, 3), 64, 8, 0, 5, np.random.default_rng(3)) for _ in range(2))
    assert np.array_equal(one, other)


@pytest.mark.parametrize(("osds", "hosts", "size"), [(24, 8, 3), (40, 0, 3), (12, 6, 6), (9, 3, 3), (7, 7, 2)])
@pytest.mark.parametrize("max_deviation", [1, 5])
def test_the_balancer_lets_no_osd_differ_by_more_and_moves_no_more_than_that_takes(
    osds: int, hosts: int, size: int, max_deviation: int
) -> None:
    pgs = osds * 100 // size
    drawn, evened = (
        placed(Pool("rbd", pgs, size), pgs, osds, hosts, most, np.random.default_rng(4)) for most in (0, max_deviation)
    )
    by_crush, by_balancer = (np.array(per_osd(acting, osds)) for acting in (drawn, evened))
    mean = pgs * size / osds
    assert np.abs(by_balancer - mean).max() <= max_deviation < np.abs(by_crush - mean).max()
    # where CRUSH alone keeps within it nothing moves; beyond, each OSD stays on its side of the mean
    within = np.abs(by_crush - mean) <= max_deviation
    assert (drawn != evened).sum() <= np.abs(by_crush - mean)[~within].sum()
    assert ((by_balancer - mean) * (by_crush - mean) > -1).all()


def test_within_the_balancers_bound_pgs_stay_where_crush_puts_them() -> None:
    drawn, evened = (placed(Pool("rbd", 16), 16, 12, 0, most, np.random.default_rng(5)) for most in (0, 8))
    assert np.array_equal(drawn, evened)


def test_copies_that_have_nowhere_else_to_lie_stay() -> None:
    # a host of OSDs 0 and 3, and two of one OSD: each PG has a copy on both of these
    acting = placed(Pool("rbd", 90, 3), 90, 4, 3, 1, np.random.default_rng(6))
    assert per_osd(acting, 4) == [45, 90, 90, 45]


DESCRIBED = Pool("rbd", 2, 2, acting=((2, 0), (1, 2)))
OSD = OsdModel(Device(1000.0, 1e8))


def test_pgs_lie_where_they_are_said_to() -> None:
    model = ClusterModel(3, OSD, (DESCRIBED, Pool("archive", 8)))
    assert Simulation(model, {}, 1).acting("rbd").tolist() == [[2, 0], [1, 2]]
    assert from_dict(to_dict(model)) == model
    assert ["acting" in pool for pool in to_dict(model)["pools"]] == [True, False]


@pytest.mark.parametrize("acting", [((0, 1),), ((0, 1), (1,)), ((0, 1), (1, 1))])
def test_every_pg_has_its_osds(acting: Tuple[Tuple[int, ...], ...]) -> None:
    with pytest.raises(ValueError, match="must name 2 OSDs for each of 2 PGs"):
        Pool("rbd", 2, 2, acting=acting)


@pytest.mark.parametrize(("osds", "simulated"), [(2, 0), (4, 3)])
def test_their_osds_are_simulated(osds: int, simulated: int) -> None:
    with pytest.raises(ValueError, match=f"acting must be of {osds} OSDs, all of them simulated"):
        ClusterModel(osds, OSD, (DESCRIBED,), simulated_osds=simulated)
