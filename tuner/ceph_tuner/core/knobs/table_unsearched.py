"""What is known of knobs that the tuner never sets: when scrubs may start, steps of recovery, properties of pools.

Names, defaults and the forced sleeps: `ceph-conf -D` and the program `ceph-osd` of 18.2.7 and 20.2.4. Types, ranges
and whether a change needs a restart, from ceph/ceph: `src/common/options/osd.yaml.in` and `global.yaml.in`. What they
do: `OSD.cc`, `osd_scrub.cc` (`scrub_time_permit`, `sched_scrub`), `doc/rados/operations/pools.rst` (what
`ceph osd pool set` takes), and 57272 and 62956 (`osd_deep_scrub_interval_cv`: Tentacle, not Squid).
"""

from __future__ import annotations

from functools import partial
from typing import Tuple

from ceph_tuner.core.knobs.knob import Knob, KnobEffect, Since
from ceph_tuner.core.knobs.table_background import ABSENT, KIB, MIB, QUINCY, TENTACLE, always

SAME = "the same: it does not depend on the queue"

_WINDOW = KnobEffect(True, "bounds when periodic scrubs start, before any queue; requested ones ignore it")
_DAYS = "0 is Sunday"


def _window(name: str, meaning: str, unit: str, high: int) -> Knob:
    return Knob(name, meaning, "int", unit, 0, high, always(0, _WINDOW), under_wpq=SAME)


SCHEDULE = [
    _window(
        "osd_scrub_begin_hour",
        "hour of the day from which scrubs may start; the whole day where both are alike",
        "h",
        23,
    ),
    _window(
        "osd_scrub_end_hour",
        "hour of the day before which scrubs may start; the whole day where both are alike",
        "h",
        23,
    ),
    _window(
        "osd_scrub_begin_week_day",
        f"day of the week from which scrubs may start ({_DAYS}); all days where both are alike",
        "days",
        6,
    ),
    _window(
        "osd_scrub_end_week_day",
        f"day of the week before which scrubs may start ({_DAYS}); all days where both are alike",
        "days",
        6,
    ),
    Knob(
        "osd_scrub_during_recovery",
        "whether scrubs start on an OSD that recovers",
        "bool",
        "",
        0,
        1,
        always(False, KnobEffect(True, "decides whether a scrub starts, before any queue; one under way goes on")),
        under_wpq=SAME,
    ),
    Knob(
        "osd_deep_scrub_interval_cv",
        "how far deep scrubs are spread around osd_deep_scrub_interval: the standard deviation as a part of it",
        "float",
        "1",
        0,
        0.4,
        (
            Since(QUINCY, None, ABSENT),
            Since(TENTACLE, 0.2, KnobEffect(True, "decides when a deep scrub is due, before any queue")),
        ),
        under_wpq=SAME,
    ),
]

READS = [
    Knob(
        "osd_deep_scrub_stride",
        "bytes of an object that deep scrub reads at a time",
        "size",
        "B",
        64 * KIB,
        64 * MIB,
        always(512 * KIB, KnobEffect(True, "one read of a deep scrub has this size; the next one is queued anew")),
        log_scale=True,
        under_wpq="works: one read of a deep scrub has this size",
    )
]

STEPS = [
    Knob(
        "osd_recovery_max_single_start",
        "objects of a PG that one turn of recovery starts",
        "int",
        "objects",
        1,
        100,
        always(
            1,
            KnobEffect(
                True, "osd_recovery_max_active bounds what is under way; this is what a PG starts of it at once"
            ),
        ),
        under_wpq="works: it is how much of osd_recovery_max_active a PG starts at once",
    ),
    Knob(
        "osd_async_recovery_min_cost",
        "missing objects and log entries from which an OSD recovers outside of the acting set",
        "int",
        "1",
        1,
        1_000_000,
        always(
            100,
            KnobEffect(True, "decided at peering, before any queue: clients do not wait for an OSD outside of the set"),
        ),
        log_scale=True,
        under_wpq=SAME,
    ),
    Knob(
        "osd_backfill_scan_min",
        "fewest objects that one scan of a backfill lists",
        "int",
        "objects",
        1,
        10_000,
        always(64, KnobEffect(True, "a scan of backfill lists at least this many objects")),
        log_scale=True,
        under_wpq="works: a scan of backfill lists at least this many objects",
    ),
    Knob(
        "osd_backfill_scan_max",
        "most objects that one scan of a backfill lists",
        "int",
        "objects",
        1,
        10_000,
        always(512, KnobEffect(True, "a scan of backfill lists at most this many objects")),
        log_scale=True,
        under_wpq="works: a scan of backfill lists at most this many objects",
    ),
]


def _of_drives(
    name: str, meaning: str, default: int, zero_means: str = "", *, effect: KnobEffect, unit: str, high: int, kind: str
) -> Knob:
    """Give an option of BlueStore that has a value for each kind of drive, and one above these."""
    return Knob(
        name,
        meaning,
        kind,
        unit,
        1,
        high,
        always(default, effect),
        zero_means=zero_means,
        log_scale=True,
        under_wpq=SAME,
    )


_IO_PRICE = KnobEffect(True, "how much of bluestore_throttle_bytes one I/O takes beside its bytes")
_price = partial(_of_drives, effect=_IO_PRICE, unit="B", high=64 * MIB)

THROTTLE = [
    _price(
        "bluestore_throttle_cost_per_io",
        "bytes that BlueStore's throttle counts for each I/O; above the two for hdd and ssd",
        0,
        "bluestore_throttle_cost_per_io_hdd or _ssd decides",
        kind="size",
    ),
    _price(
        "bluestore_throttle_cost_per_io_hdd",
        "bytes that BlueStore's throttle counts for each I/O on a hard disk",
        670_000,
        kind="int",
    ),
    _price(
        "bluestore_throttle_cost_per_io_ssd",
        "bytes that BlueStore's throttle counts for each I/O on flash",
        4000,
        kind="int",
    ),
]

_AT_ONCE = KnobEffect(True, "they are written all at once, and what commits meanwhile waits behind them at the drive")
_WAITING = "small writes that wait in BlueStore's log before they are written to their places"
_batch = partial(_of_drives, effect=_AT_ONCE, unit="1", high=65535, kind="int")

BATCH_ON_DISKS = _batch("bluestore_deferred_batch_ops_hdd", f"{_WAITING}, on a hard disk", 64)
"""The one of these that is searched, in `table.py`."""

DEFERRED_WRITES = [
    _batch(
        "bluestore_deferred_batch_ops",
        f"{_WAITING}; above the two for hdd and ssd",
        0,
        "bluestore_deferred_batch_ops_hdd or _ssd decides",
    ),
    _batch("bluestore_deferred_batch_ops_ssd", f"{_WAITING}, on flash", 16),
    Knob(
        "bluestore_max_defer_interval",
        f"after how long {_WAITING} go there, however few they are",
        "float",
        "s",
        0,
        3600,
        always(
            3.0, KnobEffect(True, "three times as often somebody looks: where few are written this makes the batch")
        ),
        zero_means="they wait until there are enough",
        under_wpq=SAME,
    ),
]

BALANCING = [
    Knob(
        "target_max_misplaced_ratio",
        "part of all objects that the mgr lets be misplaced at a time, while it balances or changes pg_num",
        "float",
        "1",
        0.001,
        1,
        always(0.05, KnobEffect(True, "an option of the mgr: it bounds how much backfill waits, not how fast it is")),
        scope="mgr",
        under_wpq=SAME,
    )
]


def _of_pool(name: str, meaning: str, decides: str) -> Knob:
    effect = KnobEffect(True, f"goes before {decides} for the PGs of the pool")
    zero = f"{decides} decides"
    high = 365 * 86400
    return Knob(
        name, meaning, "float", "s", 3600, high, always(0.0, effect), scope="pool", zero_means=zero, under_wpq=SAME
    )


OF_POOLS = [
    _of_pool("scrub_min_interval", "how often each PG of a pool is to be scrubbed", "osd_scrub_min_interval"),
    _of_pool("scrub_max_interval", "after how long a PG of a pool is late with its scrub", "osd_scrub_max_interval"),
    _of_pool("deep_scrub_interval", "how often each PG of a pool is to be deep-scrubbed", "osd_deep_scrub_interval"),
    Knob(
        "recovery_priority",
        "which pools' PGs get a reservation for recovery or backfill first",
        "int",
        "1",
        -10,
        10,
        always(0, KnobEffect(True, "orders the PGs that wait for a reservation; in the queue it counts for nothing")),
        scope="pool",
        under_wpq="the same: recovery_op_priority of a pool is what orders the queue",
    ),
]

KNOWN: Tuple[Tuple[str, Tuple[Knob, ...]], ...] = (
    ("scrub schedule", tuple(SCHEDULE)),
    ("scrub reads", tuple(READS)),
    ("recovery steps", tuple(STEPS)),
    ("throttle cost", tuple(THROTTLE)),
    ("deferred writes", tuple(DEFERRED_WRITES)),
    ("balancing", tuple(BALANCING)),
)
"""By what they are about: no profile is exported with these, and an operator's change of one is no intervention."""
