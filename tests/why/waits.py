"""A cluster on which nothing waits, to plant causes in one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Mapping, Tuple

from ceph_tuner.core.ceph.target import Place
from ceph_tuner.core.measure.queue_dump import QueuedClass
from ceph_tuner.core.why.facts import OsdNow, PgNow, PoolNow, WhyFacts

OPTIONS: Dict[str, str] = {
    "osd_op_queue": "mclock_scheduler",
    "osd_mclock_max_capacity_iops_ssd": "20000",
    "osd_mclock_scheduler_client_res": "0.5",
    "osd_mclock_scheduler_client_lim": "0",
    "osd_mclock_scheduler_background_recovery_res": "0.5",
    "osd_mclock_scheduler_background_recovery_lim": "0",
    "osd_mclock_scheduler_background_best_effort_res": "0",
    "osd_mclock_scheduler_background_best_effort_lim": "0.9",
    "osd_mclock_override_recovery_settings": "false",
    "osd_max_scrubs": "3",
    "osd_max_trimming_pgs": "2",
    "osd_scrub_during_recovery": "false",
    "bluestore_throttle_bytes": "67108864",
}
NOON = 1_795_521_600.0 - 1_795_521_600.0 % 86_400 + 12 * 3600
CLEAN = frozenset(("active", "clean"))


def osd(number: int, options: Mapping[str, str] = {}, **given: Any) -> OsdNow:
    place = Place(number, "ssd", {"host": f"h{number}"})
    return OsdNow(place, options={**OPTIONS, **options}, **{"seconds": 10.0, "rises": served(100, 1.0), **given})


def served(
    rate: float, drive_ms: float, throttle_ms: float = 0.0, queue_ms: float = 0.0, seconds: float = 10.0
) -> Dict[str, float]:
    """Counters' rise of an OSD with so many client writes a second, and times for each."""
    count = rate * seconds
    whole = drive_ms + throttle_ms + queue_ms + 0.1
    rises = {"osd.op": count, "osd.op_w": count, "osd.subop_w": 0.0, "osd.recovery_ops": 0.0}
    for timer, milliseconds in (
        ("osd.op_latency", whole),
        ("osd.op_process_latency", whole - queue_ms),
        ("bluestore.txc_commit_lat", drive_ms + throttle_ms),
        ("bluestore.txc_throttle_lat", throttle_ms),
        ("bluestore.state_aio_wait_lat", drive_ms),
        ("bluestore.kv_commit_lat", drive_ms),
    ):
        rises[f"{timer}.sum"], rises[f"{timer}.count"] = count * milliseconds / 1000, count
    return rises


def pg(number: int, acting: Tuple[int, ...] = (0, 1, 2), states: str = "active+clean", **given: Any) -> PgNow:
    words = frozenset(states.split("+"))
    return PgNow(f"1.{number:x}", 1, acting, acting, words, given.pop("lasting", words), **given)


def healthy(**given: Any) -> WhyFacts:
    known: Dict[str, Any] = {
        "osds": tuple(osd(number) for number in range(3)),
        "pgs": tuple(pg(number, tuple((number + step) % 3 for step in range(3))) for number in range(12)),
        "pools": {1: PoolNow("rbd", "ssd")},
    }
    return WhyFacts(NOON, **{**known, **given})


def queued(service_class: str, waiting: int, ahead_s: float, dumps: int = 6) -> Tuple[Tuple[QueuedClass, ...], ...]:
    return ((QueuedClass(0, service_class, waiting, ahead_s),),) * dumps


def with_osd(facts: WhyFacts, own: OsdNow) -> WhyFacts:
    return replace(facts, osds=tuple(own if each.id == own.id else each for each in facts.osds))


def some(facts: WhyFacts, count: int, **given: Any) -> WhyFacts:
    """The first of the PGs with other values."""
    if "states" in given:
        words = frozenset(given.pop("states").split("+"))
        given = {"states": words, "lasting": words, **given}
    changed = tuple(replace(each, **given) if at < count else each for at, each in enumerate(facts.pgs))
    return replace(facts, pgs=changed)
