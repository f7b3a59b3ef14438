"""Runs simulations of windows for a fit, in this process or on several cores, and counts them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import List, Optional, Sequence

from ceph_tuner.twin.observations import SimulatedRun, simulated
from ceph_tuner.twin.parameters import Array
from ceph_tuner.twin.simulation_pool import simulation_pool

NICENESS = 5
"""Added in the workers: a fit may run beside the cluster that it is about."""


class Runner(AbstractContextManager["Runner"]):
    """Gives the values of runs, in their order. `processes`: None for all cores, 1 for this process alone."""

    def __init__(self, processes: Optional[int] = 1) -> None:
        self._pool = simulation_pool(processes, NICENESS)
        self.runs = 0

    def __exit__(self, *_: object) -> None:
        self._pool.__exit__()

    def __call__(self, runs: Sequence[SimulatedRun]) -> List[Array]:
        """Values of each run's metrics."""
        self.runs += len(runs)
        if len(runs) < 2 * self._pool.count:
            # handing so few over takes longer than they do
            return [simulated(run) for run in runs]
        return list(self._pool.map(simulated, runs))
