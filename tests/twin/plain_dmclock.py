"""dmClock as Ceph runs it, in plain Python: one object a class, three binary heaps, nothing optimised.

It follows dmclock_server.h (PullPriorityQueue with delayed tags, dynamic client information, AtLimit::Wait, two
children a node) rule by rule, to hold the kernel to it.
"""

from __future__ import annotations

import math
from typing import Callable, Dict, List, Optional, Tuple

NEVER, ALWAYS = math.inf, -math.inf


class Request:
    def __init__(self, number: int, arrival: float, cost: float) -> None:
        self.number, self.arrival, self.cost = number, arrival, cost
        self.reservation = self.proportion = self.limit = 0.0
        self.ready = False


class Client:
    def __init__(self, number: int) -> None:
        self.number = number
        self.previous = {"reservation": 0.0, "proportion": 0.0, "limit": 0.0}
        self.requests: List[Request] = []
        self.delta, self.idle = 0.0, True

    @property
    def head(self) -> Optional[Request]:
        return self.requests[0] if self.requests else None


class Heap:
    def __init__(self, precedes: Callable[[Client, Client], bool]) -> None:
        self.nodes: List[Client] = []
        self._precedes = precedes

    def push(self, client: Client) -> None:
        self.nodes.append(client)
        self.up(client)

    def up(self, client: Client) -> None:
        place = self.nodes.index(client)
        while place and self._precedes(client, self.nodes[(place - 1) // 2]):
            self._swap(place, (place - 1) // 2)
            place = (place - 1) // 2

    def down(self, client: Client) -> None:
        place = self.nodes.index(client)
        while True:
            best = place
            for child in (2 * place + 1, 2 * place + 2):
                if child < len(self.nodes) and self._precedes(self.nodes[child], self.nodes[best]):
                    best = child
            if best == place:
                return
            self._swap(place, best)
            place = best

    def adjust(self, client: Client) -> None:
        place = self.nodes.index(client)
        if place and self._precedes(client, self.nodes[(place - 1) // 2]):
            self.up(client)
        else:
            self.down(client)

    def _swap(self, one: int, other: int) -> None:
        self.nodes[one], self.nodes[other] = self.nodes[other], self.nodes[one]


def _by(tag: str, ready_first: Optional[bool]) -> Callable[[Client, Client], bool]:
    def precedes(one: Client, other: Client) -> bool:
        if one.head is None or other.head is None:
            return one.head is not None
        if ready_first is not None and one.head.ready != other.head.ready:
            return one.head.ready is ready_first
        shift = (one.delta, other.delta) if tag == "proportion" else (0.0, 0.0)
        return bool(getattr(one.head, tag) + shift[0] < getattr(other.head, tag) + shift[1])

    return precedes


class PlainDmClock:
    """Answers of `pull`: (number, class, phase), a time to ask again, or None."""

    def __init__(self) -> None:
        self.rates: Dict[int, Tuple[float, float, float]] = {}
        self.clients: Dict[int, Client] = {}
        self.reservations = Heap(_by("reservation", None))
        self.limits = Heap(_by("limit", False))
        self.proportions = Heap(_by("proportion", True))
        self._heaps = (self.reservations, self.limits, self.proportions)

    def set_class(self, number: int, reservation: float, weight: float, limit: float) -> None:
        self.rates[number] = (reservation, weight, limit)

    def add(self, time: float, number: int, class_id: int, cost: float) -> None:
        client = self.clients.get(class_id)
        if client is None:
            client = self.clients[class_id] = Client(class_id)
            for heap in self._heaps:
                heap.push(client)
        if client.idle:
            others = [other for other in self.clients.values() if not other.idle]
            lowest = min(
                ((other.head.proportion if other.head else other.previous["proportion"]) + other.delta
                 for other in others), default=math.inf)  # fmt: skip
            if lowest < 1.7976931348623157e308 / 3:
                client.delta = lowest - time
            client.idle = False
        request = Request(number, time, cost)
        if not client.requests:
            self._tag(client, request, client.previous)
        client.requests.append(request)
        for _ in range(2 if len(client.requests) == 1 else 1):
            for heap in self._heaps:
                heap.adjust(client)

    def pull(self, now: float) -> object:
        if not self.clients:
            return None
        first = self.reservations.nodes[0]
        if first.head is not None and first.head.reservation <= now:
            return (*self._serve(first, self.reservations), "reservation")
        limited = self.limits.nodes[0]
        while limited.head is not None and not limited.head.ready and limited.head.limit <= now:
            limited.head.ready = True
            self.proportions.up(limited)
            self.limits.down(limited)
            limited = self.limits.nodes[0]
        ready = self.proportions.nodes[0]
        if ready.head is not None and ready.head.ready and ready.head.proportion < NEVER:
            inverse, cost = self._inverses(ready)[0], ready.head.cost
            answer = self._serve(ready, self.proportions)
            if ready.head is not None:
                ready.head.reservation -= inverse * cost
            ready.previous["reservation"] -= inverse * cost
            self.reservations.up(ready)
            return (*answer, "weight")
        times = [first.head.reservation] if first.head is not None else []
        times += [limited.head.limit] if limited.head is not None else []
        when = min([time for time in times if time != 0.0], default=math.inf)
        return when if when < math.inf else None

    def _serve(self, client: Client, heap: Heap) -> Tuple[int, int]:
        served = client.requests.pop(0)
        if client.head is not None:
            before = {name: getattr(served, name) for name in client.previous}
            self._tag(client, client.head, before)
        self.reservations.down(client)
        self.limits.adjust(client)
        self.proportions.down(client)
        return served.number, client.number

    def _inverses(self, client: Client) -> Tuple[float, ...]:
        return tuple(1.0 / rate if rate else 0.0 for rate in self.rates.get(client.number, (0.0, 0.0, 0.0)))

    def _tag(self, client: Client, request: Request, before: Dict[str, float]) -> None:
        names = ("reservation", "proportion", "limit")
        for name, inverse, none in zip(names, self._inverses(client), (NEVER, NEVER, ALWAYS)):
            tag = none if inverse == 0.0 else max(request.arrival, before[name] + inverse * request.cost)
            setattr(request, name, tag)
            if math.isfinite(tag):
                client.previous[name] = tag
