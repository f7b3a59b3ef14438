"""What a change beyond live knobs costs: copies that move, restarts, the time of both, and memory.

How much moves is counted on placements of the twin, before and after; how fast, is simulated under the live settings
that are recommended, with the described clients and scrubs. Ceph's side of it, in src/mgr/DaemonServer.cc
(adjust_pgs) and src/osd/OSD.cc (get_target_pg_log_entries):

- A PG that is split leaves its children where they are; they move when pgp_num follows, by so many at a time that no
  more than `target_max_misplaced_ratio` of all objects are misplaced, and only while nothing is degraded.
- A PG's log has osd_target_pg_log_entries_per_osd / PGs of the OSD entries, within osd_min_pg_log_entries and
  osd_max_pg_log_entries; what osd_pg_log_dups_tracked asks for beyond that, are dups.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
from numpy.typing import NDArray

from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.recommend import Prediction
from ceph_tuner.recommend.rebuild import RebuildChange, by_pool, pgs_per_osd
from ceph_tuner.recommend.runs import Runs
from ceph_tuner.twin.model import MIB, ClusterModel, Pool, RecoveryWork, ScrubWork, SnaptrimWork
from ceph_tuner.twin.placement import placed

MISPLACED_AT_A_TIME = 0.05
"""target_max_misplaced_ratio."""

RESTART_S = 60.0
"""Assumed, from an OSD's stop until its PGs are active again; a lab's are back after 4 s, large ones take minutes."""

LOG_TARGET, LOG_LEAST, LOG_MOST, DUPS_TRACKED = 300_000, 250, 10_000, 3_000
"""osd_target_pg_log_entries_per_osd, osd_min_pg_log_entries, osd_max_pg_log_entries, osd_pg_log_dups_tracked."""

LOG_ENTRY_BYTES = 360
"""sizeof(pg_log_entry_t), ceph/ceph#6690; names and snapshots of objects come on top."""

ENDLESS = 100_000_000
"""Objects that no run sees the end of."""

OBJECT_BYTES = 4.0 * MIB
"""Where no work on a pool says how large its objects are."""


@dataclass(frozen=True)
class Cost:
    """None: nothing of the kind, or not known."""

    moved_share: float = 0.0
    """Of the pool's copies (shards of an erasure code)."""
    moved_bytes: Optional[float] = None
    """All copies; None where nobody said how much the pool holds."""
    rate_bytes_s: Optional[float] = None
    """At which they are predicted to move."""
    restarts: int = 0
    """OSDs."""
    rounds: int = 0
    """Failure domains, one after the other."""
    round_s: Optional[float] = None
    """Of one, at the most: RESTART_S, and until what was written meanwhile is recovered; None where it never would be.
    Every write is taken to miss another object, and whole objects to be copied."""
    log_entries: Tuple[int, int] = (0, 0)
    """Of an OSD's PG logs, before and after."""
    log_dups: Tuple[int, int] = (0, 0)
    meanwhile: Optional[Prediction] = None
    """What the objectives' metrics are like while data moves or what was missed is recovered."""

    @property
    def time_s(self) -> Optional[float]:
        """For all of it; None where that is not known."""
        if self.rounds:
            return None if self.round_s is None else self.rounds * self.round_s
        if self.moved_bytes is None or not self.rate_bytes_s:
            return None
        return self.moved_bytes / self.rate_bytes_s

    @property
    def memory_bytes(self) -> float:
        """That an OSD's PG logs gain at least (dups not counted); less than 0: that they give back."""
        return float(LOG_ENTRY_BYTES * (self.log_entries[1] - self.log_entries[0]))


def cost_of(
    change: RebuildChange,
    before: ClusterModel,
    settings: Settings,
    means: Mapping[str, float],
    stored_bytes: Mapping[str, float],
    runs: Runs,
    seeds: Sequence[int],
) -> Cost:
    """Count and simulate it. `means` are what is predicted before the change, `stored_bytes` bytes by pool."""
    logs = [log_entries(pgs_per_osd(model)) for model in (before, change.model)]
    entries, dups = (logs[0][0], logs[1][0]), (logs[0][1], logs[1][1])
    if change.pool is None:
        restart_s, meanwhile = _round(change.model, settings, means, by_pool(stored_bytes, before), runs, seeds)
        return Cost(
            restarts=before.osds,
            rounds=before.hosts or before.osds,
            round_s=restart_s,
            log_entries=entries,
            log_dups=dups,
            meanwhile=meanwhile,
        )
    old, new = before.pool(change.pool), change.model.pool(change.pool)
    share = float(
        np.mean(
            [
                moved_share(old, old.pgs, new.pgs, before.osds, before.hosts, np.random.default_rng(seed))
                for seed in seeds
            ]
        )
    )
    pool_bytes = by_pool(stored_bytes, before).get(old.name)
    moved_bytes = None if pool_bytes is None else share * pool_bytes * old.size / (old.k or 1)
    meanwhile = _move_prediction(change.model, new, settings, runs, seeds)
    copies_s = meanwhile.means.get("backfill.objects_s", 0.0)
    rate = copies_s * object_bytes(change.model, new.name) / (old.k or 1)
    return Cost(share, moved_bytes, rate, log_entries=entries, log_dups=dups, meanwhile=meanwhile)


def moved_share(pool: Pool, before: int, after: int, osds: int, hosts: int, random: np.random.Generator) -> float:
    """Of a pool's copies, those that lie on another OSD once it has `after` PGs instead of `before`.

    A PG lies where its number puts it, however many there are. Of an erasure code each shard has its own place in the
    acting set; a replica is as good on any of them.
    """
    most = max(before, after)
    # as CRUSH alone puts new PGs, before the balancer has looked
    placement = placed(pool.with_pgs(most), most, osds, hosts, 0, random)
    hashes = np.arange(1 << (most - 1).bit_length())
    old, new = placement[stable_mod(hashes, before)], placement[stable_mod(hashes, after)]
    stays = old == new if pool.k else (new[:, :, None] == old[:, None, :]).any(axis=2)
    return 1.0 - float(stays.mean())


def stable_mod(hashes: NDArray[Any], pgs: int) -> NDArray[Any]:
    """PG of an object by its hash: ceph_stable_mod, which moves few where `pgs` is no power of two."""
    mask = (1 << (pgs - 1).bit_length()) - 1
    return np.where((hashes & mask) < pgs, hashes & mask, hashes & (mask >> 1))


def log_entries(pgs: float) -> Tuple[int, int]:
    """(entries, dups) of all PG logs on an OSD that has so many PGs and was written to for long enough."""
    each = min(max(LOG_TARGET / max(pgs, 1.0), LOG_LEAST), LOG_MOST)
    return round(pgs * each), round(pgs * max(0.0, DUPS_TRACKED - each))


def object_bytes(model: ClusterModel, pool: str) -> float:
    """Size of a pool's objects, as any work on it says."""
    works: Tuple[Union[RecoveryWork, ScrubWork, SnaptrimWork], ...] = (*model.recovery, *model.scrub, *model.snaptrim)
    return next((float(work.object_bytes) for work in works if work.pool == pool), OBJECT_BYTES)


def _move_prediction(
    model: ClusterModel, pool: Pool, settings: Settings, runs: Runs, seeds: Sequence[int]
) -> Prediction:
    """While the data moves: some PGs at a time, and the work that ends before it begins is over."""
    part = replace(pool.with_pgs(max(1, round(MISPLACED_AT_A_TIME * pool.pgs))), name=f"{pool.name} moving")
    size = round(object_bytes(model, pool.name))
    work = RecoveryWork(part.name, ENDLESS, size, degraded=False)
    model_of_move = replace(model, pools=(*model.pools, part), recovery=(work,), snaptrim=(), deletion=())
    return Prediction("moving", settings, runs.start(model_of_move, settings, seeds, at_once=True).collect())


def _round(
    model: ClusterModel,
    settings: Settings,
    means: Mapping[str, float],
    bytes_by_pool: Mapping[str, float],
    runs: Runs,
    seeds: Sequence[int],
) -> Tuple[Optional[float], Optional[Prediction]]:
    """Seconds of one failure domain's restart at the most, and what it is like."""
    write_shares: Dict[str, float] = {}
    for stream in model.clients:
        part = (1.0 - stream.read_share) * (stream.rate or float(stream.depth))
        write_shares[stream.pool] = write_shares.get(stream.pool, 0.0) + part
    writes, whole = means.get("client.write_iops", 0.0), sum(write_shares.values())
    missed_objects = {
        name: min(RESTART_S * writes * part / whole, bytes_by_pool.get(name, math.inf) / object_bytes(model, name))
        * model.pool(name).size
        / model.osds
        for name, part in write_shares.items()
        if part and model.pool(name).size > 1
    }
    if not writes or not missed_objects:
        return RESTART_S, None
    # one OSD stands for all that missed writes at the same time; it misses so much that no run sees the end of it
    works = tuple(
        RecoveryWork(name, round(ENDLESS * part), round(object_bytes(model, name)), target=0)
        for name, part in _shares(missed_objects).items()
    )
    again = replace(model, recovery=works, snaptrim=(), deletion=())
    meanwhile = Prediction("recovering", settings, runs.start(again, settings, seeds, at_once=True).collect())
    simulated_share = (model.simulated_osds or model.osds) / model.osds
    rate = meanwhile.means.get("recovery.objects_s", 0.0) * simulated_share
    return (RESTART_S + sum(missed_objects.values()) / rate if rate > 0 else None), meanwhile


def _shares(parts: Mapping[str, float]) -> Dict[str, float]:
    whole = sum(parts.values())
    return {name: part / whole for name, part in parts.items()}
