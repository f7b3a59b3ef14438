"""What an OSD says of its mClock queues (`ceph tell osd.N dump_op_pq_state`), shard by shard."""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, Mapping, NamedTuple, Sequence, Tuple

from ceph_tuner.core.ceph.commands import parsed
from ceph_tuner.core.ceph.ports import Clock, Commander

_CLASSES = {0: "background_recovery", 1: "background_best_effort", 3: "client"}
"""`op_scheduler_class` of OpSchedulerItem.h; immediate (2) is not scheduled."""
_NUMBER = r"(-?[0-9.]{1,40})"
_RECORD = re.compile(
    rf"client:\{{ class_id: (\d)([^}}]{{0,200}})\}} prev_tag:\{{[^}}]{{0,60}}? r:{_NUMBER} p:{_NUMBER} l:{_NUMBER}"
    r" \}(?: req_count:(\d{1,9}))?"
)
QUEUES = "dump_op_pq_state"
TAG_ROUND_S = 1e6
"""dmClock prints the seconds of its tags modulo this (`format_tag`)."""

STANDS_S = 30.0
"""More than a request puts a reservation's clock ahead: 16 s for one of scrub at 0.05 of 40 IOPS in eight shards."""


class ServedClass(NamedTuple):
    """One of mClock's classes, served by one shard of an OSD while it was looked at."""

    shard: int
    service_class: str
    by_reservation: bool
    """Whether it has a reservation there."""
    by_limit: bool


class Tags(NamedTuple):
    """Of the last request of one client in one shard: what each clock of dmClock stands at."""

    reservation: float
    weight: float
    limit: float
    waiting: int = 0
    """Requests in its queue at that moment."""


class QueuedClass(NamedTuple):
    """One of mClock's classes in one shard at one moment."""

    shard: int
    service_class: str
    waiting: int
    """Requests in its queue."""
    limit_ahead_s: float
    """How far the limit's clock is ahead of the moment: no waiting request is served before. 0 without a limit."""


Dump = Dict[Tuple[int, str, str], Tags]
"""(shard, class, client) -> tags."""


def read_tags(answer: Mapping[str, Any]) -> Dump:
    """Read `ceph tell osd.N dump_op_pq_state`."""
    return {(shard, name, client): tags for shard, name, client, tags in _records(answer)}


def queued(dump: Dump, at: float) -> Tuple[QueuedClass, ...]:
    """What waits by a dump; `at` is when it was answered, in seconds since the epoch."""
    return tuple(
        QueuedClass(shard, name, tags.waiting, _ahead(tags.limit, at) if tags.limit > 0 else 0.0)
        for (shard, name, _), tags in dump.items()
    )


def strict_queued(answer: Mapping[str, Any]) -> int:
    """Items of all shards in the strict queue, which goes before all classes; at least so many.

    `high_priority_queue` is the number of priorities that have any. How many items each has stands below it, under keys
    that repeat, so that JSON keeps those of the highest priority.
    """
    shards = [shard for shard in answer.values() if isinstance(shard, Mapping)]
    priorities = [int(shard.get("queue_sizes", {}).get("high_priority_queue", 0)) for shard in shards]
    items = [int(shard.get("HighPriorityQueue", {}).get("queue_size", 0)) for shard in shards]
    return sum(map(max, priorities, items))


def served(before: Dump, after: Dump, at: float) -> Tuple[ServedClass, ...]:
    """What was served between two dumps, and by which clocks: a class without a reservation has none that moves.

    `at` is when the first was answered, in seconds since the epoch. What is served by its weight turns the
    reservation's clock back by as much as its request had put it ahead (`reduce_reservation_tags`). So a clock that
    stands says nothing where a request waited at first, or where it was hardly behind: only a request that arrives long
    after it moves it for good. One that never moved is of no reservation.
    """
    return tuple(
        ServedClass(shard, name, now.reservation != then.reservation or _may_stand(then, at), now.limit != then.limit)
        for (shard, name, client), now in sorted(after.items())
        if (then := before.get((shard, name, client))) is not None and now.weight != then.weight
    )


def served_meanwhile(
    commander: Commander, osds: Sequence[int], clock: Clock, seconds: float
) -> Dict[int, Tuple[ServedClass, ...]]:
    """OSD -> what it served in so many seconds, by a look before and after. Raises CommandFailed, ClusterTimeout."""

    def look(osd: int) -> Dump:
        return read_tags(parsed(commander.tell(f"osd.{osd}", QUEUES, {}), QUEUES))

    at = clock.now()
    before = {osd: look(osd) for osd in osds}
    clock.sleep(seconds)
    return {osd: served(before[osd], look(osd), at) for osd in osds}


def _may_stand(then: Tags, at: float) -> bool:
    """Whether a class with a reservation may be served while its clock stands."""
    return then.reservation > 0 and (then.waiting > 0 or _ahead(then.reservation, at) > -STANDS_S)


def _records(answer: Mapping[str, Any]) -> Iterator[Tuple[int, str, str, Tags]]:
    for name, shard in answer.items():
        text = str(shard.get("mClockClients", {}).get("clients", "")) if isinstance(shard, Mapping) else ""
        number = name.rpartition(":")[2]
        # behind this word the same records come again, in the order of each heap
        for record in _RECORD.finditer(text.partition("{ reservation_top:")[0]):
            service_class = _CLASSES.get(int(record[1]))
            if service_class is not None and number.isdigit():
                reservation, weight, limit = map(float, record.group(3, 4, 5))
                tags = Tags(reservation, weight, limit, int(record[6] or 0))
                yield int(number), service_class, record[2], tags


def _ahead(tag: float, at: float) -> float:
    """Seconds from a moment to a tag, the shorter way round."""
    difference = (tag - at) % TAG_ROUND_S
    return difference if difference < TAG_ROUND_S / 2 else difference - TAG_ROUND_S
