"""Brings OSDs to other CRUSH weights: all PGs are held where they are at first, then let go of a few at a time.

So each PG moves once, straight to where the last weight wants it. Weights that change in small steps move some PGs
again and again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, FrozenSet, List, Mapping

from ceph_tuner.moves import MapView, MapWrite, MovePg, Pairs
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
        return {pg.pgid: pg.copy_bytes * self._places(view, pg) for pg in self._pgs(view, passed_over)}

    def writes(self, view: MapView, at_once: int, passed_over: FrozenSet[str]) -> List[MapWrite]:
        """The next PGs are let go of, the smallest first."""
        ready = sorted(self._pgs(view, passed_over), key=lambda pg: (pg.copy_bytes, pg.pgid))
        return [
            MapWrite(
                pg.pgid,
                upmap_command(pg.pgid, self.held[pg.pgid]),
                upmap_command(pg.pgid, view.upmaps[pg.pgid]),
                pg.copy_bytes * self._places(view, pg),
                Released(pg.pgid, self.held[pg.pgid]),
            )
            for pg in ready[:at_once]
            if pg.settled
        ]

    def _pgs(self, view: MapView, passed_over: FrozenSet[str]) -> List[MovePg]:
        return [
            pg
            for pg in view.pgs
            if pg.pgid in self.held
            and pg.pgid not in passed_over
            and not set(view.upmaps.get(pg.pgid, ())) <= set(self.held[pg.pgid])
        ]

    def _places(self, view: MapView, pg: MovePg) -> int:
        return len(set(view.upmaps.get(pg.pgid, ())) - set(self.held[pg.pgid]))
