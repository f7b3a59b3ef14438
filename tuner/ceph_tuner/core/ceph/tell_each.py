"""One command to many daemons. What one refuses, or does not answer in time, is its answer, and fails no other one's.

Runs inside ceph-mgr as well: standard library only.
"""

from __future__ import annotations

import itertools
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Callable, Collection, Dict, Iterable, Iterator, Mapping, Tuple, TypeVar, Union

from ceph_tuner.core.ceph.ports import Commander, ManyCommander, Told
from ceph_tuner.core.errors import ClusterTimeout, CommandFailed

AT_ONCE = 128
"""Commands under way over one connection: one in a hundred of ten thousand daemons may hang, and the others go on."""

T = TypeVar("T")


def tell_each(
    commander: Commander,
    daemons: Iterable[str],
    prefix: str,
    arguments: Mapping[str, str],
    within: float,
    keep: Collection[str] = (),
) -> Iterator[Tuple[str, Told]]:
    """As `ManyCommander.tell_each`; one after the other where the commander has no better way."""
    if isinstance(commander, ManyCommander):
        yield from commander.tell_each(daemons, prefix, arguments, within, keep)
        return
    for daemon in daemons:
        yield daemon, outcome(partial(commander.tell, daemon, prefix, arguments))


def by_threads(tell: Callable[[str], str], daemons: Iterable[str], at_once: int) -> Iterator[Tuple[str, Told]]:
    """What `tell` says of each daemon, so many of them at a time, in the order in which the answers come."""
    left = iter(daemons)
    waiting: Dict[Future[Told], str] = {}
    with ThreadPoolExecutor(at_once) as threads:
        while True:
            for daemon in itertools.islice(left, at_once - len(waiting)):
                waiting[threads.submit(outcome, partial(tell, daemon))] = daemon
            if not waiting:
                return
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                yield waiting.pop(future), future.result()


def outcome(call: Callable[[], T]) -> Union[T, CommandFailed, ClusterTimeout]:
    """What a call returns, or why it failed."""
    try:
        return call()
    except (CommandFailed, ClusterTimeout) as error:
        return error
