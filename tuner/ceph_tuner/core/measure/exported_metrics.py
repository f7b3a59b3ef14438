"""Where each metric is among what the plugin exports to Prometheus: written there, and read back from a server.

Names begin with `ceph_tuner_`; units are base units, so that latencies are in seconds.
"""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional, Tuple

from ceph_tuner.core.measure.metrics import CLASS, METRICS, Scope, parted

PREFIX = "ceph_tuner_"
PRESENCE = f"{PREFIX}build_info"
"""Always there, with the value 1, while the plugin exports anything."""
MS = 0.001

Labels = Tuple[Tuple[str, str], ...]


class Exported(NamedTuple):
    """A metric's family, without the prefix, and the labels that tell it from others there."""

    family: str
    labels: Labels


def labelled(**labels: str) -> Labels:
    """Labels in the order in which they are written; `class_` is `class`."""
    return tuple((name.rstrip("_"), value) for name, value in labels.items())


def scale_of(metric: str) -> float:
    """What a metric is multiplied by when it is exported."""
    return MS if metric in METRICS and METRICS[metric].unit == "ms" else 1.0


def scope_labels(scope: Optional[Scope]) -> Labels:
    """The label that says which device class or pool a series is about; none where it is about the whole cluster."""
    if scope is None:
        return ()
    return labelled(device_class=scope.name) if scope.kind == CLASS else labelled(pool=scope.name)


def exported_at(metric: str) -> Optional[Exported]:
    """Where a metric is, with or without a scope; None for what is none."""
    plain, scope = parted(metric)
    place = EXPORTED.get(plain)
    return None if place is None else Exported(place.family, (*place.labels, *scope_labels(scope)))


EXPORTED: Dict[str, Exported] = {
    "client.iops": Exported("operations_per_second", labelled(class_="client")),
    "client.read_iops": Exported("client_operations_per_second", labelled(direction="read")),
    "client.write_iops": Exported("client_operations_per_second", labelled(direction="write")),
    "client.bytes_s": Exported("bytes_per_second", labelled(class_="client")),
    "client.read_bytes_s": Exported("client_bytes_per_second", labelled(direction="read")),
    "client.write_bytes_s": Exported("client_bytes_per_second", labelled(direction="write")),
    "recovery.copies_s": Exported("copies_per_second", labelled(class_="recovery")),
    "recovery.bytes_s": Exported("bytes_per_second", labelled(class_="recovery")),
    "scrub.bytes_s": Exported("bytes_per_second", labelled(class_="scrub")),
    "recovery.objects_left": Exported("objects_left", labelled(class_="recovery")),
    "backfill.objects_left": Exported("objects_left", labelled(class_="backfill")),
    "recovery.finish_s": Exported("finish_seconds", labelled(class_="recovery")),
    "backfill.finish_s": Exported("finish_seconds", labelled(class_="backfill")),
    "snaptrim.drain_s": Exported("finish_seconds", labelled(class_="snaptrim")),
    "scrub.interval_s": Exported("scrub_interval_seconds", ()),
    "scrub.preemptions_s": Exported("scrub_preemptions_per_second", ()),
    "scrub.pgs_late": Exported("scrub_late_pgs", ()),
    "snaptrim.queue": Exported("snaptrim_queue", ()),
    "ops.slow": Exported("slow_operations", ()),
    "pgs.inactive": Exported("inactive_pgs", ()),
    "pgs.laggy": Exported("laggy_pgs", ()),
    "osds.down": Exported("down_osds", ()),
}
"""Metric of the whole cluster -> its place; every metric has one."""
for _class in ("recovery", "backfill", "scrub", "snaptrim"):
    EXPORTED[f"{_class}.objects_s"] = Exported("objects_per_second", labelled(class_=_class))
for _class in ("client", "background_recovery", "background_best_effort"):
    EXPORTED[f"queue.{_class}"] = Exported("queue_items", labelled(class_=_class))
for _prefix, _direction in (("", "all"), ("read_", "read"), ("write_", "write")):
    EXPORTED[f"client.{_prefix}mean_ms"] = Exported("client_latency_mean_seconds", labelled(direction=_direction))
    for _suffix, _quantile in (("p50_ms", "0.5"), ("p95_ms", "0.95"), ("p99_ms", "0.99")):
        if f"client.{_prefix}{_suffix}" in METRICS:
            _place = Exported("client_latency_seconds", labelled(direction=_direction, quantile=_quantile))
            EXPORTED[f"client.{_prefix}{_suffix}"] = _place
