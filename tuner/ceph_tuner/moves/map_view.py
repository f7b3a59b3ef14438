"""Reads the maps and PGs by commands that change nothing."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from ceph_tuner.cluster.connection import Cluster
from ceph_tuner.cluster.pg_rows import all_pg_rows
from ceph_tuner.core.ceph.commands import option_number, parsed, shaped
from ceph_tuner.core.errors import CommandFailed, InputError, PermissionRefused, RetryLater
from ceph_tuner.core.measure.pg_counts import HARD_RATIO, MOST_PGS, PgOption
from ceph_tuner.core.measure.pg_documents import (
    ERASURE,
    UNHEARD,
    UNKNOWN,
    data_chunks,
    flags_of,
)
from ceph_tuner.core.measure.reading import pool_of
from ceph_tuner.moves import CrushRule, MapView, MoveOsd, MovePg, MovePool, Pairs


def read_map(cluster: Cluster) -> MapView:
    """The whole, in six commands. Raises RetryLater where not all PGs are known, TunerError."""
    osd_map, crush = _ask(cluster, "osd dump"), _ask(cluster, "osd crush dump")
    usage = _ask(cluster, "osd df")
    most_pgs = pg_option(cluster, MOST_PGS)
    hard_most_pgs = most_pgs * pg_option(cluster, HARD_RATIO)
    with shaped("osd dump"):
        pools = {int(pool["pool"]): _pool(pool) for pool in osd_map["pools"]}
        rows, chunks = all_pg_rows(cluster.commander, osd_map), data_chunks(osd_map)
        _check_heard(rows)
        return MapView(
            cluster.clock.now(),
            tuple(_pg(row, chunks) for row in rows),
            pools,
            _osds(osd_map, crush, usage),
            {int(rule["rule_id"]): _rule(rule) for rule in crush["rules"]},
            {str(row["pgid"]): _pairs(row["mappings"]) for row in osd_map.get("pg_upmap_items", [])},
            frozenset(str(row["pgid"]) for row in osd_map.get("pg_upmap", [])),
            flags_of(osd_map.get("flags", "")),
            float(osd_map.get("backfillfull_ratio", 0.9)),
            most_pgs,
            hard_most_pgs,
            str(osd_map.get("require_min_compat_client", "")),
            int(osd_map.get("epoch", 0)),
        )


def osds_named(view: MapView, name: str) -> Tuple[int, ...]:
    """The OSDs of `osd.3`, `3`, or a host's name. Raises InputError."""
    number = name[4:] if name.startswith("osd.") else name
    if number.isascii() and number.isdigit() and int(number) in view.osds:
        return (int(number),)
    osd_ids = tuple(sorted(osd.number for osd in view.osds.values() if osd.places.get("host") == name))
    if not osd_ids:
        raise InputError("OSD", repr(name), "osd.N or a host of the CRUSH map, as `ceph osd tree` shows them")
    return osd_ids


def mapped(cluster: Cluster, pgid: str) -> Tuple[int, ...]:
    """Where the newest map wants a PG: the monitors say it at once, and PGs tell it seconds later."""
    answer = parsed(cluster.commander.mon("pg map", {"pgid": pgid}), "pg map")
    with shaped("pg map"):
        return tuple(int(osd) for osd in answer["up"])


def pg_option(cluster: Cluster, option: PgOption) -> float:
    """An option about how many PGs an OSD has; Ceph's default where the monitors do not say. Raises TunerError."""
    try:
        return option_number(cluster.commander, option.who, option.name)
    except (CommandFailed, PermissionRefused):
        return option.default


def _ask(cluster: Cluster, prefix: str) -> Any:
    return parsed(cluster.commander.mon(prefix, {}), prefix)


def _check_heard(rows: Sequence[Mapping[str, Any]]) -> None:
    """Raise RetryLater where the mgr does not know where PGs are: they would count as moved.

    A mgr that became the active one says that it is ready after 20 s, also while OSDs have not told it of their PGs
    (`DaemonServer::send_report`).
    """
    unheard = sum(row["state"] == UNKNOWN for row in rows)
    if unheard:
        raise RetryLater(f"{UNHEARD}: of {unheard} it does not know where they are", "see `ceph pg ls unknown`")


def _pg(row: Mapping[str, Any], chunks: Mapping[int, int]) -> MovePg:
    pool = pool_of(str(row["pgid"]))
    return MovePg(
        str(row["pgid"]),
        pool,
        tuple(int(osd) for osd in row["up"]),
        tuple(int(osd) for osd in row["acting"]),
        float(row["stat_sum"]["num_bytes"]) / max(1, chunks.get(pool, 1)),
        frozenset(str(row["state"]).split("+")),
        int(row.get("reported_epoch", -1)),
    )


def _pool(pool: Mapping[str, Any]) -> MovePool:
    pg_num, pgp_num = int(pool["pg_num"]), int(pool["pg_placement_num"])
    return MovePool(
        int(pool["pool"]),
        str(pool["pool_name"]),
        int(pool["type"]) == ERASURE,
        int(pool["crush_rule"]),
        pg_num,
        int(pool.get("pg_num_target", pg_num)),
        pgp_num,
        int(pool.get("pg_placement_num_target", pgp_num)),
        str(pool.get("pg_autoscale_mode", "off")),
    )


def _pairs(mappings: Sequence[Mapping[str, Any]]) -> Pairs:
    return tuple((int(pair["from"]), int(pair["to"])) for pair in mappings)


def _rule(rule: Mapping[str, Any]) -> CrushRule:
    takes: List[Tuple[str, str]] = []
    levels: List[List[str]] = []
    for step in rule["steps"]:
        if step["op"] == "take":
            root, _, device_class = str(step["item_name"]).partition("~")
            takes.append((root, device_class))
            levels.append([])
        elif str(step["op"]).startswith("choose") and levels:
            levels[-1].append(str(step["type"]))
    first = levels[0] if levels else []
    return CrushRule(tuple(takes), tuple(first), all(own == first for own in levels))


def _osds(osd_map: Mapping[str, Any], crush: Mapping[str, Any], usage: Mapping[str, Any]) -> Dict[int, MoveOsd]:
    alive = {int(row["osd"]): bool(row["up"] and row["in"]) for row in osd_map["osds"]}
    above = _places(crush)
    osds = {}
    for node in usage["nodes"]:
        osd = int(node["id"])
        osds[osd] = MoveOsd(
            osd,
            alive.get(osd, False),
            float(node["crush_weight"]),
            str(node.get("device_class", "")),
            {**above.get(osd, {}), "osd": f"osd.{osd}"},
            float(node["kb"]) * 1024,
            float(node["kb_used"]) * 1024,
            int(node.get("pgs", 0)),
        )
    return osds


def _places(crush: Mapping[str, Any]) -> Dict[int, Dict[str, str]]:
    """OSD -> type -> bucket above it; the shadows of device classes (`default~ssd`) are left out."""
    buckets = {int(row["id"]): row for row in crush["buckets"] if "~" not in str(row["name"])}
    parent: Dict[int, int] = {}
    for number, row in buckets.items():
        parent.update({int(item["id"]): number for item in row["items"]})
    places: Dict[int, Dict[str, str]] = {}
    for leaf in [item for item in parent if item >= 0]:
        node: Optional[int] = parent.get(leaf)
        visits: Set[int] = set()
        # a tree that leads back to where it began has no end
        while node is not None and node not in visits:
            places.setdefault(leaf, {})[str(buckets[node]["type_name"])] = str(buckets[node]["name"])
            visits.add(node)
            node = parent.get(node)
    return places
