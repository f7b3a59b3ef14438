"""Misplaced objects: an upmap moves one replica of each PG to an OSD that has none, and back the next time.

Two replicas, because with three on three OSDs there is no other place. The objects are written once: swapping costs
two seconds, whatever the amount. Backfilled PGs leave their old copy to be deleted, in the best-effort class as well.
"""

from __future__ import annotations

from typing import Any, ClassVar, Dict, List, Optional

from ceph_lab.loads import LabUnderLoad
from ceph_lab.loads.background import BackgroundLoad, WorkReading, wait_for
from ceph_lab.loads.drive_speed import backfilled_at_once, slowest_drive
from ceph_lab.loads.layout import PoolLayout, layout_of
from ceph_lab.loads.pools import LoadPool, Tell, silent, total, write_in_batches
from ceph_lab.loads.session import LabSession
from ceph_tuner.core.ceph.uninterrupted import uninterrupted
from ceph_tuner.core.errors import LoadFailed

REPLICAS = 2
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
        self,
        lab: LabUnderLoad,
        session: LabSession,
        objects: int = 900,
        object_bytes: int = 1 << 20,
        tell: Tell = silent,
        layout: Optional[PoolLayout] = None,
    ) -> None:
        pool_layout = layout or layout_of(lab, "", "", REPLICAS)
        self.osds = pool_layout.osds(lab)
        # each OSD leads one PG and takes one in: how many go at a time would else be chance of who asks first
        pool_layout = pool_layout.with_pgs(len(self.osds))
        if len(self.osds) == pool_layout.size and not pool_layout.erasure_coded:
            raise LoadFailed(
                f"backfill of {pool_layout} needs at least {pool_layout.size + 1} OSDs, one to move to: "
                f"the lab {lab.name!r} has {len(self.osds)}",
                "take one with more --osds",
            )
        super().__init__(session, LoadPool(session, "backfill", pool_layout, self.osds), object_bytes, tell)
        self.lab = lab
        self.objects = objects

    def stores(self) -> Dict[int, float]:
        """The objects, and the copies that have been moved and not been deleted yet."""
        return self.pool.spread(self.objects * self.object_bytes * (1 + 1 / self.pool.size))

    def prepare(self) -> None:
        """Write the objects once; then make nearly all misplaced, held by nobackfill."""
        self.pool.ensure()
        self._outgrow_logs(self.fill(self.objects))
        self.hold()
        if self._misplaced_objects() >= 0.98 * self.objects:
            return
        # every window begins with all of them misplaced
        self._give_up()
        # a PG that goes back to where its old copy still is needs no backfill, or counts nothing as misplaced
        wait_for("the copies that were left are deleted", self._at_rest, timeout=180)
        self.pool.place({pg["pgid"]: self._other(pg["pgid"], pg["up"]) for pg in self.pool.pgs()})
        wait_for("the objects are misplaced", self._all_misplaced, timeout=180)
        self.tell(f"{self.pool.name}: {self._misplaced_objects():.0f} objects misplaced, held by nobackfill")

    def lasts_s(self) -> float:
        """As fast as a drive takes objects in: one PG at a time with osd_max_backfills at its default, else several."""
        rate = slowest_drive(self.session, self.osds).moved_objects_s(self.pool.layout, self.object_bytes)
        return self.objects / (rate * backfilled_at_once(self.session, self.osds))

    def read(self) -> WorkReading:
        """From the primaries' statistics."""
        pgs = self.pool.pgs()
        counters = {"objects": total(pgs, "num_objects_recovered"), "bytes": total(pgs, "num_bytes_recovered")}
        return WorkReading(counters, self._misplaced_objects(pgs))

    def release(self) -> None:
        """Clear nobackfill."""
        self.flags.clear("nobackfill")

    def halt(self) -> None:
        """Flags as they were before; what is left stays where it is, or a slow drive would work on it for long."""
        self.flags.restore()
        self._give_up()

    def cleanup(self) -> None:
        """Upmaps go with the pool."""
        super().cleanup()
        self.flags.drop("nobackfill")

    def _give_up(self) -> None:
        """What is half-way is at home again at once, where its data are."""
        half_way = [pg for pg in self.pool.pgs() if pg["up"] != pg["acting"]]
        self.pool.place({pg["pgid"]: pg["acting"] for pg in half_way})

    def _other(self, pgid: str, now: List[int]) -> List[int]:
        """Where a PG goes from here: away from its home, or back."""
        home, ids = self.pool.home(pgid), sorted(self.osds)
        if now != home:
            return home
        # the last one moves, never the primary: clients of the pool would notice
        if len(ids) > len(home):
            return [*home[:-1], ids[(ids.index(home[0]) + len(home)) % len(ids)]]
        # no OSD to move to, but which of them has which chunk can change: the last two trade theirs
        return [*home[:-2], home[-1], home[-2]]

    def _outgrow_logs(self, names: List[str]) -> None:
        """Small overwrites, until no PG's log reaches back to its beginning.

        Else the new replica is not backfilled: it takes what is missing from the log, as recovery. A small cluster
        keeps up to 10 000 entries a PG; for the moment it keeps 250, told to the OSDs and not to the database.
        """
        if self._logs_are_trimmed():
            return
        try:
            for osd in self.osds:
                self.session.osd(osd, "config set", var=LOG_KEY, val=["1"])
            for _ in range(LOG_ROUNDS):
                write_in_batches(self.pool, names, min(4096, self.object_bytes), self.tell, offset=0)
                if self._logs_are_trimmed():
                    return
        finally:
            with uninterrupted():
                for osd in self.osds:
                    self.session.osd(osd, "config unset", var=LOG_KEY)
        raise LoadFailed(f"the logs of {self.pool.name} still hold every write: give it more objects", "")

    def _logs_are_trimmed(self) -> bool:
        return all(str(pg["stats"]["log_start"]) != "0'0" for pg in self.pool.pgs())

    def _at_rest(self) -> bool:
        pgs = self.pool.pgs()
        return all(pg["up"] == pg["acting"] for pg in pgs) and self.pool.without_strays(pgs)

    def _all_misplaced(self) -> bool:
        sums = [pg["stats"]["stat_sum"] for pg in self.pool.pgs()]
        return all(entry["num_objects_misplaced"] >= entry["num_objects"] for entry in sums)

    def _misplaced_objects(self, pgs: Optional[List[Dict[str, Any]]] = None) -> float:
        # where two OSDs trade their chunks, Ceph counts an object twice
        copies = 1 if len(self.osds) > self.pool.size else 2
        return total(self.pool.pgs() if pgs is None else pgs, "num_objects_misplaced") / copies
