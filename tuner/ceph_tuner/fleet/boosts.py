"""The boost of a member of the fleet: asked for, begun and ended by its own plugin."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Dict, Mapping

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.boost.state import OFF
from ceph_tuner.fleet.connection import open_member
from ceph_tuner.fleet.contract import Member
from ceph_tuner.fleet.plugin_of_member import member_plugin_answer

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


def begin(member: Member, kind: str, arguments: Mapping[str, str], within_s: float) -> MemberBoost:
    """Begin one, unless one of that kind is on: so the same request goes on where some members lacked it.

    Raises Declined where its plugin does not; TunerError where the member cannot be asked.
    """
    with closing(open_member(member, within_s)) as cluster:
        before = _said(cluster, STATUS, {})
        if before.kind == kind:
            return before
        return replace(_said(cluster, f"tuner boost {kind}", arguments), begun=True)


def cancel(member: Member, why: str, within_s: float) -> MemberBoost:
    """End it, if one is on. Raises Declined; TunerError where the member cannot be asked."""
    with closing(open_member(member, within_s)) as cluster:
        before = _said(cluster, STATUS, {})
        if before.document.get("phase", OFF) == OFF:
            return before
        return _said(cluster, "tuner boost cancel", {"why": why} if why else {})


def _said(cluster: Cluster, command: str, arguments: Mapping[str, str]) -> MemberBoost:
    document: Dict[str, Any] = member_plugin_answer(cluster, command, arguments)
    return MemberBoost(document)
