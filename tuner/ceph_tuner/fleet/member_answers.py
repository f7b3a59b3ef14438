"""Asks all members at once: one that is down, slow or speaks nonsense costs the others nothing."""

from __future__ import annotations

import errno
import queue
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Any, Callable, Deque, Dict, Generic, Iterator, Optional, Sequence, Tuple, TypeVar

from ceph_tuner.core.errors import ClusterTimeout, CommandFailed, PermissionRefused, TunerError
from ceph_tuner.fleet.contract import Member
from ceph_tuner.fleet.plugin_of_member import Declined

T = TypeVar("T")

AT_ONCE = 32
"""Members that are asked at the same time: each may be a process of its own."""


@dataclass(frozen=True)
class MemberAnswer(Generic[T]):
    """What one member answered, or why it did not."""

    member: Member
    found: Optional[T] = None
    problem: str = ""
    kind: str = "ok"
    """`ok`; `late`: no answer in time; `refused`: it does not let us; `declined`: its plugin did not do it; `nonsense`:
    it cannot be understood; `failed`.

    Where the asking was interrupted: `interrupted`, or `not asked`.
    """
    seconds: float = 0.0

    @property
    def word(self) -> str:
        """The kind, for people."""
        return "down" if self.kind == "failed" else self.kind

    @property
    def reason(self) -> str:
        """The problem without the cluster's name, which most errors begin with."""
        return self.problem.removeprefix(f"cluster {self.member.name}: ")

    @property
    def may_have_done_it(self) -> bool:
        """Whether it was asked, and nobody knows what came of it."""
        return self.kind in ("late", "interrupted")

    def to_dict(self) -> Dict[str, Any]:
        """Who was asked and how that went, for programs; what was found goes beside it."""
        return {
            "cluster": self.member.name,
            "reached_by": self.member.access.kind,
            "labels": dict(self.member.labels),
            "answer": self.kind,
            "problem": self.problem or None,
            "seconds": round(self.seconds, 3),
        }


def ask_all(
    members: Sequence[Member], ask: Callable[[Member], T], within_s: float, at_once: int = AT_ONCE
) -> Iterator[MemberAnswer[T]]:
    """Answers as they come, one for each member, none later than `within_s` after its member was asked.

    A thread cannot be stopped: one that is late goes on by itself, its place is free for the next, and what it brings
    is thrown away. It does not keep the program from ending.
    """
    members_to_ask: Deque[Member] = deque(members)
    since: Dict[str, Tuple[Member, float]] = {}
    answers: queue.SimpleQueue[MemberAnswer[T]] = queue.SimpleQueue()
    while members_to_ask or since:
        while members_to_ask and len(since) < max(1, at_once):
            member = members_to_ask.popleft()
            since[member.name] = member, time.monotonic()
            threading.Thread(
                target=lambda member=member: answers.put(answer_of(member, ask)), daemon=True, name=f"ask {member.name}"
            ).start()
        first_late = min(began for _, began in since.values()) + within_s
        try:
            answer = answers.get(timeout=max(0.0, first_late - time.monotonic()))
        except queue.Empty:
            for member, began in list(since.values()):
                if time.monotonic() >= began + within_s:
                    del since[member.name]
                    yield MemberAnswer(member, None, f"no answer within {within_s:g} s", "late", within_s)
            continue
        if since.pop(answer.member.name, None) is not None:
            yield answer


def answer_of(member: Member, ask: Callable[[Member], T]) -> MemberAnswer[T]:
    """Ask one, here and for as long as it takes: whatever it raises is its answer."""
    began = time.monotonic()
    content, problem, kind = None, "", "ok"
    try:
        content = ask(member)
    except ClusterTimeout as error:
        problem, kind = str(error), "late"
    except PermissionRefused as error:
        problem, kind = str(error), "refused"
    except Declined as error:
        problem, kind = str(error), "declined"
    except CommandFailed as error:
        # what is no JSON is told as an input/output error
        problem, kind = str(error), "nonsense" if error.code == -errno.EIO else "failed"
    except TunerError as error:
        problem, kind = str(error), "failed"
    except Exception as error:  # whatever a cluster answers must not end the others' row
        words = " ".join(str(error).split())[:120]
        problem, kind = f"answered what cannot be read ({type(error).__name__}: {words})", "nonsense"
    return MemberAnswer(member, content, problem, kind, time.monotonic() - began)
