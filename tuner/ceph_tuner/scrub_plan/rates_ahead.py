"""Rates of the hours ahead: each hour has those of the policy that holds then."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timezone, tzinfo
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from ceph_tuner.core.goals.slo_calendar import PolicySpell, SloCalendar
from ceph_tuner.core.hours import DAY_S
from ceph_tuner.scrub_plan import HOURS, RateRange

ENDS = ("mean", "low", "high")
"""Of a rate."""


@dataclass(frozen=True)
class RatesAhead:
    """For each policy of a calendar, the rates of the day's 24 hours; without a calendar, under the empty name."""

    by_policy: Mapping[str, Tuple[RateRange, ...]]
    calendar: Optional[SloCalendar] = None
    zone: tzinfo = timezone.utc
    """Of the OSDs' hosts, whose hours these are, as Ceph's own for scrubs."""
    _days: Dict[int, Tuple[PolicySpell, ...]] = field(default_factory=dict, init=False, repr=False, compare=False)

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

    def hour_at(self, at: float) -> int:
        """Which of the 24 hours it is."""
        return datetime.fromtimestamp(at, self.zone).hour

    def at(self, at: float) -> RateRange:
        """The rate of a moment."""
        return self.by_policy[self.policy_at(at)][self.hour_at(at)]

    def bytes_in(self, start: float, seconds: float, end: str = "mean") -> float:
        """What an hour, or a part of one, leaves for scrub; where a policy ends within it, by both."""
        if end not in ENDS:
            raise ValueError(f"end(={end!r}) must be one of {', '.join(ENDS)}")
        hour = self.hour_at(start)
        return sum(
            float(getattr(self.by_policy[policy][hour], end)) * length
            for policy, length in self._spells(start, seconds)
        )

    def _spells(self, start: float, seconds: float) -> List[Tuple[str, float]]:
        """Which policy holds how long."""
        if self.calendar is None or not self.calendar.policies:
            return [("", seconds)]
        end = start + seconds
        days = range(int(start // DAY_S), int(end // DAY_S) + 1)
        lengths = [
            (spell.policy, min(end, spell.end) - max(start, spell.start)) for day in days for spell in self._day(day)
        ]
        return [(policy, length) for policy, length in lengths if length > 0]

    def _day(self, number: int) -> Tuple[PolicySpell, ...]:
        """The policies of a day in UTC; every hour of it is asked for again and again."""
        if number not in self._days and self.calendar is not None:
            self._days[number] = self.calendar.spells(number * DAY_S, (number + 1) * DAY_S)
        return self._days[number]
