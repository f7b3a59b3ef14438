"""Scrub: PGs in turn, chunks of objects, small items of the scrubber around each chunk, reads in strides."""

from __future__ import annotations

from ceph_tuner.twin.kernel.events import cost_of, enter, new_item, release, schedule, send, uniform
from ceph_tuner.twin.kernel.records import (
    FINISHED,
    FREE,
    GOES_ON,
    HIGH,
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
    """The scrubber goes on to its next objects."""
    task = state.tasks[number]
    slot = task.pg * state.parameters.width
    most = _most_objects(state, task, slot)
    task.chunk = most if most < task.left else task.left
    task.stage = 0
    enter(state, new_item(state, SCRUB_STEP, task.lane, slot, number, _step_cost(state, task), 0.0, 0.0))


def _most_objects(state: SimulationState, task: Task, slot: int) -> int:
    """A chunk's objects by the settings of a copy's OSD (osd_scrub_chunk_max, osd_shallow_scrub_chunk_max)."""
    limits = state.osds[state.slots[slot].osd].limits
    return limits.scrub_chunk if task.object_bytes > 0.0 else limits.shallow_scrub_chunk


def _chunk_cost(state: SimulationState, task: Task, objects: int) -> float:
    if task.cost_is_fixed == 1:
        return task.cost_bytes
    return cost_of(state, state.parameters.scrub_event_bytes + objects * task.cost_bytes)


def _step_cost(state: SimulationState, task: Task) -> float:
    return task.cost_bytes if task.cost_is_fixed == 1 else cost_of(state, state.parameters.scrub_event_bytes)


def scrub_goes_on(state: SimulationState, number: int, now: float) -> None:
    """A step of a scrub, or the last part of a chunk, is done: steps, then a chunk on every copy, then steps.

    The primary knows how many objects its chunk has. A replica does not when it queues the request: there the least
    chunk costs as much as the largest.
    """
    task = state.tasks[number]
    slot = task.pg * state.parameters.width
    task.stage += 1
    if task.stage == STEPS:
        task.pending = task.copies
        for place in range(task.copies):
            cost = _step_cost(state, task)
            if place > 0:
                cost = _chunk_cost(state, task, _most_objects(state, task, slot + place))
            i = new_item(state, SCRUB_CHUNK, task.lane, slot + place, number, cost, 0.0, 0.0)
            state.items[i].objects_left = task.chunk
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
    """A stride of an object is read: an object's next stride is queued anew (FREE), the next object comes at once."""
    item = state.items[i]
    number = item.owner
    task, counters = state.tasks[number], state.osds[osd].counters
    primary = task.pg * state.parameters.width
    if item.strides_left < 0:
        _next_object(state, item, task.object_bytes)
        return _queued_anew(state, i, task)
    counters.scrubbed_bytes += item.size_bytes
    item.strides_left -= 1
    if item.strides_left > 0:
        _next_stride(state, item, task.object_bytes)
        return _queued_anew(state, i, task)
    if item.slot == primary:
        counters.scrubbed_objects += 1.0
    item.objects_left -= 1
    if item.objects_left > 0:
        _next_object(state, item, task.object_bytes)
        return GOES_ON
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
    if task.pending == 0:
        scrub_goes_on(state, number, now)
