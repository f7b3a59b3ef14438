"""The twin places PGs as unevenly as Ceph's own CRUSH and balancer do, by osdmaptool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ceph_tuner.twin.model import Pool
from ceph_tuner.twin.placement import per_osd, placed
from map_tools import MapTools

SEEDS = 8


@pytest.mark.parametrize("release", ["tentacle", "reef"])
@pytest.mark.parametrize(("osds", "on_host", "bits"), [(24, 3, 6), (24, 3, 3), (12, 3, 5)])
def test_pgs_are_as_uneven_as_ceph_makes_them(
    needs_lab: None, tmp_path: Path, release: str, osds: int, on_host: int, bits: int
) -> None:
    tools = MapTools(release, tmp_path)
    for max_deviation in (0, 5, 1):
        tools.make(osds, on_host, bits=bits)
        if max_deviation:
            tools.balance(max_deviation)
        by_ceph = np.array(list(tools.placed().values()))
        assert by_ceph.shape == (osds << bits, 3)
        by_ceph_deviations = _deviations(by_ceph, osds)
        pool, hosts = Pool("rbd", len(by_ceph)), osds // on_host
        twins = [
            _deviations(placed(pool, pool.pgs, osds, hosts, max_deviation, np.random.default_rng(seed)), osds)
            for seed in range(SEEDS)
        ]
        spread = np.mean([each.std() for each in twins])
        if max_deviation:
            assert max(np.abs(each).max() for each in twins) <= max_deviation
            # an OSD for which one round finds no PG to move
            assert np.abs(by_ceph_deviations).max() <= max_deviation + 2
            assert by_ceph_deviations.std() <= 1.2 * spread
        else:
            # one draw of Ceph's against several: of 12 OSDs a standard deviation is a third off by chance
            assert by_ceph_deviations.std() == pytest.approx(spread, rel=0.5)
            assert np.abs(by_ceph_deviations).max() > 5


def _deviations(acting: NDArray[Any], osds: int) -> NDArray[Any]:
    counts = np.array(per_osd(acting, osds), dtype=np.float64)
    deviations: NDArray[Any] = counts - counts.mean()
    return deviations
