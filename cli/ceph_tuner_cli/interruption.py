"""How a command ends before its time."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Iterator

from ceph_tuner.core.ceph.uninterrupted import SIGNALS

INTERRUPTED = 130
"""Exit code: 128 and SIGINT, as of a shell; whichever signal it was."""


@contextmanager
def orderly_end() -> Iterator[None]:
    """SIGTERM and SIGHUP (a dropped ssh) end like Ctrl-C, so that what was begun is taken back.

    One of them strikes once: a shell that is hung up on sends its own after the kernel's, into the clearing up.
    """
    if threading.current_thread() is not threading.main_thread():
        # handlers run in the main thread alone
        yield
        return
    signals = (signal.SIGTERM, signal.SIGHUP)

    def interrupt(number: int, frame: object) -> None:
        for each in signals:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    # SIGINT is Python's own, and put back where a command has ignored it meanwhile
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number in signals:
        # nohup ignores SIGHUP, and that stays
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def stopped_by_signals() -> threading.Event:
    """Give an event that SIGTERM and SIGINT set from now on; for the main thread.

    An event that its own waiter sets from a handler may wait for itself for ever. The queue is made for handlers.
    """
    stop, numbers = threading.Event(), SimpleQueue[int]()

    def wait() -> None:
        numbers.get()
        stop.set()

    threading.Thread(target=wait, name="signals", daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda caught, _: numbers.put(caught))
    return stop
