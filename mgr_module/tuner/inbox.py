"""What waits for the thread of an automatic mode: operators' commands and the optimiser's answers."""

from __future__ import annotations

import threading
from typing import Any, Deque, Tuple


class Inbox(Deque[Tuple[Any, threading.Event]]):
    """Events of a state machine, the oldest first, each with what is set once it was taken. Any thread may post."""

    def __init__(self) -> None:
        super().__init__()
        self.wake = threading.Event()
        """Set where there is something to do."""

    def post(self, event: Any) -> threading.Event:
        """Add an event; give what is set once it was taken."""
        completion = threading.Event()
        self.append((event, completion))
        self.wake.set()
        return completion
