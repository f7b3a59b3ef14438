"""A cause: which work is held by what, by which evidence, how much of it, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Tuple

from ceph_tuner.core.why.facts import WORKS

LEAST_HELD = 0.1
"""A cause that holds less of its work than this is not named."""


@dataclass(frozen=True)
class Evidence:
    """One thing that was seen, and the command that shows it."""

    words: str
    command: str

    def to_dict(self) -> Dict[str, str]:
        """Give the plain form, for programs."""
        return {"words": self.words, "command": self.command}


@dataclass(frozen=True)
class Cause:
    """One reason why work waits."""

    name: str
    """For programs, such as `limit`."""
    work: str
    pools: Tuple[str, ...]
    title: str
    held: float
    """Share of that work that waits for it now, 0 to 1."""
    waiting: float
    """How many PGs, or operations in the mean, that is."""
    unit: str
    """`PGs` or `operations`."""
    evidence: Tuple[Evidence, ...]
    cure: str
    commands: Tuple[str, ...] = ()
    """What an operator may type; nothing is run."""
    osds: Tuple[int, ...] = ()
    """Where; none where it is about the whole cluster."""

    def __post_init__(self) -> None:
        """Hold it to its own laws: no cause without evidence."""
        if self.work not in WORKS or not self.evidence or not 0 <= self.held <= 1:
            raise ValueError(
                f"{self.name}: work (={self.work!r}) must be known, evidence be there, held (={self.held}) in 0..1"
            )

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for programs."""
        return {
            "cause": self.name,
            "work": self.work,
            "pools": list(self.pools),
            "title": self.title,
            "held": round(self.held, 3),
            "waiting": round(self.waiting, 3),
            "unit": self.unit,
            "osds": list(self.osds),
            "evidence": [evidence.to_dict() for evidence in self.evidence],
            "cure": self.cure,
            "commands": list(self.commands),
        }
