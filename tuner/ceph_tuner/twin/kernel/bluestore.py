"""BlueStore: transactions pass its throttle, their data go to the drive, then they wait for the commit thread."""

from __future__ import annotations

import math

from ceph_tuner.twin.kernel.drive import transfer, write_deferred
from ceph_tuner.twin.kernel.events import appended, schedule, spread
from ceph_tuner.twin.kernel.osd_records import Osd
from ceph_tuner.twin.kernel.records import COMMIT_BEGINS, PUSH, SUBWRITE, TRIM_LOCAL, WRITES
from ceph_tuner.twin.kernel.state import SimulationState


def is_deferred(state: SimulationState, i: int) -> bool:
    """Whether a transaction's data go to the key-value store's log first (bluestore_prefer_deferred_size)."""
    item = state.items[i]
    small = 0.0 < item.size_bytes < state.parameters.deferred_below_bytes
    return small and (item.role <= SUBWRITE or item.role == PUSH)


def lies_aside(state: SimulationState, i: int) -> bool:
    """Whether a transaction's data get a new place, next to those of others, and are not written over what was there.

    An erasure-coded object keeps what is written over, to be able to go back; an object that is recovered is new.
    """
    item = state.items[i]
    return item.role == PUSH or state.streams[state.operations[item.owner].owner].k > 0


def admit(state: SimulationState, i: int, osd: int, now: float) -> None:
    """A transaction enters BlueStore: its data go to the drive, then it waits for the commit thread.

    What removes objects has no data: all that it writes goes with the commit.
    """
    item, own = state.items[i], state.osds[osd]
    own.throttle_bytes += item.throttle_bytes
    done = now
    if is_deferred(state, i):
        own.deferred_held += 1
    if item.ios > 0.0 and item.role < TRIM_LOCAL:
        done = transfer(state, osd, WRITES, now, item.ios, item.size_bytes)
        done += spread(state, own.prices[WRITES].latency_s)
        last = own.last_written_at_s
        done = done if done > last else last
        own.last_written_at_s = done
    item.written_at_s = done
    _await_commit(state, i, osd, done)


def plan_commit(state: SimulationState, osd: int, when: float) -> None:
    """The commit thread is to look at that time, unless it looks before: then it plans anew what is not written yet."""
    own = state.osds[osd]
    if when < own.commit_due_s:
        own.commit_later_s = own.commit_due_s
        own.commit_due_s = when
        schedule(state, when, COMMIT_BEGINS, osd)


def _await_commit(state: SimulationState, i: int, osd: int, done: float) -> None:
    """A transaction whose data are written at that time joins those that wait for the commit thread, by time."""
    items, own = state.items, state.osds[osd]
    item = items[i]
    head, tail = own.written_head, own.written_tail
    if head >= 0 and items[tail].written_at_s <= done:
        items[tail].next_item = i
        item.next_item = -1
        own.written_tail = i
    elif head < 0 or items[head].written_at_s > done:
        item.next_item = head
        own.written_head = i
        if head < 0:
            own.written_tail = i
        if own.committing == 0:
            plan_commit(state, osd, done)
    else:
        before = items[head]
        while items[before.next_item].written_at_s <= done:
            before = items[before.next_item]
        item.next_item = before.next_item
        before.next_item = i


def blocked(state: SimulationState, own: Osd, cost: float) -> bool:
    """Whether BlueStore's throttle keeps a transaction out (Throttle::_should_wait)."""
    most, current = state.parameters.throttle_bytes, own.throttle_bytes
    if most == 0.0:
        return False
    if cost <= most:
        return current + cost > most
    return current > most


def submit(state: SimulationState, i: int, osd: int, now: float) -> bool:
    """A thread hands a transaction to BlueStore; False where the thread must wait with it."""
    item, own = state.items[i], state.osds[osd]
    blobs = math.ceil(item.size_bytes / state.parameters.blob_bytes)
    if is_deferred(state, i):
        item.ios = 0.0
        blobs = 0
    elif item.role >= TRIM_LOCAL:
        blobs = 0
    counted = item.size_bytes
    if item.role == PUSH:
        counted *= state.parameters.pushes_counted
    item.throttle_bytes = counted + (blobs + 1.0) * state.parameters.throttle_bytes_per_io
    if own.throttled_head >= 0 or blocked(state, own, item.throttle_bytes):
        own.throttled_head = appended(state, i, own.throttled_head, own.throttled_tail)
        own.throttled_tail = i
        return False
    return admitted(state, i, osd, now)


def admitted(state: SimulationState, i: int, osd: int, now: float) -> bool:
    """Let a transaction in that the throttle lets through; False where it waits for deferred writes before it.

    So many may be under way. Who finds no place sends those to their places that have waited for a batch
    (BlueStore::queue_transactions, deferred_aggressive).
    """
    own = state.osds[osd]
    if is_deferred(state, i) and own.deferred_held >= own.limits.deferred_most and own.deferred_writes > 0:
        write_deferred(state, osd, now)
    if is_deferred(state, i) and own.deferred_held >= own.limits.deferred_most:
        own.deferring_head = appended(state, i, own.deferring_head, own.deferring_tail)
        own.deferring_tail = i
        return False
    admit(state, i, osd, now)
    return True
