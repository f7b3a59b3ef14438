"""Makes the twin's machine code: ten seconds after a change of the kernel, else nothing.

Processes that want it meanwhile wait, in the place of making it as well.
"""

from __future__ import annotations

import fcntl
import tempfile
from pathlib import Path

from ceph_tuner.twin.model import ClusterModel, Device, OsdModel, Pool
from ceph_tuner.twin.simulation import Simulation


def main() -> None:
    """Have it compiled, or wait until it is."""
    with (Path(tempfile.gettempdir()) / "ceph-tuner-kernel.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        Simulation(ClusterModel(1, OsdModel(Device(1000.0, 1e8)), (Pool("rbd", 1, 1),)), {}).advance(1.0)


if __name__ == "__main__":
    main()
