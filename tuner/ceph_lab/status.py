"""What a lab is doing, as one document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List

from ceph_lab import devices
from ceph_lab.cluster import Lab
from ceph_lab.places import LABS, LabPlaces
from ceph_lab.state import UP, read_state
from ceph_tuner.core.errors import LabFailed, TunerError


def lab_status(name: str, labs: Path = LABS) -> Dict[str, Any]:
    """Phase is `up`, `starting`, `crashed` (its namespace is gone) or `damaged` (its state cannot be read)."""
    places = LabPlaces(name, labs)
    nothing: Dict[str, Any] = {"name": name, "phase": "damaged", "options": {}, "daemons": []}
    try:
        state = read_state(places)
    except LabFailed:
        return nothing
    if state is None:
        return nothing
    lab = Lab(places, state)
    phase = state.phase if state.phase != UP or lab.alive else "crashed"
    return {
        "name": name,
        "release": state.options.release,
        "ceph_version": state.ceph_version,
        "phase": phase,
        "health": _health(lab) if phase == UP else "",
        "monitor": f"v2:127.0.0.1:{state.port}",
        "directory": str(places.directory),
        "conf": str(places.shared / "ceph.conf"),
        "mgr_modules": str(lab.mgr_modules),
        "capacity_iops": state.capacity_iops,
        "capacity_doubts": dict(state.doubts),
        "pools": ", ".join(map(str, state.options.made_pools)),
        "options": state.options.to_dict(),
        "daemons": _daemons(lab),
    }


def _health(lab: Lab) -> str:
    try:
        (answer,) = lab.mon_commands([{"prefix": "health", "format": "json"}])
    except TunerError:
        return "does not answer"
    health = json.loads(answer)
    checks = ", ".join(sorted(health.get("checks", {})))
    return f"{health['status']} ({checks})" if checks else str(health["status"])


def _daemons(lab: Lab) -> List[Dict[str, Any]]:
    pids = lab.daemons()
    images = {image.stem: device for device, image in devices.attached(lab.places.devices).items()}
    return [
        {"name": name, "pid": pids.get(name), **({"device": images.get(name)} if name[:3] == "osd" else {})}
        for name in lab.daemon_names
    ]
