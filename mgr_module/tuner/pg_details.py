"""Progress of PGs: all their rows where there are few of them, some in turn where there are many."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from ceph_tuner.reading import PgDetail, PoolReading, late_pgs, pg_detail, pg_details, with_progress

from .commander import MgrCommander, document
from .proto import Mgr

DETAIL_S = 60.0
TELL_S = 2.0

PG_QUERIES = 8
"""PGs asked per tick where there are too many to look at all of them."""

PGS_KEPT = 20_000
"""PGs whose last details are kept, half a kilobyte each."""

QUERY = "query"
INTERVAL = "osd_deep_scrub_interval"


class PgDetails:
    """What is known of the PGs, with the time at which all of them were last looked at."""

    def __init__(self, mgr: Mgr, commander: MgrCommander) -> None:
        self._mgr, self._commander = mgr, commander
        self._pgs: Dict[str, PgDetail] = {}
        self._longest_s: Optional[float] = None
        """Longest last scrub of these PGs; None where it is to be looked for among them."""
        self._pgs_at = float("-inf")
        self._place = 0
        self._interval, self._interval_at = 0.0, float("-inf")

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
                self._pgs[pgid] = pg
                if self._longest_s is not None:
                    self._longest_s = max(self._longest_s, pg.scrub_lasted_s)
            while len(self._pgs) > PGS_KEPT:
                self._forget(next(iter(self._pgs)))
            return fresh
        busy = any({"scrubbing", "snaptrim", "snaptrim_wait"} & set(state.split("+")) for state in states)
        queued = any(pg.snaptrim_queue for pg in self._pgs.values())
        if not (busy or queued) and 0 <= now - self._pgs_at < DETAIL_S:
            return {}
        self._pgs, self._pgs_at = pg_details(self._mgr.get("pg_stats")["pg_stats"], chunks), now
        self._longest_s = None
        return self._pgs

    def snaptrim_queue(self, pgs: int) -> Optional[float]:
        """Snapshots waiting to be trimmed; None until each of so many PGs was looked at."""
        return float(sum(pg.snaptrim_queue for pg in self._pgs.values())) if self._complete(pgs) else None

    def longest_scrub_s(self) -> Optional[float]:
        """Of the last scrubs of the PGs that were looked at; None before any was."""
        if self._longest_s is None:
            self._longest_s = max((pg.scrub_lasted_s for pg in self._pgs.values()), default=None)
        return self._longest_s

    def late(self, pgs: int, now: float, own: Mapping[int, float]) -> Optional[float]:
        """PGs past their deep-scrub date; None until each of so many PGs was looked at. `own`: pools' own intervals."""
        count = self._late_counter(now, own) if self._complete(pgs) else None
        return None if count is None else count(self._pgs)

    def with_progress(
        self, pools: Dict[int, PoolReading], pgs: int, now: float, own: Mapping[int, float]
    ) -> Dict[int, PoolReading]:
        """Add each pool's queue and late PGs, as far as they are known; arguments as for `late`."""
        count = self._late_counter(now, own) if pools and self._complete(pgs) else None
        return pools if count is None else with_progress(pools, self._pgs, count)

    def _late_counter(
        self, now: float, own: Mapping[int, float]
    ) -> Optional[Callable[[Mapping[str, PgDetail]], float]]:
        """What counts late PGs; None where the interval is not known."""
        if not 0 <= now - self._interval_at < DETAIL_S:
            self._interval, self._interval_at = self._osds_interval(), now
        interval = self._interval
        return (lambda pgs: float(late_pgs(pgs, now, interval, own))) if interval > 0 else None

    def _osds_interval(self) -> float:
        """What the OSDs go by; the mgr's own option may differ, and counts where the monitors do not answer."""
        asked = ("mon", "config get", {"who": "osd", "key": INTERVAL})
        text = self._commander.tell_many([asked], TELL_S).get(asked[:2], "")
        try:
            return float(text)
        except ValueError:
            return float(self._mgr.get_ceph_option(INTERVAL) or 0)

    def _complete(self, pgs: int) -> bool:
        return bool(self._pgs) and len(self._pgs) >= pgs

    def _forget(self, pgid: str) -> None:
        gone = self._pgs.pop(pgid, None)
        if gone is not None and self._longest_s is not None and gone.scrub_lasted_s >= self._longest_s:
            self._longest_s = None

    def _next(self, pools: Mapping[int, int]) -> List[Tuple[int, int]]:
        """Pool and number of the PGs whose turn it is. A turn ends with the last PG of the last pool."""
        if self._place >= sum(pools.values()):
            self._place = 0
            for pgid in [pgid for pgid in self._pgs if not _exists(pgid, pools)]:
                self._forget(pgid)
        taken: List[Tuple[int, int]] = []
        before = 0
        for pool, count in sorted(pools.items()):
            while before <= self._place < before + count and len(taken) < PG_QUERIES:
                taken.append((pool, self._place - before))
                self._place += 1
            before += count
        return taken

    def _query(self, pgs: List[Tuple[int, int]], osd_map: Any, chunks: Mapping[int, int]) -> Dict[str, PgDetail]:
        found = {}
        for pool, number in pgs:
            osd = osd_map.pg_to_up_acting_osds(pool, number)["acting_primary"]
            if osd < 0:
                continue
            pgid, daemon = f"{pool}.{number:x}", f"osd.{osd}"
            answers = self._commander.tell_many([(daemon, QUERY, {"pgid": pgid})], TELL_S / PG_QUERIES)
            answer = document(answers.get((daemon, QUERY)))
            if answer is not None:
                row = {**answer["info"]["stats"], "pgid": pgid, "snaptrimq_len": answer["snap_trimq_len"]}
                found[pgid] = pg_detail(row, chunks)
        return found


def _exists(pgid: str, pools: Mapping[int, int]) -> bool:
    pool, number = pgid.split(".")
    return int(number, 16) < pools.get(int(pool), 0)
