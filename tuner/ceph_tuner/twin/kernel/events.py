"""Events and messages by time, random numbers, and items and operations as they come and go."""

from __future__ import annotations

from typing import Sequence

from ceph_tuner.twin.kernel.processors import message_waits
from ceph_tuner.twin.kernel.records import VARIATES, Due
from ceph_tuner.twin.kernel.state import SimulationState


def schedule(state: SimulationState, time: float, kind: int, index: int) -> None:
    """Put an event into the heap."""
    events = state.events
    place = state.progress.heap_size
    state.progress.heap_size = place + 1
    while place > 0:
        parent = (place - 1) >> 1
        above = events[parent]
        if above.time_s <= time:
            break
        own = events[place]
        own.time_s = above.time_s
        own.kind = above.kind
        own.index = above.index
        place = parent
    own = events[place]
    own.time_s = time
    own.kind = kind
    own.index = index


def drop_first_event(state: SimulationState) -> None:
    """Take the first event out of the heap."""
    events = state.events
    size = state.progress.heap_size - 1
    state.progress.heap_size = size
    last = events[size]
    time, kind, index, place = last.time_s, last.kind, last.index, 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and events[child + 1].time_s < events[child].time_s:
            child += 1
        below = events[child]
        if below.time_s >= time:
            break
        own = events[place]
        own.time_s = below.time_s
        own.kind = below.kind
        own.index = below.index
        place = child
    own = events[place]
    own.time_s = time
    own.kind = kind
    own.index = index


def uniform(state: SimulationState) -> float:
    """The next number of the table, uniform in [0, 1)."""
    place = state.progress.next_uniform
    state.progress.next_uniform = (place + 1) & (VARIATES - 1)
    return state.uniforms[place]


def exponential(state: SimulationState) -> float:
    """The next number of the table, exponential with mean 1."""
    place = state.progress.next_exponential
    state.progress.next_exponential = (place + 1) & (VARIATES - 1)
    return state.exponentials[place]


def spread(state: SimulationState, mean: float) -> float:
    """A latency of that mean, with its exponential share."""
    return mean * (1.0 + state.parameters.latency_spread * (exponential(state) - 1.0))


def new_item(
    state: SimulationState,
    role: int,
    lane: int,
    slot: int,
    owner: int,
    cost_bytes: float,
    size_bytes: float,
    ios: float,
) -> int:
    """A new item. `run` stops while there is still room for what one event may bring about."""
    i = state.progress.free_item
    item = state.items[i]
    state.progress.free_item = item.next_item
    item.role = role
    item.lane = lane
    item.slot = slot
    item.owner = owner
    item.next_item = -1
    item.cost_bytes = cost_bytes
    item.size_bytes = size_bytes
    item.ios = ios
    return i


def appended(state: SimulationState, i: int, head: int, tail: int) -> int:
    """Put an item at the end of a list, and give its head; the item is its tail then."""
    state.items[i].next_item = -1
    if head < 0:
        return i
    state.items[tail].next_item = i
    return head


def release(state: SimulationState, i: int) -> None:
    """An item is done with."""
    state.items[i].next_item = state.progress.free_item
    state.progress.free_item = i


def _line_up(line: Sequence[Due], mask: int, head: int, tail: int, time: float, number: int) -> None:
    """Put a number into a line that is in the order of its times, and ends before `tail`."""
    while tail > head and line[(tail - 1) & mask].time_s > time:
        before, own = line[(tail - 1) & mask], line[tail & mask]
        own.time_s = before.time_s
        own.number = before.number
        tail -= 1
    own = line[tail & mask]
    own.time_s = time
    own.number = number


def send(state: SimulationState, i: int, now: float) -> None:
    """An item is on its way to its OSD, from another one."""
    time = now + state.parameters.network_s
    if state.parameters.processors > 0:
        time += message_waits(state, i, now)
    arrives(state, i, time)


def arrives(state: SimulationState, i: int, time: float) -> None:
    """An item comes to its OSD at that time."""
    progress = state.progress
    tail = progress.message_tail
    progress.message_tail = tail + 1
    _line_up(state.messages, state.parameters.message_mask, progress.message_head, tail, time, i)


def go_on(state: SimulationState, stream: int, time: float) -> None:
    """A client will have its next operation at the primary at that time."""
    progress = state.progress
    tail = progress.turn_tail
    progress.turn_tail = tail + 1
    _line_up(state.turns, state.parameters.turn_mask, progress.turn_head, tail, time, stream)


def enter(state: SimulationState, i: int) -> None:
    """An item enters its shard's queue now."""
    state.entering[state.progress.entering] = i
    state.progress.entering += 1


def mark_dirty(state: SimulationState, shard: int) -> None:
    """A shard has a thread to give away."""
    state.dirty[state.progress.dirty] = shard
    state.progress.dirty += 1


def new_operation(state: SimulationState, owner: int, pg: int, phase: int, parts: int, now: float) -> int:
    """A new operation that waits for its parts."""
    op = state.progress.free_operation
    operation = state.operations[op]
    state.progress.free_operation = operation.next_free
    operation.owner = owner
    operation.pg = pg
    operation.phase = phase
    operation.parts_pending = parts
    operation.arrived_at_s = now
    return op


def release_operation(state: SimulationState, op: int) -> None:
    """An operation is done with."""
    state.operations[op].next_free = state.progress.free_operation
    state.progress.free_operation = op


def part_done(state: SimulationState, op: int) -> None:
    """One of the parts that an operation waits for is there."""
    operation = state.operations[op]
    operation.parts_pending -= 1
    if operation.parts_pending == 0:
        state.answered[state.progress.answered] = op
        state.progress.answered += 1


def cost_of(state: SimulationState, size: float) -> float:
    """What an item of so many bytes costs its class."""
    least = state.parameters.least_cost_bytes
    return size if size > least else least
