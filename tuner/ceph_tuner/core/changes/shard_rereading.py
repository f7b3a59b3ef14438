"""How every shard of an OSD is made to read its nine values again. No I/O.

When the entry of the profile changes, shard 0 alone writes a built-in profile's values down, and every shard reads them
(`mClockScheduler.cc`, `set_config_defaults_from_profile` and `handle_conf_change`). The shards are told one after the
other, in the order of their addresses. A shard that is told before shard 0 reads what stood there before, and schedules
by it until it reads again (docs/safe-writes.md).

A change of the stated bandwidth makes every shard read its values again, whatever its profile. So that bandwidth is
raised by one byte a second, and put back when the OSDs have seen it and the profile.
"""

from __future__ import annotations

from typing import Collection, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

from ceph_tuner.core.ceph.target import Place, section_of
from ceph_tuner.core.changes.config_database import Database
from ceph_tuner.core.knobs.catalogue import KNOBS
from ceph_tuner.core.knobs.releases import Release

Key = Tuple[str, str]
"""(section with its mask, option)."""

BANDWIDTHS = ("osd_mclock_max_sequential_bandwidth_hdd", "osd_mclock_max_sequential_bandwidth_ssd")
"""Either makes the shards of any OSD read again; that of the other medium is rarely set, and counts for nothing."""


class Touch(NamedTuple):
    """An entry that is changed for a moment."""

    key: Key
    old: Optional[str]
    new: str


def touches(
    current: Database,
    sections: Iterable[str],
    places: Sequence[Place],
    release: Release,
    avoid: Collection[str] = (),
    pending: Collection[Key] = (),
) -> List[Touch]:
    """Give what to change for a moment, so that every OSD under these sections reads again.

    `avoid`: options that the change sets itself. `pending`: entries that are changed afterwards anyway.
    """
    names = [name for name in BANDWIDTHS if name not in avoid and KNOBS[name].default(release) is not None]
    if not names:
        # up to Quincy 17.2.6 there is no such option
        return []
    osds: Set[int] = {
        place.osd
        for place in places
        for name in BANDWIDTHS
        if (decides := current.winner(name, place)) is not None and (decides.who, name) in pending
    }
    touch_list: List[Touch] = []
    for who in sorted(set(sections), key=_width):
        section = section_of(who)
        if section is None:
            continue
        under = [place for place in places if section.covers(place) and place.osd not in osds]
        if under:
            at_once = next((touch for name in names if (touch := _at(current, who, name, under, release))), None)
            # where finer entries outrank the section, each OSD has a touch of its own
            touch_list += (
                [at_once] if at_once else [_touch(current, f"osd.{at.osd}", names[0], at, release) for at in under]
            )
            osds.update(place.osd for place in under)
    return touch_list


def _at(current: Database, who: str, name: str, under: Sequence[Place], release: Release) -> Optional[Touch]:
    """One touch for all of them; None where a finer entry keeps some from it, or they differ."""
    section = section_of(who)
    for place in under:
        decides = current.winner(name, place)
        finer = section_of(decides.who) if decides is not None and decides.who != who else None
        if section is not None and finer is not None and finer.rank >= section.rank:
            return None
    if len({current.value(name, place) for place in under}) > 1:
        return None
    return _touch(current, who, name, under[0], release)


def _touch(current: Database, who: str, name: str, place: Place, release: Release) -> Touch:
    decides = current.winner(name, place)
    stands = KNOBS[name].default(release) if decides is None else KNOBS[name].read(decides.value)
    own = decides.value if decides is not None and decides.who == who else None
    return Touch((who, name), own, KNOBS[name].format(int(stands or 0) + 1))


def _width(who: str) -> Tuple[Tuple[int, int], str]:
    """The widest first."""
    section = section_of(who)
    return section.rank if section is not None else (-1, 0), who
