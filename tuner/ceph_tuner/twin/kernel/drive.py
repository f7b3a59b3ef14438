"""A drive: budgets of requests and bytes, continuous or in slices, and latencies."""

from __future__ import annotations

from ceph_tuner.twin.kernel.events import spread
from ceph_tuner.twin.kernel.records import DriveBudget, Prices
from ceph_tuner.twin.kernel.state import SimulationState


def transfer(budget: DriveBudget, prices: Prices, now: float, ios: float, size: float) -> float:
    """When a drive's budget lets a request through that arrives now, in the order of arrival."""
    if prices.slice_s == 0.0:
        at = budget.ios_free_at_s
        at = (at if at > now else now) + ios * prices.s_per_io
        budget.ios_free_at_s = at
        until = budget.bytes_free_at_s
        until = (until if until > now else now) + size * prices.s_per_byte
        budget.bytes_free_at_s = until
        at = at if at > until else until
    else:
        at = in_slices(budget, prices, now, ios, size)
    last = budget.last_at_s
    at = at if at > last else last
    budget.last_at_s = at
    return at


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
    own = state.osds[osd]
    prices = own.prices[1]
    done = transfer(own.budgets[state.parameters.read_budget], prices, now, requests(state, size), size)
    return done + spread(state, prices.latency_s)


def requests(state: SimulationState, size: float) -> float:
    """I/Os that so many bytes take."""
    largest = state.parameters.request_bytes
    if size <= largest:
        return 1.0
    return float(int((size + largest - 1.0) / largest))
