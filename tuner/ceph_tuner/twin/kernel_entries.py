"""What Python calls of the compiled kernel: here addresses become what the kernel works on. Imports numba."""

from __future__ import annotations

from ceph_tuner.twin.kernel import dmclock, loop
from ceph_tuner.twin.kernel_types import numbers_at, queues_at, state_at

run_kernel, run_all_queues = loop.run, dmclock.run_queues


def run(state: int, until: float) -> None:
    """`loop.run`. `state`: where the addresses of its fields are."""
    run_kernel(state_at(state), until)


def run_queues(queues: int, count: int, requests: int, costs: int, gaps: int, length: int) -> float:
    """`dmclock.run_queues`."""
    return run_all_queues(queues_at(queues), count, requests, numbers_at(costs), numbers_at(gaps), length)
