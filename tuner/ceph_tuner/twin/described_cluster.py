"""A cluster as it is described, by a file or by a look at a live one: its model, and what is known beside that."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Mapping, Optional, Tuple

from ceph_tuner.core.ceph.target import Target
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

    def check_target(self, target: str, place: str) -> None:
        """Raise InputError where settings are to be written to other OSDs than these: nothing follows for those."""
        if Target.parse(target) != Target.parse(self.target):
            raise InputError(
                place,
                f"a description of {self.target}, while {target} is written to",
                f"--target {self.target}, or a description with `target: {target}`",
            )
