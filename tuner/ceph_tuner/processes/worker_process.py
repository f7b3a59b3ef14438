"""How a worker process begins: by which means, with what loaded, and with which signals."""

from __future__ import annotations

import multiprocessing
import os
import signal
from typing import Any, Sequence

from ceph_tuner.core.ceph.interpreter import isolate_multiprocessing


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def process_context(preload: Sequence[str] = ()) -> Any:
    """How workers are started; modules of `preload` are imported once for all of them."""
    isolate_multiprocessing()
    # no fork of this process: it may have threads
    context = multiprocessing.get_context("forkserver" if os.name == "posix" else "spawn")
    if os.name == "posix":
        context.set_forkserver_preload(["__main__", *preload])
    return context


def begin_as_worker(niceness: int = 0) -> None:
    """What a worker does first."""
    # Ctrl-C reaches every process of the terminal
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if niceness:
        os.nice(niceness)
