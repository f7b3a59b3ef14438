"""A reading of the cluster from inside the mgr: what comes from which getter, and how often.

every tick: `pg_summary`, `osd_map`, health metrics, and some twenty counters of each OSD (1 us each) out of the
            mgr's memory; histograms and queue lengths from at most `histogram_osds` OSDs, asked all at once.
rows of PGs: the mgr turns every PG into Python objects (about 20 us each, holding its lock), so once per `DETAIL_S`,
            and each tick only while PGs scrub or trim. Where there are more PGs than `pg_detail_limit`, a few are
            asked each tick, in turn.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Set, Tuple

from ceph_tuner.counters import Report
from ceph_tuner.histogram import Histogram
from ceph_tuner.reading import (
    PLAIN_COUNTERS,
    TIME_COUNTERS,
    PgDetail,
    Reading,
    late_pgs,
    osd_latency,
    osd_queues,
    pg_detail,
    pg_details,
    spread,
)

from .commander import MgrCommander
from .proto import Mgr

DETAIL_S = 60.0
TELL_S = 2.0
"""A tick does not wait longer for OSDs than this."""

PG_QUERIES = 8
"""PGs asked per tick where there are too many to look at all of them."""

PERF, HISTOGRAM, QUERY = "perf dump", "perf histogram dump", "query"


@dataclass(frozen=True)
class Limits:
    """Module options that bound the cost of a tick."""

    histogram_osds: int = 16
    pg_detail_limit: int = 2000


class Collector:
    """Takes readings. `latest_counter(osd, name)` is `compat.latest_counter` bound to the module."""

    def __init__(
        self,
        mgr: Mgr,
        commander: MgrCommander,
        latest_counter: Callable[[int, str], Tuple[float, ...]],
        limits: Callable[[], Limits] = Limits,
    ) -> None:
        self._mgr, self._commander, self._latest, self._limits = mgr, commander, latest_counter, limits
        self._pgs: Dict[str, PgDetail] = {}
        self._pgs_at = float("-inf")
        self._turn: List[str] = []

    def read(self, now: float) -> Reading:
        """The cluster at `now`."""
        limits = self._limits()
        osd_map = self._mgr.get("osd_map")
        born = {int(osd["osd"]): int(osd["up_from"]) for osd in osd_map["osds"] if osd["up"]}
        summary = self._mgr.get("pg_summary")
        states = {str(state): int(count) for state, count in summary["all"].items()}
        notes: List[str] = []
        chosen = spread(born, limits.histogram_osds)
        latency, queues = self._ask(chosen, notes)
        fresh = self._details(now, states, osd_map, limits, notes)
        complete = bool(self._pgs) and len(self._pgs) >= sum(states.values())
        interval = float(self._mgr.get_ceph_option("osd_deep_scrub_interval") or 0)
        return Reading(
            at=now,
            osds={osd: self._report(osd, since) for osd, since in born.items()},
            latency=latency,
            queues=queues,
            totals=dict(summary["pg_stats_sum"]["stat_sum"]),
            pg_states=states,
            pgs=fresh,
            snaptrim_queue=float(sum(pg.snaptrim_queue for pg in self._pgs.values())) if complete else None,
            slow_ops=self._slow_ops(),
            osds_down=float(sum(1 for osd in osd_map["osds"] if osd["in"] and not osd["up"])),
            pgs_late=float(late_pgs(self._pgs, now, interval)) if complete and interval > 0 else None,
            notes=tuple(notes),
        )

    def _report(self, osd: int, born: int) -> Report:
        at, values = 0.0, {}
        for name in PLAIN_COUNTERS:
            point = self._latest(osd, f"osd.{name}")
            if point:
                at, values[name] = point[0], float(point[1])
        for name in TIME_COUNTERS:
            point = self._latest(osd, f"osd.{name}")
            if len(point) == 3:
                values[f"{name}.sum"], values[f"{name}.count"] = point[1] / 1e9, float(point[2])
        return Report(at, values, born)

    def _ask(
        self, osds: Tuple[int, ...], notes: List[str]
    ) -> Tuple[Dict[int, Dict[str, Histogram]], Dict[int, Dict[str, float]]]:
        asked: List[Tuple[str, str, Mapping[str, str]]] = []
        for osd in osds:
            asked += [(f"osd.{osd}", HISTOGRAM, {"logger": "osd"}), (f"osd.{osd}", PERF, {})]
        answers = self._commander.tell_many(asked, TELL_S)
        latency, queues, silent = {}, {}, []
        for osd in osds:
            histograms = _document(answers.get((f"osd.{osd}", HISTOGRAM)))
            counters = _document(answers.get((f"osd.{osd}", PERF)))
            if histograms is None or counters is None:
                silent.append(f"osd.{osd}")
                continue
            latency[osd] = osd_latency(histograms)
            waiting = osd_queues(counters)
            if waiting:
                queues[osd] = waiting
        if silent:
            notes.append(f"no histograms of {', '.join(silent[:5])}{' and more' if len(silent) > 5 else ''}")
        return latency, queues

    def _details(
        self, now: float, states: Mapping[str, int], osd_map: Mapping[str, Any], limits: Limits, notes: List[str]
    ) -> Dict[str, PgDetail]:
        """The PGs looked at in this tick; all that is known of the others stays in `_pgs`."""
        busy = any({"scrubbing", "snaptrim", "snaptrim_wait"} & set(state.split("+")) for state in states)
        queued = any(pg.snaptrim_queue for pg in self._pgs.values())
        if sum(states.values()) <= limits.pg_detail_limit:
            if not (busy or queued) and now - self._pgs_at < DETAIL_S:
                return {}
            self._pgs, self._pgs_at = pg_details(self._mgr.get("pg_stats")["pg_stats"]), now
            return self._pgs
        notes.append(f"more than {limits.pg_detail_limit} PGs: {PG_QUERIES} asked per tick for scrub dates and queues")
        fresh = self._query(self._next_pgs())
        self._pgs.update(fresh)
        return fresh

    def _next_pgs(self) -> List[str]:
        if not self._turn:
            # 0.5 us a PG
            self._turn = sorted(self._mgr.get("pg_progress")["pgs"])
            gone: Set[str] = set(self._pgs) - set(self._turn)
            for pgid in gone:
                del self._pgs[pgid]
        taken, self._turn = self._turn[:PG_QUERIES], self._turn[PG_QUERIES:]
        return taken

    def _query(self, pgids: List[str]) -> Dict[str, PgDetail]:
        osd_map = self._mgr.get_osdmap()
        primary = {}
        for pgid in pgids:
            pool, seed = pgid.split(".")
            osd = osd_map.pg_to_up_acting_osds(int(pool), int(seed, 16))["acting_primary"]
            if osd >= 0:
                primary[pgid] = osd
        found = {}
        for pgid, osd in primary.items():
            answers = self._commander.tell_many([(f"osd.{osd}", QUERY, {"pgid": pgid})], TELL_S / PG_QUERIES)
            document = _document(answers.get((f"osd.{osd}", QUERY)))
            if document is not None:
                found[pgid] = pg_detail(
                    {**document["info"]["stats"], "pgid": pgid, "snaptrimq_len": document["snap_trimq_len"]}
                )
        return found

    def _slow_ops(self) -> Optional[float]:
        metrics = self._mgr.get_daemon_health_metrics()
        return float(sum(entry["value"] for rows in metrics.values() for entry in rows if entry["type"] == "SLOW_OPS"))


def _document(text: Optional[str]) -> Optional[Dict[str, Any]]:
    try:
        found = json.loads(text or "")
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
