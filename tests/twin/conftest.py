"""The compiled kernel, made once: tests side by side wait for the first one's machine code in numba's cache."""

from __future__ import annotations

import fcntl
import tempfile
from pathlib import Path

import pytest

from ceph_tuner.twin import compiled
from ceph_tuner.twin.model import ClusterModel, Device, OsdModel, Pool
from ceph_tuner.twin.simulation import Simulation


@pytest.fixture(scope="session")
def kernel_compiled() -> None:
    """The machine code is there: twenty seconds after a change of the kernel, else half a second."""
    if not compiled.available():
        pytest.skip("numba is not installed, or switched off")
    with (Path(tempfile.gettempdir()) / "ceph-tuner-kernel.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        Simulation(ClusterModel(1, OsdModel(Device(1000.0, 1e8)), (Pool("rbd", 1, 1),)), {}).advance(1.0)
