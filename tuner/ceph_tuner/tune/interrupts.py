"""SIGINT, SIGTERM and SIGHUP, held back wherever settings are being written or taken back."""

from __future__ import annotations

import contextlib
import signal
from types import FrameType
from typing import Callable, Dict, Iterator, Optional, Union

from ceph_tuner.core.ceph.uninterrupted import SIGNALS

_Handler = Union[Callable[[int, Optional[FrameType]], object], int, signal.Handlers, None]


class Interrupts:
    """A context manager for the main thread; calling it gives the regions in which an interrupt strikes.

    One interrupt is raised, once: while its consequences are cleaned up, further ones are only answered by `notice`.
    """

    def __init__(self, notice: Callable[[], None] = lambda: None) -> None:
        self._notice = notice
        self._before: Dict[int, _Handler] = {}
        self._pending, self._open = False, 0

    def __enter__(self) -> Interrupts:
        for number in SIGNALS:
            # nohup ignores SIGHUP, and that stays
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        """Within this context an interrupt raises KeyboardInterrupt; one that waits is raised at its beginning."""
        self._open += 1
        try:
            self._raise_pending()
            yield
        finally:
            self._open -= 1

    @property
    def pending(self) -> bool:
        """Whether an interrupt waits to be raised."""
        return self._pending

    def _handle(self, number: int, frame: Optional[FrameType]) -> None:
        self._pending = True
        # a write to a stream that was just being written to is refused ("reentrant call")
        with contextlib.suppress(RuntimeError):
            self._notice()
        if self._open:
            self._raise_pending()

    def _raise_pending(self) -> None:
        if self._pending:
            self._pending = False
            raise KeyboardInterrupt
