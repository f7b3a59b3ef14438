"""Where a copy of a PG may go: what its CRUSH rule, the failure domains and the OSDs' room leave.

The monitors check each pg_upmap_items entry against the rule (`OSDMap::check_pg_upmaps`) and drop what breaks it. So a
target that is chosen here keeps: the rule's root and device class, the same bucket at every level but the last that the
rule chooses, and at the last level a bucket that no other copy of the PG is in.
"""

from __future__ import annotations

from heapq import heapify, heappop
from typing import AbstractSet, Dict, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.errors import InputError
from ceph_tuner.moves import NONE, CrushRule, MapView, MoveOsd, MovePg, Pairs

MARGIN = 0.02
"""Below the backfillfull ratio, as a share of the OSD."""


def legal(rule: CrushRule, others: Sequence[MoveOsd], source: MoveOsd, target: MoveOsd) -> bool:
    """Whether a PG's copy may go from an OSD to another, `others` having the rest of the PG."""
    if target.number == source.number or any(target.number == other.number for other in others):
        return False
    if not _same_takes(rule, source, target):
        return False
    *outer, last = rule.levels or ("osd",)
    if any(source.places.get(level) != target.places.get(level) for level in outer):
        return False
    domain = target.places.get(last)
    return domain is not None and all(domain != other.places.get(last) for other in others)


def _same_takes(rule: CrushRule, source: MoveOsd, target: MoveOsd) -> bool:
    targets = _takes_of(rule, target)
    if len(rule.takes) == 1:
        # the copy that leaves may be where an older rule has put it
        return any(targets)
    # which take a copy is from, the PG does not tell: an OSD that all takes see as they see its own is safe
    alike = target.device_class == source.device_class and targets == _takes_of(rule, source)
    return rule.alike and alike and any(targets)


def _takes_of(rule: CrushRule, osd: MoveOsd) -> List[bool]:
    """Which takes of a rule reach an OSD."""
    return [root in osd.places.values() and device_class in ("", osd.device_class) for root, device_class in rule.takes]


def best_target(
    view: MapView, pg: MovePg, source_osd: int, excluded_osds: AbstractSet[int], bytes_to_come: Mapping[int, float]
) -> Optional[int]:
    """The emptiest OSD that a PG's copy may go to from one that it leaves; None where no OSD may have it.

    One with too many PGs is the last choice, and one that would leave a PG inactive is none.
    `excluded_osds`: OSDs that are to have nothing; `bytes_to_come`: bytes that are on their way to OSDs.
    """
    rule = view.rules.get(view.pools[pg.pool].rule)
    source = view.osds.get(source_osd)
    if rule is None or source is None or pg.pgid in view.whole_upmaps:
        return None
    others = [view.osds[osd] for osd in {*pg.up, *pg.acting} - {source_osd, NONE} if osd in view.osds]
    candidates: List[Tuple[bool, float, float, int]] = []
    for osd in view.osds.values():
        if not osd.alive or osd.weight <= 0 or osd.number in excluded_osds or osd.size_bytes <= 0:
            continue
        bytes_after = osd.used_bytes + bytes_to_come.get(osd.number, 0.0) + pg.copy_bytes
        if bytes_after > (view.backfillfull_ratio - MARGIN) * osd.size_bytes or osd.pgs + 1 > view.hard_most_pgs:
            continue
        fill = round(bytes_after / osd.size_bytes, 2)
        candidates.append((osd.pgs + 1 > view.most_pgs, fill, osd.pgs / osd.weight, osd.number))
    # the rule is the dear part: of 10 000 OSDs the first few are held against it
    heapify(candidates)
    while candidates:
        number = heappop(candidates)[3]
        if legal(rule, others, source, view.osds[number]):
            return number
    return None


def redirected(pairs: Pairs, source: int, target: int) -> Pairs:
    """A PG's pairs, with what is on one OSD sent to another. Ceph applies no pair to the outcome of another.

    A pair that leads away from where the copy is has no effect, or none yet: the new one is to hold, and not both.
    """
    pairs_after = tuple((first, target if last == source else last) for first, last in pairs)
    if pairs_after == pairs:
        pairs_after = (*(pair for pair in pairs if pair[0] != source), (source, target))
    return tuple(pair for pair in pairs_after if pair[0] != pair[1])


def held(pairs: Pairs, now: Sequence[int], goal: Sequence[int], erasure: bool) -> Optional[Pairs]:
    """Pairs that bring a PG's OSDs from `now` (with `pairs` applied) to those `goal`; None where none do.

    The order of a replicated PG's OSDs does not count; that of an erasure-coded one does.
    """
    if erasure:
        changes = [(new, old) for new, old in zip(now, goal) if new != old]
        if len(now) != len(goal) or {new for new, _ in changes} & {old for _, old in changes}:
            return None
    else:
        changes = list(zip((osd for osd in now if osd not in goal), (osd for osd in goal if osd not in now)))
    if NONE in {osd for change in changes for osd in change}:
        return None
    for new, old in changes:
        pairs = redirected(pairs, new, old)
    return pairs


def check_upmap(view: MapView) -> None:
    """Raise InputError where the cluster takes no pg_upmap_items entries."""
    oldest = view.min_compat_client
    if oldest and oldest < "luminous":
        raise InputError(
            "require_min_compat_client", oldest, "`ceph osd set-require-min-compat-client luminous`, for upmap entries"
        )


def upmap_command(pgid: str, pairs: Pairs) -> Tuple[str, Dict[str, str]]:
    """The monitor command that makes these the pairs of a PG."""
    if not pairs:
        return "osd rm-pg-upmap-items", {"pgid": pgid}
    return "osd pg-upmap-items", {"pgid": pgid, "id": " ".join(f"{first} {last}" for first, last in pairs)}
