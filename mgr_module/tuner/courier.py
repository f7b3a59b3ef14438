"""Sends every command from one thread that never ends.

When a command is done, Reef's mgr takes the thread state of the Python thread that sent it, and puts it back a moment
after that thread was woken (`MonCommandCompletion::finish`, `Gil::~Gil`). A thread that ends right then, as the one
that runs a module's command does, leaves it a freed state: with Python 3.13 the mgr dies of a segmentation fault
(seen on 18.2.7). Tentacle does not do this; one thread costs it nothing.
"""

from __future__ import annotations

import queue
import threading
from typing import Callable, Optional

from .proto import Mgr, Pending


class Courier:
    """Hands commands to the mgr, in the order in which they come."""

    def __init__(self, mgr: Mgr, new_result: Callable[[], Pending]) -> None:
        self._mgr, self._new_result = mgr, new_result
        self._waiting: queue.Queue[Callable[[], None]] = queue.Queue()
        self._thread: Optional[threading.Thread] = None
        self._starting = threading.Lock()

    def send(self, kind: str, name: str, command: str, payload: Optional[str]) -> Pending:
        """Send a command; the answer comes by the result that is returned."""
        result = self._new_result()

        def deliver() -> None:
            try:
                self._mgr.send_command(result, kind, name, command, "", payload)
            except Exception as error:
                result.complete(-5, "", f"{type(error).__name__}: {error}")

        self._start()
        self._waiting.put(deliver)
        return result

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="tuner-courier", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            self._waiting.get()()
