"""Misplaced objects: upmaps swap one replica of each PG to the OSD that has none, and back the next time.

Two replicas, because with three on three OSDs there is no other place. The objects are written once: swapping costs
two seconds, whatever the amount. Backfilled PGs leave their old copy to be deleted, in the best-effort class as well.
"""

from __future__ import annotations

from typing import Any, ClassVar, Dict, List

from ceph_tuner.errors import LabFailed
from ceph_tuner.lab.loads import LabUnderLoad
from ceph_tuner.lab.loads.background import BackgroundLoad, Reading, total, wait_for
from ceph_tuner.lab.loads.pools import LoadPool, Tell, silent, write_in_batches
from ceph_tuner.lab.loads.session import Session

PGS = 16


class BackfillLoad(BackgroundLoad):
    """Backfill of about `objects` misplaced objects."""

    name = "backfill"
    rates: ClassVar[Dict[str, str]] = {
        "recovery.objects_s": "objects",
        "recovery.bytes_s": "bytes",
        "backfill.objects_s": "objects",
    }

    held_by = ("nobackfill",)

    def __init__(
        self, lab: LabUnderLoad, session: Session, objects: int = 900, object_bytes: int = 1 << 20, tell: Tell = silent
    ) -> None:
        if len(lab.osds) < 3:
            raise LabFailed(f"backfill needs at least 3 OSDs, the lab {lab.name!r} has {len(lab.osds)}")
        super().__init__(session, LoadPool(session, "backfill", PGS, 2), object_bytes, tell)
        self.lab = lab
        self.objects = objects

    def prepare(self) -> None:
        """Write the objects once; then make nearly all misplaced, held by nobackfill."""
        self.pool.ensure()
        wanted = [f"object-{self.object_bytes}.{number}" for number in range(self.objects)]
        if total(self.pool.pgs(), "num_objects") < self.objects:
            write_in_batches(self.pool, wanted, self.object_bytes, self.tell)
        self.hold()
        if self._misplaced() >= 0.9 * self.objects:
            return
        swapped = {entry["pgid"] for entry in self.session.mon("osd dump")["pg_upmap_items"]}
        for pg in self.pool.pgs():
            self._swap(pg, pg["pgid"] in swapped)
        wait_for("the objects are misplaced", lambda: self._misplaced() >= 0.9 * self.objects, timeout=60)
        self.tell(f"{self.pool.name}: {self._misplaced():.0f} objects misplaced, held by nobackfill")

    def read(self) -> Reading:
        """From the primaries' statistics."""
        pgs = self.pool.pgs()
        counters = {"objects": total(pgs, "num_objects_recovered"), "bytes": total(pgs, "num_bytes_recovered")}
        return Reading(counters, total(pgs, "num_objects_misplaced"))

    def release(self) -> None:
        """Clear nobackfill."""
        self.flags.clear("nobackfill")

    def halt(self) -> None:
        """Flags as they were before; what is left moves by itself."""
        self.flags.restore()

    def cleanup(self) -> None:
        """Upmaps go with the pool."""
        super().cleanup()
        self.flags.drop("nobackfill")

    def _swap(self, pg: Dict[str, Any], swapped: bool) -> None:
        if swapped:
            self.session.mon("osd rm-pg-upmap-items", pgid=pg["pgid"])
            return
        spare: List[int] = [osd for osd in self.lab.osds if osd not in pg["up"]]
        # the last replica moves, never the primary: clients of the pool would notice
        self.session.mon("osd pg-upmap-items", pgid=pg["pgid"], id=[pg["up"][-1], spare[0]])

    def _misplaced(self) -> float:
        return total(self.pool.pgs(), "num_objects_misplaced")
