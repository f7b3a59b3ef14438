"""One pool of processes for all that simulate: predictions, runs of a fit, runs of a search, published tables."""

from __future__ import annotations

from typing import Optional

from ceph_tuner.processes.process_pool import ProcessPool, import_ahead
from ceph_tuner.twin.model import ClusterModel, Device, OsdModel, Pool
from ceph_tuner.twin.simulation import Simulation

_PRELOAD = (__name__,)


def simulation_pool(processes: Optional[int] = None, niceness: int = 0) -> ProcessPool:
    """A pool whose workers have the compiled kernel. `processes`: None: one for each core; 1: this process alone."""
    return ProcessPool(processes, niceness, prepare=warm, preload=_PRELOAD)


def load_ahead() -> None:
    """Have what workers need imported in another process, while this one imports what it needs itself."""
    import_ahead(_PRELOAD)


def warm() -> None:
    """Run the kernel for a moment: here it is compiled where that is to be done, and workers find it in the cache."""
    Simulation(ClusterModel(1, OsdModel(Device(100.0, 1e6)), (Pool("a", 1, 1),)), {}).advance(0.001)
