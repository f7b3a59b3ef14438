"""When the tuner's options were last changed, by whomever: Ceph's log of its configuration database tells."""

from __future__ import annotations

from typing import Collection, NamedTuple, Optional

from ceph_tuner.core.ceph.commands import parsed, shaped
from ceph_tuner.core.ceph.ports import Commander
from ceph_tuner.core.ceph.target import Place, covered
from ceph_tuner.core.knobs.catalogue import KNOBS
from ceph_tuner.core.measure.pg_documents import stamp_s

ENTRIES = "100"
"""The newest ones that are looked at: a profile's settings are a dozen of them."""


class OptionChange(NamedTuple):
    """The last one."""

    at: float
    option: str


def last_change(commander: Commander, places: Collection[Place]) -> Optional[OptionChange]:
    """When an option in KNOBS was last set or removed in a section that covers any running OSD of `places`.

    None where none was, as far as the log is looked at. `ceph config log` (ConfigMonitor.cc) has the newest first.
    Raises CommandFailed, ClusterTimeout, PermissionRefused.
    """
    command = "config log"
    rows = parsed(commander.mon(command, {"num": ENTRIES}), command)
    with shaped(command):
        for row in rows:
            for change in row["changes"]:
                who, _, option = str(change["name"]).rpartition("/")
                if option in KNOBS and covered(who, places):
                    return OptionChange(stamp_s(str(row["timestamp"])), option)
    return None
