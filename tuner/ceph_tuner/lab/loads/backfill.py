"""Misplaced objects: upmaps swap one replica of each PG to the OSD that has none, and back the next time.

Two replicas, because with three on three OSDs there is no other place. The objects are written once: swapping costs
two seconds, whatever the amount. Backfilled PGs leave their old copy to be deleted, in the best-effort class as well.
"""

from __future__ import annotations

from typing import Any, ClassVar, Dict, List, Set

from ceph_tuner.errors import LoadFailed
from ceph_tuner.lab.loads import LabUnderLoad
from ceph_tuner.lab.loads.background import BackgroundLoad, Reading, total, wait_for
from ceph_tuner.lab.loads.pools import LoadPool, Tell, silent, write_in_batches
from ceph_tuner.lab.loads.session import Session
from ceph_tuner.uninterrupted import uninterrupted

PGS = 4
LOG_KEY = "osd_target_pg_log_entries_per_osd"
LOG_ROUNDS = 40
"""So many overwrites fill any PG's log that has a few objects."""


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
            raise LoadFailed(
                f"backfill needs at least 3 OSDs, the lab {lab.name!r} has {len(lab.osds)}", "take one with more --osds"
            )
        super().__init__(session, LoadPool(session, "backfill", PGS, 2), object_bytes, tell)
        self.lab = lab
        self.objects = objects

    def prepare(self) -> None:
        """Write the objects once; then make nearly all misplaced, held by nobackfill."""
        self.pool.ensure()
        self._outgrow_logs(self.fill(self.objects))
        self.hold()
        if self._misplaced() >= 0.9 * self.objects:
            return
        swapped = {entry["pgid"] for entry in self.session.mon("osd dump")["pg_upmap_items"]}
        # what an earlier run left misplaced stays so: swapped back, it would be at home
        home = [pg for pg in self.pool.pgs() if pg["stats"]["stat_sum"]["num_objects_misplaced"] == 0]
        for pg in home:
            self._swap(pg, pg["pgid"] in swapped)
        moved = {pg["pgid"] for pg in home}
        wait_for("the objects are misplaced", lambda: self._all_misplaced(moved), timeout=180)
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

    def _outgrow_logs(self, names: List[str]) -> None:
        """Small overwrites, until no PG's log reaches back to its beginning.

        Else the new replica is not backfilled: it takes what is missing from the log, as recovery. A small cluster
        keeps up to 10 000 entries a PG; for the moment it keeps 250, told to the OSDs and not to the database.
        """
        if self._trimmed():
            return
        try:
            for osd in self.lab.osds:
                self.session.osd(osd, "config set", var=LOG_KEY, val=["1"])
            for _ in range(LOG_ROUNDS):
                write_in_batches(self.pool, names, min(4096, self.object_bytes), self.tell, offset=0)
                if self._trimmed():
                    return
        finally:
            with uninterrupted():
                for osd in self.lab.osds:
                    self.session.osd(osd, "config unset", var=LOG_KEY)
        raise LoadFailed(f"the logs of {self.pool.name} still hold every write: give it more objects", "")

    def _trimmed(self) -> bool:
        return all(str(pg["stats"]["log_start"]) != "0'0" for pg in self.pool.pgs())

    def _all_misplaced(self, pgids: Set[str]) -> bool:
        sums = [pg["stats"]["stat_sum"] for pg in self.pool.pgs() if pg["pgid"] in pgids]
        return len(sums) == len(pgids) and all(entry["num_objects_misplaced"] >= entry["num_objects"] for entry in sums)

    def _misplaced(self) -> float:
        return total(self.pool.pgs(), "num_objects_misplaced")
