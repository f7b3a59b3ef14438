"""Calls that are carried out somewhere else, in processes of this machine or on a Dask cluster, each known by its key.

with ProcessWorkers() as workers:           # or DaskWorkers("tcp://scheduler:8786")
    for key, argument in work.items():
        workers.start(key, call, argument)
    for event in workers.events():          # as it happens; more may be started meanwhile
        ...

A worker that is lost costs the call that it was at: that begins anew elsewhere. A call that loses its worker again and
again is given up, and the others go on. What a call answers is its own matter: it gets its argument and no more.
Short calls, side by side on this machine alone, are for `processes/`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Callable, Iterator, Protocol, Sequence, TypeVar, Union

from ceph_tuner.core.errors import RetryLater

Argument = TypeVar("Argument")

Tell = Callable[[Any], None]
"""Sends plain data (texts, numbers, lists, dictionaries) from within a call to whoever listens."""

Call = Callable[[Argument, Tell], object]
"""A function of a module: it is found there by its name, wherever it runs."""

ATTEMPTS = 3
"""So many workers a call may lose."""


@dataclass(frozen=True)
class CallStart:
    """A worker is at it."""

    key: str
    where: str


@dataclass(frozen=True)
class CallMessage:
    """What the call says meanwhile."""

    key: str
    message: Any


@dataclass(frozen=True)
class WorkerLoss:
    """Its worker is gone; it begins anew."""

    key: str
    reason: str


@dataclass(frozen=True)
class CallResult:
    """The call has answered."""

    key: str
    result: Any


@dataclass(frozen=True)
class CallFailure:
    """It raised an error, or lost too many workers."""

    key: str
    reason: str


Event = Union[CallStart, CallMessage, WorkerLoss, CallResult, CallFailure]


class Workers(AbstractContextManager["Workers"], Protocol):
    """Somewhere that calls are carried out; leaving it ends whatever is still under way."""

    @property
    def place(self) -> str:
        """Where that is, in words."""

    @property
    def notes(self) -> Sequence[str]:
        """What makes it slower than it could be."""

    def start(self, key: str, call: Call[Argument], argument: Argument) -> None:
        """Begin a call as soon as there is a place."""

    def events(self) -> Iterator[Event]:
        """What happens, until every call that was started has ended or is given up. Raises WorkersGone."""


class WorkersGone(RetryLater):
    """There is nobody left to carry out what is under way."""

    next_step = "start it again; the same command goes on with what --output DIR does not have yet, here or there"
