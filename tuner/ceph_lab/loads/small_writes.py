"""Small writes to many PGs of the lab's own pool, by Ceph's bench: a client for whoever looks at the OSDs meanwhile."""

from __future__ import annotations

import subprocess
import time
from contextlib import contextmanager
from typing import Iterator, Optional

from ceph_lab.cluster import Lab

DAY_S = 86_400
REMOVAL_S = 60.0
"""How long the bench may take to end and to remove its objects."""


@contextmanager
def small_writes(lab: Lab, seconds: Optional[int] = None, depth: int = 32, settle_s: float = 2.0) -> Iterator[None]:
    """Write, `depth` at a time, from `settle_s` before.

    For so many seconds, after which the objects are removed; None: as long as the block lasts, and the objects stay.
    """
    command = ["rados", "bench", "-p", "rbd", str(seconds or DAY_S), "write", "-b", "4096", "-t", str(depth)]
    if seconds is None:
        command.append("--no-cleanup")
    with subprocess.Popen(lab.argv(command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as bench:
        try:
            time.sleep(settle_s)
            yield
        finally:
            if seconds is None:
                bench.terminate()
        if seconds is not None:
            bench.wait(seconds + REMOVAL_S)
