"""What settings mean inside the simulation: the scheduler's rates and costs, and the limits of background work."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Mapping, Tuple

from ceph_tuner.core.knobs.catalogue import KNOBS, OVERRIDE, PROFILE
from ceph_tuner.core.knobs.cost import (
    item_cost,
    recovery_item_bytes,
    scrub_item_bytes,
    snaptrim_item_bytes,
)
from ceph_tuner.core.knobs.releases import CLASSES, MCLOCK_NINE, Release, Settings, Value
from ceph_tuner.core.knobs.settings import shares
from ceph_tuner.twin.model import WPQ, ClusterModel

WPQ_RECOVERY_COST, WPQ_SCRUB_COST, WPQ_SNAPTRIM_COST = 20 << 20, 50 << 20, 1 << 20
"""osd_recovery_cost, osd_scrub_cost, osd_snap_trim_cost."""

WPQ_PRIORITIES = (63.0, 3.0)
"""osd_client_op_priority, osd_recovery_op_priority."""

WPQ_REPLICA_PRIORITY = 127.0
"""A replica write's message names no priority, so it has the messenger's own (CEPH_MSG_PRIO_DEFAULT)."""

WPQ_CLASSES = {
    "client": 0,
    "replica write": 0,
    "recovery": 1,
    "backfill": 1,
    "erasure-code recovery read": 1,
    "erasure-code backfill read": 1,
}
"""The priority that each kind of work has there; the rest has the last."""


PUSH_COST_PER_OBJECT = 1000
"""osd_push_per_object_cost."""


@dataclass(frozen=True)
class BackgroundLimits:
    """How much background work an OSD does at a time."""

    max_scrubs: int
    chunk_max: int
    shallow_chunk_max: int
    chunk_min: int
    shallow_chunk_min: int
    max_preemptions: int
    """How often a write stops a scrub's chunk before writes wait for it."""
    concurrent_trims: int
    trimming_pgs: int
    max_backfills: int
    recovery_active: int
    deferred_batch: int
    """Deferred writes of a hard disk that go to their places at once."""
    deferred_interval_s: float
    """After this they go, however few they are; infinite: never for that."""
    deferred_most: int
    """Deferred writes that may be under way to their places before others wait."""
    degraded_sleep_s: float
    backfill_sleep_s: float
    """Before an object's recovery."""
    trim_sleep_s: float
    delete_sleep_s: float
    """Of a PG, between two items."""

    @property
    def deferred_tick_s(self) -> float:
        """How often a thread that sleeps 50 ms at a time looks whether that is over (MempoolThread::entry)."""
        third_s = self.deferred_interval_s / 3 if self.deferred_interval_s < math.inf else 1.0
        return 0.05005 * math.ceil(third_s / 0.05)


def completed(settings: Mapping[str, Value], release: Release) -> Settings:
    """All nine values, from the profile where it is named, else from the release's own; other knobs as given."""
    name = settings.get(PROFILE, release.default_profile)
    profile = release.profiles.get(str(name), release.profiles[release.default_profile])
    return {**profile, **{knob: value for knob, value in settings.items() if knob != PROFILE}}


def number(settings: Mapping[str, Value], name: str, release: Release) -> int:
    """A whole-number knob, its default where it is not given."""
    value = settings.get(name, KNOBS[name].default(release))
    return 1 if value is None else int(value)


def limits_of(settings: Mapping[str, Value], model: ClusterModel) -> BackgroundLimits:
    """Of settings as given; recovery's own limits count only with the override, as under mClock."""
    release = model.release
    overridden = model.scheduler == WPQ or bool(settings.get(OVERRIDE, False))
    recovery = settings if overridden else {}
    kind = model.osd.kind
    chunk_min = number(settings, "osd_scrub_chunk_min", release)
    return BackgroundLimits(
        max_scrubs=number(settings, "osd_max_scrubs", release),
        chunk_max=max(number(settings, "osd_scrub_chunk_max", release), chunk_min),
        shallow_chunk_max=number(settings, "osd_shallow_scrub_chunk_max", release),
        chunk_min=chunk_min,
        shallow_chunk_min=number(settings, "osd_shallow_scrub_chunk_min", release),
        max_preemptions=number(settings, "osd_scrub_max_preemptions", release),
        concurrent_trims=number(settings, "osd_pg_max_concurrent_snap_trims", release),
        trimming_pgs=number(settings, "osd_max_trimming_pgs", release),
        max_backfills=number(recovery, "osd_max_backfills", release),
        recovery_active=number(recovery, f"osd_recovery_max_active_{kind}", release),
        deferred_batch=_deferred_batch(settings, model),
        deferred_interval_s=_deferred_interval_s(settings, release),
        deferred_most=max(1, _deferred_most(settings, model)),
        degraded_sleep_s=sleep_s("osd_recovery_sleep_degraded", settings, model),
        backfill_sleep_s=sleep_s("osd_recovery_sleep", settings, model),
        trim_sleep_s=sleep_s("osd_snap_trim_sleep", settings, model),
        delete_sleep_s=sleep_s("osd_delete_sleep", settings, model),
    )


def sleep_s(stem: str, settings: Mapping[str, Value], model: ClusterModel) -> float:
    """How long that work sleeps: 0 under mClock, which sets all to 0. osd_scrub_sleep is not simulated."""
    return wpq_sleep(stem, settings, model)[1] if model.scheduler == WPQ else 0.0


def wpq_sleep(stem: str, settings: Mapping[str, Value], model: ClusterModel) -> Tuple[str, float]:
    """The option that decides how long that work sleeps under wpq, and its seconds; of work that does not, 0.

    The option without a device goes before those with one, unless it is 0 (OSD::get_osd_recovery_sleep and its like).
    Hybrid are hard disks with RocksDB on flash. Where there is none for degraded PGs, that for all counts.
    """
    kind = "hybrid" if model.osd.has_head and model.osd.db else model.osd.kind
    for name in (stem, f"{stem}_{kind}"):
        own = KNOBS[name].default(model.release, model.version) if name in KNOBS else 0.0
        if own is None:
            return wpq_sleep("osd_recovery_sleep", settings, model)
        seconds = float(settings.get(name, own))
        if seconds > 0.0:
            return name, seconds
    return stem, 0.0


def _deferred_most(settings: Mapping[str, Value], model: ClusterModel) -> int:
    """Deferred writes that bluestore_throttle_deferred_bytes lets be under way; each costs as in the other throttle."""
    held_bytes = number(settings, "bluestore_throttle_deferred_bytes", model.release)
    return int(held_bytes / (model.osd.throttle_bytes_per_io + 4096))


def _deferred_batch(settings: Mapping[str, Value], model: ClusterModel) -> int:
    """Deferred writes that go to their places at once: a batch, or half of what their throttle holds.

    BlueStore::_kv_finalize_thread (BlueStoreThrottle::should_submit_deferred).
    """
    release = model.release
    held_bytes = number(settings, "bluestore_throttle_deferred_bytes", release)
    write_bytes = model.osd.throttle_bytes_per_io + 4096
    half = math.ceil(held_bytes / 2 / write_bytes)
    return max(1, min(number(settings, "bluestore_deferred_batch_ops_hdd", release), half))


def _deferred_interval_s(settings: Mapping[str, Value], release: Release) -> float:
    name = "bluestore_max_defer_interval"
    value = settings[name] if name in settings else KNOBS[name].default(release)
    return float(value or 0.0) or math.inf


def class_rates(settings: Mapping[str, Value], model: ClusterModel) -> Tuple[Tuple[float, float, float], ...]:
    """(reservation, weight, limit) by class for one shard, in cost units a second; 0: none.

    From 17.2.7 a cost unit is a byte, before it is what a small I/O costs; fractions are of the OSD's capacity.
    """
    hardware = model.osd.hardware
    whole = hardware.shard_bytes_s if model.release.cost_model == "bytes" else hardware.shard_iops
    by_class = shares({name: settings[name] for name in MCLOCK_NINE})
    return tuple((by_class[name][0] * whole, float(by_class[name][1]), by_class[name][2] * whole) for name in CLASSES)


def class_of(work: str, model: ClusterModel) -> int:
    """Number of the class that schedules a kind of work; 3 for immediate."""
    name = model.release.service_classes[work]
    if model.scheduler == WPQ:
        return WPQ_CLASSES.get(work, 2)
    return CLASSES.index(name) if name in CLASSES else 3


@dataclass(frozen=True)
class Costs:
    """What items cost. `fixed` ones do not depend on what the item holds."""

    least: float
    scrub_event: float
    client_write: float
    client_read: float


def client_costs(block_bytes: int, model: ClusterModel) -> Costs:
    """Of a client's items and of the least item."""
    hardware, release = model.osd.hardware, model.release
    if model.scheduler == WPQ:
        return Costs(1.0, float(WPQ_SCRUB_COST), float(block_bytes), 1.0)
    least = float(item_cost(0, hardware, release, model.version))
    write = float(item_cost(block_bytes, hardware, release, model.version))
    return Costs(least, float(item_cost(4096, hardware, release, model.version)), write, least)


def recovery_parts(object_bytes: float, settings: Mapping[str, Value], model: ClusterModel) -> int:
    """Parts in which an object is copied, one after the other: osd_recovery_max_chunk each; here all as large."""
    return max(1, math.ceil(object_bytes / number(settings, "osd_recovery_max_chunk", model.release)))


def recovery_costs(
    object_bytes: float, parts: int, settings: Mapping[str, Value], model: ClusterModel, k: int = 0
) -> Tuple[float, float, float]:
    """(the item that starts an object, the push of a part, its pull); 0 is immediate. `object_bytes` are one OSD's.

    Seen in the OSDs' logs of 20.2.4: a push costs 1 000 more than its data, and a pull as much as
    osd_recovery_max_chunk, because the size of the object is not known before it is read. What starts an object costs
    all of it, also where an OSD has one of `k` parts (PG::get_average_object_size).
    """
    part_bytes, chunk = object_bytes / parts, number(settings, "osd_recovery_max_chunk", model.release)
    if model.scheduler == WPQ:
        return float(WPQ_RECOVERY_COST), part_bytes + PUSH_COST_PER_OBJECT, float(chunk + PUSH_COST_PER_OBJECT)
    hardware, release = model.osd.hardware, model.release
    cost = float(item_cost(recovery_item_bytes(1, object_bytes * max(1, k), release), hardware, release, model.version))
    if release.cost_model == "scaled":
        # up to 17.2.6 pushes and pulls bypass the queue
        return cost, 0.0, 0.0
    push = item_cost(part_bytes + PUSH_COST_PER_OBJECT, hardware, release, model.version)
    return cost, float(push), float(item_cost(chunk, hardware, release, model.version))


def scrub_cost(
    object_bytes: float, deep: bool, settings: Mapping[str, Value], model: ClusterModel
) -> Tuple[float, float]:
    """(cost, 1 where it is that of a whole chunk, 0 where it is that of an object in it)."""
    hardware, release = model.osd.hardware, model.release
    if model.scheduler == WPQ:
        return float(settings.get("osd_scrub_cost", WPQ_SCRUB_COST)), 1.0
    version = model.version or release.newest
    whole = scrub_item_bytes(1, object_bytes, deep, settings, hardware, release, version)
    if release.cost_model == "scaled" or version < (18, 2, 5):
        return float(item_cost(whole, hardware, release, model.version)), 1.0
    return hardware.cost_per_io + (object_bytes if deep else 0.0), 0.0


def trim_cost(object_bytes: float, settings: Mapping[str, Value], model: ClusterModel) -> Tuple[float, float]:
    """(cost of a clone, cost of an item where that is fixed, else 0)."""
    if model.scheduler == WPQ:
        return 0.0, float(WPQ_SNAPTRIM_COST)
    hardware, release = model.osd.hardware, model.release
    whole = snaptrim_item_bytes(object_bytes, settings, release, model.version)
    if release.cost_model == "scaled":
        return 0.0, float(item_cost(whole, hardware, release, model.version))
    concurrent = number(settings, "osd_pg_max_concurrent_snap_trims", release)
    return whole / concurrent, 0.0


def delete_cost(settings: Mapping[str, Value], model: ClusterModel) -> Tuple[float, float]:
    """(cost of an object, cost of an item where that is fixed, else 0): osd_pg_delete_cost."""
    each = float(number(settings, "osd_pg_delete_cost", model.release))
    if model.scheduler == WPQ:
        return 0.0, each
    if model.release.cost_model == "scaled":
        return 0.0, float(item_cost(each, model.osd.hardware, model.release, model.version))
    return each, 0.0
