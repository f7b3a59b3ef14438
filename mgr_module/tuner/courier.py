"""Sends every command from one thread, which does not end before each is answered.

When a command is done, Reef's mgr takes the thread state of the Python thread that sent it, and puts it back a moment
after that thread was woken (`MonCommandCompletion::finish`, `Gil::~Gil`). A thread that ends right then, as the one
that runs a module's command does, leaves it a freed state: with Python 3.13 the mgr dies of a segmentation fault
(seen on 18.2.7). Tentacle does not do this; one thread costs it nothing. A command that is never answered keeps the
thread, which sleeps.
"""

from __future__ import annotations

import errno
import queue
import threading
import time
from functools import partial
from typing import Callable, List, Optional

from .proto import Mgr, Pending

MOMENT_S = 0.05
"""Between an answer and the end of the thread that had sent the question."""


class Courier:
    """Hands commands to the mgr, in the order in which they come."""

    def __init__(self, mgr: Mgr, new_result: Callable[[], Pending]) -> None:
        self._mgr, self._new_result = mgr, new_result
        self._waiting: queue.Queue[Optional[Callable[[], None]]] = queue.Queue()
        self._sent: List[Pending] = []
        self._closed = False
        self._thread: Optional[threading.Thread] = None
        self._starting = threading.Lock()

    def send(self, kind: str, name: str, command: str, payload: Optional[str]) -> Pending:
        """Send a command; the answer comes by the result that is returned."""
        result = self._new_result()
        refuse = partial(result.complete, -errno.ESHUTDOWN, "", "the module is being shut down")
        if self._closed:
            refuse()
            return result

        def deliver() -> None:
            if self._closed:
                refuse()
                return
            self._sent = [each for each in self._sent if not each.ev.is_set()] + [result]
            try:
                self._mgr.send_command(result, kind, name, command, "", payload)
            except Exception as error:
                result.complete(-5, "", f"{type(error).__name__}: {error}")

        self._start()
        self._waiting.put(deliver)
        return result

    def close(self, end: float) -> None:
        """Send nothing more; wait until `end` (of `time.monotonic`) for the thread."""
        self._closed = True
        with self._starting:
            thread = self._thread
        if thread is not None:
            self._waiting.put(None)
            thread.join(max(0.0, end - time.monotonic()))

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="tuner-courier", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            deliver = self._waiting.get()
            if deliver is not None:
                deliver()
                continue
            for result in self._sent:
                result.ev.wait()
            # the mgr may put the state of this thread back just now
            time.sleep(MOMENT_S)
            return
