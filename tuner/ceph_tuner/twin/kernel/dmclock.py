"""Ceph's dmClock pull queue, exactly: the three classes of OSD shards, delayed tags, limits that wait.

Source: dmclock_server.h and indirect_intrusive_heap.h of the dmClock library in Ceph 20.2.4. Its heaps are binary, and
their order among equals decides ties, so with three classes a heap is a root and two children, moved just as there.
"""

from __future__ import annotations

import math
from typing import Annotated, List, Sequence, Tuple

from ceph_tuner.twin.kernel.layout import Record

CLASSES = 3
BY_RESERVATION, BY_WEIGHT, FUTURE, NONE = range(4)
"""What `choose` answers: the phase in which a class is served, ask again later, or nothing to serve."""
RESERVATION, LIMIT, READY = range(3)
"""Heaps: by reservation tag, by limit tag, and those within their limit by weight tag."""
_LARGE = 1.7976931348623157e308 / 3.0


class QueueClass(Record):
    """A class in a queue. Its tags are those of the request at its head, infinite where it has no such parameter."""

    waiting: int
    """Requests; the caller keeps those behind the head (arrival and cost)."""
    ready: int
    """1 where the head is within its limit."""
    idle: int
    """1 where it was quiet for 5 minutes, or never had a request."""
    in_heaps: int
    last_tick: int
    """The queue's tick at its last request."""
    reservation_tag_s: float
    weight_tag_s: float
    limit_tag_s: float
    previous_reservation_tag_s: float
    previous_weight_tag_s: float
    previous_limit_tag_s: float
    """Tags of the request before, finite ones."""
    weight_shift_s: float
    """Added to weight tags since the class woke up (prop_delta)."""
    reservation_s_per_byte: float
    weight_inverse: float
    limit_s_per_byte: float
    """Inverses of its parameters; 0 where there is none."""


class Queue(Record):
    """A shard's queue."""

    classes: Annotated[List[QueueClass], CLASSES]
    heaps: Annotated[List[List[int]], (3, CLASSES)]
    """Classes in heap order, by RESERVATION, LIMIT and READY."""
    size: int
    """Classes in the heaps."""
    tick: int
    """Requests that ever entered."""


def _precedes(heap: int, one: QueueClass, other: QueueClass) -> bool:
    """Whether a class must stand above another in that heap."""
    if one.waiting == 0:
        return False
    if other.waiting == 0:
        return True
    if heap == RESERVATION:
        return one.reservation_tag_s < other.reservation_tag_s
    if one.ready != other.ready:
        return one.ready == 1 if heap == READY else other.ready == 1
    if heap == LIMIT:
        return one.limit_tag_s < other.limit_tag_s
    return one.weight_tag_s + one.weight_shift_s < other.weight_tag_s + other.weight_shift_s


def _up(heap: int, queue: Queue, c: int) -> None:
    order, classes = queue.heaps[heap], queue.classes
    root = order[0]
    if root != c and _precedes(heap, classes[c], classes[root]):
        place = 1 if order[1] == c else 2
        order[0], order[place] = c, root


def _down(heap: int, queue: Queue, c: int) -> None:
    order, classes, size = queue.heaps[heap], queue.classes, queue.size
    if order[0] == c and size > 1:
        left, place = order[1], 0
        if _precedes(heap, classes[left], classes[c]):
            place = 2 if size > 2 and _precedes(heap, classes[order[2]], classes[left]) else 1
        elif size > 2 and _precedes(heap, classes[order[2]], classes[c]):
            place = 2
        order[0], order[place] = order[place], c


def _adjust(heap: int, queue: Queue, c: int) -> None:
    """Move a class to its place in a heap: a root can only go down, and with three places the others only up."""
    if queue.heaps[heap][0] == c:
        _down(heap, queue, c)
    else:
        _up(heap, queue, c)


def _sift(queue: Queue, c: int) -> None:
    """Move a class to its place in all three heaps after its head has changed."""
    _adjust(RESERVATION, queue, c)
    _adjust(LIMIT, queue, c)
    _adjust(READY, queue, c)


def _tag(own: QueueClass, reservation_s: float, weight_s: float, limit_s: float, time: float, cost: float) -> None:
    """Tags of a request that comes to the front of its class, after those given.

    Infinite ones are not remembered: a class that had no reservation when its head was tagged has none until its queue
    has been empty, and goes on from the last finite tag then (dmclock_server.h, update_next_tag and update_req_tag).
    """
    inverse = own.reservation_s_per_byte
    tag = reservation_s + inverse * cost
    tag = math.inf if inverse == 0.0 else tag if tag > time else time
    own.reservation_tag_s = tag
    if tag < math.inf:
        own.previous_reservation_tag_s = tag
    inverse = own.weight_inverse
    tag = weight_s + inverse * cost
    tag = math.inf if inverse == 0.0 else tag if tag > time else time
    own.weight_tag_s = tag
    if tag < math.inf:
        own.previous_weight_tag_s = tag
    inverse = own.limit_s_per_byte
    tag = limit_s + inverse * cost
    tag = -math.inf if inverse == 0.0 else tag if tag > time else time
    own.limit_tag_s = tag
    if tag > -math.inf:
        own.previous_limit_tag_s = tag


def _wake(queue: Queue, c: int, time: float) -> None:
    """A class joins the heaps, or was quiet for long: its proportion starts level with the lowest of the others."""
    own = queue.classes[c]
    if own.in_heaps == 0:
        own.in_heaps = 1
        own.last_tick = queue.tick
        # an empty class precedes nobody: it stays where it enters, at the end
        for heap in range(3):
            queue.heaps[heap][queue.size] = c
        queue.size += 1
    lowest = math.inf
    for number in range(CLASSES):
        other = queue.classes[number]
        if other.in_heaps == 1 and other.idle == 0:
            tag = other.weight_tag_s if other.waiting > 0 else other.previous_weight_tag_s
            lowest = min(lowest, tag + other.weight_shift_s)
    if lowest < _LARGE:
        own.weight_shift_s = lowest - time
    own.idle = 0


def add(queue: Queue, c: int, time: float, cost: float) -> None:
    """A request of class c enters; the caller keeps the requests behind the head (arrival and cost)."""
    own = queue.classes[c]
    queue.tick += 1
    woke = own.idle == 1
    if woke:
        _wake(queue, c, time)
    own.waiting += 1
    if own.waiting == 1:
        own.ready = 0
        own.last_tick = queue.tick
        _tag(own, own.previous_reservation_tag_s, own.previous_weight_tag_s, own.previous_limit_tag_s, time, cost)
        _sift(queue, c)
    elif woke:
        _sift(queue, c)


def choose(queue: Queue, now: float) -> Tuple[int, int, float]:
    """(kind, class, time): which class is served at `now`, or when to ask again."""
    kind, chosen, when = NONE, -1, math.inf
    if queue.size > 0:
        classes = queue.classes
        first = queue.heaps[RESERVATION][0]
        reserved = classes[first]
        if reserved.waiting > 0 and reserved.reservation_tag_s <= now:
            kind, chosen = BY_RESERVATION, first
        else:
            c = queue.heaps[LIMIT][0]
            while classes[c].waiting > 0 and classes[c].ready == 0 and classes[c].limit_tag_s <= now:
                classes[c].ready = 1
                _up(READY, queue, c)
                _down(LIMIT, queue, c)
                c = queue.heaps[LIMIT][0]
            limited = classes[c]
            first = queue.heaps[READY][0]
            ready = classes[first]
            if ready.waiting > 0 and ready.ready == 1 and ready.weight_tag_s < math.inf:
                kind, chosen = BY_WEIGHT, first
            else:
                # a tag of exactly 0 counts as none, as in the library
                if reserved.waiting > 0 and reserved.reservation_tag_s != 0.0:
                    when = reserved.reservation_tag_s
                if limited.waiting > 0 and limited.limit_tag_s != 0.0:
                    when = min(when, limited.limit_tag_s)
                if when < math.inf:
                    kind = FUTURE
    return kind, chosen, when


def take(queue: Queue, kind: int, c: int, cost: float, next_arrival: float, next_cost: float) -> None:
    """Serve the head of class c, whose cost is given, and bring the next request, if there is one, to the front."""
    own = queue.classes[c]
    own.waiting -= 1
    if own.waiting > 0:
        own.ready = 0
        own.last_tick = queue.tick
        # after the tags of the one served, which differ from the remembered ones after a change of weights
        _tag(own, own.reservation_tag_s, own.weight_tag_s, own.limit_tag_s, next_arrival, next_cost)
    _down(RESERVATION, queue, c)
    _adjust(LIMIT, queue, c)
    _down(READY, queue, c)
    if kind == BY_WEIGHT:
        reduction = own.reservation_s_per_byte * cost
        if own.waiting > 0:
            own.reservation_tag_s -= reduction
        own.previous_reservation_tag_s -= reduction
        _up(RESERVATION, queue, c)


def clean(queue: Queue, erase_tick: int, idle_tick: int) -> None:
    """Forget the classes whose last request is as old as `erase_tick`, and call those as old as `idle_tick` idle.

    The ticks are those of the newest cleaning marks older than the erase age (600 s) and the idle age (300 s); 0 where
    there is none.
    """
    for c in range(CLASSES):
        own = queue.classes[c]
        if own.in_heaps == 0:
            continue
        if erase_tick > 0 and own.last_tick <= erase_tick:
            last = queue.size - 1
            queue.size = last
            for heap in range(3):
                order, place = queue.heaps[heap], 0
                while order[place] != c:
                    place += 1
                order[place] = order[last]
            # what took the place of the one that left may have to move
            if last > 0:
                _sift(queue, queue.heaps[RESERVATION][0])
                _sift(queue, queue.heaps[LIMIT][0])
                _sift(queue, queue.heaps[READY][0])
            own.in_heaps = 0
            own.idle = 1
            own.weight_shift_s = 0.0
            own.previous_reservation_tag_s = 0.0
            own.previous_weight_tag_s = 0.0
            own.previous_limit_tag_s = 0.0
        elif idle_tick > 0 and own.last_tick <= idle_tick:
            own.idle = 1


def set_class(own: QueueClass, reservation: float, weight: float, limit: float) -> None:
    """Change a class's parameters (bytes/s, none, bytes/s; 0 for none); tags already computed stay."""
    own.reservation_s_per_byte = 0.0 if reservation == 0.0 else 1.0 / reservation
    own.weight_inverse = 0.0 if weight == 0.0 else 1.0 / weight
    own.limit_s_per_byte = 0.0 if limit == 0.0 else 1.0 / limit


def run_queues(
    queues: Sequence[Queue], count: int, requests: int, costs: Sequence[float], gaps: Sequence[float], length: int
) -> float:
    """So many queues alone, for measuring: so many requests enter each in turn and are served; the time of the last.

    costs, gaps: bytes, and seconds between arrivals, used in turn; there are `length` of both, a power of two. The
    classes take turns, and each keeps up to 8 requests waiting.
    """
    now, served = 1.0, 0
    mask = length - 1
    for n in range(requests):
        queue = queues[n % count]
        now += gaps[n & mask]
        add(queue, n % CLASSES, now, costs[n & mask])
        if queue.classes[0].waiting + queue.classes[1].waiting + queue.classes[2].waiting > 24:
            kind, c, when = choose(queue, now)
            if kind == FUTURE:
                now = when
                kind, c, when = choose(queue, now)
            if kind < FUTURE:
                served += 1
                take(queue, kind, c, costs[n & mask], now, costs[(n + 1) & mask])
    return now + served
