"""A shard's threads: items are queued and taken, and hold a thread and their PG's lock until they are through.

Threads without an item sleep until the queue is not empty any more, or wait for the moment that the queue named. An
item that comes into an empty queue wakes them all; into a queue that holds something, it wakes one, and only if one
waits for such a moment (OSD::ShardedOpWQ::_enqueue). So a queue that holds back a limited class can leave its shard
to a single thread, however many sleep, and what that thread waits for, everything waits for.

The first thread of a shard also runs what follows a commit: it takes the list of durable transactions, then the
next item if there is one, and answers them only when that item is done with (OSD::ShardedOpWQ::_process). So an
answer waits for a scrub's read, or for BlueStore's throttle, whenever the first thread does. While it waits for a
moment, the first transaction of a commit wakes it, and it goes back to waiting without a look at those that came
meanwhile: they lie until that moment has come.
"""

from __future__ import annotations

from ceph_tuner.twin.kernel.background import background_durable, background_item_ends
from ceph_tuner.twin.kernel.bluestore import submit
from ceph_tuner.twin.kernel.degraded import lacks_copy
from ceph_tuner.twin.kernel.dmclock import FUTURE, NONE, add, choose, take
from ceph_tuner.twin.kernel.drive import read
from ceph_tuner.twin.kernel.events import appended, mark_dirty, new_item, part_done, release, schedule, send, uniform
from ceph_tuner.twin.kernel.osd_records import Shard
from ceph_tuner.twin.kernel.processors import thread_waits
from ceph_tuner.twin.kernel.records import (
    BEST_EFFORT,
    DELETE,
    EC_READ,
    EC_RECOVERY,
    FREE,
    GOES_ON,
    HIGH,
    LANES,
    LOOKS_UP,
    PULLED,
    PUSH,
    PUSHED,
    QUEUE_WAKES,
    READ,
    RECOVER,
    REPLICAS,
    REPLY,
    REQUEUED,
    SCRUB_CHUNK,
    SCRUB_MAP,
    SCRUB_STEP,
    SUBMITS,
    SUBREAD,
    SUBWRITE,
    THREAD_ENDS,
    TRIM,
    TRIM_LOCAL,
    TRIM_REPLICA,
    WRITE,
    Item,
)
from ceph_tuner.twin.kernel.recovery import read_shards, reads_next_part, reads_object, sleeps_first
from ceph_tuner.twin.kernel.scrub import waits_for_scrub
from ceph_tuner.twin.kernel.state import SimulationState


def _trim_step_s(state: SimulationState, item: Item) -> float:
    """Thread time of a trim's step; what a clone's removal takes is half before the table is read, and half after."""
    parameters = state.parameters
    if item.stage == LOOKS_UP:
        return item.objects_left * parameters.trim_cpu_s
    return 0.5 * (parameters.write_cpu_s + item.size_bytes * parameters.cpu_s_per_byte)


def has_to_wait(state: SimulationState, i: int, now: float) -> bool:
    """Whether a client's operation, which a thread has taken, has to wait for its object."""
    slot = state.slots[state.items[i].slot]
    if slot.lacking >= 0 and lacks_copy(state, i, now):
        return True
    return slot.scrubbed >= 0 and waits_for_scrub(state, i)


def start(state: SimulationState, i: int, now: float) -> None:
    """A thread takes an item; it holds its PG's lock until it is through with it."""
    item, parameters = state.items[i], state.parameters
    slot = state.slots[item.slot]
    role, size = item.role, item.size_bytes
    if slot.held_by >= 0 and slot.held_by != i:
        slot.waiting_head = appended(state, i, slot.waiting_head, slot.waiting_tail)
        slot.waiting_tail = i
        return
    if item.lane == 0 and has_to_wait(state, i, now):
        role, size = item.role, item.size_bytes
    begin = slot.locked_until_s
    begin = begin if begin > now else now
    reads = False
    if role <= SUBWRITE or role == PUSH:
        end = begin + parameters.write_cpu_s + size * parameters.cpu_s_per_byte
    elif role == REPLY or role == PUSHED or role == PULLED or role == SCRUB_STEP or role == SCRUB_MAP:
        end = begin + parameters.reply_cpu_s
        if role == PUSHED and reads_next_part(state, item.owner):
            # the answer to a part makes the primary read the next one
            reads = True
    elif role == TRIM or role == TRIM_REPLICA:
        slot.held_by = i
        end = begin + _trim_step_s(state, item)
    elif role == RECOVER and sleeps_first(state, i):
        item.objects_left = 1
        end = begin + parameters.reply_cpu_s
    elif role == DELETE:
        end = begin + parameters.write_cpu_s + state.tasks[item.owner].pending * parameters.trim_cpu_s
    else:
        if role == SCRUB_CHUNK:
            slot.held_by = i
            if state.tasks[item.owner].preempted == 1:
                size = 0.0
        end = begin + (parameters.scan_cpu_s if role == SCRUB_CHUNK else parameters.read_cpu_s)
        # of an erasure code, and of what is pulled, others are asked for what is to be read
        asks = role == EC_READ or (role == RECOVER and not reads_object(state.tasks[item.owner]))
        reads = size > 0.0 and not asks
    if reads:
        end += size * parameters.cpu_s_per_byte
    if parameters.processors > 0:
        moved_bytes = size if reads or role <= SUBWRITE or role == PUSH else 0.0
        end += thread_waits(state, slot.osd, now, begin, end - begin, moved_bytes)
    if reads:
        end = read(state, slot.osd, end, size)
    slot.locked_until_s = end
    schedule(state, end, THREAD_ENDS, i)


def choose_wpq(state: SimulationState, shard: Shard) -> int:
    """The lane that Ceph's older queue serves, or -1: by priority, and rather the cheap (WeightedPriorityQueue.h)."""
    priorities = state.parameters.priorities
    total, filled, last = 0.0, 0, -1
    for lane in range(LANES):
        if lane != HIGH and shard.head[lane] >= 0:
            total += priorities[lane]
            filled += 1
            last = lane
    if filled <= 1:
        return last
    while True:
        left = uniform(state) * total
        chosen = last
        for lane in range(LANES):
            if lane != HIGH and shard.head[lane] >= 0:
                left -= priorities[lane]
                if left < 0.0:
                    chosen = lane
                    break
        dearest = shard.dearest_cost_bytes
        if uniform(state) * dearest <= dearest - 0.9 * state.items[shard.head[chosen]].cost_bytes:
            return chosen


def enqueue(state: SimulationState, i: int, now: float) -> None:
    """An item joins its lane in its shard."""
    item = state.items[i]
    number, lane = state.slots[item.slot].shard, item.lane
    shard = state.shards[number]
    item.next_item = -1
    item.queued_at_s = now
    if state.parameters.wpq == 1:
        if item.role == SUBWRITE or item.role == TRIM_REPLICA:
            lane = REPLICAS
        elif item.role == SUBREAD and lane == HIGH and state.operations[item.owner].phase != EC_RECOVERY:
            # a client's: with the messenger's own priority; those of recovery have recovery's
            lane = REPLICAS
        elif item.role == RECOVER or item.role == PULLED:
            # what starts an object, or goes on after a pull, has a priority of its own, that of snaptrim and scrub
            lane = BEST_EFFORT
        elif lane == REQUEUED:
            lane = 0
        cost = int(item.cost_bytes)
        if lane != HIGH and cost > shard.dearest_cost_bytes:
            shard.dearest_cost_bytes = cost
    elif lane < HIGH:
        add(shard.queue, lane, now, item.cost_bytes)
    if shard.head[lane] < 0:
        shard.head[lane] = shard.tail[lane] = i
    elif lane != REQUEUED and item.lane == REQUEUED:
        item.next_item = shard.head[lane]
        shard.head[lane] = i
    else:
        state.items[shard.tail[lane]].next_item = i
        shard.tail[lane] = i
    state.progress.events += 1
    if shard.queued == 0:
        shard.woken = shard.idle_threads
        shard.first_looks = 1
        mark_dirty(state, number)
    elif shard.idle_threads - shard.asleep > shard.woken + shard.looking:
        # the line's first is woken, and stands last when it comes back
        shard.woken += 1
        if shard.first_item < 0 and shard.ahead_of_first == 0:
            shard.first_looks = 1
        elif shard.ahead_of_first > 0:
            shard.ahead_of_first -= 1
        mark_dirty(state, number)
    shard.queued += 1


def answer(state: SimulationState, first: int, now: float) -> None:
    """What follows a commit, for a list of transactions: primaries and replicas say so."""
    i = first
    while i >= 0:
        item = state.items[i]
        following, role = item.next_item, item.role
        if role == SUBWRITE or role == TRIM_REPLICA:
            # the same item goes back as the answer
            item.role = REPLY
            item.slot = state.operations[item.owner].pg * state.parameters.width
            send(state, i, now)
        elif role == WRITE or role == TRIM_LOCAL:
            part_done(state, item.owner)
            release(state, i)
        else:
            background_durable(state, i, now)
        i = following


def thread_free(state: SimulationState, number: int, i: int, now: float) -> None:
    """A thread is through with its item and looks for the next one."""
    shard = state.shards[number]
    shard.idle_threads += 1
    shard.looking += 1
    if shard.first_item == i:
        shard.first_item = -1
        shard.first_looks = 1
        taken = shard.taken_durable
        if taken >= 0:
            shard.taken_durable = -1
            answer(state, taken, now)
    mark_dirty(state, number)


def moment_has_come(state: SimulationState, number: int) -> None:
    """All threads of a shard that wait for a moment look at the queue."""
    shard = state.shards[number]
    shard.first_looks = 1
    shard.looking = shard.idle_threads - shard.asleep
    mark_dirty(state, number)


def _wait_until(state: SimulationState, shard: Shard, number: int, when: float, now: float) -> None:
    """The threads that look wait for a moment."""
    planned = shard.wake_at_s
    if planned <= now or when < planned:
        if planned > now:
            shard.later_wake_at_s = planned
        shard.wake_at_s = when
        if when != shard.later_wake_at_s:
            schedule(state, when, QUEUE_WAKES, number)


def dispatch(state: SimulationState, number: int, now: float) -> None:
    """The threads of a shard that look take what the queue gives them; the others sleep, or wait for a moment."""
    shard, items = state.shards[number], state.items
    counters = state.osds[shard.osd].counters
    woken, asleep = shard.woken, shard.asleep
    # who has slept longest is woken first
    shard.asleep = asleep - woken if asleep > woken else 0
    looking = woken + shard.looking
    looking = looking if looking < shard.idle_threads else shard.idle_threads
    first_looks, commit_woke, waits = shard.first_looks == 1, shard.commit_woke == 1, False
    shard.woken = shard.looking = shard.first_looks = shard.commit_woke = 0
    while looking > 0:
        lane = strict = HIGH if shard.head[HIGH] >= 0 else REQUEUED
        # Umbrella lets one item of the classes through once none went for so long (mClockScheduler::dequeue)
        overdue = now - shard.classes_served_at_s >= state.parameters.strict_bound_s
        if shard.head[lane] < 0 or overdue:
            if state.parameters.wpq == 1:
                lane = choose_wpq(state, shard)
                if lane < 0:
                    break
            else:
                kind, lane, when = choose(shard.queue, now)
                if kind == NONE or kind == FUTURE:
                    if shard.head[strict] >= 0:
                        lane = strict
                    elif kind == NONE:
                        break
                    else:
                        _wait_until(state, shard, number, when, now)
                        looking, waits = 0, True
                        break
                else:
                    following = items[shard.head[lane]].next_item
                    arrived, cost = 0.0, 0.0
                    if following >= 0:
                        arrived = items[following].queued_at_s
                        cost = items[following].cost_bytes
                    take(shard.queue, kind, lane, items[shard.head[lane]].cost_bytes, arrived, cost)
                    shard.classes_served_at_s = now
        i = shard.head[lane]
        shard.head[lane] = items[i].next_item
        if lane < HIGH:
            counters.waited_s[lane] += now - items[i].queued_at_s
        free = first_looks and shard.first_item < 0
        if free and (shard.durable_head >= 0 or uniform(state) * looking < 1.0):
            shard.first_item = i
            shard.taken_durable = _take_durable(state, shard, commit_woke)
        shard.idle_threads -= 1
        shard.queued -= 1
        looking -= 1
        state.progress.served += 1
        start(state, i, now)
    shard.asleep += looking
    if first_looks and shard.first_item < 0:
        # it comes back last, from its answers
        shard.ahead_of_first = shard.idle_threads - 1
        if shard.durable_head >= 0:
            answer(state, _take_durable(state, shard, commit_woke and waits), now)


def _take_durable(state: SimulationState, shard: Shard, only_first: bool) -> int:
    """Take the list of durable transactions, or only the one that came first; -1 where there is none."""
    first = shard.durable_head
    shard.durable_head = -1
    if first >= 0 and only_first:
        shard.durable_head = state.items[first].next_item
        state.items[first].next_item = -1
    return first


def _unlock(state: SimulationState, number: int, now: float) -> None:
    """A trim or a scrub's chunk gives its PG's lock back: threads that wait for it go on."""
    slot = state.slots[number]
    slot.held_by = -1
    while slot.waiting_head >= 0 and slot.held_by < 0:
        i = slot.waiting_head
        slot.waiting_head = state.items[i].next_item
        start(state, i, now)


def next_removal(state: SimulationState, osd: int, now: float) -> None:
    """The next thread that waits for it gets the lock of the table of snapshots, unless others read."""
    own = state.osds[osd]
    i = own.removing_head
    if i >= 0 and own.snaps_locked == 0 and own.snaps_head < 0:
        own.removing_head = state.items[i].next_item
        own.snaps_locked = 1
        # it has to wake first
        start(state, i, now + state.parameters.reply_cpu_s)


def thread_ends(state: SimulationState, i: int, now: float) -> None:
    """A thread is through with an item."""
    item = state.items[i]
    role, slot, owner = item.role, item.slot, item.owner
    osd, shard = state.slots[slot].osd, state.slots[slot].shard
    after = SUBMITS
    if role == WRITE:
        cost, size, ios = state.parameters.least_cost_bytes, item.size_bytes, item.ios
        for place in range(1, state.operations[owner].parts_pending):
            send(state, new_item(state, SUBWRITE, HIGH, slot + place, owner, cost, size, ios), now)
    elif role == REPLY or role == READ:
        after = FREE
        part_done(state, owner)
        release(state, i)
    elif role == SUBREAD:
        after = FREE
        item.role = REPLY
        item.slot = state.operations[owner].pg * state.parameters.width
        item.lane = HIGH
        send(state, i, now)
    elif role == EC_READ:
        after = FREE
        operation = state.operations[owner]
        operation.parts_pending = state.streams[operation.owner].k
        read_shards(state, owner, -1, HIGH, item.size_bytes, now)
        release(state, i)
    elif role != SUBWRITE:
        after = background_item_ends(state, i, osd, now)
    if state.slots[slot].held_by == i and after <= SUBMITS:
        _unlock(state, slot, now)
    if role == TRIM or role == TRIM_REPLICA:
        next_removal(state, osd, now)
    if after == GOES_ON:
        start(state, i, now)
    elif after == FREE or (after == SUBMITS and submit(state, i, osd, now)):
        thread_free(state, shard, i, now)
