"""How far long work on a cluster is: a line that moves on a terminal, else a line of text now and then."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import Callable, Iterator

from ceph_tuner.core.moments import utc_minute
from ceph_tuner_cli.render import messages, say, working

SAID_EVERY_S = 600.0
"""Without a terminal it is said so often; and at once where it begins to wait, waits for something else, or goes on."""
_NUMBER = re.compile(r"\d+(\.\d+)?")

Show = Callable[[str, float, int, int, str, str], None]
"""Takes the words, the time in seconds since the epoch, what is done, all there is to do, what it waits for, and which
objectives hold: these are said at the beginning, and where they become others."""


@contextmanager
def progress_line(cluster: str, doing: str) -> Iterator[Show]:
    """`doing` is shown until something is known."""
    said_at, waited, kept = float("-inf"), "", ""
    with working(f"{cluster}: {doing}") as tell:

        def show(words: str, at: float, done: int, total: int, waits_for: str, keeps: str) -> None:
            nonlocal said_at, waited, kept
            if keeps != kept:
                say([f"{utc_minute(at)} {keeps}"])
                kept = keeps
            tell(f"{cluster}: {words}", done, total)
            # the time that a rest has left is no news
            waits = _NUMBER.sub("0", waits_for)
            if at - said_at >= SAID_EVERY_S or (waits != waited and not messages.is_interactive):
                say([f"{utc_minute(at)} {words}"])
                said_at = at
            waited = waits

        yield show
