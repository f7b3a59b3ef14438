"""Which OSDs run, without ever building the whole OSD map of a large cluster at once.

The mgr's `osd_map` makes some seventy Python objects of each OSD, all under the interpreter's lock, so it is read only
when it has a new epoch. Copying the map for its epoch takes long as well: it is looked at when the mgr has told of a
new one. Of few OSDs a new map is read whole. Of many, the monitors are asked for the same rows as text, and each tick
reads some of them.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Any, Callable, Dict, FrozenSet, List, Optional

from ceph_tuner.core.bounded import MISREAD, read_json
from ceph_tuner.core.measure.pg_documents import data_chunks, deep_scrub_intervals

from .commander import MgrCommander
from .proto import Mgr

ROWS = 1000
"""OSDs' rows read per tick."""
ANSWER_S = 10.0
UNTOLD = 12
"""Looks after which the map's epoch is looked at though the mgr told of no new map."""

_ROW = re.compile(r'\{\s*"osd":\s*(\d+)[^{}]*?"up":\s*([01])[^{}]*?"up_from":\s*(\d+)')
"""Where a row of `osd info` has what counts. Decoding whole rows, addresses and all, takes eight times as long."""


class Osds:
    """The running OSDs: `born` has the epoch in which each came up, `known` how many OSDs there are, down or not."""

    def __init__(self, mgr: Mgr, commander: MgrCommander) -> None:
        self._mgr, self._commander = mgr, commander
        self.born: Dict[int, int] = {}
        self.known = 0
        self.down_osds: Optional[FrozenSet[int]] = None
        """OSDs that are in and down; None where only the health checks say how many."""
        self.chunks: Optional[Dict[int, int]] = None
        """Data chunks of the erasure-coded pools; None where the map is not read whole."""
        self.scrub_intervals: Optional[Dict[int, float]] = None
        """Pool -> its own deep-scrub interval; None where the map is not read whole."""
        self._told: Optional[int] = None
        """Maps that the mgr told of; None while it tells of none."""
        self._known_of: Optional[int] = None
        """What `_told` was as the map was read that is known here."""
        self._looks = 0
        """Since then."""
        self._epoch: Optional[int] = None
        self._text: Optional[str] = None
        self._place = 0
        self._found: Dict[int, Optional[int]] = {}

    def map_changed(self) -> None:
        """The mgr tells of maps, and has a new one. Any thread may call."""
        self._told = (self._told or 0) + 1

    def look(self, limit: int, osd_map: Callable[[], Any], notes: List[str]) -> bool:
        """Look at the map, or at a part of it; tells whether there are more than `limit` OSDs.

        `osd_map` gives the newest map as Ceph's object, which is copied for each who asks.
        """
        if not self.known:
            self.known = self._count()
        self._looks += 1
        if self.known > limit:
            self._look_at_part(osd_map, notes)
            return True
        self._look_at_whole(osd_map)
        return self.known > limit

    def _may_be_new(self) -> bool:
        """Whether the newest map may be another one than is known here."""
        return self._told is None or self._told != self._known_of or self._looks >= UNTOLD

    def _look_at_whole(self, osd_map: Callable[[], Any]) -> None:
        if self.chunks is not None and not self._may_be_new():
            return
        told = self._told
        epoch = int(osd_map().get_epoch())
        if epoch != self._epoch or self.chunks is None:
            self._read_whole(epoch)
        self._known_of, self._looks = told, 0

    def _read_whole(self, epoch: int) -> None:
        whole = self._mgr.get("osd_map")
        rows, self.chunks, self.scrub_intervals = whole["osds"], data_chunks(whole), deep_scrub_intervals(whole)
        self.known = len(rows)
        self.born = {int(osd["osd"]): int(osd["up_from"]) for osd in rows if osd["up"]}
        self.down_osds = frozenset(int(osd["osd"]) for osd in rows if osd["in"] and not osd["up"])
        # that of before: what has come since is read in the next tick
        self._epoch = epoch

    def _count(self) -> int:
        """How many there are, before anything is known; 0 where the monitors do not say."""
        try:
            return int(read_json(self._ask("osd stat"), "osd stat")["num_osds"])
        except MISREAD:
            return 0

    def _look_at_part(self, osd_map: Callable[[], Any], notes: List[str]) -> None:
        self.down_osds = self.chunks = self.scrub_intervals = None
        if self._text is None:
            if not self._may_be_new():
                return
            told = self._told
            epoch = int(osd_map().get_epoch())
            self._known_of, self._looks = told, 0
            if epoch == self._epoch:
                return
            self._text, self._place, self._found, self._epoch = self._ask("osd info"), 0, {}, epoch
            if self.born:
                # reading begins in the next tick: fetching megabytes was enough for one
                return
        at_end = self._read(self._text)
        if not self._found:
            notes.append("the monitors did not list the OSDs: those of the last list are watched")
            self._text = self._epoch = self._known_of = None
            return
        up = {osd: since for osd, since in self._found.items() if since is not None}
        if at_end:
            self._text, self.known = None, len(self._found)
            if up != self.born:
                self.born = up
        elif len(up) > len(self.born):
            # the first time: better some than none
            self.born = up

    def _read(self, text: str) -> bool:
        """Read the next rows; tells whether they were the last."""
        rows = 0
        for row in islice(_ROW.finditer(text, self._place), ROWS):
            osd, up, since = row.groups()
            self._found[int(osd)] = int(since) if up == "1" else None
            self._place, rows = row.end(), rows + 1
        return rows < ROWS

    def _ask(self, prefix: str) -> str:
        answers: Dict[Any, str] = self._commander.tell_many([("mon", prefix, {})], ANSWER_S)
        return answers.get(("mon", prefix), "")
