"""Whether Rook manages a cluster, and its configuration database where it does."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Mapping, Optional, Sequence, Tuple

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.ceph.commands import CommandConfig, parsed, shaped
from ceph_tuner.core.ceph.pods import Pod, rook_pod
from ceph_tuner.core.ceph.ports import Clock, Commander
from ceph_tuner.core.changes.custom_resource import CustomResource
from ceph_tuner.core.changes.step import Step
from ceph_tuner.core.errors import ClusterNotFound, CommandFailed, InputError, TunerError
from ceph_tuner.rook.ceph_config import CephConfig, ceph_config
from ceph_tuner.rook.configuration import RookConfig
from ceph_tuner.rook.kubeconfig import ApiAccess, api_access

if TYPE_CHECKING:
    from ceph_tuner.rook.ceph_cluster_api import CephClusterApi

NONE = "none"
"""In the place of a resource: whoever says it has seen that `cephConfig` names nothing that is written."""

_ANY = "any"
"""In the place of a name, where all of a namespace are asked for."""


@dataclass(frozen=True)
class RookChoice:
    """What an operator says of a cluster's CephCluster."""

    text: str = ""
    """NAMESPACE/NAME, `none`, or nothing."""
    kubeconfig: str = ""
    context: str = ""
    place: str = "--rook"


def on_rook(cluster: Cluster, choice: RookChoice, environment: Mapping[str, str] = os.environ) -> Cluster:
    """The same cluster, written to as Rook leaves it. Raises InputError, and closes it then."""
    if choice.text == NONE:
        return cluster
    if not choice.text:
        return replace(cluster, config=UnclaimedConfig(cluster.commander, cluster.clock, environment))
    try:
        resource = CustomResource.parse(choice.text, choice.place)
        access = api_access(environment, choice.kubeconfig, choice.context)
    except BaseException:
        cluster.close()
        raise
    api = _api(resource, access, cluster.clock)
    return replace(cluster, config=RookConfig(cluster.commander, api, cluster.clock))


def _api(resource: CustomResource, access: ApiAccess, clock: Clock) -> CephClusterApi:
    # nearly every command begins here: only one on Rook waits for the HTTP library
    from ceph_tuner.rook.ceph_cluster_api import CephClusterApi

    return CephClusterApi(resource, access, clock)


def osd_pod(commander: Commander) -> Optional[Pod]:
    """A pod of Rook's that an OSD of this cluster runs in; None where none does."""
    try:
        answer = commander.mon("osd metadata", {})
    except CommandFailed:
        # a simulation has no daemons
        return None
    with shaped("osd metadata"):
        return rook_pod(parsed(answer, "osd metadata"))


def cluster_of(api: CephClusterApi, fsid: str) -> Tuple[CustomResource, CephConfig]:
    """The CephCluster of a namespace whose Ceph cluster that is, and what it states. Raises TunerError."""
    for document in api.all():
        now = ceph_config(document)
        if now.fsid == fsid:
            return CustomResource(api.resource.namespace, str(document["metadata"]["name"])), now
    raise ClusterNotFound(f"namespace {api.resource.namespace}", "no CephCluster of this cluster", "its own")


class UnclaimedConfig(CommandConfig):
    """`resource_steps.BesideOperator`: nobody said which CephCluster is this cluster's, if any."""

    def __init__(self, commander: Commander, clock: Clock, environment: Mapping[str, str] = os.environ) -> None:
        super().__init__(commander)
        self._clock, self._environment = clock, environment

    def rehearse(self, steps: Sequence[Step]) -> None:
        """Refuse what Rook would set again, and everything where that cannot be seen. Raises InputError."""
        pod = osd_pod(self._commander)
        if pod is None or not steps:
            return
        fsid = str(parsed(self._commander.mon("status", {}), "status")["fsid"])
        try:
            access = api_access(self._environment)
            resource, now = cluster_of(_api(CustomResource(pod.namespace, _ANY), access, self._clock), fsid)
        except TunerError as fault:
            raise InputError(
                f"Rook, which has OSDs in the namespace {pod.namespace}",
                f"nothing that shows what its CephCluster sets again ({fault})",
                f"--rook {pod.namespace}/NAME with a kubeconfig, or `--rook {NONE}` where `cephConfig` is seen to "
                "name none of these options",
            ) from None
        for step in steps:
            if (step.who, step.name) in {*now.values, *now.secrets}:
                raise InputError(
                    f"CephCluster {resource}",
                    f"{step.name} of `{step.who}` in its `cephConfig`, which Rook sets again",
                    f"--rook {resource}, which writes it there",
                )
