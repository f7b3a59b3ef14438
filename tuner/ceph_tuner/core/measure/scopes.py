"""Which OSDs and pools a device class or a pool is, out of Ceph's CRUSH map and its list of pools."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Dict, FrozenSet, Iterable, List, Mapping, Optional, Set, Tuple

from ceph_tuner.core.measure.metrics import CLASS, POOL, Scope

NO_CLASS = "none"
"""What OSDs without a device class are said to be of."""


_NAMED = re.compile(r"\bosd\.(?P<osd>\d{1,9})\b|\bpg (?P<pg>\d{1,9})\.|\bpool '(?P<pool>[^']{1,200})'")
"""Whom a line of a health check's detail is about."""


@dataclass(frozen=True)
class Members:
    """What belongs to a scope, by Ceph's numbers."""

    osds: FrozenSet[int]
    pools: FrozenSet[int]


@dataclass(frozen=True)
class PoolPlace:
    """Where a pool lies."""

    number: int
    osds: FrozenSet[int]
    classes: Tuple[str, ...]
    """Device classes of these OSDs, sorted."""


@dataclass(frozen=True)
class Layout:
    """The cluster's device classes and pools."""

    classes: Mapping[str, FrozenSet[int]]
    pools: Mapping[str, PoolPlace]

    def pools_of(self, device_class: str) -> Tuple[str, ...]:
        """Names of the pools that lie on this class, on others too or not."""
        return tuple(name for name, pool in self.pools.items() if device_class in pool.classes)

    def spanning(self, device_class: str) -> Tuple[str, ...]:
        """Names of those that lie on other classes as well: their clients wait for the slowest of them."""
        return tuple(name for name in self.pools_of(device_class) if len(self.pools[name].classes) > 1)

    def members(self, scope: Scope) -> Optional[Members]:
        """The scope's OSDs and pools; None where the cluster has no such scope."""
        if scope.kind == CLASS:
            osds = self.classes.get(scope.name)
            pools = frozenset(self.pools[name].number for name in self.pools_of(scope.name))
            return None if osds is None else Members(osds, pools)
        pool = self.pools.get(scope.name)
        return None if pool is None else Members(pool.osds, frozenset([pool.number]))

    def missing(self, scopes: Iterable[Scope]) -> List[str]:
        """In words, what of these scopes the cluster has not."""
        kinds = {CLASS: "OSD of the device class", POOL: "pool called"}
        return [f"there is no {kinds[scope.kind]} {scope.name}" for scope in scopes if self.members(scope) is None]

    def concerns(self, scope: Scope, check: Mapping[str, Any]) -> bool:
        """Whether a health check, with its detail, is about a scope.

        One that names other OSDs, PGs and pools alone is not. One that names none, or more than its detail lists, is.
        """
        members = self.members(scope)
        lines = [str(line.get("message", "")) for line in check.get("detail", ())]
        mentions = [match for line in lines for match in _NAMED.finditer(line)]
        count = check.get("summary", {}).get("count", len(lines))
        if members is None or not mentions or count > len(lines):
            return True
        numbers = {name: place.number for name, place in self.pools.items()}
        # a PG is `pool.hash`
        pools = {
            int(match["pg"]) if match["pg"] else numbers.get(match["pool"]) for match in mentions if not match["osd"]
        }
        osds = {int(match["osd"]) for match in mentions if match["osd"]}
        return not pools.isdisjoint({*members.pools, None}) or not osds.isdisjoint(members.osds)

    def class_of(self, scope: Scope) -> Tuple[str, ...]:
        """The device classes that a scope is about."""
        if scope.kind == CLASS:
            return (scope.name,) if scope.name in self.classes else ()
        return self.pools[scope.name].classes if scope.name in self.pools else ()


@dataclass(frozen=True)
class CrushMap:
    """What of a CRUSH map tells where pools lie."""

    classes: Mapping[str, FrozenSet[int]]
    rules: Mapping[int, Tuple[FrozenSet[int], Tuple[str, ...]]]
    """Rule -> the OSDs that it may choose, and their device classes, sorted."""
    anywhere: Tuple[FrozenSet[int], Tuple[str, ...]]
    """The same for a rule that the map has not: all OSDs."""


def crush_map(crush: Mapping[str, Any]) -> CrushMap:
    """The map by `osd crush dump`. Of 10 000 OSDs that is 1.7 MB of text: worth keeping while the text is the same."""
    class_of = {int(row["id"]): str(row.get("class") or NO_CLASS) for row in crush["devices"] if int(row["id"]) >= 0}
    # CRUSH keeps the places of OSDs that are gone as devices without a name of an OSD
    real = {int(row["id"]) for row in crush["devices"] if str(row.get("name", "")).startswith("osd.")}
    classes: Dict[str, Set[int]] = {}
    for osd, name in class_of.items():
        if osd in real:
            classes.setdefault(name, set()).add(osd)
    below = {int(row["id"]): [int(item["id"]) for item in row.get("items", ())] for row in crush["buckets"]}
    bucket_ids = {str(row["name"]): int(row["id"]) for row in crush["buckets"]}
    osds_of_rule = {
        int(rule["rule_id"]): _osds_of(rule, class_of, below, bucket_ids) & real for rule in crush.get("rules", ())
    }
    return CrushMap(
        {name: frozenset(osds) for name, osds in sorted(classes.items())},
        {rule: (frozenset(osds), _classes_of(osds, class_of)) for rule, osds in osds_of_rule.items()},
        (frozenset(real), _classes_of(real, class_of)),
    )


def layout_of(crush: CrushMap, pools: Iterable[Mapping[str, Any]]) -> Layout:
    """The layout by the CRUSH map and the rows of `osd pool ls detail`."""
    places = {}
    for row in pools:
        osds, classes = crush.rules.get(int(row.get("crush_rule", -1)), crush.anywhere)
        places[str(row["pool_name"])] = PoolPlace(int(row.get("pool_id", row.get("pool", 0))), osds, classes)
    return Layout(crush.classes, places)


def takes_of(rule: Mapping[str, Any]) -> List[Tuple[str, str]]:
    """Root and device class (empty: any) of each `take` of a CRUSH rule."""
    takes = [str(step.get("item_name", "")) for step in rule.get("steps", ()) if step.get("op") == "take"]
    return [(root, device_class) for root, _, device_class in (name.partition("~") for name in takes)]


def _classes_of(osds: Iterable[int], class_of: Mapping[int, str]) -> Tuple[str, ...]:
    return tuple(sorted({class_of[osd] for osd in osds}))


def _osds_of(
    rule: Mapping[str, Any], class_of: Mapping[int, str], below: Mapping[int, List[int]], bucket_ids: Mapping[str, int]
) -> Set[int]:
    osds: Set[int] = set()
    for root, device_class in takes_of(rule):
        queue = [bucket_ids[root]] if root in bucket_ids else []
        while queue:
            item = queue.pop()
            queue += below.get(item, ())
            if item >= 0 and device_class in ("", class_of.get(item)):
                osds.add(item)
    return osds
