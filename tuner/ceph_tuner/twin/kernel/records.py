"""What the kernel works on: the records of a cluster's work, and the numbers that fields hold.

What stays, OSDs with their shards and drives, is in `osd_records.py`.

Times are the simulation's clock (s), costs are what a request costs its class (bytes). Items, operations, shards, OSDs,
slots, streams and tasks are named by their place in their table; -1 is none. An item is in one list at a time: its
`next_item` is the one after it there.
"""

from __future__ import annotations

from typing import Annotated, List

from ceph_tuner.twin.kernel.layout import Record

VARIATES = 1 << 16
"""Random numbers in a table. They come from tables, so that both ways of running the kernel see the same ones."""
SCRATCH = 1 << 14
"""Room for what one event brings about, of each kind."""
CLEAN_S, MARKS = 60.0, 16
"""The library's check time, and the cleaning marks that a shard keeps (10 are needed)."""
ORDERED = 32
"""Requests that a disk puts in the order of the shortest way (NCQ); further ones wait for a place among these."""

WRITES, READS, COMMITS = range(3)
"""What an OSD does with its drives; in `budgets` and `prices`."""
OSD_BUCKETS, STREAM_BUCKETS, PER_OCTAVE = 32, 1024, 32
"""Of Ceph's own histograms, of a stream's, and of these to each doubling."""

(
    WRITE, SUBWRITE, REPLY, READ, SUBREAD, EC_READ, RECOVER, PULL, PUSH, PUSHED, PULLED, SCRUB_STEP, SCRUB_CHUNK,
    SCRUB_MAP, TRIM, TRIM_LOCAL, TRIM_REPLICA, DELETE, BLOCKED,
) = range(19)  # fmt: skip
"""Roles of items. BLOCKED: a client's operation whose object lacks a copy, or is scrubbed, until that is over."""
BEST_EFFORT = 2
"""The last of the three classes; in the older queue the priority of scrub, snaptrim and deletion."""
HIGH = 3
"""The strict queue in front: replica writes, answers, erasure-coded sub-reads."""
REPLICAS = 4
"""Replica writes in the older queue, where they have a priority of their own."""
REQUEUED = 5
"""Operations that had to wait, in the strict queue behind HIGH; the older queue has them in front of other clients'."""
LANES = 6
"""The three classes, HIGH, REPLICAS and REQUEUED."""

READING, WRITING, EC_FIRST, TRIMMING, EC_RECOVERY, EC_FORWARD, RECOVERING = range(7)
"""Phases of operations."""
ONE_BEGUN, A_SCRUB = -1, -2
"""What a client's operation waits for: the recovery of an object that had begun, or the end of a scrub's chunk."""
CLOSED, OPEN, DRAINS = range(3)
"""Clients: a queue is kept full; arrivals wait for nothing; a pause begins when nothing is under way (fio's rate)."""

DEGRADED, MISPLACED, SCRUB, SNAPTRIM, DELETION = range(5)
WORK_KINDS = 5
"""Background work."""
WAITING, RUNNING, FINISHED, DISABLED, RESERVING = range(5)
"""States of tasks. What reserves has its place at the primary, and asks its replicas for theirs."""
NOT_DUE, DUE, QUEUED = range(3)
"""A PG's next turn at recovery: nobody asked for it, it waits for a place (osd_recovery_max_active), it is queued."""

FREE, SUBMITS, GOES_ON, WAITS = range(4)
"""What a thread does after an item: nothing, hand in its transaction, go on with it, or wait."""
LOOKS_UP, PREPARES, REMOVES = range(3)
"""What a thread does with a trim: look clones up, prepare the removal of one and read its snapshots, remove it."""

(
    THREAD_ENDS, COMMIT_BEGINS, COMMIT_ENDS, QUEUE_WAKES, CLIENT_ARRIVES, SCRUB_TICK, TASK_BEGINS, RECOVERY_FREE,
    LEASES_RENEWED, QUEUE_CLEANED, DEFERRED_TICK, DEFERRED_WRITTEN, RECOVERY_WAKES, WORK_WAKES, TRIMS_APPLIED,
) = range(15)  # fmt: skip
"""Events. They name an item, OSD, OSD, shard, stream, OSD, task, nothing, nothing, shard, OSD, OSD, item, task, OSD."""


class Event(Record):
    """In the event heap."""

    time_s: float
    kind: int
    index: int


class Due(Record):
    """In a line that is in the order of time: an item on its way, or a stream whose client goes on."""

    time_s: float
    number: int


class Item(Record):
    """A request, or another piece of work for a thread."""

    role: int
    lane: int
    """Class, HIGH or REPLICAS."""
    slot: int
    owner: int
    """A client's or a clone's operation, or an object's recovery, else a task."""
    next_item: int
    objects_left: int
    """Objects of a scrub's chunk, or clones of a trim; 1 of a recovery's beginning that goes to sleep."""
    strides_left: int
    """Reads of a scrubbed object (osd_deep_scrub_stride)."""
    stage: int
    """Of a trim."""
    cost_bytes: float
    size_bytes: float
    """Read or written by one turn of a thread."""
    ios: float
    """What a transaction takes from the drive's budget; below 1 where one I/O serves several."""
    throttle_bytes: float
    """What a transaction takes from BlueStore's throttle."""
    queued_at_s: float
    written_at_s: float
    """When a transaction's data are on the drive."""


class Operation(Record):
    """What waits for its parts: a client's operation, a clone's trim on all replicas, an object's recovery or read."""

    owner: int
    """A stream, or a task; of an object's read for its recovery, that."""
    pg: int
    phase: int
    parts_pending: int
    next_free: int
    issued_at_s: float
    arrived_at_s: float
    size_bytes: float
    lane: int
    """Of an object's recovery: its PG's class, or HIGH where a client waits for it."""
    waiting_head: int
    waiting_tail: int
    """Clients' items that wait for an object's recovery."""
    next_object: int
    """In recovery in the same PG."""
    readable: int
    """Of an object's recovery: 1 where the primary has the object, although another lacks it or the PG is not told."""
    awaits: int
    """Of a client's operation: the recovery that it brought about; ONE_BEGUN or A_SCRUB."""


class Stream(Record):
    """Clients that do the same."""

    first_pg: int
    pgs: int
    size: int
    k: int
    mode: int
    depth: int
    partial_stripe: int
    under_way: int
    backlog: int
    """Operations that are due and wait for a place (OPEN)."""
    awaits_place: int
    """1 where the next operation waits for a place (DRAINS)."""
    draining: int
    """1 where it waits until nothing is under way (DRAINS)."""
    rate: float
    """Operations a second."""
    read_share: float
    latency_s: float
    cpu_s: float
    """Of the OSDs' hosts, where the client runs on one."""
    block_bytes: float
    write_cost_bytes: float
    read_cost_bytes: float
    due_s: float
    """When the next operation is due (DRAINS)."""
    pause_s: float
    """How long the client waits after the last answer (DRAINS)."""
    operations: float
    operation_s: float
    latency: Annotated[List[List[int]], (2, STREAM_BUCKETS)]
    """Operations by bucket, PER_OCTAVE to a doubling from 0.5 us on: reads and writes."""


class Task(Record):
    """A PG's part of some background work."""

    kind: int
    pg: int
    state: int
    lane: int
    """Class of its items."""
    copies: int
    k: int
    target: int
    """Place in the acting set of the OSD that objects are recovered onto; 0: the primary pulls them."""
    endless: int
    total: int
    """Objects, or clones."""
    heads: float
    """Objects that the clones are of."""
    left: int
    of_snapshot: int
    """Clones that are left of the snapshot that is trimmed now."""
    not_begun: int
    """Objects whose recovery has not begun."""
    asked_osd: int
    """That a PG which reserves has asked last, and stands in line at."""
    asked: int
    """When it did, or to be trimmed: its number among all that stood in line."""
    queued: int
    """NOT_DUE, DUE or QUEUED: the PG's next turn at recovery, which begins one object."""
    objects_head: int
    """Objects in recovery, by their operations."""
    among: float
    """Objects of the PG that clients go to, these among them; 0: clients go to none of these. Of a scrub: write to."""
    pending: int
    """What the item under way stands for: copies of a chunk, clones, or objects to delete."""
    parts: int
    """In which an object is copied, one after the other."""
    chunk: int
    """Objects of the scrub's chunk."""
    chunk_divisor: int
    """By which the chunk is smaller than the settings have it: twice as much each time that it was preempted."""
    preemptions_left: int
    """How often a write may still preempt the chunk (osd_scrub_max_preemptions); with none left it waits."""
    preempted: int
    """1 where a write has preempted the chunk: it is begun anew once the replicas have answered."""
    chunk_bytes: float
    """Read of the chunk, on all copies."""
    reread_bytes: float
    """Read of chunks that were preempted: so much is read again before a scrub is further than it was."""
    waiting_head: int
    waiting_tail: int
    """Clients' items that wait until the chunk is scrubbed."""
    stage: int
    """Steps of a chunk that are done."""
    clone: int
    """The operation of the clone that is trimmed."""
    read_lane: int
    """Class of reads that recover an erasure-coded object."""
    closing_lane: int
    """Class of what ends a PG's recovery."""
    cost_is_fixed: int
    """1 where every item of it costs `cost_bytes`, whatever it does."""
    object_bytes: float
    cost_bytes: float
    """An object's item; of a trim an object's head."""
    clone_cost_bytes: float
    push_cost_bytes: float
    pull_cost_bytes: float
    """0: they bypass the queue."""
