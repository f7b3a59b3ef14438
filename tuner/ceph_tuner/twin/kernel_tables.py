"""A cluster model laid out as the tables that the kernel works on, as they are when its clock begins.

The order in which random numbers are drawn here is part of every result: PGs are placed, work is shared out, the tables
are filled, tasks are shuffled, first events are drawn.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from ceph_tuner.core.errors import InputError
from ceph_tuner.core.knobs.releases import Settings
from ceph_tuner.twin.kernel import records
from ceph_tuner.twin.kernel.events import schedule
from ceph_tuner.twin.kernel.layout import as_objects, new, write_back
from ceph_tuner.twin.kernel.loop import LEASE_S
from ceph_tuner.twin.kernel.state import ELEMENTS, SINGLE, SimulationProgress, SimulationState, new_table
from ceph_tuner.twin.knobs_in_force import (
    WPQ_PRIORITIES,
    WPQ_REPLICA_PRIORITY,
    client_costs,
    delete_cost,
    limits_of,
    recovery_costs,
    recovery_parts,
    scrub_cost,
    trim_cost,
)
from ceph_tuner.twin.model import WPQ, ClusterModel, Device
from ceph_tuner.twin.pg_tasks import pg_tasks
from ceph_tuner.twin.placement import placed

Array = NDArray[Any]

START_S = 1000.0
"""The kernel's clock begins here: a tag of exactly 0 counts as none."""

LEASE_BURST_S = 0.32
"""PGs of one pool became active one after the other, and their leases keep that distance."""

SCRUB_STRIDE = 512.0 * 1024
"""osd_deep_scrub_stride."""

BLOB = 64.0 * 1024
"""bluestore_max_blob_size."""

_NEAR_SEEK_S = 6e-4
"""Of a disk's head to one of the next tracks."""

_TRIMS = 16
"""Clones that a PG may trim at a time: the most that osd_pg_max_concurrent_snap_trims is searched to, and room."""


_VARIATES_KEPT = 16
"""Generators whose random numbers are kept, 1 MiB each: a search runs all its settings on the same few seeds."""

_MOST_WAITED_FOR = 4096
"""Room for objects in recovery at a time because clients waited for them."""


class KernelTables:
    """What the kernel reads and writes, by the names of `SimulationState`.

    What settings decide is still missing: each OSD's limits (`write_limits`), and its queues' classes (`write_rates`).
    """

    def __init__(self, model: ClusterModel, seed: int) -> None:
        self.model = model
        self.osds = model.simulated_osds or model.osds
        """OSDs that are simulated."""
        self.share = self.osds / model.osds
        """Of the cluster, what is simulated."""
        self._random = np.random.default_rng(seed)
        self.pools = self._place()
        self.work = pg_tasks(model, self.pools, self.share, self._random)
        self._width = max(pool.size for pool in model.pools)
        self.tables: Dict[str, Array] = {}
        self._hosts = model.simulated_hosts
        self._processors = max(1, round(model.simulated_processors / self._hosts)) if model.processors else 0
        """Of each host."""
        self._make_tables()
        self._set_parameters()
        self._set_slots()
        self._set_osds()
        self._set_streams()
        self._set_tasks()
        self._set_events()

    def _place(self) -> Dict[str, Tuple[int, Array]]:
        """Pool -> number of its first PG, acting sets. Of a cluster that is simulated in part, its share of the PGs."""
        placement, first = {}, 0
        hosts = self.model.hosts if self.osds == self.model.osds else 0
        for pool in self.model.pools:
            pgs = max(1, round(pool.pgs * self.share))
            placement[pool.name] = (
                first,
                placed(pool, pgs, self.osds, hosts, self.model.upmap_max_deviation, self._random),
            )
            first += pgs
        return placement

    def _make_tables(self) -> None:
        model, osds, tasks = self.model, self.osds, len(self.work)
        shards = osds * model.osd.shards
        pgs = sum(len(acting) for _, acting in self.pools.values())
        flying = sum(max(1, round(client.depth * self.share)) for client in model.clients)
        trimming = min(16 * osds, sum(task.kind == records.SNAPTRIM for task in self.work))
        # an erasure-coded PG may have an empty write of its own
        written = flying + sum(len(self.pools[pool.name][1]) for pool in model.pools if pool.k)
        items = written * (self._width + 1) + tasks * (2 * self._width + 2) + _TRIMS * trimming * self._width
        # each object in recovery has one, and an erasure-coded one its read
        waited_for = self._waited_for()
        operations = written + 2 * tasks + _TRIMS * trimming + 2 * waited_for
        items += waited_for * (self._width + 1)
        # what one event may bring about
        reserve = flying + tasks * (self._width + 1) + 256
        items, operations = items + reserve, operations + reserve
        # one event may bring about as much as this at once
        if max(flying, tasks) >= records.SCRATCH:
            load = f"{flying} client operations at a time and {tasks} PGs with background work"
            raise InputError("twin", load, f"fewer than {records.SCRATCH} of each, or simulated_osds")
        room = 1 << int(items + 1).bit_length()
        turns = 1 << int(flying + 1).bit_length()
        threads = shards * model.osd.threads_per_shard
        heap = 2 * threads + 6 * osds + 16 * shards + 2 * tasks + 16 * len(model.pools) + 512
        lengths = {
            "uniforms": records.VARIATES, "exponentials": records.VARIATES, "events": heap, "messages": room,
            "turns": turns,
            "items": items, "operations": operations, "shards": shards, "osds": osds, "slots": pgs * self._width,
            "streams": max(1, len(model.clients)), "tasks": max(1, tasks), "task_order": max(1, tasks),
            "entering": records.SCRATCH, "dirty": records.SCRATCH, "answered": records.SCRATCH,
            "processors": max(1, self._hosts * self._processors),
        }  # fmt: skip
        self.tables = {name: new_table(name, 1 if name in SINGLE else lengths[name]) for name in ELEMENTS}
        parameters = self.tables["parameters"]
        parameters["message_mask"], parameters["turn_mask"] = room - 1, turns - 1
        parameters["item_room"], parameters["operation_room"] = items - reserve, operations - reserve
        parameters["event_room"] = heap - threads - 256
        self.tables["uniforms"][:], self.tables["exponentials"][:] = _variates(self._random)

    def _waited_for(self) -> int:
        """Objects that clients may wait for at a time, or that are still in recovery because a client did."""
        lacking = sum(work.objects for work in self.model.recovery if work.among)
        return min(_MOST_WAITED_FOR, math.ceil(lacking * self.share))

    def _set_parameters(self) -> None:
        model, osd = self.model, self.model.osd
        costs = client_costs(4096, model)
        version = model.version or model.release.newest
        before_tentacle = version < (20, 0, 0)
        priorities = (*WPQ_PRIORITIES[:2], model.scrub_priority, 0.0, WPQ_REPLICA_PRIORITY, 0.0)
        parameters = self.tables["parameters"]
        for name, value in {
            "shards": self.osds * osd.shards,
            "osds": self.osds,
            "width": self._width,
            "wpq": int(model.scheduler == WPQ),
            # Reef counts a scrub's own and foreign places together, Tentacle apart
            "shared_scrubs": int(before_tentacle),
            "least_chunk_shrinks": int(before_tentacle),
            "network_s": model.network_s,
            "write_cpu_s": osd.write_cpu_s,
            "read_cpu_s": osd.read_cpu_s,
            "reply_cpu_s": osd.reply_cpu_s,
            "scan_cpu_s": osd.scan_cpu_s,
            "trim_cpu_s": osd.trim_cpu_s,
            "cpu_s_per_byte": osd.cpu_s_per_byte,
            "kv_ios": osd.kv_ios,
            "kv_bytes": osd.kv_bytes,
            "kv_latency_s": osd.kv_latency_s + (osd.db.latency_s if osd.db else 0.0),
            # seen of Reef; what Quincy does was not looked at
            "logs_length": int(before_tentacle and version >= (18, 0, 0)),
            "kv_cpu_s": osd.kv_cpu_s,
            "trim_kv_cpu_s": osd.trim_kv_cpu_s,
            # beside a disk's commits nothing is written (BlueFS's counters)
            "trim_ios": 0.0 if osd.has_head else osd.trim_ios,
            "trim_bytes": osd.trim_bytes,
            "throttle_bytes": osd.throttle_bytes,
            "throttle_bytes_per_io": osd.throttle_bytes_per_io,
            "flushes": int(osd.has_head and osd.db is not None and osd.device.caches_writes),
            "blob_bytes": _blob_bytes(model),
            # Reef counts an object of 1 MiB as 1 119 000, Tentacle as 70 500: 17 requests, and the rest
            "pushes_counted": float(before_tentacle),
            "deferred_below_bytes": osd.deferred_below_bytes,
            "way_s": ways_s(osd.device),
            "aside_share": min(1.0, (_NEAR_SEEK_S + osd.device.turn_s / 2) / _alone_s(osd.device)),
            "turn_s": osd.device.turn_s,
            "log_way_s": osd.device.log_way_s,
            # what lies side by side needs no second way
            "request_bytes": math.inf if osd.has_head else osd.device.request_bytes,
            "latency_spread": osd.device.spread,
            "least_cost_bytes": costs.least,
            "scrub_event_bytes": costs.scrub_event,
            "scrub_stride_bytes": SCRUB_STRIDE,
            "scrub_backoff": model.scrub_backoff_ratio,
            "strict_bound_s": _strict_bound_s(model),
            "priorities": priorities,
            "processors": self._processors,
            "processor_slowness": self._hosts * self._processors / (model.simulated_processors or 1.0),
            "message_cpu_s": osd.message_cpu_s,
            "commit_cpu_s": osd.commit_cpu_s,
            "moved_cpu_s_per_byte": osd.moved_cpu_s_per_byte,
        }.items():
            parameters[name][0] = value
        self.tables["progress"]["now_s"] = START_S
        # free places hang together in their order
        for name, following in (("items", "next_item"), ("operations", "next_free")):
            column = self.tables[name][following]
            column[:] = np.arange(1, len(column) + 1)
            column[-1] = -1

    def _set_slots(self) -> None:
        shards = self.model.osd.shards
        slots = self.tables["slots"].reshape(-1, self._width)
        slots["held_by"] = slots["waiting_head"] = slots["lacking"] = slots["scrubbed"] = -1
        for pool in self.model.pools:
            first, acting = self.pools[pool.name]
            own = slots[first : first + len(acting), : pool.size]
            own["osd"] = acting
            own["shard"] = acting * shards + np.arange(len(acting))[:, None] % shards
        table = self.tables["shards"]
        for name in ("idle_threads", "asleep"):
            table[name] = self.model.osd.threads_per_shard
        for name in ("head", "first_item", "durable_head", "taken_durable"):
            table[name] = -1
        table["osd"] = np.arange(len(table)) // shards
        table["queue"]["classes"]["idle"] = 1

    def _set_osds(self) -> None:
        osd, table = self.model.osd, self.tables["osds"]
        self._batches_begun: Dict[int, float] = {}
        """By OSD, until its settings are known."""
        if osd.deferred_below_bytes > 0:
            self._batches_begun = dict(enumerate(self._random.random(self.osds).tolist()))
        for name in ("throttled", "deferring", "written", "snaps", "removing"):
            table[f"{name}_head"] = table[f"{name}_tail"] = -1
        table["committing_head"] = -1
        table["commit_due_s"] = table["commit_later_s"] = math.inf
        table["budgets"]["slice_began_s"] = START_S
        # as PGs are placed
        table["first_processor"] = np.arange(self.osds) % self._hosts * self._processors
        device, db = osd.device, osd.db
        of_writes = _prices(device, records.WRITES, records.WRITES, osd.has_head)
        of_reads = records.WRITES if device.shared or osd.has_head else records.READS
        own = {
            records.WRITES: of_writes,
            records.READS: _prices(device, records.READS, of_reads, osd.has_head),
            records.COMMITS: _prices(db, records.WRITES, records.COMMITS) if db else of_writes,
        }
        for use, prices in own.items():
            for name, value in prices.items():
                table["prices"][name][:, use] = value

    def _set_streams(self) -> None:
        for row, client in zip(self.tables["streams"], self.model.clients):
            first, acting = self.pools[client.pool]
            pool = self.model.pool(client.pool)
            costs = client_costs(client.block_bytes, self.model)
            row["first_pg"], row["pgs"], row["size"], row["k"] = first, len(acting), pool.size, pool.k
            row["mode"] = records.CLOSED if client.rate is None else records.DRAINS if client.drains else records.OPEN
            row["depth"] = max(1, round(client.depth * self.share))
            row["partial_stripe"] = int(client.partial_stripe)
            row["rate"] = (client.rate or 0.0) * self.share
            row["read_share"], row["latency_s"], row["cpu_s"] = client.read_share, client.latency_s, client.cpu_s
            row["block_bytes"] = client.block_bytes
            row["write_cost_bytes"], row["read_cost_bytes"] = costs.client_write, costs.client_read

    def _set_tasks(self) -> None:
        tasks = self.tables["tasks"][: len(self.work)]
        for name in (
            "kind", "pg", "lane", "copies", "k", "target", "endless", "read_lane", "closing_lane", "object_bytes",
            "heads", "among",
        ):  # fmt: skip
            tasks[name] = [getattr(task, name) for task in self.work]
        for name in ("total", "left", "not_begun"):
            tasks[name] = [task.objects for task in self.work]
        tasks["state"], tasks["parts"] = records.DISABLED, 1
        tasks["objects_head"] = tasks["waiting_head"] = -1
        primaries = self.tables["slots"]["osd"][tasks["pg"] * self._width].tolist()
        self._led: List[Dict[Tuple[float, ...], List[int]]] = [{} for _ in range(self.osds)]
        groups: List[List[List[int]]] = [[[] for _ in range(self.osds)] for _ in range(records.WORK_KINDS)]
        for number, (task, primary) in enumerate(zip(self.work, primaries)):
            # what the cost of its items goes by
            alike = (task.kind, task.k, task.object_bytes, task.scrubbed_bytes, task.clone_bytes)
            self._led[primary].setdefault(alike, []).append(number)
            groups[task.kind][primary].append(number)
        place, order, osds = 0, self.tables["task_order"], self.tables["osds"]
        in_turn = {records.SCRUB} if all(work.in_turn for work in self.model.scrub) else set()
        for kind, by_osd in enumerate(groups):
            for osd, own in enumerate(by_osd):
                # the order in which PGs come up differs from OSD to OSD
                if kind not in in_turn:
                    self._random.shuffle(own)
                osds["task_begin"][osd, kind], osds["task_end"][osd, kind] = place, place + len(own)
                order[place : place + len(own)] = own
                place += len(own)

    def _set_events(self) -> None:
        osds = self.osds if self.model.scrub else 0
        # PGs that begin at once ask for their places in no order
        begins = self._random.permutation(len(self.work)).tolist()
        events = [
            *((START_S + self.work[number].start_s, records.TASK_BEGINS, number) for number in begins),
            *((START_S + float(self._random.random()), records.SCRUB_TICK, osd) for osd in range(osds)),
            *(
                (START_S + LEASE_S * begin + burst, records.LEASES_RENEWED, 0)
                for begin in self._random.random(len(self.model.pools))
                for burst in np.arange(0.0, LEASE_BURST_S, 0.04)
            ),
            *((START_S + records.CLEAN_S, records.QUEUE_CLEANED, shard) for shard in range(len(self.tables["shards"]))),
            *((START_S + begun, records.DEFERRED_TICK, osd) for osd, begun in self._batches_begun.items()),
        ]
        turns: List[Tuple[float, int]] = []
        for number, client in enumerate(self.model.clients):
            if client.rate is not None:
                gap = float(self._random.standard_exponential()) / (client.rate * self.share)
                events.append((START_S + gap, records.CLIENT_ARRIVES, number))
                self.tables["streams"]["due_s"][number] = START_S + gap
            else:
                depth = max(1, round(client.depth * self.share))
                turns += [(START_S + float(self._random.random()) * 1e-3, number) for _ in range(depth)]
        turns.sort(key=lambda turn: turn[0])
        line = self.tables["turns"]
        for column, name in enumerate(("time_s", "number")):
            line[name][: len(turns)] = [turn[column] for turn in turns]
        self.tables["progress"]["turn_tail"] = len(turns)
        self._schedule(events)

    def _schedule(self, events: Sequence[Tuple[float, int, int]]) -> None:
        """Put events into the heap, one after the other."""
        table = self.tables["events"][: len(events)]
        heap, progress = as_objects(records.Event, table), new(SimulationProgress)
        own: Dict[str, Any] = {"events": heap, "progress": progress}
        state = SimulationState._make(own.get(name) for name in SimulationState._fields)
        for time, kind, index in events:
            schedule(state, float(time), kind, index)
        write_back(records.Event, heap, table)
        self.tables["progress"]["heap_size"] = progress.heap_size

    def write_rates(self, osd: int, rates: Sequence[Sequence[float]]) -> None:
        """Bring the parameters of an OSD's classes into force: reservation, weight, limit of each; 0 for none."""
        shards = self.model.osd.shards
        classes = self.tables["shards"]["queue"]["classes"][osd * shards : (osd + 1) * shards]
        for c, own in enumerate(rates):
            for name, value in zip(("reservation_s_per_byte", "weight_inverse", "limit_s_per_byte"), own):
                classes[name][:, c] = 0.0 if value == 0.0 else 1.0 / value

    def write_limits(self, osd: int, settings: Settings) -> None:
        """Bring an OSD's own limits into force, and what its background work costs under them."""
        limits = limits_of(settings, self.model)
        if osd in self._batches_begun:
            # an OSD has been running before: how much of its next batch waits already is chance
            begun = self._batches_begun.pop(osd)
            own = self.tables["osds"][osd]
            own["deferred_writes"] = own["deferred_held"] = int(begun * limits.deferred_batch)
            own["deferred_sent_at_s"] = START_S - begun * 3 * limits.deferred_tick_s
        table = self.tables["osds"]["limits"]
        for name, value in {
            "max_scrubs": limits.max_scrubs,
            "scrub_chunk": limits.chunk_max,
            "shallow_scrub_chunk": limits.shallow_chunk_max,
            "least_scrub_chunk": limits.chunk_min,
            "least_shallow_scrub_chunk": limits.shallow_chunk_min,
            "max_preemptions": limits.max_preemptions,
            "concurrent_trims": max(1, limits.concurrent_trims),
            "trimming_pgs": limits.trimming_pgs,
            "max_backfills": max(1, limits.max_backfills),
            "recovery_active": min(1000, limits.recovery_active),
            "deleting_pgs": 2,
            "deferred_batch": limits.deferred_batch,
            "deferred_interval_s": limits.deferred_interval_s,
            "deferred_tick_s": limits.deferred_tick_s,
            "deferred_most": limits.deferred_most,
            "recovery_sleep_s": (limits.degraded_sleep_s, limits.backfill_sleep_s),
            "trim_sleep_s": limits.trim_sleep_s,
            "delete_sleep_s": limits.delete_sleep_s,
        }.items():
            table[name][osd] = value
        tasks = self.tables["tasks"]
        for numbers in self._led[osd].values():
            task = self.work[numbers[0]]
            if task.kind in (records.DEGRADED, records.MISPLACED):
                parts = recovery_parts(task.object_bytes * max(1, task.k), settings, self.model)
                cost, push, pull = recovery_costs(task.object_bytes, parts, settings, self.model, task.k)
                tasks["parts"][numbers], tasks["cost_bytes"][numbers] = parts, cost
                tasks["push_cost_bytes"][numbers], tasks["pull_cost_bytes"][numbers] = push, pull
            elif task.kind == records.SCRUB:
                cost, fixed = scrub_cost(task.scrubbed_bytes, task.object_bytes > 0, settings, self.model)
                tasks["cost_bytes"][numbers], tasks["cost_is_fixed"][numbers] = cost, fixed
            elif task.kind == records.SNAPTRIM:
                cost, fixed = trim_cost(task.object_bytes, settings, self.model)
                tasks["cost_bytes"][numbers], tasks["cost_is_fixed"][numbers] = fixed or cost, fixed > 0.0
                tasks["clone_cost_bytes"][numbers] = trim_cost(task.clone_bytes, settings, self.model)[0]
            else:
                cost, fixed = delete_cost(settings, self.model)
                tasks["cost_bytes"][numbers], tasks["cost_is_fixed"][numbers] = fixed or cost, fixed > 0.0


def _variates(random: np.random.Generator) -> Tuple[Array, Array]:
    """What the kernel draws from: uniform ones and exponential ones."""
    bits: Any = random.bit_generator
    at, own = bits.state, bits.state["state"]
    uniforms, exponentials, bits.state = _drawn(own["state"], own["inc"], at["has_uint32"], at["uinteger"])
    return uniforms, exponentials


@lru_cache(maxsize=_VARIATES_KEPT)
def _drawn(state: int, inc: int, has_uint32: int, uinteger: int) -> Tuple[Array, Array, Dict[str, Any]]:
    """Both, of a generator in this state, and its state after it."""
    bits: Any = np.random.PCG64(0)
    bits.state = {**bits.state, "state": {"state": state, "inc": inc}, "has_uint32": has_uint32, "uinteger": uinteger}
    random = np.random.Generator(bits)
    return random.random(records.VARIATES), random.standard_exponential(records.VARIATES), bits.state


def ways_s(disk: Device) -> List[float]:
    """How long a disk's head is on its way to the next request, by how many it has to choose from; the first is unused.

    From the latency of one at a time down to 1 / `iops` with a full queue, by a power of the number between them.
    """
    alone_s, least_s = _alone_s(disk), 1.0 / disk.iops
    power = math.log(least_s / alone_s) / math.log(records.ORDERED)
    return [0.0, *(alone_s * waiting**power for waiting in range(1, records.ORDERED + 1))]


def _alone_s(disk: Device) -> float:
    return max(disk.latency_s, 1.0 / disk.iops)


def _prices(device: Device, use: int, budget: int, has_head: bool = False) -> Dict[str, float]:
    """What writes or reads on a drive take; `budget`: which they draw on."""
    iops, bandwidth_bytes_s, latency_s = device.iops, device.bandwidth_bytes_s, device.latency_s
    if use == records.READS:
        iops = device.read_iops or iops
        bandwidth_bytes_s = device.read_bandwidth_bytes_s or bandwidth_bytes_s
        latency_s = device.read_latency_s
    return {
        "budget": budget,
        "disk": int(has_head),
        "s_per_io": 1.0 / iops,
        "s_per_byte": 1.0 / bandwidth_bytes_s,
        "slice_s": device.slice_s,
        # a head's way is all of it
        "latency_s": 0.0 if has_head else latency_s,
    }


def _blob_bytes(model: ClusterModel) -> float:
    """Of a write, what is a request of its own in BlueStore's throttle.

    Up to 17.2.6 no write to a disk is: blobs as large as bluestore_prefer_deferred_size were deferred, each by itself.
    """
    return math.inf if model.osd.has_head and model.release.cost_model == "scaled" else BLOB


def _strict_bound_s(model: ClusterModel) -> float:
    return math.inf if model.scheduler == WPQ else model.release.strict_bound_s.get(model.osd.kind, math.inf)
