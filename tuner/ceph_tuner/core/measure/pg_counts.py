"""PG copies on a pool's OSDs, held against what Ceph aims at and what its monitors call too many.

Before Tentacle the monitors refuse a pg_num beyond their limit; Tentacle's take it (docs/ceph-behaviour.md).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Iterable, Mapping, NamedTuple, Optional, Tuple


class PgOption(NamedTuple):
    """An option about how many PGs an OSD has."""

    who: str
    name: str
    default: float
    """Ceph's own."""


TARGET_PGS = PgOption("mgr", "mon_target_pg_per_osd", 100.0)
MOST_PGS = PgOption("mon", "mon_max_pg_per_osd", 250.0)
HARD_RATIO = PgOption("osd", "osd_max_pg_per_osd_hard_ratio", 3.0)
"""So many times `MOST_PGS` an OSD takes: it leaves another PG inactive (`OSD::maybe_wait_for_max_pg`)."""


@dataclass(frozen=True)
class PgCounts:
    """What is on the OSDs that have a pool's PGs."""

    osds: int
    size: int
    """Copies, or shards, of each of its PGs."""
    others: float
    """Copies of other pools' PGs."""

    def mean(self, pg_num: int) -> float:
        """Copies of all pools on each, as the monitors count them; 0 where the pool is on no OSD."""
        return (pg_num * self.size + self.others) / self.osds if self.osds else 0.0

    def permitted(self, most: float) -> int:
        """The largest power of two by which the mean is not beyond `most`; 0 where none is."""
        room = (most * self.osds - self.others) / self.size if self.size else 0.0
        return 1 << int(room).bit_length() - 1 if room >= 1 else 0


def pg_counts(
    copies: Iterable[Tuple[int, int]], pool: int, size: int, planned: Optional[Mapping[int, float]] = None
) -> PgCounts:
    """Count for one pool. `copies`: pool and OSD of each.

    `planned`: pool -> copies that it is to have; PGs that are still to be split are not listed yet.
    """
    rows = list(copies)
    own = {osd for number, osd in rows if number == pool}
    listed, beside = Counter(number for number, _ in rows), Counter(number for number, osd in rows if osd in own)
    others = sum(
        count * (planned or {}).get(number, listed[number]) / listed[number]
        for number, count in beside.items()
        if number != pool
    )
    return PgCounts(len(own), size, others)
