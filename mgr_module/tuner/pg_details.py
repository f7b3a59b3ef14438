"""Progress of PGs: all their rows where there are few of them, some in turn where there are many."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from ceph_tuner.core.bounded import ANSWER, MISREAD, read_json
from ceph_tuner.core.measure.pg_documents import deep_scrub_intervals, late_pgs, pg_detail, pg_details, with_progress
from ceph_tuner.core.measure.reading import PgDetail, PoolReading

from .commander import MgrCommander, document
from .proto import Mgr

DETAIL_S = 60.0
TELL_S = 2.0

PG_QUERIES = 8
"""PGs asked per tick where there are too many to look at all of them."""

PGS_KEPT = 20_000
"""PGs of which is kept what was last seen of their snaptrim queue and scrubs."""

QUERY = "query"
INTERVAL = "osd_deep_scrub_interval"


class PgDetails:
    """What is known of the PGs, with the time at which all of them were last looked at."""

    def __init__(self, mgr: Mgr, commander: MgrCommander) -> None:
        self._mgr, self._commander = mgr, commander
        # plain values by PG, and no object for each: Python's garbage collection would go through all of them
        self._snaptrim_queues: Dict[str, int] = {}
        self._deep_scrubbed: Dict[str, str] = {}
        self._scrub_lasted_s: Dict[str, float] = {}
        self._longest_s: Optional[float] = None
        """Longest last scrub of these PGs; None where it is to be looked for among them."""
        self._pgs_at = float("-inf")
        self._place = 0
        self._interval, self._interval_at = 0.0, float("-inf")
        self._pools_own: Mapping[int, float] = {}

    def look(
        self,
        now: float,
        states: Mapping[str, int],
        pools: Callable[[], Mapping[int, int]],
        osd_map: Callable[[], Any],
        chunks: Mapping[int, int],
        limit: int,
        notes: List[str],
    ) -> Dict[str, PgDetail]:
        """The PGs looked at in this tick. `pools` gives the number of PGs of each pool, `osd_map` where they are.

        `chunks` has the data chunks of the erasure-coded pools.
        """
        if sum(states.values()) > limit:
            notes.append(f"more than {limit} PGs: {PG_QUERIES} asked per tick for scrub dates and queues")
            fresh = self._query(self._next(pools()), osd_map(), chunks)
            for pgid, pg in fresh.items():
                # the oldest first, for when there are too many
                self._forget(pgid)
                self._remember(pgid, pg)
            while len(self._snaptrim_queues) > PGS_KEPT:
                self._forget(next(iter(self._snaptrim_queues)))
            return fresh
        busy = any({"scrubbing", "snaptrim", "snaptrim_wait"} & set(state.split("+")) for state in states)
        if not (busy or any(self._snaptrim_queues.values())) and 0 <= now - self._pgs_at < DETAIL_S:
            return {}
        whole, self._pgs_at = pg_details(self._mgr.get("pg_stats")["pg_stats"], chunks), now
        self._snaptrim_queues, self._deep_scrubbed, self._scrub_lasted_s, self._longest_s = {}, {}, {}, None
        for pgid, pg in whole.items():
            self._remember(pgid, pg)
        return whole

    def snaptrim_queue(self, pgs: int) -> Optional[float]:
        """Snapshots waiting to be trimmed; None until each of so many PGs was looked at."""
        return float(sum(self._snaptrim_queues.values())) if self._complete(pgs) else None

    def longest_scrub_s(self) -> Optional[float]:
        """Of the last scrubs of the PGs that were looked at; None before any was."""
        if self._longest_s is None:
            self._longest_s = max(self._scrub_lasted_s.values(), default=None)
        return self._longest_s

    def late(self, pgs: int, now: float, own: Optional[Mapping[int, float]]) -> Optional[float]:
        """PGs past their deep-scrub date; None until each of so many PGs was looked at.

        `own`: pools' own intervals, which win; the monitors are asked for them where that is None.
        """
        count = self._late_counter(now, own) if self._complete(pgs) else None
        return None if count is None else count(self._deep_scrubbed)

    def with_progress(
        self, pools: Dict[int, PoolReading], pgs: int, now: float, own: Optional[Mapping[int, float]]
    ) -> Dict[int, PoolReading]:
        """Add each pool's queue and late PGs, as far as they are known; arguments as for `late`."""
        count = self._late_counter(now, own) if pools and self._complete(pgs) else None
        if count is None:
            return pools
        return with_progress(pools, self._snaptrim_queues, self._deep_scrubbed, count)

    def _late_counter(
        self, now: float, own: Optional[Mapping[int, float]]
    ) -> Optional[Callable[[Mapping[str, str]], float]]:
        """What counts late PGs; None where the interval is not known."""
        if not 0 <= now - self._interval_at < DETAIL_S:
            self._interval, self._interval_at = self._osds_interval(), now
            if own is None:
                self._pools_own = self._pools_intervals()
        interval, of_pools = self._interval, self._pools_own if own is None else own
        return (lambda pgs: float(len(late_pgs(pgs, now, interval, of_pools)))) if interval > 0 else None

    def _pools_intervals(self) -> Mapping[int, float]:
        """What pools go by in its place; what was known before where the monitors do not answer."""
        question = ("mon", "osd pool ls", {"detail": "detail"})
        text = self._commander.tell_many([question], TELL_S).get(question[:2], "")
        try:
            rows = read_json(text, question[1], ANSWER)
            return deep_scrub_intervals({"pools": [{**row, "pool": row["pool_id"]} for row in rows]})
        except MISREAD:
            return self._pools_own

    def _osds_interval(self) -> float:
        """What the OSDs go by; the mgr's own option may differ, and counts where the monitors do not answer."""
        question = ("mon", "config get", {"who": "osd", "key": INTERVAL})
        text = self._commander.tell_many([question], TELL_S).get(question[:2], "")
        try:
            return float(text)
        except ValueError:
            return float(self._mgr.get_ceph_option(INTERVAL) or 0)

    def _complete(self, pgs: int) -> bool:
        return len(self._snaptrim_queues) >= max(pgs, 1)

    def _remember(self, pgid: str, pg: PgDetail) -> None:
        self._snaptrim_queues[pgid] = pg.snaptrim_queue
        self._deep_scrubbed[pgid] = pg.deep_scrubbed
        self._scrub_lasted_s[pgid] = pg.scrub_lasted_s
        if self._longest_s is not None:
            self._longest_s = max(self._longest_s, pg.scrub_lasted_s)

    def _forget(self, pgid: str) -> None:
        lasted_s = self._scrub_lasted_s.pop(pgid, None)
        if lasted_s is not None:
            del self._snaptrim_queues[pgid], self._deep_scrubbed[pgid]
            if lasted_s == self._longest_s:
                self._longest_s = None

    def _next(self, pools: Mapping[int, int]) -> List[Tuple[int, int]]:
        """Pool and number of the PGs whose turn it is. A turn ends with the last PG of the last pool."""
        if self._place >= sum(pools.values()):
            self._place = 0
            for pgid in [pgid for pgid in self._snaptrim_queues if not _exists(pgid, pools)]:
                self._forget(pgid)
        turn: List[Tuple[int, int]] = []
        before = 0
        for pool, count in sorted(pools.items()):
            while before <= self._place < before + count and len(turn) < PG_QUERIES:
                turn.append((pool, self._place - before))
                self._place += 1
            before += count
        return turn

    def _query(self, pgs: List[Tuple[int, int]], osd_map: Any, chunks: Mapping[int, int]) -> Dict[str, PgDetail]:
        details = {}
        for pool, number in pgs:
            osd = osd_map.pg_to_up_acting_osds(pool, number)["acting_primary"]
            if osd < 0:
                continue
            pgid, daemon = f"{pool}.{number:x}", f"osd.{osd}"
            answers = self._commander.tell_many([(daemon, QUERY, {"pgid": pgid})], TELL_S / PG_QUERIES)
            answer = document(answers.get((daemon, QUERY)))
            # an answer of another shape costs this PG's turn, and no sample
            with contextlib.suppress(*MISREAD):
                if answer is not None:
                    row = {**answer["info"]["stats"], "pgid": pgid, "snaptrimq_len": answer["snap_trimq_len"]}
                    details[pgid] = pg_detail(row, chunks)
        return details


def _exists(pgid: str, pools: Mapping[int, int]) -> bool:
    pool, number = pgid.split(".")
    return int(number, 16) < pools.get(int(pool), 0)
