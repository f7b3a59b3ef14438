"""What one OSD does on the lab's device: the IOPS that mClock is told.

Measured once for each release and device by Ceph's own bench, and cached: the throttle makes it repeat to about 1%.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Dict

from ceph_tuner.lab.places import cache_directory

if TYPE_CHECKING:
    from ceph_tuner.lab.cluster import Lab

Report = Callable[[str], None]

# 3 000 writes of 4 KiB, as an OSD does at boot, but over 25 objects of 4 MiB in the place of 100, which it writes first
BENCH = ["bench", "12288000", "4096", "4194304", "25"]
"""Arguments of `ceph tell osd.N`."""
_RUNS = 3


def capacity_iops(lab: Lab, report: Report) -> float:
    """IOPS of 4 KiB writes, from the cache where this device was measured before."""
    options = lab.state.options
    key = f"{options.release} {options.iops} {options.bandwidth}"
    known = _read()
    if key not in known:
        report("measuring an OSD's capacity (once for this device)")
        command = ["ceph", "tell", "osd.0", *BENCH, "--format", "json"]
        answers = [json.loads(lab.run(command, timeout=300)) for _ in range(_RUNS)]
        # the highest, because whatever else the machine does only takes away
        known = {**_read(), key: round(max(float(answer["iops"]) for answer in answers), 1)}
        path = _path()
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.{os.getpid()}")
        temporary.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")
        os.replace(temporary, path)
    return known[key]


def _path() -> Path:
    return cache_directory() / "capacity.json"


def _read() -> Dict[str, float]:
    try:
        values = json.loads(_path().read_text(encoding="utf-8"))
        return {str(key): float(value) for key, value in values.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        # only a cache: measured again
        return {}
