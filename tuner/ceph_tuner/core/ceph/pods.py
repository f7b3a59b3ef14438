"""Whether a cluster's OSDs run in pods of Rook.

A daemon tells by its metadata what Rook gives it as POD_NAME and POD_NAMESPACE. A CephCluster that only uses a cluster
from outside (`external`) has no OSD in a pod, and Rook sets none of that cluster's options.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Iterable, Mapping, Optional

NAMESPACE = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_OSD_PODS = "rook-ceph-osd-"


@dataclass(frozen=True)
class Pod:
    """Where an OSD runs, as that OSD says: anything, until it is seen to be a name of Kubernetes."""

    namespace: str
    name: str

    def __post_init__(self) -> None:
        """It becomes part of addresses, and of commands that are shown."""
        if not re.fullmatch(NAMESPACE, self.namespace):
            raise ValueError(f"a pod in the namespace {self.namespace[:80]!r}")


def rook_pod(rows: Iterable[Mapping[str, Any]]) -> Optional[Pod]:
    """A pod of Rook's among those of `ceph osd metadata`; None where there is none. ValueError for no namespace."""
    pods = ((str(row.get("pod_namespace") or ""), str(row.get("pod_name") or "")) for row in rows)
    return next((Pod(space, name) for space, name in pods if space and name.startswith(_OSD_PODS)), None)
