"""The dmClock queue of one OSD shard with its waiting requests, around the kernel."""

from __future__ import annotations

from collections import deque
from typing import Deque, NamedTuple, Tuple, Union

from ceph_tuner.twin.kernel import dmclock
from ceph_tuner.twin.kernel.dmclock import CLASSES
from ceph_tuner.twin.kernel.layout import new

IDLE_AGE_S, ERASE_AGE_S, CHECK_TIME_S = 300.0, 600.0, 60.0


class ServedRequest(NamedTuple):
    """A request left the queue, by `reservation` or by `weight`."""

    id: int
    class_id: int
    phase: str


class Later(NamedTuple):
    """Nothing may be served yet; ask again at this time (s)."""

    future: float


Answer = Union[ServedRequest, Later, None]
"""None where the queue is empty, or holds only what can never be served."""


def _class(class_id: int) -> int:
    if not 0 <= class_id < CLASSES:
        raise ValueError(f"class(={class_id}) must be 0 (client), 1 (recovery) or 2 (best effort)")
    return class_id


class DmClockQueue:
    """Requests of the three classes, served as Ceph serves them. Times in seconds, costs in bytes."""

    def __init__(self) -> None:
        self._queue = new(dmclock.Queue)
        for own in self._queue.classes:
            own.idle = 1
        self._waiting: Tuple[Deque[Tuple[int, float, float]], ...] = (deque(), deque(), deque())
        self._marks: Deque[Tuple[float, int]] = deque()

    def __len__(self) -> int:
        return sum(len(requests) for requests in self._waiting)

    def set_class(self, class_id: int, reservation: float, weight: float, limit: float) -> None:
        """Change a class's parameters (bytes/s, none, bytes/s); 0 means none. Tags already computed stay."""
        for name, value in (("reservation", reservation), ("weight", weight), ("limit", limit)):
            if not 0 <= value < float("inf"):
                raise ValueError(f"{name}(={value}) must be 0 or more and finite")
        dmclock.set_class(self._queue.classes[_class(class_id)], reservation, weight, limit)

    def add(self, time: float, request_id: int, class_id: int, cost: float) -> None:
        """A request enters at `time`."""
        if not 0 < cost < 2**32:
            raise ValueError(f"cost(={cost}) must be between 1 and 2^32 - 1 bytes")
        self._waiting[_class(class_id)].append((request_id, time, cost))
        dmclock.add(self._queue, class_id, time, cost)

    def pull(self, now: float) -> Answer:
        """The request to serve at `now`, or when to ask again, or None."""
        kind, class_id, when = dmclock.choose(self._queue, now)
        if kind == dmclock.NONE:
            return None
        if kind == dmclock.FUTURE:
            return Later(float(when))
        requests = self._waiting[class_id]
        request_id, _, cost = requests.popleft()
        following = requests[0] if requests else (0, 0.0, 0.0)
        dmclock.take(self._queue, kind, class_id, cost, following[1], following[2])
        return ServedRequest(request_id, int(class_id), "reservation" if kind == dmclock.BY_RESERVATION else "weight")

    def clean(self, now: float) -> None:
        """Every CHECK_TIME_S, as the library does: quiet classes lose their place in the proportions, old ones go."""
        self._marks.append((now, self._queue.tick))
        erase_tick = 0
        while self._marks and self._marks[0][0] <= now - ERASE_AGE_S:
            erase_tick = self._marks.popleft()[1]
        idle_tick = 0
        for marked, tick in self._marks:
            if marked > now - IDLE_AGE_S:
                break
            idle_tick = tick
        dmclock.clean(self._queue, erase_tick, idle_tick)
