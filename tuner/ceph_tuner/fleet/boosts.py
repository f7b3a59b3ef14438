"""The boost of a member of the fleet: asked for, begun and ended by its own plugin."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, AbstractSet, Any, Dict, Mapping, Tuple

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.boost.offer import FORETELL
from ceph_tuner.core.boost.state import OFF
from ceph_tuner.fleet.connection import open_member
from ceph_tuner.fleet.contract import Member
from ceph_tuner.fleet.plugin_of_member import member_plugin_answer

if TYPE_CHECKING:
    from ceph_tuner.twin.described_cluster import DescribedCluster

STATUS = "tuner boost status"


@dataclass(frozen=True)
class MemberBoost:
    """What the plugin said of it."""

    document: Mapping[str, Any]
    """As `ceph tuner boost status` gives it."""
    begun: bool = False
    """By this request; False also where a boost of that kind was on before."""

    @property
    def kind(self) -> str:
        """Of the work that is boosted; empty where none is."""
        request = self.document.get("request") or {}
        return str(request.get("kind", "")) if self.document.get("phase", OFF) != OFF else ""


def status(member: Member, within_s: float) -> MemberBoost:
    """Ask for it. Raises Declined; TunerError where the member cannot be asked."""
    with closing(open_member(member, within_s)) as cluster:
        return _said(cluster, STATUS, {})


def foretold(member: Member, kind: str, arguments: Mapping[str, str], within_s: float) -> Mapping[str, Any]:
    """What one would do, as `ceph tuner boost foretell` gives it; nothing is written. Raises as `begin`."""
    with closing(open_member(member, within_s)) as cluster:
        document: Dict[str, Any] = member_plugin_answer(cluster, FORETELL, {"kind": kind, **arguments})
        return document


def described(member: Member, target: str, also: AbstractSet[str], within_s: float) -> Tuple[DescribedCluster, float]:
    """The member as its twin is told of it for a boost now, and when that was. Raises TunerError.

    Not by the file that fleet.yaml names, nor by its busiest hour: what is left, and what clients do, is that of now.
    """
    # imports that no other request waits for
    from ceph_tuner.describe.live_cluster import SAMPLE_S, describe

    with closing(open_member(member, within_s)) as cluster:
        return describe(cluster, target, also, min(SAMPLE_S, within_s / 3)), cluster.clock.now()


def begin(member: Member, kind: str, arguments: Mapping[str, str], within_s: float, offer: str = "") -> MemberBoost:
    """Begin one, unless one of that kind is on: so the same request goes on where some members lacked it.

    `offer`: the twin's, as the plugin takes it.
    Raises Declined where its plugin does not; TunerError where the member cannot be asked.
    """
    with closing(open_member(member, within_s)) as cluster:
        before = _said(cluster, STATUS, {})
        if before.kind == kind:
            return before
        return replace(_said(cluster, f"tuner boost {kind}", arguments, offer), begun=True)


def cancel(member: Member, why: str, within_s: float) -> MemberBoost:
    """End it, if one is on. Raises Declined; TunerError where the member cannot be asked."""
    with closing(open_member(member, within_s)) as cluster:
        before = _said(cluster, STATUS, {})
        if before.document.get("phase", OFF) == OFF:
            return before
        return _said(cluster, "tuner boost cancel", {"why": why} if why else {})


def _said(cluster: Cluster, command: str, arguments: Mapping[str, str], payload: str = "") -> MemberBoost:
    document: Dict[str, Any] = member_plugin_answer(cluster, command, arguments, payload)
    return MemberBoost(document)
