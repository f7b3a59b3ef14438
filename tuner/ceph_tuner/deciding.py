"""Which entry of the configuration database decides an option for an OSD, and when two texts are one value."""

from __future__ import annotations

from typing import Iterable, Optional, Tuple

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


def profile_of(entries: Iterable[ConfigEntry], place: Place) -> str:
    """The profile that the database gives an OSD. Which built-in one is the default does not matter here."""
    decides = winner(entries, PROFILE, place)
    return "" if decides is None else decides.value
