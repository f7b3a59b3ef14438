"""What is to be done in the background, pool by pool, and what is assumed to be where nothing is.

Recovery and backfill, scrub, snaptrim. Work that is under way is taken to last for a minute at the least.
"""

from __future__ import annotations

import math
from typing import AbstractSet, List, Mapping, Optional, Sequence

from ceph_tuner.core.ceph.target import Place
from ceph_tuner.core.measure.sample import Window
from ceph_tuner.describe.pools import PoolSeen, PoolsSeen
from ceph_tuner.twin.described_cluster import SIMULATE_ALL
from ceph_tuner.twin.model import RecoveryWork, ScrubWork, SnaptrimWork

ONTO = 0.8
"""Of a pool's degraded objects, what one OSD must lack to be the one that recovery goes to."""

LASTING_S = 60.0
"""How long work lasts at the least, at all drives' full bandwidth."""
MOST_ROUNDS = 100
"""Recoveries of each PG that make it last; beyond that, PGs are taken to have more objects."""
OVER_S = 0.5
"""Less than that is not under way but over."""


class WorkSeen:
    """Work by what the monitors and a window say; `notes` grows by what is taken to be so.

    `also` names kinds of work that are assumed where none is under way; `bandwidth_bytes_s` is that of all drives.
    """

    def __init__(
        self,
        pools: PoolsSeen,
        window: Optional[Window],
        osds: Sequence[Place],
        bandwidth_bytes_s: float,
        also: AbstractSet[str],
        notes: List[str],
    ) -> None:
        self._seen, self._window, self._osds, self._bandwidth_bytes_s = pools, window, osds, bandwidth_bytes_s
        self._also, self._notes = also, notes
        self.assumed: List[str] = []
        """Kinds of work that were assumed, once they have been asked for."""

    def recovery(self, pools: Sequence[PoolSeen]) -> List[RecoveryWork]:
        """Degraded objects, then misplaced ones."""
        works: List[RecoveryWork] = []
        for kind, is_degraded in (("recovery", True), ("backfill", False)):
            counts = {pool.name: pool.degraded if is_degraded else pool.misplaced for pool in pools}
            if kind in self._also and not any(counts.values()):
                counts = {pool.name: pool.objects * pool.size / len(self._osds) for pool in pools if pool.size > 1}
                what = "the loss of an OSD" if is_degraded else "an OSD's objects on the move"
                self._assume(kind, f"nothing is {'degraded' if is_degraded else 'misplaced'}: {what} is assumed")
            times = self._times(kind, counts, pools)
            # each PG's recovery has an end of its own, and what that costs shows where PGs have few objects
            rounds = min(MOST_ROUNDS, round(times))
            amounts = ((pool, round(times * counts.get(pool.name, 0))) for pool in pools if pool.size > 1)
            works += [
                RecoveryWork(
                    pool.name, objects, pool.object_bytes, is_degraded, self._onto(pool) if is_degraded else None,
                    rounds=rounds, times=times, among=_among(pool, objects / rounds) if is_degraded else 0,
                )
                for pool, objects in amounts
                if objects
            ]  # fmt: skip
        if any(work.degraded and work.target is None for work in works):
            self._notes.append("recovery is taken to go to all OSDs alike")
        if any(work.among for work in works):
            self._notes.append(
                "clients are taken to go to all objects of a pool alike, those that lack a copy included"
            )
        return works

    def _onto(self, pool: PoolSeen) -> Optional[int]:
        """The one OSD that lacks most of what is degraded, as the model counts OSDs; None: there is no such one."""
        ids = [place.osd for place in self._osds]
        osd, objects = max(pool.lacking.items(), key=lambda entry: entry[1], default=(-1, 0.0))
        # where some stand for all, it may be none of them
        if objects < ONTO * pool.degraded or osd not in ids or len(ids) > SIMULATE_ALL:
            return None
        return ids.index(osd)

    def scrub(self, pools: Sequence[PoolSeen]) -> List[ScrubWork]:
        """Of all pools, where anything is being scrubbed."""
        # states are of one moment, and scrubs of a small PG are short
        objects_s = self._window.measures.get("scrub.objects_s") if self._window is not None else None
        has_scrubs = self._seen.scrubbing or (objects_s is not None and objects_s.mean > 0)
        if not has_scrubs and "scrub" not in self._also:
            return []
        if not has_scrubs:
            self._assume("scrub", "nothing is being scrubbed: a deep scrub of all pools is assumed")
        return [ScrubWork(pool.name, round(pool.objects), pool.object_bytes) for pool in pools if round(pool.objects)]

    def snaptrim(self, pools: Sequence[PoolSeen]) -> List[SnaptrimWork]:
        """Clones of removed snapshots."""
        counts = {pool.name: pool.clones_to_trim for pool in pools}
        if any(counts.values()):
            self._notes.append("all clones of PGs with a snaptrim queue are taken to be trimmed: it is at most so many")
        elif "snaptrim" in self._also:
            counts = {pool.name: pool.clones for pool in pools}
            if any(counts.values()):
                self._assume("snaptrim", "nothing is to be trimmed: all clones that there are, are assumed to be")
            else:
                self._notes.append("no clones are seen: no objective about snaptrim can be predicted")
        times = self._times("snaptrim", counts, pools)
        return [
            SnaptrimWork(pool.name, round(times * counts[pool.name]), pool.object_bytes, times=times)
            for pool in pools
            if round(times * counts[pool.name])
        ]

    def _times(self, kind: str, counts: Mapping[str, float], pools: Sequence[PoolSeen]) -> float:
        """How often work is taken, to last for a minute: a run would outlast less, and tell a rate that is too low."""
        seconds = sum(counts.get(pool.name, 0.0) * pool.object_bytes for pool in pools) / self._bandwidth_bytes_s
        if seconds >= LASTING_S or seconds < (0 if kind in self.assumed else OVER_S) or not seconds:
            return 1.0
        if kind not in self.assumed:
            self._notes.append(f"{kind} is taken to last for a minute, though it is nearly done")
        return LASTING_S / seconds

    def _assume(self, kind: str, note: str) -> None:
        self.assumed.append(kind)
        self._notes.append(note)


def _among(pool: PoolSeen, objects: float) -> int:
    """Of how many objects so many that lack a copy are to be, for a write to wait as often as in the pool."""
    return math.ceil(objects * pool.objects / pool.awaited) if pool.awaited else 0
