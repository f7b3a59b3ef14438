"""Runs a cluster of the model: arrays for the kernel out of values, and values out of its counters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from ceph_tuner.errors import InputError
from ceph_tuner.releases import Settings, Value
from ceph_tuner.twin import kernel
from ceph_tuner.twin.compiled import functions
from ceph_tuner.twin.knobs_in_force import (
    WPQ_PRIORITIES,
    WPQ_REPLICA_PRIORITY,
    class_of,
    class_rates,
    client_costs,
    completed,
    delete_cost,
    limits_of,
    recovery_costs,
    scrub_cost,
    trim_cost,
)
from ceph_tuner.twin.model import WPQ, ClusterModel
from ceph_tuner.twin.placement import placed

Array = NDArray[Any]

START_S = 1000.0
"""The kernel's clock begins here: a tag of exactly 0 counts as none."""

SCRUB_BACKOFF = 0.66
"""osd_scrub_backoff_ratio."""

LEASE_BURST_S = 0.32
"""PGs of one pool became active one after the other, and their leases keep that distance."""

SCRUB_STRIDE = 512.0 * 1024
"""osd_deep_scrub_stride."""

_TRIMS = 16
"""Clones that a PG may trim at a time: the most that osd_pg_max_concurrent_snap_trims is searched to, and room."""


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


class _Task(NamedTuple):
    kind: int
    pg: int
    objects: int
    target: int
    service: int
    endless: int
    size: int
    k: int
    object_bytes: float
    cost: float
    push_cost: float
    read_class: float
    pull_cost: float
    start_s: float
    work: int


class Simulation:
    """A cluster that runs. Same model, settings and seed: same numbers, with numba or without."""

    def __init__(
        self, model: ClusterModel, settings: Mapping[str, Value], seed: int = 0, compiled: bool = True
    ) -> None:
        self.model = model
        self._functions = functions(compiled)
        self._count = model.simulated_osds or model.osds
        self.share = self._count / model.osds
        """Of the cluster, what is simulated."""
        self._random = np.random.default_rng(seed)
        self._settings: List[Settings] = [completed(settings, model.release)] * self._count
        self._pools = self._place()
        self._tasks = self._make_tasks()
        self._width = max(pool.size for pool in model.pools)
        self._floats: Array
        self._ints: Array
        self._named: Dict[str, Array]
        self._make_arrays()
        self._set_up()
        self.configure(settings)

    # what is asked of it ---------------------------------------------------------------------------------------------

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
            self._write_limits(osd)
            by_class = class_rates(self._settings[osd], self.model)
            for shard in range(osd * self.model.osd.shards, (osd + 1) * self.model.osd.shards):
                for c, rates in enumerate(by_class):
                    kernel.set_class(self._floats, self._ints, kernel.QUEUE_0 + shard, c, *rates)

    def counters(self) -> Counters:
        """Everything that the OSDs counted."""
        table = self._named["NC"].reshape(self._count, kernel.M_FLOATS).copy()
        tasks = self._named["TI"].reshape(-1, kernel.T_INTS)[: len(self._tasks)]
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
        acting: Array = self._pools[pool][1].copy()
        return acting

    def work(self) -> List[PgWork]:
        """Background work, PG by PG."""
        rows = self._named["TI"].reshape(-1, kernel.T_INTS)[: len(self._tasks)]
        found = []
        for pool, (first, acting) in self._pools.items():
            for row in rows[(rows[:, kernel.T_PG] >= first) & (rows[:, kernel.T_PG] < first + len(acting))]:
                objects, left = int(row[kernel.T_TOTAL]), int(row[kernel.T_LEFT])
                kind = WORK_KINDS[int(row[kernel.T_KIND])]
                running = bool(row[kernel.T_STATE] == kernel.RUNNING)
                found.append(PgWork(pool, int(row[kernel.T_PG]) - first, kind, objects, left, running))
        return found

    # how it is set up ------------------------------------------------------------------------------------------------

    def _waiting(self) -> Array:
        shards = self.model.osd.shards
        ints = self._ints[kernel.HEADER : kernel.HEADER + self._count * shards * kernel.INTS].reshape(-1, kernel.INTS)
        waiting: Array = ints[:, kernel.COUNT : kernel.COUNT + 3].reshape(self._count, shards, 3).sum(axis=1)
        return waiting.astype(float)

    def _place(self) -> Dict[str, Tuple[int, Array]]:
        """Pool -> number of its first PG, acting sets. Of a cluster that is simulated in part, its share of the PGs."""
        found, first = {}, 0
        hosts = self.model.hosts if self._count == self.model.osds else 0
        for pool in self.model.pools:
            pgs = max(1, round(pool.pgs * self.share))
            found[pool.name] = (first, placed(pool, pgs, self._count, hosts, self._random))
            first += pgs
        return found

    def _make_tasks(self) -> List[_Task]:
        tasks: List[_Task] = []
        model = self.model
        for work in model.recovery:
            pool, (first, acting) = model.pool(work.pool), self._pools[work.pool]
            size = work.object_bytes / (pool.k or 1)
            kind = "recovery" if work.degraded else "backfill"
            if not work.degraded and work.target is not None and pool.size > 1:
                # an OSD without a PG's data does not lead it (pg_temp)
                led = acting[:, 0] == work.target
                acting[led, 0], acting[led, 1] = acting[led, 1], work.target
            cost, push, pull = recovery_costs(size, model)
            reads = class_of("erasure-code recovery read", model)
            targets = [
                int(self._random.integers(1, pool.size)) if work.target is None and pool.size > 1 else
                _position(acting[pg], work.target)
                for pg in range(len(acting))
            ]  # fmt: skip
            affected = [pg for pg, target in enumerate(targets) if target >= 0]
            objects = self._shared_out(work.objects, affected, len(acting))
            number = kernel.DEGRADED if work.degraded else kernel.MISPLACED
            for pg, count in enumerate(objects):
                if count:
                    tasks.append(
                        _Task(number, first + pg, count, targets[pg], class_of(kind, model), 0, pool.size, pool.k, size,
                              cost, push, float(reads), pull, work.start_s, len(tasks))
                    )  # fmt: skip
        for scrub in model.scrub:
            pool, (first, acting) = model.pool(scrub.pool), self._pools[scrub.pool]
            size = scrub.object_bytes / (pool.k or 1)
            for pg, count in enumerate(self._shared_out(scrub.objects, range(len(acting)), len(acting))):
                if count:
                    tasks.append(
                        _Task(kernel.SCRUB, first + pg, count, 0, class_of("scrub", model), 0 if scrub.once else 1,
                              pool.size, pool.k, size if scrub.deep else 0.0, size, 0.0, 0.0, 0.0, scrub.start_s,
                              len(tasks))
                    )  # fmt: skip
        for trim in model.snaptrim:
            pool, (first, acting) = model.pool(trim.pool), self._pools[trim.pool]
            for pg, count in enumerate(self._shared_out(trim.clones, range(len(acting)), len(acting))):
                if count:
                    tasks.append(
                        _Task(kernel.SNAPTRIM, first + pg, count, 0, class_of("snaptrim", model), 0, pool.size, pool.k,
                              float(trim.object_bytes), 0.0, 0.0, 0.0,
                              float(trim.object_bytes if trim.clone_bytes is None else trim.clone_bytes), trim.start_s,
                              len(tasks))
                    )  # fmt: skip
        for delete in model.deletion:
            pool, (first, acting) = model.pool(delete.pool), self._pools[delete.pool]
            for pg, count in enumerate(self._shared_out(delete.objects, range(len(acting)), len(acting))):
                if count:
                    tasks.append(
                        _Task(kernel.DELETION, first + pg, count, 0, class_of("pg deletion", model), 0, pool.size,
                              pool.k, 0.0, *delete_cost(model), 0.0, 0.0, delete.start_s, len(tasks))
                    )  # fmt: skip
        return tasks

    def _shared_out(self, objects: int, pgs: Sequence[int], count: int) -> List[int]:
        """Objects of each PG: hashed, so as uneven as chance makes them."""
        shares = np.zeros(count)
        shares[list(pgs)] = 1.0 / max(1, len(pgs))
        if not pgs:
            return [0] * count
        return [int(n) for n in self._random.multinomial(round(objects * self.share), shares)]

    def _make_arrays(self) -> None:
        model, osds = self.model, self._count
        shards = osds * model.osd.shards
        pgs = sum(len(acting) for _, acting in self._pools.values())
        flying = sum(max(1, round(client.depth * self.share)) for client in model.clients)
        trimming = min(16 * osds, sum(task.kind == kernel.SNAPTRIM for task in self._tasks))
        items = flying * (self._width + 1) + len(self._tasks) * (2 * self._width + 2) + _TRIMS * trimming * self._width
        operations = flying + len(self._tasks) + _TRIMS * trimming
        # what one event may bring about
        reserve = flying + len(self._tasks) * (self._width + 1) + 256
        items, operations = items + reserve, operations + reserve
        # one event may bring about as much as this at once
        if max(flying, len(self._tasks)) >= kernel.SCRATCH:
            found = f"{flying} client operations at a time and {len(self._tasks)} PGs with background work"
            raise InputError("twin", found, f"fewer than {kernel.SCRATCH} of each, or simulated_osds")
        room = 1 << int(items + 1).bit_length()
        turns = 1 << int(flying + 1).bit_length()
        threads = shards * model.osd.threads_per_shard
        heap = 2 * threads + 4 * osds + 16 * shards + 2 * len(self._tasks) + 16 * len(model.pools) + 512

        streams, tasks = max(1, len(model.clients)), max(1, len(self._tasks))
        sizes = {
            "HT": heap, "HP": heap, "MT": room, "MI": room, "RT": turns, "RS": turns, "IT": items * kernel.I_INTS,
            "IX": items * kernel.I_FLOATS, "OT": operations * kernel.O_INTS, "OX": operations * kernel.O_FLOATS,
            "SH": shards * kernel.S_INTS, "SX": shards * kernel.S_FLOATS, "OI": osds * kernel.D_INTS,
            "OF": osds * kernel.D_FLOATS, "DV": 2 * osds * kernel.V_FLOATS, "DP": 2 * osds * kernel.B_FLOATS,
            "KN": osds * kernel.N_INTS, "AC": pgs * self._width, "SL": pgs * self._width, "LK": pgs * self._width,
            "ST": streams * kernel.P_INTS, "SF": streams * kernel.Q_FLOATS, "TI": tasks * kernel.T_INTS,
            "TF": tasks * kernel.T_FLOATS, "TL": tasks, "TB": 5 * (osds + 1), "UN": kernel.TABLE, "EX": kernel.TABLE,
            "NC": osds * kernel.M_FLOATS, "HO": osds * 2 * kernel.OSD_BUCKETS,
            "HS": streams * 2 * kernel.STREAM_BUCKETS, "XQ": 3 * kernel.SCRATCH, "MK": shards * (kernel.MARKS + 1),
        }  # fmt: skip
        # the queues' own arrays come first, after the header
        queue_floats, queue_ints = kernel.new_queues(kernel.QUEUE_0 + shards)
        queue_ints[: kernel.HEADER] = 0
        named: Dict[str, Array] = {}
        queue_begins: Dict[str, int] = {}
        arrays = []
        for start, names in ((queue_floats, kernel.FLOAT_SEGMENTS), (queue_ints, kernel.INT_SEGMENTS)):
            whole = np.zeros(len(start) + sum(sizes[name] for name in names), dtype=start.dtype)
            whole[: len(start)] = start
            arrays.append(whole)
            place = len(start)
            for name in names:
                queue_begins[name] = place
                named[name] = whole[place : place + sizes[name]]
                place += sizes[name]
        floats, ints = arrays
        for name, place in queue_begins.items():
            ints[getattr(kernel, name)] = place
        ints[kernel.C_MSG_MASK], ints[kernel.C_TURN_MASK] = room - 1, turns - 1
        ints[kernel.C_ITEM_ROOM], ints[kernel.C_OP_ROOM] = items - reserve, operations - reserve
        ints[kernel.C_HEAP_ROOM] = heap - threads - 256
        named["UN"][:] = self._random.random(kernel.TABLE)
        named["EX"][:] = self._random.standard_exponential(kernel.TABLE)
        self._floats, self._ints, self._named = floats, ints, named

    def _set_up(self) -> None:
        self._set_parameters()
        self._set_places()
        self._set_drives()
        self._set_streams()
        self._set_tasks()
        self._set_events()

    def _set_parameters(self) -> None:
        model, osd = self.model, self.model.osd
        counts, values = self._ints, self._floats
        counts[kernel.C_OSDS], counts[kernel.C_SHARDS], counts[kernel.C_WIDTH] = self._count, osd.shards, self._width
        counts[kernel.C_WPQ] = int(model.scheduler == WPQ)
        counts[kernel.C_STREAMS], counts[kernel.C_TASKS] = len(model.clients), len(self._tasks)
        # Reef counts a scrub's own and foreign places together, Tentacle apart
        counts[kernel.C_READ_BUDGET] = int(not osd.device.shared)
        counts[kernel.C_SHARED_SCRUBS] = int((model.version or model.release.newest) < (20, 0, 0))
        costs = client_costs(4096, model)
        for place, value in {
            kernel.G_NOW: START_S,
            kernel.G_NET: model.network_s,
            kernel.G_WRITE_CPU: osd.write_cpu_s,
            kernel.G_READ_CPU: osd.read_cpu_s,
            kernel.G_REPLY_CPU: osd.reply_cpu_s,
            kernel.G_BYTE_CPU: osd.cpu_s_per_byte,
            kernel.G_SCAN_CPU: osd.scan_cpu_s,
            kernel.G_TRIM_CPU: osd.trim_cpu_s,
            kernel.G_KV_IOS: osd.kv_ios,
            kernel.G_KV_BYTES: osd.kv_bytes,
            kernel.G_KV_LATENCY: osd.kv_latency_s,
            kernel.G_TRIM_IOS: osd.trim_ios,
            kernel.G_TRIM_BYTES: osd.trim_bytes,
            kernel.G_THROTTLE: osd.throttle_bytes,
            kernel.G_THROTTLE_IO: osd.throttle_cost_per_io,
            kernel.G_REQUEST: osd.device.request_bytes,
            kernel.G_COST_IO: costs.least,
            kernel.G_SPREAD: osd.device.spread,
            kernel.G_BACKOFF: SCRUB_BACKOFF,
            kernel.G_PRIORITY: WPQ_PRIORITIES[0],
            kernel.G_PRIORITY_1: WPQ_PRIORITIES[1],
            kernel.G_PRIORITY_2: model.scrub_priority,
            kernel.G_PRIORITY_4: WPQ_REPLICA_PRIORITY,
            kernel.G_SCRUB_EVENT: costs.scrub_event,
            kernel.G_HANDOVER: 0.0,
            kernel.G_STRIDE: SCRUB_STRIDE,
            kernel.G_KV_EACH: osd.kv_cpu_s,
            kernel.G_KV_TRIM: osd.trim_kv_cpu_s,
        }.items():
            values[place] = value
        for table, ints, following in (
            ("IT", kernel.I_INTS, kernel.I_NEXT),
            ("OT", kernel.O_INTS, kernel.O_NEXT),
        ):
            rows = self._named[table].reshape(-1, ints)
            rows[:, following] = np.arange(1, len(rows) + 1)
            rows[-1, following] = -1

    def _set_places(self) -> None:
        shards = self.model.osd.shards
        acting = self._named["AC"].reshape(-1, self._width)
        for pool in self.model.pools:
            first, own = self._pools[pool.name]
            acting[first : first + len(own), : pool.size] = own
            numbers = np.arange(len(own))[:, None] % shards
            self._named["SL"].reshape(-1, self._width)[first : first + len(own), : pool.size] = own * shards + numbers
        rows = self._named["SH"].reshape(-1, kernel.S_INTS)
        rows[:, kernel.S_IDLE] = rows[:, kernel.S_ASLEEP] = self.model.osd.threads_per_shard
        rows[:, kernel.S_HEAD : kernel.S_TAIL] = -1
        rows[:, kernel.S_FIRST] = rows[:, kernel.S_DURABLE] = rows[:, kernel.S_TAKEN] = -1
        rows[:, kernel.S_OSD] = np.arange(len(rows)) // shards
        osds = self._named["OI"].reshape(-1, kernel.D_INTS)
        for column in (
            kernel.D_KV_HEAD,
            kernel.D_KV_TAIL,
            kernel.D_COMMIT,
            kernel.D_WAIT_HEAD,
            kernel.D_WAIT_TAIL,
            kernel.D_SNAP_HEAD,
            kernel.D_SNAP_TAIL,
        ):
            osds[:, column] = -1

    def _set_drives(self) -> None:
        device = self.model.osd.device
        rows = self._named["DP"].reshape(-1, 2, kernel.B_FLOATS)
        rows[:, 0] = (1.0 / device.iops, 1.0 / device.bandwidth_bytes_s, device.slice_s, device.latency_s)
        rows[:, 1] = (
            1.0 / (device.read_iops or device.iops),
            1.0 / (device.read_bandwidth_bytes_s or device.bandwidth_bytes_s),
            device.slice_s,
            device.read_latency_s,
        )
        self._named["DV"].reshape(-1, kernel.V_FLOATS)[:, kernel.V_START] = START_S

    def _set_streams(self) -> None:
        for n, client in enumerate(self.model.clients):
            first, acting = self._pools[client.pool]
            pool = self.model.pool(client.pool)
            costs = client_costs(client.block_bytes, self.model)
            self._named["ST"].reshape(-1, kernel.P_INTS)[n, :9] = (
                first, len(acting), pool.size, pool.k, max(1, round(client.depth * self.share)), 0, 0,
                kernel.CLOSED if client.rate is None else kernel.DRAINS if client.drains else kernel.OPEN,
                int(client.partial_stripe),
            )  # fmt: skip
            self._named["SF"].reshape(-1, kernel.Q_FLOATS)[n] = (
                (client.rate or 0.0) * self.share, client.read_share, client.latency_s, client.block_bytes,
                costs.client_write, costs.client_read, 0.0, 0.0, 0.0, 0.0,
            )  # fmt: skip

    def _set_tasks(self) -> None:
        rows, numbers = self._named["TI"].reshape(-1, kernel.T_INTS), self._named["TF"].reshape(-1, kernel.T_FLOATS)
        acting = self._named["AC"].reshape(-1, self._width)
        for n, task in enumerate(self._tasks):
            rows[n] = (
                task.kind, task.pg, kernel.DISABLED, task.objects, task.objects, 0, 0, 0, task.target, task.service,
                task.endless, task.objects, 0, task.work, task.size, task.k,
            )  # fmt: skip
            numbers[n, :5] = (task.object_bytes, task.cost, task.push_cost, task.read_class, task.pull_cost)
        self._led: List[List[int]] = [[] for _ in range(self._count)]
        for n, task in enumerate(self._tasks):
            self._led[int(acting[task.pg, 0])].append(n)
        groups: List[List[int]] = [[] for _ in range(5 * (self._count + 1))]
        for n, task in enumerate(self._tasks):
            groups[task.kind * (self._count + 1) + int(acting[task.pg, 0])].append(n)
        place = 0
        for group, own in enumerate(groups):
            self._named["TB"][group] = place
            # the order in which PGs come up differs from OSD to OSD
            self._random.shuffle(own)
            self._named["TL"][place : place + len(own)] = own
            place += len(own)

    def _set_events(self) -> None:
        osds = self._count if self.model.scrub else 0
        events = [
            *((START_S + task.start_s, kernel.E_WORK, n) for n, task in enumerate(self._tasks)),
            *((START_S + float(self._random.random()), kernel.E_SCRUB, osd) for osd in range(osds)),
            *(
                (START_S + kernel.LEASE_S * begin + burst, kernel.E_WORK, len(self._tasks) + 1)
                for begin in self._random.random(len(self.model.pools))
                for burst in np.arange(0.0, LEASE_BURST_S, 0.04)
            ),
            *((START_S + kernel.CLEAN_S, kernel.E_CLEAN, n) for n in range(self._count * self.model.osd.shards)),
        ]
        turns: List[Tuple[float, int]] = []
        for n, client in enumerate(self.model.clients):
            if client.rate is not None:
                gap = float(self._random.standard_exponential()) / (client.rate * self.share)
                events.append((START_S + gap, kernel.E_ARRIVAL, n))
                self._named["SF"].reshape(-1, kernel.Q_FLOATS)[n, kernel.Q_DUE] = START_S + gap
            else:
                depth = max(1, round(client.depth * self.share))
                turns += [(START_S + float(self._random.random()) * 1e-3, n) for _ in range(depth)]
        # by time, or every one of them would move all others
        for time, n in sorted(turns, key=lambda turn: turn[0]):
            kernel._turn(self._floats, self._ints, n, time)
        for time, event, index in events:
            kernel._schedule(self._floats, self._ints, time, event, index)

    def _write_limits(self, osd: int) -> None:
        limits = limits_of(self._settings[osd], self.model)
        row = self._named["KN"].reshape(-1, kernel.N_INTS)[osd]
        row[kernel.N_MAX_SCRUBS], row[kernel.N_CHUNK] = limits.max_scrubs, limits.chunk_max
        row[kernel.N_SHALLOW_CHUNK], row[kernel.N_TRIMS] = limits.shallow_chunk_max, max(1, limits.concurrent_trims)
        row[kernel.N_TRIMMING_PGS], row[kernel.N_BACKFILLS] = limits.trimming_pgs, max(1, limits.max_backfills)
        row[kernel.N_RECOVERY_ACTIVE], row[kernel.N_DELETES] = min(1000, limits.recovery_active), 2
        numbers = self._named["TF"].reshape(-1, kernel.T_FLOATS)
        settings = self._settings[osd]
        for n in self._led[osd]:
            task = self._tasks[n]
            if task.kind == kernel.SCRUB:
                cost, fixed = scrub_cost(task.cost, task.object_bytes > 0, settings, self.model)
                numbers[n, kernel.T_COST], numbers[n, kernel.T_PUSH_COST] = cost, fixed
            elif task.kind == kernel.SNAPTRIM:
                cost, fixed = trim_cost(task.object_bytes, settings, self.model)
                numbers[n, kernel.T_COST], numbers[n, kernel.T_PUSH_COST] = cost, fixed
                numbers[n, kernel.T_PULL_COST] = trim_cost(task.pull_cost, settings, self.model)[0]


def _position(acting: Sequence[int], osd: Optional[int]) -> int:
    """Place of an OSD in an acting set; -1 where it is not in it, 0 where nobody is named and there is one copy."""
    if osd is None:
        return 0
    found = np.flatnonzero(np.asarray(acting) == osd)
    return int(found[0]) if len(found) else -1
