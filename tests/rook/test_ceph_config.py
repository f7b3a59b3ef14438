"""What a CephCluster states, and whose it is."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Dict

import pytest

from ceph_tuner.core.changes.custom_resource import CustomResource
from ceph_tuner.core.errors import CommandFailed, InputError
from ceph_tuner.rook.ceph_config import ceph_config, refuse_conflict
from ceph_tuner.rook.management import RookChoice, UnclaimedConfig, on_rook, osd_pod
from monitors import ManualClock
from twins import answering, small_twin

ROOK = CustomResource("rook-ceph", "rook-ceph")


def document(**spec: Any) -> Dict[str, Any]:
    """As an API server tells it: osd_max_scrubs is ours, osd_max_backfills of both, the rest is helm's."""
    fields = {
        "ceph-tuner": {"f:osd": {".": {}, "f:osd_max_scrubs": {}, "f:osd_max_backfills": {}}},
        "helm": {"f:osd": {"f:osd_max_backfills": {}, "f:osd-scrub-sleep": {}}},
    }
    return {
        "metadata": {
            "name": "rook-ceph",
            "generation": 7,
            "managedFields": [
                {"manager": name, "operation": "Apply", "fieldsV1": {"f:spec": {"f:cephConfig": own}}}
                for name, own in fields.items()
            ],
        },
        "spec": {
            "cephConfig": {
                "osd": {"osd_max_scrubs": "2", "osd_max_backfills": "3", "osd-scrub-sleep": "0.1"},
            },
            "cephConfigFromSecret": {"osd": {"osd max object size": {"name": "a", "key": "b"}}},
            **spec,
        },
        "status": {"observedGeneration": 6, "ceph": {"fsid": "f"}},
    }


def test_whose_a_value_is() -> None:
    now = ceph_config(document())
    assert now.values["osd", "osd_scrub_sleep"] == "0.1"
    assert now.ours == {("osd", "osd_max_scrubs"), ("osd", "osd_max_backfills")}
    assert now.others == {("osd", "osd_max_backfills"): "helm", ("osd", "osd_scrub_sleep"): "helm"}
    assert now.secrets == {("osd", "osd_max_object_size")}
    assert (now.fsid, now.is_observed) == ("f", False)


@pytest.mark.parametrize(
    ("kept", "manager"), [([], "nobody who is known"), ([{"operation": "Update"}], "ceph-tuner by hand")]
)
def test_what_no_apply_of_ours_would_take_out_is_anothers(kept: Any, manager: str) -> None:
    whole = document()
    (first, *_) = whole["metadata"]["managedFields"]
    whole["metadata"]["managedFields"] = [{**first, **change} for change in kept]
    now = ceph_config(whole)
    assert now.ours == frozenset()
    assert now.others["osd", "osd_max_scrubs"] == manager


def test_what_others_state_as_well_is_left_to_them() -> None:
    assert ceph_config(document()).spec_with({}) == {"cephConfig": {"osd": {"osd_max_scrubs": "2"}}}
    assert ceph_config(document()).spec_with({("osd", "osd_max_scrubs"): None}) == {}


@pytest.mark.parametrize("empty", [None, {}, {"osd": None}])
def test_a_resource_that_states_nothing(empty: Any) -> None:
    assert ceph_config(document(cephConfig=empty)).values == {}
    assert ceph_config({"metadata": {}}).observed == 0


@pytest.mark.parametrize("spec", [{"cephConfig": "osd"}, {"cephConfig": {"osd": [1]}}])
def test_another_shape_is_the_servers_fault(spec: Any) -> None:
    with pytest.raises(CommandFailed, match="cannot be read"):
        ceph_config(document(**spec))


def test_what_somebody_else_states_otherwise_is_refused() -> None:
    now = ceph_config(document())
    refuse_conflict(ROOK, now, ("osd", "osd_max_scrubs"), "5")
    refuse_conflict(ROOK, now, ("osd", "osd_scrub_sleep"), "0.100000")
    with pytest.raises(InputError, match=r"osd_scrub_sleep of `osd` = 0.1, stated by helm"):
        refuse_conflict(ROOK, now, ("osd", "osd_scrub_sleep"), "0.2")
    with pytest.raises(InputError, match="cephConfigFromSecret"):
        refuse_conflict(ROOK, now, ("osd", "osd_max_object_size"), "1")


POD = {"id": 0, "pod_name": "rook-ceph-osd-0-5d8f", "pod_namespace": "storage"}


@pytest.mark.parametrize(
    ("row", "namespace"),
    [(POD, "storage"), ({"id": 0}, None), ({**POD, "pod_name": "mine-0"}, None), ({**POD, "pod_namespace": ""}, None)],
)
def test_a_cluster_is_rooks_where_its_osds_run_in_pods_of_rook(row: Dict[str, Any], namespace: Any) -> None:
    pod = osd_pod(answering(small_twin(), {"osd metadata": [{"id": 1}, row]}).commander)
    assert (pod and pod.namespace) == namespace


def test_without_a_way_to_see_the_resource_every_write_to_rooks_cluster_is_refused(tmp_path: Any) -> None:
    twin = answering(small_twin(), {"osd metadata": [POD], "status": {"fsid": "f"}})
    config = UnclaimedConfig(twin.commander, ManualClock(), {"HOME": str(tmp_path)})
    plan = twin.applier().plan("osd", {"osd_max_scrubs": 2})
    with pytest.raises(InputError, match=r"--rook storage/NAME with a kubeconfig, or `--rook none`"):
        config.rehearse(plan.steps)
    config.rehearse(())


@pytest.mark.parametrize("text", ["rook-ceph", "a/b/c", "A/b", "", "a/../b", json.dumps({})])
def test_a_resource_is_named_by_its_namespace_and_name(text: str) -> None:
    with pytest.raises(InputError, match="NAMESPACE/NAME"):
        CustomResource.parse(text, "--rook")


@pytest.mark.parametrize(
    "namespace", ["../../../api/v1/namespaces/x", "a;reboot", "a b", "a\n", "A", "-a", "a" * 64, ".."]
)
def test_a_namespace_that_is_none_becomes_no_part_of_an_address_or_a_command(namespace: str) -> None:
    twin = answering(small_twin(), {"osd metadata": [{**POD, "pod_namespace": namespace}]})
    with pytest.raises(CommandFailed, match="cannot be read"):
        osd_pod(twin.commander)
    with pytest.raises(InputError, match="names as Kubernetes has them"):
        CustomResource(namespace, "any")


def test_a_cluster_whose_resource_cannot_be_reached_is_not_left_open(tmp_path: Any) -> None:
    class Closing:
        closed = 0

        def close(self) -> None:
            self.closed += 1

    commander: Any = Closing()
    cluster = replace(small_twin(), commander=commander)
    for choice in (RookChoice("rook-ceph/rook-ceph"), RookChoice("no name")):
        with pytest.raises(InputError):
            on_rook(cluster, choice, {"HOME": str(tmp_path)})
    assert commander.closed == 2
