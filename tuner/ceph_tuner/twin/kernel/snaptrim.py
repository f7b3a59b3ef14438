"""Snaptrim: items that trim several clones, and what they wait for at the one table of snapshots of each OSD."""

from __future__ import annotations

import math

from ceph_tuner.twin.kernel.bluestore import submit
from ceph_tuner.twin.kernel.events import appended, cost_of, enter, new_item, new_operation, release, schedule, send
from ceph_tuner.twin.kernel.records import (
    FINISHED,
    FREE,
    GOES_ON,
    HIGH,
    LOOKS_UP,
    PREPARES,
    REMOVES,
    RUNNING,
    SNAPTRIM,
    SUBMITS,
    TRIM,
    TRIM_LOCAL,
    TRIM_REPLICA,
    TRIMMING,
    WAITING,
    WAITS,
    WORK_WAKES,
)
from ceph_tuner.twin.kernel.state import SimulationState


def ask_to_trim(state: SimulationState, number: int) -> None:
    """A PG that has a snapshot to trim stands in its primary's line."""
    task = state.tasks[number]
    task.state = WAITING
    state.progress.asked += 1
    task.asked = state.progress.asked
    # an object has one clone of each snapshot
    whole = math.ceil(task.heads)
    task.of_snapshot = whole if whole < task.left else task.left
    start_trims(state, state.slots[task.pg * state.parameters.width].osd)


def start_trims(state: SimulationState, osd: int) -> None:
    """PGs take their primary's places (osd_max_trimming_pgs), in the order in which they asked."""
    own = state.osds[osd]
    while own.trimming_pgs < own.limits.trimming_pgs:
        first = -1
        for place in range(own.task_begin[SNAPTRIM], own.task_end[SNAPTRIM]):
            number = state.task_order[place]
            task = state.tasks[number]
            if task.state == WAITING and (first < 0 or task.asked < state.tasks[first].asked):
                first = number
        if first < 0:
            return
        own.trimming_pgs += 1
        state.tasks[first].state = RUNNING
        trim_some(state, first)


def trim_some(state: SimulationState, number: int) -> None:
    """Queue a PG's next snaptrim item. A snapshot's last one finds nothing, and costs as much."""
    task = state.tasks[number]
    slot = task.pg * state.parameters.width
    most = state.osds[state.slots[slot].osd].limits.concurrent_trims
    count = most if most < task.of_snapshot else task.of_snapshot
    task.pending = count
    cost = task.cost_bytes
    if task.cost_is_fixed == 0:
        # the mean object of the PG
        heads, clones = task.heads, task.left
        whole = heads * task.cost_bytes + clones * task.clone_cost_bytes
        cost = cost_of(state, most * whole / (heads + clones))
    i = new_item(state, TRIM, task.lane, slot, number, cost, 0.0, 0.0)
    state.items[i].objects_left = count
    state.items[i].stage = LOOKS_UP
    enter(state, i)


def trim_goes_on(state: SimulationState, i: int, osd: int, now: float) -> int:
    """A thread is through with a step of a trim, and goes on with the next one, or waits for the table of snapshots.

    Every trim reads and writes that one object of its OSD (SnapMapper). BlueStore lets nobody read an object's keys
    with a transaction on its way (Onode::flush). Who waits for that has the lock of the object's collection, with all
    others that read, and so keeps out who wants to write (BlueStore::omap_get_values). The thread and the PG's lock are
    held meanwhile. Replicas are told before the primary reads (ReplicatedBackend::submit_transaction).
    """
    item, own = state.items[i], state.osds[osd]
    if item.role == TRIM and item.stage == LOOKS_UP and item.objects_left == 0:
        return _snapshot_trimmed(state, i, osd)
    if item.stage == REMOVES:
        return _remove_clone(state, i, osd, now)
    if item.stage == PREPARES and item.role == TRIM:
        _tell_replicas(state, item.owner, item.slot, now)
    if own.snaps_writing > 0 or own.snaps_locked == 1:
        own.snaps_head = appended(state, i, own.snaps_head, own.snaps_tail)
        own.snaps_tail = i
        return WAITS
    return snaps_read(state, i, osd)


def snaps_read(state: SimulationState, i: int, osd: int) -> int:
    """A thread has read the table. To write it needs the lock alone: GOES_ON, or WAITS behind others."""
    item, own = state.items[i], state.osds[osd]
    item.stage += 1
    if item.stage < REMOVES:
        return GOES_ON
    if own.snaps_locked == 0 and own.snaps_head < 0 and own.removing_head < 0:
        own.snaps_locked = 1
        return GOES_ON
    own.removing_head = appended(state, i, own.removing_head, own.removing_tail)
    own.removing_tail = i
    return WAITS


def _tell_replicas(state: SimulationState, number: int, slot: int, now: float) -> None:
    """The replicas are to trim a clone as well."""
    task, parameters = state.tasks[number], state.parameters
    task.clone = new_operation(state, number, task.pg, TRIMMING, task.copies, now)
    cost, size, ios = parameters.least_cost_bytes, parameters.trim_bytes, parameters.trim_ios
    for place in range(1, task.copies):
        replica = new_item(state, TRIM_REPLICA, HIGH, slot + place, task.clone, cost, size, ios)
        state.items[replica].stage = PREPARES
        send(state, replica, now)


def _remove_clone(state: SimulationState, i: int, osd: int, now: float) -> int:
    """A clone's transaction is on its way, and the table's lock is free. A primary goes on with the next clone."""
    item, parameters, own = state.items[i], state.parameters, state.osds[osd]
    own.snaps_writing += 1
    own.snaps_locked = 0
    if item.role == TRIM_REPLICA:
        return SUBMITS
    size, ios, clone = parameters.trim_bytes, parameters.trim_ios, state.tasks[item.owner].clone
    submit(state, new_item(state, TRIM_LOCAL, HIGH, item.slot, clone, parameters.least_cost_bytes, size, ios), osd, now)
    item.objects_left -= 1
    if item.objects_left > 0:
        item.stage = PREPARES
        return GOES_ON
    release(state, i)
    return FREE


def clone_trimmed(state: SimulationState, number: int, now: float) -> None:
    """A clone is trimmed on every replica."""
    task = state.tasks[number]
    own = state.osds[state.slots[task.pg * state.parameters.width].osd]
    own.counters.trimmed_clones += 1.0
    task.left -= 1
    task.of_snapshot -= 1
    task.pending -= 1
    if task.pending > 0:
        return
    sleep_s = own.limits.trim_sleep_s
    if sleep_s > 0.0:
        schedule(state, now + sleep_s, WORK_WAKES, number)
    else:
        trim_some(state, number)


def _snapshot_trimmed(state: SimulationState, i: int, osd: int) -> int:
    """No clone of a PG's snapshot is left: its place goes to the next in line, of which it may be the last itself."""
    number = state.items[i].owner
    release(state, i)
    state.osds[osd].trimming_pgs -= 1
    if state.tasks[number].left > 0:
        ask_to_trim(state, number)
    else:
        state.tasks[number].state = FINISHED
        start_trims(state, osd)
    return FREE
