"""PGs are placed as described, or as CRUSH's straw buckets do: independent draws, different failure domains."""

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
@given(st.integers(1, 40), st.integers(0, 12), st.integers(1, 4), st.integers(1, 200), st.integers(0, 1000))
def test_copies_lie_on_different_osds_and_on_different_hosts_where_there_are_enough(
    osds: int, hosts: int, size: int, pgs: int, seed: int
) -> None:
    osds, hosts = max(osds, size), min(hosts, max(osds, size))
    acting = placed(Pool("rbd", pgs, size), pgs, osds, hosts, np.random.default_rng(seed))
    assert acting.shape == (pgs, size)
    assert acting.min() >= 0
    assert acting.max() < osds
    assert all(len(set(row)) == size for row in acting.tolist())
    if hosts >= size:
        assert all(len({osd % hosts for osd in row}) == size for row in acting.tolist())
    assert sum(per_osd(acting, osds)) == pgs * size


def test_pgs_of_an_osd_scatter_as_independent_draws_do() -> None:
    osds, pgs = 40, 40_000
    acting = placed(Pool("rbd", pgs, 3), pgs, osds, 0, np.random.default_rng(1))
    counts = np.array(per_osd(acting, osds))
    share = 3 / osds
    assert counts.mean() == pgs * share
    # chi-square over its degrees of freedom is near 1
    assert ((counts - pgs * share) ** 2).sum() / (pgs * share * (1 - share)) / (osds - 1) == pytest.approx(1.0, abs=0.5)


@pytest.mark.parametrize("hosts", [0, 5])
def test_every_osd_leads_its_share(hosts: int) -> None:
    acting = placed(Pool("rbd", 30_000, 3), 30_000, 10, hosts, np.random.default_rng(2))
    for position in range(3):
        counts = np.bincount(acting[:, position], minlength=10)
        assert counts == pytest.approx(np.full(10, 3000), rel=0.07)


def test_the_same_generator_places_alike() -> None:
    one, other = (placed(Pool("rbd", 64, 3), 64, 8, 0, np.random.default_rng(3)) for _ in range(2))
    assert np.array_equal(one, other)


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
