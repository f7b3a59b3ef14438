"""A cluster as the kernel is given it: the tables of its records, compiled or as plain Python."""

from __future__ import annotations

from typing import Annotated, Any, Dict, List, Mapping, MutableSequence, NamedTuple, Sequence, get_args, get_type_hints

import numpy as np

from ceph_tuner.twin.kernel.layout import Array, Record, as_objects, dtype_of, write_back
from ceph_tuner.twin.kernel.osd_records import Osd, Shard, Slot
from ceph_tuner.twin.kernel.records import (
    LANES,
    ORDERED,
    Due,
    Event,
    Item,
    Operation,
    Stream,
    Task,
)


class Parameters(Record):
    """Of the whole cluster. They do not change while it runs."""

    shards: int
    """Of all OSDs."""
    osds: int
    width: int
    """Of the acting sets."""
    wpq: int
    """1 where the shards have Ceph's older queue."""
    shared_scrubs: int
    """1 where a scrub's own and foreign places are counted together (Reef), 0 where apart (Tentacle)."""
    least_chunk_shrinks: int
    """1 where the least size of a scrub's chunk shrinks with the largest when it is preempted (Reef)."""
    message_mask: int
    turn_mask: int
    item_room: int
    operation_room: int
    event_room: int
    """Places in use beyond which the run stops: what one event may bring about would not find room."""
    network_s: float
    write_cpu_s: float
    read_cpu_s: float
    reply_cpu_s: float
    scan_cpu_s: float
    trim_cpu_s: float
    cpu_s_per_byte: float
    kv_ios: float
    kv_bytes: float
    kv_latency_s: float
    logs_length: int
    """1 where BlueFS writes down how long RocksDB's log is after each commit (before bluefs_wal_envelope_mode)."""
    kv_cpu_s: float
    """The commit thread's time for a transaction."""
    trim_kv_cpu_s: float
    trim_ios: float
    trim_bytes: float
    throttle_bytes: float
    """0: none."""
    throttle_bytes_per_io: float
    flushes: int
    """1 where a commit to another drive flushes the deferred writes out of the disk's cache first."""
    blob_bytes: float
    """Of a write, what is a request of its own in BlueStore's throttle."""
    pushes_counted: float
    """Of the bytes that recovery writes, the share that counts there."""
    deferred_below_bytes: float
    """Smaller writes are committed with their data, and written to their places later; 0: none."""
    aside_share: float
    """Of a disk's way to any place, its way to one nearby."""
    way_s: Annotated[List[float], ORDERED + 1]
    """How long a disk's head is on its way to the next request, by how many it has to choose from."""
    turn_s: float
    """Of a disk."""
    log_way_s: float
    """Between a disk's data and its log where that lies apart, else 0."""
    request_bytes: float
    """The largest request that a drive takes as one."""
    latency_spread: float
    least_cost_bytes: float
    scrub_event_bytes: float
    """What the scrubber's small items cost."""
    scrub_stride_bytes: float
    scrub_backoff: float
    strict_bound_s: float
    """How long the strict queue holds the classes back before one item of theirs goes first; infinite: for ever."""
    priorities: Annotated[List[float], LANES]
    """Of the lanes in the older queue."""
    processors: int
    """Of each host, which its OSDs share; 0: nobody said how many, and nobody waits for one."""
    processor_slowness: float
    """How much longer work takes where hosts are simulated in part, with their processors as a whole number; else 1."""
    message_cpu_s: float
    commit_cpu_s: float
    moved_cpu_s_per_byte: float


class SimulationProgress(Record):
    """What changes, of the whole cluster."""

    now_s: float
    events: int
    served: int
    heap_size: int
    message_head: int
    message_tail: int
    turn_head: int
    turn_tail: int
    free_item: int
    free_operation: int
    next_uniform: int
    next_exponential: int
    entering: int
    answered: int
    dirty: int
    """How many are in the scratch tables of these names."""
    asked: int
    """PGs that have stood in a line."""
    full: int
    """1 where the tables were too small to go on."""


class SimulationState(NamedTuple):
    """A cluster: what every function of the kernel is given."""

    parameters: Parameters
    progress: SimulationProgress
    uniforms: Sequence[float]
    exponentials: Sequence[float]
    events: Sequence[Event]
    messages: Sequence[Due]
    turns: Sequence[Due]
    items: Sequence[Item]
    operations: Sequence[Operation]
    shards: Sequence[Shard]
    osds: Sequence[Osd]
    slots: Sequence[Slot]
    streams: Sequence[Stream]
    tasks: Sequence[Task]
    task_order: Sequence[int]
    entering: MutableSequence[int]
    """Items that enter their queues now."""
    dirty: MutableSequence[int]
    """Shards that have a thread to give away."""
    answered: MutableSequence[int]
    """Operations whose parts are all there."""
    processors: MutableSequence[float]
    """When each processor is free, host by host."""


SINGLE = frozenset({"parameters", "progress"})
"""Fields that are one record; the others are tables."""


def _elements() -> Dict[str, Any]:
    hints = get_type_hints(SimulationState)
    return {name: hint if name in SINGLE else get_args(hint)[0] for name, hint in hints.items()}


ELEMENTS = _elements()
"""What each field of a state holds: a record, int or float."""


def new_table(name: str, length: int = 1) -> Array:
    """A field's table, all zero."""
    return np.zeros(length, dtype_of(ELEMENTS[name]))


def addresses(tables: Mapping[str, Array]) -> Array:
    """For compiled functions: where each field's table lies, as long as it lives."""
    return np.array([tables[name].ctypes.data for name in SimulationState._fields], np.int64)


def over_objects(tables: Mapping[str, Array]) -> SimulationState:
    """For plain Python: records as objects with the same values; numbers are the tables' own, which are as quick."""
    values: Dict[str, Any] = {
        name: as_objects(element, tables[name]) if element not in (int, float) else tables[name].data
        for name, element in ELEMENTS.items()
    }
    return SimulationState._make(
        values[name][0] if name in SINGLE else values[name] for name in SimulationState._fields
    )


def bring_back(state: SimulationState, tables: Mapping[str, Array]) -> None:
    """What plain Python changed in the objects, into the tables."""
    for name, element in ELEMENTS.items():
        if name != "parameters" and element not in (int, float):
            values = getattr(state, name)
            write_back(element, [values] if name in SINGLE else values, tables[name])
