"""Which OSDs run and what they are, out of the mgr's memory."""

from __future__ import annotations

from typing import Dict

from .proto import Mgr


class MgrInventory:
    """`service.Inventory` inside the mgr."""

    def __init__(self, mgr: Mgr) -> None:
        self._mgr = mgr

    def osds(self) -> Dict[int, str]:
        """Running OSDs and their kind: mClock has options for `ssd` and `hdd`, by what the device says of itself."""
        metadata = self._mgr.get("osd_metadata")
        return {
            int(osd["osd"]): "hdd" if metadata.get(str(osd["osd"]), {}).get("rotational") == "1" else "ssd"
            for osd in self._mgr.get("osd_map")["osds"]
            if osd["up"]
        }

    def default_capacity(self, kind: str) -> float:
        """Ceph's default, as the mgr knows it."""
        return float(self._mgr.get_ceph_option(f"osd_mclock_max_capacity_iops_{kind}") or 0)
