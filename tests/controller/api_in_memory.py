"""An API server in memory, and a controller at it whose time goes on only where somebody waits."""

from __future__ import annotations

import json
import threading
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

import pytest

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.controller import controller as controller_module
from ceph_tuner.controller.controller import Controller, Settings
from ceph_tuner.controller.kinds import ResourceKind
from ceph_tuner.core.errors import ClusterTimeout
from ceph_tuner.rook.kubeconfig import ApiAccess, Credentials
from ceph_tuner.rook.kubernetes_api import ApiAnswer
from monitors import ManualClock

NAMESPACE = "rook-ceph"
LEASE = "ceph-tuner-controller"
ANNOTATIONS = 256 << 10
"""Bytes of names and values of all annotations together that an API server takes."""
ENOUGH = 2000
"""Calls or waits after which whoever goes on is said to go on for ever."""


class Use(NamedTuple):
    """One call, as a role allows it: `resource` has the subresource, `name` is empty for all of them."""

    verb: str
    group: str
    resource: str
    name: str


class ApiInMemory:
    """`KubernetesApi` of every caller. Of admission and merging it has what the controller relies on."""

    host, name = "in-memory", "in memory"

    def __init__(self) -> None:
        self.objects: Dict[Tuple[str, str], Dict[str, Any]] = {}
        """By the plural and the name."""
        self.uses: List[Use] = []
        self.refused: Dict[str, ApiAnswer] = {}
        """Plural -> the answer to each call about it."""
        self.watched: Callable[[str], Iterator[Dict[str, Any]]] = self._nothing_happens
        """The events of a watch of a plural, until it ends."""
        self.ended = threading.Event()
        """Ends watches that wait."""
        self.before: Callable[[Use], None] = lambda use: None
        """Called before each call is carried out."""
        self._version = 0

    def create(self, kind: ResourceKind, name: str, spec: Mapping[str, Any], **metadata: Any) -> None:
        own = {"name": name, "namespace": NAMESPACE, "uid": f"{kind.plural}-{name}", "generation": 1, **metadata}
        own.setdefault("creationTimestamp", f"2026-01-01T00:00:{len(self.objects):02d}Z")
        self._keep(kind.plural, {"metadata": own, "spec": dict(spec)})

    def change(self, kind: ResourceKind, name: str, spec: Mapping[str, Any]) -> None:
        document = self.objects[kind.plural, name]
        metadata = {**document["metadata"], "generation": document["metadata"]["generation"] + 1}
        self._keep(kind.plural, {**document, "metadata": metadata, "spec": dict(spec)})

    def delete(self, kind: ResourceKind, name: str) -> None:
        document = self.objects[kind.plural, name]
        metadata = {**document["metadata"], "deletionTimestamp": "2026-01-02T00:00:00Z"}
        self._keep(kind.plural, {**document, "metadata": metadata})

    def read(self, kind: ResourceKind, name: str) -> Dict[str, Any]:
        return self.objects[kind.plural, name]

    def reason(self, kind: ResourceKind, name: str, condition: str = "Ready") -> str:
        """Empty where nothing is said of the resource."""
        conditions = self.objects[kind.plural, name].get("status", {}).get("conditions", [])
        return next((str(each["reason"]) for each in conditions if each["type"] == condition), "")

    def message(self, kind: ResourceKind, name: str, condition: str = "Ready") -> str:
        (found,) = [each for each in self.read(kind, name)["status"]["conditions"] if each["type"] == condition]
        return str(found["message"])

    @property
    def holder(self) -> str:
        lease = self.objects.get(("leases", LEASE), {"spec": {}})
        return str(lease["spec"].get("holderIdentity", ""))

    def call(
        self,
        method: str,
        path: str,
        body: Optional[Mapping[str, Any]] = None,
        kind: str = "application/json",
        parameters: Optional[Mapping[str, str]] = None,
    ) -> ApiAnswer:
        group, plural, name, part = _taken_apart(path)
        verb = {"GET": "get" if name else "list", "POST": "create", "PUT": "update", "PATCH": "patch"}[method]
        self._used(Use(verb, group, f"{plural}/{part}" if part else plural, name))
        if plural in self.refused:
            return self.refused[plural]
        if verb == "list":
            items = [dict(item) for (of, _), item in sorted(self.objects.items()) if of == plural]
            return ApiAnswer(200, {"metadata": {"resourceVersion": str(self._version)}, "items": items})
        if verb == "create":
            assert body is not None
            return ApiAnswer(201, self._keep(plural, dict(body)))
        before = self.objects.get((plural, name))
        if before is None or verb == "get":
            return ApiAnswer(404, {"message": f"{name} not found"}) if before is None else ApiAnswer(200, dict(before))
        return self._written(verb, plural, part, before, json.loads(json.dumps(body)))

    def watch(self, path: str, parameters: Mapping[str, str], idle_s: float) -> Iterator[Dict[str, Any]]:
        group, plural, _, _ = _taken_apart(path)
        self._used(Use("watch", group, plural, ""))
        return self.watched(plural)

    def _used(self, use: Use) -> None:
        self.uses.append(use)
        assert len(self.uses) < ENOUGH, "it asks for ever"
        self.before(use)

    def _written(self, verb: str, plural: str, part: str, before: Dict[str, Any], body: Dict[str, Any]) -> ApiAnswer:
        given, metadata = body.get("metadata") or {}, before["metadata"]
        if any(given.get(name, metadata[name]) != metadata[name] for name in ("uid", "resourceVersion")):
            return ApiAnswer(409, {"message": "the object has been modified"})
        if verb == "update":
            return ApiAnswer(200, self._keep(plural, body))
        if part == "status":
            return ApiAnswer(200, self._keep(plural, {**before, "status": body["status"]}))
        annotations = {**metadata.get("annotations", {}), **(given.get("annotations") or {})}
        annotations = {key: value for key, value in annotations.items() if value is not None}
        if sum(len(key) + len(value) for key, value in annotations.items()) > ANNOTATIONS:
            return ApiAnswer(422, {"message": f"metadata.annotations: Too long: must have at most {ANNOTATIONS} bytes"})
        own = {**metadata, "annotations": annotations, "finalizers": given["finalizers"]}
        kept = self._keep(plural, {**before, "metadata": own})
        if "deletionTimestamp" in own and not own["finalizers"]:
            del self.objects[plural, own["name"]]
        return ApiAnswer(200, kept)

    def _keep(self, plural: str, document: Dict[str, Any]) -> Dict[str, Any]:
        self._version += 1
        own = {"uid": plural, **document["metadata"], "resourceVersion": str(self._version)}
        self.objects[plural, own["name"]] = {**document, "metadata": own}
        return dict(self.objects[plural, own["name"]])

    def _nothing_happens(self, plural: str) -> Iterator[Dict[str, Any]]:
        self.ended.wait()
        raise ClusterTimeout("the server has ended")
        yield {}


def _taken_apart(path: str) -> Tuple[str, str, str, str]:
    """Group, plural, name and subresource: `/apis/group/version/namespaces/namespace/plural/name/part`."""
    words = path.split("/")
    assert (words[1], words[4], words[5]) == ("apis", "namespaces", NAMESPACE), path
    name, part = [*words[7:], "", ""][:2]
    return words[2], words[6], name, part


class Pace(threading.Event):
    """An event whose waiters let the clock go on, and are counted. `rule` is called after each wait."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock = clock
        self.waits: List[float] = []
        self.rule: Callable[[], None] = lambda: None

    def wait(self, timeout: Optional[float] = None) -> bool:
        assert timeout is not None
        if not self.is_set():
            self.waits.append(timeout)
            self._clock.time += timeout
            self.rule()
        assert len(self.waits) < ENOUGH, "it waits for ever"
        return self.is_set()


class Paced:
    """A controller that may lead at once, and whose time goes on where it waits: the caller's is its one thread."""

    def __init__(self, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, resync_s: float = 30.0) -> None:
        self.api, self.clock, self.said = ApiInMemory(), ManualClock(), list[str]()
        self.stop, self.wake = Pace(self.clock), Pace(self.clock)
        monkeypatch.setattr(controller_module, "KubernetesApi", lambda *_: self.api)
        access, settings = ApiAccess("https://in-memory", Credentials), Settings(NAMESPACE, "one", LEASE, resync_s)
        self.controller = Controller(cluster, access, settings, self.said.append, self.clock, self.stop)
        self.controller._wake = self.wake
        self.seen: List[str] = []
        """The metrics after each pass, and at each wait of one that stands by."""

    def lead(self, waits: int = ENOUGH, passes: int = ENOUGH) -> None:
        """Until there were so many waits, or so many passes; each pass is followed by a wait of its own."""
        self.stop.clear()
        left, begun = [waits], len(self.stop.waits)

        def waited() -> None:
            left[0] -= 1
            self.renew()
            if left[0] <= 0 or len(self.stop.waits) - begun >= passes:
                self.stop.set()

        def after_pass() -> None:
            self.seen.append(self.metrics)
            waited()

        self.stop.rule, self.wake.rule = after_pass, waited
        self.renew()
        self.controller._main(threading.current_thread())

    def renew(self) -> None:
        """What a thread does elsewhere."""
        self.controller.lease.attempt()

    @property
    def metrics(self) -> str:
        return self.controller.vitals.page("/metrics").body
