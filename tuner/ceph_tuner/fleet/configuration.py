"""What a cluster's configuration database says of its OSDs, by whichever way it is reached. Changes nothing there."""

from __future__ import annotations

from collections import Counter
from typing import List, Mapping, Sequence, Tuple

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.cluster.dashboard import Dashboard
from ceph_tuner.core.autopilot.capacity import DEFAULTS, Stored
from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.ceph.target import Place
from ceph_tuner.core.changes.config_database import Database
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.catalogue import PROFILE
from ceph_tuner.core.knobs.releases import Release

QUEUE, MCLOCK = "osd_op_queue", "mclock_scheduler"


def entries_of(cluster: Cluster) -> Tuple[List[ConfigEntry], bool]:
    """The configuration database, and whether it came without its masks."""
    if isinstance(cluster.commander, Dashboard):
        return [ConfigEntry(*row) for row in cluster.commander.stated()], True
    return cluster.config.dump(), False


def profile_words(entries: Sequence[ConfigEntry], places: Sequence[Place], release: Release) -> str:
    """The profile by the configuration database, with how many OSDs have which where they differ."""
    database = Database(entries)
    counts: Counter[str] = Counter()
    for place in places:
        kind = database.value(QUEUE, place) or release.default_queue
        counts[kind if kind != MCLOCK else database.value(PROFILE, place) or release.default_profile] += 1
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{profile} {count}" for profile, count in counts.most_common())


def stored_capacities(
    entries: Sequence[ConfigEntry], places: Sequence[Place], kinds: Mapping[int, str]
) -> List[Stored]:
    """Capacity of each OSD by the configuration database; what a ceph.conf of its own says is not seen.

    `kinds`: of the OSDs' drives (`in_force.kinds_of`).
    """
    database, capacities = Database(entries), []
    for place in places:
        kind = kinds[place.osd]
        entry = database.winner(f"osd_mclock_max_capacity_iops_{kind}", place)
        iops = DEFAULTS[kind] if entry is None else _iops(entry)
        source = "default" if entry is None else entry.who
        # mClock itself never takes less than 1
        capacities.append(Stored(place.osd, kind, max(1.0, iops), source, place.device_class))
    return capacities


def _iops(entry: ConfigEntry) -> float:
    try:
        return float(entry.value)
    except ValueError:
        raise InputError(f"{entry.who} {entry.name}", repr(entry.value[:60]), "a number") from None
