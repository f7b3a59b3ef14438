"""The loop that Python calls: time passes from event to event."""

from __future__ import annotations

import math

from ceph_tuner.twin.kernel.background import background_operation_done, begin_task, work_wakes
from ceph_tuner.twin.kernel.clients import arrive, issue, operation_done
from ceph_tuner.twin.kernel.commits import commit_begins, commit_ends, deferred_tick, deferred_written, trims_applied
from ceph_tuner.twin.kernel.dmclock import clean
from ceph_tuner.twin.kernel.events import drop_first_event, enter, mark_dirty, schedule
from ceph_tuner.twin.kernel.records import (
    CLEAN_S,
    CLIENT_ARRIVES,
    COMMIT_BEGINS,
    COMMIT_ENDS,
    DEFERRED_TICK,
    DEFERRED_WRITTEN,
    LEASES_RENEWED,
    MARKS,
    QUEUE_CLEANED,
    QUEUE_WAKES,
    RECOVERY_WAKES,
    SCRUB_TICK,
    TASK_BEGINS,
    THREAD_ENDS,
    TRIMS_APPLIED,
    WORK_WAKES,
    WRITING,
)
from ceph_tuner.twin.kernel.recovery import recovery_places_free, recovery_wakes
from ceph_tuner.twin.kernel.scrub import scrub_tick
from ceph_tuner.twin.kernel.state import SimulationState
from ceph_tuner.twin.kernel.threads import dispatch, enqueue, moment_has_come, thread_ends

LEASE_S = 8.0
"""How often a pool's PGs renew their leases (half the read lease interval): messages that wake every shard."""


def rare_event(state: SimulationState, kind: int, index: int, now: float) -> None:
    """Other events, most of a few a second: ticks of scrub, deferred writes, work that begins or wakes."""
    if kind == SCRUB_TICK:
        scrub_tick(state, index, now)
    elif kind == QUEUE_CLEANED:
        _clean_queue(state, index, now)
    elif kind == TASK_BEGINS:
        begin_task(state, index)
    elif kind == LEASES_RENEWED:
        _renew_leases(state, now)
    elif kind == DEFERRED_TICK:
        deferred_tick(state, index, now)
    elif kind == DEFERRED_WRITTEN:
        deferred_written(state, index, now)
    elif kind == RECOVERY_WAKES:
        recovery_wakes(state, index)
    elif kind == WORK_WAKES:
        work_wakes(state, index)
    elif kind == TRIMS_APPLIED:
        trims_applied(state, index, now)
    else:
        recovery_places_free(state)


def _renew_leases(state: SimulationState, now: float) -> None:
    """A pool's PGs, which became active together, tell their replicas that they live: small items, a burst of them.

    What they cost is nothing, but they wake threads where some wait for a class's moment, and so end a standstill:
    nobody asks, and answers lie beside a first thread that waits.
    """
    schedule(state, now + LEASE_S, LEASES_RENEWED, 0)
    for number in range(state.parameters.shards):
        shard = state.shards[number]
        if shard.queued > 0 and shard.idle_threads > shard.asleep:
            shard.woken = shard.idle_threads
            shard.first_looks = 1
            mark_dirty(state, number)


def _clean_queue(state: SimulationState, number: int, now: float) -> None:
    """Once a minute, as the library does: classes idle for 5 minutes, and forgotten after 10."""
    schedule(state, now + CLEAN_S, QUEUE_CLEANED, number)
    shard = state.shards[number]
    newest, marks = shard.marks_made, shard.marks
    shard.marks_made = newest + 1
    marks[newest % MARKS] = shard.queue.tick
    erase_tick = marks[(newest - 10) % MARKS] if newest >= 10 else 0
    idle_tick = marks[(newest - 5) % MARKS] if newest >= 5 else 0
    clean(shard.queue, erase_tick, idle_tick)


def _event(state: SimulationState, now: float) -> None:
    """What the first event of the heap brings about."""
    kind, index = state.events[0].kind, state.events[0].index
    drop_first_event(state)
    if kind == THREAD_ENDS:
        thread_ends(state, index, now)
    elif kind == COMMIT_BEGINS:
        commit_begins(state, index, now)
    elif kind == COMMIT_ENDS:
        commit_ends(state, index, now)
    elif kind == CLIENT_ARRIVES:
        arrive(state, index, now)
    elif kind == QUEUE_WAKES:
        moment_has_come(state, index)
    else:
        rare_event(state, kind, index, now)


def _follow(state: SimulationState, now: float) -> None:
    """All that an event brings about at its own time."""
    progress = state.progress
    while progress.entering + progress.dirty + progress.answered > 0:
        for place in range(progress.answered):
            op = state.answered[place]
            if state.operations[op].phase <= WRITING:
                operation_done(state, op, now)
            else:
                background_operation_done(state, op, now)
        progress.answered = 0
        for place in range(progress.entering):
            enqueue(state, state.entering[place], now)
        progress.entering = 0
        for place in range(progress.dirty):
            dispatch(state, state.dirty[place], now)
        progress.dirty = 0


def run(state: SimulationState, until: float) -> None:
    """Let time pass up to `until` (s); `full` is then 1 where the tables were too small to go on."""
    progress, parameters = state.progress, state.parameters
    messages, turns = state.messages, state.turns
    while True:
        now = state.events[0].time_s if progress.heap_size > 0 else math.inf
        message, turn = False, False
        if progress.message_head < progress.message_tail:
            time = messages[progress.message_head & parameters.message_mask].time_s
            if time < now:
                now, message = time, True
        if progress.turn_head < progress.turn_tail:
            time = turns[progress.turn_head & parameters.turn_mask].time_s
            if time < now:
                now, message, turn = time, False, True
        if now > until:
            break
        # a free list hands out new places last, in their order, so its head tells how full it has become
        if (
            progress.free_item > parameters.item_room
            or progress.free_operation > parameters.operation_room
            or progress.heap_size > parameters.event_room
        ):
            progress.full = 1
            return
        progress.events += 1
        if message:
            enter(state, messages[progress.message_head & parameters.message_mask].number)
            progress.message_head += 1
        elif turn:
            stream = turns[progress.turn_head & parameters.turn_mask].number
            progress.turn_head += 1
            issue(state, stream, now)
        else:
            _event(state, now)
        _follow(state, now)
    progress.now_s = until
