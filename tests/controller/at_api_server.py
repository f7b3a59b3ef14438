"""Somebody with kubectl, and a controller at work, for the tests at a real API server."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from plugin_on_twin import PluginCommander

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.controller.controller import Controller, Settings
from ceph_tuner.controller.kinds import BOOST, MODE, SLO, ResourceKind
from ceph_tuner.rook.kubeconfig import api_access
from kubernetes_server import CONTROLLER, KubernetesServer
from waiting import until

NAMESPACE = "rook-ceph"
MERGE = "application/merge-patch+json"
LATENCY = {"objectives": ["client.p95_ms <= 80 ms"]}


def commander_of(cluster: Cluster) -> PluginCommander:
    assert isinstance(cluster.commander, PluginCommander)
    return cluster.commander


class Operator:
    """Somebody with kubectl."""

    def __init__(self, kubernetes: KubernetesServer) -> None:
        self._kubernetes = kubernetes

    def create(self, kind: ResourceKind, name: str, spec: Mapping[str, Any]) -> None:
        answer = self.try_create(kind, name, spec)
        assert answer[0] == 201, answer

    def try_create(self, kind: ResourceKind, name: str, spec: Mapping[str, Any]) -> Tuple[int, str]:
        body = {"apiVersion": "tuner.ceph.io/v1alpha1", "kind": kind.name, "metadata": {"name": name}, "spec": spec}
        answer = self._kubernetes.call("POST", kind.path(NAMESPACE), body)
        return answer.status_code, answer.text

    def change(self, kind: ResourceKind, name: str, spec: Mapping[str, Any]) -> None:
        path = f"{kind.path(NAMESPACE)}/{name}"
        answer = self._kubernetes.call("PATCH", path, {"spec": spec}, MERGE)
        assert answer.status_code == 200, answer.text

    def delete(self, kind: ResourceKind, name: str) -> None:
        assert self._kubernetes.call("DELETE", f"{kind.path(NAMESPACE)}/{name}").status_code == 200

    def read(self, kind: ResourceKind, name: str) -> Optional[Dict[str, Any]]:
        answer = self._kubernetes.call("GET", f"{kind.path(NAMESPACE)}/{name}")
        return dict(answer.json()) if answer.status_code == 200 else None

    def conditions(self, kind: ResourceKind, name: str) -> Dict[str, Dict[str, Any]]:
        """Those that are about the resource as it is now."""
        document = self.read(kind, name) or {"metadata": {}}
        conditions = (document.get("status") or {}).get("conditions") or []
        generation = document["metadata"].get("generation")
        return {each["type"]: each for each in conditions if each["observedGeneration"] == generation}

    def wait(self, kind: ResourceKind, name: str, reason: str, condition: str = "Ready") -> Dict[str, Any]:
        until(
            lambda: self.conditions(kind, name).get(condition, {}).get("reason") == reason,
            words=lambda: f"{name}: {self.conditions(kind, name)}, not {reason}",
        )
        return self.conditions(kind, name)[condition]

    def wait_gone(self, kind: ResourceKind, name: str) -> None:
        until(lambda: self.read(kind, name) is None, words=lambda: f"{self.read(kind, name)} is there")


@contextmanager
def running(
    kubernetes: KubernetesServer, cluster: Cluster, identity: str = "one", resync_s: float = 1.0
) -> Iterator[Controller]:
    access = api_access(os.environ, str(kubernetes.kubeconfig(CONTROLLER)))
    lines: List[str] = []
    controller = Controller(cluster, access, Settings(NAMESPACE, identity, resync_s=resync_s), lines.append)
    thread = threading.Thread(target=controller.run, name=f"controller {identity}")
    thread.start()
    try:
        yield controller
    finally:
        controller.stop.set()
        thread.join(60)
        assert not thread.is_alive(), lines


def slo_at(cluster: Cluster) -> Any:
    return commander_of(cluster).module.run("slo_ls", format="json")[1]


def clear(kubernetes: KubernetesServer) -> None:
    """No resource is left, whatever it had at a cluster."""
    for kind in (SLO, MODE, BOOST):
        for item in kubernetes.call("GET", kind.path(NAMESPACE)).json()["items"]:
            path = f"{kind.path(NAMESPACE)}/{item['metadata']['name']}"
            kubernetes.call("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
            kubernetes.call("DELETE", path)
