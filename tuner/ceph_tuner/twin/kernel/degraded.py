"""Clients' operations on objects that lack a copy: which have to wait, for what, and how they go on.

A write waits where any OSD of the acting set lacks its object, a read where the primary does
(PrimaryLogPG::do_op, is_degraded_or_backfilling_object, is_unreadable_object). Clients go to all objects alike.
"""

from __future__ import annotations

from ceph_tuner.twin.kernel.drive import requests
from ceph_tuner.twin.kernel.events import appended, enter, new_operation, release_operation, uniform
from ceph_tuner.twin.kernel.records import (
    BLOCKED,
    DEGRADED,
    EC_READ,
    HIGH,
    ONE_BEGUN,
    READ,
    READING,
    RECOVERING,
    REQUEUED,
    RESERVING,
    RUNNING,
    WAITING,
    WRITE,
    WRITING,
)
from ceph_tuner.twin.kernel.state import SimulationState


def lacking_changes(state: SimulationState, number: int) -> None:
    """A task has begun or ended: remember one of its PG's whose objects lack a copy, and that clients go to."""
    if state.tasks[number].among == 0.0:
        return
    pg = state.tasks[number].pg
    slot = state.slots[pg * state.parameters.width]
    own = state.osds[slot.osd]
    slot.lacking = -1
    for place in range(own.task_begin[DEGRADED], own.task_end[DEGRADED]):
        other = state.task_order[place]
        task = state.tasks[other]
        waits = task.state == WAITING or task.state == RESERVING
        goes_on = task.state == RUNNING or (waits and slot.lacking < 0)
        if task.pg == pg and task.among > 0.0 and goes_on:
            slot.lacking = other


def lacks_copy(state: SimulationState, i: int, now: float) -> bool:
    """Whether a client's operation, which a thread has taken, finds that it has to wait for its object.

    The object's recovery is begun by the first one: what is read for it then counts as the thread's work.
    """
    item = state.items[i]
    number = state.slots[item.slot].lacking
    task, operation = state.tasks[number], state.operations[item.owner]
    if operation.phase == READING and task.target > 0:
        return False
    draw = uniform(state) * task.among
    if draw >= task.left:
        return False
    item.role = BLOCKED
    item.size_bytes = 0.0
    operation.awaits = ONE_BEGUN
    if draw >= task.left - task.not_begun:
        operation.awaits = begin_object(state, number, HIGH, now)
        state.osds[state.slots[item.slot].osd].recovering += 1
        if task.k == 0 and task.target > 0:
            item.size_bytes = task.object_bytes / task.parts
    return True


def begin_object(state: SimulationState, number: int, lane: int, now: float) -> int:
    """The recovery of one of a PG's objects begins."""
    task = state.tasks[number]
    task.not_begun -= 1
    op = new_operation(state, number, task.pg, RECOVERING, task.parts, now)
    operation = state.operations[op]
    operation.lane = lane
    operation.waiting_head = operation.waiting_tail = -1
    operation.readable = int(task.target > 0)
    operation.next_object = task.objects_head
    task.objects_head = op
    return op


def object_done(state: SimulationState, op: int) -> None:
    """An object has all its copies: whoever waits for it goes on."""
    _requeue(state, op, True)
    task = state.tasks[state.operations[op].owner]
    following = state.operations[op].next_object
    if task.objects_head == op:
        task.objects_head = following
    else:
        other = task.objects_head
        while state.operations[other].next_object != op:
            other = state.operations[other].next_object
        state.operations[other].next_object = following
    release_operation(state, op)


def wait_for(state: SimulationState, i: int, op: int) -> None:
    """A client's operation waits for an object's recovery; its thread goes on with other items."""
    operation = state.operations[op]
    operation.waiting_head = appended(state, i, operation.waiting_head, operation.waiting_tail)
    operation.waiting_tail = i


def wait_for_one_in_recovery(state: SimulationState, i: int) -> None:
    """A client's operation waits for one of the PG's objects whose recovery had begun; it may have ended meanwhile."""
    number = state.slots[state.items[i].slot].lacking
    begun = 0
    if number >= 0:
        begun = state.tasks[number].left - state.tasks[number].not_begun
    if begun == 0:
        enters_anew(state, i)
        return
    op = state.tasks[number].objects_head
    for _ in range(int(uniform(state) * begun)):
        op = state.operations[op].next_object
    if _goes_on(state, i, op):
        enters_anew(state, i)
    else:
        wait_for(state, i, op)


def became_readable(state: SimulationState, op: int) -> None:
    """The primary has an object: who only reads it goes on (PrimaryLogPG::on_local_recover)."""
    state.operations[op].readable = 1
    _requeue(state, op, False)


def _goes_on(state: SimulationState, i: int, op: int) -> bool:
    """Whether an operation need not wait until an object has all copies: it reads, and the primary has the object."""
    return state.operations[op].readable == 1 and state.operations[state.items[i].owner].phase == READING


def _requeue(state: SimulationState, op: int, has_all_copies: bool) -> None:
    """Operations that waited for an object are queued anew, as far as they can go on."""
    operation = state.operations[op]
    i = operation.waiting_head
    operation.waiting_head = operation.waiting_tail = -1
    while i >= 0:
        following = state.items[i].next_item
        if has_all_copies or _goes_on(state, i, op):
            enters_anew(state, i)
        else:
            wait_for(state, i, op)
        i = following


def enters_anew(state: SimulationState, i: int) -> None:
    """A client's operation enters the queue anew: the strict one, behind all else there (mClockScheduler)."""
    item = state.items[i]
    operation = state.operations[item.owner]
    item.lane = REQUEUED
    item.size_bytes = operation.size_bytes
    if operation.phase == WRITING:
        item.role = WRITE
        item.ios = requests(state, operation.size_bytes)
    else:
        reads_here = operation.phase == READING and state.streams[operation.owner].k == 0
        item.role = READ if reads_here else EC_READ
    enter(state, i)
