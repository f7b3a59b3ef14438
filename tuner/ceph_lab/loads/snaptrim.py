"""Clones to trim: pool snapshots, objects overwritten after each, and the snapshots removed while nosnaptrim holds.

An object has as many clones as there are snapshots, so that many clones need little space. `start` clears nosnaptrim;
what a window left is for the next, and what it trimmed is made again PG by PG, so that each window begins with the same
work in each. An overwrite makes a clone of the object whatever its length; a full one also gives the clone its own
space, whose freeing is part of the work, as in the published measurements.
"""

from __future__ import annotations

import time
from typing import ClassVar, Dict, List, Mapping, Optional

from ceph_lab.loads import LabUnderLoad
from ceph_lab.loads.background import BackgroundLoad, WorkReading, wait_for
from ceph_lab.loads.drive_speed import slowest_drive
from ceph_lab.loads.layout import PoolLayout, layout_of
from ceph_lab.loads.pools import LoadPool, Tell, silent, total, write_in_batches
from ceph_lab.loads.session import LabSession

REPLICAS = 3
PGS = 16
"""So few that no two of an OSD with Ceph's eight shards share one: they would trim at half the speed, by chance."""


class SnaptrimLoad(BackgroundLoad):
    """Trimming of clones of `objects` objects, by default one of each."""

    name = "snaptrim"
    rates: ClassVar[Dict[str, str]] = {"snaptrim.objects_s": "objects"}

    held_by = ("nosnaptrim",)

    def __init__(
        self,
        lab: LabUnderLoad,
        session: LabSession,
        objects: int = 2000,
        object_bytes: int = 1 << 18,
        overwritten_bytes: int = 1 << 12,
        tell: Tell = silent,
        layout: Optional[PoolLayout] = None,
        clones: Optional[int] = None,
    ) -> None:
        pool_layout = (layout or layout_of(lab, "", "", REPLICAS)).with_pgs(PGS)
        self.osds = pool_layout.osds(lab)
        super().__init__(session, LoadPool(session, "snaptrim", pool_layout, self.osds), object_bytes, tell)
        self.objects = objects
        self.clones = clones or objects
        self.overwritten_bytes = min(overwritten_bytes, object_bytes)
        self._pgids: List[str] = []
        """Of the objects, once they were written."""

    def stores(self) -> Dict[int, float]:
        """The objects, and what each clone has of its own."""
        return self.pool.spread(float(self.objects * self.object_bytes + self.clones * self.overwritten_bytes))

    def prepare(self) -> None:
        """Make clones and snapshots to trim, unless they are there."""
        self.pool.ensure()
        self.hold()
        names = self.fill(self.objects)
        batches = self._lacks(names)
        for batch in batches:
            self._clone(batch)
        if batches:
            wait_for("the clones are counted", lambda: self._clones() >= 0.99 * self.clones, timeout=30)
        for snapshot in self._snapshots():
            self.session.mon("osd pool rmsnap", pool=self.pool.name, snap=snapshot)
        wait_for("the PGs queue the snapshots", self._has_queue, timeout=30)
        self.tell(f"{self.pool.name}: {self._clones():.0f} clones to trim, held by nosnaptrim")

    def _lacks(self, names: List[str]) -> List[List[str]]:
        """Give what is to be cloned once more, in batches, for every PG to have its share of all clones."""
        if not self._pgids:
            self._pgids = self.session.pgs_of(self.pool.name, names)
        there = {pg["pgid"]: int(pg["stats"]["stat_sum"].get("num_object_clones", 0)) for pg in self.pool.pgs()}
        return lacks(dict(zip(names, self._pgids)), there, self.clones)

    def _clone(self, names: List[str]) -> None:
        """One more clone of each of these."""
        self.session.mon("osd pool mksnap", pool=self.pool.name, snap=f"load-{time.time_ns()}")
        offset = None if self.overwritten_bytes == self.object_bytes else 0
        write_in_batches(self.pool, names, self.overwritten_bytes, self.tell, offset)

    def lasts_s(self) -> float:
        """At the speed that was measured without a limit."""
        drive = slowest_drive(self.session, self.osds)
        return self.clones / drive.trimmed_clones_s(self.pool.layout, len(self.osds))

    def read(self) -> WorkReading:
        """Clones that are gone, from the primaries' statistics: `objects_trimmed` starts again at each trim."""
        clones = self._clones()
        return WorkReading({"objects": -clones, "bytes": -clones * self.object_bytes}, clones)

    def release(self) -> None:
        """Clear nosnaptrim."""
        self.flags.clear("nosnaptrim")

    def halt(self) -> None:
        """Flags as they were before; what is left is trimmed by itself."""
        self.flags.restore()

    def cleanup(self) -> None:
        """Snapshots go with the pool."""
        super().cleanup()
        self.flags.drop("nosnaptrim")

    def _clones(self) -> float:
        return total(self.pool.pgs(), "num_object_clones")

    def _snapshots(self) -> List[str]:
        pools = self.session.mon("osd dump")["pools"]
        return [snap["name"] for pool in pools if pool["pool_name"] == self.pool.name for snap in pool["pool_snaps"]]

    def _has_queue(self) -> bool:
        return any(pg["stats"]["snaptrimq_len"] > 0 for pg in self.pool.pgs())


def lacks(pgid_of: Mapping[str, str], there: Mapping[str, int], clones: int) -> List[List[str]]:
    """Give objects to be cloned once more, in batches, for every PG to have its share of so many clones.

    `pgid_of`: object -> its PG, in an order that spreads them over the OSDs; `there`: PG -> its clones. A PG that is
    not in it is left alone.
    """
    members: Dict[str, List[str]] = {}
    for name, pgid in pgid_of.items():
        members.setdefault(pgid, []).append(name)
    lack = {
        pgid: round(clones * len(own) / len(pgid_of)) - there[pgid] for pgid, own in members.items() if pgid in there
    }
    batches = []
    while any(count > 0 for count in lack.values()):
        batch = {name for pgid, count in lack.items() for name in members[pgid][: max(0, count)]}
        batches.append([name for name in pgid_of if name in batch])
        lack = {pgid: count - len(members[pgid]) for pgid, count in lack.items()}
    return batches
