"""PGs on OSDs: as described, or as uneven as CRUSH makes them, which draws OSDs from different failure domains."""

from __future__ import annotations

from typing import Any, List

import numpy as np
from numpy.typing import NDArray

from ceph_tuner.twin.model import Pool


def placed(pool: Pool, pgs: int, osds: int, hosts: int, random: np.random.Generator) -> NDArray[Any]:
    """Acting sets, shape (pgs, size): different OSDs, on different hosts where there are as many hosts.

    OSD o is on host o % hosts. CRUSH's straw buckets draw independently for every PG, so the PGs of an OSD are
    binomially distributed: their standard deviation is about the root of their mean.
    """
    if pool.acting:
        return np.array(pool.acting, dtype=np.int64)
    domains = hosts if hosts >= pool.size else osds
    acting = np.empty((pgs, pool.size), dtype=np.int64)
    # the order of random keys is a random permutation of the hosts
    chosen = np.argsort(random.random((pgs, domains)), axis=1)[:, : pool.size]
    for host in range(domains):
        own = np.arange(host, osds, domains)
        on_host = chosen == host
        acting[on_host] = random.choice(own, size=int(on_host.sum()))
    return acting


def per_osd(acting: NDArray[Any], osds: int) -> List[int]:
    """PGs of each OSD."""
    return [int(count) for count in np.bincount(acting.ravel(), minlength=osds)]
