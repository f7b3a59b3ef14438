"""What happens to a boost beside what happens to any trial (`autopilot/events.py`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional, Tuple, Union

from ceph_tuner.core.autopilot.events import (
    Look,
    OperatorCommand,
    Started,
    TakeBackFailed,
    TookBack,
    WriteFailed,
    Wrote,
)
from ceph_tuner.core.boost.kinds import KINDS
from ceph_tuner.core.errors import InputError

SHORTEST_S, LONGEST_S = 60.0, 7 * 86400.0
AT_MOST_S = 6 * 3600.0
"""How long a boost may last where nobody says."""


@dataclass(frozen=True)
class Request:
    """What somebody wants to be done sooner. `keep`: objectives that end it where they are missed, as texts."""

    kind: str
    at_most_s: float = AT_MOST_S
    keep: Tuple[str, ...] = ()
    target: str = "osd"
    by: str = "an operator"

    def __post_init__(self) -> None:
        """Raise InputError for what makes no sense."""
        if self.kind not in KINDS:
            raise InputError("boost", repr(self.kind), f"one of {', '.join(KINDS)}")
        if not SHORTEST_S <= self.at_most_s <= LONGEST_S:
            raise InputError("--at-most", f"{self.at_most_s:g} s", "1min to 7d")

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for the store."""
        return {
            "kind": self.kind,
            "at_most_s": self.at_most_s,
            "keep": list(self.keep),
            "target": self.target,
            "by": self.by,
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Request:
        """Inverse of `to_dict`. Raises KeyError, TypeError or ValueError for what is none."""
        return cls(
            str(document["kind"]),
            float(document["at_most_s"]),
            tuple(str(text) for text in document["keep"]),
            str(document["target"]),
            str(document["by"]),
        )


@dataclass(frozen=True)
class Begin:
    """A boost is to begin, with these settings."""

    at: float
    request: Request
    settings: Mapping[str, Any]
    grounds: str
    """Why these settings."""
    baseline: Mapping[str, float] = field(default_factory=dict)
    """What the cluster did just before, by metric: the guard refers to it."""
    rate_before: Optional[float] = None
    """What became less in a second, of what is left; None where that was not seen."""
    forecast: Mapping[str, Any] = field(default_factory=dict)
    """What the twin said of these settings, as it is kept with the write; empty where it was not asked."""


Event = Union[Begin, Look, OperatorCommand, Started, TakeBackFailed, TookBack, WriteFailed, Wrote]
