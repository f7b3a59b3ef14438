"""Scrub: PGs in turn, chunks of objects, small items of the scrubber around each chunk, reads in strides."""

from __future__ import annotations

from ceph_tuner.twin.kernel.degraded import enters_anew
from ceph_tuner.twin.kernel.events import appended, cost_of, enter, new_item, release, schedule, send, uniform
from ceph_tuner.twin.kernel.records import (
    A_SCRUB,
    BLOCKED,
    FINISHED,
    FREE,
    GOES_ON,
    HIGH,
    READING,
    RUNNING,
    SCRUB,
    SCRUB_CHUNK,
    SCRUB_MAP,
    SCRUB_STEP,
    SCRUB_TICK,
    WAITING,
    Item,
    Task,
)
from ceph_tuner.twin.kernel.state import SimulationState

STEPS = 2
"""Items of the scrubber before a chunk, of which the last costs as much as the chunk, and as many small ones after."""
LEAST_CHUNK = 3
"""Objects, whatever the settings."""
TICK_S = 1.0
"""How often an OSD thinks of starting a scrub; it throws a coin first (osd_scrub_backoff_ratio)."""


def scrub_tick(state: SimulationState, osd: int, now: float) -> None:
    """An OSD thinks of starting a scrub."""
    schedule(state, now + TICK_S, SCRUB_TICK, osd)
    if uniform(state) >= state.parameters.scrub_backoff:
        start_scrub(state, osd)


def start_scrub(state: SimulationState, osd: int) -> None:
    """Start the next PG that waits at its primary, where reservations allow."""
    own = state.osds[osd]
    first = own.task_begin[SCRUB]
    count = own.task_end[SCRUB] - first
    for step in range(count):
        place = (own.next_scrub + step) % count
        number = state.task_order[first + place]
        task = state.tasks[number]
        if task.state != WAITING or not _allowed(state, task):
            continue
        own.scrubs += 1
        _reserve(state, task, 1)
        own.next_scrub = (place + 1) % count
        task.state = RUNNING
        _begin_chunk(state, number)
        return


def _allowed(state: SimulationState, task: Task) -> bool:
    """Whether every OSD of a PG has a place for its scrub, and none recovers (osd_scrub_during_recovery)."""
    slot = task.pg * state.parameters.width
    for place in range(task.copies):
        own = state.osds[state.slots[slot + place].osd]
        if own.local_backfills > 0 or own.remote_backfills > 0:
            return False
        used = own.scrubs if place == 0 else own.remote_scrubs
        if state.parameters.shared_scrubs == 1:
            used = own.scrubs + own.remote_scrubs
        if used >= own.limits.max_scrubs:
            return False
    return True


def _reserve(state: SimulationState, task: Task, change: int) -> None:
    """Take the replicas' reservations (1), or give them back (-1)."""
    slot = task.pg * state.parameters.width
    for place in range(1, task.copies):
        state.osds[state.slots[slot + place].osd].remote_scrubs += change


def _begin_chunk(state: SimulationState, number: int) -> None:
    """The scrubber goes on to its next objects, or anew to those that a write took from it."""
    task = state.tasks[number]
    slot = task.pg * state.parameters.width
    if task.preempted == 1:
        task.preempted = 0
        task.preemptions_left -= 1
        task.chunk_divisor *= 2
    else:
        task.preemptions_left = state.osds[state.slots[slot].osd].limits.max_preemptions
        task.chunk_divisor = 1
    most = _chunk_objects(state, task, slot)
    task.chunk = most if most < task.left else task.left
    task.chunk_bytes = 0.0
    task.stage = 0
    enter(state, new_item(state, SCRUB_STEP, task.lane, slot, number, _step_cost(state, task), 0.0, 0.0))


def _most_objects(state: SimulationState, task: Task, slot: int) -> int:
    """A chunk's objects by the settings of a copy's OSD (osd_scrub_chunk_max, osd_shallow_scrub_chunk_max)."""
    limits = state.osds[state.slots[slot].osd].limits
    return limits.scrub_chunk if task.object_bytes > 0.0 else limits.shallow_scrub_chunk


def _chunk_objects(state: SimulationState, task: Task, slot: int) -> int:
    """The same of one that was preempted so and so often (PgScrubber::select_range)."""
    limits = state.osds[state.slots[slot].osd].limits
    least = limits.least_scrub_chunk if task.object_bytes > 0.0 else limits.least_shallow_scrub_chunk
    if state.parameters.least_chunk_shrinks == 1:
        least = least // task.chunk_divisor
    least = least if least > LEAST_CHUNK else LEAST_CHUNK
    most = _most_objects(state, task, slot) // task.chunk_divisor
    return most if most > least else least


def _chunk_cost(state: SimulationState, task: Task, objects: int) -> float:
    if task.cost_is_fixed == 1:
        return task.cost_bytes
    return cost_of(state, state.parameters.scrub_event_bytes + objects * task.cost_bytes)


def _step_cost(state: SimulationState, task: Task) -> float:
    return task.cost_bytes if task.cost_is_fixed == 1 else cost_of(state, state.parameters.scrub_event_bytes)


def scrub_goes_on(state: SimulationState, number: int, now: float) -> None:
    """A step of a scrub, or the last part of a chunk, is done: steps, then a chunk on every copy, then steps.

    The primary knows how many objects its chunk has. A replica does not when it queues the request: there the least
    chunk costs as much as the largest. So does one of no objects, of which it is asked once a write has preempted the
    chunk.
    """
    task = state.tasks[number]
    slot = task.pg * state.parameters.width
    task.stage += 1
    if task.stage == 1 and task.among > 0.0:
        state.slots[slot].scrubbed = number
    if task.stage == STEPS:
        task.pending = task.copies - task.preempted
        if task.pending == 0:
            state.slots[slot].scrubbed = -1
            _begin_chunk(state, number)
            return
        for place in range(task.preempted, task.copies):
            cost = _step_cost(state, task)
            if place > 0:
                cost = _chunk_cost(state, task, _most_objects(state, task, slot + place))
            i = new_item(state, SCRUB_CHUNK, task.lane, slot + place, number, cost, 0.0, 0.0)
            state.items[i].objects_left = 0 if task.preempted == 1 else task.chunk
            # it lists the objects first
            state.items[i].strides_left = -1
            if place == 0:
                enter(state, i)
            else:
                send(state, i, now)
    elif task.stage <= 2 * STEPS:
        before = task.stage == STEPS - 1
        cost = _chunk_cost(state, task, task.chunk) if before else _step_cost(state, task)
        enter(state, new_item(state, SCRUB_STEP, task.lane, slot, number, cost, 0.0, 0.0))
    else:
        task.left -= task.chunk
        if task.left > 0:
            _begin_chunk(state, number)
        else:
            _finish(state, task)


def _finish(state: SimulationState, task: Task) -> None:
    """A PG is scrubbed: its reservations go to others. An endless scrub begins anew when its turn comes."""
    task.state = FINISHED
    state.osds[state.slots[task.pg * state.parameters.width].osd].scrubs -= 1
    _reserve(state, task, -1)
    if task.endless == 1:
        task.state = WAITING
        task.left = task.total


def _next_object(state: SimulationState, item: Item, size: float) -> None:
    """Of a chunk's next object the strides to read (osd_deep_scrub_stride): their number, and the first one's length.

    Only a read that finds less than a stride tells where an object ends. So a whole number of strides takes one more.
    """
    item.strides_left = int(size / state.parameters.scrub_stride_bytes) + 1
    _next_stride(state, item, size)


def _next_stride(state: SimulationState, item: Item, size: float) -> None:
    stride = state.parameters.scrub_stride_bytes
    item.size_bytes = stride if item.strides_left > 1 else size % stride


def stride_read(state: SimulationState, i: int, osd: int, now: float) -> int:
    """A stride of an object is read: an object's next stride is queued anew (FREE), the next object comes at once.

    No copy reads on once a write has preempted the chunk: each has heard of it by its part of the write.
    """
    item = state.items[i]
    number = item.owner
    task, counters = state.tasks[number], state.osds[osd].counters
    if item.objects_left == 0 or task.preempted == 1:
        return _copy_read(state, i, now)
    if item.strides_left < 0:
        _next_object(state, item, task.object_bytes)
        return _queued_anew(state, i, task)
    again = item.size_bytes if item.size_bytes < task.reread_bytes else task.reread_bytes
    task.reread_bytes -= again
    task.chunk_bytes += item.size_bytes
    counters.scrubbed_bytes += item.size_bytes - again
    counters.scrub_read_bytes += item.size_bytes
    item.strides_left -= 1
    if item.strides_left > 0:
        _next_stride(state, item, task.object_bytes)
        return _queued_anew(state, i, task)
    item.objects_left -= 1
    if item.objects_left > 0:
        _next_object(state, item, task.object_bytes)
        return GOES_ON
    return _copy_read(state, i, now)


def _copy_read(state: SimulationState, i: int, now: float) -> int:
    """A chunk's objects are read on one of the OSDs; a replica tells the primary."""
    item = state.items[i]
    primary = state.tasks[item.owner].pg * state.parameters.width
    if item.slot != primary:
        item.role = SCRUB_MAP
        item.slot = primary
        item.lane = HIGH
        send(state, i, now)
    else:
        copy_scrubbed(state, i, now)
    return FREE


def _queued_anew(state: SimulationState, i: int, task: Task) -> int:
    """A chunk's next part waits its turn at the price of a small item; the thread is free."""
    state.items[i].cost_bytes = _step_cost(state, task)
    enter(state, i)
    return FREE


def copy_scrubbed(state: SimulationState, i: int, now: float) -> None:
    """The primary knows what a chunk's objects are on one of the OSDs."""
    number = state.items[i].owner
    task = state.tasks[number]
    release(state, i)
    task.pending -= 1
    if task.pending > 0:
        return
    slot = state.slots[task.pg * state.parameters.width]
    slot.scrubbed = -1
    if task.preempted == 1:
        task.reread_bytes += task.chunk_bytes
        _begin_chunk(state, number)
        return
    state.osds[slot.osd].counters.scrubbed_objects += task.chunk
    i = task.waiting_head
    task.waiting_head = -1
    while i >= 0:
        following = state.items[i].next_item
        enters_anew(state, i)
        i = following
    scrub_goes_on(state, number, now)


def waits_for_scrub(state: SimulationState, i: int) -> bool:
    """Whether a client's write, which a thread has taken, has to wait until its object's chunk is scrubbed.

    As often as osd_scrub_max_preemptions says it need not, and the chunk is given up for it
    (PgScrubber::write_blocked_by_scrub).
    """
    item = state.items[i]
    task, operation = state.tasks[state.slots[item.slot].scrubbed], state.operations[item.owner]
    if operation.phase == READING or task.preempted == 1 or uniform(state) * task.among >= task.chunk:
        return False
    if task.preemptions_left > 0:
        task.preempted = 1
        state.osds[state.slots[item.slot].osd].counters.preempted_chunks += 1.0
        return False
    item.role = BLOCKED
    item.size_bytes = 0.0
    operation.awaits = A_SCRUB
    return True


def wait_for_scrub(state: SimulationState, i: int) -> None:
    """A client's write waits for the end of a chunk; its thread goes on with other items."""
    number = state.slots[state.items[i].slot].scrubbed
    if number < 0:
        enters_anew(state, i)
        return
    task = state.tasks[number]
    task.waiting_head = appended(state, i, task.waiting_head, task.waiting_tail)
    task.waiting_tail = i
