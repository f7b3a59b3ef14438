"""What a section of the configuration database covers, and which of two sections wins.

Ceph's rule (`ConfigMap::generate_entity_map`): a later section beats an earlier one (`global`, `osd`, `osd.N`), but for
one case (`deciding.Database.winner`). Within a section the most precise mask wins: a CRUSH location by its level (host
before rack before root), then a device class, then no mask. A location with a class ties with the plain location: the
later one in the monitors' order wins, and the check of the effect decides.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Collection, Dict, Iterable, List, Mapping, Optional, Tuple

from ceph_tuner.core.errors import InputError

LOCATION_TYPES = ("host", "chassis", "rack", "row", "pdu", "pod", "room", "datacenter", "zone", "region", "root")
"""The CRUSH bucket types of a default map, most precise first."""

_EXPECTED = "`osd`, `osd.N`, `osd/class:CLASS`, `osd/host:HOST` or `osd/rack:RACK`"
_NAME = re.compile(r"[A-Za-z0-9_.~-]+\Z")


@dataclass(frozen=True)
class Place:
    """Where one OSD is: what masks are matched against."""

    osd: int
    device_class: str = ""
    locations: Mapping[str, str] = field(default_factory=dict)
    up: bool = True


@dataclass(frozen=True)
class Target:
    """A section with its mask, as `ceph config set` takes it."""

    section: str
    location_type: str = ""
    location: str = ""
    device_class: str = ""

    @classmethod
    def parse(cls, text: str, place: str = "target") -> Target:
        """A target that the tuner may write to. Raises InputError."""
        target = section_of(text)
        if target is None or target.section == "global" or ("." in target.section and target.masked):
            raise InputError(place, f"`{text}`", _EXPECTED)
        if target.location_type and target.device_class:
            # Ceph takes it, but it ties with the plain location and the winner depends on the order of the keys
            raise InputError(place, f"`{text}`", f"one mask only: {_EXPECTED}")
        return target

    def __str__(self) -> str:
        parts = [self.section]
        if self.location_type:
            parts.append(f"{self.location_type}:{self.location}")
        if self.device_class:
            parts.append(f"class:{self.device_class}")
        return "/".join(parts)

    @property
    def masked(self) -> bool:
        """Whether a mask narrows the section."""
        return bool(self.location_type or self.device_class)

    @property
    def osd(self) -> Optional[int]:
        """Id of the one OSD whose section it is; None for `global` and `osd`."""
        return int(self.section[len("osd.") :]) if "." in self.section else None

    @property
    def rank(self) -> Tuple[int, int]:
        """The higher one wins where two sections cover the same OSD."""
        return {"global": 0, "osd": 1}.get(self.section, 2), self.precision

    @property
    def precision(self) -> int:
        """The higher one wins where two masks of a section cover the same OSD."""
        if self.location_type in LOCATION_TYPES:
            return -LOCATION_TYPES.index(self.location_type)
        return -len(LOCATION_TYPES) - (0 if self.device_class else 1)

    def covers(self, place: Place) -> bool:
        """Whether an OSD at that place takes its values from this section."""
        if self.section not in ("global", "osd", f"osd.{place.osd}"):
            return False
        if self.device_class and self.device_class != place.device_class:
            return False
        return not self.location_type or place.locations.get(self.location_type) == self.location


@lru_cache(maxsize=4096)
def section_of(who: str) -> Optional[Target]:
    """The section of a row of `ceph config dump`; None where it concerns no OSD (`mon`, `mgr`, `client.x`)."""
    section, *masks = who.split("/")
    if section not in ("global", "osd") and not re.match(r"osd\.[0-9]+\Z", section):
        return None
    location_type = location = device_class = ""
    for mask in masks:
        kind, colon, name = mask.partition(":")
        if not colon or not _NAME.match(name) or not _NAME.match(kind):
            return None
        if kind == "class" and not device_class:
            device_class = name
        elif kind != "class" and not location_type:
            location_type, location = kind, name
        else:
            return None
    return Target(section, location_type, location, device_class)


def covers(who: str, place: Place) -> bool:
    """Whether an OSD at that place takes values from this section of the database."""
    target = section_of(who)
    return target is not None and target.covers(place)


def covered(who: str, places: Iterable[Place]) -> List[int]:
    """Sorted ids of the running OSDs that a section covers."""
    return sorted(place.osd for place in places if place.up and covers(who, place))


def classes_of(places: Iterable[Place]) -> Dict[str, int]:
    """Device class -> number of OSDs; of those without one, it is empty."""
    return dict(sorted(Counter(place.device_class for place in places).items()))


def reach(places: Collection[Place]) -> str:
    """`3 OSDs`, or `940 OSDs of 2 classes (600 hdd, 340 ssd)`."""
    count, classes = f"{len(places)} OSD{'s' if len(places) != 1 else ''}", classes_of(places)
    if len(classes) < 2:
        return count
    parts = ", ".join(f"{number} {name or 'without one'}" for name, number in classes.items())
    return f"{count} of {len(classes)} classes ({parts})"


def running(target: str, places: Iterable[Place]) -> List[Place]:
    """Give where the running OSDs are that a target covers, by their ids. Raises InputError where it covers none."""
    by_osd = {place.osd: place for place in places}
    osds = covered(target, by_osd.values())
    if not osds:
        raise InputError("target", f"{target!r}, which covers no running OSD", f"one that covers some: {_EXPECTED}")
    return [by_osd[osd] for osd in osds]
