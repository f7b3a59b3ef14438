"""Degraded objects: an OSD misses writes while it is away, and recovers them when `start` clears norecover.

The pool has two replicas and only objects with a replica on that OSD are written, so the write costs each surviving
OSD half of what a size-3 pool would: preparing is what every trial of a tuning loop has to wait for. All copies are
missing on one OSD, whose device is then the bottleneck, as when one failed drive comes back.
"""

from __future__ import annotations

from typing import ClassVar, Dict, List, Optional

from ceph_tuner.errors import LoadFailed
from ceph_tuner.lab.loads import LabUnderLoad
from ceph_tuner.lab.loads.background import BackgroundLoad, Reading, total, wait_for
from ceph_tuner.lab.loads.pools import LoadPool, Tell, silent, write_in_batches
from ceph_tuner.lab.loads.session import Session

PGS = 32
LOG_ENTRIES_PER_PG = 200
"""Below osd_min_pg_log_entries (250): past the log, an OSD is backfilled, in another service class."""


class RecoveryLoad(BackgroundLoad):
    """Recovery of `objects` degraded objects."""

    name = "recovery"
    rates: ClassVar[Dict[str, str]] = {"recovery.objects_s": "objects", "recovery.bytes_s": "bytes"}
    held_by = ("noout", "norecover")

    def __init__(
        self,
        lab: LabUnderLoad,
        session: Session,
        objects: int = 900,
        object_bytes: int = 1 << 20,
        osd: Optional[int] = None,
        tell: Tell = silent,
    ) -> None:
        if len(lab.osds) < 2:
            raise LoadFailed(
                f"recovery needs at least 2 OSDs, the lab {lab.name!r} has {len(lab.osds)}", "take one with more --osds"
            )
        if objects > PGS * LOG_ENTRIES_PER_PG:
            raise LoadFailed(
                f"{objects} objects are more than the logs of {PGS} PGs hold ({PGS * LOG_ENTRIES_PER_PG}): "
                "they would be backfilled; use larger objects",
                "",
            )
        super().__init__(session, LoadPool(session, "recovery", PGS, 2), object_bytes, tell)
        self.lab = lab
        self.objects = objects
        self.osd = max(lab.osds) if osd is None else osd
        self._names: List[str] = []

    def hold(self) -> None:
        """Nothing: what an earlier run left is recovered first, so that every run begins alike.

        Left and written again, objects would pile up to osd_async_recovery_min_cost (100 a PG), beyond which the OSD
        is left out of the acting set while it recovers.
        """

    def prepare(self) -> None:
        """Make every object degraded, unless they are. The OSD is away meanwhile: do not run clients yet."""
        self.pool.ensure()
        for flag in self.held_by:
            self.flags.set(flag)
        if self._degraded() >= 0.95 * self.objects:
            return
        if len(self._names) != self.objects:
            self._names = self.session.place(self.pool.name, f"object-{self.object_bytes}", self.osd, self.objects)
        self.tell(f"osd.{self.osd} stops, so that it misses writes")
        self.lab.stop_osd(self.osd)
        try:
            wait_for(f"osd.{self.osd} is seen down", lambda: self.osd not in self._up(), timeout=60, pause=0.2)
            # the PGs have to notice as well, or their writes wait for the OSD that left
            write_in_batches(self.pool, self._names, self.object_bytes, self.tell)
        finally:
            self.lab.start_osd(self.osd)
        wait_for(f"osd.{self.osd} is up", lambda: self.osd in self._up(), timeout=90, pause=0.2)
        wait_for("the PGs are active", self._active, timeout=60, pause=0.3)
        self.tell(f"{self.pool.name}: {self._degraded():.0f} objects degraded, held by norecover")

    def read(self) -> Reading:
        """From the primaries' statistics."""
        pgs = self.pool.pgs()
        counters = {"objects": total(pgs, "num_objects_recovered"), "bytes": total(pgs, "num_bytes_recovered")}
        return Reading(counters, total(pgs, "num_objects_degraded"))

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

    def _degraded(self) -> float:
        return total(self.pool.pgs(), "num_objects_degraded")

    def _up(self) -> List[int]:
        return [int(entry["osd"]) for entry in self.session.mon("osd dump")["osds"] if entry["up"]]

    def _active(self) -> bool:
        pgs = self.pool.pgs()
        # up, not acting: under async recovery the OSD is not in the acting set yet
        ready = [pg for pg in pgs if "active" in pg["state"] and len(pg["up"]) == self.pool.size]
        return len(ready) == self.pool.pg_count
