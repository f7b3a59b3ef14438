"""A configuration database that is asked once for each of thousands of OSDs."""

from __future__ import annotations

from collections import defaultdict
from typing import DefaultDict, Dict, Iterable, List, Optional, Tuple

from ceph_tuner.deciding import winner
from ceph_tuner.ports import ConfigEntry
from ceph_tuner.target import Place


class Database:
    """Which entry decides for an OSD, without a look at the entries that are for other OSDs alone."""

    def __init__(self, entries: Iterable[ConfigEntry]) -> None:
        self._own: Dict[Tuple[str, str], ConfigEntry] = {}
        self._shared: DefaultDict[str, List[ConfigEntry]] = defaultdict(list)
        for entry in entries:
            if entry.who.startswith("osd.") and "/" not in entry.who:
                self._own[entry.name, entry.who] = entry
            else:
                self._shared[entry.name].append(entry)

    def winner(self, name: str, place: Place) -> Optional[ConfigEntry]:
        """The entry that decides an option for an OSD at that place; None where only its default does."""
        own = self._own.get((name, f"osd.{place.osd}"))
        candidates = self._shared.get(name, [])
        return winner(candidates if own is None else [*candidates, own], name, place)

    def value(self, name: str, place: Place) -> Optional[str]:
        """What that entry says."""
        entry = self.winner(name, place)
        return None if entry is None else entry.value
