"""The few calls of a Kubernetes API server that concern a CephCluster, with bounded answers and a time limit."""

from __future__ import annotations

import errno
from typing import Any, Dict, List, Mapping, Optional

from ceph_tuner.cluster.transport import Response, Transport, bearer, host
from ceph_tuner.core.bounded import SERVER_ITEMS_PER_MIB, read_json
from ceph_tuner.core.ceph.commands import shaped
from ceph_tuner.core.ceph.ports import Clock
from ceph_tuner.core.changes.custom_resource import CustomResource
from ceph_tuner.core.changes.step import FIELD_MANAGER
from ceph_tuner.core.errors import ClusterNotFound, CommandFailed, InputError, Malformed, PermissionRefused
from ceph_tuner.rook.ceph_config import CephConfig
from ceph_tuner.rook.kubeconfig import ApiAccess, Credentials

GROUP, VERSION, PLURAL = "ceph.rook.io", "v1", "cephclusters"
_APPLY = {"Content-Type": "application/apply-patch+yaml"}


class CephClusterApi:
    """One CephCluster, behind its API server. Used by one thread."""

    def __init__(self, resource: CustomResource, access: ApiAccess, clock: Clock, timeout: float = 30.0) -> None:
        """Nothing is asked yet."""
        self.resource = resource
        self._access, self._clock, self._timeout = access, clock, timeout
        where = f"the address of a Kubernetes API server in {access.origin}"
        self._transport = Transport(str(resource), "API server", where, clock, access.ca, timeout=timeout)
        self._credentials: Optional[Credentials] = None

    def close(self) -> None:
        """End the connection."""
        self._transport.close()

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
        deadline = self._clock.monotonic() + self._timeout
        headers = {"Accept": "application/json", **(_APPLY if body is not None else {})}
        for renewal in (False, True):
            if self._credentials is None or renewal:
                self._credentials = self._access.credentials()
            own = self._credentials
            if own.certificate:
                self._transport.session.cert = (own.certificate, own.key)
            url = self._access.url + path
            response = self._transport.call(method, url, deadline, bearer(own.token), headers, body, parameters)
            if response.status != 401:
                break
        return self._document(response, method)

    def _document(self, response: Response, method: str) -> Dict[str, Any]:
        place = f"CephCluster {self.resource}"
        command = f"{method} {place}"
        try:
            document = read_json(response.content, command, 1 << 24, items=SERVER_ITEMS_PER_MIB)
        except Malformed:
            document = None
        if not isinstance(document, dict) or response.redirects:
            words = f"answered {response.status} with no object of Kubernetes"
            raise CommandFailed(command, -errno.EIO, f"{host(self._access.url)} {words}")
        if response.status < 300:
            return document
        words = " ".join(str(document.get("message") or "").split())[:400]
        if response.status in (401, 403):
            raise PermissionRefused(place, words or "a refusal", "an account that may get and patch it (docs/rook.md)")
        if response.status == 404:
            raise ClusterNotFound(place, words or "none", "NAMESPACE/NAME of a CephCluster")
        if response.status == 409 and method == "PATCH" and not _is_of_managers(document):
            return document
        if response.status == 409:
            raise InputError(place, words, "values that nobody else states there: take them out of what states them")
        raise CommandFailed(command, -errno.EIO, f"answered {response.status} {words}")


def _is_of_managers(document: Mapping[str, Any]) -> bool:
    """Whether a conflict is one with another field manager, and not that the resource was written to meanwhile."""
    with shaped("PATCH cephclusters"):
        causes = (document.get("details") or {}).get("causes") or []
        return any(cause.get("reason") == "FieldManagerConflict" for cause in causes)
