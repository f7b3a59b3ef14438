"""A cluster as it is described, by a file or by a look at a live one: its model, and what is known beside that."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Collection, Mapping, Optional, Tuple

from ceph_tuner.core.ceph.target import Place, Target, covers
from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.twin.model import ClusterModel

SIMULATED = 24
"""OSDs that stand for all in a cluster of more than SIMULATE_ALL, unless the file says otherwise."""
SIMULATE_ALL = 48

LEAST_CLIENT_IOPS = 1.0
"""Operations per second of all clients below which they are told as doing nothing: no run would see them."""


@dataclass(frozen=True)
class DescribedCluster:
    """A model of the cluster, what is in force there, and what else is known of it."""

    name: str
    model: ClusterModel
    settings: Settings = field(default_factory=dict)
    """What is in force now, where that is not the release's default."""
    description: str = ""
    calibration: Optional[Path] = None
    """The fit whose parameters replace those of the drive and the OSD."""
    stored: Mapping[str, float] = field(default_factory=dict)
    """Bytes that clients stored in each pool, where the file says."""
    notes: Tuple[str, ...] = ()
    """What of it is a guess or assumed, where it was made from a cluster's answers."""
    target: str = "osd"
    """The OSDs that it is of, as settings are written to them."""
    unlikely: Tuple[str, ...] = ()
    """What of it is possible, and most often a mistake."""
    seen: Mapping[str, float] = field(default_factory=dict)
    """Means of a window under this very work and these settings, where one is known; no file has them."""
    sleeps: Settings = field(default_factory=dict)
    """Pauses between pieces of background work that are in force: mClock forces them to 0, wpq keeps them."""

    def for_target(self, target: str, where: str, places: Collection[Place]) -> DescribedCluster:
        """The same for settings that are written to a target, which may be another name for these OSDs.

        `places`: all OSDs of the cluster. Raises InputError where it is of other OSDs: nothing follows for those.
        """
        own, wanted = ({place.osd for place in places if covers(who, place)} for who in (self.target, target))
        if Target.parse(target) == Target.parse(self.target) or (own and own == wanted):
            return replace(self, target=target)
        raise InputError(
            where,
            f"a description of {self.target}, while {target} is written to",
            f"--target {self.target}, or a description with `target: {target}`",
        )
