"""Ceph's dmClock pull queue, exactly: the three classes of OSD shards, delayed tags, limits that wait.

Any number of queues share two flat arrays, so that a whole cluster is one argument; a queue is named by its number q.

Glossary
    F      float64 (queues * FLOATS,): per queue, each for the classes 0, 1, 2
               TAG_R, TAG_W, TAG_L      the head request's reservation, proportion and limit tag (s)
               PREV_R, PREV_W, PREV_L   the same of the request before it
               DELTA                    what was added to the proportion tags when the class woke up (s)
               INV_R, INV_W, INV_L      1/reservation (s/byte), 1/weight, 1/limit (s/byte); 0 where there is none
    K      int64 (queues * INTS,): per queue
               COUNT, READY, IDLE, KNOWN, LAST   requests waiting, the head is within its limit, quiet for long,
                                                 in the map, tick of the last request; each for the three classes
               HEAP_R, HEAP_L, HEAP_W            the classes in heap order: by reservation, by limit, ready by weight
               SIZE, TICK                        classes in the heaps; requests that ever entered

Source: dmclock_server.h and indirect_intrusive_heap.h of the dmClock library in Ceph 20.2.4. Its heaps are binary, and
their order among equals decides ties, so with three classes a heap is a root and two children, moved just as there.
"""

from __future__ import annotations

import math
from typing import Any, Tuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

TAG_R, TAG_W, TAG_L, PREV_R, PREV_W, PREV_L, DELTA, INV_R, INV_W, INV_L, FLOATS = 0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 32
COUNT, READY, IDLE, KNOWN, LAST, HEAP_R, HEAP_L, HEAP_W, SIZE, TICK, INTS = 0, 3, 6, 9, 12, 15, 18, 21, 24, 25, 32
BY_RESERVATION, BY_WEIGHT, FUTURE, NONE = 0, 1, 2, 3
_LARGE = 1.7976931348623157e308 / 3.0


def _precedes(heap: int, F: Array, K: Array, f: int, k: int, a: int, b: int) -> bool:
    """Whether class a must stand above class b in that heap (HEAP_R, HEAP_L or HEAP_W)."""
    if K[k + COUNT + a] == 0:
        return False
    if K[k + COUNT + b] == 0:
        return True
    if heap == HEAP_R:
        return bool(F[f + TAG_R + a] < F[f + TAG_R + b])
    if K[k + READY + a] != K[k + READY + b]:
        return bool(K[k + READY + (a if heap == HEAP_W else b)] == 1)
    if heap == HEAP_L:
        return bool(F[f + TAG_L + a] < F[f + TAG_L + b])
    return bool(F[f + TAG_W + a] + F[f + DELTA + a] < F[f + TAG_W + b] + F[f + DELTA + b])


def _up(heap: int, F: Array, K: Array, f: int, k: int, c: int) -> None:
    h = k + heap
    root = K[h]
    if root != c and _precedes(heap, F, K, f, k, c, root):
        i = h + 1 if K[h + 1] == c else h + 2
        K[h], K[i] = c, root


def _down(heap: int, F: Array, K: Array, f: int, k: int, c: int) -> None:
    h = k + heap
    size = K[k + SIZE]
    if K[h] == c and size > 1:
        left, i = K[h + 1], 0
        if _precedes(heap, F, K, f, k, left, c):
            i = 2 if size > 2 and _precedes(heap, F, K, f, k, K[h + 2], left) else 1
        elif size > 2 and _precedes(heap, F, K, f, k, K[h + 2], c):
            i = 2
        K[h], K[h + i] = K[h + i], c


def _adjust(heap: int, F: Array, K: Array, f: int, k: int, c: int) -> None:
    """Move a class to its place in a heap: a root can only go down, and with three places the others only up."""
    if K[k + heap] == c:
        _down(heap, F, K, f, k, c)
    else:
        _up(heap, F, K, f, k, c)


def _sift(F: Array, K: Array, f: int, k: int, c: int) -> None:
    """Move a class to its place in all three heaps after its head has changed."""
    for heap in (HEAP_R, HEAP_L, HEAP_W):
        _adjust(heap, F, K, f, k, c)


def _tag(F: Array, f: int, c: int, time: float, cost: float) -> None:
    """Tags of a request that comes to the front of its class; infinite ones are not remembered."""
    inv = F[f + INV_R + c]
    if inv == 0.0:
        F[f + TAG_R + c] = math.inf
    else:
        tag = F[f + PREV_R + c] + inv * cost
        tag = tag if tag > time else time
        F[f + TAG_R + c] = tag
        F[f + PREV_R + c] = tag
    inv = F[f + INV_W + c]
    if inv == 0.0:
        F[f + TAG_W + c] = math.inf
    else:
        tag = F[f + PREV_W + c] + inv * cost
        tag = tag if tag > time else time
        F[f + TAG_W + c] = tag
        F[f + PREV_W + c] = tag
    inv = F[f + INV_L + c]
    if inv == 0.0:
        F[f + TAG_L + c] = -math.inf
    else:
        tag = F[f + PREV_L + c] + inv * cost
        tag = tag if tag > time else time
        F[f + TAG_L + c] = tag
        F[f + PREV_L + c] = tag


def _wake(F: Array, K: Array, f: int, k: int, c: int, time: float) -> None:
    """A class joins the heaps, or was quiet for long: its proportion starts level with the lowest of the others."""
    if K[k + KNOWN + c] == 0:
        K[k + KNOWN + c] = 1
        K[k + LAST + c] = K[k + TICK]
        size = K[k + SIZE]
        # an empty class precedes nobody: it stays where it enters, at the end
        for h in (k + HEAP_R, k + HEAP_L, k + HEAP_W):
            K[h + size] = c
        K[k + SIZE] = size + 1
    lowest = math.inf
    for other in range(3):
        if K[k + KNOWN + other] == 1 and K[k + IDLE + other] == 0:
            tag = F[f + TAG_W + other] if K[k + COUNT + other] > 0 else F[f + PREV_W + other]
            lowest = min(lowest, tag + F[f + DELTA + other])
    if lowest < _LARGE:
        F[f + DELTA + c] = lowest - time
    K[k + IDLE + c] = 0


def add(F: Array, K: Array, q: int, c: int, time: float, cost: float) -> None:
    """A request of class c enters queue q; the caller keeps the requests behind the head (arrival and cost)."""
    f, k = q * FLOATS, q * INTS
    K[k + TICK] += 1
    woke = K[k + IDLE + c] == 1
    if woke:
        _wake(F, K, f, k, c, time)
    K[k + COUNT + c] += 1
    if K[k + COUNT + c] == 1:
        K[k + READY + c] = 0
        K[k + LAST + c] = K[k + TICK]
        _tag(F, f, c, time, cost)
        _sift(F, K, f, k, c)
    elif woke:
        _sift(F, K, f, k, c)


def choose(F: Array, K: Array, q: int, now: float) -> Tuple[int, int, float]:
    """(kind, class, time): which class queue q serves at `now`, or when to ask again."""
    f, k = q * FLOATS, q * INTS
    kind, chosen, when = NONE, -1, math.inf
    if K[k + SIZE] > 0:
        top = K[k + HEAP_R]
        if K[k + COUNT + top] > 0 and F[f + TAG_R + top] <= now:
            kind, chosen = BY_RESERVATION, top
        else:
            limited = K[k + HEAP_L]
            while K[k + COUNT + limited] > 0 and K[k + READY + limited] == 0 and F[f + TAG_L + limited] <= now:
                K[k + READY + limited] = 1
                _up(HEAP_W, F, K, f, k, limited)
                _down(HEAP_L, F, K, f, k, limited)
                limited = K[k + HEAP_L]
            ready = K[k + HEAP_W]
            if K[k + COUNT + ready] > 0 and K[k + READY + ready] == 1 and F[f + TAG_W + ready] < math.inf:
                kind, chosen = BY_WEIGHT, ready
            else:
                # a tag of exactly 0 counts as none, as in the library
                if K[k + COUNT + top] > 0 and F[f + TAG_R + top] != 0.0:
                    when = F[f + TAG_R + top]
                if K[k + COUNT + limited] > 0 and F[f + TAG_L + limited] != 0.0:
                    when = min(when, F[f + TAG_L + limited])
                if when < math.inf:
                    kind = FUTURE
    return kind, chosen, when


def take(F: Array, K: Array, q: int, kind: int, c: int, cost: float, next_arrival: float, next_cost: float) -> None:
    """Serve the head of class c, whose cost is given, and bring the next request, if there is one, to the front."""
    f, k = q * FLOATS, q * INTS
    K[k + COUNT + c] -= 1
    if K[k + COUNT + c] > 0:
        K[k + READY + c] = 0
        K[k + LAST + c] = K[k + TICK]
        # the next tag follows the tag that was served, which differs from the remembered one after a change of weights
        if F[f + INV_R + c] != 0.0:
            F[f + PREV_R + c] = F[f + TAG_R + c]
        if F[f + INV_W + c] != 0.0:
            F[f + PREV_W + c] = F[f + TAG_W + c]
        if F[f + INV_L + c] != 0.0:
            F[f + PREV_L + c] = F[f + TAG_L + c]
        _tag(F, f, c, next_arrival, next_cost)
    _down(HEAP_R, F, K, f, k, c)
    _adjust(HEAP_L, F, K, f, k, c)
    _down(HEAP_W, F, K, f, k, c)
    if kind == BY_WEIGHT:
        reduction = F[f + INV_R + c] * cost
        if K[k + COUNT + c] > 0:
            F[f + TAG_R + c] -= reduction
        F[f + PREV_R + c] -= reduction
        _up(HEAP_R, F, K, f, k, c)


def clean(F: Array, K: Array, q: int, erase_tick: int, idle_tick: int) -> None:
    """Forget the classes whose last request is as old as `erase_tick`, and call those as old as `idle_tick` idle.

    The ticks are those of the newest cleaning marks older than the erase age (600 s) and the idle age (300 s); 0 where
    there is none.
    """
    f, k = q * FLOATS, q * INTS
    for c in range(3):
        if K[k + KNOWN + c] == 0:
            continue
        if erase_tick > 0 and K[k + LAST + c] <= erase_tick:
            last = K[k + SIZE] - 1
            K[k + SIZE] = last
            for h in (k + HEAP_R, k + HEAP_L, k + HEAP_W):
                i = 0
                while K[h + i] != c:
                    i += 1
                K[h + i] = K[h + last]
            # what took the place of the one that left may have to move
            if last > 0:
                _sift(F, K, f, k, K[k + HEAP_R])
                _sift(F, K, f, k, K[k + HEAP_L])
                _sift(F, K, f, k, K[k + HEAP_W])
            K[k + KNOWN + c] = 0
            K[k + IDLE + c] = 1
            F[f + DELTA + c] = 0.0
            F[f + PREV_R + c] = 0.0
            F[f + PREV_W + c] = 0.0
            F[f + PREV_L + c] = 0.0
        elif idle_tick > 0 and K[k + LAST + c] <= idle_tick:
            K[k + IDLE + c] = 1


def new_queues(count: int) -> Tuple[Array, Array]:
    """F and K for `count` empty queues, no class with a reservation, weight or limit."""
    floats = np.zeros(count * FLOATS)
    ints = np.zeros(count * INTS, dtype=np.int64)
    ints.reshape(count, INTS)[:, IDLE : IDLE + 3] = 1
    return floats, ints


def set_class(F: Array, K: Array, q: int, c: int, reservation: float, weight: float, limit: float) -> None:
    """Change a class's parameters (bytes/s, none, bytes/s; 0 for none); tags already computed stay."""
    for offset, value in ((INV_R, reservation), (INV_W, weight), (INV_L, limit)):
        F[q * FLOATS + offset + c] = 0.0 if value == 0.0 else 1.0 / value
