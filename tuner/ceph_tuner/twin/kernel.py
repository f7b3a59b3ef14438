"""Ceph's dmClock pull queue, exactly: one OSD shard, a few classes, delayed tags, limits that wait.

Glossary
    n        classes; class ids are 0..n-1
    tags     (n, 4) float64: the head request's reservation, proportion and limit tag (s), and its arrival (s)
    prev     (n, 4) float64: the same of the request before it
    inv      (n, 3) float64: 1/reservation (s/byte), 1/weight, 1/limit (s/byte); 0 where there is none
    state    (n, 5) int64: the head's ready flag, idle flag, known flag (the class is in the map), waiting, last tick
    delta    (n,) float64: what was added to the proportion tags when the class woke up (s)
    heap     (3, n + 1) int64: the classes in heap order, H_RESERVATION, H_LIMIT, H_READY; [h, n] is the count
    place    (3, n) int64: where a class stands in each heap
    tick     (1,) int64: requests that ever entered

Source: dmclock_server.h and indirect_intrusive_heap.h of the dmClock library in Ceph 20.2.4. The heaps are binary, and
their order among equals decides ties, so they are kept just as there. Plain Python; numba compiles it where it is
installed, with the same results.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Tuple, TypeVar, cast

from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])
Array = NDArray[Any]

try:
    import numba

    def _compiled(function: F) -> F:
        return cast(F, numba.njit(cache=True)(function))

except ImportError:  # the same results, slower

    def _compiled(function: F) -> F:
        return function


RESERVATION, PROPORTION, LIMIT, ARRIVAL = 0, 1, 2, 3
READY, IDLE, KNOWN, COUNT, LAST_TICK = 0, 1, 2, 3, 4
H_RESERVATION, H_LIMIT, H_READY = 0, 1, 2
BY_RESERVATION, BY_WEIGHT, FUTURE, NONE = 0, 1, 2, 3


@_compiled
def precedes(h: int, a: int, b: int, tags: Array, state: Array, delta: Array) -> bool:
    """Whether class a must stand above class b in heap h."""
    if state[a, COUNT] == 0:
        return False
    if state[b, COUNT] == 0:
        return True
    if h == H_RESERVATION:
        return bool(tags[a, RESERVATION] < tags[b, RESERVATION])
    if state[a, READY] != state[b, READY]:
        if h == H_READY:
            return bool(state[a, READY] == 1)
        return bool(state[b, READY] == 1)
    if h == H_READY:
        return bool(tags[a, PROPORTION] + delta[a] < tags[b, PROPORTION] + delta[b])
    return bool(tags[a, LIMIT] < tags[b, LIMIT])


@_compiled
def swap(h: int, i: int, j: int, heap: Array, place: Array) -> None:
    """Exchange two places of heap h."""
    a, b = heap[h, i], heap[h, j]
    heap[h, i], heap[h, j] = b, a
    place[h, b], place[h, a] = i, j


@_compiled
def sift_up(h: int, i: int, tags: Array, state: Array, delta: Array, heap: Array, place: Array) -> None:
    """Move place i of heap h up while it precedes its parent."""
    while i > 0:
        parent = (i - 1) // 2
        if not precedes(h, heap[h, i], heap[h, parent], tags, state, delta):
            break
        swap(h, i, parent, heap, place)
        i = parent


@_compiled
def sift_down(h: int, i: int, tags: Array, state: Array, delta: Array, heap: Array, place: Array) -> None:
    """Move place i of heap h down while a child precedes it."""
    count = heap[h, heap.shape[1] - 1]
    while True:
        left = 2 * i + 1
        if left >= count:
            return
        right = left + 1
        if precedes(h, heap[h, left], heap[h, i], tags, state, delta):
            child = left
            if right < count and precedes(h, heap[h, right], heap[h, left], tags, state, delta):
                child = right
        elif right < count and precedes(h, heap[h, right], heap[h, i], tags, state, delta):
            child = right
        else:
            return
        swap(h, i, child, heap, place)
        i = child


@_compiled
def sift(h: int, i: int, tags: Array, state: Array, delta: Array, heap: Array, place: Array) -> None:
    """Move place i of heap h to where it belongs."""
    if i > 0 and precedes(h, heap[h, i], heap[h, (i - 1) // 2], tags, state, delta):
        sift_up(h, i, tags, state, delta, heap, place)
    else:
        sift_down(h, i, tags, state, delta, heap, place)


@_compiled
def new_tag(c: int, time: float, cost: float, tags: Array, prev: Array, inv: Array) -> None:
    """Tags of a request that comes to the front of its class (equation 3 to 5 of the mClock paper)."""
    if inv[c, RESERVATION] == 0.0:
        tags[c, RESERVATION] = math.inf
    else:
        tags[c, RESERVATION] = max(time, prev[c, RESERVATION] + inv[c, RESERVATION] * cost)
    if inv[c, PROPORTION] == 0.0:
        tags[c, PROPORTION] = math.inf
    else:
        tags[c, PROPORTION] = max(time, prev[c, PROPORTION] + inv[c, PROPORTION] * cost)
    if inv[c, LIMIT] == 0.0:
        tags[c, LIMIT] = -math.inf
    else:
        tags[c, LIMIT] = max(time, prev[c, LIMIT] + inv[c, LIMIT] * cost)
    tags[c, ARRIVAL] = time
    for field in range(3):
        if not math.isinf(tags[c, field]):
            prev[c, field] = tags[c, field]
    prev[c, ARRIVAL] = time


@_compiled
def add(
    c: int,
    time: float,
    cost: float,
    tags: Array,
    prev: Array,
    inv: Array,
    state: Array,
    delta: Array,
    heap: Array,
    place: Array,
    tick: Array,
) -> None:
    """A request of class c enters; the caller keeps it in the class's FIFO."""
    n = tags.shape[0]
    tick[0] += 1
    if state[c, KNOWN] == 0:
        state[c, KNOWN] = 1
        state[c, IDLE] = 1
        state[c, LAST_TICK] = tick[0]
        for h in range(3):
            i = heap[h, n]
            heap[h, i] = c
            place[h, c] = i
            heap[h, n] = i + 1
            sift_up(h, i, tags, state, delta, heap, place)
    if state[c, IDLE] == 1:
        lowest = math.inf
        for other in range(n):
            if state[other, KNOWN] == 1 and state[other, IDLE] == 0:
                p = (tags[other, PROPORTION] if state[other, COUNT] > 0 else prev[other, PROPORTION]) + delta[other]
                if p < lowest:
                    lowest = p
        if lowest < 1.7976931348623157e308 / 3.0:
            delta[c] = lowest - time
        state[c, IDLE] = 0
    state[c, COUNT] += 1
    if state[c, COUNT] == 1:
        state[c, READY] = 0
        state[c, LAST_TICK] = tick[0]
        new_tag(c, time, cost, tags, prev, inv)
    for h in range(3):
        sift(h, place[h, c], tags, state, delta, heap, place)
    if state[c, COUNT] == 1:
        for h in range(3):
            sift(h, place[h, c], tags, state, delta, heap, place)


@_compiled
def choose(now: float, tags: Array, state: Array, delta: Array, heap: Array, place: Array) -> Tuple[int, int, float]:
    """(kind, class, time): which class is served at `now`, or when to ask again."""
    n = tags.shape[0]
    if heap[H_RESERVATION, n] == 0:
        return NONE, -1, 0.0
    top = heap[H_RESERVATION, 0]
    if state[top, COUNT] > 0 and tags[top, RESERVATION] <= now:
        return BY_RESERVATION, top, now
    limited = heap[H_LIMIT, 0]
    while state[limited, COUNT] > 0 and state[limited, READY] == 0 and tags[limited, LIMIT] <= now:
        state[limited, READY] = 1
        sift_up(H_READY, place[H_READY, limited], tags, state, delta, heap, place)
        sift_down(H_LIMIT, place[H_LIMIT, limited], tags, state, delta, heap, place)
        limited = heap[H_LIMIT, 0]
    ready = heap[H_READY, 0]
    if state[ready, COUNT] > 0 and state[ready, READY] == 1 and tags[ready, PROPORTION] < math.inf:
        return BY_WEIGHT, ready, now
    when = math.inf
    if state[top, COUNT] > 0 and tags[top, RESERVATION] != 0.0:
        when = min(when, tags[top, RESERVATION])
    if state[limited, COUNT] > 0 and tags[limited, LIMIT] != 0.0:
        when = min(when, tags[limited, LIMIT])
    if when < math.inf:
        return FUTURE, -1, when
    return NONE, -1, 0.0


@_compiled
def take(
    kind: int,
    c: int,
    cost: float,
    next_arrival: float,
    next_cost: float,
    tags: Array,
    prev: Array,
    inv: Array,
    state: Array,
    delta: Array,
    heap: Array,
    place: Array,
    tick: Array,
) -> None:
    """Serve the head of class c (its cost given) and bring the next request, if there is one, to the front."""
    state[c, COUNT] -= 1
    if state[c, COUNT] > 0:
        state[c, READY] = 0
        state[c, LAST_TICK] = tick[0]
        # the next tag follows the tag that was served, not the previous tag as reduced since
        prev_r, prev_p, prev_l = tags[c, RESERVATION], tags[c, PROPORTION], tags[c, LIMIT]
        old_r, old_p, old_l = prev[c, RESERVATION], prev[c, PROPORTION], prev[c, LIMIT]
        prev[c, RESERVATION], prev[c, PROPORTION], prev[c, LIMIT] = prev_r, prev_p, prev_l
        new_tag(c, next_arrival, next_cost, tags, prev, inv)
        if math.isinf(tags[c, RESERVATION]):
            prev[c, RESERVATION] = old_r
        if math.isinf(tags[c, PROPORTION]):
            prev[c, PROPORTION] = old_p
        if math.isinf(tags[c, LIMIT]):
            prev[c, LIMIT] = old_l
    sift_down(H_RESERVATION, place[H_RESERVATION, c], tags, state, delta, heap, place)
    sift(H_LIMIT, place[H_LIMIT, c], tags, state, delta, heap, place)
    sift_down(H_READY, place[H_READY, c], tags, state, delta, heap, place)
    if kind == BY_WEIGHT:
        reduction = inv[c, RESERVATION] * cost
        if state[c, COUNT] > 0:
            tags[c, RESERVATION] -= reduction
        prev[c, RESERVATION] -= reduction
        sift_up(H_RESERVATION, place[H_RESERVATION, c], tags, state, delta, heap, place)


@_compiled
def clean(
    erase_tick: int, idle_tick: int, tags: Array, prev: Array, state: Array, delta: Array, heap: Array, place: Array
) -> None:
    """Forget the classes whose last request is as old as `erase_tick`, and call those as old as `idle_tick` idle.

    The ticks are those of the newest cleaning marks older than the erase age (600 s) and the idle age (300 s); 0 where
    there is none.
    """
    n = tags.shape[0]
    for c in range(n):
        if state[c, KNOWN] == 0:
            continue
        if erase_tick > 0 and state[c, LAST_TICK] <= erase_tick:
            for h in range(3):
                i = place[h, c]
                last = heap[h, n] - 1
                heap[h, n] = last
                if i != last:
                    moved = heap[h, last]
                    heap[h, i] = moved
                    place[h, moved] = i
                    sift(h, i, tags, state, delta, heap, place)
            state[c, KNOWN] = 0
            delta[c] = 0.0
            for field in range(4):
                prev[c, field] = 0.0
        elif idle_tick > 0 and state[c, LAST_TICK] <= idle_tick:
            state[c, IDLE] = 1
