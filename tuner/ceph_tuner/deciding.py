"""Which entry of the configuration database decides an option for an OSD, and when two texts are one value."""

from __future__ import annotations

from collections import defaultdict
from typing import DefaultDict, Dict, Iterable, Optional, Tuple

from ceph_tuner.knobs import PROFILE
from ceph_tuner.ports import ConfigEntry
from ceph_tuner.target import Place, section_of


def winner(entries: Iterable[ConfigEntry], name: str, place: Place) -> Optional[ConfigEntry]:
    """The entry that decides an option for an OSD at that place; None where only its default does."""
    best: Optional[ConfigEntry] = None
    rank: Tuple[int, int] = (-1, 0)
    for entry in entries:
        if entry.name == name:
            section = section_of(entry.who)
            if section is not None and section.covers(place) and section.rank >= rank:
                best, rank = entry, section.rank
    return best


class Database:
    """The same for thousands of OSDs, without a look at the entries that are for other OSDs alone."""

    def __init__(self, entries: Iterable[ConfigEntry]) -> None:
        self._own: Dict[Tuple[str, str], ConfigEntry] = {}
        self._shared: DefaultDict[str, Dict[str, ConfigEntry]] = defaultdict(dict)
        for entry in entries:
            self.put(entry)

    def put(self, entry: ConfigEntry) -> None:
        """Set what a section says of an option."""
        if entry.who.startswith("osd.") and "/" not in entry.who:
            self._own[entry.name, entry.who] = entry
        else:
            self._shared[entry.name][entry.who] = entry

    def winner(self, name: str, place: Place) -> Optional[ConfigEntry]:
        """The entry that decides an option for an OSD at that place; None where only its default does."""
        own = self._own.get((name, f"osd.{place.osd}"))
        shared = self._shared[name].values() if name in self._shared else ()
        return winner(shared if own is None else [*shared, own], name, place)

    def value(self, name: str, place: Place) -> Optional[str]:
        """What that entry says."""
        entry = self.winner(name, place)
        return None if entry is None else entry.value

    def profile(self, place: Place) -> str:
        """The profile that it gives an OSD; empty where only the default does, which is a built-in one."""
        return self.value(PROFILE, place) or ""


def same_value(one: str, other: str) -> bool:
    """Whether two texts are one value: Ceph writes `0.5` as `0.500000` here and `0.50000000000000000` there."""
    if one == other:
        return True
    try:
        return abs(float(one) - float(other)) <= 1e-6
    except ValueError:
        return False


def same(one: Optional[str], other: Optional[str]) -> bool:
    """`same_value`, where None stands for no entry."""
    if one is None or other is None:
        return one is other
    return same_value(one, other)
