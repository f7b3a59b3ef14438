"""How many PGs are worked on at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import AbstractSet, List, Sequence

LONGEST_REST = 64
"""Windows."""


@dataclass(frozen=True)
class Pace:
    """PGs at a time in the whole cluster, by additive increase and multiplicative decrease (Chiu and Jain, 1989).

    One more after each window that kept the objectives, half of them after one that missed any. Until one did, a
    quarter more: what is begun goes on to its end, so the first step too far is to be a small one. Where a single PG
    is too much, rests follow that double.
    """

    at_once: int = 1
    missed_any: bool = False
    rest: int = 0
    """Windows to wait after the one that was missed."""

    def faster(self) -> Pace:
        """More."""
        more = 1 if self.missed_any else max(1, self.at_once // 4)
        return replace(self, at_once=self.at_once + more, rest=0)

    def ramp(self, full: float) -> List[float]:
        """The windows until so many are worked on at a time, each keeping the objectives: the share of them in each."""
        pace, shares = self, []
        while pace.at_once < full:
            shares.append(pace.at_once / full)
            pace = pace.faster()
        return shares

    def tried_by(self, looks: Sequence[AbstractSet[str]]) -> bool:
        """Whether so many PGs were worked on within some looks, and half as many at a time in their mean.

        `looks`: the PGs that were worked on at each, or since the one before. What was asked for and did not run says
        nothing of what clients bear. Between two scrubs lie a look and the OSD's own wait, hence the half.
        """
        once = {pgid for pgids in looks for pgid in pgids}
        return len(once) >= self.at_once and 2 * sum(map(len, looks)) >= self.at_once * len(looks)

    def slower(self) -> Pace:
        """Half as many; of one, a longer rest."""
        rest = min(LONGEST_REST, max(1, 2 * self.rest)) if self.at_once == 1 else 0
        return Pace(max(1, self.at_once // 2), True, rest)
