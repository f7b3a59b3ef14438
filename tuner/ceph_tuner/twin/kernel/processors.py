"""Processors: the OSDs of a host share them, and work takes the one that is free first, in the order of its arrival.

Who computes is not interrupted: what a thread does at a time is shorter than a time slice of Linux. So a host is a
queue with as many servers as it has processors.
"""

from __future__ import annotations

from ceph_tuner.twin.kernel.state import SimulationState


def waits_for_processor(state: SimulationState, osd: int, now: float, work_s: float) -> float:
    """How long an OSD's work that comes now waits for one of its host's processors, which it then has.

    Only for clusters whose processors are described (`Parameters.processors` above 0). When those of a host are free is
    a heap: the first place has the least.
    """
    if work_s <= 0.0:
        return 0.0
    count = state.parameters.processors
    own, free = state.osds[osd], state.processors
    first, taken_s = own.first_processor, work_s * state.parameters.processor_slowness
    own.counters.processor_s += work_s
    at = free[first]
    at = at if at > now else now
    end, place = at + taken_s, 0
    while True:
        child = 2 * place + 1
        if child >= count:
            break
        if child + 1 < count and free[first + child + 1] < free[first + child]:
            child += 1
        if free[first + child] >= end:
            break
        free[first + place] = free[first + child]
        place = child
    free[first + place] = end
    return at - now


def message_waits(state: SimulationState, i: int, now: float) -> float:
    """How long a message waits at both ends. Who sends it is taken to be as busy as who receives it."""
    osd = state.slots[state.items[i].slot].osd
    return 2.0 * waits_for_processor(state, osd, now, 2.0 * state.parameters.message_cpu_s)


def thread_waits(
    state: SimulationState, osd: int, now: float, begin: float, thread_s: float, moved_bytes: float
) -> float:
    """How much later than `begin` a thread begins: it waits for a processor while it waits for its PG's lock."""
    work_s = thread_s + moved_bytes * state.parameters.moved_cpu_s_per_byte
    ready = now + waits_for_processor(state, osd, now, work_s)
    return ready - begin if ready > begin else 0.0
