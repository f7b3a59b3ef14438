"""What a cluster was like when trials for it began, and whether it is another one now.

Windows of a steady load scatter by some 10%, so a factor of 2 is no noise. It is within a day's swing, though: so a
change counts only once it has lasted for `changed_windows`, windows between the factor and its square root neither
count nor end the count. Background work that ended is no change, as settings that were good beside it are good without
it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Tuple

from ceph_tuner.core.autopilot.policy import Policy
from ceph_tuner.core.measure.quantity import quantity

OSDS_SHARE = 0.1
"""Share of a device class that comes or goes: with less, each OSD's work changes by less than windows scatter."""
CAPACITY_FACTOR = 1.25
"""On the mean of a class. Every reservation and limit is a fraction of it; benches of alike devices differ by less."""
LIGHTER = 0.85
"""Share of the client operations before below which there is less to do: windows scatter by 10%."""
IDLE_SHARE = 0.01
"""Of the cluster's capacity: below it clients are as good as idle, and their mix says nothing."""

_UNDER_WAY = {
    "recovery": ("recovery.objects_left", "recovery.objects_s"),
    "backfill": ("backfill.objects_left", "backfill.objects_s"),
    "scrub": ("scrub.objects_s",),
    "snaptrim": ("snaptrim.queue",),
}
"""Kind of background work -> the metrics that are all above 0 while it goes on."""


@dataclass(frozen=True)
class Condition:
    """A fingerprint of a cluster. What was not seen is None."""

    release: str
    """Version of the OSDs, such as 20.2.4: patch releases change what profiles and costs are."""
    osds: Mapping[str, int]
    """OSDs that are in, by device class, up or not."""
    capacity_iops: Mapping[str, float] = field(default_factory=dict)
    """What mClock reckons with, mean of an OSD, by device class."""
    iops: Optional[float] = None
    operation_bytes: Optional[float] = None
    read_share: Optional[float] = None
    work: FrozenSet[str] = frozenset()
    """Kinds of background work under way."""

    @classmethod
    def of(
        cls, release: str, osds: Mapping[str, int], capacity_iops: Mapping[str, float], means: Mapping[str, float]
    ) -> Condition:
        """Make one out of a window's means."""
        iops, bytes_s, reads = (means.get(f"client.{name}") for name in ("iops", "bytes_s", "read_iops"))
        return cls(
            release,
            dict(osds),
            dict(capacity_iops),
            iops,
            bytes_s / iops if iops and bytes_s is not None else None,
            reads / iops if iops and reads is not None else None,
            frozenset(kind for kind, names in _UNDER_WAY.items() if all(means.get(name, 0.0) > 0 for name in names)),
        )

    @property
    def idle_iops(self) -> float:
        """Client operations per second up to which the cluster is as good as idle."""
        return IDLE_SHARE * sum(self.osds.get(name, 0) * iops for name, iops in self.capacity_iops.items())

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for the store."""
        return {
            "release": self.release,
            "osds": dict(self.osds),
            "capacity_iops": dict(self.capacity_iops),
            "iops": self.iops,
            "operation_bytes": self.operation_bytes,
            "read_share": self.read_share,
            "work": sorted(self.work),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Condition:
        """Inverse of `to_dict`. Raises KeyError, TypeError or ValueError for what is none."""
        iops, operation_bytes, read_share = (
            None if document[name] is None else float(document[name])
            for name in ("iops", "operation_bytes", "read_share")
        )
        return cls(
            str(document["release"]),
            {str(name): int(count) for name, count in document["osds"].items()},
            {str(name): float(capacity) for name, capacity in document["capacity_iops"].items()},
            iops,
            operation_bytes,
            read_share,
            frozenset(str(kind) for kind in document["work"]),
        )


def changed(before: Condition, now: Condition, factor: float = Policy.changed_factor) -> List[str]:
    """Say what changed enough to begin again; nothing where the cluster is what it was."""
    reasons = [f"release {before.release} became {now.release}"] if before.release != now.release else []
    for name in sorted(before.osds.keys() | now.osds.keys()):
        was, are = before.osds.get(name, 0), now.osds.get(name, 0)
        if abs(are - was) >= OSDS_SHARE * max(was, are) and was != are:
            reasons.append(f"{was} OSDs of class {name} became {are}")
    for name in sorted(before.capacity_iops.keys() & now.capacity_iops.keys()):
        old, new = before.capacity_iops[name], now.capacity_iops[name]
        if _beyond(old, new, CAPACITY_FACTOR):
            reasons.append(f"capacity of class {name}: {old:.4g} IOPS an OSD became {new:.4g}")
    reasons += _load(before, now, factor)
    new_work = sorted(now.work - before.work)
    return [*reasons, *([f"{' and '.join(new_work)} began"] if new_work else [])]


def _load(before: Condition, now: Condition, factor: float) -> List[str]:
    if before.iops is None or now.iops is None:
        return []
    idle = max(before.idle_iops, now.idle_iops)
    reasons = []
    if _beyond(max(before.iops, idle), max(now.iops, idle), factor):
        reasons.append(f"clients: {before.iops:.4g} operations/s became {now.iops:.4g}")
    if min(before.iops, now.iops) <= idle:
        return reasons
    if before.operation_bytes is not None and now.operation_bytes is not None:
        # an operation without data is an operation of one sector at most
        old, new = max(before.operation_bytes, 512.0), max(now.operation_bytes, 512.0)
        if _beyond(old, new, factor):
            reasons.append(f"clients: {old:.4g} bytes an operation became {new:.4g}")
    old_share, new_share = before.read_share, now.read_share
    # for a factor of 2 a quarter of all operations, which is half the reads of a balanced mix
    if old_share is not None and new_share is not None and abs(new_share - old_share) > (factor - 1) / 4:
        reasons.append(f"clients: {old_share:.0%} reads became {new_share:.0%}")
    return reasons


def lighter(before: Mapping[str, float], now: Mapping[str, float], idle_iops: float = 0.0) -> str:
    """Say in what the load of a window is lighter than before; empty where it is not.

    Whatever became better then may be no gain of the settings. Clients that are served sooner do more, not less.
    Up to `idle_iops` nobody was there to be served: the mgr itself does some operations now and then.
    """
    if before.get("client.iops", 0.0) > idle_iops:
        for name, does in (("client.iops", "do"), ("client.bytes_s", "move")):
            if name in before and name not in now:
                return "clients are not seen"
            if name in now and now[name] < LIGHTER * before.get(name, 0.0):
                return f"clients {does} {quantity(name, now[name])}, {quantity(name, before[name])} before"
    finished_work = [
        kind
        for kind, names in _UNDER_WAY.items()
        if all(before.get(name, 0.0) > 0 for name in names) and not all(now.get(name, 0.0) > 0 for name in names)
    ]
    return f"{' and '.join(finished_work)} ended" if finished_work else ""


def _beyond(old: float, new: float, factor: float) -> bool:
    return max(old, new) > factor * min(old, new)


@dataclass(frozen=True)
class ConditionChange:
    """For how many windows the cluster has not been what it was, and in what. Feed it every window."""

    windows: int = 0
    what: Tuple[str, ...] = ()

    def after(self, before: Condition, now: Condition, policy: Policy) -> ConditionChange:
        """Take a window's condition."""
        what = changed(before, now, policy.changed_factor)
        if what:
            return ConditionChange(self.windows + 1, tuple(what))
        return self if changed(before, now, math.sqrt(policy.changed_factor)) else ConditionChange()

    def lasting(self, policy: Policy) -> Tuple[str, ...]:
        """What changed, once it has lasted; nothing before."""
        return self.what if self.windows >= policy.changed_windows else ()
