"""A lab's configuration, to show that nothing in it is changed, and to bring it back; what an OSD goes by."""

from __future__ import annotations

from typing import Dict, Iterable, List, Tuple

from ceph_lab.cluster import Lab
from ceph_tuner.core.ceph.ports import ConfigDatabase, ConfigEntry
from ceph_tuner.core.knobs.catalogue import PROFILE

Dump = Tuple[str, str]


def config_dump(lab: Lab) -> Dump:
    """Byte for byte, plain and in JSON. Two `ceph` would take seven times the processor's time."""
    plain, document = lab.mon_commands([{"prefix": "config dump"}, {"prefix": "config dump", "format": "json"}])
    return plain, document


def osd_config(lab: Lab, osd: int) -> Dict[str, str]:
    """What an OSD goes by, of the OSD itself: what the mgr tells of it is some seconds old."""
    found: Dict[str, str] = lab.json(["ceph", "tell", f"osd.{osd}", "config", "show"])
    return found


def osd_entries(config: ConfigDatabase) -> List[ConfigEntry]:
    """Those for OSDs: a mgr writes some of its own."""
    return [entry for entry in config.dump() if entry.who.startswith("osd")]


def bring_back(config: ConfigDatabase, before: Iterable[ConfigEntry]) -> None:
    """Make the configuration database hold these entries and no other.

    The profile is removed last. Removed first, it leaves the schedulers of all OSDs with the values of `custom`, which
    no command shows (docs/upstream/undo-order.md): a limit on recovery then holds in whichever test comes next.
    """
    known, present = set(before), set(config.dump())
    for entry in sorted(present - known, key=lambda entry: entry.name == PROFILE):
        config.remove(entry.who, entry.name)
    for entry in sorted(known - present, key=lambda entry: entry.name == PROFILE):
        config.set(entry.who, entry.name, entry.value)
