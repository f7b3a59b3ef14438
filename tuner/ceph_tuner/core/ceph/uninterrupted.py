"""What an interrupt must not cut short: cleaning up, and starting processes that somebody has to end."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import Iterator, List

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold interrupts back until the end, where the first one strikes. What runs within needs time limits of its own.

    By handlers, not by a signal mask: a mask would be inherited by an OSD that is started within, and a signal to the
    process would reach another of its threads.
    """
    if threading.current_thread() is not threading.main_thread():
        # handlers run in the main thread alone
        yield
        return
    pending: List[int] = []
    before = {number: signal.signal(number, lambda caught, _: pending.append(caught)) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if pending:
            signal.raise_signal(pending[0])
