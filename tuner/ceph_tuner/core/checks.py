"""A check: what it looks at, and which parts of the facts it needs. Without these its silence is no all-clear."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Collection, Dict, Generic, List, Mapping, NamedTuple, Sequence, Tuple, TypeVar

# parts of the facts that several kinds of checks need, in the words of the notes about them
COUNTERS = "the OSDs' counters"
OPTIONS = "the OSDs' options"
OSD_MAP = "the OSD map"
PGS = "the PGs"
QUEUES = "the OSDs' queues"
STEADY = "whether mClock's values stood meanwhile"

F = TypeVar("F")
R = TypeVar("R")


@dataclass(frozen=True)
class Check(Generic[F, R]):
    """A function of facts `F` to what it finds there, `R`."""

    look: Callable[[F], List[R]]
    needs: Tuple[str, ...]
    """Parts of the facts, in the words of the notes."""


class NotJudged(NamedTuple):
    """A check that found nothing, and did not see all that it needs."""

    name: str
    unseen: Tuple[str, ...]
    """The parts that it missed."""


def not_judged(checks: Mapping[str, Check[F, R]], facts: F, unseen: Collection[str]) -> List[NotJudged]:
    """Give the checks that say nothing of these facts, in their order. What one finds in spite of it counts."""
    missing = {name: tuple(part for part in check.needs if part in unseen) for name, check in checks.items()}
    return [NotJudged(name, parts) for name, parts in missing.items() if parts and not checks[name].look(facts)]


def unjudged_words(checks: Sequence[NotJudged]) -> str:
    """`2 could not be judged: flags, shards. Not seen: the OSD map.`; empty where all could."""
    if not checks:
        return ""
    parts: Dict[str, None] = dict.fromkeys(part for check in checks for part in check.unseen)
    names = ", ".join(check.name for check in checks)
    return f"{len(checks)} could not be judged: {names}. Not seen: {', '.join(parts)}."
