"""What a controller does when it is restarted, is one of two, loses its lease, or the API server goes away."""

from __future__ import annotations

import threading
import time
from typing import Any, Dict, Mapping

import pytest
from at_api_server import LATENCY, NAMESPACE, Operator, commander_of, running, slo_at
from plugin_on_twin import plugin_cluster

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.controller.controller import Controller
from ceph_tuner.controller.kinds import BOOST, SLO
from ceph_tuner.controller.leadership import PREFIX
from ceph_tuner.core.ceph.commands import CommandStore
from ceph_tuner.core.changes.lock import break_lock, claims
from ceph_tuner.core.errors import ClusterTimeout
from kubernetes_server import KubernetesServer
from waiting import until

pytestmark = pytest.mark.long

LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"


def holder(kubernetes: KubernetesServer) -> str:
    answer = kubernetes.call("GET", f"{LEASES}/ceph-tuner-controller").json()
    return str((answer.get("spec") or {}).get("holderIdentity", ""))


def leads(controller: Controller) -> bool:
    return controller.vitals.leads


def cut_after(cluster: Cluster, command: str, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """The controller's way to the cluster breaks off as soon as this command was carried out, once."""
    commander, done = commander_of(cluster), threading.Event()
    ask = commander.mon

    def mon(prefix: str, arguments: Mapping[str, str], payload: str = "") -> str:
        answer = ask(prefix, arguments, payload)
        if prefix == command and not done.is_set():
            done.set()
            commander.is_silent = True
            raise ClusterTimeout("no answer")
        return answer

    monkeypatch.setattr(commander, "mon", mon)
    return done


def test_a_restart_after_a_write_whose_answer_was_lost_goes_on(
    kubernetes: KubernetesServer, operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = plugin_cluster()
    commander = commander_of(cluster)
    commander.module.run("slo_set", objective="client.p95_ms<=10")
    before = slo_at(cluster)
    done = cut_after(cluster, "tuner slo set", monkeypatch)
    with running(kubernetes, cluster):
        operator.create(SLO, "main", LATENCY)
        until(done.is_set)
    # the resource is changed while nobody is there
    operator.change(SLO, "main", {"objectives": ["client.p95_ms <= 40 ms"]})
    commander.is_silent = False
    with running(kubernetes, cluster, "two"):
        operator.wait(SLO, "main", "Carried")
        assert '"client.p95_ms <= 40 ms"' in slo_at(cluster)
        operator.delete(SLO, "main")
        operator.wait_gone(SLO, "main")
    assert slo_at(cluster) == before


def test_a_restart_does_not_begin_a_boost_twice(
    kubernetes: KubernetesServer, operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = plugin_cluster(recovering=500_000)
    commander = commander_of(cluster)
    done = cut_after(cluster, "tuner boost recovery", monkeypatch)
    with running(kubernetes, cluster):
        operator.create(BOOST, "now", {"kind": "recovery", "atMost": "2min"})
        until(done.is_set)
    commander.is_silent = False
    with running(kubernetes, cluster, "two"):
        operator.wait(BOOST, "now", "Running")
    # it ends while nobody is there
    commander.sample(40)
    with running(kubernetes, cluster, "three"):
        ended = operator.wait(BOOST, "now", "Ended")
        assert ended["status"] == "False"
        time.sleep(3)
        operator.wait(BOOST, "now", "Ended")
    assert sum(line.startswith("tuner boost recovery") for line in commander.sent) == 1


def test_one_of_two_leads_and_the_other_takes_over(kubernetes: KubernetesServer, operator: Operator) -> None:
    cluster = plugin_cluster()
    with running(kubernetes, cluster, "one") as one, running(kubernetes, cluster, "two") as two:
        until(lambda: leads(one) or leads(two))
        time.sleep(5)
        assert leads(one) != leads(two)
        first, second = (one, two) if leads(one) else (two, one)
        assert holder(kubernetes) == first.settings.identity
        operator.create(SLO, "main", LATENCY)
        operator.wait(SLO, "main", "Carried")
        assert (first.vitals.passes > 0, second.vitals.passes) == (True, 0)
        # one that ends in order gives the lease up
        begun = time.monotonic()
        first.stop.set()
        until(lambda: leads(second))
        assert time.monotonic() - begun < 12
        operator.change(SLO, "main", {"objectives": ["client.p95_ms <= 40 ms"]})
        operator.wait(SLO, "main", "Carried")
    assert holder(kubernetes) == ""
    assert claims(CommandStore(cluster.commander, PREFIX)) == []


def test_who_loses_the_lease_writes_nothing_more(kubernetes: KubernetesServer, operator: Operator) -> None:
    cluster = plugin_cluster()
    with running(kubernetes, cluster) as controller:
        operator.create(SLO, "main", LATENCY)
        operator.wait(SLO, "main", "Carried")
        take_lease(kubernetes, "somebody")
        until(lambda: not controller.lease.is_held)
        until(lambda: not leads(controller))
        sent = len(commander_of(cluster).sent)
        operator.change(SLO, "main", {"objectives": ["client.p95_ms <= 40 ms"]})
        time.sleep(5)
        assert (len(commander_of(cluster).sent), operator.conditions(SLO, "main")) == (sent, {})
        # the other one says nothing more: its time runs out by our own clock
        operator.wait(SLO, "main", "Carried")
        assert holder(kubernetes) == "one"


def take_lease(kubernetes: KubernetesServer, name: str) -> None:
    spec = {"holderIdentity": name, "leaseDurationSeconds": 15}
    answer = kubernetes.call("PATCH", f"{LEASES}/ceph-tuner-controller", {"spec": spec}, "application/merge-patch+json")
    assert answer.status_code == 200, answer.text


def test_who_was_shut_out_of_the_cluster_writes_nothing_though_it_has_the_lease(
    kubernetes: KubernetesServer, operator: Operator
) -> None:
    cluster = plugin_cluster()
    store = CommandStore(cluster.commander, PREFIX)
    with running(kubernetes, cluster) as controller:
        operator.create(SLO, "main", LATENCY)
        operator.wait(SLO, "main", "Carried")
        terms = controller.vitals.terms
        break_lock(store)
        operator.change(SLO, "main", {"objectives": ["client.p95_ms <= 40 ms"]})
        # it leaves, enters anew, and only then writes
        until(lambda: controller.vitals.terms > terms)
        operator.wait(SLO, "main", "Carried")


def test_an_api_server_that_goes_away_and_comes_back(kubernetes: KubernetesServer, operator: Operator) -> None:
    cluster = plugin_cluster()
    with running(kubernetes, cluster) as controller:
        operator.create(SLO, "main", LATENCY)
        operator.wait(SLO, "main", "Carried")
        kubernetes.end_server()
        sent = len(commander_of(cluster).sent)
        until(lambda: not leads(controller))
        assert controller.vitals.page("/healthz").status == 200
        assert len(commander_of(cluster).sent) == sent
        kubernetes.begin_server()
        kubernetes.wait_ready()
        operator.change(SLO, "main", {"objectives": ["client.p95_ms <= 40 ms"]})
        operator.wait(SLO, "main", "Carried")
        metrics = controller.vitals.page("/metrics").body
        assert 'ceph_tuner_controller_resources{kind="CephSLO",ready="true",reason="Carried"} 1.0' in metrics
        assert "ceph_tuner_controller_leads 1.0" in metrics
        assert controller.vitals.page("/readyz").status == 200


def test_the_role_allows_the_controller_what_it_does_and_nothing_else(kubernetes: KubernetesServer) -> None:
    allowed = [
        ("list", "tuner.ceph.io", "cephslos", ""),
        ("watch", "tuner.ceph.io", "cephboosts", ""),
        ("patch", "tuner.ceph.io", "cephtuningmodes", ""),
        ("patch", "tuner.ceph.io", "cephslos", "status"),
        ("create", "coordination.k8s.io", "leases", ""),
    ]
    refused = [
        ("create", "tuner.ceph.io", "cephslos", ""),
        ("delete", "tuner.ceph.io", "cephslos", ""),
        ("get", "", "secrets", ""),
        ("create", "", "pods", ""),
        ("update", "coordination.k8s.io", "leases", ""),
        ("get", "ceph.rook.io", "cephclusters", ""),
    ]
    assert [may(kubernetes, *row) for row in allowed] == [True] * len(allowed)
    assert [may(kubernetes, *row) for row in refused] == [False] * len(refused)


def may(kubernetes: KubernetesServer, verb: str, group: str, resource: str, part: str) -> bool:
    attributes: Dict[str, Any] = {"namespace": NAMESPACE, "verb": verb, "group": group, "resource": resource}
    attributes.update({"subresource": part} if part else {})
    user = "system:serviceaccount:rook-ceph:ceph-tuner-controller"
    review = {"spec": {"user": user, "resourceAttributes": attributes}}
    answer = kubernetes.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review).json()
    return bool(answer["status"]["allowed"])
