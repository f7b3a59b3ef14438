"""PGs on OSDs: as described, or as CRUSH draws them from different failure domains and the balancer evens them out."""

from __future__ import annotations

from typing import Any, Iterator, List, Tuple

import numpy as np
from numpy.typing import NDArray

from ceph_tuner.twin.model import Pool


def placed(
    pool: Pool, pgs: int, osds: int, hosts: int, max_deviation: int, random: np.random.Generator
) -> NDArray[Any]:
    """Acting sets, shape (pgs, size): different OSDs, on different hosts where there are as many hosts.

    OSD o is on host o % hosts. CRUSH's straw buckets draw independently for every PG, so the PGs of an OSD are
    binomially distributed: their standard deviation is about the root of their mean. The balancer then moves PGs until
    no OSD differs from the mean by more than `max_deviation`, where it can (`OSDMap::calc_pg_upmaps`, pool by pool).
    0: it is off.
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
    if max_deviation:
        _even_out(acting, osds, domains, max_deviation)
    return acting


def _even_out(acting: NDArray[Any], osds: int, domains: int, max_deviation: int) -> None:
    """Move copies until no OSD has so many PGs more or fewer than the mean, or none can be moved."""
    counts = np.array(per_osd(acting, osds))
    mean = counts.mean()
    while max(counts.max() - mean, mean - counts.min()) > max_deviation:
        move = next(_moves(acting, counts, domains, max_deviation), None)
        if move is None:
            return
        pg, position, target = move
        counts[acting[pg, position]] -= 1
        counts[target] += 1
        acting[pg, position] = target


def _moves(
    acting: NDArray[Any], counts: NDArray[Any], domains: int, max_deviation: int
) -> Iterator[Tuple[int, int, int]]:
    """PG, position and new OSD of copies that may be moved, from the fullest OSD to the emptiest first."""
    mean, by_count = counts.mean(), np.argsort(counts, kind="stable")
    for source in by_count[::-1]:
        for target in by_count:
            far = max(counts[source] - mean, mean - counts[target]) > max_deviation
            if far and counts[source] > counts[target] + 1:
                on_source = acting == source
                others_beside = ((acting % domains == target % domains) & ~on_source).any(axis=1, keepdims=True)
                for pg, position in np.argwhere(on_source & ~others_beside)[:1]:
                    yield pg, position, target


def per_osd(acting: NDArray[Any], osds: int) -> List[int]:
    """PGs of each OSD."""
    return [int(count) for count in np.bincount(acting.ravel(), minlength=osds)]
