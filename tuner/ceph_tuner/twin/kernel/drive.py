"""A drive: one line for requests and bytes, or budgets of both in slices; latencies; or a disk with its one head."""

from __future__ import annotations

import math

from ceph_tuner.twin.kernel.events import schedule, spread, uniform
from ceph_tuner.twin.kernel.osd_records import DriveBudget, Prices
from ceph_tuner.twin.kernel.records import (
    COMMITS,
    DEFERRED_WRITTEN,
    ORDERED,
    READS,
    WRITES,
)
from ceph_tuner.twin.kernel.state import SimulationState

PATIENCE_S = 1.0
"""For how long at most a disk passes a request over for others that are nearer."""

STAYS_BUSY = 0.7
"""Of the time that a disk has been busy for, what it is expected to stay so at most."""

MOST_OF_A_TURN = 0.99
"""Beyond this a longer way is no longer: what is nearer always comes first."""


def transfer(state: SimulationState, osd: int, use: int, now: float, ios: float, size: float) -> float:
    """When a drive's budget lets a request through that arrives now, in the order of arrival; a disk's is then done."""
    own = state.osds[osd]
    prices = own.prices[use]
    budget = own.budgets[prices.budget]
    if prices.disk == 1:
        return under_head(state, budget, prices, now, ios, size, use == COMMITS)
    if prices.slice_s == 0.0:
        # what is behind takes its request's share of the rate, or its bytes'
        by_ios, by_bytes = ios * prices.s_per_io, size * prices.s_per_byte
        at = budget.free_at_s
        at = (at if at > now else now) + (by_ios if by_ios > by_bytes else by_bytes)
        budget.free_at_s = at
    else:
        at = in_slices(budget, prices, now, ios, size)
    last = budget.last_at_s
    at = at if at > last else last
    budget.last_at_s = at
    return at


def under_head(
    state: SimulationState, budget: DriveBudget, prices: Prices, now: float, ios: float, size: float, commit: bool
) -> float:
    """When a disk's head is done with a request: its way there, the shorter the more wait, and its transfer.

    As one request ends, the drive chooses among those that wait, and as many as its queue holds. Of deferred writes a
    batch comes at once, so a request that comes meanwhile waits until those before its place are done: any number of
    these, and all that the queue does not hold.
    """
    at = budget.free_at_s
    at = at if at > now else now
    until = budget.deferred_until_s
    deferred = until > at
    way_s = state.parameters.way_s
    pending, others, ordered_s = (until if deferred else at) - now, 0, 0.0
    if deferred:
        while others < ORDERED and ordered_s < pending:
            others += 1
            ordered_s += way_s[others]
    else:
        while others < ORDERED and budget.done_at_s[(budget.newest - others) % ORDERED] > now:
            others += 1
    # a turn and the distance are chance
    chance, apart_s = 0.5 + uniform(state), state.parameters.log_way_s
    way = way_s[others if others > 0 else 1] * chance
    if pending == 0.0:
        budget.busy_since_s = now
        at_log = budget.at_log == 1
        if commit and at_log:
            # the log goes on where the last commit ended, and that place comes round once a turn
            turn_s = state.parameters.turn_s
            way = turn_s - (now - budget.free_at_s) % turn_s
        elif apart_s > 0.0 and commit != at_log:
            way = apart_s * chance
    taken = ios * way + size * prices.s_per_byte
    if pending > 0.0 and commit and apart_s > 0.0:
        return _among_others(state, budget, now, at, taken, others)
    if deferred:
        left = until - at
        outside = left - ordered_s
        outside = outside if others == ORDERED and outside > 0.0 else 0.0
        passed = uniform(state)
        for _ in range(1, int(ios)):
            # each begins when the one before is done
            passed += (1.0 - passed) * uniform(state)
        at += outside + passed * (left - outside)
        budget.deferred_until_s = until + taken
    at += taken
    _remember(budget, at)
    budget.at_log = 1 if commit else 0
    return at


def _remember(budget: DriveBudget, at: float) -> None:
    """A disk's head has done all requests but deferred writes at that time."""
    budget.free_at_s = at
    budget.newest += 1
    budget.done_at_s[budget.newest % ORDERED] = at


def _among_others(
    state: SimulationState, budget: DriveBudget, now: float, at: float, taken: float, others: int
) -> float:
    """When a commit is done whose place is away from that of other requests.

    Deferred writes are nearer to each other, and all come first. Of other requests one is under way. As it ends, the
    drive takes whichever is done soonest. When a place comes round is chance, so the commit would have the chance of
    each that waits; it is less by the part of a turn that the head is longer on its way to the log. One that is done is
    followed by another, and nobody knows for how long: the disk is expected to stay busy for a part of the time that it
    has been.
    """
    if budget.deferred_until_s > at:
        waits = budget.deferred_until_s - now
        budget.deferred_until_s += taken
    else:
        busy, pending = STAYS_BUSY * (now - budget.busy_since_s), at - now
        waits = budget.done_at_s[(budget.newest - others + 1) % ORDERED] - now
        if others > 1:
            longer = (state.parameters.log_way_s - state.parameters.way_s[1]) / state.parameters.turn_s
            longer = 0.0 if longer < 0.0 else (longer if longer < MOST_OF_A_TURN else MOST_OF_A_TURN)
            chance = (1.0 - longer) ** others / others
            lost = math.log(1.0 - uniform(state)) / math.log1p(-chance)
            waits += (lost - lost % 1.0) * (pending - waits) / (others - 1)
        longest = busy if busy > pending else pending
        waits = waits if waits < longest else longest
        _remember(budget, at + taken)
    budget.at_log = 1
    return now + (waits if waits < PATIENCE_S else PATIENCE_S) + taken


def write_deferred(state: SimulationState, osd: int, now: float) -> None:
    """All deferred writes of an OSD go to their places (BlueStore::deferred_try_submit).

    Those with a new place have it next to each other: together they are one request.
    """
    own, way_s = state.osds[osd], state.parameters.way_s
    budget = own.budgets[own.prices[WRITES].budget]
    at = budget.free_at_s
    at = at if at > now else now
    at = at if at > budget.deferred_until_s else budget.deferred_until_s
    runs = 1 if own.deferred_aside > 0 else 0
    for left in range(own.deferred_writes - own.deferred_aside + runs, 0, -1):
        share = 1.0 if left > runs else state.parameters.aside_share
        waiting = left + own.deferred_on_way
        at += share * way_s[waiting if waiting < ORDERED else ORDERED]
    budget.deferred_until_s = at
    budget.at_log = 0
    if state.parameters.flushes == 1:
        own.unflushed = 1
        own.deferred_held -= own.deferred_writes
    else:
        if own.deferred_on_way == 0:
            schedule(state, now + (at - now) / own.deferred_writes, DEFERRED_WRITTEN, osd)
        own.deferred_on_way += own.deferred_writes
    own.deferred_writes = own.deferred_aside = 0
    own.deferred_sent_at_s = now


def in_slices(budget: DriveBudget, prices: Prices, now: float, ios: float, size: float) -> float:
    """The kernel's block throttle (blk-throttle.c): a slice's whole budget may be used at its beginning.

    A request of several I/Os goes through with its last one. Requests wait for the slice in which their I/Os fit, and
    for the moment at which their bytes do, if that lies beyond the current slice.
    """
    length, per_io, per_byte = prices.slice_s, prices.s_per_io, prices.s_per_byte
    last, start = budget.last_at_s, budget.slice_began_s
    used_ios, used_bytes = budget.slice_ios, budget.slice_bytes
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
    budget.slice_began_s = start
    budget.slice_ios = used_ios
    budget.slice_bytes = used_bytes
    return at


def read(state: SimulationState, osd: int, now: float, size: float) -> float:
    """When a read that starts now has its data."""
    done = transfer(state, osd, READS, now, requests(state, size), size)
    return done + spread(state, state.osds[osd].prices[READS].latency_s)


def requests(state: SimulationState, size: float) -> float:
    """I/Os that so many bytes take."""
    largest = state.parameters.request_bytes
    if size <= largest:
        return 1.0
    return float(int((size + largest - 1.0) / largest))
