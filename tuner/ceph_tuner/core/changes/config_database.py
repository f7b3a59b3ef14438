"""Which entry of the configuration database decides an option for an OSD."""

from __future__ import annotations

from collections import defaultdict
from typing import DefaultDict, Dict, Iterable, List, Mapping, Optional, Set, Tuple

from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.ceph.target import Place, Target, section_of
from ceph_tuner.core.knobs.catalogue import PROFILE

Options = Dict[str, Dict[Target, ConfigEntry]]
"""Of one section: option -> what it says there under each mask, in the monitors' order."""


def winner(entries: Iterable[ConfigEntry], name: str, place: Place) -> Optional[ConfigEntry]:
    """The entry that decides an option for an OSD at that place; None where only its default does.

    `entries` are all of the database, in the order of `config dump`: see `Database.winner`.
    """
    return Database(entries).winner(name, place)


class Database:
    """All entries, ready to be asked for thousands of OSDs."""

    def __init__(self, entries: Iterable[ConfigEntry]) -> None:
        """In the order of `config dump`; of other options as well, as they take part (`winner`)."""
        self._shared: Tuple[Options, Options] = ({}, {})
        """Those of `global`, and of `osd`."""
        self._own: DefaultDict[int, Options] = defaultdict(dict)
        for entry in entries:
            self.put(entry)

    def put(self, entry: ConfigEntry) -> None:
        """Set what a section says of an option."""
        section = section_of(entry.who)
        if section is not None:
            self._options(section).setdefault(entry.name, {})[section] = entry

    def write(self, who: str, name: str, value: Optional[str]) -> None:
        """Set or remove (None) what a section says of an option, and keep the monitors' order."""
        section = section_of(who)
        if section is None:
            return
        options = self._options(section)
        entries = options.pop(name, {})
        entries.pop(section, None)
        if value is not None:
            entries[section] = ConfigEntry(who, name, value)
        if entries:
            options[name] = dict(sorted(entries.items(), key=lambda item: item[1].who))

    def states(self, who: str, name: str) -> bool:
        """Whether a section says anything of an option."""
        section = section_of(who)
        return section is not None and section in self._options(section).get(name, {})

    def _options(self, section: Target) -> Options:
        return self._shared[section.section == "osd"] if section.osd is None else self._own[section.osd]

    def winner(self, name: str, place: Place) -> Optional[ConfigEntry]:
        """The entry that decides an option for an OSD at that place; None where only its default does.

        As `ConfigMap::generate_entity_map` does it: a later section beats an earlier one, and the more precise mask
        wins within a section. What is more precise stays also where the next section begins with the same option: the
        monitors forget what they held last only when they come to another option. So `osd/host:h0` beats `osd.3`
        where nothing in `osd` comes after that option by its name, and nothing in `osd.3` before it.
        """
        best: Optional[Tuple[Target, ConfigEntry]] = None
        before: Optional[Options] = None
        """The nearest section before that has anything for this OSD."""
        for options in (*self._shared, self._own.get(place.osd, {})):
            sticky = best is not None and before is not None and best[0].masked and name in options
            if sticky and (_last(before or {}, place) != name or _first(options, place) != name):
                sticky = False
            previous = best[0] if sticky and best is not None else None
            for section, entry in options.get(name, {}).items():
                if section.covers(place) and (previous is None or section.precision >= previous.precision):
                    best, previous = (section, entry), section
            if any(_covers(sections, place) for sections in options.values()):
                before = options
        return None if best is None else best[1]

    def contested(self, place: Place) -> List[str]:
        """Give the options that a mask states for an OSD and a later section as well: which wins depends on others."""
        earlier: Set[str] = set()
        names: List[str] = []
        for options in (*self._shared, self._own.get(place.osd, {})):
            names_here = {name for name, under in options.items() if _covers(under, place)}
            names += sorted(earlier & names_here)
            earlier |= {
                name
                for name in names_here
                if any(section.masked and section.covers(place) for section in options[name])
            }
        return names

    def value(self, name: str, place: Place) -> Optional[str]:
        """What that entry says."""
        entry = self.winner(name, place)
        return None if entry is None else entry.value

    def profile(self, place: Place) -> str:
        """The profile that it gives an OSD; empty where only the default does, which is a built-in one."""
        return self.value(PROFILE, place) or ""


def _covers(sections: Mapping[Target, ConfigEntry], place: Place) -> bool:
    return any(section.covers(place) for section in sections)


def _last(options: Options, place: Place) -> str:
    """The last option by name that a section has for an OSD; empty for none."""
    return max((name for name, sections in options.items() if _covers(sections, place)), default="")


def _first(options: Options, place: Place) -> str:
    return min((name for name, sections in options.items() if _covers(sections, place)), default="")
