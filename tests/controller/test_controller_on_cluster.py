"""The controller on a real cluster with the module in its mgr, by the user that docs/kubernetes.md makes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any, Dict, Iterator, List, Tuple

import pytest
import requests
from at_api_server import LATENCY, NAMESPACE, Operator, running

import documented
from ceph_lab.cluster import Lab
from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.cluster.session import Session
from ceph_tuner.controller.kinds import BOOST, MODE, SLO
from ceph_tuner.core.ceph.commands import osd_versions
from ceph_tuner.core.errors import ClusterTimeout, PermissionRefused
from ceph_tuner.core.knobs.releases import parse_version, release_of
from config_dump import config_dump
from documented import DOCS
from kubernetes_server import CONTROLLER, KubernetesServer
from lab_plugin import with_plugin
from prometheus_server import free_port
from waiting import until

pytestmark = pytest.mark.long

USER = "client.tuner-controller"
MAKING = [
    command.words
    for block in documented.blocks(DOCS / "kubernetes.md")
    if block.language == "console"
    for command in block.commands
    if command.text.startswith(f"ceph auth get-or-create {USER} ")
]
FOR_NOBODY: List[Tuple[str, Dict[str, str]]] = [
    ("config set", {"who": "osd", "name": "osd_max_scrubs", "value": "2"}),
    ("config set", {"who": "mgr", "name": "mgr/tuner/worker_python", "value": "/any"}),
    ("config-key get", {"key": "mgr/tuner/slo"}),
    ("config-key set", {"key": "mgr/tuner/journal/1", "val": "x"}),
    ("tuner rollback", {"yes": "true"}),
    ("tuner profile apply", {"name": "high_client_ops", "yes": "true"}),
    ("osd set", {"key": "noout"}),
    ("auth ls", {}),
]


@pytest.fixture(scope="module")
def cluster(tentacle_lab: Lab) -> Iterator[Cluster]:
    """The lab with the module, as the controller's user sees it."""
    keyring = f"/lab/{USER}.keyring"
    with with_plugin(tentacle_lab):
        try:
            (words,) = MAKING
            tentacle_lab.run([*words, "-o", keyring])
            arguments = f"CEPH_ARGS=-c {tentacle_lab.conf} --name {USER} --keyring {keyring}"
            with Session(lambda command: tentacle_lab.argv(["env", arguments, *command])) as session:
                version = min(osd_versions(session), key=parse_version)
                yield Cluster.of(tentacle_lab.name, session, release_of(version), version)
        finally:
            tentacle_lab.run(["ceph", "auth", "rm", USER])
            tentacle_lab.host_path(keyring).unlink(missing_ok=True)


def plugin_document(lab: Lab, *words: str) -> Any:
    return json.loads(lab.run(["ceph", "tuner", *words, "--format", "json"]))


def test_resources_come_to_the_cluster_and_go(
    kubernetes: KubernetesServer, operator: Operator, cluster: Cluster, tentacle_lab: Lab
) -> None:
    before = config_dump(tentacle_lab)
    with running(kubernetes, cluster):
        operator.create(SLO, "main", {**LATENCY, "calendar": {"policies": [{"name": "night", "hours": "22:00-06:00",
            "objectives": ["client.p95_ms <= 200 ms"]}]}})  # fmt: skip
        operator.wait(SLO, "main", "Carried")
        assert plugin_document(tentacle_lab, "slo", "ls")["calendar"]["policies"][0]["name"] == "night"
        operator.create(MODE, "main", {"mode": "dry-run", "policy": {"auto_window": 20, "auto_trials": 3}})
        operator.wait(MODE, "main", "Carried")
        assert plugin_document(tentacle_lab, "auto", "explain")["mode"] == "dry-run"
        shown = tentacle_lab.run(["ceph", "config", "get", "mgr", "mgr/tuner/auto_window"])
        assert float(shown) == 20
        # nothing recovers here
        operator.create(BOOST, "now", {"kind": "recovery"})
        operator.wait(BOOST, "now", "Waiting")
        for kind, name in ((BOOST, "now"), (MODE, "main"), (SLO, "main")):
            operator.delete(kind, name)
            operator.wait_gone(kind, name)
    assert plugin_document(tentacle_lab, "slo", "ls") is None
    assert plugin_document(tentacle_lab, "auto", "explain")["mode"] == "off"
    assert config_dump(tentacle_lab) == before


@pytest.mark.parametrize("asked", FOR_NOBODY, ids=lambda asked: asked[0])
def test_its_user_may_do_nothing_else(cluster: Cluster, asked: Tuple[str, Dict[str, str]]) -> None:
    with pytest.raises(PermissionRefused):
        cluster.commander.mon(*asked)


def test_its_user_reaches_no_osd(cluster: Cluster) -> None:
    with pytest.raises((PermissionRefused, ClusterTimeout)):
        cluster.commander.tell("osd.0", "config show", {})


def test_the_program_leads_answers_probes_and_ends_in_order(
    kubernetes: KubernetesServer, operator: Operator, cluster: Cluster, tentacle_lab: Lab
) -> None:
    port = free_port()
    words = ["controller", "--cluster", tentacle_lab.name, "--namespace", NAMESPACE, "--address", "127.0.0.1"]
    command = [sys.executable, "-c", "from ceph_tuner_cli.main import main; main()", *words, "--port", str(port)]
    environment = {**os.environ, "KUBECONFIG": str(kubernetes.kubeconfig(CONTROLLER))}
    program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        operator.create(SLO, "main", LATENCY)
        operator.wait(SLO, "main", "Carried")
        for path in ("healthz", "readyz"):
            assert requests.get(f"http://127.0.0.1:{port}/{path}", timeout=10).text == "ok\n"
        assert "ceph_tuner_controller_leads 1.0" in requests.get(f"http://127.0.0.1:{port}/metrics", timeout=10).text
        operator.delete(SLO, "main")
        operator.wait_gone(SLO, "main")
        program.send_signal(signal.SIGTERM)
        _, errors = program.communicate(timeout=60)
        assert program.returncode == 0, errors
        until(lambda: holder(kubernetes) == "")
    finally:
        program.kill()
        program.wait(30)
    assert plugin_document(tentacle_lab, "slo", "ls") is None


def holder(kubernetes: KubernetesServer) -> str:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/ceph-tuner-controller"
    return str(kubernetes.call("GET", path).json()["spec"].get("holderIdentity", ""))
