"""A cluster model laid out as the arrays that the kernel works on, as they are when its clock begins.

The order in which random numbers are drawn here is part of every result: PGs are placed, work is shared out, the tables
are filled, tasks are shuffled, first events are drawn.
"""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

import numpy as np
from numpy.typing import NDArray

from ceph_tuner.errors import InputError
from ceph_tuner.releases import Settings
from ceph_tuner.twin import kernel
from ceph_tuner.twin.knobs_in_force import (
    WPQ_PRIORITIES,
    WPQ_REPLICA_PRIORITY,
    client_costs,
    limits_of,
    recovery_costs,
    recovery_parts,
    scrub_cost,
    trim_cost,
)
from ceph_tuner.twin.model import WPQ, ClusterModel
from ceph_tuner.twin.pg_tasks import pg_tasks
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


class KernelArrays:
    """What the kernel reads and writes: `floats` (F) and `ints` (K), and views of their segments in `named`.

    What settings decide is still missing: each OSD's limits (`write_limits`), and its queues' classes.
    """

    def __init__(self, model: ClusterModel, seed: int) -> None:
        self.model = model
        self.osds = model.simulated_osds or model.osds
        """OSDs that are simulated."""
        self.share = self.osds / model.osds
        """Of the cluster, what is simulated."""
        self._random = np.random.default_rng(seed)
        self.pools = self._place()
        self.tasks = pg_tasks(model, self.pools, self.share, self._random)
        self._width = max(pool.size for pool in model.pools)
        self.floats: Array
        self.ints: Array
        self.named: Dict[str, Array]
        self._make_arrays()
        self._set_parameters()
        self._set_places()
        self._set_drives()
        self._set_streams()
        self._set_tasks()
        self._set_events()

    def _place(self) -> Dict[str, Tuple[int, Array]]:
        """Pool -> number of its first PG, acting sets. Of a cluster that is simulated in part, its share of the PGs."""
        found, first = {}, 0
        hosts = self.model.hosts if self.osds == self.model.osds else 0
        for pool in self.model.pools:
            pgs = max(1, round(pool.pgs * self.share))
            found[pool.name] = (first, placed(pool, pgs, self.osds, hosts, self._random))
            first += pgs
        return found

    def _make_arrays(self) -> None:
        model, osds = self.model, self.osds
        shards = osds * model.osd.shards
        pgs = sum(len(acting) for _, acting in self.pools.values())
        flying = sum(max(1, round(client.depth * self.share)) for client in model.clients)
        trimming = min(16 * osds, sum(task.kind == kernel.SNAPTRIM for task in self.tasks))
        items = flying * (self._width + 1) + len(self.tasks) * (2 * self._width + 2) + _TRIMS * trimming * self._width
        operations = flying + len(self.tasks) + _TRIMS * trimming
        # what one event may bring about
        reserve = flying + len(self.tasks) * (self._width + 1) + 256
        items, operations = items + reserve, operations + reserve
        # one event may bring about as much as this at once
        if max(flying, len(self.tasks)) >= kernel.SCRATCH:
            found = f"{flying} client operations at a time and {len(self.tasks)} PGs with background work"
            raise InputError("twin", found, f"fewer than {kernel.SCRATCH} of each, or simulated_osds")
        room = 1 << int(items + 1).bit_length()
        turns = 1 << int(flying + 1).bit_length()
        threads = shards * model.osd.threads_per_shard
        heap = 2 * threads + 4 * osds + 16 * shards + 2 * len(self.tasks) + 16 * len(model.pools) + 512

        streams, tasks = max(1, len(model.clients)), max(1, len(self.tasks))
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
        self.floats, self.ints, self.named = floats, ints, named

    def _set_parameters(self) -> None:
        model, osd = self.model, self.model.osd
        counts, values = self.ints, self.floats
        counts[kernel.C_OSDS], counts[kernel.C_SHARDS], counts[kernel.C_WIDTH] = self.osds, osd.shards, self._width
        counts[kernel.C_WPQ] = int(model.scheduler == WPQ)
        counts[kernel.C_STREAMS], counts[kernel.C_TASKS] = len(model.clients), len(self.tasks)
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
            rows = self.named[table].reshape(-1, ints)
            rows[:, following] = np.arange(1, len(rows) + 1)
            rows[-1, following] = -1

    def _set_places(self) -> None:
        shards = self.model.osd.shards
        acting = self.named["AC"].reshape(-1, self._width)
        for pool in self.model.pools:
            first, own = self.pools[pool.name]
            acting[first : first + len(own), : pool.size] = own
            numbers = np.arange(len(own))[:, None] % shards
            self.named["SL"].reshape(-1, self._width)[first : first + len(own), : pool.size] = own * shards + numbers
        rows = self.named["SH"].reshape(-1, kernel.S_INTS)
        rows[:, kernel.S_IDLE] = rows[:, kernel.S_ASLEEP] = self.model.osd.threads_per_shard
        rows[:, kernel.S_HEAD : kernel.S_TAIL] = -1
        rows[:, kernel.S_FIRST] = rows[:, kernel.S_DURABLE] = rows[:, kernel.S_TAKEN] = -1
        rows[:, kernel.S_OSD] = np.arange(len(rows)) // shards
        osds = self.named["OI"].reshape(-1, kernel.D_INTS)
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
        rows = self.named["DP"].reshape(-1, 2, kernel.B_FLOATS)
        rows[:, 0] = (1.0 / device.iops, 1.0 / device.bandwidth_bytes_s, device.slice_s, device.latency_s)
        rows[:, 1] = (
            1.0 / (device.read_iops or device.iops),
            1.0 / (device.read_bandwidth_bytes_s or device.bandwidth_bytes_s),
            device.slice_s,
            device.read_latency_s,
        )
        self.named["DV"].reshape(-1, kernel.V_FLOATS)[:, kernel.V_START] = START_S

    def _set_streams(self) -> None:
        for n, client in enumerate(self.model.clients):
            first, acting = self.pools[client.pool]
            pool = self.model.pool(client.pool)
            costs = client_costs(client.block_bytes, self.model)
            self.named["ST"].reshape(-1, kernel.P_INTS)[n, :9] = (
                first, len(acting), pool.size, pool.k, max(1, round(client.depth * self.share)), 0, 0,
                kernel.CLOSED if client.rate is None else kernel.DRAINS if client.drains else kernel.OPEN,
                int(client.partial_stripe),
            )  # fmt: skip
            self.named["SF"].reshape(-1, kernel.Q_FLOATS)[n] = (
                (client.rate or 0.0) * self.share, client.read_share, client.latency_s, client.block_bytes,
                costs.client_write, costs.client_read, 0.0, 0.0, 0.0, 0.0,
            )  # fmt: skip

    def _set_tasks(self) -> None:
        rows, numbers = self.named["TI"].reshape(-1, kernel.T_INTS), self.named["TF"].reshape(-1, kernel.T_FLOATS)
        acting = self.named["AC"].reshape(-1, self._width)
        for n, task in enumerate(self.tasks):
            rows[n] = (
                task.kind, task.pg, kernel.DISABLED, task.objects, task.objects, 0, 0, 0, task.target, task.service,
                task.endless, task.objects, 0, task.work, task.size, task.k, 1,
            )  # fmt: skip
            numbers[n, :5] = (task.object_bytes, task.cost, task.push_cost, task.read_class, task.pull_cost)
        self._led: List[List[int]] = [[] for _ in range(self.osds)]
        for n, task in enumerate(self.tasks):
            self._led[int(acting[task.pg, 0])].append(n)
        groups: List[List[int]] = [[] for _ in range(5 * (self.osds + 1))]
        for n, task in enumerate(self.tasks):
            groups[task.kind * (self.osds + 1) + int(acting[task.pg, 0])].append(n)
        place = 0
        for group, own in enumerate(groups):
            self.named["TB"][group] = place
            # the order in which PGs come up differs from OSD to OSD
            self._random.shuffle(own)
            self.named["TL"][place : place + len(own)] = own
            place += len(own)

    def _set_events(self) -> None:
        osds = self.osds if self.model.scrub else 0
        events = [
            *((START_S + task.start_s, kernel.E_WORK, n) for n, task in enumerate(self.tasks)),
            *((START_S + float(self._random.random()), kernel.E_SCRUB, osd) for osd in range(osds)),
            *(
                (START_S + kernel.LEASE_S * begin + burst, kernel.E_WORK, len(self.tasks) + 1)
                for begin in self._random.random(len(self.model.pools))
                for burst in np.arange(0.0, LEASE_BURST_S, 0.04)
            ),
            *((START_S + kernel.CLEAN_S, kernel.E_CLEAN, n) for n in range(self.osds * self.model.osd.shards)),
        ]
        turns: List[Tuple[float, int]] = []
        for n, client in enumerate(self.model.clients):
            if client.rate is not None:
                gap = float(self._random.standard_exponential()) / (client.rate * self.share)
                events.append((START_S + gap, kernel.E_ARRIVAL, n))
                self.named["SF"].reshape(-1, kernel.Q_FLOATS)[n, kernel.Q_DUE] = START_S + gap
            else:
                depth = max(1, round(client.depth * self.share))
                turns += [(START_S + float(self._random.random()) * 1e-3, n) for _ in range(depth)]
        # by time, or every one of them would move all others
        for time, n in sorted(turns, key=lambda turn: turn[0]):
            kernel._turn(self.floats, self.ints, n, time)
        for time, event, index in events:
            kernel._schedule(self.floats, self.ints, time, event, index)

    def write_limits(self, osd: int, settings: Settings) -> None:
        """Bring an OSD's own limits into force, and what its background work costs under them."""
        limits = limits_of(settings, self.model)
        row = self.named["KN"].reshape(-1, kernel.N_INTS)[osd]
        row[kernel.N_MAX_SCRUBS], row[kernel.N_CHUNK] = limits.max_scrubs, limits.chunk_max
        row[kernel.N_SHALLOW_CHUNK], row[kernel.N_TRIMS] = limits.shallow_chunk_max, max(1, limits.concurrent_trims)
        row[kernel.N_TRIMMING_PGS], row[kernel.N_BACKFILLS] = limits.trimming_pgs, max(1, limits.max_backfills)
        row[kernel.N_RECOVERY_ACTIVE], row[kernel.N_DELETES] = min(1000, limits.recovery_active), 2
        numbers = self.named["TF"].reshape(-1, kernel.T_FLOATS)
        for n in self._led[osd]:
            task = self.tasks[n]
            if task.kind in (kernel.DEGRADED, kernel.MISPLACED):
                parts = recovery_parts(task.object_bytes * max(1, task.k), settings, self.model)
                self.named["TI"].reshape(-1, kernel.T_INTS)[n, kernel.T_PARTS] = parts
                numbers[n, [kernel.T_COST, kernel.T_PUSH_COST, kernel.T_PULL_COST]] = recovery_costs(
                    task.object_bytes, parts, settings, self.model
                )
            elif task.kind == kernel.SCRUB:
                cost, fixed = scrub_cost(task.cost, task.object_bytes > 0, settings, self.model)
                numbers[n, kernel.T_COST], numbers[n, kernel.T_PUSH_COST] = cost, fixed
            elif task.kind == kernel.SNAPTRIM:
                cost, fixed = trim_cost(task.object_bytes, settings, self.model)
                numbers[n, kernel.T_COST], numbers[n, kernel.T_PUSH_COST] = cost, fixed
                numbers[n, kernel.T_PULL_COST] = trim_cost(task.pull_cost, settings, self.model)[0]
