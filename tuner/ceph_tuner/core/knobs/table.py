"""What is known of each knob: the data behind `catalogue.py`. Its sources stand in `table_background.py`."""

from __future__ import annotations

from dataclasses import replace
from typing import List, Tuple

from ceph_tuner.core.knobs.knob import Knob, KnobEffect, Since
from ceph_tuner.core.knobs.recovery_limit import LIMIT as RECOVERY_LIMIT
from ceph_tuner.core.knobs.releases import MCLOCK_NINE, Value, Version
from ceph_tuner.core.knobs.table_background import (
    ABSENT,
    DELETION,
    FRACTIONS,
    GIB,
    KIB,
    MIB,
    QUINCY,
    RECOVERY,
    SCRUB,
    SLEEPS,
    SNAPTRIM,
    SQUID,
    WORKS,
    always,
)
from ceph_tuner.core.knobs.table_unsearched import BATCH_ON_DISKS, KNOWN, OF_POOLS

_NO_CLASSES = "does nothing: wpq knows no classes"


def _shares() -> List[Knob]:
    """Build the nine values: reservation, weight and limit of each class."""
    who = {
        "client": "clients",
        "background_recovery": "recovery of degraded objects",
        "background_best_effort": "scrub, snaptrim, PG deletion and, from 17.2.7, backfill of misplaced objects",
    }
    effect = KnobEffect(True, "counts when osd_mclock_profile is custom, and only with all nine values set")
    knobs = []
    for name in MCLOCK_NINE:
        service_class, part = name[len("osd_mclock_scheduler_") :].rsplit("_", 1)
        if part == "wgt":
            meaning = f"weight of {who[service_class]}: the share of what reservations leave over"
            knobs.append(
                Knob(
                    name,
                    meaning,
                    "int",
                    "1",
                    1,
                    1000,
                    always(1, effect),
                    searched=True,
                    log_scale=True,
                    search_high=64,
                    under_wpq=_NO_CLASSES,
                )
            )
            continue
        if part == "res":
            meaning, early = f"reservation of {who[service_class]}: what they get first, whoever else waits", 1
        else:
            meaning, early = f"limit of {who[service_class]}: what they never exceed, even on an idle OSD", 999_999
        history = (Since(QUINCY, early, effect), Since(FRACTIONS, 0.0, effect))
        if name == RECOVERY_LIMIT:
            # each shard has its part of it, and recovery is in the shard of one PG at a time
            parts = f"{effect.because}; divided among the shards, so that 8 of them leave recovery an eighth of it"
            history = (history[0], Since(FRACTIONS, 0.0, KnobEffect(True, parts)))
        zero = "none" if part == "lim" else ""
        knobs.append(
            Knob(
                name,
                meaning,
                "fraction",
                "fraction of the OSD's capacity",
                0,
                1,
                history,
                searched=True,
                zero_means=zero,
                under_wpq=_NO_CLASSES,
            )
        )
    return knobs


PROFILE_KNOB = Knob(
    "osd_mclock_profile",
    "which profile sets the nine values; custom leaves them to the operator",
    "categorical",
    "",
    0,
    0,
    (Since(QUINCY, "high_client_ops", WORKS), Since(FRACTIONS, "balanced", WORKS)),
    choices=("balanced", "high_recovery_ops", "high_client_ops", "custom"),
    under_wpq=_NO_CLASSES,
)


def _startup(name: str, meaning: str, default: int, zero_means: str = "") -> Knob:
    return Knob(name, meaning, "int", "1", 1, 64, always(default), change="restart", zero_means=zero_means)


def _hdd_shards(before: int, after: int) -> Tuple[Since, ...]:
    """18.2.5 and, at the latest, 19.2.3 went from five queues with a thread each to one queue with five threads."""
    steps: List[Tuple[Version, int]] = [(QUINCY, before), ((18, 2, 5), after), (SQUID, before), ((19, 2, 3), after)]
    return tuple(Since(version, default, WORKS) for version, default in steps)


QUEUE = [
    Knob(
        "osd_op_queue",
        "which queue orders an OSD's operations",
        "categorical",
        "",
        0,
        0,
        always("mclock_scheduler", KnobEffect(True, "the nine values count under mclock_scheduler alone")),
        change="restart",
        choices=("wpq", "mclock_scheduler", "debug_random"),
    ),
    Knob(
        "osd_op_queue_cut_off",
        "priority from which operations go before all others",
        "categorical",
        "",
        0,
        0,
        always("high"),
        change="restart",
        choices=("low", "high", "debug_random"),
    ),
    _startup(
        "osd_op_num_shards", "queues per OSD; above the two for hdd and ssd", 0, "osd_op_num_shards_hdd or _ssd decides"
    ),
    Knob(
        "osd_op_num_shards_hdd", "queues per OSD on a hard disk", "int", "1", 1, 64, _hdd_shards(5, 1), change="restart"
    ),
    _startup("osd_op_num_shards_ssd", "queues per OSD on flash; each gets its part of the capacity", 8),
    _startup(
        "osd_op_num_threads_per_shard",
        "threads per queue; above the two for hdd and ssd",
        0,
        "osd_op_num_threads_per_shard_hdd or _ssd decides",
    ),
    Knob(
        "osd_op_num_threads_per_shard_hdd",
        "threads per queue on a hard disk",
        "int",
        "1",
        1,
        64,
        _hdd_shards(1, 5),
        change="restart",
    ),
    _startup("osd_op_num_threads_per_shard_ssd", "threads per queue on flash", 2),
]


def _capacity(name: str, meaning: str, kind: str, unit: str, default: Value, since: Version = QUINCY) -> Knob:
    effect = KnobEffect(True, "a measured fact of the device, not a wish: reservations and limits are parts of it")
    history = [Since(since, default, effect)]
    if since != QUINCY:
        history.insert(0, Since(QUINCY, None, ABSENT))
    high = 10**12 if kind == "size" else 10**7
    return Knob(name, meaning, kind, unit, 1, high, tuple(history), under_wpq="does nothing: wpq knows no capacity")


CAPACITY = [
    _capacity(
        "osd_mclock_max_capacity_iops_ssd",
        "4 KiB random writes a second that a flash OSD can do",
        "float",
        "1/s",
        21500.0,
    ),
    _capacity(
        "osd_mclock_max_capacity_iops_hdd",
        "4 KiB random writes a second that a hard disk's OSD can do",
        "float",
        "1/s",
        315.0,
    ),
    _capacity(
        "osd_mclock_max_sequential_bandwidth_ssd",
        "bytes a second that a flash OSD can do; never measured by Ceph",
        "size",
        "B/s",
        1200 * MIB,
        FRACTIONS,
    ),
    _capacity(
        "osd_mclock_max_sequential_bandwidth_hdd",
        "bytes a second that a hard disk's OSD can do; never measured by Ceph",
        "size",
        "B/s",
        150 * MIB,
        FRACTIONS,
    ),
]

_THROTTLE = KnobEffect(True, "mClock orders only what waits before BlueStore: a large throttle hides its effect")

DEVICE = [
    Knob(
        "bluestore_throttle_bytes",
        "bytes in flight in BlueStore before it blocks",
        "size",
        "B",
        64 * KIB,
        GIB,
        always(64 * MIB, _THROTTLE),
        searched=True,
        log_scale=True,
        search_high=64 * MIB,
    ),
    Knob(
        "bluestore_throttle_deferred_bytes",
        "bytes of deferred writes in flight in BlueStore before it blocks",
        "size",
        "B",
        64 * KIB,
        GIB,
        always(128 * MIB, _THROTTLE),
        searched=True,
        log_scale=True,
        search_high=128 * MIB,
    ),
    replace(BATCH_ON_DISKS, searched=True, search_low=4, search_high=64),
]

POOL = [
    Knob(
        "pg_num",
        "placement groups of a pool: their number evens the load out, and splits the lock contention",
        "int",
        "PGs",
        1,
        65536,
        always(32, KnobEffect(True, "a change moves data for hours: planned, never tried in a loop")),
        scope="pool",
        change="moves data",
        log_scale=True,
        under_wpq="the same: more PGs spread the load under any queue",
    ),
    *OF_POOLS,
]

_BY_WORK: List[Tuple[str, List[Knob]]] = [
    ("shares", [PROFILE_KNOB, *_shares()]),
    ("scrub", SCRUB),
    ("snaptrim", SNAPTRIM),
    ("deletion", DELETION),
    ("recovery", RECOVERY),
    ("sleeps", SLEEPS),
    ("device", DEVICE),
    ("capacity", CAPACITY),
    ("queue", QUEUE),
    ("pool", POOL),
    *((work, list(entries)) for work, entries in KNOWN),
]

TABLE: List[Knob] = [replace(entry, work=work) for work, entries in _BY_WORK for entry in entries]
"""Every knob, in the order in which people read them."""
