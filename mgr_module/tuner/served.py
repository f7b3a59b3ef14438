"""What the OSDs do for clients pool by pool: a query that Ceph has each OSD answer with its reports to the mgr."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional

from ceph_tuner.core.measure.reading import ServedOperations

from .proto import Mgr

_COUNTERS = ("read_ops", "read_latency", "write_ops", "write_latency")
_QUERY = {
    "key_descriptor": [{"type": "pool_id", "regex": "^(.+)$"}],
    "performance_counter_descriptors": list(_COUNTERS),
}
NS = 1e-9


class ServedByPool:
    """Has the OSDs count by pool while somebody wants it: it costs each operation a look-up in the OSD."""

    def __init__(self, mgr: Mgr) -> None:
        self._mgr = mgr
        self._query: Optional[int] = None
        self._total: Dict[int, ServedOperations] = {}

    def look(self, demand: bool) -> Dict[int, ServedOperations]:
        """Pool -> what was done for it since the query began; empty without a demand."""
        if not demand:
            self.end()
            return {}
        if self._query is None:
            self._query = self._mgr.add_osd_perf_query(_QUERY)
            if self._query is None:
                return {}
        # the mgr gives what the OSDs reported since it was asked last, and forgets it; they report every 5 s
        rows: List[Mapping[str, Any]] = self._mgr.get_osd_perf_counters(self._query)["counters"]
        for row in rows:
            pool, more = int(row["k"][0][0]), _sums_of(row["c"])
            before = self._total.get(pool, ServedOperations(0, 0.0, 0, 0.0))
            self._total[pool] = ServedOperations(
                before.reads + more.reads,
                before.read_s + more.read_s,
                before.writes + more.writes,
                before.write_s + more.write_s,
            )
        return dict(self._total)

    def end(self) -> None:
        """Have them count no more."""
        if self._query is not None:
            query, self._query, self._total = self._query, None, {}
            self._mgr.remove_osd_perf_query(query)


def _sums_of(counters: Any) -> ServedOperations:
    """Each counter is a sum and a count; latencies are sums of nanoseconds."""
    values = {name: int(counter[0]) for name, counter in zip(_COUNTERS, counters)}
    return ServedOperations(
        values["read_ops"], NS * values["read_latency"], values["write_ops"], NS * values["write_latency"]
    )
