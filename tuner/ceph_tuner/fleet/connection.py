"""Opens a member of the fleet, whichever way it is reached."""

from __future__ import annotations

import os
from typing import List, Sequence, Union

from ceph_tuner.cluster.connection import Cluster, connect, open_cluster
from ceph_tuner.cluster.dashboard import Dashboard
from ceph_tuner.cluster.dashboard_api import DashboardApi
from ceph_tuner.core.ceph.commands import osd_versions
from ceph_tuner.core.ceph.system_clock import SystemClock
from ceph_tuner.core.errors import InputError, PermissionRefused
from ceph_tuner.core.knobs.releases import parse_version, release_of
from ceph_tuner.fleet.contract import ByCeph, ByDashboard, ByLab, ByPrefix, Member
from ceph_tuner.rook.management import on_rook


def open_member(member: Member, timeout: float = 30.0) -> Cluster:
    """Connect to it. Raises InputError, ClusterNotFound, ClusterTimeout, PermissionRefused."""
    if isinstance(member.access, ByDashboard):
        return _by_dashboard(member.name, member.access, timeout)
    return on_rook(_by_commands(member, member.access, timeout), member.rook)


def _by_commands(member: Member, access: Union[ByCeph, ByPrefix, ByLab], timeout: float) -> Cluster:
    if isinstance(access, ByLab):
        return open_cluster(access.lab, timeout)
    if isinstance(access, ByCeph):
        return _by_ceph(member.name, access, timeout)
    return open_cluster(member.name, timeout, access.command)


def as_whom(access: ByCeph, command: Sequence[str]) -> List[str]:
    """The command with what tells Ceph's programs, and our session, whose key to use."""
    arguments = [f"--name={access.name}", *([f"--keyring={access.keyring}"] if access.keyring else [])]
    return ["env", f"CEPH_ARGS={' '.join(arguments)}", *command]


def _by_ceph(name: str, access: ByCeph, timeout: float) -> Cluster:
    for path in filter(None, (access.conf, access.keyring)):
        _check_readable(name, path)
    return connect(name, lambda command: as_whom(access, command), access.conf, timeout)


def _by_dashboard(name: str, access: ByDashboard, timeout: float) -> Cluster:
    if access.ca:
        _check_readable(name, access.ca)
    api = DashboardApi(
        name,
        access.urls,
        access.username,
        access.password.read,
        SystemClock(),
        ca=access.ca,
        verify=access.verify,
        timeout=timeout,
    )
    dashboard = Dashboard(api)
    try:
        version = min(osd_versions(dashboard), key=parse_version)
    except BaseException:
        dashboard.close()
        raise
    return Cluster.of(name, dashboard, release_of(version), version)


def _check_readable(name: str, path: str) -> None:
    if not os.path.isfile(path):
        raise InputError(f"cluster {name}", f"no file {path}", "the file that fleet.yaml names")
    if not os.access(path, os.R_OK):
        raise PermissionRefused(f"cluster {name}", f"an unreadable file {path}", "read permission (run as root?)")
