"""The few calls of a Kubernetes API server that concern a CephCluster, with bounded answers and a time limit."""

from __future__ import annotations

import errno
from typing import Any, Dict, List, Mapping, Optional

from ceph_tuner.core.ceph.commands import shaped
from ceph_tuner.core.ceph.ports import Clock
from ceph_tuner.core.changes.custom_resource import CustomResource
from ceph_tuner.core.changes.step import FIELD_MANAGER
from ceph_tuner.core.errors import ClusterNotFound, CommandFailed, InputError, PermissionRefused
from ceph_tuner.rook.ceph_config import CephConfig
from ceph_tuner.rook.kubeconfig import ApiAccess
from ceph_tuner.rook.kubernetes_api import APPLY, KubernetesApi

GROUP, VERSION, PLURAL = "ceph.rook.io", "v1", "cephclusters"


class CephClusterApi:
    """One CephCluster, behind its API server. Used by one thread."""

    def __init__(self, resource: CustomResource, access: ApiAccess, clock: Clock) -> None:
        """Nothing is asked yet."""
        self.resource = resource
        self._api = KubernetesApi(str(resource), access, clock)

    def close(self) -> None:
        """End the connection."""
        self._api.close()

    def read(self) -> Dict[str, Any]:
        """The resource. Raises ClusterNotFound, ClusterTimeout, PermissionRefused, CommandFailed."""
        return self._call("GET", f"/{self.resource.name}", {})

    def all(self) -> List[Dict[str, Any]]:
        """Every CephCluster of its namespace. Raises as `read` does."""
        with shaped("GET cephclusters"):
            return [dict(item) for item in self._call("GET", "", {})["items"]]

    def apply(self, spec: Mapping[str, Any], read: CephConfig, rehearsal: bool = False) -> Optional[Dict[str, Any]]:
        """State these fields and no others, by server-side apply; give the resource as it is then.

        None where it is no longer as it was `read`. An apply would make a resource that is gone, with nothing but
        Ceph's options in it: its uid is what forbids that.

        What another field manager states with another value is refused: InputError. Raises as `read` does.
        """
        body = {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": "CephCluster",
            "metadata": {
                "namespace": self.resource.namespace,
                "name": self.resource.name,
                "uid": read.uid,
                "resourceVersion": read.version,
            },
            **({"spec": spec} if spec else {}),
        }
        parameters = {"fieldManager": FIELD_MANAGER, "force": "false", **({"dryRun": "All"} if rehearsal else {})}
        answer = self._call("PATCH", f"/{self.resource.name}", parameters, body)
        return None if answer.get("kind") == "Status" else answer

    def _call(
        self, method: str, name: str, parameters: Mapping[str, str], body: Optional[Mapping[str, Any]] = None
    ) -> Dict[str, Any]:
        path = f"/apis/{GROUP}/{VERSION}/namespaces/{self.resource.namespace}/{PLURAL}{name}"
        place = f"CephCluster {self.resource}"
        answer = self._api.call(method, path, body, APPLY, parameters, f"{method} {place}")
        document = answer.document
        if answer.status < 300:
            return document
        words = answer.words
        if answer.status in (401, 403):
            raise PermissionRefused(place, words or "a refusal", "an account that may get and patch it (docs/rook.md)")
        if answer.status == 404:
            raise ClusterNotFound(place, words or "none", "NAMESPACE/NAME of a CephCluster")
        if answer.status == 409 and method == "PATCH" and not _is_of_managers(document):
            return document
        if answer.status == 409:
            raise InputError(place, words, "values that nobody else states there: take them out of what states them")
        raise CommandFailed(f"{method} {place}", -errno.EIO, f"answered {answer.status} {words}")


def _is_of_managers(document: Mapping[str, Any]) -> bool:
    """Whether a conflict is one with another field manager, and not that the resource was written to meanwhile."""
    with shaped("PATCH cephclusters"):
        causes = (document.get("details") or {}).get("causes") or []
        return any(cause.get("reason") == "FieldManagerConflict" for cause in causes)
