"""The threads of single pieces of work, so that a shutdown can wait for them."""

from __future__ import annotations

import threading
import time
from typing import Any, Callable, Set

_running: Set[threading.Thread] = set()


def begin(name: str, work: Callable[[], Any]) -> None:
    """Do some work in a thread of its own. Raises RuntimeError where there is no thread to be had."""

    def run() -> None:
        try:
            work()
        finally:
            _running.discard(threading.current_thread())

    thread = threading.Thread(target=run, name=name, daemon=True)
    _running.add(thread)
    try:
        thread.start()
    except RuntimeError:
        _running.discard(thread)
        raise


def join(end: float) -> None:
    """Wait until `end` (of `time.monotonic`) for those at work."""
    for thread in list(_running):
        thread.join(max(0.0, end - time.monotonic()))
