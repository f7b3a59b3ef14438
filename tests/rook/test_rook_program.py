"""`ceph-tuner --rook` on a real Ceph cluster, with a real API server."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from ceph_lab.cluster import Lab
from kubernetes_server import KubernetesServer

CHOICE = "rook-ceph/rook-ceph"


@pytest.mark.long
def test_the_program_shows_writes_and_takes_back(tentacle_lab: Lab, kubernetes: KubernetesServer) -> None:
    def program(*words: str) -> subprocess.CompletedProcess[str]:
        reached = ("--cluster", tentacle_lab.name, "--rook", CHOICE)
        command = [sys.executable, "-c", "from ceph_tuner_cli.main import main; main()", *words, *reached]
        environment = {**os.environ, "KUBECONFIG": str(kubernetes.kubeconfig())}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
        return done

    def stated() -> object:
        return kubernetes.read("rook-ceph")["spec"].get("cephConfig")

    fsid = json.loads(tentacle_lab.run(["ceph", "status", "-f", "json"]))["fsid"]
    made = kubernetes.apply("rook-ceph", {"mon": {"count": 1}}, "helm")
    # nothing works here as Rook: it says beforehand that it is done with what comes
    done = int(made["metadata"]["generation"]) + 99
    kubernetes.say("rook-ceph", {"ceph": {"fsid": fsid}, "observedGeneration": done})
    assert "kubectl -n rook-ceph patch cephcluster rook-ceph" in program("apply", "--set", "osd_max_scrubs=2").stdout
    assert stated() is None
    program("apply", "--set", "osd_max_scrubs=2", "--yes")
    assert stated() == {"osd": {"osd_max_scrubs": "2"}}
    program("rollback")
    assert not stated()
    assert "osd_max_scrubs" not in tentacle_lab.run(["ceph", "config", "dump"])
