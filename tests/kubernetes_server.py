"""A real API server of Kubernetes with etcd, and no kubelet: kube-apiserver 1.20 out of Debian's source package.

Debian bookworm has the whole source of Kubernetes 1.20.2 with what it needs vendored; of it only kubectl is a binary
package. Later suites have a source without the API server. So it is built once, with Debian's Go 1.19, unpacked and not
installed: three to ten minutes. Of what is vendored reflect2 is too old for that Go, under which it crashes the server:
Debian's own takes its place. etcd is a binary package. Server-side apply is on by default since 1.16.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

import requests
from ruamel.yaml import YAML

import debian_packages
from ceph_lab.places import cache_directory
from ceph_lab.state import locked
from prometheus_server import free_port

ADMIN, TUNER, CONTROLLER = "admin-token", "tuner-token", "controller-token"
VERSION = "1.20.2"
DEPLOY = Path(__file__).parents[1] / "deploy" / "kubernetes"
RBAC = DEPLOY / "rbac.yaml"
URL = "/apis/ceph.rook.io/v1/namespaces/rook-ceph/cephclusters"
_PACKAGE, _REFLECT = "k8s.io/kubernetes", "github.com/modern-go/reflect2"
_TAGGED: Tuple[str, ...] = (
    "api",
    "apimachinery",
    "apiextensions-apiserver/pkg",
    "kube-aggregator/pkg/apis",
    "apiserver/pkg",
)
_TAGGED += ("metrics", "cloud-provider", "component-base", "kube-proxy", "kube-scheduler", "kubelet")
_TAGGED += ("controller-manager", "kube-controller-manager")


def api_server() -> Path:
    """The program; built where it is not there yet."""
    folder = cache_directory() / f"kube-apiserver-{VERSION}"
    program = folder / "kube-apiserver"
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / ".lock", "it is built by another process", wait=1800):
        if not program.is_file():
            go = debian_packages.unpacked(("golang-1.19-go", "golang-1.19-src"), "bookworm") / "usr/lib/go-1.19"
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                _build(go, Path(scratch), folder / "built")
            (folder / "built").rename(program)
    return program


def _build(go: Path, scratch: Path, output: Path) -> None:
    archive = debian_packages.source("kubernetes", "bookworm", scratch)
    tree = scratch / "path" / "src" / _PACKAGE
    tree.mkdir(parents=True)
    _run(["tar", "-xzf", str(archive), "-C", str(tree), "--strip-components=1"], scratch, {})
    newer = debian_packages.unpacked(("golang-github-modern-go-reflect2-dev",), "bookworm")
    shutil.rmtree(tree / "vendor" / _REFLECT)
    shutil.copytree(newer / "usr/share/gocode/src" / _REFLECT, tree / "vendor" / _REFLECT)
    environment = {
        "GOROOT": str(go),
        "GOPATH": str(scratch / "path"),
        "GOCACHE": str(scratch / "cache"),
        "GO111MODULE": "off",
        "CGO_ENABLED": "0",
        "PATH": f"{go / 'bin'}:{os.environ['PATH']}",
    }
    vendored = f"{_PACKAGE}/vendor/k8s.io"
    generator = scratch / "openapi-gen"
    _run(["go", "build", "-o", str(generator), f"{vendored}/kube-openapi/cmd/openapi-gen"], tree, environment)
    staging = tree / "staging" / "src" / "k8s.io"
    tagged = ["grep", "-rl", "+k8s:openapi-gen=", "--include=*.go", *_TAGGED]
    files = [Path(line) for line in _run(tagged, staging, environment).splitlines() if not line.endswith("_test.go")]
    folders = ",".join(sorted({f"{vendored}/{file.parent}" for file in files}))
    header = ["-h", "hack/boilerplate/boilerplate.generatego.txt", "-r", str(scratch / "violations")]
    target = ["-O", "zz_generated.openapi", "-p", f"{_PACKAGE}/pkg/generated/openapi", "-o", str(scratch / "path/src")]
    _run([str(generator), "-i", folders, *target, *header], tree, environment)
    _run(
        ["nice", "go", "build", "-ldflags=-s -w", "-o", str(output), f"{_PACKAGE}/cmd/kube-apiserver"],
        tree,
        environment,
    )


def _run(command: List[str], folder: Path, environment: Mapping[str, str]) -> str:
    own = {**os.environ, **environment}
    done = subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, check=False, timeout=1800)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


class KubernetesServer:
    """An API server at work, with Rook's CephCluster as far as it is used, and the role of `deploy/kubernetes`."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._port, self._etcd, self._peer = folder, free_port(), free_port(), free_port()
        self._processes: List[subprocess.Popen[bytes]] = []
        self._server: Tuple[str, ...] = ()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    def start(self) -> None:
        program = api_server()
        etcd = debian_packages.unpacked(("etcd-server",)) / "usr/bin/etcd"
        key = str(self._folder / "account.key")
        _run(["openssl", "genrsa", "-out", key, "2048"], self._folder, {})
        account = "system:serviceaccount:rook-ceph:ceph-tuner"
        rows = [f"{ADMIN},admin,1,system:masters", f"{TUNER},{account},2", "other-token,other,3"]
        rows += [f"{CONTROLLER},{account}-controller,4"]
        tokens = self._folder / "tokens.csv"
        tokens.write_text("\n".join(rows) + "\n", "utf-8")
        clients, peers = (f"http://127.0.0.1:{port}" for port in (self._etcd, self._peer))
        self._begin(
            str(etcd),
            f"--data-dir={self._folder / 'etcd'}",
            f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            "--unsafe-no-fsync",
        )
        self._server = (
            str(program),
            f"--etcd-servers={clients}",
            f"--secure-port={self._port}",
            "--bind-address=127.0.0.1",
            f"--cert-dir={self._folder / 'certificates'}",
            f"--token-auth-file={tokens}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-cluster-ip-range=10.9.0.0/24",
            "--disable-admission-plugins=ServiceAccount",
        )
        self.begin_server()
        self.wait_ready()
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        assert self.call("POST", definitions, CEPH_CLUSTER).status_code == 201
        assert self.call("POST", "/api/v1/namespaces", {"metadata": {"name": "rook-ceph"}}).status_code == 201
        self.install(RBAC.read_text("utf-8"))
        self._wait(lambda: self.call("GET", URL).status_code == 200, "it does not serve CephClusters")

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                # it waits for watches that nobody ended
                process.kill()
                process.wait(30)
        self._processes.clear()

    def install(self, text: str) -> None:
        """Make every object of a file of YAML; definitions are served when this returns."""
        for document in YAML(typ="safe", pure=True).load_all(text):
            group = "/api/v1" if document["apiVersion"] == "v1" else f"/apis/{document['apiVersion']}"
            is_definition = document["kind"] == "CustomResourceDefinition"
            place = "" if is_definition else f"/namespaces/{document['metadata'].get('namespace', 'rook-ceph')}"
            answer = self.call("POST", f"{group}{place}/{document['kind'].lower()}s", document)
            assert answer.status_code == 201, answer.text
            if is_definition:
                spec = document["spec"]
                served = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
                self._wait(lambda path=served: self.call("GET", path).status_code == 200, f"{served} is not served")

    def begin_server(self) -> None:
        """Begin the API server, of whose objects etcd has what was there before."""
        self._begin(*self._server)

    def end_server(self) -> None:
        """End the API server alone, at once and without a word to its clients."""
        server = self._processes.pop()
        server.kill()
        server.wait(30)

    def wait_ready(self) -> None:
        """Until the API server answers."""
        self._wait(lambda: self.call("GET", "/readyz").status_code == 200, "the API server is not ready")

    def kubeconfig(self, token: str = TUNER) -> Path:
        """A kubeconfig of that account."""
        path = self._folder / f"kubeconfig-{token}"
        cluster = {"server": self.url, "certificate-authority": str(self._folder / "certificates" / "apiserver.crt")}
        document = {
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "test", "user": {"token": token}}],
        }
        path.write_text(json.dumps(document), "utf-8")
        path.chmod(0o600)
        return path

    def call(
        self,
        method: str,
        path: str,
        document: Optional[Mapping[str, Any]] = None,
        kind: str = "application/json",
        parameters: Optional[Mapping[str, str]] = None,
    ) -> requests.Response:
        """One call as the cluster's administrator."""
        headers = {"Authorization": f"Bearer {ADMIN}", "Content-Type": kind}
        ca = str(self._folder / "certificates" / "apiserver.crt")
        url = self.url + path
        return requests.request(method, url, json=document, headers=headers, params=parameters, verify=ca, timeout=30)

    def apply(self, name: str, spec: Mapping[str, Any], manager: str, force: bool = False) -> Dict[str, Any]:
        """Server-side apply by somebody."""
        body = {
            "apiVersion": "ceph.rook.io/v1",
            "kind": "CephCluster",
            "metadata": {"name": name, "namespace": "rook-ceph"},
            "spec": spec,
        }
        own = {"fieldManager": manager, "force": str(force).lower()}
        answer = self.call("PATCH", f"{URL}/{name}", body, "application/apply-patch+yaml", own)
        assert answer.status_code in (200, 201), answer.text
        return dict(answer.json())

    def read(self, name: str) -> Dict[str, Any]:
        return dict(self.call("GET", f"{URL}/{name}").json())

    def say(self, name: str, status: Mapping[str, Any]) -> None:
        """Set parts of a resource's status."""
        answer = self.call("PATCH", f"{URL}/{name}/status", {"status": status}, "application/merge-patch+json")
        assert answer.status_code == 200, answer.text

    def _begin(self, *command: str) -> None:
        with (self._folder / f"{Path(command[0]).name}.log").open("ab") as log:
            self._processes.append(subprocess.Popen([*command], stdout=log, stderr=log, cwd=self._folder))

    def _wait(self, is_so: Any, words: str) -> None:
        end_s = time.monotonic() + 120
        while not _tried(is_so):
            for process in self._processes:
                assert process.poll() is None, f"{words}: {process.args!r} has ended"
            assert time.monotonic() < end_s, words
            time.sleep(0.3)


def _tried(is_so: Any) -> bool:
    try:
        return bool(is_so())
    except (requests.RequestException, OSError):
        return False


_OPTIONS = {"type": "object", "nullable": True, "additionalProperties": {"type": "object"}}
_SPEC = {
    "cephConfig": {
        **_OPTIONS,
        "additionalProperties": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "cephConfigFromSecret": {
        **_OPTIONS,
        "additionalProperties": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "key": {"type": "string"}},
            },
        },
    },
    "mon": {"type": "object", "properties": {"count": {"type": "integer"}}},
}
CEPH_CLUSTER: Dict[str, Any] = {
    "metadata": {"name": "cephclusters.ceph.rook.io"},
    "spec": {
        "group": "ceph.rook.io",
        "scope": "Namespaced",
        "names": {"kind": "CephCluster", "plural": "cephclusters", "singular": "cephcluster"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["metadata", "spec"],
                        "properties": {
                            "spec": {"type": "object", "properties": _SPEC},
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}
"""Of Rook's own definition what is used here."""
