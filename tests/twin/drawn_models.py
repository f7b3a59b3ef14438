"""Clusters drawn at random for the laws: small, so that plain Python runs them too, and of every kind."""

from __future__ import annotations

from typing import Any, Dict, Optional

from hypothesis import strategies as st

from ceph_tuner.core.knobs.releases import MCLOCK_NINE, QUINCY_EARLY, REEF, TENTACLE, TENTACLE_EARLY, Settings
from ceph_tuner.twin.model import (
    KIB,
    MCLOCK,
    MIB,
    WPQ,
    ClientStream,
    ClusterModel,
    DeleteWork,
    Device,
    OsdModel,
    Pool,
    RecoveryWork,
    ScrubWork,
    SnaptrimWork,
)

REPLICATED, CODED = "rbd", "archive"
SIZES = st.sampled_from((4 * KIB, 64 * KIB, 1 * MIB))


def devices() -> st.SearchStrategy[Device]:
    return st.builds(
        Device,
        iops=st.floats(300, 5000),
        bandwidth_bytes_s=st.floats(50 * MIB, 500 * MIB),
        read_iops=st.none() | st.floats(300, 5000),
        shared=st.booleans(),
        slice_s=st.sampled_from((0.0, 0.1)),
        latency_s=st.floats(0, 1e-3),
        spread=st.floats(0, 1),
    )


def osds() -> st.SearchStrategy[OsdModel]:
    return st.builds(
        OsdModel,
        device=devices(),
        capacity_iops=st.floats(300, 5000),
        bandwidth_bytes_s=st.floats(50 * MIB, 500 * MIB),
        shards=st.integers(1, 4),
        threads_per_shard=st.integers(1, 3),
        device_class=st.sampled_from(("ssd", "hdd")),
        cpu_s_per_byte=st.sampled_from((0.0, 1e-9)),
        kv_ios=st.floats(0, 2),
        throttle_bytes=st.sampled_from((0.0, 64.0 * KIB, 256.0 * KIB, 64.0 * MIB)),
        db=st.none() | devices(),
    )


POOLS = st.tuples(
    st.builds(Pool, name=st.just(REPLICATED), pgs=st.integers(1, 24), size=st.integers(2, 3)),
    st.sampled_from((Pool(CODED, 8, 3, 2), Pool(CODED, 3, 4, 2), Pool(CODED, 12, 2))),
)

CLIENTS = st.lists(
    st.builds(
        ClientStream,
        pool=st.sampled_from((REPLICATED, CODED)),
        rate=st.none() | st.floats(10, 2000),
        depth=st.integers(1, 24),
        read_share=st.sampled_from((0.0, 0.4, 1.0)),
        block_bytes=SIZES,
        latency_s=st.sampled_from((0.0, 2e-4)),
        cpu_s=st.sampled_from((0.0, 1e-4)),
        drains=st.booleans(),
        partial_stripe=st.booleans(),
    ),
    max_size=3,
).map(tuple)

COUNTS = st.integers(0, 60)


def _recovery(
    pool: str,
    objects: int,
    size: int,
    degraded: bool,
    target: Optional[int],
    start_s: float,
    rounds: int,
    others: Optional[int],
) -> RecoveryWork:
    """`others`: objects that clients go to besides, where they go to those that lack a copy."""
    among = objects + others if degraded and objects and others is not None else 0
    return RecoveryWork(pool, objects, size, degraded, target, start_s, rounds, among)


def background(endless: bool) -> Dict[str, st.SearchStrategy[Any]]:
    """Every kind of background work, by the name of its field; scrubs begin again where `endless`."""
    pools, begins = st.sampled_from((REPLICATED, CODED)), st.sampled_from((0.0, 0.03))
    works = {
        "recovery": st.builds(
            _recovery,
            pools,
            COUNTS,
            SIZES,
            st.booleans(),
            st.none() | st.integers(0, 3),
            begins,
            st.integers(1, 3),
            st.none() | st.integers(0, 60),
        ),
        "scrub": st.builds(
            ScrubWork, pools, COUNTS, SIZES, st.booleans(), once=st.booleans() if endless else st.just(True)
        ),
        "snaptrim": st.builds(SnaptrimWork, pools, COUNTS, SIZES, start_s=begins),
        "deletion": st.builds(DeleteWork, pools, COUNTS, start_s=begins),
    }
    # a PG has at most one job of a kind
    return {name: st.lists(work, max_size=2, unique_by=lambda w: w.pool).map(tuple) for name, work in works.items()}


def models(clients: st.SearchStrategy[Any] = CLIENTS, endless: bool = True) -> st.SearchStrategy[ClusterModel]:
    return st.builds(
        ClusterModel,
        osds=st.integers(4, 5),
        osd=osds(),
        pools=POOLS,
        clients=clients,
        release=st.sampled_from((QUINCY_EARLY, REEF, TENTACLE_EARLY, TENTACLE)),
        network_s=st.sampled_from((0.0, 5e-5)),
        scheduler=st.sampled_from((MCLOCK, MCLOCK, WPQ)),
        simulated_osds=st.sampled_from((0, 4)),
        hosts=st.sampled_from((0, 0, 2)),
        processors=st.sampled_from((0, 0, 1, 3)),
        **background(endless),
    )


@st.composite
def settings(draw: st.DrawFn) -> Settings:
    """All nine values and the limits of background work."""
    values: Settings = {}
    for name in MCLOCK_NINE:
        if name.endswith("wgt"):
            values[name] = draw(st.integers(1, 20))
        else:
            values[name] = draw(st.sampled_from((0.0, 0.1, 0.3) if name.endswith("res") else (0.0, 0.5, 1.0)))
    values["osd_mclock_override_recovery_settings"] = True
    values["osd_max_backfills"] = draw(st.integers(1, 3))
    for kind in ("hdd", "ssd"):
        values[f"osd_recovery_max_active_{kind}"] = draw(st.integers(1, 10))
    values["osd_recovery_max_chunk"] = draw(st.sampled_from((64 << 10, 1 << 20, 8 << 20)))
    values["osd_max_scrubs"] = draw(st.integers(1, 3))
    values["osd_scrub_chunk_max"] = draw(st.integers(5, 25))
    values["osd_scrub_max_preemptions"] = draw(st.integers(0, 5))
    values["osd_pg_max_concurrent_snap_trims"] = draw(st.integers(1, 4))
    values["osd_max_trimming_pgs"] = draw(st.integers(1, 4))
    values["bluestore_deferred_batch_ops_hdd"] = draw(st.sampled_from((1, 4, 64)))
    return values
