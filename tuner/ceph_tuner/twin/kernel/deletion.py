"""Deletion of PGs: batches of objects, a few PGs of an OSD at a time."""

from __future__ import annotations

from ceph_tuner.twin.kernel.events import cost_of, enter, new_item, release, schedule
from ceph_tuner.twin.kernel.records import DELETE, DELETION, FINISHED, RUNNING, WAITING, WORK_WAKES
from ceph_tuner.twin.kernel.state import SimulationState

BATCH = 30
"""Objects."""


def start_deletions(state: SimulationState, osd: int) -> None:
    """Start the PGs that wait at their primary."""
    own = state.osds[osd]
    for place in range(own.task_begin[DELETION], own.task_end[DELETION]):
        number = state.task_order[place]
        task = state.tasks[number]
        if task.state != WAITING:
            continue
        if own.deleting_pgs >= own.limits.deleting_pgs:
            return
        own.deleting_pgs += 1
        task.state = RUNNING
        delete_some(state, number)


def delete_some(state: SimulationState, number: int) -> None:
    """Queue a PG's next batch."""
    task, parameters = state.tasks[number], state.parameters
    count = task.left if task.left < BATCH else BATCH
    task.pending = count
    cost = task.cost_bytes
    if task.cost_is_fixed == 0:
        cost = cost_of(state, count * task.cost_bytes)
    slot = task.pg * parameters.width
    size, ios = count * parameters.trim_bytes, count * parameters.trim_ios
    enter(state, new_item(state, DELETE, task.lane, slot, number, cost, size, ios))


def batch_deleted(state: SimulationState, i: int, number: int, now: float) -> None:
    """A batch is durable."""
    task = state.tasks[number]
    osd = state.slots[task.pg * state.parameters.width].osd
    own = state.osds[osd]
    release(state, i)
    task.left -= task.pending
    own.counters.deleted_objects += task.pending
    sleep_s = own.limits.delete_sleep_s
    if task.left > 0 and sleep_s > 0.0:
        schedule(state, now + sleep_s, WORK_WAKES, number)
    elif task.left > 0:
        delete_some(state, number)
    else:
        own.deleting_pgs -= 1
        task.state = FINISHED
        start_deletions(state, osd)
