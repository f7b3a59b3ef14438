"""Writes whose data is on its way: which have arrived, and which the monitors did not take."""

from __future__ import annotations

from typing import Dict, List

from ceph_tuner.moves import MapView, MapWrite
from ceph_tuner.moves.pgs_plan import PoolIs

REPORTED_S = 10.0
"""PGs say where they are some seconds after a map that moves them; those that do not tell by which map they say it."""
REFUSED_S = 30.0
"""An entry that is not in the map by then was dropped by the monitors."""
REFUSALS = 3
"""So often an entry is written before its PG is passed over."""


class UnderWay:
    """What was written and has not arrived. Moments are the clock's that nobody sets, in seconds."""

    def __init__(self) -> None:
        self.begun: Dict[str, MapWrite] = {}
        """By what they are about: a PG, or a pool's number."""
        self.passed_over: Dict[str, str] = {}
        """What the monitors did not take, and why."""
        self._since: Dict[str, float] = {}
        self._epochs: Dict[str, int] = {}
        """An OSD map that has the write."""
        self._there_since: Dict[str, float] = {}
        """Pools' numbers that are as wanted -> since when all of their PGs have been settled."""
        self._refusals: Dict[str, int] = {}

    def begin(self, write: MapWrite, now: float) -> None:
        """It was written."""
        self.begun[write.key], self._since[write.key] = write, now
        self._epochs.pop(write.key, None)

    def settle(self, view: MapView, now: float) -> List[MapWrite]:
        """Take out what has arrived, which is given, and what the monitors dropped, which may be written again."""
        told_epochs = {pg.pgid: pg.told_epoch for pg in view.pgs}
        # a map that is read after the write has it
        self._epochs = {key: self._epochs.get(key, view.epoch) for key in self.begun}
        arrived = []
        for key, write in list(self.begun.items()):
            age_s = now - self._since[key]
            if age_s < REPORTED_S and told_epochs.get(key, -1) < self._epochs[key]:
                continue
            if write.arrival.arrived(view):
                # the mgr changes a pool's numbers some time after the write, and PGs tell of it later still
                if isinstance(write.arrival, PoolIs) and now - self._there_since.setdefault(key, now) < REPORTED_S:
                    continue
                arrived.append(self.begun.pop(key))
            elif age_s >= REFUSED_S and write.arrival.refused(view):
                # a merge of the PG drops its entry as well: it is written again
                self._refusals[key] = self._refusals.get(key, 0) + 1
                if self._refusals[key] >= REFUSALS:
                    self.passed_over[key] = "another entry is there than was written"
                del self.begun[key]
            self._there_since.pop(key, None)
        return arrived
