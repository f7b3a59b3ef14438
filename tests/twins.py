"""Small twins for the tests, alike: four OSDs of some hundred IOPS, so that a minute of them takes milliseconds."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any, List, Mapping, Optional, Sequence, Tuple

import pytest

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.ceph.commands import CommandConfig, CommandStore
from ceph_tuner.core.ceph.ports import Commander
from ceph_tuner.core.changes.applier import Applier
from ceph_tuner.core.changes.lock import Holder, Lock
from ceph_tuner.core.changes.lock_owner import may_live
from ceph_tuner.core.knobs.releases import TENTACLE, Value
from ceph_tuner.twin.model import KIB, MIB, ClientStream, ClusterModel, Device, OsdModel, Pool
from twin_cluster.cluster import TwinCluster, twin_cluster

OSD = OsdModel(
    Device(iops=1075.0, bandwidth_bytes_s=60.0 * MIB, slice_s=0.1, shared=False),
    capacity_iops=935.0,
    bandwidth_bytes_s=60.0 * MIB,
    shards=1,
    threads_per_shard=5,
    throttle_bytes=256.0 * KIB,
)
SLOW = replace(
    OSD,
    device=Device(iops=437.0, bandwidth_bytes_s=150.0 * MIB, latency_s=4e-3),
    capacity_iops=380.0,
    bandwidth_bytes_s=150.0 * MIB,
)
DISK = replace(SLOW, device_class="hdd", throttle_bytes=64.0 * MIB)
CLIENT = ClientStream("rbd", rate=300.0, depth=64, read_share=0.2)


def small_model(**changes: Any) -> ClusterModel:
    given = {"release": TENTACLE, "clients": (CLIENT,), "pools": (Pool("rbd", 32, 2), Pool("other", 16, 3)), **changes}
    return ClusterModel(osds=given.pop("osds", 4), osd=given.pop("osd", OSD), **given)


def small_twin(
    settings: Optional[Mapping[str, Value]] = None, seed: int = 1, lag_s: float = 0.0, **changes: Any
) -> TwinCluster:
    return twin_cluster(small_model(**changes), settings, seed, lag_s)


def prefixes_sent(twin: TwinCluster, monkeypatch: pytest.MonkeyPatch) -> List[str]:
    """The commands that it gets from now on, by their prefixes."""
    sent: List[str] = []
    for name in ("mon", "tell"):
        original = getattr(twin.commander, name)

        def recording(*arguments: Any, original: Any = original, at: int = name == "tell", **named: Any) -> Any:
            sent.append(arguments[at])
            return original(*arguments, **named)

        monkeypatch.setattr(type(twin.commander), name, staticmethod(recording))
    return sent


class Answering:
    """A commander with further answers: prefix -> document, and of a daemon (daemon, prefix) -> document."""

    def __init__(self, commander: Commander, answers: Mapping[Any, Any]) -> None:
        self._commander, self._answers = commander, answers

    def mon(self, prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        if prefix in self._answers:
            return json.dumps(self._answers[prefix])
        return self._commander.mon(prefix, arguments, payload)

    def tell(self, daemon: str, prefix: str, arguments: Mapping[str, str]) -> str:
        if (daemon, prefix) in self._answers:
            return json.dumps(self._answers[daemon, prefix])
        return self._commander.tell(daemon, prefix, arguments)


def answering(cluster: Cluster, answers: Mapping[Any, Any]) -> Cluster:
    commander = Answering(cluster.commander, answers)
    return replace(cluster, commander=commander, config=CommandConfig(commander), store=CommandStore(commander))


def archive_twin(settings: Optional[Mapping[str, Value]] = None, **changes: Any) -> Cluster:
    """OSDs on hard disks of a device class of the operator's own, `archive`."""
    twin = in_classes(small_twin(settings, osd=DISK, **changes), ("archive",))
    said = [{"id": place.osd, "rotational": "1"} for place in twin.config.places()]
    return answering(twin, {"osd tree": json.loads(twin.commander.mon("osd tree", {})), "osd metadata": said})


def in_classes(twin: Cluster, classes: Sequence[str]) -> Cluster:
    """The same OSDs, of these device classes in turn."""
    tree = json.loads(twin.commander.mon("osd tree", {}))
    osds = [node for node in tree["nodes"] if node["type"] == "osd"]
    for node, name in zip(osds, itertools.cycle(classes)):
        node["device_class"] = name
    return answering(twin, {"osd tree": tree})


def trial_of(twin: TwinCluster, holder: Holder) -> Tuple[Applier, Lock]:
    """A trial that is in force, its owner's lock held."""
    config, store = CommandConfig(twin.commander), CommandStore(twin.commander)
    lock = Lock(store, twin.clock, holder, may_live, heartbeat=False)
    applier = Applier(config, store, twin.clock, lock, TENTACLE, holder.name)
    lock.__enter__()
    assert applier.apply(applier.plan("osd/host:h0", {"osd_max_scrubs": 2}), "a trial", trial=True)
    return applier, lock
