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

Below the queue stands what surrounds it, the OSDs, in the same two arrays. It is one file, long as it is, because numba
compiles an entry with everything that it calls and keeps the result by the one file that holds it: code in a second
file could change without the cached machine code noticing. The sections, in order:

    the queue          add, choose, take, clean
    the arrays         segments, and the fields of what lies in them
    events             the event heap, messages, clients' turns; random numbers; items and operations
    the drive          budgets, slices, reads
    BlueStore          throttle, commit thread
    background work    deletion, recovery and backfill, scrub, snaptrim
    clients            operations issued and answered
    threads            queueing, dispatch, what a thread does with an item
    run, drive         the loops that Python calls
"""

from __future__ import annotations

import math
from typing import Protocol, Tuple

import numpy as np
from numpy.typing import NDArray


class Floats(Protocol):
    """F: an array of float64, or a list of floats."""

    def __getitem__(self, place: int, /) -> float: ...
    def __setitem__(self, place: int, value: float, /) -> None: ...
    def __len__(self) -> int: ...


class Ints(Protocol):
    """K: an array of int64, or a list of ints."""

    def __getitem__(self, place: int, /) -> int: ...
    def __setitem__(self, place: int, value: int, /) -> None: ...
    def __len__(self) -> int: ...


TAG_R, TAG_W, TAG_L, PREV_R, PREV_W, PREV_L, DELTA, INV_R, INV_W, INV_L, FLOATS = 0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 32
COUNT, READY, IDLE, KNOWN, LAST, HEAP_R, HEAP_L, HEAP_W, SIZE, TICK, INTS = 0, 3, 6, 9, 12, 15, 18, 21, 24, 25, 32
BY_RESERVATION, BY_WEIGHT, FUTURE, NONE = 0, 1, 2, 3
_LARGE = 1.7976931348623157e308 / 3.0


# the queue -----------------------------------------------------------------------------------------------------------


def _precedes(heap: int, F: Floats, K: Ints, f: int, k: int, a: int, b: int) -> bool:
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


def _up(heap: int, F: Floats, K: Ints, f: int, k: int, c: int) -> None:
    h = k + heap
    root = K[h]
    if root != c and _precedes(heap, F, K, f, k, c, root):
        i = h + 1 if K[h + 1] == c else h + 2
        K[h], K[i] = c, root


def _down(heap: int, F: Floats, K: Ints, f: int, k: int, c: int) -> None:
    h = k + heap
    size = K[k + SIZE]
    if K[h] == c and size > 1:
        left, i = K[h + 1], 0
        if _precedes(heap, F, K, f, k, left, c):
            i = 2 if size > 2 and _precedes(heap, F, K, f, k, K[h + 2], left) else 1
        elif size > 2 and _precedes(heap, F, K, f, k, K[h + 2], c):
            i = 2
        K[h], K[h + i] = K[h + i], c


def _adjust(heap: int, F: Floats, K: Ints, f: int, k: int, c: int) -> None:
    """Move a class to its place in a heap: a root can only go down, and with three places the others only up."""
    if K[k + heap] == c:
        _down(heap, F, K, f, k, c)
    else:
        _up(heap, F, K, f, k, c)


def _sift(F: Floats, K: Ints, f: int, k: int, c: int) -> None:
    """Move a class to its place in all three heaps after its head has changed."""
    _adjust(HEAP_R, F, K, f, k, c)
    _adjust(HEAP_L, F, K, f, k, c)
    _adjust(HEAP_W, F, K, f, k, c)


def _tag(F: Floats, f: int, c: int, of: int, time: float, cost: float) -> None:
    """Tags of a request that comes to the front of its class, after the tags `of` (PREV_R, or TAG_R: those served).

    Infinite ones are not remembered: a class that had no reservation when its head was tagged has none until its queue
    has been empty, and goes on from the last finite tag then (dmclock_server.h, update_next_tag and update_req_tag).
    """
    inv = F[f + INV_R + c]
    tag = F[f + of + c] + inv * cost
    tag = math.inf if inv == 0.0 else tag if tag > time else time
    F[f + TAG_R + c] = tag
    if tag < math.inf:
        F[f + PREV_R + c] = tag
    inv = F[f + INV_W + c]
    tag = F[f + of + TAG_W - TAG_R + c] + inv * cost
    tag = math.inf if inv == 0.0 else tag if tag > time else time
    F[f + TAG_W + c] = tag
    if tag < math.inf:
        F[f + PREV_W + c] = tag
    inv = F[f + INV_L + c]
    tag = F[f + of + TAG_L - TAG_R + c] + inv * cost
    tag = -math.inf if inv == 0.0 else tag if tag > time else time
    F[f + TAG_L + c] = tag
    if tag > -math.inf:
        F[f + PREV_L + c] = tag


def _wake(F: Floats, K: Ints, f: int, k: int, c: int, time: float) -> None:
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


def add(F: Floats, K: Ints, q: int, c: int, time: float, cost: float) -> None:
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
        _tag(F, f, c, PREV_R, time, cost)
        _sift(F, K, f, k, c)
    elif woke:
        _sift(F, K, f, k, c)


def choose(F: Floats, K: Ints, q: int, now: float) -> Tuple[int, int, float]:
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


def take(F: Floats, K: Ints, q: int, kind: int, c: int, cost: float, next_arrival: float, next_cost: float) -> None:
    """Serve the head of class c, whose cost is given, and bring the next request, if there is one, to the front."""
    f, k = q * FLOATS, q * INTS
    K[k + COUNT + c] -= 1
    if K[k + COUNT + c] > 0:
        K[k + READY + c] = 0
        K[k + LAST + c] = K[k + TICK]
        # which differs from the remembered one after a change of weights
        _tag(F, f, c, TAG_R, next_arrival, next_cost)
    _down(HEAP_R, F, K, f, k, c)
    _adjust(HEAP_L, F, K, f, k, c)
    _down(HEAP_W, F, K, f, k, c)
    if kind == BY_WEIGHT:
        reduction = F[f + INV_R + c] * cost
        if K[k + COUNT + c] > 0:
            F[f + TAG_R + c] -= reduction
        F[f + PREV_R + c] -= reduction
        _up(HEAP_R, F, K, f, k, c)


def clean(F: Floats, K: Ints, q: int, erase_tick: int, idle_tick: int) -> None:
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


def new_queues(count: int) -> Tuple[NDArray[np.float64], NDArray[np.int64]]:
    """F and K for `count` empty queues, no class with a reservation, weight or limit."""
    floats = np.zeros(count * FLOATS)
    ints = np.zeros(count * INTS, dtype=np.int64)
    ints.reshape(count, INTS)[:, IDLE : IDLE + 3] = 1
    return floats, ints


def set_class(F: Floats, K: Ints, q: int, c: int, reservation: float, weight: float, limit: float) -> None:
    """Change a class's parameters (bytes/s, none, bytes/s; 0 for none); tags already computed stay."""
    for offset, value in ((INV_R, reservation), (INV_W, weight), (INV_L, limit)):
        F[q * FLOATS + offset + c] = 0.0 if value == 0.0 else 1.0 / value


# ---------------------------------------------------------------------------------------------------------------------
# The OSDs around the queues. Everything below moves requests ("items") through shards, threads, BlueStore and drives.
#
# All of it lies in the same two arrays as the queues, F and K: few arguments make few bytes to hand around, and short
# compiling. Their first HEADER numbers are parameters of the whole (G_* in F; C_* in K, after the places where the
# segments begin); then come the queues, one for each shard (so shard s has queue QUEUE_0 + s); then the segments, by
# the names under which K holds their beginnings:
#
#     HT, HP        event heap: time (s), what
#     MT, MI        messages under way: time, item                   RT, RS   clients' next operations: time, stream
#     IT, IX        items                                            OT, OX   operations that wait for parts
#     SH, SX        shards                                           OI, OF   OSDs
#     DV, DP        drive state and budgets, write and read channel  KN       knobs, by OSD
#     AC, SL, LK    by slot (PG x position): OSD, shard, locked until (s)
#     ST, SF        client streams                                   TI, TF   background tasks, one for each PG
#     TL, TB        tasks ordered by kind and primary, and where each such group begins
#     UN, EX        uniform and exponential variates, used in turn   NC       counters, by OSD
#     HO, HS        latency histograms, by OSD and by stream         XQ       scratch: items, shards, operations
#     MK            cleaning marks, by shard
#
# Random numbers come from tables, so that both ways of running the file see the same ones.
# ---------------------------------------------------------------------------------------------------------------------

TABLE = 1 << 16
"""Variates in a table."""
SCRATCH = 1 << 14
"""Room for what one event brings about, of each kind."""
CLEAN_S, MARKS = 60.0, 16
"""The library's check time, and the cleaning marks that a shard keeps (10 are needed), after their number."""

FLOAT_SEGMENTS = ("HT", "MT", "RT", "IX", "OX", "SX", "OF", "DV", "DP", "LK", "SF", "TF", "UN", "EX", "NC")
INT_SEGMENTS = (
    "HP", "MI", "RS", "IT", "OT", "SH", "OI", "KN", "AC", "SL", "ST", "TI", "TL", "TB", "HO", "HS", "XQ", "MK",
)  # fmt: skip
(HT, MT, RT, IX, OX, SX, OF, DV, DP, LK, SF, TF, UN, EX, NC) = range(15)
(HP, MI, RS, IT, OT, SH, OI, KN, AC, SL, ST, TI, TL, TB, HO, HS, XQ, MK) = range(15, 33)

HEADER = 128
QUEUE_0 = HEADER // INTS

# C: sizes, list heads, positions
(
    C_OSDS, C_SHARDS, C_WIDTH, C_WPQ, C_EVENTS, C_HEAP, C_MSG_HEAD, C_MSG_TAIL, C_TURN_HEAD, C_TURN_TAIL, C_FREE_ITEM,
    C_FREE_OP, C_UNIFORM, C_EXPONENTIAL, C_NEW, C_DIRTY, C_DONE, C_STREAMS, C_TASKS, C_MAX_COST, C_SHARED_SCRUBS,
    C_FULL, C_SERVED, C_MSG_MASK, C_TURN_MASK, C_ITEM_ROOM, C_OP_ROOM, C_HEAP_ROOM, C_READ_BUDGET,
) = range(64, 93)  # fmt: skip

# G: clock and parameters
(
    G_NOW, G_NET, G_WRITE_CPU, G_READ_CPU, G_REPLY_CPU, G_BYTE_CPU, G_SCAN_CPU, G_TRIM_CPU, G_KV_IOS, G_KV_BYTES,
    G_KV_LATENCY, G_TRIM_IOS, G_TRIM_BYTES, G_THROTTLE, G_THROTTLE_IO, G_REQUEST, G_COST_IO, G_SPREAD, G_BACKOFF,
    G_PRIORITY, G_PRIORITY_1, G_PRIORITY_2, G_PRIORITY_3, G_PRIORITY_4, G_SCRUB_EVENT, G_HANDOVER,
    G_STRIDE, G_KV_EACH, G_KV_TRIM,
) = range(29)  # fmt: skip

MESSAGES, TURNS = range(2)

# items: what they are
(
    WRITE, SUBWRITE, REPLY, READ, SUBREAD, EC_READ, RECOVER, PULL, PUSH, PUSHED, PULLED, SCRUB_STEP, SCRUB_CHUNK,
    SCRUB_MAP, TRIM, TRIM_LOCAL, TRIM_REPLICA, DELETE,
) = range(18)  # fmt: skip
I_ROLE, I_CLASS, I_SLOT, I_ARG, I_NEXT, I_INTS = 0, 1, 2, 3, 4, 6
X_COST, X_BYTES, X_ARRIVED, X_DONE, X_IOS, X_ADMIT, I_FLOATS = 0, 1, 2, 3, 4, 5, 6
HIGH = 3
"""The strict queue in front: replica writes, answers, erasure-coded sub-reads."""
REPLICAS = 4
"""Replica writes in the older queue, where they have a priority of their own."""

O_OWNER, O_PENDING, O_PG, O_PHASE, O_NEXT, O_COUNT, O_INTS = 0, 1, 2, 3, 4, 5, 6
O_ISSUED, O_ARRIVED, O_BYTES, O_FLOATS = 0, 1, 2, 4
READING, WRITING, EC_FIRST, TRIMMING, EC_RECOVERY = range(5)

S_IDLE, S_HEAD, S_TAIL, S_OSD, S_ASLEEP, S_LOOKING, S_WOKEN, S_QUEUED = 0, 1, 6, 11, 12, 13, 14, 15
S_FIRST, S_DURABLE, S_DURABLE_TAIL, S_TAKEN, S_FIRST_LOOKS, S_FRESH, S_AHEAD, S_INTS = 16, 17, 18, 19, 20, 21, 22, 24
# Threads without an item sleep until the queue is not empty any more, or wait for the moment that the queue named.
# An item that comes into an empty queue wakes them all; into a queue that holds something, it wakes one, and only if
# one waits for such a moment (OSD::ShardedOpWQ::_enqueue). So a queue that holds back a limited class can leave its
# shard to a single thread, however many sleep, and what that thread waits for, everything waits for.
#
# The first thread of a shard also runs what follows a commit (S_DURABLE lists such transactions): it takes them, then
# the next item if there is one, and runs them only when that item is done with (OSD::ShardedOpWQ::_process). So an
# answer waits for a scrub's read, or for BlueStore's throttle, whenever the first thread does. S_FIRST is its item.
# While it waits for a moment, the first transaction of a commit wakes it, and it goes back to waiting without a look at
# those that came meanwhile: they lie until that moment has come (S_FRESH: woken by a commit just now).
S_WAKE, S_MARK, S_LATER, S_FLOATS = 0, 1, 3, 4

(
    D_KV_HEAD, D_KV_TAIL, D_KV_BUSY, D_COMMIT, D_WAIT_HEAD, D_WAIT_TAIL, D_RECOVERING, D_LOCAL, D_REMOTE, D_SCRUBS,
    D_REMOTE_SCRUBS, D_TRIMS, D_DELETES, D_SNAPS, D_SNAP_HEAD, D_SNAP_TAIL, D_CURSOR,
) = range(17)  # fmt: skip
D_INTS = 24
D_THROTTLE, D_LAST_DONE, D_FLOATS = 0, 1, 4

V_IOS_AT, V_BYTES_AT, V_LAST, V_START, V_USED_IOS, V_USED_BYTES, V_FLOATS = 0, 1, 2, 3, 4, 5, 8
B_IOPS, B_BYTES, B_SLICE, B_LATENCY, B_FLOATS = 0, 1, 2, 3, 4

(
    N_MAX_SCRUBS, N_CHUNK, N_TRIMS, N_TRIMMING_PGS, N_BACKFILLS, N_RECOVERY_ACTIVE, N_SHALLOW_CHUNK, N_DELETES,
) = range(8)  # fmt: skip
N_INTS = 8

(
    P_FIRST_PG, P_PGS, P_SIZE, P_K, P_DEPTH, P_FLYING, P_BACKLOG, P_OPEN, P_PARTIAL, P_DRAINING,
) = range(10)  # fmt: skip
P_INTS = 10
CLOSED, OPEN, DRAINS = range(3)
"""P_OPEN: a queue is kept full; arrivals wait for nothing; a pause begins when nothing is under way (fio's rate)."""
(
    Q_RATE, Q_READS, Q_LATENCY, Q_BYTES, Q_WRITE_COST, Q_READ_COST, Q_OPS, Q_SECONDS, Q_DUE, Q_PAUSE,
) = range(10)  # fmt: skip
Q_FLOATS = 10

DEGRADED, MISPLACED, SCRUB, SNAPTRIM, DELETION = range(5)
WAITING, RUNNING, FINISHED, DISABLED = range(4)
(
    T_KIND, T_PG, T_STATE, T_START, T_LEFT, T_QUEUED, T_PENDING, T_STAGE, T_TARGET, T_CLASS, T_ENDLESS, T_TOTAL,
    T_CHUNK, T_WORK, T_SIZE, T_K, T_PARTS,
) = range(17)  # fmt: skip
T_INTS = 17
T_BYTES, T_COST, T_PUSH_COST, T_READ_CLASS, T_PULL_COST, T_FLOATS = 0, 1, 2, 3, 4, 6

(
    M_READS, M_WRITES, M_READ_BYTES, M_WRITE_BYTES, M_READ_S, M_WRITE_S, M_RECOVERED, M_RECOVERED_BYTES, M_BACKFILLED,
    M_SCRUBBED, M_SCRUBBED_BYTES, M_TRIMMED, M_WAIT, M_WAIT_1, M_WAIT_2, M_DELETED,
) = range(16)  # fmt: skip
M_FLOATS = 16

OSD_BUCKETS, STREAM_BUCKETS, PER_OCTAVE = 32, 1024, 32

E_THREAD, E_KV_START, E_KV_DONE, E_WAKE, E_ARRIVAL, E_SCRUB, E_WORK, E_CLEAN = range(8)
SCRUB_STEPS = 2
"""Small items of the scrubber before a chunk, and as many after it."""
SCRUB_TICK_S = 1.0
"""How often an OSD thinks of starting a scrub; it throws a coin first (osd_scrub_backoff_ratio)."""
LEASE_S = 8.0
"""How often a pool's PGs renew their leases (half the read lease interval): messages that wake every shard."""
DELETE_BATCH = 30


# events, random numbers, items and operations ------------------------------------------------------------------------


def _schedule(F: Floats, K: Ints, time: float, event: int, index: int) -> None:
    """Put an event into the heap."""
    ht, hp = K[HT], K[HP]
    place = K[C_HEAP]
    K[C_HEAP] = place + 1
    code = index * 8 + event
    while place > 0:
        above = (place - 1) >> 1
        if F[ht + above] <= time:
            break
        F[ht + place] = F[ht + above]
        K[hp + place] = K[hp + above]
        place = above
    F[ht + place] = time
    K[hp + place] = code


def _next_event(F: Floats, K: Ints) -> int:
    """Take the first event out of the heap."""
    ht, hp = K[HT], K[HP]
    code = K[hp + 0]
    size = K[C_HEAP] - 1
    K[C_HEAP] = size
    time, moved, place = F[ht + size], K[hp + size], 0
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        if below + 1 < size and F[ht + below + 1] < F[ht + below]:
            below += 1
        if F[ht + below] >= time:
            break
        F[ht + place] = F[ht + below]
        K[hp + place] = K[hp + below]
        place = below
    F[ht + place] = time
    K[hp + place] = moved
    return code


def _uniform(F: Floats, K: Ints) -> float:
    """The next number of the table, uniform in [0, 1)."""
    un = K[UN]
    place = K[C_UNIFORM]
    K[C_UNIFORM] = (place + 1) & (TABLE - 1)
    return F[un + place]


def _spread(F: Floats, K: Ints, mean: float) -> float:
    """A latency of that mean, with its exponential share."""
    ex = K[EX]
    place = K[C_EXPONENTIAL]
    K[C_EXPONENTIAL] = (place + 1) & (TABLE - 1)
    return mean * (1.0 + F[G_SPREAD] * (F[ex + place] - 1.0))


def _item(
    F: Floats, K: Ints, role: int, service: int, slot: int, argument: int, cost: float, size: float, ios: float
) -> int:
    """A new item. `run` stops while there is still room for what one event may bring about."""
    it, ix = K[IT], K[IX]
    i = K[C_FREE_ITEM]
    n = i * I_INTS
    K[C_FREE_ITEM] = K[it + n + I_NEXT]
    K[it + n + I_ROLE] = role
    K[it + n + I_CLASS] = service
    K[it + n + I_SLOT] = slot
    K[it + n + I_ARG] = argument
    K[it + n + I_NEXT] = -1
    x = i * I_FLOATS
    F[ix + x + X_COST] = cost
    F[ix + x + X_BYTES] = size
    F[ix + x + X_IOS] = ios
    return i


def _release(F: Floats, K: Ints, i: int) -> None:
    """An item is done with."""
    it = K[IT]
    K[it + i * I_INTS + I_NEXT] = K[C_FREE_ITEM]
    K[C_FREE_ITEM] = i


def _line_up(F: Floats, K: Ints, line: int, number: int, time: float) -> None:
    """Put a number into one of the two lines (MESSAGES, TURNS), which are in the order of their times."""
    times, numbers = K[MT if line == MESSAGES else RT], K[MI if line == MESSAGES else RS]
    head, end = (C_MSG_HEAD, C_MSG_TAIL) if line == MESSAGES else (C_TURN_HEAD, C_TURN_TAIL)
    mask = K[C_MSG_MASK if line == MESSAGES else C_TURN_MASK]
    tail = K[end]
    K[end] = tail + 1
    while tail > K[head] and F[times + ((tail - 1) & mask)] > time:
        F[times + (tail & mask)] = F[times + ((tail - 1) & mask)]
        K[numbers + (tail & mask)] = K[numbers + ((tail - 1) & mask)]
        tail -= 1
    F[times + (tail & mask)] = time
    K[numbers + (tail & mask)] = number


def _send(F: Floats, K: Ints, i: int, time: float) -> None:
    """An item is on its way to its OSD and arrives at that time."""
    _line_up(F, K, MESSAGES, i, time)


def _turn(F: Floats, K: Ints, stream: int, time: float) -> None:
    """A client will have its next operation at the primary at that time."""
    _line_up(F, K, TURNS, stream, time)


def _new(F: Floats, K: Ints, i: int) -> None:
    """An item enters its shard's queue now."""
    xq = K[XQ]
    K[xq + K[C_NEW]] = i
    K[C_NEW] += 1


def _dirty(F: Floats, K: Ints, shard: int) -> None:
    """A shard has a thread to give away."""
    xq = K[XQ]
    K[xq + SCRATCH + K[C_DIRTY]] = shard
    K[C_DIRTY] += 1


def _operation(F: Floats, K: Ints, owner: int, pg: int, phase: int, pending: int, now: float) -> int:
    """A new operation that waits for its parts."""
    ot, ox = K[OT], K[OX]
    op = K[C_FREE_OP]
    o = op * O_INTS
    K[C_FREE_OP] = K[ot + o + O_NEXT]
    K[ot + o + O_OWNER] = owner
    K[ot + o + O_PG] = pg
    K[ot + o + O_PHASE] = phase
    K[ot + o + O_PENDING] = pending
    F[ox + op * O_FLOATS + O_ARRIVED] = now
    return op


def _part_done(F: Floats, K: Ints, op: int) -> None:
    """One of the parts that an operation waits for is there."""
    ot, xq = K[OT], K[XQ]
    left = K[ot + op * O_INTS + O_PENDING] - 1
    K[ot + op * O_INTS + O_PENDING] = left
    if left == 0:
        K[xq + 2 * SCRATCH + K[C_DONE]] = op
        K[C_DONE] += 1


# the drive -----------------------------------------------------------------------------------------------------------


def _transfer(F: Floats, K: Ints, budget: int, channel: int, now: float, ios: float, size: float) -> float:
    """When the drive's budgets let a request through that arrives now, in the order of arrival.

    `budget` is what it draws on, `channel` says at which prices.
    """
    dv, dp = K[DV], K[DP]
    v, b = budget * V_FLOATS, channel * B_FLOATS
    length = F[dp + b + B_SLICE]
    if length == 0.0:
        at = F[dv + v + V_IOS_AT]
        at = (at if at > now else now) + ios * F[dp + b + B_IOPS]
        F[dv + v + V_IOS_AT] = at
        until = F[dv + v + V_BYTES_AT]
        until = (until if until > now else now) + size * F[dp + b + B_BYTES]
        F[dv + v + V_BYTES_AT] = until
        at = at if at > until else until
    else:
        at = _in_slices(F, K, v, b, now, ios, size)
    last = F[dv + v + V_LAST]
    at = at if at > last else last
    F[dv + v + V_LAST] = at
    return at


def _in_slices(F: Floats, K: Ints, v: int, b: int, now: float, ios: float, size: float) -> float:
    """The kernel's block throttle (blk-throttle.c): a slice's whole budget may be used at its beginning.

    A request of several I/Os goes through with its last one. Requests wait for the slice in which their I/Os fit, and
    for the moment at which their bytes do, if that lies beyond the current slice.
    """
    dv, dp = K[DV], K[DP]
    length, per_io, per_byte = F[dp + b + B_SLICE], F[dp + b + B_IOPS], F[dp + b + B_BYTES]
    last, start = F[dv + v + V_LAST], F[dv + v + V_START]
    used_ios, used_bytes = F[dv + v + V_USED_IOS], F[dv + v + V_USED_BYTES]
    at = now
    if last > now:
        at = last
    elif now > last + length:
        # nothing waited, and the slice ran out: a new one
        start, used_ios, used_bytes = now, 0.0, 0.0
    whole = int(ios)
    if whole < 1:
        whole = 1
    for _ in range(whole):
        passed = int((at - start) / length)
        if passed >= 2:
            # whole slices that are over take their budget with them, but for the last one
            start += (passed - 1) * length
            used_ios -= (passed - 1) * length / per_io
            used_bytes -= (passed - 1) * length / per_byte
            used_ios = used_ios if used_ios > 0.0 else 0.0
            used_bytes = used_bytes if used_bytes > 0.0 else 0.0
            passed = 1
        end = start + (passed + 1) * length
        used_ios += ios / whole
        used_bytes += size / whole
        in_ios = start + int((used_ios * per_io) / length) * length
        if used_ios * per_io <= end - start:
            in_ios = at
        in_bytes = start + used_bytes * per_byte
        if in_bytes <= end:
            in_bytes = at
        at = at if at > in_ios else in_ios
        at = at if at > in_bytes else in_bytes
    F[dv + v + V_START] = start
    F[dv + v + V_USED_IOS] = used_ios
    F[dv + v + V_USED_BYTES] = used_bytes
    return at


def _read(F: Floats, K: Ints, osd: int, now: float, size: float) -> float:
    """When a read that starts now has its data."""
    dp = K[DP]
    channel = 2 * osd + 1
    ios = _requests(F, K, size)
    # C_READ_BUDGET: 0 where reads and writes share one, 1 where reads have their own
    done = _transfer(F, K, 2 * osd + K[C_READ_BUDGET], channel, now, ios, size)
    return done + _spread(F, K, F[dp + channel * B_FLOATS + B_LATENCY])


def _requests(F: Floats, K: Ints, size: float) -> float:
    """I/Os that so many bytes take."""
    largest = F[G_REQUEST]
    if size <= largest:
        return 1.0
    return float(int((size + largest - 1.0) / largest))


# BlueStore -----------------------------------------------------------------------------------------------------------


def _admit(F: Floats, K: Ints, i: int, osd: int, now: float) -> None:
    """A transaction enters BlueStore: its data go to the drive, then it waits for the commit thread."""
    ix, of, dp = K[IX], K[OF], K[DP]
    x = i * I_FLOATS
    F[of + osd * D_FLOATS + D_THROTTLE] += F[ix + x + X_ADMIT]
    done = now
    if F[ix + x + X_IOS] > 0.0:
        channel = 2 * osd
        done = _transfer(F, K, channel, channel, now, F[ix + x + X_IOS], F[ix + x + X_BYTES])
        done += _spread(F, K, F[dp + channel * B_FLOATS + B_LATENCY])
        last = F[of + osd * D_FLOATS + D_LAST_DONE]
        done = done if done > last else last
        F[of + osd * D_FLOATS + D_LAST_DONE] = done
    F[ix + x + X_DONE] = done
    _await_commit(F, K, i, osd, done)


def _await_commit(F: Floats, K: Ints, i: int, osd: int, done: float) -> None:
    """A transaction whose data are written at that time joins those that wait for the commit thread, by time."""
    it, ix, oi = K[IT], K[IX], K[OI]
    d = osd * D_INTS
    head, tail = K[oi + d + D_KV_HEAD], K[oi + d + D_KV_TAIL]
    if head >= 0 and F[ix + tail * I_FLOATS + X_DONE] <= done:
        K[it + tail * I_INTS + I_NEXT] = i
        K[it + i * I_INTS + I_NEXT] = -1
        K[oi + d + D_KV_TAIL] = i
    elif head < 0 or F[ix + head * I_FLOATS + X_DONE] > done:
        K[it + i * I_INTS + I_NEXT] = head
        K[oi + d + D_KV_HEAD] = i
        if head < 0:
            K[oi + d + D_KV_TAIL] = i
        if K[oi + d + D_KV_BUSY] == 0:
            _schedule(F, K, done, E_KV_START, osd)
    else:
        before = head
        while F[ix + K[it + before * I_INTS + I_NEXT] * I_FLOATS + X_DONE] <= done:
            before = K[it + before * I_INTS + I_NEXT]
        K[it + i * I_INTS + I_NEXT] = K[it + before * I_INTS + I_NEXT]
        K[it + before * I_INTS + I_NEXT] = i


def _blocked(F: Floats, K: Ints, cost: float, osd: int) -> bool:
    """Whether BlueStore's throttle keeps a transaction out (Throttle::_should_wait)."""
    of = K[OF]
    most, current = F[G_THROTTLE], F[of + osd * D_FLOATS + D_THROTTLE]
    if most == 0.0:
        return False
    if cost <= most:
        return current + cost > most
    return current > most


def _submit(F: Floats, K: Ints, i: int, osd: int, now: float) -> bool:
    """A thread hands a transaction to BlueStore; False where the thread must wait with it."""
    it, ix, oi = K[IT], K[IX], K[OI]
    d = osd * D_INTS
    cost = F[ix + i * I_FLOATS + X_BYTES] + (F[ix + i * I_FLOATS + X_IOS] + 1.0) * F[G_THROTTLE_IO]
    F[ix + i * I_FLOATS + X_ADMIT] = cost
    if K[oi + d + D_WAIT_HEAD] >= 0 or _blocked(F, K, cost, osd):
        K[it + i * I_INTS + I_NEXT] = -1
        if K[oi + d + D_WAIT_HEAD] < 0:
            K[oi + d + D_WAIT_HEAD] = i
        else:
            K[it + K[oi + d + D_WAIT_TAIL] * I_INTS + I_NEXT] = i
        K[oi + d + D_WAIT_TAIL] = i
        return False
    _admit(F, K, i, osd, now)
    return True


def _commit_begins(F: Floats, K: Ints, osd: int, now: float) -> None:
    """The commit thread takes every transaction whose data are written; the throttle lets others in already."""
    it, ix, oi, of, sl = K[IT], K[IX], K[OI], K[OF], K[SL]
    d = osd * D_INTS
    first = i = K[oi + d + D_KV_HEAD]
    if K[oi + d + D_KV_BUSY] == 1 or i < 0 or F[ix + i * I_FLOATS + X_DONE] > now:
        # planned for a transaction that another commit has taken
        return
    taken, freed, last, trims = 0, 0.0, -1, 0
    while i >= 0 and F[ix + i * I_FLOATS + X_DONE] <= now:
        freed += F[ix + i * I_FLOATS + X_ADMIT]
        taken += 1
        if K[it + i * I_INTS + I_ROLE] >= TRIM_LOCAL and K[it + i * I_INTS + I_ROLE] <= TRIM_REPLICA:
            trims += 1
        last = i
        i = K[it + i * I_INTS + I_NEXT]
    K[it + last * I_INTS + I_NEXT] = -1
    K[oi + d + D_COMMIT] = first
    K[oi + d + D_KV_HEAD] = i
    K[oi + d + D_KV_BUSY] = 1
    left = F[of + osd * D_FLOATS + D_THROTTLE] - freed
    F[of + osd * D_FLOATS + D_THROTTLE] = left if left > 0.5 else 0.0
    end = _transfer(F, K, 2 * osd, 2 * osd, now, F[G_KV_IOS], taken * F[G_KV_BYTES])
    # one thread applies them to the key-value store, one after another
    end += _spread(F, K, F[G_KV_LATENCY]) + taken * F[G_KV_EACH] + trims * F[G_KV_TRIM]
    _schedule(F, K, end, E_KV_DONE, osd)
    waiting = K[oi + d + D_WAIT_HEAD]
    while waiting >= 0 and not _blocked(F, K, F[ix + waiting * I_FLOATS + X_ADMIT], osd):
        following = K[it + waiting * I_INTS + I_NEXT]
        K[oi + d + D_WAIT_HEAD] = following
        _admit(F, K, waiting, osd, now)
        if K[it + waiting * I_INTS + I_ROLE] != TRIM_LOCAL:
            _thread_free(F, K, K[sl + K[it + waiting * I_INTS + I_SLOT]], waiting, now)
        waiting = following
    if trims > 0:
        K[oi + d + D_SNAPS] -= trims
        _trims_go_on(F, K, osd, now)


def _wait_for_snaps(F: Floats, K: Ints, i: int, osd: int) -> None:
    """A thread waits with an item until the transaction before it on the OSD's table of snapshots is picked up.

    Every trimmed clone reads and writes that one object (SnapMapper), and BlueStore lets nobody read the keys of an
    object with a transaction on its way (Onode::flush): so trimming goes one by one, and holds threads meanwhile.
    """
    it, oi = K[IT], K[OI]
    d = osd * D_INTS
    K[it + i * I_INTS + I_NEXT] = -1
    if K[oi + d + D_SNAP_HEAD] < 0:
        K[oi + d + D_SNAP_HEAD] = i
    else:
        K[it + K[oi + d + D_SNAP_TAIL] * I_INTS + I_NEXT] = i
    K[oi + d + D_SNAP_TAIL] = i


def _trims_go_on(F: Floats, K: Ints, osd: int, now: float) -> None:
    """The table of snapshots is free: the next thread that waits for it."""
    it, ix, oi, sl = K[IT], K[IX], K[OI], K[SL]
    d = osd * D_INTS
    while K[oi + d + D_SNAPS] == 0 and K[oi + d + D_SNAP_HEAD] >= 0:
        i = K[oi + d + D_SNAP_HEAD]
        K[oi + d + D_SNAP_HEAD] = K[it + i * I_INTS + I_NEXT]
        shard = K[sl + K[it + i * I_INTS + I_SLOT]]
        free = True
        if K[it + i * I_INTS + I_ROLE] == TRIM:
            _trim_clone(F, K, i, osd, now)
            if F[ix + i * I_FLOATS + X_IOS] > 0.5:
                free = False
                _start(F, K, i, shard, now)
            else:
                _release(F, K, i)
        else:
            K[oi + d + D_SNAPS] += 1
            free = _submit(F, K, i, osd, now)
        if free:
            _thread_free(F, K, shard, i, now)


def _trim_clone(F: Floats, K: Ints, i: int, osd: int, now: float) -> None:
    """Trim one clone of an item, on this OSD and on the replicas."""
    it, ix, oi, ti = K[IT], K[IX], K[OI], K[TI]
    n = i * I_INTS
    task, slot = K[it + n + I_ARG], K[it + n + I_SLOT]
    t = task * T_INTS
    F[ix + i * I_FLOATS + X_IOS] -= 1.0
    op = _operation(F, K, task, K[ti + t + T_PG], TRIMMING, K[ti + t + T_SIZE], now)
    cost, size, ios = F[G_COST_IO], F[G_TRIM_BYTES], F[G_TRIM_IOS]
    for place in range(1, K[ti + t + T_SIZE]):
        _send(F, K, _item(F, K, TRIM_REPLICA, HIGH, slot + place, op, cost, size, ios), now + F[G_NET])
    K[oi + osd * D_INTS + D_SNAPS] += 1
    _submit(F, K, _item(F, K, TRIM_LOCAL, HIGH, slot, op, cost, size, ios), osd, now)


def _commit_ends(F: Floats, K: Ints, osd: int, now: float) -> None:
    """Transactions are durable: their shards' first threads hear of it."""
    it, ix, sh, oi, sl = K[IT], K[IX], K[SH], K[OI], K[SL]
    d = osd * D_INTS
    i = K[oi + d + D_COMMIT]
    K[oi + d + D_KV_BUSY] = 0
    while i >= 0:
        following = K[it + i * I_INTS + I_NEXT]
        shard = K[sl + K[it + i * I_INTS + I_SLOT]]
        h = sh + shard * S_INTS
        K[it + i * I_INTS + I_NEXT] = -1
        if K[h + S_DURABLE] < 0:
            # whoever sleeps is woken, and looks at the queue as well
            K[h + S_DURABLE] = i
            K[h + S_WOKEN] = K[h + S_IDLE]
            K[h + S_FIRST_LOOKS] = K[h + S_FRESH] = 1
            _dirty(F, K, shard)
        else:
            K[it + K[h + S_DURABLE_TAIL] * I_INTS + I_NEXT] = i
        K[h + S_DURABLE_TAIL] = i
        i = following
    if K[oi + d + D_KV_HEAD] >= 0:
        done = F[ix + K[oi + d + D_KV_HEAD] * I_FLOATS + X_DONE]
        _schedule(F, K, done if done > now else now, E_KV_START, osd)


def _answer(F: Floats, K: Ints, first: int, now: float) -> None:
    """What follows a commit, for a list of transactions: primaries and replicas say so."""
    it, ot = K[IT], K[OT]
    i = first
    while i >= 0:
        n = i * I_INTS
        following, role, argument = K[it + n + I_NEXT], K[it + n + I_ROLE], K[it + n + I_ARG]
        if role == SUBWRITE or role == TRIM_REPLICA:
            # the same item goes back as the answer
            K[it + n + I_ROLE] = REPLY
            K[it + n + I_SLOT] = K[ot + argument * O_INTS + O_PG] * K[C_WIDTH]
            _send(F, K, i, now + F[G_NET])
        elif role == WRITE or role == TRIM_LOCAL:
            _part_done(F, K, argument)
            _release(F, K, i)
        else:
            _background_committed(F, K, i, role, argument, now)
        i = following


# background work -----------------------------------------------------------------------------------------------------


def _cost(F: Floats, K: Ints, size: float) -> float:
    """What an item of so many bytes costs its class."""
    least = F[G_COST_IO]
    return size if size > least else least


def _background_committed(F: Floats, K: Ints, i: int, role: int, task: int, now: float) -> None:
    """A recovered copy, or a batch of deletions, is durable."""
    it, ix, oi, ac, ti, tf, nc = K[IT], K[IX], K[OI], K[AC], K[TI], K[TF], K[NC]
    t = task * T_INTS
    primary = K[ti + t + T_PG] * K[C_WIDTH]
    if role == PUSH:
        n = i * I_INTS
        K[it + n + I_CLASS] = K[ti + t + T_CLASS]
        K[ti + t + T_PENDING] -= 1
        more = K[ti + t + T_PENDING] > 0
        if more and K[ti + t + T_TARGET] == 0 and K[ti + t + T_K] == 0:
            _pull(F, K, i, task, now)
            return
        if K[ti + t + T_TARGET] == 0 and not more:
            # what follows a pull is queued at the price of a push, also where no other copy is missing
            K[it + n + I_ROLE] = PULLED
            F[ix + i * I_FLOATS + X_COST] = F[tf + task * T_FLOATS + T_COST]
            _new(F, K, i)
            return
        K[it + n + I_ROLE] = PUSHED
        K[it + n + I_SLOT] = primary
        F[ix + i * I_FLOATS + X_COST] = F[G_COST_IO]
        _send(F, K, i, now + F[G_NET])
        return
    _release(F, K, i)
    done = K[ti + t + T_PENDING]
    K[ti + t + T_LEFT] -= done
    F[nc + K[ac + primary] * M_FLOATS + M_DELETED] += done
    if K[ti + t + T_LEFT] > 0:
        _delete_some(F, K, task)
    else:
        K[oi + K[ac + primary] * D_INTS + D_DELETES] -= 1
        K[ti + t + T_STATE] = FINISHED
        _start_tasks(F, K, DELETION, K[ac + primary], now)


def _delete_some(F: Floats, K: Ints, task: int) -> None:
    ti, tf = K[TI], K[TF]
    t = task * T_INTS
    count = K[ti + t + T_LEFT] if K[ti + t + T_LEFT] < DELETE_BATCH else DELETE_BATCH
    K[ti + t + T_PENDING] = count
    # T_PUSH_COST: the item has one price, whatever it deletes
    fixed = F[tf + task * T_FLOATS + T_PUSH_COST]
    cost = fixed if fixed > 0.0 else _cost(F, K, count * F[tf + task * T_FLOATS + T_COST])
    slot = K[ti + t + T_PG] * K[C_WIDTH]
    _new(
        F, K, _item(F, K, DELETE, K[ti + t + T_CLASS], slot, task, cost, count * F[G_TRIM_BYTES], count * F[G_TRIM_IOS])
    )


def _recovered(F: Floats, K: Ints, task: int, now: float) -> None:
    """An object has its copy; the next one can begin."""
    oi, ac, ti, tf, tl, tb, nc = K[OI], K[AC], K[TI], K[TF], K[TL], K[TB], K[NC]
    t = task * T_INTS
    osd = K[ac + K[ti + t + T_PG] * K[C_WIDTH]]
    K[oi + osd * D_INTS + D_RECOVERING] -= 1
    K[ti + t + T_LEFT] -= 1
    K[ti + t + T_QUEUED] = 0
    F[nc + osd * M_FLOATS + M_RECOVERED] += 1.0
    F[nc + osd * M_FLOATS + M_RECOVERED_BYTES] += F[tf + task * T_FLOATS + T_BYTES]
    if K[ti + t + T_KIND] == MISPLACED:
        F[nc + osd * M_FLOATS + M_BACKFILLED] += 1.0
    if K[ti + t + T_LEFT] == 0:
        _finish_task(F, K, task, now)
    else:
        _pump(F, K, task)
    # what another PG of this OSD could not begin for want of a place
    for kind in range(2):
        for place in range(K[tb + kind * (K[C_OSDS] + 1) + osd], K[tb + kind * (K[C_OSDS] + 1) + osd + 1]):
            other = K[tl + place]
            if K[ti + other * T_INTS + T_STATE] == RUNNING:
                _pump(F, K, other)


def _pump(F: Floats, K: Ints, task: int) -> None:
    """Begin with a PG's next object: one at a time (osd_recovery_max_single_start), osd_recovery_max_active per OSD."""
    oi, kn, ac, ti, tf = K[OI], K[KN], K[AC], K[TI], K[TF]
    t = task * T_INTS
    slot = K[ti + t + T_PG] * K[C_WIDTH]
    osd = K[ac + slot]
    most = K[kn + osd * N_INTS + N_RECOVERY_ACTIVE]
    if K[ti + t + T_START] > 0 and K[ti + t + T_QUEUED] == 0 and K[oi + osd * D_INTS + D_RECOVERING] < most:
        K[ti + t + T_QUEUED] = 1
        K[oi + osd * D_INTS + D_RECOVERING] += 1
        K[ti + t + T_PENDING] = K[ti + t + T_PARTS]
        cost = F[tf + task * T_FLOATS + T_COST]
        size = F[tf + task * T_FLOATS + T_BYTES] / K[ti + t + T_PARTS]
        _new(F, K, _item(F, K, RECOVER, K[ti + t + T_CLASS], slot, task, cost, size, 0.0))


def _finish_task(F: Floats, K: Ints, task: int, now: float) -> None:
    """A PG's recovery or scrub is over: its reservations go to others."""
    oi, ac, ti = K[OI], K[AC], K[TI]
    t = task * T_INTS
    slot, kind = K[ti + t + T_PG] * K[C_WIDTH], K[ti + t + T_KIND]
    K[ti + t + T_STATE] = FINISHED
    if kind == SCRUB:
        K[oi + K[ac + slot] * D_INTS + D_SCRUBS] -= 1
        for place in range(1, K[ti + t + T_SIZE]):
            K[oi + K[ac + slot + place] * D_INTS + D_REMOTE_SCRUBS] -= 1
        if K[ti + t + T_ENDLESS] == 1:
            K[ti + t + T_STATE] = WAITING
            K[ti + t + T_START] = K[ti + t + T_LEFT] = K[ti + t + T_TOTAL]
        return
    K[oi + K[ac + slot] * D_INTS + D_LOCAL] -= 1
    for place in range(1, K[ti + t + T_SIZE]):
        if kind == DEGRADED or place == K[ti + t + T_TARGET]:
            K[oi + K[ac + slot + place] * D_INTS + D_REMOTE] -= 1
    _schedule(F, K, now + F[G_HANDOVER], E_WORK, K[C_TASKS])


def _start_tasks(F: Floats, K: Ints, kind: int, osd: int, now: float) -> None:
    """Start what waits at an OSD, as far as reservations go; of scrubs one at a time."""
    oi, kn, ac, ti, tl, tb = K[OI], K[KN], K[AC], K[TI], K[TL], K[TB]
    d, n = osd * D_INTS, osd * N_INTS
    group = kind * (K[C_OSDS] + 1) + osd
    first, count = K[tb + group], K[tb + group + 1] - K[tb + group]
    for step in range(count):
        place = (K[oi + d + D_CURSOR + kind] + step) % count
        task = K[tl + first + place]
        t = task * T_INTS
        if K[ti + t + T_STATE] != WAITING:
            continue
        slot, size = K[ti + t + T_PG] * K[C_WIDTH], K[ti + t + T_SIZE]
        if kind == SNAPTRIM:
            if K[oi + d + D_TRIMS] >= K[kn + n + N_TRIMMING_PGS]:
                return
            K[oi + d + D_TRIMS] += 1
            K[ti + t + T_STATE] = RUNNING
            _trim_some(F, K, task)
        elif kind == DELETION:
            if K[oi + d + D_DELETES] >= K[kn + n + N_DELETES]:
                return
            K[oi + d + D_DELETES] += 1
            K[ti + t + T_STATE] = RUNNING
            _delete_some(F, K, task)
        elif kind == SCRUB:
            if not _scrub_allowed(F, K, slot, size):
                continue
            K[oi + d + D_SCRUBS] += 1
            for other in range(1, size):
                K[oi + K[ac + slot + other] * D_INTS + D_REMOTE_SCRUBS] += 1
            K[oi + d + D_CURSOR + kind] = (place + 1) % count
            K[ti + t + T_STATE] = RUNNING
            _scrub_chunk_begins(F, K, task)
            return
        else:
            if K[oi + d + D_LOCAL] >= K[kn + n + N_BACKFILLS]:
                return
            free = True
            for other in range(1, size):
                if kind == DEGRADED or other == K[ti + t + T_TARGET]:
                    at = K[ac + slot + other]
                    free = free and K[oi + at * D_INTS + D_REMOTE] < K[kn + at * N_INTS + N_BACKFILLS]
            if free:
                K[oi + d + D_LOCAL] += 1
                for other in range(1, size):
                    if kind == DEGRADED or other == K[ti + t + T_TARGET]:
                        K[oi + K[ac + slot + other] * D_INTS + D_REMOTE] += 1
                K[ti + t + T_STATE] = RUNNING
                _pump(F, K, task)


def _scrub_allowed(F: Floats, K: Ints, slot: int, size: int) -> bool:
    """Whether every OSD of a PG has a place for its scrub, and none recovers (osd_scrub_during_recovery)."""
    oi, kn, ac = K[OI], K[KN], K[AC]
    for place in range(size):
        osd = K[ac + slot + place]
        d = osd * D_INTS
        if K[oi + d + D_LOCAL] > 0 or K[oi + d + D_REMOTE] > 0:
            return False
        own, foreign = K[oi + d + D_SCRUBS], K[oi + d + D_REMOTE_SCRUBS]
        used = own + foreign if K[C_SHARED_SCRUBS] == 1 else (own if place == 0 else foreign)
        if used >= K[kn + osd * N_INTS + N_MAX_SCRUBS]:
            return False
    return True


def _scrub_chunk_begins(F: Floats, K: Ints, task: int) -> None:
    """The scrubber has chosen its next objects: an item that costs as much as they do, and does nothing yet."""
    kn, ac, ti, tf = K[KN], K[AC], K[TI], K[TF]
    t, f = task * T_INTS, task * T_FLOATS
    slot = K[ti + t + T_PG] * K[C_WIDTH]
    deep = F[tf + f + T_BYTES] > 0.0
    chunk = K[kn + K[ac + slot] * N_INTS + (N_CHUNK if deep else N_SHALLOW_CHUNK)]
    K[ti + t + T_CHUNK] = chunk if chunk < K[ti + t + T_LEFT] else K[ti + t + T_LEFT]
    K[ti + t + T_STAGE] = 0
    _new(F, K, _item(F, K, SCRUB_STEP, K[ti + t + T_CLASS], slot, task, _scrub_chunk_cost(F, K, task), 0.0, 0.0))


def _scrub_chunk_cost(F: Floats, K: Ints, task: int) -> float:
    """What a chunk costs. Where T_PUSH_COST is set, every item of a scrub has that one price."""
    ti, tf = K[TI], K[TF]
    each = F[tf + task * T_FLOATS + T_COST]
    if F[tf + task * T_FLOATS + T_PUSH_COST] > 0.0:
        return each
    return _cost(F, K, F[G_SCRUB_EVENT] + K[ti + task * T_INTS + T_CHUNK] * each)


def _scrub_step_cost(F: Floats, K: Ints, task: int) -> float:
    tf = K[TF]
    if F[tf + task * T_FLOATS + T_PUSH_COST] > 0.0:
        return F[tf + task * T_FLOATS + T_COST]
    return _cost(F, K, F[G_SCRUB_EVENT])


def _scrub_on(F: Floats, K: Ints, task: int, now: float) -> None:
    """A step of a scrub, or the last part of a chunk, is done: steps, then a chunk on every copy, then steps."""
    ti, tf = K[TI], K[TF]
    t, f = task * T_INTS, task * T_FLOATS
    slot, stage = K[ti + t + T_PG] * K[C_WIDTH], K[ti + t + T_STAGE] + 1
    K[ti + t + T_STAGE] = stage
    if stage == SCRUB_STEPS + 1:
        K[ti + t + T_PENDING] = K[ti + t + T_SIZE]
        for place in range(K[ti + t + T_SIZE]):
            cost = _scrub_step_cost(F, K, task) if place == 0 else _scrub_chunk_cost(F, K, task)
            count = float(K[ti + t + T_CHUNK])
            i = _item(F, K, SCRUB_CHUNK, K[ti + t + T_CLASS], slot + place, task, cost, 0.0, count)
            _next_object(F, K, i, F[tf + f + T_BYTES])
            if place == 0:
                _new(F, K, i)
            else:
                _send(F, K, i, now + F[G_NET])
    elif stage <= 2 * SCRUB_STEPS + 1:
        cost = _scrub_step_cost(F, K, task)
        _new(F, K, _item(F, K, SCRUB_STEP, K[ti + t + T_CLASS], slot, task, cost, 0.0, 0.0))
    else:
        K[ti + t + T_LEFT] -= K[ti + t + T_CHUNK]
        if K[ti + t + T_LEFT] > 0:
            _scrub_chunk_begins(F, K, task)
        else:
            _finish_task(F, K, task, now)


def _next_object(F: Floats, K: Ints, i: int, size: float) -> None:
    """Of a chunk's next object the strides to read (osd_deep_scrub_stride): their number and their length."""
    ix = K[IX]
    x = i * I_FLOATS
    strides = float(int((size + F[G_STRIDE] - 1.0) / F[G_STRIDE])) if size > 0.0 else 1.0
    F[ix + x + X_DONE] = strides
    F[ix + x + X_BYTES] = size / strides


def _scrub_read(F: Floats, K: Ints, i: int, osd: int, now: float) -> int:
    """A stride of an object is read: an object's next stride is queued anew, the next object comes at once."""
    it, ix, ti, tf, nc = K[IT], K[IX], K[TI], K[TF], K[NC]
    n, x = i * I_INTS, i * I_FLOATS
    task, slot = K[it + n + I_ARG], K[it + n + I_SLOT]
    t = task * T_INTS
    primary = K[ti + t + T_PG] * K[C_WIDTH]
    F[nc + osd * M_FLOATS + M_SCRUBBED_BYTES] += F[ix + x + X_BYTES]
    F[ix + x + X_DONE] -= 1.0
    if F[ix + x + X_DONE] > 0.5:
        F[ix + x + X_COST] = _scrub_step_cost(F, K, task)
        _new(F, K, i)
        return 0
    if slot == primary:
        F[nc + osd * M_FLOATS + M_SCRUBBED] += 1.0
    F[ix + x + X_IOS] -= 1.0
    if F[ix + x + X_IOS] > 0.5:
        _next_object(F, K, i, F[tf + task * T_FLOATS + T_BYTES])
        return 2
    if slot != primary:
        K[it + n + I_ROLE] = SCRUB_MAP
        K[it + n + I_SLOT] = primary
        K[it + n + I_CLASS] = HIGH
        _send(F, K, i, now + F[G_NET])
        return 0
    _release(F, K, i)
    K[ti + t + T_PENDING] -= 1
    if K[ti + t + T_PENDING] == 0:
        _scrub_on(F, K, task, now)
    return 0


def _trim_some(F: Floats, K: Ints, task: int) -> None:
    """Queue a PG's next snaptrim item."""
    kn, ac, ti, tf = K[KN], K[AC], K[TI], K[TF]
    t = task * T_INTS
    slot = K[ti + t + T_PG] * K[C_WIDTH]
    most = K[kn + K[ac + slot] * N_INTS + N_TRIMS]
    count = most if most < K[ti + t + T_LEFT] else K[ti + t + T_LEFT]
    K[ti + t + T_PENDING] = count
    # T_PUSH_COST: the item has one price, whatever it trims
    fixed = F[tf + task * T_FLOATS + T_PUSH_COST]
    # T_COST for a head and T_PULL_COST for a clone: the mean object of the PG, which has one head for each clone
    heads, clones = K[ti + t + T_TOTAL], K[ti + t + T_LEFT]
    whole = heads * F[tf + task * T_FLOATS + T_COST] + clones * F[tf + task * T_FLOATS + T_PULL_COST]
    cost = fixed if fixed > 0.0 else _cost(F, K, most * whole / (heads + clones))
    _new(F, K, _item(F, K, TRIM, K[ti + t + T_CLASS], slot, task, cost, 0.0, float(count)))


def _background_ends(F: Floats, K: Ints, i: int, role: int, osd: int, now: float) -> int:
    """A thread is through with an item of background work: what the thread does next.

    0: it is free; 1: it has a transaction to submit; 2: it goes on with the item; 3: it waits.
    """
    it, ix, oi, ti, tf = K[IT], K[IX], K[OI], K[TI], K[TF]
    n, x = i * I_INTS, i * I_FLOATS
    task = K[it + n + I_ARG]
    t, f = task * T_INTS, task * T_FLOATS
    more = role == PUSHED and K[ti + t + T_PENDING] > 0
    if role == RECOVER or more:
        if role == RECOVER:
            K[ti + t + T_START] -= 1
        if K[ti + t + T_K] > 0:
            others = K[ti + t + T_K] - 1
            op = _operation(F, K, task, K[ti + t + T_PG], EC_RECOVERY, others, now)
            _ec_reads(F, K, op, others, int(F[tf + f + T_READ_CLASS]), F[ix + x + X_BYTES], now)
            _release(F, K, i)
        elif K[ti + t + T_TARGET] == 0:
            _pull(F, K, i, task, now)
        else:
            _push(F, K, i, task, now)
        return 0
    if role == PULL:
        _push(F, K, i, task, now)
        return 0
    if role == PUSH:
        F[ix + x + X_IOS] = _requests(F, K, F[ix + x + X_BYTES])
        return 1
    if role == PUSHED or role == PULLED:
        _release(F, K, i)
        _recovered(F, K, task, now)
        return 0
    if role == SCRUB_CHUNK:
        return _scrub_read(F, K, i, osd, now)
    if role == SCRUB_MAP:
        _release(F, K, i)
        K[ti + t + T_PENDING] -= 1
        if K[ti + t + T_PENDING] == 0:
            _scrub_on(F, K, task, now)
        return 0
    if role == SCRUB_STEP:
        _release(F, K, i)
        _scrub_on(F, K, task, now)
        return 0
    if role == TRIM or role == TRIM_REPLICA:
        if K[oi + osd * D_INTS + D_SNAPS] > 0:
            _wait_for_snaps(F, K, i, osd)
            return 3
        if role == TRIM_REPLICA:
            K[oi + osd * D_INTS + D_SNAPS] += 1
            return 1
        _trim_clone(F, K, i, osd, now)
        if F[ix + x + X_IOS] > 0.5:
            return 2
        _release(F, K, i)
        return 0
    return 1


def _pull(F: Floats, K: Ints, i: int, task: int, now: float) -> None:
    """The primary itself lacks the copy: it asks the first replica for the next part of the object."""
    it, ix, ti, tf = K[IT], K[IX], K[TI], K[TF]
    n = i * I_INTS
    K[it + n + I_ROLE] = PULL
    K[it + n + I_SLOT] = K[ti + task * T_INTS + T_PG] * K[C_WIDTH] + 1
    cost = F[tf + task * T_FLOATS + T_PULL_COST]
    F[ix + i * I_FLOATS + X_COST] = cost
    if cost == 0.0:
        K[it + n + I_CLASS] = HIGH
    _send(F, K, i, now + F[G_NET])


def _push(F: Floats, K: Ints, i: int, task: int, now: float) -> None:
    """A part of the object is read: it goes to the OSD that lacks it."""
    it, ix, ti, tf = K[IT], K[IX], K[TI], K[TF]
    n, t = i * I_INTS, task * T_INTS
    K[it + n + I_ROLE] = PUSH
    K[it + n + I_SLOT] = K[ti + t + T_PG] * K[C_WIDTH] + K[ti + t + T_TARGET]
    cost = F[tf + task * T_FLOATS + T_PUSH_COST]
    F[ix + i * I_FLOATS + X_COST] = cost if cost > 0.0 else F[G_COST_IO]
    if cost == 0.0:
        K[it + n + I_CLASS] = HIGH
    _send(F, K, i, now + F[G_NET])


def _ec_reads(F: Floats, K: Ints, op: int, count: int, service: int, size: float, now: float) -> None:
    """Ask other shards of an erasure-coded object for their parts."""
    ot = K[OT]
    slot = K[ot + op * O_INTS + O_PG] * K[C_WIDTH]
    for place in range(1, count + 1):
        _send(F, K, _item(F, K, SUBREAD, service, slot + place, op, _cost(F, K, size), size, 0.0), now + F[G_NET])


def _background_operation_done(F: Floats, K: Ints, op: int, phase: int, now: float) -> None:
    """Clones are trimmed on every replica; an erasure-coded object is read; its stripe is ready to be written."""
    ot, ox, oi, ac, st, ti, tf, nc = K[OT], K[OX], K[OI], K[AC], K[ST], K[TI], K[TF], K[NC]
    owner, pg = K[ot + op * O_INTS + O_OWNER], K[ot + op * O_INTS + O_PG]
    slot = pg * K[C_WIDTH]
    if phase == EC_FIRST:
        size = F[ox + op * O_FLOATS + O_BYTES]
        K[ot + op * O_INTS + O_PHASE] = WRITING
        K[ot + op * O_INTS + O_PENDING] = K[st + owner * P_INTS + P_SIZE]
        _new(F, K, _item(F, K, WRITE, HIGH, slot, op, F[G_COST_IO], size, _requests(F, K, size)))
        return
    K[ot + op * O_INTS + O_NEXT] = K[C_FREE_OP]
    K[C_FREE_OP] = op
    t = owner * T_INTS
    if phase == EC_RECOVERY:
        size = F[tf + owner * T_FLOATS + T_BYTES] / K[ti + t + T_PARTS]
        _push(F, K, _item(F, K, PUSH, K[ti + t + T_CLASS], slot, owner, _cost(F, K, size), size, 0.0), owner, now)
        return
    osd = K[ac + slot]
    F[nc + osd * M_FLOATS + M_TRIMMED] += 1.0
    K[ti + t + T_LEFT] -= 1
    K[ti + t + T_PENDING] -= 1
    if K[ti + t + T_PENDING] > 0:
        return
    if K[ti + t + T_LEFT] > 0:
        _trim_some(F, K, owner)
    else:
        K[ti + t + T_STATE] = FINISHED
        K[oi + osd * D_INTS + D_TRIMS] -= 1
        _start_tasks(F, K, SNAPTRIM, osd, now)


# clients -------------------------------------------------------------------------------------------------------------


def _issue(F: Floats, K: Ints, stream: int, now: float) -> None:
    """A client's operation reaches the primary of its PG."""
    ot, ox, st, sf = K[OT], K[OX], K[ST], K[SF]
    p, q = stream * P_INTS, stream * Q_FLOATS
    pg = K[st + p + P_FIRST_PG] + int(_uniform(F, K) * K[st + p + P_PGS])
    reads = F[sf + q + Q_READS] > 0.0 and _uniform(F, K) < F[sf + q + Q_READS]
    size = F[sf + q + Q_BYTES]
    k = K[st + p + P_K]
    if k > 0:
        size /= k
    if reads:
        op = _operation(F, K, stream, pg, READING, 1, now)
        role = READ if k == 0 else EC_READ
        ios = 0.0
        cost = F[sf + q + Q_READ_COST]
    else:
        op = _operation(F, K, stream, pg, WRITING, K[st + p + P_SIZE], now)
        role = WRITE
        ios = _requests(F, K, size)
        cost = F[sf + q + Q_WRITE_COST]
        if k > 0 and K[st + p + P_PARTIAL] == 1:
            K[ot + op * O_INTS + O_PHASE] = EC_FIRST
            role = EC_READ
    F[ox + op * O_FLOATS + O_ISSUED] = now - F[G_NET]
    F[ox + op * O_FLOATS + O_BYTES] = size
    _new(F, K, _item(F, K, role, 0, pg * K[C_WIDTH], op, cost, size, ios))


def _bucket(latency: float) -> int:
    """A stream's bucket: PER_OCTAVE to each doubling, from 1 us on."""
    fraction, exponent = math.frexp(latency * 1e6)
    bucket = exponent * PER_OCTAVE + int((fraction - 0.5) * (2 * PER_OCTAVE))
    if bucket < 0:
        return 0
    return bucket if bucket < STREAM_BUCKETS else STREAM_BUCKETS - 1


def _completed(F: Floats, K: Ints, op: int, phase: int, now: float) -> None:
    """An operation is answered: count it, and let the client go on."""
    ot, ox, ac, st, sf, nc, ho, hs = K[OT], K[OX], K[AC], K[ST], K[SF], K[NC], K[HO], K[HS]
    o = op * O_INTS
    stream = K[ot + o + O_OWNER]
    osd = K[ac + K[ot + o + O_PG] * K[C_WIDTH]]
    K[ot + o + O_NEXT] = K[C_FREE_OP]
    K[C_FREE_OP] = op
    p, q, m = stream * P_INTS, stream * Q_FLOATS, osd * M_FLOATS
    seconds = now - F[ox + op * O_FLOATS + O_ARRIVED]
    kind = 0 if phase == READING else 1
    F[nc + m + M_READS + kind] += 1.0
    F[nc + m + M_READ_BYTES + kind] += F[sf + q + Q_BYTES]
    F[nc + m + M_READ_S + kind] += seconds
    exponent = math.frexp(seconds * 1e4)[1]
    exponent = 0 if exponent < 0 else (exponent if exponent < OSD_BUCKETS else OSD_BUCKETS - 1)
    K[ho + (osd * 2 + kind) * OSD_BUCKETS + exponent] += 1
    latency = now + F[G_NET] + F[sf + q + Q_LATENCY] - F[ox + op * O_FLOATS + O_ISSUED]
    K[hs + (stream * 2 + kind) * STREAM_BUCKETS + _bucket(latency)] += 1
    F[sf + q + Q_OPS] += 1.0
    F[sf + q + Q_SECONDS] += latency
    if K[st + p + P_OPEN] == DRAINS:
        _drained(F, K, stream, now)
        return
    if K[st + p + P_OPEN] == OPEN:
        if K[st + p + P_BACKLOG] == 0:
            K[st + p + P_FLYING] -= 1
            return
        K[st + p + P_BACKLOG] -= 1
    _turn(F, K, stream, now + 2.0 * F[G_NET] + F[sf + q + Q_LATENCY])


def _drained(F: Floats, K: Ints, stream: int, now: float) -> None:
    """One operation less is under way: a client that waited for a place, or for the last of them, goes on."""
    st, sf = K[ST], K[SF]
    p, q = stream * P_INTS, stream * Q_FLOATS
    K[st + p + P_FLYING] -= 1
    heard = now + 2.0 * F[G_NET] + F[sf + q + Q_LATENCY]
    if K[st + p + P_BACKLOG] == 1:
        K[st + p + P_BACKLOG] = 0
        _schedule(F, K, heard, E_ARRIVAL, stream)
    elif K[st + p + P_DRAINING] == 1 and K[st + p + P_FLYING] == 0:
        # the length of the pause was decided before it waited for this
        K[st + p + P_DRAINING] = 0
        _schedule(F, K, heard + F[sf + q + Q_PAUSE], E_ARRIVAL, stream)


def _catch_up(F: Floats, K: Ints, stream: int, now: float) -> None:
    """After its pause a client issues all that has come due meanwhile, and then waits until nothing is under way."""
    st, sf = K[ST], K[SF]
    p, q = stream * P_INTS, stream * Q_FLOATS
    due = F[sf + q + Q_DUE]
    while True:
        if K[st + p + P_FLYING] >= K[st + p + P_DEPTH]:
            K[st + p + P_BACKLOG] = 1
            break
        K[st + p + P_FLYING] += 1
        _issue(F, K, stream, now)
        due += _gap(F, K, stream)
        if due > now:
            F[sf + q + Q_PAUSE] = due - now
            K[st + p + P_DRAINING] = 1
            break
    F[sf + q + Q_DUE] = due


def _gap(F: Floats, K: Ints, stream: int) -> float:
    """Between two arrivals of a stream that has a rate."""
    sf, ex = K[SF], K[EX]
    place = K[C_EXPONENTIAL]
    K[C_EXPONENTIAL] = (place + 1) & (TABLE - 1)
    return F[ex + place] / F[sf + stream * Q_FLOATS + Q_RATE]


def _arrive(F: Floats, K: Ints, stream: int, now: float) -> None:
    """Open loop: an operation is due; it waits at the client where its queue depth is used up."""
    st = K[ST]
    p = stream * P_INTS
    if K[st + p + P_OPEN] == DRAINS:
        _catch_up(F, K, stream, now)
        return
    _schedule(F, K, now + _gap(F, K, stream), E_ARRIVAL, stream)
    if K[st + p + P_FLYING] < K[st + p + P_DEPTH]:
        K[st + p + P_FLYING] += 1
        _issue(F, K, stream, now)
    else:
        K[st + p + P_BACKLOG] += 1


# threads -------------------------------------------------------------------------------------------------------------


def _start(F: Floats, K: Ints, i: int, shard: int, now: float) -> None:
    """A thread takes an item; it holds its PG's lock until it is through with it."""
    it, ix, sh, lk, ti = K[IT], K[IX], K[SH], K[LK], K[TI]
    n, x = i * I_INTS, i * I_FLOATS
    role, slot = K[it + n + I_ROLE], K[it + n + I_SLOT]
    size = F[ix + x + X_BYTES]
    begin = F[lk + slot]
    begin = begin if begin > now else now
    if role <= SUBWRITE or role == PUSH or role == TRIM_REPLICA:
        end = begin + F[G_WRITE_CPU] + size * F[G_BYTE_CPU]
    elif role == REPLY or role == PUSHED or role == PULLED or role == SCRUB_STEP or role == SCRUB_MAP:
        end = begin + F[G_REPLY_CPU]
        if role == PUSHED and K[ti + K[it + n + I_ARG] * T_INTS + T_PENDING] > 0:
            # the answer to a part makes the primary read the next one
            end = _read(F, K, K[sh + shard * S_INTS + S_OSD], end + size * F[G_BYTE_CPU], size)
    elif role == TRIM:
        end = begin + F[G_WRITE_CPU] + F[G_TRIM_CPU]
    elif role == DELETE:
        end = begin + F[G_WRITE_CPU] + K[ti + K[it + n + I_ARG] * T_INTS + T_PENDING] * F[G_TRIM_CPU]
    else:
        end = begin + (F[G_SCAN_CPU] if role == SCRUB_CHUNK else F[G_READ_CPU])
        pulls = (
            role == RECOVER
            and K[ti + K[it + n + I_ARG] * T_INTS + T_TARGET] == 0
            and K[ti + K[it + n + I_ARG] * T_INTS + T_K] == 0
        )
        if size > 0.0 and not pulls:
            end = _read(F, K, K[sh + shard * S_INTS + S_OSD], end + size * F[G_BYTE_CPU], size)
    F[lk + slot] = end
    _schedule(F, K, end, E_THREAD, i)


def _choose_wpq(F: Floats, K: Ints, shard: int) -> int:
    """The class that Ceph's older queue serves, or -1: by priority, and rather the cheap (WeightedPriorityQueue.h)."""
    ix, sh = K[IX], K[SH]
    s = shard * S_INTS + S_HEAD
    total, filled, last = 0.0, 0, -1
    for c in range(REPLICAS + 1):
        if c != HIGH and K[sh + s + c] >= 0:
            total += F[G_PRIORITY + c]
            filled += 1
            last = c
    if filled <= 1:
        return last
    while True:
        left = _uniform(F, K) * total
        chosen = last
        for c in range(REPLICAS + 1):
            if c != HIGH and K[sh + s + c] >= 0:
                left -= F[G_PRIORITY + c]
                if left < 0.0:
                    chosen = c
                    break
        dearest = K[C_MAX_COST]
        if _uniform(F, K) * dearest <= dearest - 0.9 * F[ix + K[sh + s + chosen] * I_FLOATS + X_COST]:
            return chosen


def _enqueue(F: Floats, K: Ints, i: int, now: float) -> None:
    """An item joins its class in its shard."""
    it, ix, sh, sl = K[IT], K[IX], K[SH], K[SL]
    n = i * I_INTS
    shard, c = K[sl + K[it + n + I_SLOT]], K[it + n + I_CLASS]
    s = shard * S_INTS
    K[it + n + I_NEXT] = -1
    F[ix + i * I_FLOATS + X_ARRIVED] = now
    if K[C_WPQ] == 1:
        role = K[it + n + I_ROLE]
        if role == SUBWRITE or role == TRIM_REPLICA:
            c = REPLICAS
        elif role == SUBREAD:
            # its operation's priority
            c = 0
        cost = int(F[ix + i * I_FLOATS + X_COST])
        if c != HIGH and cost > K[C_MAX_COST]:
            K[C_MAX_COST] = cost
    elif c < HIGH:
        add(F, K, QUEUE_0 + shard, c, now, F[ix + i * I_FLOATS + X_COST])
    if K[sh + s + S_HEAD + c] < 0:
        K[sh + s + S_HEAD + c] = i
    else:
        K[it + K[sh + s + S_TAIL + c] * I_INTS + I_NEXT] = i
    K[sh + s + S_TAIL + c] = i
    K[C_EVENTS] += 1
    idle, asleep = K[sh + s + S_IDLE], K[sh + s + S_ASLEEP]
    if K[sh + s + S_QUEUED] == 0:
        K[sh + s + S_WOKEN] = idle
        K[sh + s + S_FIRST_LOOKS] = 1
        _dirty(F, K, shard)
    elif idle - asleep > K[sh + s + S_WOKEN] + K[sh + s + S_LOOKING]:
        # the line's first is woken, and stands last when it comes back
        K[sh + s + S_WOKEN] += 1
        if K[sh + s + S_FIRST] < 0 and K[sh + s + S_AHEAD] == 0:
            K[sh + s + S_FIRST_LOOKS] = 1
        elif K[sh + s + S_AHEAD] > 0:
            K[sh + s + S_AHEAD] -= 1
        _dirty(F, K, shard)
    K[sh + s + S_QUEUED] += 1


def _thread_free(F: Floats, K: Ints, shard: int, i: int, now: float) -> None:
    """A thread is through with its item and looks for the next one."""
    sh = K[SH]
    h = sh + shard * S_INTS
    K[h + S_IDLE] += 1
    K[h + S_LOOKING] += 1
    if K[h + S_FIRST] == i:
        K[h + S_FIRST] = -1
        K[h + S_FIRST_LOOKS] = 1
        taken = K[h + S_TAKEN]
        if taken >= 0:
            K[h + S_TAKEN] = -1
            _answer(F, K, taken, now)
    _dirty(F, K, shard)


def _dispatch(F: Floats, K: Ints, shard: int, now: float) -> None:
    """The threads of a shard that look take what the queue gives them; the others sleep, or wait for a moment."""
    it, ix, sh, sx, nc = K[IT], K[IX], K[SH], K[SX], K[NC]
    s = shard * S_INTS
    woken, asleep = K[sh + s + S_WOKEN], K[sh + s + S_ASLEEP]
    # who has slept longest is woken first
    K[sh + s + S_ASLEEP] = asleep - woken if asleep > woken else 0
    looking = woken + K[sh + s + S_LOOKING]
    looking = looking if looking < K[sh + s + S_IDLE] else K[sh + s + S_IDLE]
    first_looks, fresh, future = K[sh + s + S_FIRST_LOOKS] == 1, K[sh + s + S_FRESH] == 1, False
    K[sh + s + S_WOKEN] = K[sh + s + S_LOOKING] = K[sh + s + S_FIRST_LOOKS] = K[sh + s + S_FRESH] = 0
    while looking > 0:
        c = HIGH
        i = K[sh + s + S_HEAD + HIGH]
        if i < 0:
            if K[C_WPQ] == 1:
                c = _choose_wpq(F, K, shard)
                if c < 0:
                    break
                i = K[sh + s + S_HEAD + c]
            else:
                kind, c, when = choose(F, K, QUEUE_0 + shard, now)
                if kind == NONE:
                    break
                if kind == FUTURE:
                    planned = F[sx + shard * S_FLOATS + S_WAKE]
                    if planned <= now or when < planned:
                        if planned > now:
                            F[sx + shard * S_FLOATS + S_LATER] = planned
                        F[sx + shard * S_FLOATS + S_WAKE] = when
                        if when != F[sx + shard * S_FLOATS + S_LATER]:
                            _schedule(F, K, when, E_WAKE, shard)
                    looking, future = 0, True
                    break
                i = K[sh + s + S_HEAD + c]
                following = K[it + i * I_INTS + I_NEXT]
                arrived, price = 0.0, 0.0
                if following >= 0:
                    arrived = F[ix + following * I_FLOATS + X_ARRIVED]
                    price = F[ix + following * I_FLOATS + X_COST]
                take(F, K, QUEUE_0 + shard, kind, c, F[ix + i * I_FLOATS + X_COST], arrived, price)
        K[sh + s + S_HEAD + c] = K[it + i * I_INTS + I_NEXT]
        if c < HIGH:
            F[nc + K[sh + s + S_OSD] * M_FLOATS + M_WAIT + c] += now - F[ix + i * I_FLOATS + X_ARRIVED]
        free = first_looks and K[sh + s + S_FIRST] < 0
        if free and (K[sh + s + S_DURABLE] >= 0 or _uniform(F, K) * looking < 1.0):
            K[sh + s + S_FIRST] = i
            K[sh + s + S_TAKEN] = _durable(F, K, shard, fresh)
        K[sh + s + S_IDLE] -= 1
        K[sh + s + S_QUEUED] -= 1
        looking -= 1
        K[C_SERVED] += 1
        _start(F, K, i, shard, now)
    K[sh + s + S_ASLEEP] += looking
    if first_looks and K[sh + s + S_FIRST] < 0:
        # it comes back last, from its answers
        K[sh + s + S_AHEAD] = K[sh + s + S_IDLE] - 1
    if first_looks and K[sh + s + S_FIRST] < 0 and K[sh + s + S_DURABLE] >= 0:
        _answer(F, K, _durable(F, K, shard, fresh and future), now)


def _durable(F: Floats, K: Ints, shard: int, only_first: bool) -> int:
    """Take the list of durable transactions, or only the one that came first; -1 where there is none."""
    it, sh = K[IT], K[SH]
    h = sh + shard * S_INTS
    first = K[h + S_DURABLE]
    K[h + S_DURABLE] = -1
    if first >= 0 and only_first:
        K[h + S_DURABLE] = K[it + first * I_INTS + I_NEXT]
        K[it + first * I_INTS + I_NEXT] = -1
    return first


def _thread_ends(F: Floats, K: Ints, i: int, now: float) -> None:
    """A thread is through with an item."""
    it, ix, ot, ac, sl, st = K[IT], K[IX], K[OT], K[AC], K[SL], K[ST]
    n = i * I_INTS
    role, slot, argument = K[it + n + I_ROLE], K[it + n + I_SLOT], K[it + n + I_ARG]
    osd, shard = K[ac + slot], K[sl + slot]
    action = 1
    if role == WRITE:
        copies = K[ot + argument * O_INTS + O_PENDING]
        if copies > 1:
            size, ios = F[ix + i * I_FLOATS + X_BYTES], F[ix + i * I_FLOATS + X_IOS]
            for place in range(1, copies):
                _send(
                    F, K, _item(F, K, SUBWRITE, HIGH, slot + place, argument, F[G_COST_IO], size, ios), now + F[G_NET]
                )
    elif role == REPLY or role == READ:
        action = 0
        _part_done(F, K, argument)
        _release(F, K, i)
    elif role == SUBREAD:
        action = 0
        K[it + n + I_ROLE] = REPLY
        K[it + n + I_SLOT] = K[ot + argument * O_INTS + O_PG] * K[C_WIDTH]
        K[it + n + I_CLASS] = HIGH
        _send(F, K, i, now + F[G_NET])
    elif role == EC_READ:
        action = 0
        k = K[st + K[ot + argument * O_INTS + O_OWNER] * P_INTS + P_K]
        K[ot + argument * O_INTS + O_PENDING] = k - 1
        _ec_reads(F, K, argument, k - 1, HIGH, F[ix + i * I_FLOATS + X_BYTES], now)
        _release(F, K, i)
    elif role != SUBWRITE:
        action = _background_ends(F, K, i, role, osd, now)
        if action >= 2:
            if action == 2:
                _start(F, K, i, shard, now)
            return
    if action == 0 or _submit(F, K, i, osd, now):
        _thread_free(F, K, shard, i, now)


# the loops that Python calls -----------------------------------------------------------------------------------------


def _rare(F: Floats, K: Ints, event: int, index: int, now: float) -> None:
    """Events that come once a second or less: scrub ticks, work that begins, queues that forget."""
    ac, ti = K[AC], K[TI]
    if event == E_SCRUB:
        _schedule(F, K, now + SCRUB_TICK_S, E_SCRUB, index)
        if _uniform(F, K) >= F[G_BACKOFF]:
            _start_tasks(F, K, SCRUB, index, now)
    elif event == E_CLEAN:
        _clean(F, K, index, now)
    else:
        if index < K[C_TASKS]:
            # a task's own beginning
            kind = K[ti + index * T_INTS + T_KIND]
            K[ti + index * T_INTS + T_STATE] = WAITING
            if kind != SCRUB:
                _start_tasks(F, K, kind, K[ac + K[ti + index * T_INTS + T_PG] * K[C_WIDTH]], now)
        elif index > K[C_TASKS]:
            _renew_leases(F, K, index, now)
        else:
            # a place for recovery is free: recovery and backfill share them (osd_max_backfills)
            for kind in range(MISPLACED + 1):
                for osd in range(K[C_OSDS]):
                    _start_tasks(F, K, kind, osd, now)


def _renew_leases(F: Floats, K: Ints, index: int, now: float) -> None:
    """A pool's PGs, which became active together, tell their replicas that they live: small items, a burst of them.

    What they cost is nothing, but they wake threads where some wait for a class's moment, and so end a standstill:
    nobody asks, and answers lie beside a first thread that waits.
    """
    sh = K[SH]
    _schedule(F, K, now + LEASE_S, E_WORK, index)
    for shard in range(K[C_OSDS] * K[C_SHARDS]):
        h = sh + shard * S_INTS
        if K[h + S_QUEUED] > 0 and K[h + S_IDLE] > K[h + S_ASLEEP]:
            K[h + S_WOKEN] = K[h + S_IDLE]
            K[h + S_FIRST_LOOKS] = 1
            _dirty(F, K, shard)


def _clean(F: Floats, K: Ints, shard: int, now: float) -> None:
    """Once a minute, as the library does: classes idle for 5 minutes, and forgotten after 10."""
    mk = K[MK]
    _schedule(F, K, now + CLEAN_S, E_CLEAN, shard)
    base = shard * (MARKS + 1)
    marks, newest = base + 1, K[mk + base]
    K[mk + base] = newest + 1
    K[mk + marks + newest % MARKS] = K[(QUEUE_0 + shard) * INTS + TICK]
    erase_tick = K[mk + marks + (newest - 10) % MARKS] if newest >= 10 else 0
    idle_tick = K[mk + marks + (newest - 5) % MARKS] if newest >= 5 else 0
    clean(F, K, QUEUE_0 + shard, erase_tick, idle_tick)


def run(F: Floats, K: Ints, until: float) -> None:
    """Let time pass up to `until` (s); C_FULL is then 1 where the arrays were too small to go on."""
    ht, mt, mi, rt, rs, ot, sh, xq = K[HT], K[MT], K[MI], K[RT], K[RS], K[OT], K[SH], K[XQ]
    message_mask, turn_mask = K[C_MSG_MASK], K[C_TURN_MASK]
    while True:
        now = F[ht + 0] if K[C_HEAP] > 0 else math.inf
        source = 0
        if K[C_MSG_HEAD] < K[C_MSG_TAIL] and F[mt + (K[C_MSG_HEAD] & message_mask)] < now:
            now = F[mt + (K[C_MSG_HEAD] & message_mask)]
            source = 1
        if K[C_TURN_HEAD] < K[C_TURN_TAIL] and F[rt + (K[C_TURN_HEAD] & turn_mask)] < now:
            now = F[rt + (K[C_TURN_HEAD] & turn_mask)]
            source = 2
        if now > until:
            break
        # a free list hands out new places last, in their order, so its head tells how full it has become
        if K[C_FREE_ITEM] > K[C_ITEM_ROOM] or K[C_FREE_OP] > K[C_OP_ROOM] or K[C_HEAP] > K[C_HEAP_ROOM]:
            K[C_FULL] = 1
            return
        K[C_EVENTS] += 1
        if source == 1:
            _new(F, K, K[mi + (K[C_MSG_HEAD] & message_mask)])
            K[C_MSG_HEAD] += 1
        elif source == 2:
            stream = K[rs + (K[C_TURN_HEAD] & turn_mask)]
            K[C_TURN_HEAD] += 1
            _issue(F, K, stream, now)
        else:
            code = _next_event(F, K)
            event, index = code & 7, code >> 3
            if event == E_THREAD:
                _thread_ends(F, K, index, now)
            elif event == E_KV_START:
                _commit_begins(F, K, index, now)
            elif event == E_KV_DONE:
                _commit_ends(F, K, index, now)
            elif event == E_ARRIVAL:
                _arrive(F, K, index, now)
            elif event == E_WAKE:
                # all that wait for a moment
                K[sh + index * S_INTS + S_FIRST_LOOKS] = 1
                K[sh + index * S_INTS + S_LOOKING] = K[sh + index * S_INTS + S_IDLE] - K[sh + index * S_INTS + S_ASLEEP]
                _dirty(F, K, index)
            else:
                _rare(F, K, event, index, now)
        while K[C_NEW] + K[C_DIRTY] + K[C_DONE] > 0:
            done = K[C_DONE]
            for place in range(done):
                op = K[xq + 2 * SCRATCH + place]
                phase = K[ot + op * O_INTS + O_PHASE]
                if phase <= WRITING:
                    _completed(F, K, op, phase, now)
                else:
                    _background_operation_done(F, K, op, phase, now)
            K[C_DONE] = 0
            fresh = K[C_NEW]
            for place in range(fresh):
                _enqueue(F, K, K[xq + place], now)
            K[C_NEW] = 0
            shards = K[C_DIRTY]
            for place in range(shards):
                _dispatch(F, K, K[xq + SCRATCH + place], now)
            K[C_DIRTY] = 0
    F[G_NOW] = until


def drive(F: Floats, K: Ints, queues: int, requests: int, COST: Floats, WAIT: Floats) -> float:
    """The queues alone, for measuring: so many requests enter each in turn and are served; the time of the last.

    COST, WAIT: costs and gaps between arrivals, used in turn (lengths are powers of two). The classes take turns, and
    each keeps up to 8 requests waiting.
    """
    now, served = 1.0, 0
    cost_mask, wait_mask = len(COST) - 1, len(WAIT) - 1
    for n in range(requests):
        q = n % queues
        now += WAIT[n & wait_mask]
        f = q * INTS
        add(F, K, q, n % 3, now, COST[n & cost_mask])
        if K[f + COUNT] + K[f + COUNT + 1] + K[f + COUNT + 2] > 24:
            kind, c, when = choose(F, K, q, now)
            if kind == FUTURE:
                now = when
                kind, c, when = choose(F, K, q, now)
            if kind < FUTURE:
                served += 1
                take(F, K, q, kind, c, COST[n & cost_mask], now, COST[(n + 1) & cost_mask])
    return now + served
