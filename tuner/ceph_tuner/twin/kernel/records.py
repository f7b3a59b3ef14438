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
    SCRUB_MAP, TRIM, TRIM_LOCAL, TRIM_REPLICA, DELETE,
) = range(18)  # fmt: skip
"""Roles of items."""
BEST_EFFORT = 2
"""The last of the three classes; in the older queue the priority of scrub, snaptrim and deletion."""
HIGH = 3
"""The strict queue in front: replica writes, answers, erasure-coded sub-reads."""
REPLICAS = 4
"""Replica writes in the older queue, where they have a priority of their own."""
LANES = 5
"""The three classes, HIGH and REPLICAS."""

READING, WRITING, EC_FIRST, TRIMMING, EC_RECOVERY, EC_FORWARD = range(6)
"""Phases of operations."""
CLOSED, OPEN, DRAINS = range(3)
"""Clients: a queue is kept full; arrivals wait for nothing; a pause begins when nothing is under way (fio's rate)."""

DEGRADED, MISPLACED, SCRUB, SNAPTRIM, DELETION = range(5)
WORK_KINDS = 5
"""Background work."""
WAITING, RUNNING, FINISHED, DISABLED = range(4)
"""States of tasks."""

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
    """A client's or a clone's operation, else a task."""
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
    """What waits for its parts: a client's operation, a clone's trim on all replicas, an object that is read."""

    owner: int
    """A stream, or a task."""
    pg: int
    phase: int
    parts_pending: int
    next_free: int
    issued_at_s: float
    arrived_at_s: float
    size_bytes: float


<<<<<<< HEAD
=======
class Shard(Record):
    """A shard's queues and threads."""

    queue: Queue
    osd: int
    queued: int
    """Items in all its lanes."""
    head: Annotated[List[int], LANES]
    tail: Annotated[List[int], LANES]
    idle_threads: int
    """Without an item: asleep, waiting for a moment, or looking."""
    asleep: int
    looking: int
    """Threads that came back from an item and look at the queue."""
    woken: int
    first_looks: int
    """1 where the first thread is among those that look."""
    ahead_of_first: int
    """Threads that are woken before the first one."""
    first_item: int
    """That the first thread works on."""
    durable_head: int
    durable_tail: int
    """Transactions that nobody has answered yet."""
    taken_durable: int
    """Those that the first thread answers after its item."""
    commit_woke: int
    """1 where a commit woke the threads just now."""
    marks_made: int
    marks: Annotated[List[int], MARKS]
    """The queue's tick at the last cleanings."""
    wake_at_s: float
    """The moment that threads wait for."""
    later_wake_at_s: float
    """A moment that was planned before an earlier one, and still comes."""
    classes_served_at_s: float
    """When an item of a class was taken last."""
    dearest_cost_bytes: int
    """In the older queue: of all items that ever entered."""


class DriveBudget(Record):
    """What requests draw on at a drive."""

    free_at_s: float
    """When the line of a flash drive is through, or a disk's head has done all but deferred writes."""
    deferred_until_s: float
    """When a disk's head has done deferred writes as well; in the past where there are none."""
    last_at_s: float
    """When the last request got through."""
    slice_began_s: float
    slice_ios: float
    slice_bytes: float
    """Used in the slice."""
    at_log: int
    """1 where a disk's head did a commit last."""
    busy_since_s: float
    """Since when a disk's head has been doing anything but deferred writes."""
    done_at_s: Annotated[List[float], ORDERED]
    newest: int
    """When a disk's head has done each of its last requests but deferred writes, in turn, and the last one's place."""


class Prices(Record):
    """What requests take from a budget, and how long they take besides."""

    budget: int
    """That they draw on."""
    disk: int
    """1 where they wait for a disk's head."""
    s_per_io: float
    s_per_byte: float
    slice_s: float
    """0: a continuous budget."""
    latency_s: float


class Limits(Record):
    """Of background work, by an OSD's settings."""

    max_scrubs: int
    scrub_chunk: int
    shallow_scrub_chunk: int
    concurrent_trims: int
    trimming_pgs: int
    max_backfills: int
    recovery_active: int
    deleting_pgs: int
    deferred_batch: int
    """Deferred writes that go to their places at once."""
    deferred_interval_s: float
    """After this they go, however few they are."""
    deferred_tick_s: float
    """How often somebody looks whether that time is over."""
    deferred_most: int
    """Deferred writes that are not at their places (bluestore_throttle_deferred_bytes)."""
    recovery_sleep_s: Annotated[List[float], 2]
    """Before an object's recovery, by DEGRADED and MISPLACED; the older queue's alone, as the other sleeps."""
    trim_sleep_s: float
    delete_sleep_s: float
    """Of a PG, between two items."""


class Counters(Record):
    """What an OSD counted; by READING and WRITING, or by class, where it is an array."""

    operations: Annotated[List[float], 2]
    operation_bytes: Annotated[List[float], 2]
    operation_s: Annotated[List[float], 2]
    waited_s: Annotated[List[float], CLASSES]
    recovered_objects: float
    recovered_bytes: float
    backfilled_objects: float
    scrubbed_objects: float
    scrubbed_bytes: float
    trimmed_clones: float
    deleted_objects: float


class Osd(Record):
    """An OSD's drives, BlueStore, and background work."""

    budgets: Annotated[List[DriveBudget], 3]
    prices: Annotated[List[Prices], 3]
    """By WRITES, READS and COMMITS; `Prices.budget` says which budget they share."""
    throttle_bytes: float
    """Held of BlueStore's throttle."""
    last_written_at_s: float
    throttled_head: int
    throttled_tail: int
    """Transactions before the throttle; their threads wait with them."""
    written_head: int
    written_tail: int
    """Transactions on the drive, by time, which wait for the commit thread."""
    committing: int
    committing_head: int
    commit_due_s: float
    """When the commit thread looks next; infinite: at no time."""
    commit_later_s: float
    """A time that was planned before an earlier one, and still comes."""
    deferred_writes: int
    """That are durable in the key-value store's log, and not on their way to their places."""
    deferred_aside: int
    """Of these, those that lie side by side in new places."""
    deferred_sent_at_s: float
    """When the last of them went, or none was there to go."""
    deferred_held: int
    """Deferred writes between their admission and their places."""
    deferred_on_way: int
    """Of these, those that the disk has been given."""
    unflushed: int
    """1 where deferred writes are in the disk's cache that no commit has waited for."""
    flushing: int
    """1 where the commit under way waits for them."""
    deferring_head: int
    deferring_tail: int
    """Transactions that wait until a deferred write is at its place; their threads wait with them."""
    snaps_writing: int
    snaps_applying: int
    """Transactions on the table of snapshots that are not in the key-value store, and those of them that get there."""
    snaps_head: int
    snaps_tail: int
    """Items whose threads wait for that to read the table. Meanwhile they have its lock, with others that read."""
    snaps_locked: int
    removing_head: int
    removing_tail: int
    """1 where a thread has the lock to write, and items whose threads wait for that: until somebody reads."""
    recovering: int
    """Objects."""
    recovery_awake: int
    """1 where a sleep is over and no object has begun since."""
    recovery_slept_until_s: float
    """The end of the last sleep that was planned."""
    local_backfills: int
    remote_backfills: int
    scrubs: int
    remote_scrubs: int
    next_scrub: int
    """Where the search for the next PG to scrub begins."""
    trimming_pgs: int
    deleting_pgs: int
    task_begin: Annotated[List[int], WORK_KINDS]
    task_end: Annotated[List[int], WORK_KINDS]
    """Of each kind of work, the places in `task_order` of the PGs that it leads."""
    limits: Limits
    counters: Counters
    latency: Annotated[List[List[int]], (2, OSD_BUCKETS)]
    """Operations by bucket of Ceph's own histograms: reads and writes."""


class Slot(Record):
    """A PG at one OSD."""

    osd: int
    shard: int
    locked_until_s: float
    held_by: int
    waiting_head: int
    waiting_tail: int
    """The trim or scrub chunk that has the PG's lock, also while it waits, and items whose threads wait for it."""
    writes_under_way: int
    """Of clients, at the primary of an erasure-coded PG."""


>>>>>>> wip-twin
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
    """Operations by bucket, PER_OCTAVE to a doubling from 1 us on: reads and writes."""


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
    not_begun: int
    """Objects whose recovery has not begun."""
    object_under_way: int
    """1 where one is recovered."""
    pending: int
    """What the item under way stands for: parts of an object, copies of a chunk, clones, or objects to delete."""
    parts: int
    """In which an object is copied, one after the other."""
    chunk: int
    """Objects of the scrub's chunk."""
    stage: int
    """Steps of a chunk that are done."""
    clone: int
    """The operation of the clone that is trimmed."""
    read_lane: int
    """Class of reads that recover an erasure-coded object."""
    cost_is_fixed: int
    """1 where every item of it costs `cost_bytes`, whatever it does."""
    object_bytes: float
    cost_bytes: float
    """An object's item; of a trim an object's head."""
    clone_cost_bytes: float
    push_cost_bytes: float
    pull_cost_bytes: float
    """0: they bypass the queue."""
