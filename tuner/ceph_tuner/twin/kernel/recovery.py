"""Recovery and backfill: reservations of PGs, and objects that go from OSD to OSD part by part."""

from __future__ import annotations

from ceph_tuner.twin.kernel.degraded import (
    became_readable,
    begin_object,
    lacking_changes,
    object_done,
    wait_for,
    wait_for_one_in_recovery,
)
from ceph_tuner.twin.kernel.drive import requests
from ceph_tuner.twin.kernel.events import arrives, cost_of, enter, new_item, new_operation, release, schedule, send
from ceph_tuner.twin.kernel.osd_records import Osd
from ceph_tuner.twin.kernel.records import (
    DEGRADED,
    DUE,
    EC_RECOVERY,
    FINISHED,
    HIGH,
    MISPLACED,
    NOT_DUE,
    PULL,
    PULLED,
    PUSH,
    PUSHED,
    QUEUED,
    RECOVER,
    RECOVERY_FREE,
    RECOVERY_WAKES,
    RESERVING,
    RUNNING,
    SUBREAD,
    WAITING,
    Task,
)
from ceph_tuner.twin.kernel.state import SimulationState


def start_recoveries(state: SimulationState, kind: int, osd: int) -> None:
    """PGs that wait at their primary take its places (osd_max_backfills), and ask for those of their replicas."""
    own = state.osds[osd]
    for place in range(own.task_begin[kind], own.task_end[kind]):
        number = state.task_order[place]
        task = state.tasks[number]
        if task.state != WAITING:
            continue
        if own.local_backfills >= own.limits.max_backfills:
            return
        own.local_backfills += 1
        task.state = RESERVING
        task.asked_osd = -1
        _reserve(state, number)


def _reserve(state: SimulationState, number: int) -> None:
    """Take the places of a PG's replicas, one after the other by their OSDs' numbers (WaitRemoteRecoveryReserved).

    Where none is free the PG stands in line, and keeps what it has.
    """
    task = state.tasks[number]
    while True:
        task.asked_osd = _next_replica(state, task)
        if task.asked_osd < 0:
            task.state = RUNNING
            ask_for_turn(state, number)
            return
        replica = state.osds[task.asked_osd]
        if replica.remote_backfills >= replica.limits.max_backfills:
            state.progress.asked += 1
            task.asked = state.progress.asked
            return
        replica.remote_backfills += 1


def _next_replica(state: SimulationState, task: Task) -> int:
    """The OSD that a PG asks after the last one that it asked; -1: it has asked all."""
    slot, least = task.pg * state.parameters.width, -1
    for place in range(1, task.copies):
        osd = state.slots[slot + place].osd
        if _reserves(task, place) and osd > task.asked_osd and (least < 0 or osd < least):
            least = osd
    return least


def _reserves(task: Task, place: int) -> bool:
    """Whether the replica at that place of the acting set takes part."""
    return task.kind == DEGRADED or place == task.target


def _give_back(state: SimulationState, task: Task) -> None:
    """The places of a PG that is done."""
    slot = task.pg * state.parameters.width
    state.osds[state.slots[slot].osd].local_backfills -= 1
    for place in range(1, task.copies):
        if _reserves(task, place):
            state.osds[state.slots[slot + place].osd].remote_backfills -= 1


def _first_in_line(state: SimulationState) -> int:
    """Of the PGs that ask an OSD which has a place now, the one that goes first; -1: none.

    Recovery goes before backfill, then who asked first (AsyncReserver).
    """
    for kind in range(MISPLACED + 1):
        first = -1
        for osd in range(state.parameters.osds):
            own = state.osds[osd]
            for place in range(own.task_begin[kind], own.task_end[kind]):
                number = state.task_order[place]
                task = state.tasks[number]
                if task.state != RESERVING or (first >= 0 and task.asked > state.tasks[first].asked):
                    continue
                replica = state.osds[task.asked_osd]
                if replica.remote_backfills < replica.limits.max_backfills:
                    first = number
        if first >= 0:
            return first
    return -1


def ask_for_turn(state: SimulationState, number: int) -> None:
    """A PG is to have a turn, unless it has asked for one (PG::queue_recovery)."""
    task = state.tasks[number]
    if task.queued == NOT_DUE:
        task.queued = DUE
        pump(state, number)


def pump(state: SimulationState, number: int) -> None:
    """Queue a PG's turn that is due, which begins one object; osd_recovery_max_active of an OSD, turns and objects."""
    task = state.tasks[number]
    slot = task.pg * state.parameters.width
    own = state.osds[state.slots[slot].osd]
    if task.queued == DUE and own.recovering < own.limits.recovery_active:
        own.recovering += 1
        _queue_turn(state, number)


def _queue_turn(state: SimulationState, number: int) -> None:
    """A PG's turn enters the queue, in the class that the PG has now, at the price of an object."""
    task = state.tasks[number]
    task.queued = QUEUED
    lane, size = task.lane, task.object_bytes / task.parts
    if task.left == 0:
        lane, size = task.closing_lane, 0.0
    i = new_item(state, RECOVER, lane, task.pg * state.parameters.width, number, task.cost_bytes, size, 0.0)
    state.items[i].objects_left = 0
    enter(state, i)


def reads_object(task: Task) -> bool:
    """Whether a PG's turn reads an object; of an erasure code, and of what is pulled, others are asked for it."""
    return task.k == 0 and task.target > 0 and task.not_begun > 0 and task.state == RUNNING


def reads_next_part(state: SimulationState, op: int) -> bool:
    """Whether the answer to a part of an object makes the primary read the next one."""
    return state.operations[op].parts_pending > 0 and state.tasks[state.operations[op].owner].k == 0


def sleeps_first(state: SimulationState, i: int) -> bool:
    """Whether the beginning of an object's recovery has to sleep before (OSD::do_recovery, osd_recovery_sleep).

    Only the older queue has such sleeps. Each wakes a while after the one before it, and lets one object begin: that of
    whoever comes next.
    """
    task = state.tasks[state.items[i].owner]
    own = state.osds[state.slots[state.items[i].slot].osd]
    if own.limits.recovery_sleep_s[task.kind] == 0.0:
        return False
    if own.recovery_awake == 1:
        own.recovery_awake = 0
        return False
    return True


def sleep(state: SimulationState, i: int, now: float) -> None:
    """The beginning of an object's recovery is queued anew after its sleep; the thread goes on with other items."""
    item = state.items[i]
    own = state.osds[state.slots[item.slot].osd]
    item.objects_left = 0
    begin = own.recovery_slept_until_s
    begin = begin if begin > now else now
    until = begin + own.limits.recovery_sleep_s[state.tasks[item.owner].kind]
    own.recovery_slept_until_s = until
    schedule(state, until, RECOVERY_WAKES, i)


def recovery_wakes(state: SimulationState, i: int) -> None:
    """A sleep before an object's recovery is over."""
    state.osds[state.slots[state.items[i].slot].osd].recovery_awake = 1
    enter(state, i)


def turn_ends(state: SimulationState, i: int, number: int, now: float) -> None:
    """A PG has had its turn: its next object begins, or its recovery ends.

    Where the PG has no reservations yet, or all its objects have begun because clients wait for them, it was for
    nothing (PrimaryLogPG::start_recovery_ops).
    """
    task = state.tasks[number]
    task.queued = NOT_DUE
    if task.state == RUNNING and task.not_begun > 0:
        op = begin_object(state, number, task.lane, now)
        state.items[i].owner = op
        next_part(state, i, op, now)
        return
    release(state, i)
    if task.state == RUNNING and task.left == 0:
        _finish(state, number, now)
        return
    own = state.osds[state.slots[task.pg * state.parameters.width].osd]
    own.recovering -= 1
    _pump_others(state, own)


def blocked(state: SimulationState, i: int, now: float) -> None:
    """A client's operation waits for its object, whose recovery begins at once unless it has (maybe_kick_recovery).

    No reservation and no place is asked for, and all its messages are in the strict queue (CEPH_MSG_PRIO_HIGH).
    """
    item = state.items[i]
    slot, op = item.slot, state.operations[item.owner].awaits
    if op < 0:
        wait_for_one_in_recovery(state, i)
        return
    wait_for(state, i, op)
    begun = new_item(state, PUSH, HIGH, slot, op, 0.0, item.size_bytes, 0.0)
    next_part(state, begun, op, now)


def next_part(state: SimulationState, i: int, op: int, now: float) -> None:
    """The next part of an object, or its first one, goes on its way."""
    task = state.tasks[state.operations[op].owner]
    if task.k > 0:
        lane = task.read_lane if state.operations[op].lane < HIGH else HIGH
        reads = new_operation(state, op, task.pg, EC_RECOVERY, task.k, now)
        read_shards(state, reads, task.target, lane, task.object_bytes / task.parts, now)
        release(state, i)
    elif task.target == 0:
        pull(state, i, op, now)
    else:
        push(state, i, op, now)


def pull(state: SimulationState, i: int, op: int, now: float) -> None:
    """The primary itself lacks the copy: it asks the first replica for the next part of the object."""
    item, task = state.items[i], state.tasks[state.operations[op].owner]
    item.role = PULL
    item.slot = task.pg * state.parameters.width + 1
    item.size_bytes = task.object_bytes / task.parts
    item.cost_bytes = task.pull_cost_bytes
    if task.pull_cost_bytes == 0.0:
        item.lane = HIGH
    send(state, i, now)


def push(state: SimulationState, i: int, op: int, now: float) -> None:
    """A part of the object is read: it goes to the OSD that lacks it."""
    item, task = state.items[i], state.tasks[state.operations[op].owner]
    item.role = PUSH
    item.slot = task.pg * state.parameters.width + task.target
    cost = task.push_cost_bytes
    item.cost_bytes = cost if cost > 0.0 else state.parameters.least_cost_bytes
    if cost == 0.0:
        item.lane = HIGH
    send(state, i, now)


def read_shards(state: SimulationState, op: int, lacks: int, lane: int, size: float, now: float) -> None:
    """Ask as many shards of an erasure-coded object as are needed for their parts, not the place that lacks its own.

    The primary asks itself by message as well, so that all read at the same time (ReadPipeline::do_read_op).
    """
    operation = state.operations[op]
    slot, places = operation.pg * state.parameters.width, operation.parts_pending
    if 0 <= lacks < places:
        places += 1
    # in the older queue they cost nothing
    cost = state.parameters.least_cost_bytes if state.parameters.wpq == 1 else cost_of(state, size)
    for place in range(places):
        if place != lacks:
            i = new_item(state, SUBREAD, lane, slot + place, op, cost, size, 0.0)
            if place > 0:
                send(state, i, now)
            else:
                arrives(state, i, now)


def shards_read(state: SimulationState, op: int, now: float) -> None:
    """All shards of an erasure-coded object are there: what was lost goes to the OSD that lacks it."""
    operation = state.operations[op]
    task = state.tasks[operation.owner]
    size = task.object_bytes / task.parts
    slot = task.pg * state.parameters.width
    push(state, new_item(state, PUSH, operation.lane, slot, op, cost_of(state, size), size, 0.0), op, now)


def push_arrived(state: SimulationState, i: int) -> None:
    """A part is about to be written. With the last one the primary has the object, and can read it."""
    item = state.items[i]
    item.ios = requests(state, item.size_bytes)
    operation = state.operations[item.owner]
    if operation.parts_pending == 1 and state.tasks[operation.owner].target == 0:
        became_readable(state, item.owner)


def part_durable(state: SimulationState, i: int, op: int, now: float) -> None:
    """A part is written: its OSD says so, or asks for the next one."""
    item, operation = state.items[i], state.operations[op]
    task = state.tasks[operation.owner]
    item.lane = operation.lane
    operation.parts_pending -= 1
    # of an erasure code the primary sends itself what it lacks, and answers itself (ECBackend)
    if task.target == 0 and task.k == 0:
        if operation.parts_pending > 0:
            pull(state, i, op, now)
            return
        # what follows a pull is queued at the price of a push, also where no other copy is missing or a client waits
        item.role = PULLED
        item.lane = task.closing_lane if task.left == 1 else task.lane
        item.cost_bytes = task.cost_bytes
        enter(state, i)
        return
    item.role = PUSHED
    item.slot = task.pg * state.parameters.width
    # in the older queue an answer costs as much as a pull (PushReplyOp::cost)
    item.cost_bytes = task.pull_cost_bytes if state.parameters.wpq == 1 else state.parameters.least_cost_bytes
    send(state, i, now)


def recovered(state: SimulationState, op: int, now: float) -> None:
    """An object has its copy; the PG asks for a turn, in which the next one begins or its recovery ends.

    That it ends only turns out when the PG has its turn once more: PG::finish_recovery_op queues it after every object.
    No object is degraded then, so that turn can be of another class. Until then the PG keeps what is reserved for it.
    """
    number = state.operations[op].owner
    task = state.tasks[number]
    own = state.osds[state.slots[task.pg * state.parameters.width].osd]
    task.left -= 1
    own.counters.recovered_objects += 1.0
    # of an erasure-coded object Ceph counts all, not the part that was lost
    own.counters.recovered_bytes += task.object_bytes * (task.k if task.k > 0 else 1)
    if task.kind == MISPLACED:
        own.counters.backfilled_objects += 1.0
    if task.left == 0 and task.queued == NOT_DUE:
        # in the object's place
        _queue_turn(state, number)
    else:
        own.recovering -= 1
        ask_for_turn(state, number)
        _pump_others(state, own)
    object_done(state, op)


def _finish(state: SimulationState, number: int, now: float) -> None:
    """A PG's recovery ends: its reservations and its place go to others."""
    task = state.tasks[number]
    own = state.osds[state.slots[task.pg * state.parameters.width].osd]
    own.recovering -= 1
    task.state = FINISHED
    lacking_changes(state, number)
    _give_back(state, task)
    schedule(state, now, RECOVERY_FREE, 0)
    _pump_others(state, own)


def _pump_others(state: SimulationState, own: Osd) -> None:
    """What another PG of this OSD could not begin for want of a place."""
    for kind in range(MISPLACED + 1):
        for place in range(own.task_begin[kind], own.task_end[kind]):
            other = state.task_order[place]
            if state.tasks[other].queued == DUE:
                pump(state, other)


def recovery_places_free(state: SimulationState) -> None:
    """What a PG gave back goes to those that stand in line for it, and then to those that wait at their primaries."""
    number = _first_in_line(state)
    while number >= 0:
        state.osds[state.tasks[number].asked_osd].remote_backfills += 1
        _reserve(state, number)
        number = _first_in_line(state)
    for kind in range(MISPLACED + 1):
        for osd in range(state.parameters.osds):
            start_recoveries(state, kind, osd)
