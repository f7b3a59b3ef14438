"""What is known of the knobs of background work: scrub, snaptrim, PG deletion, recovery.

Names, types, defaults, whether a change needs a restart, and items' costs: seen on OSDs of 18.2.7 and 20.2.4. Of
Quincy, Squid and earlier points of Reef, from ceph/ceph: `src/common/options/osd.yaml.in`; `OSD.cc`
(`get_scrub_cost`, `queue_for_snap_trim`, `maybe_override_options_for_qos`, `maybe_override_sleep_options_for_qos`);
`mClockScheduler.cc`; and the backports that moved a default or an effect: 49437 (17.2.6: recovery limits may be
overridden), 49973 (17.2.7: costs in bytes, fractions), 55040 (18.2.4: snaptrim cost), 55174 and 55173 (17.2.8, 18.2.4:
three scrubs), 58001 and 59629 (19.2.0, 18.2.5: scrub cost by mean object size), 59792 (18.2.5: chunk of 15), 59885 and
59886 (19.2.1, 18.2.5: priority of requested scrubs), 59973 (Squid: shards of hard disks), 61351 (Tentacle: load), 62399
and 62400 (18.2.8, 19.2.3: sleeps of degraded PGs).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Optional, Tuple

from ceph_tuner.core.knobs.knob import Knob, KnobEffect, Since
from ceph_tuner.core.knobs.releases import MCLOCK_NINE, Value, Version

QUINCY: Version = (17, 2, 0)
FRACTIONS: Version = (17, 2, 7)
REEF: Version = (18, 2, 0)
SQUID: Version = (19, 2, 0)
TENTACLE: Version = (20, 2, 0)

KIB, MIB, GIB = 2**10, 2**20, 2**30

WORKS = KnobEffect(True, "honoured under mClock")
ABSENT = KnobEffect(False, "this release has no such option")

RECOVERY_SHARE = tuple(name for name in MCLOCK_NINE if "recovery" in name)
BEST_EFFORT_SHARE = tuple(name for name in MCLOCK_NINE if "best_effort" in name)
SCRUB_SUBSTITUTES = (
    "osd_mclock_scheduler_background_best_effort_lim",
    "osd_mclock_scheduler_background_best_effort_wgt",
    "osd_max_scrubs",
    "osd_scrub_chunk_max",
    "osd_scrub_event_cost",
)
SNAPTRIM_SUBSTITUTES = (
    "osd_mclock_scheduler_background_best_effort_lim",
    "osd_pg_max_concurrent_snap_trims",
    "osd_max_trimming_pgs",
)

OVERRIDE = "osd_mclock_override_recovery_settings"
"""Without it mClock refuses, and deletes, values for backfills and recovery."""


def always(default: Optional[Value], effect: KnobEffect = WORKS) -> Tuple[Since, ...]:
    """Make a history without a change."""
    return (Since(QUINCY, default, effect),)


_CHUNK = KnobEffect(
    True, "bounds how long a chunk of a scrub takes, and how often a client's write stops it; cost bounds neither"
)
_EVENT_COST_TIMES_CHUNK = KnobEffect(True, "a scrub item costs this x osd_shallow_scrub_chunk_max, deep or not")
_EVENT_COST = KnobEffect(
    True, "raises the cost of every scrub item; below the cost of one I/O it changes next to nothing"
)
_BY_CLASS = KnobEffect(False, "mClock schedules by class, not by priority", SCRUB_SUBSTITUTES)

SCRUB = [
    Knob(
        "osd_max_scrubs",
        "scrubs that an OSD takes part in at once; in Tentacle requested ones ignore it",
        "int",
        "1",
        1,
        10,
        (Since(QUINCY, 1, WORKS), Since((17, 2, 8), 3, WORKS), Since(REEF, 1, WORKS), Since((18, 2, 4), 3, WORKS)),
        searched=True,
    ),
    Knob(
        "osd_scrub_cost",
        "cost of a scrub item",
        "size",
        "B",
        4 * KIB,
        GIB,
        (
            Since(QUINCY, 50 * MIB, WORKS),
            Since(
                FRACTIONS,
                50 * MIB,
                KnobEffect(False, "read only when osd_op_queue is wpq; mClock takes its own cost", SCRUB_SUBSTITUTES),
            ),
        ),
        searched=True,
        log_scale=True,
        under_wpq="works in all releases: the cost of a scrub item",
    ),
    Knob(
        "osd_scrub_event_cost",
        "base of a scrub item's cost",
        "size",
        "B",
        4 * KIB,
        64 * MIB,
        (
            Since(QUINCY, None, KnobEffect(False, ABSENT.because, ("osd_scrub_cost",))),
            Since(FRACTIONS, 4 * KIB, _EVENT_COST_TIMES_CHUNK),
            Since((18, 2, 5), 4 * KIB, _EVENT_COST),
        ),
        searched=True,
        log_scale=True,
        search_high=4 * MIB,
        under_wpq="does nothing: osd_scrub_cost counts",
    ),
    Knob(
        "osd_scrub_chunk_min",
        "objects of a deep scrub's smallest chunk",
        "int",
        "objects",
        3,
        1000,
        always(5, KnobEffect(True, "osd_scrub_chunk_max cannot go below it")),
    ),
    Knob(
        "osd_shallow_scrub_chunk_min",
        "objects of a shallow scrub's smallest chunk",
        "int",
        "objects",
        3,
        10_000,
        always(50, KnobEffect(True, "osd_shallow_scrub_chunk_max cannot go below it")),
    ),
    Knob(
        "osd_scrub_chunk_max",
        "objects of a deep scrub's largest chunk",
        "int",
        "objects",
        3,
        1000,
        (
            Since(QUINCY, 25, _CHUNK),
            Since((18, 2, 5), 15, _CHUNK),
            Since(SQUID, 25, _CHUNK),
            Since((19, 2, 1), 15, _CHUNK),
        ),
        searched=True,
        log_scale=True,
        search_low=5,
        search_high=100,
    ),
    Knob(
        "osd_shallow_scrub_chunk_max",
        "objects of a shallow scrub's largest chunk",
        "int",
        "objects",
        3,
        10_000,
        always(100, _CHUNK),
        searched=True,
        log_scale=True,
        search_low=50,
        search_high=400,
    ),
    Knob(
        "osd_scrub_max_preemptions",
        "times that a write stops a scrub's chunk before writes wait for it",
        "int",
        "1",
        0,
        30,
        always(5, KnobEffect(True, "a chunk that is stopped is begun anew with half of its objects")),
        under_wpq="works: a chunk that is stopped is begun anew with half of its objects",
    ),
    Knob(
        "osd_scrub_load_threshold",
        "load average per CPU above which no periodic scrub starts",
        "float",
        "1",
        0,
        1000,
        (Since(QUINCY, 0.5, WORKS), Since(TENTACLE, 10.0, WORKS)),
    ),
    Knob(
        "osd_deep_scrub_interval",
        "how often each PG is to be deep-scrubbed",
        "float",
        "s",
        3600,
        365 * 86400,
        always(604800.0, KnobEffect(True, "the operator's policy: the mgr and the monitors warn by it as well")),
        scope="osd and mgr",
    ),
    Knob(
        "osd_requested_scrub_priority",
        "priority of requested scrubs",
        "int",
        "1",
        1,
        255,
        (
            Since(QUINCY, 120, _BY_CLASS),
            Since((18, 2, 5), 5, _BY_CLASS),
            Since(SQUID, 120, _BY_CLASS),
            Since((19, 2, 1), 5, _BY_CLASS),
        ),
        under_wpq="works: how much a requested scrub weighs in the queue; an operation of a client has 63",
    ),
]

SNAPTRIM = [
    Knob(
        "osd_snap_trim_cost",
        "cost of a snaptrim item",
        "size",
        "B",
        4 * KIB,
        GIB,
        (
            Since(QUINCY, MIB, WORKS),
            Since(
                (18, 2, 4),
                MIB,
                KnobEffect(
                    False,
                    "read only when osd_op_queue is wpq; mClock takes the mean object size x "
                    "osd_pg_max_concurrent_snap_trims",
                    SNAPTRIM_SUBSTITUTES,
                ),
            ),
        ),
        searched=True,
        log_scale=True,
        search_high=64 * MIB,
        under_wpq="works in all releases: the cost of a snaptrim item",
    ),
    Knob(
        "osd_pg_max_concurrent_snap_trims",
        "clones that a PG trims in one item",
        "int",
        "1",
        1,
        16,
        always(2),
        searched=True,
        log_scale=True,
    ),
    Knob(
        "osd_max_trimming_pgs",
        "PGs that trim at once on an OSD",
        "int",
        "1",
        1,
        16,
        always(2),
        searched=True,
        log_scale=True,
    ),
]


DELETION = [
    Knob(
        "osd_pg_delete_cost",
        "cost per object of a PG deletion",
        "size",
        "B",
        4 * KIB,
        GIB,
        always(MIB, KnobEffect(True, "an item of PG deletion costs this x the objects that it deletes")),
        log_scale=True,
        under_wpq="works: the cost of an item of PG deletion, however many objects it deletes",
    )
]


def _recovery(name: str, meaning: str, default: int, early: int, zero_means: str = "", searched: bool = True) -> Knob:
    needs = ((OVERRIDE, True),)
    refused = "without osd_mclock_override_recovery_settings the OSD deletes the value again, under custom too"
    return Knob(
        name,
        meaning,
        "int",
        "1",
        1,
        100,
        (
            Since(QUINCY, 1000, KnobEffect(False, "mClock sets it to 1000 and drops changes", RECOVERY_SHARE)),
            Since((17, 2, 6), early, KnobEffect(True, refused, RECOVERY_SHARE, needs)),
            Since(FRACTIONS, default, KnobEffect(True, refused, RECOVERY_SHARE, needs)),
        ),
        searched=searched,
        log_scale=True,
        zero_means=zero_means,
        search_high=32,
        under_wpq="works: nothing resets it, and it needs no other option",
    )


RECOVERY = [
    Knob(
        OVERRIDE,
        "whether osd_max_backfills and osd_recovery_max_active* may be changed under mClock",
        "bool",
        "",
        0,
        1,
        (Since(QUINCY, None, KnobEffect(False, ABSENT.because, RECOVERY_SHARE)), Since((17, 2, 6), False, WORKS)),
        under_wpq="does nothing: the limits may be changed without it",
    ),
    _recovery("osd_max_backfills", "PGs that an OSD recovers or backfills at once, each way", 1, 10),
    _recovery(
        "osd_recovery_max_active",
        "recovery operations in flight per OSD; above the two for hdd and ssd",
        0,
        0,
        "osd_recovery_max_active_hdd or _ssd decides",
        searched=False,
    ),
    _recovery("osd_recovery_max_active_ssd", "recovery operations in flight per OSD on flash", 10, 20),
    _recovery("osd_recovery_max_active_hdd", "recovery operations in flight per OSD on a hard disk", 3, 10),
    Knob(
        "osd_recovery_max_chunk",
        "bytes of an object that one push of recovery or backfill carries",
        "size",
        "B",
        64 * KIB,
        64 * MIB,
        always(
            8 * MIB, KnobEffect(True, "bounds how long one push makes others wait; from 17.2.7 a pull costs as much")
        ),
        searched=True,
        log_scale=True,
        search_low=256 * KIB,
        search_high=8 * MIB,
        search_step=64 * KIB,
        under_wpq="works: a push carries this much, and a pull and the answer to a push cost it and 1 000 bytes",
    ),
]


_DEVICES = {
    "_hdd": "on OSDs with their data on a hard disk",
    "_hybrid": "on OSDs with their data on a hard disk and their DB on flash",
    "_ssd": "on OSDs on flash",
}


def _sleep(name: str, default: float, instead: Tuple[str, ...]) -> Knob:
    return Knob(
        name,
        "pause between two pieces of that work",
        "float",
        "s",
        0,
        60,
        always(default, KnobEffect(False, "forced to 0 under mClock, whatever the profile", instead)),
        under_wpq=_sleep_under_wpq(name),
    )


def _sleep_under_wpq(name: str) -> str:
    """Say what a sleep does under wpq: the one without a device goes before those with one, unless it is 0."""
    for device, where in _DEVICES.items():
        if name.endswith(device):
            return f"works {where}, where {name[: -len(device)]} is 0"
    return (
        "works: a pause after each chunk" if name == "osd_scrub_sleep" else "works, and goes before the ones by device"
    )


def _sleep_degraded(name: str, default: float) -> Knob:
    """Make a sleep that counts for degraded PGs. Without it the one for all PGs counts for them as well."""
    entry = _sleep(name, default, RECOVERY_SHARE)
    (since,) = entry.history
    absent = KnobEffect(False, ABSENT.because, RECOVERY_SHARE)
    steps = ((QUINCY, False), ((18, 2, 8), True), (SQUID, False), ((19, 2, 3), True))
    return replace(
        entry,
        meaning="pause between two pieces of recovery of a degraded PG",
        history=tuple(replace(since, version=at) if there else Since(at, None, absent) for at, there in steps),
    )


SLEEPS = [
    _sleep("osd_recovery_sleep", 0.0, RECOVERY_SHARE),
    _sleep("osd_recovery_sleep_hdd", 0.1, RECOVERY_SHARE),
    _sleep("osd_recovery_sleep_hybrid", 0.025, RECOVERY_SHARE),
    _sleep("osd_recovery_sleep_ssd", 0.0, RECOVERY_SHARE),
    _sleep_degraded("osd_recovery_sleep_degraded", 0.0),
    _sleep_degraded("osd_recovery_sleep_degraded_hdd", 0.1),
    _sleep_degraded("osd_recovery_sleep_degraded_hybrid", 0.025),
    _sleep_degraded("osd_recovery_sleep_degraded_ssd", 0.0),
    _sleep("osd_scrub_sleep", 0.0, SCRUB_SUBSTITUTES),
    _sleep("osd_snap_trim_sleep", 0.0, SNAPTRIM_SUBSTITUTES),
    _sleep("osd_snap_trim_sleep_hdd", 5.0, SNAPTRIM_SUBSTITUTES),
    _sleep("osd_snap_trim_sleep_hybrid", 2.0, SNAPTRIM_SUBSTITUTES),
    _sleep("osd_snap_trim_sleep_ssd", 0.0, SNAPTRIM_SUBSTITUTES),
    _sleep("osd_delete_sleep", 0.0, BEST_EFFORT_SHARE),
    _sleep("osd_delete_sleep_hdd", 5.0, BEST_EFFORT_SHARE),
    _sleep("osd_delete_sleep_hybrid", 1.0, BEST_EFFORT_SHARE),
    _sleep("osd_delete_sleep_ssd", 1.0, BEST_EFFORT_SHARE),
]
