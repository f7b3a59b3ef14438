"""What the book's switching remembers: all of it is in the store before it acts, so that the next mgr goes on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Tuple

from ceph_tuner.core.autopilot.stored_state import journal_numbers, stored_fields

RESTING, SWITCHING, WATCHING, HOLDING, RETURNING = "resting", "switching", "watching", "holding", "returning"
PHASES = {
    RESTING: "what was there before the book is in force",
    SWITCHING: "the settings of a page are being written",
    WATCHING: "a page is in force, and the guard watches it as a trial",
    HOLDING: "a page is in force",
    RETURNING: "the book's settings are being taken back",
}

HOUR_S = 3600.0


@dataclass(frozen=True)
class BookState:
    """The book at one moment. Times are seconds since the epoch."""

    on: bool = False
    phase: str = RESTING
    since: float = 0.0
    """When it came into this phase."""
    regime: str = ""
    """For which the page was chosen."""
    page: int = 0
    """Number of the page in force; while resting, of one whose settings were in force already. 0: none."""
    target: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Those of the page in force."""
    next_page: int = 0
    """Of the page that is being written; 0: none is."""
    next_target: str = ""
    next_settings: Mapping[str, Any] = field(default_factory=dict)
    changes: Tuple[int, ...] = ()
    """Journal number of the change that stands; none while resting."""
    baseline: Mapping[str, float] = field(default_factory=dict)
    """What the cluster did just before the switch, by metric: the guard refers to it."""
    switches: Tuple[float, ...] = ()
    """Times of the switches of the last hour."""
    rests: Mapping[int, float] = field(default_factory=dict)
    """Until when a page is left out."""
    doubts: Mapping[int, str] = field(default_factory=dict)
    """Pages of these whose regime may have been over as they broke: left out only while it is still told.

    A policy that the regime's name lacks is told behind it.
    """
    deaths: int = 0
    """Mgrs in a row that ended while a switch was made or watched."""
    then: str = ""
    """Why it is off once all is taken back; empty: it stays on."""
    stopped: str = ""
    """Why it switched itself off; empty where it did not."""
    problem: str = ""
    """Why its settings cannot be taken back, or written yet."""
    waits: bool = False
    """Whether that is no more than another tuner at work, which an operator who switched the book off waits for."""
    policy: str = ""
    """Under which the page was chosen, where the regime's name lacks it."""

    def __post_init__(self) -> None:
        if self.phase not in PHASES:
            raise ValueError(f"phase (={self.phase!r}) must be one of {', '.join(PHASES)}")
        if not all(map(math.isfinite, (self.since, *self.switches, *self.rests.values()))):
            raise ValueError("times must be finite")
        if self.phase in (WATCHING, HOLDING) and not self.changes:
            raise ValueError(f"phase {self.phase} needs a change that stands")

    def switches_within_an_hour(self, now: float) -> Tuple[float, ...]:
        """Times of the switches that count towards the limit; those of a clock that was ahead bind nobody."""
        return tuple(at for at in self.switches if 0 <= now - at < HOUR_S)

    @property
    def on_cluster(self) -> bool:
        """Whether something not permanent may be on the cluster: the lock is held, the guardian watches."""
        return self.phase in (SWITCHING, WATCHING, RETURNING)

    @property
    def stands(self) -> bool:
        """Whether a page's settings are in force by the book, or may be."""
        return self.phase != RESTING

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for the store."""
        document = {name: getattr(self, name) for name in self.__dataclass_fields__}
        document.update((name, dict(document[name])) for name in ("settings", "next_settings", "baseline"))
        document.update(changes=list(self.changes), switches=list(self.switches))
        document["rests"] = {str(number): until for number, until in self.rests.items()}
        document["doubts"] = {str(number): regime for number, regime in self.doubts.items()}
        return document

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> BookState:
        """Inverse of `to_dict`; names that this version does not know are dropped.

        Raises KeyError, TypeError or ValueError for what is no state.
        """
        values = stored_fields(cls, document)
        values.update(
            changes=journal_numbers(values.get("changes", [])),
            switches=tuple(float(at) for at in values.get("switches", ())),
            rests={int(number): float(until) for number, until in dict(values.get("rests", {})).items()},
            doubts={int(number): str(regime) for number, regime in dict(values.get("doubts", {})).items()},
            baseline={str(name): float(value) for name, value in dict(values.get("baseline", {})).items()},
            settings=dict(values.get("settings", {})),
            next_settings=dict(values.get("next_settings", {})),
        )
        return cls(**values)
