"""A state out of what `ceph report` printed: the maps and the sums, and nothing of the OSDs themselves.

Its parts are called otherwise than the commands that answer the same (`Monitor::_generate_command_map`, "report";
`PGMapDigest::dump`). What it does not have is not gathered.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from ceph_tuner.core.bounded import MISREAD, SERVER_ITEMS_PER_MIB, read_json
from ceph_tuner.core.errors import Malformed
from ceph_tuner.gather.state import Answer, ClusterState

EXPECTED = "what `ceph report` printed"
MOST = 64 << 20
"""Bytes, as anybody may have written it: some thousand OSDs."""
_STAMP = "%Y-%m-%dT%H:%M:%S.%f%z"
_WEIGHT_1 = 65536.0
"""A CRUSH weight of 1."""


def state_of(content: bytes, place: str) -> ClusterState:
    """The state of a report. Raises Malformed where it is none."""
    report = read_json(content, place, MOST, items=SERVER_ITEMS_PER_MIB)
    if not isinstance(report, dict) or not {"osdmap", "crushmap", "health"} <= set(report):
        raise Malformed(place, "JSON of another kind", f"{EXPECTED}, or a file of `ceph-tuner gather`")
    try:
        return _state(report, place)
    except MISREAD as fault:
        raise Malformed(place, f"another shape ({fault!r})"[:160], EXPECTED) from None


def _state(report: Mapping[str, Any], place: str) -> ClusterState:
    at = datetime.strptime(str(report["timestamp"]), _STAMP).timestamp()
    osd_map, crush = report["osdmap"], report["crushmap"]
    nodes = _tree(crush, osd_map["osds"])
    documents: Dict[Tuple[str, ...], Any] = {
        ("versions",): _versions(report),
        ("status",): {
            "fsid": osd_map.get("fsid", ""),
            "health": report["health"],
            "pgmap": {
                "num_pgs": int(report.get("num_pg", 0)),
                "pgs_by_state": [
                    {"state_name": str(row["state"]), "count": int(row["num"])}
                    for row in report.get("num_pg_by_state", [])
                ],
            },
        },
        ("health",): report["health"],
        ("health", "detail"): report["health"],
        ("osd dump",): osd_map,
        ("osd tree",): {"nodes": nodes, "stray": []},
        ("osd metadata",): report.get("osd_metadata", []),
        ("osd crush dump",): crush,
        ("osd crush rule dump",): crush.get("rules", []),
        ("osd df",): {"nodes": _use(report, nodes)},
        ("osd pool stats",): _recovery(report),
        ("df", "detail"): {"pools": _pools(report)},
    }
    for name, code in osd_map.get("erasure_code_profiles", {}).items():
        documents["osd erasure-code-profile get", str(name)] = code
    answers = [Answer(("", key[0], key[1:]), 0, at, json.dumps(document)) for key, document in documents.items()]
    version = min(_versions(report)["osd"] or _versions(report)["mon"]).split()[2]
    up_count = sum(bool(osd["up"]) for osd in osd_map["osds"])
    return ClusterState("report", version, at, tuple(answers), EXPECTED, up_count, (), (), place, "report")


def _versions(report: Mapping[str, Any]) -> Dict[str, Dict[str, int]]:
    counts = Counter(str(row["ceph_version"]) for row in report.get("osd_metadata", []) if row.get("ceph_version"))
    return {"osd": dict(counts), "mon": {f"ceph version {report['version']} ({report.get('commit', '')})": 1}}


def _tree(crush: Mapping[str, Any], osds: Sequence[Mapping[str, Any]]) -> List[Dict[str, Any]]:
    """`osd tree` without the shadow trees of device classes, whose names have a `~`."""
    up = {int(osd["osd"]): bool(osd["up"]) for osd in osds}
    weights: Dict[int, float] = {}
    nodes: List[Dict[str, Any]] = []
    for bucket in crush["buckets"]:
        if "~" in str(bucket["name"]):
            continue
        items = bucket.get("items", [])
        weights.update({int(item["id"]): int(item["weight"]) / _WEIGHT_1 for item in items if int(item["id"]) >= 0})
        nodes.append(
            {
                "id": int(bucket["id"]),
                "name": str(bucket["name"]),
                "type": str(bucket["type_name"]),
                "children": [int(item["id"]) for item in items],
            }
        )
    for device in crush["devices"]:
        osd = int(device["id"])
        if osd in up:
            nodes.append(
                {
                    "id": osd,
                    "name": str(device["name"]),
                    "type": "osd",
                    "device_class": str(device.get("class", "")),
                    "crush_weight": weights.get(osd, 0.0),
                    "status": "up" if up[osd] else "down",
                }
            )
    return nodes


def _use(report: Mapping[str, Any], nodes: Sequence[Mapping[str, Any]]) -> List[Dict[str, Any]]:
    """The rows of `osd df`."""
    pgs = {int(row["osd"]): int(row["num_acting_pg"]) for row in report.get("num_pg_by_osd", [])}
    kib_by_osd = {int(row["osd"]): int(row.get("kb_used_data", 0)) for row in report.get("osd_stats", [])}
    weight = {int(osd["osd"]): float(osd["weight"]) for osd in report["osdmap"]["osds"]}
    return [
        {
            "id": node["id"],
            "crush_weight": node["crush_weight"],
            "reweight": weight.get(node["id"], 0.0),
            "status": node["status"],
            "pgs": pgs.get(node["id"], 0),
            "kb_used_data": kib_by_osd.get(node["id"], 0),
        }
        for node in nodes
        if node["type"] == "osd"
    ]


def _recovery(report: Mapping[str, Any]) -> List[Dict[str, Any]]:
    """The rows of `osd pool stats`, without the rates of clients: a report has none."""
    totals = {int(row["poolid"]): row["stat_sum"] for row in report.get("pool_stats", [])}
    counts = {"degraded_objects": "num_objects_degraded", "misplaced_objects": "num_objects_misplaced"}
    return [
        {
            "pool_id": int(pool["pool"]),
            "recovery": {name: int(totals.get(int(pool["pool"]), {}).get(own, 0)) for name, own in counts.items()},
        }
        for pool in report["osdmap"]["pools"]
    ]


def _pools(report: Mapping[str, Any]) -> List[Dict[str, Any]]:
    """The rows of `df detail`."""
    rows = []
    for row in report.get("pool_stats", []):
        total, store_stats = row["stat_sum"], row.get("store_stats", {})
        rows.append(
            {
                "id": int(row["poolid"]),
                "stats": {
                    "objects": int(total["num_objects"]),
                    "stored": int(total["num_bytes"]),
                    "stored_raw": int(store_stats.get("data_stored", total["num_bytes"])),
                    # `df` has no clones
                    "clones": int(total.get("num_object_clones", 0)),
                    "rd": int(total.get("num_read", 0)),
                    "rd_bytes": 1024 * int(total.get("num_read_kb", 0)),
                    "wr": int(total.get("num_write", 0)),
                    "wr_bytes": 1024 * int(total.get("num_write_kb", 0)),
                    "compress_under_bytes": int(store_stats.get("data_compressed_original", 0)),
                    "compress_bytes_used": int(store_stats.get("data_compressed_allocated", 0)),
                },
            }
        )
    return rows
