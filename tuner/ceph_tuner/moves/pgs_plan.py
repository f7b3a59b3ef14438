"""Brings a pool to another number of PGs.

More: `pg_num` first, which splits PGs where they are and copies nothing. Then `pgp_num` follows a few at a time, and
each new value moves that many PGs. Fewer: `pgp_num` goes down a few at a time, then `pg_num`, which merges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import AbstractSet, Dict, FrozenSet, List, Mapping

from ceph_tuner.moves import MapView, MapWrite, MovePool


@dataclass(frozen=True)
class PoolIs:
    """A pool is to have such numbers, and all its PGs are to be where they belong."""

    pool: int
    option: str
    number: int

    def arrived(self, view: MapView) -> bool:
        """Whether it has, and they are; a pool that is gone has nothing to move."""
        pool = view.pools.get(self.pool)
        if pool is None:
            return True
        now = pool.pg_num if self.option == "pg_num" else pool.pgp_num
        return now == self.number and all(pg.settled for pg in view.pgs if pg.pool == self.pool)

    def refused(self, view: MapView) -> bool:
        """Whether somebody has set another number since."""
        pool = view.pools.get(self.pool)
        if pool is None:
            return False
        return self.number != (pool.pg_num_target if self.option == "pg_num" else pool.pgp_num_target)


@dataclass(frozen=True)
class PgsPlan:
    """That pool, and the power of two that its pg_num is to be."""

    pool: int
    pg_num: int

    @property
    def weights_first(self) -> Mapping[int, float]:
        """None."""
        return {}

    @property
    def weights_last(self) -> Mapping[int, float]:
        """None."""
        return {}

    def left(self, view: MapView, passed_over: FrozenSet[str]) -> Dict[str, float]:
        """PGs that are to be moved to a place of their own, or to be merged; with their bytes."""
        pool = view.pools.get(self.pool)
        if pool is None or passed_over & {f"{pool.name} pg_num", f"{pool.name} pgp_num"}:
            return {}
        if pool.pg_num == pool.pgp_num == self.pg_num:
            return {}
        every = sum(pg.copy_bytes * len(pg.up) for pg in view.pgs if pg.pool == self.pool)
        pgs = max(pool.pg_num, self.pg_num)
        times = {number: _moves(number, pool.pgp_num, self.pg_num) for number in range(pgs)}
        bytes_by_pg = {f"{self.pool}.{number:x}": every / pgs * count for number, count in times.items() if count}
        return bytes_by_pg or {pool.name: 0.0}

    def on_its_way(self, view: MapView) -> FrozenSet[str]:
        """PGs of the pool that move."""
        return frozenset(pg.pgid for pg in view.pgs if pg.pool == self.pool and pg.moves)

    def writes(
        self, view: MapView, places: int, passed_over: FrozenSet[str], begun: AbstractSet[str] = frozenset()
    ) -> List[MapWrite]:
        """The next number, once all PGs are where the last one wants them.

        The mgr brings a pool to its number in its own time, and no PG tells by which number it is where it is.
        """
        pool = view.pools.get(self.pool)
        if pool is None or begun or self.on_its_way(view) or not self.left(view, passed_over):
            return []
        if pool.pg_num < self.pg_num:
            # pgp_num follows pg_num by itself where both are the same: it is held at what it is
            return [self._write(view, pool, "pg_num", min(self.pg_num, 2 * pool.pg_num)), self._hold(pool)]
        if pool.pgp_num != self.pg_num:
            return [self._write(view, pool, "pgp_num", self._next(pool, places))]
        return [self._write(view, pool, "pg_num", self.pg_num)]

    def _next(self, pool: MovePool, places: int) -> int:
        """The pgp_num by which so many PGs at most are placed anew, or one number on."""
        step = 1 if pool.pgp_num < self.pg_num else -1
        number = pool.pgp_num + step
        while number != self.pg_num and _placed_anew(pool.pg_num, pool.pgp_num, number + step) <= places:
            number += step
        return number

    def _hold(self, pool: MovePool) -> MapWrite:
        before = _set(pool, "pgp_num", pool.pgp_num)
        arrival = PoolIs(self.pool, "pgp_num", pool.pgp_num)
        return MapWrite(f"{pool.name} pgp_num", before, before, 0.0, arrival, follows=True, moved_pgs=0)

    def _write(self, view: MapView, pool: MovePool, option: str, number: int) -> MapWrite:
        now = pool.pg_num if option == "pg_num" else pool.pgp_num
        moved_pgs = _placed_anew(pool.pg_num, now, number) if option == "pgp_num" else 0
        every = sum(pg.copy_bytes * len(pg.up) for pg in view.pgs if pg.pool == self.pool)
        undo = _set(pool, option, now)
        arrival = PoolIs(self.pool, option, number)
        command, moved_bytes = _set(pool, option, number), every / max(pool.pg_num, self.pg_num) * moved_pgs
        return MapWrite(f"{pool.name} {option}", command, undo, moved_bytes, arrival, moved_pgs=moved_pgs)


def _set(pool: MovePool, option: str, number: int) -> tuple[str, Dict[str, str]]:
    return "osd pool set", {"pool": pool.name, "var": option, "val": str(number)}


def _placed_by(number: int, pgp_num: int) -> int:
    """The number by which CRUSH places a PG: its own, or that of the PG it was split from (`ceph_stable_mod`)."""
    mask = (1 << (pgp_num - 1).bit_length()) - 1
    return number & mask if number & mask < pgp_num else number & (mask >> 1)


def _moves(number: int, pgp_num: int, target: int) -> int:
    """How often a PG is placed anew while pgp_num goes to a target one by one: each time its number has a bit more."""
    return abs(bin(_placed_by(number, pgp_num)).count("1") - bin(_placed_by(number, target)).count("1"))


def _placed_anew(pg_num: int, pgp_num: int, target: int) -> int:
    """How many PGs another pgp_num places anew.

    Where pg_num is more than twice pgp_num, one number on places several: all that were split from the same PG.
    """
    first, last = sorted((pgp_num, target))
    return sum((pg_num - number - 1) // (1 << number.bit_length()) + 1 for number in range(first, last))
