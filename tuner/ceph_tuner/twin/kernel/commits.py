"""BlueStore's commit thread: it takes what is written, and tells the shards' first threads when that is durable."""

from __future__ import annotations

import math

from ceph_tuner.twin.kernel.bluestore import admit, admitted, blocked, is_deferred, lies_aside, plan_commit
from ceph_tuner.twin.kernel.drive import transfer, write_deferred
from ceph_tuner.twin.kernel.events import mark_dirty, schedule, spread
from ceph_tuner.twin.kernel.processors import waits_for_processor
from ceph_tuner.twin.kernel.records import (
    COMMIT_ENDS,
    COMMITS,
    DEFERRED_TICK,
    DEFERRED_WRITTEN,
    GOES_ON,
    TRIM_LOCAL,
    TRIM_REPLICA,
    TRIMS_APPLIED,
    WRITES,
)
from ceph_tuner.twin.kernel.snaptrim import snaps_read
from ceph_tuner.twin.kernel.state import SimulationState
from ceph_tuner.twin.kernel.threads import next_removal, start, thread_free

LENGTH_BYTES = 4096.0
"""What BlueFS writes when RocksDB's log has become longer: a block of its own log, once the other is written."""


def commit_begins(state: SimulationState, osd: int, now: float) -> None:
    """The commit thread takes every transaction whose data are written; the throttle lets others in already."""
    own, items, parameters = state.osds[osd], state.items, state.parameters
    first = i = own.written_head
    if own.commit_due_s <= now:
        own.commit_due_s = own.commit_later_s
        own.commit_later_s = math.inf
    if own.committing == 1 or i < 0:
        return
    if items[i].written_at_s > now:
        # planned for a transaction that another commit has taken
        plan_commit(state, osd, items[i].written_at_s)
        return
    taken, freed, last, trims, deferred, ios, data_bytes = 0, 0.0, -1, 0, 0, parameters.kv_ios, 0.0
    while i >= 0 and items[i].written_at_s <= now:
        freed += items[i].throttle_bytes
        taken += 1
        if items[i].role >= TRIM_LOCAL:
            trims += items[i].role <= TRIM_REPLICA
            ios += items[i].ios
        elif is_deferred(state, i):
            deferred += 1
            own.deferred_aside += lies_aside(state, i)
            data_bytes += items[i].size_bytes
        last = i
        i = items[i].next_item
    items[last].next_item = -1
    own.unlogged = parameters.logs_length
    own.committing_head = first
    own.written_head = i
    own.committing = 1
    left = own.throttle_bytes - freed
    own.throttle_bytes = left if left > 0.5 else 0.0
    own.deferred_writes += deferred
    begin = now
    if own.unflushed == 1:
        until = own.budgets[own.prices[WRITES].budget].deferred_until_s
        begin = until if until > now else now
        own.unflushed = 0
        own.flushing = 1
    end = transfer(state, osd, COMMITS, begin, ios, taken * parameters.kv_bytes + data_bytes)
    # one thread applies them to the key-value store, one after another, before it waits for the drive
    applied_s = taken * parameters.kv_cpu_s + trims * parameters.trim_kv_cpu_s
    end += spread(state, parameters.kv_latency_s) + applied_s
    applied_at = begin + applied_s
    if parameters.processors > 0:
        # before the drive writes them, and after
        waits = 2.0 * waits_for_processor(state, osd, now, parameters.commit_cpu_s + applied_s)
        end += waits
        applied_at += waits
    schedule(state, end, COMMIT_ENDS, osd)
    waiting = own.throttled_head
    while waiting >= 0 and not blocked(state, own, items[waiting].throttle_bytes):
        following = items[waiting].next_item
        own.throttled_head = following
        entered = admitted(state, waiting, osd, now)
        if entered and items[waiting].role != TRIM_LOCAL:
            thread_free(state, state.slots[items[waiting].slot].shard, waiting, now)
        waiting = following
    if trims > 0:
        own.snaps_applying = trims
        schedule(state, applied_at, TRIMS_APPLIED, osd)


def trims_applied(state: SimulationState, osd: int, now: float) -> None:
    """Trims are in the key-value store. Once no other is on its way the table of snapshots is free.

    All threads that wait to read it wake at once then, and who wants to write can.
    """
    own, items = state.osds[osd], state.items
    own.snaps_writing -= own.snaps_applying
    own.snaps_applying = 0
    if own.snaps_writing > 0 or own.snaps_locked == 1:
        return
    i = own.snaps_head
    own.snaps_head = -1
    while i >= 0:
        following = items[i].next_item
        if snaps_read(state, i, osd) == GOES_ON:
            start(state, i, now)
        i = following
    next_removal(state, osd, now)


def deferred_places_free(state: SimulationState, osd: int, now: float) -> None:
    """Transactions that wait for deferred writes before them enter BlueStore, as far as there are places."""
    own = state.osds[osd]
    while own.deferring_head >= 0 and own.deferred_held < own.limits.deferred_most:
        i = own.deferring_head
        own.deferring_head = state.items[i].next_item
        admit(state, i, osd, now)
        thread_free(state, state.slots[state.items[i].slot].shard, i, now)


def commit_ends(state: SimulationState, osd: int, now: float) -> None:
    """Transactions are durable: their shards' first threads hear of it."""
    own, items = state.osds[osd], state.items
    if own.flushing == 1:
        # what came to the disk meanwhile may have held it up
        until = own.budgets[own.prices[WRITES].budget].deferred_until_s
        if until > now:
            schedule(state, until, COMMIT_ENDS, osd)
            return
        own.flushing = 0
    if own.unlogged == 1:
        own.unlogged = 0
        end = transfer(state, osd, COMMITS, now, 1.0, LENGTH_BYTES) + spread(state, state.parameters.kv_latency_s)
        schedule(state, end, COMMIT_ENDS, osd)
        return
    i = own.committing_head
    own.committing = 0
    while i >= 0:
        following = items[i].next_item
        number = state.slots[items[i].slot].shard
        shard = state.shards[number]
        items[i].next_item = -1
        if shard.durable_head < 0:
            # whoever sleeps is woken, and looks at the queue as well
            shard.durable_head = i
            shard.woken = shard.idle_threads
            shard.first_looks = shard.commit_woke = 1
            mark_dirty(state, number)
        else:
            items[shard.durable_tail].next_item = i
        shard.durable_tail = i
        i = following
    if own.deferred_writes >= own.limits.deferred_batch:
        write_deferred(state, osd, now)
        deferred_places_free(state, osd, now)
    if own.written_head >= 0:
        done = items[own.written_head].written_at_s
        plan_commit(state, osd, done if done > now else now)


def deferred_tick(state: SimulationState, osd: int, now: float) -> None:
    """Deferred writes go to their places where none has gone for long (BlueStore::MempoolThread::entry)."""
    own = state.osds[osd]
    schedule(state, now + own.limits.deferred_tick_s, DEFERRED_TICK, osd)
    if now - own.deferred_sent_at_s <= own.limits.deferred_interval_s:
        return
    if own.deferred_writes > 0:
        write_deferred(state, osd, now)
        deferred_places_free(state, osd, now)
    own.deferred_sent_at_s = now


def deferred_written(state: SimulationState, osd: int, now: float) -> None:
    """A deferred write is at its place, and another transaction finds one in BlueStore; the next one comes in its time.

    A disk does other requests between them, so the time of what is left is looked at each time.
    """
    own = state.osds[osd]
    own.deferred_on_way -= 1
    own.deferred_held -= 1
    if own.deferred_on_way > 0:
        left = own.budgets[own.prices[WRITES].budget].deferred_until_s - now
        schedule(state, now + (left / own.deferred_on_way if left > 0.0 else 0.0), DEFERRED_WRITTEN, osd)
    deferred_places_free(state, osd, now)
