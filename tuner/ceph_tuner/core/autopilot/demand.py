"""Which rates say something about the settings: work that nobody asks for has a low rate under any settings.

Recovery that is finished recovers nothing, and clients that go home at night do few operations: neither is the
settings' doing. Clients that the settings hold back show it in their latency too: of N operations under way,
rate x latency = N (Little), and an open loop that is not served in time queues up.
"""

from __future__ import annotations

from typing import Dict, Mapping, Sequence, Tuple

from ceph_tuner.core.measure.metrics import METRICS, parted, scoped
from ceph_tuner.core.measure.sample import clients_wait

LEFT = {
    "recovery.copies_s": ("recovery.objects_left",),
    "recovery.objects_s": ("recovery.objects_left", "backfill.objects_left"),
    "recovery.bytes_s": ("recovery.objects_left", "backfill.objects_left"),
    "backfill.objects_s": ("backfill.objects_left",),
    "snaptrim.objects_s": ("snaptrim.queue",),
}
"""Rate of background work -> what is left of that work."""

_SCRUB = ("scrub.objects_s", "scrub.bytes_s")
# nothing says how much scrub is left; where none runs the rate is exactly 0


def asked_for(
    values: Mapping[str, float], usual: Mapping[str, float], tolerance: float, remainders: Mapping[str, float]
) -> Dict[str, float]:
    """Give the values without the rates of work that was not there to be done.

    `usual`: the means before. A client rate is left out where it is below its usual value while the latency is not
    above, beyond the tolerance. `remainders`: the newest sight of what is left, as work may have ended within a window.
    """
    present = {**values, **{name: value for name, value in remainders.items() if name in values}}
    return {name: value for name, value in values.items() if not _idle(name, present, usual, tolerance)}


def dwindles(metric: str, values: Mapping[str, float], usual: Mapping[str, float]) -> bool:
    """Whether less than half is left of the work: the last PGs are worked on by fewer OSDs, whatever the settings."""
    names = _left_of(metric)
    before = sum(usual.get(name, 0.0) for name in names)
    return before > 0 and sum(values.get(name, 0.0) for name in names) < before / 2


def _left_of(metric: str) -> Tuple[str, ...]:
    """What is left of this work, in the metric's own scope."""
    plain, scope = parted(metric)
    return tuple(scoped(name, scope) for name in LEFT.get(plain, ()))


def _idle(metric: str, values: Mapping[str, float], usual: Mapping[str, float], tolerance: float) -> bool:
    if metric not in METRICS or METRICS[metric].unit not in ("1/s", "B/s"):
        return False
    if metric.startswith("client."):
        return _clients_idle(metric, values, usual, tolerance)
    if parted(metric)[0] in _SCRUB:
        return values[metric] == 0
    remainders = [values[name] for name in _left_of(metric) if name in values]
    return bool(remainders) and not any(remainders)


def _clients_idle(metric: str, values: Mapping[str, float], usual: Mapping[str, float], tolerance: float) -> bool:
    if values[metric] == 0:
        # PGs that serve no operation are inactive: the guard sees them
        return not clients_wait(values, usual)
    latency = _of_same_clients(metric, "mean_ms")
    comparable = metric in usual and latency in usual and latency in values
    return comparable and values[metric] < usual[metric] and values[latency] <= usual[latency] * (1 + tolerance)


def offered(metric: str, means: Mapping[str, float]) -> bool:
    """Whether clients do operations that this metric would show."""
    return metric.startswith("client.") and means.get(_rate_of(metric), 0.0) > 0


def unseen_of(metrics: Sequence[str], windows: Sequence[Mapping[str, float]]) -> Tuple[str, ...]:
    """Give the metrics on clients that none of these windows shows, and without which nothing is known of the clients.

    Where clients only read, the latency of writes is nobody's; where there are none at all, all of it is missing.
    """
    there = any(means.get("client.iops", 0.0) > 0 for means in windows)

    def missing(metric: str) -> bool:
        if not metric.startswith("client.") or any(means.get(metric, 0.0) > 0 for means in windows):
            return False
        return not there or any(offered(metric, means) for means in windows)

    return tuple(metric for metric in metrics if missing(metric)) if windows else ()


def _rate_of(metric: str) -> str:
    """Rate of the operations that a metric on clients is about."""
    return _of_same_clients(metric, "iops")


def _of_same_clients(metric: str, what: str) -> str:
    """Another metric of the same reads, writes or both, in the same scope."""
    plain, scope = parted(metric)
    kind = plain[len("client.") :].split("_")[0]
    return scoped(f"client.{kind}_{what}" if kind in ("read", "write") else f"client.{what}", scope)
