"""The controller between a real API server and the real module on a twin."""

from __future__ import annotations

import time
from typing import Any, Dict

import pytest
from at_api_server import LATENCY, Operator, commander_of, running, slo_at
from plugin_on_twin import plugin_cluster

from ceph_tuner.controller.kinds import BOOST, MODE, SLO
from kubernetes_server import KubernetesServer
from waiting import until

pytestmark = pytest.mark.long


def test_objectives_come_to_the_cluster_change_and_are_taken_back(
    kubernetes: KubernetesServer, operator: Operator
) -> None:
    cluster = plugin_cluster()
    commander = commander_of(cluster)
    with running(kubernetes, cluster):
        operator.create(SLO, "main", LATENCY)
        assert operator.wait(SLO, "main", "Carried")["status"] == "True"
        assert operator.conditions(SLO, "main")["Accepted"]["status"] == "True"
        assert '"client.p95_ms <= 80 ms"' in slo_at(cluster)
        document = operator.read(SLO, "main")
        assert document is not None
        assert document["metadata"]["finalizers"] == ["tuner.ceph.io/taken-back"]
        operator.change(SLO, "main", {"objectives": ["client.p95_ms <= 40 ms"]})
        operator.wait(SLO, "main", "Carried")
        assert '"client.p95_ms <= 40 ms"' in slo_at(cluster)
        # nothing is written that is there already: that would forget what relative bounds refer to
        assert len(commander.sent) == 2
        until(lambda: running_passes(kubernetes, operator))
        operator.delete(SLO, "main")
        operator.wait_gone(SLO, "main")
        assert slo_at(cluster) == "null"
    assert [line.split(" ")[:3] for line in commander.sent] == [
        ["tuner", "slo", "set"],
        ["tuner", "slo", "set"],
        ["tuner", "slo", "rm"],
    ]


def running_passes(kubernetes: KubernetesServer, operator: Operator) -> bool:
    """Some passes without a change leave the resource as it is."""
    before = operator.read(SLO, "main")
    time.sleep(2.5)
    return operator.read(SLO, "main") == before


def test_what_was_there_before_is_there_again(kubernetes: KubernetesServer, operator: Operator) -> None:
    cluster = plugin_cluster()
    commander_of(cluster).module.run("slo_set", objective="client.p95_ms<=10")
    before = slo_at(cluster)
    with running(kubernetes, cluster):
        operator.create(SLO, "main", LATENCY)
        operator.wait(SLO, "main", "Carried")
        operator.delete(SLO, "main")
        operator.wait_gone(SLO, "main")
    assert slo_at(cluster) == before


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"objectives": ["client.p95_ms >= 80 ms"]}, "spec.objectives.0: found client.p95_ms >="),
        ({"objectives": ["client.p95_ms <= 80 ms"], "minimize": "recovery.finish_s"}, "unknown key 'minimize'"),
        ({"objectives": []}, "a list with at least one objective"),
        ({**LATENCY, "calendar": {"zone": "Nowhere/None", "policies": []}}, "spec.calendar.zone"),
    ],
)
def test_a_bad_resource_says_why_and_changes_nothing(
    kubernetes: KubernetesServer, operator: Operator, spec: Dict[str, Any], words: str
) -> None:
    cluster = plugin_cluster()
    with running(kubernetes, cluster):
        operator.create(SLO, "bad", spec)
        refusal = operator.wait(SLO, "bad", "Invalid", "Accepted")
        assert words in refusal["message"]
        assert refusal["status"] == "False"
        assert operator.conditions(SLO, "bad")["Ready"]["reason"] == "NotAccepted"
        assert commander_of(cluster).sent == []
        # one that was good goes on holding what it has
        operator.change(SLO, "bad", {**dict.fromkeys(spec), **LATENCY})
        operator.wait(SLO, "bad", "Carried")
        operator.change(SLO, "bad", {"objectives": ["no.such_metric <= 1"]})
        operator.wait(SLO, "bad", "Invalid", "Accepted")
        assert '"client.p95_ms <= 80 ms"' in slo_at(cluster)


def test_the_api_server_refuses_what_the_definitions_do_not_allow(
    kubernetes: KubernetesServer, operator: Operator
) -> None:
    for kind, spec in (
        (SLO, {"objectives": "client.p95_ms <= 80 ms"}),
        (MODE, {"mode": "on"}),
        (MODE, {"mode": "auto", "policy": {"auto_window": 1}}),
        (BOOST, {"kind": "client"}),
    ):
        assert operator.try_create(kind, "bad", spec)[0] == 422


def test_of_two_the_older_one_counts_and_the_other_takes_over(kubernetes: KubernetesServer, operator: Operator) -> None:
    cluster = plugin_cluster()
    with running(kubernetes, cluster):
        operator.create(SLO, "first", LATENCY)
        operator.wait(SLO, "first", "Carried")
        operator.create(SLO, "a-second", {"objectives": ["client.p95_ms <= 9 ms"]})
        assert "CephSLO rook-ceph/first" in operator.wait(SLO, "a-second", "AnotherResource", "Accepted")["message"]
        operator.delete(SLO, "first")
        operator.wait(SLO, "a-second", "Carried")
        assert '"client.p95_ms <= 9 ms"' in slo_at(cluster)
        operator.delete(SLO, "a-second")
        operator.wait_gone(SLO, "a-second")
    assert slo_at(cluster) == "null"


def test_what_somebody_else_sets_is_left_alone_until_the_resource_is_changed(
    kubernetes: KubernetesServer, operator: Operator
) -> None:
    cluster = plugin_cluster()
    with running(kubernetes, cluster):
        operator.create(SLO, "main", LATENCY)
        operator.wait(SLO, "main", "Carried")
        commander_of(cluster).module.run("slo_set", objective="client.iops>=5")
        by_hand = slo_at(cluster)
        assert "left alone" in operator.wait(SLO, "main", "Drift")["message"]
        assert slo_at(cluster) == by_hand
        operator.change(SLO, "main", {"objectives": ["client.p95_ms <= 30 ms"]})
        operator.wait(SLO, "main", "Carried")
        operator.delete(SLO, "main")
        operator.wait_gone(SLO, "main")
    assert slo_at(cluster) == by_hand


def test_the_mode_and_its_policy_come_and_go(kubernetes: KubernetesServer, operator: Operator) -> None:
    cluster = plugin_cluster()
    commander = commander_of(cluster)
    commander.options["mgr/tuner/auto_settle"] = "20"
    with running(kubernetes, cluster):
        policy = {"auto_window": 30, "auto_settle": 25, "auto_hours": "mon-fri 22:00-06:00"}
        operator.create(MODE, "main", {"mode": "dry-run", "policy": policy})
        operator.wait(MODE, "main", "Carried")
        assert commander.aboard.driver.state.mode == "dry-run"
        assert commander.options == {
            "mgr/tuner/auto_window": "30",
            "mgr/tuner/auto_settle": "25",
            "mgr/tuner/auto_hours": "mon-fri 22:00-06:00",
        }
        operator.change(MODE, "main", {"mode": "auto", "policy": {"auto_hours": None}})
        operator.wait(MODE, "main", "Carried")
        assert commander.aboard.driver.state.mode == "auto"
        assert "mgr/tuner/auto_hours" not in commander.options
        operator.change(MODE, "main", {"policy": {"auto_least_windows": 50, "auto_most_windows": 40}})
        assert "auto_most_windows" in operator.wait(MODE, "main", "Invalid", "Accepted")["message"]
        assert commander.aboard.driver.state.mode == "auto"
        operator.delete(MODE, "main")
        operator.wait_gone(MODE, "main")
    assert commander.aboard.driver.state.mode == "off"
    assert commander.options == {"mgr/tuner/auto_settle": "20"}


def test_a_boost_is_begun_once_and_is_complete(kubernetes: KubernetesServer, operator: Operator) -> None:
    cluster = plugin_cluster(recovering=30_000)
    commander = commander_of(cluster)
    with running(kubernetes, cluster):
        operator.create(BOOST, "now", {"kind": "recovery", "atMost": "2h"})
        operator.wait(BOOST, "now", "Running")
        operator.create(BOOST, "z-next", {"kind": "recovery"})
        operator.wait(BOOST, "z-next", "Waiting")
        for _ in range(100):
            commander.sample(5)
            if operator.conditions(BOOST, "now")["Ready"]["reason"] != "Running":
                break
        assert operator.wait(BOOST, "now", "Complete")["status"] == "True"
        # nothing is left for the next one
        assert "nothing to boost" in operator.wait(BOOST, "z-next", "Waiting")["message"]
        began = commander.sent.count("tuner boost recovery clean 7200s osd")
        assert began == 1
        operator.delete(BOOST, "now")
        operator.wait_gone(BOOST, "now")


def test_a_boost_ends_with_its_resource_and_anew_with_its_change(
    kubernetes: KubernetesServer, operator: Operator
) -> None:
    cluster = plugin_cluster(recovering=500_000)
    commander = commander_of(cluster)
    before = cluster.config.dump()
    with running(kubernetes, cluster):
        operator.create(BOOST, "now", {"kind": "recovery", "atMost": "2h"})
        operator.wait(BOOST, "now", "Running")
        assert cluster.config.dump() != before
        operator.change(BOOST, "now", {"atMost": "3h"})
        until(lambda: commander.sent[-1] == "tuner boost recovery clean 10800s osd", words=lambda: commander.sent)
        operator.wait(BOOST, "now", "Running")
        operator.delete(BOOST, "now")
        operator.wait_gone(BOOST, "now")
    assert [line.split(" ")[2] for line in commander.sent] == ["recovery", "cancel", "recovery", "cancel"]
    assert cluster.config.dump() == before


def test_a_cluster_that_does_not_answer_is_said_and_a_deletion_waits_for_it(
    kubernetes: KubernetesServer, operator: Operator
) -> None:
    cluster = plugin_cluster()
    commander = commander_of(cluster)
    with running(kubernetes, cluster):
        operator.create(SLO, "main", LATENCY)
        operator.wait(SLO, "main", "Carried")
        commander.is_silent = True
        operator.wait(SLO, "main", "ClusterUnavailable")
        operator.delete(SLO, "main")
        until(lambda: (operator.read(SLO, "main") or {})["status"]["conditions"][1]["reason"] == "NotTakenBack")
        commander.is_silent = False
        operator.wait_gone(SLO, "main")
    assert slo_at(cluster) == "null"
