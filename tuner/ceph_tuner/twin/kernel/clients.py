"""Clients: operations as they are issued and answered."""

from __future__ import annotations

from math import frexp

from ceph_tuner.twin.kernel.drive import requests
from ceph_tuner.twin.kernel.events import (
    arrives,
    enter,
    exponential,
    go_on,
    new_item,
    new_operation,
    release_operation,
    schedule,
    uniform,
)
from ceph_tuner.twin.kernel.processors import waits_for_processor
from ceph_tuner.twin.kernel.records import (
    CLIENT_ARRIVES,
    DRAINS,
    EC_FIRST,
    EC_FORWARD,
    EC_READ,
    HIGH,
    OPEN,
    OSD_BUCKETS,
    PER_OCTAVE,
    READ,
    READING,
    STREAM_BUCKETS,
    WRITE,
    WRITING,
    Stream,
)
from ceph_tuner.twin.kernel.state import SimulationState


def issue(state: SimulationState, number: int, now: float) -> None:
    """A client's operation reaches the primary of its PG."""
    stream = state.streams[number]
    pg = stream.first_pg + int(uniform(state) * stream.pgs)
    reads = stream.read_share > 0.0 and uniform(state) < stream.read_share
    size = stream.block_bytes
    if stream.k > 0:
        size /= stream.k
    if reads:
        op = new_operation(state, number, pg, READING, 1, now)
        role = READ if stream.k == 0 else EC_READ
        ios = 0.0
        cost = stream.read_cost_bytes
    else:
        op = new_operation(state, number, pg, WRITING, stream.size, now)
        role = WRITE
        ios = requests(state, size)
        cost = stream.write_cost_bytes
        if stream.k > 0:
            state.slots[pg * state.parameters.width].writes_under_way += 1
            if stream.partial_stripe == 1:
                state.operations[op].phase = EC_FIRST
                role = EC_READ
    operation = state.operations[op]
    operation.issued_at_s = now - state.parameters.network_s
    operation.size_bytes = size
    slot, waits = pg * state.parameters.width, 0.0
    i = new_item(state, role, 0, slot, op, cost, size, ios)
    if state.parameters.processors > 0:
        waits = waits_for_processor(state, state.slots[slot].osd, now, state.parameters.message_cpu_s)
    if waits > 0.0:
        arrives(state, i, now + waits)
    else:
        enter(state, i)


def bucket(latency: float) -> int:
    """A stream's bucket: PER_OCTAVE to each doubling, from 0.5 us on."""
    fraction, exponent = frexp(latency * 1e6)
    place = exponent * PER_OCTAVE + int((fraction - 0.5) * (2 * PER_OCTAVE))
    if place < 0:
        return 0
    return place if place < STREAM_BUCKETS else STREAM_BUCKETS - 1


def operation_done(state: SimulationState, op: int, now: float) -> None:
    """An operation is answered: count it, and let the client go on."""
    operation = state.operations[op]
    number = operation.owner
    stream = state.streams[number]
    osd = state.slots[operation.pg * state.parameters.width].osd
    own = state.osds[osd]
    release_operation(state, op)
    if stream.k > 0 and operation.phase == WRITING:
        _roll_forward(state, number, operation.pg, now)
    seconds = now - operation.arrived_at_s
    kind = 0 if operation.phase == READING else 1
    own.counters.operations[kind] += 1.0
    own.counters.operation_bytes[kind] += stream.block_bytes
    own.counters.operation_s[kind] += seconds
    exponent = frexp(seconds * 1e4)[1]
    exponent = 0 if exponent < 0 else (exponent if exponent < OSD_BUCKETS else OSD_BUCKETS - 1)
    own.latency[kind][exponent] += 1
    sent = now
    if state.parameters.processors > 0:
        sent += waits_for_processor(state, osd, now, state.parameters.message_cpu_s + stream.cpu_s)
    latency = sent + state.parameters.network_s + stream.latency_s - operation.issued_at_s
    stream.latency[kind][bucket(latency)] += 1
    stream.operations += 1.0
    stream.operation_s += latency
    if stream.mode == DRAINS:
        _drained(state, stream, number, sent)
        return
    if stream.mode == OPEN:
        if stream.backlog == 0:
            stream.under_way -= 1
            return
        stream.backlog -= 1
    go_on(state, number, sent + 2.0 * state.parameters.network_s + stream.latency_s)


def _roll_forward(state: SimulationState, number: int, pg: int, now: float) -> None:
    """With no write of a PG under way, an empty one lets its shards forget what they kept to go back (ECDummyOp)."""
    slot = pg * state.parameters.width
    state.slots[slot].writes_under_way -= 1
    if state.slots[slot].writes_under_way == 0:
        op = new_operation(state, number, pg, EC_FORWARD, state.streams[number].size, now)
        enter(state, new_item(state, WRITE, HIGH, slot, op, state.parameters.least_cost_bytes, 0.0, 0.0))


def _drained(state: SimulationState, stream: Stream, number: int, now: float) -> None:
    """One operation less is under way: a client that waited for a place, or for the last of them, goes on."""
    stream.under_way -= 1
    heard = now + 2.0 * state.parameters.network_s + stream.latency_s
    if stream.awaits_place == 1:
        stream.awaits_place = 0
        schedule(state, heard, CLIENT_ARRIVES, number)
    elif stream.draining == 1 and stream.under_way == 0:
        # the length of the pause was decided before it waited for this
        stream.draining = 0
        schedule(state, heard + stream.pause_s, CLIENT_ARRIVES, number)


def _catch_up(state: SimulationState, stream: Stream, number: int, now: float) -> None:
    """After its pause a client issues all that has come due meanwhile, and then waits until nothing is under way."""
    due = stream.due_s
    while True:
        if stream.under_way >= stream.depth:
            stream.awaits_place = 1
            break
        stream.under_way += 1
        issue(state, number, now)
        due += exponential(state) / stream.rate
        if due > now:
            stream.pause_s = due - now
            stream.draining = 1
            break
    stream.due_s = due


def arrive(state: SimulationState, number: int, now: float) -> None:
    """Open loop: an operation is due; it waits at the client where its queue depth is used up."""
    stream = state.streams[number]
    if stream.mode == DRAINS:
        _catch_up(state, stream, number, now)
        return
    schedule(state, now + exponential(state) / stream.rate, CLIENT_ARRIVES, number)
    if stream.under_way < stream.depth:
        stream.under_way += 1
        issue(state, number, now)
    else:
        stream.backlog += 1
