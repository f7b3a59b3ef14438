"""Looks through a simulation: everything is in exactly one place, and every count is that of what it counts."""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, Iterator, List

import numpy as np

from ceph_tuner.twin import kernel as k
from ceph_tuner.twin.simulation import Simulation


class Audit:
    """What is where in a simulation at this moment."""

    def __init__(self, simulation: Simulation) -> None:
        self.model, self.simulation = simulation.model, simulation
        self.floats, self.ints = simulation._floats, simulation._ints
        table = simulation._named
        self.items = table["IT"].reshape(-1, k.I_INTS)
        self.item_numbers = table["IX"].reshape(-1, k.I_FLOATS)
        self.operations = table["OT"].reshape(-1, k.O_INTS)
        self.shards = table["SH"].reshape(-1, k.S_INTS)
        self.osds = table["OI"].reshape(-1, k.D_INTS)
        self.osd_numbers = table["OF"].reshape(-1, k.D_FLOATS)
        self.streams = table["ST"].reshape(-1, k.P_INTS)[: len(self.model.clients)]
        self.tasks = table["TI"].reshape(-1, k.T_INTS)[: self.ints[k.C_TASKS]]
        self.acting = table["AC"].reshape(-1, self.ints[k.C_WIDTH])
        heap = int(self.ints[k.C_HEAP])
        self.events = [(int(code) & 7, int(code) >> 3) for code in table["HP"][:heap]]
        self.times = table["HT"][:heap]
        self.messages = self._ring("MI", "MT", k.C_MSG_HEAD, k.C_MSG_TAIL, k.C_MSG_MASK)
        self.turns = self._ring("RS", "RT", k.C_TURN_HEAD, k.C_TURN_TAIL, k.C_TURN_MASK)

    def _ring(self, name: str, times: str, head: int, tail: int, mask: int) -> List[int]:
        table = self.simulation._named
        places = [place & int(self.ints[mask]) for place in range(self.ints[head], self.ints[tail])]
        assert len(places) <= self.ints[mask] + 1, f"{name} holds more than it has room for"
        due = table[times][places]
        assert (np.diff(due) >= 0).all(), f"{name} is in the order of time"
        assert not places or due[0] >= self.floats[k.G_NOW]
        return [int(table[name][place]) for place in places]

    def chain(self, first: int) -> Iterator[int]:
        """Items that hang together."""
        seen = 0
        while first >= 0:
            yield int(first)
            seen += 1
            assert seen <= len(self.items), "a list of items that bites its tail"
            first = self.items[first, k.I_NEXT]

    def free(self, rows: Any, first: int, following: int) -> List[int]:
        """Places that are free."""
        found = []
        place = int(self.ints[first])
        while 0 <= place < len(rows):
            found.append(place)
            assert len(found) <= len(rows), "a free list that bites its tail"
            place = int(rows[place, following])
        assert place in (-1, len(rows))
        return found

    def items_by_place(self) -> Dict[str, List[int]]:
        """Every item that is in use."""
        where: Dict[str, List[int]] = {"message": self.messages}
        where["thread"] = [index for event, index in self.events if event == k.E_THREAD]
        where["queued"] = [
            i for row in self.shards for c in range(k.S_TAIL - k.S_HEAD) for i in self.chain(row[k.S_HEAD + c])
        ]
        for name, head in (
            ("commit", k.D_COMMIT), ("written", k.D_KV_HEAD), ("throttled", k.D_WAIT_HEAD), ("snaps", k.D_SNAP_HEAD),
        ):  # fmt: skip
            heads = [row[head] for row in self.osds if head != k.D_COMMIT or row[k.D_KV_BUSY]]
            where[name] = [i for first in heads for i in self.chain(first)]
        # what a commit made durable waits for a shard's first thread, then goes with that thread's item
        for name, head in (("durable", k.S_DURABLE), ("taken", k.S_TAKEN)):
            where[name] = [i for row in self.shards for i in self.chain(row[head])]
        return where

    def operations_of(self, stream: int) -> int:
        """Client operations of a stream that are under way at OSDs."""
        free = set(self.free(self.operations, k.C_FREE_OP, k.O_NEXT))
        return sum(
            1
            for op, row in enumerate(self.operations)
            if op not in free and row[k.O_PHASE] <= k.EC_FIRST and row[k.O_OWNER] == stream
        )

    def check(self) -> None:
        self._check_events()
        self._check_items()
        self._check_operations()
        self._check_shards()
        self._check_osds()
        self._check_tasks()

    def _check_events(self) -> None:
        parents = [(place - 1) >> 1 for place in range(1, len(self.times))]
        assert (self.times[parents] <= self.times[1:]).all(), "the event heap is a heap"
        assert (self.times >= self.floats[k.G_NOW]).all(), "nothing is late"
        assert self.ints[k.C_NEW] == self.ints[k.C_DIRTY] == self.ints[k.C_DONE] == 0

    def _check_items(self) -> None:
        places = [i for items in self.items_by_place().values() for i in items]
        free = self.free(self.items, k.C_FREE_ITEM, k.I_NEXT)
        assert sorted(places + free) == list(range(len(self.items))), "every item is free or in one place"

    def _check_operations(self) -> None:
        for number, (row, client) in enumerate(zip(self.streams, self.model.clients)):
            under_way = self.operations_of(number) + self.turns.count(number)
            if client.rate is None:
                assert under_way == row[k.P_DEPTH], "a closed loop keeps its depth"
                continue
            assert under_way == row[k.P_FLYING] <= row[k.P_DEPTH]
            assert row[k.P_BACKLOG] >= 0
            if row[k.P_OPEN] == k.DRAINS:
                due = (k.E_ARRIVAL, number) in self.events
                # it waits for a place, for the last answer, or for the end of its pause
                assert row[k.P_BACKLOG] + row[k.P_DRAINING] + due == 1
            assert row[k.P_BACKLOG] == 0 or row[k.P_FLYING] == row[k.P_DEPTH], "nothing waits beside a free place"

    def _check_shards(self) -> None:
        where = self.items_by_place()
        slots = self.simulation._named["SL"]
        # a clone's own transaction waits for BlueStore without a thread
        throttled = [i for i in where["throttled"] if self.items[i, k.I_ROLE] != k.TRIM_LOCAL]
        busy = Counter(int(slots[self.items[i, k.I_SLOT]]) for i in where["thread"] + where["snaps"] + throttled)
        for number, row in enumerate(self.shards):
            assert row[k.S_IDLE] >= 0
            assert row[k.S_IDLE] + busy[number] == self.model.osd.threads_per_shard, "a thread works or is idle"
            if self.ints[k.C_WPQ]:
                continue
            begin = (k.QUEUE_0 + number) * k.INTS
            for c in range(3):
                assert self.ints[begin + k.COUNT + c] == len(list(self.chain(row[k.S_HEAD + c])))

    def _check_osds(self) -> None:
        for number, row in enumerate(self.osds):
            held = sum(self.item_numbers[i, k.X_ADMIT] for i in self.chain(row[k.D_KV_HEAD]))
            assert abs(self.osd_numbers[number, k.D_THROTTLE] - held) < 1.0, (
                "BlueStore's throttle holds what it admitted"
            )
            trims = [self.items[i, k.I_ROLE] for first in (k.D_KV_HEAD, k.D_WAIT_HEAD) for i in self.chain(row[first])]
            assert row[k.D_SNAPS] == sum(role in (k.TRIM_LOCAL, k.TRIM_REPLICA) for role in trims)
            running = [t for t in self.tasks if t[k.T_STATE] == k.RUNNING]
            own = Counter(int(t[k.T_KIND]) for t in running if self.acting[t[k.T_PG], 0] == number)
            assert row[k.D_LOCAL] == own[k.DEGRADED] + own[k.MISPLACED]
            assert row[k.D_SCRUBS] == own[k.SCRUB]
            assert row[k.D_TRIMS] == own[k.SNAPTRIM]
            assert row[k.D_DELETES] == own[k.DELETION]
            remote = Counter(
                int(t[k.T_KIND])
                for t in running
                for place in range(1, t[k.T_SIZE])
                if self.acting[t[k.T_PG], place] == number and (t[k.T_KIND] != k.MISPLACED or place == t[k.T_TARGET])
            )
            assert row[k.D_REMOTE] == remote[k.DEGRADED] + remote[k.MISPLACED]
            assert row[k.D_REMOTE_SCRUBS] == remote[k.SCRUB]
            assert row[k.D_RECOVERING] >= 0

    def _check_tasks(self) -> None:
        left, total = self.tasks[:, k.T_LEFT], self.tasks[:, k.T_TOTAL]
        assert ((left >= 0) & (left <= total)).all()
        assert ((left == 0) == (self.tasks[:, k.T_STATE] == k.FINISHED)).all(), "what is finished has nothing left"
        assert (self.simulation._named["NC"] >= 0).all()


def check(simulation: Simulation) -> Audit:
    """Look through a simulation; raises where something is lost or counted twice."""
    audit = Audit(simulation)
    audit.check()
    return audit
