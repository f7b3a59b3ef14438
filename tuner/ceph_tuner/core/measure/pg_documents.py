"""What Ceph's documents say of PGs and pools: progress, stamps, states, erasure codes.

Every parser takes what is there and leaves out what is not.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import replace
from datetime import datetime
from typing import Any, Callable, Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from ceph_tuner.core.errors import RetryLater
from ceph_tuner.core.measure.reading import PgDetail, PoolReading, ServedOperations, pool_of

UNKNOWN = "unknown"
"""State of a PG of which the active mgr has heard nothing."""

UNHEARD = "the active mgr has not heard of the PGs yet"

ERASURE = 3
"""Type of an erasure-coded pool (`pg_pool_t::TYPE_ERASURE`)."""

_STAMP = "%Y-%m-%dT%H:%M:%S"

STAMP_AHEAD_S = 86400.0
"""A stamp further ahead than that was written by a clock that was wrong: nobody knows when that scrub was."""


def pg_rows(answer: Any) -> List[Mapping[str, Any]]:
    """Rows of `pg ls`, whichever form the release gives them."""
    rows: List[Mapping[str, Any]] = answer["pg_stats"] if isinstance(answer, dict) else answer
    return rows


def heard_pg_rows(answer: Any) -> List[Mapping[str, Any]]:
    """The same. Raises RetryLater where the active mgr has not heard of the PGs yet."""
    if isinstance(answer, dict) and not answer.get("pg_ready", True):
        raise RetryLater(UNHEARD)
    return pg_rows(answer)


def whole_pg_rows(answer: Any, osd_map: Mapping[str, Any]) -> List[Mapping[str, Any]]:
    """The same, of all PGs that `osd dump` says there are. Raises RetryLater where others are listed, too.

    What is not listed counts as gone: a map and PGs of two moments must not bring work to its end.
    """
    rows = heard_pg_rows(answer)
    pgs = {int(pool["pool"]): int(pool["pg_num"]) for pool in osd_map["pools"]}
    listed = Counter(pool_of(str(row["pgid"])) for row in rows)
    if not listed.keys() <= pgs.keys() or any(listed[pool] < count for pool, count in pgs.items()):
        raise RetryLater("pools or PGs have come or gone while the PGs were listed")
    return rows


def flags_of(text: object) -> FrozenSet[str]:
    """Words between commas, as flags stand in the OSD map."""
    return frozenset(word for word in str(text).split(",") if word)


def osds_of(places: Iterable[Any]) -> Tuple[int, ...]:
    """A PG's OSDs, without the places that none fills: a number beyond all of them."""
    return tuple(int(osd) for osd in places if 0 <= int(osd) < 2**31 - 1)


def data_chunks(osd_map: Mapping[str, Any]) -> Dict[int, int]:
    """Erasure-coded pool -> its data chunks (k), out of `osd dump` or of the mgr's `osd_map`."""
    profiles = osd_map.get("erasure_code_profiles", {})
    return {
        int(pool["pool"]): int(profiles.get(pool["erasure_code_profile"], {}).get("k", 1))
        for pool in osd_map.get("pools", [])
        if int(pool.get("type", 1)) == ERASURE
    }


def raw_bytes(pool_stats: Iterable[Mapping[str, Any]], chunks: Mapping[int, int]) -> float:
    """What the OSDs hold of these pools, out of the rows of the mgr's `pool_stats`; `chunks` as of `data_chunks`."""
    return math.fsum(_raw_bytes(pool["stat_sum"], chunks.get(int(pool["poolid"]), 1)) for pool in pool_stats)


def _raw_bytes(sums: Mapping[str, Any], chunks: int) -> float:
    # Ceph counts the bytes that clients see, and every shard as a copy
    copies = sums["num_object_copies"] / sums["num_objects"] if sums["num_objects"] else 0.0
    return float(sums["num_bytes"] * copies / chunks)


def pool_readings(
    sums: Mapping[int, Mapping[str, Any]],
    chunks: Mapping[int, int],
    states: Optional[Mapping[int, Mapping[str, int]]],
    operations: Mapping[int, ServedOperations],
) -> Dict[int, PoolReading]:
    """Each pool by its `stat_sum`; its queues and late PGs are for `with_progress`. `chunks` as of `data_chunks`."""
    return {
        number: PoolReading(
            dict(own),
            _raw_bytes(own, chunks.get(number, 1)),
            chunks.get(number, 1) > 1,
            None if states is None else states.get(number, {}),
            served=operations.get(number),
        )
        for number, own in sums.items()
    }


def with_progress(
    pools: Mapping[int, PoolReading],
    snaptrim_queues: Mapping[str, int],
    scrub_stamps: Mapping[str, str],
    late: Callable[[Mapping[str, str]], float],
) -> Dict[int, PoolReading]:
    """Add what all PGs say of each pool: PG -> its queue, and the stamp of its last deep scrub.

    `late` counts those of some PGs, by their stamps, that are past their date.
    """
    queues = dict.fromkeys(pools, 0)
    stamps: Dict[int, Dict[str, str]] = {number: {} for number in pools}
    for pgid, queue in snaptrim_queues.items():
        number = pool_of(pgid)
        if number in queues:
            queues[number] += queue
            stamps[number][pgid] = scrub_stamps[pgid]
    return {
        number: replace(pool, snaptrim_queue=float(queues[number]), pgs_late=late(stamps[number]))
        for number, pool in pools.items()
    }


def coded_recovered(sums: Iterable[Tuple[int, Mapping[str, Any]]], chunks: Mapping[int, int]) -> float:
    """Bytes recovered so far of erasure-coded pools, out of (pool, `stat_sum`); `chunks` as of `data_chunks`.

    Ceph counts the whole object once for all its shards (`ECCommon.cc`, num_bytes_recovered).
    """
    return float(sum(total.get("num_bytes_recovered", 0) for pool, total in sums if chunks.get(pool, 1) > 1))


def pg_details(pg_stats: Iterable[Mapping[str, Any]], chunks: Mapping[int, int]) -> Dict[str, PgDetail]:
    """PGs by id out of the rows of `pg ls` or of the mgr's `pg_stats`; `chunks` as of `data_chunks`."""
    return {str(row["pgid"]): pg_detail(row, chunks) for row in pg_stats}


def pg_detail(row: Mapping[str, Any], chunks: Mapping[int, int]) -> PgDetail:
    """One PG out of its row of statistics."""
    total = row["stat_sum"]
    pool = pool_of(str(row["pgid"]))
    return PgDetail(
        scrubbed=int(row.get("objects_scrubbed", 0)),
        trimmed=int(row.get("objects_trimmed", 0)),
        objects=int(total["num_objects"]),
        # the bytes are those that clients see; a shard has 1/k of them
        raw_bytes=int(total["num_bytes"]) * len(row["acting"]) / chunks.get(pool, 1),
        state=str(row["state"]),
        snaptrim_queue=int(row.get("snaptrimq_len", 0)),
        scrub_ended=str(row["last_scrub_stamp"]),
        # that of a PG of which the mgr has not heard is none, and no long-gone date
        deep_scrubbed="" if row["state"] == UNKNOWN else str(row["last_deep_scrub_stamp"]),
        scrub_lasted_s=float(row.get("last_scrub_duration", 0)),
    )


def deep_scrub_intervals(osd_map: Mapping[str, Any]) -> Dict[int, float]:
    """Pool -> its own deep-scrub interval (s), which wins over the OSDs', where it has one (`PgScrubber`)."""
    return pool_intervals(osd_map, "deep_scrub_interval")


def pool_intervals(osd_map: Mapping[str, Any], option: str) -> Dict[int, float]:
    """Pool -> its own interval (s) by that option of pools, where it has one; 0 stands for none."""
    own = {int(pool["pool"]): float(pool.get("options", {}).get(option, 0)) for pool in osd_map.get("pools", [])}
    return {pool: interval for pool, interval in own.items() if interval > 0}


def late_pgs(scrub_stamps: Mapping[str, str], now: float, interval_s: float, own: Mapping[int, float]) -> List[str]:
    """PGs whose last deep scrub is longer ago than their pool's `own` interval, else than that of the OSDs.

    `scrub_stamps` has each PG's stamp of it, as Ceph writes it. A PG whose stamp is ahead is late: Ceph begins no scrub
    of it before that moment, and an interval after it.
    """
    # Ceph writes stamps in UTC and in one form, so that they sort as text; an interval may be longer than the calendar
    deadlines = {
        every: time.strftime(_STAMP, time.gmtime(max(0.0, now - max(every, 0.0))))
        for every in {interval_s, *own.values()}
    }
    latest = time.strftime(_STAMP, time.gmtime(now + STAMP_AHEAD_S))
    return [
        pgid
        for pgid, stamp in scrub_stamps.items()
        if stamp and not deadlines[own.get(pool_of(pgid), interval_s)] <= stamp <= latest
    ]


class ScrubKind(NamedTuple):
    """What tells of one of the two kinds of scrub."""

    stamp: str
    """In a row of `pg ls`."""
    option: str
    """Of the OSDs: seconds within which one is wanted."""
    of_pool: str
    """The option of a pool that wins over it."""


DEEP = ScrubKind("last_deep_scrub_stamp", "osd_deep_scrub_interval", "deep_scrub_interval")
SHALLOW = ScrubKind("last_scrub_stamp", "osd_scrub_max_interval", "scrub_max_interval")

GRACE = 1.1
"""A scrub is overdue from this many intervals on: Ceph begins them at random moments."""


def overdue_pgs(
    rows: Iterable[Mapping[str, Any]], now: float, kind: ScrubKind, usual_s: float, osd_map: Mapping[str, Any]
) -> FrozenSet[str]:
    """PGs of `pg ls` that are late by a tenth of their interval: their pool's own, else `usual_s` of the OSDs."""
    own = {pool: GRACE * every for pool, every in pool_intervals(osd_map, kind.of_pool).items()}
    stamps = {str(row["pgid"]): str(row[kind.stamp]) for row in rows if row["state"] != UNKNOWN}
    return frozenset(late_pgs(stamps, now, GRACE * usual_s, own))


def stamp_s(stamp: str) -> float:
    """Seconds since the epoch of a moment as Ceph writes it; 0 of one that never was."""
    return datetime.strptime(stamp, f"{_STAMP}.%f%z").timestamp() if "T" in stamp else 0.0


def check_heard(states: Mapping[str, int]) -> None:
    """Raises RetryLater where all PGs are unknown: a mgr that just became the active one says 0 of them."""
    if states and set(states) == {UNKNOWN}:
        raise RetryLater(UNHEARD)
