"""The twin's pools and placement groups, as rows of `pg ls`: states, dates, and how far each one is."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Dict, FrozenSet, List, Mapping, Sequence

from ceph_tuner.twin.model import ClusterModel
from ceph_tuner.twin.simulation import PgWork, SimulatedCounters, Simulation

_DAY_S = 86400.0

_STATES = {
    "degraded": ("recovering", "recovery_wait"),
    "misplaced": ("backfilling", "backfill_wait"),
    "snaptrim": ("snaptrim", "snaptrim_wait"),
}
"""Kind of work -> a PG's state while it runs, and while it waits."""


@dataclass(frozen=True)
class TwinPool:
    """A pool as the OSD map has it."""

    number: int
    name: str
    pgs: int
    size: int
    k: int = 0
    object_bytes: int = 0
    deep_scrub_interval_s: float = 0.0
    """Its own; 0 where that of the OSDs counts."""
    flags: FrozenSet[str] = frozenset()

    @property
    def code(self) -> str:
        """Name of its erasure-code profile; empty where it has copies."""
        return f"k{self.k}m{self.size - self.k}" if self.k else ""

    @cached_property
    def ids(self) -> List[str]:
        """Ids of the pool's PGs: `pool.hash`, the hash in hexadecimal."""
        return [f"{self.number}.{seed:x}" for seed in range(self.pgs)]

    def row(self) -> Dict[str, Any]:
        """As in `osd dump`."""
        return {
            "pool": self.number,
            "pool_name": self.name,
            "type": 3 if self.k else 1,
            "size": self.size,
            "min_size": self.k + 1 if self.k else self.size - self.size // 2,
            "pg_num": self.pgs,
            "erasure_code_profile": self.code,
            "flags_names": ",".join(sorted(self.flags)),
            "options": {"deep_scrub_interval": self.deep_scrub_interval_s} if self.deep_scrub_interval_s else {},
        }


def pools_of(model: ClusterModel) -> List[TwinPool]:
    """The model's pools, with the size of the objects that it works on there."""
    pools = []
    for number, pool in enumerate(model.pools, 1):
        sizes = [work.object_bytes for work in model.recovery if work.pool == pool.name]
        sizes += [work.object_bytes for work in model.scrub if work.pool == pool.name]
        sizes += [work.object_bytes for work in model.snaptrim if work.pool == pool.name]
        pools.append(TwinPool(number, pool.name, pool.pgs, pool.size, pool.k, max(sizes, default=0)))
    return pools


@dataclass
class _Scrub:
    """How far a PG's scrub is, and when its last ones ended."""

    ended: str
    deep_ended: str
    scrubbed: int = 0
    """Objects of the scrub that runs, else of the last one."""
    left: int = 0
    running: bool = False
    total: int = 0
    """Objects of all its scrubs since the simulation began."""
    began: float = 0.0
    """When the one that runs was first seen to (s since the epoch)."""
    lasted_s: int = 0
    """The last one, in whole seconds as Ceph says it."""

    def end(self, objects: int, at: float, deep: bool) -> None:
        """A scrub of so many objects is over."""
        self.lasted_s = max(1, round(at - self.began)) if self.running else 1
        self.scrubbed, self.ended = objects, stamp(at)
        self.deep_ended = self.ended if deep else self.deep_ended


@dataclass
class PlacementGroups:
    """All PGs of the cluster. Where it is simulated in part, each simulated PG stands for several."""

    pools: List[TwinPool] = field(default_factory=list)
    _scrubs: Dict[str, _Scrub] = field(default_factory=dict)
    _objects: Dict[str, int] = field(default_factory=dict)
    """By PG, as the last work on it said: they stay when the work ends."""
    _object_bytes: Dict[str, int] = field(default_factory=dict)
    _seen: Any = None
    """Scrub work, and what OSDs counted of it, at the last look; None where the next look may find more in the same."""

    def begin(self, simulation: Simulation, new_pools: List[TwinPool], now: float) -> None:
        """Take over the pools of a simulation, beside those that were made by command.

        Scrubs that are not known ended in the week before, spread evenly.
        """
        self.pools, self._seen = [*pools_of(simulation.model), *new_pools], None
        self._object_bytes.update({pool.name: pool.object_bytes for pool in self.pools if pool.object_bytes})
        objects: Dict[str, int] = {}
        for works in self._by_kind(simulation).values():
            for pgid, work in works.items():
                objects[pgid] = max(work.objects, objects.get(pgid, 0))
        for recovery in simulation.model.recovery:
            for pool in self.pools:
                if recovery.among and pool.name == recovery.pool:
                    objects.update(dict.fromkeys(pool.ids, recovery.among // len(pool.ids)))
        self._objects.update(objects)
        ids = [pgid for pool in self.pools for pgid in pool.ids]
        for place, pgid in enumerate(ids):
            ended = stamp(now - _DAY_S * (1 + 5.0 * place / len(ids)))
            scrub = self._scrubs.setdefault(pgid, _Scrub(ended, ended))
            scrub.running, scrub.left, scrub.total = False, 0, 0

    def follow(self, simulation: Simulation, counters: SimulatedCounters, now: float) -> None:
        """Look how far scrubs are."""
        if not simulation.model.scrub:
            return
        deep, works = _deep(simulation.model), self._by_kind(simulation)["scrub"]
        seen = works, counters.scrub_objects.tolist()
        if seen == self._seen:
            return
        self._seen = None if any(work.running for work in works.values()) else seen
        for pgid, work in works.items():
            scrub = self._scrubs[pgid]
            before = scrub.scrubbed if scrub.running else 0
            if scrub.running and (not work.running or work.left > scrub.left):
                scrub.end(work.objects, now, deep)
                scrub.total += work.objects - before
                before = 0
            elif not (scrub.running or work.running) and work.left == 0 < scrub.left:
                # the one scrub that it had began and ended between two looks
                scrub.end(work.objects, now, deep)
                scrub.total += work.objects
            if work.running:
                scrub.began = scrub.began if scrub.running and before else now
                scrub.scrubbed = work.objects - work.left
                scrub.total += scrub.scrubbed - before
            scrub.running, scrub.left = work.running, work.left
        if works:
            self._count_unseen(simulation, works, seen[1], now)

    def _count_unseen(
        self, simulation: Simulation, works: Mapping[str, PgWork], objects: Sequence[float], now: float
    ) -> None:
        """Scrubs that began and ended between two looks: their OSD counted them, and the longest ago come first.

        Where there were any, another look may find more.
        """
        deep = _deep(simulation.model)
        primaries: Dict[int, List[str]] = {}
        for pool in self.pools:
            if any(work.pool == pool.name for work in simulation.model.scrub):
                # of PGs that share a simulated one, the first
                for pgid, acting in zip(pool.ids, simulation.acting(pool.name)):
                    primaries.setdefault(int(acting[0]), []).append(pgid)
        chunk = "osd_scrub_chunk_max" if deep else "osd_shallow_scrub_chunk_max"
        for osd, pgids in primaries.items():
            own = {pgid: works[pgid] for pgid in pgids if pgid in works}
            largest = int(simulation.settings_of(osd).get(chunk, 100))
            # objects of chunks under way are counted already and not yet shown by their PG
            flying = sum(min(work.left, largest) for work in own.values() if work.running)
            owed = float(objects[osd]) - flying - sum(self._scrubs[pgid].total for pgid in own)
            for pgid in sorted(own, key=lambda pgid: self._scrubs[pgid].ended):
                if not own[pgid].running and owed >= own[pgid].objects:
                    self._scrubs[pgid].end(own[pgid].objects, now, deep)
                    self._scrubs[pgid].total += own[pgid].objects
                    owed -= own[pgid].objects
                    self._seen = None

    def deep_scrubbed(self, pgid: str, at: float) -> None:
        """Let the last scrub of a PG, a deep one, have ended then (seconds since the epoch)."""
        scrub = self._scrubs[pgid]
        scrub.ended = scrub.deep_ended = stamp(at)

    def request_scrub(self, simulation: Simulation, pgid: str) -> bool:
        """Ask for a PG's scrub; false where it has none to come. Of PGs that share a simulated one, any does."""
        for pool in self.pools:
            if pgid in pool.ids and any(work.pool == pool.name for work in simulation.model.scrub):
                place = pool.ids.index(pgid) % len(simulation.acting(pool.name))
                if simulation.request_scrub(pool.name, place):
                    self._scrubs[pgid].left, self._seen = self._objects.get(pgid, 0), None
                    return True
        return False

    def rows(self, simulation: Simulation) -> List[Dict[str, Any]]:
        """Every PG's statistics."""
        works = self._by_kind(simulation)
        acting = self._acting(simulation)
        deep = _deep(simulation.model)
        # nobody waits for what an OSD lacks that is lost
        lost = {work.pool for work in simulation.model.recovery if work.degraded and not work.among}
        rows = []
        for pool in self.pools:
            for pgid in pool.ids:
                own = {kind: by_pg[pgid] for kind, by_pg in works.items() if pgid in by_pg}
                objects, size = self._objects.get(pgid, 0), self._object_bytes.get(pool.name, 0)
                sums = {"num_bytes": objects * size, "num_objects": objects, "num_object_copies": objects * pool.size}
                rows.append(_row(pgid, sums, own, self._scrubs[pgid], acting.get(pgid, []), deep, pool.name in lost))
        return rows

    def _by_kind(self, simulation: Simulation) -> Dict[str, Dict[str, PgWork]]:
        """Each kind of work by PG; several works of one kind on a PG are shown as one."""
        shown: Dict[str, Dict[str, PgWork]] = {kind: {} for kind in ("scrub", *_STATES)}
        simulated: Dict[str, Dict[str, Dict[int, PgWork]]] = {}
        for work in simulation.work():
            own = simulated.setdefault(work.pool, {}).setdefault(work.kind, {})
            own[work.pg] = _together(own[work.pg], work) if work.pg in own else work
        for pool in self.pools:
            count = len(simulation.acting(pool.name)) if pool.name in simulated else 0
            for kind, by_place in simulated.get(pool.name, {}).items():
                shown[kind].update(
                    (pgid, by_place[seed % count]) for seed, pgid in enumerate(pool.ids) if seed % count in by_place
                )
        return shown

    def _acting(self, simulation: Simulation) -> Dict[str, List[int]]:
        modelled = {pool.name for pool in simulation.model.pools}
        osds_by_pg: Dict[str, List[int]] = {}
        for pool in self.pools:
            if pool.name in modelled:
                sets = simulation.acting(pool.name)
                osds_by_pg.update((pgid, [int(osd) for osd in sets[n % len(sets)]]) for n, pgid in enumerate(pool.ids))
            else:
                # a pool that was made by command holds nothing: where it lies matters to nobody
                osds_by_pg.update((pgid, list(range(pool.size))) for pgid in pool.ids)
        return osds_by_pg


def stamp(at: float) -> str:
    """A moment (seconds since the epoch) as Ceph writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{int(at % 1 * 1e6):06d}+0000"


def _together(one: PgWork, other: PgWork) -> PgWork:
    return one._replace(
        objects=one.objects + other.objects, left=one.left + other.left, running=one.running or other.running
    )


def _deep(model: ClusterModel) -> bool:
    return any(work.deep for work in model.scrub)


_RECOVERED = ("degraded", "misplaced")


def _row(
    pgid: str,
    sums: Mapping[str, int],
    own: Mapping[str, PgWork],
    scrub: _Scrub,
    acting: Sequence[int],
    deep: bool,
    lost: bool,
) -> Dict[str, Any]:
    left = {kind: own[kind].left if kind in own else 0 for kind in _STATES}
    return {
        "pgid": pgid,
        "state": _state(own, left, deep, lost),
        "last_scrub_stamp": scrub.ended,
        "last_deep_scrub_stamp": scrub.deep_ended,
        "objects_scrubbed": scrub.scrubbed,
        "last_scrub_duration": scrub.lasted_s,
        "snaptrimq_len": 1 if left["snaptrim"] else 0,
        "objects_trimmed": own["snaptrim"].objects - left["snaptrim"] if "snaptrim" in own else 0,
        "stat_sum": {
            **sums,
            "num_object_clones": left["snaptrim"],
            "num_objects_degraded": left["degraded"],
            "num_objects_misplaced": left["misplaced"],
            "num_objects_recovered": sum(own[kind].objects - left[kind] for kind in _RECOVERED if kind in own),
        },
        "up": list(acting),
        "acting": list(acting),
        "up_primary": acting[0] if acting else -1,
        "acting_primary": acting[0] if acting else -1,
    }


def _state(own: Mapping[str, PgWork], left: Mapping[str, int], deep: bool, lost: bool) -> str:
    words = ["active"]
    words += [_STATES[kind][0 if own[kind].running else 1] for kind in ("degraded", "misplaced") if left[kind]]
    words += ["undersized"] if left["degraded"] and lost else []
    words += ["degraded"] if left["degraded"] else []
    words += ["remapped"] if left["misplaced"] else []
    words += [] if left["degraded"] or left["misplaced"] else ["clean"]
    if "scrub" in own and own["scrub"].running:
        words += ["scrubbing", "deep"] if deep else ["scrubbing"]
    words += [_STATES["snaptrim"][0 if own["snaptrim"].running else 1]] if left["snaptrim"] else []
    return "+".join(words)
