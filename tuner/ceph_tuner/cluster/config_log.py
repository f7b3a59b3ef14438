"""When the tuner's options were last changed, by whomever: Ceph's log of its configuration database tells."""

from __future__ import annotations

from typing import Collection, List, NamedTuple, Optional

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.core.ceph.commands import parsed, shaped
from ceph_tuner.core.ceph.ports import Commander
from ceph_tuner.core.ceph.target import Place, covered
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed, PermissionRefused
from ceph_tuner.core.knobs.catalogue import KNOBS
from ceph_tuner.core.measure.history import AHEAD_S
from ceph_tuner.core.measure.pg_documents import stamp_s

ENTRIES = "100"
"""The newest ones that are looked at: a profile's settings are a dozen of them."""


class OptionChange(NamedTuple):
    """The last one."""

    at: float
    option: str


def last_change(cluster: Cluster, notes: List[str]) -> Optional[OptionChange]:
    """When an option in KNOBS was last set or removed in a section that covers any running OSD.

    None where none was, as far as the log is looked at, and with a note where the cluster does not tell it.
    """
    try:
        return _newest(cluster.commander, cluster.config.places(), cluster.clock.now())
    except (ClusterTimeout, CommandFailed, PermissionRefused) as fault:
        notes.append(f"whether windows are of the settings in force is not told ({fault})")
        return None


def _newest(commander: Commander, places: Collection[Place], now: float) -> Optional[OptionChange]:
    """`ceph config log` (ConfigMonitor.cc) has the newest first. A clock that was ahead of `now` tells nothing."""
    command = "config log"
    rows = parsed(commander.mon(command, {"num": ENTRIES}), command)
    with shaped(command):
        for row in rows:
            at = stamp_s(str(row["timestamp"]))
            for change in row["changes"]:
                who, _, option = str(change["name"]).rpartition("/")
                if option in KNOBS and at <= now + AHEAD_S and covered(who, places):
                    return OptionChange(at, option)
    return None
