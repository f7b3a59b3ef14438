"""All PGs of a cluster, however many there are: what Ceph answers at a time is bounded."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping

from ceph_tuner.core.ceph.commands import parsed
from ceph_tuner.core.ceph.ports import Commander
from ceph_tuner.core.measure.pg_documents import heard_pg_rows, whole_pg_rows

AT_ONCE = 40_000
"""PGs that one answer lists, at some 4 KiB each. Of more, each pool is asked for by itself."""

_KEPT = [
    "pgid",
    "state",
    "acting",
    "up",
    "reported_epoch",
    "last_scrub_stamp",
    "last_deep_scrub_stamp",
    "last_scrub_duration",
    "objects_scrubbed",
    "objects_trimmed",
    "snaptrimq_len",
]
_SUMS = ("num_objects", "num_bytes")


def all_pg_rows(commander: Commander, osd_map: Mapping[str, Any]) -> List[Mapping[str, Any]]:
    """What is kept of each PG that `osd dump` has. Raises RetryLater as `whole_pg_rows`, TunerError."""
    pools = {int(pool["pool"]): int(pool["pg_num"]) for pool in osd_map["pools"]}
    parts: List[Dict[str, str]] = [{}]
    if sum(pools.values()) > AT_ONCE:
        parts = [{"pool": str(number)} for number in sorted(pools)]
    rows: List[Mapping[str, Any]] = []
    for arguments in parts:
        answer = parsed(commander.mon("pg ls", arguments), "pg ls")
        # in memory a whole row takes ten times as much
        rows += [_kept(row) for row in heard_pg_rows(answer)]
    return whole_pg_rows(rows, osd_map)


def _kept(row: Mapping[str, Any]) -> Mapping[str, Any]:
    sums = row["stat_sum"]
    return {
        **{name: row[name] for name in _KEPT if name in row},
        "stat_sum": {name: sums[name] for name in _SUMS if name in sums},
    }
