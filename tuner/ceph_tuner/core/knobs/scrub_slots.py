"""Which OSDs begin no scrub more, as they run as many as `osd_max_scrubs` permits."""

from __future__ import annotations

from typing import Collection, Dict, FrozenSet, Mapping, NamedTuple, Sequence, Tuple

SCRUBS_DEFAULT = 3
COUNTED_APART = 20
"""Tentacle lets the scrubs that an OSD leads and those of its copies each reach `osd_max_scrubs`; before, their sum."""

RECOVERING = frozenset(("recovering", "backfilling"))
"""States of a PG on whose OSDs no scrub begins while osd_scrub_during_recovery is false."""


class ScrubSlots(NamedTuple):
    """What counts against `osd_max_scrubs` of each OSD, and who has none left."""

    loads: Mapping[int, Tuple[int, int]]
    """OSD -> scrubs of PGs that it leads, and of PGs that it has a copy of."""
    as_primary: FrozenSet[int]
    as_replica: FrozenSet[int]

    def hold(self, acting: Sequence[int]) -> FrozenSet[int]:
        """OSDs of a PG that keep its scrub from beginning."""
        return self.as_primary & set(acting[:1]) | self.as_replica & set(acting[1:])


def scrub_slots_of(most: Mapping[int, int], apart: Collection[int], under_way: Sequence[Tuple[int, ...]]) -> ScrubSlots:
    """Of OSDs with so many slots; `apart` are those that count both sides apart, `under_way` the PGs' acting OSDs."""
    loads: Dict[int, Tuple[int, int]] = {}
    for osd in most:
        leads = sum(osd in acting[:1] for acting in under_way)
        has = sum(osd in acting[1:] for acting in under_way)
        loads[osd] = (leads, has) if osd in apart else (leads + has, leads + has)
    as_primary, as_replica = (frozenset(osd for osd in most if loads[osd][side] >= most[osd]) for side in (0, 1))
    return ScrubSlots(loads, as_primary, as_replica)


def forbidding_flag(deep_late: bool) -> str:
    """The flag that keeps the scrub which a late PG waits for from beginning."""
    return "nodeep-scrub" if deep_late else "noscrub"
