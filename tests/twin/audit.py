"""Looks through a simulation: everything is in exactly one place, and every count is that of what it counts."""

from __future__ import annotations

from collections import Counter
from typing import Dict, Iterator, List, Tuple

import numpy as np

from ceph_tuner.twin.kernel import records as k
from ceph_tuner.twin.simulation import Simulation


class Audit:
    """What is where in a simulation at this moment."""

    def __init__(self, simulation: Simulation) -> None:
        self.model, self.simulation = simulation.model, simulation
        self.tables = table = simulation._tables
        self.parameters, self.progress = table["parameters"][0], table["progress"][0]
        self.items, self.operations = table["items"], table["operations"]
        self.shards, self.osds, self.slots = table["shards"], table["osds"], table["slots"]
        self.streams = table["streams"][: len(self.model.clients)]
        self.tasks = table["tasks"][: len(simulation._layout.work)]
        self.acting = self.slots["osd"].reshape(-1, self.parameters["width"])
        heap = table["events"][: self.progress["heap_size"]]
        self.events: List[Tuple[int, int]] = list(zip(heap["kind"].tolist(), heap["index"].tolist()))
        self.times = heap["time_s"]
        self.messages, self.turns = self._ring("message"), self._ring("turn")

    def _ring(self, name: str) -> List[int]:
        mask = int(self.parameters[f"{name}_mask"])
        places = [place & mask for place in range(self.progress[f"{name}_head"], self.progress[f"{name}_tail"])]
        assert len(places) <= mask + 1, f"{name}s: more than there is room for"
        due = self.tables[f"{name}s"][places]
        assert (np.diff(due["time_s"]) >= 0).all(), f"{name}s are in the order of time"
        assert not places or due["time_s"][0] >= self.progress["now_s"]
        return list(due["number"].tolist())

    def chain(self, first: int) -> Iterator[int]:
        """Items that hang together."""
        seen = 0
        while first >= 0:
            yield int(first)
            seen += 1
            assert seen <= len(self.items), "a list of items that bites its tail"
            first = self.items["next_item"][first]

    def free(self, name: str, following: str) -> List[int]:
        """Places of `items` or `operations` that are free."""
        rows = self.tables[name][following]
        places: List[int] = []
        place = int(self.progress[f"free_{name[:-1]}"])
        while 0 <= place < len(rows):
            places.append(place)
            assert len(places) <= len(rows), "a free list that bites its tail"
            place = int(rows[place])
        assert place in (-1, len(rows))
        return places

    def free_items(self) -> List[int]:
        return self.free("items", "next_item")

    def free_operations(self) -> List[int]:
        return self.free("operations", "next_free")

    def items_by_place(self) -> Dict[str, List[int]]:
        """Every item that is in use."""
        where: Dict[str, List[int]] = {"message": self.messages}
        where["thread"] = [index for event, index in self.events if event == k.THREAD_ENDS]
        where["asleep"] = [index for event, index in self.events if event == k.RECOVERY_WAKES]
        where["queued"] = [i for head in self.shards["head"].ravel() for i in self.chain(head)]
        committing = self.osds["committing_head"][self.osds["committing"] == 1]
        where["commit"] = [i for first in committing for i in self.chain(first)]
        for name in ("written", "throttled", "deferring", "snaps", "removing"):
            where[name] = [i for first in self.osds[f"{name}_head"] for i in self.chain(first)]
        where["for an object"] = [
            i
            for ops in self.in_recovery().values()
            for op in ops
            for i in self.chain(self.operations["waiting_head"][op])
        ]
        where["for a scrub"] = [i for first in self.tasks["waiting_head"] for i in self.chain(first)]
        where["locked out"] = [i for first in self.slots["waiting_head"] for i in self.chain(first)]
        # what a commit made durable waits for a shard's first thread, then goes with that thread's item
        for name, head in (("durable", "durable_head"), ("taken", "taken_durable")):
            where[name] = [i for first in self.shards[head] for i in self.chain(first)]
        return where

    def in_recovery(self) -> Dict[int, List[int]]:
        """Tasks of recovery and backfill: the objects that are under way, by their operations."""
        objects: Dict[int, List[int]] = {}
        for number in np.flatnonzero(self.tasks["kind"] <= k.MISPLACED).tolist():
            op, own = int(self.tasks["objects_head"][number]), objects.setdefault(number, [])
            while op >= 0:
                own.append(op)
                assert len(own) <= len(self.operations), "a list of objects that bites its tail"
                op = int(self.operations["next_object"][op])
        return objects

    def operations_of(self, stream: int) -> int:
        """Client operations of a stream that are under way at OSDs."""
        free = set(self.free_operations())
        return sum(
            1
            for op, row in enumerate(self.operations)
            if op not in free and row["phase"] <= k.EC_FIRST and row["owner"] == stream
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
        assert (self.times >= self.progress["now_s"]).all(), "nothing is late"
        assert self.progress["entering"] == self.progress["dirty"] == self.progress["answered"] == 0

    def _check_items(self) -> None:
        places = [i for items in self.items_by_place().values() for i in items]
        free = self.free_items()
        assert sorted(places + free) == list(range(len(self.items))), "every item is free or in one place"

    def _check_operations(self) -> None:
        for number, (row, client) in enumerate(zip(self.streams, self.model.clients)):
            under_way = self.operations_of(number) + self.turns.count(number)
            if client.rate is None:
                assert under_way == row["depth"], "a closed loop keeps its depth"
                continue
            assert under_way == row["under_way"] <= row["depth"]
            assert row["backlog"] >= 0
            if row["mode"] == k.DRAINS:
                due = (k.CLIENT_ARRIVES, number) in self.events
                # it waits for a place, for the last answer, or for the end of its pause
                assert row["awaits_place"] + row["draining"] + due == 1
            assert row["backlog"] + row["awaits_place"] == 0 or row["under_way"] == row["depth"], (
                "nothing waits beside a free place"
            )

    def _check_shards(self) -> None:
        where = self.items_by_place()
        # a clone's own transaction waits for BlueStore without a thread
        throttled = [i for i in where["throttled"] + where["deferring"] if self.items["role"][i] != k.TRIM_LOCAL]
        waiting = [i for name in ("snaps", "removing", "locked out") for i in where[name]]
        busy = Counter(int(self.slots["shard"][self.items["slot"][i]]) for i in where["thread"] + waiting + throttled)
        for number, row in enumerate(self.shards):
            assert row["idle_threads"] >= 0
            assert row["idle_threads"] + busy[number] == self.model.osd.threads_per_shard, "a thread works or is idle"
            if self.parameters["wpq"]:
                continue
            for own, head in zip(row["queue"]["classes"], row["head"]):
                assert own["waiting"] == len(list(self.chain(head)))

    def _check_osds(self) -> None:
        objects = self.in_recovery()
        for osd, row in enumerate(self.osds):
            held = sum(self.items["throttle_bytes"][i] for i in self.chain(row["written_head"]))
            assert abs(row["throttle_bytes"] - held) < 1.0, "BlueStore's throttle holds what it admitted"
            trims = [
                self.items["role"][i] for first in ("written_head", "throttled_head") for i in self.chain(row[first])
            ]
            waiting = sum(role in (k.TRIM_LOCAL, k.TRIM_REPLICA) for role in trims)
            assert row["snaps_writing"] == waiting + row["snaps_applying"]
            assert ((k.TRIMS_APPLIED, osd) in self.events) == (row["snaps_applying"] > 0)
            assert row["snaps_head"] < 0 or row["snaps_writing"] + row["snaps_locked"] > 0, "readers wait for writers"
            assert row["removing_head"] < 0 or row["snaps_head"] >= 0 or row["snaps_locked"], "writers for either"
            running = [t for t in self.tasks if t["state"] in (k.RUNNING, k.RESERVING)]
            own = Counter(int(t["kind"]) for t in running if self.acting[t["pg"], 0] == osd)
            assert row["local_backfills"] == own[k.DEGRADED] + own[k.MISPLACED]
            assert row["scrubs"] == own[k.SCRUB]
            for slot in np.flatnonzero(self.slots["osd"] == osd).tolist():
                self._check_scrubbed(slot)
            assert row["trimming_pgs"] == own[k.SNAPTRIM]
            assert row["deleting_pgs"] == own[k.DELETION]
            remote = Counter(
                int(t["kind"])
                for t in running
                for place in range(1, t["copies"])
                if self.acting[t["pg"], place] == osd and (t["kind"] != k.MISPLACED or place == t["target"])
                # it asks them by their numbers, and has what it asked for before
                if t["state"] == k.RUNNING or osd < t["asked_osd"]
            )
            assert row["remote_backfills"] == remote[k.DEGRADED] + remote[k.MISPLACED]
            assert row["remote_scrubs"] == remote[k.SCRUB]
            led = [number for number in objects if self.acting[self.tasks["pg"][number], 0] == osd]
            turns = sum(self.tasks["queued"][number] == k.QUEUED for number in led)
            assert row["recovering"] == turns + sum(len(objects[number]) for number in led)
            batch = int(row["limits"]["deferred_batch"])
            assert 0 <= row["deferred_aside"] <= row["deferred_writes"]
            own_writes = row["deferred_writes"] + row["deferred_on_way"]
            assert 0 <= row["deferred_on_way"] <= own_writes <= row["deferred_held"], "a write is held to its place"
            assert row["deferring_head"] < 0 or row["deferred_held"] >= row["limits"]["deferred_most"]
            assert ((k.DEFERRED_WRITTEN, osd) in self.events) == (row["deferred_on_way"] > 0)
            if row["committing"] == 0 and self.model.osd.deferred_below_bytes == 0:
                assert row["deferred_writes"] == 0 < batch, "flash writes to places at once"

    def _check_scrubbed(self, slot: int) -> None:
        number = int(self.slots["scrubbed"][slot])
        if number < 0:
            return
        task = self.tasks[number]
        assert (task["kind"], task["state"]) == (k.SCRUB, k.RUNNING)
        assert task["pg"] * self.parameters["width"] == slot, "a chunk is held at the primary"
        assert task["waiting_head"] < 0 or task["preempted"] == 0 == task["preemptions_left"], "else nothing waits"

    def _check_tasks(self) -> None:
        left, total = self.tasks["left"], self.tasks["total"]
        assert ((left >= 0) & (left <= total)).all()
        state = self.tasks["state"]
        assert (left[state == k.FINISHED] == 0).all(), "what is finished has nothing left"
        in_use = [i for items in self.items_by_place().values() for i in items]
        turns = Counter(int(self.items["owner"][i]) for i in in_use if self.items["role"][i] == k.RECOVER)
        free = set(self.free_operations())
        for number, ops in self.in_recovery().items():
            row = self.tasks[number]
            assert turns[number] == (row["queued"] == k.QUEUED), "a PG has one turn in the queue, if any"
            assert len(ops) == row["left"] - row["not_begun"], "what has begun is under way"
            assert not free.intersection(ops)
            # a PG whose objects all have their copies recovers until it has had its turn once more
            ends = row["left"] == 0 and row["state"] == k.RUNNING
            assert not ends or row["queued"] != k.NOT_DUE, "a turn ends it"
        trims = self.tasks["kind"] == k.SNAPTRIM
        assert (state[(left == 0) & (self.tasks["kind"] > k.MISPLACED) & ~trims] == k.FINISHED).all()
        # a snapshot's last item finds nothing
        empty = {int(self.items["owner"][i]) for i in in_use
                 if self.items["role"][i] == k.TRIM and self.items["objects_left"][i] == 0}  # fmt: skip
        ending = np.flatnonzero(trims & (state == k.RUNNING) & (self.tasks["of_snapshot"] == 0))
        assert all(number in empty or (k.WORK_WAKES, number) in self.events for number in ending.tolist())
        counters = self.osds["counters"]
        assert all((counters[name] >= 0).all() for name in counters.dtype.names)


def check(simulation: Simulation) -> Audit:
    """Look through a simulation; raises where something is lost or counted twice."""
    audit = Audit(simulation)
    audit.check()
    return audit
