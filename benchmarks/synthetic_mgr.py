"""A ceph-mgr's memory of a large cluster, behind the plugin's ports (`mgr_module/tuner/proto.py`), made up.

Documents have the fields and the sizes of real ones, and are new objects each time, as ceph-mgr's are. ceph-mgr builds
them in C++ while it holds the interpreter; here Python does, which is slower. So the time that goes into building is
measured apart (`building_s`), and what C++ would take is added up by a stated estimate (`estimate_s`).
"""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

from tuner.proto import Pending

VALUE_S = 0.2e-6
"""One value of a document as a Python object: a PG's row has about a hundred and takes 20 us (docs/plugin.md)."""
BYTE_S = 0.6e-9
"""One byte of an answer or of a text as a Python string, measured with `bytes.decode` of 12 MB."""
MAP_COPY_S = 3e-3
"""A copy of an OSD map of 10 000 OSDs; the copying itself does not hold the interpreter, its end does."""

PLAIN = {
    "op_r": 40.0, "op_w": 60.0, "op_rw": 1.0, "op_r_out_bytes": 160e3, "op_w_in_bytes": 240e3, "op_rw_in_bytes": 4e3,
    "op_rw_out_bytes": 1e3, "recovery_ops": 2.0, "recovery_bytes": 2e6, "scrub_replicated_stats_cnt": 9.0,
    "scrub_ec_stats_cnt": 0.0, "scrub_replicated_read_bytes": 9e6, "scrub_ec_read_bytes": 0.0,
    "scrub_replicated_io_intersects": 1.0, "scrub_ec_io_intersects": 0.0, "scrub_replicated_io_blocked": 0.0,
    "scrub_ec_io_blocked": 0.0,
}  # fmt: skip
"""Counter -> rate per second of OSD 0; OSD n has (1 + n % 7 / 10) times as much."""
TIMES = {"op_r_latency": (0.2, 40.0), "op_w_latency": (0.6, 60.0), "op_rw_latency": (0.01, 1.0)}
"""Seconds and operations per second."""
REPORT_S = 5.0
CLASSES = ("hdd", "nvme", "ssd")
"""Device classes: those of the hosts in turn, and of the pools; rule 0 takes all OSDs, rule 1 the first of them, …"""
HOST = 20
"""OSDs of a host."""


class SyntheticMgr:
    """`osds` OSDs with `pgs` PGs in pools of 8192; time is `now`, which the caller moves on."""

    def __init__(self, osds: int, pgs: int, now: float = 1.8e9, k: int = 0) -> None:
        """`k`: data chunks of every pool's erasure code, beside two coding ones; 0: copies."""
        self.osds, self.pgs, self.now, self.epoch = osds, pgs, now, 1000
        self.away: Dict[int, int] = {}
        """OSD that is down -> the epoch since when it is."""
        self.classes = {osd: CLASSES[osd // HOST % len(CLASSES)] for osd in range(osds)}
        self.k = k
        self.scrub_lasted_s = 0.0
        """Of each PG's last scrub, as its OSD answers."""
        self.counter_calls = 0
        self.asked: Dict[str, int] = {}
        self.building_s = self.building_wall_s = self.estimate_s = 0.0
        self._started = now - 86400.0
        self._perf_dump = _perf_dump()
        self._crush_text = self._pools_text = ""
        self._histograms = self._map_text = ""
        self._query: Dict[str, Any] = {
            "snap_trimq_len": 0,
            "info": {"stats": _pg("1.0")},
            "peer_info": [_pg("1.0")] * 2,
        }
        self.prepare(0.0)

    def get(self, data_name: str) -> Any:
        with self._building(data_name):
            found = getattr(self, f"_{data_name}")()
            self.estimate_s += VALUE_S * _values(found) if data_name != "health" else BYTE_S * len(found["json"])
        return found

    def get_ceph_option(self, key: str) -> float:
        return 604800.0

    def get_osdmap(self) -> SyntheticMgr:
        self.asked["get_osdmap"] = self.asked.get("get_osdmap", 0) + 1
        self.estimate_s += MAP_COPY_S * self.osds / 10_000
        return self

    def get_epoch(self) -> int:
        return self.epoch

    def pg_to_up_acting_osds(self, pool: int, seed: int) -> Dict[str, Any]:
        return {"acting_primary": (pool * 8192 + seed) % self.osds}

    def get_daemon_health_metrics(self) -> Dict[str, List[Dict[str, Any]]]:
        with self._building("get_daemon_health_metrics"):
            found = {
                f"osd.{osd}": [{"type": "SLOW_OPS", "value": 0}, {"type": "PENDING_CREATING_PGS", "value": 0}]
                for osd in range(self.osds)
            }
            self.estimate_s += VALUE_S * _values(found)
        return found

    def add_osd_perf_query(self, query: Mapping[str, Any]) -> int:
        return 1

    def get_osd_perf_counters(self, query_id: int) -> Dict[str, List[Dict[str, Any]]]:
        with self._building("get_osd_perf_counters"):
            counters = [[200, 0], [10**9, 200], [300, 0], [3 * 10**9, 300]]
            found = {"counters": [{"k": [[str(pool)]], "c": [list(row) for row in counters]} for pool in self._pools()]}
            self.estimate_s += VALUE_S * _values(found)
        return found

    def remove_osd_perf_query(self, query_id: int) -> None:
        raise AssertionError("nobody ends it")

    def set_health_checks(self, checks: Mapping[str, Mapping[str, Any]]) -> None:
        raise AssertionError("the sampler sets none")

    def get_latest_unlabeled_counter(self, kind: str, osd: str, path: str) -> Dict[str, Sequence[float]]:
        """Not timed apart: it takes about as long as ceph-mgr's own, for which docs/plugin.md says 1 us."""
        self.counter_calls += 1
        number, name = int(osd), path[4:]
        at = self.now - (self.now + number * 0.37) % REPORT_S
        done = (at - self._started) * (1 + number % 7 / 10)
        rate = PLAIN.get(name)
        if rate is not None:
            return {path: [at, int(rate * done)]}
        seconds, count = TIMES[name]
        return {path: [at, int(seconds * done * 1e9), int(count * done)]}

    def send_command(
        self, result: Pending, svc_type: str, svc_id: str, command: str, tag: str, inbuf: Optional[str] = None
    ) -> None:
        """Answers at once, in the thread that sends."""
        prefix = json.loads(command)["prefix"]
        text = self._answer(prefix)
        self.asked[prefix] = self.asked.get(prefix, 0) + 1
        self.estimate_s += BYTE_S * len(text)
        result.complete(0, text, "")

    def prepare(self, seconds: float) -> None:
        """Time goes on; what daemons will answer is made ready."""
        self.now += seconds
        self._histograms = _histograms(int((self.now - self._started) / 5))
        if not self._crush_text:
            self._crush_text, self._pools_text = json.dumps(self._crush()), json.dumps(self._pool_list())
        if not self._map_text:
            self._map_text = json.dumps(self._rows(), separators=(",", ":"))

    def set_away(self, osd: int, away: bool) -> None:
        self.epoch, self._map_text = self.epoch + 1, ""
        if away:
            self.away[osd] = self.epoch
        else:
            self.away.pop(osd, None)

    def set_class(self, osd: int, name: str) -> None:
        self.classes[osd], self._crush_text = name, ""

    @contextmanager
    def _building(self, name: str) -> Iterator[None]:
        self.asked[name] = self.asked.get(name, 0) + 1
        before, began = time.thread_time(), time.perf_counter()
        yield
        self.building_s += time.thread_time() - before
        self.building_wall_s += time.perf_counter() - began

    def _answer(self, prefix: str) -> str:
        if prefix == "osd stat":
            return json.dumps({"epoch": self.epoch, "num_osds": self.osds, "num_up_osds": self.osds - len(self.away)})
        if prefix == "osd pool ls":
            return self._pools_text
        if prefix == "osd crush dump":
            return self._crush_text
        if prefix == "osd erasure-code-profile get":
            return json.dumps(self._code())
        if prefix == "osd info":
            return self._map_text
        if prefix == "perf dump":
            return self._perf_dump
        if prefix == "perf histogram dump":
            return self._histograms
        if prefix == "query":
            self._query["info"]["stats"]["last_scrub_duration"] = self.scrub_lasted_s
            return json.dumps(self._query)
        raise AssertionError(prefix)

    def _rows(self) -> List[Dict[str, Any]]:
        return [_osd(osd, osd not in self.away) for osd in range(self.osds)]

    def _osd_map(self) -> Dict[str, Any]:
        return {
            "epoch": self.epoch,
            "pools": self._pool_rows(),
            "osds": self._rows(),
            "osd_xinfo": [_xinfo(osd) for osd in range(self.osds)],
            "erasure_code_profiles": {"wide": self._code()},
        }

    def _pool_rows(self) -> List[Dict[str, Any]]:
        code = {"type": 3, "erasure_code_profile": "wide"} if self.k else {"type": 1, "erasure_code_profile": ""}
        return [{"pool": pool, "pool_name": f"pool{pool}", **code} for pool in self._pools()]

    def _pool_list(self) -> List[Dict[str, Any]]:
        """Rows with the size of real ones, 3 KiB."""
        more = {f"field_{number}": "2026-11-01T06:12:34.529551+0000" for number in range(60)}
        rules = {row["pool"]: 1 + row["pool"] % len(CLASSES) for row in self._pool_rows()}
        return [
            {"pool_id": row.pop("pool"), **row, **more, "crush_rule": rule}
            for row, rule in zip(self._pool_rows(), rules.values())
        ]

    def _crush(self) -> Dict[str, Any]:
        """As `ceph osd crush dump` has it, 20.2.4: each bucket, and each once more for every class."""
        devices = [{"id": osd, "name": f"osd.{osd}", "class": self.classes[osd]} for osd in range(self.osds)]
        hosts = -(-self.osds // HOST)
        buckets = []
        for place, name in enumerate(("", *CLASSES)):
            behind, first = f"~{name}" if name else "", -1 - place * (hosts + 1)
            below = []
            for host in range(hosts):
                osds = range(host * HOST, min((host + 1) * HOST, self.osds))
                mine = [osd for osd in osds if name in ("", self.classes[osd])]
                below.append(_bucket(first - 1 - host, f"h{host}{behind}", 1, mine))
            buckets += [_bucket(first, f"default{behind}", 11, [row["id"] for row in below]), *below]
        rules = [
            {
                "rule_id": number,
                "rule_name": f"rule{number}",
                "type": 1,
                "steps": [
                    {"op": "take", "item": -1, "item_name": f"default~{name}" if name else "default"},
                    {"op": "chooseleaf_firstn", "num": 0, "type": "host"},
                    {"op": "emit"},
                ],
            }
            for number, name in enumerate(("", *CLASSES))
        ]
        return {"devices": devices, "types": [], "buckets": buckets, "rules": rules, "tunables": {}}

    def _code(self) -> Dict[str, str]:
        return {"k": str(self.k), "m": "2", "plugin": "isa"}

    def _pools(self) -> Dict[int, int]:
        return {pool: min(8192, self.pgs - (pool - 1) * 8192) for pool in range(1, -(-self.pgs // 8192) + 1)}

    def _pool_stats(self) -> Dict[str, Any]:
        return {
            "pool_stats": [
                {"poolid": pool, "num_pg": pgs, "stat_sum": _stat_sum(pgs), "store_stats": _stat_sum(1), "up": 3 * pgs}
                for pool, pgs in self._pools().items()
            ]
        }

    def _states(self) -> Dict[str, int]:
        return {"active+clean": self.pgs - self.pgs // 100, "active+clean+scrubbing+deep": self.pgs // 100}

    def _pg_status(self) -> Dict[str, Any]:
        return {"pgs_by_state": [{"state_name": state, "count": count} for state, count in self._states().items()]}

    def _pg_summary(self) -> Dict[str, Any]:
        each = {state: count * 3 // self.osds for state, count in self._states().items()}
        return {
            "by_osd": {str(osd): dict(each) for osd in range(self.osds)},
            "by_pool": {str(pool): {"active+clean": pgs} for pool, pgs in self._pools().items()},
            "all": self._states(),
            "pg_stats_sum": {"stat_sum": _stat_sum(self.pgs)},
        }

    def _pg_stats(self) -> Dict[str, Any]:
        rows = [_pg(f"{pool}.{seed:x}") for pool, pgs in self._pools().items() for seed in range(pgs)]
        return {"pg_stats": rows}

    def _health(self) -> Dict[str, str]:
        checks: Dict[str, Any] = {
            "TOO_FEW_OSDS": {"severity": "HEALTH_WARN", "summary": {"message": "few", "count": 1}}
        }
        if self.away:
            summary = {"message": f"{len(self.away)} osds down", "count": len(self.away)}
            detail = [{"message": f"osd.{osd} (root=default,host=h{osd // 20}) is down"} for osd in self.away]
            checks["OSD_DOWN"] = {"severity": "HEALTH_WARN", "summary": summary, "detail": detail, "muted": False}
        return {"json": json.dumps({"status": "HEALTH_WARN", "checks": checks, "mutes": []})}


def _osd(osd: int, up: bool) -> Dict[str, Any]:
    """A row as `ceph osd dump` has it, 20.2.4."""
    address = f"10.{osd // 4000}.{osd // 20 % 200}.1:{6800 + osd % 20}"
    both = [{"type": kind, "addr": address, "nonce": 1_000_000 + osd} for kind in ("v2", "v1")]
    names = ("public", "cluster", "heartbeat_back", "heartbeat_front")
    return {
        "osd": osd, "uuid": f"00000000-0000-0000-0000-{osd:012d}", "up": int(up), "in": 1, "weight": 1.0,
        "primary_affinity": 1.0, "last_clean_begin": 10, "last_clean_end": 90, "up_from": 100 + osd % 50,
        "up_thru": 900, "down_at": 95, "lost_at": 0,
        **{f"{name}_addrs": {"addrvec": [dict(entry) for entry in both]} for name in names},
        **{f"{name}_addr": f"{address}/{1_000_000 + osd}" for name in names},
        "state": ["exists", "up"] if up else ["exists"],
    }  # fmt: skip


def _bucket(number: int, name: str, kind: int, below: Sequence[int]) -> Dict[str, Any]:
    items = [{"id": item, "weight": 65536, "pos": place} for place, item in enumerate(below)]
    row = {"id": number, "name": name, "type_id": kind, "type_name": "host" if kind == 1 else "root"}
    return {**row, "weight": 65536 * len(below), "alg": "straw2", "hash": "rjenkins1", "items": items}


def _xinfo(osd: int) -> Dict[str, Any]:
    return {
        "osd": osd, "down_stamp": "2026-11-01T06:12:34.529551+0000", "laggy_probability": 0.0, "laggy_interval": 0,
        "features": 4540701547738038271, "old_weight": 0.0, "last_purged_snaps_scrub": "0.0", "dead_epoch": 0,
    }  # fmt: skip


def _stat_sum(pgs: int) -> Dict[str, int]:
    known = {"num_objects": 400 * pgs, "num_object_copies": 1200 * pgs, "num_bytes": 400 * pgs << 20}
    known.update({"num_objects_degraded": 0, "num_objects_misplaced": 3 * pgs, "num_object_clones": pgs})
    return {**known, **{f"num_other_{number}": number * pgs for number in range(31)}}


def _pg(pgid: str) -> Dict[str, Any]:
    """Hundred values, as a real row has."""
    return {
        "pgid": pgid, "state": "active+clean", "stat_sum": _stat_sum(1), "objects_scrubbed": 0, "objects_trimmed": 0,
        "snaptrimq_len": 0, "acting": [1, 2, 3], "up": [1, 2, 3], "last_scrub_stamp": "2026-11-21T06:12:34.529551+0000",
        "last_deep_scrub_stamp": "2026-11-21T06:12:34.529551+0000",
        **{f"stamp_{number}": "2026-11-21T06:12:34.529551+0000" for number in range(50)},
    }  # fmt: skip


def _perf_dump() -> str:
    """A hundred and more kilobytes, as of a real OSD with eight shards."""
    shard = {f"mclock_{name}_queue_len": 3 for name in ("client", "recovery", "best_effort", "immediate", "all_type")}
    document: Dict[str, Any] = {f"mclock-shard-queue-{number}": shard for number in range(8)}
    counter = {"avgcount": 123456, "sum": 1234.567890123, "avgtime": 0.000123456}
    for section in range(40):
        document[f"section-{section}"] = {f"some_counter_{number}": counter for number in range(40)}
    return json.dumps(document)


def _histograms(done: int) -> str:
    """Four histograms of 32 by 32 buckets."""
    edges = [-1, 99999, *(100_000 * 2**bucket - 1 for bucket in range(1, 30))]
    ranges: List[Dict[str, int]] = [{"min": low + 1, "max": high} for low, high in zip((-1, *edges), edges)]
    axes = [{"name": axis, "ranges": [*ranges, {"min": edges[-1] + 1}]} for axis in ("Latency (usec)", "Request size")]
    values = [[done * (row == column) for column in range(32)] for row in range(32)]
    names = ("op_r_latency_out_bytes", "op_w_latency_in_bytes", "op_rw_latency_in_bytes", "op_rw_latency_out_bytes")
    return json.dumps({"osd": {f"{name}_histogram": {"axes": axes, "values": values} for name in names}})


def _values(document: Any) -> int:
    """Python objects that a document is made of, without its keys."""
    if isinstance(document, dict):
        return 1 + sum(_values(value) for value in document.values())
    if isinstance(document, list):
        return 1 + sum(_values(value) for value in document)
    return 1
