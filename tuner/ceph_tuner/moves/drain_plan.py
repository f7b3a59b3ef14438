"""Empties OSDs: each copy by one pg_upmap_items entry, to an OSD that may have it, so that nothing else moves."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import AbstractSet, Dict, FrozenSet, List, Mapping, NamedTuple, Tuple

from ceph_tuner.moves import MapView, MapWrite, MovePg, Pairs
from ceph_tuner.moves.placement import best_target, redirected, upmap_command


@dataclass(frozen=True)
class UpIs:
    """A PG is to be on these OSDs."""

    pgid: str
    wanted: FrozenSet[int]
    pairs: Pairs

    def arrived(self, view: MapView) -> bool:
        """Whether all of it is there; a PG that is gone (merged) has nothing to move."""
        pg_now = next((pg for pg in view.pgs if pg.pgid == self.pgid), None)
        return pg_now is None or (pg_now.settled and set(pg_now.up) == self.wanted)

    def refused(self, view: MapView) -> bool:
        """Whether the monitors dropped the entry; pairs that change nothing are dropped as well, and are not missed."""
        pg_now = next((pg for pg in view.pgs if pg.pgid == self.pgid), None)
        there = pg_now is not None and set(pg_now.up) == self.wanted
        return not there and set(view.upmaps.get(self.pgid, ())) != set(self.pairs)


def upmap_write(view: MapView, pg: MovePg, after: Pairs, up: FrozenSet[int]) -> MapWrite:
    """The write that changes a PG's entry."""
    before = view.upmaps.get(pg.pgid, ())
    return MapWrite(
        pg.pgid,
        upmap_command(pg.pgid, after),
        upmap_command(pg.pgid, before),
        pg.copy_bytes * len(up - set(pg.up)),
        UpIs(pg.pgid, up, after),
    )


class Placement(NamedTuple):
    """Where a drain's next PGs go."""

    writes: List[MapWrite]
    nowhere: List[str]
    """PGs that no OSD may have."""
    crowded: Dict[int, int]
    """OSDs that get more PGs than the monitors' limit -> how many they have then."""


@dataclass(frozen=True)
class DrainPlan:
    """These OSDs are to have no PG; their CRUSH weights go to 0 at the end unless `keep_weight`."""

    osds: FrozenSet[int]
    keep_weight: bool = False

    @property
    def weights_first(self) -> Mapping[int, float]:
        """None: an entry that leads away from an OSD holds only while CRUSH would choose that OSD."""
        return {}

    @property
    def weights_last(self) -> Mapping[int, float]:
        """Nothing moves then: each PG is held where it is."""
        return {} if self.keep_weight else dict.fromkeys(sorted(self.osds), 0.0)

    def left(self, view: MapView, passed_over: FrozenSet[str]) -> Dict[str, float]:
        """PGs that are on these OSDs, with what of them is there."""
        counts = {pg.pgid: len(self.osds & {*pg.up, *pg.acting}) for pg in view.pgs}
        return {
            pg.pgid: counts[pg.pgid] * pg.copy_bytes
            for pg in view.pgs
            if counts[pg.pgid] and pg.pgid not in passed_over
        }

    def on_its_way(self, view: MapView) -> FrozenSet[str]:
        """PGs with a copy there that move."""
        return frozenset(pg.pgid for pg in view.pgs if pg.moves and self.osds & {*pg.up, *pg.acting})

    def writes(
        self, view: MapView, places: int, passed_over: FrozenSet[str], begun: AbstractSet[str] = frozenset()
    ) -> List[MapWrite]:
        """The next PGs, the largest last: the pace is learnt on small ones."""
        return self.placed(view, places, passed_over, begun).writes

    def placed(
        self,
        view: MapView,
        places: int,
        passed_over: FrozenSet[str] = frozenset(),
        begun: AbstractSet[str] = frozenset(),
    ) -> Placement:
        """The next PGs' writes, and what stands against them."""
        bytes_to_come, pgs_to_come = _to_come(view, begun)
        writes: List[MapWrite] = []
        nowhere: List[str] = []
        crowded: Dict[int, int] = {}
        osds = {number: replace(osd, pgs=osd.pgs + pgs_to_come[number]) for number, osd in view.osds.items()}
        for pg in sorted(view.pgs, key=lambda each: (each.copy_bytes, each.pgid)):
            sources = sorted(self.osds & set(pg.up))
            if not sources or pg.pgid in passed_over or pg.pgid in begun or not pg.settled:
                continue
            if len(writes) >= places:
                break
            target = best_target(replace(view, osds=osds), pg, sources[0], self.osds, bytes_to_come)
            if target is None:
                nowhere.append(pg.pgid)
                continue
            bytes_to_come[target] = bytes_to_come.get(target, 0.0) + pg.copy_bytes
            osds[target] = replace(osds[target], pgs=osds[target].pgs + 1)
            if osds[target].pgs > view.most_pgs:
                crowded[target] = osds[target].pgs
            after = redirected(view.upmaps.get(pg.pgid, ()), sources[0], target)
            writes.append(upmap_write(view, pg, after, frozenset({*pg.up} - {sources[0]} | {target})))
        return Placement(writes, nowhere, crowded)


def _to_come(view: MapView, begun: AbstractSet[str]) -> Tuple[Dict[int, float], Counter[int]]:
    """Bytes and PGs that are on their way to OSDs, which count neither where they are used nor where PGs are.

    A PG that was sent tells so seconds later: until then its entry does.
    """
    bytes_to_come: Dict[int, float] = {}
    pgs_to_come: Counter[int] = Counter()
    for pg in view.pgs:
        ends = {last for _, last in view.upmaps.get(pg.pgid, ())} if pg.pgid in begun else set()
        for osd in {*pg.up, *ends} - {*pg.acting}:
            bytes_to_come[osd] = bytes_to_come.get(osd, 0.0) + pg.copy_bytes
            pgs_to_come[osd] += 1
    return bytes_to_come, pgs_to_come
