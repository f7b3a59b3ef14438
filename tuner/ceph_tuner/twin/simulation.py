"""Runs a cluster of the model: lets time pass, changes its settings, and makes values of what the kernel counted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

import numpy as np
from numpy.typing import NDArray

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.releases import Settings, Value
from ceph_tuner.twin.compiled import functions
from ceph_tuner.twin.kernel import records
from ceph_tuner.twin.kernel.layout import dtype_of
from ceph_tuner.twin.kernel.osd_records import Osd
from ceph_tuner.twin.kernel.records import Stream
from ceph_tuner.twin.kernel.state import addresses, bring_back, over_objects
from ceph_tuner.twin.kernel_tables import START_S, KernelTables
from ceph_tuner.twin.knobs_in_force import class_rates, completed
from ceph_tuner.twin.model import ClusterModel

Array = NDArray[Any]


@dataclass(frozen=True)
class SimulatedCounters:
    """What a cluster counted since its start, by OSD unless said otherwise."""

    at: float
    read_ops: Array
    write_ops: Array
    read_bytes: Array
    write_bytes: Array
    read_seconds: Array
    write_seconds: Array
    recovery_ops: Array
    recovery_bytes: Array
    backfill_ops: Array
    scrub_objects: Array
    scrub_bytes: Array
    scrub_read_bytes: Array
    """With what is read again of chunks that writes preempted."""
    preempted_chunks: Array
    trimmed: Array
    waiting: Array
    """Items in the mClock queues now, shape (osds, 3)."""
    waited: Array
    """Seconds that served items spent there, shape (osds, 3)."""
    latency: Array
    """Operations by bucket of Ceph's own histograms, shape (osds, 2, 32): reads and writes, 100 us doubling."""
    degraded_left: float
    misplaced_left: float
    clones_left: float
    scrubbing_pgs: int


@dataclass(frozen=True)
class ClientCounts:
    """What the clients of a stream saw since the start."""

    operations: float
    seconds: float
    latency: Array
    """Operations by bucket, shape (2, 1024): reads and writes; `samples.edges_ms` has the edges."""


class CounterRecord(NamedTuple):
    """What a simulation has counted, as its tables have it: taken down often, made into values where these count."""

    at: float
    osds: bytes
    shards_waiting: Array
    """Items in the queues, shape (shards, 3)."""
    streams: bytes
    degraded_left: float
    misplaced_left: float
    clones_left: float
    scrubbing_pgs: int

    def counters(self) -> SimulatedCounters:
        """Everything that the OSDs counted."""
        osds = np.frombuffer(self.osds, dtype_of(Osd))
        table = osds["counters"]
        reads, writes = records.READING, records.WRITING
        return SimulatedCounters(
            at=self.at,
            read_ops=table["operations"][:, reads],
            write_ops=table["operations"][:, writes],
            read_bytes=table["operation_bytes"][:, reads],
            write_bytes=table["operation_bytes"][:, writes],
            read_seconds=table["operation_s"][:, reads],
            write_seconds=table["operation_s"][:, writes],
            recovery_ops=table["recovered_objects"],
            recovery_bytes=table["recovered_bytes"],
            backfill_ops=table["backfilled_objects"],
            scrub_objects=table["scrubbed_objects"],
            scrub_bytes=table["scrubbed_bytes"],
            scrub_read_bytes=table["scrub_read_bytes"],
            preempted_chunks=table["preempted_chunks"],
            trimmed=table["trimmed_clones"],
            waiting=self.shards_waiting.reshape(len(table), -1, self.shards_waiting.shape[1]).sum(axis=1).astype(float),
            waited=table["waited_s"],
            latency=osds["latency"],
            degraded_left=self.degraded_left,
            misplaced_left=self.misplaced_left,
            clones_left=self.clones_left,
            scrubbing_pgs=self.scrubbing_pgs,
        )

    def clients(self) -> List[ClientCounts]:
        """What each client stream saw."""
        streams = np.frombuffer(self.streams, dtype_of(Stream))
        return [ClientCounts(float(row["operations"]), float(row["operation_s"]), row["latency"]) for row in streams]


class PgWork(NamedTuple):
    """A PG's part of some background work, as of now."""

    pool: str
    pg: int
    """Number in its pool, of the PGs that are simulated."""
    kind: str
    """`degraded`, `misplaced`, `scrub`, `snaptrim` or `deletion`."""
    objects: int
    left: int
    """Of a scrub that goes on for ever: of the round under way."""
    running: bool


WORK_KINDS = {
    records.DEGRADED: "degraded",
    records.MISPLACED: "misplaced",
    records.SCRUB: "scrub",
    records.SNAPTRIM: "snaptrim",
    records.DELETION: "deletion",
}


class Simulation:
    """A cluster that runs. Same model, settings and seed: same numbers, with numba or without."""

    def __init__(
        self, model: ClusterModel, settings: Mapping[str, Value], seed: int = 0, compiled: bool = True
    ) -> None:
        self.model = model
        self._functions = functions(compiled)
        in_force = completed(settings, model.release)
        self._layout = KernelTables(model, seed)
        self._tables = self._layout.tables
        self._count = self._layout.osds
        self.share = self._layout.share
        """Of the cluster, what is simulated."""
        self._settings: List[Settings] = [in_force] * self._count
        self.configure(settings)

    @cached_property
    def _addresses(self) -> Array:
        return addresses(self._tables)

    def __getstate__(self) -> Dict[str, Any]:
        # a copy of a simulation has tables of its own
        return {name: value for name, value in vars(self).items() if name != "_addresses"}

    @property
    def osds(self) -> int:
        """OSDs that are simulated."""
        return self._count

    @property
    def now(self) -> float:
        """Seconds since the start."""
        return self._clock - START_S

    @property
    def _clock(self) -> float:
        return float(self._tables["progress"]["now_s"][0])

    @property
    def events(self) -> int:
        """Events so far: requests added and served, messages, completions."""
        progress = self._tables["progress"][0]
        return int(progress["events"] + progress["served"])

    @property
    def processors_busy(self) -> float:
        """Share of the hosts' processors that is busy, of the time since the start; 0 where none are described."""
        able_s = self.model.simulated_processors * self.now
        # what waits for one counts when it comes
        return min(1.0, float(self._tables["osds"]["counters"]["processor_s"].sum()) / able_s) if able_s else 0.0

    def settings_of(self, osd: int) -> Settings:
        """What an OSD's scheduler uses."""
        return dict(self._settings[osd])

    def advance(self, seconds: float) -> None:
        """Simulate `seconds` more. Raises ValueError below 0."""
        if not seconds >= 0:
            raise ValueError(f"seconds(={seconds}) must be 0 or more")
        until = self._clock + seconds
        if self._functions.compiled:
            self._functions.run(self._addresses.ctypes.data, until)
        else:
            objects = over_objects(self._tables)
            self._functions.run(objects, until)
            bring_back(objects, self._tables)
        if self._tables["progress"]["full"][0]:
            raise InputError("twin", f"more requests at a time than foreseen after {self.now:.3f} s", "a smaller model")

    def configure(self, settings: Mapping[str, Value], osds: Optional[Sequence[int]] = None) -> None:
        """Change live knobs, on all OSDs or on some. Tags that are computed stay, as in Ceph."""
        chosen = range(self._count) if osds is None else osds
        for osd in chosen:
            if not 0 <= osd < self._count:
                raise InputError(f"osd.{osd}", "no such OSD in the twin", f"osd.0 to osd.{self._count - 1}")
            whole = completed(settings, self.model.release) if osds is None else {**self._settings[osd], **settings}
            self._settings[osd] = completed(whole, self.model.release)
            self._layout.write_limits(osd, self._settings[osd])
            self._layout.write_rates(osd, class_rates(self._settings[osd], self.model))

    def offer(self, rates: Sequence[float]) -> None:
        """Let clients ask for other rates from now on, operations per second of each stream; all else goes on.

        Raises ValueError where streams are not as many, have no rate, or are to have one that is not above 0.
        """
        streams = self.model.clients
        if len(rates) != len(streams) or any(stream.rate is None for stream in streams):
            raise ValueError(f"rates(={list(rates)}) must be one for each of {len(streams)} streams with a rate")
        clients = tuple(replace(stream, rate=rate) for stream, rate in zip(streams, rates))
        self.model = replace(self.model, clients=clients)
        self._tables["streams"]["rate"][: len(streams)] = [rate * self.share for rate in rates]

    def counters(self) -> SimulatedCounters:
        """Everything that the OSDs counted."""
        return self.record().counters()

    def clients(self) -> List[ClientCounts]:
        """What each client stream saw."""
        return self.record().clients()

    def record(self) -> CounterRecord:
        """Both, as of now."""
        tables, tasks = self._tables, self._of_tasks()
        objects, scrubs = tasks["left"], self._numbers_of.get(records.SCRUB)

        def left(kind: int) -> float:
            numbers = self._numbers_of.get(kind)
            return 0.0 if numbers is None else float(objects[numbers].sum())

        return CounterRecord(
            self.now,
            tables["osds"].tobytes(),
            tables["shards"]["queue"]["classes"]["waiting"].copy(),
            tables["streams"][: len(self.model.clients)].tobytes(),
            left(records.DEGRADED),
            left(records.MISPLACED),
            left(records.SNAPTRIM),
            0 if scrubs is None else int((tasks["state"][scrubs] == records.RUNNING).sum()),
        )

    @cached_property
    def _numbers_of(self) -> Dict[int, Array]:
        """Kind of work -> its tasks, where there are any."""
        kinds = self._of_tasks()["kind"]
        return {int(kind): np.flatnonzero(kinds == kind) for kind in np.unique(kinds)}

    def _of_tasks(self) -> Array:
        tasks: Array = self._tables["tasks"][: len(self._layout.work)]
        return tasks

    def acting(self, pool: str) -> Array:
        """OSDs of each simulated PG, the primary first, shape (pgs, size)."""
        acting: Array = self._layout.pools[pool][1].copy()
        return acting

    def work(self) -> List[PgWork]:
        """Background work, PG by PG."""
        rows = self._of_tasks()
        # as Python's own numbers, all at once: one by one they would take ten times as long
        tasks = list(zip(*(rows[name].tolist() for name in ("pg", "kind", "total", "left", "state"))))
        return [
            PgWork(pool, pg - first, WORK_KINDS[kind], int(total), int(left), state == records.RUNNING)
            for pool, (first, acting) in self._layout.pools.items()
            for pg, kind, total, left, state in tasks
            if first <= pg < first + len(acting)
        ]

    def request_scrub(self, pool: str, pg: int) -> bool:
        """Let a PG of a pool with scrub work be scrubbed from its beginning when its OSDs have a place for it.

        False where that is not possible: the pool has no scrub work, or the PG is being scrubbed.
        """
        rows = self._of_tasks()
        own = (rows["kind"] == records.SCRUB) & (rows["pg"] == self._layout.pools[pool][0] + pg)
        if not own.any() or (rows["state"][own] == records.RUNNING).any():
            return False
        # a slice of the tables themselves, so that this is written there
        rows["state"][own] = records.WAITING
        rows["left"][own] = rows["total"][own]
        return True
