"""The custom resources of one namespace at the API server: read, noted on, reported on, and watched."""

from __future__ import annotations

import errno
import json
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from ceph_tuner.controller.kinds import FINALIZER, RECORD, ResourceKind
from ceph_tuner.controller.part import Changed
from ceph_tuner.controller.resource import RECORD_BYTES, Report, Resource, status_of
from ceph_tuner.core.bounded import MISREAD
from ceph_tuner.core.errors import CommandFailed, InputError, PermissionRefused, RetryLater
from ceph_tuner.core.moments import iso
from ceph_tuner.rook.kubernetes_api import MERGE, ApiAnswer, KubernetesApi

MOST = 500
"""Resources of a kind in one namespace."""


class Resources:
    """`part.ResourceWriter`, and the reader of the resources. Used by one thread."""

    def __init__(self, api: KubernetesApi, namespace: str, now: Callable[[], float] = time.time) -> None:
        """Nothing is asked yet."""
        self._api, self.namespace, self._now = api, namespace, now

    def all(self, kind: ResourceKind) -> List[Resource]:
        """Every one of a kind, as it is now. Raises as `refuse`, and InputError where there are more than MOST."""
        answer = self._api.call("GET", kind.path(self.namespace), parameters={"limit": str(MOST)})
        refuse(answer, f"GET {kind.plural}")
        try:
            if (answer.document.get("metadata") or {}).get("continue"):
                raise InputError(f"namespace {self.namespace}", f"more than {MOST} {kind.plural}", f"at most {MOST}")
            return [Resource.from_document(kind, item) for item in answer.document["items"]]
        except MISREAD as fault:
            raise _misread(f"GET {kind.plural}", fault) from fault

    def note(self, resource: Resource, record: Mapping[str, Any]) -> Resource:
        """Keep a record on it. Raises Changed where it is no longer as it was read; else as `refuse`."""
        finalizers = [*resource.finalizers, *([] if resource.is_held or resource.deleted else [FINALIZER])]
        text = json.dumps(record, sort_keys=True)
        if len(text) > RECORD_BYTES:
            # what cannot be read back is no way back
            raise InputError(f"{resource}", f"a record of {len(text)} bytes", f"at most {RECORD_BYTES}: state less")
        return self._patched(resource, {"finalizers": finalizers, "annotations": {RECORD: text}})

    def release(self, resource: Resource) -> None:
        """Take the record and the finalizer off. Raises as `note`."""
        finalizers = [name for name in resource.finalizers if name != FINALIZER]
        self._patched(resource, {"finalizers": finalizers, "annotations": {RECORD: None}})

    def report(self, resource: Resource, report: Report) -> None:
        """Say in its status what became of it, where it does not say so yet. Raises as `refuse`."""
        status = status_of(resource, report, iso(self._now()))
        if status == resource.status:
            return
        path = f"{resource.kind.path(self.namespace)}/{resource.name}/status"
        answer = self._api.call("PATCH", path, {"metadata": {"uid": resource.uid}, "status": status}, MERGE)
        # one that is gone, or another one of its name, needs no report
        if answer.status not in (404, 409):
            refuse(answer, f"PATCH {resource}/status")

    def _patched(self, resource: Resource, metadata: Mapping[str, Any]) -> Resource:
        path = f"{resource.kind.path(self.namespace)}/{resource.name}"
        body = {"metadata": {**metadata, "uid": resource.uid, "resourceVersion": resource.version}}
        answer = self._api.call("PATCH", path, body, MERGE)
        if answer.status in (404, 409):
            raise Changed(f"{resource} was changed while it was carried to the cluster")
        refuse(answer, f"PATCH {resource}")
        try:
            return Resource.from_document(resource.kind, answer.document)
        except MISREAD as fault:
            raise _misread(f"PATCH {resource}", fault) from fault


class Watch:
    """Tells of changes of a kind's resources: of what they state, not of what is said of them. For one thread."""

    def __init__(self, api: KubernetesApi, kind: ResourceKind, namespace: str, changed: Callable[[], None]) -> None:
        """`changed` is called for each change, and when changes may have been missed."""
        self._api, self._kind, self._path, self._changed = api, kind, kind.path(namespace), changed
        self._version: Optional[str] = None
        """Up to which changes were told; None: not known, so anything may have changed."""
        self._specs: Dict[str, Tuple[Any, ...]] = {}

    def follow(self, seconds: int) -> None:
        """Watch for that long at most. Raises as `refuse`; the next call goes on where this one ended."""
        if self._version is None:
            answer = self._api.call("GET", self._path, parameters={"limit": "1"})
            refuse(answer, f"GET {self._kind.plural}")
            self._version = _version_of(answer.document, self._path)
            self._specs.clear()
            self._changed()
        parameters = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(seconds),
        }
        for event in self._api.watch(self._path, parameters, seconds + 15.0):
            self._take(event)

    def _take(self, event: Mapping[str, Any]) -> None:
        kind, document = event.get("type"), event.get("object")
        if kind == "ERROR" or not isinstance(document, Mapping):
            code = document.get("code") if isinstance(document, Mapping) else None
            status = code if isinstance(code, int) and code >= 300 else 500
            # 410: the API server keeps changes for some minutes only
            self._version = None
            if status != 410:
                content = dict(document) if isinstance(document, Mapping) else {}
                refuse(ApiAnswer(status, content), f"watch {self._kind.plural}")
            return
        self._version = _version_of(document, self._path)
        if kind == "BOOKMARK":
            return
        metadata = document["metadata"]
        spec = (metadata.get("generation"), metadata.get("deletionTimestamp"), kind == "DELETED")
        uid = str(metadata.get("uid"))
        if self._specs.get(uid) == spec:
            return
        if kind == "DELETED":
            self._specs.pop(uid, None)
        else:
            self._specs[uid] = spec
        self._changed()


def refuse(answer: ApiAnswer, command: str) -> None:
    """Raise what a refusal of the API server says: PermissionRefused, InputError, RetryLater, CommandFailed."""
    if answer.status < 300:
        return
    if answer.status in (401, 403):
        expected = "the role of deploy/kubernetes/controller.yaml"
        raise PermissionRefused(f"`{command}`", answer.words or "a refusal", expected)
    if answer.status == 404:
        expected = "the definitions of deploy/kubernetes/crds"
        raise InputError(f"`{command}`", answer.words or "nothing", expected)
    if answer.status in (413, 422):
        # such as a record that is too long beside the annotations of others
        raise InputError(f"`{command}`", answer.words or "too much", "what the API server takes")
    if answer.status in (409, 410, 429):
        raise RetryLater(f"`{command}` was refused for now: {answer.words}")
    raise CommandFailed(command, -errno.EIO, f"answered {answer.status} {answer.words}")


def _version_of(document: Mapping[str, Any], place: str) -> str:
    try:
        return str(document["metadata"]["resourceVersion"])
    except MISREAD as fault:
        raise _misread(f"watch {place}", fault) from fault


def _misread(command: str, fault: Exception) -> CommandFailed:
    words = f"answered what cannot be read ({type(fault).__name__}: {fault})"
    return CommandFailed(command, -errno.EIO, words[:200])
