"""Runs a cluster of the model: lets time pass, changes its settings, and makes values of what the kernel counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence

from numpy.typing import NDArray

from ceph_tuner.errors import InputError
from ceph_tuner.releases import Settings, Value
from ceph_tuner.twin import kernel
from ceph_tuner.twin.compiled import functions
from ceph_tuner.twin.kernel_arrays import START_S, KernelArrays
from ceph_tuner.twin.knobs_in_force import class_rates, completed
from ceph_tuner.twin.model import ClusterModel

Array = NDArray[Any]


@dataclass(frozen=True)
class Counters:
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
    """Operations by bucket, shape (2, 1024): reads and writes, 32 buckets to a doubling, from 1 us on."""


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
    kernel.DEGRADED: "degraded",
    kernel.MISPLACED: "misplaced",
    kernel.SCRUB: "scrub",
    kernel.SNAPTRIM: "snaptrim",
    kernel.DELETION: "deletion",
}


class Simulation:
    """A cluster that runs. Same model, settings and seed: same numbers, with numba or without."""

    def __init__(
        self, model: ClusterModel, settings: Mapping[str, Value], seed: int = 0, compiled: bool = True
    ) -> None:
        self.model = model
        self._functions = functions(compiled)
        in_force = completed(settings, model.release)
        self._arrays = KernelArrays(model, seed)
        self._floats, self._ints, self._named = self._arrays.floats, self._arrays.ints, self._arrays.named
        self._count = self._arrays.osds
        self.share = self._arrays.share
        """Of the cluster, what is simulated."""
        self._settings: List[Settings] = [in_force] * self._count
        self.configure(settings)

    @property
    def osds(self) -> int:
        """OSDs that are simulated."""
        return self._count

    @property
    def now(self) -> float:
        """Seconds since the start."""
        return float(self._floats[kernel.G_NOW]) - START_S

    @property
    def events(self) -> int:
        """Events so far: requests added and served, messages, completions."""
        counts = self._ints
        return int(counts[kernel.C_EVENTS] + counts[kernel.C_SERVED])

    def settings_of(self, osd: int) -> Settings:
        """What an OSD's scheduler uses."""
        return dict(self._settings[osd])

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        if not seconds >= 0:
            raise ValueError(f"seconds(={seconds}) must be 0 or more")
        until = float(self._floats[kernel.G_NOW]) + seconds
        if self._functions.compiled:
            self._functions.run(self._floats, self._ints, until)
        else:
            # lists are three times as quick to index from Python, and hold the same doubles
            floats, ints = self._floats.tolist(), self._ints.tolist()
            self._functions.run(floats, ints, until)
            self._floats[:], self._ints[:] = floats, ints
        if self._ints[kernel.C_FULL]:
            raise InputError("twin", f"more requests at a time than foreseen after {self.now:.3f} s", "a smaller model")

    def configure(self, settings: Mapping[str, Value], osds: Optional[Sequence[int]] = None) -> None:
        """Change live knobs, on all OSDs or on some. Tags that are computed stay, as in Ceph."""
        chosen = range(self._count) if osds is None else osds
        for osd in chosen:
            if not 0 <= osd < self._count:
                raise InputError(f"osd.{osd}", "no such OSD in the twin", f"osd.0 to osd.{self._count - 1}")
            known = completed(settings, self.model.release) if osds is None else {**self._settings[osd], **settings}
            self._settings[osd] = completed(known, self.model.release)
            self._arrays.write_limits(osd, self._settings[osd])
            by_class = class_rates(self._settings[osd], self.model)
            for shard in range(osd * self.model.osd.shards, (osd + 1) * self.model.osd.shards):
                for c, rates in enumerate(by_class):
                    kernel.set_class(self._floats, self._ints, kernel.QUEUE_0 + shard, c, *rates)

    def counters(self) -> Counters:
        """Everything that the OSDs counted."""
        table = self._named["NC"].reshape(self._count, kernel.M_FLOATS).copy()
        tasks = self._named["TI"].reshape(-1, kernel.T_INTS)[: len(self._arrays.tasks)]
        left = {
            kind: float(tasks[tasks[:, kernel.T_KIND] == kind, kernel.T_LEFT].sum())
            for kind in (kernel.DEGRADED, kernel.MISPLACED, kernel.SNAPTRIM)
        }
        scrubs = tasks[tasks[:, kernel.T_KIND] == kernel.SCRUB, kernel.T_STATE]
        return Counters(
            at=self.now,
            read_ops=table[:, kernel.M_READS],
            write_ops=table[:, kernel.M_WRITES],
            read_bytes=table[:, kernel.M_READ_BYTES],
            write_bytes=table[:, kernel.M_WRITE_BYTES],
            read_seconds=table[:, kernel.M_READ_S],
            write_seconds=table[:, kernel.M_WRITE_S],
            recovery_ops=table[:, kernel.M_RECOVERED],
            recovery_bytes=table[:, kernel.M_RECOVERED_BYTES],
            backfill_ops=table[:, kernel.M_BACKFILLED],
            scrub_objects=table[:, kernel.M_SCRUBBED],
            scrub_bytes=table[:, kernel.M_SCRUBBED_BYTES],
            trimmed=table[:, kernel.M_TRIMMED],
            waiting=self._waiting(),
            waited=table[:, kernel.M_WAIT : kernel.M_WAIT + 3],
            latency=self._named["HO"].reshape(self._count, 2, kernel.OSD_BUCKETS).copy(),
            degraded_left=left[kernel.DEGRADED],
            misplaced_left=left[kernel.MISPLACED],
            clones_left=left[kernel.SNAPTRIM],
            scrubbing_pgs=int((scrubs == kernel.RUNNING).sum()),
        )

    def clients(self) -> List[ClientCounts]:
        """What each client stream saw."""
        numbers = self._named["SF"].reshape(-1, kernel.Q_FLOATS)
        table = self._named["HS"].reshape(-1, 2, kernel.STREAM_BUCKETS)
        return [
            ClientCounts(float(numbers[n, kernel.Q_OPS]), float(numbers[n, kernel.Q_SECONDS]), table[n].copy())
            for n in range(len(self.model.clients))
        ]

    def acting(self, pool: str) -> Array:
        """OSDs of each simulated PG, the primary first, shape (pgs, size)."""
        acting: Array = self._arrays.pools[pool][1].copy()
        return acting

    def work(self) -> List[PgWork]:
        """Background work, PG by PG."""
        rows = self._named["TI"].reshape(-1, kernel.T_INTS)[: len(self._arrays.tasks)]
        found = []
        for pool, (first, acting) in self._arrays.pools.items():
            for row in rows[(rows[:, kernel.T_PG] >= first) & (rows[:, kernel.T_PG] < first + len(acting))]:
                objects, left = int(row[kernel.T_TOTAL]), int(row[kernel.T_LEFT])
                kind = WORK_KINDS[int(row[kernel.T_KIND])]
                running = bool(row[kernel.T_STATE] == kernel.RUNNING)
                found.append(PgWork(pool, int(row[kernel.T_PG]) - first, kind, objects, left, running))
        return found

    def _waiting(self) -> Array:
        shards = self.model.osd.shards
        ints = self._ints[kernel.HEADER : kernel.HEADER + self._count * shards * kernel.INTS].reshape(-1, kernel.INTS)
        waiting: Array = ints[:, kernel.COUNT : kernel.COUNT + 3].reshape(self._count, shards, 3).sum(axis=1)
        return waiting.astype(float)
