"""The Helm chart: rendered and linted by the real helm, installed by it at a real API server."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest
from helm_program import environment, helm
from ruamel.yaml import YAML

from ceph_tuner import __version__
from ceph_tuner.controller.kinds import ALL
from kubernetes_server import ADMIN, DEPLOY, KubernetesServer

CHART = DEPLOY.parent / "helm" / "ceph-tuner"
NEEDED = ["--set", "image.repository=registry.example/ceph-tuner", "--set", "ceph.secret=ceph-client"]
NAMESPACE = "rook-ceph"


def run(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(helm()), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=environment(tmp_path))


def rendered(tmp_path: Path, *words: str) -> List[Dict[str, Any]]:
    done = run(tmp_path, "template", "tuner", str(CHART), "--namespace", NAMESPACE, *NEEDED, *words)
    assert done.returncode == 0, done.stderr
    return [document for document in YAML(typ="safe", pure=True).load_all(done.stdout) if document]


def released(tmp_path: Path, release: str, namespace: str, *words: str) -> List[Dict[str, Any]]:
    """As Kubernetes reads it: by YAML 1.1, in which `no` and `1e3` are no texts."""
    done = run(tmp_path, "template", release, str(CHART), "--namespace", namespace, *NEEDED, *words)
    assert done.returncode == 0, done.stderr
    reader = YAML(typ="safe", pure=True)
    reader.version = (1, 1)  # type: ignore[assignment]
    return [document for document in reader.load_all(done.stdout) if document]


def of_kind(documents: List[Dict[str, Any]], kind: str) -> Dict[str, Any]:
    (document,) = [each for each in documents if each["kind"] == kind]
    return document


def test_helm_finds_no_fault(tmp_path: Path) -> None:
    done = run(tmp_path, "lint", "--strict", str(CHART), *NEEDED)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_chart_has_the_programs_version() -> None:
    chart = YAML(typ="safe", pure=True).load((CHART / "Chart.yaml").read_text("utf-8"))
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


def test_the_charts_definitions_are_those_of_the_folder() -> None:
    files = {path.name: path.read_bytes() for path in (DEPLOY / "crds").iterdir()}
    assert {path.name: path.read_bytes() for path in (CHART / "crds").iterdir()} == files


def test_the_charts_role_is_that_of_the_plain_file(tmp_path: Path) -> None:
    plain = list(YAML(typ="safe", pure=True).load_all((DEPLOY / "controller.yaml").read_text("utf-8")))
    text = json.dumps(of_kind(plain, "Role")["rules"]).replace('["ceph-tuner-controller"]', '["tuner-ceph-tuner"]')
    assert of_kind(rendered(tmp_path), "Role")["rules"] == json.loads(text)


@pytest.mark.parametrize("guarded", [False, True])
def test_a_container_may_do_nothing_but_its_work(tmp_path: Path, guarded: bool) -> None:
    more = ["--set", "guardian.enabled=true"] if guarded else []
    pod = of_kind(rendered(tmp_path, *more), "Deployment")["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert [container["args"][0] for container in pod["containers"]] == ["controller", *["guardian"][:guarded]]
    for container in pod["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {mount["mountPath"]: mount.get("readOnly", False) for mount in container["volumeMounts"]} == {
            "/etc/ceph": True,
            "/tmp": False,  # noqa: S108
        }


def labels_of(document: Dict[str, Any]) -> Iterator[Any]:
    yield from document["metadata"]["labels"].values()
    spec = document.get("spec", {})
    yield from (spec.get("selector") or {}).get("matchLabels", {}).values()
    if document["kind"] == "Service":
        yield from spec["selector"].values()
    if document["kind"] == "Deployment":
        yield from spec["template"]["metadata"]["labels"].values()


@pytest.mark.parametrize("release", ["a" * 53, "a" * 52, "b.c" * 17, "ceph-tuner", f"{'a' * 42}-ceph-tuner"])
def test_whatever_a_release_is_called_its_objects_share_one_name_that_is_not_too_long(
    release: str, tmp_path: Path
) -> None:
    documents = released(tmp_path, release, NAMESPACE, "--set", "serviceMonitor.enabled=true")
    role, binding, deployment = (of_kind(documents, kind) for kind in ("Role", "RoleBinding", "Deployment"))
    (name,) = {each["metadata"]["name"] for each in documents if each["kind"] != "Service"}
    assert name.startswith(release)
    assert len(name) <= 63
    assert name[-1].isalnum()
    pod = deployment["spec"]["template"]["spec"]
    assert (binding["roleRef"]["name"], binding["subjects"][0]["name"]) == (name, name)
    assert (pod["serviceAccountName"], role["rules"][-1]["resourceNames"]) == (name, [name])
    assert f"--lease={name}" in pod["containers"][0]["args"]
    for document in documents:
        assert max(map(len, labels_of(document))) <= 63


@pytest.mark.parametrize("name", ["1e3", "123", "0x1f", "1.5", "no", "off", "true", "null", "2001-01-01"])
def test_a_name_that_yaml_takes_for_something_else_stays_a_text(name: str, tmp_path: Path) -> None:
    words = ["--set-string", f"ceph.secret={name},priorityClassName={name},image.pullSecrets[0]={name}"]
    documents = released(tmp_path, name, name, "--set", "serviceMonitor.enabled=true", *words)
    for document in documents:
        assert (document["metadata"]["namespace"], document["metadata"]["labels"]["app.kubernetes.io/instance"]) == (
            name,
            name,
        )
        assert {type(label) for label in labels_of(document)} == {str}
    assert of_kind(documents, "RoleBinding")["subjects"][0]["namespace"] == name
    pod = of_kind(documents, "Deployment")["spec"]["template"]["spec"]
    assert (pod["volumes"][0]["secret"]["secretName"], pod["priorityClassName"]) == (name, name)
    assert pod["imagePullSecrets"] == [{"name": name}]
    assert f"--namespace={name}" in pod["containers"][0]["args"]


@pytest.mark.parametrize("release", ["1e3", "a.b", "9" * 53, "1.ceph-tuner", f"{'a' * 50}.b"])
def test_a_service_has_a_name_that_services_may_have(release: str, tmp_path: Path) -> None:
    """It begins with a letter and has no dot, as a label of DNS (RFC 1035)."""
    name = of_kind(released(tmp_path, release, NAMESPACE), "Service")["metadata"]["name"]
    assert re.fullmatch("[a-z]([-a-z0-9]{0,61}[a-z0-9])?", name)


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ([], "image.repository"),
        ([*NEEDED, "--set", "replica=3"], "replica"),
        ([*NEEDED, "--set", "port=80"], "port"),
        ([*NEEDED, "--set", "image.digest=latest"], "image.digest"),
    ],
)
def test_values_that_make_no_sense_are_refused(tmp_path: Path, words: List[str], fault: str) -> None:
    done = run(tmp_path, "template", "tuner", str(CHART), *words)
    assert done.returncode != 0
    assert fault in done.stderr


def test_what_is_optional_is_there_when_it_is_asked_for(tmp_path: Path) -> None:
    assert not [each for each in rendered(tmp_path) if each["kind"] == "ServiceMonitor"]
    digest = f"sha256:{'0' * 64}"
    documents = rendered(
        tmp_path, "--set", "serviceMonitor.enabled=true", "--set", f"image.digest={digest}", "--set", "replicas=3"
    )
    deployment = of_kind(documents, "Deployment")["spec"]
    assert deployment["replicas"] == 3
    assert deployment["template"]["spec"]["containers"][0]["image"] == f"registry.example/ceph-tuner@{digest}"
    monitor = of_kind(documents, "ServiceMonitor")["spec"]
    assert monitor["selector"]["matchLabels"].items() <= of_kind(documents, "Service")["metadata"]["labels"].items()


@pytest.mark.long
def test_helm_installs_upgrades_and_removes_it_at_a_real_api_server(tmp_path: Path) -> None:
    server = KubernetesServer(tmp_path)
    try:
        server.start()
        reached = ["--kubeconfig", str(server.kubeconfig(ADMIN)), "--namespace", NAMESPACE]
        done = run(tmp_path, "install", "tuner", str(CHART), *NEEDED, *reached)
        assert done.returncode == 0, done.stderr
        for kind in ALL:
            assert server.call("GET", kind.path(NAMESPACE)).status_code == 200
        path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/tuner-ceph-tuner"
        assert server.call("GET", path).json()["spec"]["replicas"] == 2
        done = run(tmp_path, "upgrade", "tuner", str(CHART), *NEEDED, "--set", "replicas=1", *reached)
        assert done.returncode == 0, done.stderr
        assert server.call("GET", path).json()["spec"]["replicas"] == 1
        done = run(tmp_path, "uninstall", "tuner", *reached)
        assert done.returncode == 0, done.stderr
        assert server.call("GET", path).status_code == 404
        for release in ("1e3", "a.b", "a" * 53):
            done = run(tmp_path, "install", release, str(CHART), *NEEDED, *reached)
            assert done.returncode == 0, done.stderr
            assert run(tmp_path, "uninstall", release, *reached).returncode == 0
        # what was made by the definitions would go with them
        assert server.call("GET", ALL[0].path(NAMESPACE)).status_code == 200
    finally:
        server.stop()
