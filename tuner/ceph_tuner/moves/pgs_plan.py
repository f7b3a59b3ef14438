"""Brings a pool to another number of PGs.

More: `pg_num` first, which splits PGs where they are and copies nothing. Then `pgp_num` follows a few at a time, and
each new value moves that many PGs. Fewer: `pgp_num` goes down a few at a time, then `pg_num`, which merges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, FrozenSet, List, Mapping

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
        first, last = sorted((pool.pgp_num, self.pg_num))
        every = sum(pg.copy_bytes * len(pg.up) for pg in view.pgs if pg.pool == self.pool)
        each = every / max(pool.pg_num, self.pg_num)
        return {f"{self.pool}.{number:x}": each for number in range(first, last)} or {pool.name: 0.0}

    def writes(self, view: MapView, at_once: int, passed_over: FrozenSet[str]) -> List[MapWrite]:
        """The next number; one write at a time."""
        pool = view.pools.get(self.pool)
        if pool is None or not self.left(view, passed_over):
            return []
        if pool.pg_num < self.pg_num:
            # pgp_num follows pg_num by itself where both are the same: it is held at what it is
            return [self._write(view, pool, "pg_num", min(self.pg_num, 2 * pool.pg_num)), self._hold(pool)]
        if pool.pgp_num != self.pg_num:
            down = pool.pgp_num > self.pg_num
            number = max(self.pg_num, pool.pgp_num - at_once) if down else min(self.pg_num, pool.pgp_num + at_once)
            return [self._write(view, pool, "pgp_num", number)]
        return [self._write(view, pool, "pg_num", self.pg_num)]

    def _hold(self, pool: MovePool) -> MapWrite:
        before = _set(pool, "pgp_num", pool.pgp_num)
        arrival = PoolIs(self.pool, "pgp_num", pool.pgp_num)
        return MapWrite(f"{pool.name} pgp_num", before, before, 0.0, arrival, follows=True, moved_pgs=0)

    def _write(self, view: MapView, pool: MovePool, option: str, number: int) -> MapWrite:
        now = pool.pg_num if option == "pg_num" else pool.pgp_num
        places = abs(number - now) if option == "pgp_num" else 0
        bytes_by_pg = self.left(view, frozenset())
        bytes_to_move = places * (sum(bytes_by_pg.values()) / len(bytes_by_pg)) if bytes_by_pg else 0.0
        undo = _set(pool, option, now)
        arrival = PoolIs(self.pool, option, number)
        command = _set(pool, option, number)
        return MapWrite(f"{pool.name} {option}", command, undo, bytes_to_move, arrival, moved_pgs=places)


def _set(pool: MovePool, option: str, number: int) -> tuple[str, Dict[str, str]]:
    return "osd pool set", {"pool": pool.name, "var": option, "val": str(number)}
