"""Capacity accounting: what the work costs at the objectives' bounds, class by class, as mClock counts.

A share is of one OSD's capacity as mClock believes it (`osd_mclock_max_capacity_iops_*`), averaged over the OSDs; PGs
are placed unevenly, so that the fullest OSD needs more. Sums above 1 cannot be kept by any settings.
"""

from __future__ import annotations

from typing import Dict, Mapping, Optional, Sequence

from ceph_tuner.core.goals.judge import Judge
from ceph_tuner.core.knobs.releases import CLASSES
from ceph_tuner.core.knobs.settings import Settings
from ceph_tuner.twin.knobs_in_force import (
    class_of,
    client_costs,
    limits_of,
    recovery_costs,
    recovery_parts,
    scrub_cost,
    trim_cost,
)
from ceph_tuner.twin.model import ClusterModel, RecoveryWork


def demand(judge: Judge, model: ClusterModel, settings: Settings, metrics: Mapping[str, float]) -> Dict[str, float]:
    """Class -> share. Work that no objective bounds counts as `metrics` show it to go; immediate work is left out."""
    bounds = {objective.metric: judge.bound(objective) for objective in judge.objectives if objective.hard}
    costs_s = [("client", _client(model, bounds, metrics))]
    for kind, is_degraded in (("recovery", True), ("backfill", False)):
        works = [work for work in model.recovery if work.degraded == is_degraded]
        costs_s.append((kind, _recovery(kind, works, model, settings, bounds, metrics)))
    costs_s += [
        ("scrub", _scrub(model, settings, bounds, metrics)),
        ("snaptrim", _snaptrim(model, settings, bounds, metrics)),
    ]
    hardware = model.osd.hardware
    whole = model.osds * (hardware.bandwidth_bytes_s if model.release.cost_model == "bytes" else hardware.capacity_iops)
    shares = dict.fromkeys(CLASSES, 0.0)
    for kind, cost_s in costs_s:
        number = class_of(kind, model)
        if number < len(CLASSES):
            shares[CLASSES[number]] += cost_s / whole
    return shares


def _client(model: ClusterModel, bounds: Mapping[str, Optional[float]], metrics: Mapping[str, float]) -> float:
    parts = [(stream.rate or float(stream.depth), stream) for stream in model.clients]
    whole = sum(part for part, _ in parts)
    if not whole:
        return 0.0
    mean = 0.0
    for part, stream in parts:
        costs = client_costs(stream.block_bytes, model)
        one = stream.read_share * costs.client_read + (1 - stream.read_share) * costs.client_write
        mean += part / whole * one
    rate = bounds.get("client.iops") or metrics.get("client.iops", 0.0)
    return rate * mean


def _recovery(
    kind: str,
    works: Sequence[RecoveryWork],
    model: ClusterModel,
    settings: Settings,
    bounds: Mapping[str, Optional[float]],
    metrics: Mapping[str, float],
) -> float:
    sizes = [(work.objects, work.object_bytes / (model.pool(work.pool).k or 1)) for work in works]
    objects = sum(count for count, _ in sizes)
    if not objects:
        return 0.0
    size = sum(count * own for count, own in sizes) / objects
    rate = _least_rate(
        sum(work.there for work in works),
        bounds.get(f"{kind}.finish_s"),
        bounds.get(f"{kind}.objects_s"),
        (bounds.get(f"{kind}.bytes_s") or 0.0) / size,
    )
    one = sum(work.objects * _recovered_object(work, model, settings) for work in works) / objects
    went = metrics.get(f"{kind}.objects_s", 0.0)
    if kind == "recovery":
        # what is counted as recovered has what was only moved in it
        went = max(0.0, went - metrics.get("backfill.objects_s", 0.0))
    return (rate or went) * one


def _recovered_object(work: RecoveryWork, model: ClusterModel, settings: Settings) -> float:
    """Cost of everything that is queued for an object, on all its OSDs."""
    pool = model.pool(work.pool)
    parts = recovery_parts(work.object_bytes, settings, model)
    start, push, pull = recovery_costs(work.object_bytes / (pool.k or 1), parts, settings, model)
    # an OSD that came back empty leads its part of the PGs, and pulls what it lacks; others are pushed to
    pull_share = 1 / pool.size if work.degraded and work.target is not None and not pool.k else 0.0
    answer = client_costs(0, model).least
    return start + parts * push + pull_share * (parts * pull + start) + (1 - pull_share) * parts * answer


def _scrub(
    model: ClusterModel, settings: Settings, bounds: Mapping[str, Optional[float]], metrics: Mapping[str, float]
) -> float:
    copies = bytes_total = cost = 0.0
    chunk = limits_of(settings, model).chunk_max
    for work in model.scrub:
        pool = model.pool(work.pool)
        own = work.object_bytes / (pool.k or 1)
        one, per_chunk = scrub_cost(own, work.deep, settings, model)
        copies += work.objects * pool.size
        bytes_total += work.objects * pool.size * own
        cost += work.objects * pool.size * (one / chunk if per_chunk else one)
    if not copies:
        return 0.0
    rate = _least_rate(
        copies,
        bounds.get("scrub.interval_s"),
        bounds.get("scrub.objects_s"),
        (bounds.get("scrub.bytes_s") or 0.0) / bytes_total * copies,
    )
    return (rate or metrics.get("scrub.bytes_s", 0.0) / bytes_total * copies) * cost / copies


def _snaptrim(
    model: ClusterModel, settings: Settings, bounds: Mapping[str, Optional[float]], metrics: Mapping[str, float]
) -> float:
    clones = sum(work.clones for work in model.snaptrim)
    if not clones:
        return 0.0
    size = sum(work.clones * work.object_bytes for work in model.snaptrim) / clones
    one, per_batch = trim_cost(size, settings, model)
    there = sum(work.there for work in model.snaptrim)
    rate = _least_rate(there, bounds.get("snaptrim.drain_s"), bounds.get("snaptrim.objects_s"))
    return (rate or metrics.get("snaptrim.objects_s", 0.0)) * (
        one or per_batch / limits_of(settings, model).concurrent_trims
    )


def _least_rate(amount: float, time_s: Optional[float], *rates: Optional[float]) -> float:
    """The rate that keeps all bounds; 0 where there is none."""
    return max([amount / time_s if time_s else 0.0, *(rate or 0.0 for rate in rates)])
