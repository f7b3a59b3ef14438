"""Writes descriptions of clusters, as `cluster_file.py` reads them.

Amounts stand with their unit where no digit is lost by it. What a description has no key for (what a fit finds of an
OSD) is left out: a fit named by `calibration` brings it back.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import wrap
from typing import Any, Dict, List, Mapping, Union

from ceph_tuner.core.atomic_write import write_text
from ceph_tuner.core.knobs.catalogue import KNOBS
from ceph_tuner.core.knobs.releases import format_version
from ceph_tuner.files.cluster_file import SCHEMA_VERSION
from ceph_tuner.files.profile_file import plain_to_text
from ceph_tuner.files.quantities import UNITS, quantity
from ceph_tuner.twin.described_cluster import SIMULATE_ALL, SIMULATED, DescribedCluster
from ceph_tuner.twin.model import (
    MIB,
    SCRUB_BACKOFF_RATIO,
    UPMAP_MAX_DEVIATION,
    ClientStream,
    ClusterModel,
    Device,
    OsdModel,
    Pool,
)

_WRITTEN = {
    "size": ("PiB", "PB", "TiB", "TB", "GiB", "GB", "MiB", "KiB", "B"),
    "bandwidth": ("GB/s", "MiB/s", "MB/s"),
    "time": ("s", "ms", "us"),
    "rate": ("kIOPS", "IOPS"),
    "count": (),
}
"""Kind of amount -> units that are written, the largest first; where all lose digits, the bare number."""

_USUAL: Dict[str, Any] = {
    "target": "osd",
    "hosts": 0, "processors": 0, "cpu": 0, "spread": 0.3, "shared": True, "slice": 0, "request": "256 KiB",
    "latency": 0, "full_stripes": False,
    "drains": False,
    "deep": True,
    "scrub_backoff": SCRUB_BACKOFF_RATIO,
    "upmap_max_deviation": UPMAP_MAX_DEVIATION,
}  # fmt: skip
"""What is meant where the key is missing, and left out here."""


def to_text(description: DescribedCluster) -> str:
    """Write a description, its notes as comments on top; `cluster_file.from_text` is the inverse."""
    # a note may quote what a cluster answered
    printable = ("".join(letter if letter.isprintable() else " " for letter in note) for note in description.notes)
    lines = (line for note in printable for line in wrap(note, 108, initial_indent="# ", subsequent_indent="#   "))
    return "".join(f"{line}\n" for line in lines) + plain_to_text(to_dict(description))


def write(path: Union[str, Path], description: DescribedCluster, force: bool = False) -> None:
    """Write it, whole or not at all. Raises InputError where the file exists and `force` is not given."""
    write_text(path, to_text(description), force)


def to_dict(description: DescribedCluster) -> Dict[str, Any]:
    """Give the file's content as plain data."""
    model = description.model
    work = _background(model)
    osds_simulated = model.simulated_osds or model.osds
    usual = SIMULATED if model.osds > SIMULATE_ALL else model.osds
    parts: Dict[str, Any] = {
        "schema": SCHEMA_VERSION,
        "name": description.name,
        "description": description.description,
        "release": model.release.name if model.version is None else format_version(model.version),
        "osds": model.osds,
        "target": description.target,
        "hosts": model.hosts,
        "processors": model.processors,
        "simulate_osds": None if osds_simulated == usual else osds_simulated,
        "network": _amount(model.network_s, "time"),
        "scrub_backoff": model.scrub_backoff_ratio,
        "upmap_max_deviation": model.upmap_max_deviation,
        "osd": {**_osd(model.osd), **(_processor_times(model.osd) if model.processors else {})},
        "pools": [_pool(pool, description.stored) for pool in model.pools],
        "clients": [_client(stream) for stream in model.clients],
        "background": work,
        "settings": _settings(description),
        "calibration": None if description.calibration is None else str(description.calibration.absolute()),
    }
    return {key: value for key, value in _unusual(parts).items() if value not in (None, "", [], {})}


def _unusual(data: Dict[str, Any]) -> Dict[str, Any]:
    return {key: value for key, value in data.items() if key not in _USUAL or value != _USUAL[key]}


def _osd(osd: OsdModel) -> Dict[str, Any]:
    return {
        "device_class": osd.device_class,
        "drive": _drive(osd.device),
        **({"db": _drive(osd.db)} if osd.db else {}),
        "capacity_iops": _amount(osd.capacity_iops, "rate"),
        "bandwidth": _amount(osd.bandwidth_bytes_s, "bandwidth"),
        "shards": osd.shards,
        "threads_per_shard": osd.threads_per_shard,
        "throttle": _amount(osd.throttle_bytes, "size"),
        "write_cpu": _amount(osd.write_cpu_s, "time"),
        "read_cpu": _amount(osd.read_cpu_s, "time"),
        "commit_latency": _amount(osd.kv_latency_s, "time"),
    }


def _processor_times(osd: OsdModel) -> Dict[str, Any]:
    """Give what counts where processors are described."""
    return {
        "message_cpu": _amount(osd.message_cpu_s, "time"),
        "commit_cpu": _amount(osd.commit_cpu_s, "time"),
        "mib_cpu": _amount(osd.moved_cpu_s_per_byte * MIB, "time"),
    }


def _drive(device: Device) -> Dict[str, Any]:
    keys: Dict[str, Any] = {
        "iops": _amount(device.iops, "rate"),
        "bandwidth": _amount(device.bandwidth_bytes_s, "bandwidth"),
        "latency": _amount(device.latency_s, "time"),
        "read_latency": _amount(device.read_latency_s, "time"),
        "spread": device.spread,
        "shared": device.shared,
        "slice": _amount(device.slice_s, "time"),
        "request": _amount(device.request_bytes, "size"),
    }
    if device.read_iops is not None:
        keys["read_iops"] = _amount(device.read_iops, "rate")
    if device.read_bandwidth_bytes_s is not None:
        keys["read_bandwidth"] = _amount(device.read_bandwidth_bytes_s, "bandwidth")
    # of a drive, 0 is not what is meant where the latency is missing
    return {**_unusual(keys), "latency": keys["latency"]}


def _pool(pool: Pool, stored_bytes: Mapping[str, float]) -> Dict[str, Any]:
    copies = {"erasure_code": {"k": pool.k, "m": pool.size - pool.k}} if pool.k else {"size": pool.size}
    amount = {"stored": _amount(stored_bytes[pool.name], "size")} if pool.name in stored_bytes else {}
    acting = {"acting": " ".join(",".join(map(str, osds)) for osds in pool.acting)} if pool.acting else {}
    return {"name": pool.name, "pgs": pool.pgs, **copies, **amount, **acting}


def _client(stream: ClientStream) -> Dict[str, Any]:
    rate = {} if stream.rate is None else {"rate": _amount(stream.rate, "rate")}
    keys = {
        "pool": stream.pool,
        **rate,
        "depth": stream.depth,
        "read_share": stream.read_share,
        "block": _amount(stream.block_bytes, "size"),
        "latency": _amount(stream.latency_s, "time"),
        "cpu": _amount(stream.cpu_s, "time"),
        "full_stripes": not stream.partial_stripe,
        "drains": stream.drains,
    }
    return _unusual(keys)


def _background(model: ClusterModel) -> Dict[str, List[Dict[str, Any]]]:
    kinds: Dict[str, List[Dict[str, Any]]] = {
        kind: [
            {
                **_objects(work.pool, work.objects, work.object_bytes),
                **({} if work.target is None else {"onto": work.target}),
                **({} if work.rounds == 1 else {"rounds": work.rounds}),
                **_times(work.times),
                **({"among": work.among} if work.among else {}),
            }
            for work in model.recovery
            if work.degraded == is_degraded
        ]
        for kind, is_degraded in (("recovery", True), ("backfill", False))
    }
    kinds["scrub"] = [
        _unusual({**_objects(work.pool, work.objects, work.object_bytes), "deep": work.deep}) for work in model.scrub
    ]
    kinds["snaptrim"] = [
        {**_objects(work.pool, work.clones, work.object_bytes, "clones"), **_times(work.times)}
        for work in model.snaptrim
    ]
    kinds["deletion"] = [{"pool": work.pool, "objects": work.objects} for work in model.deletion]
    return {kind: entries for kind, entries in kinds.items() if entries}


def _objects(pool: str, count: int, size: int, name: str = "objects") -> Dict[str, Any]:
    return {"pool": pool, name: count, "object_size": _amount(size, "size")}


def _times(times: float) -> Dict[str, float]:
    return {} if times == 1 else {"times": times}


def _settings(description: DescribedCluster) -> Dict[str, Any]:
    settings = {**description.settings, **description.sleeps}
    return {name: settings[name] for name in KNOBS if name in settings}


def _amount(value: float, kind: str) -> Union[str, float, int]:
    """With the largest unit of which there is at least one, unless that loses digits."""
    for unit in _WRITTEN[kind]:
        factor = UNITS[kind][unit]
        text = f"{value / factor:.6g} {unit}"
        if value >= factor and quantity(text, kind, "") == value:
            return text
    return int(value) if value == int(value) else value
