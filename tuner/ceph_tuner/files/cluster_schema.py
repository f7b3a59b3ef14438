"""Which keys a description of a cluster has, and of what type. What they mean is read by `cluster_file.py`."""

from __future__ import annotations

from typing import Any, Dict

from ceph_tuner.files.schema import mapping, of_file

CLASSES = ["ssd", "hdd"]
"""Device classes for which Ceph has defaults."""

_TEXT = {"type": "string"}
_WHOLE = {"type": "integer"}
_AMOUNT = {"type": ["number", "string"]}
"""With its unit as text, without as a number."""


def _list(properties: Dict[str, Any], *required_keys: str) -> Dict[str, Any]:
    return {"type": "array", "items": mapping(properties, *required_keys)}


_DRIVE = mapping(
    {
        "iops": _AMOUNT,
        "bandwidth": _AMOUNT,
        "read_iops": _AMOUNT,
        "read_bandwidth": _AMOUNT,
        "latency": _AMOUNT,
        "read_latency": _AMOUNT,
        "spread": {"type": "number"},
        "shared": {"type": "boolean"},
        "slice": _AMOUNT,
        "request": _AMOUNT,
    },
    "iops",
    "bandwidth",
)

_OSD = mapping(
    {
        "device_class": {"enum": CLASSES},
        "drive": _DRIVE,
        "db": _DRIVE,
        "capacity_iops": _AMOUNT,
        "bandwidth": _AMOUNT,
        "shards": _WHOLE,
        "threads_per_shard": _WHOLE,
        "throttle": _AMOUNT,
        "write_cpu": _AMOUNT,
        "read_cpu": _AMOUNT,
        "message_cpu": _AMOUNT,
        "commit_cpu": _AMOUNT,
        "mib_cpu": _AMOUNT,
        "commit_latency": _AMOUNT,
    },
    "drive",
)

_POOLS = _list(
    {
        "name": _TEXT,
        "pgs": _WHOLE,
        "size": _WHOLE,
        "erasure_code": mapping({"k": _WHOLE, "m": _WHOLE}, "k", "m"),
        "stored": _AMOUNT,
        "acting": _TEXT,
    },
    "name",
    "pgs",
)

_CLIENTS = _list(
    {
        "pool": _TEXT,
        "rate": _AMOUNT,
        "depth": _WHOLE,
        "read_share": {"type": "number"},
        "block": _AMOUNT,
        "latency": _AMOUNT,
        "cpu": _AMOUNT,
        "full_stripes": {"type": "boolean"},
        "drains": {"type": "boolean"},
    },
    "pool",
)

_WORK = {"pool": _TEXT, "objects": _AMOUNT, "object_size": _AMOUNT}

_MOVED = {**_WORK, "onto": _WHOLE, "rounds": _WHOLE, "times": _AMOUNT}
_RECOVERED = {**_MOVED, "among": _AMOUNT}

_BACKGROUND = mapping(
    {
        "recovery": _list(_RECOVERED, "pool", "objects"),
        "backfill": _list(_MOVED, "pool", "objects"),
        "scrub": _list({**_WORK, "deep": {"type": "boolean"}}, "pool", "objects"),
        "snaptrim": _list(
            {"pool": _TEXT, "clones": _AMOUNT, "object_size": _AMOUNT, "times": _AMOUNT}, "pool", "clones"
        ),
        "deletion": _list({"pool": _TEXT, "objects": _AMOUNT}, "pool", "objects"),
    }
)

CLUSTER = of_file(
    "cluster",
    {
        "schema": _WHOLE,
        "name": _TEXT,
        "description": _TEXT,
        "release": {"type": ["string", "number"]},
        "osds": _WHOLE,
        "target": _TEXT,
        "hosts": _WHOLE,
        "processors": _WHOLE,
        "simulate_osds": _WHOLE,
        "network": _AMOUNT,
        "scrub_backoff": {"type": "number"},
        "upmap_max_deviation": _WHOLE,
        "osd": _OSD,
        "pools": _POOLS,
        "clients": _CLIENTS,
        "background": _BACKGROUND,
        "settings": {"type": "object"},
        "calibration": _TEXT,
        "notes": {"type": "array", "items": _TEXT},
    },
    "schema",
    "release",
    "osds",
    "osd",
    "pools",
)
"""A description of a cluster; `docs/describing.md` explains it."""
