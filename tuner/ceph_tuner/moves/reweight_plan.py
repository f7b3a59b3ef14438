"""Brings OSDs to other CRUSH weights: all PGs are held where they are at first, then let go of a few at a time.

So each PG moves once, straight to where the last weight wants it. Weights that change in small steps move some PGs
again and again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import AbstractSet, Dict, FrozenSet, List, Mapping

from ceph_tuner.moves import NONE, MapView, MapWrite, MovePg, Pairs
from ceph_tuner.moves.placement import upmap_command


@dataclass(frozen=True)
class Released:
    """A PG is to be where CRUSH wants it, which nobody knows before."""

    pgid: str
    pairs: Pairs

    def arrived(self, view: MapView) -> bool:
        """Whether its entry is as before, and all of it is where it is to be."""
        pg_now = next((pg for pg in view.pgs if pg.pgid == self.pgid), None)
        return pg_now is None or (pg_now.settled and not self.refused(view))

    def refused(self, view: MapView) -> bool:
        """Whether another entry is there; one of which the monitors dropped pairs is not."""
        return not set(view.upmaps.get(self.pgid, ())) <= set(self.pairs)


@dataclass(frozen=True)
class ReweightPlan:
    """These weights; `held` are the PGs that are held, each with the pairs that it had before."""

    weights: Mapping[int, float]
    held: Mapping[str, Pairs] = field(default_factory=dict)

    @property
    def weights_first(self) -> Mapping[int, float]:
        """All of them."""
        return self.weights

    @property
    def weights_last(self) -> Mapping[int, float]:
        """None."""
        return {}

    def left(self, view: MapView, passed_over: FrozenSet[str]) -> Dict[str, float]:
        """PGs that are held, or on their way."""
        return {
            pg.pgid: pg.copy_bytes * max(self._places(view, pg), len({*pg.up} - {*pg.acting, NONE}))
            for pg in self._pgs(view, passed_over)
            if self._is_held(view, pg) or pg.moves
        }

    def on_its_way(self, view: MapView) -> FrozenSet[str]:
        """PGs of those that move."""
        return frozenset(pg.pgid for pg in self._pgs(view, frozenset()) if pg.moves)

    def held_pgs(self, view: MapView) -> List[str]:
        """PGs that an entry of this move holds."""
        return [pg.pgid for pg in self._pgs(view, frozenset()) if self._is_held(view, pg)]

    def writes(
        self, view: MapView, places: int, passed_over: FrozenSet[str], begun: AbstractSet[str] = frozenset()
    ) -> List[MapWrite]:
        """The next PGs are let go of, the smallest first."""
        ready = [
            pg for pg in self._pgs(view, passed_over) if self._is_held(view, pg) and pg.settled and pg.pgid not in begun
        ]
        return [
            MapWrite(
                pg.pgid,
                upmap_command(pg.pgid, self.held[pg.pgid]),
                upmap_command(pg.pgid, view.upmaps[pg.pgid]),
                pg.copy_bytes * self._places(view, pg),
                Released(pg.pgid, self.held[pg.pgid]),
            )
            for pg in sorted(ready, key=lambda pg: (pg.copy_bytes, pg.pgid))[:places]
        ]

    def _pgs(self, view: MapView, passed_over: FrozenSet[str]) -> List[MovePg]:
        return [pg for pg in view.pgs if pg.pgid in self.held and pg.pgid not in passed_over]

    def _is_held(self, view: MapView, pg: MovePg) -> bool:
        return not set(view.upmaps.get(pg.pgid, ())) <= set(self.held[pg.pgid])

    def _places(self, view: MapView, pg: MovePg) -> int:
        return len(set(view.upmaps.get(pg.pgid, ())) - set(self.held[pg.pgid]))
