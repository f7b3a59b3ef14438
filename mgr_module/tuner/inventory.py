"""Which OSDs run and what they are, out of the mgr's memory, without building the documents of a large cluster."""

from __future__ import annotations

from typing import Any, Callable, List, Mapping

from ceph_tuner.core.profiles.in_force import kind_of

from .proto import Mgr


class MgrInventory:
    """`service.Inventory` inside the mgr. `born` has the running OSDs, as the sampling knows them."""

    def __init__(self, mgr: Mgr, born: Callable[[], Mapping[int, int]] = dict) -> None:
        self._mgr, self._born = mgr, born

    def running(self) -> List[int]:
        """Sorted ids of the running OSDs."""
        up = self._born()
        # before the first sample
        return sorted(up or [int(osd["osd"]) for osd in self._mgr.get("osd_map")["osds"] if osd["up"]])

    def kind(self, osd: int) -> str:
        """MClock has options for `ssd` and `hdd`, by what the device says of itself."""
        return kind_of(self._mgr.get_metadata("osd", str(osd)) or {})

    def pgs(self) -> List[Mapping[str, Any]]:
        """All PGs, each with what `pg ls` says of it."""
        rows: List[Mapping[str, Any]] = self._mgr.get("pg_stats")["pg_stats"]
        return rows

    def default_capacity(self, kind: str) -> float:
        """Ceph's default, as the mgr knows it."""
        return float(self._mgr.get_ceph_option(f"osd_mclock_max_capacity_iops_{kind}") or 0)
