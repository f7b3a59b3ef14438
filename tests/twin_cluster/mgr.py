"""What a ceph-mgr on a twin would offer its modules: the plugin's own Protocol (`mgr_module/tuner/proto.py`).

OSDs report to the mgr every `mgr_stats_period`, so its counters are up to 5 s old; what it is told goes on to the twin.
"""

from __future__ import annotations

import errno
import json
from collections import Counter
from typing import Any, Dict, List, Mapping, Optional, Protocol, Sequence

from ceph_tuner.core.errors import CommandFailed
from ceph_tuner.core.knobs.catalogue import KNOBS
from twin_cluster.cluster import TwinCommander
from twin_cluster.options import known, stock, typed

STATS_PERIOD_S = 5.0

OF_THE_MGR = ("pg ls",)
"""Commands that the mgr itself answers: a module cannot reach them by way of the monitor."""


class CommandAnswer(Protocol):
    """A command's result, completed by whoever has the answer: Ceph's CommandResult."""

    def complete(self, r: int, outb: str, outs: str) -> None:
        """Errno, output and error text."""


class TwinMgr:
    """The methods of MgrModule that the plugin uses, on a twin."""

    def __init__(self, commander: TwinCommander, period_s: float = STATS_PERIOD_S) -> None:
        self._twin, self._period_s = commander, period_s
        self._reported_at = float("-inf")
        self._reports: Dict[int, Dict[str, Any]] = {}
        self._listed_at = float("-inf")
        self._listed: List[Dict[str, Any]] = []
        self.health_checks: Dict[str, Mapping[str, Any]] = {}
        self._epoch = 0

    def get(self, data_name: str) -> Any:
        """One of the mgr's own documents."""
        if data_name == "osd_map":
            return self._ask("osd dump")
        if data_name == "pg_stats":
            return {"pg_stats": self._rows()}
        if data_name == "pg_summary":
            return self._summary()
        if data_name == "pool_stats":
            return {"pool_stats": self._pools()}
        raise KeyError(f"the twin's mgr has no {data_name!r}")

    def get_ceph_option(self, key: str) -> Any:
        """An option as the mgr itself sees it: nobody sets any for it here."""
        if known(key, self._twin.release, self._twin.version) is None:
            return None
        return typed(KNOBS[key], stock(self._twin.release, self._twin.version)[key], self._twin.release)

    def get_metadata(self, svc_type: str, svc_id: str) -> Optional[Dict[str, str]]:
        """What an OSD says of itself."""
        kinds = [
            osd.place.device_class for osd in self._twin.osds if svc_type == "osd" and str(osd.place.osd) == svc_id
        ]
        return {"rotational": "1" if kinds[0] == "hdd" else "0"} if kinds else None

    def get_osdmap(self) -> TwinMgr:
        """The newest OSD map."""
        return self

    def get_epoch(self) -> int:
        """Of the OSD map: each look finds another one."""
        self._epoch += 1
        return self._epoch

    def pg_to_up_acting_osds(self, pool: int, seed: int) -> Dict[str, Any]:
        """Of the OSD map: where a PG is."""
        for row in self._rows():
            if row["pgid"] == f"{pool}.{seed:x}":
                acting, primary = row["acting"], row["acting_primary"]
                return {"up": acting, "acting": acting, "up_primary": primary, "acting_primary": primary}
        return {"up": [], "acting": [], "up_primary": -1, "acting_primary": -1}

    def get_latest_unlabeled_counter(self, svc_type: str, svc_name: str, path: str) -> Dict[str, Sequence[float]]:
        """A counter as the OSD last reported it: `[stamp, value]`, or `[stamp, nanoseconds, count]` of a time."""
        if self._twin.now() - self._reported_at >= self._period_s:
            self._reports = {
                osd.place.osd: json.loads(self._twin.tell(f"osd.{osd.place.osd}", "perf dump", {}))
                for osd in self._twin.osds
            }
            self._reported_at = self._twin.now()
        section, _, name = path.partition(".")
        value = self._reports.get(int(svc_name), {}).get(section, {}).get(name) if svc_type == "osd" else None
        if value is None:
            return {path: []}
        if isinstance(value, dict):
            return {path: [self._reported_at, value["sum"] * 1e9, value["avgcount"]]}
        return {path: [self._reported_at, value]}

    def send_command(
        self, result: CommandAnswer, svc_type: str, svc_id: str, command: str, tag: str, inbuf: Optional[str] = None
    ) -> None:
        """Run a command of the monitors or of an OSD, and complete the result with its answer."""
        arguments = {name: str(value) for name, value in json.loads(command).items()}
        prefix = arguments.pop("prefix")
        try:
            if svc_type == "mon" and prefix in OF_THE_MGR:
                result.complete(-errno.EACCES, "", "access denied")
            elif svc_type == "mon":
                result.complete(0, self._twin.mon(prefix, arguments, inbuf or ""), "")
            else:
                result.complete(0, self._twin.tell(f"{svc_type}.{svc_id}", prefix, arguments), "")
        except CommandFailed as failure:
            result.complete(failure.code, "", failure.message)

    def add_osd_perf_query(self, query: Mapping[str, Any]) -> Optional[int]:
        """The twin's OSDs do not count by key."""
        return None

    def get_osd_perf_counters(self, query_id: int) -> Mapping[str, Any]:
        """What they counted: nothing."""
        return {"counters": []}

    def remove_osd_perf_query(self, query_id: int) -> None:
        """There is none."""

    def set_health_checks(self, checks: Mapping[str, Mapping[str, Any]]) -> None:
        """Replace the module's health checks."""
        self.health_checks = dict(checks)

    def get_daemon_health_metrics(self) -> Dict[str, List[Dict[str, Any]]]:
        """Health metrics by daemon."""
        return {
            f"osd.{osd}": [{"type": "SLOW_OPS", "value": count}, {"type": "PENDING_CREATING_PGS", "value": 0}]
            for osd, count in self._twin.slow_operations().items()
        }

    def _summary(self) -> Dict[str, Any]:
        rows = self._rows()
        states: Dict[str, int] = {}
        totals: Dict[str, int] = {}
        by_osd: Dict[str, Counter[str]] = {}
        by_pool: Dict[str, Counter[str]] = {}
        for row in rows:
            by_pool.setdefault(row["pgid"].split(".")[0], Counter())[row["state"]] += 1
            states[row["state"]] = states.get(row["state"], 0) + 1
            for osd in row["acting"]:
                by_osd.setdefault(str(osd), Counter())[row["state"]] += 1
            for name, value in row["stat_sum"].items():
                totals[name] = totals.get(name, 0) + value
        return {"by_osd": by_osd, "by_pool": by_pool, "all": states, "pg_stats_sum": {"stat_sum": totals}}

    def _pools(self) -> List[Dict[str, Any]]:
        by_pool: Dict[int, List[Dict[str, Any]]] = {}
        for row in self._rows():
            by_pool.setdefault(int(row["pgid"].split(".")[0]), []).append(row)
        return [
            {
                "poolid": pool,
                "num_pg": len(rows),
                "stat_sum": {name: sum(row["stat_sum"][name] for row in rows) for name in rows[0]["stat_sum"]},
            }
            for pool, rows in by_pool.items()
        ]

    def _rows(self) -> List[Dict[str, Any]]:
        # a mgr has one map of the PGs, and a tick of the plugin looks at it three times
        if self._listed_at != self._twin.now():
            self._listed_at, self._listed = self._twin.now(), self._ask("pg ls")["pg_stats"]
        return self._listed

    def _ask(self, prefix: str) -> Any:
        return json.loads(self._twin.mon(prefix, {}))
