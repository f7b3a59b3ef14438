"""What held from when on, as the history keeps it: the regime of the cluster and of scopes, the objectives' policy."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.bounded import MISREAD
from ceph_tuner.core.measure.history import History

REGIME, POLICY = "regime", "policy"
NO_POLICY = "none"
POLICY_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,30}[a-z0-9])?")
"""Of a policy in the objectives' calendar."""
LONGEST_NAME = 300


@dataclass(frozen=True)
class TimelineEntry:
    """From `at` on this held, until the next one of the same kind and scope."""

    at: float
    """Seconds since the epoch."""
    kind: str
    scope: str
    """A device class or a pool, as `class=ssd`; empty for the whole cluster."""
    name: str
    evidence: Mapping[str, float] = field(default_factory=dict)
    """Metrics by which it was told."""

    def __post_init__(self) -> None:
        longest = max(map(len, (self.kind, self.scope, self.name)))
        if not math.isfinite(self.at) or not self.kind or longest > LONGEST_NAME:
            raise ValueError(f"an entry has a time (={self.at}), a kind, and texts of at most {LONGEST_NAME}")

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for the store and for programs."""
        evidence = dict(self.evidence)
        return {"at": self.at, "kind": self.kind, "scope": self.scope, "name": self.name, "evidence": evidence}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> TimelineEntry:
        """Inverse of `to_dict`. Raises KeyError, TypeError or ValueError for what is none."""
        evidence = {str(name): float(value) for name, value in dict(document["evidence"]).items()}
        kind, scope, name = (str(document[part]) for part in ("kind", "scope", "name"))
        return cls(float(document["at"]), kind, scope, name, evidence)


def timeline(history: History) -> Tuple[TimelineEntry, ...]:
    """Every entry that can be read, oldest first."""
    entries = (_entry(record) for record in history.timeline())
    return tuple(sorted((entry for entry in entries if entry is not None), key=lambda entry: entry.at))


def newest(entries: Sequence[TimelineEntry]) -> Dict[Tuple[str, str], TimelineEntry]:
    """What holds now, by kind and scope."""
    return {(entry.kind, entry.scope): entry for entry in entries}


def _entry(record: Any) -> Optional[TimelineEntry]:
    try:
        return TimelineEntry.from_dict(record)
    except MISREAD:
        # written by another version, or cut short: the past is not worth an error
        return None
