"""Rates of the hours ahead: each hour has those of the policy that holds then."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone, tzinfo
from typing import List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.goals.slo_calendar import SloCalendar
from ceph_tuner.scrub_plan import HOURS, RateRange

ENDS = ("mean", "low", "high")
"""Of a rate."""


@dataclass(frozen=True)
class RatesAhead:
    """For each policy of a calendar, the rates of the day's 24 hours; without a calendar, under the empty name."""

    by_policy: Mapping[str, Tuple[RateRange, ...]]
    calendar: Optional[SloCalendar] = None

    def __post_init__(self) -> None:
        missing = [name for name in self._names if len(self.by_policy.get(name, ())) != HOURS]
        if missing:
            raise ValueError(f"by_policy must have {HOURS} rates for each of {', '.join(map(repr, missing))}")

    @classmethod
    def daily(cls, rates: Sequence[RateRange]) -> RatesAhead:
        """These, on each day."""
        return cls({"": tuple(rates)})

    @property
    def _names(self) -> Tuple[str, ...]:
        return tuple(self.calendar.by_policy) if self.calendar is not None and self.calendar.policies else ("",)

    def policy_at(self, at: float) -> str:
        """Name of the policy that holds at a moment; empty without a calendar."""
        return self.calendar.policy_at(at) if self.calendar is not None and self.calendar.policies else ""

    def at(self, at: float, zone: tzinfo = timezone.utc) -> RateRange:
        """The rate of a moment."""
        return self.by_policy[self.policy_at(at)][datetime.fromtimestamp(at, zone).hour]

    def bytes_in(self, start: float, seconds: float, end: str = "mean", zone: tzinfo = timezone.utc) -> float:
        """What an hour, or a part of one, leaves for scrub; where a policy ends within it, by both."""
        if end not in ENDS:
            raise ValueError(f"end(={end!r}) must be one of {', '.join(ENDS)}")
        hour = datetime.fromtimestamp(start, zone).hour
        return sum(
            float(getattr(self.by_policy[policy][hour], end)) * length
            for policy, length in self._spells(start, seconds)
        )

    def _spells(self, start: float, seconds: float) -> List[Tuple[str, float]]:
        """Which policy holds how long."""
        if self.calendar is None or not self.calendar.policies:
            return [("", seconds)]
        spells = self.calendar.spells(start, start + seconds)
        # they are in whole seconds
        whole = sum(spell.end - spell.start for spell in spells)
        if not whole:
            return [(self.policy_at(start), seconds)]
        return [(spell.policy, (spell.end - spell.start) * seconds / whole) for spell in spells]
