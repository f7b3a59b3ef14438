"""Whether a cluster's OSDs run in pods of Rook.

A daemon tells by its metadata what Rook gives it as POD_NAME and POD_NAMESPACE. A CephCluster that only uses a cluster
from outside (`external`) has no OSD in a pod, and Rook sets none of that cluster's options.
"""

from __future__ import annotations

from typing import Any, Iterable, Mapping, NamedTuple, Optional

_OSD_PODS = "rook-ceph-osd-"


class Pod(NamedTuple):
    """Where an OSD runs."""

    namespace: str
    name: str


def rook_pod(rows: Iterable[Mapping[str, Any]]) -> Optional[Pod]:
    """A pod of Rook's among those of `ceph osd metadata`; None where there is none."""
    pods = [Pod(str(row.get("pod_namespace") or ""), str(row.get("pod_name") or "")) for row in rows]
    return next((pod for pod in pods if pod.namespace and pod.name.startswith(_OSD_PODS)), None)
