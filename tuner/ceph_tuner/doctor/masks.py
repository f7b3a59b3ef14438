"""Capacities under a mask, beside which OSDs have others of their own: one of the two does nothing."""

from __future__ import annotations

from collections import defaultdict
from typing import DefaultDict, Dict, List, NamedTuple, Set

from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.ceph.target import section_of
from ceph_tuner.core.changes.config_database import Database
from ceph_tuner.core.changes.step import Step
from ceph_tuner.core.knobs.settings import same_value
from ceph_tuner.core.wording import named, some
from ceph_tuner.doctor.facts import Facts
from ceph_tuner.doctor.finding import MISLEADING, Finding

_CAPACITIES = ("osd_mclock_max_capacity_iops_", "osd_mclock_max_sequential_bandwidth_")
"""What an option begins with; it ends with the kind of its OSDs."""


class _Reach(NamedTuple):
    """OSDs under a mask."""

    own: List[int]
    """They go by another value of their own."""
    against: List[int]
    """They have another value of their own, and go by the mask's."""
    obeying: List[int]
    """They go by the mask's."""


def capacity_masks(facts: Facts) -> List[Finding]:
    """Entries for capacities under a mask that are dead for OSDs with values of their own, or outrank these."""
    masks = [entry for entry in facts.entries if entry.name.startswith(_CAPACITIES) and _has_mask(entry)]
    if not masks:
        return []
    database = Database(facts.entries)
    own: Dict[str, Dict[int, ConfigEntry]] = _own_entries(facts)
    evidence: List[str] = []
    osd_ids: Set[int] = set()
    dead: List[ConfigEntry] = []
    for mask in masks:
        reach = _reach(facts, database, mask, own.get(mask.name, {}))
        values = {osd: own[mask.name][osd].value for osd in (*reach.own, *reach.against)}
        if not values:
            continue
        osd_ids.update(values)
        if not reach.obeying:
            dead.append(mask)
        for osds, words in (
            (reach.own, "is dead for"),
            (reach.against, "outranks their own values at"),
        ):
            if osds:
                several = "" if len({values[osd] for osd in osds}) == 1 else " and others"
                evidence.append(
                    f"{mask.who} {mask.name} {mask.value} {words} {named(osds)} (osd.{osds[0]} has "
                    f"{values[osds[0]]}{several})"
                )
    if not evidence:
        return []
    up_count = len([place for place in facts.places if place.up])
    return [
        Finding(
            "capacity-mask",
            MISLEADING,
            "Capacities are set under a mask and at single OSDs, and differ",
            some(evidence),
            f"{named(osd_ids)}: reservations and limits are shares of one of two values, and whoever reads the other "
            "is misled",
            "Keep the value that was measured. Remove the mask where the OSDs' own values are right, and their own "
            "where the mask is. A mask that no OSD goes by can go at once.",
            share=min(len(osd_ids) / up_count, 1.0) if up_count else None,
            commands=tuple(Step(mask.who, mask.name, mask.value, None).command for mask in dead),
        )
    ]


def _has_mask(entry: ConfigEntry) -> bool:
    section = section_of(entry.who)
    return section is not None and section.masked and section.osd is None


def _own_entries(facts: Facts) -> Dict[str, Dict[int, ConfigEntry]]:
    """Option -> OSD -> what its own section says of it."""
    own: DefaultDict[str, Dict[int, ConfigEntry]] = defaultdict(dict)
    for entry in facts.entries:
        section = section_of(entry.who)
        if section is not None and section.osd is not None and entry.name.startswith(_CAPACITIES):
            own[entry.name][section.osd] = entry
    return own


def _reach(facts: Facts, database: Database, mask: ConfigEntry, own: Dict[int, ConfigEntry]) -> _Reach:
    section = section_of(mask.who)
    reach = _Reach([], [], [])
    for osd in facts.osds:
        number = osd.place.osd
        if section is None or not section.covers(osd.place) or not mask.name.endswith(f"_{osd.kind}"):
            continue
        decides = database.winner(mask.name, osd.place)
        other = number in own and not same_value(own[number].value, mask.value)
        if decides is not None and decides.who == mask.who:
            reach.obeying.append(number)
            if other:
                reach.against.append(number)
        elif other and decides == own[number]:
            reach.own.append(number)
    return reach
