"""Changes through a CephCluster at a real API server, beside a stand-in for Rook's operator.

The same tests run on a twin and on a real Ceph cluster.

`kubernetes_server.py` says where the API server comes from; `rook_operator.py` what the stand-in does.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from typing import Dict, Iterator

import pytest

from appliers import CUSTOM
from ceph_tuner.cluster import Cluster, open_cluster
from ceph_tuner.core.ceph.ports import Commander
from ceph_tuner.core.changes.journal import UNDONE
from ceph_tuner.core.errors import ClusterNotFound, InputError, PermissionRefused
from ceph_tuner.core.knobs.catalogue import MCLOCK_NINE, PROFILE
from ceph_tuner.rook import configuration
from ceph_tuner.rook.management import RookChoice, UnclaimedConfig, on_rook
from config_dump import bring_back
from kubernetes_server import KubernetesServer
from rook_operator import Assimilating, RookOperator
from twins import answering, small_twin

pytestmark = pytest.mark.long

NAME = "rook-ceph"
CHOICE = f"rook-ceph/{NAME}"
POD = {"id": 0, "pod_name": "rook-ceph-osd-0-5d8f", "pod_namespace": "rook-ceph"}


@dataclass(frozen=True)
class Ceph:
    """The monitors, as a tuner and as Rook's operator reach them."""

    cluster: Cluster
    commander: Commander


LAB = (pytest.mark.cluster, pytest.mark.xdist_group("both"))


@pytest.fixture(scope="module", params=["twin", pytest.param("tentacle_lab", marks=LAB)])
def ceph(request: pytest.FixtureRequest) -> Iterator[Ceph]:
    if request.param == "twin":
        twin = small_twin()
        shared = Assimilating(twin.commander)
        cluster = Cluster.of("twin", shared, twin.release, twin.version)
        yield Ceph(cluster, shared)
        return
    lab = request.getfixturevalue(request.param)
    opened, own = open_cluster(lab.name), open_cluster(lab.name)
    yield Ceph(opened, own.commander)
    opened.close()
    own.close()


@pytest.fixture
def monitors(ceph: Ceph) -> Cluster:
    return ceph.cluster


@pytest.fixture(scope="module")
def operator(kubernetes: KubernetesServer, ceph: Ceph) -> Iterator[RookOperator]:
    fsid = json.loads(ceph.commander.mon("status", {}))["fsid"]
    kubernetes.apply(NAME, {"mon": {"count": 1}}, "helm")
    kubernetes.say(NAME, {"ceph": {"fsid": fsid}})
    operator = RookOperator(kubernetes, NAME, ceph.commander)
    operator.start()
    try:
        yield operator
    finally:
        operator.stop()


@pytest.fixture
def cluster(monitors: Cluster, operator: RookOperator, kubernetes: KubernetesServer) -> Iterator[Cluster]:
    """The lab as Rook's, and after the test as before it."""
    before = monitors.config.dump()
    yield on_rook(monitors, RookChoice(CHOICE, str(kubernetes.kubeconfig())))
    helm_states(kubernetes, operator, {})
    kubernetes.apply(NAME, {}, "ceph-tuner", force=True)
    operator.wait(kubernetes.read(NAME)["metadata"]["generation"])
    bring_back(monitors.config, before)
    assert monitors.config.dump() == before


def helm_states(kubernetes: KubernetesServer, operator: RookOperator, stated: Dict[str, Dict[str, str]]) -> None:
    """What somebody else's chart states in the resource; Rook is done with it."""
    spec = {"mon": {"count": 1}, **({"cephConfig": stated} if stated else {})}
    operator.wait(int(kubernetes.apply(NAME, spec, "helm", force=True)["metadata"]["generation"]))


def at_monitors(cluster: Cluster, who: str = "osd") -> Dict[str, str]:
    return {row.name: row.value for row in cluster.config.dump() if row.who == who}


def in_resource(kubernetes: KubernetesServer) -> Dict[str, Dict[str, str]]:
    return dict(kubernetes.read(NAME)["spec"].get("cephConfig") or {})


def touch(kubernetes: KubernetesServer, operator: RookOperator, count: int) -> None:
    """A change of the resource that has nothing to do with options, and Rook's run for it."""
    body = {"spec": {"mon": {"count": count}}}
    answer = kubernetes.call(
        "PATCH",
        f"/apis/ceph.rook.io/v1/namespaces/rook-ceph/cephclusters/{NAME}",
        body,
        "application/merge-patch+json",
        {"fieldManager": "helm"},
    )
    operator.wait(int(answer.json()["metadata"]["generation"]))


def test_what_is_written_to_the_monitors_alone_is_undone(
    cluster: Cluster, monitors: Cluster, kubernetes: KubernetesServer, operator: RookOperator
) -> None:
    """The fault that all of this is for; and that the stand-in does what Rook does."""
    helm_states(kubernetes, operator, {"osd": {"osd_max_scrubs": "4"}})
    applier = monitors.applier()
    entry = applier.apply(applier.plan("osd", {"osd_max_scrubs": 1}))
    assert entry is not None
    assert at_monitors(monitors)["osd_max_scrubs"] == "1"
    touch(kubernetes, operator, 3)
    assert at_monitors(monitors)["osd_max_scrubs"] == "4"
    applier.undo()


def test_a_change_stays_and_is_taken_back_whole(
    cluster: Cluster, monitors: Cluster, kubernetes: KubernetesServer, operator: RookOperator
) -> None:
    before = monitors.config.dump()
    applier = cluster.applier()
    entry = applier.apply(applier.plan("osd", {**CUSTOM, "osd_max_scrubs": 2}))
    assert entry is not None
    assert entry.note == ""
    touch(kubernetes, operator, 5)
    stated = in_resource(kubernetes)["osd"]
    assert set(stated) == {PROFILE, *MCLOCK_NINE, "osd_max_scrubs"}
    assert {name: at_monitors(monitors)[name] for name in stated} == stated
    for osd in cluster.config.osds("osd"):
        shown = cluster.config.effective(osd)
        assert (shown["osd_max_scrubs"], shown[PROFILE]) == ("2", "custom")
    (done,) = applier.undo()
    assert (done.remarks, done.entry.state) == ((), UNDONE)
    touch(kubernetes, operator, 7)
    assert in_resource(kubernetes) == {}
    assert monitors.config.dump() == before


def test_a_run_that_began_before_the_undo_brings_nothing_back(
    cluster: Cluster, monitors: Cluster, kubernetes: KubernetesServer, operator: RookOperator
) -> None:
    before = monitors.config.dump()
    applier = cluster.applier()
    applier.apply(applier.plan("osd", CUSTOM))
    operator.run_s = 3.0
    try:
        # helm's change begins a run, which has read our values
        kubernetes.apply(NAME, {"mon": {"count": 9}}, "helm", force=True)
        time.sleep(0.5)
        (done,) = applier.undo()
    finally:
        operator.run_s = 0.3
    assert done.remarks == ()
    assert monitors.config.dump() == before
    touch(kubernetes, operator, 3)
    assert monitors.config.dump() == before


def test_a_mask_is_taken_by_rook_as_by_us(
    cluster: Cluster, monitors: Cluster, kubernetes: KubernetesServer, operator: RookOperator
) -> None:
    """`config assimilate-conf` takes sections with masks."""
    place = cluster.config.places()[0]
    target = f"osd/host:{place.locations['host']}"
    applier = cluster.applier()
    applier.apply(applier.plan(target, {"osd_max_scrubs": 2}))
    monitors.config.remove(target, "osd_max_scrubs")
    touch(kubernetes, operator, 5)
    assert at_monitors(monitors, target) == {"osd_max_scrubs": "2"}
    applier.undo()


def test_what_another_states_is_refused_and_nothing_is_written(
    cluster: Cluster, monitors: Cluster, kubernetes: KubernetesServer, operator: RookOperator
) -> None:
    helm_states(kubernetes, operator, {"osd": {"osd_max_scrubs": "4", "osd-max-backfills": "2"}})
    before, changes = cluster.config.dump(), len(cluster.applier().history())
    for settings in ({"osd_max_scrubs": 1}, {"osd_mclock_override_recovery_settings": True, "osd_max_backfills": 3}):
        with pytest.raises(InputError, match=r"stated by helm, which Rook sets again"):
            cluster.applier().plan("osd", settings)
    assert (cluster.config.dump(), len(cluster.applier().history())) == (before, changes)
    assert cluster.applier().plan("osd", {"osd_max_scrubs": 4}).steps == ()


def test_drift_of_both_sides(
    cluster: Cluster, monitors: Cluster, kubernetes: KubernetesServer, operator: RookOperator
) -> None:
    applier = cluster.applier()
    applier.apply(applier.plan("osd", {"osd_max_scrubs": 2, "osd_scrub_chunk_max": 6}))
    helm_states(kubernetes, operator, {"osd": {"osd_max_scrubs": "7"}})
    monitors.config.set("osd", "osd_scrub_chunk_max", "9")
    (done,) = applier.undo()
    drift = sorted((item.who, item.name, item.found) for item in done.drift)
    assert drift == [
        (f"cephcluster/{CHOICE}:osd", "osd_max_scrubs", "7 (stated by helm)"),
        ("osd", "osd_max_scrubs", "7"),
        ("osd", "osd_scrub_chunk_max", "9"),
    ]
    assert in_resource(kubernetes) == {"osd": {"osd_max_scrubs": "7"}}


def test_a_value_that_another_takes_over_stays_that_others(
    cluster: Cluster, monitors: Cluster, kubernetes: KubernetesServer, operator: RookOperator
) -> None:
    applier = cluster.applier()
    applier.apply(applier.plan("osd", {"osd_max_scrubs": 2}))
    helm_states(kubernetes, operator, {"osd": {"osd_max_scrubs": "2"}})
    (done,) = applier.undo()
    assert any("2 (stated by helm)" in remark for remark in done.remarks)
    assert in_resource(kubernetes) == {"osd": {"osd_max_scrubs": "2"}}
    managers = [item["manager"] for item in kubernetes.read(NAME)["metadata"]["managedFields"]]
    assert "ceph-tuner" not in managers
    # and nobody stands in helm's way now
    kubernetes.apply(NAME, {"mon": {"count": 1}, "cephConfig": {"osd": {"osd_max_scrubs": "3"}}}, "helm")


def test_without_the_resource_what_rook_would_undo_is_refused(
    cluster: Cluster, monitors: Cluster, kubernetes: KubernetesServer, operator: RookOperator
) -> None:
    helm_states(kubernetes, operator, {"osd": {"osd_max_scrubs": "4"}})
    seen = answering(monitors, {"osd metadata": [POD]})
    environment = {"KUBECONFIG": str(kubernetes.kubeconfig())}
    unclaimed = replace(seen, config=UnclaimedConfig(seen.commander, monitors.clock, environment))
    with pytest.raises(InputError, match=r"osd_max_scrubs of `osd` in its `cephConfig`.*--rook rook-ceph/rook-ceph"):
        unclaimed.applier().plan("osd", {"osd_max_scrubs": 1})
    assert unclaimed.applier().plan("osd", {"osd_scrub_chunk_max": 6}).steps


def test_a_resource_of_another_cluster_is_refused(
    cluster: Cluster, monitors: Cluster, kubernetes: KubernetesServer
) -> None:
    kubernetes.apply("other", {"mon": {"count": 1}}, "helm")
    kubernetes.say("other", {"ceph": {"fsid": "00000000-0000-0000-0000-000000000000"}})
    other = on_rook(monitors, RookChoice("rook-ceph/other", str(kubernetes.kubeconfig())))
    with pytest.raises(InputError, match="expected that of the cluster that is written to"):
        other.applier().plan("osd", {"osd_max_scrubs": 2})
    missing = on_rook(monitors, RookChoice("rook-ceph/none-such", str(kubernetes.kubeconfig())))
    with pytest.raises(ClusterNotFound, match="not found"):
        missing.applier().plan("osd", {"osd_max_scrubs": 2})


def test_an_account_without_the_role_is_refused(
    cluster: Cluster, monitors: Cluster, kubernetes: KubernetesServer
) -> None:
    for token in ("other-token", "no-such-token"):
        stranger = on_rook(monitors, RookChoice(CHOICE, str(kubernetes.kubeconfig(token))))
        with pytest.raises(PermissionRefused, match=r"docs/rook\.md") as refusal:
            stranger.applier().plan("osd", {"osd_max_scrubs": 2})
        assert token not in str(refusal.value)


def test_the_role_allows_nothing_else(kubernetes: KubernetesServer, cluster: Cluster) -> None:
    account = "system:serviceaccount:rook-ceph:ceph-tuner"
    granted = []
    for verb, resource in (("get", "cephclusters"), ("patch", "cephclusters"), ("update", "cephclusters")):
        granted.append(_may(kubernetes, account, verb, "ceph.rook.io", resource))
    granted += [_may(kubernetes, account, verb, "", what) for verb, what in (("get", "secrets"), ("create", "pods"))]
    assert granted == [True, True, False, False, False]


def _may(kubernetes: KubernetesServer, user: str, verb: str, group: str, resource: str) -> bool:
    attributes = {"namespace": "rook-ceph", "verb": verb, "group": group, "resource": resource}
    review = {"spec": {"user": user, "resourceAttributes": attributes}}
    answer = kubernetes.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review).json()
    return bool(answer["status"]["allowed"])


def test_rook_that_does_nothing_is_told(
    cluster: Cluster, kubernetes: KubernetesServer, operator: RookOperator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(configuration, "SETTLE_S", 2.0)
    operator.run_s = 20.0
    try:
        applier = cluster.applier()
        entry = applier.apply(applier.plan("osd", {"osd_max_scrubs": 2}))
        assert entry is not None
        assert "Rook is not done with generation" in entry.note
        (done,) = applier.undo()
        assert any("Rook is not done" in words for words in done.unseen)
    finally:
        operator.run_s = 0.3
    operator.wait(kubernetes.read(NAME)["metadata"]["generation"])
    (again,) = cluster.applier().undo()
    assert (again.entry.number, again.entry.state, again.unseen) == (entry.number, UNDONE, ())
