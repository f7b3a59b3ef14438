"""Searches for many clusters, wherever they are carried out; what an earlier run has found is not searched again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Dict, Iterator, List, Mapping, Optional, Protocol, Union

from ceph_tuner.core.errors import TunerError
from ceph_tuner.fleet.advice import Advice, SearchTask, advise
from ceph_tuner.fleet.search_order import ordered
from ceph_tuner.workers import CallFailure, CallResult, Event, Workers


class KeptAnswers(Protocol):
    """Where answers of an earlier run are."""

    def known(self, task: SearchTask) -> Optional[Advice]:
        """The answer to that question; None where there is none."""

    def keep(self, task: SearchTask, advice: Advice) -> None:
        """Keep it. Raises TunerError where it cannot be."""


@dataclass(frozen=True)
class Known:
    """Answered by an earlier run."""

    key: str
    result: Advice


@dataclass(frozen=True)
class NotKept:
    """Its answer comes next, and is not there for a later run."""

    key: str
    reason: str


def advise_all(
    tasks: Mapping[str, SearchTask], workers: Workers, answers: KeptAnswers
) -> Iterator[Union[Event, Known, NotKept]]:
    """What happens, until each cluster has its answer (`CallResult`, `Known`) or fails. Raises as `workers` does."""
    order = ordered(tasks)
    tasks_under_way: Dict[str, SearchTask] = {}

    def begin(name: str, before: Optional[Advice]) -> List[Known]:
        """Start a search after its leader's; those that need none, and who followed them."""
        task = order.tasks[name]
        if before is not None and before.profile is not None:
            leader = order.leader[name]
            looked_at = task.looked_at | {leader} if leader and tasks[leader].seen else task.looked_at
            task = replace(task, elsewhere=(before.profile, *task.elsewhere), looked_at=looked_at)
        tasks_under_way[name] = task
        advice = answers.known(task)
        if advice is None:
            workers.start(name, advise, task)
            return []
        return [Known(name, advice), *(answer for other in order.following(name) for answer in begin(other, advice))]

    for name, leader in order.leader.items():
        if leader is None:
            yield from begin(name, None)
    for event in workers.events():
        if isinstance(event, CallResult):
            try:
                answers.keep(tasks_under_way[event.key], event.result)
            except TunerError as error:
                # a full disk costs no search
                yield NotKept(event.key, str(error))
        yield event
        if isinstance(event, (CallResult, CallFailure)):
            for follower in order.following(event.key):
                yield from begin(follower, event.result if isinstance(event, CallResult) else None)
