"""Monitors beside a CephCluster, whose operator sets what it read when its run began: `resource_steps.InResource`."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Set

from ceph_tuner.core.ceph.ports import ConfigEntry
from ceph_tuner.core.changes.custom_resource import CustomResource, of_another, resource_of
from ceph_tuner.core.changes.shard_rereading import Key
from ceph_tuner.core.changes.step import Step
from monitors import Monitors

RESOURCE = CustomResource("rook-ceph", "rook-ceph")


class RookMonitors(Monitors):
    """Every write to the resource has the operator run once more, and it never unsets anything."""

    def __init__(self, stated: Optional[Dict[Key, str]] = None, **given: Any) -> None:
        super().__init__(**given)
        self.stated: Dict[Key, str] = dict(stated or {})
        self.also_stated: Dict[Key, str] = {}
        """Of these what another manager states too."""
        self.given_up: Set[Key] = set()
        self.runs: List[Dict[Key, str]] = []
        """What the operator read, of runs that it has not come to the end of."""
        self.works = True
        self.lags = True
        """Whether a run is under way at each write, which has read what stood there before it."""
        self.reconcile()

    @property
    def resource(self) -> CustomResource:
        return RESOURCE

    def rehearse(self, steps: Sequence[Step]) -> None:
        """Whatever is asked for is taken."""

    def dump(self) -> List[ConfigEntry]:
        rows = []
        for key, value in sorted(self.stated.items()):
            text = of_another(value, self.also_stated[key]) if key in self.also_stated else value
            rows.append(ConfigEntry(RESOURCE.who(key[0]), key[1], text))
        return [*super().dump(), *rows]

    def set(self, who: str, name: str, value: str) -> None:
        if (named := resource_of(who)) is None:
            super().set(who, name, value)
        else:
            self._state((named[1], name), value)

    def remove(self, who: str, name: str) -> None:
        if (named := resource_of(who)) is None:
            super().remove(who, name)
        else:
            self._state((named[1], name), None)

    def settle(self) -> str:
        if not self.works:
            return "Rook is not done"
        self.given_up |= self.also_stated.keys()
        self.reconcile()
        return ""

    def reconcile(self) -> None:
        """Finish what was begun, and run once more from what stands there now."""
        for read in [*self.runs, dict(self.stated)]:
            for (who, name), value in read.items():
                if self.table.get((who, name)) != value:
                    self.someone_sets(who, name, value)
            self.deliver()
        self.runs.clear()

    def someone_states(self, who: str, name: str, value: Optional[str]) -> None:
        """Another operator edits the resource."""
        self.stated.pop((who, name), None)
        if value is not None:
            self.stated[who, name] = value
        self.reconcile()

    def _state(self, key: Key, value: Optional[str]) -> None:
        self.before_write()
        if self.lags:
            self.runs.append(dict(self.stated))
        self.writes.append(f"cephconfig {key[0]} {key[1]} {value}")
        self.stated.pop(key, None)
        if value is not None:
            self.stated[key] = value
        self.after_write()
