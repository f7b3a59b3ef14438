"""Snaptrim: items that trim several clones, one after the other because of one table of snapshots on each OSD."""

from __future__ import annotations

from ceph_tuner.twin.kernel.bluestore import submit
from ceph_tuner.twin.kernel.events import cost_of, enter, new_item, new_operation, schedule, send
from ceph_tuner.twin.kernel.records import (
    FINISHED,
    HIGH,
    RUNNING,
    SNAPTRIM,
    TRIM,
    TRIM_LOCAL,
    TRIM_REPLICA,
    TRIMMING,
    WAITING,
    WORK_WAKES,
)
from ceph_tuner.twin.kernel.state import SimulationState


def start_trims(state: SimulationState, osd: int) -> None:
    """Start the PGs that wait at their primary (osd_max_trimming_pgs)."""
    own = state.osds[osd]
    for place in range(own.task_begin[SNAPTRIM], own.task_end[SNAPTRIM]):
        number = state.task_order[place]
        task = state.tasks[number]
        if task.state != WAITING:
            continue
        if own.trimming_pgs >= own.limits.trimming_pgs:
            return
        own.trimming_pgs += 1
        task.state = RUNNING
        trim_some(state, number)


def trim_some(state: SimulationState, number: int) -> None:
    """Queue a PG's next snaptrim item."""
    task = state.tasks[number]
    slot = task.pg * state.parameters.width
    most = state.osds[state.slots[slot].osd].limits.concurrent_trims
    count = most if most < task.left else task.left
    task.pending = count
    cost = task.cost_bytes
    if task.cost_is_fixed == 0:
        # the mean object of the PG
        heads, clones = task.heads, task.left
        whole = heads * task.cost_bytes + clones * task.clone_cost_bytes
        cost = cost_of(state, most * whole / (heads + clones))
    i = new_item(state, TRIM, task.lane, slot, number, cost, 0.0, 0.0)
    state.items[i].objects_left = count
    enter(state, i)


def wait_for_snaps(state: SimulationState, i: int, osd: int) -> None:
    """A thread waits with an item until the transaction before it on the OSD's table of snapshots is picked up.

    Every trimmed clone reads and writes that one object (SnapMapper), and BlueStore lets nobody read the keys of an
    object with a transaction on its way (Onode::flush): so trimming goes one by one, and holds threads meanwhile.
    """
    own = state.osds[osd]
    state.items[i].next_item = -1
    if own.snaps_head < 0:
        own.snaps_head = i
    else:
        state.items[own.snaps_tail].next_item = i
    own.snaps_tail = i


def trim_clone(state: SimulationState, i: int, osd: int, now: float) -> None:
    """Trim one clone of an item, on this OSD and on the replicas."""
    item, parameters = state.items[i], state.parameters
    number, slot = item.owner, item.slot
    task = state.tasks[number]
    item.objects_left -= 1
    op = new_operation(state, number, task.pg, TRIMMING, task.copies, now)
    cost, size, ios = parameters.least_cost_bytes, parameters.trim_bytes, parameters.trim_ios
    for place in range(1, task.copies):
        replica = new_item(state, TRIM_REPLICA, HIGH, slot + place, op, cost, size, ios)
        send(state, replica, now + parameters.network_s)
    state.osds[osd].snaps_writing += 1
    submit(state, new_item(state, TRIM_LOCAL, HIGH, slot, op, cost, size, ios), osd, now)


def clone_trimmed(state: SimulationState, number: int, now: float) -> None:
    """A clone is trimmed on every replica."""
    task = state.tasks[number]
    osd = state.slots[task.pg * state.parameters.width].osd
    own = state.osds[osd]
    own.counters.trimmed_clones += 1.0
    task.left -= 1
    task.pending -= 1
    if task.pending > 0:
        return
    sleep_s = own.limits.trim_sleep_s
    if task.left > 0 and sleep_s > 0.0:
        schedule(state, now + sleep_s, WORK_WAKES, number)
    elif task.left > 0:
        trim_some(state, number)
    else:
        task.state = FINISHED
        own.trimming_pgs -= 1
        start_trims(state, osd)
