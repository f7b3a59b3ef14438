"""The kernel's records of what stays: OSDs, their shards, their drives, and PGs at them.

A slot is a PG's place at one OSD: PG x width of the acting sets + position, the primary's first.
"""

from __future__ import annotations

from typing import Annotated, List

from ceph_tuner.twin.kernel.dmclock import CLASSES, Queue
from ceph_tuner.twin.kernel.layout import Record
from ceph_tuner.twin.kernel.records import LANES, MARKS, ORDERED, OSD_BUCKETS, WORK_KINDS


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
    least_scrub_chunk: int
    least_shallow_scrub_chunk: int
    max_preemptions: int
    """Of a scrub's chunk."""
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
    """Of the copies here, without what is read again of chunks that a write preempted."""
    scrub_read_bytes: float
    """The same with it."""
    preempted_chunks: float
    """Of the scrubs that it leads."""
    trimmed_clones: float
    deleted_objects: float
    processor_s: float
    """Processor time, where processors are described."""


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
    unlogged: int
    """1 where the commit under way has the length of RocksDB's log to write down yet."""
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
    first_processor: int
    """Place in `processors` of its host's first one."""
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
    lacking: int
    """At the primary: the task of objects that lack a copy, and that clients go to; -1: none."""
    scrubbed: int
    """At the primary: the task of the scrub that has chosen a chunk of objects that clients write to; -1: none."""
