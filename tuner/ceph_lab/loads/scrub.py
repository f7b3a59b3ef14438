"""Deep scrub of objects that are written once and scrubbed again and again.

Periodic scrubs (due by their date) obey osd_max_scrubs; requested ones (`ceph osd pool deep-scrub`) ignore it, and all
PGs are scrubbed at once. PGs are scheduled again as they finish, so the work has no end.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Dict, List, Optional

from ceph_lab.loads import LabUnderLoad
from ceph_lab.loads.background import BackgroundLoad, WorkReading, wait_for
from ceph_lab.loads.layout import PoolLayout, layout_of
from ceph_lab.loads.pools import LoadPool, Tell, ignore_refusal, silent
from ceph_lab.loads.session import LabSession
from ceph_tuner.core.errors import CommandFailed, LoadFailed

REPLICAS = 3
PGS = 16
KINDS = ("periodic", "requested")
PERIODIC_COMMANDS = ("schedule-deep-scrub", "deep_scrub")
"""`ceph tell PGID …`, forging the date of the last deep scrub: Tentacle's name, and Reef's."""

NOTHING_OLD = -1

OVERDUE_S, TURN_S = 1_000_000, 60
"""The age of the first PG in line, and how much younger each next one is: late by both releases' defaults (7 days, and
half as much again by chance), and not late enough for a health warning (12 days)."""

TURNS = 500

JUST_NOW_S = 1
"""The youngest age that is taken: with 0, both releases forge a date that is due."""


class ScrubLoad(BackgroundLoad):
    """Deep scrub of `objects` objects in `pgs` PGs, over and over."""

    name = "scrub"
    rates: ClassVar[Dict[str, str]] = {"scrub.objects_s": "objects", "scrub.bytes_s": "bytes"}

    def __init__(
        self,
        lab: LabUnderLoad,
        session: LabSession,
        kind: str = "periodic",
        objects: int = 1200,
        object_bytes: int = 1 << 20,
        pgs: int = PGS,
        tell: Tell = silent,
        layout: Optional[PoolLayout] = None,
    ) -> None:
        if kind not in KINDS:
            raise LoadFailed(f"scrub kind {kind!r}: expected one of {', '.join(KINDS)}")
        pool_layout = (layout or layout_of(lab, "", "", REPLICAS)).with_pgs(pgs)
        self.osds = pool_layout.osds(lab)
        super().__init__(session, LoadPool(session, "scrub", pool_layout, self.osds), object_bytes, tell)
        self.kind = kind
        self.objects = objects
        self._command: Optional[str] = None
        self._finished = 0.0
        self._stamps: Dict[str, str] = {}
        self._old: Dict[str, int] = {}
        self._most = 0.0
        self._turn = 0

    def stores(self) -> Dict[int, float]:
        """Bytes that the objects take of each OSD."""
        return self.pool.spread(float(self.objects * self.object_bytes))

    def prepare(self) -> None:
        """Write the objects once."""
        self.pool.ensure()
        self.fill(self.objects)

    def start(self) -> None:
        """Begin to count PGs and objects anew, then let the scrubs begin."""
        self._finished, self._most, self._stamps, self._old, self._turn = 0.0, 0.0, {}, {}, 0
        super().start()

    def read(self) -> WorkReading:
        """PGs that finished count whole, the running ones by `objects_scrubbed`; a finished PG is scheduled again."""
        objects_under_way, done_pgs = 0.0, []
        for pg in self.pool.pgs():
            pgid, stats = pg["pgid"], pg["stats"]
            stamp = str(stats["last_deep_scrub_stamp"])
            if self._stamps.setdefault(pgid, stamp) != stamp:
                self._stamps[pgid] = stamp
                self._finished += stats["stat_sum"]["num_objects"]
                self._old[pgid] = stats["objects_scrubbed"]
                done_pgs.append(pgid)
            elif self._old.setdefault(pgid, stats["objects_scrubbed"]) == stats["objects_scrubbed"]:
                # still the count of the scrub before: a new one has not begun to count
                continue
            elif pg["scrubber"].get("active"):
                self._old[pgid] = NOTHING_OLD
                objects_under_way += stats["objects_scrubbed"]
        if self._started is not None:
            self._schedule(done_pgs)
        # a PG that the last reading saw halfway may be between two states now
        self._most = max(self._most, self._finished + objects_under_way)
        return WorkReading({"objects": self._most, "bytes": self._bytes_scrubbed()}, None)

    def release(self) -> None:
        """Allow scrubs, also where an operator forbade them (`halt` forbids them again), and schedule every PG."""
        for flag in ("noscrub", "nodeep-scrub"):
            self.flags.clear(flag)
        self._schedule(self.pool.pgids)

    def halt(self) -> None:
        """End running scrubs and take back the dates, so that none begins by itself."""
        try:
            if self.pool.pgids:
                for flag in ("noscrub", "nodeep-scrub"):
                    self.flags.set(flag)
                for pgid in self.pool.pgids:
                    # Tentacle can abort a requested scrub; elsewhere it runs to its end
                    ignore_refusal(partial(self.session.pg, pgid, "scrub-abort"))
                    if self.kind == "periodic":
                        self.set_date(pgid, JUST_NOW_S)
                wait_for("the scrubs have ended", self._at_rest, timeout=120)
        finally:
            self.flags.restore()

    def cleanup(self) -> None:
        """Remove the pool: its scrubs end with it. Whether an interrupted run had found noscrub set, nobody knows."""
        self._started = None
        self.pool.remove()
        self.flags.restore()

    def _schedule(self, pgids: List[str]) -> None:
        for pgid in pgids:
            if self.kind == "requested":
                self.session.mgr("pg deep-scrub", pgid=pgid)
            else:
                # one after the other, in the same order each time: which PGs are scrubbed side by side, and so share a
                # queue or do not, decides how fast it goes
                self.set_date(pgid, OVERDUE_S - TURN_S * min(self._turn, TURNS))
                self._turn += 1

    def set_date(self, pgid: str, age_s: int) -> None:
        """Pretend that the last deep scrub was so long ago."""
        for command in (self._command,) if self._command else PERIODIC_COMMANDS:
            try:
                answer = self.session.pg(pgid, command, time=age_s)
            except CommandFailed:
                continue
            self._command = command
            # the forged date must not be taken for a finished scrub
            self._stamps[pgid] = str(answer["stamp"])
            return
        raise LoadFailed(f"PG {pgid} knows none of {', '.join(PERIODIC_COMMANDS)}")

    def _at_rest(self) -> bool:
        return not any(pg["scrubber"].get("active") for pg in self.pool.pgs())

    def _bytes_scrubbed(self) -> float:
        """Tentacle's OSDs count what deep scrub reads, and nobody writes here; before it, whole objects."""
        counts = [self._counter(osd) for osd in self.osds]
        if all(value is not None for value in counts):
            return sum(value for value in counts if value is not None)
        return self._whole_objects()

    def _whole_objects(self) -> float:
        """Bytes of the objects that were scrubbed, on every OSD of a PG."""
        return self._most * self.object_bytes * self.pool.size * self.pool.layout.stored_share

    def _counter(self, osd: int) -> Optional[float]:
        counters: Any = self.session.osd(osd, "perf dump", logger="osd").get("osd", {})
        value = counters.get(f"scrub_{'ec' if self.pool.layout.erasure_coded else 'replicated'}_read_bytes")
        return None if value is None else float(value)
