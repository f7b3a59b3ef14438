"""Waits until something comes about that a cluster, a process or a thread does by itself."""

from __future__ import annotations

import time
from typing import Any, Callable, Tuple, Type


def until(
    holds: Callable[[], Any],
    seconds: float = 60.0,
    words: Callable[[], object] = lambda: "",
    *,
    pause: float = 0.2,
    despite: Tuple[Type[Exception], ...] = (),
) -> Any:
    """What `holds` gives once that is true. Where one of `despite` is raised, it is not true yet.

    Where looking takes long, as a program's start does on a busy machine, it pauses for as long: what is waited for
    needs the processors too.

    Raises AssertionError with the words, and the last of these errors, where it does not come about in time.
    """
    deadline, last = time.monotonic() + seconds, ""
    while True:
        begun = time.monotonic()
        try:
            if found := holds():
                return found
        except despite as fault:
            last = f" ({fault!r})"
        assert time.monotonic() < deadline, f"not within {seconds:g} s{last}: {words()}"
        time.sleep(max(pause, time.monotonic() - begun))
