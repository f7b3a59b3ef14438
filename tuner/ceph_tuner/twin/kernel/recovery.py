"""Recovery and backfill: reservations of PGs, and objects that go from OSD to OSD part by part."""

from __future__ import annotations

from ceph_tuner.twin.kernel.drive import requests
from ceph_tuner.twin.kernel.events import cost_of, enter, new_item, new_operation, release, schedule, send
from ceph_tuner.twin.kernel.osd_records import Osd
from ceph_tuner.twin.kernel.records import (
    DEGRADED,
    EC_RECOVERY,
    FINISHED,
    HIGH,
    MISPLACED,
    PULL,
    PULLED,
    PUSH,
    PUSHED,
    RECOVER,
    RECOVERY_FREE,
    RECOVERY_WAKES,
    RUNNING,
    SUBREAD,
    WAITING,
    Task,
)
from ceph_tuner.twin.kernel.state import SimulationState


def start_recoveries(state: SimulationState, kind: int, osd: int) -> None:
    """Start the PGs of that kind that wait at their primary, as far as its reservations and its replicas' go."""
    own = state.osds[osd]
    for place in range(own.task_begin[kind], own.task_end[kind]):
        number = state.task_order[place]
        task = state.tasks[number]
        if task.state != WAITING:
            continue
        if own.local_backfills >= own.limits.max_backfills:
            return
        slot = task.pg * state.parameters.width
        free = True
        for other in range(1, task.copies):
            if _reserves(task, other):
                replica = state.osds[state.slots[slot + other].osd]
                free = free and replica.remote_backfills < replica.limits.max_backfills
        if free:
            own.local_backfills += 1
            _reserve(state, task, 1)
            task.state = RUNNING
            pump(state, number)


def _reserves(task: Task, place: int) -> bool:
    """Whether the replica at that place of the acting set takes part."""
    return task.kind == DEGRADED or place == task.target


def _reserve(state: SimulationState, task: Task, change: int) -> None:
    """Take the replicas' reservations (1), or give them back (-1)."""
    slot = task.pg * state.parameters.width
    for place in range(1, task.copies):
        if _reserves(task, place):
            state.osds[state.slots[slot + place].osd].remote_backfills += change


def pump(state: SimulationState, number: int) -> None:
    """Begin with a PG's next object: one at a time (osd_recovery_max_single_start), osd_recovery_max_active per OSD."""
    task = state.tasks[number]
    slot = task.pg * state.parameters.width
    own = state.osds[state.slots[slot].osd]
    if task.not_begun > 0 and task.object_under_way == 0 and own.recovering < own.limits.recovery_active:
        task.object_under_way = 1
        own.recovering += 1
        task.pending = task.parts
        size = task.object_bytes / task.parts
        i = new_item(state, RECOVER, task.lane, slot, number, task.cost_bytes, size, 0.0)
        state.items[i].objects_left = 0
        enter(state, i)


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


def recovery_item_ends(state: SimulationState, i: int, now: float) -> None:
    """The item that begins an object, or the answer to a part that others follow, is through: the next part."""
    item = state.items[i]
    number = item.owner
    task = state.tasks[number]
    if item.role == RECOVER:
        if task.left == 0:
            release(state, i)
            _finish(state, number, now)
            return
        task.not_begun -= 1
    if task.k > 0:
        op = new_operation(state, number, task.pg, EC_RECOVERY, task.k, now)
        read_shards(state, op, task.target, task.read_lane, item.size_bytes, now)
        release(state, i)
    elif task.target == 0:
        pull(state, i, number, now)
    else:
        push(state, i, number, now)


def pull(state: SimulationState, i: int, number: int, now: float) -> None:
    """The primary itself lacks the copy: it asks the first replica for the next part of the object."""
    item, task = state.items[i], state.tasks[number]
    item.role = PULL
    item.slot = task.pg * state.parameters.width + 1
    item.cost_bytes = task.pull_cost_bytes
    if task.pull_cost_bytes == 0.0:
        item.lane = HIGH
    send(state, i, now + state.parameters.network_s)


def push(state: SimulationState, i: int, number: int, now: float) -> None:
    """A part of the object is read: it goes to the OSD that lacks it."""
    item, task = state.items[i], state.tasks[number]
    item.role = PUSH
    item.slot = task.pg * state.parameters.width + task.target
    cost = task.push_cost_bytes
    item.cost_bytes = cost if cost > 0.0 else state.parameters.least_cost_bytes
    if cost == 0.0:
        item.lane = HIGH
    send(state, i, now + state.parameters.network_s)


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
            send(state, i, now + (state.parameters.network_s if place > 0 else 0.0))


def shards_read(state: SimulationState, number: int, now: float) -> None:
    """All shards of an erasure-coded object are there: what was lost goes to the OSD that lacks it."""
    task = state.tasks[number]
    size = task.object_bytes / task.parts
    slot = task.pg * state.parameters.width
    push(state, new_item(state, PUSH, task.lane, slot, number, cost_of(state, size), size, 0.0), number, now)


def push_arrived(state: SimulationState, i: int) -> None:
    """A part is about to be written."""
    item = state.items[i]
    item.ios = requests(state, item.size_bytes)


def part_durable(state: SimulationState, i: int, number: int, now: float) -> None:
    """A part is written: its OSD says so, or asks for the next one."""
    item, task = state.items[i], state.tasks[number]
    item.lane = task.lane
    task.pending -= 1
    # of an erasure code the primary sends itself what it lacks, and answers itself (ECBackend)
    if task.target == 0 and task.k == 0:
        if task.pending > 0:
            pull(state, i, number, now)
            return
        # what follows a pull is queued at the price of a push, also where no other copy is missing
        item.role = PULLED
        if task.left == 1:
            item.lane = task.closing_lane
        item.cost_bytes = task.cost_bytes
        enter(state, i)
        return
    item.role = PUSHED
    item.slot = task.pg * state.parameters.width
    # in the older queue an answer costs as much as a pull (PushReplyOp::cost)
    item.cost_bytes = task.pull_cost_bytes if state.parameters.wpq == 1 else state.parameters.least_cost_bytes
    send(state, i, now + state.parameters.network_s)


def recovered(state: SimulationState, number: int, now: float) -> None:
    """An object has its copy; the next one can begin, or the PG's recovery ends.

    That it ends only turns out when the PG has its turn once more: PG::finish_recovery_op queues it after every object.
    No object is degraded then, so that turn can be of another class. Until then the PG keeps what is reserved for it.
    """
    task = state.tasks[number]
    slot = task.pg * state.parameters.width
    own = state.osds[state.slots[slot].osd]
    task.left -= 1
    task.object_under_way = 0
    own.counters.recovered_objects += 1.0
    # of an erasure-coded object Ceph counts all, not the part that was lost
    own.counters.recovered_bytes += task.object_bytes * (task.k if task.k > 0 else 1)
    if task.kind == MISPLACED:
        own.counters.backfilled_objects += 1.0
    if task.left == 0:
        i = new_item(state, RECOVER, task.closing_lane, slot, number, task.cost_bytes, 0.0, 0.0)
        state.items[i].objects_left = 0
        enter(state, i)
    else:
        own.recovering -= 1
        pump(state, number)
        _pump_others(state, own)


def _finish(state: SimulationState, number: int, now: float) -> None:
    """A PG's recovery ends: its reservations and its place go to others."""
    task = state.tasks[number]
    osd = state.slots[task.pg * state.parameters.width].osd
    own = state.osds[osd]
    own.recovering -= 1
    task.state = FINISHED
    own.local_backfills -= 1
    _reserve(state, task, -1)
    schedule(state, now, RECOVERY_FREE, osd)
    _pump_others(state, own)


def _pump_others(state: SimulationState, own: Osd) -> None:
    """What another PG of this OSD could not begin for want of a place."""
    for kind in range(MISPLACED + 1):
        for place in range(own.task_begin[kind], own.task_end[kind]):
            other = state.task_order[place]
            if state.tasks[other].state == RUNNING:
                pump(state, other)


def recovery_place_free(state: SimulationState, osd: int) -> None:
    """Recovery and backfill share their places (osd_max_backfills); the OSD that gave one back gets one last.

    Ceph's lines for them are in the order of arrival, and each OSD puts its next PG into them when one is done.
    """
    osds = state.parameters.osds
    for kind in range(MISPLACED + 1):
        for step in range(1, osds + 1):
            start_recoveries(state, kind, (osd + step) % osds)
