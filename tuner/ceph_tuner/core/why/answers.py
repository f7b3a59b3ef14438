"""What single answers of Ceph say to `why`: counters that rise, PGs, pools, slots."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, FrozenSet, Iterable, Mapping, NamedTuple, Set, Tuple

from ceph_tuner.core.ceph.commands import parsed, shaped
from ceph_tuner.core.measure.osd_documents import SCRUB_COUNTERS, SCRUB_WRITES
from ceph_tuner.core.measure.pg_documents import flags_of, osds_of
from ceph_tuner.core.measure.queue_dump import Dump, read_tags, strict_queued
from ceph_tuner.core.measure.reading import pool_of
from ceph_tuner.core.why.facts import PgNow, PoolNow, Slots

_SECTIONS = ("osd", "bluestore")


def mapping_of(text: str, command: str) -> Mapping[str, Any]:
    """An answer that is an object. Raises CommandFailed."""
    with shaped(command):
        return dict(parsed(text, command))


def rising_counters(counters: Mapping[str, Any]) -> Dict[str, float]:
    """`osd.op`, `bluestore.kv_commit_lat.sum`: counters that rise; gauges of the same sections are not looked at."""
    values: Dict[str, float] = {}
    with shaped("perf dump"):
        for section in _SECTIONS:
            for name, value in counters.get(section, {}).items():
                if isinstance(value, Mapping):
                    values[f"{section}.{name}.sum"] = float(value.get("sum", 0.0))
                    values[f"{section}.{name}.count"] = float(value.get("avgcount", 0.0))
                elif name in _PLAIN:
                    values[f"{section}.{name}"] = float(value)
    return values


REMOVING = "osd.numpg_removing"
_PLAIN = frozenset(
    [
        "op",
        "op_r",
        "op_w",
        "op_rw",
        "op_w_in_bytes",
        "op_rw_in_bytes",
        "subop",
        "subop_w",
        "subop_in_bytes",
        "subop_push_in_bytes",
        "recovery_ops",
        "recovery_bytes",
        "write_big_bytes",
        "write_small_bytes",
        *SCRUB_COUNTERS,
        *SCRUB_WRITES,
    ]
)


def states_of(row: Mapping[str, Any]) -> FrozenSet[str]:
    """States of a row of `pg ls`."""
    return frozenset(str(row["state"]).split("+"))


def pg_now(row: Mapping[str, Any], before: Mapping[str, Any]) -> PgNow:
    """One PG out of its rows of the two looks."""
    total, then = row["stat_sum"], before["stat_sum"]
    return PgNow(
        str(row["pgid"]),
        pool_of(str(row["pgid"])),
        osds_of(row["acting"]),
        osds_of(row["up"]),
        states_of(row),
        states_of(before),
        int(total.get("num_objects_degraded", 0)),
        int(total.get("num_objects_misplaced", 0)),
        int(row.get("snaptrimq_len", 0)),
        int(total.get("num_objects_recovered", 0)) - int(then.get("num_objects_recovered", 0)),
    )


def pool_now(row: Mapping[str, Any]) -> PoolNow:
    """One pool of the OSD map."""
    return PoolNow(str(row["pool_name"]), flags=flags_of(row.get("flags_names", "")))


def placed(pools: Mapping[int, PoolNow], pgs: Iterable[PgNow], classes: Mapping[int, str]) -> Dict[int, PoolNow]:
    """Pools with the device class that all of their PGs lie on."""
    of_pool: Dict[int, Set[str]] = {}
    for pg in pgs:
        of_pool.setdefault(pg.pool, set()).update(classes.get(osd, "") for osd in pg.osds)
    return {
        number: replace(pool, device_class=min(of_pool[number])) if len(of_pool.get(number, ())) == 1 else pool
        for number, pool in pools.items()
    }


def major_of(metadata: Mapping[str, Any]) -> int:
    """The first number of an OSD's version; 0 where its row of `osd metadata` has none."""
    first = str(metadata.get("ceph_version_short", "")).partition(".")[0]
    return int(first) if first.isdecimal() and len(first) < 4 else 0


class Queues(NamedTuple):
    """What one dump of an OSD's queues says (`dump_op_pq_state`)."""

    tags: Dump
    strict: int
    """Items in the strict queue."""

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Queues:
        """Out of the answer."""
        return cls(read_tags(document), strict_queued(document))


def both_slots(document: Mapping[str, Any]) -> Tuple[Slots, Slots]:
    """`dump_recovery_reservations`: local, remote."""
    return slots_of(document.get("local_reservations", {})), slots_of(document.get("remote_reservations", {}))


def slots_of(document: Mapping[str, Any]) -> Slots:
    """One of the two lists of `dump_recovery_reservations`."""
    return Slots(
        int(document.get("max_allowed", 0)),
        tuple(str(item["item"]) for item in document.get("in_progress", [])),
        tuple(str(item["item"]) for queue in document.get("queues", []) for item in queue.get("items", [])),
    )
