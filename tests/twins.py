"""Small twins for the tests, alike: four OSDs of some hundred IOPS, so that a minute of them takes milliseconds."""

from __future__ import annotations

from typing import Any, Mapping, Optional

from ceph_tuner.clusters.twin import TwinCluster, twin_cluster
from ceph_tuner.releases import TENTACLE, Value
from ceph_tuner.twin.model import KIB, MIB, ClientStream, ClusterModel, Device, OsdModel, Pool

OSD = OsdModel(
    Device(iops=1075.0, bandwidth_bytes_s=60.0 * MIB, slice_s=0.1, shared=False),
    capacity_iops=935.0,
    bandwidth_bytes_s=60.0 * MIB,
    shards=1,
    threads_per_shard=5,
    throttle_bytes=256.0 * KIB,
)
CLIENT = ClientStream("rbd", rate=300.0, depth=64, read_share=0.2)


def small_model(**changes: Any) -> ClusterModel:
    given = {"release": TENTACLE, "clients": (CLIENT,), "pools": (Pool("rbd", 32, 2), Pool("other", 16, 3)), **changes}
    return ClusterModel(osds=given.pop("osds", 4), osd=given.pop("osd", OSD), **given)


def small_twin(
    settings: Optional[Mapping[str, Value]] = None, seed: int = 1, lag_s: float = 0.0, **changes: Any
) -> TwinCluster:
    return twin_cluster(small_model(**changes), settings, seed, lag_s)
