"""How a worker process begins: by which means, with what loaded, and with which signals."""

from __future__ import annotations

import multiprocessing
import os
import signal
from multiprocessing import forkserver, resource_tracker
from typing import Any, Sequence

from ceph_tuner.core.ceph.interpreter import isolate_multiprocessing


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def process_context(preload: Sequence[str] = ()) -> Any:
    """How workers are started. The process that they are forked from begins, and imports modules of `preload` once."""
    isolate_multiprocessing()
    if os.name != "posix":
        return multiprocessing.get_context("spawn")
    # no fork of this process: it may have threads
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["__main__", *preload])
    # first, as it unblocks Ctrl-C when it has begun
    resource_tracker.ensure_running()
    # an interpreter that starts dies of Ctrl-C with a page of words; this one and its children need none
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return context


def begin_as_worker(niceness: int = 0) -> None:
    """What a worker does first."""
    # Ctrl-C reaches every process of the terminal
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if niceness:
        os.nice(niceness)
