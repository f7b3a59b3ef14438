"""In which knobs clusters differ, by their configuration databases."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Dict, List, Mapping, Sequence, Tuple

from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.ceph.target import Place
from ceph_tuner.core.changes.config_database import Database
from ceph_tuner.core.knobs.catalogue import KNOBS, MCLOCK_NINE, PROFILE
from ceph_tuner.core.knobs.releases import Release, parse_version
from ceph_tuner.fleet.configuration import entries_of
from ceph_tuner.fleet.connection import open_member
from ceph_tuner.fleet.contract import Member

_LEFT_OUT = ("capacity", "sleeps")
NAMES = tuple(name for name, entry in KNOBS.items() if entry.scope == "osd" and entry.work not in _LEFT_OUT)
"""What is compared: no facts of a device, and nothing that mClock forces to 0."""

MIXED, NOWHERE = "differs between its OSDs", "no such option"


@dataclass(frozen=True)
class KnobValues:
    """Of one cluster: knob -> value as Ceph writes it."""

    values: Mapping[str, str]
    certain: bool = True
    """False where masks are hidden."""


@dataclass(frozen=True)
class Difference:
    """One knob, with the clusters that have each value; the value of most clusters first."""

    knob: str
    values: Tuple[Tuple[str, Tuple[str, ...]], ...]


def read_settings(member: Member, timeout: float = 30.0) -> KnobValues:
    """Read what a member's OSDs have. Raises TunerError."""
    with closing(open_member(member, timeout)) as cluster:
        entries, masks_hidden = entries_of(cluster)
        up_places = [place for place in cluster.config.places() if place.up]
        return KnobValues(values_by_knob(entries, up_places, cluster.release, cluster.version), not masks_hidden)


def values_by_knob(
    entries: Sequence[ConfigEntry], places: Sequence[Place], release: Release, version: str
) -> Dict[str, str]:
    """Value of each knob on all running OSDs. A built-in profile decides the nine, whatever stands there."""
    database = Database(entries)
    rows: Dict[str, str] = {}
    for name in NAMES:
        values = {_value(name, database, place, release, version) for place in places}
        if values:
            rows[name] = values.pop() if len(values) == 1 else MIXED
    return rows


def differences(clusters: Mapping[str, KnobValues]) -> List[Difference]:
    """Knobs that are not the same on all of them, in the order in which people read knobs."""
    rows = []
    for name in NAMES:
        groups: Dict[str, List[str]] = {}
        for cluster, settings in clusters.items():
            groups.setdefault(settings.values.get(name, NOWHERE), []).append(cluster)
        if len(groups) > 1:
            pairs = sorted(groups.items(), key=lambda group: -len(group[1]))
            rows.append(Difference(name, tuple((value, tuple(names)) for value, names in pairs)))
    return rows


def _value(name: str, database: Database, place: Place, release: Release, version: str) -> str:
    profile = database.value(PROFILE, place) or release.default_profile
    if name == PROFILE:
        return profile
    if name in MCLOCK_NINE and profile in release.profiles:
        return KNOBS[name].format(release.profiles[profile][name])
    text = database.value(name, place)
    default = KNOBS[name].default(release, parse_version(version))
    if text is None:
        return NOWHERE if default is None else KNOBS[name].format(default)
    return KNOBS[name].format(KNOBS[name].read(text, name))
