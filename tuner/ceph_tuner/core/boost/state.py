"""What a boost remembers: all of it is in the store before it acts, so that the next active mgr goes on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional, Tuple

from ceph_tuner.core.autopilot.stored_state import journal_numbers, stored_fields
from ceph_tuner.core.boost.events import Request
from ceph_tuner.core.errors import InputError

OFF, STARTING, ON, ENDING = "off", "starting", "on", "ending"
PHASES = {
    OFF: "nothing is boosted",
    STARTING: "its settings are about to be written",
    ON: "its settings are in force",
    ENDING: "its settings are being taken back",
}


@dataclass(frozen=True)
class BoostState:
    """A boost at one moment. Times are seconds since the epoch."""

    phase: str = OFF
    since: float = 0.0
    """When it came into this phase."""
    request: Optional[Request] = None
    """None exactly while it is off."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    grounds: str = ""
    forecast: Mapping[str, Any] = field(default_factory=dict)
    """What the twin said of the settings, as it is kept with the write; empty where it was not asked."""
    begun: float = 0.0
    baseline: Mapping[str, float] = field(default_factory=dict)
    rate_before: Optional[float] = None
    """What became less in a second before it, of what is left; None where that was not seen."""
    writing: bool = False
    """While it starts: whether the settings may be on the cluster already."""
    changes: Tuple[int, ...] = ()
    """Journal numbers of what is on the cluster."""
    resumed: int = 0
    """How often another mgr went on with it."""
    clean_since: Optional[float] = None
    """Since when nothing is left."""
    why: str = ""
    """Why it ends."""
    rule: str = ""
    """Of the guard, or of the state machine, that ended it."""
    problem: str = ""
    """Why its settings cannot be taken back; starting: why they cannot be written yet; off: why it never began."""
    last: Mapping[str, Any] = field(default_factory=dict)
    """What came of the one before, as `outcome_of` gives it."""

    def __post_init__(self) -> None:
        if self.phase not in PHASES:
            raise ValueError(f"phase (={self.phase!r}) must be one of {', '.join(PHASES)}")
        if (self.request is None) != (self.phase == OFF) and self.phase != ENDING:
            raise ValueError(f"phase {self.phase} with request {self.request}")
        if not all(map(math.isfinite, (self.since, self.begun))):
            raise ValueError(f"since (={self.since}) and begun (={self.begun}) must be finite")

    @property
    def on_cluster(self) -> bool:
        """Whether something of it may be on the cluster."""
        return self.phase in (ON, ENDING) or self.writing or bool(self.changes)

    @property
    def ends_at(self) -> float:
        """When time is up, whatever is left."""
        return self.begun + self.request.at_most_s if self.request is not None else self.begun

    def time_is_up(self, now: float) -> bool:
        """Whether it may last no longer; a clock from before it began says nothing, and ends it as well."""
        return not self.begun <= now < self.ends_at

    def to_dict(self) -> Dict[str, Any]:
        """Give the plain form, for the store."""
        document = {name: getattr(self, name) for name in self.__dataclass_fields__}
        document["request"] = self.request.to_dict() if self.request is not None else None
        document.update(settings=dict(self.settings), baseline=dict(self.baseline), last=dict(self.last))
        document["forecast"] = dict(self.forecast)
        document["changes"] = list(self.changes)
        return document

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> BoostState:
        """Inverse of `to_dict`; names that this version does not know are dropped.

        Raises KeyError, TypeError or ValueError for what is no state.
        """
        values = stored_fields(cls, document)
        try:
            request = Request.from_dict(values["request"]) if values.get("request") else None
        except InputError as error:
            raise ValueError(str(error)) from error
        rate_before = values.get("rate_before")
        values.update(
            # it is for words alone: what makes no sense is as if it was not seen
            rate_before=rate_before if rate_before and 0 < rate_before < math.inf else None,
            request=request,
            settings=dict(values.get("settings", {})),
            forecast=dict(values.get("forecast", {})),
            baseline={str(name): float(value) for name, value in dict(values.get("baseline", {})).items()},
            changes=journal_numbers(values.get("changes", [])),
            last=_outcome(dict(values.get("last", {}))),
        )
        return cls(**values)


_NUMBERS = ("begun", "ended", "seconds", "left_before", "left", "rate_before", "saved_s")


def _outcome(document: Mapping[str, Any]) -> Dict[str, Any]:
    """What came of the one before, without what is of another type: it is past, and costs no boost."""
    kinds: Dict[str, Any] = dict.fromkeys(("kind", "by", "why", "rule"), str)
    kinds.update((name, (int, float)) for name in _NUMBERS)
    return {
        name: value
        for name, value in document.items()
        if value is None or (isinstance(value, kinds.get(name, object)) and not isinstance(value, bool))
    }
