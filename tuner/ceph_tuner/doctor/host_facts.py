"""Reads a host's facts out of /sys and /proc. Opens nothing for writing."""

from __future__ import annotations

import struct
from collections import Counter
from pathlib import Path
from typing import Dict, List, Optional

from ceph_tuner.doctor.facts import HostFacts

_NO_BOUND = 1_999_999_999
"""What /dev/cpu_dma_latency says while nobody holds it (2 000 s, in microseconds)."""
_CACHE = "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES="


def read_host(root: Path = Path("/")) -> HostFacts:
    """Read the tree below `root`; what is not there is left out, with a note where it matters."""
    cpus = sorted((root / "sys/devices/system/cpu").glob("cpu[0-9]*"))
    osds = [process for process in sorted((root / "proc").glob("[0-9]*")) if _text(process / "comm") == "ceph-osd"]
    notes = [] if osds else ["no OSD runs on this host: its allocator was not looked at"]
    allocators, caches = {}, {}
    for process in osds:
        maps = _text(process / "maps")
        if not maps:
            notes.append(f"process {process.name}: no permission to read its memory map (run as root)")
            continue
        names = [name for name in ("tcmalloc", "jemalloc") if name in maps]
        allocators[int(process.name)] = names[0] if names else "libc"
        caches[int(process.name)] = _thread_cache(_text(process / "environ"))
    return HostFacts(
        cpus=len(cpus),
        idle_states=_idle_states(cpus),
        wake_within_us=_latency_bound(root / "dev/cpu_dma_latency"),
        governors=dict(Counter(name for cpu in cpus if (name := _governor(cpu / "cpufreq")))),
        iommu_groups=dict(
            Counter(_text(kind) for kind in sorted((root / "sys/kernel/iommu_groups").glob("*/type")) if _text(kind))
        ),
        allocators=allocators,
        thread_caches=caches,
        notes=tuple(notes),
    )


def _idle_states(cpus: List[Path]) -> Dict[str, float]:
    latencies: Dict[str, float] = {}
    for cpu in cpus:
        for state in sorted((cpu / "cpuidle").glob("state[0-9]*")):
            latency = _text(state / "latency")
            if _text(state / "disable") != "1" and latency.isdigit():
                name = _text(state / "name")
                latencies[name] = max(float(latency), latencies.get(name, 0.0))
    return latencies


def _governor(policy: Path) -> str:
    """`powersave/performance` is intel_pstate's governor with its preference: full clock all the same."""
    names = (_text(policy / "scaling_governor"), _text(policy / "energy_performance_preference"))
    return "/".join(name for name in names if name)


def _latency_bound(path: Path) -> Optional[float]:
    try:
        raw = path.read_bytes()[:4]
    except OSError:
        return None
    value = struct.unpack("<i", raw)[0] if len(raw) == 4 else _NO_BOUND
    return None if value >= _NO_BOUND else float(value)


def _thread_cache(environment: str) -> Optional[int]:
    for line in environment.split("\0"):
        if line.startswith(_CACHE) and line[len(_CACHE) :].isdigit():
            return int(line[len(_CACHE) :])
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
