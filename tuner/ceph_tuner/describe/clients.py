"""What clients do, pool by pool, and which pools a twin is told of one by one."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import Dict, List, Mapping, Sequence, Tuple

from ceph_tuner.core.wording import rounded
from ceph_tuner.describe.pools import PoolSeen
from ceph_tuner.twin.described_cluster import LEAST_CLIENT_IOPS
from ceph_tuner.twin.kernel.records import SCRATCH
from ceph_tuner.twin.model import ClientStream

QUIET_POOLS = 4
"""Quiet pools of one kind that are told of one by one; more of them are one."""
LEAST_SHARE = 0.01
"""A pool with less of the clients' load than this is told of without."""
DEPTH = 1024
"""Operations that clients of a pool let wait at most: nobody knows it, and below saturation it is never reached."""
DEPTH_OF_ALL = SCRATCH // 2
"""The same of all pools: the twin has no room for as many as `SCRATCH`."""
ALIKE = 1.5
"""Factor within which mean sizes of operations are of the same work."""


def clients(
    pools: Sequence[PoolSeen],
    shares: Mapping[str, float],
    load: Mapping[str, float],
    notes: List[str],
    among: Sequence[PoolSeen] = (),
) -> List[ClientStream]:
    """One stream for each pool with a share of the `load`, which are a window's means; `notes` grows by guesses.

    None of an empty load, where nothing is known of them.
    `among`: all pools that the load was on, where these are some of them.
    """
    if not load:
        return []
    rate = load["client.iops"]
    if rate < LEAST_CLIENT_IOPS:
        notes.append("clients did nothing")
        return []
    reads, block = load.get("client.read_iops", 0.0) / rate, load.get("client.bytes_s", 0.0) / rate
    total = sum(shares.get(pool.name, 0.0) for pool in pools)
    bytes_s, now = (sum(getattr(pool, name) for pool in among or pools) for name in ("bytes_s", "operations_s"))
    # the monitors' rates lag behind by seconds: where they tell of other work, the window's own sizes are nearer
    is_alike = min(bytes_s, now, block) > 0 and 1 / ALIKE < bytes_s / now / block < ALIKE
    parts = [(pool, shares.get(pool.name, 0.0) / total if total else 0.0) for pool in pools]
    busy = [(pool, share) for pool, share in parts if share >= LEAST_SHARE]
    streams = []
    for pool, share in busy:
        own = pool.operations_s if is_alike else 0.0
        streams.append(
            ClientStream(
                pool.name,
                rounded(rate * share),
                min(DEPTH, DEPTH_OF_ALL // len(busy)),
                rounded(min(1.0, pool.reads_s / own if own else reads)),
                max(1, round(pool.bytes_s / own if own and pool.bytes_s else block)),
            )
        )
    notes.append(
        "clients are taken to offer what was served, and to keep that rate whatever waits: what they would do is not "
        "seen"
    )
    if not now:
        notes.append("their load is shared out among pools by the operations that these have had since ever")
    return streams


def client_load(reads_s: float, writes_s: float, bytes_s: float) -> Dict[str, float]:
    """What clients do, as metrics."""
    return {
        "client.iops": reads_s + writes_s, "client.read_iops": reads_s, "client.write_iops": writes_s,
        "client.bytes_s": bytes_s,
    }  # fmt: skip


def described_load(streams: Sequence[ClientStream]) -> Dict[str, float]:
    """What clients are described to do; nothing where one of them has no rate, and does as much as it gets."""
    rates = [stream.rate or 0.0 for stream in streams]
    if not all(rates):
        return {}
    parts = list(zip(rates, streams))
    return client_load(
        sum(rate * stream.read_share for rate, stream in parts),
        sum(rate * (1 - stream.read_share) for rate, stream in parts),
        sum(rate * stream.block_bytes for rate, stream in parts),
    )


def part_of(load: Mapping[str, float], share: float) -> Dict[str, float]:
    """The load of some pools: that share of what all clients do."""
    return {name: value * share if name in client_load(0, 0, 0) else value for name, value in load.items()}


def shares_of(pools: Sequence[PoolSeen]) -> Dict[str, float]:
    """How clients' load is shared out: by the present rates, else by all operations ever, else by what is stored."""
    weights = [
        {pool.name: pool.operations_s for pool in pools},
        {pool.name: pool.operations for pool in pools},
        {pool.name: pool.stored_bytes for pool in pools},
        {pool.name: float(pool.pgs) for pool in pools},
    ]
    weights_in_use = next(each for each in weights if sum(each.values()) > 0)
    total = sum(weights_in_use.values())
    return {name: weight / total for name, weight in weights_in_use.items()}


def told(pools: Sequence[PoolSeen], shares: Mapping[str, float]) -> List[PoolSeen]:
    """Pools one by one; where there are many quiet ones of a kind, these as one."""
    quiet: Dict[Tuple[int, int], List[PoolSeen]] = {}
    for pool in pools:
        if pool.quiet and shares.get(pool.name, 0.0) < LEAST_SHARE:
            quiet.setdefault((pool.size, pool.k), []).append(pool)
    many = {pool.name: kind for kind, own in quiet.items() if len(own) > QUIET_POOLS for pool in own}
    entries = [pool for pool in pools if pool.name not in many]
    for size, k in dict.fromkeys(many.values()):
        own = quiet[(size, k)]
        first = max(own, key=lambda pool: pool.stored_bytes)
        sums = {name: sum(getattr(pool, name) for pool in own) for name in ("pgs", "objects", "stored_bytes", "clones")}
        up = tuple(chain.from_iterable(pool.up for pool in own)) if all(pool.up for pool in own) else ()
        entries.append(replace(first, name=f"{first.name} and {len(own) - 1} quiet ones", up=up, **sums))
    return entries
