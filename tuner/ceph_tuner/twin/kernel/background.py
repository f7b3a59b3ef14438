"""Background work of every kind: what starts it, and where its items, transactions and operations go on."""

from __future__ import annotations

from ceph_tuner.twin.kernel.degraded import lacking_changes
from ceph_tuner.twin.kernel.deletion import batch_deleted, delete_some, start_deletions
from ceph_tuner.twin.kernel.drive import requests
from ceph_tuner.twin.kernel.events import enter, new_item, release, release_operation
from ceph_tuner.twin.kernel.records import (
    A_SCRUB,
    BLOCKED,
    EC_FIRST,
    EC_RECOVERY,
    FREE,
    HIGH,
    PULL,
    PULLED,
    PUSH,
    PUSHED,
    RECOVER,
    SCRUB,
    SCRUB_CHUNK,
    SCRUB_MAP,
    SCRUB_STEP,
    SNAPTRIM,
    SUBMITS,
    TRIM,
    TRIM_REPLICA,
    TRIMMING,
    WAITING,
    WRITE,
    WRITING,
)
from ceph_tuner.twin.kernel.recovery import (
    blocked,
    next_part,
    part_durable,
    push,
    push_arrived,
    recovered,
    shards_read,
    sleep,
    start_recoveries,
    turn_ends,
)
from ceph_tuner.twin.kernel.scrub import copy_scrubbed, scrub_goes_on, stride_read, wait_for_scrub
from ceph_tuner.twin.kernel.snaptrim import ask_to_trim, clone_trimmed, trim_goes_on, trim_some
from ceph_tuner.twin.kernel.state import SimulationState


def begin_task(state: SimulationState, number: int) -> None:
    """A PG's work begins. A scrub waits for its OSD to think of it."""
    task = state.tasks[number]
    osd = state.slots[task.pg * state.parameters.width].osd
    task.state = WAITING
    lacking_changes(state, number)
    if task.kind < SCRUB:
        start_recoveries(state, task.kind, osd)
    elif task.kind == SNAPTRIM:
        ask_to_trim(state, number)
    elif task.kind > SNAPTRIM:
        start_deletions(state, osd)


def work_wakes(state: SimulationState, number: int) -> None:
    """A PG's sleep between two items of snaptrim or deletion is over."""
    if state.tasks[number].kind == SNAPTRIM:
        trim_some(state, number)
    else:
        delete_some(state, number)


def background_item_ends(state: SimulationState, i: int, osd: int, now: float) -> int:
    """A thread is through with an item of background work: FREE, SUBMITS, GOES_ON or WAITS."""
    item = state.items[i]
    role, number = item.role, item.owner
    after = SUBMITS
    if role == RECOVER and item.objects_left == 1:
        sleep(state, i, now)
        after = FREE
    elif role == RECOVER:
        turn_ends(state, i, number, now)
        after = FREE
    elif role == PUSHED and state.operations[number].parts_pending > 0:
        next_part(state, i, number, now)
        after = FREE
    elif role == BLOCKED and state.operations[number].awaits == A_SCRUB:
        wait_for_scrub(state, i)
        after = FREE
    elif role == BLOCKED:
        blocked(state, i, now)
        after = FREE
    elif role == PULL:
        push(state, i, number, now)
        after = FREE
    elif role == PUSH:
        push_arrived(state, i)
    elif role == PUSHED or role == PULLED:
        release(state, i)
        recovered(state, number, now)
        after = FREE
    elif role == SCRUB_CHUNK:
        after = stride_read(state, i, osd, now)
    elif role == SCRUB_MAP:
        copy_scrubbed(state, i, now)
        after = FREE
    elif role == SCRUB_STEP:
        release(state, i)
        scrub_goes_on(state, number, now)
        after = FREE
    elif role == TRIM or role == TRIM_REPLICA:
        after = trim_goes_on(state, i, osd, now)
    return after


def background_durable(state: SimulationState, i: int, now: float) -> None:
    """A recovered copy, or a batch of deletions, is durable."""
    item = state.items[i]
    if item.role == PUSH:
        part_durable(state, i, item.owner, now)
    else:
        batch_deleted(state, i, item.owner, now)


def background_operation_done(state: SimulationState, op: int, now: float) -> None:
    """Clones are trimmed on every replica; an erasure-coded object is read; its stripe is ready to be written."""
    operation, parameters = state.operations[op], state.parameters
    phase, owner = operation.phase, operation.owner
    if phase == EC_FIRST:
        size = operation.size_bytes
        operation.phase = WRITING
        operation.parts_pending = state.streams[owner].size
        slot, ios = operation.pg * parameters.width, requests(state, size)
        enter(state, new_item(state, WRITE, HIGH, slot, op, parameters.least_cost_bytes, size, ios))
        return
    release_operation(state, op)
    if phase == EC_RECOVERY:
        shards_read(state, owner, now)
    elif phase == TRIMMING:
        clone_trimmed(state, owner, now)
