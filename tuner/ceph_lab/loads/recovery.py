"""Degraded objects: an OSD misses writes while it is away, and recovers them when `start` clears norecover.

By default the pool has two replicas, and only objects with one on that OSD are written, so the write costs each
surviving OSD half of what a size-3 pool would: preparing is what every trial of a tuning loop has to wait for. What a
window left degraded stays so for the next; only what it recovered is written again. All copies are missing on one OSD,
whose device is then the bottleneck, as when one failed drive comes back.
"""

from __future__ import annotations

import math
from typing import ClassVar, Dict, List, Optional

from ceph_lab.loads import LabUnderLoad
from ceph_lab.loads.background import BackgroundLoad, WorkReading, wait_for
from ceph_lab.loads.drive_speed import slowest_drive
from ceph_lab.loads.layout import PoolLayout, layout_of
from ceph_lab.loads.pools import LoadPool, Tell, silent, total, write_in_batches
from ceph_lab.loads.session import LabSession
from ceph_tuner.core.errors import LoadFailed

REPLICAS = 2
PGS = 32
MOST_PGS = 256
OBJECTS_PER_PG = 60
"""Well below osd_async_recovery_min_cost (100), from which on an OSD is left out of the acting set while it recovers.

The logs hold more (osd_min_pg_log_entries, 250): past them, an OSD would be backfilled, in another service class.
"""


def pgs_for(objects: int, osds: int, size: int) -> int:
    """PGs of a pool on so many OSDs, of which those that have the one OSD share the objects. Raises LoadFailed."""
    pgs = objects * osds / (OBJECTS_PER_PG * size)
    if pgs > MOST_PGS:
        raise LoadFailed(
            f"{objects} objects are more than the logs of {MOST_PGS} PGs should hold: use larger objects", ""
        )
    return max(PGS, 1 << math.ceil(math.log2(max(1, pgs))))


class RecoveryLoad(BackgroundLoad):
    """Recovery of `objects` degraded objects."""

    name = "recovery"
    rates: ClassVar[Dict[str, str]] = {"recovery.objects_s": "objects", "recovery.bytes_s": "bytes"}
    held_by = ("noout", "norecover")

    def __init__(
        self,
        lab: LabUnderLoad,
        session: LabSession,
        objects: int = 900,
        object_bytes: int = 1 << 20,
        osd: Optional[int] = None,
        tell: Tell = silent,
        layout: Optional[PoolLayout] = None,
    ) -> None:
        pool_layout = layout or layout_of(lab, "", "", REPLICAS)
        osds = pool_layout.osds(lab)
        if pool_layout.size < 2:
            raise LoadFailed(f"recovery needs at least 2 OSDs, {pool_layout} in the lab {lab.name!r} is on 1", "")
        if osd is not None and osd not in osds:
            raise LoadFailed(f"osd.{osd} has nothing of {pool_layout}, whose OSDs are {', '.join(map(str, osds))}", "")
        pool_layout = pool_layout.with_pgs(pgs_for(objects, len(osds), pool_layout.size))
        super().__init__(session, LoadPool(session, "recovery", pool_layout, osds), object_bytes, tell)
        self.lab = lab
        self.objects = objects
        self.osds = osds
        self.osd = max(osds) if osd is None else osd
        self._names_by_pg: Dict[str, List[str]] = {}
        """PG -> its objects, those that were written first to the front: in this order they are recovered."""

    def stores(self) -> Dict[int, float]:
        """The objects: all have a copy or a chunk on the OSD that recovers."""
        share = self.objects * self.object_bytes * self.pool.layout.stored_share
        others = [osd for osd in self.osds if osd != self.osd]
        return {self.osd: share, **dict.fromkeys(others, share * (self.pool.size - 1) / len(others))}

    def hold(self) -> None:
        """Keep degraded what this load's own last window left; what somebody else left is recovered first."""
        if self._names_by_pg:
            super().hold()

    def prepare(self) -> None:
        """Make every object degraded, unless they are. The OSD is away meanwhile: do not run clients yet."""
        if self.pool.ensure():
            # deleting a copy waits for the slot that a PG keeps which norecover holds, so it would wait for ever
            wait_for("PGs that moved home are deleted", lambda: self.pool.without_strays(self.pool.pgs()), timeout=300)
        for flag in self.held_by:
            self.flags.set(flag)
        names = self._whole_objects()
        if len(names) <= 0.05 * self.objects:
            return
        self.tell(f"osd.{self.osd} stops, so that it misses writes")
        self.lab.stop_osd(self.osd)
        try:
            wait_for(f"osd.{self.osd} is seen down", lambda: self.osd not in self._up(), timeout=60, pause=0.2)
            # the PGs have to notice as well, or their writes wait for the OSD that left
            write_in_batches(self.pool, names, self.object_bytes, self.tell)
        finally:
            self.lab.start_osd(self.osd)
        wait_for(f"osd.{self.osd} is up", lambda: self.osd in self._up(), timeout=90, pause=0.2)
        wait_for("the PGs are active", self._active, timeout=60, pause=0.3)
        self.tell(f"{self.pool.name}: {self._degraded_objects():.0f} objects degraded, held by norecover")

    def _whole_objects(self) -> List[str]:
        """Names of the objects that are not degraded; they move to the end of their PGs' order."""
        if not self._names_by_pg:
            if self._degraded_objects() >= 0.95 * self.objects:
                return []
            prefix = f"object-{self.object_bytes}"
            for name, pgid in self.session.place(self.pool.name, prefix, self.osd, self.objects):
                self._names_by_pg.setdefault(pgid, []).append(name)
            return [name for names in self._names_by_pg.values() for name in names]
        objects = []
        for pg in self.pool.pgs():
            names = self._names_by_pg.get(pg["pgid"], [])
            whole = max(0, len(names) - int(total([pg], "num_objects_degraded")))
            objects += names[:whole]
            self._names_by_pg[pg["pgid"]] = names[whole:] + names[:whole]
        return objects

    def lasts_s(self) -> float:
        """The one OSD that misses objects takes them in, and does nothing else."""
        drive = slowest_drive(self.session, self.osds)
        return self.objects / drive.moved_objects_s(self.pool.layout, self.object_bytes)

    def read(self) -> WorkReading:
        """From the primaries' statistics."""
        pgs = self.pool.pgs()
        counters = {"objects": total(pgs, "num_objects_recovered"), "bytes": total(pgs, "num_bytes_recovered")}
        return WorkReading(counters, total(pgs, "num_objects_degraded"))

    def release(self) -> None:
        """Clear norecover, also one that an operator had set: `halt` sets that one again."""
        self.flags.clear("norecover")

    def halt(self) -> None:
        """Flags as they were before; what is left recovers by itself."""
        try:
            self.flags.restore()
        finally:
            if self.osd not in self._up():
                self.lab.start_osd(self.osd)

    def cleanup(self) -> None:
        """Also the flags of a run that did not live to clear them."""
        super().cleanup()
        for flag in self.held_by:
            self.flags.drop(flag)

    def _degraded_objects(self) -> float:
        return total(self.pool.pgs(), "num_objects_degraded")

    def _up(self) -> List[int]:
        return [int(entry["osd"]) for entry in self.session.mon("osd dump")["osds"] if entry["up"]]

    def _active(self) -> bool:
        pgs = self.pool.pgs()
        # up, not acting: under async recovery the OSD is not in the acting set yet
        ready = [pg for pg in pgs if "active" in pg["state"] and len(pg["up"]) == self.pool.size]
        return len(ready) == self.pool.pg_count
