"""Server-side apply of a CephCluster, at a small server that answers as Kubernetes does where two write at once."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Callable, Dict, Iterator, List, Optional
from urllib.parse import parse_qs, urlsplit

import pytest

from ceph_tuner.core.changes.custom_resource import CustomResource
from ceph_tuner.core.changes.step import FIELD_MANAGER
from ceph_tuner.core.errors import ClusterNotFound, InputError, RetryLater
from ceph_tuner.rook.ceph_cluster_api import CephClusterApi
from ceph_tuner.rook.configuration import RookConfig
from ceph_tuner.rook.kubeconfig import ApiAccess, Credentials
from monitors import ManualClock
from twins import answering, small_twin

RESOURCE = CustomResource("rook-ceph", "rook-ceph")
OSD = RESOURCE.who("osd")


class ApiServer:
    """One resource, with the rules of Kubernetes for uid and resourceVersion; `meanwhile` is called before a write."""

    def __init__(self) -> None:
        self.specs: Dict[str, Dict[str, str]] = {}
        """Field manager -> what it states of `osd`."""
        self.uid: Optional[str] = "one"
        self.fsid = "f"
        self.version = 1
        self.writes: List[Dict[str, Any]] = []
        self.meanwhile: Callable[[], None] = lambda: None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(*outer.read())

            def do_PATCH(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.meanwhile()
                self._answer(*outer.apply(body, "dryRun" in parse_qs(urlsplit(self.path).query)))

            def _answer(self, status: int, document: Any) -> None:
                content = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def state(self, manager: str, **options: str) -> None:
        """Another manager's forced apply."""
        for other in self.specs.values():
            for name in options:
                other.pop(name, None)
        self.specs[manager] = options
        self.version += 1

    def read(self) -> Any:
        if self.uid is None:
            return 404, {"kind": "Status", "message": "not found"}
        options = {name: value for own in self.specs.values() for name, value in own.items()}
        managed = [
            {
                "manager": manager,
                "operation": "Apply",
                "fieldsV1": {"f:spec": {"f:cephConfig": {"f:osd": {f"f:{name}": {} for name in own}}}},
            }
            for manager, own in self.specs.items()
        ]
        metadata = {
            "name": RESOURCE.name, "uid": self.uid, "resourceVersion": str(self.version), "generation": 1,
            "managedFields": managed,
        }  # fmt: skip
        status = {"ceph": {"fsid": self.fsid}, "observedGeneration": 1}
        return 200, {
            "kind": "CephCluster",
            "metadata": metadata,
            "spec": {"cephConfig": {"osd": options}},
            "status": status,
        }

    def apply(self, body: Dict[str, Any], rehearsal: bool) -> Any:
        metadata = body["metadata"]
        conflict = 409, {"kind": "Status", "reason": "Conflict", "message": "has been modified"}
        if self.uid is None and not metadata.get("uid"):
            self.uid = "made by an apply"
        if metadata.get("uid", self.uid) != self.uid:
            return conflict
        if metadata.get("resourceVersion", str(self.version)) != str(self.version):
            return conflict
        wanted = body.get("spec", {}).get("cephConfig", {}).get("osd", {})
        for manager, own in self.specs.items():
            if manager != FIELD_MANAGER and any(own.get(name, value) != value for name, value in wanted.items()):
                causes = [{"reason": "FieldManagerConflict", "message": f'conflict with "{manager}"'}]
                words = f'conflict with "{manager}"'
                return 409, {"kind": "Status", "reason": "Conflict", "message": words, "details": {"causes": causes}}
        if not rehearsal:
            self.writes.append(wanted)
            self.specs[FIELD_MANAGER] = dict(wanted)
            self.version += 1
        return self.read()


@pytest.fixture
def server() -> Iterator[ApiServer]:
    made = ApiServer()
    yield made
    made.close()


@pytest.fixture
def config(server: ApiServer) -> RookConfig:
    access = ApiAccess(server.url, lambda: Credentials("token"))
    twin = answering(small_twin(), {"status": {"fsid": "f"}})
    return RookConfig(twin.commander, CephClusterApi(RESOURCE, access, ManualClock()), ManualClock())


def once(act: Callable[[], None]) -> Callable[[], None]:
    acts = [act]
    return lambda: acts.pop()() if acts else None


def test_a_resource_that_is_gone_is_not_made_anew(server: ApiServer, config: RookConfig) -> None:
    config.dump()
    server.meanwhile = lambda: setattr(server, "uid", None)
    with pytest.raises(ClusterNotFound, match="not found"):
        config.set(OSD, "osd_max_scrubs", "2")
    assert (server.uid, server.writes) == (None, [])


def test_another_resource_of_its_name_is_not_written_to_unseen(server: ApiServer, config: RookConfig) -> None:
    def made_anew() -> None:
        server.uid, server.fsid = "two", "of another"

    server.meanwhile = once(made_anew)
    with pytest.raises(InputError, match="the Ceph cluster of another"):
        config.set(OSD, "osd_max_scrubs", "2")
    assert server.writes == []


def test_what_somebody_took_over_between_look_and_write_is_not_stated_again(
    server: ApiServer, config: RookConfig
) -> None:
    config.set(OSD, "osd_max_scrubs", "2")
    config.set(OSD, "osd_scrub_chunk_max", "6")
    server.meanwhile = once(lambda: server.state("helm", osd_max_scrubs="7"))
    config.remove(OSD, "osd_scrub_chunk_max")
    assert server.writes[-1] == {}
    assert server.specs == {FIELD_MANAGER: {}, "helm": {"osd_max_scrubs": "7"}}


def test_who_writes_again_and_again_is_told(server: ApiServer, config: RookConfig) -> None:
    server.meanwhile = lambda: server.state("helm", mon="3")
    with pytest.raises(RetryLater, match="again and again"):
        config.set(OSD, "osd_max_scrubs", "2")
    assert server.writes == []
