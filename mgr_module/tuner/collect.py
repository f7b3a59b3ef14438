"""A reading of the cluster from inside the mgr: what comes from which getter, and how often.

every tick: sums and states of the PGs, health, and twenty counters of each OSD (1 us each) out of the mgr's memory;
            histograms and queue lengths from at most `histogram_osds` OSDs, asked all at once.
many OSDs:  above `osds_per_tick`, their counters are read in turns and the map in parts (`osds.py`); what Ceph would
            list OSD by OSD (`pg_summary`, the daemons' health metrics) is taken from its sums (`pg_status`, `health`).
            OSDs of the groups that are compared are read every tick, up to a share.
rows of PGs: the mgr turns every PG into Python objects (about 20 us each, holding its lock), so once a minute, and
            each tick only while PGs scrub or trim; where there are many PGs, a few of them in turn (`pg_details.py`).
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Any, Callable, Collection, Deque, Dict, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.bounded import ANSWER, MISREAD, read_json
from ceph_tuner.core.measure.counters import DaemonReport
from ceph_tuner.core.measure.histogram import Histogram
from ceph_tuner.core.measure.metrics import POOL, Scope
from ceph_tuner.core.measure.osd_documents import (
    PLAIN_COUNTERS,
    TIME_COUNTERS,
    osd_latency_in,
    osd_queues_in,
    osds_down,
    slow_ops,
)
from ceph_tuner.core.measure.osd_selection import share_out, spread
from ceph_tuner.core.measure.pg_documents import check_heard, coded_recovered, pool_readings, raw_bytes
from ceph_tuner.core.measure.reading import PoolReading, Reading, Turn, copies_per_object
from ceph_tuner.core.measure.scopes import Members

from .commander import MgrCommander
from .compat import Counters
from .erasure_codes import ErasureCodes
from .osds import Osds
from .pg_details import TELL_S, PgDetails
from .proto import Mgr
from .served import ServedByPool

PERF, HISTOGRAM = "perf dump", "perf histogram dump"

_PLAIN = tuple((name, f"osd.{name}") for name in PLAIN_COUNTERS)
_TIMES = tuple((f"osd.{name}", f"{name}.sum", f"{name}.count") for name in TIME_COUNTERS)

TURN_SHARE, GROUP_SHARE = 0.4, 0.16
"""Shares of `osds_per_tick` for those whose turn it is and for the groups, where not all are read each tick."""


@dataclass(frozen=True)
class TickLimits:
    """What bounds the cost of a tick; the first two are module options."""

    histogram_osds: int = 16
    pg_detail_limit: int = 2000
    osds_per_tick: int = 500
    """OSDs up to which the counters of all of them are read each tick."""


@dataclass(frozen=True)
class _Choice:
    """OSDs that are asked for more than counters, and what that was decided upon."""

    born: Mapping[int, int]
    groups: Sequence[Sequence[int]]
    scopes: Mapping[Scope, Members]
    limits: TickLimits
    parts: Sequence[Collection[int]]
    """OSDs of each group and scope."""
    running: Sequence[Sequence[int]]
    """Of each of these, enough of those that run."""
    osds: Tuple[int, ...]

    def holds(
        self,
        born: Mapping[int, int],
        groups: Sequence[Sequence[int]],
        scopes: Mapping[Scope, Members],
        limits: TickLimits,
    ) -> bool:
        """Whether it would be the same again. Where OSDs are many, maps are other objects once they change."""
        same = self.born is born and (self.scopes is scopes or not (self.scopes or scopes))
        return same and (self.groups, self.limits) == (groups, limits)


@dataclass(frozen=True)
class _Sums:
    """What the mgr knows of the cluster as a whole."""

    totals: Mapping[str, float]
    states: Mapping[str, int]
    pools: Sequence[Mapping[str, Any]]
    slow_ops: float
    down: float
    slow_of: Optional[Mapping[int, float]] = None
    by_pool: Optional[Mapping[str, Mapping[str, int]]] = None
    """States of each pool's PGs; None where they are not seen by pool."""


class Collector:
    """Takes readings. `counters` is what `compat.counters` gives of the module."""

    def __init__(
        self,
        mgr: Mgr,
        commander: MgrCommander,
        counters: Counters,
        limits: Callable[[], TickLimits] = TickLimits,
    ) -> None:
        self._mgr, self._commander, self._counters, self._limits = mgr, commander, counters, limits
        self._osds, self._pgs = Osds(mgr, commander), PgDetails(mgr, commander)
        self._codes = ErasureCodes(commander)
        self._served = ServedByPool(mgr)
        self._turn, self._turn_at = Turn(), 0.0
        self._waits: Deque[float] = deque()
        self._map: Any = None
        self._choice: Optional[_Choice] = None

    @property
    def born(self) -> Mapping[int, int]:
        """Running OSDs, each with the map since which it is up."""
        return self._osds.born

    def read(
        self, now: float, groups: Sequence[Sequence[int]] = (), scopes: Optional[Mapping[Scope, Members]] = None
    ) -> Reading:
        """The cluster at `now`; the OSDs of the groups come first where not all can be asked.

        With scopes it has each pool by itself, and OSDs of each scope among those that are asked.
        """
        scopes = scopes or {}
        limits = self._limits()
        notes: List[str] = []
        self._map = None
        many = self._osds.look(limits.osds_per_tick, self._osd_map, notes)
        sums = self._sums_of_many() if many else self._sums()
        check_heard(sums.states)
        chunks: Optional[Mapping[int, int]] = self._osds.chunks
        if chunks is None:
            chunks = self._codes.look(list(_pgs_of(sums.pools)), notes)
        born = self._osds.born
        if self._choice is None or not self._choice.holds(born, groups, scopes, limits):
            self._choice = _choose(born, groups, scopes, limits, self._choice)
        choice = self._choice
        latency, queues = self._ask(choice.osds, notes)
        self._turn = turn = self._next_turn(now, limits.osds_per_tick, choice.running, choice.osds)
        if turn.count > 1:
            notes.append(f"OSDs are read in {turn.count} turns: the cluster's rates are means of {turn.seconds:.0f} s")
        pgs = sum(sums.states.values())
        fresh = self._pgs.look(
            now, sums.states, lambda: _pgs_of(sums.pools), self._osd_map, chunks, limits.pg_detail_limit, notes
        )
        self._map = None
        in_turn = range(turn.part, max(born, default=0) + 1, turn.count)
        return Reading(
            at=now,
            osds={osd: self._report(osd, born[osd]) for osd in {*turn.always, *in_turn} if osd in born},
            turn=turn,
            up=born,
            latency=latency,
            queues=queues,
            totals=sums.totals,
            raw_bytes=raw_bytes(sums.pools, chunks),
            copies_per_object=copies_per_object(pool["stat_sum"] for pool in sums.pools),
            coded_recovered=coded_recovered(((int(pool["poolid"]), pool["stat_sum"]) for pool in sums.pools), chunks),
            pg_states=sums.states,
            pgs=fresh,
            pools=self._pools_apart(scopes, sums, chunks, now),
            slow_of=sums.slow_of,
            down=self._osds.down_osds,
            longest_scrub_s=self._pgs.longest_scrub_s() if pgs > limits.pg_detail_limit else None,
            snaptrim_queue=self._pgs.snaptrim_queue(pgs),
            slow_ops=sums.slow_ops,
            osds_down=sums.down,
            pgs_late=self._pgs.late(pgs, now, self._osds.scrub_intervals),
            notes=tuple(notes),
        )

    def map_changed(self) -> None:
        """The mgr tells of OSD maps, and has a new one. Any thread may call."""
        self._osds.map_changed()

    def end(self) -> None:
        """Leave nothing behind in the OSDs."""
        self._served.end()

    def _pools_apart(
        self, scopes: Mapping[Scope, Members], sums: _Sums, chunks: Mapping[int, int], now: float
    ) -> Dict[int, PoolReading]:
        pools = {pool for members in scopes.values() for pool in members.pools}
        own = {int(pool["poolid"]): pool["stat_sum"] for pool in sums.pools if int(pool["poolid"]) in pools}
        operations = self._served.look(any(scope.kind == POOL for scope in scopes))
        states = None if sums.by_pool is None else {int(pool): counts for pool, counts in sums.by_pool.items()}
        apart = pool_readings(own, chunks, states, operations)
        return self._pgs.with_progress(apart, sum(sums.states.values()), now, self._osds.scrub_intervals)

    def _osd_map(self) -> Any:
        """The newest OSD map, copied at most once in a tick."""
        self._map = self._map or self._mgr.get_osdmap()
        return self._map

    def _sums(self) -> _Sums:
        summary = self._mgr.get("pg_summary")
        metrics = self._mgr.get_daemon_health_metrics()
        slow = {
            int(daemon.partition(".")[2]): float(sum(entry["value"] for entry in rows if entry["type"] == "SLOW_OPS"))
            for daemon, rows in metrics.items()
            if daemon.startswith("osd.")
        }
        return _Sums(
            dict(summary["pg_stats_sum"]["stat_sum"]),
            {str(state): int(count) for state, count in summary["all"].items()},
            self._pools(),
            sum(slow.values()),
            float(len(self._osds.down_osds or ())),
            slow,
            summary.get("by_pool"),
        )

    def _sums_of_many(self) -> _Sums:
        pools = self._pools()
        totals: Dict[str, float] = {}
        for pool in pools:
            for name, value in pool["stat_sum"].items():
                totals[name] = totals.get(name, 0.0) + value
        states = self._mgr.get("pg_status")["pgs_by_state"]
        health = read_json(self._mgr.get("health")["json"], "health", ANSWER)
        return _Sums(
            totals,
            {str(row["state_name"]): int(row["count"]) for row in states},
            pools,
            slow_ops(health),
            osds_down(health),
        )

    def _pools(self) -> List[Mapping[str, Any]]:
        pools: List[Mapping[str, Any]] = self._mgr.get("pool_stats")["pool_stats"]
        return pools

    def _next_turn(
        self, now: float, per_tick: int, groups: Sequence[Sequence[int]], histogram_osds: Sequence[int]
    ) -> Turn:
        """Whose counters are read now. The number of turns stays while it fits: another one mixes them anew."""
        pause, self._turn_at = now - self._turn_at, now
        if not 0 < pause <= 120:
            # a pause, or the clock was set: nobody knows how old the other turns are
            self._waits.clear()
        else:
            self._waits.append(pause)
        if self._osds.known <= per_tick:
            return Turn()
        size, count = per_tick * TURN_SHARE, self._turn.count
        if not 0.8 <= self._osds.known / (count * size) <= 1.0:
            count = math.ceil(self._osds.known / size)
        while len(self._waits) > count:
            self._waits.popleft()
        seconds = count * sum(self._waits) / len(self._waits) if self._waits else 0.0
        always = frozenset((*share_out(groups, int(per_tick * GROUP_SHARE)), *histogram_osds))
        return Turn((self._turn.part + 1) % count, count, seconds, always)

    def _report(self, osd: int, born: int) -> DaemonReport:
        at, values = 0.0, {}
        read, number = self._counters, str(osd)
        for name, path in _PLAIN:
            point = read("osd", number, path)[path]
            if point:
                at, values[name] = point[0], float(point[1])
        for path, seconds, count in _TIMES:
            point = read("osd", number, path)[path]
            if point and len(point) == 3:
                values[seconds], values[count] = point[1] / 1e9, float(point[2])
        return DaemonReport(at, values, born)

    def _ask(
        self, osds: Tuple[int, ...], notes: List[str]
    ) -> Tuple[Dict[int, Dict[str, Histogram]], Dict[int, Dict[str, float]]]:
        questions: List[Tuple[str, str, Mapping[str, str]]] = []
        for osd in osds:
            questions += [(f"osd.{osd}", HISTOGRAM, {"logger": "osd"}), (f"osd.{osd}", PERF, {})]
        answers = self._commander.tell_many(questions, TELL_S)
        latency, queues, silent = {}, {}, []
        for osd in osds:
            try:
                histograms = osd_latency_in(answers[f"osd.{osd}", HISTOGRAM])
                lengths = osd_queues_in(answers[f"osd.{osd}", PERF])
            except MISREAD:
                silent.append(f"osd.{osd}")
                continue
            latency[osd] = histograms
            if lengths:
                queues[osd] = lengths
        if silent:
            notes.append(f"no histograms of {', '.join(silent[:5])}{' and more' if len(silent) > 5 else ''}")
        return latency, queues


def _choose(
    born: Mapping[int, int],
    groups: Sequence[Sequence[int]],
    scopes: Mapping[Scope, Members],
    limits: TickLimits,
    before: Optional[_Choice] = None,
) -> _Choice:
    """The OSDs of the groups and scopes come first, the same number of each; what is left goes to the others.

    Whose OSDs run as `before` is not gone through again: a list of 10 000 differs from the last in a few.
    """
    # twice what may be asked is enough to choose from
    enough = 2 * max(limits.histogram_osds, limits.osds_per_tick)
    parts = [*groups, *(members.osds for members in scopes.values())]
    if before is not None and (before.parts, before.limits) == (parts, limits):
        difference = born.keys() ^ before.born.keys()
        pairs = zip(parts, before.running)
        candidates = [old if difference.isdisjoint(part) else spread(born.keys() & part, enough) for part, old in pairs]
    else:
        candidates = [spread(born.keys() & part, enough) for part in parts]
    first = share_out(candidates, limits.histogram_osds)
    room = limits.histogram_osds - len(first)
    osds = (*first, *(spread(born.keys() - first, room) if room > 0 else ()))
    return _Choice(born, groups, scopes, limits, parts, candidates, osds)


def _pgs_of(pools: Sequence[Mapping[str, Any]]) -> Dict[int, int]:
    return {int(pool["poolid"]): int(pool.get("num_pg", 0)) for pool in pools}
