"""The nouns: an answer of a cluster, and all answers of one moment or three."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, List, Mapping, Optional, Set, Tuple

from ceph_tuner.core.ceph.commands import STORE_PREFIX

Key = Tuple[str, str, Tuple[str, ...]]
"""Daemon (empty: the monitors), command, and the values of its arguments in their order."""

REFUSED, LATE, FAILED = "refused", "late", "failed"
FIRST_SAMPLE = 1
"""Look 0 has what does not change quickly; looks 1 and 2 are two samples of the counters."""


@dataclass(frozen=True)
class Fault:
    """Why a command had no answer."""

    kind: str
    """`refused` (capabilities), `late` or `failed`."""
    code: int
    """Negative errno."""
    words: str


@dataclass(frozen=True)
class Answer:
    """What a command was answered, or why it was not."""

    key: Key
    look: int
    at: float
    """When, in seconds since the epoch by the clock of the machine that asked."""
    text: str = ""
    fault: Optional[Fault] = None

    @property
    def command(self) -> str:
        """Without the daemon and the arguments."""
        return self.key[1]

    @property
    def shown(self) -> str:
        """As an operator would type it."""
        return shown(self.key)


@dataclass(frozen=True)
class ClusterState:
    """A cluster as it was when it was gathered."""

    cluster: str
    version: str
    """Of the oldest OSD."""
    at: float
    """When the first command was answered."""
    answers: Tuple[Answer, ...]
    made_by: str = ""
    osds: int = 0
    """OSDs that ran."""
    asked: Tuple[int, ...] = ()
    """OSDs that were asked themselves."""
    notes: Tuple[str, ...] = ()
    """What was left out, and why."""
    place: str = ""
    """The file."""
    kind: str = "state"
    """`state`, or `report`: what `ceph report` printed."""

    def by_key(self) -> Dict[Key, List[Answer]]:
        """Answers to each command, in the order in which they came."""
        answers_by_key: Dict[Key, List[Answer]] = {}
        for answer in self.answers:
            answers_by_key.setdefault(answer.key, []).append(answer)
        return answers_by_key


@dataclass
class Content:
    """What of a file one command's answers are."""

    answers: int = 0
    without: int = 0
    """How many of them are faults."""
    nbytes: int = 0
    daemons: Set[str] = field(default_factory=set)


def contents(state: ClusterState) -> Dict[str, Content]:
    """Command -> what is in the file of it."""
    content_by_command: Dict[str, Content] = {}
    for answer in state.answers:
        content = content_by_command.setdefault(shown((answer.key[0] and "osd.N", answer.command, ())), Content())
        content.answers += 1
        content.without += answer.fault is not None
        content.nbytes += len(answer.text.encode())
        content.daemons.add(answer.key[0])
    return dict(sorted(content_by_command.items()))


def key_of(daemon: str, prefix: str, arguments: Mapping[str, str]) -> Key:
    """The key of a command."""
    return daemon, prefix, tuple(arguments.values())


def shown(key: Key) -> str:
    """`ceph tell osd.3 config show`."""
    daemon, prefix, arguments = key
    return " ".join(["ceph", *(["tell", daemon] if daemon else []), prefix, *arguments])


def store_key(arguments: Mapping[str, str]) -> str:
    """The key of the store that `config-key get` or `config-key dump` asks for; empty where it is not the tuner's."""
    key = str(arguments.get("key", ""))
    return key if key.startswith(STORE_PREFIX) else ""
