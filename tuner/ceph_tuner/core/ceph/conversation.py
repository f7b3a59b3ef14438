"""What a process says while it is told its input: as much as is wanted, within its time, and no more.

Runs inside ceph-mgr as well: standard library only.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from typing import IO, cast

LAST_WORDS = 64 << 10
"""Bytes of what it says beside its answer that are kept."""
_QUIET_S = 0.2
"""A process that has ended may have left its pipes to another one, which keeps them open: so long it is listened to."""


class Conversation:
    """Listens to a process that has pipes. Its input is given once; of its errors the last words are kept."""

    def __init__(self, process: subprocess.Popen[bytes], request: bytes, most: int) -> None:
        """`most`: bytes that its answer may have."""
        self.output, self.errors = bytearray(), bytearray()
        self._process, self._most = process, most
        self._left = memoryview(request)
        self._pipes = selectors.DefaultSelector()
        for stream, event in (
            (process.stdin, selectors.EVENT_WRITE),
            (process.stdout, selectors.EVENT_READ),
            (process.stderr, selectors.EVENT_READ),
        ):
            if stream is not None:
                os.set_blocking(stream.fileno(), False)
                self._pipes.register(stream, event, self.output if stream is process.stdout else self.errors)

    @property
    def too_much(self) -> bool:
        """Whether it said more than an answer is."""
        return len(self.output) > self._most

    def until(self, deadline: float) -> None:
        """Listen until it has closed its pipes or has ended, says too much, or time is up (by the monotonic clock)."""
        with self._pipes:
            while self._pipes.get_map() and not self.too_much and time.monotonic() < deadline:
                ended = self._process.poll() is not None
                ready = self._pipes.select(max(0.0, min(_QUIET_S, deadline - time.monotonic())))
                for key, event in ready:
                    over = self._tell(key.fd) if event & selectors.EVENT_WRITE else self._hear(key.fd, key.data)
                    if over:
                        self._pipes.unregister(key.fileobj)
                        if event & selectors.EVENT_WRITE:
                            cast("IO[bytes]", key.fileobj).close()
                if ended and not ready:
                    return

    def _tell(self, descriptor: int) -> bool:
        try:
            self._left = self._left[os.write(descriptor, self._left) :]
        except BlockingIOError:
            return False
        except OSError:
            # it ended, or reads no more: what it says tells more than that
            return True
        return not self._left

    def _hear(self, descriptor: int, buffer: bytearray) -> bool:
        try:
            part = os.read(descriptor, 1 << 16)
        except BlockingIOError:
            return False
        buffer += part
        if buffer is self.errors:
            # the last words are the ones that say why
            del buffer[: max(0, len(buffer) - LAST_WORDS)]
        return not part


def end_all(process: subprocess.Popen[bytes]) -> None:
    """End a process that leads a session of its own, with all that it has started there, and close its pipes."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()
